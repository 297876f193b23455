//! Real models, interpreted and compared with what ONNX Runtime computes for the same input.
//!
//! `scripts/fetch-models.sh` fetches the models and `scripts/model_outputs.py` stores the outputs; without them, nothing is
//! tested, which is said aloud.

mod support;

use std::time::Instant;

use tilewright_graph::onnx::Model;
use tilewright_graph::pass::{count, optimise};

/// Runs a model as it is and optimised.
fn check(name: &str, relative: f64, absolute: f64) {
    let Some(models) = support::models() else { return };
    let expected = models.join("expected").join(name);
    if !expected.is_dir() {
        eprintln!("SKIPPED: {} is missing; scripts/model_outputs.py makes it", expected.display());
        return;
    }
    let model = Model::read(&models.join(format!("{name}.onnx"))).unwrap();
    let imported = model.import().unwrap_or_else(|error| panic!("{name}: {error}"));
    imported.function.verify().unwrap();
    let start = Instant::now();
    let optimised = optimise(&imported.function).unwrap_or_else(|error| panic!("{name}: {error}"));
    optimised.verify().unwrap();
    println!(
        "{name}: {} bindings, {} optimised in {:.1?}, {} warnings",
        count(&imported.function),
        count(&optimised),
        start.elapsed(),
        imported.warnings.len()
    );
    for (kind, function) in [("as it is", &imported.function), ("optimised", &optimised)] {
        let start = Instant::now();
        let run = support::run_sets(function, &expected, relative, absolute);
        run.unwrap_or_else(|reason| panic!("{name}, {kind}: {reason}"));
        println!("{name}, {kind}: {:.1?}", start.elapsed());
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
    ppocr_rec: "ppocr-rec", 1e-3, 1e-5;
    ppocr_cls: "ppocr-cls", 1e-3, 1e-5;
    ppocr_det: "ppocr-det", 1e-3, 1e-5;
    orientation: "orientation", 1e-3, 1e-5;
    slanet: "slanet", 1e-3, 1e-4;
    dddd_common: "dddd-common", 1e-3, 1e-4;
    dddd_det: "dddd-det", 1e-3, 1e-3;
    silero: "silero", 1e-3, 1e-5;
    silero_ifless: "silero-ifless", 1e-3, 1e-5;
    fbank_nemo128: "fbank-nemo128", 1e-3, 1e-4;
    fbank_nemo128_conv: "fbank-nemo128-conv", 1e-3, 1e-4;
    fbank_kaldi: "fbank-kaldi", 1e-3, 1e-3;
    // Where a band between two harmonics is nearly empty, ONNX Runtime's `f32` transform is off by up to 3.3e-3; computed
    // in `f64`, it agrees with the interpreter.
    fbank_whisper80: "fbank-whisper80", 1e-3, 5e-3;
}
