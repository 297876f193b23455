//! Loops bound to axes of threads: each axis once on a path, and with one extent in a nest.

use crate::index::Index;
use crate::render::Entity;
use crate::stmt::{For, LoopKind, Stmt};
use crate::thread_axis::ThreadAxis;
use crate::verify::Report;

pub(super) fn check(report: &mut Report<'_>) {
    let body = report.program.body.clone();
    let mut walk = Walk { report, path: Vec::new(), extents: Vec::new(), depth: 0 };
    walk.stmt(&body);
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
        let entity = Entity::Loop(node.id);
        let name = self.report.variable(node.var);
        if self.path.contains(&axis) {
            let text = axis.text();
            self.report.error(entity, format!("loop `{name}` is inside another one bound to `{text}`"));
        }
        let known = self.extents.iter().find(|(other, _)| *other == axis);
        match known {
            Some((_, extent)) if axis.is_of_grid() && *extent != node.extent => {
                let text = axis.text();
                self.report
                    .error(entity, format!("loop `{name}` gives `{text}` another extent in this nest"));
            }
            _ => self.extents.push((axis, node.extent.clone())),
        }
    }
}
