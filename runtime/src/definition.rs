//! A kernel's definition as data: what `#[tensor_kernel]` emits, and the inference of dimensions from shapes.
//!
//! Everything here is a constant of the user's program. [`kernel`](mod@crate::kernel) compiles, tunes and calls
//! it.

use std::fmt;

use tilewright_core::build::{KernelBuilder, SourceLocation};
use tilewright_core::device::BufferArgument;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;

use crate::error::Error;

/// A kernel's definition.
#[derive(Debug)]
pub struct KernelDefinition {
    /// The function's name.
    pub name: &'static str,
    /// The module that it stands in.
    pub module: &'static str,
    /// Where it is written.
    pub location: SourceLocation,
    /// The symbolic dimensions in order of appearance, then the `usize` arguments.
    pub dims: &'static [&'static str],
    /// The arguments in the signature's order, then the results.
    pub parameters: &'static [ParameterSpec],
    /// Records the definition.
    pub build: fn(&mut KernelBuilder),
    /// Runs the definition as ordinary Rust.
    pub reference: Reference,
}

/// A definition as ordinary Rust, over untyped arguments: a value for each of the definition's dimensions, the
/// scalars, and the tensors (arguments, then results), each in order. The results are overwritten.
pub type Reference = fn(&[i64], &[Constant], &mut [BufferArgument<'_>]) -> Result<(), Error>;

/// An argument or a result.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSpec {
    /// The name in the definition.
    pub name: &'static str,
    /// The kind of the argument.
    pub kind: ParameterKind,
    /// The type of an element, or of the scalar.
    pub dtype: DType,
    /// A tensor's dimensions, outermost first.
    pub dims: &'static [DimSpec],
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A tensor that is read.
    Input,
    /// A tensor that is read, and whose content is the same in each call that passes the same tensor.
    Constant,
    /// A tensor that is updated in place.
    InOut,
    /// A tensor that is returned.
    Output,
    /// A `usize`, known when the kernel is compiled.
    Size,
    /// A scalar of the call.
    Scalar,
}

impl ParameterKind {
    /// Whether this is a tensor.
    pub const fn is_tensor(self) -> bool {
        matches!(
            self,
            ParameterKind::Input | ParameterKind::Constant | ParameterKind::InOut | ParameterKind::Output
        )
    }
}

/// One dimension of a tensor in a signature.
#[derive(Clone, Copy, Debug)]
pub enum DimSpec {
    /// The dimension or `usize` argument at this position in [`KernelDefinition::dims`].
    Symbol(usize),
    /// A number.
    Fixed(i64),
    /// An expression, from the values of [`KernelDefinition::dims`], and its text. `None` when a step overflows or
    /// is negative.
    Computed(fn(&[i64]) -> Option<i64>, &'static str),
}

/// An argument that does not fit a kernel's signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}`, argument `{argument}`: {problem}")]
pub struct ArgumentError {
    /// The kernel.
    pub kernel: &'static str,
    /// The argument or result.
    pub argument: &'static str,
    /// The problem.
    pub problem: ArgumentProblem,
}

/// A problem with an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentProblem {
    /// It has another number of dimensions.
    #[error("{expected} dimensions expected, {found} given")]
    Rank {
        /// The rank in the signature.
        expected: usize,
        /// The rank of the argument.
        found: usize,
    },
    /// A dimension has another extent.
    #[error("dimension {axis} (`{dimension}`) is {found}, expected {expected}{reason}")]
    Extent {
        /// The position, from 0.
        axis: usize,
        /// The dimension, as the signature writes it.
        dimension: &'static str,
        /// The expected extent.
        expected: i64,
        /// The actual extent.
        found: usize,
        /// The reason.
        reason: Reason,
    },
    /// A computed dimension has no value.
    #[error("dimension {axis} (`{dimension}`) is negative or too large for {values}")]
    Uncomputable {
        /// The position, from 0.
        axis: usize,
        /// The dimension, as the signature writes it.
        dimension: &'static str,
        /// The dimensions that it is computed from: `H = 2, KH = 5`.
        values: String,
    },
    /// A `usize` that no dimension can have.
    #[error("{0} is too large")]
    Size(usize),
    /// There is another number of tensors or `usize` arguments.
    #[error("{expected} arguments expected, {found} given")]
    Count {
        /// The number in the signature.
        expected: usize,
        /// The number given.
        found: usize,
    },
}

/// Why a dimension should have a certain extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The signature says so.
    Fixed,
    /// Another argument has it.
    As(&'static str),
    /// It is computed from these: `H = 4`.
    Computed(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Fixed => Ok(()),
            Reason::As(argument) => write!(f, " as in `{argument}`"),
            Reason::Computed(values) => write!(f, " because {values}"),
        }
    }
}

