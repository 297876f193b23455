//! Tables for terminals.

use std::fmt;

/// A table whose first column is text and whose other columns are numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a heading and no rows.
    pub fn new(heading: &[&str]) -> Self {
        Table { rows: vec![heading.iter().map(|&title| title.to_owned()).collect()] }
    }

    /// Adds a row with as many cells as the heading.
    ///
    /// # Panics
    /// When it has another number of cells.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.rows[0].len(), "every row has as many cells as the heading");
        self.rows.push(cells);
    }

    /// Whether there is nothing below the heading.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
            if number == 0 {
                writeln!(f, "{}", "─".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1)))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["kernel", "best"]);
        table.row(["matmul".to_owned(), "1.2 µs".to_owned()]);
        table.row(["convolution".to_owned(), "11.2 µs".to_owned()]);
        let text = table.to_string();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            ["kernel          best", "────────────────────", "matmul        1.2 µs", "convolution  11.2 µs",]
        );
    }
}
