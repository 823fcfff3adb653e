//! Lines of text for people, of which results are made.

use std::fmt::{self, Display};

use farcast_report::text::visible;

/// Lines for people. A text that is added as a line stays one line: nothing in it makes another line or commands a
/// terminal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Text(Vec<String>);

impl Text {
    /// Makes one line.
    pub(crate) fn line(text: &str) -> Self {
        Self(vec![visible(text).into_owned()])
    }

    /// Makes a line of each text.
    pub(crate) fn lines<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self(texts.into_iter().map(|text| visible(text.as_ref()).into_owned()).collect())
    }

    /// Joins texts with an empty line between them.
    pub(crate) fn paragraphs(texts: impl IntoIterator<Item = Self>) -> Self {
        texts.into_iter().fold(Self::default(), Self::paragraph)
    }

    /// Appends `below`.
    pub(crate) fn then(mut self, below: Self) -> Self {
        self.0.extend(below.0);
        self
    }

    /// Appends `below` after an empty line, which is left out if either text is empty.
    pub(crate) fn paragraph(self, below: Self) -> Self {
        if self.0.is_empty() || below.0.is_empty() { self.then(below) } else { self.blank().then(below) }
    }

    /// Appends an empty line.
    pub(crate) fn blank(mut self) -> Self {
        self.0.push(String::new());
        self
    }

    /// Returns the lines.
    pub(crate) fn each(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Writes the lines without a newline at the end.
impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one() {
        let text = Text::line("a\ncomplete").paragraph(Text::lines(["b\u{202e}", "c\r"]));
        assert_eq!(text.to_string(), "a\\ncomplete\n\nb\\u{202e}\nc\\r");
    }
}
