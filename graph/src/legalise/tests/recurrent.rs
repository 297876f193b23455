//! Recurrent layers: all cells, directions, activations and options, on odd shapes.

use super::*;

/// A layer's options and extents.
#[derive(Clone, Copy)]
struct Case<'a> {
    name: &'a str,
    gates: usize,
    steps: usize,
    batch: usize,
    inputs: usize,
    hidden: usize,
    direction: &'a str,
    batch_first: bool,
    lengths: Option<&'a [i64]>,
    /// Whether there are biases, states and peepholes.
    rich: bool,
    /// Whether the lengths and weights are known when the program is made.
    known: bool,
}

const PLAIN: Case<'_> = Case {
    name: "lstm",
    gates: 4,
    steps: 7,
    batch: 2,
    inputs: 3,
    hidden: 5,
    direction: "forward",
    batch_first: false,
    lengths: None,
    rich: true,
    known: true,
};

fn scaled(shape: &[usize], seed: usize) -> HostTensor {
    let tensor = numbers(shape, seed);
    let scaled = tensor.as_slice::<f32>().unwrap().iter().map(|number| 0.4 * number).collect();
    HostTensor::new(shape, scaled).unwrap()
}

fn compare(case: Case<'_>, options: &[(&str, Attribute)]) {
    let Case { gates, steps, batch, inputs, hidden, .. } = case;
    let directions = if case.direction == "bidirectional" { 2 } else { 1 };
    let mut attributes =
        vec![("direction", text(case.direction)), ("hidden_size", Attribute::Int(hidden as i64))];
    if case.batch_first {
        attributes.push(("layout", Attribute::Int(1)));
    }
    attributes.extend(options.iter().cloned());
    let x = if case.batch_first { [batch, steps, inputs] } else { [steps, batch, inputs] };
    let state = if case.batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] };
    let rows = gates * hidden;
    let weight = |shape: &[usize], seed| Given(scaled(shape, seed), case.known);
    let given = [
        Some(Given(numbers(&x, 1), false)),
        Some(weight(&[directions, rows, inputs], 2)),
        Some(weight(&[directions, rows, hidden], 3)),
        case.rich.then(|| weight(&[directions, 2 * rows], 4)),
        case.lengths.map(|lengths| Given(integers(lengths).cast(ElementType::I32).unwrap(), case.known)),
        case.rich.then(|| Given(numbers(&state, 5), false)),
        (case.rich && gates == 4).then(|| Given(numbers(&state, 6), false)),
        (case.rich && gates == 4).then(|| weight(&[directions, 3 * hidden], 7)),
    ];
    let count = if gates == 4 { 8 } else { 6 };
    let inputs: Vec<Option<&Given>> = given[..count].iter().map(Option::as_ref).collect();
    let outputs = if gates == 4 { 3 } else { 2 };
    for symbolic in [false, true] {
        for order in [Order::given as fn(usize) -> Order, Order::channels_last] {
            check_given(case.name, &attributes, &inputs, outputs, symbolic, [&order, &order]);
        }
    }
}

const CELLS: [(&str, usize); 3] = [("rnn", 1), ("gru", 3), ("lstm", 4)];

#[test]
fn cells_run_in_every_direction() {
    for (name, gates) in CELLS {
        for direction in ["forward", "reverse", "bidirectional"] {
            for rich in [false, true] {
                compare(Case { name, gates, direction, rich, ..PLAIN }, &[]);
                let batch_first = Case { name, gates, direction, rich, batch_first: true, batch: 6, ..PLAIN };
                compare(Case { known: false, ..batch_first }, &[]);
                compare(batch_first, &[]);
            }
        }
    }
}

