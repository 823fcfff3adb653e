//! Sortable tables.

use std::fmt::Write as _;

use crate::svg::Escaped;

/// A table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Caption of the table.
    pub caption: String,
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// Rows of the table, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Heading of the column, with the unit.
    pub title: String,
    /// True for numbers, which are aligned to the right.
    pub is_number: bool,
}

impl Column {
    /// Creates a column of texts.
    pub fn text(title: &str) -> Self {
        Self { title: title.to_owned(), is_number: false }
    }

    /// Creates a column of numbers.
    pub fn number(title: &str) -> Self {
        Self { title: title.to_owned(), is_number: true }
    }
}

/// Cell of a table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cell {
    /// Text of the cell.
    pub shown: String,
    /// Exact number, if the cell is one: the key for sorting, and the tooltip.
    pub exact: Option<f64>,
    /// Assessment of the content.
    pub mood: Mood,
}

/// Assessment of a cell's content, shown as a colour; the text says the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mood {
    /// Neutral.
    #[default]
    Plain,
    /// Agrees, or is the best.
    Good,
    /// Differs, or failed.
    Bad,
    /// Undecided.
    Unsure,
}

/// Most columns of a table with normal spacing.
const MOST_WIDE: usize = 10;
/// Most characters of a unit that stays with the word before it.
const LONGEST_UNIT: usize = 3;

/// Splits a title before its last word if a short unit follows, so that the two stay in one line; otherwise the
/// second part is empty.
fn with_unit(title: &str) -> (&str, &str) {
    match title.rsplit_once(", ") {
        Some((what, unit)) if unit.chars().count() <= LONGEST_UNIT && !unit.contains(' ') => {
            title.split_at(what.rfind(' ').map_or(0, |blank| blank + 1))
        }
        _ => (title, ""),
    }
}

/// Most rows that are shown.
const MOST_ROWS: usize = 1000;

impl Cell {
    /// Creates a cell with a text.
    pub fn text(shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), ..Self::default() }
    }

    /// Creates a cell with a number to three digits; empty for `None`.
    pub fn number(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        Self { shown: value.map_or_else(String::new, digits), exact: value, mood: Mood::Plain }
    }

    /// Creates a cell with half the width of an interval.
    pub fn half_width(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        Self {
            shown: value.map_or_else(String::new, |value| format!("\u{b1} {}", digits(value))),
            exact: value,
            mood: Mood::Plain,
        }
    }

    /// Returns the cell with an assessment.
    #[must_use]
    pub fn with(self, mood: Mood) -> Self {
        Self { mood, ..self }
    }
}

/// Returns a number to three significant digits, or to all digits before its point.
pub(crate) fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e9).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let places = (2 - magnitude.log10().floor() as i64).clamp(0, 8) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Table {
    /// Writes the table with its first rows, at most [`MOST_ROWS`].
    pub(super) fn html(&self, number: usize, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<div class=\"table{}\">\n<table id=\"table-{number}\">\n<caption>{}</caption>\n<thead><tr>",
            if self.columns.len() > MOST_WIDE { " narrow" } else { "" },
            Escaped(&self.caption)
        );
        for Column { title, is_number } in &self.columns {
            let class = if *is_number { " class=\"number\"" } else { "" };
            let (title, unit) = with_unit(title);
            let unit = if unit.is_empty() {
                String::new()
            } else {
                format!("<span class=\"unit\">{}</span>", Escaped(unit))
            };
            let _ = write!(
                out,
                "<th scope=\"col\"{class}><button type=\"button\">{}{unit}</button></th>",
                Escaped(title)
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in self.rows.iter().take(MOST_ROWS) {
            out.push_str("<tr>");
            for (Cell { shown, exact, mood }, column) in row.iter().zip(&self.columns) {
                let mut class = if column.is_number { "number".to_owned() } else { String::new() };
                class.push_str(match mood {
                    Mood::Plain => "",
                    Mood::Good => " good",
                    Mood::Bad => " bad",
                    Mood::Unsure => " unsure",
                });
                let class = if class.is_empty() { class } else { format!(" class=\"{}\"", class.trim()) };
                let exact = exact.map_or_else(String::new, |exact| format!(" data-exact=\"{exact}\""));
                let _ = write!(out, "<td{class}{exact}>{}</td>", Escaped(shown));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
        let more = self.rows.len().saturating_sub(MOST_ROWS);
        if more > 0 {
            let _ = writeln!(
                out,
                "<p>The first {MOST_ROWS} of {} rows; the data below have them all.</p>",
                self.rows.len()
            );
        }
    }

    /// Returns the table as CSV (RFC 4180), with exact numbers.
    pub fn csv(&self) -> String {
        let quoted = |text: &str| {
            if text.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.to_owned()
            }
        };
        let line = |cells: Vec<String>| cells.join(",") + "\r\n";
        let mut text = line(self.columns.iter().map(|column| quoted(&column.title)).collect());
        for row in &self.rows {
            let cell =
                |cell: &Cell| cell.exact.map_or_else(|| quoted(&cell.shown), |exact| exact.to_string());
            text.push_str(&line(row.iter().map(cell).collect()));
        }
        text
    }
}
