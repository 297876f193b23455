//! Models with buckets: sizes between two bounds share code, and give what the interpreter gives.

mod compare;
mod support;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Function, Shape, Type};
use tilewright_graph::onnx;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_runtime::kernel::Source;
use tilewright_session::{Bucket, Error, Model, Session, pack};

use compare::{agree, interpret};
use support::{call, numbers};

/// The products of all rows with weights, and the softmax of each row's sums with its batch.
fn network() -> Function {
    let mut graph = GraphBuilder::new("main");
    let extents = vec![SymInt::symbol("B"), SymInt::symbol("S"), 16.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let weights = graph.constant(numbers(&[16, 24], 1));
    let product = call(&mut graph, "matmul", &[x, weights], &[]);
    let gate = call(&mut graph, "sigmoid", &[product], &[]);
    let chances = call(&mut graph, "softmax", &[gate], &[]);
    graph.finish(vec![chances]).unwrap()
}

fn buckets(texts: &[&str]) -> Vec<Bucket> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn sizes_between_bounds_share_code() {
    let function = network();
    let model = Model::from_function(&function).unwrap();
    let model = model.with_buckets(&buckets(&["B=1,2", "S=4,16"])).unwrap();
    let mut session = Session::new(&model);
    // Both bounds of each name, and sizes between: B has none.
    assert_eq!(session.warm_up().unwrap(), 8);
    for (batch, length) in [(1, 1), (1, 4), (1, 5), (2, 11), (2, 15), (2, 16), (1, 17), (3, 2), (1, 7)] {
        let input = numbers(&[batch, length, 16], length);
        let outputs = session.run(&[("x", &input)]).unwrap();
        agree(&outputs, &interpret(&function, vec![input.clone().into()]));
        let kernels = session.kernels(&[("x", &input)]).unwrap();
        assert!(!kernels.is_empty());
        for one in kernels {
            let source = one.kernel.current_source(&one.dims);
            let is_shared = matches!(source, Some(Source::Bucket { .. }));
            let expected = match (batch, length) {
                // A name at a bound and the other one between: the product of both may be a bound.
                (1 | 2, 4 | 16) => false,
                (1 | 2, 1..=15) => true,
                _ => false,
            };
            assert_eq!(is_shared, expected, "{} at {:?}: {source:?}", one.kernel.name(), one.dims);
        }
    }
}

#[test]
fn a_packed_model_names_its_buckets() {
    let outer = tempfile::tempdir().unwrap();
    let (file, folder) = (outer.path().join("rows.onnx"), outer.path().join("packed"));
    let exported = onnx::Model::of_function(&network(), &onnx::Labels::default()).unwrap();
    std::fs::write(&file, exported.to_bytes().unwrap()).unwrap();
    let buckets = buckets(&["B=1,2", "S=4..16/4"]);
    pack(&file, &buckets, None, &folder).unwrap();
    assert_eq!(Model::load(&folder).unwrap().buckets(), buckets);
    pack(&file, &[], None, &folder).unwrap();
    assert_eq!(Model::load(&folder).unwrap().buckets(), []);
    let unknown = [Bucket { name: "Z".to_owned(), bounds: vec![1] }];
    let error = pack(&file, &unknown, None, &folder).unwrap_err().to_string();
    assert!(error.contains("bucket `Z`"), "{error}");
    assert_eq!(Model::load(&folder).unwrap().buckets(), []);
    // A manifest may be written by hand.
    let manifest = folder.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let edited = text.replace("\"version\"", "\"buckets\": {\"Z\": [1]}, \"version\"");
    assert_ne!(edited, text);
    std::fs::write(&manifest, edited).unwrap();
    let error = Model::load(&folder).map(drop).unwrap_err().to_string();
    assert!(error.contains("bucket `Z`"), "{error}");
}

#[test]
fn buckets_are_those_of_the_model() {
    let function = network();
    let refused =
        |texts: &[&str]| match Model::from_function(&function).unwrap().with_buckets(&buckets(texts)) {
            Err(error @ Error::Bucket { .. }) => error.to_string(),
            Err(error) => panic!("another error: {error}"),
            Ok(_) => panic!("{texts:?} are accepted"),
        };
    assert!(refused(&["N=8"]).contains("named extents are `B`, `S`"));
    let model = Model::from_function(&function).unwrap();
    let session = Session::new(&model);
    let error = model.with_buckets(&buckets(&["S=8"])).map(drop).unwrap_err().to_string();
    assert!(error.contains("`S`") && error.contains("sessions or clones"), "{error}");
    drop(session);
    // Without a bucket for a name, there are no inputs to warm up with.
    let model = Model::from_function(&function).unwrap().with_buckets(&buckets(&["S=8"])).unwrap();
    let error = Session::new(&model).warm_up().unwrap_err().to_string();
    assert!(error.contains("`x`") && error.contains("needs a name with a bucket"), "{error}");
    let input = HostTensor::zeros(ElementType::F32, &[1, 3, 16]).unwrap();
    assert!(Session::new(&model).run(&[("x", &input)]).is_ok());
}
