//! A GPU as a target.
//!
//! Limits per compute capability are those of the table "Technical Specifications per Compute Capability" in the CUDA C++
//! Programming Guide; numbers of one product are from its data sheet, which each constructor names.

use std::fmt;

use crate::analysis::block::Reducer;
use crate::dtype::DType;
use crate::intrinsic::IntrinsicSet;
use crate::stmt::Symbol;

/// Registers are allocated to a warp in units of this many.
const REGISTER_UNIT: u32 = 256;
/// Warps of a multiprocessor share its register file in groups of this many: one for each of its four schedulers.
const WARP_UNIT: u32 = 4;
/// Shared memory is allocated to a block in units of this many bytes.
const SHARED_UNIT: u32 = 128;

/// What names of products and of drivers begin with among [`GpuTarget::features`].
const PRODUCT: &str = "product-";
const DRIVER: &str = "driver-";

/// A name with `_` for what is neither letter nor digit, `.` nor `-`.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
}

/// The version of an NVIDIA GPU's instruction set: 9.0 is `sm_90`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputeCapability {
    /// The generation.
    pub major: u8,
    /// The member of the generation.
    pub minor: u8,
}

impl ComputeCapability {
    /// Of a version.
    pub const fn new(major: u8, minor: u8) -> Self {
        ComputeCapability { major, minor }
    }

    /// Reads the form `sm_90`.
    fn parse(name: &str) -> Option<Self> {
        let digits =
            name.strip_prefix("sm_").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        let number: u16 = digits.parse().ok()?;
        Some(ComputeCapability { major: u8::try_from(number / 10).ok()?, minor: (number % 10) as u8 })
    }
}

/// `sm_90`
impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

/// An NVIDIA GPU.
///
/// A multiprocessor ("SM") holds several blocks of threads at once, as many as its threads, registers and shared memory
/// allow: [`GpuTarget::resident_blocks`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GpuTarget {
    /// The name of the product, as its driver tells it; `None` for any GPU with these properties.
    pub product: Option<Symbol>,
    /// The CUDA version of the driver: 1000 times the major number and 10 times the minor one; `None` where it is not known.
    pub driver: Option<u32>,
    /// The version of the instruction set.
    pub compute_capability: ComputeCapability,
    /// Whether code generation may use instructions that only this compute capability has: it then compiles for `sm_90a`
    /// and the like, whose code runs on no later GPU.
    pub architecture_specific: bool,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// Threads that execute one instruction together.
    pub warp_size: u32,
    /// The most threads of a block.
    pub max_threads_per_block: u32,
    /// The most threads on a multiprocessor.
    pub max_threads_per_multiprocessor: u32,
    /// The most blocks on a multiprocessor.
    pub max_blocks_per_multiprocessor: u32,
    /// Shared memory that a block may declare statically, in bytes.
    pub shared_bytes_per_block: u32,
    /// Shared memory that a block may have when the launch requests it ("opt-in"), in bytes.
    pub shared_bytes_per_block_opt_in: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared_bytes_per_multiprocessor: u32,
    /// Shared memory that the system takes for each block on a multiprocessor, in bytes.
    pub shared_bytes_reserved_per_block: u32,
    /// The most 32-bit registers of a thread.
    pub max_registers_per_thread: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// The second-level cache, in bytes.
    pub l2_bytes: u64,
    /// The bandwidth of the device memory, in bytes per second.
    pub memory_bytes_per_second: u64,
    /// The boost clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// `f32` multiply-adds that a multiprocessor starts in a clock cycle, without tensor cores.
    pub f32_multiply_adds_per_cycle: u32,
    /// Multiply-adds of `f16` or `bf16` factors into `f32` sums that the tensor cores of a multiprocessor do in a clock
    /// cycle, on dense matrices.
    pub tensor_multiply_adds_per_cycle: u32,
    /// The names of the [tensor intrinsics](crate::intrinsic) that code generation emits.
    pub intrinsics: Vec<Symbol>,
    /// The descriptions of tensor intrinsics that schedules may name, on this machine or any other of its kind.
    pub descriptions: IntrinsicSet,
}

