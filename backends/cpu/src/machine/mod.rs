//! Facts about a CPU that decide which code may run on it and which schedules suit it.
//!
//! [`Machine::host`] describes the running machine. A machine also has a textual fingerprint, with which a record
//! states where it was made and what it needs. This module measures nothing; that is [`peak`](super::peak).

mod feature;
mod fingerprint;
mod host;
mod target;

use std::sync::OnceLock;

use thiserror::Error;

pub use feature::{Feature, FeatureSet, UnknownFeature};
pub use fingerprint::FingerprintError;

/// The environment variable that takes features away from the host, for example `-avx512f,-fma`.
pub const FEATURES_VARIABLE: &str = "TILEWRIGHT_CPU_FEATURES";

/// The facts about a CPU that code generation and schedules need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// The instruction set's name as in Rust's `target_arch`, for example `x86_64`.
    pub architecture: String,
    /// The model's name for people; not part of the fingerprint, and empty when it is unknown.
    pub brand: String,
    /// How many threads the process can run at once: the CPUs that it may use, within its quota.
    pub cores: usize,
    /// Size of one core's first-level data cache in bytes.
    pub l1_bytes: usize,
    /// Size in bytes of the second-level cache that a core uses.
    pub l2_bytes: usize,
    /// Size in bytes of the third-level cache that a core uses, shared or not; 0 when there is none or it is
    /// unknown.
    pub l3_bytes: usize,
    /// Size of a line of the first-level data cache in bytes.
    pub line_bytes: usize,
    /// The features that the CPU and the operating system offer.
    pub features: FeatureSet,
}

/// Features that a kernel needs and a machine does not offer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this CPU does not offer {missing}; use a kernel that was tuned for a lesser CPU")]
pub struct MissingFeatures {
    /// The missing features.
    pub missing: FeatureSet,
}

/// Why [`FEATURES_VARIABLE`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FeatureOverrideError {
    /// The variable names a feature that is not known here.
    #[error("{FEATURES_VARIABLE}: {0}")]
    Unknown(#[from] UnknownFeature),
    /// An entry does not take a feature away. Adding is impossible: the code would not run.
    #[error(
        "{FEATURES_VARIABLE}: `{entry}` must be a feature to leave unused, with a minus sign: `-avx512f`"
    )]
    NotARemoval {
        /// The entry as it was given.
        entry: String,
    },
}

impl Machine {
    /// The running machine, less the features that [`FEATURES_VARIABLE`] takes away. The machine is queried once; later
    /// changes of the variable or of the process's CPU affinity have no effect.
    ///
    /// # Errors
    /// When the variable is malformed, on each call.
    pub fn host() -> Result<&'static Self, FeatureOverrideError> {
        static HOST: OnceLock<Result<Machine, FeatureOverrideError>> = OnceLock::new();
        let host = HOST.get_or_init(|| {
            let removals = std::env::var(FEATURES_VARIABLE).unwrap_or_default();
            // A removed feature is not queried: a query for the tile registers makes the system reserve room for them.
            Ok(host::detect(without(FeatureSet::all(), &removals)?))
        });
        host.as_ref().map_err(Clone::clone)
    }

    /// This machine without the features in `removals`, a list such as `-avx512f,-fma`, and without those
    /// that build on them. Features that the machine does not have are left out silently, so that one list
    /// serves many machines.
    ///
    /// # Errors
    /// When an entry is unknown or lacks its minus sign.
    pub fn without_features(mut self, removals: &str) -> Result<Self, FeatureOverrideError> {
        self.features = without(self.features, removals)?;
        Ok(self)
    }

    /// Whether code that needs the features `required` may run here.
    ///
    /// # Errors
    /// When it may not; the error holds the missing features.
    pub fn supports(&self, required: &FeatureSet) -> Result<(), MissingFeatures> {
        let missing = required.difference(self.features);
        if missing.is_empty() { Ok(()) } else { Err(MissingFeatures { missing }) }
    }

    /// Width in bits of the widest vectors with which the CPU computes f32: 512, 256 or 128. Scalable vectors
    /// count as 128, because no code here uses them.
    pub fn vector_bits(&self) -> u32 {
        if self.features.contains(Feature::Avx512f) {
            512
        } else if self.features.contains(Feature::Avx) {
            256
        } else {
            128
        }
    }
}

/// Features without those in a list such as `-avx512f,-fma`, and without those that build on them.
fn without(mut features: FeatureSet, removals: &str) -> Result<FeatureSet, FeatureOverrideError> {
    for entry in removals.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let Some(name) = entry.strip_prefix('-') else {
            return Err(FeatureOverrideError::NotARemoval { entry: entry.to_owned() });
        };
        features.remove(name.parse()?);
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Machine {
        "x86_64;sse4.1;sse4.2;avx;avx2;fma;f16c;avx512f;l1=48K;l2=2M;l3=0;line=64;cores=2".parse().unwrap()
    }

    #[test]
    fn the_host_makes_sense() {
        let host = Machine::host().expect("the tests run without an override");
        assert_eq!(host.architecture, std::env::consts::ARCH);
        assert!(host.cores >= 1);
        assert!(host.line_bytes.is_power_of_two(), "{}", host.line_bytes);
        assert!(host.l1_bytes >= 8 << 10 && host.l1_bytes <= host.l2_bytes, "{host}");
        assert!(std::ptr::eq(host, Machine::host().unwrap()), "asked once");
    }

    #[test]
    fn features_can_be_taken_away() {
        let lesser = example().without_features("-avx512f, -fma").unwrap();
        assert_eq!(lesser.features.to_string(), "sse4.1,sse4.2,avx,avx2,f16c");
        assert_eq!(example().without_features("").unwrap(), example());
        assert_eq!(example().without_features("-neon").unwrap(), example());
    }

    #[test]
    fn a_bad_override_is_refused_and_named() {
        let error = example().without_features("-fma,-avx3").unwrap_err();
        assert!(
            error.to_string().starts_with("TILEWRIGHT_CPU_FEATURES: unknown CPU feature `avx3`"),
            "{error}"
        );
        let error = example().without_features("+amx-tile").unwrap_err();
        assert_eq!(error, FeatureOverrideError::NotARemoval { entry: "+amx-tile".into() });
    }

    #[test]
    fn missing_features_are_named() {
        let machine = example();
        assert_eq!(machine.supports(&"avx2,fma".parse().unwrap()), Ok(()));
        assert_eq!(machine.supports(&FeatureSet::EMPTY), Ok(()));
        let missing = machine.supports(&"fma,avx512bw,amx-tile".parse().unwrap()).unwrap_err();
        assert_eq!(missing.missing.to_string(), "avx512bw,amx-tile");
        assert!(missing.to_string().contains("avx512bw,amx-tile"), "{missing}");
    }

    #[test]
    fn the_vector_width_follows_the_features() {
        for (removals, bits) in [("", 512), ("-avx512f", 256), ("-avx2", 256), ("-avx", 128)] {
            assert_eq!(example().without_features(removals).unwrap().vector_bits(), bits, "{removals}");
        }
    }
}
