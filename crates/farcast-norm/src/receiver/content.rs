//! Content of objects: segments, symbols, INFO, and completion.

use alloc::vec::Vec;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::{Span, Time};
use farcast_delivery::ObjectId;

use super::numbers::Numbers;
use super::object::{Object, Said, State};
use super::remote::Timer;
use super::{MOST_OBJECTS, Receiver};
use crate::event::{ReceiverEvent, ReceiverOutcome};
use crate::message::{Data, Info, Terms};
use crate::timing::silence;

/// Time without new content after which an object without any content yields to another, where there is no room.
const IDLE: Span = Span::from_secs(30);

impl Receiver {
    pub(super) fn data(
        &mut self,
        now: Time,
        from: &Arrival,
        (at, terms): (usize, Terms),
        data: &Data,
    ) -> Result<(), Reject> {
        let Data { object: number, flags, fec, fti, .. } = *data;
        let said = Said { number, flags, fec, fti, info: None, sends: true };
        let (number, fresh) = self.object_of(now, from, (at, terms), said)?;
        let remote = &mut self.remotes[at];
        if let Some(object) = remote.objects.get(&number) {
            object.check(data)?;
        }
        let before = remote.position;
        remote.position = (number, data.block);
        remote.note_return(remote.position);
        let result = match fresh {
            Ok(_) => self.store((at, number), now, data),
            Err(reason) => Err(reason),
        };
        if (number, data.block) > before || fresh == Ok(true) {
            let remote = &mut self.remotes[at];
            remote.objects.range_mut(..=number).for_each(|(_, object)| object.advance());
            self.consider(now, at);
        }
        result
    }

    pub(super) fn info(
        &mut self,
        now: Time,
        from: &Arrival,
        (at, terms): (usize, Terms),
        info: &Info,
    ) -> Result<(), Reject> {
        let Info { object: number, flags, fec, fti, .. } = *info;
        let said = Said { number, flags, fec, fti, info: Some(info), sends: false };
        let (number, fresh) = self.object_of(now, from, (at, terms), said)?;
        self.remotes[at].note_info(number);
        if !fresh? {
            return self.name((at, number), info);
        }
        // A repaired INFO does not show the progress of its sender.
        if (number, 0) > self.remotes[at].position {
            self.remotes[at].position = (number, 0);
            self.consider(now, at);
        }
        Ok(())
    }

    /// Handles the INFO of an object that was begun without it.
    fn name(&mut self, (at, number): (usize, u32), info: &Info) -> Result<(), Reject> {
        let remote = &mut self.remotes[at];
        let object =
            remote.objects.get_mut(&number).filter(|object| !object.named).ok_or(Reject::Duplicate)?;
        object.named = true;
        let offer = object.offer(&remote.key, remote.group.ip(), Some(info));
        self.events.push_back(ReceiverEvent::Named(offer));
        self.check_complete((at, number));
        Ok(())
    }

    /// Finds the object that `said` is about, and begins it if it is not at hand. Returns its number, with `true` if it
    /// was begun now or the reason for which it is not received.
    fn object_of(
        &mut self,
        now: Time,
        from: &Arrival,
        (at, terms): (usize, Terms),
        said: Said<'_>,
    ) -> Result<(u32, Result<bool, Reject>), Reject> {
        let known = match &self.remotes[at].numbers {
            Some(numbers) => Some(numbers.of(said.number).ok_or(Reject::Unexpected)?),
            None => None,
        };
        if let Some(number) = known {
            let remote = &self.remotes[at];
            let through = remote.numbers.as_ref().is_some_and(|n| n.knows(number) && !n.is_unheard(number));
            if remote.objects.contains_key(&number) {
                self.note_sender(now, from, (at, terms));
                return Ok((number, Ok(false)));
            }
            if through {
                self.note_sender(now, from, (at, terms));
                return Ok((number, Err(Reject::Duplicate)));
            }
        }
        let mut object = Object::new(ObjectId::new(self.next_object), said, &self.config, now)?;
        self.note_sender(now, from, (at, terms));
        let number = self.know(at, said.number).ok_or(Reject::OutOfRange)?;
        let remote = &mut self.remotes[at];
        (remote.fec, remote.segment_size) = (object.fec, object.fti.segment_size);
        if !self.make_room(now, at, said.sends) {
            // The object is requested when there is room; until then the receiver only follows the sender.
            return Ok((number, Err(Reject::Limit)));
        }
        self.next_object = self.next_object.wrapping_add(1);
        let remote = &mut self.remotes[at];
        object.passage = remote.passage;
        let offer = object.offer(&remote.key, remote.group.ip(), said.info);
        self.events.push_back(ReceiverEvent::Offered(offer));
        if let Some(numbers) = &mut remote.numbers {
            numbers.take(number);
        }
        remote.objects.insert(number, object);
        Ok((number, Ok(true)))
    }

