//! Kernels on integers that stand for numbers.

use super::*;

fn bytes(shape: &[usize], seed: usize) -> HostTensor {
    let length = shape.iter().product::<usize>();
    HostTensor::new(shape, (0..length).map(|place| ((place * 97 + seed * 31) % 256) as u8).collect()).unwrap()
}

fn signed(shape: &[usize], seed: usize) -> HostTensor {
    let length = shape.iter().product::<usize>();
    let number = |place: usize| ((place * 97 + seed * 31) % 256) as u8 as i8;
    HostTensor::new(shape, (0..length).map(number).collect()).unwrap()
}

fn given(tensor: HostTensor) -> Given {
    Given(tensor, false)
}

fn scale(value: f32) -> Given {
    known(HostTensor::scalar(value))
}

#[test]
fn quantisation_rounds_to_even_and_saturates() {
    let halves: Vec<f32> =
        (-40..41).map(|number| number as f32 * 0.25).chain([1e30, -1e30, f32::INFINITY, f32::NAN]).collect();
    let x = || given(HostTensor::vector(halves.clone()));
    for zero in [HostTensor::scalar(0u8), HostTensor::scalar(251u8), HostTensor::scalar(3u8)] {
        both("quantize_linear", &[], &[x(), scale(0.5), known(zero)]);
    }
    for zero in [HostTensor::scalar(-128i8), HostTensor::scalar(127i8), HostTensor::scalar(0i8)] {
        both("quantize_linear", &[], &[x(), scale(0.1), known(zero.clone())]);
        both("quantize_linear", &[], &[x(), scale(0.1), given(zero)]);
    }
    let wide = HostTensor::new(&[2, 2], vec![1e9f32, -1e9, 4095.5, 0.0]).unwrap();
    both("quantize_linear", &[], &[given(wide), scale(0.125), known(HostTensor::scalar(7i16))]);
}

#[test]
fn scales_belong_to_places_or_blocks() {
    let scales = || known(HostTensor::vector(vec![0.5f32, 0.25, 2.0]));
    let zeros = || known(HostTensor::vector(vec![1u8, 2, 3]));
    let axis = |axis: i64| [("axis", Attribute::Int(axis))];
    fixed("quantize_linear", &axis(1), &[tensor(&[2, 3, 5]), scales(), zeros()]);
    fixed("dequantize_linear", &axis(-2), &[given(bytes(&[2, 3, 5], 1)), scales(), zeros()]);
    let blocks = || known(HostTensor::new(&[2, 2], vec![0.5f32, 0.25, 2.0, 4.0]).unwrap());
    let blocked = [("axis", Attribute::Int(1)), ("block_size", Attribute::Int(3))];
    fixed("dequantize_linear", &blocked, &[given(signed(&[2, 5], 1)), blocks()]);
    fixed("quantize_linear", &blocked, &[tensor(&[2, 5]), blocks()]);
}

#[test]
fn sums_are_requantised() {
    let sums: Vec<i32> = vec![0, 1, -1, 3, -3, 5, 1000, -1000, i32::MAX, i32::MIN, 123_456, 16_777_217];
    let x = || given(HostTensor::new(&[2, 6], sums.clone()).unwrap());
    for factor in [0.5f32, 0.0019, 1e-7] {
        both("requantize", &[], &[x(), scale(factor), known(HostTensor::scalar(128u8))]);
        both("requantize", &[], &[x(), scale(factor), known(HostTensor::scalar(-7i8))]);
    }
    let scales = HostTensor::vector((1..7).map(|number| number as f32 * 0.01).collect());
    fixed("requantize", &[], &[x(), known(scales), given(HostTensor::scalar(0i8))]);
    fixed("dequantize_linear", &[], &[x(), scale(0.37), known(HostTensor::scalar(0i32))]);
    fixed("dequantize_linear", &[], &[x(), scale(0.37), known(HostTensor::scalar(5i32))]);
}

