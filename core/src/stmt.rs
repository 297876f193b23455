//! Statements: loops, blocks and stores.
//!
//! One [`Stmt`] type serves every stage. Which of its forms may occur is a matter of the
//! [level](crate::verify::Level):
//!
//! | level | forms |
//! |---|---|
//! | `Blocks` | loops around blocks; a block's body is stores under `if`s, loops of a local reduction or of a tile, and intrinsics |
//! | `Loops` | no blocks: guards are `if`s, allocations are placed, threads of a GPU wait for each other at barriers and for copies |
//! | `Flat` | as `Loops`, with one-dimensional buffers, explicit lanes, and no `Vectorized` or `Unrolled` loop |

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::expr::{Expr, Indices};
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::Index;
use crate::thread_axis::ThreadAxis;

/// A shared, immutable name.
pub type Symbol = Arc<str>;

/// A statement: a shared tree, cheap to clone and edited with `Arc::make_mut`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stmt {
    /// Statements in order. An empty sequence does nothing.
    Seq(Arc<Vec<Stmt>>),
    /// A loop.
    For(Arc<For>),
    /// A block: one unit of computation with its own iterators.
    Block(Arc<Block>),
    /// A write of one element (or one per lane).
    Store(Arc<Store>),
    /// A conditional.
    If(Arc<If>),
    /// The lifetime of an intermediate buffer.
    Alloc(Arc<Alloc>),
    /// A statement that one instruction of some machines computes.
    Intrinsic(Arc<Intrinsic>),
    /// The threads of a block wait here until all of them have arrived. Elements that one of them stored before, in memory
    /// that they share, are visible to all of them afterwards.
    Barrier,
    /// A step in the life of a thread's asynchronous copies.
    Copies(Copies),
    /// Lanes of a warp exchange values.
    Shuffle(Arc<Shuffle>),
}

/// Groups of the [asynchronous stores](StoreKind::Async) of a thread, which arrive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Copies {
    /// The asynchronous stores since the last group form a group, which may be empty.
    Commit,
    /// The thread waits until all its groups but so many of the last ones have arrived. Other threads see these elements after a
    /// [barrier](Stmt::Barrier) behind.
    Wait(u32),
}

impl Copies {
    /// More groups than a thread may leave under way.
    pub const TOO_MANY_GROUPS: u32 = 64;
}

/// `for var in 0..extent { body }`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct For {
    /// The loop's identity.
    pub id: LoopId,
    /// The loop variable, from 0 to `extent - 1`.
    pub var: VarId,
    /// The number of iterations; may depend on dimensions, at the `Loops` level and below also on outer loops.
    pub extent: Index,
    /// How the iterations are executed.
    pub kind: LoopKind,
    /// Hints for rules and lowering.
    pub annotations: Annotations,
    /// The statement that is repeated.
    pub body: Stmt,
}

impl For {
    /// A parallel loop and those whose iterations threads share together with its own: each of them is the whole body of the one before,
    /// is parallel, and has the same extent in each iteration.
    pub fn parallel_nest(outermost: &Arc<For>) -> Vec<&Arc<For>> {
        let mut nest = vec![outermost];
        let mut body = &outermost.body;
        while let Stmt::For(node) = body
            && node.kind == LoopKind::Parallel
            && !nest.iter().any(|around| node.extent.mentions(around.var))
        {
            nest.push(node);
            body = &node.body;
        }
        nest
    }
}

/// How a loop's iterations are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// Spread over threads.
    Parallel,
    /// All at once, one lane each.
    Vectorized,
    /// One after the other, written out.
    Unrolled,
    /// One for each thread along an axis of a GPU's grid, at the same time. The loop ends when all of them have ended; before
    /// that, the threads of a block see what others store in memory that they share only after a [barrier](Stmt::Barrier).
    Bound(ThreadAxis),
}

impl LoopKind {
    /// Whether the iterations may run in any order, or at the same time: they are known to be independent.
    pub const fn is_unordered(self) -> bool {
        matches!(self, LoopKind::Parallel | LoopKind::Bound(_))
    }

    /// The keyword before `for` in the text form; empty for a serial loop. The axis of a bound loop stands behind it.
    pub const fn text(self) -> &'static str {
        match self {
            LoopKind::Serial => "",
            LoopKind::Parallel => "parallel",
            LoopKind::Vectorized => "vectorized",
            LoopKind::Unrolled => "unrolled",
            LoopKind::Bound(_) => "bound",
        }
    }
}

