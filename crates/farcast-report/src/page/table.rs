//! Tables that sort.

use std::fmt::Write as _;

use crate::svg::Escaped;

/// A table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its heading, with the unit.
    pub title: String,
    /// Whether it is of numbers, which stand to the right.
    pub is_number: bool,
}

impl Column {
    /// A column of texts.
    pub fn text(title: &str) -> Self {
        Self { title: title.to_owned(), is_number: false }
    }

    /// A column of numbers.
    pub fn number(title: &str) -> Self {
        Self { title: title.to_owned(), is_number: true }
    }
}

/// What is in a cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cell {
    /// What is shown.
    pub shown: String,
    /// By what it is sorted, and what the pointer shows, where it is a number.
    pub exact: Option<f64>,
    /// Whether it is good news.
    pub mood: Mood,
}

/// Whether a cell is good news; its text says so too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mood {
    /// Neither.
    #[default]
    Plain,
    /// It agrees, or is the best.
    Good,
    /// It differs, or failed.
    Bad,
    /// Nobody can tell.
    Unsure,
}

/// Columns beyond which there is less between them.
const MOST_WIDE: usize = 10;
/// The longest unit that stays with the word before it.
const LONGEST_UNIT: usize = 3;

/// A title, and its last word with the unit behind, which stay in one line; empty where there is none.
fn with_unit(title: &str) -> (&str, &str) {
    match title.rsplit_once(", ") {
        Some((what, unit)) if unit.chars().count() <= LONGEST_UNIT && !unit.contains(' ') => {
            title.split_at(what.rfind(' ').map_or(0, |blank| blank + 1))
        }
        _ => (title, ""),
    }
}

/// Rows that are shown at most.
const MOST_ROWS: usize = 1000;

impl Cell {
    /// A text.
    pub fn text(shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), ..Self::default() }
    }

    /// A number to three digits, or nothing.
    pub fn number(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        Self { shown: value.map_or_else(String::new, digits), exact: value, mood: Mood::Plain }
    }

    /// Half of an interval.
    pub fn half_width(value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        Self {
            shown: value.map_or_else(String::new, |value| format!("\u{b1} {}", digits(value))),
            exact: value,
            mood: Mood::Plain,
        }
    }

    /// The same, as news.
    #[must_use]
    pub fn with(self, mood: Mood) -> Self {
        Self { mood, ..self }
    }
}

/// A number to three digits, or to as many as stand before its point.
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
    /// Whether all rows are shown.
    pub(super) fn html(&self, number: usize, out: &mut String) {
        // A String takes all that is written.
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

    /// The table as CSV (RFC 4180), numbers exact.
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
