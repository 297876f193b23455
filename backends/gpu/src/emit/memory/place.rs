//! Where the intermediates of a nest are.

use rustc_hash::FxHashSet;
use tilewright_core::device::CompileError;
use tilewright_core::flat::access::for_each_access;
use tilewright_core::flat::lanes::lane_offset;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::program::{Buffer, Program, Scope};
use tilewright_core::stmt::Stmt;
use tilewright_core::target::GpuTarget;
use tilewright_core::visit::for_each_stmt;

use super::plan::{Plan, plan};
use crate::emit::nest::Nest;
use crate::emit::unsupported;
use crate::ptx::kernel::SharedMemory;

/// The alignment of buffers in shared and local memory, in bytes: the widest access.
pub(in crate::emit) const ALIGNMENT: u64 = 16;

/// The most elements of a buffer that are kept in registers.
const MAX_REGISTERS: i64 = 256;

/// The local buffers whose every access is to an element that is known.
pub(in crate::emit) fn find_registers(program: &Program, body: &Stmt) -> FxHashSet<BufferId> {
    let mut found: FxHashSet<BufferId> = FxHashSet::default();
    for_each_stmt(body, &mut |stmt| {
        if let Stmt::Alloc(node) = stmt {
            let buffer = program.buffer(node.buffer);
            let is_small = buffer.constant_len().is_some_and(|len| len <= MAX_REGISTERS);
            if buffer.scope == Scope::Local && is_small {
                found.insert(node.buffer);
            }
        }
    });
    for_each_access(body, &mut |access| {
        let is_known = access.indices.iter().all(|index| lane_offset(index, 0).is_some());
        if !is_known {
            found.remove(&access.buffer);
        }
    });
    found
}

/// The places of the buffers that the threads of a block share, in bytes from the beginning of their memory, and its size.
pub(in crate::emit) fn place_shared(
    program: &Program,
    nest: &Nest<'_>,
    target: &GpuTarget,
) -> Result<(Plan, SharedMemory), CompileError> {
    let sizes = nest.shared.iter().map(|id| Ok((*id, constant_bytes(program.buffer(*id))?)));
    let sizes = sizes.collect::<Result<Vec<_>, CompileError>>()?;
    let limit = target.shared_bytes_per_block_opt_in;
    let plan = plan(nest.body, &sizes, u64::from(limit));
    if plan.bytes > u64::from(limit) {
        let what = format!(
            "`{}`, whose blocks share {} bytes of memory; {limit} are possible on {}: make its tiles smaller",
            program.name,
            plan.bytes,
            target.architecture()
        );
        return Err(unsupported(what));
    }
    let bytes = plan.bytes as u32;
    let is_static = bytes <= target.shared_bytes_per_block;
    let memory = if is_static { SharedMemory::Static(bytes) } else { SharedMemory::Dynamic(bytes) };
    Ok((plan, memory))
}

/// The size of a buffer in bytes, which must be known.
pub(in crate::emit) fn constant_bytes(buffer: &Buffer) -> Result<u64, CompileError> {
    let is_negative = |extent: &Index| extent.as_constant().is_some_and(|extent| extent < 0);
    buffer.constant_bytes().filter(|_| !buffer.shape.iter().any(is_negative)).ok_or_else(|| {
        unsupported(format!(
            "buffer `{}`, which is `{}` and has no constant size; bind the sizes that it depends on",
            buffer.name,
            buffer.scope.text()
        ))
    })
}
