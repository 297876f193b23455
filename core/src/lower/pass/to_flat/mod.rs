//! To the `Flat` level: elements move into registers, values get the form that machines compute, buffers get one dimension.

pub(in crate::lower) mod choose_min_max;
pub(in crate::lower) mod contract_products;
pub(in crate::lower) mod decode_storage;
pub(in crate::lower) mod expand_functions;
pub(in crate::lower) mod flatten_buffers;
pub(in crate::lower) mod hoist_invariants;
pub(in crate::lower) mod promote_updates;
pub(in crate::lower) mod remove_dead_stores;
pub(in crate::lower) mod simplify;
pub(in crate::lower) mod stage_operands;
