//! Status requests and NAKs (draft §11.2.2, §4.1.1).

use alloc::vec::Vec;

use farcast_core::{Among, Message as _, Run, Span, Time};

use farcast_delivery::Channel;

use super::parity::PopulationParity;
use super::{Feedback, Population};
use crate::message::{Body, Message, Nak, Naks, StatusType};
use crate::receiver::answers::{self, Gaps, Question};

/// Segments that one receiver lacks, in ascending order, and the parity that it holds.
pub(super) struct MissingList<'a> {
    pub(super) segments: &'a [u32],
    pub(super) parity: Option<&'a PopulationParity>,
    pub(super) receiver: u32,
}

impl Gaps for MissingList<'_> {
    fn next_gap(&self, from: u32) -> Option<u32> {
        self.segments.get(self.segments.partition_point(|&segment| segment < from)).copied()
    }

    fn gaps_in(&self, run: Run, each: &mut dyn FnMut(Run)) {
        let begin = self.segments.partition_point(|&segment| segment < run.first());
        let within = |&segment: &u32| segment < run.end();
        let mut rest = self.segments[begin..].iter().copied().take_while(within).peekable();
        while let Some(first) = rest.next() {
            let mut count = 1;
            while rest.next_if_eq(&(first + count)).is_some() {
                count += 1;
            }
            if let Some(run) = Run::new(first, count) {
                each(run);
            }
        }
    }

    fn is_rebuilding(&self, _block: u32) -> bool {
        // A block that can be rebuilt is rebuilt at once.
        false
    }

    fn parity_held(&self, block: u32) -> u32 {
        self.parity.map_or(0, |parity| parity.held(block, self.receiver))
    }
}

/// Segments that some receivers lacked of the requested blocks: their lists, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) receivers: Vec<u32>,
    /// Start of each receiver's list in `segments`, and the end of the last list.
    begins: Vec<u32>,
    segments: Vec<u32>,
}

/// Segments that a receiver lacked when it was asked, in ascending order.
#[derive(Clone, Copy)]
pub(super) struct LackedSegments<'a> {
    pub(super) receiver: u32,
    pub(super) segments: &'a [u32],
}

impl Lists {
    pub(super) fn get(&self, index: usize) -> LackedSegments<'_> {
        let (begin, end) = (self.begins[index] as usize, self.begins[index + 1] as usize);
        LackedSegments { receiver: self.receivers[index], segments: &self.segments[begin..end] }
    }
}

impl Population {
    /// Handles a status request. The receivers that take part and have heard it answer at once, or after a part of
    /// `window`, or else of the back-off window. The receivers in `self.lost` have not heard it.
    pub(super) fn ask(
        &mut self,
        now: Time,
        question: Question,
        window: Option<Span>,
        channel: &mut Channel<'_>,
    ) {
        self.flush(now, &question);
        let Some(terms) = &self.terms else { return };
        let turns = window.is_some();
        let window = window.unwrap_or(terms.backoff);
        let most = question.blocks.count() <= self.config.naks_per_request;
        if let Some(losses) = channel
            .merged
            .as_deref_mut()
            .filter(|_| !turns && window.is_zero() && most && question.status == StatusType::NakOnly)
        {
            let overhead = channel.overhead;
            return self.answer_merged(now, &question, losses, overhead);
        }
        let lists = self.lists(&question);
        if window.is_zero() {
            for index in 0..lists.receivers.len() {
                self.answer(now, &question, lists.get(index), None);
            }
            return;
        }
        self.hold(now, question, lists, window);
    }

    /// Returns the segments that each answering receiver lacks of the requested blocks.
    fn lists(&mut self, question: &Question) -> Lists {
        let Some(segments) = self.segments(question) else { return Lists::default() };
        let mut counts = alloc::vec![0u32; self.receivers as usize];
        for segment in self.lacking.open_in(segments) {
            self.lacking.for_each(segment, |receiver| counts[receiver as usize] += 1);
        }
        for &receiver in &self.excluded {
            counts[receiver as usize] = 0;
        }
        let mut lists = Lists::default();
        let everyone = question.status == StatusType::All;
        let mut begin = 0;
        for receiver in 0..self.receivers {
            let count = core::mem::replace(&mut counts[receiver as usize], u32::MAX);
            let answers =
                everyone && self.excluded.binary_search(&receiver).is_err() && self.is_receiving(receiver);
            if count > 0 || answers {
                lists.receivers.push(receiver);
                lists.begins.push(begin);
                // From here on, `counts` is the place of the receiver's next segment.
                counts[receiver as usize] = begin;
                begin += count;
            }
        }
        lists.begins.push(begin);
        lists.segments.resize(begin as usize, 0);
        for segment in self.lacking.open_in(segments) {
            self.lacking.for_each(segment, |receiver| {
                let place = &mut counts[receiver as usize];
                if *place != u32::MAX {
                    lists.segments[*place as usize] = segment;
                    *place += 1;
                }
            });
        }
        lists
    }

    /// Returns the segments from the first to the last block of a question.
    fn segments(&self, question: &Question) -> Option<Run> {
        let geometry = self.terms.as_ref()?.geometry();
        let (first, last) =
            (geometry.block_run(question.blocks.first())?, geometry.block_run(question.blocks.last())?);
        Run::new(first.first(), last.end() - first.first())
    }

