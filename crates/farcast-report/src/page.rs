//! Pages with an outcome, its settings, figures and tables: one HTML file that needs nothing else.
//!
//! A page works without a network, on paper, in light or dark style, and in wide or narrow windows. Vega draws the
//! figures; a page with figures carries Vega inside. All numbers of the figures are also in tables, which need no
//! scripts. Texts are escaped, wherever they come from.
//!
//! ```
//! use farcast_report::page::{Axis, Chart, Figure, Page, Part, Point, Series};
//!
//! let points = vec![Point { x: 0.001, y: 54.7, interval: Some((54.2, 55.2)) }];
//! let page = Page {
//!     title: "Completion over losses".into(),
//!     lead: vec!["One receiver more makes little difference.".into()],
//!     parts: vec![Part::Figure(Figure {
//!         title: "completion time".into(),
//!         note: "mean and 95 % interval".into(),
//!         chart: Chart::Lines {
//!             x: Axis::logarithmic("packet error rate"),
//!             y: Axis::linear("completion time, s"),
//!             series: vec![Series { name: "20 receivers".into(), points }],
//!         },
//!     })],
//!     ..Page::default()
//! };
//! assert!(page.html().starts_with("<!doctype html>"));
//! ```

mod chart;
mod table;

use std::fmt::Write as _;

pub use chart::{Axis, Bar, Cell as HeatCell, Chart, Figure, Interval, Point, Series};
pub(crate) use table::digits;
pub use table::{Cell, Column, Mood, Table};

use crate::svg::Escaped;
use crate::text::visible_strings;

/// A page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// Title of the page.
    pub title: String,
    /// Summary of the outcome, a sentence each.
    pub lead: Vec<String>,
    /// Settings of the run: name and value.
    pub settings: Vec<(String, String)>,
    /// Parts of the page, from top to bottom.
    pub parts: Vec<Part>,
    /// Data to download.
    pub downloads: Vec<Download>,
    /// Program that made the page, with its version.
    pub made_by: String,
}

/// A part of a page.
#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A figure.
    Figure(Figure),
    /// A table.
    Table(Table),
}

/// A file that the page carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Download {
    /// Name of the file.
    pub name: String,
    /// Media type, such as `text/csv`.
    pub mime: &'static str,
    /// Content of the file.
    pub text: String,
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Vega, Vega-Lite, which compiles its plots, and the code that embeds them in pages, compressed to half the size.
/// Licences (BSD-3-Clause) and digests are beside the file.
const LIBRARIES: &str = include_str!("../vendor/libraries.gz.base64");

impl Page {
    /// Returns the page as an HTML file.
    pub fn html(&self) -> String {
        let mut out = String::new();
        self.head(&mut out);
        self.top(&mut out);
        let (mut figures, mut tables) = (Vec::new(), 0);
        for part in &self.parts {
            match part {
                // Writing to a String cannot fail.
                Part::Heading(text) => _ = writeln!(out, "<h2>{}</h2>", Escaped(text)),
                Part::Text(text) => _ = writeln!(out, "<p>{}</p>", Escaped(text)),
                Part::Figure(figure) => {
                    figure.html(figures.len(), &mut out);
                    figures.push(figure.chart.specification());
                }
                Part::Table(table) => {
                    table.html(tables, &mut out);
                    tables += 1;
                }
            }
        }
        self.bottom(&mut out);
        if !figures.is_empty() {
            let _ = writeln!(out, "<script type=\"text/plain\" id=\"libraries\">{LIBRARIES}</script>");
            let mut figures = serde_json::Value::Array(figures);
            visible_strings(&mut figures);
            // No data may end the element.
            let figures = figures.to_string().replace('<', "\\u003c");
            let _ = writeln!(out, "<script type=\"application/json\" id=\"figures\">{figures}</script>");
        }
        let _ = writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>");
        out
    }

    fn head(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
            Escaped(&self.title)
        );
    }

    fn top(&self, out: &mut String) {
        let _ = writeln!(out, "<header>\n<h1>{}</h1>", Escaped(&self.title));
        for sentence in &self.lead {
            let _ = writeln!(out, "<p class=\"lead\">{}</p>", Escaped(sentence));
        }
        out.push_str("</header>\n<main>\n");
        if !self.settings.is_empty() {
            let is_open = if self.settings.len() <= 12 { " open" } else { "" };
            let _ = writeln!(out, "<details class=\"settings\"{is_open}>\n<summary>Settings</summary>\n<dl>");
            for (name, value) in &self.settings {
                let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Escaped(name), Escaped(value));
            }
            out.push_str("</dl>\n</details>\n");
        }
    }

    fn bottom(&self, out: &mut String) {
        out.push_str("</main>\n<footer>\n");
        if !self.downloads.is_empty() {
            out.push_str("<p class=\"downloads\">Data: ");
            for (number, Download { name, mime, text }) in self.downloads.iter().enumerate() {
                let comma = if number > 0 { ", " } else { "" };
                let _ = write!(
                    out,
                    "{comma}<a download=\"{name}\" href=\"data:{mime};charset=utf-8,{}\">{name}</a>",
                    percent_encoded(text),
                    name = Escaped(name),
                );
            }
            out.push_str("</p>\n");
        }
        let _ = writeln!(out, "<p>{}</p>\n</footer>", Escaped(&self.made_by));
    }
}

/// Returns `text` in the form of a `data:` address (RFC 3986 §2.1).
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 5 / 4);
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~,;:/".contains(&octet) {
            out.push(octet.into());
        } else {
            let _ = write!(out, "%{octet:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests;
