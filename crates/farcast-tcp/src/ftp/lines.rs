//! Splitting of a control stream into lines.

use alloc::vec::Vec;

/// A line that cannot be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is too long.
    #[error("a line is longer than {0} octets")]
    TooLong(usize),
    /// The line is not UTF-8 (RFC 2640 section 2.2).
    #[error("a line is not UTF-8")]
    NotText,
}

/// Position of the stream in a Telnet command (RFC 854).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Telnet {
    #[default]
    Text,
    /// Behind IAC.
    Command,
    /// Behind WILL, WON'T, DO or DON'T.
    Option,
}

/// Telnet's "interpret as command".
const IAC: u8 = 255;
/// First and last of the commands that an option follows.
const WILL: u8 = 251;
const DONT: u8 = 254;

/// Splitter of octets into lines that end with LF, or with CR LF as they should. Commands of Telnet in between are
/// skipped: RFC 959 section 4.1.3 asks clients to send some before ABOR. A line that is too long costs no more memory
/// than any other.
#[derive(Clone, Debug)]
pub struct Lines {
    line: Vec<u8>,
    most: usize,
    overlong: bool,
    complete: bool,
    telnet: Telnet,
}

/// Octets taken by one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineOctets {
    /// Number of octets taken.
    pub octets: usize,
    /// The line is complete: [`line`](Lines::line) returns it until octets are taken again.
    pub complete: bool,
}

impl Lines {
    /// Creates a splitter for lines of at most `most` octets, without their ends.
    pub const fn new(most: usize) -> Self {
        Self { line: Vec::new(), most, overlong: false, complete: false, telnet: Telnet::Text }
    }

    /// Takes octets up to the end of the line.
    pub fn take(&mut self, octets: &[u8]) -> LineOctets {
        if core::mem::take(&mut self.complete) {
            self.line.clear();
            self.overlong = false;
        }
        for (at, &octet) in octets.iter().enumerate() {
            if self.take_one(octet) {
                self.complete = true;
                return LineOctets { octets: at + 1, complete: true };
            }
        }
        LineOctets { octets: octets.len(), complete: false }
    }

    /// Returns the line that is complete.
    ///
    /// # Errors
    /// The line was too long, or is not text.
    pub fn line(&self) -> Result<&str, LineError> {
        if self.overlong {
            return Err(LineError::TooLong(self.most));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        core::str::from_utf8(line).map_err(|_| LineError::NotText)
    }

    /// Takes an octet. Returns `true` if the octet ends the line.
    fn take_one(&mut self, octet: u8) -> bool {
        match (self.telnet, octet) {
            (Telnet::Text, IAC) => self.telnet = Telnet::Command,
            (Telnet::Text, b'\n') => return true,
            // A CR that does not end a line has a NUL behind it (RFC 854).
            (Telnet::Text, 0) => {}
            (Telnet::Text, _) => self.keep(octet),
            (Telnet::Command, IAC) => {
                self.telnet = Telnet::Text;
                self.keep(octet);
            }
            (Telnet::Command, WILL..=DONT) => self.telnet = Telnet::Option,
            (Telnet::Command | Telnet::Option, _) => self.telnet = Telnet::Text,
        }
        false
    }

    fn keep(&mut self, octet: u8) {
        // One octet more than fits may be the CR.
        if self.line.len() <= self.most && (self.line.len() < self.most || octet == b'\r') {
            self.line.push(octet);
        } else {
            self.overlong = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use proptest::prelude::*;
    use std::vec;

    /// Returns all lines of `octets`, handed over in pieces of `piece`.
    fn lines(most: usize, octets: &[u8], piece: usize) -> Vec<Result<String, LineError>> {
        let mut lines = Lines::new(most);
        let mut found = vec![];
        for mut piece in octets.chunks(piece) {
            while !piece.is_empty() {
                let LineOctets { octets: taken, complete } = lines.take(piece);
                piece = &piece[taken..];
                if complete {
                    found.push(lines.line().map(ToString::to_string));
                }
            }
        }
        found
    }

    #[test]
    fn lines_end_with_lf_with_or_without_cr() {
        let found = lines(80, b"USER a\r\nPASS b\n\r\nunfinished", 3);
        assert_eq!(found, ["USER a", "PASS b", ""].map(|line| Ok(line.to_string())));
    }

    #[test]
    fn telnet_commands_are_passed_over() {
        // IAC IP, IAC DM before ABOR (RFC 959 section 4.1.3); IAC WILL ECHO; a NUL behind a CR.
        let found = lines(80, b"\xff\xf4\xff\xf2ABOR\r\n\xff\xfb\x01NOOP\r\0x\r\n", 1);
        assert_eq!(found, ["ABOR", "NOOP\rx"].map(|line| Ok(line.to_string())));
    }

    #[test]
    fn a_line_has_a_length_and_is_text() {
        let found = lines(4, b"abcd\r\nabcde\r\nabcd\n\xff\xff\r\nab\r\n", 2);
        let (fits, long) = (Ok("abcd".to_string()), Err(LineError::TooLong(4)));
        assert_eq!(found, [fits.clone(), long, fits, Err(LineError::NotText), Ok("ab".to_string())]);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            octets in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(255)], 0..200), piece in 1usize..20,
        ) {
            prop_assert_eq!(lines(10, &octets, piece), lines(10, &octets, octets.len().max(1)));
        }
    }
}
