//! CPU features by name, and sets of them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Declares the features once: the name, what it builds on, and how the running machine is asked for it.
macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident $name:tt [$($base:ident)*] $on_x86_64:tt $on_aarch64:tt;)*) => {
        /// A CPU feature that decides which code a kernel may contain.
        ///
        /// Names are those of the Rust compiler's target features, which are the vendors' names in lower
        /// case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($(#[$doc])* $variant,)*
        }

        impl Feature {
            /// All features, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The feature's name, for example `avx512f`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The features that this one cannot be used without, direct ones only.
            fn bases(self) -> &'static [Self] {
                match self {
                    $(Self::$variant => &[$(Self::$base),*],)*
                }
            }

            /// Whether the running machine and its operating system offer the feature.
            pub(super) fn is_detected(self) -> bool {
                match self {
                    $(Self::$variant => detected!($name $on_x86_64 $on_aarch64),)*
                }
            }
        }
    };
}

/// One feature's test: `std` asks the standard library, `cpuid(bit)` is a bit of the AMX group, `no` is
/// another architecture.
macro_rules! detected {
    ($name:tt std no) => {{
        #[cfg(target_arch = "x86_64")]
        {
            std::arch::is_x86_feature_detected!($name)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            false
        }
    }};
    ($name:tt no std) => {{
        #[cfg(target_arch = "aarch64")]
        {
            std::arch::is_aarch64_feature_detected!($name)
        }
        #[cfg(not(target_arch = "aarch64"))]
        {
            false
        }
    }};
    ($name:tt (cpuid $bit:literal) no) => {
        super::host::amx_feature_bit($bit)
    };
}

features! {
    /// 128-bit integer and rounding instructions.
    Sse41 "sse4.1" [] std no;
    /// String and CRC instructions; with `popcnt` and `sse4.1` the base of most distributions' second level.
    Sse42 "sse4.2" [Sse41] std no;
    /// Counting of set bits.
    Popcnt "popcnt" [] std no;
    /// 256-bit floating-point vectors and three-operand encodings.
    Avx "avx" [Sse42] std no;
    /// 256-bit integer vectors and gathers.
    Avx2 "avx2" [Avx] std no;
    /// Fused multiply-add.
    Fma "fma" [Avx] std no;
    /// Conversions between f16 and f32.
    F16c "f16c" [Avx] std no;
    /// Bit manipulation, first group.
    Bmi1 "bmi1" [] std no;
    /// Bit manipulation, second group.
    Bmi2 "bmi2" [] std no;
    /// Counting of leading zeros.
    Lzcnt "lzcnt" [] std no;
    /// u8 × i8 dot products on 128- and 256-bit vectors.
    AvxVnni "avxvnni" [Avx2] std no;
    /// Dot products of bytes of any signs on 128- and 256-bit vectors.
    AvxVnniInt8 "avxvnniint8" [AvxVnni] std no;
    /// 512-bit vectors and masks.
    Avx512f "avx512f" [Avx2 Fma F16c] std no;
    /// 512-bit vectors of 8- and 16-bit integers.
    Avx512bw "avx512bw" [Avx512f] std no;
    /// Conflict detection.
    Avx512cd "avx512cd" [Avx512f] std no;
    /// More 32- and 64-bit operations on 512-bit vectors.
    Avx512dq "avx512dq" [Avx512f] std no;
    /// Masks and the upper sixteen registers on 128- and 256-bit vectors.
    Avx512vl "avx512vl" [Avx512f] std no;
    /// Byte permutations.
    Avx512vbmi "avx512vbmi" [Avx512bw] std no;
    /// u8 × i8 and i16 × i16 dot products on masked vectors.
    Avx512vnni "avx512vnni" [Avx512f] std no;
    /// bf16 dot products and conversions.
    Avx512bf16 "avx512bf16" [Avx512bw] std no;
    /// f16 arithmetic.
    Avx512fp16 "avx512fp16" [Avx512bw Avx512vl Avx512dq] std no;
    /// Tile registers and their loads and stores.
    AmxTile "amx-tile" [] (cpuid 24) no;
    /// 8-bit integer products of tiles.
    AmxInt8 "amx-int8" [AmxTile] (cpuid 25) no;
    /// bf16 products of tiles.
    AmxBf16 "amx-bf16" [AmxTile] (cpuid 22) no;
    /// 128-bit vectors of AArch64.
    Neon "neon" [] no std;
    /// 8-bit dot products on 128-bit vectors.
    Dotprod "dotprod" [Neon] no std;
    /// f16 arithmetic on 128-bit vectors.
    Fp16 "fp16" [Neon] no std;
    /// bf16 dot and matrix products.
    Bf16 "bf16" [Neon] no std;
    /// 8-bit matrix products on 128-bit vectors.
    I8mm "i8mm" [Neon] no std;
    /// Scalable vectors.
    Sve "sve" [Neon] no std;
    /// Scalable vectors, second version.
    Sve2 "sve2" [Sve] no std;
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no CPU feature known here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown CPU feature `{name}`; the known ones are {}", FeatureSet::all())]
pub struct UnknownFeature {
    /// The name as it was given.
    pub name: String,
}

impl FromStr for Feature {
    type Err = UnknownFeature;

    fn from_str(name: &str) -> Result<Self, UnknownFeature> {
        let known = Self::ALL.iter().find(|feature| feature.name() == name);
        known.copied().ok_or_else(|| UnknownFeature { name: name.to_owned() })
    }
}

/// A set of CPU features.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureSet {
    bits: u64,
}

