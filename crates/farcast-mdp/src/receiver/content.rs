//! Content of an object: segments and parity symbols that come, and its completion.

use farcast_core::engine::Reject;
use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::ObjectId;

use super::Receiver;
use super::session::{Incoming, Session, State};
use crate::event::ReceiverEvent;
use crate::message::Data;

impl Receiver {
    /// Handles symbols of a begun object; `fresh` means that this message began it.
    pub(super) fn data(&mut self, now: Time, data: &Data, fresh: bool) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let (object, before) = (data.about.object, session.position);
        let Some(one) = session.objects.get_mut(&object) else { return Err(Reject::Duplicate) };
        one.check(data)?;
        let block = if data.ends_block { data.block + 1 } else { data.block };
        one.reached = one.reached.max(block);
        session.position = (object, block);
        let result = match one.state {
            State::Complete(_) | State::Verifying => Err(Reject::Duplicate),
            State::Opening | State::Receiving => self.store(now, data),
        };
        if (object, block) > before || fresh {
            if let Some(one) = self.session.as_mut().and_then(|session| session.objects.get_mut(&object)) {
                one.advance();
            }
            self.consider(now);
        }
        result
    }

    fn store(&mut self, now: Time, data: &Data) -> Result<(), Reject> {
        let Some(session) = &mut self.session else { return Err(Reject::Unexpected) };
        let most = self.config.parity_memory;
        let Session { objects, memory, .. } = session;
        let Some(one) = objects.get_mut(&data.about.object) else { return Err(Reject::Unexpected) };
        let new = match data.parity_run() {
            Some(symbols) => {
                let (new, more) =
                    store_parity(one, data.block, symbols, most.saturating_sub(*memory), |event| {
                        self.events.push_back(event);
                    })?;
                *memory += more;
                new
            }
            None => store_source(one, data, |event| self.events.push_back(event)),
        };
        one.received.duplicates += u64::from(data.symbols.count() - new);
        let id = one.id;
        if new == 0 {
            return Err(Reject::Duplicate);
        }
        session.fed = Some(now);
        self.check_decodable(id, data.block);
        self.check_complete(id);
        Ok(())
    }

    /// Returns the object that its owner knows by `id`.
    pub(super) fn object(&mut self, id: ObjectId) -> Option<&mut Incoming> {
        self.session.as_mut()?.objects.values_mut().find(|one| one.id == id)
    }

    /// Asks the owner to rebuild `block` once enough symbols are there.
    pub(super) fn check_decodable(&mut self, id: ObjectId, block: u32) {
        let Some(one) = self.object(id) else { return };
        let (mut freed, mut decode) = (0, false);
        if one.missing_in(block) == 0 {
            freed = one.forget_parity(block);
        } else if one.lacks(block) == 0 {
            decode = one.decoding.insert(block);
        }
        if let Some(session) = &mut self.session {
            session.memory -= freed;
        }
        if decode {
            self.events.push_back(ReceiverEvent::Decode { object: id, block });
        }
    }

    pub(super) fn check_complete(&mut self, id: ObjectId) {
        if let Some(one) = self.object(id)
            && one.state == State::Receiving
            && one.named
            && one.have.is_full()
        {
            one.state = State::Verifying;
            self.events.push_back(ReceiverEvent::Complete(id));
        }
    }
}

/// Stores the new part of a run of segments. Returns the number of new segments.
fn store_source(one: &mut Incoming, data: &Data, mut tell: impl FnMut(ReceiverEvent)) -> u32 {
    let Some(run) = one.known.geometry.segments_of(data.block, data.symbols) else { return 0 };
    let mut new = 0;
    while let Some(segments) = one.have.next_gap_in(run) {
        one.have.insert_run(segments);
        new += segments.count();
        let offset = segments.first() - run.first();
        tell(ReceiverEvent::Store { object: one.id, segments, offset });
    }
    one.received.segments += u64::from(new);
    new
}

/// Stores the new part of a run of parity, if it takes at most `room` octets. Returns the numbers of new symbols and
/// octets.
fn store_parity(
    one: &mut Incoming,
    block: u32,
    symbols: Run,
    room: u64,
    mut tell: impl FnMut(ReceiverEvent),
) -> Result<(u32, u64), Reject> {
    if one.lacks(block) == 0 {
        return Ok((0, 0));
    }
    let count = one.held.get(&block).map(Bitmap::count);
    let before = count.map_or(0, |count| one.memory_of(block, count));
    // The whole run is counted, although parts of it may be known.
    if one.memory_of(block, count.unwrap_or(0) + symbols.count()) - before > room {
        return Err(Reject::Limit);
    }
    let parity = one.known.about.nparity.into();
    let held = one.held.entry(block).or_insert_with(|| Bitmap::new(parity));
    let mut new = 0;
    for symbol in symbols.segments().filter(|&symbol| held.insert(symbol)) {
        new += 1;
        let (symbols, offset) = (Run::one(symbol), symbol - symbols.first());
        tell(ReceiverEvent::StoreParity { object: one.id, block, symbols, offset });
    }
    let after = held.count();
    one.received.parity += u64::from(new);
    Ok((new, one.memory_of(block, after) - before))
}
