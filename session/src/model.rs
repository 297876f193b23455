//! Loading: import, passes, groups, constants.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use tilewright_core::accuracy::Accuracy;
use tilewright_core::device::BufferArgument;
use tilewright_core::tensor::{AnyTensor, Loaded, SharedBytes, SourceError, StoredBytes};
use tilewright_graph::fuse::{Group, groups};
use tilewright_graph::ir::{Body, Function, Module, Operation, Type, ValueId};
use tilewright_graph::onnx;
use tilewright_graph::part::Part;
use tilewright_graph::pass::{StaysFloat, optimise, stays_float};
use tilewright_graph::tensor::HostTensor;
use tilewright_runtime::settings;

use crate::buckets::{Bucket, Buckets};
use crate::engine::Engines;
use crate::error::Error;
use crate::folder;
use crate::forms::Forms;
use crate::kernels::Kernels;

/// The name of the function that runs.
pub(crate) const MAIN: &str = "main";

/// A loaded model. Clones share everything, kernels too; so do all sessions of it, in several threads.
#[derive(Clone)]
pub struct Model {
    pub(crate) graph: Arc<Graph>,
}

/// A graph made ready for sessions.
pub(crate) struct Graph {
    pub(crate) module: Module,
    /// The groups of each body, by the first value that it binds.
    groups: FxHashMap<ValueId, (Vec<Group>, Part)>,
    constants: FxHashMap<ValueId, Constant>,
    pub(crate) forms: Forms,
    pub(crate) kernels: Kernels,
    pub(crate) engines: Arc<Engines>,
    pub(crate) buckets: Buckets,
    pub(crate) info: Info,
}

struct Constant {
    host: HostTensor,
    /// The same elements as kernels take them, with an identity under which they keep what they compute from them.
    kernel: OnceLock<Option<KernelConstant>>,
}

/// A constant as kernels take it.
pub(crate) enum KernelConstant {
    /// In aligned memory.
    Copied(AnyTensor),
    /// In the memory of the graph's constant, which is aligned.
    Shared(SharedBytes),
    /// In the model's file, for as long as no kernel reads it in each call.
    Stored(StoredBytes),
}

impl KernelConstant {
    fn of(host: &HostTensor) -> Option<Self> {
        if let Some(stored) = host.absent() {
            return Some(KernelConstant::Stored(stored));
        }
        let shared = host.share().map(KernelConstant::Shared);
        shared.or_else(|| host.to_kernel().map(KernelConstant::Copied))
    }

    /// The bytes of the elements, which stay in memory from now on.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn bytes(&self) -> Result<&[u8], SourceError> {
        Ok(match self {
            KernelConstant::Copied(tensor) => tensor.bytes(),
            KernelConstant::Shared(bytes) => bytes.bytes(),
            KernelConstant::Stored(stored) => stored.make_resident()?.bytes(),
        })
    }

    /// The elements in memory of their own, if they lie in the file alone.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn load(&self) -> Result<Option<Loaded>, SourceError> {
        match self {
            KernelConstant::Stored(stored) if stored.resident().is_none() => stored.load().map(Some),
            _ => Ok(None),
        }
    }

    /// The elements with an identity, under which kernels keep what they compute from them.
    pub(crate) fn argument(&self) -> BufferArgument<'_> {
        match self {
            KernelConstant::Copied(tensor) => BufferArgument::Identified(tensor.identified_bytes()),
            KernelConstant::Shared(bytes) => BufferArgument::Identified(bytes.identified_bytes()),
            KernelConstant::Stored(stored) => match stored.resident() {
                Some(resident) => BufferArgument::Identified(resident),
                None => BufferArgument::Stored(stored),
            },
        }
    }
}

/// The properties of a model.
#[derive(Clone, Debug)]
pub struct Info {
    /// The inputs, in order.
    pub inputs: Vec<Port>,
    /// The outputs, in order.
    pub outputs: Vec<Port>,
    /// The metadata of the file.
    pub metadata: BTreeMap<String, String>,
    /// Declarations of the file that contradict each other.
    pub warnings: Vec<String>,
    /// How many bindings the imported graph has.
    pub imported_bindings: usize,
    /// How many it has after all passes.
    pub bindings: usize,
    /// How many products are computed on integers that stand for numbers.
    pub integer_products: usize,
    /// The products of dequantised tensors that are computed in floats, and why.
    pub stays_float: Vec<StaysFloat>,
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its type: elements and shape.
    pub ty: Type,
}

