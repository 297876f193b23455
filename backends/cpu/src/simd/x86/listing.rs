//! Leaves as text.

use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

use crate::simd::Leaf;

/// The instructions of a leaf, one a line, with their offsets.
pub(crate) fn listing(leaf: &Leaf) -> String {
    let mut text = String::new();
    let mut decoder = Decoder::with_ip(64, &leaf.code[..leaf.instruction_bytes], 0, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let mut line = String::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        line.clear();
        formatter.format(&instruction, &mut line);
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {:5x}  {line}", instruction.ip());
    }
    text
}