/// The name of a product, and what makes its description.
type NamedGpu = (&'static str, fn() -> GpuTarget);

impl GpuTarget {
    /// A small GPU of compute capability 8.0 whose every limit holds for each later compute capability up to 9.0. A schedule for it
    /// is legal on all of them.
    pub fn generic() -> Self {
        GpuTarget {
            product: None,
            driver: None,
            compute_capability: ComputeCapability::new(8, 0),
            architecture_specific: false,
            multiprocessors: 16,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_threads_per_multiprocessor: 1536,
            max_blocks_per_multiprocessor: 16,
            shared_bytes_per_block: 48 << 10,
            shared_bytes_per_block_opt_in: 99 << 10,
            shared_bytes_per_multiprocessor: 100 << 10,
            shared_bytes_reserved_per_block: 1 << 10,
            max_registers_per_thread: 255,
            registers_per_multiprocessor: 64 << 10,
            l2_bytes: 2 << 20,
            memory_bytes_per_second: 200_000_000_000,
            clock_khz: 1_400_000,
            f32_multiply_adds_per_cycle: 64,
            tensor_multiply_adds_per_cycle: 256,
            intrinsics: Vec::new(),
            descriptions: IntrinsicSet::default(),
        }
    }

    /// A GPU of unknown make that code for an architecture such as `sm_80` runs on: the limits are those of [`GpuTarget::generic`]. `None`
    /// for a name that is no architecture from compute capability 8.0 on.
    pub fn for_architecture(name: &str) -> Option<Self> {
        let (number, architecture_specific) = match name.strip_suffix('a') {
            Some(number) => (number, true),
            None => (name, false),
        };
        let generic = Self::generic();
        let compute_capability = ComputeCapability::parse(number)?;
        let is_known = compute_capability >= generic.compute_capability;
        is_known.then_some(GpuTarget { compute_capability, architecture_specific, ..generic })
    }

    /// The limits of multiprocessors with 64 warps, 32 blocks and more shared memory, as data-centre GPUs have them.
    fn data_centre(compute_capability: ComputeCapability, shared_kib: u32) -> Self {
        GpuTarget {
            compute_capability,
            max_threads_per_multiprocessor: 2048,
            max_blocks_per_multiprocessor: 32,
            shared_bytes_per_block_opt_in: (shared_kib - 1) << 10,
            shared_bytes_per_multiprocessor: shared_kib << 10,
            ..Self::generic()
        }
    }

    /// NVIDIA A100 SXM with 80 GB ("NVIDIA A100 Tensor Core GPU" data sheet): 312 TFLOP/s of `bf16`, 2,039 GB/s.
    pub fn a100() -> Self {
        GpuTarget {
            multiprocessors: 108,
            l2_bytes: 40 << 20,
            memory_bytes_per_second: 2_039_000_000_000,
            clock_khz: 1_410_000,
            f32_multiply_adds_per_cycle: 64,
            tensor_multiply_adds_per_cycle: 1024,
            ..Self::data_centre(ComputeCapability::new(8, 0), 164)
        }
    }

    /// NVIDIA GeForce RTX 3090 ("NVIDIA Ampere GA102 GPU Architecture" white paper): 35.6 TFLOP/s of `f32`, 936 GB/s.
    pub fn rtx_3090() -> Self {
        GpuTarget {
            compute_capability: ComputeCapability::new(8, 6),
            multiprocessors: 82,
            l2_bytes: 6 << 20,
            memory_bytes_per_second: 936_000_000_000,
            clock_khz: 1_695_000,
            f32_multiply_adds_per_cycle: 128,
            tensor_multiply_adds_per_cycle: 256,
            ..Self::generic()
        }
    }

    /// NVIDIA GeForce RTX 4090 ("NVIDIA Ada GPU Architecture" white paper): 82.6 TFLOP/s of `f32`, 1,008 GB/s.
    pub fn rtx_4090() -> Self {
        GpuTarget {
            compute_capability: ComputeCapability::new(8, 9),
            multiprocessors: 128,
            max_blocks_per_multiprocessor: 24,
            l2_bytes: 72 << 20,
            memory_bytes_per_second: 1_008_000_000_000,
            clock_khz: 2_520_000,
            f32_multiply_adds_per_cycle: 128,
            tensor_multiply_adds_per_cycle: 256,
            ..Self::generic()
        }
    }

    /// NVIDIA H100 SXM ("NVIDIA H100 Tensor Core GPU" data sheet): 67 TFLOP/s of `f32`, 3.35 TB/s. The 989 TFLOP/s of `bf16` are
    /// at a clock of 1,830 MHz, which is below the boost clock.
    pub fn h100() -> Self {
        GpuTarget {
            architecture_specific: true,
            multiprocessors: 132,
            l2_bytes: 50 << 20,
            memory_bytes_per_second: 3_350_000_000_000,
            clock_khz: 1_980_000,
            f32_multiply_adds_per_cycle: 128,
            tensor_multiply_adds_per_cycle: 2048,
            ..Self::data_centre(ComputeCapability::new(9, 0), 228)
        }
    }

    /// NVIDIA H200 SXM ("NVIDIA H200 Tensor Core GPU" data sheet): an H100 with memory of 4.8 TB/s.
    pub fn h200() -> Self {
        GpuTarget { memory_bytes_per_second: 4_800_000_000_000, ..Self::h100() }
    }

    const PRODUCTS: [NamedGpu; 5] = [
        ("a100", Self::a100),
        ("rtx-3090", Self::rtx_3090),
        ("rtx-4090", Self::rtx_4090),
        ("h100", Self::h100),
        ("h200", Self::h200),
    ];

    /// The names of the GPUs that are described here, as command lines take them, such as `a100` and `h100`.
    pub fn product_names() -> impl Iterator<Item = &'static str> {
        Self::PRODUCTS.iter().map(|(name, _)| *name)
    }

    /// A GPU by a [name](GpuTarget::product_names), or one of an [architecture](GpuTarget::for_architecture).
    pub fn named(name: &str) -> Option<Self> {
        let product = Self::PRODUCTS.iter().find(|(known, _)| *known == name);
        product.map(|(_, make)| make()).or_else(|| Self::for_architecture(name))
    }

    /// The architecture that code generation compiles for, such as `sm_80` and `sm_90a`.
    pub fn architecture(&self) -> String {
        let suffix = if self.architecture_specific { "a" } else { "" };
        format!("{}{suffix}", self.compute_capability)
    }

    /// The names by which records tell which GPU they were measured on: its architecture, and its product and the version of its driver
    /// where they are known, as in `sm_90`, `product-NVIDIA_H200` and `driver-13.0`.
    pub fn features(&self) -> Vec<String> {
        let product = self.product.as_ref().map(|product| format!("{PRODUCT}{}", plain(product)));
        let driver = self.driver.map(|version| format!("{DRIVER}{}.{}", version / 1000, version % 1000 / 10));
        [Some(self.architecture()), product, driver].into_iter().flatten().collect()
    }

    /// Whether code and measurements that are known by a [feature](GpuTarget::features) serve this GPU: an architecture that it runs code
    /// for, its own product, or a driver of any version, whose measurements say enough about another one's. A GPU of no known product takes
    /// those of each.
    pub fn has_feature(&self, feature: &str) -> bool {
        if let Some(product) = feature.strip_prefix(PRODUCT) {
            return self.product.as_ref().is_none_or(|own| plain(own) == product);
        }
        feature.starts_with(DRIVER) || self.runs_code_for(feature)
    }

    /// Whether the GPU runs code that was compiled for an architecture: `sm_80` runs on each later one, `sm_90a` on 9.0 alone.
    pub fn runs_code_for(&self, architecture: &str) -> bool {
        match architecture.strip_suffix('a') {
            Some(exact) => {
                self.architecture_specific && ComputeCapability::parse(exact) == Some(self.compute_capability)
            }
            None => ComputeCapability::parse(architecture)
                .is_some_and(|required| required <= self.compute_capability),
        }
    }

    /// Whether threads of every GPU can combine elements of a type with values in one step: integers of 32 and 64 bits by sums, minima and maxima, and floats of these
    /// sizes by sums (PTX ISA, 8.0, "red").
    pub fn updates_atomically(reducer: Reducer, dtype: DType) -> bool {
        let is_float = matches!(dtype, DType::F32 | DType::F64);
        let is_integer = matches!(dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64);
        match reducer {
            Reducer::Sum => is_integer || is_float,
            Reducer::Max | Reducer::Min | Reducer::Maximum | Reducer::Minimum => is_integer,
            Reducer::Product => false,
        }
    }

    /// The most warps on a multiprocessor.
    pub fn max_warps_per_multiprocessor(&self) -> u32 {
        self.max_threads_per_multiprocessor / self.warp_size
    }

    /// The number of blocks that a multiprocessor holds at once ("occupancy", in blocks); 0 where a block cannot be
    /// launched. A block has `threads` threads of `registers` registers each, and `shared_bytes` bytes of shared memory.
    ///
    /// This is the computation of the CUDA occupancy calculator for compute capabilities 8.0 to 9.0.
    pub fn resident_blocks(&self, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
        let is_launchable = (1..=self.max_threads_per_block).contains(&threads)
            && registers <= self.max_registers_per_thread
            && shared_bytes <= self.shared_bytes_per_block_opt_in;
        if !is_launchable {
            return 0;
        }
        let warps = threads.div_ceil(self.warp_size);
        let registers_per_warp = (registers.max(1) * self.warp_size).next_multiple_of(REGISTER_UNIT);
        let warps_with_registers =
            self.registers_per_multiprocessor / registers_per_warp / WARP_UNIT * WARP_UNIT;
        let shared = (shared_bytes + self.shared_bytes_reserved_per_block).next_multiple_of(SHARED_UNIT);
        let by_shared = self.shared_bytes_per_multiprocessor.checked_div(shared).unwrap_or(u32::MAX);
        (self.max_warps_per_multiprocessor() / warps)
            .min(warps_with_registers / warps)
            .min(by_shared)
            .min(self.max_blocks_per_multiprocessor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [fn() -> GpuTarget; 6] = [
        GpuTarget::generic,
        GpuTarget::a100,
        GpuTarget::rtx_3090,
        GpuTarget::rtx_4090,
        GpuTarget::h100,
        GpuTarget::h200,
    ];

    /// The speeds that data sheets state, in units of 10¹² operations per second.
    #[test]
    fn speeds_are_those_of_the_data_sheets() {
        let tera = |gpu: &GpuTarget, per_cycle: u32, khz: u32| {
            2.0 * f64::from(gpu.multiprocessors) * f64::from(per_cycle) * f64::from(khz) * 1e3 / 1e12
        };
        for (gpu, f32_speed) in [
            (GpuTarget::a100(), 19.5),
            (GpuTarget::rtx_3090(), 35.6),
            (GpuTarget::rtx_4090(), 82.6),
            (GpuTarget::h100(), 67.0),
        ] {
            let own = tera(&gpu, gpu.f32_multiply_adds_per_cycle, gpu.clock_khz);
            assert!((own / f32_speed - 1.0).abs() < 0.01, "{}: {own} {f32_speed}", gpu.architecture());
        }
        for (gpu, khz, tensor_speed) in [
            (GpuTarget::a100(), 1_410_000, 312.0),
            (GpuTarget::rtx_3090(), 1_695_000, 71.0),
            (GpuTarget::rtx_4090(), 2_520_000, 165.2),
            (GpuTarget::h100(), 1_830_000, 989.4),
        ] {
            let own = tera(&gpu, gpu.tensor_multiply_adds_per_cycle, khz);
            assert!((own / tensor_speed - 1.0).abs() < 0.01, "{}: {own} {tensor_speed}", gpu.architecture());
        }
    }

    #[test]
    fn code_runs_on_later_gpus_unless_it_is_specific_to_one() {
        let runs =
            |gpu: GpuTarget| ["sm_75", "sm_80", "sm_86", "sm_90", "sm_90a"].map(|on| gpu.runs_code_for(on));
        assert_eq!(runs(GpuTarget::a100()), [true, true, false, false, false]);
        assert_eq!(runs(GpuTarget::rtx_4090()), [true, true, true, false, false]);
        assert_eq!(runs(GpuTarget::h100()), [true; 5]);
        let next = GpuTarget { compute_capability: ComputeCapability::new(10, 0), ..GpuTarget::h100() };
        assert_eq!(next.architecture(), "sm_100a");
        assert_eq!(runs(next), [true, true, true, true, false]);
        for wrong in ["", "sm_", "sm_+80", "avx2", "sm_80b", "80"] {
            assert!(!GpuTarget::h100().runs_code_for(wrong), "{wrong}");
        }
    }

    #[test]
    fn features_are_of_the_product_and_any_driver() {
        let of = |product: &str, driver| GpuTarget {
            product: Some(product.into()),
            driver: Some(driver),
            ..GpuTarget::a100()
        };
        let gpu = of("NVIDIA A100-SXM4 40GB", 12_040);
        assert_eq!(gpu.features(), ["sm_80", "product-NVIDIA_A100-SXM4_40GB", "driver-12.4"]);
        let serves = |other: &GpuTarget| other.features().iter().all(|feature| gpu.has_feature(feature));
        assert!(serves(&gpu) && serves(&of("NVIDIA A100-SXM4 40GB", 13_000)));
        assert!(serves(&GpuTarget::a100()), "known by its architecture alone");
        assert!(!serves(&of("NVIDIA A30", 12_040)));
        assert!(GpuTarget::generic().has_feature("product-NVIDIA_A30"), "any product");
    }

    #[test]
    fn architectures_are_found_by_name() {
        for name in ["sm_80", "sm_86", "sm_90", "sm_90a"] {
            let gpu = GpuTarget::for_architecture(name).expect("it is known");
            assert_eq!(gpu.architecture(), name);
        }
        for name in ["sm_75", "cpu", "sm_", "80", ""] {
            assert_eq!(GpuTarget::for_architecture(name), None, "{name}");
        }
    }

    #[test]
    fn each_gpu_runs_its_own_code_and_the_generic_ones() {
        for gpu in ALL.map(|of| of()) {
            assert!(gpu.runs_code_for(&gpu.architecture()), "{gpu:?}");
            assert!(gpu.runs_code_for(&GpuTarget::generic().architecture()), "{gpu:?}");
        }
    }

    /// Values of NVIDIA's occupancy calculator.
    #[test]
    fn occupancy_is_limited_by_the_scarcest_resource() {
        let (a100, h100, ada) = (GpuTarget::a100(), GpuTarget::h100(), GpuTarget::rtx_4090());
        assert_eq!(a100.resident_blocks(256, 32, 0), 8, "threads");
        assert_eq!(a100.resident_blocks(32, 16, 0), 32, "blocks");
        assert_eq!(ada.resident_blocks(32, 16, 0), 24, "blocks");
        assert_eq!(ada.resident_blocks(1024, 32, 0), 1, "threads");
        assert_eq!(a100.resident_blocks(256, 128, 0), 2, "registers");
        assert_eq!(a100.resident_blocks(256, 33, 0), 6, "registers are allocated in units");
        assert_eq!(a100.resident_blocks(128, 255, 0), 2, "registers");
        assert_eq!(a100.resident_blocks(128, 32, 48 << 10), 3, "shared memory");
        assert_eq!(h100.resident_blocks(128, 32, 227 << 10), 1, "shared memory");
    }

    #[test]
    fn a_block_beyond_a_limit_cannot_be_launched() {
        let gpu = GpuTarget::a100();
        assert_eq!(gpu.resident_blocks(0, 32, 0), 0);
        assert_eq!(gpu.resident_blocks(1025, 32, 0), 0);
        assert_eq!(gpu.resident_blocks(128, 256, 0), 0);
        assert_eq!(gpu.resident_blocks(128, 32, (163 << 10) + 1), 0);
        assert_eq!(gpu.resident_blocks(1024, 128, 0), 0, "more registers than there are");
    }

    #[test]
    fn a_schedule_for_the_generic_gpu_is_legal_on_all() {
        let generic = GpuTarget::generic();
        for gpu in ALL.map(|of| of()) {
            for (own, least) in [
                (gpu.max_threads_per_block, generic.max_threads_per_block),
                (gpu.max_threads_per_multiprocessor, generic.max_threads_per_multiprocessor),
                (gpu.max_blocks_per_multiprocessor, generic.max_blocks_per_multiprocessor),
                (gpu.shared_bytes_per_block_opt_in, generic.shared_bytes_per_block_opt_in),
                (gpu.registers_per_multiprocessor, generic.registers_per_multiprocessor),
            ] {
                assert!(own >= least, "{gpu:?}");
            }
        }
    }
}
