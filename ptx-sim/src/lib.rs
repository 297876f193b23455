//! Executes PTX without a GPU, and finds what is wrong with it.
//!
//! [`Module::parse`] reads any module of the PTX ISA up to 8.x whose instructions are in the instruction table; what is not
//! known is an error with its line, and nothing is ignored. [`Module::run`] executes a kernel on a [`Memory`] with several
//! schedules of its warps, and reports races, uninitialised reads, accesses out of bounds, misaligned accesses, divergent
//! barriers, deadlocks and uses of asynchronous copies that are not waited for; beside these, bank conflicts and accesses
//! that are not coalesced.
//!
//! ```
//! use tilewright_ptx_sim::{Launch, Memory, Module, Options};
//!
//! let text = "
//!     .version 8.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry double(.param .u64 data) {
//!         .reg .b32 %r<3>;
//!         .reg .b64 %rd<4>;
//!         ld.param.u64 %rd1, [data];
//!         mov.u32 %r1, %tid.x;
//!         mul.wide.u32 %rd2, %r1, 4;
//!         add.s64 %rd3, %rd1, %rd2;
//!         ld.global.u32 %r2, [%rd3];
//!         add.s32 %r2, %r2, %r2;
//!         st.global.u32 [%rd3], %r2;
//!         ret;
//!     }";
//! let module = Module::parse(text)?;
//! let mut memory = Memory::default();
//! let data = memory.allocate_with(&[1, 0, 0, 0, 2, 0, 0, 0], "data")?;
//! let launch = Launch { block: [2, 1, 1], params: data.to_le_bytes().to_vec(), ..Launch::default() };
//! let report = module.run("double", &launch, &mut memory, &Options::default())?;
//! assert!(report.findings.is_empty());
//! assert_eq!(memory.read(data, 8)?, [2, 0, 0, 0, 4, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod exec;
mod isa;
mod memory;
mod module;
mod parse;
mod program;
mod race;
mod report;
mod special;

pub use memory::{Memory, MemoryError};
pub use module::{Kernel, Launch, LaunchError, Loaded, Module, Options, Parameter};
pub use parse::ParseError;
pub use report::{FaultKind, Finding, Remark, RemarkKind, Report, Totals};
