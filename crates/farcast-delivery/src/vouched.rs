//! Metadata that a sender vouches for.

/// Metadata that a farcast sender gives for a file sent without a manifest, in protocols that have a place for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouched {
    /// BLAKE3 of the content.
    pub digest: [u8; 32],
    /// Permission bits, at most `0o777`.
    pub mode: u16,
    /// Modification time in nanoseconds since 1970-01-01 UTC; negative before.
    pub mtime_ns: i64,
}
