//! The instructions of the interpreter.

use crate::dtype::DType;
use crate::ids::BufferId;
use crate::interp::operators::{Binary, Ternary, Unary};
use crate::program::Access as ParamAccess;
use crate::stmt::Symbol;

/// The number of a register, which holds the bits of one value.
pub(super) type Register = u32;
/// The position of an instruction.
pub(super) type Position = u32;

/// One step. `to` is the register that receives the result.
#[derive(Clone, Debug)]
pub(super) enum Instruction {
    Unary {
        function: Unary,
        to: Register,
        a: Register,
    },
    Binary {
        function: Binary,
        to: Register,
        a: Register,
        b: Register,
    },
    Ternary {
        function: Ternary,
        to: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    Copy {
        to: Register,
        from: Register,
    },
    /// `to = floor(base / divisor)`, then modulo `modulus` unless that is 0.
    Digit {
        to: Register,
        base: Register,
        divisor: i64,
        modulus: i64,
    },
    /// `to = constant + Σ coefficient · register` over a range of [`Code::terms`].
    Sum {
        to: Register,
        first: u32,
        last: u32,
        constant: i64,
    },
    Load {
        to: Register,
        access: u32,
    },
    Store {
        access: u32,
        value: Register,
    },
    /// Remembers a store until [`Instruction::Commit`].
    Pend {
        access: u32,
        value: Register,
    },
    /// As [`Instruction::Store`], of an element that is under way then.
    StoreAsync {
        access: u32,
        value: Register,
    },
    /// Makes all remembered stores, which are of one access.
    Commit {
        access: u32,
        is_async: bool,
    },
    Jump {
        target: Position,
    },
    JumpUnless {
        condition: Register,
        target: Position,
    },
    JumpUnlessLess {
        a: Register,
        b: Register,
        target: Position,
    },
    JumpUnlessZero {
        a: Register,
        target: Position,
    },
    /// Fails unless `0 <= value < extent`.
    CheckIter {
        value: Register,
        extent: Register,
        iter: u32,
    },
    /// Fails unless `0 <= value < extent`.
    CheckIndex {
        value: Register,
        extent: Register,
        block: u32,
    },
    /// Begins a loop or jumps behind it.
    Enter {
        number: u32,
    },
    /// Repeats a loop or continues behind it.
    Next {
        number: u32,
    },
    /// Runs a nest of loops over the threads of a block, and continues behind it.
    Threads {
        number: u32,
    },
    /// Ends one of these threads.
    EndThread,
    /// Lets one of these threads wait for the others.
    Barrier,
    /// Makes a group of a thread's asynchronous stores.
    CommitCopies,
    /// Lets a thread wait until at most so many of its groups are under way.
    WaitForCopies {
        left: u32,
    },
    /// Lets one of these threads wait for the others, and then gives it the value of its partner.
    Shuffle {
        value: Register,
        to: Register,
        mask: u32,
    },
    /// Makes a buffer's contents undefined.
    Forget {
        memory: u32,
    },
    /// Ends a section.
    Halt,
}

/// A loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// The loop variable.
    pub(super) var: Register,
    /// The number of the iteration.
    pub(super) counter: Register,
    pub(super) extent: Register,
    pub(super) is_parallel: bool,
    /// The first instruction of the body, and the one behind the loop.
    pub(super) body: Position,
    pub(super) end: Position,
}

/// A nest of loops over the threads of a block.
#[derive(Clone, Debug)]
pub(super) struct ThreadNest {
    /// The variable and the extent of each loop, outermost first.
    pub(super) loops: Vec<(Register, Register)>,
    /// The memories that each thread has for itself.
    pub(super) private: Vec<u32>,
    /// The first instruction of a thread, and the one behind the nest.
    pub(super) body: Position,
    pub(super) end: Position,
}

/// A load or store.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) memory: u32,
    pub(super) indices: Box<[Register]>,
    /// The block that it stands in, a position in [`Code::blocks`].
    pub(super) block: u32,
    /// Whether it is part of an update in one step.
    pub(super) is_atomic: bool,
}

/// A buffer.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) id: BufferId,
    pub(super) name: Symbol,
    pub(super) dtype: DType,
    /// Computed by the section of shapes.
    pub(super) shape: Box<[Register]>,
    /// The distances of a parameter that is not dense; computed by the section of shapes.
    pub(super) strides: Option<Box<[Register]>>,
    /// The position among the tensor arguments, and what the program does with it; `None` for an intermediate.
    pub(super) param: Option<(usize, ParamAccess)>,
    /// Whether each thread of a block has elements of its own.
    pub(super) is_private: bool,
}

/// An iterator, for messages.
#[derive(Clone, Debug)]
pub(super) struct IterName {
    pub(super) block: Symbol,
    pub(super) iter: Symbol,
}

/// A program ready for execution. The instructions have two sections, each ending in `Halt`: the body of
/// the program, and the shapes of all memories, computed from the dimensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) instructions: Vec<Instruction>,
    /// Where the section of shapes begins.
    pub(super) shapes: Position,
    /// The registers' values at first: constants are in place.
    pub(super) registers: Vec<u64>,
    pub(super) terms: Vec<(Register, i64)>,
    pub(super) accesses: Vec<Access>,
    pub(super) loops: Vec<Loop>,
    pub(super) thread_nests: Vec<ThreadNest>,
    pub(super) memories: Vec<Storage>,
    pub(super) iters: Vec<IterName>,
    /// Names of blocks; the first is `None`, for statements outside of blocks.
    pub(super) blocks: Vec<Option<Symbol>>,
    /// The dimensions' registers and names.
    pub(super) dims: Vec<(Register, Symbol)>,
    /// The scalars' registers and types.
    pub(super) scalars: Vec<(Register, DType)>,
    /// The number of tensor parameters.
    pub(super) tensor_count: usize,
}
