//! The workloads of MetaSchedule's paper by their default schedules, at the published sizes.

use std::path::PathBuf;

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{GpuTarget, Target};
use tilewright_gpu::emit;
use tilewright_gpu::intrinsics::with_intrinsics;
use tilewright_search::gpu::features::report;
use tilewright_search::schedule_by_default;

use crate::assembler::resources;

const NAMES: [&str; 13] =
    ["C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "GMM", "GRP", "NRM", "SFM", "T2D", "TBG"];

/// The program of a workload, from the data of the search's conformance tests.
fn program(name: &str) -> Program {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../search/tests/conformance/sketches");
    let file = PathBuf::from(folder).join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (_, rest) = text.split_once("\nprogram\n").expect("a line `program`");
    let (program, _) = rest.split_once("\nsketches\n").expect("a line `sketches`");
    program.trim().parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A description of a workload's default schedule whose kernels spill registers, or have no resident block, on an architecture.
fn fault(name: &str, architecture: &str) -> Option<String> {
    let gpu = with_intrinsics(GpuTarget::for_architecture(architecture).expect("it is known"));
    let schedule = schedule_by_default(&program(name), Target::from(gpu.clone()));
    let flat = lower(schedule.program(), &LowerOptions::of(schedule.target())).expect("it can be lowered");
    let code = emit(&flat, &gpu).expect("it can be emitted");
    let reports = report(schedule.program(), &gpu);
    let found = resources(&code.ptx, architecture)?;
    println!("{name} for {architecture}: {found:?}");
    reports.iter().for_each(|report| println!("{report}"));
    let is_resident = reports.iter().all(|report| report.resident_blocks >= 1);
    (found.spilled_bytes > 0 || !is_resident)
        .then(|| format!("{name} for {architecture}: {found:?}\n{}", schedule.trace()))
}

fn check(architecture: &str) {
    let faults: Vec<String> = NAMES.iter().filter_map(|name| fault(name, architecture)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn default_schedules_for_sm_80() {
    check("sm_80");
}

#[test]
fn default_schedules_for_sm_90() {
    check("sm_90");
}
