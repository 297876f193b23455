//! Maps of indices: how the points of one box are numbered in another.
//!
//! ```text
//! (i, j) -> (i/16, j, i%16)
//! ```
//! A map is an argument of the primitives that change layouts and domains. [`crate::index::iter_map`] analyses
//! its effect on a box.

use std::fmt;

use smallvec::SmallVec;

use crate::ids::VarId;
use crate::index::iter_map::{IterMap, MapLevel, detect};
use crate::index::{Base, Index, NO_MODULUS};
use crate::program::{Program, VariableKind};
use crate::text::names::UniqueNames;
use crate::text::print_value::ValuePrinter;

/// A map from a number of indices to as many others as there are results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IndexMap {
    inputs: u32,
    /// The results, in terms of the variables 0 to `inputs - 1`.
    outputs: Vec<Index>,
}

/// Why a map does not fit a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MapError {
    /// The box has another number of dimensions.
    #[error("the map takes another number of indices")]
    Arity,
    /// Two points have one image, as far as is known.
    #[error("two points would have the same image, or the map is too complicated to tell")]
    NotInjective,
    /// The images are no box, as far as is known.
    #[error("the images would not fill a box, so that sizes must be divisible or padded first")]
    NotBijective,
    /// A result may be negative, or starts above 0.
    #[error("the results do not start at 0")]
    Offset,
    /// The sizes have to be constant.
    #[error("the sizes that the map divides or multiplies by must be constant")]
    Symbolic,
}

/// A change of coordinates: both ways between the points of two boxes.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The sizes of the new box.
    pub(crate) extents: Vec<Index>,
    map: IterMap,
}

/// Variables that stand for the inputs while a map is analysed: programs number theirs from 0, and the
/// analysis its own from above.
const FIRST_STAND_IN: u32 = 1 << 30;

/// More dimensions than any buffer has; a bound for hostile traces.
const MAX_DIMENSIONS: usize = 16;

/// The largest number in a map, so that arithmetic with sizes cannot overflow.
const MAX_NUMBER: i64 = 1 << 20;

impl IndexMap {
    /// The map with the given results in terms of the variables 0 to `inputs - 1`. `None` when they mention anything
    /// else than these, numbers beyond 2²⁰, or are too many.
    pub fn new(inputs: u32, outputs: Vec<Index>) -> Option<Self> {
        let fits = inputs as usize <= MAX_DIMENSIONS && outputs.len() <= MAX_DIMENSIONS;
        (fits && outputs.iter().all(|output| is_plain(output, inputs)))
            .then_some(IndexMap { inputs, outputs })
    }

