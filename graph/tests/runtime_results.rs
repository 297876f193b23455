//! Operators of ONNX Runtime against its stored results, which `scripts/quantised_operators.py` and `scripts/fused_operators.py` wrote.
//!
//! Each case runs as it is and optimised. Results of integer operators have to be the same bit by bit; [`DIFFERENCES`] has a row for each operator
//! whose results may differ, with the reason.

use prost::Message;
use serde_json::Value as Json;
use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Function, Module};
use tilewright_graph::onnx::Model;
use tilewright_graph::onnx::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    attribute_type, data_type,
};
use tilewright_graph::operator::Value;
use tilewright_graph::pass::optimise;
use tilewright_graph::tensor::{ElementType, HostTensor};

/// Operators whose results may differ from ONNX Runtime's: by how much at most, and why. Differences of integers count steps of the result; those of
/// floats are relative to the largest number of the result.
const DIFFERENCES: &[(&str, f64, &str)] = &[
    (
        "QLinearAdd",
        1.0,
        "ONNX Runtime multiplies by ratios of scales that it rounds before; ours adds the numbers",
    ),
    ("QLinearAveragePool", 1.0, "ONNX Runtime multiplies by the rounded inverse of the scale; ours divides"),
    ("MatMulNBits", 1e-5, "products of floats are summed in another order"),
    ("QAttention", 1e-5, "products of floats are summed in another order, and exponentials differ by a unit"),
    ("Gelu", 1e-6, IN_F32),
    ("FusedConv", 1e-6, IN_F32),
    ("FusedGemm", 1e-6, IN_F32),
    ("SkipLayerNormalization", 1e-6, IN_F32),
    ("SkipSimplifiedLayerNormalization", 1e-6, IN_F32),
    ("EmbedLayerNormalization", 1e-6, IN_F32),
    ("RotaryEmbedding", 1e-6, IN_F32),
    ("GroupQueryAttention", 1e-5, IN_F32),
    ("Attention", 1e-5, IN_F32),
    ("MultiHeadAttention", 1e-5, IN_F32),
];

const IN_F32: &str = "ONNX Runtime rounds each step to `f32`; the evaluation has steps in `f64`";

fn tensor(name: &str, stored: &Json) -> TensorProto {
    let values = stored["values"].as_array().unwrap();
    let whole = || values.iter().map(|value| value.as_i64().unwrap());
    let (kind, raw): (i32, Vec<u8>) = match stored["type"].as_str().unwrap() {
        "u8" => (data_type::UINT8, whole().map(|value| value as u8).collect()),
        "i8" => (data_type::INT8, whole().map(|value| value as u8).collect()),
        "i32" => (data_type::INT32, whole().flat_map(|value| (value as i32).to_le_bytes()).collect()),
        "bool" => (data_type::BOOL, values.iter().map(|value| u8::from(value.as_bool().unwrap())).collect()),
        "i64" => (data_type::INT64, whole().flat_map(i64::to_le_bytes).collect()),
        "f32" => {
            let bytes = |value: &Json| (value.as_f64().unwrap() as f32).to_le_bytes();
            (data_type::FLOAT, values.iter().flat_map(bytes).collect())
        }
        other => panic!("no case has elements of type {other}"),
    };
    let dims = stored["shape"].as_array().unwrap().iter().map(|extent| extent.as_i64().unwrap()).collect();
    TensorProto {
        dims,
        data_type: kind,
        name: name.to_owned(),
        raw_data: raw.into(),
        ..TensorProto::default()
    }
}

