//! The canonical numbering of a program: ids and names in the order of its text.
//!
//! Two programs that differ only in the numbers of their ids have the same canonical form, and the
//! form that the parser reads from a text is canonical.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::dtype::DType;
use crate::expr::{Constant, Expr, ExprKind, Indices};
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::{Base, Digit, Index};
use crate::program::{Buffer, Param, Program, Scope, VariableKind};
use crate::stmt::{Alloc, Block, For, Guard, If, Intrinsic, Iter, Shuffle, Stmt, Store, Symbol};
use crate::text::names::UniqueNames;

impl Program {
    /// The same program with ids numbered in the order of its text.
    ///
    /// Variables and buffers come in the order in which they are declared: parameters first, then intermediates in
    /// the order of their first allocation or store; variables and buffers that nothing uses are left out. Names are made
    /// unique, nested sequences are flattened, and every index and NaN is in its canonical form.
    ///
    /// `p.to_string().parse()` gives `p.canonical()`, so programs are compared up to numbering by
    /// comparing their canonical forms. The method is idempotent.
    pub fn canonical(&self) -> Program {
        renumber(self).program
    }
}

/// A canonical program, and the new ids of the original's.
#[derive(Debug)]
pub(crate) struct Renumbered {
    /// The canonical program.
    pub(crate) program: Program,
    variables: Vec<Option<VarId>>,
    buffers: Vec<Option<BufferId>>,
    loops: FxHashMap<LoopId, LoopId>,
    blocks: FxHashMap<BlockId, BlockId>,
}

impl Renumbered {
    /// The canonical id of a variable; `None` when nothing uses it.
    pub(crate) fn variable(&self, id: VarId) -> Option<VarId> {
        self.variables.get(id.0 as usize).copied().flatten()
    }

    /// The canonical id of a buffer; `None` when nothing uses it.
    pub(crate) fn buffer(&self, id: BufferId) -> Option<BufferId> {
        self.buffers.get(id.0 as usize).copied().flatten()
    }

    /// The canonical id of a loop; `None` when it is not in the program.
    pub(crate) fn loop_id(&self, id: LoopId) -> Option<LoopId> {
        self.loops.get(&id).copied()
    }

    /// The canonical id of a block; `None` when it is not in the program.
    pub(crate) fn block(&self, id: BlockId) -> Option<BlockId> {
        self.blocks.get(&id).copied()
    }
}

/// Renumbers a program. Defined for every program, also for programs that the verifier refuses.
pub(crate) fn renumber(program: &Program) -> Renumbered {
    let renumbering = Renumbering { old: program, state: RefCell::new(State::new(program)) };
    for param in program.params.iter() {
        let param = match *param {
            Param::Dim(var) => Param::Dim(renumbering.bind(var, VariableKind::Dim)),
            Param::Scalar(var, dtype) => Param::Scalar(renumbering.bind(var, VariableKind::Scalar), dtype),
            Param::Buffer(buffer, access) => Param::Buffer(renumbering.buffer(buffer), access),
        };
        renumbering.state.borrow_mut().new.program.add_param(param);
    }
    renumbering.declare_buffers(&program.body);
    renumbering.declare_variables(&program.body);
    let body = renumbering.stmt(&program.body);
    let mut new = renumbering.state.into_inner().new;
    new.program.body = body;
    new
}

struct Renumbering<'a> {
    old: &'a Program,
    state: RefCell<State>,
}

struct State {
    new: Renumbered,
    /// The new nodes of expressions, by their addresses in the old program.
    exprs: FxHashMap<usize, Expr>,
    names: UniqueNames,
}

impl State {
    fn new(old: &Program) -> Self {
        let mut program = Program::new(old.name.clone());
        program.accuracy = old.accuracy;
        program.multiplies_padding = old.multiplies_padding;
        let new = Renumbered {
            program,
            variables: vec![None; old.variables().len()],
            buffers: vec![None; old.buffers().len()],
            loops: FxHashMap::default(),
            blocks: FxHashMap::default(),
        };
        State { new, exprs: FxHashMap::default(), names: UniqueNames::default() }
    }
}

