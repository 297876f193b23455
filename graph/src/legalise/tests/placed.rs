//! Elements at places that other tensors name.

use super::*;

fn named(shape: &[usize], values: &[i64]) -> Given {
    Given(HostTensor::new(shape, values.to_vec()).unwrap(), false)
}

fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

#[test]
fn elements_are_read_where_indices_say() {
    for axis in [0, 1, -1] {
        let indices = named(&[2, 3, 2], &[0, 1, -1, 0, 1, 1, 0, 0, -1, 1, 0, -2]);
        fixed("gather_elements", &[("axis", int(axis))], &[tensor(&[2, 3, 2]), indices]);
    }
    fixed("gather_elements", &[("axis", int(1))], &[tensor(&[4, 5]), named(&[2, 3], &[4, 0, -5, 1, 1, 2])]);
    both("gather_elements", &[("axis", int(1))], &[tensor(&[3, 7]), named(&[3, 1], &[6, 0, -7])]);
    both(
        "gather_nd",
        &[],
        &[tensor(&[3, 4, 5]), named(&[7, 2], &[0, 0, 1, 1, 2, 3, -1, -1, 0, 2, 1, 0, 2, -4])],
    );
    fixed("gather_nd", &[], &[tensor(&[3, 4]), named(&[1, 1], &[-3])]);
    fixed(
        "gather_nd",
        &[("batch_dims", int(1))],
        &[tensor(&[2, 3, 4]), named(&[2, 3, 1], &[0, 2, -1, 1, 1, 0])],
    );
    fixed(
        "gather_nd",
        &[("batch_dims", int(2))],
        &[tensor(&[2, 3, 4]), named(&[2, 3, 1], &[0, 2, -1, 1, 3, 0])],
    );
}

#[test]
fn updates_are_applied_in_order() {
    for reduction in ["none", "add", "mul", "max", "min"] {
        let attributes = [("axis", int(1)), ("reduction", text(reduction))];
        let indices = named(&[3, 4], &[0, 4, -1, 0, 2, 2, 2, 1, 3, 0, 3, -5]);
        fixed("scatter_elements", &attributes, &[tensor(&[3, 5]), indices, tensor(&[3, 4])]);
        let indices = named(&[1, 2], &[4, 4]);
        fixed("scatter_elements", &attributes, &[tensor(&[3, 5]), indices, tensor(&[1, 2])]);
        let reduction = [("reduction", text(reduction))];
        let rows = named(&[4, 1], &[2, 0, -1, 2]);
        both("scatter_nd", &reduction, &[tensor(&[3, 5]), rows, tensor(&[4, 5])]);
        let elements = named(&[2, 2, 2], &[0, 0, 2, -1, 0, 0, 1, 1]);
        fixed("scatter_nd", &reduction, &[tensor(&[3, 5]), elements, tensor(&[2, 2])]);
    }
    let numbers = Given(integers(&[5, -3, 7]), false);
    let updates = Given(integers(&[1, 9]), false);
    fixed("scatter_elements", &[("reduction", text("max"))], &[numbers, named(&[2], &[1, 1]), updates]);
}

#[test]
fn nan_updates_stay() {
    for reduction in ["max", "min"] {
        let x = Given(HostTensor::vector(vec![1f32, f32::NAN, 2.0]), false);
        let updates = Given(HostTensor::vector(vec![f32::NAN, 4.0, 3.0]), false);
        let attributes = [("reduction", text(reduction))];
        fixed("scatter_elements", &attributes, &[x, named(&[3], &[0, 1, 2]), updates]);
    }
}

#[test]
fn sequences_turn_round() {
    let lengths = || named(&[3], &[4, 1, 3]);
    fixed("reverse_sequence", &[], &[tensor(&[5, 3, 2]), lengths()]);
    let attributes = [("batch_axis", int(0)), ("time_axis", int(1))];
    fixed("reverse_sequence", &attributes, &[tensor(&[3, 5]), lengths()]);
}

