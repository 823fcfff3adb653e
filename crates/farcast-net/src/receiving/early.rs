//! Content that arrives before its key. A key leaves for each receiver separately, so content to the group may overtake
//! it.

use std::collections::VecDeque;

use farcast_core::engine::Arrival;

/// Most octets that are kept: the data of a fast sender in a few milliseconds.
const MOST: usize = 384 << 10;
/// Overhead of each datagram, octets.
const EACH: usize = 128;

/// Datagrams that wait for their key.
#[derive(Debug, Default)]
pub(super) struct Early {
    held: VecDeque<(Arrival, Box<[u8]>)>,
    octets: usize,
}

impl Early {
    /// Keeps a datagram if there is room. One that has none is requested again, like every lost one.
    pub(super) fn hold(&mut self, from: &Arrival, datagram: &[u8]) {
        if self.octets + EACH + datagram.len() <= MOST {
            self.octets += EACH + datagram.len();
            self.held.push_back((*from, datagram.into()));
        }
    }

    /// Returns `true` if nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Removes and returns the datagrams that `is_ready` accepts, in the order of their arrival.
    pub(super) fn take(&mut self, is_ready: impl Fn(&[u8]) -> bool) -> VecDeque<(Arrival, Box<[u8]>)> {
        let all = std::mem::take(&mut self.held);
        let (ready, held): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(|(_, one)| is_ready(one));
        self.octets -= ready.iter().map(|(_, one)| EACH + one.len()).sum::<usize>();
        self.held = held;
        ready
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
        assert!(early.take(|_| false).is_empty());
        // A datagram that still waits holds up no other.
        let is_even = |datagram: &[u8]| datagram[3].is_multiple_of(2);
        let even = early.take(is_even);
        assert!(even.iter().zip((0..).step_by(2)).all(|((_, one), n)| one[..4] == u32::to_be_bytes(n)));
        let odd = early.take(|_| true);
        assert!(odd.iter().zip((1..).step_by(2)).all(|((_, one), n)| one[..4] == u32::to_be_bytes(n)));
        assert_eq!((even.len() + odd.len(), early.is_empty()), (MOST / (EACH + 1400), true));
        early.hold(&from, &vec![1; MOST - EACH]);
        assert_eq!(early.take(|_| true).len(), 1, "there is room again");
    }
}