    /// Learns of object `id`, and of all objects before it. Returns its number.
    pub(super) fn know(&mut self, at: usize, id: u16) -> Option<u32> {
        let sync = self.config.sync;
        let remote = &mut self.remotes[at];
        let numbers = remote.numbers.get_or_insert_with(|| Numbers::new(id, sync));
        let number = numbers.of(id)?;
        if let Some(lost) = numbers.reach(number) {
            remote.note_failed(lost);
            let low = lost + 1;
            let old: Vec<u32> = remote.objects.range(..low).map(|(&number, _)| number).collect();
            for number in old {
                self.end((at, number), ReceiverOutcome::Lost);
            }
        }
        Some(number)
    }

    /// Returns the number of further objects of the sender at index `at` that may be begun. Senders that have sent
    /// nothing hold no place.
    pub(super) fn slots(&self, at: usize) -> u32 {
        let holding =
            self.remotes.iter().enumerate().filter(|(one, remote)| *one == at || remote.fed.is_some());
        let busy: usize = holding.map(|(_, remote)| remote.objects.len()).sum();
        MOST_OBJECTS.saturating_sub(busy) as u32
    }

    /// Makes room for an object of the sender at index `at`, where there is none. `sends` is `true` if content of the
    /// object has come. Returns `true` if there is room.
    fn make_room(&mut self, now: Time, at: usize, sends: bool) -> bool {
        let busy: usize = self.remotes.iter().map(|remote| remote.objects.len()).sum();
        if busy < MOST_OBJECTS {
            return true;
        }
        let other = self.yielding(now, sends, |one, remote| one != at && !remote.objects.is_empty());
        match other {
            Some(other) => {
                self.give_up_all(other);
                true
            }
            None => self.give_up_bare(now),
        }
    }

    /// Gives up all objects of the sender at index `at`, which may be begun again.
    pub(super) fn give_up_all(&mut self, at: usize) {
        while let Some((&number, _)) = self.remotes[at].objects.first_key_value() {
            self.give_up((at, number));
        }
    }

    /// Gives up an object without any content: the one without new content for longest. Returns `true` if there was
    /// one.
    fn give_up_bare(&mut self, now: Time) -> bool {
        let objects = self.remotes.iter().enumerate().flat_map(|(at, remote)| {
            remote.objects.iter().map(move |(&number, object)| (object.since, at, number, object))
        });
        let bare = objects.filter(|(since, _, _, object)| object.is_bare() && now.since(*since) >= IDLE);
        let Some((_, at, number, _)) = bare.min_by_key(|&(since, at, number, _)| (since, at, number)) else {
            return false;
        };
        self.give_up((at, number));
        true
    }

    /// Gives up an object, which may be begun again.
    pub(super) fn give_up(&mut self, (at, number): (usize, u32)) {
        self.end((at, number), ReceiverOutcome::Lost);
        if let Some(numbers) = &mut self.remotes[at].numbers {
            numbers.give_back(number);
        }
    }

    /// Notes a message of the sender about its objects, with these terms.
    pub(super) fn note_sender(&mut self, now: Time, from: &Arrival, (at, terms): (usize, Terms)) {
        let (robust, most) = (self.config.robust, self.config.grtt_most);
        let remote = &mut self.remotes[at];
        (remote.terms, remote.silences, remote.gone) = (terms, 0, false);
        (remote.group, remote.grtt) = (from.destination, terms.grtt.span().min(most));
        let silence = silence(remote.grtt, robust);
        remote.timers.set(Timer::Inactivity, now + silence);
    }

    fn store(&mut self, (at, number): (usize, u32), now: Time, data: &Data) -> Result<(), Reject> {
        let room = self.parity_room();
        let Some(object) = self.remotes[at].objects.get_mut(&number) else { return Err(Reject::Unexpected) };
        if !object.is_receiving() {
            return Err(Reject::Duplicate);
        }
        let new = match object.parity_of(data) {
            Some(symbols) => object.store_parity(data.block, symbols, room, &mut self.events)?,
            None => object.store_source(data, &mut self.events),
        };
        object.received.duplicates += u64::from(data.symbols.count() - new);
        if new == 0 {
            return Err(Reject::Duplicate);
        }
        object.since = now;
        self.remotes[at].fed = Some(now);
        self.check_decodable((at, number), data.block);
        self.check_complete((at, number));
        Ok(())
    }

    /// Returns the octets of further parity that may be kept.
    fn parity_room(&self) -> u64 {
        let objects = self.remotes.iter().flat_map(|remote| remote.objects.values());
        self.config.parity_memory.saturating_sub(objects.map(|object| object.memory).sum())
    }

    /// Asks the owner to rebuild `block` once enough of it has come.
    pub(super) fn check_decodable(&mut self, (at, number): (usize, u32), block: u32) {
        let Some(object) = self.remotes[at].objects.get_mut(&number) else { return };
        if object.missing_in(block) == 0 {
            object.forget_parity(block);
        } else if object.lacks(block) == 0 && object.decoding.insert(block) {
            self.events.push_back(ReceiverEvent::Decode { object: object.id, block });
        }
    }

    pub(super) fn check_complete(&mut self, (at, number): (usize, u32)) {
        if let Some(object) = self.remotes[at].objects.get_mut(&number)
            && object.state == State::Receiving
            && object.named
            && object.have.is_full()
        {
            object.state = State::Verifying;
            self.events.push_back(ReceiverEvent::Complete(object.id));
        }
    }
}
