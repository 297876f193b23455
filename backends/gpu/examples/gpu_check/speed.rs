//! How fast copies are, by the host's clock for those to and from it.

use std::time::Instant;

use tilewright_core::device::{Device, DeviceError};
use tilewright_gpu::Gpu;

use crate::Tally;

/// The bytes of a copy.
const BYTES: usize = 64 << 20;

/// Prints the speed of copies there and back, and checks that they bring back what was sent.
pub(crate) fn report(gpu: &Gpu, tally: &mut Tally) {
    let outcome = measure(gpu).map_err(|error| error.to_string());
    tally.note(
        "copies",
        outcome.and_then(|is_same| if is_same { Ok(()) } else { Err("other bytes came back".into()) }),
    );
}

fn measure(gpu: &Gpu) -> Result<bool, DeviceError> {
    let sent: Vec<u8> = (0..BYTES).map(|at| (at * 31) as u8).collect();
    let mut received = vec![0; BYTES];
    let mut buffer = gpu.allocate(BYTES)?;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..3 {
        let start = Instant::now();
        gpu.upload(&sent, buffer.as_mut_slice())?;
        let middle = Instant::now();
        gpu.download(buffer.as_slice(), &mut received)?;
        best[0] = best[0].min((middle - start).as_secs_f64());
        best[1] = best[1].min(middle.elapsed().as_secs_f64());
    }
    let [there, back] = best.map(|seconds| BYTES as f64 / seconds / 1e9);
    println!("copies of {} MiB: {there:.1} GB/s to the GPU, {back:.1} GB/s from it", BYTES >> 20);
    Ok(sent == received)
}
