//! Handling of messages by a stream's receiver: of the sender, and of other receivers.

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Time, Timers};

use super::window::Window;
use super::{Remote, SPREAD, StreamReceiver, StreamReceiverEvent, Timer};
use crate::cc::Due;
use crate::message::{
    Answer, Body, Data, Feedback, Flags, FromReceiver, FromSender, Message, NodeId, Point, Probe, Request,
    Terms,
};
use crate::quantise::Rtt;
use crate::stream::asking::Heard;
use crate::timing::{MOVES, silence};
use farcast_delivery::nack::{earned, random_backoff};

impl StreamReceiver {
    pub(super) fn hear(
        &mut self,
        now: Time,
        from: &Arrival,
        message: &Message,
        payload: &[u8],
    ) -> Result<(), Reject> {
        match &message.body {
            Body::Sender(terms, said) if message.source.is_somebody() => {
                self.remote_of(now, from, message.source, *terms, said)?;
                self.attend(now, message, payload.len());
                self.hear_sender(now, said, payload)
            }
            Body::Receiver(said) if message.source != self.config.receiver.node => self.hear_other(now, said),
            _ => Err(Reject::Collision),
        }
    }

    /// Makes the sender of `message` the one that is followed, if it is already, or can be.
    fn remote_of(
        &mut self,
        now: Time,
        from: &Arrival,
        source: NodeId,
        terms: Terms,
        said: &FromSender,
    ) -> Result<(), Reject> {
        let key = (from.source, source, terms.instance);
        let grtt = terms.grtt.span().min(self.config.receiver.grtt_most);
        if let Some(remote) = self.remote.as_mut() {
            if (remote.source, remote.node, remote.instance) == key && !remote.past {
                (remote.terms, remote.grtt) = (terms, grtt);
                return Ok(());
            }
            // A sender that is silent at its old address has moved. One that is still heard there is another node with
            // the same id.
            let same =
                (remote.node, remote.instance) == (source, terms.instance) && !remote.gone && !remote.past;
            if same && now.since(remote.last_heard) >= MOVES {
                (remote.source, remote.terms, remote.grtt) = (from.source, terms, grtt);
                return Ok(());
            }
            // Only one stream is received at a time; a sender without a stream gives way to one that has a stream.
            let streams = matches!(said, FromSender::Data(data) if data.flags.has(Flags::STREAM));
            let idle = remote.window.is_none() && streams;
            let again = (remote.source, remote.node) == (from.source, source);
            if !remote.gone && !idle && !again {
                return Err(Reject::OtherSession);
            }
            if remote.window.is_some() && !streams {
                return Err(Reject::OtherSession);
            }
            // A sender that was started anew does not continue its earlier session.
            self.gone();
        }
        self.remote = Some(Remote {
            source: from.source,
            node: source,
            instance: terms.instance,
            terms,
            grtt,
            window: None,
            unheard: None,
            file: None,
            place: (0, 0),
            heard: Heard::new(),
            listener: None,
            probed: None,
            owed: None,
            ack: None,
            silences: 0,
            last_heard: now,
            gone: false,
            past: false,
            credit: 0,
            timers: Timers::default(),
        });
        Ok(())
    }

    /// Notes a message of the sender, of any kind.
    fn attend(&mut self, now: Time, message: &Message, payload: usize) {
        let robust = self.config.receiver.robust;
        let Some(remote) = &mut self.remote else { return };
        let octets = message.data().map_or_else(|| crate::wire::encoded_len(message, 0), |_| 32 + payload);
        remote.credit = earned(remote.credit, octets as u64);
        remote.last_heard = now;
        if !remote.gone {
            remote.silences = 0;
            remote.timers.set(Timer::Inactivity, now + silence(remote.grtt, robust));
        }
        if let Some(listener) = &mut remote.listener {
            let grtt = Rtt::of(remote.grtt);
            listener.heard(now, message.sequence, octets, message.data().is_some(), grtt);
        }
    }

    fn hear_sender(&mut self, now: Time, said: &FromSender, payload: &[u8]) -> Result<(), Reject> {
        match said {
            FromSender::Data(data) => self.data(now, data, payload),
            FromSender::Flush { point, ackers } => {
                self.flush(now, point, ackers.contains(&self.config.receiver.node))
            }
            FromSender::Probe(probe) => {
                self.probe(now, probe);
                Ok(())
            }
            FromSender::Squelch { point, invalid } => self.squelch(now, point, invalid),
            FromSender::Eot => {
                self.gone();
                Ok(())
            }
            FromSender::RepairAdv { requests, feedback, .. } => {
                self.overhear(now, requests, feedback.as_ref());
                Ok(())
            }
            // INFO belongs to an object that is no stream; commands of applications are not supported for streams.
            FromSender::Info(_) | FromSender::AckReq { .. } | FromSender::Application(_) => {
                Err(Reject::Unexpected)
            }
        }
    }

