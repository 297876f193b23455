//! Running sums, integers, normalisations, sums of products, transforms and other extents.

use super::*;

fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

#[test]
fn running_sums_and_products() {
    for name in ["cumulative_sum", "cumulative_product"] {
        for (exclusive, reverse) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let attributes = [("exclusive", int(exclusive)), ("reverse", int(reverse))];
            for axis in [0, 1, -1] {
                both(name, &attributes, &[tensor(&[5, 3, 4]), known(HostTensor::scalar(axis))]);
            }
            fixed(name, &attributes, &[tensor(&[1]), known(HostTensor::scalar(0i64))]);
            let whole = Given(integers(&[3, -1, 4, 1, -5]), false);
            fixed(name, &attributes, &[whole, known(HostTensor::scalar(0i64))]);
        }
    }
}

#[test]
fn integers_are_divided_by_known_numbers() {
    let dividends = || Given(integers(&[7, -7, 8, 0, -1, i64::MAX]), false);
    for divisor in [1i64, 2, -3, 7] {
        fixed("div", &[], &[dividends(), known(HostTensor::scalar(divisor))]);
        for fmod in [0, 1] {
            fixed("mod", &[("fmod", int(fmod))], &[dividends(), known(HostTensor::scalar(divisor))]);
        }
    }
    fixed("div", &[], &[dividends(), known(integers(&[1, -2, 3, -4, 5, 6]))]);
    for fmod in [0, 1] {
        both("mod", &[("fmod", int(fmod))], &[tensor(&[4, 5]), Given(numbers(&[5], 3), false)]);
    }
}

#[test]
fn bits_move() {
    let values = || Given(HostTensor::vector(vec![1u8, 255, 128, 7, 0]), false);
    let by = || Given(HostTensor::vector(vec![0u8, 1, 7, 8, 200]), false);
    for direction in ["LEFT", "RIGHT"] {
        fixed("bit_shift", &[("direction", text(direction))], &[values(), by()]);
    }
    fixed("bitwise_not", &[], &[values()]);
    fixed("bitwise_not", &[], &[Given(integers(&[0, -1, 5]), false)]);
}

#[test]
fn floats_become_integers() {
    let big = 9.3e18f32;
    let values = [0.0f32, -0.9, 2.9, 255.5, 300.0, -1.0, 3e9, -3e9, big, -big, f32::NAN, f32::INFINITY];
    let targets = [
        ElementType::I8,
        ElementType::U8,
        ElementType::I16,
        ElementType::U16,
        ElementType::I32,
        ElementType::U32,
        ElementType::I64,
        ElementType::U64,
    ];
    for to in targets {
        let attributes = [("to", Attribute::Element(to))];
        fixed("cast", &attributes, &[Given(HostTensor::vector(values.to_vec()), false)]);
        let wide = values.iter().map(|&value| f64::from(value)).chain([-2_147_483_648.9, 1e300]).collect();
        fixed("cast", &attributes, &[Given(HostTensor::vector::<f64>(wide), false)]);
    }
    for (negative, positive) in [(1, 1), (1, 0), (0, 1)] {
        let attributes = [("detect_negative", int(negative)), ("detect_positive", int(positive))];
        let values = vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0];
        fixed("is_inf", &attributes, &[Given(HostTensor::vector(values), false)]);
    }
}

#[test]
fn extremes_are_nan_where_an_element_is() {
    let x = || {
        let mut values: Vec<f32> = (0..24).map(|n| n as f32 - 7.5).collect();
        for place in [0, 10, 23] {
            values[place] = f32::NAN;
        }
        Given(HostTensor::new(&[1, 2, 3, 4], values).unwrap(), false)
    };
    for name in ["reduce_max", "reduce_min"] {
        both(name, &[], &[x(), known(HostTensor::vector(vec![-1i64]))]);
        both(name, &[], &[x()]);
    }
    for name in ["max", "min"] {
        let other = Given(HostTensor::vector(vec![f32::NAN, 1.0, -2.0, 3.0]), false);
        both(name, &[], &[x(), other]);
    }
    fixed("max_pool", &[("kernel_shape", ints(&[2, 2]))], &[x()]);
    fixed("max_pool", &[("kernel_shape", ints(&[3, 3])), ("pads", ints(&[1, 1, 1, 1]))], &[x()]);
    both("global_max_pool", &[], &[x()]);
    both("relu", &[], &[x()]);
    both("clip", &[], &[x(), known(HostTensor::scalar(-0.5f32)), known(HostTensor::scalar(0f32))]);
}

#[test]
fn groups_are_normalised() {
    for (shape, groups) in [(&[2, 6, 3, 5][..], 3), (&[1, 4, 1], 1), (&[3, 2, 7], 2)] {
        let parameters = || [tensor(&[shape[1]]), Given(numbers(&[shape[1]], 9), false)];
        let [scale, shift] = parameters();
        fixed("instance_normalization", &[], &[tensor(shape), scale, shift]);
        let [scale, shift] = parameters();
        fixed("group_normalization", &[("num_groups", int(groups))], &[tensor(shape), scale, shift]);
    }
    let x = || tensor(&[2, 3, 4, 5]);
    both("mean_variance_normalization", &[], &[x()]);
    both("mean_variance_normalization", &[("axes", ints(&[1, -1]))], &[x()]);
}

