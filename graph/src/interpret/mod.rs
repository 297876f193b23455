//! The meaning of a function: its naive, exact execution on host tensors.
//!
//! Every other way of running a graph is compared with this one. While it runs, it also compares each tensor with its
//! deduced type: symbols that no parameter determined are bound when they are first measured.

mod control;
mod program;
mod symbols;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;

use crate::fuse::Group;
use crate::ir::{Binding, Body, Call, Function, Module, Operation, ValueId};
use crate::operator::{Arguments, Fault, Value};
use crate::part::Part;
pub use program::{dims_of, result_shapes};
use symbols::Symbols;

/// Why a function gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// There is no such function.
    #[error("there is no function `{0}`")]
    UnknownFunction(String),
    /// The arguments are not those that the function takes.
    #[error("function `{function}`: {reason}")]
    Arguments {
        /// The function.
        function: String,
        /// The mismatch.
        reason: String,
    },
    /// An operation failed.
    #[error("{place}: {reason}")]
    Operation {
        /// The operation.
        place: CallSite,
        /// Why.
        reason: String,
    },
}

/// Where something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The operation's name.
    pub operation: &'static str,
    /// Where it comes from, for instance a node of a model file.
    pub origin: Option<Arc<str>>,
    /// The first value that it binds.
    pub value: String,
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "node `{origin}` ({}, gives `{}`)", self.operation, self.value),
            None => write!(f, "{} (gives `{}`)", self.operation, self.value),
        }
    }
}

/// A function outside that graphs can call.
pub type External = Box<dyn Fn(&[Value]) -> Result<Vec<Value>, Fault>>;

/// Called with each value that is bound at the outermost level.
pub type Observer<'m> = Box<dyn Fn(&Function, ValueId, &Value) + 'm>;

/// How an engine takes a part.
pub enum Outcome {
    /// It has computed the outputs.
    Values(Vec<Value>),
    /// It takes these parts instead, in this order.
    Parts(Arc<[Part]>),
    /// It does not take it: its groups are executed one after the other.
    Groups,
}

/// Computes groups of calls in another way than by evaluating operators, for instance by kernels.
pub trait Engine {
    /// The groups of a body; `None` to execute binding after binding.
    fn groups(&self, body: &Body) -> Option<&[Group]>;

    /// A body as one part; `None` to execute group after group.
    fn whole(&self, _body: &Body) -> Option<&Part> {
        None
    }

    /// Computes the outputs of a part: `get` gives values from outside of it.
    ///
    /// # Errors
    /// When the computation fails as the evaluation would.
    fn run_part(
        &self,
        _function: &Function,
        _body: &Body,
        _part: &Part,
        _get: &dyn Fn(ValueId) -> Option<Value>,
    ) -> Result<Outcome, Fault> {
        Ok(Outcome::Groups)
    }

    /// Runs the evaluation of a call that the engine left to the interpreter; an engine that measures takes its time.
    fn evaluate(&self, _binding: &Binding, evaluate: &mut dyn FnMut()) {
        evaluate();
    }

    /// Computes a group: `get` gives values from outside of it. `None` to execute its bindings one after the other.
    ///
    /// # Errors
    /// When the computation fails as the evaluation would.
    fn run(
        &self,
        function: &Function,
        body: &Body,
        group: &Group,
        get: &dyn Fn(ValueId) -> Option<Value>,
    ) -> Result<Option<Vec<Value>>, Fault>;
}

/// Executes functions of a module.
pub struct Interpreter<'m> {
    module: &'m Module,
    externals: FxHashMap<String, External>,
    iterations: u64,
    interruption: Option<&'m AtomicBool>,
    observer: Option<Observer<'m>>,
    engine: Option<&'m dyn Engine>,
}

/// How many iterations one loop may have, unless the caller says otherwise.
pub const MOST_ITERATIONS: u64 = 1 << 24;

/// How deep calls to functions may be nested.
const CALL_DEPTH: usize = 64;

impl<'m> Interpreter<'m> {
    /// An interpreter of a module.
    pub fn new(module: &'m Module) -> Self {
        Interpreter {
            module,
            externals: FxHashMap::default(),
            iterations: MOST_ITERATIONS,
            interruption: None,
            observer: None,
            engine: None,
        }
    }

    /// Sets how many iterations one loop may have.
    #[must_use]
    pub fn iterations(mut self, most: u64) -> Self {
        self.iterations = most;
        self
    }

    /// Sets what ends loops before their next iteration, with an error, as soon as it is true.
    #[must_use]
    pub fn interruption(mut self, interruption: &'m AtomicBool) -> Self {
        self.interruption = Some(interruption);
        self
    }

