//! Replies (RFC 959 section 4.2).

use alloc::string::String;
use core::fmt;

use super::lines::LineError;

/// Most octets of a reply's text, over all its lines.
const MOST_TEXT: usize = 16 << 10;

/// The three digits of a reply.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(u16);

impl Code {
    /// Returns the code `number`; `None` outside 100 to 599.
    pub const fn new(number: u16) -> Option<Self> {
        if number >= 100 && number < 600 { Some(Self(number)) } else { None }
    }

    /// Returns the number of the code.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns `true` if another reply follows (1yz).
    pub const fn is_preliminary(self) -> bool {
        self.0 / 100 == 1
    }

    /// Returns `true` if the command was done (2yz).
    pub const fn is_completion(self) -> bool {
        self.0 / 100 == 2
    }

    /// Returns `true` if another command is expected (3yz).
    pub const fn is_intermediate(self) -> bool {
        self.0 / 100 == 3
    }

    /// Returns the code at the beginning of a line.
    fn of(line: &str) -> Option<Self> {
        let digits = line.get(..3)?;
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        Self::new(digits.parse().ok()?)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Code of the reply.
    pub code: Code,
    /// Text without the code; its lines are separated by LF.
    pub text: String,
}

impl Reply {
    /// Returns the text between the first quotation mark and the last, with doubled marks taken as one: the path of a
    /// 257 (RFC 959 appendix II).
    pub fn quoted(&self) -> Option<String> {
        let begin = self.text.find('"')? + 1;
        let end = self.text.rfind('"')?;
        self.text.get(begin..end).map(|path| path.replace("\"\"", "\""))
    }

    /// Returns the number that makes up the text: the size of a 213 (RFC 3659 section 4).
    pub fn number(&self) -> Option<u64> {
        self.text.trim().parse().ok()
    }
}

/// Reason for which lines are not a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// A line is too long or not text.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A line does not begin with a reply code.
    #[error("a reply does not begin with a code from 100 to 599 and a space or a hyphen")]
    NoCode,
    /// The reply is too long.
    #[error("a reply has more than {MOST_TEXT} octets of text")]
    TooLong,
}

/// Assembler of replies from their lines.
#[derive(Clone, Debug, Default)]
pub struct ReplyReader {
    /// Reply whose last line has not come.
    begun: Option<Reply>,
}

impl ReplyReader {
    /// Takes a line. Returns the reply that the line ends, if it ends one.
    ///
    /// # Errors
    /// The line does not belong to a reply, or the reply is too long.
    pub fn take(&mut self, line: &str) -> Result<Option<Reply>, ReplyError> {
        let found = Code::of(line);
        let text = line.get(4..).unwrap_or("");
        let mark = line.as_bytes().get(3).copied();
        let Some(mut begun) = self.begun.take() else {
            let code = found.ok_or(ReplyError::NoCode)?;
            let reply = Reply { code, text: text.into() };
            return match mark {
                Some(b'-') => {
                    self.begun = Some(reply);
                    Ok(None)
                }
                None | Some(b' ') => Ok(Some(reply)),
                _ => Err(ReplyError::NoCode),
            };
        };
        // The last line has the code again and a space; other lines may begin with anything.
        let ends = found == Some(begun.code) && matches!(mark, None | Some(b' '));
        let added = if ends { text } else { line };
        if begun.text.len() + 1 + added.len() > MOST_TEXT {
            return Err(ReplyError::TooLong);
        }
        begun.text.push('\n');
        begun.text.push_str(added);
        if ends {
            return Ok(Some(begun));
        }
        self.begun = Some(begun);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use std::format;

    fn read(lines: &[&str]) -> Result<Option<Reply>, ReplyError> {
        let mut reader = ReplyReader::default();
        let (last, before) = lines.split_last().expect("a line");
        for line in before {
            assert_eq!(reader.take(line), Ok(None), "{line}");
        }
        reader.take(last)
    }

    fn reply(code: u16, text: &str) -> Reply {
        Reply { code: Code::new(code).expect("a code"), text: text.to_string() }
    }

    #[test]
    fn a_line_or_many_make_a_reply() {
        assert_eq!(read(&["220 ready"]), Ok(Some(reply(220, "ready"))));
        assert_eq!(read(&["226"]), Ok(Some(reply(226, ""))));
        // The example of RFC 959 section 4.2, with a line inside that begins with another code.
        let lines =
            ["123-First line", "Second line", "  234 A line beginning with numbers", "123 The last line"];
        let text = "First line\nSecond line\n  234 A line beginning with numbers\nThe last line";
        assert_eq!(read(&lines), Ok(Some(reply(123, text))));
        assert_eq!(read(&["211-a", "211-b", "212 c", "211 d"]), Ok(Some(reply(211, "a\n211-b\n212 c\nd"))));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for line in ["", "22", "22x ready", "099 x", "600 x", "220ready", "2200", "+20 x", "é20 x", "٢20 x"]
        {
            assert_eq!(read(&[line]), Err(ReplyError::NoCode), "{line:?}");
        }
    }

    #[test]
    fn a_reply_without_end_is_given_up() {
        let mut reader = ReplyReader::default();
        let line = "x".repeat(99);
        assert_eq!(reader.take("220-"), Ok(None));
        // 163 lines of 100 octets fit into 16,384.
        for _ in 0..163 {
            assert_eq!(reader.take(&line), Ok(None));
        }
        assert_eq!(reader.take(&line), Err(ReplyError::TooLong));
    }

    #[test]
    fn paths_and_sizes_are_found_in_the_text() {
        // RFC 959 appendix II.
        let path = reply(257, "\"/usr/dm/\"\"x\"\"\" directory created");
        assert_eq!(path.quoted().as_deref(), Some("/usr/dm/\"x\""));
        assert_eq!(reply(257, "no path").quoted(), None);
        assert_eq!(reply(257, "\"").quoted(), None);
        assert_eq!(reply(213, " 1048576").number(), Some(1_048_576));
        assert_eq!(reply(213, &format!("{}0", u64::MAX)).number(), None);
    }
}
