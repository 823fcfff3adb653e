//! The sender's side of narrow paths: counts long datagrams and decides when a mark is due.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use super::wire::{Mark, digest};

/// Most destinations that are counted: groups, or one receiver. Few datagrams go to others.
const DESTINATIONS: usize = 4;
/// Number of first marks, each beside one long datagram, so that short transfers find a narrow path too.
const EACH: u32 = 20;
/// After these marks: long datagrams between two marks, and the number of marks until there are fewer still.
const SOME: u32 = 8;
const OFTEN: u32 = 60;
/// Long datagrams between two later marks, for receivers that come late.
const MANY: u32 = 64;
/// Additional marks beside long datagrams that leave alone. They serve where a hop passes batches and drops single
/// datagrams.
const ALONE: u32 = 40;
/// Numbers of those first marks that are padded to the length of the pieces that would be tried first. Receivers then
/// say whether this length passes. All of them leave before a receiver can be sure that long datagrams do not.
const PADDED: [u32; 3] = [8, 12, 16];
/// One in so many later marks is padded, too.
const PADDED_LATER: u32 = 16;

/// Counts of long datagrams, by destination.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    counts: Vec<Count>,
    draws: RandomState,
    drawn: u64,
}

/// Count of the long datagrams to one destination.
#[derive(Debug)]
struct Count {
    to: SocketAddr,
    mark: Mark,
    /// Votes for this length, less the votes for others.
    weight: u32,
    /// Number of marks that have left, and the count in the last one.
    marks: u32,
    marked: u32,
    /// Number of marks beside datagrams that left alone.
    alone: u32,
    /// The last mark is to be padded.
    pads: bool,
}

impl Marks {
    /// Counts a batch of datagrams of `length` octets to `to`, of which the last may be shorter. Returns the mark to
    /// send, if one is due.
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
            // The length that most datagrams have is what counts: a rare long one says little.
            let mark = self.begin(length);
            self.counts[at] = Count::new(to, mark, datagrams);
        }
        self.counts[at].count(length, datagrams, alone)
    }

    /// Returns `true` if the last mark to `to` is to be padded.
    pub(crate) fn pads(&self, to: SocketAddr) -> bool {
        self.counts.iter().any(|count| count.to == to && count.pads)
    }

    /// Returns the length of the long datagrams whose marks have this nonce, if they are still counted.
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

    /// Adds the votes of `datagrams` for `length`. Returns `true` if it takes the place of the counted length.
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

    /// Sends a batch of `datagrams` datagrams of `length` octets and a short one.
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
