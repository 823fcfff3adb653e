//! What a sender vouches for.

/// What a sender of farcast says of a file that it sends without a manifest, where its protocol has a place for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouched {
    /// BLAKE3 of the content.
    pub digest: [u8; 32],
    /// Permission bits, at most `0o777`.
    pub mode: u16,
    /// Modification time in nanoseconds since 1970-01-01 UTC; negative before.
    pub mtime_ns: i64,
}
