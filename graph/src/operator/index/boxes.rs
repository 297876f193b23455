//! Suppression of boxes that overlap better ones.

use crate::deduce;
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::HostTensor;

pub(super) const OPERATORS: &[Operator] =
    &[Operator::new("non_max_suppression", "NonMaxSuppression", suppress)
        .deduce(deduce::chosen_boxes)
        .inputs(2, 5)
        .attributes(&[("center_point_box", IntOr(0))])];

/// A box by its corners, the smaller coordinates first.
struct Corners {
    low: [f64; 2],
    high: [f64; 2],
}

impl Corners {
    fn of(numbers: &[f64], by_centre: bool) -> Self {
        let [a, b, c, d] = [numbers[0], numbers[1], numbers[2], numbers[3]];
        let (first, second) = if by_centre {
            ([a - c / 2.0, b - d / 2.0], [a + c / 2.0, b + d / 2.0])
        } else {
            ([a, b], [c, d])
        };
        Corners {
            low: [first[0].min(second[0]), first[1].min(second[1])],
            high: [first[0].max(second[0]), first[1].max(second[1])],
        }
    }

    fn area(&self) -> f64 {
        (0..2).map(|d| self.high[d] - self.low[d]).product()
    }
}

/// Boxes that are kept, a list for each coordinate, so that one box is compared with several at once.
#[derive(Default)]
struct Kept {
    low: [Vec<f64>; 2],
    high: [Vec<f64>; 2],
    areas: Vec<f64>,
    places: Vec<usize>,
}

/// How many boxes are compared before the result is looked at.
const COMPARED: usize = 32;

impl Kept {
    fn push(&mut self, place: usize, corners: &Corners) {
        for d in 0..2 {
            self.low[d].push(corners.low[d]);
            self.high[d].push(corners.high[d]);
        }
        self.areas.push(corners.area());
        self.places.push(place);
    }

    /// Whether the intersection with a kept box is more than a share of the union.
    fn overlap(&self, corners: &Corners, share: f64) -> bool {
        (0..self.areas.len()).step_by(COMPARED).any(|start| {
            let part = start..(start + COMPARED).min(self.areas.len());
            let [x0, y0] = [0, 1].map(|d| &self.low[d][part.clone()]);
            let [x1, y1] = [0, 1].map(|d| &self.high[d][part.clone()]);
            let (areas, area) = (&self.areas[part], corners.area());
            let mut found = false;
            for (((&x0, &y0), (&x1, &y1)), &other) in x0.iter().zip(y0).zip(x1.iter().zip(y1)).zip(areas) {
                let width = smaller(x1, corners.high[0]) - larger(x0, corners.low[0]);
                let height = smaller(y1, corners.high[1]) - larger(y0, corners.low[1]);
                let common = larger(width, 0.0) * larger(height, 0.0);
                found |= common > share * (area + other - common);
            }
            found
        })
    }
}

/// The smaller number, as one instruction on vectors: `f64::min` also looks for NaN.
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The larger number, likewise.
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// For each picture and class the boxes, best first, that overlap no better one by more than a threshold: picture, class
/// and number of the box.
fn suppress(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (boxes, scores) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let (&[batch, count, 4], &[score_batch, classes, score_count]) = (boxes.shape(), scores.shape()) else {
        refuse!("shapes {:?} and {:?} are none of boxes and scores", boxes.shape(), scores.shape())
    };
    if batch != score_batch || count != score_count {
        refuse!("{count} boxes of {batch} pictures do not fit scores of shape {:?}", scores.shape());
    }
    let option = |place: usize| {
        Ok::<_, Fault>(arguments.optional_numbers(place)?.and_then(|numbers| numbers.first().copied()))
    };
    let most = option(2)?.map_or(0, |most| most.max(0.0) as usize);
    let threshold = option(3)?.unwrap_or(0.0);
    let least_score = option(4)?;
    let by_centre = arguments.flag("center_point_box");
    let numbers = |place: usize| Ok::<_, Fault>(arguments.optional_numbers(place)?.unwrap_or_default());
    let (boxes, scores) = (numbers(0)?, numbers(1)?);
    let mut chosen = Vec::new();
    for picture in 0..batch {
        let corners: Vec<Corners> = boxes[picture * count * 4..][..count * 4]
            .chunks_exact(4)
            .map(|numbers| Corners::of(numbers, by_centre))
            .collect();
        for class in 0..classes {
            let scores = &scores[(picture * classes + class) * count..][..count];
            let mut order: Vec<usize> =
                (0..count).filter(|&place| least_score.is_none_or(|least| scores[place] > least)).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let mut kept = Kept::default();
            for place in order {
                if kept.places.len() >= most {
                    break;
                }
                if !kept.overlap(&corners[place], threshold) {
                    kept.push(place, &corners[place]);
                }
            }
            chosen.extend(
                kept.places.into_iter().flat_map(|place| [picture as i64, class as i64, place as i64]),
            );
        }
    }
    one(HostTensor::new(&[chosen.len() / 3, 3], chosen)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More boxes are kept than are compared at once, and the last of them decides, too.
    #[test]
    fn a_box_is_compared_with_all_that_are_kept() {
        let at = |x: f64| Corners::of(&[x, 0.0, x + 2.0, 2.0], false);
        let mut kept = Kept::default();
        for place in 0..3 * COMPARED + 1 {
            let own = at(4.0 * place as f64);
            assert!(!kept.overlap(&own, 0.0), "{place}");
            kept.push(place, &own);
            // Half of each box, which is a third of their union.
            let shifted = at(4.0 * place as f64 + 1.0);
            assert!(kept.overlap(&shifted, 0.33) && !kept.overlap(&shifted, 0.34), "{place}");
        }
    }
}
