//! The devices of this process.
//!
//! A [`DeviceId`] identifies a device; it never changes and is never used again: versions of kernels are kept under it.
//! The first device is the default, on which calls run that name no device. It is opened on first use; the program
//! that links this crate [registers](DefaultDevice) it. Further devices are [added](add), or opened when they are first asked for
//! by name: crates register [kinds](DeviceKind) of them.
//!
//! | module | holds |
//! |---|---|
//! | `handle` | a device to work with: tensors in its memory, copies, waits |
//! | `tensor` | tensors in the memory of a device, and views of them |

mod handle;
mod tensor;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

pub use handle::{DeviceHandle, open};
pub use tensor::{DeviceRead, DeviceTensor, DeviceView, DeviceViewMut, DeviceWrite};

use tilewright_core::device::Device;
use tilewright_core::target::{RunContext, RunOptions};

use crate::error::Error;
use crate::settings;

/// Opens the default device; the crate that chooses it submits this entry through `inventory`.
#[derive(Clone, Copy)]
pub struct DefaultDevice {
    /// The name under which the device is found.
    pub name: &'static str,
    /// Opens it.
    pub open: fn() -> Result<Arc<dyn Device>, Error>,
}

inventory::collect!(DefaultDevice);

/// Devices that are opened when they are first asked for by name, such as `gpu:0`: their kind, a colon, and which of them. The crate
/// that knows them submits this entry through `inventory`.
#[derive(Clone, Copy)]
pub struct DeviceKind {
    /// The word before the colon.
    pub name: &'static str,
    /// Opens the device that the text behind the colon stands for.
    pub open: fn(&str) -> Result<Arc<dyn Device>, Error>,
}

inventory::collect!(DeviceKind);

/// A device of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(u32);

impl DeviceId {
    /// The device on which calls run that name no device.
    pub const DEFAULT: DeviceId = DeviceId(0);

    /// The device at an index among all devices.
    #[cfg(test)]
    pub(crate) fn at(index: u32) -> Self {
        DeviceId(index)
    }

    /// Its position among all devices, from 0.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A device that was added, and its name.
struct Added {
    name: String,
    device: Arc<dyn Device>,
}

/// Every device besides the default one.
static ADDED: RwLock<Vec<Added>> = RwLock::new(Vec::new());

/// The default device, opened now if it was not before.
///
/// # Errors
/// Why it cannot be opened; the same each time.
pub fn default_device() -> Result<Arc<dyn Device>, Error> {
    static DEVICE: OnceLock<Result<Arc<dyn Device>, Error>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| (default_entry()?.open)());
    device.clone()
}

fn default_entry() -> Result<&'static DefaultDevice, Error> {
    // Linking gives no order; the order of the names is the same everywhere.
    let first = inventory::iter::<DefaultDevice>().min_by_key(|entry| entry.name);
    first.ok_or(Error::NoDefaultDevice)
}

/// Adds a device under a name, such as `gpu:0`.
pub fn add(name: &str, device: Arc<dyn Device>) -> DeviceId {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    added.push(Added { name: name.to_owned(), device });
    DeviceId(u32::try_from(added.len()).expect("a process has few devices"))
}

/// The device with a name, which is opened now where it is one of a [kind](DeviceKind) and was not opened before.
///
/// # Errors
/// [`Error::UnknownDevice`] when there is none, or why it cannot be opened.
pub fn find(name: &str) -> Result<DeviceId, Error> {
    static OPENING: Mutex<()> = Mutex::new(());
    let known = |name: &str| match default_entry() {
        Ok(default) if default.name == name => Some(DeviceId::DEFAULT),
        _ => find_added(name),
    };
    if let Some(id) = known(name) {
        return Ok(id);
    }
    let Some((kind, which)) = kind_of(name) else { return Err(unknown_name(name)) };
    // Of several threads that ask for it, one opens it.
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    match known(name) {
        Some(id) => Ok(id),
        None => Ok(add(name, (kind.open)(which)?)),
    }
}

/// The device that was added last under a name: a device that failed is opened anew under its old one.
fn find_added(name: &str) -> Option<DeviceId> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let position = added.iter().rposition(|known| known.name == name)?;
    Some(DeviceId(position as u32 + 1))
}

/// The kind that a name belongs to, and the text behind the colon.
fn kind_of(name: &str) -> Option<(&'static DeviceKind, &str)> {
    let (kind, which) = name.split_once(':')?;
    inventory::iter::<DeviceKind>().find(|known| known.name == kind).map(|known| (known, which))
}

#[cold]
fn unknown_name(name: &str) -> Error {
    let mut known: Vec<String> = default_entry().map(|entry| entry.name.to_owned()).into_iter().collect();
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    known.extend(added.iter().map(|known| known.name.clone()));
    known.extend(inventory::iter::<DeviceKind>().map(|kind| format!("{}:NUMBER", kind.name)));
    Error::UnknownDevice { name: name.to_owned(), known: known.join(", ") }
}

/// The name of a device, by which [`find`] finds it, in another process of this program as well.
///
/// # Errors
/// As [`device`].
pub fn name(id: DeviceId) -> Result<String, Error> {
    let Some(position) = id.index().checked_sub(1) else { return Ok(default_entry()?.name.to_owned()) };
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added.get(position).map(|known| known.name.clone()).ok_or_else(|| unknown(id))
}

/// A device.
///
/// # Errors
/// Why the default device cannot be opened.
pub fn device(id: DeviceId) -> Result<Arc<dyn Device>, Error> {
    let Some(position) = id.index().checked_sub(1) else { return default_device() };
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added.get(position).map(|known| Arc::clone(&known.device)).ok_or_else(|| unknown(id))
}

#[cold]
fn unknown(id: DeviceId) -> Error {
    Error::UnknownDevice { name: id.to_string(), known: "others".to_owned() }
}

/// The options of calls: as many threads as [`settings::threads`] says.
///
/// # Errors
/// [`Error::Environment`] when a setting of the environment is invalid.
#[inline]
pub fn run_options() -> Result<RunOptions, Error> {
    Ok(RunOptions::with_threads(settings::threads()?))
}

/// The context of schedules for the default device: its target, and runs on as many threads as calls use.
///
/// # Errors
/// [`Error::Environment`] when a setting of the environment is invalid.
pub fn run_context() -> Result<RunContext, Error> {
    run_context_of(DeviceId::DEFAULT)
}

/// As [`run_context`], for any device.
///
/// # Errors
/// As [`run_context`] and [`device`].
pub fn run_context_of(id: DeviceId) -> Result<RunContext, Error> {
    Ok(RunContext::new(device(id)?.target().clone(), run_options()?))
}

/// As [`run_context`], with another number of threads.
///
/// # Errors
/// As [`run_context`].
pub fn run_context_with_threads(threads: usize) -> Result<RunContext, Error> {
    Ok(RunContext::new(default_device()?.target().clone(), RunOptions::with_threads(threads)))
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.0)
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKind").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for DefaultDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultDevice").field("name", &self.name).finish_non_exhaustive()
    }
}
