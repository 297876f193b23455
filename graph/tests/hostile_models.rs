//! Files that are cut short or changed: an error or a graph, but never a panic.

use prost::Message;
use tilewright_graph::onnx::Model;
use tilewright_graph::onnx::schema::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    attribute_type, data_type,
};
use tilewright_graph::pass::optimise;

fn node(operator: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        input: names(inputs),
        output: names(outputs),
        op_type: operator.to_owned(),
        attribute,
        ..NodeProto::default()
    }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        ints: ints.to_vec(),
        r#type: attribute_type::INTS,
        ..Default::default()
    }
}

fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        g: Some(graph),
        r#type: attribute_type::GRAPH,
        ..Default::default()
    }
}

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

/// Shape arithmetic, a convolution, and a loop with a branch inside.
fn model() -> Vec<u8> {
    let branch = |operator: &str| GraphProto {
        node: vec![node(operator, &["state"], &["next"], vec![])],
        output: vec![value("next")],
        ..GraphProto::default()
    };
    let body = GraphProto {
        node: vec![node(
            "If",
            &["condition"],
            &["state_out"],
            vec![
                graph_attribute("then_branch", branch("Relu")),
                graph_attribute("else_branch", branch("Neg")),
            ],
        )],
        input: ["iteration", "condition", "state"].map(value).to_vec(),
        output: ["condition", "state_out"].map(value).to_vec(),
        ..GraphProto::default()
    };
    let weights = TensorProto {
        dims: vec![2, 1, 3, 3],
        data_type: data_type::FLOAT,
        name: "weights".to_owned(),
        raw_data: vec![1; 72].into(),
        ..TensorProto::default()
    };
    let count = TensorProto {
        dims: vec![1],
        data_type: data_type::INT64,
        name: "count".to_owned(),
        int64_data: vec![2],
        ..TensorProto::default()
    };
    let graph = GraphProto {
        node: vec![
            node(
                "Conv",
                &["x", "weights"],
                &["c"],
                vec![ints("strides", &[2, 2]), ints("pads", &[1, 1, 1, 1])],
            ),
            node("Shape", &["c"], &["s"], vec![]),
            node("Slice", &["s", "count", "count"], &["t"], vec![]),
            node(
                "Concat",
                &["t", "count"],
                &["u"],
                vec![AttributeProto {
                    name: "axis".to_owned(),
                    r#type: attribute_type::INT,
                    ..Default::default()
                }],
            ),
            node("Tile", &["count", "count"], &["v"], vec![]),
            node("Loop", &["count", "", "c"], &["y"], vec![graph_attribute("body", body)]),
        ],
        name: "main".to_owned(),
        initializer: vec![weights, count],
        input: vec![value("x")],
        output: ["y", "u", "v"].map(value).to_vec(),
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() }.encode_to_vec()
}

/// Decodes, translates, and runs the passes; whatever comes of it, it comes without a panic.
fn import(bytes: Vec<u8>) -> bool {
    let imported = Model::from_bytes(bytes.into()).and_then(|model| model.import());
    imported.is_ok_and(|imported| {
        drop(optimise(&imported.function));
        true
    })
}

#[test]
fn files_that_end_anywhere_are_refused_or_read() {
    let bytes = model();
    assert!(import(bytes.clone()), "the whole file is a model");
    for length in 0..bytes.len() {
        import(bytes[..length].to_vec());
    }
}

#[test]
fn files_with_any_byte_changed_are_refused_or_read() {
    let bytes = model();
    for place in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            import(changed);
        }
    }
}

/// Results that would fill the memory are not computed while a file is read.
#[test]
fn short_files_with_huge_results_are_read() {
    let huge = TensorProto {
        dims: vec![3],
        data_type: data_type::INT64,
        name: "huge".to_owned(),
        int64_data: vec![1 << 20; 3],
        ..TensorProto::default()
    };
    let small = TensorProto {
        dims: vec![1, 1, 1],
        data_type: data_type::FLOAT,
        name: "small".to_owned(),
        float_data: vec![1.0],
        ..TensorProto::default()
    };
    let length = TensorProto {
        dims: vec![],
        data_type: data_type::INT64,
        name: "length".to_owned(),
        int64_data: vec![1 << 28],
        ..TensorProto::default()
    };
    let graph = GraphProto {
        node: vec![
            node("ConstantOfShape", &["huge"], &["a"], vec![]),
            node("Tile", &["small", "huge"], &["b"], vec![]),
            node("Expand", &["small", "huge"], &["c"], vec![]),
            node("HannWindow", &["length"], &["d"], vec![]),
            node("Range", &["length", "huge", "length"], &["e"], vec![]),
        ],
        name: "main".to_owned(),
        initializer: vec![huge, small, length],
        output: ["a", "b", "c", "d"].map(value).to_vec(),
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() };
    assert!(import(model.encode_to_vec()));
}

