//! Guards on a loop's own variable become a shorter loop.
//!
//! ```text
//! for i in 0..8 { if 8·t + i < M { … } }
//! for i in 0..min(8, M - 8·t) { … }
//!
//! for i in 0..8 { if i >= 2 { … i … } }
//! for i in 0..6 { … i + 2 … }
//! ```
//!
//! A loop that is vectorized or unrolled is shortened only to a constant number of iterations; a
//! serial one to any, also to a negative one, which is none.

use crate::index::Ranges;
use crate::lower::util::shorten::{Lengths, clamp};
use crate::lower::util::unreached::remove_unreached;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;

/// Shortens loops by the guards of their bodies.
pub(in crate::lower) fn clamp_loops(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    simplify_stmt(&mut program.body, &Ranges::new());
    clamp(&mut program.body, Lengths::Any);
    remove_unreached(program);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::clamp_loops;
    use crate::lower::LowerOptions;
    use crate::program::Program;

    fn clamped(text: &str) -> String {
        let mut program: Program = text.parse().unwrap();
        clamp_loops(&mut program, &LowerOptions::default()).unwrap();
        program.to_string()
    }

    #[test]
    fn a_loop_without_iterations_inside_of_one_that_runs_once_disappears() {
        let found = clamped(
            "kernel k(N, in x: f32[16], out y: f32[16]) {
  for a in 0..2 {
    if a >= 1 {
      for b in 0..8 {
        if a*8 + b < 5 {
          y[a*8 + b] = 0.0
        }
      }
      for b in 0..8 {
        y[a*8 + b] = x[a*8 + b]
      }
    }
  }
}
",
        );
        assert!(!found.contains("0.0"), "{found}");
        assert!(found.contains("y[b + 8] = x[b + 8]"), "{found}");
    }
}
