//! The names that `--ops ALL` stands for.

use crate::opset;

/// A shape for each family that has none in the paper's set.
const SHAPES_OF_OTHERS: &[&str] = &[
    "GMM3:1x128x128x128",
    "GMM6:1x128x128x128",
    "GMM9:1x128x128x128",
    "QMM:128x768x768",
    "SMM:128x768x768",
    "UMM:128x768x768",
    "XMM:128x768x768",
    "QMW:128x768x768",
    "SMW:128x768x768",
    "HMM:128x768x768",
    "HMW:128x768x768",
    "HMR:128x768x768",
    "QCV:1x56x56x64x64x3x1x1",
    "CPY:4096x4096",
    "TRN:4096x4096",
    "ADD:4096x4096",
    "GBE:4096x768",
    "LNM:4096x768",
    "DOT:16777216",
    "ATT:12x128x128x64",
];

/// The names of the paper's set, and one of each other family.
pub(crate) fn whole_set() -> Vec<String> {
    opset::names().into_iter().chain(SHAPES_OF_OTHERS.iter().map(|name| (*name).to_owned())).collect()
}
