//! Loops bound to axes of threads: each axis once on a path, and with one extent in a nest. Barriers: inside the loops over
//! the threads of a block, which are nested without other statements, and where all of these threads arrive. Exchanges of values likewise,
//! by whole warps.

use crate::analysis::access::{loads_anything, reads_memory};
use crate::analysis::condition::mentions;
use crate::expr::Expr;
use crate::ids::VarId;
use crate::index::Index;
use crate::program::Scope;
use crate::render::Entity;
use crate::stmt::{For, If, LoopKind, Shuffle, Stmt, Store};
use crate::thread_axis::{ThreadAxis, WARP};
use crate::verify::Report;

pub(super) fn check(report: &mut Report<'_>) {
    let body = report.program.body.clone();
    let mut walk = Walk { report, path: Vec::new(), extents: Vec::new(), depth: 0 };
    walk.stmt(&body);
    Barriers { report, threads: Vec::new(), warps: None, is_split: false, divergent: 0 }.stmt(&body);
}

struct Walk<'r, 'p> {
    report: &'r mut Report<'p>,
    /// The axes that the loops around are bound to.
    path: Vec<ThreadAxis>,
    /// The extents of axes in this nest.
    extents: Vec<(ThreadAxis, Index)>,
    /// How many loops are around.
    depth: usize,
}

impl Walk<'_, '_> {
    fn stmt(&mut self, stmt: &Stmt) {
        let Stmt::For(node) = stmt else {
            stmt.children().into_iter().for_each(|child| self.stmt(child));
            return;
        };
        if self.depth == 0 {
            self.extents.clear();
        }
        let bound = match node.kind {
            LoopKind::Bound(axis) => Some(axis),
            _ => None,
        };
        bound.into_iter().for_each(|axis| self.axis(node, axis));
        self.path.extend(bound);
        self.depth += 1;
        self.stmt(&node.body);
        self.depth -= 1;
        if bound.is_some() {
            self.path.pop();
        }
    }

    fn axis(&mut self, node: &For, axis: ThreadAxis) {
        if self.path.contains(&axis) {
            self.error(node, |name| {
                format!("loop `{name}` is inside another one bound to `{}`", axis.text())
            });
        }
        let known = self.extents.iter().find(|(other, _)| *other == axis);
        match known {
            Some((_, extent)) if axis.is_of_grid() && *extent != node.extent => {
                let text = axis.text();
                self.error(node, |name| format!("loop `{name}` gives `{text}` another extent in this nest"));
            }
            _ => self.extents.push((axis, node.extent.clone())),
        }
    }

    fn error(&mut self, node: &For, message: impl FnOnce(String) -> String) {
        let name = self.report.variable(node.var);
        self.report.error(Entity::Loop(node.id), message(name));
    }
}

/// The walk that checks where barriers stand.
struct Barriers<'r, 'p> {
    report: &'r mut Report<'p>,
    /// The variables of the enclosing loops over threads.
    threads: Vec<VarId>,
    /// The warps of the enclosing loops over threads, where these are whole warps in the order in which threads are counted.
    warps: Option<i64>,
    /// Whether other statements stand between the loops over threads around.
    is_split: bool,
    /// The number of enclosing conditions and loops that may differ between threads.
    divergent: u32,
}

