//! Feature values as small integers: each column is cut into at most [`MAX_BINS`] quantile bins.
//!
//! Trees are grown on bins and predict from values. The two agree because a bin boundary *is* the threshold: a value
//! belongs to a bin above boundary `e` exactly when `value >= e`.

use super::ProgramFeatures;

/// The most bins a column can have; a bin index fits six bits.
pub(super) const MAX_BINS: usize = 64;

/// The column that holds the prior of a row's program. The columns of the feature row follow it, so that a model
/// reads the prior in the same place whatever the width of a row.
const PRIOR_COLUMN: usize = 0;

/// The number of columns gathered at a time: as many f32 as a cache line holds.
const COLUMN_BLOCK: usize = 16;

/// About the number of programs whose values give the quantiles. Sorting more values would take most of the time of a training and
/// move boundaries by less than a bin.
const QUANTILE_PROGRAMS: usize = 1000;

/// The number of columns that a model sees of rows with `width` features.
pub(super) fn column_count(width: usize) -> usize {
    width + 1
}

/// The value a model sees in `column` of a row: the prior, then the features. A column that the row lacks reads as
/// NaN, like a feature that could not be computed.
pub(super) fn column_value(program: &ProgramFeatures, row: &[f32], column: usize) -> f32 {
    match column {
        PRIOR_COLUMN => program.prior(),
        _ => row.get(column - 1).copied().unwrap_or(f32::NAN),
    }
}

/// A column worth splitting on: one with at least two bins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BinnedColumn {
    /// Which column of the model's input it is, see [`column_value`].
    pub(super) source: usize,
    /// The lower boundaries of the bins but the first, ascending and finite.
    pub(super) edges: Vec<f32>,
}

impl BinnedColumn {
    pub(super) fn bin_count(&self) -> usize {
        self.edges.len() + 1
    }
}

/// All rows of the training programs, binned, row after row.
#[derive(Debug)]
pub(super) struct BinnedRows {
    columns: Vec<BinnedColumn>,
    bins: Vec<u8>,
}

impl BinnedRows {
    /// Bins the rows of `programs`, in order, with at most `max_bins` bins a column (held within
    /// `2..=`[`MAX_BINS`]). Columns of a single bin are left out.
    pub(super) fn new(programs: &[&ProgramFeatures], max_bins: usize) -> Self {
        let max_bins = max_bins.clamp(2, MAX_BINS);
        let width = programs.iter().map(|program| program.width()).max().unwrap_or(0);
        let mut columns = Vec::new();
        let mut binned: Vec<Vec<u8>> = Vec::new();
        let stride = programs.len().div_ceil(QUANTILE_PROGRAMS).max(1);
        let representatives: Vec<&ProgramFeatures> = programs.iter().step_by(stride).copied().collect();
        for first in (0..column_count(width)).step_by(COLUMN_BLOCK) {
            let block = first..(first + COLUMN_BLOCK).min(column_count(width));
            let sampled = gather(&representatives, block.clone());
            for ((source, values), mut sorted) in block.clone().zip(gather(programs, block)).zip(sampled) {
                sorted.sort_unstable_by(f32::total_cmp);
                let edges = quantile_edges(&sorted, max_bins);
                if !edges.is_empty() {
                    binned.push(values.iter().map(|&value| bin_of(&edges, value)).collect());
                    columns.push(BinnedColumn { source, edges });
                }
            }
        }
        Self { bins: transpose(&binned), columns }
    }

    pub(super) fn columns(&self) -> &[BinnedColumn] {
        &self.columns
    }

    /// The bins of one row, one for each of [`columns`](Self::columns).
    pub(super) fn row(&self, row: usize) -> &[u8] {
        &self.bins[row * self.columns.len()..][..self.columns.len()]
    }
}

/// The canonical values of a few neighbouring columns, each over all rows of all programs.
fn gather(programs: &[&ProgramFeatures], columns: std::ops::Range<usize>) -> Vec<Vec<f32>> {
    let rows = programs.iter().map(|program| program.row_count()).sum();
    let mut gathered = vec![Vec::with_capacity(rows); columns.len()];
    for program in programs {
        for row in program.rows() {
            for (values, column) in gathered.iter_mut().zip(columns.clone()) {
                values.push(canonical(column_value(program, row, column)));
            }
        }
    }
    gathered
}

/// The finite number that a value is binned as: NaN lies with the lowest, the infinities with the extremes, and the
/// two zeros are one.
fn canonical(value: f32) -> f32 {
    if value.is_nan() { f32::MIN } else { value.clamp(f32::MIN, f32::MAX) + 0.0 }
}

fn bin_of(edges: &[f32], value: f32) -> u8 {
    edges.partition_point(|&edge| edge <= value) as u8
}

