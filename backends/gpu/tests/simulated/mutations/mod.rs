//! Each barrier, wait, fence and predicate of emitted kernels is left out, one at a time: the simulator or the comparison
//! with the interpreter has to notice it.
//!
//! A part is redundant for a call if leaving it out cannot change anything, by proof: a predicate that holds in all threads
//! that reach it. A barrier that nothing needs is a defect of the lowering; `docs/limits.md` names those that are known,
//! which random schedules meet and default ones do not.

mod kernels;
mod text;

use std::fmt::Write as _;

use tilewright_core::device::CompileError;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{GpuTarget, Target};
use tilewright_core::tensor::{AnyTensor, Random};
use tilewright_gpu::{GpuCode, emit};
use tilewright_ptx_sim::{FaultKind, Module, Options, RemarkKind};
use tilewright_search::schedule_by_default;

use crate::random::{self, random_schedule};
use crate::support::{Call, Execution, code_of, lowered, parse, same};
use text::{Kind, Mutation};

/// How many random schedules are mutated; `TILEWRIGHT_CASES` asks for more.
const CASES: u64 = 40;

/// Calls with random elements. A maximum depends on one element of its row, so that there is a call with rising elements, too.
const RANDOM_CALLS: u64 = 2;

/// A mutant may execute as many times the instructions of its original; loops without an end have to be stopped.
const PATIENCE: u64 = 4;

/// The result of mutating one kernel.
#[derive(Debug, Default)]
struct Tally {
    /// Kernels with something to leave out.
    kernels: usize,
    orderings: usize,
    predicates: usize,
    /// Predicates that hold in all threads that reach them, in all calls.
    always_true: usize,
    /// Barriers without which no schedule has a race and all results stay.
    superfluous: String,
    /// Mutants that nothing noticed, and that are not redundant by proof.
    survivors: String,
}

impl Tally {
    fn assert_no_survivors(&self, least_kernels: usize) {
        println!(
            "{} kernels, {} barriers, waits and fences, {} predicates, of which {} hold in all threads",
            self.kernels, self.orderings, self.predicates, self.always_true
        );
        assert!(self.kernels >= least_kernels, "only {} kernels have something to leave out", self.kernels);
        print!("{}", self.superfluous);
        assert!(self.survivors.is_empty(), "left out and not noticed:\n{}", self.survivors);
    }

    /// Mutates the code of a flat program, each mutant with each call.
    fn mutate(&mut self, name: &str, flat: &Program, calls: &[Call]) {
        let code = code_of(flat);
        let originals: Vec<Original<'_>> =
            calls.iter().map(|call| Original::new(flat, &code, call)).collect();
        let mutations = text::find(&code.ptx);
        self.kernels += usize::from(!mutations.is_empty());
        for mutation in mutations {
            match mutation.kind {
                Kind::Ordering => self.orderings += 1,
                Kind::Predicate(_) => self.predicates += 1,
            }
            let mutant = parse_ptx(&mutation.apply(&code.ptx));
            if originals.iter().any(|original| original.notices(&mutant)) {
                continue;
            }
            if originals.iter().all(|original| original.holds_always(&mutation)) {
                self.always_true += 1;
                continue;
            }
            let line = code.ptx.lines().nth(mutation.line).unwrap_or_default();
            let number = mutation.line + 1;
            let survivors = match mutation.kind {
                Kind::Ordering => &mut self.superfluous,
                Kind::Predicate(_) => &mut self.survivors,
            };
            writeln!(survivors, "{name}, line {number}, {:?}:{line}", mutation.kind).expect("a string");
            if std::env::var_os("TILEWRIGHT_SHOW").is_some() {
                println!("{name}, line {number}: {line}\n{flat}\n{}", code.ptx);
            }
        }
    }
}

/// An unchanged run, which mutants are compared with.
struct Original<'a> {
    flat: &'a Program,
    code: &'a GpuCode,
    call: &'a Call,
    expected: Vec<AnyTensor>,
    instructions: u64,
    redundant_writes: usize,
}

fn parse_ptx(ptx: &str) -> Module {
    Module::parse(ptx).unwrap_or_else(|error| panic!("{error}\n{ptx}"))
}

