//! Aligned tables.

use farcast_report::text::visible;

use crate::text::Text;

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Table with a heading, whose columns are as wide as their widest cell.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[(&str, Align)]) -> Self {
        let rows = vec![heading.iter().map(|(text, _)| visible(text).into_owned()).collect()];
        Self { align: heading.iter().map(|&(_, align)| align).collect(), rows }
    }

    /// Adds a row. Text from strangers in a cell stays one cell of one line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell).into_owned()).collect());
    }

    /// Returns the table as text, with a rule under the heading.
    pub(crate) fn render(&self) -> Text {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max()
        };
        let widths: Vec<usize> = (0..self.align.len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        lines.insert(1, "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)));
        Text::lines(lines)
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.align).map(|((cell, &width), align)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_makes_no_lines_of_its_own() {
        let mut table = Table::new(&[("receiver", Align::Left), ("state", Align::Left)]);
        table.row(["x\nstation-7  done".into(), "left: \u{202e}enod".into()]);
        let text = table.render().to_string();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.ends_with("x\\nstation-7  done  left: \\u{202e}enod"), "{text}");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("receiver", Align::Left), ("loss", Align::Right)]);
        table.row(["a".into(), "2.0 %".into()]);
        table.row(["station-7".into(), "11.3 %".into()]);
        assert_eq!(
            table.render().to_string(),
            "receiver     loss\n-----------------\na           2.0 %\nstation-7  11.3 %"
        );
    }
}
