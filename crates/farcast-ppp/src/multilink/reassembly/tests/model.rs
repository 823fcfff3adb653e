//! Reassembly by the letter of RFC 1990 §4.1: everything ever received is kept, and each time all of it is looked at.

use std::collections::BTreeMap;
use std::vec::Vec;

/// A fragment as it was sent; its number counts from the start of the bundle.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) sequence: u64,
    pub(super) begins: bool,
    pub(super) ends: bool,
    pub(super) octets: Vec<u8>,
}

/// Position that a link has for M.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// The link joined at this M and has carried nothing.
    Joined(Option<u64>),
    Received(u64),
}

#[derive(Default)]
pub(super) struct Model {
    fragments: BTreeMap<u64, Sent>,
    links: BTreeMap<usize, Last>,
    /// M; none before every link has carried something. It never goes back.
    m: Option<u64>,
    /// Every number below it is decided.
    decided: u64,
    pub(super) released: Vec<Vec<u8>>,
}

impl Model {
    pub(super) fn join(&mut self, link: usize) {
        self.links.entry(link).or_insert(Last::Joined(self.m));
    }

    pub(super) fn leave(&mut self, link: usize) {
        if self.links.remove(&link).is_some() {
            self.look();
        }
    }

    /// Takes a fragment from a sender that keeps to the rules; one on a link that is not a member does not count, nor
    /// one of a packet that was given up.
    pub(super) fn receive(&mut self, link: usize, sent: &Sent) {
        if !self.links.contains_key(&link) || sent.sequence < self.decided {
            return;
        }
        self.links.insert(link, Last::Received(sent.sequence));
        self.fragments.insert(sent.sequence, sent.clone());
        self.look();
    }

    fn look(&mut self) {
        let lasts = self.links.values().map(|&last| match last {
            Last::Joined(m) => m,
            Last::Received(sequence) => Some(sequence),
        });
        // Without links nothing is to come any more: M is past the highest.
        let highest = self.fragments.keys().next_back().copied();
        let lowest = lasts.min().unwrap_or(Some(highest.map_or(0, |highest| highest + 1)));
        self.m = self.m.max(lowest);
        while self.release_one() || self.give_up_one() {}
    }

    /// "Reassembly of the packet is complete if all sequence numbers up to that fragment have been received."
    fn release_one(&mut self) -> bool {
        let mut packet = Vec::new();
        for sequence in self.decided.. {
            let Some(fragment) = self.fragments.get(&sequence) else { return false };
            if fragment.begins != (sequence == self.decided) {
                return false;
            }
            packet.extend(&fragment.octets);
            if fragment.ends {
                self.released.push(packet);
                self.decided = sequence + 1;
                return true;
            }
        }
        false
    }

    /// "A lost fragment is detected when M advances past the sequence number of a fragment bearing an (E)nding bit of a
    /// packet which has not been completely reassembled"; then "discard all fragments up to the lowest numbered
    /// fragment with an ending bit (possibly deduced) greater than or equal to U".
    fn give_up_one(&mut self) -> bool {
        let Some(m) = self.m else { return false };
        let missing = (self.decided..u64::MAX).find(|sequence| !self.fragments.contains_key(sequence));
        let lost = missing.expect("some number is missing");
        let ends = self.fragments.values().filter(|fragment| fragment.ends).map(|fragment| fragment.sequence);
        let deduced = self.fragments.values().filter(|fragment| fragment.begins && fragment.sequence > 0);
        let deduced = deduced.map(|fragment| fragment.sequence - 1);
        match ends.chain(deduced).filter(|&end| end >= lost).min() {
            Some(end) if m > end => {
                self.decided = end + 1;
                true
            }
            _ => false,
        }
    }
}