    fn data(&mut self, now: Time, data: &Data, payload: &[u8]) -> Result<(), Reject> {
        let config = &self.config;
        let Some(remote) = &mut self.remote else { return Err(Reject::Unexpected) };
        if !data.flags.has(Flags::STREAM) {
            remote.unheard = None;
            if remote.file.replace(data.object).is_none() && remote.window.is_none() {
                self.events.push_back(StreamReceiverEvent::Files { source: remote.source });
            }
            return Err(Reject::Unexpected);
        }
        let window = match &mut remote.window {
            Some(window) if window.object() == data.object => window,
            Some(_) => return Err(Reject::Unexpected),
            None => {
                let window = Window::new(data, config.receiver.fti, config.memory, config.from_now)?;
                let joined = StreamReceiverEvent::Joined { sender: remote.node, source: remote.source };
                self.events.push_back(joined);
                remote.unheard = None;
                remote.window.insert(window)
            }
        };
        let result = window.store(data, payload);
        if matches!(result, Err(Reject::OutOfRange | Reject::Inconsistent)) {
            return result;
        }
        let before = remote.place;
        // A repair does not show the progress of its sender.
        remote.place = if data.flags.has(Flags::REPAIR) { before } else { before.max((data.block, 0)) };
        let ends = window.will_end();
        if remote.place > before || ends {
            self.consider(now);
        }
        result
    }

    fn flush(&mut self, now: Time, point: &Point, named: bool) -> Result<(), Reject> {
        let Some(remote) = &mut self.remote else { return Err(Reject::Unexpected) };
        let Some(window) = &mut remote.window else {
            if remote.file == Some(point.object) {
                return Err(Reject::Unexpected);
            }
            remote.unheard = Some((point.fec, point.object));
            self.consider(now);
            return Ok(());
        };
        if point.object != window.object() || point.fec != window.fec() {
            return Err(Reject::Unexpected);
        }
        let (block, symbol) = (point.symbol.block, u32::from(point.symbol.symbol) + 1);
        let len = window.needs((0, 0)).shape.len;
        if symbol > len {
            return Err(Reject::OutOfRange);
        }
        if window.reach(block) {
            remote.place = if symbol == len { (block + 1, 0) } else { (block, symbol) };
        }
        if named {
            remote.owed = Some(*point);
        }
        self.pay(now);
        self.consider(now);
        Ok(())
    }

    /// Handles a squelch: blocks before `point` cannot be repaired any more, or the whole stream cannot.
    fn squelch(&mut self, now: Time, point: &Point, invalid: &[u16]) -> Result<(), Reject> {
        let Some(remote) = &mut self.remote else { return Err(Reject::Unexpected) };
        if let Some((_, object)) = remote.unheard
            && (object != point.object || invalid.contains(&object))
        {
            remote.unheard = None;
        }
        let Some(window) = &mut remote.window else { return Err(Reject::Unexpected) };
        if invalid.contains(&window.object()) || point.object != window.object() {
            self.gone();
        } else if point.symbol.block <= remote.place.0 {
            window.let_go(point.symbol.block);
            self.consider(now);
        }
        Ok(())
    }

    fn probe(&mut self, now: Time, probe: &Probe) {
        let (silent, node) = (self.config.receiver.silent, self.config.receiver.node);
        let Some(remote) = &mut self.remote else { return };
        remote.probed = Some((probe.sent, now));
        if remote.listener.is_none() && (probe.rate.is_none() || silent) {
            return;
        }
        let (terms, grtt) = (remote.terms, Rtt::of(remote.grtt));
        let listener = remote.listener.get_or_insert_default();
        match listener.probed(now, node, probe, grtt) {
            Due::AtOnce => remote.timers.set(Timer::Report, now),
            Due::Later(part) if !remote.timers.is_set(Timer::Report) => {
                let trips = if terms.backoff == 0 { 0 } else { u64::from(terms.backoff).max(SPREAD) };
                let most = remote.grtt * trips;
                let drawn = random_backoff(most, terms.group, &mut self.chance);
                // By RFC 4654 §5, a quarter of the wait depends on the rate that this receiver can take.
                let wait = most.as_secs_f64() * 0.25 * part + drawn.as_secs_f64() * 0.75;
                remote.timers.set(Timer::Report, now + farcast_core::Span::from_secs_f64(wait));
            }
            Due::Later(_) => {}
            Due::Nothing => remote.timers.stop(Timer::Report),
        }
    }

    fn overhear(&mut self, now: Time, requests: &[Request], feedback: Option<&Feedback>) {
        let Some(remote) = &mut self.remote else { return };
        let grtt = Rtt::of(remote.grtt);
        if let (Some(listener), Some(theirs)) = (&remote.listener, feedback)
            && listener.overheard(now, theirs, grtt)
        {
            remote.timers.stop(Timer::Report);
        }
        if remote.timers.is_set(Timer::Backoff)
            && let Some(window) = &remote.window
        {
            window.needs(remote.place).overhear(requests, &mut remote.heard);
        }
    }

    fn hear_other(&mut self, now: Time, said: &FromReceiver) -> Result<(), Reject> {
        let of = |remote: &Remote| (remote.node, remote.instance) == (said.sender, said.instance);
        if !self.remote.as_ref().is_some_and(of) {
            return Err(Reject::OtherSession);
        }
        let requests: &[Request] = if let Answer::Nack(requests) = &said.answer { requests } else { &[] };
        self.overhear(now, requests, said.feedback.as_ref());
        Ok(())
    }
}
