//! Models in folders.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;
use tempfile::TempDir;
// Brings the CPU.
use tilewright as _;
use tilewright_graph::onnx::schema::{
    DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto, dimension_proto, type_proto,
};
use tilewright_session::{Bucket, Error, HostTensor, Model, Session, pack};

const FLOAT: i32 = 1;

fn port(name: &str) -> ValueInfoProto {
    let dim = vec![DimensionProto { value: Some(dimension_proto::Value::DimValue(3)) }];
    let tensor = TensorTypeProto { elem_type: FLOAT, shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(ty) }
}

/// A model that adds three numbers, which lie in another file.
fn write_model(folder: &Path) {
    let entry =
        |key: &str, value: &str| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() };
    let weights = TensorProto {
        name: "w".to_owned(),
        dims: vec![3],
        data_type: FLOAT,
        data_location: 1,
        external_data: vec![entry("location", "weights/w.bin"), entry("length", "12")],
        ..TensorProto::default()
    };
    let node = NodeProto {
        op_type: "Add".to_owned(),
        input: vec!["x".to_owned(), "w".to_owned()],
        output: vec!["y".to_owned()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        name: "sum".to_owned(),
        node: vec![node],
        initializer: vec![weights],
        input: vec![port("x")],
        output: vec![port("y")],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: 8,
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 17 }],
        ..ModelProto::default()
    };
    fs::create_dir_all(folder.join("weights")).unwrap();
    let bytes: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    fs::write(folder.join("weights/w.bin"), bytes).unwrap();
    fs::write(folder.join("sum.onnx"), model.encode_to_vec()).unwrap();
}

/// A directory, the folder in it that holds the model, and one that does not exist yet.
fn written_model() -> (TempDir, PathBuf, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let (source, folder) = (outer.path().join("source"), outer.path().join("packed"));
    write_model(&source);
    (outer, source, folder)
}

fn sums(model: &Model) -> Vec<f32> {
    let x = HostTensor::vector(vec![0.5f32, 0.5, 0.5]);
    let outputs = Session::new(model).run(&[("x", &x)]).unwrap();
    outputs[0].as_slice::<f32>().unwrap().to_vec()
}

fn refusal(path: &Path) -> String {
    match Model::load(path) {
        Err(error @ Error::Folder { .. }) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("{} was loaded", path.display()),
    }
}

#[test]
fn a_packed_model_brings_its_files() {
    let (_outer, source, folder) = written_model();
    let records = pack(&source.join("sum.onnx"), &[], None, &folder).unwrap();
    // Records that cannot be read, or are of other programs, change nothing.
    fs::create_dir(&records).unwrap();
    fs::write(records.join("foreign.jsonl"), "{\"version\": 1, \"kernel\": \n").unwrap();
    fs::remove_dir_all(&source).unwrap();
    assert_eq!(sums(&Model::load(&folder).unwrap()), [1.5, 2.5, 3.5]);
    // It can be packed again in place of what was there.
    write_model(&source);
    let again = pack(&source.join("sum.onnx"), &[], None, &folder).unwrap();
    assert!(!again.exists(), "the records of the earlier model are gone");
    assert_eq!(sums(&Model::load(&folder).unwrap()), [1.5, 2.5, 3.5]);
}

#[test]
fn a_packed_model_keeps_its_accuracy() {
    let (_outer, source, folder) = written_model();
    let model = source.join("sum.onnx");
    pack(&model, &[], Some(1e-4), &folder).unwrap();
    assert_eq!(Model::load(&folder).unwrap().accuracy(), Some(1e-4));
    pack(&model, &[], None, &folder).unwrap();
    assert_eq!(Model::load(&folder).unwrap().accuracy(), None);
    let error = pack(&model, &[], Some(2.0), &folder).unwrap_err().to_string();
    assert!(error.contains("accuracy 2"), "{error}");
    assert_eq!(sums(&Model::load(&folder).unwrap()), [1.5, 2.5, 3.5], "the folder is unchanged");
}

#[test]
fn what_cannot_be_packed_changes_no_folder() {
    let (outer, source, folder) = written_model();
    let model = source.join("sum.onnx");
    let records = pack(&model, &[], None, &folder).unwrap();
    fs::create_dir(&records).unwrap();
    let bucket: Bucket = "S=1,2".parse().unwrap();
    for folder in [&folder, &outer.path().join("other")] {
        let error = pack(&model, std::slice::from_ref(&bucket), None, folder).unwrap_err().to_string();
        assert!(error.contains("`S`"), "{error}");
    }
    assert!(records.exists(), "an earlier model keeps its records");
    assert_eq!(sums(&Model::load(&folder).unwrap()), [1.5, 2.5, 3.5]);
    assert!(!outer.path().join("other").exists());
}

#[test]
fn folders_that_are_no_models_are_refused() {
    let (outer, source, folder) = written_model();
    assert!(refusal(&source).contains("manifest.json cannot be read"));
    let error = pack(&source.join("sum.onnx"), &[], None, &source).unwrap_err().to_string();
    assert!(error.contains("other files than a packed model"), "{error}");
    pack(&source.join("sum.onnx"), &[], None, &folder).unwrap();
    let manifest = folder.join("manifest.json");
    for (text, reason) in [
        ("{", "malformed"),
        (r#"{"version": 2, "model": "model.onnx", "records": null}"#, "has version 2"),
        (r#"{"version": 1, "model": "../model.onnx", "records": null}"#, "not the name of a file"),
        (r#"{"version": 1, "model": "model.onnx", "records": "/etc"}"#, "not the name of a file"),
    ] {
        fs::write(&manifest, text).unwrap();
        let error = refusal(&folder);
        assert!(error.contains(reason), "{text}: {error}");
    }
    fs::write(source.join("weights/w.bin"), "").unwrap();
    fs::remove_file(source.join("weights/w.bin")).unwrap();
    let error =
        pack(&source.join("sum.onnx"), &[], None, &outer.path().join("other")).unwrap_err().to_string();
    assert!(error.contains("`w`") && error.contains("weights/w.bin"), "{error}");
}
