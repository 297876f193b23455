//! Parameters, and the uniqueness of everything declared.

use rustc_hash::FxHashSet;

use crate::ids::{BufferId, VarId};
use crate::program::{Access, Param, Scope, VariableKind};
use crate::render::Entity;
use crate::stmt::{Block, For, Stmt, Symbol};
use crate::verify::Report;
use crate::visit::for_each_stmt;

/// Checks the parameters, and that ids and names are declared once.
pub(super) fn check(report: &mut Report<'_>) {
    let mut declared = Declared::default();
    check_params(report, &mut declared);
    let program = report.program;
    // Handed out on a copy, which shares the body: the program's next fresh ids.
    let mut copy = program.clone();
    let (next_loop, next_block) = (copy.fresh_loop().0, copy.fresh_block().0);
    for_each_stmt(&program.body, &mut |stmt| match stmt {
        Stmt::For(node) => {
            check_loop(report, &mut declared, node);
            if node.id.0 >= next_loop {
                report
                    .error(Entity::Loop(node.id), format!("{:?} was not handed out by the program", node.id));
            }
        }
        Stmt::Block(node) => {
            check_block(report, &mut declared, node);
            if node.id.0 >= next_block {
                report.error(
                    Entity::Block(node.id),
                    format!("{:?} was not handed out by the program", node.id),
                );
            }
        }
        _ => {}
    });
}

#[derive(Default)]
struct Declared {
    variables: FxHashSet<VarId>,
    loops: FxHashSet<u32>,
    blocks: FxHashSet<u32>,
    block_names: FxHashSet<Symbol>,
}

fn check_params(report: &mut Report<'_>, declared: &mut Declared) {
    let mut buffers = FxHashSet::default();
    let mut last_sort = 0;
    for param in report.program.params.iter() {
        let (sort, entity) = match *param {
            Param::Dim(var) => {
                declare(report, declared, var, VariableKind::Dim);
                (0, Entity::Variable(var))
            }
            Param::Scalar(var, dtype) => {
                declare(report, declared, var, VariableKind::Scalar);
                if dtype.is_storage_only() {
                    let message =
                        format!("a scalar cannot be of type {dtype}, whose elements are only stored");
                    report.error(Entity::Variable(var), message);
                }
                (1, Entity::Variable(var))
            }
            Param::Buffer(buffer, access) => {
                check_buffer_param(report, buffer, access, !buffers.insert(buffer));
                (2, Entity::Buffer(buffer))
            }
        };
        if sort < last_sort {
            let message = "parameters come in the order dimensions, scalars, tensors".to_owned();
            report.error(entity, message);
        }
        last_sort = last_sort.max(sort);
    }
}

fn check_buffer_param(report: &mut Report<'_>, buffer: BufferId, access: Access, again: bool) {
    let entity = Entity::Buffer(buffer);
    if !report.knows_buffer(buffer) {
        return report.error(entity, format!("the program has no buffer {buffer:?}"));
    }
    if again {
        let name = report.buffer(buffer);
        report.error(entity, format!("tensor `{name}` is a parameter twice"));
    }
    match report.program.buffer(buffer).scope {
        Scope::Local | Scope::Shared | Scope::Fragment => {
            let name = report.buffer(buffer);
            report.error(entity, format!("tensor `{name}` is a parameter, so its scope must be `global`"));
        }
        Scope::Streamed if !access.is_written() => {
            let name = report.buffer(buffer);
            report.error(entity, format!("tensor `{name}` is not written, so that it cannot be `streamed`"));
        }
        Scope::Global | Scope::Streamed => {}
    }
}

fn check_loop(report: &mut Report<'_>, declared: &mut Declared, node: &For) {
    declare(report, declared, node.var, VariableKind::Loop);
    if !declared.loops.insert(node.id.0) {
        report.error(Entity::Loop(node.id), format!("two loops have the identity {:?}", node.id));
    }
}

fn check_block(report: &mut Report<'_>, declared: &mut Declared, node: &Block) {
    for iter in &node.iters {
        declare(report, declared, iter.var, VariableKind::Iter);
    }
    if !declared.blocks.insert(node.id.0) {
        report.error(Entity::Block(node.id), format!("two blocks have the identity {:?}", node.id));
    }
    if !declared.block_names.insert(node.name.clone()) {
        report.error(Entity::Block(node.id), format!("two blocks have the name `{}`", node.name));
    }
}

fn declare(report: &mut Report<'_>, declared: &mut Declared, var: VarId, kind: VariableKind) {
    let entity = Entity::Variable(var);
    if !report.knows_variable(var) {
        return report.error(entity, format!("the program has no variable {var:?}"));
    }
    if !declared.variables.insert(var) {
        let name = report.variable(var);
        report.error(entity, format!("variable `{name}` is declared twice"));
    }
    let found = report.program.variable(var).kind;
    if found != kind {
        let name = report.variable(var);
        report.error(entity, format!("variable `{name}` is of kind {found:?}, but declared as {kind:?}"));
    }
}
