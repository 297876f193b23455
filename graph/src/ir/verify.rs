//! The invariants of a well-formed function, checked.

use crate::ir::{Body, Call, Function, Loop, Operation, Scan, ValueId};

/// Why a function is not well-formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("function `{function}`: {reason}")]
pub struct Malformed {
    /// The function.
    pub function: String,
    /// The problem.
    pub reason: String,
}

impl Function {
    /// Checks that every value is bound once and before it is used, that bodies use what is visible in them, that calls fit
    /// the table, and that bodies have as many parameters and results as what runs them says.
    ///
    /// # Errors
    /// With the first thing that is not so.
    pub fn verify(&self) -> Result<(), Malformed> {
        let mut check = Check { function: self, states: vec![State::Unbound; self.values.len()] };
        check.body(&self.body).map_err(|reason| Malformed { function: self.name.to_string(), reason })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unbound,
    Visible,
    /// Bound in a body that has ended.
    Hidden,
}

struct Check<'f> {
    function: &'f Function,
    states: Vec<State>,
}

impl Check<'_> {
    fn bind(&mut self, value: ValueId) -> Result<(), String> {
        match self.states.get_mut(value.index()) {
            Some(state @ State::Unbound) => *state = State::Visible,
            Some(_) => return Err(format!("value `{}` is bound twice", self.function.describe(value))),
            None => return Err(format!("value %{} does not exist", value.0)),
        }
        Ok(())
    }

    fn use_value(&self, value: ValueId) -> Result<(), String> {
        match self.states.get(value.index()) {
            Some(State::Visible) => Ok(()),
            Some(State::Hidden) => Err(format!(
                "value `{}` is used outside of the body that binds it",
                self.function.describe(value)
            )),
            _ => Err(format!("value `{}` is used before it is bound", self.function.describe(value))),
        }
    }

    /// Checks a body; its values stay visible until the caller hides them.
    fn body(&mut self, body: &Body) -> Result<(), String> {
        body.parameters.iter().try_for_each(|&parameter| self.bind(parameter))?;
        for binding in &body.bindings {
            let mut inputs = Vec::new();
            binding.operation.for_each_input(&mut |input| inputs.push(input));
            inputs.into_iter().try_for_each(|input| self.use_value(input))?;
            for inner in binding.operation.bodies() {
                self.body(inner)?;
                let bound =
                    inner.bindings.iter().flat_map(|binding| &binding.outputs).chain(&inner.parameters);
                bound.for_each(|value| self.states[value.index()] = State::Hidden);
            }
            let outputs = binding.outputs.len();
            check_operation(&binding.operation, outputs).map_err(|reason| {
                let first =
                    binding.outputs.first().map_or_else(String::new, |&value| self.function.describe(value));
                format!("{} that gives `{first}`: {reason}", binding.operation.name())
            })?;
            binding.outputs.iter().try_for_each(|&output| self.bind(output))?;
        }
        body.results.iter().try_for_each(|&result| self.use_value(result))
    }
}

/// Checks the numbers of parameters, results and outputs.
fn check_operation(operation: &Operation, outputs: usize) -> Result<(), String> {
    let expect = |what: &str, expected: usize, found: usize| {
        if expected == found { Ok(()) } else { Err(format!("expected {expected} {what}, found {found}")) }
    };
    match operation {
        Operation::Call(call) => Call::check(call, outputs).map_err(|fault| fault.0),
        Operation::Constant(_)
        | Operation::MatchShape { .. }
        | Operation::Tuple(_)
        | Operation::Project { .. } => expect("outputs", 1, outputs),
        Operation::If { then_body, else_body, .. } => {
            expect("results of the first branch", outputs, then_body.results.len())?;
            expect("results of the second branch", outputs, else_body.results.len())
        }
        Operation::Loop(Loop { carried, body, .. }) => {
            expect("parameters of the body", carried.len() + 2, body.parameters.len())?;
            expect("results of the body", outputs + 1, body.results.len())
        }
        Operation::Scan(Scan { states, inputs, outputs: stacked, body }) => {
            expect("parameters of the body", states.len() + inputs.len(), body.parameters.len())?;
            expect("results of the body", outputs, body.results.len())?;
            expect("outputs", states.len() + stacked.len(), outputs)
        }
        Operation::CallProgram { results, .. } | Operation::CallExternal { results, .. } => {
            expect("outputs", results.len(), outputs)
        }
        Operation::CallFunction { .. } => Ok(()),
    }
}
