//! State of a sender at a receiver.

use alloc::collections::BTreeMap;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::{Run, Span, Time, Timers, timers};
use farcast_delivery::nack::{ContentState, earned};
use farcast_delivery::{Passage, Received};

use super::congestion::Congestion;
use super::heard::Heard;
use super::numbers::Numbers;
use super::object::Object;
use crate::message::{Answer, Data, Fec, NodeId, Point, Stamp, Terms};

timers! {
    /// Timers of a receiver, for each sender.
    pub(super) enum Timer {
        /// End of the back-off: requests may be sent.
        Backoff = "back-off",
        /// End of the hold-off: requested repairs have had time to arrive.
        Holdoff = "hold-off",
        /// Time of an acknowledgement.
        Ack = "acknowledge",
        /// Silence of the sender.
        Inactivity = "inactivity",
        /// Time of congestion feedback.
        Report = "report",
        /// End of the time without further congestion feedback.
        Rest = "rest",
    }
}

/// Identity of a sender's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) source: SocketAddr,
    pub(super) node: NodeId,
    pub(super) instance: u16,
}

/// Time without new content after which a sender's place goes to one that sends.
const STALE: Span = Span::from_secs(1);

/// Reasons for which a sender's place may go to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Yields {
    /// Nothing of the objects that the sender announces has come.
    Empty,
    /// The sender has left, and nothing of it is under way.
    Gone,
    /// No content of the sender comes any more.
    Stale,
}

/// Position in a sender's transmission: an object, and a block of it. Everything before is passed.
pub(super) type Position = (u32, u32);

#[derive(Clone, Debug)]
pub(super) struct Remote {
    pub(super) key: Key,
    /// Former address, if the sender has moved: its objects may have been offered from there.
    pub(super) former: Option<SocketAddr>,
    /// Group that the sender was heard on.
    pub(super) group: SocketAddr,
    pub(super) terms: Terms,
    /// GRTT, limited to what is believed.
    pub(super) grtt: Span,
    /// Numbers of the sender's objects, once it has mentioned any.
    pub(super) numbers: Option<Numbers>,
    /// Objects that are being received, by number.
    pub(super) objects: BTreeMap<u32, Object>,
    /// Lowest object that is over and not complete. Only objects before it can be acknowledged.
    pub(super) failed: Option<u32>,
    /// Current position of the sender.
    pub(super) position: Position,
    /// Code and octets of a segment, from the sender's last message about them.
    pub(super) fec: Fec,
    pub(super) segment_size: u16,
    /// Beginning of the last requests. When the sender is there again, it has returned to them.
    pub(super) asked_from: Position,
    /// Requests of others since the back-off began.
    pub(super) heard: Heard,
    /// State of congestion control, if the sender asks for feedback.
    pub(super) congestion: Option<Congestion>,
    /// Counter of the sender's messages that arrived, and of the missing ones between.
    pub(super) passage: Passage,
    /// Time stamp of the last probe, with the time of its arrival.
    pub(super) probed: Option<(Stamp, Time)>,
    /// Acknowledgement that is due.
    pub(super) ack: Option<Answer>,
    /// Object and point up to which this receiver is to acknowledge as soon as it can.
    pub(super) owed: Option<(u32, Point)>,
    /// Number of silences in a row.
    pub(super) silences: u32,
    pub(super) last_heard: Time,
    /// Time at which content was last stored; `None` if the sender has sent nothing that it announced.
    pub(super) fed: Option<Time>,
    /// `true` if the sender has left, or has been silent for too long.
    pub(super) gone: bool,
    /// `true` if the sender has begun another session, so that no arriving message belongs to this one.
    pub(super) past: bool,
    /// Octets that may be sent to the sender.
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

    /// Returns `true` if the sender has mentioned objects, and has not left.
    pub(super) fn is_known(&self) -> bool {
        !self.objects.is_empty() || !self.gone && self.numbers.is_some()
    }

    /// Returns the counters of object `number`, which is at hand.
    pub(super) fn received(&self, number: u32) -> Option<Received> {
        self.objects
            .get(&number)
            .map(|object| object.content.received.passed(object.content.passage, self.passage))
    }

    /// Returns `true` if the sender sends something that is received. A sender that only mentions objects keeps nobody
    /// waiting.
    pub(super) fn is_busy(&self) -> bool {
        self.fed.is_some() && self.is_known()
    }

