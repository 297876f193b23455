//! Mutators for decisions that only GPUs have.

mod next_choice;
mod threads;

use crate::space::mutate::{self, Mutators};

/// The mutators of every device, and those of a GPU.
pub(crate) fn all() -> Mutators {
    let own = [threads::MUTATOR, next_choice::MUTATOR];
    mutate::all().elements().iter().copied().chain(own).collect::<Vec<_>>().into()
}
