//! Attention: queries in vectors or not, shared keys, masks of all shapes.

use super::*;

fn scale() -> (&'static str, Attribute) {
    ("scale", Attribute::Float(0.25))
}

fn stacks(queries: &[usize], keys: &[usize], values: &[usize]) -> Vec<Given> {
    vec![tensor(queries), Given(numbers(keys, 5), false), Given(numbers(values, 7), false)]
}

#[test]
fn few_and_many_queries() {
    for (rows, columns) in [(1, 1), (1, 9), (3, 5), (13, 7), (8, 1), (17, 11)] {
        both("attention", &[scale()], &stacks(&[rows, 6], &[columns, 6], &[columns, 4]));
        both("attention", &[], &stacks(&[2, 3, rows, 5], &[2, 3, columns, 5], &[2, 3, columns, 5]));
    }
}

#[test]
fn keys_that_several_queries_share() {
    for rows in [1, 9] {
        both("attention", &[scale()], &stacks(&[2, 3, rows, 4], &[2, 1, 7, 4], &[2, 1, 7, 3]));
        fixed("attention", &[scale()], &stacks(&[3, rows, 4], &[2, 1, 7, 4], &[7, 3]));
    }
}

#[test]
fn keys_may_be_transposed() {
    let attributes = [scale(), ("keys_transposed", Attribute::Int(1))];
    for rows in [2, 12] {
        both("attention", &attributes, &stacks(&[2, rows, 6], &[2, 6, 10], &[2, 10, 3]));
    }
}

/// Masks of zeros and -∞, for each product, each key and each query, and of whole rows.
#[test]
fn masks_of_all_shapes() {
    for rows in [2, 11] {
        for shape in [&[rows, 7][..], &[1, 7], &[rows, 1], &[7], &[2, 1, rows, 7], &[3, 1, 1], &[]] {
            for zeros in ["", "zero_if_masked", "zero_if_nan"] {
                let count = shape.iter().product::<usize>();
                let hidden = |place: usize| if place % 3 == 1 || place < 7 { f32::NEG_INFINITY } else { 0.5 };
                let mask = HostTensor::new(shape, (0..count).map(hidden).collect()).unwrap();
                let mut inputs = stacks(&[2, 3, rows, 4], &[2, 3, 7, 4], &[2, 3, 7, 5]);
                inputs.push(Given(mask, false));
                let zeros = (!zeros.is_empty()).then_some((zeros, Attribute::Int(1)));
                let attributes: Vec<_> = std::iter::once(scale()).chain(zeros).collect();
                fixed("attention", &attributes, &inputs);
            }
        }
    }
}

/// Scores that are NaN or infinite, of some queries.
#[test]
fn zeros_replace_weights_that_are_no_numbers() {
    for rows in [2, 11] {
        let count = 2 * rows * 7;
        let number = |place: usize| match place % 29 {
            3 => f32::NAN,
            11 => f32::INFINITY,
            _ if place / 7 % rows == 1 => f32::NEG_INFINITY,
            _ => 0.5,
        };
        let mask = HostTensor::new(&[2, 1, rows, 7], (0..count).map(number).collect()).unwrap();
        let mut inputs = stacks(&[2, 3, rows, 4], &[2, 3, 7, 4], &[2, 3, 7, 5]);
        inputs.push(Given(mask, false));
        for zeros in [0, 1] {
            fixed("attention", &[scale(), ("zero_if_nan", Attribute::Int(zeros))], &inputs);
        }
    }
}

#[test]
fn half_precision_is_summed_in_single() {
    for rows in [3, 10] {
        let half = |given: Given| Given(given.0.cast(ElementType::F16).unwrap(), false);
        let inputs: Vec<Given> = stacks(&[rows, 4], &[9, 4], &[9, 2]).into_iter().map(half).collect();
        fixed("attention", &[scale()], &inputs);
    }
}
