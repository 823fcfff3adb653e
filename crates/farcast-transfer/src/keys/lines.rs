//! Format that the files of keys share: lines of words, and comments behind `#`.

use std::fmt::Display;

use crate::Error;

/// Returns the lines of `octets`, each with its number from 1. The `origin` names their source in messages.
///
/// # Errors
/// The octets are no UTF-8 text.
pub fn of<'a>(
    octets: &'a [u8],
    origin: &str,
) -> Result<impl Iterator<Item = (usize, &'a str)> + use<'a>, Error> {
    match std::str::from_utf8(octets) {
        Ok(text) => Ok((1..).zip(text.lines())),
        Err(error) => {
            let good = &octets[..error.valid_up_to()];
            let line = good.split(|&octet| octet == b'\n').count();
            Err(wrong(origin, line, "this is no UTF-8 text"))
        }
    }
}

/// Returns the words of a line, or none for a comment.
pub fn words(line: &str) -> Vec<&str> {
    if line.trim_start().starts_with('#') { Vec::new() } else { line.split_whitespace().collect() }
}

/// Returns the failure for an error in a line.
pub fn wrong(origin: &str, line: usize, what: impl Display) -> Error {
    Error::usage(format!("{origin}:{line}: {what}"))
}
