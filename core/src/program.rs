//! A whole kernel: parameters, buffers, variables and a body.
//!
//! A [`Program`] is a value: it can be cloned cheaply, compared, hashed, printed and parsed. It is
//! not a schedule (that is [`crate::schedule::Schedule`]) and caches no fact about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::accuracy::Accuracy;
use crate::dtype::DType;
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::Index;
use crate::layout::Layouts;
use crate::stmt::{Stmt, Symbol};
use crate::strides::StrideTable;
use crate::swizzle::Swizzle;

/// A kernel as a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The kernel's name.
    pub name: Symbol,
    /// The parameters that a caller passes, in order: dimensions first, then run-time scalars, then buffers.
    pub params: Arc<Vec<Param>>,
    /// How exactly products of `f32` are to be formed; `None` for `f32` as usual. A schedule may make use of it, so that
    /// programs which differ in it are different tasks.
    pub accuracy: Option<Accuracy>,
    /// Whether products of floats with padding are formed; see [`crate::accuracy`].
    pub multiplies_padding: bool,
    /// The computation.
    pub body: Stmt,
    variables: Arc<Vec<Variable>>,
    buffers: Arc<Vec<Buffer>>,
    alignments: Arc<BTreeMap<(BufferId, usize), Alignment>>,
    swizzles: Arc<BTreeMap<BufferId, Swizzle>>,
    pub(crate) stride_table: StrideTable,
    pub(crate) layouts: Layouts,
    fixed_scopes: Arc<BTreeSet<BufferId>>,
    next_loop: u32,
    next_block: u32,
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// A symbolic dimension or a compile-time parameter of type `usize`.
    Dim(VarId),
    /// A run-time scalar.
    Scalar(VarId, DType),
    /// A tensor.
    Buffer(BufferId, Access),
}

/// How a kernel accesses a tensor parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Only reads it.
    Input,
    /// Only reads it, and finds the same contents in every call that passes the same tensor: what is computed from it
    /// alone may be kept from one call to the next.
    Constant,
    /// Writes all of it, without reading what was there.
    Output,
    /// Reads and writes it.
    InOut,
}

impl Access {
    /// Every way.
    pub const ALL: [Access; 4] = [Access::Input, Access::Constant, Access::Output, Access::InOut];

    /// Whether the kernel stores to it.
    pub const fn is_written(self) -> bool {
        matches!(self, Access::Output | Access::InOut)
    }

    /// The keyword in the text form.
    pub const fn text(self) -> &'static str {
        match self {
            Access::Input => "in",
            Access::Constant => "constant",
            Access::Output => "out",
            Access::InOut => "inout",
        }
    }
}

/// The properties of a variable besides its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// The preferred name; the printer makes it unique.
    pub name: Symbol,
    /// The role of the variable.
    pub kind: VariableKind,
}

/// The role of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VariableKind {
    /// A symbolic dimension or compile-time parameter: at least 0, the same during a call.
    Dim,
    /// A run-time scalar argument.
    Scalar,
    /// A loop variable.
    Loop,
    /// A block iterator.
    Iter,
}

/// The distance of neighbours along a dimension of a buffer, in elements: the least one that fits and that is `offset` more than a
/// multiple of `factor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alignment {
    /// At least 1.
    pub factor: i64,
    /// In `0..factor`.
    pub offset: i64,
}

impl Alignment {
    /// The largest factor: a page of the smallest elements.
    pub const MAX_FACTOR: i64 = 4096;
}

/// A tensor: a parameter or an intermediate. Row-major in the order of `shape`; dense, unless the program
/// [aligns](Program::align) a dimension of it or gives it [strides](Program::set_strides).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// The preferred name; the printer makes it unique.
    pub name: Symbol,
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first; empty for a single element.
    pub shape: Vec<Index>,
    /// Where it lives.
    pub scope: Scope,
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Ordinary memory: every parameter, and intermediates that threads share.
    Global,
    /// Memory of one thread: small, close, and kept in registers where accesses allow it.
    Local,
    /// Memory that the threads of one block of a GPU share, on its multiprocessor.
    Shared,
    /// Registers of a warp: each of its 32 threads holds some of the elements, as the [tensor intrinsic](crate::intrinsic) that
    /// accesses them says. Loops over threads along `x` do not stand around such an access: the warp makes it as a whole.
    Fragment,
    /// Ordinary memory of a result that nothing in the kernel reads, to be written around the caches.
    Streamed,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 5] =
        [Scope::Global, Scope::Local, Scope::Shared, Scope::Fragment, Scope::Streamed];

    /// The keyword in the text form.
    pub const fn text(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Local => "local",
            Scope::Shared => "shared",
            Scope::Fragment => "fragment",
            Scope::Streamed => "streamed",
        }
    }

    /// Whether each thread, or each warp, has elements of its own, which no other one accesses.
    pub const fn is_private(self) -> bool {
        matches!(self, Scope::Local | Scope::Fragment)
    }
}

impl Program {
    /// An empty program.
    pub fn new(name: impl Into<Symbol>) -> Self {
        Program {
            name: name.into(),
            params: Arc::default(),
            accuracy: None,
            multiplies_padding: false,
            body: Stmt::nothing(),
            variables: Arc::default(),
            buffers: Arc::default(),
            alignments: Arc::default(),
            swizzles: Arc::default(),
            stride_table: StrideTable::default(),
            layouts: Layouts::default(),
            fixed_scopes: Arc::default(),
            next_loop: 0,
            next_block: 0,
        }
    }

