//! The table itself: the rows of all folders, and how to find one.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::operator::{
    Operator, collection, elementwise, index, linear, normalise, pool, quantise, recurrent, reduce, resample,
    shape, signal,
};

/// The folders' tables.
static TABLES: &[&[&[Operator]]] = &[
    elementwise::TABLES,
    reduce::TABLES,
    shape::TABLES,
    index::TABLES,
    linear::TABLES,
    pool::TABLES,
    normalise::TABLES,
    recurrent::TABLES,
    resample::TABLES,
    quantise::TABLES,
    signal::TABLES,
    collection::TABLES,
];

/// All operators.
pub fn all() -> impl Iterator<Item = &'static Operator> {
    TABLES.iter().copied().flatten().copied().flatten()
}

static BY_NAME: LazyLock<FxHashMap<&str, &Operator>> =
    LazyLock::new(|| all().map(|operator| (operator.name, operator)).collect());

static BY_ONNX_NAME: LazyLock<FxHashMap<(&str, &str), &Operator>> =
    LazyLock::new(|| all().map(|operator| ((operator.domain, operator.onnx), operator)).collect());

/// The operator of a name in the text form.
pub fn find(name: &str) -> Option<&'static Operator> {
    BY_NAME.get(name).copied()
}

/// The operator of a name in one of ONNX's operator sets; `""` is ONNX's own.
pub fn find_onnx(domain: &str, name: &str) -> Option<&'static Operator> {
    BY_ONNX_NAME.get(&(domain, name)).copied()
}

static POINTWISE: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    let rows = elementwise::TABLES.iter().copied().flatten().chain(quantise::POINTWISE);
    rows.map(|operator| operator.name).collect()
});

/// Whether an operator computes each element from one element of each input.
pub fn is_pointwise(operator: &Operator) -> bool {
    POINTWISE.contains(operator.name)
}

static PRODUCTS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| linear::PRODUCTS.iter().copied().flatten().map(|operator| operator.name).collect());

/// Whether an operator sums up products of its first two inputs, of which the second often is weights.
pub fn is_product(operator: &Operator) -> bool {
    PRODUCTS.contains(operator.name)
}

static REDUCTIONS: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    let rows = reduce::REDUCTIONS.iter().chain(pool::GLOBAL);
    rows.map(|operator| operator.name).collect()
});

/// Whether an operator reduces dimensions of its first input and reads each element once.
pub fn is_reduction(operator: &Operator) -> bool {
    REDUCTIONS.contains(operator.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        assert_eq!(BY_NAME.len(), all().count());
        assert_eq!(BY_ONNX_NAME.len(), all().count());
        for operator in all() {
            let mut names: Vec<&str> = operator.attributes.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), operator.attributes.len(), "{}", operator.name);
        }
    }
}
