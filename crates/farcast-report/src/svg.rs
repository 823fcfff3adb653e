//! Writer of SVG.

use std::fmt::{self, Display, Write as _};

use crate::text::is_obeyed;

/// Text of a part of a drawing. Every label and tooltip is escaped.
#[derive(Debug, Default)]
pub(super) struct Svg {
    text: String,
}

/// Point of a text that stands at its coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A coordinate to a tenth of a pixel, without a needless `.0`.
struct Coordinate(f64);

impl Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if (tenths / 10.0).fract() == 0.0 {
            write!(f, "{:.0}", tenths / 10.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

impl Svg {
    pub(super) fn into_string(self) -> String {
        self.text
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends text that is SVG already.
    pub(super) fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn write(&mut self, arguments: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(arguments);
    }

    /// Closes `element`, with a tooltip if `tip` is not empty.
    fn close(&mut self, element: &str, tip: &str) {
        if tip.is_empty() {
            self.raw("/>\n");
        } else {
            self.write(format_args!("><title>{}</title></{element}>\n", Escaped(tip)));
        }
    }

    pub(super) fn rect(&mut self, class: &str, area: Area, tip: &str) {
        let Area { x, y, width, height } = area;
        let (x, y, width, height) =
            (Coordinate(x), Coordinate(y), Coordinate(width.max(0.0)), Coordinate(height));
        self.write(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}""#
        ));
        self.close("rect", tip);
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64), tip: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Coordinate);
        self.write(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}""#));
        self.close("line", tip);
    }

    /// Draws a path in SVG's notation.
    pub(super) fn path(&mut self, class: &str, path: &str, tip: &str) {
        self.write(format_args!(r#"<path class="{class}" d="{path}""#));
        self.close("path", tip);
    }

    /// Draws a shape whose `path` is relative to `at`.
    pub(super) fn shape(&mut self, class: &str, at: (f64, f64), path: &str, tip: &str) {
        let (x, y) = (Coordinate(at.0), Coordinate(at.1));
        self.write(format_args!(r#"<path class="{class}" d="M{x} {y}{path}""#));
        self.close("path", tip);
    }

    /// Draws a line through `points`, to each first along and then up or down, and appends `end` to its path.
    pub(super) fn steps(
        &mut self,
        class: &str,
        begin: (f64, f64),
        points: &[(f64, f64)],
        end: &str,
        tip: &str,
    ) {
        self.write(format_args!(
            r#"<path class="{class}" d="M{} {}"#,
            Coordinate(begin.0),
            Coordinate(begin.1)
        ));
        for point in points {
            self.write(format_args!("H{}V{}", Coordinate(point.0), Coordinate(point.1)));
        }
        self.write(format_args!("{end}\""));
        self.close("path", tip);
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (Coordinate(at.0), Coordinate(at.1));
        let text = Escaped(text);
        self.write(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#
        ));
        self.raw("\n");
    }
}

/// Display of a text that is safe in HTML and XML: markup is escaped, and control characters are written out.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(' ')?,
                c if is_obeyed(c) => write!(f, "{}", c.escape_default())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Returns an upper estimate of the width of `text` at font size `size`. Fonts differ, so it assumes a wide one.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| if letter.is_ascii() { 0.6 } else { 1.0 }).sum::<f64>() * size
}

/// Returns the first of `texts` that fits `width`.
pub(super) fn longest_that_fits(texts: &[String], size: f64, width: f64) -> Option<&str> {
    texts.iter().map(String::as_str).find(|text| text_width(text, size) <= width)
}

/// Wraps `text` into lines of at most `width`, between words; `None` if a word is longer or there are more than
/// `most` lines.
pub(super) fn wrapped(text: &str, size: f64, width: f64, most: usize) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if text_width(word, size) > width {
            return None;
        }
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    (lines.len() <= most).then_some(lines)
}
