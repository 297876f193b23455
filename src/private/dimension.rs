//! Arithmetic of computed dimensions: `None` on overflow, below zero, and on division by zero.

fn checked(a: Option<i64>, b: Option<i64>, operation: impl FnOnce(i64, i64) -> Option<i64>) -> Option<i64> {
    operation(a?, b?).filter(|value| *value >= 0)
}

/// A constant of the user's program.
pub fn constant(value: usize) -> Option<i64> {
    i64::try_from(value).ok()
}

macro_rules! operations {
    ($($name:ident: $operation:expr, $text:literal;)*) => {$(
        #[doc = concat!("`", $text, "`")]
        pub fn $name(a: Option<i64>, b: Option<i64>) -> Option<i64> {
            checked(a, b, $operation)
        }
    )*};
}

operations! {
    add: i64::checked_add, "a + b";
    sub: i64::checked_sub, "a - b";
    mul: i64::checked_mul, "a * b";
    div: i64::checked_div, "a / b";
    rem: i64::checked_rem, "a % b";
    max: |a, b| Some(a.max(b)), "a.max(b)";
    min: |a, b| Some(a.min(b)), "a.min(b)";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_extent_is_none() {
        assert_eq!(add(sub(Some(5), Some(3)), Some(1)), Some(3));
        assert_eq!(
            add(sub(Some(3), Some(5)), Some(3)),
            None,
            "a step below zero is not made good by the next"
        );
        assert_eq!(mul(Some(i64::MAX), Some(2)), None);
        assert_eq!(div(Some(1), Some(0)), None);
        assert_eq!(rem(Some(1), Some(0)), None);
        assert_eq!(max(Some(1), min(Some(2), Some(3))), Some(2));
    }
}
