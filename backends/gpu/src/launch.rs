//! The host's side of compiled programs: which kernels run, on which grids, with which arguments.

use tilewright_core::device::{CallError, CompileError};
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;

/// The most blocks along each axis of a grid (table "Technical Specifications per Compute Capability" of the CUDA C++
/// Programming Guide).
const MAX_GRID: [i64; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// A program as PTX, and how it is run: its kernels one after the other.
#[derive(Clone, Debug)]
pub struct GpuCode {
    /// The module with all kernels.
    pub ptx: String,
    /// The kernels, in the order in which they run.
    pub launches: Vec<Launch>,
    /// Memory that the kernels pass values through.
    pub workspaces: Vec<Workspace>,
    /// The symbolic dimensions of the program, in order.
    pub dims: Vec<VarId>,
}

/// One kernel, and what it is launched with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The name of the kernel in the module.
    pub entry: String,
    /// The blocks along each axis, in terms of the program's dimensions.
    pub grid: [Index; 3],
    /// The threads of a block along each axis.
    pub threads: [u32; 3],
    /// The memory that the threads of a block share, in bytes.
    pub shared_bytes: u32,
    /// The part of it that the launch requests; the module reserves the rest.
    pub dynamic_shared_bytes: u32,
    /// The arguments, in order.
    pub arguments: Vec<LaunchArgument>,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchArgument {
    /// The address of the tensor with this number among the program's tensors, aligned to [`TENSOR_ALIGNMENT`].
    Tensor(usize),
    /// The address of the workspace with this number.
    Workspace(usize),
    /// The dimension with this number, as an `i64`.
    Dimension(usize),
    /// The scalar with this number, as an element of its type.
    Scalar(usize),
    /// The address of three `i64`: zeros before the first launch; afterwards 1, a value and an extent, where an index that
    /// depends on data was outside of its extent.
    FailureRecord,
}

/// The alignment of tensors that kernels rely on, in bytes: the widest access.
pub const TENSOR_ALIGNMENT: usize = 16;

/// The size of a [failure record](LaunchArgument::FailureRecord), in bytes.
pub const FAILURE_RECORD_BYTES: usize = 24;

/// Memory that kernels of a program pass values through.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The name of the intermediate that it holds.
    pub name: String,
    /// The number of bytes of an element.
    pub element_bytes: usize,
    /// The extents, in terms of the program's dimensions.
    pub shape: Vec<Index>,
}

impl GpuCode {
    /// Whether a kernel can report an index out of bounds.
    pub fn can_fail(&self) -> bool {
        self.launches.iter().any(|launch| launch.arguments.contains(&LaunchArgument::FailureRecord))
    }

    /// The value of an index in terms of the program's dimensions.
    pub(crate) fn evaluate(&self, index: &Index, dims: &[i64]) -> Option<i64> {
        index.evaluate(&|var| {
            let number = self.dims.iter().position(|dim| *dim == var)?;
            dims.get(number).copied()
        })
    }

    /// The blocks of a launch along each axis, for the dimensions of a call; a launch without blocks has nothing to do.
    ///
    /// # Errors
    /// [`CallError::Dimension`] when a grid cannot be as large.
    pub fn grid(&self, launch: &Launch, dims: &[i64]) -> Result<[u32; 3], CallError> {
        let mut grid = [0; 3];
        for (axis, extent) in launch.grid.iter().enumerate() {
            let blocks = self.evaluate(extent, dims).unwrap_or(i64::MAX).max(0);
            if blocks > MAX_GRID[axis] {
                let name = format!("grid axis {} of `{}`", ["x", "y", "z"][axis], launch.entry);
                return Err(CallError::Dimension { name, value: blocks });
            }
            grid[axis] = blocks as u32;
        }
        Ok(grid)
    }

    /// The size of a workspace in bytes, for the dimensions of a call.
    ///
    /// # Errors
    /// [`CallError::Dimension`] when it cannot be addressed.
    pub fn workspace_bytes(&self, workspace: &Workspace, dims: &[i64]) -> Result<usize, CallError> {
        let bytes = workspace.shape.iter().try_fold(workspace.element_bytes as i64, |bytes, extent| {
            bytes.checked_mul(self.evaluate(extent, dims)?.max(0))
        });
        bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| CallError::Dimension { name: workspace.name.clone(), value: i64::MAX })
    }
}

/// Checks the extents of a block and of a grid, where they are known.
pub(crate) fn check_extents(launch: &Launch, max_threads: u32) -> Result<(), CompileError> {
    /// The most threads of a block along its last axis.
    const MAX_THREADS_Z: u32 = 64;
    let [x, y, z] = launch.threads;
    let threads = x.checked_mul(y).and_then(|threads| threads.checked_mul(z));
    if threads.is_none_or(|threads| threads > max_threads) || z > MAX_THREADS_Z {
        return Err(crate::emit::unsupported(format!(
            "`{}` with blocks of {x}×{y}×{z} threads: a block has at most {max_threads}, and {MAX_THREADS_Z} along `thread_z`",
            launch.entry
        )));
    }
    for (axis, extent) in launch.grid.iter().enumerate() {
        if extent.as_constant().is_some_and(|extent| extent > MAX_GRID[axis]) {
            return Err(crate::emit::unsupported(format!(
                "`{}` with a grid of {extent:?} blocks along axis {}; at most {} are possible",
                launch.entry,
                ["x", "y", "z"][axis],
                MAX_GRID[axis]
            )));
        }
    }
    Ok(())
}