    /// Sends the answer of a receiver that lacked these segments when it was asked. If it has `waited`, it may have
    /// received some of them, and NAKs for some blocks are needless.
    pub(super) fn answer(
        &mut self,
        at: Time,
        question: &Question,
        lacked: LackedSegments<'_>,
        waited: Option<&dyn Fn(u32) -> bool>,
    ) {
        let LackedSegments { receiver, segments } = lacked;
        let Some(terms) = &self.terms else { return };
        if waited.is_some() && !self.is_receiving(receiver) {
            return;
        }
        let kept: Vec<u32>;
        let segments = if waited.is_some() {
            kept = segments.iter().copied().filter(|&s| self.lacking.lacks(s, receiver)).collect();
            &kept
        } else {
            segments
        };
        let most = self.config.naks_per_request;
        let gaps = MissingList { segments, parity: self.parity.as_ref(), receiver };
        let naks = answers::naks(&gaps, question, terms, self.id(receiver), most);
        for nak in naks.into_iter().filter(|nak| waited.is_none_or(|needless| !needless(nak.block))) {
            self.say_nak(at, receiver, nak);
        }
        if question.status == StatusType::All {
            // The ACK comes last, so that the sender has all NAKs before it.
            self.say_ack(at, receiver, question);
        }
    }

    fn say_nak(&mut self, at: Time, receiver: u32, nak: Nak) {
        self.stats.naks += 1;
        self.stats.naked_dtus += u64::from(nak.missing.count());
        self.naked[receiver as usize] += nak.missing.count();
        self.say(at, receiver, Body::Nak(nak));
    }

    /// Sends the merged NAKs of all answering receivers, block by block. Except for the counts, the work does not
    /// depend on the number of receivers that lack a segment.
    fn answer_merged(
        &mut self,
        now: Time,
        question: &Question,
        losses: &mut dyn farcast_core::Losses,
        overhead: u16,
    ) {
        let (mut senders, mut lost) = (Vec::new(), Vec::new());
        for block in question.blocks.segments() {
            let Some(terms) = &self.terms else { return };
            let Some(asked) = question.segments(terms, block) else { continue };
            let missing = answers::empty_map(terms, block);
            let mut naks = Naks { server: terms.server, pass: question.pass, block, missing, count: 0 };
            self.count(asked, &mut senders);
            if senders.is_empty() {
                continue;
            }
            let nak = self.sample_nak(&naks, senders[0]);
            lost.clear();
            let octets = nak.wire_len(0) as u64 + u64::from(overhead);
            losses.draw(now, octets, Among::These(&senders), &mut lost);
            self.stats.naks += senders.len() as u64;
            self.stats.merged += senders.len() as u64;
            self.stats.merged_octets += senders.len() as u64 * octets;
            self.stats.naks_lost += lost.len() as u64;
            self.unite(block, asked, &lost, &mut naks);
            naks.count = (senders.len() - lost.len()) as u64;
            if naks.count > 0 {
                self.feedback.push_back((now, Feedback::Merged(naks)));
            }
        }
    }

    /// Collects into `senders`, in ascending order, the receivers that lack a segment of `asked` and answer. Also
    /// counts the requests of each.
    fn count(&mut self, asked: Run, senders: &mut Vec<u32>) {
        senders.clear();
        self.mark += 1;
        let (mark, marks, naked) = (self.mark, &mut self.marks, &mut self.naked);
        for &receiver in &self.excluded {
            marks[receiver as usize] = u32::MAX;
        }
        let mut dtus = 0u64;
        for segment in self.lacking.open_in(asked) {
            self.lacking.for_each(segment, |receiver| {
                let last = &mut marks[receiver as usize];
                if *last == u32::MAX {
                    return;
                }
                if *last != mark {
                    *last = mark;
                    senders.push(receiver);
                }
                naked[receiver as usize] += 1;
                dtus += 1;
            });
        }
        for &receiver in &self.excluded {
            marks[receiver as usize] = 0;
        }
        self.stats.naked_dtus += dtus;
        // If most receivers lost a segment, a pass over all receivers is faster than sorting.
        if senders.len() > self.receivers as usize / 16 {
            senders.clear();
            senders.extend((0..self.receivers).filter(|&receiver| marks[receiver as usize] == mark));
        } else {
            senders.sort_unstable();
        }
    }

    /// Returns a NAK of this block; all of them have the same length.
    fn sample_nak(&self, naks: &Naks, receiver: u32) -> Message {
        let Naks { server, pass, block, missing, .. } = naks.clone();
        let nak =
            Nak { server, client: self.id(receiver), pass, block, missing, parity_held: 0, unstored: 0 };
        Message {
            proof: None,
            transmission: self.terms.as_ref().map_or(0, |terms| terms.transmission),
            body: Body::Nak(nak),
        }
    }

    /// Unites the segments of `asked` that receivers lack, except those in `lost` and the excluded ones.
    fn unite(&mut self, block: u32, asked: Run, lost: &[u32], naks: &mut Naks) {
        let Some(terms) = &self.terms else { return };
        let first = block * terms.geometry().block_size();
        let simple = lost.is_empty() && self.excluded.is_empty();
        let silent = |receiver: &u32| {
            lost.binary_search(receiver).is_ok() || self.excluded.binary_search(receiver).is_ok()
        };
        for segment in self.lacking.open_in(asked) {
            let wanted = simple || self.lacking.any(segment, |receiver| !silent(&receiver));
            if wanted {
                naks.missing.insert(segment - first);
            }
        }
    }
}
