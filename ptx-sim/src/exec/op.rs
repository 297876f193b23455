//! Operations: instructions in the form in which they are executed.

use crate::exec::lanes::Pure;
use crate::isa::types::Type;
use crate::special::Special;

/// A register of a frame, by number.
pub(crate) type Slot = u32;

/// No register.
pub(crate) const NONE: Slot = u32::MAX;

/// An instruction of a function that is ready to be executed.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: Op,
    /// The register of the predicate, or [`NONE`].
    pub(crate) guard: Slot,
    pub(crate) negated: bool,
    /// The line in the text.
    pub(crate) line: u32,
}

/// How a comparison is combined with a predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

/// Memory that an access names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    Generic,
    Global,
    Shared,
    Local,
    Constant,
    /// Parameters of the kernel.
    Param,
}

/// The effect of an access on other threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Order {
    /// Not weak: such accesses do not race with each other.
    pub(crate) strong: bool,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
}

/// A load or a store.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) window: Window,
    /// The register of the address, or [`NONE`].
    pub(crate) base: Slot,
    pub(crate) offset: i64,
    /// Bytes of one element.
    pub(crate) bytes: u32,
    /// Registers of the elements; [`NONE`] for a sink.
    pub(crate) registers: Vec<Slot>,
    /// From how many bits an element is extended by its sign; 0 if it is not.
    pub(crate) sign_from: u32,
    /// Bits of the destination registers.
    pub(crate) register_bits: u32,
    pub(crate) order: Order,
}

/// The operation of an atomic instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtomicOp {
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Add,
    Increment,
    Decrement,
    Min,
    Max,
}

/// An atomic operation.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    pub(crate) ty: Type,
    pub(crate) window: Window,
    pub(crate) base: Slot,
    pub(crate) offset: i64,
    /// Destinations; empty for `red`.
    pub(crate) results: Vec<Slot>,
    pub(crate) sources: Vec<Slot>,
    /// The new value of a compare-and-swap.
    pub(crate) swap: Slot,
    pub(crate) order: Order,
}

/// Which lane a shuffle reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The condition of a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// The reduction of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BarrierReduce {
    Count,
    And,
    Or,
}

/// A barrier of the block.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    /// The register of its number.
    pub(crate) id: Slot,
    /// The register of the number of threads, or [`NONE`] for all.
    pub(crate) count: Slot,
    /// Whether threads wait; otherwise they only arrive.
    pub(crate) waits: bool,
    /// Whether all threads of a warp have to execute it together.
    pub(crate) aligned: bool,
    pub(crate) reduce: Option<BarrierReduce>,
    /// Source of a reduction, and whether it is negated.
    pub(crate) predicate: (Slot, bool),
    pub(crate) result: Slot,
}

/// Which function is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    /// The number of its code.
    Known(u32),
    /// A register holds its address.
    Register(Slot),
}

/// A call of a function of the module.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) returns: Vec<Argument>,
}

/// The caller's side of what is handed over at a call; the callee's side is among its formal parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    /// Bytes of the caller's frame.
    Bytes {
        offset: u64,
        bytes: u64,
    },
    Register(Slot),
}

/// A function outside of the module that every driver provides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum External {
    /// `vprintf`: prints nothing here.
    Print,
    /// `__assertfail`.
    AssertFail,
}

/// An asynchronous copy of one lane.
#[derive(Clone, Debug)]
pub(crate) struct CopyAsync {
    pub(crate) to: Slot,
    pub(crate) to_offset: i64,
    pub(crate) from_window: Window,
    pub(crate) from: Slot,
    pub(crate) from_offset: i64,
    pub(crate) bytes: u32,
    /// How many bytes are read, the others being zero; or [`NONE`].
    pub(crate) source_bytes: Slot,
    /// The predicate under which nothing is read and zeros are written, or [`NONE`].
    pub(crate) ignore: (Slot, bool),
}

/// An operation on an mbarrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MbarrierOp {
    Init,
    Invalidate,
    Arrive {
        expect: bool,
        drop: bool,
    },
    ExpectTransaction,
    CompleteTransaction,
    /// Test of a phase by its token.
    Test,
    /// Test of a phase by its parity.
    TestParity,
    PendingCount,
    /// Arrival when the thread's asynchronous copies are done.
    CopyArrive {
        counted: bool,
    },
}

/// Such an operation with its operands.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    pub(crate) op: MbarrierOp,
    pub(crate) window: Window,
    pub(crate) base: Slot,
    pub(crate) offset: i64,
    pub(crate) result: Slot,
    /// Count, token, parity or bytes; or [`NONE`].
    pub(crate) source: Slot,
    /// Whether a failed test lets other threads run first.
    pub(crate) waits: bool,
}

