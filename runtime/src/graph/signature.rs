//! Comparing signatures when a program is compiled.

/// An extent of which nothing is known.
const UNKNOWN: i64 = i64::MIN;

/// The most dimensions of a signature that are followed.
const DIMS: usize = 64;

/// Compares the shapes that a call is given with those of a signature, as the macros write both: an extent is a number, `-1 - n` for the
/// dimension with the number `n`, or unknown. Generated code evaluates it when the program is compiled.
///
/// # Panics
/// When a number is not what it has to be.
pub const fn check_call(signature: &[&[i64]], given: &[&[i64]]) {
    let mut sizes = [0i64; DIMS];
    let mut argument = 0;
    while argument < signature.len() && argument < given.len() {
        let (expected, found) = (signature[argument], given[argument]);
        let mut axis = 0;
        // An argument that is no tensor, or not known, has no extents; another rank is another type.
        while axis < expected.len() && expected.len() == found.len() {
            if found[axis] > 0 {
                match_extent(expected[axis], found[axis], &mut sizes);
            }
            axis += 1;
        }
        argument += 1;
    }
}

const fn match_extent(expected: i64, found: i64, sizes: &mut [i64; DIMS]) {
    if expected > 0 {
        assert!(
            expected == found,
            "a fixed dimension of an argument is another one in the signature of what is called"
        );
    } else if expected != UNKNOWN && -1 - expected < DIMS as i64 {
        let dim = (-1 - expected) as usize;
        assert!(
            sizes[dim] == 0 || sizes[dim] == found,
            "fixed dimensions of two arguments differ, which are one dimension of what is called"
        );
        sizes[dim] = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fn linear(x: [R, K], stride: usize, w: [K, 8], b: [{ K + 1 }])`
    const LINEAR: &[&[i64]] = &[&[-1, -2], &[], &[-2, 8], &[UNKNOWN]];

    fn fits(given: &[&[i64]]) -> bool {
        std::panic::catch_unwind(|| check_call(LINEAR, given)).is_ok()
    }

    #[test]
    fn numbers_that_differ_are_found_and_nothing_else() {
        assert!(fits(&[&[-1, 3], &[], &[3, 8], &[7]]));
        assert!(fits(&[&[-1, -5], &[], &[3, -1], &[-1]]));
        assert!(fits(&[&[], &[], &[UNKNOWN, 8]]));
        assert!(!fits(&[&[-1, 3], &[], &[4, 8]]), "two sizes of K");
        assert!(!fits(&[&[], &[], &[-1, 9]]), "a fixed size");
    }
}
