//! `tilewright model` on a small network.

mod common;

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use common::{failure, failure_with, text};
use tempfile::{TempDir, tempdir};
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attributes, Shape, Type};
use tilewright_graph::onnx::{Labels, Model};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::npy;
use zip::write::SimpleFileOptions;

/// Numbers between -1 and 1 that look random.
fn tensor(shape: &[usize], seed: u64) -> HostTensor {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    HostTensor::new(shape, (0..shape.iter().product()).map(|_| next()).collect()).unwrap()
}

/// `relu(x · a + b) · c`, with the names of its nodes.
fn write_network(path: &Path) {
    let mut graph = GraphBuilder::new("network");
    let extents = vec![SymInt::symbol("N"), SymInt::from(6usize)];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let weights = [([6, 8], 1), ([8, 3], 2)].map(|(shape, seed)| graph.constant(tensor(&shape, seed)));
    let bias = graph.constant(tensor(&[8], 3));
    graph.set_origin(Some("first".into()));
    let y = graph.call("gemm", &[x, weights[0], bias], Attributes::none()).unwrap();
    let y = graph.call("relu", &[y], Attributes::none()).unwrap();
    graph.set_origin(Some("last".into()));
    let y = graph.call("matmul", &[y, weights[1]], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    let model = Model::of_function(&function, &Labels::of_outputs(&["y"])).unwrap();
    fs::write(path, model.to_bytes().unwrap()).unwrap();
}

/// An archive as `numpy.savez_compressed` writes it.
fn write_archive(path: &Path, arrays: &[(&str, &HostTensor)]) {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, tensor) in arrays {
        writer.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        writer.write_all(&npy::encode(tensor).unwrap()).unwrap();
    }
    fs::write(path, writer.finish().unwrap().into_inner()).unwrap();
}

/// A folder with the network, and calibration data in `samples`.
fn prepared() -> TempDir {
    let directory = tempdir().unwrap();
    write_network(&directory.path().join("model.onnx"));
    let samples = directory.path().join("samples");
    fs::create_dir(&samples).unwrap();
    npy::write(&samples.join("0.npy"), &tensor(&[16, 6], 10)).unwrap();
    write_archive(&samples.join("1.npz"), &[("x", &tensor(&[16, 6], 11))]);
    fs::write(samples.join("notes.txt"), "no sample").unwrap();
    directory
}

const QUANTISE: [&str; 4] = ["model", "quantise", "model.onnx", "--calibrate"];

/// Runs the command on the network.
fn quantise(directory: &TempDir, more: &[&str]) -> String {
    let output: &[&str] = &["--output", "quantised.onnx"];
    text(directory.path(), &[&QUANTISE, more, output].concat())
}

