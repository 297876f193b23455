//! Real models on kernels, compared with what ONNX Runtime computes for the same input.
//!
//! `scripts/fetch-models.sh` fetches the models and `scripts/model_outputs.py` stores the outputs; without them, nothing is
//! tested, which is said aloud.

#[path = "../../graph/tests/support/mod.rs"]
mod support;

use std::time::Instant;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::onnx;
use tilewright_graph::operator::Value;
use tilewright_graph::tensor::HostTensor;
use tilewright_session::{Model, Session};

fn check(name: &str, relative: f64, absolute: f64) {
    let Some(models) = support::models() else { return };
    let expected = models.join("expected").join(name);
    if !expected.is_dir() {
        eprintln!("SKIPPED: {} is missing; scripts/model_outputs.py makes it", expected.display());
        return;
    }
    let file = onnx::Model::read(&models.join(format!("{name}.onnx"))).unwrap();
    let model = Model::from_onnx(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut session = Session::new(&model);
    let function = file.import().unwrap().function;
    for round in ["first", "second"] {
        let start = Instant::now();
        let compared = support::compare_sets(&function, &expected, relative, absolute, &mut |arguments| {
            let arguments = support::tensors(arguments)?;
            let names = model.info().inputs.iter().map(|port| &port.name[..]);
            let inputs: Vec<(&str, &HostTensor)> = names.zip(&arguments).collect();
            let outputs = session.run(&inputs).map_err(|error| error.to_string())?;
            Ok(outputs.iter().map(|(_, tensor)| Value::Tensor(tensor.clone())).collect())
        });
        compared.unwrap_or_else(|reason| panic!("{name}: {reason}"));
        println!("{name}, {round} time: {:.1?}, {} kernels", start.elapsed(), model.kernels());
    }
}

macro_rules! models {
    ($($test:ident: $name:literal, $relative:literal, $absolute:literal;)*) => {$(
        #[test]
        fn $test() {
            check($name, $relative, $absolute);
        }
    )*};
}

models! {
    ppocr_rec: "ppocr-rec", 1e-3, 1e-4;
    ppocr_cls: "ppocr-cls", 1e-3, 1e-5;
    ppocr_det: "ppocr-det", 1e-3, 1e-4;
    orientation: "orientation", 1e-3, 1e-4;
    slanet: "slanet", 1e-3, 1e-3;
    dddd_common: "dddd-common", 1e-3, 1e-3;
    dddd_det: "dddd-det", 1e-3, 1e-2;
    silero: "silero", 1e-3, 1e-4;
    silero_ifless: "silero-ifless", 1e-3, 1e-4;
    fbank_nemo128: "fbank-nemo128", 1e-3, 1e-3;
    fbank_nemo128_conv: "fbank-nemo128-conv", 1e-3, 1e-3;
    fbank_kaldi: "fbank-kaldi", 1e-3, 1e-2;
    fbank_whisper80: "fbank-whisper80", 1e-3, 5e-3;
}
