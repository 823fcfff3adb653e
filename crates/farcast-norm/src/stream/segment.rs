//! Header of a source symbol of a stream (RFC 5740 §4.2.1).

use farcast_core::engine::Reject;

/// Octets before the content of a symbol.
pub(super) const HEADER: usize = 8;

/// Header of a source symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// Octets of the stream in the symbol; 0 means that the stream ends here.
    pub(super) len: u16,
    /// Position in these octets of the first message's beginning, plus one; 0 if no message begins.
    pub(super) message: u16,
    /// Place of the octets in the stream, modulo 2^32.
    pub(super) offset: u32,
}

impl Segment {
    /// Decodes the header of `symbol`, which has all its octets and perhaps padding.
    pub(super) fn read(symbol: &[u8]) -> Result<Self, Reject> {
        let (&[l0, l1, m0, m1, o0, o1, o2, o3], content) =
            symbol.split_first_chunk::<HEADER>().ok_or(Reject::Inconsistent)?;
        let (len, message) = (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([m0, m1]));
        // Without octets, the position is a code. The only code is that of the end.
        if usize::from(len) > content.len() || message > len {
            return Err(Reject::Inconsistent);
        }
        Ok(Self { len, message, offset: u32::from_be_bytes([o0, o1, o2, o3]) })
    }

    /// Encodes the header at the beginning of `symbol`, which has room.
    pub(super) fn write(self, symbol: &mut [u8]) {
        symbol[..2].copy_from_slice(&self.len.to_be_bytes());
        symbol[2..4].copy_from_slice(&self.message.to_be_bytes());
        symbol[4..HEADER].copy_from_slice(&self.offset.to_be_bytes());
    }

    /// Returns the octets of the stream in `symbol`.
    pub(super) fn content(self, symbol: &[u8]) -> &[u8] {
        &symbol[HEADER..HEADER + usize::from(self.len)]
    }
}