    /// The map that puts indices into another order: index `order[n]` becomes the `n`-th. `None` when the order does not
    /// name each index once.
    pub fn permutation(order: &[i64]) -> Option<Self> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..order.len() as i64) {
            return None;
        }
        let outputs = order.iter().map(|index| Index::var(VarId(*index as u32)));
        IndexMap::new(order.len() as u32, outputs.collect())
    }

    /// The number of indices that it takes.
    pub fn inputs(&self) -> usize {
        self.inputs as usize
    }

    /// The number of indices that it gives.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Whether a result depends on an input.
    pub fn mentions(&self, output: usize, input: usize) -> bool {
        self.outputs[output].mentions(VarId(input as u32))
    }

    /// The image of a point.
    ///
    /// # Panics
    /// When the point has another number of indices.
    pub fn apply(&self, point: &[Index]) -> Vec<Index> {
        assert_eq!(point.len(), self.inputs(), "a point of the map's domain");
        let value = |var: VarId| Some(point[var.0 as usize].clone());
        self.outputs.iter().map(|output| output.substitute(&value)).collect()
    }

    /// The sizes of a box that holds the image of each point of the box of sizes `domain`, where no two
    /// points have one image. A dimension that is divided may have any size: the image then has unused elements.
    ///
    /// # Errors
    /// When points may share an image or have one outside of every box.
    pub fn image(&self, domain: &[Index]) -> Result<Vec<Index>, MapError> {
        if domain.len() != self.inputs() {
            return Err(MapError::Arity);
        }
        let padded: Vec<Index> = domain
            .iter()
            .enumerate()
            .map(|(input, extent)| match self.period(VarId(input as u32))? {
                1 => Some(extent.clone()),
                period => Some(extent.ceil_div(period).scale(period)),
            })
            .collect::<Option<_>>()
            .ok_or(MapError::NotInjective)?;
        let map = self.detect(&padded, MapLevel::Injective).ok_or(MapError::NotInjective)?;
        let sizes = map.outputs.iter().map(|sum| {
            if !sum.min.is(0) {
                return Err(MapError::Offset);
            }
            Ok(sum.extent.offset(-1).multiply(&sum.scale).offset(1))
        });
        sizes.collect()
    }

    /// The change of coordinates that the map is on the box of sizes `domain`.
    ///
    /// # Errors
    /// When it is no bijection onto a box.
    pub(crate) fn change(&self, domain: &[Index]) -> Result<Change, MapError> {
        if domain.len() != self.inputs() {
            return Err(MapError::Arity);
        }
        let map = self.detect(domain, MapLevel::Bijective).ok_or(MapError::NotBijective)?;
        if !map.outputs.iter().all(|sum| sum.covers(&sum.extent)) {
            return Err(MapError::Offset);
        }
        let extents = map.outputs.iter().map(|sum| sum.extent.clone()).collect();
        Ok(Change { extents, map })
    }

    fn detect(&self, domain: &[Index], level: MapLevel) -> Option<IterMap> {
        let iterators: Vec<(VarId, Index)> =
            domain.iter().enumerate().map(|(input, extent)| (stand_in(input), extent.clone())).collect();
        let point: Vec<Index> = iterators.iter().map(|(var, _)| Index::var(*var)).collect();
        detect(&self.apply(&point), &iterators, &[], level).ok()
    }

    /// The least common multiple of an input's divisors; `None` when it is too large to compute with.
    fn period(&self, input: VarId) -> Option<i64> {
        let mut period = 1i64;
        for term in self.outputs.iter().flat_map(Index::terms) {
            if term.digit.base == Base::Var(input) {
                let modulus = if term.digit.modulus == NO_MODULUS { 1 } else { term.digit.modulus };
                period = least_common_multiple(period, term.digit.divisor.checked_mul(modulus)?)?;
            }
        }
        (period <= MAX_NUMBER).then_some(period)
    }
}

impl Change {
    /// The old coordinates of the point with the new coordinates `point`.
    ///
    /// # Errors
    /// When the map divides by a symbolic size.
    pub(crate) fn old_point(&self, point: &[Index]) -> Result<Vec<Index>, MapError> {
        let inverse = self.map.inverse(point).map_err(|_| MapError::NotBijective)?;
        let old: Vec<Index> = inverse.into_iter().map(|(_, index)| index).collect();
        if old.iter().all(is_affine) { Ok(old) } else { Err(MapError::Symbolic) }
    }
}

fn stand_in(input: usize) -> VarId {
    VarId(FIRST_STAND_IN + input as u32)
}

fn least_common_multiple(a: i64, b: i64) -> Option<i64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(b)
}

/// Whether an index is made of variables below `inputs` and numbers of moderate size.
fn is_plain(index: &Index, inputs: u32) -> bool {
    let is_moderate = |number: i64| (-MAX_NUMBER..=MAX_NUMBER).contains(&number);
    is_moderate(index.constant_part())
        && index.terms().iter().all(|term| {
            let numbers = [term.coefficient, term.digit.divisor, term.digit.modulus];
            numbers.into_iter().all(is_moderate)
                && match &term.digit.base {
                    Base::Var(var) => var.0 < inputs,
                    Base::Sum(sum) => is_plain(sum, inputs),
                    Base::Lane(_) | Base::Value(_) => false,
                }
        })
}

/// Whether an index is made of sums, quotients and remainders of variables alone.
pub(crate) fn is_affine(index: &Index) -> bool {
    index.terms().iter().all(|term| match &term.digit.base {
        Base::Var(_) => true,
        Base::Sum(sum) => is_affine(sum),
        Base::Lane(_) | Base::Value(_) => false,
    })
}

