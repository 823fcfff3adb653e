//! What a source symbol of a stream says of itself (RFC 5740 §4.2.1).

use farcast_core::engine::Reject;

/// Octets before the content of a symbol.
pub(super) const HEADER: usize = 8;

/// The beginning of a source symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// Octets of the stream in it. None: the stream ends here.
    pub(super) len: u16,
    /// Where in these the first message begins, and one more; 0: none does.
    pub(super) message: u16,
    /// Where in the stream they belong, modulo 2^32.
    pub(super) offset: u32,
}

impl Segment {
    /// Reads it from `symbol`, which has all its octets and perhaps padding.
    pub(super) fn read(symbol: &[u8]) -> Result<Self, Reject> {
        let (&[l0, l1, m0, m1, o0, o1, o2, o3], content) =
            symbol.split_first_chunk::<HEADER>().ok_or(Reject::Inconsistent)?;
        let (len, message) = (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([m0, m1]));
        // Without octets the message's place is a code, of which there is but one: the end.
        if usize::from(len) > content.len() || message > len {
            return Err(Reject::Inconsistent);
        }
        Ok(Self { len, message, offset: u32::from_be_bytes([o0, o1, o2, o3]) })
    }

    /// Writes it to the beginning of `symbol`, which has room.
    pub(super) fn write(self, symbol: &mut [u8]) {
        symbol[..2].copy_from_slice(&self.len.to_be_bytes());
        symbol[2..4].copy_from_slice(&self.message.to_be_bytes());
        symbol[4..HEADER].copy_from_slice(&self.offset.to_be_bytes());
    }

    /// Its octets in `symbol`.
    pub(super) fn content(self, symbol: &[u8]) -> &[u8] {
        &symbol[HEADER..HEADER + usize::from(self.len)]
    }
}
