//! The state of the driver. All of it is behind one lock; entry points take it, do one thing and give it back.
//!
//! | module | holds |
//! |---|---|
//! | `table` | handles |
//! | `device` | devices, their attributes, how long work takes |
//! | `context` | contexts, and which one is current in a thread |
//! | `memory`, `host` | device memory, page-locked memory of the host |
//! | `work`, `stream`, `event` | what was submitted, in which order it is executed, and when |
//! | `capture` | graphs, and recording them from streams |
//! | `module`, `launch` | PTX, kernels, launches |
//! | `report` | findings of the simulator |

mod capture;
mod context;
mod device;
mod event;
mod host;
mod launch;
mod memory;
mod module;
mod report;
mod stream;
mod table;
mod work;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Mutex};

use crate::VARIABLE;
use crate::code::{Code, Outcome};
use crate::settings::{Settings, SettingsError};

pub(crate) use capture::{CaptureMode, CaptureStatus};
pub(crate) use host::HostAddress;
pub(crate) use launch::Extents;
pub(crate) use module::FunctionAttribute;
pub(crate) use table::Handle;

use capture::{Capture, Graph};
use context::Context;
use device::Device;
use event::Event;
use host::PinnedMemory;
use module::{Function, LoadedModule};
use stream::Stream;
use table::Table;

/// Everything that the driver knows.
pub(crate) struct Driver {
    settings: Result<Settings, SettingsError>,
    is_initialised: bool,
    devices: Vec<Device>,
    contexts: Table<Context>,
    streams: Table<Stream>,
    events: Table<Event>,
    modules: Table<LoadedModule>,
    functions: Table<Function>,
    graphs: Table<Graph>,
    executables: Table<Graph>,
    captures: Table<Capture>,
    pools: Table<usize>,
    pinned: PinnedMemory,
    /// Pieces of work that were submitted to any stream.
    submitted: u64,
}

static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    Mutex::new(Driver::new(text.parse()))
});

thread_local! {
    /// Whether this thread executes a function of the program on behalf of a stream.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Does something with the driver. A panic, which is a bug of the driver, becomes an error code.
pub(crate) fn with(action: impl FnOnce(&mut Driver) -> Outcome) -> Code {
    if IN_CALLBACK.get() {
        return Code::NotPermitted;
    }
    let guarded = catch_unwind(AssertUnwindSafe(|| match DRIVER.lock() {
        Ok(mut driver) => action(&mut driver),
        Err(_) => Err(Code::Unknown),
    }));
    match guarded {
        Ok(Ok(())) => Code::Success,
        Ok(Err(code)) => code,
        Err(_) => Code::Unknown,
    }
}

/// As [`with`], for all that needs `cuInit` to have succeeded.
pub(crate) fn with_initialised(action: impl FnOnce(&mut Driver) -> Outcome) -> Code {
    with(|driver| if driver.is_initialised { action(driver) } else { Err(Code::NotInitialized) })
}

impl Driver {
    fn new(settings: Result<Settings, SettingsError>) -> Driver {
        Driver {
            settings,
            is_initialised: false,
            devices: Vec::new(),
            contexts: Table::new(1),
            streams: Table::new(2),
            events: Table::new(3),
            modules: Table::new(4),
            functions: Table::new(5),
            graphs: Table::new(6),
            executables: Table::new(7),
            captures: Table::new(8),
            pools: Table::new(9),
            pinned: PinnedMemory::default(),
            submitted: 0,
        }
    }

    /// Replaces the settings, before the first use.
    pub(crate) fn configure(&mut self, text: &str) -> Outcome {
        if self.is_initialised {
            return Err(Code::IllegalState);
        }
        self.settings = text.parse();
        match &self.settings {
            Ok(_) => Ok(()),
            Err(error) => {
                eprintln!("mock driver: {error}");
                Err(Code::InvalidValue)
            }
        }
    }

    /// `cuInit`.
    pub(crate) fn initialise(&mut self) -> Outcome {
        let settings = self.settings.as_ref().map_err(|error| {
            eprintln!("mock driver: {error}");
            Code::InvalidValue
        })?;
        if settings.devices.is_empty() {
            return Err(Code::NoDevice);
        }
        if !self.is_initialised {
            let numbered = (0..).zip(&settings.devices);
            self.devices = numbered.map(|(number, device)| Device::new(number, device.clone())).collect();
            for number in 0..self.devices.len() {
                self.pools.insert(number);
            }
            self.is_initialised = true;
        }
        Ok(())
    }

    /// The CUDA version that the settings ask for.
    pub(crate) fn version(&self) -> Outcome<u32> {
        self.settings.as_ref().map(|settings| settings.driver).map_err(|_| Code::InvalidValue)
    }

    pub(crate) fn device_count(&self) -> usize {
        self.devices.len()
    }

    fn device(&self, number: i32) -> Outcome<&Device> {
        let number = usize::try_from(number).map_err(|_| Code::InvalidDevice)?;
        self.devices.get(number).ok_or(Code::InvalidDevice)
    }

    /// Whether there is a device of this number.
    pub(crate) fn check_device(&self, number: i32) -> Outcome {
        self.device(number).map(|_| ())
    }

    pub(crate) fn device_name(&self, number: i32) -> Outcome<&str> {
        Ok(&self.device(number)?.settings.name)
    }

    pub(crate) fn device_attribute(&self, number: i32, attribute: i32) -> Outcome<i32> {
        self.device(number)?.attribute(attribute)
    }

    pub(crate) fn device_memory(&self, number: i32) -> Outcome<u64> {
        Ok(self.device(number)?.settings.memory)
    }

    /// The memory pool of a device. There is one each, which holds nothing back.
    pub(crate) fn device_pool(&self, number: i32) -> Outcome<Handle> {
        self.check_device(number)?;
        self.pools.find(|device| *device == number as usize).first().copied().ok_or(Code::Unknown)
    }

    /// The device of a memory pool.
    pub(crate) fn pool_device(&self, pool: Handle) -> Outcome<usize> {
        self.pools.get(pool).copied().map_err(|_| Code::InvalidValue)
    }
}