#[test]
fn the_written_model_is_computed_on_integers() {
    let directory = prepared();
    let said = quantise(&directory, &["samples"]);
    assert!(said.starts_with("2 products on integers, 0 in floats; 2 calibration samples\n"), "{said}");
    assert!(said.contains("first (gemm)") && said.contains("wrote `quantised.onnx`: "), "{said}");
    let info = text(directory.path(), &["model", "info", "quantised.onnx", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["integer_products"], 2, "{info}");
    npy::write(&directory.path().join("x.npy"), &tensor(&[4, 6], 12)).unwrap();
    let run = |model: &str| {
        let arguments = ["model", "run", model, "--input", "x=x.npy", "--output", "out"];
        text(directory.path(), &arguments);
        npy::read(&directory.path().join("out/0-y.npy")).unwrap().expect::<f32>().unwrap().to_vec()
    };
    let (exact, found) = (run("model.onnx"), run("quantised.onnx"));
    let difference = exact.iter().zip(&found).map(|(x, y)| (x - y).abs()).fold(0f32, f32::max);
    let largest = exact.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    assert!(difference > 0.0 && difference < 0.05 * largest, "{exact:?} {found:?}");
}

#[test]
fn reports_and_choices_are_those_of_the_arguments() {
    let directory = prepared();
    let json = quantise(&directory, &["samples/0.npy", "samples/1.npz", "--keep", "last", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["output"], "quantised.onnx");
    assert_eq!(json["bytes"], fs::metadata(directory.path().join("quantised.onnx")).unwrap().len());
    assert_eq!((&json["report"]["samples"], &json["report"]["left"][0]["node"]), (&2.into(), &"last".into()));
    let layers = json["report"]["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    assert!(layers[0]["total"]["ratio"].as_f64().unwrap() > 20.0, "{json}");
    for more in [
        ["--method", "entropy"],
        ["--method", "percentile:99"],
        ["--activations", "symmetric"],
        ["--weights", "per-tensor"],
    ] {
        let said = quantise(&directory, &[&["samples"], &more[..]].concat());
        assert!(said.starts_with("2 products on integers"), "{more:?}: {said}");
    }
}

#[test]
fn constant_inputs_have_a_scale() {
    let directory = prepared();
    for value in [0f32, 2.5] {
        npy::write(&directory.path().join("constant.npy"), &HostTensor::full(&[4, 6], value).unwrap())
            .unwrap();
        let said = quantise(&directory, &["constant.npy"]);
        assert!(said.starts_with("2 products on integers"), "{value}: {said}");
    }
}

#[test]
fn bad_calibration_data_are_refused_with_their_file() {
    let directory = prepared();
    let path = |name: &str| directory.path().join(name);
    let refused = |more: &[&str], code: i32, expected: &[&str]| {
        let arguments = [&QUANTISE, more, &["--output", "refused.onnx"]].concat();
        let found = failure(directory.path(), &arguments, code);
        for part in expected {
            assert!(found.contains(part), "{more:?}: {found} lacks {part}");
        }
        assert!(!path("refused.onnx").exists(), "{more:?}");
    };
    fs::create_dir(path("empty")).unwrap();
    refused(&["empty"], 1, &["empty: it holds no `.npz`"]);
    refused(&["nowhere.npz"], 1, &["nowhere.npz: "]);
    refused(&["model.onnx"], 1, &["model.onnx: calibration data are `.npz`"]);
    fs::write(path("broken.npz"), b"PK\x03\x04").unwrap();
    refused(&["broken.npz"], 1, &["broken.npz: not an archive"]);
    write_archive(&path("other.npz"), &[("z", &tensor(&[4, 6], 1))]);
    refused(&["other.npz"], 1, &["other.npz: the model has no input `z`; its inputs are `x`"]);
    write_archive(&path("none.npz"), &[]);
    refused(&["samples", "none.npz"], 1, &["none.npz: ", "`x`"]);
    npy::write(&path("narrow.npy"), &tensor(&[4, 5], 1)).unwrap();
    refused(&["samples", "narrow.npy"], 1, &["narrow.npy: sample 2", "`x`"]);
    let mut numbers = tensor(&[4, 6], 1).expect::<f32>().unwrap().to_vec();
    numbers[7] = f32::NAN;
    npy::write(&path("nan.npy"), &HostTensor::new(&[4, 6], numbers).unwrap()).unwrap();
    refused(&["samples", "nan.npy"], 1, &["nan.npy: sample 2", "`first`", "NaN"]);
    npy::write(&path("rows.npy"), &HostTensor::new::<f32>(&[0, 6], vec![]).unwrap()).unwrap();
    refused(&["rows.npy"], 1, &["model.onnx: no product can be quantised", "no sample gives"]);
    refused(&["samples", "--keep", "middle"], 1, &["`middle` is no product", "`first`, `last`"]);
    refused(&["samples", "--method", "median"], 2, &["`min-max`", "`percentile:P`"]);
}

#[test]
fn models_without_products_are_refused() {
    let directory = prepared();
    let mut graph = GraphBuilder::new("nothing");
    let x = graph.parameter("x", Type::fixed(ElementType::F32, &[4, 6]));
    let y = graph.call("relu", &[x], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    let model = Model::of_function(&function, &Labels::of_outputs(&["y"])).unwrap();
    fs::write(directory.path().join("model.onnx"), model.to_bytes().unwrap()).unwrap();
    let arguments = [&QUANTISE[..], &["samples/0.npy", "--output", "refused.onnx"]].concat();
    let found = failure(directory.path(), &arguments, 1);
    assert!(found.contains("model.onnx: no product can be quantised: the model has none"), "{found}");
}

#[test]
fn a_setting_without_a_meaning_and_an_unknown_device_are_named() {
    let directory = prepared();
    npy::write(&directory.path().join("x.npy"), &tensor(&[4, 6], 12)).unwrap();
    let call = ["model", "run", "model.onnx", "--input", "x=x.npy"];
    let said = failure_with(directory.path(), &call, &[("TILEWRIGHT_DUMP", "flat,nonsense")], 1);
    assert!(said.contains("TILEWRIGHT_DUMP") && said.contains("`nonsense` is no stage"), "{said}");
    let said = failure(directory.path(), &[&call[..], &["--device", "gpu:first"]].concat(), 1);
    assert!(said.contains("gpu:first"), "{said}");
}
