//! Tensor kernels as plain annotated Rust, tuned to the machine's limit and shipped as a line of text.
//!
//! A kernel is a function whose body is the computation; [`tensor_kernel`] makes it callable as tuned machine code.
//! A call looks for a tuning record of its shape, else fits that of the nearest shape, else takes a schedule that
//! needs no tuning. It never searches, and never fails for want of tuning.
//!
//! ```
//! use tilewright::prelude::*;
//!
//! /// C = A·B
//! #[tensor_kernel]
//! pub fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
//!     let mut c = Tensor::zeros();
//!     for i in 0..M {
//!         for j in 0..N {
//!             for k in 0..K {
//!                 c[[i, j]] += a[[i, k]] * b[[k, j]];
//!             }
//!         }
//!     }
//!     c
//! }
//!
//! let a = Tensor::from_fn([3, 4], |[i, k]| (i + k) as f32)?;
//! let b = Tensor::from_fn([4, 5], |[k, j]| (k * j) as f32)?;
//! let c = matmul(&a, &b)?;
//! assert_eq!(c[[2, 4]], matmul::reference(&a, &b)?[[2, 4]]);
//! # Ok::<(), tilewright::Error>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`prelude`] | what files with kernels import |
//! | [`kernel`](mod@kernel) | kernels at run time |
//! | [`background`] | better versions, made beside calls |
//! | [`definition`] | what a definition is, as data |
//! | [`graph`](mod@graph) | functions that call kernels, as data |
//! | [`records`] | the tuning records that calls look up |
//! | `bench` | benchmark programs that tune and compare |
//! | `tuning` | measuring schedules until a good one is found |
//! | [`settings`] | threads and diagnostics, also by environment variables |
//! | [`devices`], [`gpu`] | devices, tensors in their memory; NVIDIA GPUs (feature `gpu`, on by default) |
//! | [`core`], [`search`], [`backends`] | the parts, for those who extend them |
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `jit` | yes | the CPU as the default device; without it, kernels run on devices that the program adds |
//! | `tune` | yes | `tuning`, `bench` and `init`: an application that ships records needs none of them |
//! | `report` | yes | the report of a tuning run as a page |
//! | `ndarray` | no | conversions of tensors from and to arrays of the crate `ndarray` |

// Generated code names `::tilewright`, in this crate too.
extern crate self as tilewright;

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
#[cfg(feature = "tune")]
pub mod bench;
#[cfg(feature = "jit")]
mod cpu;
#[cfg(doctest)]
mod doc_tests;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod prelude;
pub mod settings;
#[cfg(feature = "tune")]
pub mod tuning;

/// The backends, one crate for each kind of device.
pub mod backends {
    #[cfg(feature = "jit")]
    pub use tilewright_cpu as cpu;
    #[cfg(feature = "gpu")]
    pub use tilewright_gpu as gpu;
}

pub use tilewright_core as core;
pub use tilewright_runtime::{background, choices, definition, devices, graph, kernel, records};
pub use tilewright_search as search;

pub use settings::{
    set_packed_limit, set_spare_limit, set_specialized_shapes, set_threads, specialized_shapes, threads,
};
pub use tilewright_core::tensor::{
    AnyTensor, Bits, Element, Float, Integer, Number, Tensor, TensorView, TensorViewMut,
};
pub use tilewright_macros::{schedule_rule, ship, tensor_fn, tensor_graph, tensor_kernel};
pub use tilewright_runtime::Error;
pub use tilewright_runtime::devices::{
    DeviceHandle, DeviceRead, DeviceTensor, DeviceView, DeviceViewMut, DeviceWrite, run_context,
};
pub use tilewright_runtime::kernel::{
    Explanation, Kernel, Source, check_all, explain, kernel, kernels, record_problems,
};
pub use tilewright_runtime::records::{use_record, use_records};
#[cfg(feature = "tune")]
pub use tuning::init;
