//! A GPU as a target.

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, DriverError};
use tilewright_core::device::DeviceError;
use tilewright_core::target::{ComputeCapability, GpuTarget};

use super::failure::{failed, unavailable};
use super::library;
use crate::intrinsics::with_intrinsics;

/// The oldest compute capability that is supported.
const OLDEST: ComputeCapability = ComputeCapability::new(8, 0);

/// The facts that the driver tells about a GPU; those that it does not tell are those of a GPU of the same generation.
///
/// # Errors
/// [`DeviceError::Unavailable`] when the GPU is too old.
pub(super) fn target(context: &CudaContext, name: &str) -> Result<GpuTarget, DeviceError> {
    let number =
        |attribute| asked(context.attribute(attribute), name).map(|value| u32::try_from(value).unwrap_or(0));
    let (major, minor) = asked(context.compute_capability(), name)?;
    let capability = ComputeCapability::new(major as u8, minor as u8);
    if capability < OLDEST {
        return Err(unavailable(
            name,
            format!("its compute capability is {major}.{minor}; 8.0 or later is needed (Ampere and newer)"),
        ));
    }
    let known = of_generation(capability);
    // In kHz, two transfers in a clock, as wide as the bus.
    let memory_clock = u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?);
    let bus_bits = u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?);
    let bandwidth = 2000 * memory_clock * bus_bits / 8;
    let clock = number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
    Ok(with_intrinsics(GpuTarget {
        product: Some(asked(context.name(), name)?.into()),
        driver: library::version(),
        compute_capability: capability,
        // No instruction of one architecture alone is emitted, so that a module runs on later GPUs, too.
        architecture_specific: false,
        multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        warp_size: number(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        max_threads_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_threads_per_multiprocessor: number(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )?,
        max_blocks_per_multiprocessor: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        shared_bytes_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_bytes_per_block_opt_in: number(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        shared_bytes_per_multiprocessor: number(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        shared_bytes_reserved_per_block: number(
            Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
        )?,
        registers_per_multiprocessor: number(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
        )?,
        l2_bytes: u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        // Newer drivers do not tell clocks.
        memory_bytes_per_second: if bandwidth > 0 { bandwidth } else { known.memory_bytes_per_second },
        clock_khz: if clock > 0 { clock } else { known.clock_khz },
        ..known
    }))
}

fn asked<T>(answer: Result<T, DriverError>, name: &str) -> Result<T, DeviceError> {
    answer.map_err(|error| failed(name, error, "asking for its properties", 0))
}

/// A GPU of the generation of a compute capability, or of the newest known one before it.
fn of_generation(capability: ComputeCapability) -> GpuTarget {
    match (capability.major, capability.minor) {
        (8, 0) => GpuTarget::a100(),
        (8, 9) => GpuTarget::rtx_4090(),
        (8, _) => GpuTarget::rtx_3090(),
        (12, _) => GpuTarget::rtx_4090(),
        _ => GpuTarget::h100(),
    }
}