#[test]
fn sequences_end_where_their_lengths_say() {
    for (name, gates) in CELLS {
        for direction in ["forward", "reverse", "bidirectional"] {
            let lengths = Some(&[4, 7][..]);
            compare(Case { name, gates, direction, lengths, ..PLAIN }, &[]);
            compare(Case { name, gates, direction, lengths, known: false, ..PLAIN }, &[]);
            compare(Case { name, gates, direction, lengths: Some(&[0, 1]), rich: false, ..PLAIN }, &[]);
        }
    }
}

#[test]
fn extents_of_one() {
    for (name, gates) in CELLS {
        for direction in ["reverse", "bidirectional"] {
            compare(Case { name, gates, direction, steps: 1, batch: 1, inputs: 1, hidden: 1, ..PLAIN }, &[]);
            compare(Case { name, gates, direction, steps: 1, batch: 3, ..PLAIN }, &[]);
            compare(Case { name, gates, direction, steps: 5, batch: 1, hidden: 17, ..PLAIN }, &[]);
        }
    }
}

#[test]
fn options_of_single_cells() {
    for direction in ["forward", "bidirectional"] {
        for (name, gates) in CELLS {
            compare(Case { name, gates, direction, ..PLAIN }, &[("clip", Attribute::Float(0.3))]);
        }
        let gru = Case { name: "gru", gates: 3, direction, ..PLAIN };
        compare(gru, &[("linear_before_reset", Attribute::Int(1))]);
        compare(Case { rich: false, ..gru }, &[("linear_before_reset", Attribute::Int(1))]);
        compare(Case { direction, ..PLAIN }, &[("input_forget", Attribute::Int(1))]);
    }
}

#[test]
fn every_activation() {
    let names = [
        "Sigmoid",
        "Tanh",
        "Relu",
        "Softsign",
        "Softplus",
        "Affine",
        "LeakyRelu",
        "ThresholdedRelu",
        "ScaledTanh",
        "HardSigmoid",
        "Elu",
    ];
    let texts = |names: &[&str]| Attribute::Texts(names.iter().map(|&name| name.into()).collect());
    for (place, name) in names.iter().enumerate() {
        let other = names[(place + 3) % names.len()];
        let rnn = Case { name: "rnn", gates: 1, ..PLAIN };
        compare(rnn, &[("activations", texts(&[name]))]);
        let parameters = [
            ("activations", texts(&[name, other])),
            ("activation_alpha", Attribute::Floats(vec![0.3, 0.7])),
            ("activation_beta", Attribute::Floats(vec![0.6, 0.4])),
        ];
        compare(Case { direction: "bidirectional", ..rnn }, &parameters);
    }
}

#[test]
fn weights_of_integers() {
    for directions in [1, 2] {
        for per_row in [false, true] {
            let (inputs, hidden, batch) = (3, 5, 2);
            let rows = 4 * hidden;
            let bytes = |shape: &[usize], seed| known(numbers_of_bytes(shape, seed));
            let scales: &[usize] = if per_row { &[directions, rows] } else { &[directions] };
            let scale = |seed| {
                let numbers = numbers(scales, seed);
                let scales_of =
                    numbers.as_slice::<f32>().unwrap().iter().map(|number| 0.002 + 0.001 * number.abs());
                known(HostTensor::new(scales, scales_of.collect()).unwrap())
            };
            let given = [
                Some(Given(numbers(&[7, batch, inputs], 1), false)),
                Some(bytes(&[directions, inputs, rows], 2)),
                Some(bytes(&[directions, hidden, rows], 3)),
                Some(known(scaled(&[directions, 2 * rows], 4))),
                None,
                None,
                None,
                None,
                Some(scale(5)),
                Some(bytes(scales, 6)),
                Some(scale(7)),
                Some(bytes(scales, 8)),
            ];
            let inputs: Vec<Option<&Given>> = given.iter().map(Option::as_ref).collect();
            let direction = if directions == 2 { "bidirectional" } else { "forward" };
            let attributes = [("direction", text(direction)), ("hidden_size", Attribute::Int(hidden as i64))];
            check_given(
                "dynamic_quantize_lstm",
                &attributes,
                &inputs,
                3,
                true,
                [&Order::given, &Order::given],
            );
        }
    }
}