const _: () = assert!(Feature::ALL.len() <= u64::BITS as usize);

impl FeatureSet {
    /// The set without any feature.
    pub const EMPTY: Self = Self { bits: 0 };

    /// The set of all features, of all architectures.
    pub fn all() -> Self {
        Feature::ALL.iter().copied().collect()
    }

    /// Whether no feature is in the set.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Whether `feature` is in the set.
    pub fn contains(self, feature: Feature) -> bool {
        self.bits & Self::bit(feature) != 0
    }

    /// Adds `feature`.
    pub fn insert(&mut self, feature: Feature) {
        self.bits |= Self::bit(feature);
    }

    /// Removes `feature` and all that cannot be used without it.
    pub fn remove(&mut self, feature: Feature) {
        self.bits &= !Self::bit(feature);
        let orphans = Feature::ALL.iter().filter(|other| other.bases().contains(&feature));
        for &orphan in orphans.filter(|&&orphan| self.contains(orphan)).collect::<Vec<_>>() {
            self.remove(orphan);
        }
    }

    /// The features of this set that are not in `other`.
    pub fn difference(self, other: Self) -> Self {
        Self { bits: self.bits & !other.bits }
    }

    /// The features, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&feature| self.contains(feature))
    }

    fn bit(feature: Feature) -> u64 {
        1 << feature as u32
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        let mut set = Self::EMPTY;
        features.into_iter().for_each(|feature| set.insert(feature));
        set
    }
}

/// The names with commas between them.
impl fmt::Display for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, feature) in self.iter().enumerate() {
            write!(f, "{}{feature}", if position == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Feature::name)).finish()
    }
}

/// Reads names with commas between them; the empty text is the empty set.
impl FromStr for FeatureSet {
    type Err = UnknownFeature;

    fn from_str(text: &str) -> Result<Self, UnknownFeature> {
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for &feature in Feature::ALL {
            assert_eq!(feature.name().parse(), Ok(feature));
        }
    }

    #[test]
    fn an_unknown_name_is_named() {
        let error = "avx2,avx1024".parse::<FeatureSet>().unwrap_err();
        assert_eq!(error.name, "avx1024");
        assert!(error.to_string().starts_with("unknown CPU feature `avx1024`; the known ones are sse4.1,"));
    }

    #[test]
    fn sets_read_back() {
        for text in ["", "fma", "sse4.1,avx2,amx-tile,neon"] {
            assert_eq!(text.parse::<FeatureSet>().unwrap().to_string(), text);
        }
        assert_eq!(" fma , avx2,".parse::<FeatureSet>().unwrap().to_string(), "avx2,fma");
    }

    #[test]
    fn removing_a_feature_removes_what_builds_on_it() {
        let mut set = FeatureSet::all();
        set.remove(Feature::Avx512f);
        assert!(set.contains(Feature::Avx2) && set.contains(Feature::AmxTile));
        assert!(set.iter().all(|feature| !feature.name().starts_with("avx512")), "{set}");
        set.remove(Feature::Sse41);
        assert!(!set.contains(Feature::Fma), "{set}");
        set.remove(Feature::AmxTile);
        assert!(set.iter().all(|feature| !feature.name().starts_with("amx")), "{set}");
    }

    #[test]
    fn what_a_machine_offers_is_closed_under_bases() {
        for &feature in Feature::ALL.iter().filter(|feature| feature.is_detected()) {
            for base in feature.bases() {
                assert!(base.is_detected(), "{feature} without {base}");
            }
        }
    }
}
