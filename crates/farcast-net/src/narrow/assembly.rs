//! Reassembly of datagrams that arrive in pieces.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::wire::DatagramPart;

/// Most senders whose pieces are kept.
const SENDERS: usize = 16;
/// Most octets of one sender's incomplete datagrams; a single datagram may be longer.
const OCTETS: usize = 256 << 10;
/// Most incomplete datagrams of one sender.
const UNFINISHED: usize = 128;
/// Most pieces of a datagram: the longest UDP datagram, cut as for IPv4.
const PARTS: u8 = 128;

/// Incomplete datagrams of all senders.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// Senders; the one heard last is the last.
    senders: Vec<Sender>,
}

#[derive(Debug)]
struct Sender {
    address: SocketAddr,
    /// Incomplete datagrams, the oldest first.
    partial: VecDeque<Partial>,
    /// Octets of these datagrams.
    octets: usize,
}

#[derive(Debug)]
struct Partial {
    id: u32,
    count: u8,
    /// Bit mask of the pieces that have arrived.
    here: u128,
    octets: Vec<u8>,
}

impl Assembly {
    /// Takes a piece of a datagram from `address`. Returns the datagram if the piece completes it.
    pub(crate) fn take(&mut self, address: SocketAddr, piece: &DatagramPart<'_>) -> Option<Vec<u8>> {
        let (total, count) = (usize::from(piece.total), usize::from(piece.count));
        if !(2..=PARTS).contains(&piece.count) || piece.index >= piece.count || total < count {
            return None;
        }
        let unit = DatagramPart::unit(total, count);
        let start = unit * usize::from(piece.index);
        let end = total.min(start + unit);
        if start >= end || piece.octets.len() != end - start {
            return None;
        }
        let sender = self.sender(address);
        let like = |partial: &Partial| {
            partial.id == piece.id && partial.count == piece.count && partial.octets.len() == total
        };
        let at = match sender.partial.iter().rposition(like) {
            Some(at) => at,
            None => sender.begin(piece),
        };
        let partial = &mut sender.partial[at];
        partial.octets[start..end].copy_from_slice(piece.octets);
        partial.here |= 1 << piece.index;
        if partial.here.count_ones() < u32::from(piece.count) {
            return None;
        }
        sender.octets -= total;
        sender.partial.remove(at).map(|whole| whole.octets)
    }

    /// Returns the entry of `address`. A new one takes the place of the sender heard longest ago.
    fn sender(&mut self, address: SocketAddr) -> &mut Sender {
        let known = self.senders.iter().position(|sender| sender.address == address);
        let sender = match known {
            Some(at) => self.senders.remove(at),
            None => Sender { address, partial: VecDeque::new(), octets: 0 },
        };
        if self.senders.len() == SENDERS {
            self.senders.remove(0);
        }
        self.senders.push(sender);
        let last = self.senders.len() - 1;
        &mut self.senders[last]
    }
}

impl Sender {
    /// Makes room for a datagram. Returns its index.
    fn begin(&mut self, piece: &DatagramPart<'_>) -> usize {
        let total = usize::from(piece.total);
        while (self.partial.len() >= UNFINISHED || self.octets + total > OCTETS)
            && let Some(oldest) = self.partial.pop_front()
        {
            self.octets -= oldest.octets.len();
        }
        self.octets += total;
        self.partial.push_back(Partial { id: piece.id, count: piece.count, here: 0, octets: vec![0; total] });
        self.partial.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn parts(id: u32, whole: &[u8], count: u8) -> Vec<DatagramPart<'_>> {
        let chunks = whole.chunks(DatagramPart::unit(whole.len(), count.into()));
        let piece = |(index, octets)| DatagramPart {
            id,
            total: whole.len() as u16,
            index: index as u8,
            count,
            octets,
        };
        chunks.enumerate().map(piece).collect()
    }

    #[test]
    fn parts_in_any_order_become_the_datagram() {
        let whole: Vec<u8> = (0..1472u32).map(|n| n as u8).collect();
        let other: Vec<u8> = whole.iter().rev().copied().collect();
        let mut assembly = Assembly::default();
        let (mut a, b) = (parts(1, &whole, 3), parts(2, &other, 3));
        a.reverse();
        for at in 0..2 {
            assert_eq!(assembly.take(from(1), &a[at]), None);
            assert_eq!(assembly.take(from(1), &b[at]), None);
            assert_eq!(assembly.take(from(1), &b[at]), None, "once more");
        }
        assert_eq!(assembly.take(from(2), &a[2]), None, "from somebody else");
        assert_eq!(assembly.take(from(1), &a[2]).as_deref(), Some(&whole[..]));
        assert_eq!(assembly.take(from(1), &b[2]).as_deref(), Some(&other[..]));
    }

    #[test]
    fn what_makes_no_sense_is_dropped() {
        let mut assembly = Assembly::default();
        let good = DatagramPart { id: 1, total: 1000, index: 1, count: 2, octets: &[0; 500] };
        let bad = [
            DatagramPart { count: 0, ..good },
            DatagramPart { count: 1, index: 0, ..good },
            DatagramPart { count: 200, index: 0, octets: &[0; 5], ..good },
            DatagramPart { index: 2, ..good },
            DatagramPart { octets: &[0; 499], ..good },
            DatagramPart { total: 0, octets: &[], ..good },
            // 128 parts of 2 octets are more than there are.
            DatagramPart { total: 129, count: 128, index: 100, octets: &[0; 2], ..good },
        ];
        for piece in bad {
            assert_eq!(assembly.take(from(1), &piece), None, "{piece:?}");
        }
        assert!(assembly.senders.is_empty());
    }

    #[test]
    fn parts_without_their_others_take_little_memory() {
        let mut assembly = Assembly::default();
        let octets = [0; 512];
        for port in 0..1000 {
            for id in 0..20 {
                let piece = DatagramPart { id, total: 65_535, index: 0, count: 128, octets: &octets };
                assert_eq!(assembly.take(from(port), &piece), None);
            }
        }
        let kept: usize = assembly.senders.iter().map(|sender| sender.octets).sum();
        assert!(kept <= SENDERS * OCTETS && assembly.senders.len() <= SENDERS, "{kept}");
    }
}
