//! Every annotation that has a meaning: its name, the type of its value, and who reads it.
//!
//! An annotation is a named hint on a block or a loop. None changes a result. Schedule rules annotate blocks,
//! postprocessors turn these annotations into primitives or into annotations of loops, and lowering and backends read those of loops.
//!
//! Rules of other crates may annotate under names of their own, which nothing here reads or checks. Such a name has a dot,
//! `my_crate.rows_at_once`, because no name of this table has one.

use std::marker::PhantomData;

use crate::stmt::{Annotation, Annotations, Symbol};

/// The largest distance of a [`PREFETCH`], in iterations.
pub const MAX_PREFETCH: i64 = 1024;

/// The type of an annotation's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// [`Annotation::Int`].
    Int,
    /// [`Annotation::Text`].
    Text,
    /// [`Annotation::Numbers`].
    Numbers,
}

impl ValueType {
    /// That of a value.
    pub const fn of(value: &Annotation) -> Self {
        match value {
            Annotation::Int(_) => ValueType::Int,
            Annotation::Text(_) => ValueType::Text,
            Annotation::Numbers(_) => ValueType::Numbers,
        }
    }

    /// In words, for messages.
    pub const fn text(self) -> &'static str {
        match self {
            ValueType::Int => "an integer",
            ValueType::Text => "a text",
            ValueType::Numbers => "a list of integers",
        }
    }
}

/// A type that an annotation's value is read as.
pub trait AnnotationValue: Sized {
    /// The type in which the value is stored.
    const TYPE: ValueType;

    /// The value of an annotation; `None` when it is of another type.
    fn read(value: &Annotation) -> Option<Self>;

    /// The annotation of a value.
    fn write(self) -> Annotation;
}

impl AnnotationValue for i64 {
    const TYPE: ValueType = ValueType::Int;

    fn read(value: &Annotation) -> Option<Self> {
        if let Annotation::Int(number) = value { Some(*number) } else { None }
    }

    fn write(self) -> Annotation {
        Annotation::Int(self)
    }
}

/// Stored as 0 or 1.
impl AnnotationValue for bool {
    const TYPE: ValueType = ValueType::Int;

    fn read(value: &Annotation) -> Option<Self> {
        i64::read(value).map(|number| number != 0)
    }

    fn write(self) -> Annotation {
        Annotation::Int(i64::from(self))
    }
}

impl AnnotationValue for Symbol {
    const TYPE: ValueType = ValueType::Text;

    fn read(value: &Annotation) -> Option<Self> {
        if let Annotation::Text(text) = value { Some(text.clone()) } else { None }
    }

    fn write(self) -> Annotation {
        Annotation::Text(self)
    }
}

impl AnnotationValue for Vec<i64> {
    const TYPE: ValueType = ValueType::Numbers;

    fn read(value: &Annotation) -> Option<Self> {
        if let Annotation::Numbers(numbers) = value { Some(numbers.clone()) } else { None }
    }

    fn write(self) -> Annotation {
        Annotation::Numbers(self)
    }
}

/// The name of an annotation whose value is of type `V`.
#[derive(Debug)]
pub struct Key<V> {
    name: &'static str,
    value: PhantomData<fn() -> V>,
}

impl<V> Clone for Key<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Key<V> {}

impl<V> AsRef<str> for Key<V> {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl<V: AnnotationValue> Key<V> {
    const fn new(name: &'static str) -> Self {
        Key { name, value: PhantomData }
    }

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The value; `None` when there is no such annotation, or its value is of another type.
    pub fn get(self, annotations: &Annotations) -> Option<V> {
        annotations.get(self.name).and_then(V::read)
    }

    /// Whether there is such an annotation.
    pub fn is_in(self, annotations: &Annotations) -> bool {
        annotations.contains_key(self.name)
    }

    /// Sets the value, in place of the one that is there.
    pub fn set(self, annotations: &mut Annotations, value: V) {
        annotations.insert(self.name.into(), value.write());
    }

    /// Removes the annotation, if there is one.
    pub fn remove(self, annotations: &mut Annotations) {
        annotations.remove(self.name);
    }

