//! The tolerance of results relative to the reference.
//!
//! Unless a kernel states an accuracy, a schedule may sum in another order and contract `a * b + c` to one rounding, and
//! nothing else. The rounding errors of a sum of `R` terms then grow like `ε·√R` relative to the sum's size when they are random (Higham,
//! "Accuracy and Stability of Numerical Algorithms", 2nd ed., §4.2 and §2.8). With a margin of four, and 16 roundings
//! for everything that is not a sum, a result may differ by
//!
//! > `ε · (16 + 4 · Σ √R)` times the sum of the magnitudes of its terms,
//!
//! where such a sum is known, and else times the largest magnitude in the expected tensor,
//!
//! or, with an [accuracy](tilewright_core::accuracy) `δ`, by `4 · δ` times that magnitude more for each block that sums: random
//! errors of products add up as the products themselves do, so that their sum has the same relative error. Here `ε` is the
//! distance of 1 to the next number in the least exact type of a result or an intermediate, and the sum goes over the blocks
//! of the program. Integers and truth values that are computed from integers only are exact; integers that are rounded from
//! floats may differ by one.
//!
//! Instructions that take denormals for zero, such as the tile products of `bf16`, need no rule here: random
//! inputs are multiples of `2^-52`, and neither they nor the products of two of them are denormal.

use std::cmp::Ordering;

use tilewright_core::accuracy::Accuracy;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Access, Program};
use tilewright_core::stmt::{Block, IterKind, Stmt};
use tilewright_core::tensor::{AnyTensor, ErrorSummary};
use tilewright_core::visit::for_each_stmt;

/// The roundings of operations other than sums.
const ROUNDINGS: f64 = 16.0;

/// The number of standard deviations of a random walk of errors that are accepted.
const MARGIN: f64 = 4.0;

/// The expected content of a tensor after a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its elements, in its own type or in `f64`.
    pub values: AnyTensor,
    /// For each element, the sum of the magnitudes of its terms.
    pub magnitudes: Option<AnyTensor>,
}

impl From<AnyTensor> for Expected {
    fn from(values: AnyTensor) -> Self {
        Expected { values, magnitudes: None }
    }
}

/// How far results may differ from the expected ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// For floats, relative to the sum of the magnitudes of an element's terms, or to the largest magnitude of the tensor.
    pub relative: f64,
    /// The same in the worst case, in which all rounding errors have one sign.
    pub worst: f64,
    /// For integers.
    pub steps: f64,
}

impl Tolerance {
    /// The tolerance of a program whose dimensions are bound.
    pub fn of(program: &Program) -> Self {
        let is_stored = |access: Option<Access>| access.is_none_or(Access::is_written);
        let stored = program.buffers().filter(|(id, _)| is_stored(program.access(*id)));
        let epsilon = stored.map(|(_, buffer)| epsilon(buffer.dtype)).fold(0.0, f64::max);
        let reads_floats = program.buffers().any(|(_, buffer)| buffer.dtype.is_float());
        let lengths: Vec<f64> =
            blocks(&program.body).into_iter().map(|block| reduction_length(block)).collect();
        let sums: f64 = lengths.iter().map(|length| length.sqrt()).sum();
        let inexact = lengths.iter().filter(|length| **length > 0.0).count() as f64;
        let accuracy = program.accuracy.map_or(0.0, Accuracy::relative);
        let terms: f64 = lengths.iter().sum();
        Tolerance {
            relative: epsilon * (ROUNDINGS + MARGIN * sums) + MARGIN * accuracy * inexact,
            worst: epsilon * (ROUNDINGS + terms) + MARGIN * accuracy * inexact,
            steps: if reads_floats { 1.0 } else { 0.0 },
        }
    }

    /// The error of a result, relative to the largest magnitude of the expected tensor.
    ///
    /// # Errors
    /// The differences, when one is beyond the tolerance.
    pub fn check(&self, found: &AnyTensor, expected: &Expected) -> Result<f64, ErrorSummary> {
        let error = found.max_error(&expected.values);
        let (is_fine, first) = match (found.dtype(), &expected.magnitudes) {
            (DType::Bool, _) => (error.max_abs == 0.0, None),
            (dtype, _) if !dtype.is_float() => (error.max_abs <= self.steps, None),
            (_, None) => (error.max_abs <= self.relative * error.scale, None),
            (_, Some(magnitudes)) => {
                let first = first_beyond(self.relative, found, &expected.values, magnitudes);
                (first.is_none(), first)
            }
        };
        let first_mismatch = first.or(error.first_mismatch);
        if is_fine { Ok(error.max_rel) } else { Err(ErrorSummary { first_mismatch, ..error }) }
    }

    /// Whether a definition's results agree with more exact results, with its rounding errors at their worst.
    pub fn agree(&self, reference: &AnyTensor, exact: &Expected) -> bool {
        let greatest = exact.magnitudes.as_ref().map(AnyTensor::to_f64_vec).unwrap_or_default();
        let greatest = greatest.into_iter().fold(0.0, f64::max);
        let error = reference.max_error(&exact.values);
        match reference.dtype() {
            DType::Bool => error.max_abs == 0.0,
            dtype if dtype.is_float() => error.max_abs <= self.worst * error.scale.max(greatest),
            _ => error.max_abs <= self.steps,
        }
    }
}

