//! Building a function anew, with some of its bindings replaced.

use rustc_hash::FxHashMap;

use crate::build::{BuildError, GraphBuilder};
use crate::ir::{Attributes, Binding, Body, Call, Function, Loop, Operation, Scan, Type, ValueId};
use crate::operator;
use crate::tensor::{ElementType, HostTensor};

/// The rule of a pass for one binding.
pub trait Rule {
    /// The values that take the place of a binding's outputs, or `None` to keep it. The inputs of `operation` are values
    /// of the new function already.
    ///
    /// # Errors
    /// When a call that takes the place does not fit its operator.
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError>;

    /// Called after a binding was kept, with its values in the new function.
    fn kept(&mut self, _operation: &Operation, _outputs: &[ValueId]) {}

    /// Called when a body is entered and when it is left: values that are bound inside cannot be used outside.
    fn nested(&mut self, _entered: bool) {}
}

/// The rule of a pass for one call with a single result.
pub trait CallRule {
    /// The value that takes the place of the result, in a list, or `None` to keep the call. Its inputs are values of the new function
    /// already.
    ///
    /// # Errors
    /// When a call that takes the place does not fit its operator.
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError>;
}

impl<R: CallRule> Rule for R {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        match operation {
            Operation::Call(call) if outputs == 1 => self.rewrite_call(graph, call),
            _ => Ok(None),
        }
    }
}

/// A function that is being built anew.
pub struct Rewriter<'f> {
    source: &'f Function,
    /// The new function.
    pub(crate) builder: GraphBuilder,
    new_values: Vec<Option<ValueId>>,
    constants: FxHashMap<ValueId, HostTensor>,
    calls: FxHashMap<ValueId, Call>,
    /// How often each value of the old function is used.
    uses: Vec<u32>,
    /// How often the old values are used that a value of the new function stands for.
    new_uses: FxHashMap<ValueId, u32>,
}

impl<'f> Rewriter<'f> {
    /// The function with a rule applied to each binding.
    ///
    /// # Errors
    /// When the rule makes a call that does not fit its operator, or the function uses a value before it is bound.
    pub fn apply(source: &'f Function, rule: &mut dyn Rule) -> Result<Function, BuildError> {
        let mut uses = vec![0; source.values.len()];
        source.body.for_each_use(&mut |value| uses[value.index()] += 1);
        let mut rewriter = Rewriter {
            source,
            builder: GraphBuilder::new(&source.name),
            new_values: vec![None; source.values.len()],
            constants: FxHashMap::default(),
            calls: FxHashMap::default(),
            uses,
            new_uses: FxHashMap::default(),
        };
        let results = rewriter.body(&source.body, rule)?;
        rewriter.builder.finish(results)
    }

    /// The tensor that a value of the new function is, if that is known.
    pub fn constant(&self, value: ValueId) -> Option<&HostTensor> {
        self.constants.get(&value)
    }

    /// The call that gives a value of the new function as its first output, if a call does.
    pub fn call(&self, value: ValueId) -> Option<&Call> {
        self.calls.get(&value)
    }

    /// The only element of a value of the new function, if it is a constant of one number.
    pub(crate) fn number(&self, value: ValueId) -> Option<f64> {
        let tensor = self.constant(value).filter(|tensor| tensor.element() != ElementType::String)?;
        match tensor.cast(ElementType::F64).ok()?.as_slice::<f64>()? {
            &[number] => Some(number),
            _ => None,
        }
    }

    /// The call of one of some operators that gives a value of the new function, if nothing else uses that.
    pub(crate) fn inner(&self, value: ValueId, names: &[&str]) -> Option<&Call> {
        let call = self.call(value).filter(|call| names.contains(&call.operator.name))?;
        self.used_once(value).then_some(call)
    }

    /// Whether a value of the new function is used once only.
    pub fn used_once(&self, value: ValueId) -> bool {
        self.uses(value) == 1
    }

    /// How often a value of the new function is used.
    pub fn uses(&self, value: ValueId) -> u32 {
        self.new_uses.get(&value).copied().unwrap_or(0)
    }

    /// Whether the results of a call are known to have at most `most` bytes.
    pub(crate) fn is_small(&self, call: &Call, outputs: usize, most: usize) -> bool {
        let Some(types) = self.builder.deduce(call, outputs) else { return false };
        let bytes = |ty: &Type| {
            let element = ty.element()?.dtype()?.bytes();
            ty.extents()?.iter().try_fold(element, |product, extent| {
                product.checked_mul(usize::try_from(extent.as_constant()?).ok()?)
            })
        };
        let total = types.iter().try_fold(0usize, |total, ty| total.checked_add(bytes(ty)?));
        total.is_some_and(|total| total <= most)
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, tensor: HostTensor) -> ValueId {
        let value = self.builder.constant(tensor.clone());
        self.constants.insert(value, tensor);
        value
    }

