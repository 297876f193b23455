//! Strategies: which candidates to measure next.
//!
//! A [`Strategy`] proposes candidates of a [`SearchSpace`] and learns their measured times. There are three:
//! [evolutionary], which the tuner uses unless it is told otherwise, [random] and
//! [replay]. Others are written in the same way, outside this crate: see the example at [`Strategy`].
//!
//! A strategy measures nothing and holds no cost model; both belong to the [tuner](crate::tune::tuner).

mod evolution;
mod interface;
mod random;
mod replay;
mod search_space;

pub use evolution::{Evolution, EvolutionOptions, evolutionary};
pub use interface::{MakeStrategy, Strategy};
pub use random::{RandomStrategy, random};
pub use replay::{ReplayStrategy, replay};
pub use search_space::SearchSpace;
