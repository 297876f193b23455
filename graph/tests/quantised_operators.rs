//! Quantised operators of `com.microsoft` against their definitions.

use prost::Message;
use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::Module;
use tilewright_graph::onnx::Model;
use tilewright_graph::onnx::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    attribute_type, data_type,
};
use tilewright_graph::operator::Value;
use tilewright_graph::tensor::HostTensor;

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.to_owned(), i: value, r#type: attribute_type::INT, ..Default::default() }
}

fn tensor(name: &str, dims: &[i64], kind: i32, raw: Vec<u8>) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: kind,
        name: name.to_owned(),
        raw_data: raw.into(),
        ..TensorProto::default()
    }
}

fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    tensor(name, dims, data_type::FLOAT, values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

fn bytes(name: &str, dims: &[i64], values: &[u8]) -> TensorProto {
    tensor(name, dims, data_type::UINT8, values.to_vec())
}

fn signed(name: &str, dims: &[i64], values: &[i8]) -> TensorProto {
    tensor(name, dims, data_type::INT8, values.iter().map(|&value| value as u8).collect())
}

fn integers(name: &str, dims: &[i64], values: &[i32]) -> TensorProto {
    tensor(name, dims, data_type::INT32, values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// The result of one operator whose inputs are constants.
fn run(
    operator: &str,
    attribute: Vec<AttributeProto>,
    inputs: Vec<TensorProto>,
) -> Result<HostTensor, String> {
    let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let node = NodeProto {
        input: names,
        output: vec!["y".to_owned()],
        op_type: operator.to_owned(),
        domain: "com.microsoft".to_owned(),
        attribute,
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: vec![node],
        name: "main".to_owned(),
        initializer: inputs.into_iter().filter(|input| !input.name.is_empty()).collect(),
        output: vec![ValueInfoProto { name: "y".to_owned(), r#type: None }],
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 21 }];
    let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() }
        .encode_to_vec();
    let model = Model::from_bytes(model.into()).map_err(|error| error.to_string())?;
    let function = model.import().map_err(|error| error.to_string())?.function;
    let module = Module { functions: [(function.name.clone(), function.clone())].into() };
    let results = Interpreter::new(&module).run(&function.name, Vec::<Value>::new());
    let results = results.map_err(|error| error.to_string())?;
    Ok(results[0].as_tensor().unwrap().clone())
}

fn byte_of(number: f32, scale: f32, zero: u8) -> u8 {
    ((number / scale).round_ties_even() + f32::from(zero)) as u8
}

#[test]
fn sums_and_products_of_quantised_numbers() {
    let (a, b) = ([0u8, 3, 128, 200, 255, 77], [9u8, 250, 1, 100, 130, 5]);
    let inputs = || {
        vec![
            bytes("a", &[2, 3], &a),
            floats("sa", &[], &[0.1]),
            bytes("za", &[], &[128]),
            bytes("b", &[2, 3], &b),
            floats("sb", &[], &[0.03]),
            bytes("zb", &[], &[7]),
            floats("sy", &[], &[0.2]),
            bytes("zy", &[], &[120]),
        ]
    };
    let numbers: Vec<(f32, f32)> =
        a.iter().zip(b).map(|(&a, b)| ((f32::from(a) - 128.0) * 0.1, (f32::from(b) - 7.0) * 0.03)).collect();
    let sums: Vec<u8> = numbers.iter().map(|(a, b)| byte_of(a + b, 0.2, 120)).collect();
    assert_eq!(run("QLinearAdd", vec![], inputs()).unwrap().as_slice::<u8>().unwrap(), sums);
    let products: Vec<u8> = numbers.iter().map(|(a, b)| byte_of(a * b, 0.2, 120)).collect();
    assert_eq!(run("QLinearMul", vec![], inputs()).unwrap().as_slice::<u8>().unwrap(), products);
    let sigmoids: Vec<u8> =
        numbers.iter().map(|(a, _)| byte_of(1.0 / (1.0 + (-a).exp()), 1.0 / 256.0, 0)).collect();
    let mut unary = inputs()[..3].to_vec();
    unary.extend([floats("sy", &[], &[1.0 / 256.0]), bytes("zy", &[], &[0])]);
    assert_eq!(run("QLinearSigmoid", vec![], unary).unwrap().as_slice::<u8>().unwrap(), sigmoids);
}

#[test]
fn tensors_are_joined_in_the_scale_of_the_result() {
    let inputs = vec![
        floats("sy", &[], &[0.5]),
        bytes("zy", &[], &[10]),
        bytes("a", &[1, 2], &[4, 8]),
        floats("sa", &[], &[0.25]),
        bytes("za", &[], &[0]),
        bytes("b", &[1, 1], &[200]),
        floats("sb", &[], &[1.0]),
        bytes("zb", &[], &[100]),
    ];
    let joined = run("QLinearConcat", vec![int("axis", 1)], inputs).unwrap();
    assert_eq!((joined.shape(), joined.as_slice::<u8>().unwrap()), (&[1, 3][..], &[12, 14, 210][..]));
}

#[test]
fn general_products_of_integers() {
    let (a, b): ([u8; 6], [i8; 6]) = ([1, 250, 30, 4, 128, 99], [5, -7, 100, -128, 127, 0]);
    let bias = [1000, -300];
    // `a` is 2 × 3; `b` is stored transposed, 2 × 3 for two columns.
    let sum = |row: usize, column: usize| -> i32 {
        let product = |k: usize| (i32::from(a[row * 3 + k]) - 20) * i32::from(b[column * 3 + k]);
        (0..3).map(product).sum::<i32>() + bias[column]
    };
    let mut inputs = vec![
        bytes("a", &[2, 3], &a),
        floats("sa", &[], &[0.02]),
        bytes("za", &[], &[20]),
        signed("b", &[2, 3], &b),
        floats("sb", &[2], &[0.01, 0.03]),
        signed("zb", &[2], &[0, 0]),
        integers("c", &[2], &bias),
    ];
    let scales = [0.02f32 * 0.01, 0.02 * 0.03];
    let numbers = run("QGemm", vec![int("transB", 1)], inputs.clone()).unwrap();
    let expected: Vec<f32> =
        (0..4).map(|place| sum(place / 2, place % 2) as f32 * scales[place % 2]).collect();
    assert_eq!(numbers.as_slice::<f32>().unwrap(), expected);
    inputs.extend([floats("sy", &[], &[0.5]), bytes("zy", &[], &[100])]);
    let stored = run("QGemm", vec![int("transB", 1)], inputs).unwrap();
    let expected: Vec<u8> = (0..4)
        .map(|place| {
            let scaled = sum(place / 2, place % 2) as f32 * (scales[place % 2] / 0.5);
            (scaled.round_ties_even() + 100.0) as u8
        })
        .collect();
    assert_eq!(stored.as_slice::<u8>().unwrap(), expected);
}

#[test]
fn products_with_blocks_of_four_bits() {
    // Two columns of 20 numbers in blocks of 16: the second block is filled up.
    let (depth, columns, blocks) = (20usize, 2usize, 2usize);
    let packed: Vec<u8> = (0..columns * blocks * 8).map(|place| (place * 37 + 11) as u8).collect();
    let scales = [0.5f32, 0.25, 2.0, 1.0];
    let zeros = [0x93u8, 0x0f];
    let a: Vec<f32> = (0..depth).map(|k| k as f32 / 4.0 - 2.0).collect();
    let expected = |with_zeros: bool| -> Vec<f32> {
        let number = |column: usize, k: usize| {
            let block = column * blocks + k / 16;
            let byte = packed[block * 8 + k % 16 / 2];
            let integer = if k.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
            let zero = zeros[column];
            let zero = if k / 16 == 0 { zero & 15 } else { zero >> 4 };
            (f32::from(integer) - if with_zeros { f32::from(zero) } else { 8.0 }) * scales[block]
        };
        (0..columns).map(|column| (0..depth).map(|k| a[k] * number(column, k)).sum()).collect()
    };
    let attributes = || vec![int("K", 20), int("N", 2), int("bits", 4), int("block_size", 16)];
    let mut inputs =
        vec![floats("a", &[1, 20], &a), bytes("b", &[2, 2, 8], &packed), floats("s", &[4], &scales)];
    let product = run("MatMulNBits", attributes(), inputs.clone()).unwrap();
    assert_eq!(product.as_slice::<f32>().unwrap(), expected(false));
    inputs.push(bytes("z", &[2], &zeros));
    let product = run("MatMulNBits", attributes(), inputs.clone()).unwrap();
    assert_eq!(product.as_slice::<f32>().unwrap(), expected(true));
    let wrong = vec![int("K", 20), int("N", 2), int("bits", 3), int("block_size", 16)];
    assert!(run("MatMulNBits", wrong, inputs).unwrap_err().contains("2, 4 or 8 bits"));
}

#[test]
fn products_with_blocks_of_two_and_eight_bits() {
    for bits in [2usize, 8] {
        let (depth, columns, block, per_byte) = (32usize, 3usize, 16usize, 8 / bits);
        let (blocks, size) = (depth / block, block / per_byte);
        let packed: Vec<u8> = (0..columns * blocks * size).map(|place| (place * 91 + 5) as u8).collect();
        let scales = [0.5f32, 0.25, 2.0, 1.0, 4.0, 0.125];
        let zero_bytes = blocks.div_ceil(per_byte);
        let zeros: Vec<u8> = (0..columns * zero_bytes).map(|place| (place * 57 + 6) as u8).collect();
        let a: Vec<f32> = (0..depth).map(|k| k as f32 / 4.0 - 2.0).collect();
        let part = |byte: u8, place: usize| byte >> (place % per_byte * bits) & (0xff >> (8 - bits));
        let number = |column: usize, k: usize| {
            let own = column * blocks + k / block;
            let integer = part(packed[own * size + k % block / per_byte], k);
            let zero = part(zeros[column * zero_bytes + k / block / per_byte], k / block);
            (f32::from(integer) - f32::from(zero)) * scales[own]
        };
        let expected: Vec<f32> =
            (0..columns).map(|column| (0..depth).map(|k| a[k] * number(column, k)).sum()).collect();
        let sizes = [("K", depth), ("N", columns), ("bits", bits), ("block_size", block)]
            .map(|(name, size)| int(name, size as i64));
        let shape = [columns, blocks, size].map(|extent| extent as i64);
        let inputs = vec![
            floats("a", &[1, depth as i64], &a),
            bytes("b", &shape, &packed),
            floats("s", &[(columns * blocks) as i64], &scales),
            bytes("z", &[(columns * zero_bytes) as i64], &zeros),
        ];
        let product = run("MatMulNBits", sizes.to_vec(), inputs).unwrap();
        assert_eq!(product.as_slice::<f32>().unwrap(), expected, "{bits} bits");
    }
}

/// Integers of 4 bits with a sign, two in a byte.
fn nibbles(name: &str, dims: &[i64], values: &[i8]) -> TensorProto {
    let pair = |pair: &[i8]| (pair[0] & 15) as u8 | (pair[1] as u8) << 4;
    tensor(name, dims, data_type::INT4, values.chunks(2).map(pair).collect())
}

#[test]
fn rows_of_signed_integers_in_blocks_are_gathered() {
    // Blocks lie along the first dimension, rows along the second.
    let (blocks, block, columns) = (2, 16, 4);
    let table: Vec<i8> = (0..blocks * block * columns).map(|place| (place * 5 % 16) as i8 - 8).collect();
    let scales = [0.5f32, 0.25, 2.0, 1.0, 4.0, 0.125, 3.0, 0.75];
    let zeros = [1i8, -8, 7, 0, 3, -2, 5, -5];
    let chosen = [3i32, 0, -2];
    let inputs = |with_zeros: bool| {
        let extents = [(blocks * block) as i64, columns as i64];
        let mut inputs = vec![
            nibbles("x", &extents, &table),
            integers("i", &[3], &chosen),
            floats("s", &[blocks as i64, columns as i64], &scales),
        ];
        inputs.extend(with_zeros.then(|| nibbles("z", &[blocks as i64, columns as i64], &zeros)));
        inputs
    };
    let attributes = |gather: i64, quantize: i64| {
        vec![int("block_size", block as i64), int("gather_axis", gather), int("quantize_axis", quantize)]
    };
    for with_zeros in [false, true] {
        let found = run("GatherBlockQuantized", attributes(1, 0), inputs(with_zeros)).unwrap();
        assert_eq!(found.shape(), [blocks * block, 3]);
        let number = |row: usize, column: usize| {
            let place = row / block * columns + column;
            let zero = if with_zeros { zeros[place] } else { 0 };
            (f32::from(table[row * columns + column]) - f32::from(zero)) * scales[place]
        };
        let columns: Vec<usize> =
            chosen.iter().map(|&column| column.rem_euclid(columns as i32) as usize).collect();
        let expected: Vec<f32> = (0..blocks * block)
            .flat_map(|row| columns.iter().map(move |&column| (row, column)))
            .map(|(row, column)| number(row, column))
            .collect();
        assert_eq!(found.as_slice::<f32>().unwrap(), expected);
    }
    let refused = |attributes, inputs| run("GatherBlockQuantized", attributes, inputs).unwrap_err();
    assert!(refused(attributes(0, 0), inputs(true)).contains("rows cannot be gathered along dimension 0"));
    assert!(refused(attributes(2, 0), inputs(true)).contains("gather_axis is 2 for a table of rank 2"));
    assert!(refused(attributes(0, 1), inputs(true)).contains("scales of shape [32, 1] are expected"));
    let mut wider = inputs(false);
    wider.push(nibbles("z", &[3, 4], &[0; 12]));
    assert!(refused(attributes(1, 0), wider).contains("zero points of shape [2, 4] are expected"));
    let odd = vec![int("block_size", 24), int("gather_axis", 1), int("quantize_axis", 0)];
    assert!(refused(odd, inputs(true)).contains("a power of two"));
    let bytes =
        vec![bytes("x", &[4, 8], &[0; 32]), integers("i", &[1], &[0]), floats("s", &[4, 1], &[1.0; 4])];
    assert!(refused(vec![int("bits", 3)], bytes).contains("2, 4 or 8 bits"));
}
