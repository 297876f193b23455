//! Modules and launches.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::exec::build::link::{self, Linked};
use crate::exec::grid::{Extents, Grid, Setup};
use crate::memory::{Memory, MemoryError};
use crate::parse::{self, ParseError};
use crate::program::{FunctionId, InitialValue, Program, Space, VariableId};
use crate::report::{Collector, FaultKind, Remark, RemarkKind, Report, Spot};

/// A module of PTX. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Module {
    program: Arc<Program>,
}

/// A kernel, as a launch has to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Its parameters in order.
    pub params: Vec<Parameter>,
    /// Bytes of all parameters.
    pub param_bytes: u64,
    /// Bytes of static shared memory.
    pub static_shared_bytes: u64,
    /// The extents of a block that `.reqntid` asks for.
    pub required_threads: Option<[u32; 3]>,
    /// The extents of a block that `.maxntid` allows.
    pub most_threads: Option<[u32; 3]>,
    /// Bytes of local memory of a thread, without called functions.
    pub local_bytes: u64,
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its place among the parameters' bytes.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

/// A launch of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u64,
    /// The bytes of the parameters.
    pub params: Vec<u8>,
}

impl Default for Launch {
    /// One block of one thread without parameters.
    fn default() -> Launch {
        Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0, params: Vec::new() }
    }
}

/// How a kernel is executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// One schedule for each seed. With seed 0 warps run in a fixed order, with others in a random one. Results of all have to
    /// agree; memory has those of the first afterwards.
    pub seeds: Vec<u64>,
    /// A kernel that executes more instructions of threads is stopped.
    pub limit: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { seeds: vec![0, 1, 2], limit: 10_000_000_000 }
    }
}

/// Why a kernel was not executed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No kernel has this name.
    #[error("there is no kernel `{name}`: the module has {known}")]
    UnknownKernel {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Extents that no device accepts, or that the kernel excludes.
    #[error("{0}")]
    Extents(String),
    /// More shared memory than a block may have.
    #[error("{bytes} bytes of shared memory, of which {limit} are possible for {target}")]
    SharedMemory {
        /// Bytes that were asked for.
        bytes: u64,
        /// Bytes that a block may have.
        limit: u64,
        /// The target of the module.
        target: String,
    },
    /// Parameters of a wrong size.
    #[error("{given} bytes of parameters, but the kernel takes {wanted}")]
    Params {
        /// Bytes that were given.
        given: u64,
        /// Bytes that the kernel takes.
        wanted: u64,
    },
    /// Code that has no meaning.
    #[error(transparent)]
    Code(#[from] ParseError),
    /// Memory for the module's variables.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Addresses of a module's variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(FxHashMap<VariableId, u64>);

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    /// With the line of what is wrong or not known.
    pub fn parse(text: &str) -> Result<Module, ParseError> {
        Ok(Module { program: Arc::new(parse::parse(text)?) })
    }

    /// Names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.program.entries().map(|function| function.name.as_str())
    }

    /// The target that it is written for.
    pub fn target(&self) -> &str {
        &self.program.target
    }

    /// The version of the PTX ISA that it is written in: major and minor number.
    pub fn version(&self) -> (u32, u32) {
        self.program.version
    }

    fn find(&self, name: &str) -> Result<FunctionId, LaunchError> {
        let found = self.program.function_names.get(name).copied();
        let is_kernel = |id: &FunctionId| {
            let function = self.program.function(*id);
            function.is_entry && function.has_body
        };
        found.filter(is_kernel).ok_or_else(|| {
            let known: Vec<&str> = self.kernels().collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            LaunchError::UnknownKernel { name: name.to_owned(), known }
        })
    }

    /// The facts about a kernel that a launch needs.
    ///
    /// # Errors
    /// If there is no such kernel, or its code has no meaning.
    pub fn kernel(&self, name: &str) -> Result<Kernel, LaunchError> {
        let linked = link::link(&self.program, self.find(name)?)?;
        Ok(Kernel {
            params: linked
                .params
                .iter()
                .map(|param| Parameter { name: param.name.clone(), offset: param.offset, bytes: param.bytes })
                .collect(),
            param_bytes: linked.param_bytes,
            static_shared_bytes: linked.static_shared_bytes,
            required_threads: linked.required_threads,
            most_threads: linked.most_threads,
            local_bytes: linked.codes[0].local_bytes,
        })
    }

    /// Allocates the module's variables in global and constant memory, with their initial values. The address of each is given by
    /// its name.
    ///
    /// # Errors
    /// If memory does not suffice, or an initial value names what there is not.
    pub fn load(&self, memory: &mut Memory) -> Result<Loaded, LaunchError> {
        let mut addresses = FxHashMap::default();
        let mut contents = Vec::new();
        for (number, variable) in self.program.variables.iter().enumerate() {
            if !matches!(variable.space, Space::Global | Space::Constant) {
                continue;
            }
            let address = memory.allocate(variable.bytes, &variable.name)?;
            addresses.insert(VariableId(number as u32), address);
            contents.push((number, address));
        }
        for (number, address) in contents {
            let variable = &self.program.variables[number];
            let mut bytes = vec![0; variable.bytes as usize];
            for piece in &variable.initial {
                let value = self.initial_value(&piece.value, &addresses)?;
                let at = piece.offset as usize;
                let count = piece.bytes as usize;
                bytes[at..at + count].copy_from_slice(&value.to_le_bytes()[..count]);
            }
            memory.write(address, &bytes)?;
            if variable.space == Space::Constant {
                memory.make_constant(address);
            }
        }
        Ok(Loaded { module: self.clone(), variables: Variables(addresses), linked: FxHashMap::default() })
    }

    fn initial_value(
        &self,
        value: &InitialValue,
        addresses: &FxHashMap<VariableId, u64>,
    ) -> Result<u64, LaunchError> {
        let InitialValue::Address { name, offset, shift, .. } = value else {
            let InitialValue::Number(number) = value else { return Ok(0) };
            return Ok(*number);
        };
        let variable = self.program.variables.iter().position(|v| v.owner.is_none() && v.name == *name);
        let address = variable.and_then(|number| addresses.get(&VariableId(number as u32)));
        let function = self.program.function_names.get(name);
        let address = match (address, function) {
            (Some(address), _) => *address,
            (None, Some(id)) => crate::memory::FUNCTIONS | u64::from(id.0),
            (None, None) => {
                let message = format!("an initial value names `{name}`, which is not declared");
                return Err(ParseError::new(1, message).into());
            }
        };
        Ok(address.wrapping_add_signed(*offset) >> (8 * shift))
    }

    /// Executes a kernel; see [`Loaded::run`].
    ///
    /// # Errors
    /// If the launch has no meaning. The report holds the faults of the running kernel.
    pub fn run(
        &self,
        kernel: &str,
        launch: &Launch,
        memory: &mut Memory,
        options: &Options,
    ) -> Result<Report, LaunchError> {
        self.load(memory)?.run(kernel, launch, memory, options)
    }
}

