//! Facts that the running machine reports.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use super::fingerprint::parse_size;
use super::{FeatureSet, Machine};

/// The default where the system reports nothing: a small first-level cache that every current core has at least.
const FALLBACK_L1_BYTES: usize = 32 << 10;
/// The default where the system reports nothing: a small second-level cache.
const FALLBACK_L2_BYTES: usize = 512 << 10;
/// The default where the system reports nothing: the line of all current x86-64 and most AArch64 cores.
const FALLBACK_LINE_BYTES: usize = 64;

/// One cache as a source describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cache {
    level: u32,
    bytes: usize,
    line_bytes: usize,
}

/// Queries the machine, and of its features only those `wanted`; an unknown fact gets a cautious value.
pub(super) fn detect(wanted: FeatureSet) -> Machine {
    let mut caches = caches_of_linux();
    if caches.is_empty() {
        caches = caches_of_cpuid();
    }
    if caches.is_empty() {
        caches = caches_of_macos();
    }
    let level = |level| caches.iter().find(|cache| cache.level == level && cache.bytes > 0);
    let l1_bytes = level(1).map_or(FALLBACK_L1_BYTES, |cache| cache.bytes);
    Machine {
        architecture: std::env::consts::ARCH.to_owned(),
        brand: brand().unwrap_or_default(),
        cores: available_parallelism().map_or(1, NonZeroUsize::get),
        l1_bytes,
        l2_bytes: level(2).map_or(FALLBACK_L2_BYTES.max(l1_bytes), |cache| cache.bytes),
        l3_bytes: level(3).map_or(0, |cache| cache.bytes),
        line_bytes: level(1)
            .map(|cache| cache.line_bytes)
            .filter(|bytes| bytes.is_power_of_two())
            .unwrap_or(FALLBACK_LINE_BYTES),
        features: wanted.iter().filter(|feature| feature.is_detected()).collect(),
    }
}

/// The data and unified caches that Linux lists for the first CPU; empty on other systems and in sandboxes
/// without sysfs.
fn caches_of_linux() -> Vec<Cache> {
    let folder = std::path::Path::new("/sys/devices/system/cpu/cpu0/cache");
    let read = |index: usize, name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("index{index}")).join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    (0..)
        .map_while(|index| Some((index, read(index, "level")?)))
        .filter(|&(index, _)| read(index, "type").is_some_and(|kind| kind != "Instruction"))
        .filter_map(|(index, level)| {
            let line_bytes = read(index, "coherency_line_size").and_then(|text| parse_size(&text));
            Some(Cache {
                level: level.parse().ok()?,
                bytes: parse_size(&read(index, "size")?)?,
                line_bytes: line_bytes.unwrap_or(FALLBACK_LINE_BYTES),
            })
        })
        .collect()
}

/// The data and unified caches by the deterministic cache parameters of `cpuid`: leaf 4 on Intel, leaf
/// 0x8000001D on AMD, with the same layout (Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E).
#[cfg(target_arch = "x86_64")]
fn caches_of_cpuid() -> Vec<Cache> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    /// `cpuid` numbers a cache's kind: 0 ends the list, 2 is an instruction cache.
    const INSTRUCTION: u32 = 2;
    let leaf = [(0, 4), (0x8000_0000, 0x8000_001D)]
        .into_iter()
        .find(|&(base, leaf)| __cpuid(base).eax >= leaf && __cpuid_count(leaf, 0).eax & 0x1F != 0);
    let Some((_, leaf)) = leaf else { return Vec::new() };
    (0..)
        .map(|index| __cpuid_count(leaf, index))
        .take_while(|cache| cache.eax & 0x1F != 0)
        .filter(|cache| cache.eax & 0x1F != INSTRUCTION)
        .map(|cache| {
            let field = |shift: u32, bits: u32| ((cache.ebx >> shift) & ((1 << bits) - 1)) as usize + 1;
            let (line_bytes, partitions, ways) = (field(0, 12), field(12, 10), field(22, 10));
            let sets = cache.ecx as usize + 1;
            Cache { level: (cache.eax >> 5) & 7, bytes: line_bytes * partitions * ways * sets, line_bytes }
        })
        .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn caches_of_cpuid() -> Vec<Cache> {
    Vec::new()
}

/// The caches of the fastest kind of core.
#[cfg(target_os = "macos")]
fn caches_of_macos() -> Vec<Cache> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| sysctl_number(name));
    let line_bytes = number(["hw.cachelinesize", "hw.cachelinesize"]).unwrap_or(FALLBACK_LINE_BYTES);
    [
        (1, number(["hw.perflevel0.l1dcachesize", "hw.l1dcachesize"])),
        (2, number(["hw.perflevel0.l2cachesize", "hw.l2cachesize"])),
        (3, number(["hw.perflevel0.l3cachesize", "hw.l3cachesize"])),
    ]
    .into_iter()
    .filter_map(|(level, bytes)| Some(Cache { level, bytes: bytes?, line_bytes }))
    .collect()
}

#[cfg(not(target_os = "macos"))]
fn caches_of_macos() -> Vec<Cache> {
    Vec::new()
}

