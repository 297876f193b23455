//! The machine's measured peak, to which the speed of kernels is compared.
//!
//! Other programs may slow the machine down for tenths of a second at a time, and a peak that was measured then is too
//! low. The peak is therefore the best of several short windows with gaps between them. Each later query may add a window,
//! and a kernel that beats the peak causes a new measurement.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxBuildHasher, FxHashMap};
use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::stmt::Symbol;
use tilewright_core::target::{RunOptions, Target};

/// The length of a window.
const WINDOW: Duration = Duration::from_millis(15);

/// The gap between windows.
const GAP: Duration = Duration::from_millis(15);

/// Windows of the first measurement.
const FIRST_WINDOWS: usize = 4;

/// The most windows when a kernel has beaten the peak.
const MORE_WINDOWS: usize = 16;

/// The time after which a query adds a window.
const REFRESH: Duration = Duration::from_secs(1);

/// A peak, and when it was last measured; `None` when the device has none.
struct Known {
    gflops: Option<f64>,
    at: Instant,
}

/// The key of a peak: a device by its name and target, a type, and a number of threads.
type Key = (String, Target, DType, usize);

/// The peak for each key.
type Table = FxHashMap<Key, Known>;

static KNOWN: Mutex<Table> = Mutex::new(FxHashMap::with_hasher(FxBuildHasher));

/// The fused multiply-add throughput of a device for a type, in 10⁹ operations per second: the fastest that this program
/// has measured. The first query takes a tenth of a second. `None` where the device does not know.
pub fn peak_gflops(device: &dyn Device, dtype: DType, options: RunOptions) -> Option<f64> {
    peak_beyond(device, dtype, options, None)
}

/// As [`peak_gflops`]; a peak below what was `reached` is measured again.
fn peak_beyond(device: &dyn Device, dtype: DType, options: RunOptions, reached: Option<f64>) -> Option<f64> {
    let key = (device.label().to_owned(), device.target().clone(), dtype, options.threads() as usize);
    let window = || device.measure_peak(dtype, options, WINDOW);
    let mut table = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let peak = measured(&mut table, key.clone(), None, &window)?;
    match reached.filter(|gflops| *gflops > peak) {
        None => Some(peak),
        Some(gflops) => measured(&mut table, key, Some(gflops), &window),
    }
}

/// The best window so far, after more windows if they are due, or until `beaten_by` is reached.
fn measured(
    table: &mut Table,
    key: Key,
    beaten_by: Option<f64>,
    window: &dyn Fn() -> Option<f64>,
) -> Option<f64> {
    let is_new = !table.contains_key(&key);
    let known = table.entry(key).or_insert_with(|| Known { gflops: window(), at: Instant::now() });
    let windows = match beaten_by {
        Some(_) => MORE_WINDOWS,
        None if is_new => FIRST_WINDOWS - 1,
        None => usize::from(known.at.elapsed() >= REFRESH),
    };
    for _ in 0..windows {
        let best = known.gflops?;
        if beaten_by.is_some_and(|gflops| best >= gflops) {
            break;
        }
        std::thread::sleep(GAP);
        known.gflops = window().map(|gflops| gflops.max(best));
        known.at = Instant::now();
    }
    known.gflops
}

/// The peak for a program on a device, by the type that it computes in; unknown for types whose peak the
/// device does not know. `reached` is the measured speed of a kernel of the program: a peak below it is measured again.
/// The peak is also unknown where an intrinsic adds products of `bf16`, or of pieces of `f32`: it may be faster than fused
/// multiply-adds.
pub fn peak_of(
    program: &Program,
    device: &dyn Device,
    options: RunOptions,
    reached: Option<f64>,
) -> Option<f64> {
    let (result, _) = program.buffer_params().find(|(_, access)| access.is_written())?;
    let is_inexact =
        program.accuracy.is_some() || program.buffers().any(|(_, buffer)| buffer.dtype == DType::BF16);
    if is_inexact && has_products_of_bf16(device.target()) {
        return None;
    }
    peak_beyond(device, program.buffer(result).dtype, options, reached)
}

/// Whether the machine has an intrinsic that adds products of `bf16` to sums of `f32`.
fn has_products_of_bf16(target: &Target) -> bool {
    let types = |name: &Symbol| -> Vec<DType> {
        let description = target.descriptions().get(name).map(|intrinsic| intrinsic.description());
        let buffers = description.iter().flat_map(|program| program.buffers());
        buffers.map(|(_, buffer)| buffer.dtype).collect()
    };
    target
        .intrinsics()
        .iter()
        .map(types)
        .any(|types| types.contains(&DType::BF16) && types.contains(&DType::F32))
}

/// A share of the peak for people: `61 %`. A share above the peak is explained.
pub fn percent_of_peak(share: f64) -> String {
    match 100.0 * share {
        percent if percent < 100.5 => format!("{percent:.0} % of peak"),
        _ => "above the measured peak (held back while it was measured, or work was spared)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The peak after windows with these results, and how many of them were used.
    fn peak(table: &mut Table, beaten_by: Option<f64>, windows: &[f64]) -> (Option<f64>, usize) {
        let left = RefCell::new(windows.iter().copied());
        let key = (String::new(), Target::generic_cpu(), DType::F32, 1);
        let found = measured(table, key, beaten_by, &|| left.borrow_mut().next());
        (found, windows.len() - left.into_inner().len())
    }

    #[test]
    fn one_slow_window_does_not_lower_the_peak() {
        let mut table = Table::default();
        assert_eq!(peak(&mut table, None, &[3.0, 9.0, 10.0, 4.0]), (Some(10.0), 4));
        assert_eq!(peak(&mut table, None, &[]), (Some(10.0), 0), "it is fresh");
    }

    #[test]
    fn a_faster_kernel_has_the_peak_measured_again() {
        let mut table = Table::default();
        peak(&mut table, None, &[5.0, 5.0, 5.0, 5.0]);
        assert_eq!(peak(&mut table, Some(8.0), &[6.0, 9.0, 20.0]), (Some(9.0), 2));
        let slow = [1.0; MORE_WINDOWS + 1];
        assert_eq!(peak(&mut table, Some(50.0), &slow), (Some(9.0), MORE_WINDOWS), "it ends");
    }

    #[test]
    fn shares_above_the_peak_are_explained() {
        assert_eq!(percent_of_peak(0.614), "61 % of peak");
        assert_eq!(percent_of_peak(1.0), "100 % of peak");
        assert!(percent_of_peak(1.04).starts_with("above the measured peak ("));
    }
}
