//! Data, parity, and completeness (draft §11.2.2).

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time, Transmit};

use super::Receiver;
use super::control::{State, Terms};
use super::parity::{self, Cost};
use super::session::{Session, Symbols};
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{Body, Data, DataKind, Done, Message, Quit, cancel};

/// Content of a DATA message, checked against the terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DataPart {
    /// Segments of the product.
    Segments(Run),
    /// Parity symbols of the message's block.
    Symbols(Run),
}

impl DataPart {
    /// Returns the content of `data`.
    ///
    /// # Errors
    /// Returns an error if the content is not of this product, or if its length is wrong.
    pub(crate) fn of(data: &Data, terms: &Terms) -> Result<Self, Reject> {
        let (geometry, full) = (terms.geometry(), terms.geometry().segment_size());
        let within = data.block < geometry.blocks() && data.dtus.end() <= terms.offer.parity_symbols;
        let (part, last_len) = match data.kind {
            DataKind::Source => {
                let segments = geometry.segments_of(data.block, data.dtus).ok_or(Reject::OutOfRange)?;
                (Self::Segments(segments), geometry.payload_len(segments.last()))
            }
            DataKind::Parity if within => (Self::Symbols(data.dtus), full),
            DataKind::Parity => return Err(Reject::OutOfRange),
        };
        if data.last_len != last_len || (data.dtus.count() > 1 && data.len != full) {
            return Err(Reject::Inconsistent);
        }
        Ok(part)
    }
}

impl Receiver {
    pub(super) fn data(&mut self, now: Time, data: &Data) -> Result<(), Reject> {
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        if let Err(reason) = session.control.takes_data(&self.config) {
            if reason == Reject::Duplicate {
                self.stats.duplicates += u64::from(data.dtus.count());
            } else {
                session.control.data_before_confirmation(now, &self.config);
            }
            return Err(reason);
        }
        let part = DataPart::of(data, &session.terms)?;
        if data.pass == 0 && matches!(part, DataPart::Segments(_)) {
            session.restart = true;
        }
        if data.pass > session.pass {
            session.pass = data.pass;
            self.events.push_back(ReceiverEvent::Pass { pass: data.pass });
        }
        session.losses.heard(data);
        session.control.data_before_confirmation(now, &self.config);
        let new = match part {
            DataPart::Segments(segments) => self.source(data.pass, segments),
            DataPart::Symbols(symbols) => self.parity(data.block, symbols)?,
        };
        self.stats.duplicates += u64::from(data.dtus.count() - new);
        if new == 0 {
            return Err(Reject::Duplicate);
        }
        self.check_decodable(data.block);
        self.check_complete();
        Ok(())
    }

    fn source(&mut self, pass: u32, segments: Run) -> u32 {
        let Some(session) = &mut self.session else { return 0 };
        let mut new = 0;
        while let Some(gap) = session.have.next_gap_in(segments) {
            session.have.insert_run(gap);
            session.note_heard(pass, gap);
            new += gap.count();
            self.events
                .push_back(ReceiverEvent::Store { segments: gap, offset: gap.first() - segments.first() });
        }
        self.stats.dtus += u64::from(new);
        new
    }

    fn parity(&mut self, block: u32, symbols: Run) -> Result<u32, Reject> {
        let session = self.session.as_mut().ok_or(Reject::Unexpected)?;
        let missing = session.missing_in(block);
        if missing == 0 || session.decoding.contains(&block) {
            return Ok(0);
        }
        // Configuration limits the memory that a sender can make the receiver use. Beyond the limit, DTUs come instead.
        let cost = Cost::of(&session.terms);
        let reserved = session.parity.get(&block).map_or(0, |symbols| symbols.reserved);
        let wanted = cost.room(reserved, missing);
        let more = cost.bytes(wanted) - cost.bytes(reserved);
        if session.parity_memory + more > self.config.parity_memory_bytes {
            return Err(Reject::Limit);
        }
        session.parity_memory += more;
        let most = session.terms.offer.parity_symbols;
        let entry = session.parity.entry(block);
        let begun = entry.or_insert_with(|| Symbols { held: Bitmap::new(most), reserved: 0 });
        begun.reserved = wanted;
        let mut new = 0;
        for symbol in symbols.segments().filter(|&symbol| begun.held.insert(symbol)) {
            new += 1;
            let offset = symbol - symbols.first();
            let event = ReceiverEvent::StoreParity { block, symbols: Run::one(symbol), offset };
            self.events.push_back(event);
        }
        self.stats.parity += u64::from(new);
        session.losses.parity(block, symbols, new);
        Ok(new)
    }

    /// Requests that the owner rebuild `block` once its parity makes up for the missing DTUs.
    fn check_decodable(&mut self, block: u32) {
        let Some(session) = &mut self.session else { return };
        let Some(held) = session.parity.get(&block).map(|symbols| symbols.held.count()) else { return };
        let missing = session.missing_in(block);
        if missing == 0 {
            self.stats.lost += u64::from(session.losses.settle(block));
            session.forget_parity(block);
        } else if parity::is_decodable(missing, held) && session.decoding.insert(block) {
            self.stats.lost += u64::from(session.losses.settle(block));
            self.events.push_back(ReceiverEvent::Decode { block });
        }
    }