#[test]
fn places_decide_elements() {
    for axis in [0, 1, -1] {
        let values = Given(HostTensor::vector(vec![-1f32, 3.5]), false);
        let inputs = [named(&[2, 3], &[0, 6, -7, 3, 7, -8]), known(integers(&[7])), values];
        fixed("one_hot", &[("axis", int(axis))], &inputs);
    }
    for upper in [0, 1] {
        for k in [-9, -1, 0, 2, 9] {
            let inputs = [tensor(&[2, 3, 5]), known(HostTensor::scalar(k))];
            both("trilu", &[("upper", int(upper))], &inputs);
        }
        fixed("trilu", &[("upper", int(upper))], &[tensor(&[1, 1])]);
    }
}

#[test]
fn elements_are_spread_over_a_larger_tensor() {
    let window = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let indices = || named(&[1, 2, 2, 3], &[0, 3, 11, 12, 17, 23, 24, 26, 35, 47, 36, 41]);
    fixed("max_unpool", &window, &[tensor(&[1, 2, 2, 3]), indices()]);
    let larger = known(integers(&[1, 2, 5, 7]));
    fixed("max_unpool", &window, &[tensor(&[1, 2, 2, 3]), indices(), larger]);
    let padded = [("kernel_shape", ints(&[3])), ("pads", ints(&[1, 1])), ("strides", ints(&[2]))];
    fixed("max_unpool", &padded, &[tensor(&[2, 1, 4]), named(&[2, 1, 4], &[0, 2, 4, 6, 7, 9, 12, 13])]);
}

/// The program of a slice or an expansion whose bounds are integers over a dimension, and the sizes that it was made for.
fn followed(operator: &str, shape: &[SymInt], given: &[Vec<SymInt>], size: i64) -> Legalised {
    let operator = operator::find(operator).unwrap();
    let value = |number: usize| ValueId(number as u32);
    let inputs = (0..=given.len()).map(|number| Some(value(number))).collect();
    let call = Call { operator, inputs, attributes: Attributes::none() };
    let output = [value(given.len() + 1)];
    let now = |integer: &SymInt| integer.evaluate(&|_| Some(size)).unwrap();
    let plain = |element, extents: Vec<SymInt>| Signature {
        element,
        order: Order::given(extents.len()),
        extents,
        strides: None,
        contents: None,
        integers: None,
        constant: false,
    };
    let bounds = given.iter().enumerate().map(|(place, integers)| {
        let contents = Some(HostTensor::vector(integers.iter().map(now).collect::<Vec<i64>>()));
        let integers = Some(integers.clone());
        (
            value(place + 1),
            Signature { contents, integers, ..plain(ElementType::I64, vec![given[place].len().into()]) },
        )
    });
    let fusion = Fusion {
        calls: vec![(&call, &output[..])],
        inputs: bounds.chain([(value(0), plain(ElementType::F32, shape.to_vec()))]).collect(),
        outputs: output.to_vec(),
        dims: vec![(Symbol::new("D"), size)],
        order: None,
        placed: None,
        accuracy: None,
    };
    legalise(&fusion).unwrap_or_else(|error| panic!("{}: {error}", operator.name))
}

#[test]
fn bounds_that_depend_on_sizes_make_one_program() {
    let (size, one) = (SymInt::symbol("D"), SymInt::from(1));
    // The first elements of a table, and all but the first and the last of a dimension.
    let table = [500.into(), 16.into()];
    let first = |now| followed("slice", &table, &[vec![0.into()], vec![size.clone()]], now);
    let within =
        |now| followed("slice", &[size.clone(), 16.into()], &[vec![one.clone()], vec![(-1).into()]], now);
    let repeated = |now| followed("expand", &[1.into(), 16.into()], &[vec![&size + &one, 16.into()]], now);
    for made in [first(7), within(7), repeated(7)] {
        let text = made.program.to_string();
        assert!(!text.contains("bounded"), "{text}");
        for now in [9, 100] {
            for (integer, value) in &made.decided_by {
                assert_eq!(integer.evaluate(&|_| Some(now)), Some(*value), "{integer}\n{text}");
            }
        }
    }
    assert_eq!(first(7).program, first(100).program);
    // A table that ends before is another definition.
    let whole = first(600);
    assert!(whole.decided_by.iter().any(|(integer, value)| integer.evaluate(&|_| Some(7)) != Some(*value)));
}