/// A unit of computation: the body is executed once for every point of the iterators' domain.
///
/// The loops around the block enumerate that domain through the iterators' bindings; `guards`
/// leave out the points that the loops enumerate in excess. The body uses iterators, never loop
/// variables, so what the block computes does not depend on how it is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The block's identity.
    pub id: BlockId,
    /// The block's name, unique in the program.
    pub name: Symbol,
    /// The iteration domain.
    pub iters: Vec<Iter>,
    /// Conditions, on loop variables, under which an enumerated point belongs to the domain.
    pub guards: Vec<Guard>,
    /// Executed at the first point of the reduction iterators, before the body; alone, where there is no such point.
    pub init: Option<Stmt>,
    /// The computation at each point, in terms of the iterators.
    pub body: Stmt,
    /// Hints for rules and lowering.
    pub annotations: Annotations,
    /// Where the user wrote it.
    pub location: Option<Location>,
}

/// One dimension of a block's domain: `var` runs over `0..extent` and equals `binding` at each point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iter {
    /// The variable used in the block's body.
    pub var: VarId,
    /// The size of this dimension of the domain.
    pub extent: Index,
    /// Whether points along this dimension are independent, are combined, or follow each other.
    pub kind: IterKind,
    /// The variable's value in terms of the loops around the block.
    pub binding: Index,
}

/// The role of a block iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IterKind {
    /// Different values write different elements.
    Spatial,
    /// Different values contribute to the same element; the order does not matter.
    Reduce,
    /// The points are executed in increasing order, each with what those before it have stored: a recurrence. Loops that the
    /// value depends on stay in order, and all blocks inside of such a loop take part in each of its iterations, so that
    /// a block may read what another one has stored in an earlier iteration. The loop is never spread over threads or
    /// lanes.
    Ordered,
}

impl IterKind {
    /// Every kind.
    pub const ALL: [IterKind; 3] = [IterKind::Spatial, IterKind::Reduce, IterKind::Ordered];

    /// The keyword in the text form.
    pub const fn text(self) -> &'static str {
        match self {
            IterKind::Spatial => "spatial",
            IterKind::Reduce => "reduce",
            IterKind::Ordered => "ordered",
        }
    }
}

/// The condition `index < bound`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guard {
    /// The left side.
    pub index: Index,
    /// The exclusive bound.
    pub bound: Index,
}

/// `buffer[indices] = value`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The buffer written.
    pub buffer: BufferId,
    /// One index per dimension.
    pub indices: Indices,
    /// The value, of the buffer's type.
    pub value: Expr,
    /// How the value gets there.
    pub kind: StoreKind,
}

/// How a store is executed. To store the value at once, in the order of the statements, is always right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StoreKind {
    /// At once.
    Plain,
    /// The thread goes on before the element is there. No thread accesses the element until this one has waited for its
    /// [group](Copies); the memory that the value is loaded from stays as it is until then.
    Async,
    /// The element is loaded, combined with a value and stored in one step, so that other threads may update it at the same time. The store is an
    /// [update](crate::analysis::block::reduction_of) of its own element; nothing else accesses the element while loops run whose iterations
    /// update it in any order.
    Atomic,
}

impl StoreKind {
    /// Every kind.
    pub const ALL: [StoreKind; 3] = [StoreKind::Plain, StoreKind::Async, StoreKind::Atomic];

    /// The keyword in front of the store in the text form; empty for a plain one.
    pub const fn text(self) -> &'static str {
        match self {
            StoreKind::Plain => "",
            StoreKind::Async => "async",
            StoreKind::Atomic => "atomic",
        }
    }
}

impl Store {
    /// Whether the thread goes on before the element is there.
    pub fn is_async(&self) -> bool {
        self.kind == StoreKind::Async
    }

    /// Whether other threads may update the element at the same time.
    pub fn is_atomic(&self) -> bool {
        self.kind == StoreKind::Atomic
    }
}

/// `if condition { then } else { otherwise }`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct If {
    /// A `bool`.
    pub condition: Expr,
    /// Executed when it holds.
    pub then: Stmt,
    /// Executed when it does not.
    pub otherwise: Option<Stmt>,
}

/// Storage for `buffer` that lives as long as `body` runs. Its contents are undefined at first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alloc {
    /// The buffer whose storage this is.
    pub buffer: BufferId,
    /// Where it may be used.
    pub body: Stmt,
}