    /// Handles the owner's report that it has rebuilt and stored `block`, or could not.
    pub fn decoded(&mut self, block: u32, rebuilt: bool) {
        let Some(session) = &mut self.session else { return };
        if !session.decoding.remove(&block) {
            return;
        }
        // The symbols are used up in either case; DTUs that are still missing are requested anew.
        session.forget_parity(block);
        if let (true, Some(run)) = (rebuilt, session.terms.offer.geometry.block_run(block)) {
            session.have.insert_run(run);
            self.check_complete();
        }
    }

    /// Handles the owner's report that it also holds these segments, in a file that exists already.
    pub fn held(&mut self, segments: &Bitmap) {
        let Some(session) = self.session.as_mut().filter(|s| s.control.state == State::Receiving) else {
            return;
        };
        session.have.union(segments);
        let begun: alloc::vec::Vec<u32> = session.parity.keys().copied().collect();
        for block in begun {
            self.check_decodable(block);
        }
        self.check_complete();
    }

    /// Handles the owner's report that it does not hold these segments after all, because they were damaged or could
    /// not be stored. They are requested again, even if the product seemed complete.
    pub fn lost(&mut self, segments: Run) {
        if let Some(session) = &mut self.session
            && session.control.lost()
        {
            session.note_unstored(segments);
            session.have.remove_run(segments);
        }
    }

    /// Records that `data` came and could not be stored. It is missing, but was not lost on the way.
    pub fn unstored(&mut self, data: &Data) {
        let Some(session) = self.session.as_mut().filter(|session| session.control.is_receiving()) else {
            return;
        };
        if let Ok(DataPart::Segments(segments)) = DataPart::of(data, &session.terms) {
            session.losses.heard(data);
            session.pass = session.pass.max(data.pass);
            session.note_unstored(segments);
        }
    }

    pub(super) fn check_complete(&mut self) {
        if let Some(session) = self.session.as_mut().filter(|session| session.have.is_full())
            && session.control.complete()
        {
            session.pending = None;
            self.events.push_back(ReceiverEvent::Complete);
        }
    }

    /// Handles the owner's report that the product is verified and has its final name, and tells the sender.
    pub fn verified(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        let act = session.control.verified(now, &session.terms, &self.config);
        self.act(now, act);
    }

    /// Leaves because the product cannot be stored or verified, and tells the sender. `reason` is one of [`cancel`].
    pub fn fail(&mut self, reason: u32, text: Option<alloc::string::String>) {
        if self.session.is_none() {
            return;
        }
        let text = text.filter(|text| (1..=256).contains(&text.len()));
        // Nobody answers a Quit, so nothing else would repeat a lost one.
        self.take_leave(Body::Quit(Quit { reason, client: Some(self.config.id), text }), 3);
        self.end(ReceiverOutcome::Stopped);
    }

    /// Sends the message that ends the session for this receiver `times`, and keeps it until the sender has asked for
    /// its proof.
    pub(super) fn take_leave(&mut self, body: Body, times: u32) {
        let Some(session) = &self.session else { return };
        let message = session.guard.prove(Message::new(session.terms.transmission, body));
        for _ in 0..times {
            let to = session.terms.answers_to(&message.body);
            self.outbox.push_back(Transmit::new(message.clone(), to));
        }
        self.keep_parting(message);
    }

    /// Stops on the user's demand. A complete and verified product stays so.
    pub fn stop(&mut self, now: Time) {
        match &self.session {
            Some(session) if matches!(session.control.state, State::Completing { .. }) => {
                let act = session.control.finished(now);
                self.act(now, act);
            }
            _ => self.fail(cancel::QUIT_APPLICATION, None),
        }
    }

    pub(super) fn send_done(&mut self, now: Time) {
        let Some(session) = &self.session else { return };
        let report = self.report_of(now, session);
        if let Some(session) = &mut self.session {
            session.done = Some(report.clone());
        }
        self.say(now, report.message);
    }

    /// Returns the report of the complete product.
    pub(super) fn report_of(&self, now: Time, session: &Session) -> Transmit<Message> {
        let done = Done {
            server: session.terms.server,
            client: self.config.id,
            naked_dtus: u32::try_from(session.naked_dtus).unwrap_or(u32::MAX),
            duration_s: u32::try_from(now.since(session.control.began).as_nanos() / 1_000_000_000)
                .unwrap_or(u32::MAX),
            round: session.spoke.filter(|_| session.control.speaks_by_turns()),
        };
        let message = session.guard.prove(Message::new(session.terms.transmission, Body::Done(done)));
        Transmit::new(message, session.terms.response)
    }
}
