//! Helpers of the tests: kernels as files, launches with buffers, random numbers.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use tilewright_ptx_sim::{FaultKind, Launch, Memory, Module, Options, Report};

/// A module around the text of functions.
pub(crate) fn module(functions: &str) -> String {
    module_for("sm_80", functions)
}

/// The same for another target.
pub(crate) fn module_for(target: &str, functions: &str) -> String {
    // Products of eight-bit floats came to `sm_89` with PTX 8.4.
    let version = if target == "sm_89" { "8.4" } else { "8.0" };
    format!(".version {version}\n.target {target}\n.address_size 64\n{functions}")
}

/// Has NVIDIA's assembler accept a module, where there is one; `scripts/fetch-ptxas.sh` fetches it. So the texts of these tests are
/// PTX, and not what the simulator takes for it.
fn assemble(module: &Module, text: &str) {
    static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ptxas/13.0.88/ptxas");
    let assembler = std::env::var_os("PTXAS").map_or_else(|| fetched.into(), PathBuf::from);
    if !assembler.exists() {
        assert!(
            std::env::var_os("REQUIRE_PTXAS").is_none(),
            "there is no ptxas at {}: run scripts/fetch-ptxas.sh",
            assembler.display()
        );
        return;
    }
    let is_new = KNOWN.lock().expect("no test failed here").get_or_insert_default().insert(text.to_owned());
    if !is_new {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("module.ptx");
    std::fs::write(&source, text).expect("a file");
    let mut command = Command::new(&assembler);
    command.args(["-arch", module.target(), "-o", "/dev/null"]).arg(&source);
    let output = command.output().expect("the assembler runs");
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
}

/// Random numbers: xorshift64* (Vigna, 2016).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number between -1 and 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(crate) fn units(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }
}

/// A parameter of a kernel.
pub(crate) enum Param<'a> {
    /// A buffer with these bytes.
    Data(&'a [u8]),
    /// A buffer of this number of bytes, which are not written yet.
    Empty(u64),
    /// A number of 32 bits.
    Word(u32),
}

/// Runs a kernel; gives the report, and the contents of all buffers in order.
pub(crate) fn launch(
    text: &str,
    entry: &str,
    [grid, block]: [[u32; 3]; 2],
    shared_bytes: u64,
    params: &[Param<'_>],
) -> (Report, Vec<Vec<u8>>) {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assemble(&module, text);
    let mut memory = Memory::default();
    let mut bytes: Vec<u8> = Vec::new();
    let mut buffers = Vec::new();
    for (number, param) in params.iter().enumerate() {
        let name = format!("buffer {number}");
        let address = match param {
            Param::Word(word) => {
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                bytes.extend(word.to_le_bytes());
                continue;
            }
            Param::Data(data) => memory.allocate_with(data, &name).expect("memory suffices"),
            Param::Empty(count) => memory.allocate(*count, &name).expect("memory suffices"),
        };
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(address.to_le_bytes());
        match param {
            Param::Data(data) => buffers.push((address, data.len() as u64)),
            Param::Empty(count) => buffers.push((address, *count)),
            _ => {}
        }
    }
    let launch = Launch { grid, block, shared_bytes, params: bytes };
    let report = module
        .run(entry, &launch, &mut memory, &Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let contents = buffers
        .iter()
        .map(|(address, count)| memory.read(*address, *count).expect("it was allocated").to_vec())
        .collect();
    (report, contents)
}

pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn bytes_of_words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Sorts of the faults of a report.
pub(crate) fn faults(report: &Report) -> Vec<FaultKind> {
    let mut kinds: Vec<FaultKind> = Vec::new();
    for finding in &report.findings {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind);
        }
    }
    kinds
}
