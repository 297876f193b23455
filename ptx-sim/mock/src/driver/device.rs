//! Devices and their attributes.

use tilewright_ptx_sim::Memory;

use super::table::Handle;
use crate::code::{Code, Outcome};
use crate::settings::DeviceSettings;

/// A device.
pub(crate) struct Device {
    pub(crate) settings: DeviceSettings,
    pub(crate) memory: Memory,
    /// The primary context, and how often it was retained.
    pub(crate) primary: Option<(Handle, u32)>,
    /// Launches and copies that were executed.
    pub(crate) operations: u64,
}

impl Device {
    pub(crate) fn new(number: u32, settings: DeviceSettings) -> Device {
        let memory = Memory::of_device(number, settings.memory);
        Device { settings, memory, primary: None, operations: 0 }
    }

    /// Fails once the device is lost.
    pub(crate) fn check_present(&self) -> Outcome {
        match self.settings.lose_after {
            Some(limit) if self.operations > limit => Err(Code::Unknown),
            _ => Ok(()),
        }
    }

    /// The bytes of shared memory that a block may have when its launch asks for them, by compute capability: the table
    /// "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.
    pub(crate) fn shared_opt_in(&self) -> u32 {
        let kib = match self.settings.capability {
            (7, 0) => 96,
            (7, _) => 64,
            (8, 0 | 7) => 163,
            (8, _) | (12, _) => 99,
            (9.., _) => 227,
            _ => 48,
        };
        kib << 10
    }

    /// The value of an attribute, by its number in `CUdevice_attribute`.
    pub(crate) fn attribute(&self, number: i32) -> Outcome<i32> {
        let (major, minor) = self.settings.capability;
        let is_large = matches!((major, minor), (8 | 9, 0) | (10, _));
        let value = match number {
            1..=3 => [1024, 1024, 64][number as usize - 1],
            4 => 1024,
            5 => i32::MAX as u32,
            6 | 7 => 65_535,
            // Static shared memory of a block, constant memory, warp size, pitch, registers of a block.
            8 => 48 << 10,
            9 => 64 << 10,
            10 => 32,
            11 => i32::MAX as u32,
            12 | 82 => 64 << 10,
            13 => Self::CLOCK_KHZ,
            14 => 512,
            16 => self.settings.multiprocessors,
            // Neither a run-time limit nor integrated; unified addresses; concurrent kernels; two copy engines.
            17 | 18 | 20 | 32 => 0,
            19 | 31 | 41 => 1,
            33 => 0,
            35 => 1,
            36 => Self::MEMORY_KHZ,
            37 => Self::MEMORY_BUS_BITS,
            38 => Self::L2_BYTES,
            39 => {
                if is_large {
                    2048
                } else {
                    1536
                }
            }
            40 => 2,
            75 => major,
            76 => minor,
            78 => 1,
            81 => (self.shared_opt_in() + 1024).max(64 << 10),
            // No managed memory; cooperative launches; memory pools.
            83 | 88 | 89 => 0,
            95 => 1,
            97 => self.shared_opt_in(),
            106 => {
                if is_large {
                    32
                } else {
                    16
                }
            }
            111 => 1024,
            115 => 1,
            _ => return Err(Code::InvalidValue),
        };
        i32::try_from(value).map_err(|_| Code::InvalidValue)
    }

    const CLOCK_KHZ: u32 = 1_400_000;
    const MEMORY_KHZ: u32 = 1_000_000;
    const MEMORY_BUS_BITS: u32 = 1024;
    const L2_BYTES: u32 = 4 << 20;
}

/// How long work takes, in nanoseconds, by a model with a fixed cost, the device's rate of instructions and that of its
/// memory. The numbers are no prediction: they make times of events positive, increasing with the work, and the same in each run.
pub(crate) mod cost {
    use tilewright_ptx_sim::Totals;

    use super::Device;

    /// A launch or a copy of no bytes.
    pub(crate) const SUBMISSION: f64 = 2000.0;

    /// Bytes that a copy between host and device moves in a nanosecond.
    const HOST_LINK: f64 = 16.0;

    /// A kernel with these sums.
    pub(crate) fn kernel(device: &Device, totals: &Totals) -> f64 {
        // Each multiprocessor starts an instruction of four warps in a cycle.
        let per_cycle = 4.0 * f64::from(device.settings.multiprocessors.max(1));
        let cycles = totals.warp_instructions as f64 / per_cycle;
        let execution = cycles / f64::from(Device::CLOCK_KHZ) * 1e6;
        SUBMISSION + execution.max(traffic(32 * totals.global_sectors))
    }

    /// A copy between host and device.
    pub(crate) fn transfer(bytes: u64) -> f64 {
        SUBMISSION + bytes as f64 / HOST_LINK
    }

    /// A copy inside of a device, or a fill.
    pub(crate) fn local(bytes: u64) -> f64 {
        SUBMISSION + traffic(2 * bytes)
    }

    /// Two transfers in a clock of the memory, as wide as its bus.
    fn traffic(bytes: u64) -> f64 {
        let bytes_per_second = 2e3 * f64::from(Device::MEMORY_KHZ) * f64::from(Device::MEMORY_BUS_BITS / 8);
        bytes as f64 / bytes_per_second * 1e9
    }
}
