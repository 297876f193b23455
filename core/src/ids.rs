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

impl LoopId {
    /// In place of a loop: leave the block where it is.
    pub const ROOT: LoopId = LoopId(u32::MAX);
    /// In place of a loop: inline the block into its consumers.
    pub const INLINE: LoopId = LoopId(u32::MAX - 1);
}
