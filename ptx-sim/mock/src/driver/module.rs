//! Modules and functions.

use std::sync::Arc;

use tilewright_ptx_sim::{Kernel, Loaded, Module};

use super::Driver;
use super::table::Handle;
use crate::code::{Code, Outcome};
use crate::settings;

/// A module in the memory of a device.
pub(crate) struct LoadedModule {
    pub(crate) context: Handle,
    pub(crate) loaded: Loaded,
}

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) module: Handle,
    pub(crate) name: Arc<str>,
    pub(crate) kernel: Arc<Kernel>,
    /// Bytes of shared memory that a launch may ask for.
    pub(crate) most_dynamic_shared: u64,
}

/// Attributes of functions that are known here, by their numbers in `CUfunction_attribute`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FunctionAttribute {
    MaxThreadsPerBlock,
    SharedBytes,
    ConstantBytes,
    LocalBytes,
    PtxVersion,
    BinaryVersion,
    CacheMode,
    MaxDynamicSharedBytes,
    SharedCarveout,
}

impl FunctionAttribute {
    /// The attribute of a number. That of registers is missing: the simulator allocates none.
    pub(crate) fn of(number: u32) -> Outcome<FunctionAttribute> {
        Ok(match number {
            0 => Self::MaxThreadsPerBlock,
            1 => Self::SharedBytes,
            2 => Self::ConstantBytes,
            3 => Self::LocalBytes,
            4 => return Err(Code::NotSupported),
            5 => Self::PtxVersion,
            6 => Self::BinaryVersion,
            7 => Self::CacheMode,
            8 => Self::MaxDynamicSharedBytes,
            9 => Self::SharedCarveout,
            _ => return Err(Code::InvalidValue),
        })
    }
}

/// Static shared memory that a block may have without asking for more.
const PLAIN_SHARED: u64 = 48 << 10;

/// The PTX ISA that a driver of a CUDA version knows: the table "PTX Release History" of the PTX ISA.
fn newest_ptx(driver: u32) -> (u32, u32) {
    match (driver / 1000, driver % 1000 / 10) {
        (..=10, _) => (6, 5),
        (11, minor) => (7, minor.min(8)),
        (12, minor @ 0..=5) => (8, minor),
        (12, 6) => (8, 5),
        (12, 7 | 8) => (8, 7),
        (12, _) => (8, 8),
        (_, minor) => (9, minor),
    }
}

impl Driver {
    /// Loads a module; what is wrong with it is added to the log as the driver's assembler words it.
    pub(crate) fn load_module(&mut self, text: &str, log: &mut String) -> Outcome<Handle> {
        let context = self.usable()?;
        let device = self.context(context)?.device;
        let newest = newest_ptx(self.version()?);
        let mut complain = |line: u32, problem: &str| {
            log.push_str(&format!("ptxas application ptx input, line {line}; error   : {problem}\n"));
            log.push_str("ptxas fatal   : Ptx assembly aborted due to errors\n");
        };
        let module = Module::parse(text).map_err(|error| {
            complain(error.line, &error.message);
            Code::InvalidPtx
        })?;
        if module.version() > newest {
            let ((major, minor), (known, known_minor)) = (module.version(), newest);
            complain(1, &format!("PTX {major}.{minor} is newer than {known}.{known_minor} of this driver"));
            return Err(Code::UnsupportedPtxVersion);
        }
        let capability = self.devices[device].settings.capability;
        if !runs_on(module.target(), capability) {
            let (major, minor) = capability;
            complain(1, &format!("code for {} does not run on sm_{major}{minor}", module.target()));
            return Err(Code::InvalidPtx);
        }
        // As the driver does, look for faults of all kernels now and not when one of them is launched.
        for name in module.kernels() {
            module.kernel(name).map_err(|error| {
                let tilewright_ptx_sim::LaunchError::Code(error) = error else { return Code::InvalidPtx };
                complain(error.line, &error.message);
                Code::InvalidPtx
            })?;
        }
        let loaded = module.load(&mut self.devices[device].memory).map_err(|_| Code::OutOfMemory)?;
        Ok(self.modules.insert(LoadedModule { context, loaded }))
    }

