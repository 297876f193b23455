//! The machine that a record was made for, as far as it matters to another machine.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use tilewright_core::target::{Target, TargetKind};

/// The kind of machine, the CPU features that the tuned code needs, and the number of threads it ran on. Its
/// text form is `cpu;avx;fma;threads=2`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TunedFor {
    /// The kind of machine.
    pub kind: TargetKind,
    /// Features that the code needs, by name.
    pub features: BTreeSet<String>,
    /// How many threads it was tuned on; at least 1.
    pub threads: u32,
}

/// Why a text does not say what a record was made for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no target: expected {expected}; the form is `cpu;FEATURE;FEATURE;threads=COUNT`")]
pub struct TunedForError {
    /// The text.
    pub text: String,
    /// What was expected.
    pub expected: &'static str,
}

impl TunedFor {
    /// What code for a target needs: the features that its vector width can use. A machine with AVX-512 whose code
    /// generator uses 128-bit vectors needs no AVX-512, and its records serve lesser machines.
    pub fn target(target: &Target) -> Self {
        let usable = |feature: &&String| {
            let bits = match feature.as_str() {
                name if name.starts_with("avx512") || name.starts_with("amx") => 512,
                name if name.starts_with("avx2") || name.starts_with("avxvnni") => 256,
                _ => 0,
            };
            bits <= target.vector_bits
        };
        let features = target.features.iter().filter(usable).cloned().collect();
        TunedFor { kind: target.kind, features, threads: target.cores.max(1) }
    }

    /// The features that the code needs and a machine lacks; empty when it may be used there.
    pub fn missing(&self, target: &Target) -> BTreeSet<String> {
        self.features.difference(&target.features).cloned().collect()
    }

    /// Whether a record may be used on a machine.
    pub fn serves(&self, target: &Target) -> bool {
        self.kind == target.kind && self.features.is_subset(&target.features)
    }

    /// How well it suits a machine that it serves, less is better: first how many of the machine's features the
    /// code leaves unused, then how far the numbers of threads are apart.
    pub(super) fn misfit(&self, target: &Target) -> (usize, f64) {
        let unused = TunedFor::target(target).features.difference(&self.features).count();
        let threads = (f64::from(self.threads) / f64::from(target.cores.max(1))).ln().abs();
        (unused, threads)
    }
}

impl fmt::Display for TunedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        self.features.iter().try_for_each(|feature| write!(f, ";{feature}"))?;
        write!(f, ";threads={}", self.threads)
    }
}

impl FromStr for TunedFor {
    type Err = TunedForError;

    fn from_str(text: &str) -> Result<Self, TunedForError> {
        let wrong = |expected| TunedForError { text: text.to_owned(), expected };
        let mut fields = text.split(';');
        let kind = match fields.next() {
            Some("cpu") => TargetKind::Cpu,
            Some("gpu") => TargetKind::Gpu,
            _ => return Err(wrong("`cpu` or `gpu` first")),
        };
        let threads = fields
            .next_back()
            .and_then(|field| field.strip_prefix("threads=")?.parse().ok())
            .filter(|&threads| threads >= 1)
            .ok_or_else(|| wrong("`threads=` and a number at the end"))?;
        let features = fields.map(|name| is_feature(name).then(|| name.to_owned()));
        let features = features.collect::<Option<_>>().ok_or_else(|| wrong("names of CPU features"))?;
        Ok(TunedFor { kind, features, threads })
    }
}

fn is_feature(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn machine(features: &[&str], vector_bits: u32, cores: u32) -> Target {
        Target {
            kind: TargetKind::Cpu,
            cores,
            vector_bits,
            vector_registers: 16,
            l1_bytes: 32 << 10,
            l2_bytes: 1 << 20,
            l3_bytes: 0,
            cache_line_bytes: 64,
            features: features.iter().map(|&name| name.to_owned()).collect(),
            intrinsics: Vec::new(),
        }
    }

    #[test]
    fn texts_read_back() {
        for text in ["cpu;threads=1", "cpu;amx-tile;avx512f;sse4.1;threads=96", "gpu;sm_90a;threads=1"] {
            assert_eq!(text.parse::<TunedFor>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "cpu",
            "tpu;threads=1",
            "cpu;threads=0",
            "cpu;;threads=1",
            "cpu;a b;threads=1",
            "cpu;threads=x",
        ] {
            let error = text.parse::<TunedFor>().unwrap_err();
            assert!(error.to_string().contains("is no target: expected"), "{text:?}: {error}");
        }
    }

    #[test]
    fn wide_features_are_needed_by_wide_code_only() {
        let features = ["amx-tile", "avx", "avx2", "avx512f", "fma"];
        let needs = |bits| TunedFor::target(&machine(&features, bits, 2)).to_string();
        assert_eq!(needs(128), "cpu;avx;fma;threads=2");
        assert_eq!(needs(256), "cpu;avx;avx2;fma;threads=2");
        assert_eq!(needs(512), "cpu;amx-tile;avx;avx2;avx512f;fma;threads=2");
    }

    #[test]
    fn code_for_a_greater_machine_does_not_serve_a_lesser() {
        let greater: TunedFor = "cpu;avx2;avx512f;threads=8".parse().unwrap();
        let lesser = machine(&["avx2"], 256, 8);
        assert!(!greater.serves(&lesser));
        assert!(greater.missing(&lesser).contains("avx512f"));
        assert!("cpu;avx2;threads=2".parse::<TunedFor>().unwrap().serves(&lesser));
    }
}