/// A tensor of zeros.
fn zeros(name: &str, dims: &[i64]) -> TensorProto {
    let count = dims.iter().product::<i64>() as usize;
    TensorProto {
        dims: dims.to_vec(),
        data_type: data_type::FLOAT,
        name: name.to_owned(),
        float_data: vec![0.0; count],
        ..TensorProto::default()
    }
}

#[test]
fn rotations_of_nothing_or_by_no_angle_are_refused() {
    for (width, pairs) in [(4, 0), (0, 2), (0, 0)] {
        let tables = ["cosines", "sines"].map(|name| zeros(name, &[1, 2, pairs]));
        let graph = GraphProto {
            node: vec![node("RotaryEmbedding", &["heads", "cosines", "sines"], &["turned"], vec![])],
            initializer: [vec![zeros("heads", &[1, 2, width])], tables.to_vec()].concat(),
            output: vec![value("turned")],
            ..GraphProto::default()
        };
        let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 23 }];
        let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() };
        let error =
            Model::from_bytes(model.encode_to_vec().into()).unwrap().import().unwrap_err().to_string();
        assert!(error.contains("num_heads"), "{error}");
    }
}

/// Numbers of heads whose sum, or product with a length, has more than 64 bits.
#[test]
fn counts_beyond_any_tensor_do_not_overflow() {
    let int = |name: &str, i: i64| AttributeProto {
        name: name.to_owned(),
        i,
        r#type: attribute_type::INT,
        ..AttributeProto::default()
    };
    for (own, shared) in [(i64::MAX, i64::MAX), (1, i64::MAX), (i64::MAX, 1), (i64::MIN, 1)] {
        let attention = NodeProto {
            domain: "com.microsoft".to_owned(),
            ..node(
                "GroupQueryAttention",
                &["rows", "", "", "", "", "lengths", "longest"],
                &["means"],
                vec![int("num_heads", own), int("kv_num_heads", shared)],
            )
        };
        let integers = |name: &str| TensorProto {
            dims: vec![1],
            data_type: data_type::INT32,
            name: name.to_owned(),
            int32_data: vec![1],
            ..TensorProto::default()
        };
        let graph = GraphProto {
            node: vec![attention],
            initializer: vec![zeros("rows", &[1, 2, 12]), integers("lengths"), integers("longest")],
            output: vec![value("means")],
            ..GraphProto::default()
        };
        let opsets = [("", 17), ("com.microsoft", 1)];
        let opset_import = opsets
            .map(|(domain, version)| OperatorSetIdProto { domain: domain.to_owned(), version })
            .to_vec();
        let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() };
        let error =
            Model::from_bytes(model.encode_to_vec().into()).unwrap().import().unwrap_err().to_string();
        let reason = if own < 0 { "num_heads must be above 0" } else { "a multiple of all heads" };
        assert!(error.contains(reason), "{own} and {shared} heads: {error}");
    }
}

#[test]
fn cycles_and_missing_values_are_named() {
    let graph = GraphProto {
        node: vec![node("Relu", &["b"], &["a"], vec![]), node("Relu", &["a"], &["b"], vec![])],
        output: vec![value("b")],
        ..GraphProto::default()
    };
    let bytes = ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec();
    let error = Model::from_bytes(bytes.into()).unwrap().import().unwrap_err().to_string();
    assert!(error.contains("node `a` (Relu): `b` is used before anything gives it"), "{error}");
}

#[test]
fn all_unknown_operators_are_named_at_once() {
    let graph = GraphProto {
        node: vec![
            node("Foo", &[], &["a"], vec![]),
            node("Bar", &[], &["b"], vec![]),
            node("Foo", &[], &["c"], vec![]),
        ],
        ..GraphProto::default()
    };
    let bytes = ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec();
    let error = Model::from_bytes(bytes.into()).unwrap().import().unwrap_err().to_string();
    for part in ["calls 2 operators", "ai.onnx.Bar", "`b`", "ai.onnx.Foo", "in `a`, `c`"] {
        assert!(error.contains(part), "{error}");
    }
}