fn numbers_of_bytes(shape: &[usize], seed: usize) -> HostTensor {
    let length = shape.iter().product::<usize>();
    HostTensor::new(shape, (0..length).map(|place| ((place * 37 + seed * 11) % 251) as u8).collect()).unwrap()
}

/// An LSTM whose weights are bytes. Scales and zero points belong to a direction or to each of its rows.
fn compare_bytes(case: Case<'_>, element: ElementType, per_row: bool) {
    let Case { steps, batch, inputs, hidden, .. } = case;
    let directions = if case.direction == "bidirectional" { 2 } else { 1 };
    let attributes = [("direction", text(case.direction)), ("hidden_size", Attribute::Int(hidden as i64))];
    let rows = 4 * hidden;
    let bytes = |shape: &[usize], seed: usize| {
        let count: usize = shape.iter().product();
        let low = if element == ElementType::U8 { 0 } else { -128 };
        let list: Vec<i64> = (0..count).map(|place| low + ((place * 89 + seed * 31) % 256) as i64).collect();
        HostTensor::new(shape, list).unwrap().cast(element).unwrap()
    };
    let parameters = if per_row { vec![directions, rows] } else { vec![directions] };
    let count: usize = parameters.iter().product();
    let scales = |start: f32| (0..count).map(|place| start + 0.0001 * (place % 7) as f32).collect::<Vec<_>>();
    let scales = |start: f32| HostTensor::new(&parameters, scales(start)).unwrap();
    let middle = if element == ElementType::U8 { 120 } else { -9 };
    let zeros = HostTensor::new(&parameters, vec![middle; count]).unwrap().cast(element).unwrap();
    let state = [directions, batch, hidden];
    let known = |tensor| Some(Given(tensor, case.known));
    let given = [
        Some(Given(numbers(&[steps, batch, inputs], 1), false)),
        known(bytes(&[directions, inputs, rows], 2)),
        known(bytes(&[directions, hidden, rows], 3)),
        known(scaled(&[directions, 2 * rows], 4)),
        case.lengths.map(|lengths| Given(integers(lengths).cast(ElementType::I32).unwrap(), case.known)),
        case.rich.then(|| Given(numbers(&state, 5), false)),
        case.rich.then(|| Given(numbers(&state, 6), false)),
        case.rich.then(|| Given(scaled(&[directions, 3 * hidden], 7), case.known)),
        known(scales(0.003)),
        known(zeros.clone()),
        known(scales(0.002)),
        known(zeros),
    ];
    let inputs: Vec<Option<&Given>> = given.iter().map(Option::as_ref).collect();
    for symbolic in [false, true] {
        let order: fn(usize) -> Order = Order::given;
        check_given("dynamic_quantize_lstm", &attributes, &inputs, 3, symbolic, [&order, &order]);
    }
}

#[test]
fn inputs_and_states_of_layers_of_bytes_become_bytes() {
    for element in [ElementType::I8, ElementType::U8] {
        for direction in ["forward", "reverse", "bidirectional"] {
            for per_row in [false, true] {
                compare_bytes(Case { direction, ..PLAIN }, element, per_row);
                compare_bytes(
                    Case { direction, known: false, rich: false, batch: 1, ..PLAIN },
                    element,
                    per_row,
                );
            }
            compare_bytes(Case { direction, lengths: Some(&[4, 7]), ..PLAIN }, element, false);
            compare_bytes(
                Case { direction, steps: 3, batch: 3, inputs: 8, hidden: 16, ..PLAIN },
                element,
                true,
            );
            compare_bytes(
                Case { direction, steps: 1, batch: 1, inputs: 1, hidden: 1, ..PLAIN },
                element,
                false,
            );
        }
    }
}
