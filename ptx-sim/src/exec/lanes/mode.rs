//! Modes of floating-point instructions, as a word that is passed to lane functions as one more source.

use crate::exec::lanes::small::Rounding;

/// Rounding and clamping of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mode {
    pub(crate) rounding: Rounding,
    /// Subnormal sources and results become zero.
    pub(crate) flush: bool,
    /// Results are clamped to `[0, 1]`, and not a number becomes 0.
    pub(crate) saturate: bool,
    /// Negative results and not a number become 0.
    pub(crate) relu: bool,
    /// Results beyond the range become the largest finite value.
    pub(crate) finite: bool,
    /// Whether 16-bit values are bfloats.
    pub(crate) brain: bool,
    /// Minima and maxima are not a number where a source is none.
    pub(crate) propagate: bool,
}

impl Mode {
    /// To the nearest, with nothing else.
    pub(crate) const PLAIN: Mode = Mode {
        rounding: Rounding::Nearest,
        flush: false,
        saturate: false,
        relu: false,
        finite: false,
        brain: false,
        propagate: false,
    };

    /// The rounding that a modifier names.
    pub(crate) fn rounding(modifier: Option<&str>) -> Rounding {
        match modifier {
            Some("rz" | "rzi") => Rounding::Zero,
            Some("rm" | "rmi") => Rounding::Down,
            Some("rp" | "rpi") => Rounding::Up,
            Some("rna") => Rounding::NearestAway,
            _ => Rounding::Nearest,
        }
    }

    /// As a word.
    pub(crate) fn word(self) -> u64 {
        self.rounding as u64
            | u64::from(self.flush) << 3
            | u64::from(self.saturate) << 4
            | u64::from(self.relu) << 5
            | u64::from(self.finite) << 6
            | u64::from(self.brain) << 7
            | u64::from(self.propagate) << 8
    }

    /// From such a word.
    pub(crate) fn of(word: u32) -> Mode {
        let rounding = match word & 7 {
            1 => Rounding::NearestAway,
            2 => Rounding::Zero,
            3 => Rounding::Down,
            4 => Rounding::Up,
            _ => Rounding::Nearest,
        };
        let bit = |at: u32| word >> at & 1 != 0;
        Mode {
            rounding,
            flush: bit(3),
            saturate: bit(4),
            relu: bit(5),
            finite: bit(6),
            brain: bit(7),
            propagate: bit(8),
        }
    }
}
