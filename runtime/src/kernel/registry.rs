//! Kernels by name.

use tilewright_core::build::DefinitionErrors;
use tilewright_search::records::Problem;

use super::Kernel;
use crate::error::{AllDefinitionErrors, Error};
use crate::records;

/// A kernel in the registry, as `#[tensor_kernel]` submits it.
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry {
    /// The kernel.
    pub kernel: fn() -> &'static Kernel,
}

inventory::collect!(KernelEntry);

/// Every kernel that is linked into this program, in the order of modules and names. A definition with one type parameter
/// counts as a kernel for each type that it can have; of one with several, the kernels that the program has used so far count.
pub fn kernels() -> Vec<&'static Kernel> {
    let mut kernels: Vec<_> = inventory::iter::<KernelEntry>().map(|entry| (entry.kernel)()).collect();
    for kernel in super::instances::made() {
        if !kernels.iter().any(|known| std::ptr::eq(*known, kernel)) {
            kernels.push(kernel);
        }
    }
    kernels.sort_by_key(|kernel| kernel.definition().map(|definition| (definition.module, definition.name)));
    kernels
}

/// The kernel of a name: `matmul`, or `my_crate::layers::matmul` where several modules have one.
///
/// # Errors
/// [`Error::UnknownKernel`] when there is none, or when there are several.
pub fn kernel(name: &str) -> Result<&'static Kernel, Error> {
    let all = kernels();
    let matching: Vec<_> =
        all.iter().copied().filter(|kernel| kernel.name() == name || kernel.path() == name).collect();
    match matching[..] {
        [kernel] => Ok(kernel),
        _ => {
            let candidates = if matching.is_empty() { &all } else { &matching };
            let known: Vec<_> = candidates.iter().map(|kernel| kernel.path()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(Error::UnknownKernel { name: name.to_owned(), known })
        }
    }
}

/// Builds the program of every kernel that is linked into this one: one line in a test finds each definition that a first call
/// would refuse.
///
/// # Errors
/// [`Error::Definitions`] with everything that is wrong with any of them.
pub fn check_all() -> Result<(), Error> {
    let refused: Vec<DefinitionErrors> = kernels()
        .into_iter()
        .filter_map(|kernel| match kernel.program() {
            Err(Error::Definition(errors)) => Some(errors),
            _ => None,
        })
        .collect();
    if refused.is_empty() { Ok(()) } else { Err(Error::Definitions(AllDefinitionErrors(refused))) }
}

/// Everything that is wrong with the records in use: lines that are no records, and records of kernels that were
/// renamed, removed or changed.
///
/// # Errors
/// [`Error::Records`] when `TILEWRIGHT_RECORDS` names something that cannot be listed.
pub fn record_problems() -> Result<Vec<Problem>, Error> {
    let database = records::current()?;
    let kernels = kernels();
    let is_known = |name: &str, program: u64| {
        kernels
            .iter()
            .any(|kernel| kernel.name() == name && Kernel::hash(kernel).is_ok_and(|hash| hash == program))
    };
    let mut problems = database.problems().to_vec();
    problems.extend(database.unknown_kernels(is_known));
    Ok(problems)
}
