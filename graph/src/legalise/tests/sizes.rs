//! Programs that are made for one size and taken again for others: where the choices that a program depends on come out alike, its results are those of the operator.

use super::*;

/// The extents of a plane for which programs are made.
const MADE_FOR: [usize; 2] = [7, 5];

/// Planes for which programs are taken again: smaller and larger ones, also such that fewer windows fit.
const OTHERS: [[usize; 2]; 8] = [[1, 1], [2, 3], [3, 3], [4, 6], [5, 7], [8, 5], [9, 12], [13, 10]];

/// Makes the program of a call whose first input has the extents `[2, channels, H, W]`, and runs it for each plane for which its choices are the same. Gives how
/// many these are.
fn check_planes(
    name: &str,
    given: &[(&str, Attribute)],
    channels: usize,
    others: &[Given],
    order: Order,
) -> usize {
    let operator = operator::find(name).unwrap();
    let values: Vec<ValueId> = (0..others.len() + 2).map(|number| ValueId(number as u32)).collect();
    let (arguments, results) = values.split_at(others.len() + 1);
    let call = Call {
        operator,
        inputs: arguments.iter().copied().map(Some).collect(),
        attributes: attributes(given),
    };
    let [height, width] = ["H", "W"].map(Symbol::new);
    let mut signatures = FxHashMap::default();
    let extents = vec![2.into(), channels.into(), height.clone().into(), width.clone().into()];
    let signature = |element, extents, order, contents: Option<HostTensor>| Signature {
        element,
        extents,
        order,
        strides: None,
        constant: contents.is_some(),
        contents,
        integers: None,
    };
    signatures.insert(arguments[0], signature(ElementType::F32, extents, order.clone(), None));
    for (&value, Given(tensor, known)) in arguments[1..].iter().zip(others) {
        let extents = tensor.shape().iter().map(|&extent| extent.into()).collect();
        let contents = known.then(|| tensor.clone());
        signatures.insert(value, signature(tensor.element(), extents, Order::given(tensor.rank()), contents));
    }
    let fusion = Fusion {
        calls: vec![(&call, results)],
        inputs: signatures,
        outputs: results.to_vec(),
        dims: vec![(height.clone(), MADE_FOR[0] as i64), (width.clone(), MADE_FOR[1] as i64)],
        order: Some(order),
        placed: None,
        accuracy: None,
    };
    let Ok(legalised) = legalise(&fusion) else { return 0 };
    let mut taken = 0;
    for plane in OTHERS.iter().chain([&MADE_FOR]) {
        let size = |integer: &SymInt| {
            integer.evaluate(&|symbol| Some(if *symbol == height { plane[0] } else { plane[1] } as i64))
        };
        if !legalised.decided_by.iter().all(|(integer, value)| size(integer) == Some(*value)) {
            assert_ne!(plane, &MADE_FOR, "{name}: the choices hold where they were made");
            continue;
        }
        taken += 1;
        let x = numbers(&[2, channels, plane[0], plane[1]], plane[0]);
        let hosts: Vec<Option<Value>> = std::iter::once(&x)
            .chain(others.iter().map(|Given(tensor, _)| tensor))
            .map(|one| Some(one.clone().into()))
            .collect();
        let evaluated = (operator.evaluate)(&Arguments {
            operator,
            attributes: &call.attributes,
            inputs: &hosts,
            outputs: 1,
        })
        .unwrap_or_else(|error| panic!("{name} at {plane:?}: {}\n{}", error.0, legalised.program));
        let expected = evaluated[0].as_tensor().unwrap();
        let mut buffers: Vec<AnyTensor> = legalised
            .inputs
            .iter()
            .map(|argument| match argument {
                Argument::Value(value) => {
                    let tensor = hosts[value.index()].as_ref().and_then(Value::as_tensor).unwrap();
                    in_order(tensor, &fusion.inputs[value].order)
                }
                Argument::Table(table) => table.reshape(&long(table.shape())).unwrap().to_kernel().unwrap(),
            })
            .collect();
        let output = &legalised.outputs[0];
        let shape: Vec<usize> = output.extents.iter().map(|extent| size(extent).unwrap() as usize).collect();
        assert_eq!(shape, expected.shape(), "{name} at {plane:?}: {}", legalised.program);
        // Extents that depend on the call stay dimensions of the program, also where they are 1.
        let stored: Vec<usize> = output
            .order
            .dimensions()
            .filter(|&dimension| !output.extents[dimension].is(1))
            .map(|dimension| shape[dimension])
            .collect();
        for (buffer, argument) in buffers.iter_mut().zip(&legalised.inputs) {
            if let Argument::Value(value) = argument
                && *value == arguments[0]
            {
                let own = &fusion.inputs[value];
                let extents = own.order.dimensions().filter(|&dimension| !own.extents[dimension].is(1));
                let extents: Vec<usize> = extents.map(|dimension| x.shape()[dimension]).collect();
                *buffer =
                    HostTensor::from_kernel(buffer).unwrap().reshape(&extents).unwrap().to_kernel().unwrap();
            }
        }
        buffers.push(AnyTensor::zeros(output.element.dtype().unwrap(), &stored).unwrap());
        let sizes = plane.map(|extent| extent as i64);
        interp::run(&legalised.program, &sizes, &[], &mut buffers)
            .unwrap_or_else(|error| panic!("{name} at {plane:?}: {error}\n{}", legalised.program));
        let title = format!("{name} {given:?} at {plane:?}");
        agree(&title, buffers.last().unwrap(), &in_order(expected, &output.order), &legalised.program);
    }
    taken
}