#[cfg(target_os = "macos")]
fn sysctl(name: &str) -> Option<Vec<u8>> {
    let name = std::ffi::CString::new(name).ok()?;
    let mut value = vec![0_u8; 256];
    let mut length = value.len();
    // SAFETY: `name` is a C string; at most `length` bytes are written to `value`, which has as many; nothing
    // is set.
    let result = unsafe {
        libc::sysctlbyname(name.as_ptr(), value.as_mut_ptr().cast(), &mut length, std::ptr::null_mut(), 0)
    };
    value.truncate(length);
    (result == 0).then_some(value)
}

#[cfg(target_os = "macos")]
fn sysctl_number(name: &str) -> Option<usize> {
    let value = sysctl(name)?;
    let wide = value.as_slice().try_into().map(u64::from_le_bytes).ok();
    let number = wide.or_else(|| value.as_slice().try_into().map(u32::from_le_bytes).ok().map(u64::from))?;
    usize::try_from(number).ok()
}

/// The model's name, from `cpuid` leaves 0x80000002 to 0x80000004.
#[cfg(target_arch = "x86_64")]
fn brand() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(0x8000_0000).eax < 0x8000_0004 {
        return None;
    }
    let leaves = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(__cpuid);
    let registers = leaves.iter().flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
    let bytes = registers.flat_map(u32::to_le_bytes).take_while(|&byte| byte != 0).collect();
    clean(String::from_utf8(bytes).ok()?)
}

#[cfg(target_os = "macos")]
#[cfg(not(target_arch = "x86_64"))]
fn brand() -> Option<String> {
    let text = String::from_utf8(sysctl("machdep.cpu.brand_string")?).ok()?;
    clean(text.trim_end_matches('\0').to_owned())
}

/// Linux names other cores by the numbers of their implementer and part, or by a device tree.
#[cfg(not(any(target_arch = "x86_64", target_os = "macos")))]
fn brand() -> Option<String> {
    let information = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let line = information.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").or_else(|| {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("implementer {implementer} part {part}"))
    });
    clean(model?)
}

/// Single spaces, none at the ends; vendors pad their names.
fn clean(name: String) -> Option<String> {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

/// Whether `bit` of the register in which `cpuid` lists the AMX features (leaf 7, EDX) is set, the operating system
/// saves the tile registers (bits 17 and 18 of XCR0), and it permits this process to use them.
#[cfg(target_arch = "x86_64")]
pub(super) fn amx_feature_bit(bit: u32) -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
    const TILE_STATE: u64 = 0b11 << 17;
    /// Leaf 1, ECX: the operating system uses `xsave`, so `xgetbv` may be executed.
    const OSXSAVE: u32 = 1 << 27;
    #[target_feature(enable = "xsave")]
    fn saved_state() -> u64 {
        // SAFETY: the callers of `saved_state` make sure that the instruction exists; register 0 always does.
        unsafe { _xgetbv(0) }
    }
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    // SAFETY: OSXSAVE is set, so `xgetbv` is available.
    let saved = unsafe { saved_state() };
    __cpuid_count(7, 0).edx & (1 << bit) != 0 && saved & TILE_STATE == TILE_STATE && tiles_are_permitted()
}

/// Requests once that Linux lets this process use the tile registers; otherwise the first tile instruction is fatal. All
/// threads of the process share the permission. It is refused where a thread's alternative signal stack is too small for
/// the registers.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn tiles_are_permitted() -> bool {
    use std::sync::OnceLock;
    /// `ARCH_REQ_XCOMP_PERM` and `XFEATURE_XTILEDATA` of Linux's `asm/prctl.h` and `fpu/types.h`.
    const REQUEST: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    static PERMITTED: OnceLock<bool> = OnceLock::new();
    // SAFETY: this request reads no memory and only adds a permission.
    *PERMITTED.get_or_init(|| unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) } == 0)
}

/// Leaves with tiles were tried on no other system.
#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn tiles_are_permitted() -> bool {
    false
}

/// No other architecture has AMX.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn amx_feature_bit(_bit: u32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::super::Feature;
    use super::*;

    #[test]
    fn only_wanted_features_are_asked_for() {
        let all = detect(FeatureSet::all()).features;
        let mut wanted = FeatureSet::all();
        wanted.remove(Feature::AmxTile);
        assert_eq!(detect(wanted).features, wanted.difference(wanted.difference(all)));
        assert_eq!(detect(FeatureSet::EMPTY).features, FeatureSet::EMPTY);
    }

    #[test]
    fn names_are_cleaned() {
        assert_eq!(clean("  A  CPU @ 2 GHz ".into()).as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(clean("  ".into()), None);
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn the_sources_agree_on_the_caches_of_a_core() {
        let (linux, cpuid) = (caches_of_linux(), caches_of_cpuid());
        if linux.is_empty() || cpuid.is_empty() {
            return;
        }
        for level in [1, 2] {
            let of = |caches: &[Cache]| caches.iter().find(|cache| cache.level == level).copied();
            assert_eq!(of(&linux), of(&cpuid), "level {level}");
        }
    }
}
