//! Operations for which a machine has no instruction.

/// The functions that Cranelift calls by the names of the C library, where a machine lacks the instruction.
pub(crate) fn library_functions() -> [(&'static str, *const u8); 10] {
    [
        ("fmaf", fma_f32 as *const u8),
        ("fma", fma_f64 as *const u8),
        ("floorf", floor_f32 as *const u8),
        ("floor", floor_f64 as *const u8),
        ("ceilf", ceil_f32 as *const u8),
        ("ceil", ceil_f64 as *const u8),
        ("truncf", trunc_f32 as *const u8),
        ("trunc", trunc_f64 as *const u8),
        ("nearbyintf", nearest_f32 as *const u8),
        ("nearbyint", nearest_f64 as *const u8),
    ]
}

pub(super) extern "C" fn remainder_f32(a: f32, b: f32) -> f32 {
    a % b
}

pub(super) extern "C" fn remainder_f64(a: f64, b: f64) -> f64 {
    a % b
}

extern "C" fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

extern "C" fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

extern "C" fn floor_f32(a: f32) -> f32 {
    a.floor()
}

extern "C" fn floor_f64(a: f64) -> f64 {
    a.floor()
}

extern "C" fn ceil_f32(a: f32) -> f32 {
    a.ceil()
}

extern "C" fn ceil_f64(a: f64) -> f64 {
    a.ceil()
}

extern "C" fn trunc_f32(a: f32) -> f32 {
    a.trunc()
}

extern "C" fn trunc_f64(a: f64) -> f64 {
    a.trunc()
}

extern "C" fn nearest_f32(a: f32) -> f32 {
    a.round_ties_even()
}

extern "C" fn nearest_f64(a: f64) -> f64 {
    a.round_ties_even()
}
