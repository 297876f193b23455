//! The values of a row.

use tilewright_core::program::Scope;
use tilewright_core::target::GpuTarget;

use super::access::AccessFact;
use super::block::BlockFacts;
use super::kernel::KernelFacts;

/// Accesses described in a row; those with the fewest requests beyond this number are left out.
const ACCESSES: usize = 5;
/// Values of an access.
const ACCESS_WIDTH: usize = 7;
/// Values of a row that describe the kernel and the block.
const OWN_WIDTH: usize = 22;

/// The number of values in a row.
pub const WIDTH: usize = OWN_WIDTH + ACCESSES * ACCESS_WIDTH;

/// Appends the row of a block. Sizes enter as `log2(x + 1)`.
pub(super) fn push(values: &mut Vec<f32>, kernel: &KernelFacts, block: &BlockFacts, gpu: &GpuTarget) {
    let resident = f64::from(kernel.resident);
    let arithmetic = &block.arithmetic;
    let own: [f64; OWN_WIDTH] = [
        size(kernel.grid),
        size(f64::from(kernel.threads)),
        size(kernel.shared_bytes as f64),
        size(kernel.registers),
        size(kernel.local_bytes),
        resident,
        resident * kernel.warps() / f64::from(gpu.max_warps_per_multiprocessor()),
        size(kernel.grid / (f64::from(gpu.multiprocessors) * resident.max(1.0))),
        kernel.coalescing(),
        kernel.bank_conflicts(),
        size(block.points),
        size(block.threads),
        size(block.iterations),
        size(block.rounds),
        size(block.copies),
        size(arithmetic.simple * block.points),
        size((arithmetic.division + arithmetic.transcendental) * block.points),
        size(arithmetic.integer * block.points),
        size(block.divisions),
        f64::from(u8::from(block.is_reduction)),
        f64::from(u8::from(block.is_guarded)),
        block.element_bytes as f64,
    ];
    values.extend(own.map(|value| value as f32));
    let mut accesses: Vec<&AccessFact> = block.accesses.iter().collect();
    accesses.sort_by(|a, b| b.requests.total_cmp(&a.requests).then(a.buffer.cmp(&b.buffer)));
    for number in 0..ACCESSES {
        let described = accesses.get(number).map_or([0.0; ACCESS_WIDTH], |access| of_access(access));
        values.extend(described.map(|value| value as f32));
    }
}

fn of_access(access: &AccessFact) -> [f64; ACCESS_WIDTH] {
    [
        f64::from(u8::from(access.scope == Scope::Global)),
        f64::from(u8::from(access.scope == Scope::Shared)),
        f64::from(u8::from(access.is_store)),
        size(access.requests),
        access.width as f64,
        size(access.units),
        access.efficiency,
    ]
}

fn size(value: f64) -> f64 {
    (value.max(0.0) + 1.0).log2()
}
