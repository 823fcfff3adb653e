//! Status requests and their answers, and the end (draft §11.2.2, §11.3, §4.1.1).

use alloc::collections::BTreeSet;

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};

use super::session::{Pending, Session, State};
use super::{Receiver, Timer};
use crate::event::ReceiverOutcome;
use crate::message::{Abort, Ack, Body, ClientId, Completion, Nak, StatusRequest, StatusType};

impl Receiver {
    pub(super) fn status_request(&mut self, now: Time, m: &StatusRequest) -> Result<(), Reject> {
        if !self.is_for_me(m.hosts.as_deref()) {
            return Err(Reject::OtherSession);
        }
        let session = self.session.as_ref().ok_or(Reject::Unexpected)?;
        if m.blocks.end() > session.geometry().blocks() {
            return Err(Reject::OutOfRange);
        }
        if session.state == State::Offered {
            // Nothing is said before the owner has decided.
            return Err(Reject::Unexpected);
        }
        self.data_before_confirmation(now);
        let session = self.session.as_ref().ok_or(Reject::Unexpected)?;
        match session.state {
            State::Offered => Err(Reject::Unexpected),
            State::Completing { .. } => {
                self.send_done(now);
                Ok(())
            }
            State::Verifying => {
                // The sender must not take the time that verifying takes for silence.
                let (server, client) = (session.server, self.config.id);
                self.answer(Body::Ack(Ack { server, pass: m.pass, blocks: m.blocks, client }));
                Ok(())
            }
            State::Receiving => {
                self.hold_answers(now, m);
                Ok(())
            }
        }
    }

    fn hold_answers(&mut self, now: Time, m: &StatusRequest) {
        let same = |p: &Pending| (p.pass, p.blocks, p.dtus, p.status) == (m.pass, m.blocks, m.dtus, m.status);
        if self.session.as_ref().and_then(|session| session.pending.as_ref()).is_some_and(same) {
            // A request sent twice against loss must not undo the spreading of its answers.
            return;
        }
        // A new request finds the answers to the last one still held back: they go first (draft §4.1.1).
        self.send_answers();
        let backoff = self.backoff();
        let Some(session) = &mut self.session else { return };
        session.pending = Some(Pending {
            pass: m.pass,
            blocks: m.blocks,
            dtus: m.dtus,
            status: m.status,
            suppressed: BTreeSet::new(),
        });
        if backoff.is_zero() {
            self.send_answers();
        } else {
            self.timers.set(Timer::Answer as usize, now + backoff);
        }
    }

    /// Sends the NAKs that are held back, and the ACK that was asked for.
    pub(super) fn send_answers(&mut self) {
        self.timers.stop(Timer::Answer as usize);
        let Some(pending) = self.session.as_mut().and_then(|session| session.pending.take()) else { return };
        let Some(session) = &self.session else { return };
        let (server, client) = (session.server, self.config.id);
        let mut naks = alloc::vec::Vec::new();
        let mut block = pending.blocks.first();
        while block < pending.blocks.end() && naks.len() < self.config.naks_per_request as usize {
            // Jump over blocks that are complete: a restart may ask about many.
            let Some(gap) = session.have.next_clear(block.saturating_mul(session.geometry().block_size()))
            else {
                break;
            };
            block = block.max(session.geometry().block_of(gap));
            if block >= pending.blocks.end() {
                break;
            }
            naks.extend(session.nak(client, block, &pending));
            block += 1;
        }
        for nak in naks {
            if pending.suppressed.contains(&nak.block) {
                self.stats.suppressed += 1;
                continue;
            }
            self.stats.naks += 1;
            self.stats.naked_dtus += u64::from(nak.missing.count());
            if let Some(session) = &mut self.session {
                session.naked_dtus += u64::from(nak.missing.count());
            }
            self.answer(Body::Nak(nak));
        }
        if pending.status == StatusType::All {
            // Last, so that the sender has heard everything when it comes.
            self.answer(Body::Ack(Ack { server, pass: pending.pass, blocks: pending.blocks, client }));
        }
    }

