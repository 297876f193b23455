//! The types of what loops carry.
//!
//! A body cannot know how large a carried value is: each iteration may give another shape. Where it gives the type that it takes,
//! as long as it is given the type of the first value, every iteration does. That is assumed of all carried values at once, and
//! given up for those whose results have another type, until no assumption fails.

use rustc_hash::FxHashMap;

use crate::deduce::{self, Fact};
use crate::ir::{Binding, Body, Function, Loop, Operation, Scan, Type, ValueId, ValueInfo};
use crate::symbolic::SymInt;

/// The number of the first symbol that stands for an extent nothing is known of. No function has so many of its own.
const FIRST_SYMBOL: u32 = 1 << 30;

/// The function with the types of carried values where all iterations have the same.
pub(super) fn refine_loops(function: &Function) -> Function {
    let mut refinement =
        Refinement { values: function.values.clone(), symbols: FIRST_SYMBOL, found: FxHashMap::default() };
    refinement.body(&function.body);
    let mut function = function.clone();
    // Later passes deduce all other types again.
    for (parameter, ty) in refinement.found {
        function.values[parameter.index()].ty = ty;
    }
    function
}

struct Refinement {
    values: Vec<ValueInfo>,
    symbols: u32,
    /// The types of parameters, for the assumptions made last.
    found: FxHashMap<ValueId, Type>,
}

/// What a loop carries: the first value, the parameter, and the result of an iteration.
type Carried = (ValueId, ValueId, ValueId);

fn carried(operation: &Operation) -> Option<(Vec<Carried>, &Body)> {
    let (first, body, parameters, results) = match operation {
        Operation::Loop(Loop { carried, body, .. }) => (carried, body, 2, 1),
        Operation::Scan(Scan { states, body, .. }) => (states, body, 0, 0),
        _ => return None,
    };
    let carried = first.iter().enumerate();
    let carried = carried
        .map(|(place, &first)| (first, body.parameters[parameters + place], body.results[results + place]));
    Some((carried.collect(), body))
}

impl Refinement {
    fn ty(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// Deduces the types of a body again, from those of its parameters and of values outside.
    fn body(&mut self, body: &Body) {
        body.bindings.iter().for_each(|binding| self.binding(binding));
    }

    fn binding(&mut self, binding: &Binding) {
        let facts = match &binding.operation {
            Operation::Call(call) => {
                match deduce::call(call, binding.outputs.len(), &self.values, &mut self.symbols) {
                    Ok(facts) => facts,
                    // The pass that builds the function anew reports it.
                    Err(_) => return,
                }
            }
            Operation::If { then_body, else_body, .. } => {
                self.body(then_body);
                self.body(else_body);
                deduce::branches(then_body, else_body, &self.values, &mut self.symbols)
            }
            Operation::Loop(operation) => {
                self.repeated(&binding.operation);
                deduce::repeated(operation, &self.values, &mut self.symbols)
            }
            Operation::Scan(operation) => {
                self.repeated(&binding.operation);
                deduce::scanned(operation, &self.values, &mut self.symbols)
            }
            _ => return,
        };
        for (&output, Fact { ty, contents }) in binding.outputs.iter().zip(facts) {
            let info = &mut self.values[output.index()];
            (info.ty, info.contents) = (ty, contents);
        }
    }

    /// Finds the types of what a loop carries.
    fn repeated(&mut self, operation: &Operation) {
        let Some((all, body)) = carried(operation) else { return };
        let declared: Vec<Type> = all.iter().map(|&(_, parameter, _)| self.ty(parameter).clone()).collect();
        let mut assumed: Vec<bool> = all.iter().map(|&(first, ..)| is_lasting(self.ty(first))).collect();
        loop {
            for ((&(first, parameter, _), declared), &assumed) in all.iter().zip(&declared).zip(&assumed) {
                let ty = if assumed { self.ty(first).clone() } else { declared.clone() };
                self.values[parameter.index()].ty = ty;
            }
            self.body(body);
            let mut holds = true;
            for (&(first, _, result), assumed) in all.iter().zip(&mut assumed) {
                let fits = !*assumed || self.ty(result) == self.ty(first);
                holds &= fits;
                *assumed &= fits;
            }
            if holds {
                for &(_, parameter, _) in &all {
                    self.found.insert(parameter, self.ty(parameter).clone());
                }
                return;
            }
        }
    }
}

/// Whether a type is known, and names no extent that another deduction would name otherwise.
fn is_lasting(ty: &Type) -> bool {
    let lasting = |extent: &SymInt| {
        let mut lasting = true;
        extent.for_each_symbol(&mut |symbol| lasting &= !deduce::is_fresh(symbol));
        lasting
    };
    ty.element().is_some() && ty.extents().is_some_and(|extents| extents.iter().all(lasting))
}
