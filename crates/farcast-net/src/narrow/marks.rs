//! The sender's side: which datagrams are long, and when a mark is due.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use super::wire::Mark;

/// Destinations that are counted, at most: groups, or one receiver. Few datagrams go to others.
const DESTINATIONS: usize = 4;
/// Marks at first, one beside each long datagram, so that short transfers learn of it too.
const EACH: u32 = 20;
/// Long datagrams between marks after that, and marks until there are fewer still.
const SOME: u32 = 8;
const OFTEN: u32 = 60;
/// Long datagrams between marks for the rest, for receivers that come late.
const MANY: u32 = 64;
/// Marks of the first ones that are as long as the pieces that would be tried first: receivers say whether those come.
/// All leave before a receiver can be sure that long datagrams do not.
const PADDED: [u32; 3] = [8, 12, 16];
/// One of so many later ones is, too.
const PADDED_LATER: u32 = 16;

/// What a sender counts.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    counts: Vec<Count>,
    draws: RandomState,
    drawn: u64,
}

/// The long datagrams to one destination.
#[derive(Debug)]
struct Count {
    to: SocketAddr,
    mark: Mark,
    /// How much more often the length was met than others.
    weight: u32,
    /// Marks that have left, and what the last one said.
    marks: u32,
    marked: u32,
}

impl Marks {
    /// Counts so many datagrams of `length` octets to `to`; the mark to send, if one is due.
    pub(crate) fn sent(&mut self, to: SocketAddr, length: usize, datagrams: usize) -> Option<Mark> {
        let datagrams = u32::try_from(datagrams).ok()?;
        let length = u16::try_from(length).ok()?;
        let at = match self.counts.iter().position(|count| count.to == to) {
            Some(at) => at,
            None if self.counts.len() < DESTINATIONS => {
                let mark = self.begin(length);
                self.counts.push(Count { to, mark, weight: 0, marks: 0, marked: 0 });
                self.counts.len() - 1
            }
            None => return None,
        };
        if self.counts[at].outweighed_by(length, datagrams) {
            // What most datagrams have is what matters: a rare long one says little.
            let mark = self.begin(length);
            self.counts[at] = Count { to, mark, weight: datagrams, marks: 0, marked: 0 };
        }
        self.counts[at].count(length, datagrams)
    }

    /// Tells whether the last mark to `to` is to be a long one.
    pub(crate) fn pads(&self, to: SocketAddr) -> bool {
        let marks = self.counts.iter().find(|count| count.to == to).map_or(0, |count| count.marks);
        PADDED.contains(&marks) || marks > EACH && marks.is_multiple_of(PADDED_LATER)
    }

    /// The length, of those that are counted, of marks with this nonce.
    pub(crate) fn length_of(&self, nonce: u64) -> Option<usize> {
        let count = self.counts.iter().find(|count| count.mark.nonce == nonce && count.marks > 0)?;
        Some(count.mark.length.into())
    }

    fn begin(&mut self, length: u16) -> Mark {
        self.drawn += 1;
        Mark { nonce: self.draws.hash_one(self.drawn), long: 0, length }
    }
}

impl Count {
    /// Weighs `length`, as a vote for the most frequent; whether it takes the place of what there was.
    fn outweighed_by(&mut self, length: u16, datagrams: u32) -> bool {
        if length == self.mark.length {
            self.weight = self.weight.saturating_add(datagrams);
            return false;
        }
        let outweighed = datagrams > self.weight;
        self.weight = self.weight.saturating_sub(datagrams);
        outweighed
    }

    fn count(&mut self, length: u16, datagrams: u32) -> Option<Mark> {
        if length < self.mark.length {
            return None;
        }
        self.mark.long = self.mark.long.wrapping_add(datagrams);
        let every = match self.marks {
            ..EACH => 1,
            EACH..OFTEN => SOME,
            OFTEN.. => MANY,
        };
        if self.mark.long.wrapping_sub(self.marked) < every {
            return None;
        }
        (self.marks, self.marked) = (self.marks.saturating_add(1), self.mark.long);
        Some(self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([239, 0, 0, 1], port))
    }

    #[test]
    fn marks_are_many_at_first_and_few_later() {
        let mut marks = Marks::default();
        let sent: Vec<u32> = (0..2000).filter_map(|_| marks.sent(to(1), 1472, 1)).map(|m| m.long).collect();
        assert_eq!(sent[..20], (1..=20).collect::<Vec<_>>());
        assert_eq!(sent[20..23], [28, 36, 44]);
        let last = sent.len() - 1;
        assert_eq!(sent[last] - sent[last - 1], 64);
    }

    #[test]
    fn some_marks_are_long_before_a_receiver_answers() {
        let mut marks = Marks::default();
        let padded = |_| {
            let mark = marks.sent(to(1), 1472, 1)?;
            marks.pads(to(1)).then_some(mark.long)
        };
        let padded: Vec<u32> = (0..2000).filter_map(padded).collect();
        assert_eq!(padded[..4], [8, 12, 16, 20 + (32 - 20) * SOME]);
        assert_eq!(padded.len(), 7, "few later");
    }

    #[test]
    fn the_length_is_that_of_most() {
        let mut marks = Marks::default();
        assert_eq!(marks.sent(to(1), 1500, 1).map(|mark| mark.length), Some(1500));
        for _ in 0..3 {
            let _ = marks.sent(to(1), 1400, 10);
        }
        let mark = marks.sent(to(1), 1400, 64).expect("due");
        assert_eq!((mark.length, mark.long), (1400, 94));
        assert_eq!(marks.length_of(mark.nonce), Some(1400));
        assert_eq!(marks.sent(to(1), 900, 10), None, "short");
        assert_eq!(marks.length_of(mark.nonce ^ 1), None);
    }

    #[test]
    fn destinations_are_counted_apart_and_are_few() {
        let mut marks = Marks::default();
        let first: Vec<_> = (1..=5).map(|port| marks.sent(to(port), 1472, 1).map(|mark| mark.long)).collect();
        assert_eq!(first, [Some(1), Some(1), Some(1), Some(1), None]);
        assert_eq!(marks.sent(to(1), 1472, 1).map(|mark| mark.long), Some(2));
    }
}
