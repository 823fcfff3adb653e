//! What a sender says, and what other receivers do.

use alloc::collections::{BTreeMap, BTreeSet};

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Bitmap, Time};
use farcast_delivery::Received;

use crate::event::ReceiverEvent;
use crate::message::{
    Answer, Body, Fec, Flags, FromReceiver, FromSender, Fti, Info, Message, Point, Probe, Request, Terms,
};

use super::session::{Key, Session, State};
use super::{Due, Probed, Receiver, Timer};
use crate::timing::silence;

impl Receiver {
    pub(super) fn hear(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        match &message.body {
            Body::Sender(terms, said) if message.source.is_somebody() => {
                let key =
                    Key { source: from.source, sender: message.source, instance: terms.instance, object: 0 };
                self.hear_sender(now, from, (key, *terms), said)
            }
            Body::Receiver(said) if message.source != self.config.node => self.hear_other(said),
            _ => Err(Reject::Collision),
        }
    }

    fn hear_sender(
        &mut self,
        now: Time,
        from: &Arrival,
        (key, terms): (Key, Terms),
        said: &FromSender,
    ) -> Result<(), Reject> {
        match said {
            FromSender::Data(data) => {
                let key = Key { object: data.object, ..key };
                let open = (data.flags, data.fec, data.fti);
                self.begin_if_new(from, (key, terms), open)?;
                self.note_sender(now, terms);
                self.data(now, data)
            }
            FromSender::Info(info) => {
                let key = Key { object: info.object, ..key };
                let open = (info.flags, info.fec, info.fti);
                self.begin_if_new(from, (key, terms), open)?;
                self.note_sender(now, terms);
                self.info(info)
            }
            FromSender::Flush { point, ackers } => {
                let key = Key { object: point.object, ..key };
                self.flush(now, (key, terms), point, ackers.contains(&self.config.node))
            }
            FromSender::Probe(probe) => self.probe(now, (key, terms), probe),
            FromSender::Eot => {
                self.of_session(&key)?;
                self.gone();
                Ok(())
            }
            FromSender::Squelch { point, invalid } => {
                let session = self.of_session(&key)?;
                // Object numbers go round.
                let passed = session.key.object.wrapping_sub(point.object).cast_signed() < 0;
                if passed || invalid.contains(&session.key.object) {
                    self.gone();
                    return Ok(());
                }
                Err(Reject::Unexpected)
            }
            FromSender::RepairAdv { requests, .. } => {
                self.of_session(&key)?;
                self.overhear(requests);
                Ok(())
            }
            FromSender::AckReq { .. } | FromSender::Application(_) => Err(Reject::Unexpected),
        }
    }

    /// The session, if it is with the sender of `key`, whichever object that names.
    fn of_session(&mut self, key: &Key) -> Result<&mut Session, Reject> {
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        if (Key { object: session.key.object, ..*key }) == session.key {
            Ok(session)
        } else {
            Err(Reject::OtherSession)
        }
    }

    /// Makes sure that the object of `key` is the one at hand.
    fn begin_if_new(
        &mut self,
        from: &Arrival,
        (key, terms): (Key, Terms),
        (flags, fec, fti): (Flags, Fec, Option<Fti>),
    ) -> Result<(), Reject> {
        if self.through.iter().any(|(through, _)| *through == key) {
            return Err(Reject::Duplicate);
        }
        if let Some(session) = &self.session {
            if session.key == key {
                return Ok(());
            }
            let restarted = (session.key.source, session.key.sender) == (key.source, key.sender)
                && session.key.instance != key.instance;
            if !restarted {
                return Err(Reject::OtherSession);
            }
        }
        let session = self.begin(from, (key, terms), (flags, fec, fti))?;
        if self.session.is_some() {
            self.gone();
        }
        let named = !flags.has(Flags::INFO);
        self.session = Some(session);
        self.received = Received::default();
        if named {
            self.offer(None);
        }
        Ok(())
    }