    /// Adds a variable.
    pub fn add_variable(&mut self, name: impl Into<Symbol>, kind: VariableKind) -> VarId {
        let id = VarId(self.variables.len() as u32);
        Arc::make_mut(&mut self.variables).push(Variable { name: name.into(), kind });
        id
    }

    /// Adds a buffer that is no parameter yet.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        let id = BufferId(self.buffers.len() as u32);
        Arc::make_mut(&mut self.buffers).push(buffer);
        id
    }

    /// Adds a parameter after those already there.
    pub fn add_param(&mut self, param: Param) {
        Arc::make_mut(&mut self.params).push(param);
    }

    /// A fresh loop identity.
    pub fn fresh_loop(&mut self) -> LoopId {
        self.next_loop += 1;
        LoopId(self.next_loop - 1)
    }

    /// A fresh block identity.
    pub fn fresh_block(&mut self) -> BlockId {
        self.next_block += 1;
        BlockId(self.next_block - 1)
    }

    /// A variable of this program.
    ///
    /// # Panics
    /// When the id belongs to another program.
    pub fn variable(&self, id: VarId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// Every variable, in order of identity.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = (VarId, &Variable)> {
        self.variables.iter().enumerate().map(|(id, variable)| (VarId(id as u32), variable))
    }

    /// A buffer of this program.
    ///
    /// # Panics
    /// When the id belongs to another program.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// A buffer, for editing.
    ///
    /// # Panics
    /// When the id belongs to another program.
    pub fn buffer_mut(&mut self, id: BufferId) -> &mut Buffer {
        &mut Arc::make_mut(&mut self.buffers)[id.0 as usize]
    }

    /// Every buffer, in order of identity. Some may no longer be used by the body.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = (BufferId, &Buffer)> {
        self.buffers.iter().enumerate().map(|(id, buffer)| (BufferId(id as u32), buffer))
    }

    /// The dimensions of an intermediate whose distances in memory are aligned.
    pub fn alignments(&self, id: BufferId) -> impl Iterator<Item = (usize, Alignment)> + '_ {
        self.alignments.range((id, 0)..=(id, usize::MAX)).map(|((_, axis), alignment)| (*axis, *alignment))
    }

    /// Aligns the distance along a dimension of an intermediate, which must not be the last one.
    pub fn align(&mut self, id: BufferId, axis: usize, alignment: Alignment) {
        Arc::make_mut(&mut self.alignments).insert((id, axis), alignment);
    }

    /// Forgets the alignments of an intermediate.
    pub fn forget_alignments(&mut self, id: BufferId) {
        if self.alignments(id).next().is_some() {
            Arc::make_mut(&mut self.alignments).retain(|(buffer, _), _| *buffer != id);
        }
    }

    /// The layout of an intermediate whose rows have their pieces exchanged.
    pub fn swizzle(&self, id: BufferId) -> Option<Swizzle> {
        self.swizzles.get(&id).copied()
    }

    /// Exchanges pieces of the rows of an intermediate.
    pub fn set_swizzle(&mut self, id: BufferId, swizzle: Swizzle) {
        Arc::make_mut(&mut self.swizzles).insert(id, swizzle);
    }

    /// Makes the rows of an intermediate plain.
    pub fn forget_swizzle(&mut self, id: BufferId) {
        if self.swizzle(id).is_some() {
            Arc::make_mut(&mut self.swizzles).remove(&id);
        }
    }

    /// Whether it is fixed where an intermediate lives. For all others, lowering chooses between [`Scope::Global`] and
    /// [`Scope::Local`].
    pub fn has_fixed_scope(&self, id: BufferId) -> bool {
        self.fixed_scopes.contains(&id)
    }

    /// Fixes where an intermediate lives: lowering keeps the scope or fails.
    pub fn fix_scope(&mut self, id: BufferId, scope: Scope) {
        self.buffer_mut(id).scope = scope;
        Arc::make_mut(&mut self.fixed_scopes).insert(id);
    }

    /// How a parameter is accessed, or `None` when the buffer is an intermediate.
    pub fn access(&self, id: BufferId) -> Option<Access> {
        self.params.iter().find_map(|param| match param {
            Param::Buffer(buffer, access) if *buffer == id => Some(*access),
            _ => None,
        })
    }

    /// The symbolic dimensions and compile-time parameters, in order, with their names.
    pub fn dims(&self) -> impl Iterator<Item = (VarId, &Symbol)> {
        self.params.iter().filter_map(|param| match param {
            Param::Dim(var) => Some((*var, &self.variable(*var).name)),
            _ => None,
        })
    }

    /// The tensor parameters, in order.
    pub fn buffer_params(&self) -> impl Iterator<Item = (BufferId, Access)> + '_ {
        self.params.iter().filter_map(|param| match param {
            Param::Buffer(buffer, access) => Some((*buffer, *access)),
            _ => None,
        })
    }

    /// The run-time scalar parameters, in order.
    pub fn scalar_params(&self) -> impl Iterator<Item = (VarId, DType)> + '_ {
        self.params.iter().filter_map(|param| match param {
            Param::Scalar(var, dtype) => Some((*var, *dtype)),
            _ => None,
        })
    }
}

impl Buffer {
    /// The number of elements, when every extent is constant and the product fits.
    pub fn constant_len(&self) -> Option<i64> {
        self.shape.iter().try_fold(1i64, |product, extent: &Index| product.checked_mul(extent.as_constant()?))
    }

    /// The number of bytes of its elements, when every extent is constant and the product fits.
    pub fn constant_bytes(&self) -> Option<u64> {
        u64::try_from(self.constant_len()?).ok()?.checked_mul(self.dtype.bytes() as u64)
    }
}
