//! What files of keys have alike: lines of words, and comments behind `#`.

use std::fmt::Display;

use crate::Failure;

/// The lines of `octets`, which came from what `origin` says, each with its number from 1.
///
/// # Errors
/// It is no text.
pub(super) fn of<'a>(
    octets: &'a [u8],
    origin: &str,
) -> Result<impl Iterator<Item = (usize, &'a str)> + use<'a>, Failure> {
    match std::str::from_utf8(octets) {
        Ok(text) => Ok((1..).zip(text.lines())),
        Err(error) => {
            let good = &octets[..error.valid_up_to()];
            let line = good.split(|&octet| octet == b'\n').count();
            Err(wrong(origin, line, "this is no UTF-8 text"))
        }
    }
}

/// The words of a line; none of a comment.
pub(super) fn words(line: &str) -> Vec<&str> {
    if line.trim_start().starts_with('#') { Vec::new() } else { line.split_whitespace().collect() }
}

/// What is wrong in a line.
pub(super) fn wrong(origin: &str, line: usize, what: impl Display) -> Failure {
    Failure::usage(format!("{origin}:{line}: {what}"))
}