#[test]
fn sums_of_products() {
    let two = |equation: &str, left: &[usize], right: &[usize]| {
        fixed("einsum", &[("equation", text(equation))], &[tensor(left), Given(numbers(right, 7), false)]);
    };
    two("ij,jk->ik", &[3, 4], &[4, 5]);
    two("i, j -> i j", &[3], &[5]);
    two("bij,bjk", &[2, 3, 4], &[2, 4, 1]);
    two("...ij,...jk->...ik", &[2, 1, 3, 4], &[5, 4, 2]);
    two("bhqd,bhkd->bhqk", &[1, 2, 3, 4], &[1, 2, 5, 4]);
    two("i,i->", &[7], &[7]);
    two("ii,ij->j", &[3, 3], &[3, 2]);
    for (equation, shape) in
        [("ii->i", &[4, 4][..]), ("ij->ji", &[3, 5]), ("ij->", &[3, 5]), ("...i->...", &[2, 3, 4])]
    {
        fixed("einsum", &[("equation", text(equation))], &[tensor(shape)]);
    }
    let three = [tensor(&[2, 3]), Given(numbers(&[3, 4], 5), false), Given(numbers(&[4], 6), false)];
    fixed("einsum", &[("equation", text("ab,bc,c->ac"))], &three);
}

#[test]
fn transforms_of_signals() {
    for onesided in [0, 1] {
        let parts: &[usize] = if onesided == 1 { &[1] } else { &[1, 2] };
        for &parts in parts {
            for length in [1, 5, 8] {
                let attributes = [("onesided", int(onesided))];
                let (x, axis) = (tensor(&[2, length, 3, parts]), known(HostTensor::scalar(1i64)));
                let cut = known(HostTensor::scalar(6i64));
                fixed("dft", &attributes, &[x, cut, axis]);
            }
        }
    }
    for (onesided, length) in [(0, 7), (1, 8), (1, 9)] {
        let attributes = [("inverse", int(1)), ("onesided", int(onesided))];
        let inputs = [tensor(&[3, 5, 2]), known(HostTensor::scalar(length)), known(HostTensor::scalar(1i64))];
        fixed("dft", &attributes, &inputs);
    }
    for onesided in [0, 1] {
        for (samples, hop, length) in [(16, 4, 8), (19, 3, 7), (8, 1, 8), (9, 2, 3), (5, 3, 2), (4, 1, 1)] {
            let window = || {
                let weights = (0..length).map(|place| 0.1 * place as f32 + 0.05);
                known(HostTensor::vector(weights.collect()))
            };
            let hop = || known(HostTensor::scalar(hop));
            let attributes = [("onesided", int(onesided))];
            fixed("stft", &attributes, &[tensor(&[2, samples]), hop(), window()]);
            fixed("stft", &attributes, &[tensor(&[2, samples, 1]), hop(), window()]);
        }
    }
    let inputs =
        [tensor(&[1, 12, 2]), known(HostTensor::scalar(5i64)), known(HostTensor::vector(vec![0.5f32; 6]))];
    fixed("stft", &[("onesided", int(0))], &inputs);
}

#[test]
fn tensors_of_other_extents() {
    let empty = || known(HostTensor::vector(Vec::<f32>::new()));
    let coordinates =
        ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"];
    for mode in ["nearest", "linear", "cubic"] {
        for coordinate in coordinates {
            for scales in [[1.0, 1.0, 2.0, 1.5], [1.0, 1.0, 0.6, 1.0], [1.0, 1.0, 0.4, 2.7]] {
                let attributes = [("mode", text(mode)), ("coordinate_transformation_mode", text(coordinate))];
                let scales = known(HostTensor::vector(scales.map(|scale: f64| scale as f32).to_vec()));
                fixed("resize", &attributes, &[tensor(&[1, 3, 5, 7]), empty(), scales]);
            }
        }
        for antialias in [0, 1] {
            let attributes = [("mode", text(mode)), ("antialias", int(antialias))];
            let sizes = known(integers(&[2, 3, 3]));
            let inputs = [tensor(&[2, 11, 8]), empty(), empty(), sizes];
            if mode != "nearest" || antialias == 0 {
                fixed("resize", &attributes, &inputs);
            }
        }
    }
    for nearest in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] {
        let attributes = [("nearest_mode", text(nearest))];
        fixed("resize", &attributes, &[tensor(&[4, 5]), empty(), empty(), known(integers(&[7, 3]))]);
        let whole = Given(HostTensor::new(&[2, 3], vec![1u8, 2, 3, 4, 5, 6]).unwrap(), false);
        fixed("resize", &attributes, &[whole, empty(), empty(), known(integers(&[3, 5]))]);
    }
    let crop = [
        ("coordinate_transformation_mode", text("tf_crop_and_resize")),
        ("mode", text("linear")),
        ("extrapolation_value", Attribute::Float(7.0)),
    ];
    let region = known(HostTensor::vector(vec![0f32, 0.4, 1.2, 0.6]));
    fixed("resize", &crop, &[tensor(&[4, 5]), region, empty(), known(integers(&[5, 4]))]);
}

#[test]
fn places_around_a_tensor_are_mirrored_or_repeated() {
    for mode in ["reflect", "wrap", "edge"] {
        let attributes = [("mode", text(mode))];
        for pads in [[0, 2, 0, 3], [1, 0, 4, 1], [7, 9, 8, 13], [-1, 2, 1, -2]] {
            fixed("pad", &attributes, &[tensor(&[3, 5]), known(integers(&pads))]);
        }
        fixed("pad", &attributes, &[tensor(&[1, 2]), known(integers(&[3, 1, 2, 1]))]);
        both("pad", &attributes, &[tensor(&[6, 5]), known(integers(&[0, 2, 0, 3]))]);
    }
}
