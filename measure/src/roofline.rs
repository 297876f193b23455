//! Which of a machine's limits bounds a kernel, and the share of it that a run reaches: arithmetic, or traffic to memory.
//!
//! The bandwidth is that of a copy that is far larger than any cache, written around the caches; the fastest of several copies counts, because whoever disturbs a machine only ever adds time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::{FxBuildHasher, FxHashMap};
use tilewright_core::device::{Arguments, BufferArgument, Device};
use tilewright_core::lower::lower_kernel;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;
use tilewright_runtime::code;

use crate::peak::percent_of_peak;

/// The elements of `f32` that are copied: 64 MiB are read, and as much is written.
const ELEMENTS: usize = 16 << 20;

/// The parts that threads copy, and the elements of one vector.
const PARTS: usize = 64;
const LANES: usize = 16;

/// How often they are copied.
const COPIES: usize = 5;

/// The limits of a machine, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roofline {
    /// Operations per second, in 10⁹.
    pub gflops: Option<f64>,
    /// Bytes per second to and from memory, in 10⁹.
    pub bandwidth: Option<f64>,
}

/// A share of the limit that bounds a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// Of the operations per second.
    Arithmetic(f64),
    /// Of the bytes per second.
    Bandwidth(f64),
}

impl Roofline {
    /// The share of the roofline that a run reaches, by its operations, bytes and seconds. The limit (arithmetic or memory) is the
    /// one that allows less. `None` where that limit is unknown.
    pub fn share(&self, flops: f64, bytes: f64, seconds: f64) -> Option<Share> {
        let arithmetic = self.gflops.map(|gflops| flops / gflops * 1e-9 / seconds);
        let traffic = self.bandwidth.map(|bandwidth| bytes / bandwidth * 1e-9 / seconds);
        match (arithmetic.filter(|share| *share > 0.0), traffic.filter(|share| *share > 0.0)) {
            (Some(arithmetic), Some(traffic)) if traffic > arithmetic => Some(Share::Bandwidth(traffic)),
            (Some(arithmetic), _) => Some(Share::Arithmetic(arithmetic)),
            (None, Some(traffic)) if flops == 0.0 => Some(Share::Bandwidth(traffic)),
            (None, _) => None,
        }
    }
}

/// `61 % of peak`, `80 % of memory bandwidth`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Share::Arithmetic(share) => f.write_str(&percent_of_peak(share)),
            Share::Bandwidth(share) if share < 1.005 => {
                write!(f, "{:.0} % of memory bandwidth", 100.0 * share)
            }
            Share::Bandwidth(_) => f.write_str("above memory bandwidth (its data are in the caches)"),
        }
    }
}

/// The key of a bandwidth: a device by its name, and a number of threads.
type Key = (String, u32);

static KNOWN: Mutex<FxHashMap<Key, Option<f64>>> = Mutex::new(FxHashMap::with_hasher(FxBuildHasher));

/// Bytes per second, in 10⁹, that a device reads and writes together when it copies what no cache can hold. The first question takes
/// some tenths of a second. `None` where the copy cannot be compiled or run.
pub fn memory_bandwidth(device: &Arc<dyn Device>, options: RunOptions) -> Option<f64> {
    let key = (device.label().to_owned(), options.threads());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(key).or_insert_with(|| copy_bandwidth(device, options))
}

/// The arithmetic intensity, in operations per byte, above which a kernel is bound by arithmetic on every known machine.
const GREATEST_INTENSITY: f64 = 64.0;

/// As [`memory_bandwidth`], for a kernel with these operations and bytes; `None`, without a measurement, where memory cannot bound it.
pub fn bandwidth_for(flops: f64, bytes: f64, device: &Arc<dyn Device>, options: RunOptions) -> Option<f64> {
    if flops > GREATEST_INTENSITY * bytes { None } else { memory_bandwidth(device, options) }
}

fn copy_bandwidth(device: &Arc<dyn Device>, options: RunOptions) -> Option<f64> {
    let text = format!(
        "kernel copy(in x: f32[{ELEMENTS}], out y: f32[{ELEMENTS}] streamed) {{
  parallel for p in 0..{PARTS} {{
    for i in 0..{VECTORS} {{
      vectorized for l in 0..{LANES} {{
        block y(v: spatial {ELEMENTS} = p*{PART} + i*{LANES} + l) {{
          y[v] = x[v]
        }}
      }}
    }}
  }}
}}",
        PART = ELEMENTS / PARTS,
        VECTORS = ELEMENTS / PARTS / LANES,
    );
    let scheduled: Program = text.parse().expect("the text is a program");
    let lowered = lower_kernel(&scheduled, device.target()).ok()?;
    let code = code::compile(device, &[&lowered]).pop()?.ok()?;
    let bytes = ELEMENTS * size_of::<f32>();
    let mut memory = [device.allocate(bytes).ok()?, device.allocate(bytes).ok()?];
    device.upload(&vec![1; bytes], memory[0].as_mut_slice()).ok()?;
    let mut fastest: Option<Duration> = None;
    for _ in 0..=COPIES {
        let [from, to] = &mut memory;
        let mut buffers =
            [BufferArgument::DeviceRead(from.as_slice()), BufferArgument::DeviceWrite(to.as_mut_slice())];
        let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
        let time = code.time(&mut arguments, options, 1).ok()?;
        fastest = Some(fastest.map_or(time, |fastest| fastest.min(time)));
    }
    Some(2.0 * bytes as f64 / fastest?.as_secs_f64() * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_takes_longer_bounds_a_kernel() {
        let machine = Roofline { gflops: Some(100.0), bandwidth: Some(10.0) };
        // 2·10⁹ operations take 20 ms, 10⁹ bytes take 100 ms.
        assert_eq!(machine.share(2e9, 1e9, 0.2), Some(Share::Bandwidth(0.5)));
        assert_eq!(machine.share(2e10, 1e9, 0.4), Some(Share::Arithmetic(0.5)));
        assert_eq!(machine.share(0.0, 1e9, 0.2), Some(Share::Bandwidth(0.5)), "a copy computes nothing");
        let no_bandwidth = Roofline { bandwidth: None, ..machine };
        assert_eq!(no_bandwidth.share(2e10, 1e9, 0.4), Some(Share::Arithmetic(0.5)));
        let no_peak = Roofline { gflops: None, ..machine };
        assert_eq!(no_peak.share(2e9, 1e9, 0.2), None, "nothing says that memory is the limit");
        assert_eq!(no_peak.share(0.0, 1e9, 0.2), Some(Share::Bandwidth(0.5)));
    }

    #[test]
    fn shares_say_of_what_they_are() {
        assert_eq!(Share::Arithmetic(0.61).to_string(), "61 % of peak");
        assert_eq!(Share::Bandwidth(0.8).to_string(), "80 % of memory bandwidth");
        assert!(Share::Bandwidth(3.0).to_string().starts_with("above memory bandwidth ("));
    }
}