    pub(crate) fn unload_module(&mut self, handle: Handle) -> Outcome {
        let context = self.modules.get(handle)?.context;
        if self.context(context)?.failure.is_none() {
            self.synchronise_device(self.context(context)?.device)?;
        }
        self.remove_module(handle)
    }

    pub(crate) fn remove_module(&mut self, handle: Handle) -> Outcome {
        let module = self.modules.remove(handle)?;
        for function in self.functions.find(|function| function.module == handle) {
            self.functions.remove(function)?;
        }
        // The context may be gone already, and its memory with it.
        if let Ok(context) = self.context(module.context) {
            let device = context.device;
            module.loaded.unload(&mut self.devices[device].memory);
        }
        Ok(())
    }

    pub(crate) fn function(&mut self, handle: Handle, name: &str) -> Outcome<Handle> {
        let module = self.modules.get(handle)?;
        self.check_context(module.context)?;
        if let Some(known) =
            self.functions.find(|function| function.module == handle && *function.name == *name).first()
        {
            return Ok(*known);
        }
        let kernel = module.loaded.module().kernel(name).map_err(|_| Code::NotFound)?;
        let most_dynamic_shared = PLAIN_SHARED.saturating_sub(kernel.static_shared_bytes);
        let function =
            Function { module: handle, name: name.into(), kernel: Arc::new(kernel), most_dynamic_shared };
        Ok(self.functions.insert(function))
    }

    /// The address and the size of a variable of a module.
    pub(crate) fn variable(&self, handle: Handle, name: &str) -> Outcome<(u64, u64)> {
        let module = self.modules.get(handle)?;
        self.check_context(module.context)?;
        module.loaded.variable(name).ok_or(Code::NotFound)
    }

    pub(crate) fn function_attribute(&self, handle: Handle, attribute: FunctionAttribute) -> Outcome<i32> {
        let function = self.functions.get(handle)?;
        let module = self.modules.get(function.module)?;
        let (major, minor) = module.loaded.module().version();
        let device = self.context(module.context)?.device;
        let (generation, member) = self.devices[device].settings.capability;
        let kernel = &function.kernel;
        let threads = kernel.required_threads.or(kernel.most_threads).map(|extents| extents.iter().product());
        let value = match attribute {
            FunctionAttribute::MaxThreadsPerBlock => {
                threads.map_or(1024, |threads: u32| u64::from(threads.min(1024)))
            }
            FunctionAttribute::SharedBytes => kernel.static_shared_bytes,
            FunctionAttribute::LocalBytes => kernel.local_bytes,
            FunctionAttribute::ConstantBytes | FunctionAttribute::CacheMode => 0,
            FunctionAttribute::PtxVersion => u64::from(10 * major + minor),
            FunctionAttribute::BinaryVersion => u64::from(10 * generation + member),
            FunctionAttribute::MaxDynamicSharedBytes => function.most_dynamic_shared,
            FunctionAttribute::SharedCarveout => return Ok(-1),
        };
        i32::try_from(value).map_err(|_| Code::InvalidValue)
    }

    pub(crate) fn set_function_attribute(
        &mut self,
        handle: Handle,
        attribute: FunctionAttribute,
        value: i32,
    ) -> Outcome {
        let function = self.functions.get(handle)?;
        let context = self.modules.get(function.module)?.context;
        self.check_context(context)?;
        match attribute {
            FunctionAttribute::MaxDynamicSharedBytes => {
                let bytes = u64::try_from(value).map_err(|_| Code::InvalidValue)?;
                let device = self.context(context)?.device;
                let most = u64::from(self.devices[device].shared_opt_in());
                if function.kernel.static_shared_bytes + bytes > most {
                    return Err(Code::InvalidValue);
                }
                self.functions.get_mut(handle)?.most_dynamic_shared = bytes;
                Ok(())
            }
            FunctionAttribute::SharedCarveout if (-1..=100).contains(&value) => Ok(()),
            _ => Err(Code::InvalidValue),
        }
    }
}

/// Whether a device runs code for a target: that of an older one, or its own where the target ends in a letter.
fn runs_on(target: &str, capability: (u32, u32)) -> bool {
    match settings::capability(target) {
        Some(wanted) if target.ends_with('a') => wanted == capability,
        Some(wanted) => wanted <= capability,
        None => false,
    }
}