/// Boundaries that cut sorted values into at most `max_bins` bins: one bin for each distinct value if that suffices,
/// otherwise bins of about equal count, where a value that fills a bin by itself gets one by itself.
fn quantile_edges(sorted: &[f32], max_bins: usize) -> Vec<f32> {
    let runs: Vec<(f32, usize)> = sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    let pairs = runs.windows(2).map(|pair| (pair[0], pair[1]));
    if runs.len() <= max_bins {
        return pairs.map(|((below, _), (above, _))| boundary(below, above)).collect();
    }
    let is_heavy = |count: usize| count * max_bins >= sorted.len();
    let mut edges = Vec::with_capacity(max_bins - 1);
    let (mut remaining, mut filled) = (sorted.len(), 0);
    for ((below, count), (above, next_count)) in pairs {
        filled += count;
        let bins_left = max_bins - edges.len();
        let full = filled * bins_left >= remaining || is_heavy(count) || is_heavy(next_count);
        if full && bins_left > 1 {
            edges.push(boundary(below, above));
            remaining -= filled;
            filled = 0;
        }
    }
    edges
}

/// A threshold `e` with `below < e <= above`, half way between the two where f32 has a number there.
fn boundary(below: f32, above: f32) -> f32 {
    let middle = 0.5 * below + 0.5 * above;
    if middle > below { middle } else { above }
}

/// Columns of equal length to rows.
fn transpose(columns: &[Vec<u8>]) -> Vec<u8> {
    let rows = columns.first().map_or(0, Vec::len);
    let mut bins = vec![0; rows * columns.len()];
    for (index, column) in columns.iter().enumerate() {
        for (row, &bin) in column.iter().enumerate() {
            bins[row * columns.len() + index] = bin;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_column(values: &[f32]) -> Vec<ProgramFeatures> {
        values.iter().map(|&value| ProgramFeatures::new(vec![value], 1, 0.0).unwrap()).collect()
    }

    #[test]
    fn few_distinct_values_get_a_bin_each() {
        assert_eq!(quantile_edges(&[1.0, 1.0, 2.0, 4.0], 64), [1.5, 3.0]);
        assert_eq!(quantile_edges(&[3.0; 5], 64), [] as [f32; 0]);
        assert_eq!(quantile_edges(&[], 64), [] as [f32; 0]);
    }

    #[test]
    fn many_values_are_cut_into_equal_shares() {
        let sorted: Vec<f32> = (0..1000).map(|value| value as f32).collect();
        let edges = quantile_edges(&sorted, 10);
        assert_eq!(edges, [99.5, 199.5, 299.5, 399.5, 499.5, 599.5, 699.5, 799.5, 899.5]);
    }

    #[test]
    fn a_heavy_value_is_not_mixed_with_its_neighbours() {
        let mut sorted: Vec<f32> = (0..100).map(|value| value as f32).collect();
        sorted.extend([50.0; 900]);
        sorted.sort_unstable_by(f32::total_cmp);
        let edges = quantile_edges(&sorted, 8);
        assert!(edges.contains(&49.5) && edges.contains(&50.5), "{edges:?}");
    }

    #[test]
    fn constant_columns_are_dropped_and_the_prior_is_column_zero() {
        let programs = [([7.0, 1.0], 0.5), ([7.0, 2.0], 0.25), ([7.0, 1.0], 0.5)]
            .map(|(row, prior)| ProgramFeatures::new(row.to_vec(), 2, prior).unwrap());
        let binned = BinnedRows::new(&programs.iter().collect::<Vec<_>>(), 64);
        let sources: Vec<usize> = binned.columns().iter().map(|column| column.source).collect();
        assert_eq!(sources, [0, 2]);
        assert_eq!([binned.row(0), binned.row(1), binned.row(2)], [[1, 0], [0, 1], [1, 0]]);
    }

    #[test]
    fn narrower_programs_lack_the_last_columns() {
        let programs =
            [vec![1.0], vec![1.0, 5.0]].map(|row| ProgramFeatures::new(row.clone(), row.len(), 0.0).unwrap());
        let binned = BinnedRows::new(&programs.iter().collect::<Vec<_>>(), 64);
        assert_eq!(binned.columns().len(), 1);
        assert_eq!((binned.row(0), binned.row(1)), (&[0u8][..], &[1u8][..]));
    }

    #[test]
    fn strange_values_are_ordered() {
        let values = [f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f32::INFINITY];
        let programs = one_column(&values);
        let binned = BinnedRows::new(&programs.iter().collect::<Vec<_>>(), 64);
        let bins: Vec<u8> = (0..values.len()).map(|row| binned.row(row)[0]).collect();
        assert_eq!(bins, [0, 0, 1, 2, 2, 3, 4]);
        assert!(binned.columns()[0].edges.iter().all(|edge| edge.is_finite()));
    }

    proptest! {
        #[test]
        fn a_bin_says_which_boundaries_a_value_reaches(
            values in prop::collection::vec(any::<f32>(), 1..300), max_bins in 2usize..70,
        ) {
            let programs = one_column(&values);
            let binned = BinnedRows::new(&programs.iter().collect::<Vec<_>>(), max_bins);
            for column in binned.columns() {
                prop_assert!(column.bin_count() <= max_bins.min(MAX_BINS));
                prop_assert!(column.edges.windows(2).all(|pair| pair[0] < pair[1]));
                for (row, &value) in values.iter().enumerate() {
                    let reached = column.edges.iter().filter(|&&edge| value >= edge).count();
                    prop_assert_eq!(usize::from(binned.row(row)[0]), reached, "value {}", value);
                }
            }
        }
    }
}
