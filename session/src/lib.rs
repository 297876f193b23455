#![forbid(unsafe_code)]
//! Whole models on kernels: load a model, run it as often as needed, see where its time goes.
//!
//! A [`Model`] is a graph whose calls have been gathered into groups, each of which becomes one kernel. A [`Session`] runs it:
//! for the shapes of a call it makes a plan once (kernels, places of all intermediates in one arena) and follows the plan
//! whenever these shapes come again. Graphs that decide while they run (branches, loops, sizes that depend on data) are
//! executed by the graph's interpreter, which leaves every group that has a kernel form to its kernel.
//!
//! | module | holds |
//! |---|---|
//! | `model` | loading: import, passes, groups, constants |
//! | `folder` | models in folders, with their records |
//! | `buckets` | sizes that a model is tuned for; those between them share code |
//! | `warm` | calls ahead of those that count |
//! | `interruption` | ending a run from outside |
//! | `session` | runs with named inputs and outputs |
//! | `recorded` | loading functions with `#[tensor_graph]` |
//! | `plan` | the steps for given shapes, and where their results lie in memory |
//! | `prepare` | from a group and the shapes of its inputs to a kernel |
//! | `kernels` | kernels by their programs: equal programs share one |
//! | `profile` | where the time of a run goes |
//! | `uses` | which kernels a call runs, and how often |
//! | `engine` | kernels below the graph's interpreter |
//! | [`npy`] | NumPy's files of one tensor |

mod buckets;
mod engine;
mod error;
mod folder;
mod forms;
mod interruption;
mod kernels;
mod model;
pub mod npy;
mod plan;
mod plans;
mod prepare;
mod profile;
mod recorded;
mod session;
mod uses;
mod warm;

pub use buckets::{Bucket, sizes};
pub use error::Error;
pub use folder::pack;
pub use interruption::Interruption;
pub use model::{Info, Model, Port};
pub use profile::{Profile, StepTime};
pub use session::{Outputs, Session};
pub use tilewright_graph::ir::{Shape, Type};
pub use tilewright_graph::pass::StaysFloat;
pub use tilewright_graph::symbolic::SymInt;
pub use tilewright_graph::tensor::{ElementType, HostTensor};
pub use uses::KernelUse;
pub use warm::stand_in;
