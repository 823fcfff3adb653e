//! Messages of receivers, handled by the sender (RFC 5740 §5.4).

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Span, Time};
use farcast_delivery::{ObjectId, Phase};

use super::parts::{Check, Parts};
use super::{Sender, Timer};
use crate::event::{Reached, SenderEvent};
use crate::message::{Answer, Body, FromReceiver, FromSender, Message, NodeId, Point, Request, Stamp};

/// Divisor of the GRTT that gives the time in which receivers without a back-off have all asked.
const TOGETHER: u64 = 8;

/// Precision of returned probe times: the time and the span since are each cut to microseconds.
const STAMPED: Span = Span::from_micros(2);

impl Sender {
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let Body::Receiver(said) = &message.body else { return Err(Reject::Unexpected) };
        if said.sender != self.config.node || said.instance != self.config.instance {
            return Err(Reject::OtherSession);
        }
        if !message.source.is_somebody() || message.source == self.config.node {
            return Err(Reject::Collision);
        }
        if !self.core.is_at_work() {
            return Err(Reject::Unexpected);
        }
        self.core.note_heard(now, message.source);
        let mut queued = false;
        match &said.answer {
            Answer::Nack(requests) => {
                // Other receivers do not hear a message to the sender alone.
                let alone = self.config.unicast || from.destination == self.config.source;
                let heard = self.heard_by(now, said.response);
                self.nack(now, message.source, requests, heard, alone)?;
                queued = self.crowd.note_queued(now, heard, self.grtt.estimate());
            }
            Answer::Flushed { point, .. } => self.flushed(message.source, point)?,
            Answer::Ack { .. } => {}
        }
        self.heed(now, message.source, said)?;
        self.measure(now, message.source, said, queued);
        Ok(())
    }

    /// Measures the round trip with an answer to a probe.
    fn measure(&mut self, now: Time, of: NodeId, said: &FromReceiver, queued: bool) {
        if let Some(trip) = said.response.and_then(|response| Stamp::of(now).since(response)) {
            let trip = if queued { trip.min(self.grtt.estimate()) } else { trip };
            self.grtt.sample(trip, self.ackers.find(of));
        }
    }

    /// Returns the time up to which every transmission had arrived at a receiver that answers at `now` with this time
    /// of a probe, or was lost. A receiver that sends no time, or a false one, counts as a GRTT away.
    fn heard_by(&self, now: Time, response: Option<Stamp>) -> Time {
        let (grtt, trip) = (self.advertised().span(), response.and_then(|sent| Stamp::of(now).since(sent)));
        let trip = trip.map_or(grtt, |trip| trip.min(self.oldest())).saturating_sub(STAMPED);
        now - trip
    }

    /// Returns the greatest believed age of a request. Queued requests may be older than the longest round trip.
    pub(super) fn oldest(&self) -> Span {
        self.config.grtt_most * 3
    }

    fn nack(
        &mut self,
        now: Time,
        from: NodeId,
        requests: &[Request],
        heard: Time,
        alone: bool,
    ) -> Result<(), Reject> {
        let parity = self.config.parity.into();
        let parts = Check { objects: &self.objects, fec: self.config.fec, parity }.parts(requests)?;
        if let Some(at) = self.ackers.find(from) {
            self.ackers.set_bereft(at, parts.lacks_withdrawn && parts.asked.is_empty());
        }
        if parts.is_cut {
            // Requests for other objects, round trips and losses in the message still count.
            let _ = self.core.rejects.note::<()>(Err(Reject::Limit));
        }
        self.foresee(now, from, &parts, heard);
        // Items that left after the receiver had heard the sender last, or that are scheduled, are not requested again.
        let unheard = self.departures.since(heard);
        let count = self.asked.note(&parts, &self.objects, &unheard);
        self.squelch(now, &parts);
        self.core.note_request(count > 0);
        if count == 0 {
            return Ok(());
        }
        self.note_late(now, &parts, &unheard);
        // The gathered requests are already scheduled, and this request is added.
        if self.timers.is_set(Timer::Holdoff) {
            if self.asked.commit(&mut self.objects) {
                self.resume(now);
            }
            return Ok(());
        }
        if !self.timers.is_set(Timer::Aggregate) {
            let grtt = self.advertised().span();
            let backoff = u64::from(self.config.backoff);
            let wait = match backoff {
                // A single receiver without a back-off has asked for everything; several ask at the same time.
                0 if self.is_for_one() => Span::ZERO,
                0 => grtt / TOGETHER,
                // Parity has left for nearly all, so few ask.
                _ if self.crowd.size().is_some() => grtt / TOGETHER,
                _ => grtt * (backoff + 1),
            };
            self.timers.set(Timer::Aggregate, now + wait);
        }
        // Receivers without a back-off cannot be suppressed, and a single receiver needs no suppression.
        if alone && self.config.backoff > 0 {
            self.unheard = true;
            if !self.timers.is_set(Timer::Advertise) {
                self.advertise(now);
            }
        }
        Ok(())
    }

    /// Announces requested objects that cannot be repaired, at most once in two GRTTs (RFC 5740 §5.4.3).
    fn squelch(&mut self, now: Time, parts: &Parts) {
        if parts.gone.is_empty() || self.timers.is_set(Timer::Squelch) {
            return;
        }
        let room = usize::from(self.config.segment_size) / 2;
        let invalid = parts.gone.iter().copied().take(room).collect();
        self.outbox.push_back(FromSender::Squelch { point: self.objects.point(0, 0, 0), invalid });
        self.timers.set(Timer::Squelch, now + self.advertised().span() * 2);
    }

    /// Repeats requests that came by unicast to all receivers, so that others need not ask (RFC 5740 §4.2.3.5); at most
    /// once in a GRTT.
    pub(super) fn advertise(&mut self, now: Time) {
        if !core::mem::take(&mut self.unheard) || self.asked.is_empty() {
            return;
        }
        let (requests, cut) = self.asked.advertise(&self.objects, self.config.segment_size.into());
        self.outbox.push_back(FromSender::RepairAdv { flags: u8::from(cut), feedback: None, requests });
        self.timers.set(Timer::Advertise, now + self.advertised().span());
    }

    fn flushed(&mut self, node: NodeId, point: &Point) -> Result<(), Reject> {
        let object = self.objects.index(point.object).ok_or(Reject::OutOfRange)?;
        // DEVIATION: NRL's library has the longest block's length in this field (FEC Encoding ID 129) for every block.
        let place = |point: &Point| (point.fec, point.symbol.block, point.symbol.symbol);
        if place(point) != place(&self.objects.last(object)) {
            return Err(Reject::OutOfRange);
        }
        if object >= self.objects.passed() {
            return Err(Reject::Unexpected);
        }
        let at = self.ackers.find(node).ok_or(Reject::Stranger)?;
        if self.ackers.has(at) > object {
            return Err(Reject::Duplicate);
        }
        self.ackers.acknowledge(at, object + 1);
        if object + 1 < self.objects.count() {
            self.core.events.push_back(SenderEvent::Own(Reached { node, object: ObjectId::new(object) }));
            return Ok(());
        }
        self.core.events.push_back(SenderEvent::Acknowledged(node));
        if self.is_settled() && !self.core.has_dismissed() {
            self.core.events.push_back(SenderEvent::Delivered);
        }
        self.conclude_if_settled();
        Ok(())
    }

    /// Ends the transmission if everything was sent and no named receiver is waited for.
    pub(super) fn conclude_if_settled(&mut self) {
        if self.is_settled() && self.core.phase == Phase::Waiting && self.asked.is_empty() {
            self.conclude();
        }
    }

    /// Returns `true` if there is only one receiver.
    fn is_for_one(&self) -> bool {
        self.ackers.len() == 1 || !self.config.group.ip().is_multicast()
    }

    /// Returns `true` if receivers were named, and every one that is waited for has acknowledged everything.
    pub(super) fn is_settled(&self) -> bool {
        let named = !self.ackers.is_empty() || self.core.has_dismissed();
        named && self.ackers.are_done()
    }
}
