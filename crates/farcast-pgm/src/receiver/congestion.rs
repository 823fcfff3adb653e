//! Reports of a receiver to a source that asks about congestion: PGMCC (draft-ietf-rmt-bb-pgmcc-03, section 4).

use core::net::IpAddr;

use farcast_core::{Span, Time};

use super::remote::{Reception, Remote, Timer};
use super::{Receiver, window};
use crate::cc::LossFilter;
use crate::message::{Ack, Body, CcData, Cr, Feedback, Message, Opt};
use crate::sqn::Place;

use farcast_core::engine::{Message as _, Transmit};

/// Number of later packets after which a missing packet counts as lost.
const BEHIND: u64 = 3;
/// The most packets that are judged at one arrival; more would only fill the filter.
const MOST_LOOKED_AT: u64 = 1024;

/// Field bit of `OPT_CR` for a receiver's report.
const CR_RECEIVER: u8 = 1;

/// Losses on the path from a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    filter: LossFilter,
    /// Place before which every packet was judged.
    judged: Place,
}

/// State of congestion on the path from a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    losses: Losses,
    /// The source's clock in milliseconds from the newest data, and the arrival time of these data.
    stamp: (u32, Time),
    /// This receiver is the acker.
    is_acker: bool,
}

impl Losses {
    pub(super) fn new(first: Place) -> Self {
        Self { filter: LossFilter::default(), judged: first }
    }

    /// Judges the packets that lie so far behind the lead that they are lost if they are missing.
    pub(super) fn look(&mut self, window: &window::Window) {
        let end = Place(window.lead().0.saturating_sub(BEHIND));
        self.judged = self.judged.max(Place(end.0.saturating_sub(MOST_LOOKED_AT)));
        while self.judged < end {
            self.filter.note(window.is_missing(self.judged));
            self.judged = self.judged.next();
        }
    }
}

impl Remote {
    /// Returns this receiver's report, with its `address`, if the source runs PGMCC.
    pub(super) fn feedback(&self, now: Time, address: Option<IpAddr>) -> Option<Opt> {
        let (Listener { losses, stamp: (stamp, at), .. }, receiver) = (self.listener?, address?);
        // The time for which the receiver kept the stamp is no part of the path's delay.
        let kept = now.since(at).as_millis() as u32;
        let (stamp, loss) = (stamp.wrapping_add(kept), losses.filter.loss());
        Some(Opt::Feedback(Feedback { stamp, loss, receiver, leaving: false }))
    }

    /// Returns the loss at this receiver, if the source asks for it (RFC 3208 §12).
    pub(super) fn report(&self, address: Option<IpAddr>) -> Option<Opt> {
        let (node, lead) = (address?, self.reception.as_ref()?.window.lead());
        let fields = self.wanted & CR_RECEIVER;
        let receiver = self.losses.filter(|_| fields > 0)?.filter.loss();
        let reference = Place(lead.0 - 1).sqn();
        Some(Opt::Cr(Cr { fields, reference, link: 0, path: 0, receiver, node }))
    }
}

impl Receiver {
    /// Handles the PGMCC option of data that begin at `first`.
    pub(super) fn listen(&mut self, now: Time, at: usize, first: Place, cc: CcData) {
        let (remote, random) = (&mut self.remotes[at], &mut self.random);
        let (Some(Reception { window, .. }), Some(address)) = (&remote.reception, self.config.address) else {
            return;
        };
        let stamp = (cc.stamp, now);
        let listener = remote.listener.get_or_insert_with(|| Listener {
            losses: Losses::new(first),
            stamp,
            is_acker: false,
        });
        listener.stamp = stamp;
        listener.losses.look(window);
        listener.is_acker = cc.acker == address;
        if cc.acker == address {
            remote.timers.stop(Timer::Elect);
            self.acknowledge(now, at);
        } else if !cc.acker.is_unspecified() || self.config.silent {
            remote.timers.stop(Timer::Elect);
        } else if !remote.timers.is_set(Timer::Elect) {
            let interval = remote.backoff;
            remote.timers.set(Timer::Elect, Self::backoff(random, now, Span::ZERO, interval));
        }
    }

    /// Tells sources that rely on this receiver's acknowledgements that there will be no more.
    pub(super) fn resign(&mut self, now: Time) {
        for at in 0..self.remotes.len() {
            if !self.remotes[at].listener.is_some_and(|listener| listener.is_acker) {
                continue;
            }
            let before = self.outbox.len();
            self.acknowledge(now, at);
            if let Some(Transmit { message: Message { body: Body::Ack(ack), .. }, .. }) =
                self.outbox.get_mut(before)
            {
                for option in &mut ack.options {
                    if let Opt::Feedback(said) = option {
                        said.leaving = true;
                    }
                }
            }
        }
    }

    /// Acknowledges what has arrived, and reports the loss.
    pub(super) fn acknowledge(&mut self, now: Time, at: usize) {
        let remote = &mut self.remotes[at];
        let (Some(feedback), Some(path)) = (remote.feedback(now, self.config.address), remote.path) else {
            return;
        };
        let Some(Reception { window, .. }) = &remote.reception else { return };
        if self.config.silent {
            return;
        }
        let highest = Place(window.lead().0 - 1);
        let is_there = |bit: &u32| !window.is_missing(Place(highest.0 - u64::from(*bit)));
        let bitmap = (0..32).filter(is_there).fold(0, |map, bit| map | 1 << bit);
        let ack = Ack { highest: highest.sqn(), bitmap, options: alloc::vec![feedback] };
        let message = Message { tsi: remote.tsi, port: remote.port, body: Body::Ack(ack) };
        if let Some(credit) = remote.credit.checked_sub(message.wire_len(0) as u64) {
            remote.credit = credit;
            self.outbox.push_back(Transmit::new(message, path.upstream));
        }
    }
}
