//! Names of primitives that are no longer there, as old traces have them.
//!
//! A trace is persistent, so that a name outlives its primitive. Where other primitives do the same, the parser
//! reads these in its place: a record replays as it did, and prints in today's form.

use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{CacheRead, CacheWrite, ComputeAt, Instruction, Prefetch, ReverseComputeAt};
use crate::schedule::rv::{BlockRv, LoopRv, PrefetchMode};
use crate::schedule::trace::Step;
use crate::stmt::Symbol;

/// The names of primitives that nothing replaces. No record used them.
const REMOVED: &[&str] = &["rolling_buffer", "cache_index"];

/// Whether a name was that of a primitive which nothing replaces.
pub(super) fn is_removed(name: &str) -> bool {
    REMOVED.contains(&name)
}

/// A primitive that others replace, with its arguments.
pub(super) enum Retired {
    /// `prefetch_beside loop` is `prefetch loop, "siblings"`.
    PrefetchBeside { target: LoopRv },
    /// `read_at loop, block, number, scope` is `cache_read` and `compute_at`.
    ReadAt { target: LoopRv, block: BlockRv, read: i64, scope: Symbol },
    /// `write_at loop, block, scope` is `cache_write` and `reverse_compute_at`.
    WriteAt { target: LoopRv, block: BlockRv, scope: Symbol },
}

impl Retired {
    /// The primitive of a name, ready to be filled in.
    pub(super) fn named(name: &str) -> Option<Retired> {
        let (target, block, scope) = (LoopRv::default(), BlockRv::default(), Scope::Local.text().into());
        match name {
            "prefetch_beside" => Some(Retired::PrefetchBeside { target }),
            "read_at" => Some(Retired::ReadAt { target, block, read: 0, scope }),
            "write_at" => Some(Retired::WriteAt { target, block, scope }),
            _ => None,
        }
    }

    /// Visits every argument in the order of the text form.
    pub(super) fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        match self {
            Retired::PrefetchBeside { target } => visitor.visit(Argument::Loop(target)),
            Retired::ReadAt { target, block, read, scope } => {
                visitor.visit(Argument::Loop(target))?;
                visitor.visit(Argument::Block(block))?;
                visitor.visit(Argument::Number(read))?;
                visitor.visit(Argument::Text(scope))
            }
            Retired::WriteAt { target, block, scope } => {
                visitor.visit(Argument::Loop(target))?;
                visitor.visit(Argument::Block(block))?;
                visitor.visit(Argument::Text(scope))
            }
        }
    }

    /// The steps that do the same. The first one makes the variables, from number `first` on.
    ///
    /// # Errors
    /// When a line names another number of variables than the primitive made.
    pub(super) fn steps(self, first: u32, outputs: u32) -> Result<Vec<Step>, String> {
        let made = BlockRv(first);
        let (name, expected, instructions): (_, _, Vec<Instruction>) = match self {
            Retired::PrefetchBeside { target } => {
                ("prefetch_beside", 0, vec![Prefetch { target, mode: PrefetchMode::Siblings }.into()])
            }
            Retired::ReadAt { target, block, read, scope } => {
                let place = ComputeAt { block: made, target };
                ("read_at", 1, vec![CacheRead { block, read, scope }.into(), place.into()])
            }
            Retired::WriteAt { target, block, scope } => {
                let place = ReverseComputeAt { block: made, target };
                ("write_at", 1, vec![CacheWrite { block, scope }.into(), place.into()])
            }
        };
        if outputs != expected {
            return Err(format!("`{name}` makes {expected} variables, not {outputs}"));
        }
        let step = |(number, instruction)| match number {
            0 => Step { instruction, first_output: first, outputs, decision: None },
            _ => Step { instruction, first_output: first + outputs, outputs: 0, decision: None },
        };
        Ok(instructions.into_iter().enumerate().map(step).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::program::Program;
    use crate::schedule::Trace;
    use crate::target::Target;

    const COPY: &str = "
kernel copy(in a: f32[12], out b: f32[12]) {
  for i in 0..12 {
    block b(v: spatial 12 = i) { b[v] = a[v] * 2.0 }
  }
}";

    fn replayed(steps: &str) -> (Program, String) {
        let text =
            format!("trace v1\n%0 = get_block \"b\"\n%1 = get_loops %0\n%2, %3 = split %1, [3, 4]\n{steps}");
        let trace: Trace = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let program = COPY.parse().expect("the kernel is well formed");
        let schedule = trace.replay(&program, Arc::new(Target::generic_cpu()), 0);
        let schedule = schedule.unwrap_or_else(|error| panic!("{error}\n{text}"));
        (schedule.program().clone(), schedule.trace().to_string())
    }

    #[test]
    fn retired_names_replay_as_what_replaces_them() {
        for (old, new) in [
            ("prefetch_beside %2\n", "prefetch %2, \"siblings\"\n"),
            (
                "%4 = read_at %2, %0, 0, \"local\"\n%5, %6 = get_loops %4\nunroll %6\n",
                "%4 = cache_read %0, 0, \"local\"\ncompute_at %4, %2\n%5, %6 = get_loops %4\nunroll %6\n",
            ),
            (
                "%4 = write_at %2, %0, \"global\"\n%5, %6 = get_loops %4\nvectorize %6\n",
                "%4 = cache_write %0, \"global\"\nreverse_compute_at %4, %2\n%5, %6 = get_loops %4\nvectorize %6\n",
            ),
        ] {
            assert_eq!(replayed(old), replayed(new), "{old}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_retired_step_is_said_in_its_words() {
        let message = |step: &str| {
            let text = format!("trace v1\n%0 = get_block \"b\"\n%1 = get_loops %0\n{step}\n");
            text.parse::<Trace>().expect_err(step).to_string()
        };
        assert!(message("read_at %1, %0, 0, \"local\"").contains("`read_at` makes 1 variables, not 0"));
        assert!(message("%2 = prefetch_beside %1").contains("`prefetch_beside` makes 0 variables, not 1"));
        assert!(message("rolling_buffer %0, %1").contains("the removed primitive `rolling_buffer`"));
        assert!(message("roll %0, %1").contains("unknown primitive `roll`"));
        assert!(message("prefetch %1, \"cousins\"").contains("a distance or \"siblings\""));
    }
}
