//! Functions that are written as ONNX files and read again.

mod support;

use std::fmt::Write;

use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Attributes, Function, Shape, Type};
use tilewright_graph::onnx::{Labels, Model};
use tilewright_graph::pass::optimise;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::small::{I4, Small};
use tilewright_graph::tensor::{ElementType, HostTensor};

/// The function that a file with it holds.
fn reread(function: &Function, labels: &Labels) -> Result<Model, String> {
    let bytes = Model::of_function(function, labels)
        .and_then(|model| model.to_bytes())
        .map_err(|error| error.to_string())?;
    Model::from_bytes(bytes.into()).map_err(|error| error.to_string())
}

/// Writes a model into the folder that `WRITTEN_MODELS` names, for other programs to check.
fn keep(name: &str, model: &Model) {
    if let Some(folder) = std::env::var_os("WRITTEN_MODELS") {
        let path = std::path::Path::new(&folder).join(format!("{name}.onnx"));
        std::fs::write(path, model.to_bytes().unwrap()).unwrap();
    }
}

/// The node tests of ONNX whose models are written as they are read mean the same when they are read again.
#[test]
fn node_tests_mean_the_same_after_they_were_written() {
    let Some(models) = support::models() else { return };
    let folder = models.join("onnx-node-tests");
    let table = include_str!("node_tests.txt");
    let (mut written, mut failures) = (0, String::new());
    for name in table.lines().filter_map(|line| line.strip_prefix("pass ")) {
        let test = folder.join(name);
        let model = Model::read(&test.join("model.onnx")).unwrap();
        let imported = model.import().unwrap();
        let labels = Labels::of(&model);
        let run = || {
            let written = reread(&imported.function, &labels)?;
            keep(name, &written);
            let again = written.import().map_err(|error| error.to_string())?;
            assert_eq!(again.outputs, imported.outputs);
            support::run_sets(&again.function, &test, 1e-3, 1e-7)
        };
        match run() {
            Ok(()) => written += 1,
            Err(reason) => writeln!(failures, "{name}: {reason}").unwrap(),
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(written > 1000, "only {written} tests were written");
}

/// A graph whose results are a parameter, a constant, a value twice, and a value of its own.
#[test]
fn results_have_their_names_whatever_they_are() {
    let mut graph = GraphBuilder::new("main");
    let rows = Shape::Known(vec![SymInt::symbol("N"), 2.into()]);
    let x = graph.parameter("x", Type::tensor(ElementType::F32, rows));
    let two = graph.constant(HostTensor::vector(vec![2f32, 3.0]));
    let y = graph.call("mul", &[x, two], Attributes::none()).unwrap();
    let function = graph.finish(vec![x, two, y, y]).unwrap();
    let names = ["a", "b", "c", "d"];
    let model = reread(&function, &Labels::of_outputs(&names)).unwrap();
    let again = model.import().unwrap();
    assert_eq!(again.outputs, names);
    let values =
        again.function.body.results.iter().map(|&result| again.function.value(result).ty.to_string());
    assert_eq!(values.collect::<Vec<_>>(), ["f32[N, 2]", "f32[2]", "f32[N, 2]", "f32[N, 2]"]);
    assert_eq!(again.function.value(again.function.body.parameters[0]).name.as_deref(), Some("x"));
}

#[test]
fn elements_that_share_bytes_are_packed() {
    let mut graph = GraphBuilder::new("main");
    let elements: Vec<I4> = [-8, 7, 3].map(I4::from_integer).into();
    let constant = graph.constant(HostTensor::vector(elements.clone()));
    let function = graph.finish(vec![constant]).unwrap();
    let model = reread(&function, &Labels::of_outputs(&["y"])).unwrap();
    let stored = &model.graph().initializer[0];
    assert_eq!(stored.raw_data.len(), 2);
    assert_eq!(model.tensor(stored).unwrap().as_slice::<I4>(), Some(&elements[..]));
}

/// Metadata and the operator set: the base one, or what an operator needs.
#[test]
fn files_name_the_operator_sets_that_they_need() {
    let build = |operator: &str, attributes: Attributes| {
        let mut graph = GraphBuilder::new("main");
        let x = graph.parameter("x", Type::fixed(ElementType::F32, &[4]));
        let y = graph.call(operator, &[x], attributes).unwrap();
        let labels = Labels {
            metadata: [("key".to_owned(), "value".to_owned())].into(),
            ..Labels::of_outputs(&["y"])
        };
        reread(&graph.finish(vec![y]).unwrap(), &labels).unwrap()
    };
    let sets = |model: &Model| {
        let sets = &model.proto().opset_import;
        sets.iter().map(|set| (set.domain.clone(), set.version)).collect::<Vec<_>>()
    };
    let plain = build("relu", Attributes::none());
    assert_eq!(sets(&plain), [(String::new(), 21)]);
    assert_eq!(plain.metadata("key"), Some("value"));
    assert_eq!(sets(&build("swish", Attributes::none())), [(String::new(), 24)]);
    let to = |element| Attributes::none().with("to", Attribute::Element(element));
    assert_eq!(sets(&build("cast", to(ElementType::I4))), [(String::new(), 21)]);
    assert_eq!(sets(&build("cast", to(ElementType::U2))), [(String::new(), 25)]);
    let alpha = Attributes::none().with("alpha", Attribute::Float(1.5));
    assert_eq!(sets(&build("quick_gelu", alpha)), [(String::new(), 21), ("com.microsoft".to_owned(), 1)]);
}

#[test]
fn operators_that_onnx_has_not_are_refused_by_name() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.parameter("x", Type::fixed(ElementType::I32, &[4]));
    let scale = graph.constant(HostTensor::scalar(0.5f32));
    let zero = graph.constant(HostTensor::scalar(3u8));
    let y = graph.call("requantize", &[x, scale, zero], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    let refusal = Model::of_function(&function, &Labels::default()).unwrap_err().to_string();
    assert!(refusal.contains("requantize"), "{refusal}");
}

/// Real models are written after all passes, and read again with the same types of inputs and outputs.
#[test]
fn models_are_written_after_all_passes() {
    let Some(models) = support::models() else { return };
    for name in ["ppocr-det", "ppocr-rec", "slanet", "silero", "dddd-common"] {
        let model = Model::read(&models.join(format!("{name}.onnx"))).unwrap();
        let imported = model.import().unwrap();
        let optimised = optimise(&imported.function).unwrap();
        let written =
            reread(&optimised, &Labels::of(&model)).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        keep(name, &written);
        let again = written.import().unwrap();
        let types = |function: &Function| {
            let values = function.body.parameters.iter().chain(&function.body.results);
            values.map(|&value| function.value(value).ty.element()).collect::<Vec<_>>()
        };
        assert_eq!(types(&again.function), types(&optimised), "{name}");
    }
}