/// Matrices of 8×8 elements of 16 bits between shared memory and registers.
#[derive(Clone, Debug)]
pub(crate) struct MatrixMove {
    pub(crate) window: Window,
    pub(crate) base: Slot,
    pub(crate) offset: i64,
    pub(crate) transposed: bool,
    pub(crate) registers: Vec<Slot>,
    pub(crate) stores: bool,
}

/// A product of matrices in fragments.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a_type: Type,
    pub(crate) b_type: Type,
    pub(crate) c_type: Type,
    pub(crate) d_type: Type,
    pub(crate) a: Vec<Slot>,
    pub(crate) b: Vec<Slot>,
    pub(crate) c: Vec<Slot>,
    pub(crate) d: Vec<Slot>,
    /// Integer sums are clamped.
    pub(crate) saturates: bool,
    /// Whether elements lie in registers as `wmma` has them, not as `mma` has.
    pub(crate) spread: bool,
}

/// A matrix between memory and the registers of a warp, in the order of `wmma`.
#[derive(Clone, Debug)]
pub(crate) struct FragmentMove {
    pub(crate) window: Window,
    pub(crate) base: Slot,
    pub(crate) offset: i64,
    /// Elements from one row (or column) to the next; or [`NONE`], where the matrix is dense.
    pub(crate) stride: Slot,
    /// How many elements lie behind each other, and how many such runs there are.
    pub(crate) inner: usize,
    pub(crate) outer: usize,
    /// Whether runs in memory are runs of the fragment, too.
    pub(crate) same_order: bool,
    pub(crate) ty: Type,
    pub(crate) registers: Vec<Slot>,
    pub(crate) stores: bool,
}

/// An instruction in executable form.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Pure {
        f: Pure,
        to: Slot,
        from: [Slot; 4],
    },
    /// `selp`
    Select {
        to: Slot,
        a: Slot,
        b: Slot,
        predicate: Slot,
        negated: bool,
    },
    /// `setp`, whose comparison may be combined with a predicate.
    Compare {
        f: Pure,
        to: Slot,
        /// The destination of the negated comparison, or [`NONE`].
        complement: Slot,
        from: [Slot; 2],
        combine: Option<(Combine, Slot, bool)>,
        /// The result where the comparison holds.
        truth: u64,
    },
    /// Two functions of the same sources, such as a sum and the carry out of it.
    Twin {
        first: Pure,
        second: Pure,
        to: Slot,
        /// The register of the second result, or [`NONE`] if it is not wanted.
        second_to: Slot,
        from: [Slot; 4],
    },
    /// One value from several, the first in the low bits.
    Pack {
        to: Slot,
        parts: Vec<Slot>,
        bits: u32,
    },
    /// Several values from one.
    Unpack {
        from: Slot,
        parts: Vec<Slot>,
        bits: u32,
    },
    /// A special register that changes.
    Read {
        to: Slot,
        special: Special,
    },
    Jump {
        target: u32,
        /// Where lanes that go different ways meet again, or [`NONE`].
        meet: u32,
    },
    JumpTable {
        index: Slot,
        targets: Vec<u32>,
        meet: u32,
    },
    Call(Box<Call>),
    CallExternal(External),
    Return,
    Exit,
    Trap,
    Load(Box<Access>),
    Store(Box<Access>),
    Atomic(Box<Atomic>),
    CopyAsync(Box<CopyAsync>),
    CommitCopies,
    /// Waits until at most this number of groups of copies is left; with `all`, also for copies that are in no group.
    WaitCopies {
        left: u32,
        all: bool,
    },
    Mbarrier(Box<Mbarrier>),
    MatrixMove(Box<MatrixMove>),
    /// `movmatrix`: the elements of a matrix in the registers of a warp, exchanged across the diagonal.
    TransposeMatrix {
        to: Slot,
        from: Slot,
    },
    Product(Box<Product>),
    FragmentMove(Box<FragmentMove>),
    Barrier(Box<Barrier>),
    WarpBarrier {
        members: Slot,
    },
    Fence,
    Shuffle {
        mode: Shuffle,
        to: Slot,
        predicate: Slot,
        from: Slot,
        by: Slot,
        clamp: Slot,
        members: Slot,
    },
    Vote {
        vote: Vote,
        to: Slot,
        from: Slot,
        negated: bool,
        members: Slot,
    },
    Match {
        all: bool,
        to: Slot,
        predicate: Slot,
        from: Slot,
        members: Slot,
    },
    Reduce {
        op: AtomicOp,
        ty: Type,
        to: Slot,
        from: Slot,
        members: Slot,
    },
    Elect {
        to: Slot,
        predicate: Slot,
        members: Slot,
    },
    ActiveMask {
        to: Slot,
    },
    /// Whether a generic address lies in a window.
    InWindow {
        to: Slot,
        from: Slot,
        window: Window,
    },
    /// Hints, and notes of compilers.
    Nothing,
}

impl std::fmt::Debug for Pure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pure of {}", self.arity())
    }
}
