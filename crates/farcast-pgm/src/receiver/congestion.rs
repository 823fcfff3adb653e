//! What a receiver tells a source that asks about congestion: PGMCC (draft-ietf-rmt-bb-pgmcc-03, section 4).

use core::net::IpAddr;

use farcast_core::{Span, Time};

use super::remote::{Reception, Remote, Timer};
use super::{Receiver, window};
use crate::cc::LossFilter;
use crate::message::{Ack, Body, CcData, Cr, Feedback, Message, Opt};
use crate::sqn::Place;

use farcast_core::engine::{Message as _, Transmit};

/// Whether a packet is lost shows when so many behind it have come.
const BEHIND: u64 = 3;
/// At one arrival so many are looked at; by more the filter would only be full.
const MOST_LOOKED_AT: u64 = 1024;

/// The field of `OPT_CR` that is a receiver's.
const CR_RECEIVER: u8 = 1;

/// What is lost on the way from a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    filter: LossFilter,
    /// Of everything before it is known whether it was lost.
    judged: Place,
}

/// What is known of congestion on the way from a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    losses: Losses,
    /// The source's clock as of the last data, and when those came.
    stamp: (u32, Time),
    /// Whether this receiver acknowledges.
    is_acker: bool,
}

impl Losses {
    pub(super) fn new(first: Place) -> Self {
        Self { filter: LossFilter::default(), judged: first }
    }

    /// Takes what has become of what lies so far behind the lead that it is lost if it is missing.
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
    /// How this receiver fares, whose address it is, if the source wants to know.
    pub(super) fn feedback(&self, now: Time, address: Option<IpAddr>) -> Option<Opt> {
        let (Listener { losses, stamp: (stamp, at), .. }, receiver) = (self.listener?, address?);
        // The time for which it was kept is none of the way's.
        let kept = now.since(at).as_millis() as u32;
        let (stamp, loss) = (stamp.wrapping_add(kept), losses.filter.loss());
        Some(Opt::Feedback(Feedback { stamp, loss, receiver, leaving: false }))
    }

    /// How much is lost here, if the source asks for that (RFC 3208 §12).
    pub(super) fn report(&self, address: Option<IpAddr>) -> Option<Opt> {
        let (node, lead) = (address?, self.reception.as_ref()?.window.lead());
        let fields = self.wanted & CR_RECEIVER;
        let receiver = self.losses.filter(|_| fields > 0)?.filter.loss();
        let reference = Place(lead.0 - 1).sqn();
        Some(Opt::Cr(Cr { fields, reference, link: 0, path: 0, receiver, node }))
    }
}

impl Receiver {
    /// Data from `first` on have come that say this of congestion.
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

    /// Tells sources that rely on its acknowledgements that there will be no more.
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

    /// Tells a source what has come, and how much is lost.
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