/// Counts the planes of both orders.
fn planes(name: &str, given: &[(&str, Attribute)], channels: usize, others: &[Given]) -> usize {
    [Order::given(4), Order::channels_last(4)]
        .map(|order| check_planes(name, given, channels, others, order))
        .iter()
        .sum()
}

/// Kernel, strides, dilations and padding of windows.
fn windows() -> Vec<[(&'static str, Attribute); 4]> {
    let mut all = Vec::new();
    for kernel in [[1, 1], [2, 3], [3, 3]] {
        for strides in [[1, 1], [2, 1], [3, 2]] {
            for (dilations, pads) in [
                ([1, 1], [0, 0, 0, 0]),
                ([1, 1], [1, 1, 1, 1]),
                ([2, 1], [0, 1, 2, 0]),
                ([1, 2], [1, 0, 0, 1]),
            ] {
                all.push([
                    ("kernel_shape", ints(&kernel)),
                    ("strides", ints(&strides)),
                    ("dilations", ints(&dilations)),
                    ("pads", ints(&pads)),
                ]);
            }
        }
    }
    all
}

#[test]
fn convolutions_and_pools_are_taken_again_for_all_planes_that_windows_fit() {
    for given in windows() {
        let Attribute::Ints(kernel) = &given[0].1 else { unreachable!("a kernel has extents") };
        let shape = [3, 2, kernel[0] as usize, kernel[1] as usize];
        let weights = Given(numbers(&shape, 3), true);
        // At least the planes that are not smaller than the one that the program was made for.
        assert!(planes("conv", &given, 2, &[weights]) >= 2 * 4, "{given:?}");
        assert!(planes("max_pool", &given, 2, &[]) >= 2 * 4, "{given:?}");
        for with_padding in [0, 1] {
            let given = [&given[..], &[("count_include_pad", Attribute::Int(with_padding))]].concat();
            assert!(planes("average_pool", &given, 2, &[]) >= 2 * 4, "{given:?}");
        }
    }
}

#[test]
fn windows_that_are_rounded_up_are_taken_again_where_they_have_a_form() {
    for given in windows() {
        let given = [&given[..], &[("ceil_mode", Attribute::Int(1))]].concat();
        for name in ["max_pool", "average_pool"] {
            planes(name, &given, 2, &[]);
        }
    }
}

#[test]
fn transposed_convolutions_and_padding_are_taken_again() {
    for (strides, pads, more) in [
        ([1, 1], [0, 0, 0, 0], [0, 0]),
        ([2, 2], [1, 1, 1, 1], [1, 1]),
        ([3, 2], [0, 1, 1, 0], [0, 1]),
        ([2, 3], [2, 2, 2, 2], [1, 2]),
    ] {
        let given = [("strides", ints(&strides)), ("pads", ints(&pads)), ("output_padding", ints(&more))];
        assert!(
            planes("conv_transpose", &given, 2, &[Given(numbers(&[2, 3, 3, 4], 5), true)]) >= 2 * 4,
            "{given:?}"
        );
    }
    for mode in ["constant", "edge", "reflect"] {
        for pads in [[0i64, 0, 1, 2, 0, 0, 0, 1], [0, 0, 0, 3, 1, 0, 2, 0], [0, 0, -1, 0, 0, 0, 0, -2]] {
            planes("pad", &[("mode", text(mode))], 2, &[known(integers(&pads))]);
        }
    }
}