impl fmt::Display for IndexMap {
    /// Writes `(i0, i1) -> (i1, i0/4, i0%4)`, which parses back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut names, mut unique) = (Program::new(""), UniqueNames::default());
        // `i8` is a type.
        let inputs: SmallVec<[String; 4]> =
            (0..self.inputs).map(|input| unique.claim(&format!("i{input}"))).collect();
        for name in &inputs {
            names.add_variable(name.as_str(), VariableKind::Iter);
        }
        write!(f, "({}) -> ({})", inputs.join(", "), ValuePrinter::indices_text(&names, &self.outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> IndexMap {
        text.parse().unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    fn sizes(numbers: &[i64]) -> Vec<Index> {
        numbers.iter().map(|number| Index::constant(*number)).collect()
    }

    #[test]
    fn text_parses_back() {
        for text in
            ["() -> ()", "(i0) -> (i0)", "(i0, i1) -> (i1, i0/4, i0%4)", "(i0, i1) -> (i0*6 + i1 + 1)"]
        {
            assert_eq!(map(text).to_string(), text);
        }
        assert_eq!(map("( n , c ) -> ( c / 2, n )").to_string(), "(i0, i1) -> (i1/2, i0)");
        let many = "(i0, i1, i2, i3, i4, i5, i6, i7, i8_1) -> (i8_1, i0)";
        assert_eq!(map(many).to_string(), many);
        for wrong in [
            "",
            "(i) ->",
            "(i) -> (j)",
            "(i, i) -> (i)",
            "(i) -> (value(select(true, 1, 2)))",
            "(i) -> (lane<4>)",
            "(i) -> (min(i, 3))",
            "(i) -> (i*2000000)",
            "(i) -> (i) x",
            "(for) -> (1)",
            "(1) -> (1)",
        ] {
            assert!(wrong.parse::<IndexMap>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_image_of_a_box_is_counted() {
        for (text, domain, image) in [
            ("(i, j) -> (j, i)", vec![5, 7], Ok(vec![7, 5])),
            ("(i, j) -> (i/4, j, i%4)", vec![8, 3], Ok(vec![2, 3, 4])),
            ("(i, j) -> (i/4, j, i%4)", vec![9, 3], Ok(vec![3, 3, 4])),
            ("(i) -> (i*2)", vec![5], Ok(vec![9])),
            ("(i, j) -> (i*7 + j)", vec![5, 7], Ok(vec![35])),
            ("(i, j) -> (i*8 + j)", vec![5, 7], Ok(vec![39])),
            ("(i) -> (4 - i)", vec![5], Ok(vec![5])),
            ("(i) -> (i/6%2, i/2%3, i%2)", vec![12], Ok(vec![2, 3, 2])),
            ("(i, j) -> (i)", vec![5, 7], Err(MapError::NotInjective)),
            ("(i) -> (i/2)", vec![5], Err(MapError::NotInjective)),
            ("(i, j) -> (i + j)", vec![5, 7], Err(MapError::NotInjective)),
            ("(i) -> (i + 1)", vec![5], Err(MapError::Offset)),
            ("(i) -> (3 - i)", vec![5], Err(MapError::Offset)),
            ("(i) -> (i)", vec![5, 7], Err(MapError::Arity)),
        ] {
            assert_eq!(
                map(text).image(&sizes(&domain)),
                image.map(|sizes_| sizes(&sizes_)),
                "{text} on {domain:?}"
            );
        }
    }

    #[test]
    fn images_are_distinct_and_inside_their_box() {
        for (text, domain) in [
            ("(i, j) -> (i/4, j, i%4)", [9i64, 3]),
            ("(i, j) -> (j/2, i/3, i%3*2 + j%2)", [7, 5]),
            ("(i, j) -> (i*3 + j)", [4, 3]),
            ("(i, j) -> (j, 3 - i)", [4, 3]),
        ] {
            let map = map(text);
            let image = map.image(&sizes(&domain)).unwrap();
            let mut seen = Vec::new();
            for (i, j) in (0..domain[0]).flat_map(|i| (0..domain[1]).map(move |j| (i, j))) {
                let point: Vec<i64> =
                    map.apply(&sizes(&[i, j])).iter().map(|index| index.as_constant().unwrap()).collect();
                let inside = point
                    .iter()
                    .zip(&image)
                    .all(|(index, size)| (0..size.as_constant().unwrap()).contains(index));
                assert!(
                    inside && !seen.contains(&point),
                    "{text}: ({i}, {j}) goes to {point:?} of {image:?}"
                );
                seen.push(point);
            }
        }
    }

    #[test]
    fn changes_of_coordinates_go_both_ways() {
        let map = map("(i, j) -> (j, i/4, i%4)");
        assert_eq!(map.change(&sizes(&[9, 3])).unwrap_err(), MapError::NotBijective);
        let change = map.change(&sizes(&[8, 3])).unwrap();
        assert_eq!(change.extents, sizes(&[3, 2, 4]));
        for (i, j) in (0..8).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let new = map.apply(&sizes(&[i, j]));
            assert_eq!(change.old_point(&new).unwrap(), sizes(&[i, j]));
        }
    }
}
