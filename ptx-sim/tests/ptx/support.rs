//! Helpers of the tests: kernels as files, launches with buffers, random numbers.

use tilewright_ptx_sim::{FaultKind, Launch, Memory, Module, Options, Report};

/// A module around the text of functions.
pub(crate) fn module(functions: &str) -> String {
    format!(".version 8.0\n.target sm_80\n.address_size 64\n{functions}")
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
