//! Typed identities of the things a program is made of.
//!
//! An id is stored *in* the node it names, so that it survives every edit around that node. Ids are
//! handed out by [`crate::program::Program`] in order, hence the same edits give the same ids.

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id_type!(
    /// A variable: a dimension, a run-time scalar, a loop variable or a block iterator.
    VarId, "v");
id_type!(
    /// A buffer: a parameter or an intermediate.
    BufferId, "buffer");
id_type!(
    /// A loop.
    LoopId, "loop");
id_type!(
    /// A block.
    BlockId, "block");
