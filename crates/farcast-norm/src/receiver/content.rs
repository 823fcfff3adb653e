//! What comes of the object: segments, symbols, and when it is whole.

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};

use crate::event::ReceiverEvent;
use crate::message::Data;

use super::Receiver;
use super::session::State;

impl Receiver {
    pub(super) fn data(&mut self, now: Time, data: &Data) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        session.check(data)?;
        let before = session.position.0;
        session.position = (data.block, data.symbols.last());
        session.reached = session.reached.max(data.block);
        let result = match session.state {
            State::Unnamed | State::Opening => Err(Reject::Unexpected),
            State::Complete(_) | State::Verifying => Err(Reject::Duplicate),
            State::Receiving => self.store(data),
        };
        if data.block > before {
            if let Some(session) = &mut self.session {
                session.advance();
            }
            self.consider(now);
        }
        result
    }

    fn store(&mut self, data: &Data) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let parity = session.parity_of(data);
        let new = match parity {
            Some(symbols) => self.store_parity(data.block, symbols)?,
            None => self.store_source(data),
        };
        self.received.duplicates += u64::from(data.symbols.count() - new);
        if new == 0 {
            return Err(Reject::Duplicate);
        }
        self.check_decodable(data.block);
        self.check_complete();
        Ok(())
    }

    fn store_source(&mut self, data: &Data) -> u32 {
        let Some(session) = &mut self.session else { return 0 };
        let Some(run) = session.geometry.segments_of(data.block, data.symbols) else { return 0 };
        let mut new = 0;
        while let Some(segments) = session.have.next_gap_in(run) {
            session.have.insert_run(segments);
            new += segments.count();
            let offset = segments.first() - run.first();
            self.events.push_back(ReceiverEvent::Store { segments, offset });
        }
        self.received.segments += u64::from(new);
        new
    }

    fn store_parity(&mut self, block: u32, symbols: Run) -> Result<u32, Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        if session.lacks(block) == 0 {
            return Ok(0);
        }
        let count = session.held.get(&block).map(Bitmap::count);
        let before = count.map_or(0, |count| session.memory_of(block, count));
        // As much as the run may bring.
        let most = session.memory_of(block, count.unwrap_or(0) + symbols.count()) - before;
        if session.memory + most > self.config.parity_memory {
            return Err(Reject::Limit);
        }
        let held = session.held.entry(block).or_insert_with(|| Bitmap::new(session.parity));
        let mut new = 0;
        for symbol in symbols.segments().filter(|&symbol| held.insert(symbol)) {
            new += 1;
            let (symbols, offset) = (Run::one(symbol), symbol - symbols.first());
            self.events.push_back(ReceiverEvent::StoreParity { block, symbols, offset });
        }
        let after = held.count();
        session.memory += session.memory_of(block, after) - before;
        self.received.parity += u64::from(new);
        Ok(new)
    }

    /// Has the owner rebuild `block` once there is enough of it.
    pub(super) fn check_decodable(&mut self, block: u32) {
        let Some(session) = &mut self.session else { return };
        if session.missing_in(block) == 0 {
            session.forget_parity(block);
        } else if session.lacks(block) == 0 && session.decoding.insert(block) {
            self.events.push_back(ReceiverEvent::Decode { block });
        }
    }

    pub(super) fn check_complete(&mut self) {
        if let Some(session) = self.session.as_mut().filter(|session| session.is_receiving())
            && session.have.is_full()
        {
            session.state = State::Verifying;
            self.events.push_back(ReceiverEvent::Complete);
        }
    }
}
