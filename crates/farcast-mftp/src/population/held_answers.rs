//! Answers that are held back to spread them, and NAKs of other receivers that make them needless (draft §4.1.1).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use farcast_core::{Among, Bitmap, Run, Span, Time};
use farcast_delivery::Channel;

use super::Population;
use super::asking::{Lists, MissingList};
use crate::message::Nak;
use crate::receiver::answers::{Question, says_the_same};

/// NAK of another receiver, with the transmission that it is for.
#[derive(Clone, Copy)]
pub(super) struct OverheardNak<'a> {
    pub(super) transmission: u32,
    pub(super) nak: &'a Nak,
}

/// NAK of another receiver, with the segments of its block.
#[derive(Clone, Copy)]
struct BlockNak<'a> {
    block: Run,
    nak: &'a Nak,
}

/// Answers to one request that are held back, each receiver's for a time of its own.
#[derive(Clone, Debug)]
pub(super) struct HeldAnswers {
    question: Question,
    lists: Lists,
    /// Time of each answer and its place in `lists`, in the order of time.
    queue: Vec<(Time, u32)>,
    next: usize,
    /// Places of the receivers that have not answered.
    waiting: Bitmap,
    /// Places, and blocks for which another receiver has sent the same NAK.
    needless: BTreeSet<(u32, u32)>,
}

impl HeldAnswers {
    pub(super) fn due(&self) -> Time {
        self.queue.get(self.next).map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Returns the place of `receiver`, if it has not answered.
    fn place(&self, receiver: u32) -> Option<u32> {
        let place = self.lists.receivers.binary_search(&receiver).ok()? as u32;
        self.waiting.contains(place).then_some(place)
    }
}

impl Population {
    /// Holds back the answers of the receivers in `lists`, each for its own part of `window`.
    pub(super) fn hold(&mut self, now: Time, question: Question, lists: Lists, window: Span) {
        let places = lists.receivers.len() as u32;
        let wait = |(place, &receiver): (u32, &u32)| (now + self.wait(now, receiver, window), place);
        let mut queue: Vec<(Time, u32)> = (0..places).zip(&lists.receivers).map(wait).collect();
        queue.sort_unstable();
        let waiting = Bitmap::full(places);
        self.held.push(HeldAnswers { question, lists, queue, next: 0, waiting, needless: BTreeSet::new() });
    }

    /// Sends the answers to earlier requests that are still held back when a new request comes (draft §4.1.1). A
    /// request that was sent twice against loss does not undo the spreading of its answers.
    pub(super) fn flush(&mut self, now: Time, question: &Question) {
        self.excluded.clear();
        self.excluded.extend_from_slice(&self.lost);
        for mut held in core::mem::take(&mut self.held) {
            let mut stay = Vec::new();
            for &(at, place) in &held.queue[held.next..] {
                let receiver = held.lists.receivers[place as usize];
                if held.question == *question {
                    // The receiver has an answer pending and makes no other.
                    self.excluded.push(receiver);
                    stay.push((at, place));
                } else if self.lost.binary_search(&receiver).is_ok() {
                    stay.push((at, place));
                } else {
                    held.waiting.remove(place);
                    self.answer_held(now, &held, place);
                }
            }
            if !stay.is_empty() {
                (held.queue, held.next) = (stay, 0);
                self.held.push(held);
            }
        }
        let config = &self.config;
        let survey = self.cohorts.survey(|control| control.takes_data(config).is_ok());
        self.excluded.extend_from_slice(&survey.outside);
        self.excluded.sort_unstable();
        self.excluded.dedup();
    }

    /// Sends the answers that are due.
    pub(super) fn answer_due(&mut self, now: Time) {
        let mut all = core::mem::take(&mut self.held);
        for held in &mut all {
            while held.due() <= now {
                let (at, place) = held.queue[held.next];
                held.next += 1;
                held.waiting.remove(place);
                self.answer_held(at, held, place);
            }
        }
        all.retain(|held| held.due() != Time::NEVER);
        self.held = all;
    }

    fn answer_held(&mut self, at: Time, held: &HeldAnswers, place: u32) {
        let needless = |block| held.needless.contains(&(place, block));
        self.answer(at, &held.question, held.lists.get(place as usize), Some(&needless));
    }

    /// Handles another receiver's NAK of this many octets at the fan-out. Receivers that hear it while they wait to
    /// send the same NAK for its block need not send it.
    pub(super) fn overhear(
        &mut self,
        now: Time,
        octets: u64,
        theirs: OverheardNak<'_>,
        channel: &mut Channel<'_>,
    ) {
        let mut who = core::mem::take(&mut self.who);
        self.who_would_say(theirs, &mut who);
        let theirs = theirs.nak;
        let among = if channel.data_only { &[][..] } else { &who[..] };
        self.draw(now, octets, Among::These(among), channel);
        let mut lost = self.lost.iter().copied().peekable();
        for &receiver in &who {
            if lost.next_if_eq(&receiver).is_some() {
                continue;
            }
            for held in self.held.iter_mut().filter(|held| held.question.blocks.contains(theirs.block)) {
                if let Some(place) = held.place(receiver) {
                    held.needless.insert((place, theirs.block));
                }
            }
        }
        self.who = who;
    }

    /// Collects into `who`, in ascending order, the receivers that wait to send the same NAK for its block as `theirs`.
    fn who_would_say(&self, heard: OverheardNak<'_>, who: &mut Vec<u32>) {
        let OverheardNak { transmission, nak: theirs } = heard;
        who.clear();
        let Some(terms) = &self.terms else { return };
        let block = terms.geometry().block_run(theirs.block);
        let first = theirs.missing.next_set(0);
        let (Some(block), Some(first)) = (block, first.filter(|_| !self.held.is_empty())) else { return };
        let ours = transmission == terms.transmission && theirs.server == terms.server;
        if !ours || first >= block.count() {
            return;
        }
        // A receiver that lacks the same segments lacks the first of them.
        self.lacking.who(block.first() + first, who);
        let mut lacks = Vec::new();
        let theirs = BlockNak { block, nak: theirs };
        who.retain(|&receiver| {
            self.id(receiver) != theirs.nak.client
                && self.held.iter().any(|held| self.would_say(held, receiver, theirs, &mut lacks))
        });
    }

    /// Returns `true` if `receiver` waits in `held` to send the same NAK as `theirs`. `lacks` is a buffer.
    fn would_say(
        &self,
        held: &HeldAnswers,
        receiver: u32,
        theirs: BlockNak<'_>,
        lacks: &mut Vec<u32>,
    ) -> bool {
        let (Some(place), Some(terms)) = (held.place(receiver), &self.terms) else { return false };
        let BlockNak { block, nak } = theirs;
        let asked = held.lists.get(place as usize).segments;
        lacks.clear();
        let from = asked.partition_point(|&segment| segment < block.first());
        let of_block = asked[from..].iter().copied().take_while(|&segment| segment < block.end());
        lacks.extend(of_block.filter(|&segment| self.lacking.lacks(segment, receiver)));
        let gaps = MissingList { segments: lacks, parity: self.parity.as_ref(), receiver };
        says_the_same(&gaps, &held.question, terms, nak)
    }
}
