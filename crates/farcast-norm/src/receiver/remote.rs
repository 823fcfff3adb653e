//! A sender as a receiver knows it.

use alloc::collections::BTreeMap;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::{Run, Span, Time, Timers, timers};
use farcast_delivery::{Passage, Received};

use super::congestion::Congestion;
use super::heard::Heard;
use super::numbers::Numbers;
use super::object::{Object, State};
use crate::message::{Answer, Data, Fec, NodeId, Point, Stamp, Terms};
use crate::timing::earned;

timers! {
    /// A receiver's timers, for each sender.
    pub(super) enum Timer {
        /// What it asks for may be said.
        Backoff = "back-off",
        /// What it asked for has had time to come.
        Holdoff = "hold-off",
        /// An acknowledgement.
        Ack = "acknowledge",
        /// Nothing was heard of the sender for long.
        Inactivity = "inactivity",
        /// What there is to say of congestion.
        Report = "report",
        /// Of congestion enough was said.
        Rest = "rest",
    }
}

/// Which sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) source: SocketAddr,
    pub(super) node: NodeId,
    pub(super) instance: u16,
}

/// After so long without new content, the place of a sender goes to one that sends.
const STALE: Span = Span::from_secs(1);

/// Reasons that the place of a sender may go to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Yields {
    /// Nothing of what it speaks of has come.
    Empty,
    /// It has left, and nothing of it is under way.
    Gone,
    /// No content comes any more.
    Stale,
}

/// A place in what a sender sends: an object, and a block of it; all before is passed.
pub(super) type Position = (u32, u32);

#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub(super) key: Key,
    /// Address that it was heard from before, if it has moved: its objects may have been offered from there.
    pub(super) former: Option<SocketAddr>,
    /// The group that it was heard on.
    pub(super) group: SocketAddr,
    pub(super) terms: Terms,
    /// The group's greatest round trip, as far as that is believed.
    pub(super) grtt: Span,
    /// Of what objects it has spoken, once it has.
    pub(super) numbers: Option<Numbers>,
    /// The objects that are being received, by number.
    pub(super) objects: BTreeMap<u32, Object>,
    /// The lowest object that is over and not complete: what it is to acknowledge lies before.
    pub(super) failed: Option<u32>,
    /// Where it is.
    pub(super) position: Position,
    /// How its symbols are numbered, and octets of a segment, as it said last.
    pub(super) fec: Fec,
    pub(super) segment_size: u16,
    /// Where what it asked for last begins: a sender that is there again has gone back to it.
    pub(super) asked_from: Position,
    /// What others have asked for since the back-off began.
    pub(super) heard: Heard,
    /// What is known of the congestion on the way, if it asks.
    pub(super) congestion: Option<Congestion>,
    /// What came of it, and what is missing between.
    pub(super) passage: Passage,
    /// Its time of the last probe, and when that came.
    pub(super) probed: Option<(Stamp, Time)>,
    /// The acknowledgement that is due.
    pub(super) ack: Option<Answer>,
    /// Up to which object, and the place, it is to acknowledge as soon as it can.
    pub(super) owed: Option<(u32, Point)>,
    /// How often nothing was heard for long.
    pub(super) silences: u32,
    pub(super) last_heard: Time,
    /// When content of it was stored last; `None` while nothing stands behind what it says.
    pub(super) fed: Option<Time>,
    /// It has left, or has been silent for too long.
    pub(super) gone: bool,
    /// It has begun another session since: nothing that comes is of this one.
    pub(super) past: bool,
    /// Octets that may be said because of what it has said.
    pub(super) credit: u64,
    pub(super) timers: Timers<Timer>,
}

impl Remote {
    pub(super) fn new(key: Key, group: SocketAddr, terms: Terms, now: Time) -> Self {
        Self {
            key,
            former: None,
            group,
            terms,
            grtt: terms.grtt.span(),
            numbers: None,
            objects: BTreeMap::new(),
            failed: None,
            position: (0, 0),
            fec: Fec::ReedSolomon8,
            segment_size: 0,
            asked_from: (0, 0),
            heard: Heard::default(),
            congestion: None,
            passage: Passage::default(),
            probed: None,
            ack: None,
            owed: None,
            silences: 0,
            last_heard: now,
            fed: None,
            gone: false,
            past: false,
            credit: 0,
            timers: Timers::default(),
        }
    }