/// The first element that is further from the expected one than a share of the sum of its terms' magnitudes.
fn first_beyond(
    relative: f64,
    found: &AnyTensor,
    expected: &AnyTensor,
    magnitudes: &AnyTensor,
) -> Option<usize> {
    let [found, expected, magnitudes] = [found, expected, magnitudes].map(AnyTensor::to_f64_vec);
    let is_beyond = |((found, expected), magnitude): ((&f64, &f64), &f64)| {
        let is_same = found == expected || (found.is_nan() && expected.is_nan());
        let (difference, bound) = ((found - expected).abs(), relative * magnitude.max(expected.abs()));
        // A NaN is beyond.
        !is_same && difference.partial_cmp(&bound).is_none_or(Ordering::is_gt)
    };
    found.iter().zip(&expected).zip(&magnitudes).position(is_beyond)
}

/// The distance of 1 to the next number.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => half::f16::EPSILON.to_f64(),
        DType::BF16 => half::bf16::EPSILON.to_f64(),
        DType::Float8E4M3FN => 0.125,
        DType::Float8E5M2 => 0.25,
        _ => 0.0,
    }
}

/// How many terms one element of a block's result sums, or how many steps of a recurrence lead to it; 0 for none.
fn reduction_length(block: &Block) -> f64 {
    let reduced = block.iters.iter().filter(|iter| iter.kind != IterKind::Spatial);
    let mut extents: Vec<_> = reduced.map(|iter| &iter.extent).collect();
    // Loops inside a block are reductions that a schedule does not see.
    for_each_stmt(&block.body, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            extents.push(&node.extent);
        }
    });
    if extents.is_empty() {
        return 0.0;
    }
    extents.into_iter().map(|extent| extent.as_constant().unwrap_or(1).max(1) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(element: &str) -> Program {
        let text = format!(
            "kernel sum(in x: {element}[3, 64], out y: {element}[3]) {{
  for i in 0..3 {{
    for k in 0..64 {{
      block y(vi: spatial 3 = i, vk: reduce 64 = k) {{
        init {{
          y[vi] = {zero}
        }}
        y[vi] = y[vi] + x[vi, vk]
      }}
    }}
  }}
}}
",
            zero = if element.starts_with('i') { "0" } else { "0.0" }
        );
        text.parse().expect("the text is a program")
    }

    fn tensor(values: &[f64], dtype: DType) -> AnyTensor {
        AnyTensor::from_f64s(dtype, values, &[values.len()]).expect("it fits")
    }

    #[test]
    fn the_tolerance_follows_type_and_length() {
        let single = Tolerance::of(&program("f32"));
        assert_eq!(single.relative, f64::from(f32::EPSILON) * (16.0 + 4.0 * 8.0));
        assert!(Tolerance::of(&program("f64")).relative < single.relative * 1e-8);
        assert_eq!(Tolerance::of(&program("i32")), Tolerance { relative: 0.0, worst: 0.0, steps: 0.0 });
        let mut inexact = program("f32");
        inexact.accuracy = Accuracy::new(1e-4);
        assert_eq!(Tolerance::of(&inexact).relative, single.relative + 4e-4);
    }

    #[test]
    fn a_missing_term_is_noticed_and_another_order_is_not() {
        let tolerance = Tolerance::of(&program("f32"));
        let expected = Expected::from(tensor(&[5.0, -3.0, 0.0], DType::F32));
        let reordered = tensor(&[5.0, -3.0, 1e-6], DType::F32);
        assert!(tolerance.check(&reordered, &expected).is_ok());
        let without_term = tensor(&[5.0, -3.0, 0.01], DType::F32);
        assert!(tolerance.check(&without_term, &expected).is_err());
        let not_written = tensor(&[5.0, -3.0, f64::NAN], DType::F32);
        assert!(tolerance.check(&not_written, &expected).is_err());
    }

    #[test]
    fn integers_of_integers_are_exact() {
        let tolerance = Tolerance::of(&program("i32"));
        let expected = Expected::from(tensor(&[1000.0], DType::I32));
        assert_eq!(tolerance.check(&expected.values, &expected), Ok(0.0));
        assert!(tolerance.check(&tensor(&[1001.0], DType::I32), &expected).is_err());
    }

    #[test]
    fn each_element_is_judged_by_its_own_terms() {
        let tolerance = Tolerance::of(&program("f32"));
        let values = tensor(&[1e6, 1.0, 0.0], DType::F64);
        let magnitudes = Some(tensor(&[1e6, 1.0, 1e3], DType::F64));
        let expected = Expected { values, magnitudes };
        let found = |values: &[f64]| tolerance.check(&tensor(values, DType::F32), &expected);
        assert!(found(&[1e6, 1.0, 0.001]).is_ok(), "terms of a thousand cancel");
        let error = found(&[1e6, 1.01, 0.0]).expect_err("a small element beside a large one");
        assert_eq!(error.first_mismatch, Some(1));
        assert!(found(&[1e6, 1.0, f64::NAN]).is_err());
        assert!(tolerance.agree(&tensor(&[1e6, 1.0, 0.001], DType::F32), &expected));
        assert!(!tolerance.agree(&tensor(&[9e5, 1.0, 0.0], DType::F32), &expected));
    }
}
