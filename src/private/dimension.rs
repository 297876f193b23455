//! Arithmetic of computed dimensions: `None` on overflow, below zero, and on division by zero.

fn checked(value: Option<i64>) -> Option<i64> {
    value.filter(|value| *value >= 0)
}

/// `a + b`
pub fn add(a: i64, b: i64) -> Option<i64> {
    checked(a.checked_add(b))
}

/// `a - b`
pub fn sub(a: i64, b: i64) -> Option<i64> {
    checked(a.checked_sub(b))
}

/// `a * b`
pub fn mul(a: i64, b: i64) -> Option<i64> {
    checked(a.checked_mul(b))
}

/// `a / b`
pub fn div(a: i64, b: i64) -> Option<i64> {
    checked(a.checked_div(b))
}

/// `a % b`
pub fn rem(a: i64, b: i64) -> Option<i64> {
    checked(a.checked_rem(b))
}

/// The larger.
pub fn max(a: i64, b: i64) -> Option<i64> {
    Some(a.max(b))
}

/// The smaller.
pub fn min(a: i64, b: i64) -> Option<i64> {
    Some(a.min(b))
}
