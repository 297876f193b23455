//! Loops that are bound to the threads of a GPU become the program of one thread.
//!
//! Before these passes, a loop that is bound to threads is like a parallel loop: it ends when all its threads have ended, and a
//! nest may hold many such loops one after the other. Afterwards each nest is one grid: loops over its blocks, inside of them
//! loops over the threads of a block, and inside of these everything else, with barriers where the ends of loops were needed.

pub(in crate::lower) mod bind_threads;
mod boxes;
mod check_loops;
pub(in crate::lower) mod combine_across_threads;
mod conflict;
pub(in crate::lower) mod insert_barriers;
pub(in crate::lower) mod mark_by_warp;
mod residues;
#[cfg(test)]
mod tests;
mod values;
