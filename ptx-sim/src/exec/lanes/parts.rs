//! Arithmetic of the four bytes or two halves of words (PTX ISA, 8.0, "SIMD Video Instructions").

use crate::exec::lanes::{Pure, pure};

/// An operation on each pair of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartOp {
    Add,
    Subtract,
    Average,
    Difference,
    Min,
    Max,
}

impl PartOp {
    const ALL: [(&str, PartOp); 6] = [
        ("vadd", PartOp::Add),
        ("vsub", PartOp::Subtract),
        ("vavrg", PartOp::Average),
        ("vabsdiff", PartOp::Difference),
        ("vmin", PartOp::Min),
        ("vmax", PartOp::Max),
    ];

    /// The operation of an opcode without its number of parts.
    pub(crate) fn named(name: &str) -> Option<PartOp> {
        PartOp::ALL.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
    }

    fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            PartOp::Add => a + b,
            PartOp::Subtract => a - b,
            // Rounded away from zero.
            PartOp::Average => (a + b + i64::from(a + b >= 0)) >> 1,
            PartOp::Difference => (a - b).abs(),
            PartOp::Min => a.min(b),
            PartOp::Max => a.max(b),
        }
    }
}

/// How an instruction treats words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mode {
    pub(crate) op: PartOp,
    pub(crate) are_bytes: bool,
    /// Whether the parts of the result and of the two sources are signed.
    pub(crate) signed: [bool; 3],
    /// Whether results are clamped to their type.
    pub(crate) saturates: bool,
    /// Whether the results are added to the third source.
    pub(crate) accumulates: bool,
}

impl Mode {
    /// As the last source of an operation.
    pub(crate) fn word(self) -> u64 {
        let flags = [
            self.are_bytes,
            self.saturates,
            self.accumulates,
            self.signed[0],
            self.signed[1],
            self.signed[2],
        ];
        let flags = flags.iter().enumerate().fold(0, |word, (bit, flag)| word | u64::from(*flag) << bit);
        let number = PartOp::ALL.iter().position(|(_, op)| *op == self.op).unwrap_or(0);
        flags | (number as u64) << 8
    }

    fn of_word(word: u64) -> Mode {
        let flag = |bit: u32| word >> bit & 1 == 1;
        Mode {
            op: PartOp::ALL[(word >> 8) as usize % PartOp::ALL.len()].1,
            are_bytes: flag(0),
            saturates: flag(1),
            accumulates: flag(2),
            signed: [flag(3), flag(4), flag(5)],
        }
    }

    fn of_words(self, a: u32, b: u32, c: u32) -> u32 {
        let bits = if self.are_bytes { 8 } else { 16 };
        let part = |word: u32, first: u32, signed: bool| {
            let low = i64::from(word >> first) & ((1 << bits) - 1);
            if signed && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
        };
        let range = match self.signed[0] {
            true => [-(1 << (bits - 1)), (1 << (bits - 1)) - 1],
            false => [0, (1 << bits) - 1],
        };
        let (mut word, mut sum) = (0, i64::from(c));
        for first in (0..32).step_by(bits as usize) {
            let [a, b] = [part(a, first, self.signed[1]), part(b, first, self.signed[2])];
            let mut result = self.op.apply(a, b);
            if self.saturates {
                result = result.clamp(range[0], range[1]);
            }
            sum += result;
            word |= (result as u32 & ((1 << bits) - 1)) << first;
        }
        if self.accumulates { sum as u32 } else { word }
    }
}

/// The operation, whose last source is a [`Mode::word`].
pub(crate) fn operation() -> Pure {
    pure!(|a: u32, b: u32, c: u32, mode: u64| Mode::of_word(mode).of_words(a, b, c))
}