    fn begin(
        &self,
        from: &Arrival,
        (key, terms): (Key, Terms),
        (flags, fec, fti): (Flags, Fec, Option<Fti>),
    ) -> Result<Session, Reject> {
        if flags.has(Flags::STREAM) {
            return Err(Reject::Unexpected);
        }
        let fti = fti.ok_or(Reject::Unexpected)?;
        let geometry = fti.geometry().ok_or(Reject::OutOfRange)?;
        let parity = fti.parity_symbols(fec, self.config.fti);
        let symbols = u32::from(fti.max_block_len) + u32::from(parity);
        // One symbol in a datagram is all that is spoken.
        if symbols > 1 << fec.symbol_bits() || fti.group > 1 {
            return Err(Reject::OutOfRange);
        }
        if fti.size > self.config.largest {
            return Err(Reject::Limit);
        }
        Ok(Session {
            key,
            group: from.destination,
            terms,
            state: State::Unnamed,
            fec,
            fti,
            geometry,
            parity: parity.into(),
            have: Bitmap::default(),
            held: BTreeMap::new(),
            memory: 0,
            decoding: BTreeSet::new(),
            position: (0, 0),
            reached: 0,
            silences: 0,
            low: 0,
        })
    }

    fn offer(&mut self, info: Option<&[u8]>) {
        if let Some(session) = &mut self.session {
            session.state = State::Opening;
            self.events.push_back(ReceiverEvent::Offered(session.offer(info)));
        }
    }

    /// The sender of the object at hand has said something, under these terms.
    fn note_sender(&mut self, now: Time, terms: Terms) {
        if let Some(session) = &mut self.session {
            session.terms = terms;
            session.silences = 0;
            let silence = silence(terms, self.config.robust);
            self.timers.set(Timer::Inactivity, now + silence);
        }
    }

    fn info(&mut self, info: &Info) -> Result<(), Reject> {
        match &self.session {
            Some(session) if session.state == State::Unnamed => {
                self.offer(Some(&info.content));
                Ok(())
            }
            _ => Err(Reject::Duplicate),
        }
    }

    fn flush(
        &mut self,
        now: Time,
        (key, terms): (Key, Terms),
        point: &Point,
        named: bool,
    ) -> Result<(), Reject> {
        let done = self.through.iter().any(|&(through, there)| through == key && there);
        let complete = match &self.session {
            Some(session) if session.key == key => matches!(session.state, State::Complete(_)),
            _ if done => true,
            Some(_) => return Err(Reject::OtherSession),
            None => return Err(Reject::Unexpected),
        };
        if let Some(session) = self.session.as_mut().filter(|session| session.key == key) {
            let block = point.symbol.block;
            if block >= session.geometry.blocks() {
                return Err(Reject::OutOfRange);
            }
            session.position = (block + 1, 0);
            session.reached = session.reached.max(block + 1);
            self.note_sender(now, terms);
            self.consider(now);
        }
        if complete && named && !self.config.silent && !self.timers.is_set(Timer::Ack) {
            self.due =
                Some(Due { to: key.source, sender: key.sender, instance: key.instance, point: *point });
            let spread = self.waits.acknowledgement(self.config.node, now, terms);
            self.timers.set(Timer::Ack, now + spread);
        }
        Ok(())
    }

    fn probe(&mut self, now: Time, (key, terms): (Key, Terms), probe: &Probe) -> Result<(), Reject> {
        if self.session.is_some() {
            self.of_session(&key)?;
            self.note_sender(now, terms);
        }
        let Key { sender, instance, .. } = key;
        self.probed = Some(Probed { sender, instance, sent: probe.sent, at: now });
        Ok(())
    }

    fn hear_other(&mut self, said: &FromReceiver) -> Result<(), Reject> {
        let session = self.session.as_ref().ok_or(Reject::Unexpected)?;
        if (said.sender, said.instance) != (session.key.sender, session.key.instance) {
            return Err(Reject::OtherSession);
        }
        if let Answer::Nack(requests) = &said.answer {
            self.overhear(requests);
        }
        Ok(())
    }

    /// What others have asked for need not be asked for again.
    fn overhear(&mut self, requests: &[Request]) {
        if let (Some(session), true) = (&self.session, self.timers.is_set(Timer::Backoff)) {
            session.overhear(&mut self.heard, requests);
        }
    }
}
