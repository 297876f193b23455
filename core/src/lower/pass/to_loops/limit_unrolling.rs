//! Loops that would become too much code when they are written out stay loops.
//!
//! [`unroll_loops`](crate::lower::pass::loops::unroll_loops) decides that late, after the passes that make versions of statements. Where code is to be
//! short, it is decided first: the other passes then see the statements that there will be, and make versions of these.

use std::sync::Arc;

use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{LoopKind, Stmt};

/// Makes unrolled loops serial that have more statements than the options allow of scheduled loops.
pub(in crate::lower) fn limit_unrolling(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    if let Some(limit) = options.max_scheduled_unrolling {
        keep_long_loops(&mut program.body, limit);
    }
    Ok(())
}

/// Makes loops serial that become more than `limit` stores; the answer is how many there will be.
fn keep_long_loops(stmt: &mut Stmt, limit: usize) -> usize {
    // The statements of an intrinsic are one instruction.
    if let Stmt::Intrinsic(_) = stmt {
        return 1;
    }
    let inside = stmt.children_mut().into_iter().map(|child| keep_long_loops(child, limit)).sum::<usize>();
    match stmt {
        Stmt::Store(_) => 1,
        Stmt::For(node) if node.kind == LoopKind::Unrolled => {
            let copies = node.extent.as_constant().and_then(|copies| usize::try_from(copies).ok());
            let written_out = copies.map_or(usize::MAX, |copies| inside.saturating_mul(copies));
            if written_out <= limit {
                return written_out;
            }
            Arc::make_mut(node).kind = LoopKind::Serial;
            inside
        }
        _ => inside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(text: &str, limit: Option<usize>) -> String {
        let mut program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let options = LowerOptions { max_scheduled_unrolling: limit, ..LowerOptions::default() };
        limit_unrolling(&mut program, &options).unwrap();
        program.to_string()
    }

    #[test]
    fn inner_loops_are_written_out_first() {
        let text = |[a, b, c]: [&str; 3]| {
            format!(
                "kernel k(N, inout y: f32[3, 4, 5, 16]) {{
  {a}for i in 0..3 {{
    {b}for j in 0..4 {{
      {c}for k in 0..5 {{
        y[i, j, k, lane<16>] = 0.0
      }}
    }}
    y[i, 0, 0, lane<16>] = 1.0
  }}
}}
"
            )
        };
        let unrolled = "unrolled ";
        let all = text([unrolled; 3]);
        assert_eq!(limited(&all, None), all);
        assert_eq!(limited(&all, Some(63)), all);
        assert_eq!(limited(&all, Some(62)), text(["", unrolled, unrolled]));
        assert_eq!(limited(&all, Some(19)), text([unrolled, "", unrolled]), "three times 6 statements fit");
        assert_eq!(limited(&all, Some(17)), text(["", "", unrolled]));
        // A loop that stays one counts as the statements inside, once.
        assert_eq!(limited(&all, Some(4)), text(["", unrolled, ""]));
        assert_eq!(limited(&all, Some(3)), text(["", "", ""]));
    }
}