    /// Adds a call.
    ///
    /// # Errors
    /// When it does not fit its operator.
    pub fn add_call(&mut self, call: Call, outputs: usize) -> Result<Vec<ValueId>, BuildError> {
        let Call { operator, inputs, attributes } = call.clone();
        let values = self.builder.call_operator(operator.name, inputs, attributes, outputs)?;
        if let Some(&first) = values.first() {
            self.calls.insert(first, call);
        }
        Ok(values)
    }

    /// Adds a call of an operator of the table without attributes, which has one result.
    ///
    /// # Errors
    /// When the inputs do not fit the operator.
    pub(crate) fn add_plain_call(&mut self, name: &str, inputs: &[ValueId]) -> Result<ValueId, BuildError> {
        let operator = operator::find(name).ok_or_else(|| BuildError::UnknownOperator(name.to_owned()))?;
        let inputs = inputs.iter().copied().map(Some).collect();
        Ok(self.add_call(Call { operator, inputs, attributes: Attributes::none() }, 1)?[0])
    }

    /// Builds the bindings of a body into the innermost open body of the new function, and gives its results there.
    pub(crate) fn body(&mut self, body: &Body, rule: &mut dyn Rule) -> Result<Vec<ValueId>, BuildError> {
        for &parameter in &body.parameters {
            let info = self.source.value(parameter);
            let value = self.builder.parameter(info.name.as_deref().unwrap_or_default(), info.ty.clone());
            self.set(parameter, value);
        }
        for binding in &body.bindings {
            self.binding(binding, rule)?;
        }
        body.results.iter().map(|&result| self.get(result)).collect()
    }

    /// Builds a body of control flow.
    fn inner_body(&mut self, body: &Body, rule: &mut dyn Rule) -> Result<Body, BuildError> {
        self.builder.open_body();
        rule.nested(true);
        let results = self.body(body, rule)?;
        rule.nested(false);
        self.builder.close_body(results)
    }

    fn binding(&mut self, binding: &Binding, rule: &mut dyn Rule) -> Result<(), BuildError> {
        self.builder.set_origin(binding.origin.clone());
        let mut operation = binding.operation.clone();
        let mut unbound = None;
        operation.for_each_input_mut(
            &mut |input| match self.new_values.get(input.index()).copied().flatten() {
                Some(value) => *input = value,
                None => unbound = Some(*input),
            },
        );
        if let Some(value) = unbound {
            return Err(BuildError::Unbound(value.0));
        }
        let values = match rule.rewrite(self, &operation, binding.outputs.len())? {
            Some(values) => values,
            None => {
                let values = self.keep(&operation, &binding.outputs, rule)?;
                rule.kept(&operation, &values);
                values
            }
        };
        for (&old, value) in binding.outputs.iter().zip(values) {
            if let (Some(name), None) = (&self.source.value(old).name, &self.builder.value(value).name) {
                self.builder.set_name(value, name);
            }
            self.set(old, value);
        }
        Ok(())
    }

    /// Adds an operation as it is, with its bodies built anew.
    fn keep(
        &mut self,
        operation: &Operation,
        outputs: &[ValueId],
        rule: &mut dyn Rule,
    ) -> Result<Vec<ValueId>, BuildError> {
        match operation {
            Operation::Constant(tensor) => Ok(vec![self.add_constant(tensor.clone())]),
            Operation::Call(call) => self.add_call(call.clone(), outputs.len()),
            Operation::If { condition, then_body, else_body } => {
                let then_body = self.inner_body(then_body, rule)?;
                let else_body = self.inner_body(else_body, rule)?;
                self.builder.conditional(*condition, then_body, else_body)
            }
            Operation::Loop(operation) => {
                let body = self.inner_body(&operation.body, rule)?;
                self.builder.repeat(Loop { body, ..operation.clone() })
            }
            Operation::Scan(operation) => {
                let body = self.inner_body(&operation.body, rule)?;
                self.builder.scan(Scan { body, ..operation.clone() })
            }
            other => {
                let types = outputs.iter().map(|&output| self.source.value(output).ty.clone()).collect();
                self.builder.bind_as(other.clone(), types)
            }
        }
    }

    fn get(&self, value: ValueId) -> Result<ValueId, BuildError> {
        self.new_values.get(value.index()).copied().flatten().ok_or(BuildError::Unbound(value.0))
    }

    fn set(&mut self, old: ValueId, new: ValueId) {
        self.new_values[old.index()] = Some(new);
        *self.new_uses.entry(new).or_default() += self.uses[old.index()];
    }
}
