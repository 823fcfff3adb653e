//! Files with documents.

use std::io;
use std::path::Path;

/// Most octets of a document.
const MOST_OCTETS: u64 = 16 << 20;

/// Reads the text of a file, unless it is too long: a device may have no end.
///
/// # Errors
/// The file cannot be read, or has more than 16 MiB.
#[expect(clippy::disallowed_methods, reason = "it is read whole, as settings are")]
pub fn text_of(path: &Path) -> io::Result<String> {
    use io::Read as _;
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(MOST_OCTETS + 1).read_to_string(&mut text)?;
    if read as u64 > MOST_OCTETS {
        return Err(io::Error::other("it is longer than any scenario, which has 16 MiB at most"));
    }
    Ok(text)
}
