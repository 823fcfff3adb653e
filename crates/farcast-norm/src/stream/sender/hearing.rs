//! Handling of receivers' messages by a stream's sender.

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Reject};

use super::{OBJECT, StreamSender, StreamSenderEvent, Timer};
use crate::message::{Answer, Body, FromSender, Message, NodeId, Point, Request, Stamp};
use crate::stream::asked::Check;

/// Divisor of the GRTT that gives the time in which receivers without a back-off have all asked.
const TOGETHER: u64 = 8;

impl StreamSender {
    pub(super) fn hear(&mut self, now: Time, _from: &Arrival, message: &Message) -> Result<(), Reject> {
        let Body::Receiver(said) = &message.body else { return Err(Reject::Unexpected) };
        if said.sender != self.config.node || said.instance != self.config.instance {
            return Err(Reject::OtherSession);
        }
        if !message.source.is_somebody() || message.source == self.config.node {
            return Err(Reject::Collision);
        }
        if !self.opened || self.ended {
            return Err(Reject::Unexpected);
        }
        match &said.answer {
            Answer::Nack(requests) => self.nack(now, requests)?,
            Answer::Flushed { point, .. } => self.flushed(now, message.source, point)?,
            Answer::Ack { .. } => {}
        }
        if let Some(trip) = said.response.and_then(|response| Stamp::of(now).since(response)) {
            self.grtt.sample(trip, self.ackers.iter().position(|acker| acker.node == message.source));
        }
        Ok(())
    }

    fn nack(&mut self, now: Time, requests: &[Request]) -> Result<(), Reject> {
        let parity = self.config.parity.into();
        let check = Check { object: OBJECT, fec: self.config.fec, outgoing: &self.outgoing, parity };
        let parts = check.parts(requests)?;
        if parts.gone {
            self.squelch(now);
        }
        // Until the last repairs have had time to arrive, only requests for later symbols are new (RFC 5740 §5.4.1).
        let held = self.timers.is_set(Timer::Holdoff);
        let from = if held { self.position + 1 } else { 0 };
        if !self.asked.note(parts, from) {
            return Ok(());
        }
        if held {
            self.commit(now);
        } else if !self.timers.is_set(Timer::Aggregate) {
            let grtt = self.advertised().span();
            let wait = match u64::from(self.config.backoff) {
                0 => grtt / TOGETHER,
                backoff => grtt * (backoff + 1),
            };
            self.timers.set(Timer::Aggregate, now + wait);
        }
        Ok(())
    }

    /// Announces the first block that can be repaired, at most once in two GRTTs (RFC 5740 §5.4.3).
    fn squelch(&mut self, now: Time) {
        if !self.timers.is_set(Timer::Squelch) {
            let point = self.point(self.outgoing.first(), 0);
            self.outbox.push_back(FromSender::Squelch { point, invalid: Vec::new() });
            self.timers.set(Timer::Squelch, now + self.advertised().span() * 2);
        }
    }

    fn flushed(&mut self, now: Time, node: NodeId, point: &Point) -> Result<(), Reject> {
        let place = (point.symbol.block, u32::from(point.symbol.symbol) + 1);
        let known = self.outgoing.last_sent().is_some_and(|last| place <= (last.0, last.1 + 1));
        if point.object != OBJECT || point.fec != self.config.fec || !known || place.1 > self.outgoing.len() {
            return Err(Reject::OutOfRange);
        }
        let ended = self.outgoing.has_ended() && self.outgoing.last_sent() == Some((place.0, place.1 - 1));
        let acker = self.ackers.iter_mut().find(|acker| acker.node == node).ok_or(Reject::Stranger)?;
        if acker.lost || acker.has >= place {
            return Err(Reject::Duplicate);
        }
        (acker.has, acker.asked) = (place, 0);
        // A symbol behind which the stream goes on is not the last.
        if ended && self.outgoing.next().is_none_or(|next| next.repair) {
            self.events.push_back(StreamSenderEvent::Acknowledged(node));
        }
        if self.outgoing.next().is_none() && self.ackers.iter().all(|acker| acker.lost || acker.has >= place)
        {
            self.timers.stop(Timer::Flush);
            self.flush_sent(now);
        }
        self.end_stream(now);
        Ok(())
    }
}
