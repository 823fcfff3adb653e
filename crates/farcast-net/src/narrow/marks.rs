//! The sender's side: which datagrams are long, and when a mark is due.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use super::wire::{Mark, digest};

/// Destinations that are counted, at most: groups, or one receiver. Few datagrams go to others.
const DESTINATIONS: usize = 4;
/// Marks at first, one beside each long datagram, so that short transfers learn of it too.
const EACH: u32 = 20;
/// Long datagrams between marks after that, and marks until there are fewer still.
const SOME: u32 = 8;
const OFTEN: u32 = 60;
/// Long datagrams between marks for the rest, for receivers that come late.
const MANY: u32 = 64;
/// Marks beside long datagrams that leave by themselves, besides: where batches pass a hop that drops these.
const ALONE: u32 = 40;
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
    /// Marks beside datagrams that left by themselves.
    alone: u32,
    /// The last mark is to be a long one.
    pads: bool,
}

impl Marks {
    /// Counts a batch of datagrams of `length` octets to `to`, of which the last may be shorter; returns the mark to send,
    /// if one is due.
    pub(crate) fn sent(&mut self, to: SocketAddr, length: usize, batch: &[u8]) -> Option<Mark> {
        let datagrams = u32::try_from(batch.len() / length).ok()?;
        let alone = Some(batch).filter(|batch| batch.len() == length);
        let length = u16::try_from(length).ok()?;
        let at = match self.counts.iter().position(|count| count.to == to) {
            Some(at) => at,
            None if self.counts.len() < DESTINATIONS => {
                let mark = self.begin(length);
                self.counts.push(Count::new(to, mark, 0));
                self.counts.len() - 1
            }
            None => return None,
        };
        if self.counts[at].outweighed_by(length, datagrams) {
            // What most datagrams have is what matters: a rare long one says little.
            let mark = self.begin(length);
            self.counts[at] = Count::new(to, mark, datagrams);
        }
        self.counts[at].count(length, datagrams, alone)
    }

    /// Tells whether the last mark to `to` is to be a long one.
    pub(crate) fn pads(&self, to: SocketAddr) -> bool {
        self.counts.iter().any(|count| count.to == to && count.pads)
    }

    /// The length, of those that are counted, of marks with this nonce.
    pub(crate) fn length_of(&self, nonce: u64) -> Option<usize> {
        let count = self.counts.iter().find(|count| count.mark.nonce == nonce && count.marks > 0)?;
        Some(count.mark.length.into())
    }

    fn begin(&mut self, length: u16) -> Mark {
        self.drawn += 1;
        Mark { nonce: self.draws.hash_one(self.drawn), long: 0, length, alone: 0 }
    }
}

impl Count {
    const fn new(to: SocketAddr, mark: Mark, weight: u32) -> Self {
        Self { to, mark, weight, marks: 0, marked: 0, alone: 0, pads: false }
    }

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

    fn count(&mut self, length: u16, datagrams: u32, alone: Option<&[u8]>) -> Option<Mark> {
        if length < self.mark.length {
            return None;
        }
        self.mark.long = self.mark.long.wrapping_add(datagrams);
        self.pads = false;
        let every = match self.marks {
            ..EACH => 1,
            EACH..OFTEN => SOME,
            OFTEN.. => MANY,
        };
        let due = self.mark.long.wrapping_sub(self.marked) >= every;
        let tells = alone.is_some() && self.alone < ALONE;
        if !due && !tells {
            return None;
        }
        if due {
            (self.marks, self.marked) = (self.marks.saturating_add(1), self.mark.long);
            let later = self.marks > EACH && self.marks.is_multiple_of(PADDED_LATER);
            self.pads = PADDED.contains(&self.marks) || later;
        }
        self.alone += u32::from(tells);
        self.mark.alone = alone.map_or(0, digest);
        Some(self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([239, 0, 0, 1], port))
    }

    /// Sends one batch of `datagrams` of `length` octets and a short one.
    fn batch(marks: &mut Marks, port: u16, length: usize, datagrams: usize) -> Option<Mark> {
        marks.sent(to(port), length, &vec![0; length * datagrams + 1])
    }

    #[test]
    fn marks_are_many_at_first_and_few_later() {
        let mut marks = Marks::default();
        let sent: Vec<u32> =
            (0..2000).filter_map(|_| batch(&mut marks, 1, 1472, 1)).map(|m| m.long).collect();
        assert_eq!(sent[..20], (1..=20).collect::<Vec<_>>());
        assert_eq!(sent[20..23], [28, 36, 44]);
        let last = sent.len() - 1;
        assert_eq!(sent[last] - sent[last - 1], 64);
    }

    #[test]
    fn some_marks_are_long_before_a_receiver_answers() {
        let mut marks = Marks::default();
        let padded = |_| {
            let mark = batch(&mut marks, 1, 1472, 1)?;
            marks.pads(to(1)).then_some(mark.long)
        };
        let padded: Vec<u32> = (0..2000).filter_map(padded).collect();
        assert_eq!(padded[..4], [8, 12, 16, 20 + (32 - 20) * SOME]);
        assert_eq!(padded.len(), 7, "few later");
    }

    #[test]
    fn the_length_is_that_of_most() {
        let mut marks = Marks::default();
        assert_eq!(batch(&mut marks, 1, 1500, 1).map(|mark| mark.length), Some(1500));
        for _ in 0..3 {
            let _ = batch(&mut marks, 1, 1400, 10);
        }
        let mark = batch(&mut marks, 1, 1400, 64).expect("due");
        assert_eq!((mark.length, mark.long), (1400, 94));
        assert_eq!(marks.length_of(mark.nonce), Some(1400));
        assert_eq!(batch(&mut marks, 1, 900, 10), None, "short");
        assert_eq!(marks.length_of(mark.nonce ^ 1), None);
    }

    #[test]
    fn destinations_are_counted_apart_and_are_few() {
        let mut marks = Marks::default();
        let first: Vec<_> =
            (1..=5).map(|port| batch(&mut marks, port, 1472, 1).map(|mark| mark.long)).collect();
        assert_eq!(first, [Some(1), Some(1), Some(1), Some(1), None]);
        assert_eq!(batch(&mut marks, 1, 1472, 1).map(|mark| mark.long), Some(2));
    }

    #[test]
    fn datagrams_that_leave_by_themselves_have_more_marks_that_name_them() {
        let mut marks = Marks::default();
        for _ in 0..10_000 {
            assert!(batch(&mut marks, 1, 1472, 40).is_none_or(|mark| mark.alone == 0));
        }
        let sent: Vec<Mark> = (0..1000_u16)
            .filter_map(|n| marks.sent(to(1), 1472, &[&n.to_be_bytes()[..], &[0; 1470]].concat()))
            .collect();
        assert_eq!(sent.len(), 40 + (1000 - 40) / 64);
        assert!(sent.windows(2).all(|two| two[0].alone != two[1].alone && two[0].alone != 0));
    }
}
