//! Simplification of indices under the ranges of their variables.
