//! The best values for the leaves of one tree, found together.
//!
//! A program's score is the sum over its rows, so the leaves that its rows end in are coupled: moving each as if it
//! alone had to correct the program's error would overshoot by the number of rows. Instead all leaf values `v` of a
//! tree, and a constant `c` for all programs, minimise the second-order model of the loss in the *programs'* scores,
//!
//! ```text
//! Σ_p  g_p · (c + a_p·v) + ½ h_p · (c + a_p·v)²   +   ½ λ |v|²
//! ```
//!
//! where `a_p` counts the rows of program `p` by leaf. Programs differ in their number of rows, so the constant is not
//! a matter of the leaves, and what training started with has to be open to correction. That is one small symmetric
//! positive definite system for each tree, solved by Cholesky factorisation; a tree has tens of leaves, so the cost
//! does not show.

use super::histogram::Derivatives;

/// The least ridge, as a share of the mean diagonal. It keeps the system solvable when two leaves always occur
/// together and `lambda` is zero.
const RELATIVE_RIDGE: f64 = 1e-9;

/// The values that one tree adds to the scores of programs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeafValues {
    /// Once for each row that ends in the leaf.
    pub(super) leaves: Vec<f64>,
    /// Once for each program.
    pub(super) constant: f64,
}

/// The values for `leaf_count` leaves that minimise the model above.
///
/// `leaf_of_row` holds the leaves of all rows, program by program; `row_counts` and `programs` hold each program's
/// number of rows and derivatives.
pub(super) fn leaf_values(
    leaf_count: usize,
    leaf_of_row: &[u32],
    row_counts: &[usize],
    programs: &[Derivatives],
    lambda: f64,
) -> LeafValues {
    // The constant is the last unknown.
    let size = leaf_count + 1;
    let mut matrix = vec![0.0; size * size];
    let mut right_side = vec![0.0; size];
    let mut rows = leaf_of_row;
    for (&count, program) in row_counts.iter().zip(programs) {
        let (own, rest) = rows.split_at(count);
        rows = rest;
        for &leaf in own {
            right_side[leaf as usize] -= program.gradient;
            // Only the lower triangle is read, to which the constant's column does not belong.
            for &other in own {
                matrix[leaf as usize * size + other as usize] += program.hessian;
            }
            matrix[leaf_count * size + leaf as usize] += program.hessian;
        }
        right_side[leaf_count] -= program.gradient;
        matrix[leaf_count * size + leaf_count] += program.hessian;
    }
    let trace: f64 = (0..size).map(|unknown| matrix[unknown * size + unknown]).sum();
    let ridge = RELATIVE_RIDGE * trace / size as f64;
    for leaf in 0..leaf_count {
        matrix[leaf * size + leaf] += lambda + ridge;
    }
    solve(&mut matrix, &mut right_side);
    let constant = right_side.pop().unwrap_or(0.0);
    LeafValues { leaves: right_side, constant }
}

