//! The axes of a GPU's grid that loops can be bound to.

/// The threads of a warp, which are its lanes.
pub const WARP: i64 = 32;

/// An axis of a grid of threads.
///
/// A nest of loops, from its outermost one, is one grid: an axis has one extent in it, and a loop bound to an axis is not inside
/// another one bound to the same. Virtual threads are the exception to the first rule: each of their loops is a strip of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadAxis {
    /// Blocks of threads, first axis.
    BlockX,
    /// Blocks of threads, second axis.
    BlockY,
    /// Blocks of threads, third axis.
    BlockZ,
    /// Threads of a block, first axis.
    ThreadX,
    /// Threads of a block, second axis.
    ThreadY,
    /// Threads of a block, third axis.
    ThreadZ,
    /// Strips of one thread's work that run interleaved, first axis.
    VirtualX,
    /// Strips of one thread's work that run interleaved, second axis.
    VirtualY,
    /// Strips of one thread's work that run interleaved, third axis.
    VirtualZ,
}

impl ThreadAxis {
    /// All axes.
    pub const ALL: [ThreadAxis; 9] = [
        ThreadAxis::BlockX,
        ThreadAxis::BlockY,
        ThreadAxis::BlockZ,
        ThreadAxis::ThreadX,
        ThreadAxis::ThreadY,
        ThreadAxis::ThreadZ,
        ThreadAxis::VirtualX,
        ThreadAxis::VirtualY,
        ThreadAxis::VirtualZ,
    ];

    /// The name in the text form and in traces.
    pub const fn text(self) -> &'static str {
        match self {
            ThreadAxis::BlockX => "block_x",
            ThreadAxis::BlockY => "block_y",
            ThreadAxis::BlockZ => "block_z",
            ThreadAxis::ThreadX => "thread_x",
            ThreadAxis::ThreadY => "thread_y",
            ThreadAxis::ThreadZ => "thread_z",
            ThreadAxis::VirtualX => "virtual_x",
            ThreadAxis::VirtualY => "virtual_y",
            ThreadAxis::VirtualZ => "virtual_z",
        }
    }

    /// The axis of a name.
    pub fn named(name: &str) -> Option<ThreadAxis> {
        Self::ALL.into_iter().find(|axis| axis.text() == name)
    }

    /// The number of the axis among those of its sort: 0 for `x`, 1 for `y`, 2 for `z`.
    pub const fn number(self) -> usize {
        match self {
            ThreadAxis::BlockX | ThreadAxis::ThreadX | ThreadAxis::VirtualX => 0,
            ThreadAxis::BlockY | ThreadAxis::ThreadY | ThreadAxis::VirtualY => 1,
            ThreadAxis::BlockZ | ThreadAxis::ThreadZ | ThreadAxis::VirtualZ => 2,
        }
    }

    /// Whether the axis numbers the threads of a block.
    pub const fn is_of_block(self) -> bool {
        matches!(self, ThreadAxis::ThreadX | ThreadAxis::ThreadY | ThreadAxis::ThreadZ)
    }

    /// Whether the axis numbers the blocks of a grid.
    pub const fn is_of_blocks(self) -> bool {
        matches!(self, ThreadAxis::BlockX | ThreadAxis::BlockY | ThreadAxis::BlockZ)
    }

    /// Whether the axis has one extent in a whole nest.
    pub const fn is_of_grid(self) -> bool {
        !matches!(self, ThreadAxis::VirtualX | ThreadAxis::VirtualY | ThreadAxis::VirtualZ)
    }
}
