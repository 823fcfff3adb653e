//! Lines for people, as results are made of.

use std::fmt::{self, Display};

use farcast_report::text::visible;

/// Lines for people. What goes in as a line stays one: nothing in it makes another or commands a terminal, wherever it
/// comes from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Text(Vec<String>);

impl Text {
    /// One line.
    pub(crate) fn line(text: &str) -> Self {
        Self(vec![visible(text).into_owned()])
    }

    /// So many lines.
    pub(crate) fn lines<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self(texts.into_iter().map(|text| visible(text.as_ref()).into_owned()).collect())
    }

    /// These with an empty line between them.
    pub(crate) fn paragraphs(texts: impl IntoIterator<Item = Self>) -> Self {
        texts.into_iter().fold(Self::default(), Self::paragraph)
    }

    /// This and `below`.
    pub(crate) fn then(mut self, below: Self) -> Self {
        self.0.extend(below.0);
        self
    }

    /// This and `below`, with an empty line between them; nothing of either needs none.
    pub(crate) fn paragraph(self, below: Self) -> Self {
        if self.0.is_empty() || below.0.is_empty() { self.then(below) } else { self.blank().then(below) }
    }

    /// This and an empty line.
    pub(crate) fn blank(mut self) -> Self {
        self.0.push(String::new());
        self
    }

    /// Its lines.
    pub(crate) fn each(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The lines without a newline at the end.
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