#[test]
fn products_of_integers_have_the_terms_of_zero_points() {
    let zero = |value: u8| known(HostTensor::scalar(value));
    for (a, b) in [(bytes(&[3, 7], 1), signed(&[7, 5], 2)), (signed(&[3, 7], 3), signed(&[7, 5], 4))] {
        let of_a =
            || if a.element() == ElementType::U8 { zero(113) } else { known(HostTensor::scalar(-9i8)) };
        let none = || known(HostTensor::scalar(0i8));
        let of_b = || known(HostTensor::scalar(5i8));
        both("matmul_integer", &[], &[given(a.clone()), given(b.clone())]);
        both("matmul_integer", &[], &[given(a.clone()), known(b.clone()), of_a(), none()]);
        both("matmul_integer", &[], &[given(a.clone()), given(b.clone()), of_a(), of_b()]);
    }
    let of_rows = || given(HostTensor::vector(vec![1u8, 2, 3]));
    let of_columns = || given(HostTensor::vector(vec![9u8, 8, 7, 6]));
    let inputs = [given(bytes(&[3, 6], 5)), given(bytes(&[6, 4], 6)), of_rows(), of_columns()];
    fixed("matmul_integer", &[], &inputs);
    let stacks = [given(bytes(&[2, 1, 3, 6], 5)), given(bytes(&[4, 6, 1], 6)), zero(3), zero(4)];
    fixed("matmul_integer", &[], &stacks);
    fixed("matmul_integer", &[], &[given(bytes(&[6], 5)), given(bytes(&[2, 6, 3], 6)), zero(3), zero(4)]);
}

#[test]
fn convolutions_of_integers_are_padded_by_the_zero_point() {
    let zero = |value: u8| known(HostTensor::scalar(value));
    let attributes = |group: i64| {
        [("group", Attribute::Int(group)), ("pads", ints(&[1, 2, 0, 1])), ("strides", ints(&[2, 1]))]
    };
    for group in [1, 2, 4] {
        let weights = || known(bytes(&[8, 4 / group as usize, 3, 2], 2));
        let x = || given(bytes(&[2, 4, 6, 5], 1));
        both("conv_integer", &attributes(group), &[x(), weights()]);
        fixed("conv_integer", &attributes(group), &[x(), weights(), zero(77)]);
        let of_filters = given(HostTensor::vector((0..8u8).collect()));
        let inputs = [x(), weights(), given(HostTensor::scalar(200u8)), of_filters];
        fixed("conv_integer", &attributes(group), &inputs);
    }
    // Taps that meet nothing but zero points.
    for (dilations, pads) in [([6, 6], [6, 6, 6, 6]), ([5, 3], [10, 2, 0, 4]), ([1, 7], [1, 14, 1, 0])] {
        let attributes = [("dilations", ints(&dilations)), ("pads", ints(&pads))];
        let x = || given(bytes(&[2, 3, 5, 4], 1));
        let weights = || known(signed(&[4, 3, 3, 3], 2));
        both("conv_integer", &attributes, &[x(), weights(), zero(77)]);
        let of_filters = given(HostTensor::vector(vec![3i8, 0, -7, 120]));
        both("conv_integer", &attributes, &[x(), weights(), zero(77), of_filters]);
    }
    let line = [given(signed(&[1, 3, 9], 1)), known(signed(&[4, 3, 3], 2)), known(HostTensor::scalar(-3i8))];
    fixed("conv_integer", &[("pads", ints(&[1, 1]))], &line);
}

/// `f32` holds the sums of up to 258 products of bytes, 514 where one factor has a sign.
#[test]
fn convolutions_of_single_channels_are_exact_whatever_the_bytes_are() {
    let filled = |shape: &[usize], value: u8| {
        HostTensor::new(shape, vec![value; shape.iter().product::<usize>()]).unwrap()
    };
    let (group, zero) = ([("group", Attribute::Int(2))], || known(HostTensor::scalar(0u8)));
    for taps in [258, 259] {
        let inputs = [given(filled(&[1, 2, taps + 1], 255)), known(filled(&[2, 1, taps], 255))];
        fixed("conv_integer", &group, &inputs);
    }
    for (taps, value) in [(514, 255), (515, 255), (515, 254)] {
        let weights = HostTensor::new(&[2, 1, taps], vec![-128i8; 2 * taps]).unwrap();
        let inputs = [given(filled(&[1, 2, taps], value)), known(weights), zero()];
        fixed("conv_integer", &group, &inputs);
    }
}

#[test]
fn products_are_stored_with_the_scale_of_the_result() {
    let wide = |values: &[f32]| known(HostTensor::vector(values.to_vec()));
    let byte = |value: u8| given(HostTensor::scalar(value));
    for (a, b) in [(bytes(&[3, 7], 1), bytes(&[7, 5], 2)), (bytes(&[2, 3, 9], 3), bytes(&[9, 4], 4))] {
        let inputs = [
            given(a.clone()),
            scale(0.02),
            byte(113),
            given(b.clone()),
            scale(0.013),
            byte(7),
            scale(0.31),
            byte(120),
        ];
        fixed("qlinear_matmul", &[], &inputs);
    }
    let per_column = [
        given(bytes(&[4, 6], 5)),
        scale(0.02),
        byte(113),
        known(signed(&[6, 3], 6)),
        wide(&[0.01, 0.02, 0.003]),
        known(HostTensor::vector(vec![0i8; 3])),
        scale(0.1),
        given(HostTensor::scalar(-3i8)),
    ];
    fixed("qlinear_matmul", &[], &per_column);
}

