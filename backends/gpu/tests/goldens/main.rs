//! Single instructions give in the simulator what an NVIDIA H100 gave: `scripts/gpu-check` wrote the file of its outputs.

#[allow(dead_code, reason = "the example that runs on GPUs also writes such files")]
#[path = "../../examples/gpu_check/golden.rs"]
mod golden;
#[allow(dead_code, reason = "the example runs the same kernels on GPUs")]
#[path = "../../examples/gpu_check/kernel.rs"]
mod kernel;

use std::path::Path;

/// What did not agree.
#[derive(Default)]
pub(crate) struct Tally {
    passed: usize,
    problems: Vec<String>,
}

impl Tally {
    pub(crate) fn note(&mut self, name: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(problem) => self.problems.push(format!("{name}: {problem}")),
        }
    }
}

#[test]
fn instructions_give_what_an_h100_gave() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/h100.jsonl");
    let mut tally = Tally::default();
    golden::replay(&file, &mut tally).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(tally.problems.is_empty(), "{}", tally.problems.join("\n"));
    assert!(tally.passed > 200, "{} goldens were compared", tally.passed);
}