    /// Another receiver's NAK: the same one of ours need not be sent (draft §4.1.1).
    pub(super) fn overheard(&mut self, transmission: u32, nak: &Nak) -> Result<(), Reject> {
        let id = self.config.id;
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        if transmission != session.transmission || nak.server != session.server || nak.client == id {
            return Err(Reject::OtherSession);
        }
        let pending = session.pending.as_ref().filter(|p| p.pass == nak.pass && p.blocks.contains(nak.block));
        let pending = pending.ok_or(Reject::Unexpected)?;
        if session.nak(id, nak.block, pending).is_none_or(|ours| ours.missing != nak.missing) {
            return Err(Reject::Unexpected);
        }
        if let Some(pending) = &mut session.pending {
            pending.suppressed.insert(nak.block);
        }
        Ok(())
    }

    pub(super) fn completion(&mut self, now: Time, m: &Completion) -> Result<(), Reject> {
        let session = self.session.as_ref().ok_or(Reject::Unexpected)?;
        let confirmed = m.hosts.as_ref().is_some_and(|hosts| hosts.contains(&self.config.id));
        match session.state {
            State::Completing { since } if confirmed => {
                self.end(ReceiverOutcome::Complete { confirmed: true, at: since });
            }
            State::Completing { .. } if m.hosts.is_none() => self.finished(now),
            // Others are confirmed and we are not: our Done was lost, if it has had the time to arrive.
            State::Completing { .. } if now.since(session.done_sent) >= self.config.done_retry / 2 => {
                self.send_done(now);
            }
            State::Receiving | State::Offered if m.hosts.is_none() => self.end(ReceiverOutcome::Incomplete),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn aborted(&mut self, now: Time, m: &Abort) -> Result<(), Reject> {
        if !self.is_for_me(m.hosts.as_deref()) {
            return Err(Reject::OtherSession);
        }
        match self.session.as_ref().map(|session| session.state) {
            Some(State::Completing { .. }) => self.finished(now),
            // What is being verified needs the sender no more.
            Some(State::Verifying) => {}
            _ => self.end(ReceiverOutcome::Aborted { reason: m.reason, text: m.text.clone() }),
        }
        Ok(())
    }

    pub(super) fn ended(&mut self, now: Time) {
        match self.session.as_ref().map(|session| session.state) {
            Some(State::Completing { .. }) => self.finished(now),
            // What is being verified needs the sender no more.
            Some(State::Verifying) => {}
            _ => self.end(ReceiverOutcome::Incomplete),
        }
    }

    pub(super) fn done_again(&mut self, now: Time) {
        let Some(session) = self.session.as_ref().filter(|s| matches!(s.state, State::Completing { .. }))
        else {
            return;
        };
        if session.dones > self.config.done_retry_count {
            self.finished(now);
        } else {
            self.send_done(now);
        }
    }

    pub(super) fn sender_lost(&mut self, now: Time) {
        match self.session.as_ref().map(|session| session.state) {
            Some(State::Completing { .. }) => self.finished(now),
            Some(State::Verifying) | None => {}
            Some(_) => self.end(ReceiverOutcome::SenderLost),
        }
    }
}

impl Session {
    /// The NAK of `block`, if anything that was asked about is missing there and not being rebuilt.
    fn nak(&self, client: ClientId, block: u32, pending: &Pending) -> Option<Nak> {
        let geometry = self.geometry();
        let run = geometry.block_run(block).filter(|_| !self.decoding.contains(&block))?;
        let asked = Run::new(
            run.first() + pending.dtus.first().min(run.count()),
            pending.dtus.count().min(run.count()),
        )?;
        let asked = asked.clip(run.first(), run.end())?;
        let mut missing = Bitmap::new(run.count().next_multiple_of(8));
        for gap in self.have.gaps_in(asked) {
            missing.insert_run(Run::new(gap.first() - run.first(), gap.count())?);
        }
        let parity_held = self.parity.get(&block).map_or(0, Bitmap::count);
        let nak = Nak { server: self.server, client, pass: pending.pass, block, missing, parity_held };
        (!nak.missing.is_empty()).then_some(nak)
    }
}