    /// Whether it has spoken of objects, and has not left.
    pub(super) fn is_known(&self) -> bool {
        !self.objects.is_empty() || !self.gone && self.numbers.is_some()
    }

    /// What has come of object `number`, which is at hand.
    pub(super) fn received(&self, number: u32) -> Option<Received> {
        self.objects.get(&number).map(|object| object.received.passed(object.passage, self.passage))
    }

    /// Whether it sends something that is received. A sender that only speaks of objects keeps nobody waiting.
    pub(super) fn is_busy(&self) -> bool {
        self.fed.is_some() && self.is_known()
    }

    /// How readily its place goes to another sender, the least first; `None` if it keeps it. `sends` says whether the
    /// other one has sent content.
    ///
    /// A sender chooses its own timing, so its place does not depend on that.
    pub(super) fn yields(&self, now: Time, sends: bool) -> Option<(Yields, Time)> {
        if self.objects.values().any(|object| object.state == State::Verifying) {
            return None;
        }
        let Some(fed) = self.fed else { return Some((Yields::Empty, self.last_heard)) };
        if self.gone && self.objects.is_empty() {
            return Some((Yields::Gone, fed));
        }
        (sends && now.since(fed) >= STALE).then_some((Yields::Stale, fed))
    }

    /// It has said `octets`.
    pub(super) fn earn(&mut self, octets: u64) {
        self.credit = earned(self.credit, octets);
    }

    /// It has begun another session: of this one nothing is said any more.
    pub(super) fn pass(&mut self) {
        (self.gone, self.past, self.credit) = (true, true, 0);
        (self.owed, self.ack, self.timers) = (None, None, Timers::default());
    }

    /// Whether anything that it has spoken of, and that is wanted, is not there.
    pub(super) fn is_lacking(&self) -> bool {
        !self.objects.is_empty()
            || self.numbers.as_ref().is_some_and(|n| n.unheard(u32::MAX).next().is_some())
    }

    /// Whether everything up to `number` is there.
    pub(super) fn has_up_to(&self, number: u32) -> bool {
        let Some(numbers) = &self.numbers else { return false };
        let known = number < numbers.next() && numbers.unheard(number + 1).next().is_none();
        let over = self.objects.range(..=number).next().is_none();
        known && over && self.failed.is_none_or(|failed| failed > number)
    }

    /// It is over with object `number`, which is not there.
    pub(super) fn note_failed(&mut self, number: u32) {
        self.failed = Some(self.failed.map_or(number, |failed| failed.min(number)));
    }

    /// Of the blocks of object `number`, how many it has passed and is not before again: what lacks of them may be
    /// asked for.
    pub(super) fn passed_of(&self, number: u32) -> u32 {
        match number.cmp(&self.position.0) {
            core::cmp::Ordering::Less => u32::MAX,
            core::cmp::Ordering::Equal => self.position.1,
            core::cmp::Ordering::Greater => 0,
        }
    }

    /// It is at `position`: where that is no further than what was asked for, it has gone back to that, and what lacks
    /// once it has passed is asked for anew (RFC 5740 §5.3).
    pub(super) fn note_return(&mut self, position: Position) {
        if position <= self.asked_from {
            self.timers.stop(Timer::Holdoff);
        }
    }

    /// It says what object `number` is, which stands before its first block, and moves it nowhere.
    pub(super) fn note_info(&mut self, number: u32) {
        if self.asked_from == (number, 0) {
            self.timers.stop(Timer::Holdoff);
        }
    }

    /// Runs of objects of which nothing has come although they were passed.
    pub(super) fn unheard(&self) -> impl Iterator<Item = Run> + '_ {
        let (number, block) = self.position;
        let end = number.saturating_add(u32::from(block > 0));
        self.numbers.iter().flat_map(move |numbers| numbers.unheard(end))
    }

    /// How many symbols of `data` may come at once: what comes of a new block, or completes one, has consequences.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let number = self.numbers.as_ref().and_then(|numbers| numbers.of(data.object));
        let object = number.and_then(|number| self.objects.get(&number));
        match (number, object) {
            (Some(number), Some(object)) if (number, data.block) == self.position => object.prefix(data),
            _ => NonZeroU32::MIN,
        }
    }
}