/// A module whose variables are in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    module: Module,
    variables: Variables,
    /// Kernels that were launched, ready to be launched again.
    linked: FxHashMap<String, Arc<Linked>>,
}

impl Loaded {
    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Gives the memory of the variables back; `memory` has to be the one that the module was loaded into.
    pub fn unload(self, memory: &mut Memory) {
        for address in self.variables.0.values() {
            // The kernel cannot give variables back, so that each is still there.
            let freed = memory.free(*address);
            debug_assert!(freed.is_ok(), "a variable of a module is given back once");
        }
    }

    fn link(&mut self, kernel: &str) -> Result<Arc<Linked>, LaunchError> {
        if let Some(linked) = self.linked.get(kernel) {
            return Ok(Arc::clone(linked));
        }
        let linked = Arc::new(link::link(&self.module.program, self.module.find(kernel)?)?);
        self.linked.insert(kernel.to_owned(), Arc::clone(&linked));
        Ok(linked)
    }

    /// Says why a launch has no meaning, without executing anything.
    ///
    /// # Errors
    /// As [`Loaded::run`].
    pub fn check(&mut self, kernel: &str, launch: &Launch) -> Result<(), LaunchError> {
        check(&*self.link(kernel)?, launch, &self.module.program.target)
    }

    /// The address and the size of a variable.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let variables = &self.module.program.variables;
        let number = variables.iter().position(|v| v.owner.is_none() && v.name == name)?;
        let address = self.variables.0.get(&VariableId(number as u32))?;
        Some((*address, variables[number].bytes))
    }

    /// Executes a kernel with one schedule for each seed.
    ///
    /// # Errors
    /// If the launch has no meaning. The report holds the faults of the running kernel.
    pub fn run(
        &mut self,
        kernel: &str,
        launch: &Launch,
        memory: &mut Memory,
        options: &Options,
    ) -> Result<Report, LaunchError> {
        let linked = self.link(kernel)?;
        check(&linked, launch, &self.module.program.target)?;
        // Who accessed what in earlier launches would be copied with the memory, and takes many times as much of it.
        memory.forget_accesses();
        let before = (options.seeds.len() > 1).then(|| memory.clone());
        let mut collector = Collector::default();
        let mut report = None;
        for (round, seed) in options.seeds.iter().enumerate() {
            let start = match (&before, round) {
                (_, 0) | (None, _) => std::mem::take(memory),
                (Some(before), _) => before.clone(),
            };
            let setup = self.setup(launch, *seed, options.limit);
            let mut grid = Grid::new(&linked, start, setup, collector);
            grid.run(&linked);
            collector = std::mem::take(&mut grid.collector);
            let order_matters = grid.order_matters;
            let mut after = std::mem::take(&mut grid.memory);
            after.forget_accesses();
            if round == 0 {
                *memory = after;
                let (totals, remarks) = std::mem::take(&mut grid.traffic).finish();
                report = Some(Report {
                    findings: Vec::new(),
                    remarks,
                    instructions: grid.instructions,
                    totals,
                    seeds: options.seeds.clone(),
                    shared_bytes: grid.shared_bytes,
                });
            } else if let Some(report) = &mut report {
                compare(memory, &after, order_matters, &mut collector, &mut report.remarks);
            }
        }
        let mut report = report.unwrap_or_default();
        report.findings = collector.finish();
        Ok(report)
    }

    fn setup(&self, launch: &Launch, seed: u64, limit: u64) -> Setup {
        Setup {
            extents: Extents {
                grid: launch.grid,
                block: launch.block,
                dynamic_shared_bytes: launch.shared_bytes,
            },
            params: launch.params.clone(),
            variables: self.variables.0.clone(),
            seed,
            limit,
        }
    }
}