/// Solves `matrix · x = vector` in place for a symmetric positive definite matrix of which the lower triangle is
/// read. An unknown whose pivot is not positive (nothing is known about it) becomes zero.
fn solve(matrix: &mut [f64], vector: &mut [f64]) {
    let size = vector.len();
    for column in 0..size {
        for row in column..size {
            let (upper, lower) = (column * size, row * size);
            let known: f64 = (0..column).map(|k| matrix[lower + k] * matrix[upper + k]).sum();
            let rest = matrix[lower + column] - known;
            let pivot = matrix[upper + column];
            matrix[lower + column] = match (row == column, pivot > 0.0) {
                (true, _) => rest.max(0.0).sqrt(),
                (false, true) => rest / pivot,
                (false, false) => 0.0,
            };
        }
    }
    let divide = |value: f64, pivot: f64| if pivot > 0.0 { value / pivot } else { 0.0 };
    for row in 0..size {
        let known: f64 = (0..row).map(|k| matrix[row * size + k] * vector[k]).sum();
        vector[row] = divide(vector[row] - known, matrix[row * size + row]);
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| matrix[k * size + row] * vector[k]).sum();
        vector[row] = divide(vector[row] - known, matrix[row * size + row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn program(gradient: f64, hessian: f64) -> Derivatives {
        Derivatives { gradient, hessian }
    }

    #[test]
    fn a_program_with_many_rows_in_one_leaf_moves_once() {
        // The scores have to change by 3 and by -3, which twenty rows share.
        let rows = [[0; 20], [1; 20]].concat();
        let LeafValues { leaves, constant } =
            leaf_values(2, &rows, &[20, 20], &[program(-6.0, 2.0), program(6.0, 2.0)], 0.0);
        let moved = [leaves[0] * 20.0 + constant, leaves[1] * 20.0 + constant];
        assert!((moved[0] - 3.0).abs() < 1e-5 && (moved[1] + 3.0).abs() < 1e-5, "{moved:?}");
    }

    #[test]
    fn regularisation_shrinks_the_leaves_but_not_the_constant() {
        let values =
            |lambda| leaf_values(2, &[0, 1], &[1, 1], &[program(-6.0, 2.0), program(2.0, 2.0)], lambda);
        let (free, shrunk) = (values(0.0), values(2.0));
        for (values, expected) in [(free, [2.0, -2.0]), (shrunk, [1.0, -1.0])] {
            assert!((values.constant - 1.0).abs() < 1e-5, "{values:?}");
            for (leaf, expected) in values.leaves.iter().zip(expected) {
                assert!((leaf - expected).abs() < 1e-5, "{values:?}");
            }
        }
    }

    #[test]
    fn a_constant_and_a_part_for_each_row_are_told_apart() {
        // The score lacks 1 for each program and 2 for each of its rows.
        let rows: Vec<f64> = vec![1.0, 2.0, 3.0];
        let programs: Vec<Derivatives> = rows.iter().map(|count| program(-1.0 - 2.0 * count, 1.0)).collect();
        let values = leaf_values(1, &[0; 6], &[1, 2, 3], &programs, 0.0);
        assert!((values.leaves[0] - 2.0).abs() < 1e-5 && (values.constant - 1.0).abs() < 1e-5, "{values:?}");
    }

    #[test]
    fn leaves_that_nothing_is_known_about_stay_at_zero() {
        let zero = |leaves: usize| LeafValues { leaves: vec![0.0; leaves], constant: 0.0 };
        assert_eq!(leaf_values(3, &[2], &[1], &[program(1.0, 0.0)], 0.0), zero(3));
        assert_eq!(leaf_values(1, &[], &[], &[], 0.0), zero(1));
    }

    proptest! {
        #[test]
        fn the_gradient_vanishes_at_the_solution(
            programs in prop::collection::vec(
                (prop::collection::vec(0u32..5, 0..7), -10.0..10.0f64, 0.1..4.0f64), 1..40,
            ),
            lambda in 0.01..3.0f64,
        ) {
            let rows: Vec<u32> = programs.iter().flat_map(|(rows, ..)| rows.clone()).collect();
            let counts: Vec<usize> = programs.iter().map(|(rows, ..)| rows.len()).collect();
            let derivatives: Vec<Derivatives> = programs.iter().map(|&(_, g, h)| program(g, h)).collect();
            let LeafValues { leaves, constant } = leaf_values(5, &rows, &counts, &derivatives, lambda);
            let mut slopes: Vec<f64> = leaves.iter().map(|value| lambda * value).chain([0.0]).collect();
            for (rows, gradient, hessian) in &programs {
                let moved = constant + rows.iter().map(|&row| leaves[row as usize]).sum::<f64>();
                for &leaf in rows {
                    slopes[leaf as usize] += gradient + hessian * moved;
                }
                slopes[5] += gradient + hessian * moved;
            }
            prop_assert!(slopes.iter().all(|slope| slope.abs() < 1e-3), "{slopes:?}");
        }
    }
}
