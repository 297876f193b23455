//! The machine that a record was made for, as far as it matters on another machine.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use tilewright_core::target::{CpuTarget, RunContext, Target, TargetKind};

/// The kind of machine, the CPU features that the tuned code needs, and the number of threads it ran on. Its
/// text form is `cpu;avx;fma;threads=2`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TunedFor {
    /// The kind of machine.
    pub kind: TargetKind,
    /// Features that the code needs, by name.
    pub features: BTreeSet<String>,
    /// The number of threads of its runs; at least 1.
    pub threads: u32,
}

/// The text is no machine of a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no target: expected {expected}; the form is `cpu;FEATURE;FEATURE;threads=COUNT`")]
pub struct TunedForError {
    /// The text.
    pub text: String,
    /// The expected part.
    pub expected: &'static str,
}

impl TunedFor {
    /// The machine that code for a target needs, with the threads of its runs.
    ///
    /// For a CPU these are the features that its vector width can use: a machine with AVX-512 whose code generator uses
    /// 128-bit vectors needs no AVX-512, and its records serve lesser machines. For a GPU these are the architecture
    /// that code is generated for, the product and the version of its driver; threads of the host play no part.
    pub fn of(context: &RunContext) -> Self {
        let features = match &*context.target {
            Target::Cpu(cpu) => usable_features(cpu),
            Target::Gpu(gpu) => gpu.features().into_iter().collect(),
        };
        let threads = if context.target.gpu().is_ok() { 1 } else { context.threads() };
        TunedFor { kind: context.target.kind(), features, threads }
    }

    /// The features that the code needs and a machine lacks; empty when it may be used there.
    pub fn missing(&self, target: &Target) -> BTreeSet<String> {
        self.features.iter().filter(|feature| !target.has_feature(feature)).cloned().collect()
    }

    /// Whether a record may be used on a machine.
    pub fn serves(&self, target: &Target) -> bool {
        self.kind == target.kind() && self.features.iter().all(|feature| target.has_feature(feature))
    }

    /// The misfit of a record to a machine that it serves, less is better: first the number of features of the machine
    /// that the code leaves unused, then the distance between the numbers of threads.
    pub(super) fn misfit(&self, context: &RunContext) -> (usize, f64) {
        let machine = TunedFor::of(context);
        let unused = machine.features.difference(&self.features).count();
        let threads = (f64::from(self.threads) / f64::from(machine.threads)).ln().abs();
        (unused, threads)
    }
}

/// The features of a CPU that code with its vector width can use.
fn usable_features(cpu: &CpuTarget) -> BTreeSet<String> {
    let is_usable = |feature: &&String| {
        let bits = match feature.as_str() {
            name if name.starts_with("avx512") || name.starts_with("amx") => 512,
            name if name.starts_with("avx2") || name.starts_with("avxvnni") => 256,
            _ => 0,
        };
        bits <= cpu.vector_bits
    };
    cpu.features.iter().filter(is_usable).cloned().collect()
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
        let kind = fields.next().and_then(TargetKind::from_name);
        let kind = kind.ok_or_else(|| wrong("`cpu` or `gpu` first"))?;
        let threads = fields
            .next_back()
            .and_then(|field| field.strip_prefix("threads=")?.parse().ok())
            .filter(|&threads| threads >= 1)
            .ok_or_else(|| wrong("`threads=` and a number at the end"))?;
        let features = fields.map(|name| is_feature(name).then(|| name.to_owned()));
        let features = features.collect::<Option<_>>().ok_or_else(|| wrong("names of features"))?;
        Ok(TunedFor { kind, features, threads })
    }
}

fn is_feature(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::target::GpuTarget;

    pub(super) fn machine(features: &[&str], vector_bits: u32, cores: u32) -> RunContext {
        let cpu = CpuTarget {
            cores,
            vector_bits,
            vector_registers: 16,
            l1_bytes: 32 << 10,
            l2_bytes: 1 << 20,
            l3_bytes: 0,
            cache_line_bytes: 64,
            features: features.iter().map(|&name| name.to_owned()).collect(),
            intrinsics: Vec::new(),
            descriptions: Default::default(),
        };
        cpu.into()
    }

    #[test]
    fn texts_read_back() {
        for text in [
            "cpu;threads=1",
            "cpu;amx-tile;avx512f;sse4.1;threads=96",
            "gpu;sm_90a;threads=1",
            "gpu;driver-13.0;product-NVIDIA_H200;sm_90;threads=1",
        ] {
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
        let needs = |bits| TunedFor::of(&machine(&features, bits, 2)).to_string();
        assert_eq!(needs(128), "cpu;avx;fma;threads=2");
        assert_eq!(needs(256), "cpu;avx;avx2;fma;threads=2");
        assert_eq!(needs(512), "cpu;amx-tile;avx;avx2;avx512f;fma;threads=2");
    }

    #[test]
    fn code_for_a_greater_machine_does_not_serve_a_lesser() {
        let greater: TunedFor = "cpu;avx2;avx512f;threads=8".parse().unwrap();
        let lesser = machine(&["avx2"], 256, 8).target;
        assert!(!greater.serves(&lesser));
        assert!(greater.missing(&lesser).contains("avx512f"));
        assert!("cpu;avx2;threads=2".parse::<TunedFor>().unwrap().serves(&lesser));
        assert!(!"gpu;threads=2".parse::<TunedFor>().unwrap().serves(&lesser));
    }

    #[test]
    fn measurements_of_a_gpu_serve_its_product_and_rather_its_driver() {
        let gpu = |product: &str, driver| {
            let product = Some(product.into());
            RunContext::from(GpuTarget { product, driver: Some(driver), ..GpuTarget::a100() })
        };
        let own = gpu("NVIDIA A100", 13_000);
        let tuned = TunedFor::of(&own.with_threads(8));
        assert_eq!(tuned.to_string(), "gpu;driver-13.0;product-NVIDIA_A100;sm_80;threads=1");
        let older = TunedFor::of(&gpu("NVIDIA A100", 12_040));
        assert!(tuned.serves(&own.target) && older.serves(&own.target));
        assert!(tuned.misfit(&own) < older.misfit(&own));
        let other = TunedFor::of(&gpu("NVIDIA A30", 13_000));
        assert!(!other.serves(&own.target));
        assert_eq!(other.missing(&own.target).into_iter().collect::<Vec<_>>(), ["product-NVIDIA_A30"]);
    }

    #[test]
    fn code_for_a_gpu_serves_later_ones_unless_it_is_specific_to_one() {
        let made_for = |gpu: GpuTarget| TunedFor::of(&gpu.into());
        let (ampere, hopper) = (made_for(GpuTarget::a100()), made_for(GpuTarget::h100()));
        assert_eq!(
            (ampere.to_string(), hopper.to_string()),
            ("gpu;sm_80;threads=1".into(), "gpu;sm_90a;threads=1".into())
        );
        assert!(ampere.serves(&GpuTarget::h200().into()) && hopper.serves(&GpuTarget::h200().into()));
        assert!(!hopper.serves(&GpuTarget::rtx_4090().into()));
        let h200 = RunContext::from(GpuTarget::h200());
        assert!(hopper.misfit(&h200).0 < ampere.misfit(&h200).0);
    }
}