impl Renumbering<'_> {
    /// The new id of a variable, given out now if it has none.
    fn bind(&self, old: VarId, kind: VariableKind) -> VarId {
        let state = &mut *self.state.borrow_mut();
        if let Some(new) = state.new.variable(old) {
            return new;
        }
        let slot = old.0 as usize;
        let preferred =
            if slot < self.old.variables().len() { &*self.old.variable(old).name } else { "unknown" };
        let new = state.new.program.add_variable(state.names.claim(preferred), kind);
        if let Some(entry) = state.new.variables.get_mut(slot) {
            *entry = Some(new);
        }
        new
    }

    fn variable(&self, old: VarId) -> VarId {
        let known = (old.0 as usize) < self.old.variables().len();
        self.bind(old, if known { self.old.variable(old).kind } else { VariableKind::Loop })
    }

    /// The new id of a buffer, given out now if it has none.
    fn buffer(&self, old: BufferId) -> BufferId {
        if let Some(new) = self.state.borrow().new.buffer(old) {
            return new;
        }
        let slot = old.0 as usize;
        let unknown =
            Buffer { name: "unknown".into(), dtype: DType::F32, shape: vec![], scope: Scope::Global };
        let buffer = if slot < self.old.buffers().len() { self.old.buffer(old) } else { &unknown };
        let shape = buffer.shape.iter().map(|extent| self.index(extent)).collect();
        let strides: Option<Vec<Index>> =
            self.old.strides(old).map(|strides| strides.iter().map(|stride| self.index(stride)).collect());
        let strides = strides.filter(|_| self.old.access(old).is_some());
        let state = &mut *self.state.borrow_mut();
        let name: Symbol = state.names.claim(&buffer.name).into();
        let (dtype, scope) = (buffer.dtype, buffer.scope);
        let new = state.new.program.add_buffer(Buffer { name, dtype, shape, scope });
        if let Some(entry) = state.new.buffers.get_mut(slot) {
            *entry = Some(new);
        }
        if let Some(strides) = strides {
            state.new.program.set_strides(new, strides);
        }
        // Parameters keep the caller's order.
        let is_parameter = self.old.access(old).is_some();
        for (axis, alignment) in self.old.alignments(old).filter(|_| !is_parameter) {
            state.new.program.align(new, axis, alignment);
        }
        if let Some(swizzle) = self.old.swizzle(old).filter(|_| !is_parameter) {
            state.new.program.set_swizzle(new, swizzle);
        }
        if self.old.has_fixed_scope(old) && !is_parameter {
            state.new.program.fix_scope(new, scope);
        }
        new
    }

    fn declare_buffers(&self, stmt: &Stmt) {
        match stmt {
            Stmt::Alloc(node) => {
                self.buffer(node.buffer);
            }
            Stmt::Store(node) => {
                self.buffer(node.buffer);
            }
            _ => {}
        }
        stmt.children().into_iter().for_each(|child| self.declare_buffers(child));
    }

    fn declare_variables(&self, stmt: &Stmt) {
        match stmt {
            Stmt::For(node) => {
                self.bind(node.var, VariableKind::Loop);
            }
            Stmt::Block(node) => node.iters.iter().for_each(|iter| {
                self.bind(iter.var, VariableKind::Iter);
            }),
            _ => {}
        }
        stmt.children().into_iter().for_each(|child| self.declare_variables(child));
    }

    fn stmt(&self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(|stmt| self.stmt(stmt))),
            Stmt::For(node) => Stmt::For(Arc::new(self.for_loop(node))),
            Stmt::Block(node) => Stmt::Block(Arc::new(self.block(node))),
            Stmt::Store(node) => Stmt::Store(Arc::new(Store {
                buffer: self.buffer(node.buffer),
                indices: self.indices(&node.indices),
                value: self.expr(&node.value),
                kind: node.kind,
            })),
            Stmt::If(node) => Stmt::If(Arc::new(If {
                condition: self.expr(&node.condition),
                then: self.stmt(&node.then),
                otherwise: node.otherwise.as_ref().map(|stmt| self.stmt(stmt)),
            })),
            Stmt::Alloc(node) => {
                let buffer = self.buffer(node.buffer);
                Stmt::Alloc(Arc::new(Alloc { buffer, body: self.stmt(&node.body) }))
            }
            Stmt::Intrinsic(node) => {
                let body = self.stmt(&node.body);
                Stmt::Intrinsic(Arc::new(Intrinsic { name: node.name.clone(), body }))
            }
            Stmt::Barrier | Stmt::Copies(_) => stmt.clone(),
            Stmt::Shuffle(node) => {
                Stmt::Shuffle(Arc::new(Shuffle { mask: node.mask, body: self.stmt(&node.body) }))
            }
        }
    }

    fn for_loop(&self, node: &For) -> For {
        let id = {
            let new = &mut self.state.borrow_mut().new;
            let id = new.program.fresh_loop();
            new.loops.entry(node.id).or_insert(id);
            id
        };
        For {
            id,
            var: self.variable(node.var),
            extent: self.index(&node.extent),
            kind: node.kind,
            annotations: node.annotations.clone(),
            body: self.stmt(&node.body),
        }
    }

    fn block(&self, node: &Block) -> Block {
        let id = {
            let new = &mut self.state.borrow_mut().new;
            let id = new.program.fresh_block();
            new.blocks.entry(node.id).or_insert(id);
            id
        };
        let iter = |iter: &Iter| Iter {
            var: self.variable(iter.var),
            extent: self.index(&iter.extent),
            kind: iter.kind,
            binding: self.index(&iter.binding),
        };
        let guard =
            |guard: &Guard| Guard { index: self.index(&guard.index), bound: self.index(&guard.bound) };
        Block {
            id,
            name: node.name.clone(),
            iters: node.iters.iter().map(iter).collect(),
            guards: node.guards.iter().map(guard).collect(),
            init: node.init.as_ref().map(|init| self.stmt(init)),
            body: self.stmt(&node.body),
            annotations: node.annotations.clone(),
            location: node.location.clone(),
        }
    }

    fn indices(&self, indices: &Indices) -> Indices {
        indices.iter().map(|index| self.index(index)).collect()
    }

    fn index(&self, index: &Index) -> Index {
        index.map_bases(&|base| {
            Some(match base {
                Base::Var(var) => Index::var(self.variable(*var)),
                Base::Lane(lanes) => Index::lane(*lanes),
                Base::Sum(sum) => self.index(sum),
                Base::Value(value) => {
                    let value = self.expr(value);
                    // Only a program that the verifier refuses has other types here.
                    if is_index_value(&value) {
                        Index::value(value)
                    } else {
                        Index::digit(Digit::whole(Base::Value(value)))
                    }
                }
            })
        })
    }

    /// Each node is renumbered once: expanded functions share theirs heavily.
    fn expr(&self, expr: &Expr) -> Expr {
        let known = self.state.borrow().exprs.get(&expr.address()).cloned();
        known.unwrap_or_else(|| {
            let renumbered = self.node(expr);
            self.state.borrow_mut().exprs.insert(expr.address(), renumbered.clone());
            renumbered
        })
    }

    fn node(&self, expr: &Expr) -> Expr {
        let kind = match expr.kind() {
            ExprKind::Constant(constant) => ExprKind::Constant(canonical_constant(*constant)),
            ExprKind::Scalar(var) => ExprKind::Scalar(self.variable(*var)),
            ExprKind::Index(index) => ExprKind::Index(self.index(index)),
            ExprKind::Load(buffer, indices) => ExprKind::Load(self.buffer(*buffer), self.indices(indices)),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, self.expr(a)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, self.expr(a), self.expr(b)),
            ExprKind::MulAdd(a, b, c) => ExprKind::MulAdd(self.expr(a), self.expr(b), self.expr(c)),
            ExprKind::Select(a, b, c) => ExprKind::Select(self.expr(a), self.expr(b), self.expr(c)),
            ExprKind::Cast(a) => ExprKind::Cast(self.expr(a)),
            ExprKind::Bitcast(a) => ExprKind::Bitcast(self.expr(a)),
            ExprKind::Bounded(a, extent) => ExprKind::Bounded(self.expr(a), self.index(extent)),
        };
        Expr::new(expr.dtype(), kind)
    }
}

/// Whether [`Index::value`] takes a value: it and the operands that are decomposed are of type `i64`.
pub(crate) fn is_index_value(value: &Expr) -> bool {
    value.dtype() == DType::I64
        && match value.kind() {
            ExprKind::Binary(_, a, b) => is_index_value(a) && is_index_value(b),
            _ => true,
        }
}

/// The constant with one NaN for all: the bits inside a NaN have no meaning.
pub(crate) fn canonical_constant(constant: Constant) -> Constant {
    match constant {
        Constant::Float(bits) if f64::from_bits(bits).is_nan() => Constant::float(f64::NAN),
        other => other,
    }
}