    /// Returns the readiness with which the sender's place goes to another sender, the least first; `None` if it keeps
    /// the place. `sends` is `true` if the other sender has sent content.
    ///
    /// A sender chooses its own timing, so its place does not depend on that.
    pub(super) fn yields(&self, now: Time, sends: bool) -> Option<(Yields, Time)> {
        if self.objects.values().any(|object| object.content.state == ContentState::Verifying) {
            return None;
        }
        let Some(fed) = self.fed else { return Some((Yields::Empty, self.last_heard)) };
        if self.gone && self.objects.is_empty() {
            return Some((Yields::Gone, fed));
        }
        (sends && now.since(fed) >= STALE).then_some((Yields::Stale, fed))
    }

    /// Adds the credit for `octets` of the sender.
    pub(super) fn earn(&mut self, octets: u64) {
        self.credit = earned(self.credit, octets);
    }

    /// Ends this session, because the sender has begun another. No further messages are sent about this one.
    pub(super) fn pass(&mut self) {
        (self.gone, self.past, self.credit) = (true, true, 0);
        (self.owed, self.ack, self.timers) = (None, None, Timers::default());
    }

    /// Returns `true` if anything that the sender has mentioned, and that is wanted, is lacking.
    pub(super) fn is_lacking(&self) -> bool {
        !self.objects.is_empty()
            || self.numbers.as_ref().is_some_and(|n| n.unheard(u32::MAX).next().is_some())
    }

    /// Returns `true` if everything up to object `number` is there. Objects that were missed and cannot be had do not count.
    /// But a `number` up to the last refused one does: a sender that refuses it, or somebody in its name, must not be told
    /// that it is there.
    pub(super) fn has_up_to(&self, number: u32) -> bool {
        let Some(numbers) = &self.numbers else { return false };
        let known = number < numbers.next() && numbers.unheard(number + 1).next().is_none();
        let over = !numbers.is_refused(number) && self.objects.range(..=number).next().is_none();
        known && over && self.failed.is_none_or(|failed| failed > number)
    }

    /// Moves the beginning of searches in the objects up to `number`.
    pub(super) fn advance(&mut self, number: u32) {
        self.objects.range_mut(..=number).for_each(|(_, object)| object.content.advance());
    }

    /// Notes that object `number` is over and not complete.
    pub(super) fn note_failed(&mut self, number: u32) {
        self.failed = Some(self.failed.map_or(number, |failed| failed.min(number)));
    }

    /// Returns the number of blocks of object `number` that the sender has passed and not returned to. Their lacking
    /// symbols may be requested.
    pub(super) fn passed_of(&self, number: u32) -> u32 {
        match number.cmp(&self.position.0) {
            core::cmp::Ordering::Less => u32::MAX,
            core::cmp::Ordering::Equal => self.position.1,
            core::cmp::Ordering::Greater => 0,
        }
    }

    /// Ends the hold-off if `position`, where the sender is, lies no further than the last requests. The sender has
    /// returned to them, and symbols that are lacking after it has passed are requested anew (RFC 5740 §5.3).
    pub(super) fn note_return(&mut self, position: Position) {
        if position <= self.asked_from {
            self.timers.stop(Timer::Holdoff);
        }
    }

    /// Ends the hold-off if the last requests began with object `number`, whose INFO the sender sends. INFO does not
    /// change the sender's position.
    pub(super) fn note_info(&mut self, number: u32) {
        if self.asked_from == (number, 0) {
            self.timers.stop(Timer::Holdoff);
        }
    }

    /// Returns runs of objects of which nothing has come although the sender has passed them.
    pub(super) fn unheard(&self) -> impl Iterator<Item = Run> + '_ {
        let (number, block) = self.position;
        let end = number.saturating_add(u32::from(block > 0));
        self.numbers.iter().flat_map(move |numbers| numbers.unheard(end))
    }

    /// Returns the number of symbols of `data` that may be handled at once. A symbol of a new block, or one that
    /// completes a block, is handled apart, because it has consequences.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let number = self.numbers.as_ref().and_then(|numbers| numbers.of(data.object));
        let object = number.and_then(|number| self.objects.get(&number));
        match (number, object) {
            (Some(number), Some(object)) if (number, data.block) == self.position => object.prefix(data),
            _ => NonZeroU32::MIN,
        }
    }
}
