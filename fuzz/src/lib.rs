//! The functions that the fuzz targets `program`, `trace`, `record` and `model` run; `ptx` executes modules of PTX by the simulator
//! alone.
//!
//! ```text
//! cargo install cargo-fuzz
//! mkdir -p corpus/program && find ../core/tests/golden -name '*.tw' -exec cp {} corpus/program \;
//! cargo +nightly fuzz run -s none program -- -max_total_time=300 -timeout=10 -max_len=16000
//! ```
//! in this folder. No unsafe code is run, so that sanitizers (`-s none` leaves them out) only slow it down. Traces and records to begin
//! with are in `benches/tuned`: a record is a line, and its last field a trace. Models to begin with are ONNX's node tests, which
//! `scripts/fetch-models.sh` fetches. Inputs that fail go to `artifacts/`.

pub mod entry;
pub mod model;
