//! Parallel loops inside a parallel loop become serial: the outermost one has all the threads. Only the loops of its
//! [nest](For::parallel_nest) stay parallel, whose iterations are shared together.

use std::sync::Arc;

use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{For, LoopKind, Stmt};

/// Makes parallel loops inside parallel loops serial, apart from those of its nest.
pub(in crate::lower) fn keep_outermost_parallel(
    program: &mut Program,
    _: &LowerOptions,
) -> Result<(), LowerError> {
    keep_outermost(&mut program.body);
    Ok(())
}

fn keep_outermost(stmt: &mut Stmt) {
    match stmt {
        Stmt::For(node) if node.kind == LoopKind::Parallel => {
            let depth = For::parallel_nest(node).len();
            make_serial_below(node, depth);
        }
        _ => stmt.children_mut().into_iter().for_each(keep_outermost),
    }
}

/// Makes parallel loops serial that stand inside of the innermost of `depth` loops.
fn make_serial_below(node: &mut Arc<For>, depth: usize) {
    match &mut Arc::make_mut(node).body {
        Stmt::For(inner) if depth > 1 => make_serial_below(inner, depth - 1),
        body => make_serial(body),
    }
}

fn make_serial(stmt: &mut Stmt) {
    if let Stmt::For(node) = stmt
        && node.kind == LoopKind::Parallel
    {
        Arc::make_mut(node).kind = LoopKind::Serial;
    }
    stmt.children_mut().into_iter().for_each(make_serial);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> String {
        let mut program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        keep_outermost_parallel(&mut program, &LowerOptions::default()).unwrap();
        program.to_string()
    }

    #[test]
    fn loops_of_a_nest_stay_parallel() {
        let text = |kinds: [&str; 4]| {
            let [a, b, c, d] = kinds;
            format!(
                "kernel k(M, N, out y: f32[M, N, 4, 4]) {{
  {a}for i in 0..M {{
    {b}for j in 0..N {{
      {c}for k in 0..4 {{
        y[i, j, k, 0] = 0.0
      }}
      {d}for l in 0..4 {{
        y[i, j, 1, l] = 0.0
      }}
    }}
  }}
}}
"
            )
        };
        let parallel = "parallel ";
        assert_eq!(kept(&text([parallel; 4])), text([parallel, parallel, "", ""]));
        assert_eq!(kept(&text(["", parallel, parallel, ""])), text(["", parallel, "", ""]));
        assert_eq!(kept(&text(["", "", parallel, parallel])), text(["", "", parallel, parallel]));
    }

    #[test]
    fn a_loop_whose_extent_varies_becomes_serial() {
        let text = |kind: &str| {
            format!(
                "kernel k(N, out y: f32[N, N]) {{
  parallel for i in 0..N {{
    {kind}for j in 0..i {{
      y[i, j] = 0.0
    }}
  }}
}}
"
            )
        };
        assert_eq!(kept(&text("parallel ")), text(""));
    }
}