/// An exchange between the lanes of a warp: each thread stores the value that its partner computes, the thread whose number in the block
/// differs in the bits of `mask`. No thread stores before both have computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shuffle {
    /// The bits in which the numbers of partners differ, from 1 to 31. The first axis of threads counts fastest.
    pub mask: u32,
    /// One store to the memory of one thread; its value is exchanged, its indices are of the thread that stores.
    pub body: Stmt,
}

/// A place in the user's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file, as `file!()` gives it.
    pub file: Symbol,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Named hints on a loop or block, in order of their names.
pub type Annotations = BTreeMap<Symbol, Annotation>;

/// The value of a hint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Annotation {
    /// An integer.
    Int(i64),
    /// A word.
    Text(Symbol),
    /// Integers.
    Numbers(Vec<i64>),
}

/// A statement that has been found to be what a [tensor intrinsic](crate::intrinsic) computes.
///
/// Its meaning is that of `body`: every consumer may execute the body instead. A backend that has the
/// instruction looks it up by name and takes its operands from the body, by
/// [matching](crate::intrinsic::TensorIntrinsic::matches) it again, so that a wrong name cannot make a wrong result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Intrinsic {
    /// The intrinsic's name.
    pub name: Symbol,
    /// Its description, applied to the operands.
    pub body: Stmt,
}

impl Stmt {
    /// The statement that does nothing.
    pub fn nothing() -> Self {
        Stmt::Seq(Arc::new(Vec::new()))
    }

    /// Statements in order. Sequences inside are flattened and a single statement stands for itself.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Self {
        let mut flat = Vec::new();
        for stmt in stmts {
            match stmt {
                Stmt::Seq(inner) => flat.extend(inner.iter().cloned()),
                other => flat.push(other),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Stmt::Seq(Arc::new(flat)) }
    }

    /// A write.
    pub fn store(buffer: BufferId, indices: impl IntoIterator<Item = Index>, value: Expr) -> Self {
        Stmt::Store(Arc::new(Store {
            buffer,
            indices: indices.into_iter().collect(),
            value,
            kind: StoreKind::Plain,
        }))
    }

    /// A conditional without `else`.
    pub fn when(condition: Expr, then: Stmt) -> Self {
        Stmt::If(Arc::new(If { condition, then, otherwise: None }))
    }

    /// Whether this does nothing.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Stmt::Seq(stmts) if stmts.is_empty())
    }

    /// The direct children, in order. A block's children are its `init` and `body`.
    pub fn children(&self) -> SmallVec<[&Stmt; 2]> {
        self.each_child().collect()
    }

    /// As [`Stmt::children`], one after the other: for searches, which visit most of a program for each step of a
    /// schedule.
    pub fn each_child(&self) -> impl Iterator<Item = &Stmt> {
        let (first, rest): (&[Stmt], &[Stmt]) = match self {
            Stmt::Seq(stmts) => (stmts, &[]),
            Stmt::For(node) => (std::slice::from_ref(&node.body), &[]),
            Stmt::Block(node) => (node.init.as_slice(), std::slice::from_ref(&node.body)),
            Stmt::Store(_) | Stmt::Barrier | Stmt::Copies(_) => (&[], &[]),
            Stmt::If(node) => (std::slice::from_ref(&node.then), node.otherwise.as_slice()),
            Stmt::Alloc(node) => (std::slice::from_ref(&node.body), &[]),
            Stmt::Intrinsic(node) => (std::slice::from_ref(&node.body), &[]),
            Stmt::Shuffle(node) => (std::slice::from_ref(&node.body), &[]),
        };
        first.iter().chain(rest)
    }

    /// The direct children, for editing. Shared nodes are copied first.
    pub fn children_mut(&mut self) -> SmallVec<[&mut Stmt; 2]> {
        match self {
            Stmt::Seq(stmts) => Arc::make_mut(stmts).iter_mut().collect(),
            Stmt::For(node) => [&mut Arc::make_mut(node).body].into_iter().collect(),
            Stmt::Block(node) => {
                let node = Arc::make_mut(node);
                node.init.iter_mut().chain([&mut node.body]).collect()
            }
            Stmt::Store(_) | Stmt::Barrier | Stmt::Copies(_) => SmallVec::new(),
            Stmt::If(node) => {
                let node = Arc::make_mut(node);
                [&mut node.then].into_iter().chain(&mut node.otherwise).collect()
            }
            Stmt::Alloc(node) => [&mut Arc::make_mut(node).body].into_iter().collect(),
            Stmt::Intrinsic(node) => [&mut Arc::make_mut(node).body].into_iter().collect(),
            Stmt::Shuffle(node) => [&mut Arc::make_mut(node).body].into_iter().collect(),
        }
    }
}