/// The lines that write values that are there already, without an order.
fn redundant_writes(execution: &Execution) -> usize {
    execution.remarks.iter().filter(|remark| remark.kind == RemarkKind::RedundantWrite).count()
}

impl<'a> Original<'a> {
    fn new(flat: &'a Program, code: &'a GpuCode, call: &'a Call) -> Original<'a> {
        let expected = call.interpreted(flat);
        let mut original = Original { flat, code, call, expected, instructions: 0, redundant_writes: 0 };
        let execution = call.execute(flat, code, &parse_ptx(&code.ptx), &Options::default());
        assert!(!original.complains(&execution), "{:?}\n{flat}\n{}", execution.findings, code.ptx);
        original.instructions = execution.instructions;
        original.redundant_writes = redundant_writes(&execution);
        original
    }

    fn complains(&self, execution: &Execution) -> bool {
        let tensors = &execution.outcome.tensors;
        !execution.findings.is_empty()
            || execution.outcome.failure != [0; 3]
            || !tensors.iter().zip(&self.expected).all(|(found, expected)| same(found, expected))
    }

    fn run(&self, module: &Module, seeds: &[u64]) -> Execution {
        let limit = PATIENCE * self.instructions + 100_000;
        let options = Options { seeds: seeds.to_vec(), limit };
        self.call.execute(self.flat, self.code, module, &options)
    }

    /// Whether the simulator or the comparison notices that a module is not the original. The first schedule mostly
    /// suffices.
    fn notices(&self, mutant: &Module) -> bool {
        [&[0][..], &[1, 2, 3]].iter().any(|seeds| {
            let execution = self.run(mutant, seeds);
            self.complains(&execution) || redundant_writes(&execution) > self.redundant_writes
        })
    }

    /// Whether the predicate of a mutation holds in each thread that reaches it, so that leaving it out changes nothing.
    fn holds_always(&self, mutation: &Mutation) -> bool {
        mutation.trapping(&self.code.ptx).is_some_and(|ptx| {
            let execution = self.run(&parse_ptx(&ptx), &[0]);
            !execution.findings.iter().any(|finding| finding.kind == FaultKind::Trap)
        })
    }
}

fn cases() -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

/// Mutates kernels by their default schedules.
fn check_defaults(kernels: &[kernels::Kernel]) {
    let mut tally = Tally::default();
    for kernel in kernels {
        let program = parse(&kernel.text);
        let schedule = schedule_by_default(&program, Target::generic_gpu());
        let flat = lowered(schedule.program());
        let of_dims = |dims: &Vec<i64>| {
            let random = (0..RANDOM_CALLS).map(|seed| Call::random(&program, dims, 10 * seed));
            random.chain([Call::rising(&program, dims)]).collect()
        };
        let calls: Vec<Call> = kernel.dims.iter().flat_map::<Vec<Call>, _>(of_dims).collect();
        tally.mutate(&kernel.name, &flat, &calls);
    }
    // Sizes that divide evenly need no predicates.
    tally.assert_no_survivors(kernels.len() / 2);
    assert!(tally.superfluous.is_empty(), "barriers that nothing needs:\n{}", tally.superfluous);
}

#[test]
fn default_schedules_of_elements() {
    check_defaults(&kernels::of_elements());
}

#[test]
fn default_schedules_of_products() {
    check_defaults(&kernels::of_products());
}

#[test]
fn default_schedules_of_rows() {
    check_defaults(&kernels::of_rows());
}

#[test]
fn random_schedules() {
    let mut tally = Tally::default();
    for case in 0..cases() {
        let program = parse(random::KERNELS[(case % random::KERNELS.len() as u64) as usize]);
        let schedule = random_schedule(&program, &mut Random::new(case));
        let Ok(flat) = lower(schedule.program(), &LowerOptions::of(&Target::generic_gpu())) else { continue };
        match emit(&flat, &GpuTarget::generic()) {
            Err(CompileError::Unsupported { .. }) => continue,
            Err(error) => panic!("case {case}: {error}\n{flat}"),
            Ok(_) => tally.mutate(&format!("case {case}"), &flat, &[Call::random(&program, &[], case)]),
        }
    }
    tally.assert_no_survivors((cases() / 5) as usize);
}
