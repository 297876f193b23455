//! Launches.

use std::sync::Arc;

use tilewright_ptx_sim::{Launch, LaunchError, Options};

use super::device::cost;
use super::table::Handle;
use super::work::Work;
use super::{Driver, report};
use crate::code::{Code, Outcome};

/// The extents of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
}

impl Driver {
    /// The offset and the size of each parameter of a function, and the size of all.
    pub(crate) fn parameters(&self, function: Handle) -> Outcome<(Vec<(u64, u64)>, u64)> {
        let kernel = &self.functions.get(function)?.kernel;
        let places = kernel.params.iter().map(|parameter| (parameter.offset, parameter.bytes)).collect();
        Ok((places, kernel.param_bytes))
    }

    pub(crate) fn launch(
        &mut self,
        function: Handle,
        extents: Extents,
        params: Vec<u8>,
        stream: Handle,
    ) -> Outcome {
        let stream = self.stream(stream)?;
        let Extents { grid, block, shared_bytes } = extents;
        let found = self.functions.get(function)?;
        let (module, kernel) = (found.module, Arc::clone(&found.name));
        if u64::from(shared_bytes) > found.most_dynamic_shared {
            return Err(Code::InvalidValue);
        }
        if self.modules.get(module)?.context != self.streams.get(stream)?.context {
            return Err(Code::InvalidContext);
        }
        let launch = Launch { grid, block, shared_bytes: u64::from(shared_bytes), params };
        let checked = self.modules.get_mut(module)?.loaded.check(&kernel, &launch);
        if let Err(error) = checked {
            eprintln!("mock driver: kernel `{kernel}` is not launched: {error}");
            return Err(refusal(&error));
        }
        self.submit(stream, Work::Launch { module, kernel, launch: Arc::new(launch) }).map(|_| ())
    }

    /// Executes a launch, and gives how long it takes.
    pub(crate) fn execute_launch(
        &mut self,
        device: usize,
        module: Handle,
        kernel: &str,
        launch: &Launch,
    ) -> Outcome<f64> {
        let settings = self.settings.as_ref().map_err(|_| Code::InvalidValue)?;
        let options = Options { seeds: settings.seeds.clone(), ..Options::default() };
        let loaded = &mut self.modules.get_mut(module)?.loaded;
        let ran = loaded.run(kernel, launch, &mut self.devices[device].memory, &options);
        let outcome = ran.map_err(|error| refusal(&error))?;
        if let Some(file) = &settings.report {
            report::append(file, device, kernel, launch, &outcome);
        }
        report::print_faults(kernel, &outcome);
        match report::failure(&outcome) {
            Some(code) => Err(code),
            None => Ok(cost::kernel(&self.devices[device], &outcome.totals)),
        }
    }
}

fn refusal(error: &LaunchError) -> Code {
    match error {
        LaunchError::Memory(_) => Code::OutOfMemory,
        LaunchError::UnknownKernel { .. } => Code::NotFound,
        _ => Code::InvalidValue,
    }
}
