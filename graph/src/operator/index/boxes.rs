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

    /// The area of the intersection as a share of that of the union.
    fn overlap(&self, other: &Corners) -> f64 {
        let side = |d: usize| (self.high[d].min(other.high[d]) - self.low[d].max(other.low[d])).max(0.0);
        let common = side(0) * side(1);
        let union = self.area() + other.area() - common;
        if union > 0.0 { common / union } else { 0.0 }
    }
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
            let mut kept: Vec<usize> = Vec::new();
            for place in order {
                if kept.len() >= most {
                    break;
                }
                if kept.iter().all(|&better| corners[better].overlap(&corners[place]) <= threshold) {
                    kept.push(place);
                }
            }
            chosen.extend(kept.into_iter().flat_map(|place| [picture as i64, class as i64, place as i64]));
        }
    }
    one(HostTensor::new(&[chosen.len() / 3, 3], chosen)?)
}