impl Model {
    /// Loads an ONNX file, or a folder that [`pack`](crate::pack) made, whose records are used from now on.
    ///
    /// # Errors
    /// When it cannot be read or imported: all operators that are missing are named at once.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if path.is_dir() { folder::load(path) } else { Self::load_file(path) }
    }

    /// Loads an ONNX file.
    pub(crate) fn load_file(path: &Path) -> Result<Self, Error> {
        Self::from_onnx(&onnx::Model::read(path)?)
    }

    /// Makes a decoded ONNX file ready to run.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_onnx(file: &onnx::Model) -> Result<Self, Error> {
        let imported = file.import()?;
        let entries = file.proto().metadata_props.iter();
        let metadata = entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let warnings = imported.warnings.clone();
        let mut model = Self::from_function(&imported.function)?;
        let graph = Arc::get_mut(&mut model.graph).expect("nobody else has the new model");
        graph.info.metadata = metadata;
        graph.info.warnings = warnings;
        Ok(model)
    }

    /// Makes a graph ready to run.
    ///
    /// # Errors
    /// When a pass cannot rebuild it, or an environment variable of [`tilewright_runtime::settings`] has a value without a meaning.
    pub fn from_function(function: &Function) -> Result<Self, Error> {
        settings::check().map_err(|error| Error::Setting(Box::new(error)))?;
        let mut optimised = optimise(function)?;
        let ports = |function: &Function, values: &[ValueId]| {
            let port = |&value: &ValueId| Port {
                name: function.describe(value),
                ty: function.value(value).ty.clone(),
            };
            values.iter().map(port).collect::<Vec<_>>()
        };
        let mut outputs = ports(&optimised, &optimised.body.results);
        // Passes may give a result another value's name; the names that count are those of the graph as it came.
        for (output, &result) in outputs.iter_mut().zip(&function.body.results) {
            output.name = function.describe(result);
        }
        let info = Info {
            inputs: ports(&optimised, &optimised.body.parameters),
            outputs,
            metadata: BTreeMap::new(),
            warnings: Vec::new(),
            imported_bindings: tilewright_graph::pass::count(function),
            bindings: tilewright_graph::pass::count(&optimised),
            integer_products: integer_products(&optimised.body),
            stays_float: stays_float(function, &optimised)?,
        };
        leave_in_files(&mut optimised.body);
        let mut graph = Graph {
            groups: FxHashMap::default(),
            constants: FxHashMap::default(),
            forms: Forms::default(),
            kernels: Kernels::default(),
            engines: Arc::default(),
            buckets: Buckets::default(),
            info,
            module: Module::default(),
        };
        graph.survey(&optimised, &optimised.body);
        graph.module.functions.insert(MAIN.into(), optimised);
        Ok(Model { graph: Arc::new(graph) })
    }

    /// Sets the sizes of named extents that the model is tuned for. A call with a size between two of them runs the schedules for the greater one, in code that
    /// all sizes down to the next smaller one share; sizes beyond the last one are treated as if there were no buckets. This comes before the first session, and
    /// replaces earlier buckets.
    ///
    /// ```no_run
    /// # use tilewright_session::{Error, Model, Session};
    /// let model = Model::load("encoder.onnx")?.with_buckets(&["S=16,64,128,512".parse().unwrap()])?;
    /// let mut session = Session::new(&model);
    /// session.warm_up()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Bucket`] when no input has an extent of a name, it is given twice or has no bounds, there are more than 64 combinations of bounds, or the model
    /// is in use already.
    pub fn with_buckets(mut self, buckets: &[Bucket]) -> Result<Self, Error> {
        let own = Buckets::new(buckets, &self.info().inputs)?;
        let Some(graph) = Arc::get_mut(&mut self.graph) else {
            let name = buckets.first().map_or_else(String::new, |bucket| bucket.name.clone());
            let reason = "the model has sessions or clones already: buckets come before them".to_owned();
            return Err(Error::Bucket { name, reason });
        };
        graph.buckets = own;
        Ok(self)
    }

    /// The sizes of named extents that the model is tuned for.
    pub fn buckets(&self) -> Vec<Bucket> {
        self.graph.buckets.list()
    }

    /// Lets products of `f32` be formed less exactly where that is faster: each may be off by `relative` times itself, so that a sum is off by that much of
    /// the sum of its terms' magnitudes, besides what adding up in `f32` loses. This comes before the first session. Records of tuning count for the
    /// accuracy at which they were made.
    ///
    /// | from | a product may be |
    /// |---|---|
    /// | 0 | nine products of `bf16` pieces |
    /// | 6e-8 | six products of `bf16` pieces: as exact as a rounded product of `f32` |
    /// | 3.1e-5 | three products of `bf16` pieces |
    /// | 9.8e-4 | one of factors with eleven binary digits (`tf32`), on GPUs |
    /// | 7.9e-3 | one of factors rounded to `bf16` |
    ///
    /// CPUs use pieces where they have instructions for tiles or pairs of `bf16` that are faster than `f32`; see [`tilewright_core::accuracy`] for the
    /// bounds. Without an accuracy, products are those of `f32`.
    ///
    /// ```no_run
    /// # use tilewright_session::{Error, Model, Session};
    /// let model = Model::load("classifier.onnx")?.with_accuracy(1e-4)?;
    /// let mut session = Session::new(&model);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Accuracy`] when it is not at least 0 and less than 1, or the model is in use already.
    pub fn with_accuracy(mut self, relative: f64) -> Result<Self, Error> {
        let refuse = |reason| Error::Accuracy { relative, reason };
        let accuracy = Accuracy::new(relative);
        let accuracy = accuracy.ok_or_else(|| refuse("expected a number of at least 0 and less than 1"))?;
        let graph = Arc::get_mut(&mut self.graph);
        let graph =
            graph.ok_or_else(|| refuse("the model has sessions or clones already: it comes before them"))?;
        graph.forms = Forms::of(accuracy);
        Ok(self)
    }

    /// How far each product of `f32` may be off, relative to itself, if that was set.
    pub fn accuracy(&self) -> Option<f64> {
        self.graph.forms.accuracy().map(Accuracy::relative)
    }

    /// The properties of the model.
    pub fn info(&self) -> &Info {
        &self.graph.info
    }

    /// How many kernels have been made so far.
    pub fn kernels(&self) -> usize {
        self.graph.kernels.len()
    }
}

