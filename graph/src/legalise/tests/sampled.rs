//! Samples at coordinates that a tensor gives, and normalisation by neighbours and by length.

use super::*;

#[test]
fn samples_are_taken_where_a_grid_says() {
    for mode in ["nearest", "linear", "cubic"] {
        for padding in ["zeros", "border", "reflection"] {
            for aligned in [0, 1] {
                let attributes = [
                    ("mode", text(mode)),
                    ("padding_mode", text(padding)),
                    ("align_corners", Attribute::Int(aligned)),
                ];
                let grid = |shape: &[usize]| Given(numbers(shape, 5), false);
                fixed("grid_sample", &attributes, &[tensor(&[2, 3, 5, 7]), grid(&[2, 4, 3, 2])]);
                both("grid_sample", &attributes, &[tensor(&[3, 1, 1, 4]), grid(&[3, 5, 1, 2])]);
                if mode != "cubic" {
                    fixed("grid_sample", &attributes, &[tensor(&[1, 2, 3, 4, 2]), grid(&[1, 2, 2, 3, 3])]);
                }
            }
        }
    }
}

#[test]
fn regions_are_pooled_where_they_lie() {
    // Inside, across each border, outside, without extent, and upside down.
    let corners = [
        [1.0, 2.0, 9.0, 7.5],
        [-3.0, -2.0, 4.0, 3.0],
        [8.0, 5.5, 30.0, 21.0],
        [-20.0, -30.0, -5.0, -4.0],
        [5.0, 3.0, 5.0, 3.0],
        [9.0, 6.0, 4.0, 2.0],
    ];
    let regions = || Given(HostTensor::new(&[6, 4], corners.concat()).unwrap(), false);
    let pictures = || Given(HostTensor::vector(vec![0i64, 1, 0, 1, 1, 0]), false);
    for mode in ["avg", "max"] {
        for coordinates in ["half_pixel", "output_half_pixel"] {
            for (samples, scale, [height, width]) in [(1, 1.0, [3, 2]), (2, 0.5, [2, 5]), (3, 0.25, [1, 1])] {
                let attributes = [
                    ("mode", text(mode)),
                    ("coordinate_transformation_mode", text(coordinates)),
                    ("sampling_ratio", Attribute::Int(samples)),
                    ("spatial_scale", Attribute::Float(scale)),
                    ("output_height", Attribute::Int(height)),
                    ("output_width", Attribute::Int(width)),
                ];
                fixed("roi_align", &attributes, &[tensor(&[2, 3, 7, 11]), regions(), pictures()]);
            }
        }
    }
}

#[test]
fn coordinates_that_are_no_numbers_stay_inside() {
    let extremes = [f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30];
    let grid = HostTensor::new(&[1, 2, 2, 2], [extremes, extremes].concat()).unwrap();
    for padding in ["border", "reflection"] {
        let attributes = [("mode", text("nearest")), ("padding_mode", text(padding))];
        fixed("grid_sample", &attributes, &[tensor(&[1, 2, 5, 7]), Given(grid.clone(), false)]);
    }
}

#[test]
fn channels_are_normalised_by_their_neighbours() {
    for size in [1, 2, 3, 5, 8, 11] {
        let attributes = [
            ("size", Attribute::Int(size)),
            ("alpha", Attribute::Float(0.3)),
            ("beta", Attribute::Float(0.75)),
            ("bias", Attribute::Float(2.0)),
        ];
        fixed("local_response_normalization", &attributes, &[tensor(&[2, 7, 3, 5])]);
        both("local_response_normalization", &attributes, &[tensor(&[5, 4])]);
    }
}

#[test]
fn lanes_are_divided_by_their_length() {
    for axis in [-1, 0, 1] {
        for p in [1, 2] {
            let attributes = [("axis", Attribute::Int(axis)), ("p", Attribute::Int(p))];
            both("lp_normalization", &attributes, &[tensor(&[3, 5, 7])]);
            let zeros = HostTensor::zeros(ElementType::F32, &[2, 3]).unwrap();
            fixed("lp_normalization", &attributes, &[Given(zeros, false)]);
        }
    }
}

#[test]
fn inverses_of_hyperbolic_functions() {
    let magnitudes = [0.0, 1e-30, 1e-4, 0.3, 0.999, 1.0, 1.5, 7.0, 1e6, 1e12, 1e30, f32::INFINITY];
    let both_signs: Vec<f32> = magnitudes.iter().flat_map(|&x| [x, -x]).collect();
    fixed("asinh", &[], &[Given(HostTensor::vector(both_signs), false)]);
    let above: Vec<f32> = magnitudes.iter().map(|x| x + 1.0).collect();
    fixed("acosh", &[], &[Given(HostTensor::vector(above), false)]);
    let inside: Vec<f32> = [0.0, 1e-30, 1e-4, 0.3, 0.999, 1.0].iter().flat_map(|&x| [x, -x]).collect();
    fixed("atanh", &[], &[Given(HostTensor::vector(inside), false)]);
}
