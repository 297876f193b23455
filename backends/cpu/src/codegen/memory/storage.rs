//! Where intermediates live.
//!
//! An intermediate that is only accessed at constant places lives in [registers](crate::codegen::memory::promote). Other small
//! `Local` ones live on the stack, and the rest in the workspace of the thread that runs the statement
//! around them. A parallel loop's body uses the workspace of whichever thread runs it, so that there
//! are two amounts: what the kernel itself needs, and what each thread needs in parallel loops.

use rustc_hash::FxHashMap;
use tilewright_core::device::CompileError;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::program::{Program, Scope, VariableKind};
use tilewright_core::stmt::{Alloc, LoopKind, Stmt};

use crate::codegen::memory::promote::{self, Layout};

/// The alignment of every intermediate in memory, in bytes: a cache line.
pub(in crate::codegen) const ALIGNMENT: u64 = 64;

/// The largest intermediate on the stack, in bytes.
const LARGEST_ON_STACK: u64 = 16 << 10;

/// How much of the stack one program may take, in bytes: little enough for a thread with the usual stack
/// of some megabytes, and for a caller that has used part of it.
const STACK_LIMIT: u64 = 64 << 10;

/// Where an intermediate lives.
#[derive(Clone, Debug)]
pub(in crate::codegen) enum Placement {
    /// In registers, cut like this.
    Registers(Layout),
    /// On the stack; this many bytes.
    Stack(u32),
    /// In the workspace.
    Workspace,
}

/// An amount of workspace.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    /// None.
    Nothing,
    /// A number of elements, the bytes of each, rounded up to the alignment, and the need at the same time.
    Elements(Index, u64, Box<Need>),
    /// The largest of some.
    Largest(Vec<Need>),
}

/// The places of a program's intermediates.
#[derive(Clone, Debug)]
pub(crate) struct StoragePlan {
    placements: FxHashMap<BufferId, Placement>,
    /// The need of the calling thread outside parallel loops.
    pub(crate) main: Need,
    /// The need of each thread inside parallel loops.
    pub(crate) body: Need,
}

impl StoragePlan {
    /// Where an intermediate lives.
    pub(in crate::codegen) fn placement(&self, buffer: BufferId) -> Option<&Placement> {
        self.placements.get(&buffer)
    }
}

impl Need {
    /// Whether there is any need.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Need::Nothing => true,
            Need::Elements(..) => false,
            Need::Largest(needs) => needs.iter().all(Need::is_nothing),
        }
    }

    /// The amount in bytes; `extent` evaluates an extent. `None` when it cannot be addressed.
    pub(crate) fn bytes(&self, extent: &dyn Fn(&Index) -> Option<i64>) -> Option<u64> {
        match self {
            Need::Nothing => Some(0),
            Need::Elements(elements, size, inner) => {
                let elements = u64::try_from(extent(elements)?).ok()?;
                // At least one byte more, so that what is empty has a place as well.
                let bytes =
                    elements.checked_mul(*size)?.checked_add(1)?.checked_next_multiple_of(ALIGNMENT)?;
                bytes.checked_add(inner.bytes(extent)?).filter(|bytes| *bytes <= 1 << 62)
            }
            Need::Largest(needs) => {
                needs.iter().try_fold(0, |largest: u64, need| Some(largest.max(need.bytes(extent)?)))
            }
        }
    }
}

/// Places every intermediate of a program.
///
/// # Errors
/// [`CompileError::Unsupported`] when the size of an intermediate is not known before the call.
pub(crate) fn plan_storage(program: &Program) -> Result<StoragePlan, CompileError> {
    let mut planner =
        Planner { program, placements: FxHashMap::default(), stack: 0, bodies: Vec::new(), in_body: false };
    let main = planner.stmt(&program.body)?;
    let body = Need::Largest(planner.bodies);
    Ok(StoragePlan { placements: planner.placements, main, body })
}

struct Planner<'p> {
    program: &'p Program,
    placements: FxHashMap<BufferId, Placement>,
    stack: u64,
    bodies: Vec<Need>,
    in_body: bool,
}

impl Planner<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Result<Need, CompileError> {
        match stmt {
            Stmt::Alloc(node) => self.alloc(node),
            Stmt::For(node) if node.kind == LoopKind::Parallel && !self.in_body => {
                self.in_body = true;
                let need = self.stmt(&node.body);
                self.in_body = false;
                self.bodies.push(need?);
                Ok(Need::Nothing)
            }
            _ => {
                let children: Result<Vec<Need>, _> =
                    stmt.children().into_iter().map(|child| self.stmt(child)).collect();
                let mut needs = children?;
                needs.retain(|need| !need.is_nothing());
                Ok(if needs.is_empty() { Need::Nothing } else { Need::Largest(needs) })
            }
        }
    }

    fn alloc(&mut self, node: &Alloc) -> Result<Need, CompileError> {
        let buffer = self.program.buffer(node.buffer);
        let size = buffer.dtype.bytes() as u64;
        let placement = self.place(node);
        let in_workspace = matches!(placement, Placement::Workspace);
        if self.placements.insert(node.buffer, placement).is_some() {
            return Err(unsupported(format!("two lifetimes of `{}`", buffer.name)));
        }
        let inner = self.stmt(&node.body)?;
        if !in_workspace {
            return Ok(inner);
        }
        let elements = buffer.shape.first().cloned().unwrap_or_else(|| Index::constant(1));
        let mut known = true;
        elements.for_each_var(&mut |var| known &= self.program.variable(var).kind == VariableKind::Dim);
        if !known {
            return Err(unsupported(format!("`{}`, whose size depends on a loop", buffer.name)));
        }
        Ok(Need::Elements(elements, size, Box::new(inner)))
    }

    fn place(&mut self, node: &Alloc) -> Placement {
        let buffer = self.program.buffer(node.buffer);
        let Some(elements) = buffer.constant_len().and_then(|elements| u64::try_from(elements).ok()) else {
            return Placement::Workspace;
        };
        if let Some(layout) = promote::layout(node, buffer.dtype, elements) {
            return Placement::Registers(layout);
        }
        let bytes = elements.saturating_mul(buffer.dtype.bytes() as u64).max(ALIGNMENT);
        let fits = bytes <= LARGEST_ON_STACK && self.stack + bytes <= STACK_LIMIT;
        match u32::try_from(bytes) {
            Ok(size) if buffer.scope == Scope::Local && fits => {
                self.stack += bytes;
                Placement::Stack(size)
            }
            _ => Placement::Workspace,
        }
    }
}

fn unsupported(what: String) -> CompileError {
    CompileError::Unsupported { target: "CPU", what }
}