impl KernelDefinition {
    /// The tensors, in order: arguments, then results.
    pub fn tensors(&self) -> impl Iterator<Item = &ParameterSpec> {
        self.parameters.iter().filter(|parameter| parameter.kind.is_tensor())
    }

    /// The results, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &ParameterSpec> {
        self.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Output)
    }

    /// The run-time scalars, in order.
    pub fn scalars(&self) -> impl Iterator<Item = &ParameterSpec> {
        self.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Scalar)
    }

    /// The values of the dimensions, from the shapes of the tensor arguments (without results) and the `usize`
    /// arguments, each in order. Every shape is checked.
    ///
    /// # Errors
    /// [`ArgumentError`], naming the argument and the dimension.
    pub fn infer(&self, shapes: &[&[usize]], sizes: &[usize]) -> Result<Vec<i64>, ArgumentError> {
        let arguments = || self.tensors().filter(|parameter| parameter.kind != ParameterKind::Output);
        let symbols = self.dims.len().saturating_sub(sizes.len());
        self.count(arguments().count(), shapes.len())?;
        let mut dims = vec![0i64; self.dims.len()];
        for (size, (dim, name)) in sizes.iter().zip(dims[symbols..].iter_mut().zip(&self.dims[symbols..])) {
            *dim = i64::try_from(*size).map_err(|_| self.error(name, ArgumentProblem::Size(*size)))?;
        }
        // The argument that each symbolic dimension was first seen in.
        let mut seen: Vec<Option<&'static str>> = vec![None; symbols];
        for (parameter, shape) in arguments().zip(shapes) {
            self.rank(parameter, shape)?;
            for (axis, (spec, &found)) in parameter.dims.iter().zip(*shape).enumerate() {
                let DimSpec::Symbol(symbol) = *spec else { continue };
                let extent = i64::try_from(found)
                    .map_err(|_| self.error(parameter.name, ArgumentProblem::Size(found)))?;
                if symbol < symbols && seen[symbol].is_none() {
                    (dims[symbol], seen[symbol]) = (extent, Some(parameter.name));
                } else if dims[symbol] != extent {
                    let reason = match seen.get(symbol) {
                        Some(Some(argument)) => Reason::As(argument),
                        _ => Reason::Computed(self.values(&dims, &[symbol])),
                    };
                    let (dimension, expected) = (self.dims[symbol], dims[symbol]);
                    let problem = ArgumentProblem::Extent { axis, dimension, expected, found, reason };
                    return Err(self.error(parameter.name, problem));
                }
            }
        }
        for (parameter, shape) in arguments().zip(shapes) {
            self.check(parameter, shape, &dims)?;
        }
        Ok(dims)
    }

    /// Checks the shape of a result that the caller owns.
    ///
    /// # Errors
    /// [`ArgumentError`], naming the result and the dimension.
    pub fn check_output(&self, position: usize, shape: &[usize], dims: &[i64]) -> Result<(), ArgumentError> {
        let found = position + 1;
        let Some(parameter) = self.outputs().nth(position) else {
            return self.count(self.outputs().count(), found);
        };
        self.rank(parameter, shape)?;
        self.check(parameter, shape, dims)
    }

    /// The shape of a tensor.
    ///
    /// # Errors
    /// [`ArgumentError`] when a computed dimension is negative or too large.
    pub fn shape(&self, parameter: &ParameterSpec, dims: &[i64]) -> Result<Vec<usize>, ArgumentError> {
        (0..parameter.dims.len()).map(|axis| self.extent(parameter, axis, dims)).collect()
    }

    /// The extent of one dimension of a tensor.
    ///
    /// # Errors
    /// [`ArgumentError`] when a computed dimension is negative or too large.
    pub fn extent(
        &self,
        parameter: &ParameterSpec,
        axis: usize,
        dims: &[i64],
    ) -> Result<usize, ArgumentError> {
        let extent = match parameter.dims[axis] {
            DimSpec::Symbol(symbol) => dims.get(symbol).copied(),
            DimSpec::Fixed(extent) => Some(extent),
            DimSpec::Computed(compute, _) if dims.len() == self.dims.len() => compute(dims),
            DimSpec::Computed(..) => None,
        };
        extent.and_then(|extent| usize::try_from(extent).ok()).ok_or_else(|| {
            let (dimension, values) = (self.text(&parameter.dims[axis]), self.all_values(dims));
            self.error(parameter.name, ArgumentProblem::Uncomputable { axis, dimension, values })
        })
    }

    fn check(&self, parameter: &ParameterSpec, shape: &[usize], dims: &[i64]) -> Result<(), ArgumentError> {
        for (axis, &found) in shape.iter().enumerate() {
            let expected = self.extent(parameter, axis, dims)?;
            if expected == found {
                continue;
            }
            let reason = match parameter.dims[axis] {
                DimSpec::Symbol(symbol) => Reason::Computed(self.values(dims, &[symbol])),
                DimSpec::Fixed(_) => Reason::Fixed,
                DimSpec::Computed(..) => Reason::Computed(self.all_values(dims)),
            };
            let (dimension, expected) = (self.text(&parameter.dims[axis]), expected as i64);
            let problem = ArgumentProblem::Extent { axis, dimension, expected, found, reason };
            return Err(self.error(parameter.name, problem));
        }
        Ok(())
    }

    fn rank(&self, parameter: &ParameterSpec, shape: &[usize]) -> Result<(), ArgumentError> {
        let (expected, found) = (parameter.dims.len(), shape.len());
        if expected == found {
            return Ok(());
        }
        Err(self.error(parameter.name, ArgumentProblem::Rank { expected, found }))
    }

    fn count(&self, expected: usize, found: usize) -> Result<(), ArgumentError> {
        if expected == found {
            return Ok(());
        }
        Err(self.error("…", ArgumentProblem::Count { expected, found }))
    }

    fn error(&self, argument: &'static str, problem: ArgumentProblem) -> ArgumentError {
        ArgumentError { kernel: self.name, argument, problem }
    }

    fn text(&self, dim: &DimSpec) -> &'static str {
        match *dim {
            DimSpec::Symbol(symbol) => self.dims.get(symbol).copied().unwrap_or("?"),
            DimSpec::Fixed(_) => "fixed",
            DimSpec::Computed(_, text) => text,
        }
    }

    fn all_values(&self, dims: &[i64]) -> String {
        self.values(dims, &(0..self.dims.len().min(dims.len())).collect::<Vec<_>>())
    }

    fn values(&self, dims: &[i64], symbols: &[usize]) -> String {
        let values = symbols.iter().map(|&symbol| format!("{} = {}", self.dims[symbol], dims[symbol]));
        values.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn tensor(name: &'static str, kind: ParameterKind, dims: &'static [DimSpec]) -> ParameterSpec {
        ParameterSpec { name, kind, dtype: DType::F32, dims }
    }

    /// `fn convolve(x: &Tensor<f32, N, H>, w: &Tensor<f32, KH, 4>, y: &Tensor<f32, { H + pad }>, pad: usize)
    ///  -> Tensor<f32, N, { H - KH + 1 }>`
    static DEFINITION: KernelDefinition = KernelDefinition {
        name: "convolve",
        module: "tests",
        location: SourceLocation::new("tests.rs", 1, 1),
        dims: &["N", "H", "KH", "pad"],
        parameters: &[
            tensor("x", ParameterKind::Input, &[DimSpec::Symbol(0), DimSpec::Symbol(1)]),
            tensor("w", ParameterKind::Input, &[DimSpec::Symbol(2), DimSpec::Fixed(4)]),
            tensor(
                "y",
                ParameterKind::Input,
                &[DimSpec::Computed(|dims| dims[1].checked_add(dims[3]), "H + pad")],
            ),
            ParameterSpec { name: "pad", kind: ParameterKind::Size, dtype: DType::I64, dims: &[] },
            tensor(
                "out",
                ParameterKind::Output,
                &[DimSpec::Symbol(0), DimSpec::Computed(|dims| Some(dims[1] - dims[2] + 1), "H - KH + 1")],
            ),
        ],
        build: |_| {},
        reference: |_, _, _| Ok(()),
    };

    fn refusal(shapes: [&[usize]; 3], pad: usize) -> String {
        DEFINITION.infer(&shapes, &[pad]).expect_err("the shapes do not fit").to_string()
    }

    #[test]
    fn dimensions_come_from_the_shapes() {
        let dims = DEFINITION.infer(&[&[2, 7], &[3, 4], &[9]], &[2]).expect("the shapes fit");
        assert_eq!(dims, [2, 7, 3, 2]);
        let output = DEFINITION.outputs().next().expect("there is one");
        assert_eq!(DEFINITION.shape(output, &dims).expect("it has a shape"), [2, 5]);
    }

    #[test]
    fn a_refusal_names_argument_dimension_expected_and_found() {
        assert_eq!(
            refusal([&[2, 7], &[3, 5], &[9]], 2),
            "kernel `convolve`, argument `w`: dimension 1 (`fixed`) is 5, expected 4"
        );
        assert_eq!(
            refusal([&[2, 7], &[3, 4], &[7]], 2),
            "kernel `convolve`, argument `y`: dimension 0 (`H + pad`) is 7, expected 9 because N = 2, H = 7, KH = 3, pad = 2"
        );
        assert_eq!(
            refusal([&[2, 7], &[3], &[9]], 2),
            "kernel `convolve`, argument `w`: 2 dimensions expected, 1 given"
        );
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert_eq!(
            refusal([&[2, 7], &[3, 4], &[7]], usize::MAX),
            format!("kernel `convolve`, argument `pad`: {} is too large", usize::MAX)
        );
        let text = refusal([&[2, 7], &[3, 4], &[7]], i64::MAX as usize);
        assert!(text.contains("(`H + pad`) is negative or too large for N = 2, H = 7"), "{text}");
    }

    #[test]
    fn a_negative_result_is_refused() {
        let dims = DEFINITION.infer(&[&[2, 2], &[5, 4], &[2]], &[0]).expect("the arguments fit");
        let output = DEFINITION.outputs().next().expect("there is one");
        let text = DEFINITION.shape(output, &dims).expect_err("2 - 5 + 1 is negative").to_string();
        assert_eq!(
            text,
            "kernel `convolve`, argument `out`: dimension 1 (`H - KH + 1`) is negative or too large for N = 2, H = 2, KH = 5, pad = 0"
        );
    }

    #[test]
    fn results_of_the_callers_are_checked() {
        let dims = [2, 7, 3, 2];
        DEFINITION.check_output(0, &[2, 5], &dims).expect("it fits");
        let text = DEFINITION.check_output(0, &[3, 5], &dims).expect_err("it does not").to_string();
        assert_eq!(
            text,
            "kernel `convolve`, argument `out`: dimension 0 (`N`) is 3, expected 2 because N = 2"
        );
    }
}
