//! Wire format of the datagrams that sockets exchange about narrow paths.

/// First octets of each of these datagrams. No protocol here has a datagram that begins so: its first octet is no
/// version or kind, or the second one is no type. To NORM it is a report (type 6 of version 1, with a header of 12
/// octets), which libnorm ignores. After a datagram that makes no sense to it, libnorm would cut the next one to the
/// same length.
const MAGIC: [u8; 4] = [0x16, 3, b'F', b'C'];
const PIECE: u8 = 0x51;
const MARK: u8 = 0x52;
const NARROW: u8 = 0x53;

/// Octets of a piece before its payload.
pub(crate) const PIECE_HEADER: usize = 13;

/// A datagram between sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Small<'a> {
    /// A part of a datagram.
    Piece(DatagramPart<'a>),
    /// A sender's count, sent beside its long datagrams.
    Mark(Mark),
    /// A receiver's report that it gets marks with this nonce, and no long datagram.
    Narrow {
        /// The nonce of the marks.
        nonce: u64,
        /// Length of the longest mark that has arrived, octets; 0 if the receiver does not say.
        passes: u16,
    },
}

/// A part of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DatagramPart<'a> {
    /// Number of the datagram that was cut.
    pub(crate) id: u32,
    /// Octets of the whole datagram.
    pub(crate) total: u16,
    /// Index of this piece, from 0.
    pub(crate) index: u8,
    /// Number of pieces.
    pub(crate) count: u8,
    /// Payload of the piece.
    pub(crate) octets: &'a [u8],
}

impl DatagramPart<'_> {
    /// Returns the octets of every piece but the last.
    pub(crate) fn unit(total: usize, count: usize) -> usize {
        total.div_ceil(count)
    }

    /// Appends the header of the piece.
    pub(crate) fn write_header(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        out.extend([PIECE, self.index, self.count]);
        out.extend(self.id.to_be_bytes());
        out.extend(self.total.to_be_bytes());
    }
}

/// A count of long datagrams that have left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// Random number that only hosts know that hear the sender. Each count has another one.
    pub(crate) nonce: u64,
    /// Number of long datagrams so far; it wraps around.
    pub(crate) long: u32,
    /// Least length of a long datagram, octets.
    pub(crate) length: u16,
    /// Digest of the long datagram that left just before, if it left alone; else 0.
    pub(crate) alone: u32,
}

/// Returns the digest of a datagram by which a receiver finds it again among those that it has heard (FNV-1a over its
/// first 64 octets). It is never 0.
pub(crate) fn digest(datagram: &[u8]) -> u32 {
    let mix = |hash: u32, octet: &u8| (hash ^ u32::from(*octet)).wrapping_mul(16_777_619);
    datagram.iter().take(64).fold(2_166_136_261, mix).max(1)
}

impl Mark {
    /// Returns the datagram, padded with zeros to `padded` octets if it is shorter.
    pub(crate) fn datagram(&self, padded: Option<usize>) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(MARK);
        out.extend(self.nonce.to_be_bytes());
        out.extend(self.long.to_be_bytes());
        out.extend(self.length.to_be_bytes());
        out.extend(self.alone.to_be_bytes());
        out.resize(padded.unwrap_or(0).max(out.len()), 0);
        out
    }
}

/// Returns the report of a receiver that gets no long datagrams, and marks of at most `passes` octets.
pub(crate) fn narrow(nonce: u64, passes: u16) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(NARROW);
    out.extend(nonce.to_be_bytes());
    out.extend(passes.to_be_bytes());
    out
}

impl<'a> Small<'a> {
    /// Parses a datagram, which anybody may have sent; `None` if it is none of this layer.
    pub(crate) fn read(datagram: &'a [u8]) -> Option<Self> {
        let (kind, rest) = datagram.strip_prefix(&MAGIC)?.split_first()?;
        match *kind {
            PIECE => {
                let (head, octets) = rest.split_first_chunk::<8>()?;
                let [index, count, a, b, c, d, high, low] = *head;
                let (id, total) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([high, low]));
                Some(Self::Piece(DatagramPart { id, total, index, count, octets }))
            }
            MARK => {
                let (nonce, rest) = rest.split_first_chunk::<8>()?;
                let (long, rest) = rest.split_first_chunk::<4>()?;
                let (length, rest) = rest.split_first_chunk::<2>()?;
                let alone = rest.first_chunk::<4>()?;
                Some(Self::Mark(Mark {
                    nonce: u64::from_be_bytes(*nonce),
                    long: u32::from_be_bytes(*long),
                    length: u16::from_be_bytes(*length),
                    alone: u32::from_be_bytes(*alone),
                }))
            }
            NARROW => {
                let (nonce, rest) = rest.split_first_chunk::<8>()?;
                let passes = rest.first_chunk().map_or(0, |passes| u16::from_be_bytes(*passes));
                Some(Self::Narrow { nonce: u64::from_be_bytes(*nonce), passes })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mark = Mark { nonce: 0x0102_0304_0506_0708, long: 77, length: 1472, alone: 9 };
        assert_eq!(Small::read(&mark.datagram(None)), Some(Small::Mark(mark)));
        assert_eq!((mark.datagram(Some(1252)).len(), mark.datagram(Some(5)).len()), (1252, 23));
        assert_eq!(Small::read(&mark.datagram(Some(1252))), Some(Small::Mark(mark)));
        assert_eq!(Small::read(&narrow(9, 1252)), Some(Small::Narrow { nonce: 9, passes: 1252 }));
        assert_eq!(Small::read(&narrow(9, 1252)[..13]), Some(Small::Narrow { nonce: 9, passes: 0 }));
        let header_of_a_report = usize::from(MAGIC[1]) * 4;
        let shortest = [PIECE_HEADER, mark.datagram(None).len(), narrow(9, 0).len()];
        assert!(shortest.iter().all(|&len| len >= header_of_a_report), "as NORM has it: {shortest:?}");
        let piece = DatagramPart { id: 5, total: 1000, index: 1, count: 2, octets: &[7; 500] };
        let mut datagram = Vec::new();
        piece.write_header(&mut datagram);
        assert_eq!(datagram.len(), PIECE_HEADER);
        datagram.extend([7; 500]);
        assert_eq!(Small::read(&datagram), Some(Small::Piece(piece)));
    }

    #[test]
    fn what_is_cut_short_or_of_others_is_none_of_it() {
        let whole = Mark { nonce: 1, long: 2, length: 3, alone: 4 }.datagram(None);
        for len in 0..whole.len() {
            assert_eq!(Small::read(&whole[..len]), None, "{len}");
        }
        for len in 0..13 {
            assert_eq!(Small::read(&narrow(1, 19)[..len]), None, "{len}");
        }
        assert_eq!(Small::read(&[&MAGIC[..], &[0x50, 1, 2, 3, 4, 5, 6, 7, 8]].concat()), None);
        assert_eq!(Small::read(&[0xE2; 100]), None, "the seal's");
    }
}
