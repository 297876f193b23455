//! Windows that move over the spatial dimensions of a tensor, as convolutions and pooling have them.

use crate::operator::evaluate::refuse;
use crate::operator::{Arguments, Fault};

/// Windows over spatial dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The extents of the input.
    pub(crate) input: Vec<usize>,
    /// The extents of the window.
    pub(crate) kernel: Vec<usize>,
    /// How far neighbouring windows lie apart.
    pub(crate) strides: Vec<usize>,
    /// How far neighbouring places of a window lie apart.
    pub(crate) dilations: Vec<usize>,
    /// How many places lie before the input.
    pub(crate) before: Vec<i64>,
    /// How many places lie behind the input.
    pub(crate) after: Vec<i64>,
    /// How many windows there are along each dimension.
    pub(crate) output: Vec<usize>,
}

/// Attributes that describe windows, but for `kernel_shape`.
pub(crate) struct Settings {
    pub(crate) strides: Vec<usize>,
    pub(crate) dilations: Vec<usize>,
    /// Before each dimension, then behind each.
    pub(crate) pads: Vec<i64>,
}

impl Settings {
    /// Reads the attributes `strides`, `dilations` and `pads` for a number of dimensions.
    pub(crate) fn read(arguments: &Arguments<'_>, rank: usize) -> Result<Self, Fault> {
        let positive = |name: &str| {
            let values = arguments.ints(name).map_or_else(|| vec![1; rank], <[i64]>::to_vec);
            if values.len() != rank || values.iter().any(|&value| value < 1) {
                refuse!("attribute {name} must have {rank} positive numbers, not {values:?}");
            }
            Ok(values.into_iter().map(|value| value as usize).collect())
        };
        let dilations = if arguments.operator.attribute("dilations").is_some() {
            positive("dilations")?
        } else {
            vec![1; rank]
        };
        let pads = arguments.ints("pads").map_or_else(|| vec![0; 2 * rank], <[i64]>::to_vec);
        if pads.len() != 2 * rank || pads.iter().any(|pad| pad.unsigned_abs() > 1 << 31) {
            refuse!("attribute pads must have {} numbers of a sensible size, not {pads:?}", 2 * rank);
        }
        Ok(Settings { strides: positive("strides")?, dilations, pads })
    }
}

impl Window {
    /// The windows of a convolution or of pooling.
    pub(crate) fn of(arguments: &Arguments<'_>, input: &[usize], kernel: &[usize]) -> Result<Self, Fault> {
        let rounds_up = arguments.operator.attribute("ceil_mode").is_some() && arguments.flag("ceil_mode");
        Window::placed(arguments, input, kernel, arguments.text("auto_pad"), rounds_up)
    }

    fn placed(
        arguments: &Arguments<'_>,
        input: &[usize],
        kernel: &[usize],
        mode: &str,
        rounds_up: bool,
    ) -> Result<Self, Fault> {
        let rank = input.len();
        if kernel.len() != rank || kernel.contains(&0) {
            refuse!("a window of extents {kernel:?} does not fit spatial dimensions {input:?}");
        }
        let Settings { strides, dilations, pads } = Settings::read(arguments, rank)?;
        let mut window = Window {
            input: input.to_vec(),
            kernel: kernel.to_vec(),
            strides,
            dilations,
            before: pads[..rank].to_vec(),
            after: pads[rank..].to_vec(),
            output: vec![0; rank],
        };
        for dimension in 0..rank {
            window.place(dimension, mode, rounds_up)?;
        }
        Ok(window)
    }

    /// Windows with neither the attribute `auto_pad` nor rounding up.
    pub(crate) fn plain(arguments: &Arguments<'_>, input: &[usize], kernel: &[usize]) -> Result<Self, Fault> {
        Window::placed(arguments, input, kernel, "NOTSET", false)
    }

    /// How many places of the input one window covers.
    fn span(&self, dimension: usize) -> Result<i64, Fault> {
        let span = (self.kernel[dimension] - 1)
            .checked_mul(self.dilations[dimension])
            .and_then(|span| span.checked_add(1));
        let span = span.and_then(|span| i64::try_from(span).ok()).filter(|&span| span < 1 << 40);
        span.ok_or_else(|| Fault("a window is too large".to_owned()))
    }

    /// Decides padding and number of windows along one dimension.
    fn place(&mut self, dimension: usize, mode: &str, rounds_up: bool) -> Result<(), Fault> {
        let (extent, stride) = (self.input[dimension] as i64, self.strides[dimension] as i64);
        let span = self.span(dimension)?;
        match mode {
            "NOTSET" | "" => {}
            "VALID" => (self.before[dimension], self.after[dimension]) = (0, 0),
            "SAME_UPPER" | "SAME_LOWER" => {
                let windows = (extent + stride - 1) / stride;
                let total = ((windows - 1) * stride + span - extent).max(0);
                let (less, more) = (total / 2, total - total / 2);
                let upper = mode == "SAME_UPPER";
                (self.before[dimension], self.after[dimension]) =
                    if upper { (less, more) } else { (more, less) };
            }
            other => {
                refuse!("attribute auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {other}")
            }
        }
        let room = extent + self.before[dimension] + self.after[dimension] - span;
        self.output[dimension] = if room < 0 {
            0
        } else if rounds_up {
            let windows = (room + stride - 1) / stride + 1;
            // A window that starts behind the input and the padding before it is left out.
            let last_starts_behind = (windows - 1) * stride >= extent + self.before[dimension];
            (windows - i64::from(last_starts_behind)) as usize
        } else {
            (room / stride + 1) as usize
        };
        Ok(())
    }

    /// The number of windows.
    pub(crate) fn windows(&self) -> Result<usize, Fault> {
        Ok(crate::tensor::count(&self.output)?)
    }

    /// The number of places of one window.
    pub(crate) fn size(&self) -> usize {
        self.kernel.iter().product()
    }

    /// The coordinates in the input of all places of a window, in row-major order.
    pub(crate) fn coordinates(&self, window: usize) -> impl Iterator<Item = Vec<i64>> + '_ {
        let starts: Vec<i64> = unravel(window, &self.output)
            .iter()
            .enumerate()
            .map(|(dimension, &place)| (place * self.strides[dimension]) as i64 - self.before[dimension])
            .collect();
        (0..self.size()).map(move |tap| {
            let tap = unravel(tap, &self.kernel);
            (0..starts.len()).map(|d| starts[d] + (tap[d] * self.dilations[d]) as i64).collect()
        })
    }

    /// The offsets in the input of all places of a window, in row-major order; `None` for places in the padding.
    pub(crate) fn taps(&self, window: usize) -> Vec<Option<usize>> {
        self.coordinates(window).map(|coordinates| self.offset(&coordinates)).collect()
    }

    /// The offset of a place, if it is inside the input.
    pub(crate) fn offset(&self, coordinates: &[i64]) -> Option<usize> {
        coordinates.iter().zip(&self.input).try_fold(0, |offset, (&coordinate, &extent)| {
            let inside = usize::try_from(coordinate).ok().filter(|&coordinate| coordinate < extent)?;
            Some(offset * extent + inside)
        })
    }
}

/// The coordinates of a place from its number in row-major order.
pub(crate) fn unravel(mut number: usize, shape: &[usize]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, &extent) in coordinates.iter_mut().zip(shape).rev() {
        *coordinate = number % extent.max(1);
        number /= extent.max(1);
    }
    coordinates
}