#[test]
fn convolutions_are_stored_with_the_scale_of_the_result() {
    let attributes = [("pads", ints(&[1, 0, 1, 1])), ("strides", ints(&[1, 2]))];
    let inputs = || {
        vec![
            given(bytes(&[2, 3, 5, 6], 1)),
            scale(0.02),
            given(HostTensor::scalar(200u8)),
            known(signed(&[4, 3, 3, 2], 2)),
            known(HostTensor::vector(vec![0.01f32, 0.02, 0.03, 0.004])),
            known(HostTensor::vector(vec![0i8; 4])),
            scale(0.31),
            given(HostTensor::scalar(120u8)),
        ]
    };
    fixed("qlinear_conv", &attributes, &inputs());
    let mut with_bias = inputs();
    with_bias.push(known(HostTensor::vector(vec![100i32, -2000, 3, 0])));
    fixed("qlinear_conv", &attributes, &with_bias);
}

#[test]
fn scale_and_zero_point_follow_from_the_data() {
    for values in [vec![1.0f32, -2.0, 0.5, 3.25, 100.0, -0.125], vec![3.0; 6], vec![-3.0; 6], vec![0.0; 6]] {
        let x = || given(HostTensor::new(&[2, 3], values.clone()).unwrap());
        check("dynamic_quantize_linear", &[], &[x()], 3, false);
        check("dynamic_quantize_linear", &[], &[x()], 3, true);
    }
}

#[test]
fn bytes_name_elements_of_a_table() {
    let table = |factor: usize| (0..256).map(move |place: usize| place * factor % 251);
    let tables = [
        HostTensor::vector(table(7).map(|number| number as u8).collect()),
        HostTensor::vector(table(11).map(|number| (number as i16 - 125) as i8).collect()),
        HostTensor::vector(table(13).map(|number| number as f32 * 0.37).collect()),
        HostTensor::vector(table(17).map(|number| number as i32 * 1_000_003).collect()),
    ];
    for table in tables {
        fixed("look_up", &[], &[given(bytes(&[3, 5, 37], 1)), known(table.clone())]);
        fixed("look_up", &[], &[given(signed(&[256], 2)), given(table.clone())]);
        fixed("look_up", &[], &[given(signed(&[], 2)), known(table)]);
    }
}

/// The program of a call with signatures that are all known to have these extents.
fn program_of(name: &str, inputs: &[Given]) -> std::sync::Arc<Program> {
    let values: Vec<ValueId> = (0..=inputs.len()).map(|number| ValueId(number as u32)).collect();
    let (arguments, results) = values.split_at(inputs.len());
    let signature = |Given(tensor, known): &Given| Signature {
        element: tensor.element(),
        extents: tensor.shape().iter().map(|&extent| extent.into()).collect(),
        order: Order::given(tensor.rank()),
        strides: None,
        contents: known.then(|| tensor.clone()),
        integers: None,
        constant: *known,
    };
    let call = Call {
        operator: operator::find(name).unwrap(),
        inputs: arguments.iter().copied().map(Some).collect(),
        attributes: attributes(&[]),
    };
    let fusion = Fusion {
        calls: vec![(&call, results)],
        inputs: arguments.iter().copied().zip(inputs.iter().map(signature)).collect(),
        outputs: results.to_vec(),
        dims: Vec::new(),
        order: None,
        placed: None,
        accuracy: None,
    };
    legalise(&fusion).unwrap_or_else(|error| panic!("{name}: {error}")).program
}

/// Schedules compute what follows products tile by tile, which they cannot where it also reads what is computed later.
#[test]
fn sums_of_weights_come_before_products() {
    let zero = || known(HostTensor::scalar(136u8));
    let none = || known(HostTensor::scalar(0i8));
    let weights = |shape: &[usize]| given(signed(shape, 2));
    let inputs = [given(bytes(&[1, 8, 5, 5], 1)), weights(&[16, 8, 3, 3]), zero(), none()];
    for program in [
        program_of("conv_integer", &inputs),
        program_of("matmul_integer", &[given(bytes(&[5, 8], 1)), weights(&[8, 16]), zero(), none()]),
    ] {
        let text = program.to_string();
        let first = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in {text}"));
        assert!(first("x1[") < first("x0["), "{text}");
        assert!(text.contains("136i32 * x1["), "the zero point is a factor of what is computed once: {text}");
    }
}
