//! Content of objects: segments, symbols, INFO, and completion.

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{Span, Time};
use farcast_delivery::{ObjectId, Outcome};

use super::numbers::Numbers;
use super::object::{Object, Said};
use super::remote::Timer;
use super::{Hearing, MOST_OBJECTS, ObjectIndex, Receiver};
use crate::event::ReceiverEvent;
use crate::message::{Data, Info};
use crate::timing::silence;

/// Time without new content after which an object without any content makes room for another object.
const IDLE: Span = Span::from_secs(30);

impl Receiver {
    pub(super) fn data(&mut self, hearing: &Hearing<'_>, data: &Data) -> Result<(), Reject> {
        let Hearing { now, at, .. } = *hearing;
        let Data { object: number, flags, fec, fti, .. } = *data;
        let said = Said { number, flags, fec, fti, info: None, sends: true };
        let (number, fresh) = self.object_of(hearing, said)?;
        let remote = &mut self.remotes[at];
        if let Some(object) = remote.objects.get(&number) {
            object.check(data)?;
        }
        let before = remote.position;
        remote.position = (number, data.block);
        remote.note_return(remote.position);
        let result = match fresh {
            Ok(_) => self.store(ObjectIndex { at, number }, now, data),
            Err(reason) => Err(reason),
        };
        if (number, data.block) > before || fresh == Ok(true) {
            let remote = &mut self.remotes[at];
            remote.advance(number);
            self.consider(now, at);
        }
        result
    }

    pub(super) fn info(&mut self, hearing: &Hearing<'_>, info: &Info) -> Result<(), Reject> {
        let Hearing { now, at, .. } = *hearing;
        let Info { object: number, flags, fec, fti, .. } = *info;
        let said = Said { number, flags, fec, fti, info: Some(info), sends: false };
        let (number, fresh) = self.object_of(hearing, said)?;
        self.remotes[at].note_info(number);
        if !fresh? {
            return self.name(ObjectIndex { at, number }, info);
        }
        // A repaired INFO does not show the progress of its sender.
        if (number, 0) > self.remotes[at].position {
            self.remotes[at].position = (number, 0);
            self.consider(now, at);
        }
        Ok(())
    }

    /// Handles the INFO of an object that was begun without it.
    fn name(&mut self, ObjectIndex { at, number }: ObjectIndex, info: &Info) -> Result<(), Reject> {
        let remote = &mut self.remotes[at];
        let object = remote.objects.get_mut(&number).filter(|object| !object.content.is_named);
        let object = object.ok_or(Reject::Duplicate)?;
        let offer = object.offer(&remote.key, remote.group.ip(), Some(info));
        self.events.push_back(ReceiverEvent::Named(Box::new(offer)));
        object.content.name(&mut self.events);
        Ok(())
    }

    /// Finds the object that `said` is about, and begins it if it is not at hand. Returns its number, with `true` if it
    /// was begun now or the reason for which it is not received.
    fn object_of(
        &mut self,
        hearing: &Hearing<'_>,
        said: Said<'_>,
    ) -> Result<(u32, Result<bool, Reject>), Reject> {
        let Hearing { now, at, .. } = *hearing;
        let known = match &self.remotes[at].numbers {
            Some(numbers) => Some(numbers.of(said.number).ok_or(Reject::Unexpected)?),
            None => None,
        };
        if let Some(number) = known {
            let remote = &self.remotes[at];
            let through = remote.numbers.as_ref().is_some_and(|n| n.knows(number) && !n.is_unheard(number));
            if remote.objects.contains_key(&number) {
                self.note_sender(hearing);
                return Ok((number, Ok(false)));
            }
            if through {
                self.note_sender(hearing);
                return Ok((number, Err(Reject::Duplicate)));
            }
        }
        let mut object = Object::new(ObjectId::new(self.next_object), said, &self.config, now)?;
        self.note_sender(hearing);
        let number = self.know(at, said.number).ok_or(Reject::OutOfRange)?;
        let remote = &mut self.remotes[at];
        (remote.fec, remote.segment_size) = (object.fec, object.fti.segment_size);
        if !self.make_room(now, at, said.sends) {
            // The object is requested when there is room; until then the receiver only follows the sender.
            return Ok((number, Err(Reject::Limit)));
        }
        self.next_object = self.next_object.wrapping_add(1);
        let remote = &mut self.remotes[at];
        object.content.passage = remote.passage;
        let offer = object.offer(&remote.key, remote.group.ip(), said.info);
        self.events.push_back(ReceiverEvent::Offered(Box::new(offer)));
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
                self.end(ObjectIndex { at, number }, Outcome::Lost);
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
            self.give_up(ObjectIndex { at, number });
        }
    }

    /// Gives up an object without any content: the one without new content for longest. Returns `true` if there was
    /// one.
    fn give_up_bare(&mut self, now: Time) -> bool {
        let objects = self.remotes.iter().enumerate().flat_map(|(at, remote)| {
            remote.objects.iter().map(move |(&number, object)| (object.since, at, number, object))
        });
        let bare =
            objects.filter(|(since, _, _, object)| object.content.is_bare() && now.since(*since) >= IDLE);
        let Some((_, at, number, _)) = bare.min_by_key(|&(since, at, number, _)| (since, at, number)) else {
            return false;
        };
        self.give_up(ObjectIndex { at, number });
        true
    }

    /// Gives up an object, which may be begun again.
    pub(super) fn give_up(&mut self, ObjectIndex { at, number }: ObjectIndex) {
        self.end(ObjectIndex { at, number }, Outcome::Lost);
        if let Some(numbers) = &mut self.remotes[at].numbers {
            numbers.give_back(number);
        }
    }

    /// Notes a message of the sender about its objects, with these terms.
    pub(super) fn note_sender(&mut self, hearing: &Hearing<'_>) {
        let Hearing { now, from, at, terms } = *hearing;
        let (robust, most) = (self.config.robust, self.config.grtt_most);
        let remote = &mut self.remotes[at];
        (remote.terms, remote.silences, remote.gone) = (terms, 0, false);
        (remote.group, remote.grtt) = (from.destination, terms.grtt.span().min(most));
        let silence = silence(remote.grtt, robust);
        remote.timers.set(Timer::Inactivity, now + silence);
    }

    fn store(
        &mut self,
        ObjectIndex { at, number }: ObjectIndex,
        now: Time,
        data: &Data,
    ) -> Result<(), Reject> {
        let room = self.parity_room();
        let Some(object) = self.remotes[at].objects.get_mut(&number) else { return Err(Reject::Unexpected) };
        if !object.content.is_receiving() {
            return Err(Reject::Duplicate);
        }
        let parity = object.parity_of(data);
        object.content.store(data.block, data.symbols, parity, room, &mut self.events)?;
        object.since = now;
        self.remotes[at].fed = Some(now);
        Ok(())
    }

    /// Returns the octets of further parity that may be kept.
    fn parity_room(&self) -> u64 {
        let objects = self.remotes.iter().flat_map(|remote| remote.objects.values());
        self.config.parity_memory.saturating_sub(objects.map(|object| object.content.memory()).sum())
    }
}