    fn check_interruption(&self) -> Result<(), Fault> {
        match self.interruption {
            Some(interruption) if interruption.load(Ordering::Relaxed) => {
                Err(Fault("the run was interrupted".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Provides a function outside.
    #[must_use]
    pub fn external(mut self, name: &str, function: External) -> Self {
        self.externals.insert(name.to_owned(), function);
        self
    }

    /// Sets what is called with each value that is bound at the outermost level.
    #[must_use]
    pub fn observer(mut self, observer: Observer<'m>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets what computes groups of calls.
    #[must_use]
    pub fn engine(mut self, engine: &'m dyn Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Executes a function.
    ///
    /// # Errors
    /// When there is no such function, the arguments do not fit it, or an operation fails.
    pub fn run(&self, function: &str, arguments: Vec<Value>) -> Result<Vec<Value>, RunError> {
        self.call_function(function, arguments, 0)
    }

    fn call_function(&self, name: &str, arguments: Vec<Value>, depth: usize) -> Result<Vec<Value>, RunError> {
        let function =
            self.module.functions.get(name).ok_or_else(|| RunError::UnknownFunction(name.to_owned()))?;
        let refuse = |reason: String| RunError::Arguments { function: name.to_owned(), reason };
        if depth > CALL_DEPTH {
            return Err(refuse("calls are nested too deeply".to_owned()));
        }
        let parameters = &function.body.parameters;
        if parameters.len() != arguments.len() {
            return Err(refuse(format!(
                "it takes {} arguments, found {}",
                parameters.len(),
                arguments.len()
            )));
        }
        let mut frame = Frame {
            interpreter: self,
            function,
            depth,
            nesting: 0,
            values: vec![None; function.values.len()],
            symbols: Symbols::default(),
        };
        for (&parameter, argument) in parameters.iter().zip(arguments) {
            let checked = frame.symbols.bind(&function.value(parameter).ty, &argument);
            checked
                .map_err(|reason| refuse(format!("argument `{}`: {reason}", function.describe(parameter))))?;
            frame.values[parameter.index()] = Some(argument);
        }
        frame.run_body(&function.body)
    }
}

/// One execution of a function.
struct Frame<'i, 'm> {
    interpreter: &'i Interpreter<'m>,
    function: &'m Function,
    /// How many calls to functions are under way.
    depth: usize,
    /// How many bodies of control flow are under way.
    nesting: usize,
    values: Vec<Option<Value>>,
    symbols: Symbols,
}

impl<'m> Frame<'_, 'm> {
    /// Executes the bindings of a body and gives its results.
    fn run_body(&mut self, body: &'m Body) -> Result<Vec<Value>, RunError> {
        match self.interpreter.engine.and_then(|engine| engine.groups(body)) {
            None => body.bindings.iter().try_for_each(|binding| self.run_binding(binding))?,
            Some(groups) => self.run_groups(body, groups)?,
        }
        body.results.iter().map(|&result| self.get(result).map_err(|fault| self.unbound(fault))).collect()
    }

    /// Executes groups.
    fn run_groups(&mut self, body: &'m Body, groups: &'m [Group]) -> Result<(), RunError> {
        match self.interpreter.engine.and_then(|engine| engine.whole(body)) {
            Some(whole) => self.run_part(body, groups, whole),
            None => groups.iter().try_for_each(|group| self.run_group(body, group)),
        }
    }

    /// Executes a part: at once, as several parts, or group after group, whichever the engine can do.
    fn run_part(&mut self, body: &'m Body, groups: &'m [Group], part: &Part) -> Result<(), RunError> {
        let last = part.groups.last().and_then(|&place| groups[place].bindings.last());
        let (Some(engine), Some(&last)) = (self.interpreter.engine, last) else { return Ok(()) };
        let last = &body.bindings[last];
        let get = |value: ValueId| self.values.get(value.index()).and_then(Option::clone);
        let outcome = if part.is_alone {
            Ok(Outcome::Groups)
        } else {
            engine.run_part(self.function, body, part, &get)
        };
        match outcome.map_err(|Fault(reason)| RunError::Operation { place: self.place(last), reason })? {
            Outcome::Values(results) => self.bind(last, &part.outputs, results),
            Outcome::Parts(parts) => parts.iter().try_for_each(|part| self.run_part(body, groups, part)),
            Outcome::Groups => part.groups.iter().try_for_each(|&place| self.run_group(body, &groups[place])),
        }
    }

    fn run_group(&mut self, body: &'m Body, group: &'m Group) -> Result<(), RunError> {
        let bindings = group.bindings.iter().map(|&place| &body.bindings[place]);
        let last = bindings.clone().next_back().expect("a group has a binding");
        if let (Some(engine), Operation::Call(_)) = (self.interpreter.engine, &last.operation) {
            let get = |value: ValueId| self.values.get(value.index()).and_then(Option::clone);
            let computed = engine.run(self.function, body, group, &get);
            let computed =
                computed.map_err(|Fault(reason)| RunError::Operation { place: self.place(last), reason })?;
            if let Some(results) = computed {
                return self.bind(last, &group.outputs, results);
            }
        }
        bindings.into_iter().try_for_each(|binding| self.run_binding(binding))
    }

    fn run_binding(&mut self, binding: &'m Binding) -> Result<(), RunError> {
        let outcome = match (&binding.operation, self.interpreter.engine) {
            (Operation::Call(call), Some(engine)) => {
                let mut outcome = Ok(Vec::new());
                engine.evaluate(binding, &mut || outcome = self.call(call, binding.outputs.len()));
                outcome.map_err(Failure::Own)
            }
            (operation, _) => self.execute(operation, binding.outputs.len()),
        };
        match outcome {
            Ok(results) => self.bind(binding, &binding.outputs, results),
            Err(Failure::Inner(error)) => Err(error),
            Err(Failure::Own(Fault(reason))) => {
                Err(RunError::Operation { place: self.place(binding), reason })
            }
        }
    }

    /// Binds values to results, which are compared with their types.
    fn bind(&mut self, binding: &Binding, outputs: &[ValueId], results: Vec<Value>) -> Result<(), RunError> {
        let fail = |reason: String, place: CallSite| RunError::Operation { place, reason };
        if results.len() < outputs.len() {
            let reason = format!("{} results are wanted, there are {}", outputs.len(), results.len());
            return Err(fail(reason, self.place(binding)));
        }
        for (&output, result) in outputs.iter().zip(results) {
            // A body that runs again may measure other sizes than before.
            if self.nesting == 0 {
                let checked = self.symbols.bind(&self.function.value(output).ty, &result);
                checked.map_err(|reason| {
                    fail(format!("deduced and computed types differ: {reason}"), self.place(binding))
                })?;
                if let Some(observer) = &self.interpreter.observer {
                    observer(self.function, output, &result);
                }
            }
            self.values[output.index()] = Some(result);
        }
        Ok(())
    }

    fn place(&self, binding: &Binding) -> CallSite {
        CallSite {
            operation: binding.operation.name(),
            origin: binding.origin.clone(),
            value: binding.outputs.first().map_or_else(String::new, |&value| self.function.describe(value)),
        }
    }

    fn unbound(&self, fault: Fault) -> RunError {
        RunError::Arguments { function: self.function.name.to_string(), reason: fault.0 }
    }

    /// A value, with its elements in memory.
    fn get(&self, value: ValueId) -> Result<Value, Fault> {
        let bound = self.values.get(value.index()).and_then(Option::clone);
        let bound =
            bound.ok_or_else(|| Fault(format!("value `{}` is not bound", self.function.describe(value))))?;
        if let Value::Tensor(tensor) = &bound {
            tensor.load().map_err(|error| Fault(error.to_string()))?;
        }
        Ok(bound)
    }

    fn get_all(&self, values: &[ValueId]) -> Result<Vec<Value>, Fault> {
        values.iter().map(|&value| self.get(value)).collect()
    }

    fn execute(&mut self, operation: &'m Operation, outputs: usize) -> Result<Vec<Value>, Failure> {
        Ok(match operation {
            Operation::Constant(tensor) => vec![tensor.clone().into()],
            Operation::Call(call) => self.call(call, outputs)?,
            Operation::MatchShape { value, extents } => {
                let value = self.get(*value)?;
                self.symbols.match_shape(extents, &value).map_err(Fault)?;
                vec![value]
            }
            Operation::Tuple(parts) => vec![Value::Tuple(self.get_all(parts)?)],
            Operation::Project { tuple, place } => match self.get(*tuple)? {
                Value::Tuple(parts) if *place < parts.len() => vec![parts[*place].clone()],
                _ => return Err(Fault(format!("the value is no tuple of more than {place} parts")).into()),
            },
            Operation::If { condition, then_body, else_body } => {
                let chosen = if control::truth(&self.get(*condition)?)? { then_body } else { else_body };
                self.run_inner(chosen)?
            }
            Operation::Loop(operation) => self.run_loop(operation)?,
            Operation::Scan(operation) => self.run_scan(operation)?,
            Operation::CallFunction { function, inputs } => {
                self.interpreter.call_function(function, self.get_all(inputs)?, self.depth + 1)?
            }
            Operation::CallExternal { function, inputs, .. } => {
                match self.interpreter.externals.get(&**function) {
                    Some(external) => external(&self.get_all(inputs)?)?,
                    None => return Err(Fault(format!("there is no function `{function}` outside")).into()),
                }
            }
            Operation::CallProgram { program, inputs, .. } => {
                self::program::run(program, &self.get_all(inputs)?)?
            }
        })
    }

    fn call(&self, call: &Call, outputs: usize) -> Result<Vec<Value>, Fault> {
        let inputs = call.inputs.iter().map(|input| input.map(|value| self.get(value)).transpose());
        let inputs = inputs.collect::<Result<Vec<_>, Fault>>()?;
        let Call { operator, attributes, .. } = call;
        (operator.evaluate)(&Arguments { operator, attributes, inputs: &inputs, outputs })
    }

    /// Executes a body of control flow.
    fn run_inner(&mut self, body: &'m Body) -> Result<Vec<Value>, RunError> {
        self.nesting += 1;
        let results = self.run_body(body);
        self.nesting -= 1;
        results
    }
}

/// A failure of the operation itself, or one inside a body or function that it ran.
enum Failure {
    Own(Fault),
    Inner(RunError),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Own(fault)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Inner(error)
    }
}
