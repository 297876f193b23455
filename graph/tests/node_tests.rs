//! ONNX's own tests of operators, compared with a table of which of them pass.
//!
//! The table lists every test, as `pass NAME` or `skip NAME: REASON`. A test that is listed as skipped but passes is an
//! error as well, so that the table stays true. `BLESS=1` rewrites it.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tilewright_graph::onnx::Model;
use tilewright_graph::pass::optimise;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node_tests.txt");

/// ONNX's tolerances.
const RELATIVE: f64 = 1e-3;
const ABSOLUTE: f64 = 1e-7;

#[test]
fn node_tests_pass_as_the_table_says() {
    let Some(models) = support::models() else { return };
    let folder = models.join("onnx-node-tests");
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = |name: &String| {
        let run = AssertUnwindSafe(|| run(&folder.join(name)));
        (name.clone(), catch_unwind(run).unwrap_or_else(|_| Err("PANIC".to_owned())))
    };
    let outcomes: BTreeMap<String, Result<(), String>> = names.iter().map(outcome).collect();
    let _ = std::panic::take_hook();
    let panicked: Vec<&String> = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == &Err("PANIC".to_owned()))
        .map(|(name, _)| name)
        .collect();
    assert!(panicked.is_empty(), "the evaluation panicked in {panicked:?}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(TABLE, table(&outcomes)).unwrap();
        return;
    }
    let listed = std::fs::read_to_string(TABLE).unwrap();
    let mut differences = String::new();
    let mut expectations = 0;
    for line in listed.lines().filter(|line| !line.starts_with('#')) {
        let (expectation, rest) = line.split_once(' ').unwrap();
        let name = rest.split(':').next().unwrap();
        expectations += 1;
        match (expectation, outcomes.get(name)) {
            ("pass", Some(Ok(()))) | ("skip", Some(Err(_))) => {}
            ("pass", Some(Err(reason))) => writeln!(differences, "{name} fails: {reason}").unwrap(),
            (_, Some(Ok(()))) => writeln!(differences, "{name} passes, but is listed as skipped").unwrap(),
            (_, _) => writeln!(differences, "{name} does not exist").unwrap(),
        }
    }
    assert_eq!(expectations, outcomes.len(), "the table must list every test once");
    assert!(differences.is_empty(), "\n{differences}");
}

/// The table of what happened.
fn table(outcomes: &BTreeMap<String, Result<(), String>>) -> String {
    let passed = outcomes.values().filter(|outcome| outcome.is_ok()).count();
    let mut text = format!("# {passed} of {} node tests of ONNX 1.22.0 pass.\n", outcomes.len());
    for (name, outcome) in outcomes {
        match outcome {
            Ok(()) => writeln!(text, "pass {name}").unwrap(),
            Err(reason) => {
                let reason = reason.lines().collect::<Vec<_>>().join(" ");
                let short: String = reason.chars().take(160).collect();
                writeln!(text, "skip {name}: {short}").unwrap();
            }
        }
    }
    text
}

/// Runs one test with all of its sets of data, as it is and optimised.
fn run(folder: &Path) -> Result<(), String> {
    let model = Model::read(&folder.join("model.onnx")).map_err(|error| error.to_string())?;
    let function = model.import().map_err(|error| error.to_string())?.function;
    function.verify().map_err(|error| error.to_string())?;
    support::run_sets(&function, folder, RELATIVE, ABSOLUTE)?;
    let optimised = optimise(&function).map_err(|error| error.to_string())?;
    optimised.verify().map_err(|error| format!("optimised: {error}"))?;
    support::run_sets(&optimised, folder, RELATIVE, ABSOLUTE).map_err(|reason| format!("optimised: {reason}"))
}
