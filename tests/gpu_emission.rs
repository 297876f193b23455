//! The whole operator set as PTX, by default schedules at the set's own shapes: every kernel can be launched, and NVIDIA's assembler accepts
//! it, where it is there.

#[path = "../benches/operators/attention.rs"]
mod attention;
#[path = "../benches/operators/bytes.rs"]
mod bytes;
#[path = "../benches/operators/emit.rs"]
mod emit;
#[path = "../benches/operators/halves.rs"]
mod halves;
#[path = "../benches/operators/kernels.rs"]
mod kernels;
#[path = "../benches/operators/memory.rs"]
mod memory;
#[expect(dead_code, reason = "counts of operations are for the benches")]
#[path = "../benches/operators/opset.rs"]
mod opset;
#[path = "../benches/operators/pieces.rs"]
mod pieces;
#[path = "../benches/operators/quantised.rs"]
mod quantised;
#[path = "../benches/operators/recurrences.rs"]
mod recurrences;
#[path = "../benches/operators/whole_set.rs"]
mod whole_set;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The assembler, if there is one; `scripts/fetch-ptxas.sh` fetches it.
fn assembler() -> Option<PathBuf> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/target/ptxas/13.0.88/ptxas");
    let path = std::env::var_os("PTXAS").map_or_else(|| fetched.into(), PathBuf::from);
    let is_required = std::env::var_os("REQUIRE_PTXAS").is_some();
    assert!(
        path.exists() || !is_required,
        "there is no ptxas at {}: run scripts/fetch-ptxas.sh",
        path.display()
    );
    path.exists().then_some(path)
}

/// What is wrong with the launches of a manifest.
fn faults_of(manifest: &Value) -> Vec<String> {
    let launches = manifest["launches"].as_array().map_or(&[][..], |launches| launches);
    let mut faults = Vec::new();
    if launches.is_empty() {
        faults.push("there is no launch".to_owned());
    }
    for launch in launches {
        let resident = launch["report"]["resident_blocks_at_most"].as_u64().unwrap_or(0);
        let blocks = launch["report"]["blocks"].as_u64().unwrap_or(0);
        if resident == 0 || blocks == 0 {
            faults.push(format!("{} cannot be launched: {}", launch["entry"], launch["report"]));
        }
    }
    faults
}

/// The assembler's complaint about a module.
fn complaints(assembler: &Path, architecture: &str, ptx: &Path) -> Option<String> {
    let output = Command::new(assembler)
        .args(["-v", "--warn-on-spills", "-arch", architecture, "-o", "/dev/null"])
        .arg(ptx)
        .output()
        .expect("the assembler runs");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let spills = messages
        .lines()
        .any(|line| line.contains("spill") && !line.contains("0 bytes spill stores, 0 bytes spill loads"));
    (!output.status.success() || spills).then_some(messages)
}

/// Emits the kernels of one operator, and checks them.
fn check(name: &str, architecture: &str, folder: &Path) -> Vec<String> {
    let operator = opset::operator(name).unwrap_or_else(|problem| panic!("{problem}"));
    let folder = folder.join(architecture);
    let target = emit::target(architecture).expect("it is known");
    if let Err(error) = emit::emit(&[operator], target, &folder, None, 0) {
        return vec![format!("{name}: {error}")];
    }
    let stem: String =
        name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
    let manifest = std::fs::read_to_string(folder.join(format!("{stem}.json"))).expect("it was written");
    let manifest: Value = serde_json::from_str(&manifest).expect("it is JSON");
    let mut faults = faults_of(&manifest);
    if let Some(assembler) = assembler() {
        faults.extend(complaints(&assembler, architecture, &folder.join(format!("{stem}.ptx"))));
    }
    faults.into_iter().map(|fault| format!("{name} for {architecture}: {fault}")).collect()
}

/// Emits the operators of the set for an architecture.
fn check_whole_set(architecture: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let faults: Vec<String> =
        whole_set::whole_set().iter().flat_map(|name| check(name, architecture, folder.path())).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

// Two tests, as choosing the schedules takes minutes, and tests run beside each other.

#[test]
fn every_operator_of_the_set_is_emitted_for_sm_80() {
    check_whole_set("sm_80");
}

#[test]
fn every_operator_of_the_set_is_emitted_for_sm_90() {
    check_whole_set("sm_90");
}

#[test]
fn further_points_are_emitted_for_a_product() {
    let folder = tempfile::tempdir().expect("a folder");
    let operator = opset::operator("GMM:1x64x96x32").expect("it is known");
    let target = emit::target("h100").expect("it is known");
    emit::emit(&[operator], target, folder.path(), None, 3).expect("they can be emitted");
    for stem in ["GMM_1x64x96x32", "GMM_1x64x96x32-1", "GMM_1x64x96x32-2", "GMM_1x64x96x32-3"] {
        for extension in ["ptx", "json", "trace", "report"] {
            assert!(folder.path().join(format!("{stem}.{extension}")).exists(), "{stem}.{extension}");
        }
    }
    assert!(emit::target("h1000").is_err_and(|problem| problem.contains("h100, h200")));
}