/// Adds what two schedules gave differently.
fn compare(
    first: &Memory,
    other: &Memory,
    order_matters: bool,
    collector: &mut Collector,
    remarks: &mut Vec<Remark>,
) {
    for (number, offset, count) in first.differences(other) {
        let name = &first.allocation(number).name;
        let message = format!(
            "{count} bytes of `{name}`, the first at offset {offset}, depend on the order in which warps run"
        );
        if !order_matters {
            let offset = Some(offset as i64);
            let spot = Spot::default();
            collector.add(FaultKind::OrderDependent, spot, number as u64, offset, || message);
        } else if !remarks.iter().any(|remark| remark.kind == RemarkKind::OrderDependent) {
            let message = format!("{message}: atomic operations of no fixed order explain it");
            let count = count as u64;
            remarks.push(Remark { kind: RemarkKind::OrderDependent, line: 0, count, message });
        }
    }
}

/// The largest shared memory of a block by target, from the table of compute capabilities in the CUDA programming guide.
fn most_shared(target: &str) -> u64 {
    let number = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let kib = match number.parse::<u32>().unwrap_or(0) {
        70 | 72 => 96,
        75 => 64,
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90.. => 227,
        _ => 48,
    };
    kib << 10
}

/// Checks the extents of a launch.
fn check(linked: &Linked, launch: &Launch, target: &str) -> Result<(), LaunchError> {
    let wrong = |message: String| Err(LaunchError::Extents(message));
    let [bx, by, bz] = launch.block;
    let [gx, gy, gz] = launch.grid;
    let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
    if threads == 0 || threads > 1024 || bz > 64 {
        return wrong(format!(
            "a block of {bx}×{by}×{bz} threads: 1 to 1024 are possible, at most 64 along z"
        ));
    }
    if gx == 0 || gy == 0 || gz == 0 || gx > i32::MAX as u32 || gy > 65_535 || gz > 65_535 {
        return wrong(format!(
            "a grid of {gx}×{gy}×{gz} blocks: at least 1 and at most 2147483647×65535×65535 are possible"
        ));
    }
    if u64::from(gx) * u64::from(gy) * u64::from(gz) > 1 << 26 {
        return wrong(format!("a grid of {gx}×{gy}×{gz} blocks is more than the simulator runs"));
    }
    if let Some(required) = linked.required_threads
        && required != launch.block
    {
        return wrong(format!("`.reqntid` asks for blocks of {required:?} threads, not {:?}", launch.block));
    }
    if let Some([x, y, z]) = linked.most_threads
        && threads > u64::from(x) * u64::from(y) * u64::from(z)
    {
        return wrong(format!(
            "`.maxntid` allows {} threads, not {threads}",
            u64::from(x) * u64::from(y) * u64::from(z)
        ));
    }
    let (bytes, limit) = (linked.static_shared_bytes + launch.shared_bytes, most_shared(target));
    if bytes > limit || linked.static_shared_bytes > 48 << 10 {
        let limit = if bytes > limit { limit } else { 48 << 10 };
        return Err(LaunchError::SharedMemory { bytes, limit, target: target.to_owned() });
    }
    let given = launch.params.len() as u64;
    if given != linked.param_bytes {
        return Err(LaunchError::Params { given, wanted: linked.param_bytes });
    }
    Ok(())
}
