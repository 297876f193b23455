//! The launch plan of a program as JSON, for programs that assemble and launch the text themselves.

use serde_json::{Value, json};
use tilewright_core::device::CallError;
use tilewright_core::dtype::DType;
use tilewright_core::ids::BufferId;
use tilewright_core::program::{Param, Program};
use tilewright_core::target::GpuTarget;

use crate::launch::{FAILURE_RECORD_BYTES, GpuCode, Launch, LaunchArgument};

/// The launches of a program for given dimensions, in the order in which they run, with their arguments in order. The shapes of tensors
/// are those of `program`: the one that was lowered to what `code` was emitted from, or that one itself, whose tensors have one
/// dimension.
///
/// | field | holds |
/// |---|---|
/// | `entry`, `grid`, `block` | the kernel, and the extents of its launch |
/// | `shared_bytes`, `dynamic_shared_bytes` | shared memory of a block, and the part of it that the launch asks for |
/// | `arguments` | for each: its `kind`; of a tensor also `name`, `access`, `dtype` and `shape`; of a workspace `name` and `bytes`, where the same name is the same memory in all launches; of a dimension `name` and `value`, an `i64`; of a scalar `name` and `dtype`; of a failure record `bytes`, all 0 at first |
/// | `report` | threads and blocks, and the most blocks that a multiprocessor holds by threads and shared memory |
///
/// # Errors
/// [`CallError::Dimension`] when a grid or a workspace is too large.
pub fn manifest(
    program: &Program,
    code: &GpuCode,
    dims: &[i64],
    target: &GpuTarget,
) -> Result<Value, CallError> {
    let launches = code.launches.iter().map(|launch| {
        let grid = code.grid(launch, dims)?;
        let arguments = launch
            .arguments
            .iter()
            .map(|argument| describe(program, code, dims, *argument))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(json!({
            "entry": launch.entry,
            "grid": grid,
            "block": launch.threads,
            "shared_bytes": launch.shared_bytes,
            "dynamic_shared_bytes": launch.dynamic_shared_bytes,
            "arguments": arguments,
            "report": report(launch, grid, target),
        }))
    });
    Ok(json!({
        "program": &*program.name,
        "target": target.architecture(),
        "launches": launches.collect::<Result<Vec<_>, CallError>>()?,
    }))
}

fn describe(
    program: &Program,
    code: &GpuCode,
    dims: &[i64],
    argument: LaunchArgument,
) -> Result<Value, CallError> {
    Ok(match argument {
        LaunchArgument::Tensor(number) => {
            let (id, access) =
                program.buffer_params().nth(number).unwrap_or_else(|| unreachable!("it is a tensor"));
            let (name, dtype, shape) = tensor(program, code, dims, id);
            json!({"kind": "tensor", "name": name, "access": access.text(), "dtype": dtype.name(), "shape": shape})
        }
        LaunchArgument::Workspace(number) => {
            let workspace = &code.workspaces[number];
            let bytes = code.workspace_bytes(workspace, dims)?;
            json!({"kind": "workspace", "name": format!("{}#{number}", workspace.name), "bytes": bytes})
        }
        LaunchArgument::Dimension(number) => {
            let name = program.dims().nth(number).map(|(_, name)| name.to_string());
            json!({"kind": "dimension", "name": name, "dtype": DType::I64.name(), "value": dims.get(number)})
        }
        LaunchArgument::Scalar(number) => {
            let scalar = program.params.iter().filter_map(|param| match param {
                Param::Scalar(var, dtype) => Some((program.variable(*var).name.to_string(), dtype.name())),
                _ => None,
            });
            let (name, dtype) = scalar.into_iter().nth(number).unwrap_or_default();
            json!({"kind": "scalar", "name": name, "dtype": dtype})
        }
        LaunchArgument::FailureRecord => json!({"kind": "failure_record", "bytes": FAILURE_RECORD_BYTES}),
    })
}

fn tensor(
    program: &Program,
    code: &GpuCode,
    dims: &[i64],
    id: BufferId,
) -> (String, DType, Vec<Option<i64>>) {
    let buffer = program.buffer(id);
    let shape = buffer.shape.iter().map(|extent| code.evaluate(extent, dims)).collect();
    (buffer.name.to_string(), buffer.dtype, shape)
}

fn report(launch: &Launch, grid: [u32; 3], target: &GpuTarget) -> Value {
    let threads: u32 = launch.threads.iter().product();
    let blocks: u64 = grid.iter().map(|extent| u64::from(*extent)).product();
    let resident = target.resident_blocks(threads, 0, launch.shared_bytes);
    json!({"threads": threads, "blocks": blocks, "resident_blocks_at_most": resident})
}
