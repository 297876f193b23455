//! The plans that are kept for inputs seen before.

use std::collections::VecDeque;

use tilewright_graph::tensor::{ElementType, HostTensor};

/// How many plans are kept.
const MOST_PLANS: usize = 64;

/// How many plans of the same shapes are kept: inputs whose elements differ in each call choose nothing.
const MOST_ALIKE: usize = 8;

/// How many elements an input may have whose elements a plan is made for.
const MOST_CHOICES: usize = 4;

/// The plans that were made last, the oldest first. `T` is a plan, or what else was decided for inputs.
pub(crate) struct Plans<T>(VecDeque<Planned<T>>);

impl<T> Default for Plans<T> {
    fn default() -> Self {
        Plans(VecDeque::new())
    }
}

/// The outcome for inputs of some shapes.
struct Planned<T> {
    shapes: Vec<Vec<usize>>,
    /// The elements of inputs for which alone it holds.
    contents: Contents,
    /// The plan; `None` where the graph decides while it runs.
    plan: Option<T>,
}

/// The elements of inputs, where a plan is made for them.
pub(crate) type Contents = Vec<Option<HostTensor>>;

impl<T> Planned<T> {
    fn fits(&self, inputs: &[&HostTensor]) -> bool {
        let contents = || self.contents.iter().zip(inputs);
        self.shapes.iter().zip(inputs).all(|(shape, input)| shape == input.shape())
            && contents().all(|(own, input)| own.as_ref().is_none_or(|own| own == *input))
    }
}

/// Whether the elements of an input may decide what a graph does: a rate, a mode, a length.
fn is_choice(input: &HostTensor) -> bool {
    let is_whole = input.element().is_integer() || input.element() == ElementType::Bool;
    is_whole && input.len() <= MOST_CHOICES
}

impl<T: Clone> Plans<T> {
    /// The plan for inputs, if there is one. `build` makes it. Where shapes do not decide everything, the elements of small integer
    /// inputs may.
    pub(crate) fn find(
        &mut self,
        inputs: &[&HostTensor],
        build: impl Fn(&[Vec<usize>], &Contents) -> Option<T>,
    ) -> Option<T> {
        if let Some(known) = self.0.iter().find(|known| known.fits(inputs)) {
            return known.plan.clone();
        }
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.shape().to_vec()).collect();
        let mut contents: Contents = vec![None; inputs.len()];
        let alike = self.0.iter().filter(|known| known.shapes == shapes).count();
        let mut plan = if alike == 0 { build(&shapes, &contents) } else { None };
        if plan.is_none() && alike < MOST_ALIKE {
            let chosen: Contents =
                inputs.iter().map(|input| is_choice(input).then(|| (*input).clone())).collect();
            if chosen.iter().any(Option::is_some) {
                plan = build(&shapes, &chosen);
                if plan.is_some() {
                    contents = chosen;
                }
            }
        }
        if self.0.len() >= MOST_PLANS {
            self.0.pop_front();
        }
        self.0.push_back(Planned { shapes, contents, plan: plan.clone() });
        plan
    }
}
