//! Elements that are only stored: lowering replaces them by bytes, which compiled code converts.

use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::schedule::Schedule;
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, program};

/// `y = x` with a conversion, serial and in vectors of 8 elements with a rest.
fn check(input: AnyTensor, output: DType) {
    let (from, len) = (input.dtype(), input.len());
    let text = format!(
        "kernel convert(N, in x: {from}[N], out y: {output}[N]) {{
           for i in 0..N {{
             block y(vi: spatial N = i) {{
               y[vi] = x[vi] as {output}
             }}
           }}
         }}"
    );
    let plain = program(&text);
    let mut schedule = Schedule::new(plain.clone(), Target::generic_cpu(), 0);
    let block = schedule.get_block("y").unwrap();
    let loops = schedule.get_loops(block).unwrap();
    let parts = schedule.split(loops[0], &[None, Some(8)]).unwrap();
    schedule.vectorize(parts[1]).unwrap();
    let tensors = vec![input, AnyTensor::zeros(output, &[len]).unwrap()];
    let call = Call { dims: vec![len as i64], tensors, ..Call::default() };
    for program in [&plain, schedule.program()] {
        call.check(&lower(program, &LowerOptions::default()).unwrap());
    }
}

#[test]
fn stored_elements_are_loaded_and_converted() {
    for dtype in [DType::Float8E4M3FN, DType::Float8E5M2, DType::Int4, DType::UInt4] {
        let len = 256 * 8 / dtype.bits() - 3;
        let mut codes = AnyTensor::zeros(dtype, &[len]).unwrap();
        codes.bytes_mut().iter_mut().zip(0..=u8::MAX).for_each(|(byte, code)| *byte = code);
        for output in [DType::F32, DType::F64, DType::BF16, DType::I32] {
            check(codes.clone(), output);
        }
    }
}

#[test]
fn numbers_are_stored_as_floats_of_eight_bits() {
    let numbers: Vec<f64> = (-500..500).map(|n| f64::from(n) * f64::from(n).abs() * 0.0123).collect();
    for dtype in [DType::Float8E4M3FN, DType::Float8E5M2] {
        for input in [DType::F32, DType::F64, DType::I32] {
            check(AnyTensor::from_f64s(input, &numbers, &[numbers.len()]).unwrap(), dtype);
        }
    }
}
