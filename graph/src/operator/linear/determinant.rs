//! Determinants.

use crate::deduce;
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, with_float};

pub(super) const OPERATORS: &[Operator] =
    &[Operator::new("determinant", "Det", determinants).deduce(deduce::element_only)];

fn determinants(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let &[ref batch @ .., rows, columns] = x.shape() else {
        refuse!("expected matrices, found shape {:?}", x.shape())
    };
    if rows != columns || rows == 0 {
        refuse!("only a square matrix has a determinant, found shape {:?}", x.shape());
    }
    with_float!(x.element(), T => {
        let wide: Vec<f64> = x.expect::<T>()?.iter().map(|x| x.widen()).collect();
        let values = wide.chunks_exact(rows * rows).map(|matrix| T::narrow(determinant(matrix.to_vec(), rows)));
        one(HostTensor::new(batch, values.collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// By elimination with the largest element of each column as the pivot.
fn determinant(mut matrix: Vec<f64>, n: usize) -> f64 {
    let mut product = 1.0;
    for column in 0..n {
        let better = |best: usize, row: usize| {
            if matrix[row * n + column].abs() > matrix[best * n + column].abs() { row } else { best }
        };
        let pivot = (column + 1..n).fold(column, better);
        if matrix[pivot * n + column] == 0.0 {
            return 0.0;
        }
        if pivot != column {
            (0..n).for_each(|place| matrix.swap(pivot * n + place, column * n + place));
            product = -product;
        }
        product *= matrix[column * n + column];
        for row in column + 1..n {
            let factor = matrix[row * n + column] / matrix[column * n + column];
            for place in column..n {
                matrix[row * n + place] -= factor * matrix[column * n + place];
            }
        }
    }
    product
}
