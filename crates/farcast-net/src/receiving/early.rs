//! Content that comes before its key: the key goes to each receiver by itself, and what goes to the group may overtake it.

use std::collections::VecDeque;

use farcast_core::engine::Arrival;

/// How much is kept, octets: what a group hears of a fast sender in a few milliseconds.
const MOST: usize = 384 << 10;

/// What waits for its key.
#[derive(Debug, Default)]
pub(super) struct Early {
    held: VecDeque<(Arrival, Box<[u8]>)>,
    octets: usize,
}

impl Early {
    /// Keeps a datagram, if there is room; what has none is asked for again like all that is lost.
    pub(super) fn hold(&mut self, from: &Arrival, datagram: &[u8]) {
        if self.octets + datagram.len() <= MOST {
            self.octets += datagram.len();
            self.held.push_back((*from, datagram.into()));
        }
    }

    /// The first that is kept.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.held.front().map(|(_, datagram)| &**datagram)
    }

    /// Gives it away.
    pub(super) fn next(&mut self) -> Option<(Arrival, Box<[u8]>)> {
        let next = self.held.pop_front()?;
        self.octets -= next.1.len();
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_comes_back_in_order() {
        let address = "10.0.0.1:1".parse().unwrap();
        let from = Arrival::new(address, address);
        let mut early = Early::default();
        for n in 0..1000u32 {
            let mut datagram = [0; 1400];
            datagram[..4].copy_from_slice(&n.to_be_bytes());
            early.hold(&from, &datagram);
        }
        assert_eq!(early.first().map(|first| &first[..4]), Some(&[0; 4][..]));
        let mut count = 0;
        while let Some((_, datagram)) = early.next() {
            assert_eq!(datagram[..4], u32::to_be_bytes(count));
            count += 1;
        }
        assert_eq!(count as usize, MOST / 1400);
        early.hold(&from, &[1]);
        assert_eq!(early.first(), Some(&[1][..]), "there is room again");
    }
}
