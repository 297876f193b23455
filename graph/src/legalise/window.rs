//! Windows that move over the spatial dimensions of a tensor.

use tilewright_core::build::Value;

use crate::legalise::emitter::Emitter;
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{moved, scaled};
use crate::legalise::scalar::add;
use crate::legalise::{Unsupported, unsupported};
use crate::operator::Window;
use crate::symbolic::SymInt;

/// Windows over spatial dimensions, and the extents of the result.
pub(super) struct Windows {
    /// For the present values of the dimensions.
    pub(super) fixed: Window,
    /// How many windows there are along each dimension.
    pub(super) output: Vec<SymInt>,
}

impl Windows {
    /// Reads the windows of a convolution or of pooling.
    pub(super) fn of(
        emitter: &Emitter,
        operands: &Operands<'_>,
        input: &[SymInt],
        kernel: &[usize],
    ) -> Result<Self, Unsupported> {
        let fixed = Window::of(&operands.attributes(), &emitter.present_sizes(input)?, kernel)?;
        let mut output = Vec::with_capacity(input.len());
        for (dimension, extent) in input.iter().enumerate() {
            let present = SymInt::from(fixed.output[dimension]);
            if extent.as_constant().is_some() {
                output.push(present);
                continue;
            }
            if operands.text("auto_pad") != "NOTSET" {
                unsupported!("automatic padding depends on the extent");
            }
            let stride = fixed.strides[dimension] as i64;
            if stride > 1 && operands.has("ceil_mode") && operands.flag("ceil_mode") {
                unsupported!("whether the number of windows is rounded up depends on the extent");
            }
            let span = (fixed.kernel[dimension] as i64 - 1) * fixed.dilations[dimension] as i64 + 1;
            let room = extent + &SymInt::from(fixed.before[dimension] + fixed.after[dimension] - span);
            if !emitter.at_most(&0.into(), &room)? {
                unsupported!("a window is larger than its input");
            }
            let count = &room.floor_div(&stride.into()) + &1.into();
            if emitter.present(&count) != Some(fixed.output[dimension] as i64) {
                unsupported!("the number of windows depends on the extent");
            }
            output.push(count);
        }
        Ok(Windows { fixed, output })
    }

    /// Leaves out the outer taps that meet padding in every window, as those of filters whose dilation exceeds the plane, and gives how many of
    /// them were in front, along each dimension of `input`. Where an extent depends on the call, all taps stay.
    pub(super) fn leave_out_taps(&mut self, input: &[SymInt]) -> Vec<usize> {
        let window = &mut self.fixed;
        let along = |(dimension, extent): (usize, &SymInt)| {
            let Some(extent) = extent.as_constant() else { return 0 };
            let (stride, dilation) = (window.strides[dimension], window.dilations[dimension]);
            let (kernel, before) = (window.kernel[dimension], window.before[dimension]);
            let meets = |tap: &usize| {
                let start = (tap * dilation) as i64 - before;
                (0..window.output[dimension])
                    .any(|place| (0..extent).contains(&((place * stride) as i64 + start)))
            };
            let (Some(first), Some(last)) = ((0..kernel).find(meets), (0..kernel).rfind(meets)) else {
                return 0;
            };
            // The first tap that stays may begin in the padding, but not inside the input.
            let fitting =
                |taps: usize, padding: i64| taps.min(usize::try_from(padding).unwrap_or(0) / dilation);
            let front = fitting(first, before);
            let back = fitting(kernel - 1 - last, window.after[dimension]);
            window.kernel[dimension] -= front + back;
            window.before[dimension] -= (front * dilation) as i64;
            window.after[dimension] -= (back * dilation) as i64;
            front
        };
        input.iter().enumerate().map(along).collect()
    }

    /// Where a place of a window lies in the input with its padding before it, along one dimension.
    pub(super) fn padded_place(&self, dimension: usize, window: &Value, tap: &Value) -> Value {
        let (stride, dilation) = (self.fixed.strides[dimension], self.fixed.dilations[dimension]);
        let start = scaled(window, stride as i64);
        if self.fixed.kernel[dimension] == 1 { start } else { add(&start, &scaled(tap, dilation as i64)) }
    }

    /// Where a place of a window lies in the input, along one dimension.
    pub(super) fn place(&self, dimension: usize, window: &Value, tap: &Value) -> Value {
        moved(&self.padded_place(dimension, window, tap), self.fixed.before[dimension])
    }

    /// How many places lie behind the input: its padding, or more where the last window reaches further. No window does along an extent that depends
    /// on the call.
    pub(super) fn behind(&self, dimension: usize) -> i64 {
        if !self.is_fixed(dimension) {
            return self.fixed.after[dimension];
        }
        let end = self.fixed.input[dimension] as i64 + self.fixed.before[dimension];
        self.fixed.after[dimension].max(self.reach(dimension) - end)
    }

    /// Whether some window reaches beyond the input.
    pub(super) fn has_padding(&self) -> bool {
        self.fixed.before.iter().chain(&self.fixed.after).any(|&padding| padding != 0) || self.overhangs()
    }

    /// Whether the last window reaches beyond the input and its padding, as when their number is rounded up.
    pub(super) fn overhangs(&self) -> bool {
        let fixed = (0..self.output.len()).filter(|&d| self.is_fixed(d));
        fixed
            .into_iter()
            .any(|d| self.reach(d) > self.fixed.input[d] as i64 + self.fixed.before[d] + self.fixed.after[d])
    }

    /// Whether the number of windows along a dimension is the same in each call.
    fn is_fixed(&self, dimension: usize) -> bool {
        self.output[dimension].as_constant().is_some()
    }

    /// The end of the last window, along one dimension.
    fn reach(&self, dimension: usize) -> i64 {
        let window = &self.fixed;
        let last = window.output[dimension].saturating_sub(1) * window.strides[dimension];
        (last + (window.kernel[dimension] - 1) * window.dilations[dimension] + 1) as i64
    }

    /// The extents of the window.
    pub(super) fn kernel(&self) -> Vec<SymInt> {
        self.fixed.kernel.iter().map(|&extent| extent.into()).collect()
    }
}
