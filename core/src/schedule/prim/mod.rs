//! The schedule primitives: one file each, in folders by kind, and one line in the list below.
//!
//! A primitive checks first and edits second: when it refuses, the program is as it was. The list
//! generates [`Instruction`], the closed and versioned vocabulary of traces.
//!
#![doc = include_str!("primitives.md")]

use smallvec::SmallVec;

use crate::intrinsic::IntrinsicSet;
use crate::program::Program;
use crate::schedule::argument::ArgumentVisitor;
use crate::schedule::rng::Rng;
use crate::schedule::rv::{Value, Values};
use crate::schedule::{Decision, ScheduleError};

/// The values of the variables that a primitive makes.
pub type Outputs = SmallVec<[Value; 4]>;

/// A schedule primitive.
pub trait Primitive: Sized {
    /// The word that names it in a trace.
    const NAME: &'static str;
    /// Whether it only looks: a pure step whose results are unused can be left out of a trace.
    const PURE: bool = false;
    /// Whether it may be applied to blocks with [ordered iterators](crate::stmt::IterKind::Ordered) and to the loops around
    /// them, because it keeps the order of their points or checks it.
    const KEEPS_ORDER: bool = Self::PURE;

    /// Visits every argument in the order of the text form.
    ///
    /// # Errors
    /// The errors of the visitor.
    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error>;

    /// Checks, then edits.
    ///
    /// # Errors
    /// When a precondition does not hold; the program is then unchanged.
    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError>;
}

/// The program and the trace that a primitive works on.
#[derive(Debug)]
pub struct Context<'a> {
    /// The program to edit.
    pub program: &'a mut Program,
    /// The values of the trace's variables.
    pub values: &'a Values,
    /// For sampling primitives: the decision to take, if it is given, and the one taken, afterwards.
    pub decision: &'a mut Option<Decision>,
    /// For sampling primitives without a given decision.
    pub rng: &'a mut Rng,
    /// The descriptions of tensor intrinsics that may be named.
    pub intrinsics: &'a IntrinsicSet,
}

/// The file of a primitive, whose documentation holds an example that is also a test.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The word that names the primitive in a trace.
    pub name: &'static str,
    /// The path of the file, below the folder of primitives.
    pub path: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! primitives {
    ($($(#[$doc:meta])* $folder:ident { $($module:ident :: $name:ident,)* })*) => {
        $(
            $(#[$doc])*
            mod $folder {
                $(mod $module; pub use $module::$name;)*
            }
            pub use $folder::{$($name),*};
        )*

        primitives! { @list $($($folder / $module :: $name,)*)* }
    };
    (@list $($folder:ident / $module:ident :: $name:ident,)*) => {
        /// One primitive with its arguments.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Instruction {
            $(
                #[doc = concat!("See [`", stringify!($name), "`].")]
                $name($name),
            )*
        }

        $(impl From<$name> for Instruction {
            fn from(primitive: $name) -> Self {
                Instruction::$name(primitive)
            }
        })*

        impl Instruction {
            /// Every primitive, in the order of the list.
            pub const ALL: &'static [Source] = &[$(Source {
                name: <$name as Primitive>::NAME,
                path: concat!(stringify!($folder), "/", stringify!($module), ".rs"),
                text: include_str!(concat!(stringify!($folder), "/", stringify!($module), ".rs")),
            }),*];

            /// The primitive of a name, with default arguments, ready to be filled in.
            pub fn named(name: &str) -> Option<Instruction> {
                match name {
                    $(<$name as Primitive>::NAME => Some(Instruction::$name($name::default())),)*
                    _ => None,
                }
            }

            /// The word that names the primitive in a trace.
            pub fn name(&self) -> &'static str {
                match self { $(Instruction::$name(_) => <$name as Primitive>::NAME,)* }
            }

            /// Whether the primitive only looks.
            pub fn is_pure(&self) -> bool {
                match self { $(Instruction::$name(_) => <$name as Primitive>::PURE,)* }
            }

            /// Whether the primitive keeps the order of recurrences, or checks it.
            pub fn keeps_order(&self) -> bool {
                match self { $(Instruction::$name(_) => <$name as Primitive>::KEEPS_ORDER,)* }
            }

            /// Visits every argument in the order of the text form.
            ///
            /// # Errors
            /// The errors of the visitor.
            pub fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
                match self { $(Instruction::$name(primitive) => primitive.arguments(visitor),)* }
            }

            pub(crate) fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
                match self { $(Instruction::$name(primitive) => primitive.apply(context),)* }
            }
        }
    };
}

primitives! {
    /// Finds blocks and loops.
    query {
        get_block::GetBlock,
        get_loops::GetLoops,
        get_child_blocks::GetChildBlocks,
        get_producers::GetProducers,
        get_consumers::GetConsumers,
    }
    /// Draws decisions.
    sample {
        sample_perfect_tile::SamplePerfectTile,
        sample_covering_tile::SampleCoveringTile,
        sample_partitioned_tile::SamplePartitionedTile,
        sample_categorical::SampleCategorical,
        sample_compute_location::SampleComputeLocation,
    }
    /// Transforms loops, and says how they are executed.
    loops {
        split::Split,
        fuse::Fuse,
        reorder::Reorder,
        sink_loop::SinkLoop,
        merge::Merge,
        loop_partition::LoopPartition,
        add_unit_loop::AddUnitLoop,
        parallel::Parallel,
        bind::Bind,
        vectorize::Vectorize,
        unroll::Unroll,
    }
    /// Moves blocks: to other loops, or into other blocks.
    location {
        compute_at::ComputeAt,
        reverse_compute_at::ReverseComputeAt,
        compute_inline::ComputeInline,
        reverse_compute_inline::ReverseComputeInline,
    }
    /// Transforms what a block computes.
    block {
        blockize::Blockize,
        tensorize::Tensorize,
        rfactor::RFactor,
        privatize::Privatize,
        update_atomically::UpdateAtomically,
        decompose_reduction::DecomposeReduction,
        decompose_padding::DecomposePadding,
        fuse_reduction_epilogue::FuseReductionEpilogue,
        transform_block_layout::TransformBlockLayout,
        reorder_block_iter_var::ReorderBlockIterVar,
        pad_einsum::PadEinsum,
        split_products::SplitProducts,
        round_products::RoundProducts,
        offset_products::OffsetProducts,
    }
    /// Copies operands and results, and lays out buffers.
    memory {
        cache_read::CacheRead,
        cache_write::CacheWrite,
        cache_inplace::CacheInplace,
        reindex::Reindex,
        reindex_cache_read::ReindexCacheRead,
        reindex_cache_write::ReindexCacheWrite,
        transform_layout::TransformLayout,
        set_scope::SetScope,
        storage_align::StorageAlign,
        storage_swizzle::StorageSwizzle,
        stream_writes::StreamWrites,
    }
    /// Annotates, and marks steps of a trace.
    annotation {
        annotate::Annotate,
        unannotate::Unannotate,
        prefetch::Prefetch,
        software_pipeline::SoftwarePipeline,
        enter_postproc::EnterPostproc,
    }
}
