//! A batch of entries, which the real-time side hands to the writer at once.

use std::vec::Drain;

use farcast_core::Time;

use super::CauseId;
use crate::packets::PacketRecord;
use crate::pcapng::Direction;

/// A captured packet without its octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captured {
    pub(super) interface: u32,
    pub(super) at: Time,
    pub(super) direction: Direction,
}

/// An entry to write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// A line of the log.
    Record(PacketRecord<CauseId>),
    /// A packet of the capture, with the number of its octets.
    Captured(Captured, usize),
}

/// Entries, and the octets of those that are captured, one after the other. Its memory never grows.
#[derive(Debug, Default)]
pub(super) struct Batch {
    entries: Vec<Entry>,
    octets: Vec<u8>,
    /// New names for the table of causes.
    causes: Vec<String>,
    most_entries: usize,
    most_octets: usize,
}

impl Batch {
    pub(super) fn new(most_entries: usize, most_octets: usize) -> Self {
        let (entries, octets) = (Vec::with_capacity(most_entries), Vec::with_capacity(most_octets));
        Self { entries, octets, causes: Vec::new(), most_entries, most_octets }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a name to the table of causes, for the entries that follow. This may allocate.
    pub(super) fn push_cause(&mut self, name: String) {
        self.causes.push(name);
    }

    /// Takes the names that were added.
    pub(super) fn causes(&mut self) -> Drain<'_, String> {
        self.causes.drain(..)
    }

    /// Adds `record`. Returns `false` if there was no room.
    pub(super) fn push_record(&mut self, record: &PacketRecord<CauseId>) -> bool {
        let room = self.entries.len() < self.most_entries;
        if room {
            self.entries.push(Entry::Record(*record));
        }
        room
    }

    /// Adds `captured` with its `octets`. Returns `false` if there was no room.
    pub(super) fn push_captured(&mut self, captured: Captured, octets: &[u8]) -> bool {
        let left = self.most_octets - self.octets.len();
        let room = self.entries.len() < self.most_entries && octets.len() <= left;
        if room {
            self.entries.push(Entry::Captured(captured, octets.len()));
            self.octets.extend_from_slice(octets);
        }
        room
    }

    /// Calls `each` for every entry with its octets; a record has none.
    pub(super) fn each(&self, mut each: impl FnMut(&Entry, &[u8])) {
        let mut rest = self.octets.as_slice();
        for entry in &self.entries {
            let len = if let Entry::Captured(_, len) = entry { *len } else { 0 };
            let (octets, behind) = rest.split_at(len);
            rest = behind;
            each(entry, octets);
        }
    }

    /// Empties the batch and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.octets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_once() {
        let mut batch = Batch::new(100, 1000);
        let captured = Captured { interface: 0, at: Time::ZERO, direction: Direction::Inbound };
        let room = |batch: &Batch| (batch.entries.as_ptr(), batch.octets.as_ptr(), batch.octets.capacity());
        let before = room(&batch);
        for _ in 0..3 {
            let pushed = (0..200).filter(|_| batch.push_captured(captured, &[7; 30])).count();
            // 33 packets have 990 octets; ten octets are left for one that is shorter.
            assert_eq!(pushed, 33);
            assert!(batch.push_captured(captured, &[8; 10]));
            assert!(!batch.push_captured(captured, &[9; 1]));
            let pushed = (0..200).filter(|_| batch.push_captured(captured, &[])).count();
            assert_eq!(pushed, 100 - 34);
            assert_eq!(room(&batch), before);
            batch.clear();
        }
    }

    #[test]
    fn each_entry_has_its_own_octets() {
        let mut batch = Batch::new(4, 10);
        for (interface, octets) in [(0, &b"abc"[..]), (1, b""), (2, b"de")] {
            let captured = Captured { interface, at: Time::ZERO, direction: Direction::Outbound };
            assert!(batch.push_captured(captured, octets));
        }
        let mut seen = Vec::new();
        batch.each(|_, octets| seen.push(octets.to_vec()));
        assert_eq!(seen, [&b"abc"[..], b"", b"de"]);
    }
}