fn attribute(name: &str, value: &Json) -> AttributeProto {
    let own = AttributeProto { name: name.to_owned(), ..Default::default() };
    if let Some(text) = value.as_str() {
        let s = text.as_bytes().to_vec().into();
        return AttributeProto { s, r#type: attribute_type::STRING, ..own };
    }
    if let Some(list) = value.as_array() {
        if list.iter().any(Json::is_f64) {
            let floats = list.iter().map(|value| value.as_f64().unwrap() as f32).collect();
            return AttributeProto { floats, r#type: attribute_type::FLOATS, ..own };
        }
        let ints = list.iter().map(|value| value.as_i64().unwrap()).collect();
        return AttributeProto { ints, r#type: attribute_type::INTS, ..own };
    }
    match value.as_i64() {
        Some(i) => AttributeProto { i, r#type: attribute_type::INT, ..own },
        None => AttributeProto { f: value.as_f64().unwrap() as f32, r#type: attribute_type::FLOAT, ..own },
    }
}

/// The results that are stored; `null` stands for one that the operator is not asked for.
fn results(case: &Json) -> Vec<&Json> {
    case["outputs"].as_array().map_or_else(|| vec![&case["output"]], |outputs| outputs.iter().collect())
}

fn function(case: &Json) -> Result<Function, String> {
    let (mut names, mut constants) = (Vec::new(), Vec::new());
    for (place, input) in case["inputs"].as_array().unwrap().iter().enumerate() {
        names.push(if input.is_null() { String::new() } else { format!("x{place}") });
        if !input.is_null() {
            constants.push(tensor(&names[place], input));
        }
    }
    let attributes = case["attributes"].as_object().unwrap();
    let name =
        |(place, stored): (usize, &&Json)| if stored.is_null() { String::new() } else { format!("y{place}") };
    let outputs: Vec<String> = results(case).iter().enumerate().map(name).collect();
    let node = NodeProto {
        input: names,
        output: outputs.clone(),
        op_type: case["operator"].as_str().unwrap().to_owned(),
        domain: "com.microsoft".to_owned(),
        attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: vec![node],
        name: "main".to_owned(),
        initializer: constants,
        output: outputs
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(|name| ValueInfoProto { name, r#type: None })
            .collect(),
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 21 }];
    let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() };
    let model = Model::from_bytes(model.encode_to_vec().into()).map_err(|error| error.to_string())?;
    Ok(model.import().map_err(|error| error.to_string())?.function)
}

fn evaluated(function: &Function) -> Result<Vec<HostTensor>, String> {
    let module = Module { functions: [(function.name.clone(), function.clone())].into() };
    let results = Interpreter::new(&module).run(&function.name, Vec::<Value>::new());
    let results = results.map_err(|error| error.to_string())?;
    Ok(results.iter().map(|result| result.as_tensor().unwrap().clone()).collect())
}

/// By how much a result differs, in the units of [`DIFFERENCES`].
fn difference(stored: &Json, found: &HostTensor) -> f64 {
    let shape: Vec<usize> =
        stored["shape"].as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap() as usize).collect();
    assert_eq!(found.shape(), shape);
    assert_eq!(found.element().name(), stored["type"].as_str().unwrap());
    let expected: Vec<f64> =
        stored["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    let numbers = found.cast(ElementType::F64).unwrap();
    let numbers = numbers.as_slice::<f64>().unwrap();
    let largest = expected.iter().zip(numbers).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let size = expected.iter().map(|value| value.abs()).fold(f64::MIN_POSITIVE, f64::max);
    if found.element().is_float() { largest / size } else { largest }
}

#[test]
fn results_are_those_of_onnx_runtime() {
    let files = [include_str!("quantised_operators.json"), include_str!("fused_operators.json")];
    let cases: Vec<Json> =
        files.into_iter().flat_map(|file| serde_json::from_str::<Vec<Json>>(file).unwrap()).collect();
    let (mut faults, mut seen) = (String::new(), std::collections::BTreeMap::<String, f64>::new());
    for (number, case) in cases.iter().enumerate() {
        let operator = case["operator"].as_str().unwrap();
        let allowed = DIFFERENCES.iter().find(|(name, ..)| *name == operator).map_or(0.0, |row| row.1);
        // Steps are whole, so that a bound below one allows none.
        let found = function(case).and_then(|function| {
            let optimised = optimise(&function).map_err(|error| error.to_string())?;
            Ok([evaluated(&function)?, evaluated(&optimised)?])
        });
        match found {
            Err(error) => faults += &format!("case {number}, {operator}: {error}\n"),
            Ok(found) => {
                let stored = || results(case).into_iter().filter(|stored| !stored.is_null());
                for (stored, found) in found.iter().flat_map(|found| stored().zip(found)) {
                    let own = difference(stored, found);
                    let most = seen.entry(operator.to_owned()).or_default();
                    *most = most.max(own);
                    if own > allowed {
                        faults +=
                            &format!("case {number}, {operator}: differs by {own}, {allowed} is allowed\n");
                    }
                }
            }
        }
    }
    for (name, _, reason) in DIFFERENCES {
        if seen.get(*name).is_none_or(|&most| most == 0.0) {
            faults += &format!("{name} never differs, but has a row: {reason}\n");
        }
    }
    assert!(faults.is_empty(), "\n{faults}\n{seen:?}");
}