impl Graph {
    /// Finds groups and constants of a body and of those inside.
    fn survey(&mut self, function: &Function, body: &Body) {
        if let Some(first) = key(body) {
            let groups = groups(function, body);
            let whole = Part::whole(body, &groups);
            self.groups.insert(first, (groups, whole));
        }
        for binding in &body.bindings {
            if let Operation::Constant(host) = &binding.operation {
                self.constants
                    .insert(binding.outputs[0], Constant { host: host.clone(), kernel: OnceLock::new() });
            }
            binding.operation.bodies().into_iter().for_each(|inner| self.survey(function, inner));
        }
    }

    /// The function that runs.
    pub(crate) fn main(&self) -> &Function {
        &self.module.functions[MAIN]
    }

    /// The groups of a body in order.
    pub(crate) fn groups(&self, body: &Body) -> Option<&[Group]> {
        self.groups.get(&key(body)?).map(|(groups, _)| &groups[..])
    }

    /// A body as one part.
    pub(crate) fn whole(&self, body: &Body) -> Option<&Part> {
        self.groups.get(&key(body)?).map(|(_, whole)| whole)
    }

    /// The elements of a value that is the same in each run.
    pub(crate) fn constant(&self, value: ValueId) -> Option<&HostTensor> {
        self.constants.get(&value).map(|constant| &constant.host)
    }

    /// The same as kernels take it.
    pub(crate) fn kernel_constant(&self, value: ValueId) -> Option<&KernelConstant> {
        let constant = self.constants.get(&value)?;
        constant.kernel.get_or_init(|| KernelConstant::of(&constant.host)).as_ref()
    }
}

/// Takes constants out of memory that can be read from their files again: most are laid out by kernels for themselves, once.
fn leave_in_files(body: &mut Body) {
    for binding in &mut body.bindings {
        if let Operation::Constant(tensor) = &mut binding.operation
            && let Some(stored) = tensor.without_memory()
        {
            *tensor = stored;
        }
        binding.operation.bodies_mut().into_iter().for_each(leave_in_files);
    }
}

/// How many calls of a body, and of those inside, are products of integers.
fn integer_products(body: &Body) -> usize {
    const PRODUCTS: [&str; 4] = ["matmul_integer", "conv_integer", "qlinear_matmul", "qlinear_conv"];
    let own = |operation: &Operation| match operation {
        Operation::Call(call) => usize::from(PRODUCTS.contains(&call.operator.name)),
        other => other.bodies().into_iter().map(integer_products).sum(),
    };
    body.bindings.iter().map(|binding| own(&binding.operation)).sum()
}

/// The first value that a body binds: values are numbered through a whole function.
fn key(body: &Body) -> Option<ValueId> {
    body.bindings.first()?.outputs.first().copied()
}