impl Barriers<'_, '_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(node) => self.for_loop(node),
            Stmt::If(node) => self.conditional(node),
            Stmt::Barrier => self.barrier(),
            Stmt::Shuffle(node) => self.shuffle(node),
            _ => stmt.each_child().for_each(|child| self.stmt(child)),
        }
    }

    fn for_loop(&mut self, node: &For) {
        if is_over_threads(node) {
            return self.loops_over_threads(node);
        }
        let is_ordered = matches!(node.kind, LoopKind::Serial | LoopKind::Unrolled);
        let is_divergent = !is_ordered || !self.is_uniform_index(&node.extent);
        self.inside(is_divergent, |walk| walk.stmt(&node.body));
    }

    /// Enters a loop over threads and those directly inside.
    fn loops_over_threads(&mut self, node: &For) {
        let around = self.threads.len();
        let was_split = self.is_split;
        self.is_split |= around > 0;
        let mut innermost = node;
        let mut nodes = vec![node];
        while let Stmt::For(inner) = &innermost.body
            && is_over_threads(inner)
        {
            nodes.push(inner);
            innermost = inner;
        }
        self.threads.extend(nodes.iter().map(|node| node.var));
        self.warps = whole_warps(&nodes);
        self.stmt(&innermost.body);
        self.threads.truncate(around);
        self.is_split = was_split;
    }

    fn conditional(&mut self, node: &If) {
        let is_divergent = !self.is_uniform(&node.condition);
        self.inside(is_divergent, |walk| {
            walk.stmt(&node.then);
            node.otherwise.iter().for_each(|stmt| walk.stmt(stmt));
        });
    }

    /// Enters a statement that only some threads may execute.
    fn inside(&mut self, is_divergent: bool, visit: impl FnOnce(&mut Self)) {
        self.divergent += u32::from(is_divergent && !self.threads.is_empty());
        visit(self);
        self.divergent -= u32::from(is_divergent && !self.threads.is_empty());
    }

    fn barrier(&mut self) {
        let problem = if self.threads.is_empty() {
            "a barrier stands outside of the loops over the threads of a block"
        } else if self.is_split {
            "other statements stand between the loops over threads around a barrier"
        } else if self.divergent > 0 {
            "a barrier stands where not all threads of a block may come to"
        } else {
            return;
        };
        self.report.error(Entity::Program, problem.to_owned());
    }

    /// Checks an exchange: one store of one element to the memory of one thread, by whole warps.
    fn shuffle(&mut self, node: &Shuffle) {
        let program = self.report.program;
        let is_private = |store: &Store| {
            let is_one = store.indices.iter().all(|index| index.lanes() == 1);
            self.report.knows_buffer(store.buffer)
                && is_one
                && program.buffer(store.buffer).scope == Scope::Local
        };
        let problem = if self.threads.is_empty() {
            "threads exchange values outside of the loops over the threads of a block"
        } else if self.is_split {
            "other statements stand between the loops over threads around an exchange of values"
        } else if self.divergent > 0 {
            "threads exchange values where not all threads of a block may come to"
        } else if !matches!(&node.body, Stmt::Store(store) if is_private(store)) {
            "an exchange of values is not one store of an element to a `local` buffer"
        } else if !(1..WARP as u32).contains(&node.mask) {
            "the partners of an exchange are not in one warp: its mask is not from 1 to 31"
        } else if self.warps.is_none() {
            "the threads that exchange values are no whole warps, or their first axis is not the innermost loop"
        } else {
            return;
        };
        self.report.error(Entity::Program, problem.to_owned());
    }

    /// Whether a condition has the same value in all threads of a block.
    fn is_uniform(&self, condition: &Expr) -> bool {
        !loads_anything(condition) && !self.threads.iter().any(|var| mentions(condition, *var))
    }

    fn is_uniform_index(&self, index: &Index) -> bool {
        !reads_memory(index) && !self.threads.iter().any(|var| index.mentions(*var))
    }
}

/// The warps of the threads of some loops, the outermost one first; `None` where the last warp would not be whole, where their number is
/// not known, or where the loops are not in the order in which threads are counted.
fn whole_warps(loops: &[&For]) -> Option<i64> {
    let is_in_order = loops.windows(2).all(|pair| pair[0].kind > pair[1].kind);
    let extents = loops.iter().map(|node| node.extent.as_constant());
    let threads = extents.into_iter().try_fold(1_i64, |threads, extent| threads.checked_mul(extent?))?;
    (is_in_order && threads % WARP == 0).then_some(threads / WARP)
}

fn is_over_threads(node: &For) -> bool {
    matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_block())
}
