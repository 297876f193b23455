//! Tilewright.