    /// Replaces the value, if there is one.
    pub fn update(self, annotations: &mut Annotations, change: impl FnOnce(V) -> V) {
        if let Some(value) = self.get(annotations) {
            self.set(annotations, change(value));
        }
    }
}

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $value:ty = $name:literal;)*) => {
        $($(#[$doc])* pub const $key: Key<$value> = Key::new($name);)*

        /// The names of all keys above, and the types of their values.
        pub const KEYS: &[(&str, ValueType)] = &[$(($name, <$value as AnnotationValue>::TYPE)),*];
    };
}

// Of blocks: written by rules, read by rules and postprocessors.
keys! {
    /// The structure of a block's tiles, such as `SSRSRS`: S for a level of spatial loops, R for one of reduction loops.
    TILING: Symbol = "tiling";
    /// The number of spatial and of reduction loops of a block that is tiled for blocks of threads, before it was tiled.
    TILED_LOOPS: Vec<i64> = "tiled_loops";
    /// The tensor intrinsic that is to compute the innermost tiles of a block.
    TENSORIZE: Symbol = "auto_tensorize";
    /// How many points a block had before zeros were added to its operands.
    OWN_POINTS: i64 = "own_points";
    /// How many tiles of its operands a block that is tiled for blocks of threads has in shared memory at once, all but one of them
    /// under way.
    COPY_STAGES: i64 = "copy_stages";
    /// How many elements a thread copies at once where the threads of a block copy a tile together.
    VECTOR_FETCH: i64 = "vector_fetch";
    /// Whether a block reads constant operands from copies that lie in the order of its loops.
    CONSTANT_LAYOUT: bool = "constant_layout";
    /// Whether a copy of an operand lies in panels, in the order in which inner loops read it.
    PANELS: bool = "panels";
    /// The most iterations of a nest's parallel loop; 1 for a serial nest.
    PARALLEL: i64 = "parallel";
    /// Whether threads share the steps of a recurrence where they could run recurrences of their own.
    PARALLEL_STEPS: bool = "parallel_steps";
    /// The most elements of a nest's vectorized loops.
    VECTORIZE: i64 = "vectorize";
    /// The most copies of a statement that unrolling may make in a nest.
    UNROLL: i64 = "unroll";
    /// How many iterations of a nest's innermost reduction loops are written out.
    UNROLL_REDUCTION: i64 = "unroll_reduction";
    /// How a block prefetches. The rule that offers it declares the choices.
    PREFETCH_CHOICE: i64 = "ahead";
    /// Whether a block writes its results around the caches.
    STREAM: bool = "stream";
    /// The rule that alone applies to a block; `none` for no rule at all.
    SCHEDULE_RULE: Symbol = "schedule_rule";
    /// `disable` for a block that no rule inlines.
    INLINE_RULE: Symbol = "inline_rule";
    /// Whether a block gets a random place in its consumer though it is a reduction.
    RANDOM_COMPUTE_PRODUCER: bool = "random_compute_producer";

    // Of loops: written by postprocessors and primitives, read by lowering and backends.
    /// How many iterations of a serial loop are written out in its body.
    UNROLL_FACTOR: i64 = "unroll_factor";
    /// The prefetch distance of a serial loop, in its iterations, up to [`MAX_PREFETCH`]. See
    /// [`Prefetch`](crate::schedule::prim::Prefetch).
    PREFETCH: i64 = "prefetch";
    /// Whether a serial loop prefetches for its sibling loops. See [`Prefetch`](crate::schedule::prim::Prefetch).
    PREFETCH_SIBLINGS: bool = "prefetch_beside";
    /// The stage of each statement of a pipelined loop, from 0. See [`SoftwarePipeline`](crate::schedule::prim::SoftwarePipeline).
    PIPELINE_STAGE: Vec<i64> = "software_pipeline_stage";
    /// The place of each statement of a pipelined loop among those that are executed together.
    PIPELINE_ORDER: Vec<i64> = "software_pipeline_order";
    /// The stages of a pipelined loop whose statements copy asynchronously into memory that threads share.
    PIPELINE_ASYNC: Vec<i64> = "software_pipeline_async_stages";
    /// The number of a statement of a pipelined loop: lowering marks statements by it until it carries the pipeline out.
    PIPELINE_STATEMENT: i64 = "software_pipeline_statement";
}

/// Checks the type of a value. Names that are not in the table may have any.
///
/// # Errors
/// The key, and the type that its value must be of.
pub fn check(name: &str, value: &Annotation) -> Result<(), (&'static str, ValueType)> {
    match KEYS.iter().find(|(key, _)| *key == name) {
        Some((key, expected)) if *expected != ValueType::of(value) => Err((key, *expected)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_leave_those_with_a_dot_to_other_crates() {
        for (position, (name, _)) in KEYS.iter().enumerate() {
            assert!(!name.contains('.'), "{name}");
            assert!(KEYS[..position].iter().all(|(other, _)| other != name), "{name}");
        }
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut annotations = Annotations::new();
        PREFETCH.set(&mut annotations, 3);
        PANELS.set(&mut annotations, true);
        TILING.set(&mut annotations, "SSRSRS".into());
        PIPELINE_ORDER.set(&mut annotations, vec![1, 0]);
        PREFETCH.update(&mut annotations, |distance| distance + 1);
        assert_eq!(PREFETCH.get(&annotations), Some(4));
        assert_eq!(PANELS.get(&annotations), Some(true));
        assert_eq!(TILING.get(&annotations).as_deref(), Some("SSRSRS"));
        assert_eq!(PIPELINE_ORDER.get(&annotations), Some(vec![1, 0]));
        PREFETCH.remove(&mut annotations);
        assert!(!PREFETCH.is_in(&annotations));
    }

    #[test]
    fn a_value_of_another_type_is_refused_under_a_known_name_only() {
        let text = Annotation::Text("4".into());
        assert_eq!(check("prefetch", &text), Err(("prefetch", ValueType::Int)));
        assert_eq!(check("tiling", &text), Ok(()));
        assert_eq!(check("my_crate.prefetch", &text), Ok(()));
        let annotations = Annotations::from_iter([("prefetch".into(), text)]);
        assert_eq!(PREFETCH.get(&annotations), None);
    }
}
