//! The reception of one object, from its offer to its report.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{AT_HAND, Answer, Cause, Decline, ObjectId, Offer, Outcome, Protocol, ReceiverEngine};
use farcast_files::StoreError;
use farcast_seal::SessionId;

use super::driver::{Driver, StoreOrder, Unremembered};
use super::nap::Nap;
use super::report::lacks_room;
use super::{Event, ReceiveNotice, ReceiveReport};
use crate::error::NetError;
use crate::listening::ListenNotice;
use crate::seal::HistoryState;
use crate::store::{FileInfo, PlainFile, Reply, is_final};

/// Object under way, as the driver knows it.
pub(super) struct Session {
    offer: Offer,
    /// Name, from the list, of the sender that has proved to have offered it.
    signer: Option<String>,
    /// Seal session of the latest content of it.
    sealed_in: Option<SessionId>,
    /// Number by which the store knows its reception.
    reception: u64,
    files: Arc<[FileInfo]>,
    vouched: bool,
    plain: Option<PlainFile>,
    joined: Time,
    held: u32,
    /// Parity symbols that an earlier run has kept.
    kept_parity: u32,
    /// Segments that arrived and had to be forgotten.
    lost: u32,
    error: Option<NetError>,
}

impl Session {
    fn new(offer: &Offer, reception: u64, joined: Time) -> Self {
        Self {
            offer: offer.clone(),
            signer: None,
            sealed_in: None,
            reception,
            files: Arc::default(),
            vouched: false,
            plain: None,
            joined,
            held: 0,
            kept_parity: 0,
            lost: 0,
            error: None,
        }
    }

    /// Returns `true` if the received part is kept and a later transfer can continue it.
    fn is_kept(&self, have: u32, parity: u64, vouched_only: bool) -> bool {
        // With such an error the object can never be completed.
        if self.error.as_ref().is_some_and(is_final) {
            return false;
        }
        if self.offer.id.is_none() {
            let known = self.offer.serial.is_some() && (self.offer.vouched.is_some() || !vouched_only);
            return have > 0 && known;
        }
        let segment_size = u64::from(self.offer.geometry.segment_size());
        let in_files = |first: &FileInfo| u64::from(have) > first.start.div_ceil(segment_size);
        self.files.first().is_some_and(in_files) || (parity > 0 && !self.files.is_empty())
    }
}

impl<P: Protocol> Driver<'_, P> {
    /// Handles an offer: opens the object. Declines it if it has no manifest and such objects are not wanted, or if too
    /// many are under way.
    pub(super) fn offered(&mut self, offer: &Offer) {
        if offer.id.is_none() && !self.options.plain {
            return self.answer(offer.object, Answer::Declined(Decline::Unwanted));
        }
        if self.sessions.len() >= AT_HAND && !self.sessions.contains_key(&offer.object) {
            self.counts.crowded += 1;
            return self.answer(offer.object, Answer::Declined(Decline::Busy));
        }
        if self.sessions.is_empty() {
            self.nap = Nap::default();
            self.opening = Some(self.clock.now());
        }
        let signer = self.signer(self.speaking).map(str::to_owned);
        let session = Session::new(offer, self.store.number(), self.clock.now());
        let session = Session { signer, sealed_in: self.speaking, ..session };
        let reception = session.reception;
        self.sessions.insert(offer.object, session);
        if offer.group.is_multicast()
            && offer.group != self.options.listen.from.ip()
            && let Err(error) = self.sockets.join(offer.group)
        {
            return self.refuse(offer.object, error, Decline::System);
        }
        self.due.push(StoreOrder::Open(reception, Box::new(offer.clone())));
    }

    /// Notes that content of `object` has arrived that was sealed in `session`.
    pub(super) fn note_session(
        sessions: &mut BTreeMap<ObjectId, Session>,
        object: ObjectId,
        session: Option<SessionId>,
    ) {
        // Without a seal there is no session and nothing to look for.
        if session.is_some()
            && let Some(one) = sessions.get_mut(&object)
        {
            one.sealed_in = session;
        }
    }

    /// Returns the list's name for the sender of `session`.
    fn signer(&self, session: Option<SessionId>) -> Option<&str> {
        self.seal.as_deref()?.signer(session?)
    }

    /// Returns `true` if the sender of `session` has made all offers that came from `source`. Another trusted sender
    /// may have forged that address.
    pub(super) fn is_of_its_sender(&self, source: SocketAddr, session: Option<SessionId>) -> bool {
        let signer = self.signer(session);
        let of_there = self.sessions.values().filter(|one| one.offer.sender == source);
        of_there.into_iter().all(|one| one.signer.as_deref() == signer)
    }

    /// Handles the name of an object, which is known now.
    pub(super) fn renamed(&mut self, offer: &Offer) {
        if let Some(session) = self.sessions.get_mut(&offer.object) {
            session.offer = offer.clone();
            self.due.push(StoreOrder::Rename(Box::new(offer.clone())));
        }
    }

    /// Declines an object that cannot be received, and keeps the reason for the report.
    fn refuse(&mut self, object: ObjectId, error: NetError, why: Decline) {
        if let Some(session) = self.sessions.get_mut(&object) {
            session.error = Some(error);
        }
        self.answer(object, Answer::Declined(why));
    }

    fn answer(&mut self, object: ObjectId, answer: Answer) {
        self.engine.answer(self.clock.now(), object, answer);
    }

    fn count(&self, object: ObjectId) -> u32 {
        self.engine.have(object).map_or(0, Bitmap::count)
    }

    /// Handles the store's reply about a reception.
    pub(super) fn on_reply(&mut self, reception: u64, reply: Reply) {
        match &reply {
            // This reply is about the disk. It counts even if the object that met the full disk is over.
            Reply::NoRoom(error) => {
                self.lacks_room = true;
                return self.notice(&ReceiveNotice::NoRoom { error, wait: self.options.wait_for_room });
            }
            Reply::Room => {
                self.lacks_room = false;
                return self.notice(&ReceiveNotice::Room);
            }
            Reply::Removed { partial, why } => {
                return self.notice(&ReceiveNotice::Removed { partial, why: *why });
            }
            Reply::Refused(refusal) => {
                // Each kind is reported once for all objects.
                if self.refused.insert(refusal.nicety) {
                    self.notice(&ReceiveNotice::Refused(refusal));
                }
                return;
            }
            _ => {}
        }
        // Replies about receptions that are over are ignored.
        let current = |(_, session): &(&ObjectId, &mut Session)| session.reception == reception;
        let Some((&object, session)) = self.sessions.iter_mut().find(current) else { return };
        self.opening = None;
        match reply {
            Reply::NoRoom(_) | Reply::Room | Reply::Removed { .. } | Reply::Refused(_) => {}
            Reply::Withheld { path, why } => {
                self.notice(&ReceiveNotice::Withheld { object, path: &path, why: &why });
            }
            Reply::Opened { held, earlier, listed } => self.opened(object, held, earlier, listed),
            Reply::Kept(kept) => self.kept(object, &kept),
            Reply::ListLength(segments) => self.answer(object, Answer::ListIs(segments)),
            Reply::Compared(held) => self.compared(object, held),
            Reply::Manifest { newly_held, files } => self.listed(object, &newly_held, &files),
            Reply::Plain(file) => {
                session.plain = Some(file.clone());
                session.vouched |= file.vouched;
                self.notice(&ReceiveNotice::FileDone { object, path: &file.path });
            }
            Reply::FilesDone(numbers) => {
                let files = Arc::clone(&session.files);
                for file in numbers.iter().filter_map(|&number| files.get(number)) {
                    self.notice(&ReceiveNotice::FileDone { object, path: &file.path });
                }
            }
            Reply::Damaged { path, lost } => {
                self.lost(object, &[lost]);
                let (path, segments) = (path.as_deref(), lost.count());
                self.notice(&ReceiveNotice::Damaged { object, path, segments });
            }
            Reply::Lost(runs) => self.lost(object, &runs),
            Reply::Decoded { block, rebuilt } => self.answer(object, Answer::Decoded { block, rebuilt }),
            Reply::Waiting(files) => self.complete_once_remembered(object, Some(files)),
            Reply::Finished => self.answer(object, Answer::Verified),
            Reply::Failed { error, vouched } => {
                session.vouched |= vouched;
                self.failed(object, error);
            }
        }
    }

    /// Handles the list of files, and the segments that are known to be held with it.
    fn listed(&mut self, object: ObjectId, newly_held: &[Run], files: &Arc<[FileInfo]>) {
        let mut map = Bitmap::new(self.engine.have(object).map_or(0, Bitmap::len));
        for &run in newly_held {
            map.insert_run(run);
        }
        let count = map.count();
        self.answer(object, Answer::Held(map));
        self.answer(object, Answer::Listed);
        self.notice(&ReceiveNotice::Files { object, files });
        if let Some(session) = self.sessions.get_mut(&object) {
            session.held += count;
            (session.files, session.vouched) = (Arc::clone(files), true);
        }
    }

    /// Handles the result of comparing older versions with the files that are sent.
    fn compared(&mut self, object: ObjectId, held: Bitmap) {
        let before = self.count(object);
        self.answer(object, Answer::Compared(held));
        let found = self.count(object).saturating_sub(before);
        let Some(session) = self.sessions.get_mut(&object) else { return };
        // Identical files were found when the list came.
        session.held += found;
        let found = session.held;
        self.notice(&ReceiveNotice::Compared { object, found });
    }

    fn opened(&mut self, object: ObjectId, held: Bitmap, earlier: bool, listed: bool) {
        let Some(session) = self.sessions.get_mut(&object) else { return };
        session.held = held.count();
        let notice = ReceiveNotice::Joined { offer: &session.offer, held: session.held };
        (self.observer)(self.clock.now(), &self.engine, &notice);
        // Even a run that knew the list may have ended before the content that it took over was safe.
        let compares = earlier && (listed || held.is_empty());
        let answer = if compares { Answer::OpenEarlier(held, listed) } else { Answer::Open(held) };
        self.answer(object, answer);
    }

    /// Handles the parity symbols of an earlier run, by block.
    fn kept(&mut self, object: ObjectId, kept: &[(u32, Bitmap)]) {
        for (block, symbols) in kept {
            self.engine.kept(self.clock.now(), object, *block, symbols);
        }
        let count = kept.iter().map(|(_, symbols)| symbols.count()).sum();
        if let Some(session) = self.sessions.get_mut(&object) {
            session.kept_parity = count;
        }
    }

    /// Handles the loss of segments, which have to be sent again.
    fn lost(&mut self, object: ObjectId, runs: &[Run]) {
        for &run in runs {
            let before = self.count(object);
            self.answer(object, Answer::Lost(run));
            // Some segments were missing before, and others do not have to come again.
            let after = self.engine.have(object).map_or(before, Bitmap::count);
            if let Some(session) = self.sessions.get_mut(&object) {
                session.lost = session.lost.saturating_add(before.saturating_sub(after));
            }
        }
    }

    /// Handles the arrival of all content of an object. The object is complete once all is stored. If it could be
    /// played back, its session has to be remembered first.
    pub(super) fn verify(&mut self, object: ObjectId) {
        if self.must_remember(object) {
            self.complete_once_remembered(object, None);
        } else {
            self.due.push(StoreOrder::Finish(object));
        }
    }

    /// Returns `true` if the content of `object` could be played back to a receiver that has forgotten it.
    pub(super) fn must_remember(&self, object: ObjectId) -> bool {
        let sealed_in = self.sessions.get(&object).and_then(|session| session.sealed_in);
        self.seal.as_ref().zip(sealed_in).is_some_and(|(seal, session)| seal.must_remember(session))
    }

    /// Completes the first `files` files of `object`, or all of it, once the history that contains them is written.
    fn complete_once_remembered(&mut self, object: ObjectId, files: Option<usize>) {
        let Some(seal) = &mut self.seal else { return };
        self.unremembered.push(Unremembered { object, number: seal.keep(), files });
    }

    /// Completes the objects whose sessions are remembered now, and leaves those whose sessions cannot be.
    pub(super) fn remember(&mut self) {
        let Some(seal) = &mut self.seal else { return };
        let mut lost = Vec::new();
        self.unremembered.retain(|one| match seal.kept(one.number, Span::ZERO) {
            HistoryState::Pending => true,
            HistoryState::Safe => {
                let object = one.object;
                self.due.push(
                    one.files.map_or(StoreOrder::Finish(object), |files| StoreOrder::Release(object, files)),
                );
                false
            }
            HistoryState::Lost(why) => {
                lost.push((one.object, why));
                false
            }
        });
        let forgetful = seal.newly_forgetful().map(NetError::Forgetful);
        if let Some(why) = forgetful {
            self.listen_notice(ListenNotice::Forgetful { why: &why });
        }
        for (object, why) in lost {
            self.failed(object, NetError::Forgetful(why));
        }
    }

    /// Leaves an object that cannot be stored, and tells the engine why.
    fn failed(&mut self, object: ObjectId, error: NetError) {
        let why = match &error {
            NetError::Store(error) if lacks_room(error) => Decline::Disk,
            NetError::Store(StoreError::AlreadyExists { .. }) => Decline::AlreadyHave,
            _ => Decline::System,
        };
        let mut text = error.to_string();
        let end = (0..=text.len().min(256)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        // One of the two answers applies: an object is declined before it was accepted, and left later.
        self.refuse(object, error, why);
        self.answer(object, Answer::Failed(Cause::System, Some(text)));
    }

    /// Handles the end of `object`, which the engine reports with `event`.
    pub(super) fn ended(&mut self, object: ObjectId, outcome: Outcome, event: &Event<P>) {
        let session = self.sessions.remove(&object);
        self.unremembered.retain(|one| one.object != object);
        self.leave();
        let mut useless = false;
        if !matches!(outcome, Outcome::Complete(_)) {
            // An object that changed at its source can never be completed; every other one is kept for the next try.
            // But its sender may not make us drop segments that were here before this session.
            let held = session.as_ref().is_some_and(|session| session.held > 0);
            useless = !held
                && matches!(outcome, Outcome::SourceChanged | Outcome::SourceRenewed | Outcome::Withdrawn);
            self.due.push(if useless { StoreOrder::Discard(object) } else { StoreOrder::Close(object) });
        }
        let Some(session) = session else { return };
        // If a sender began again and only heard that all is here, no content has arrived in that session.
        if let Some(seal) = &mut self.seal
            && P::Receiver::is_settled(event)
        {
            for over in [session.sealed_in, self.speaking].into_iter().flatten() {
                seal.close(over);
            }
        }
        let now = self.clock.now();
        let received = self.engine.received(object);
        let came = session.held.saturating_add(u32::try_from(received.segments).unwrap_or(u32::MAX));
        let have = came.saturating_sub(session.lost);
        let parity =
            if P::Receiver::KEEPS_PARITY { received.parity + u64::from(session.kept_parity) } else { 0 };
        let (have, over) = match outcome {
            Outcome::Complete(at) => (session.offer.geometry.segments(), at),
            _ => (have.min(session.offer.geometry.segments()), now),
        };
        let report = ReceiveReport {
            outcome,
            end: event.clone(),
            kept: !useless && session.is_kept(have, parity, self.options.files.vouched_only),
            error: session.error,
            vouched: session.vouched,
            plain: session.plain,
            duration: over.since(session.joined),
            held: session.held,
            have,
            received,
            has_content: received.segments > 0 || received.parity > 0,
            malformed: self.counts.malformed,
            unsent: self.counts.unsent,
            not_accepted: self.counts.not_accepted,
            misdirected: self.counts.misdirected,
            unstored: self.counts.unstored,
            crowded: self.counts.crowded,
            missed: 0,
            seal: self.seal.as_ref().map(|seal| seal.counts()),
            rejects: *self.engine.rejects(),
            offer: session.offer,
        };
        self.notice(&ReceiveNotice::Ended(&report));
        // The end of another sender's object does not replace a report that counts.
        let stays =
            |last: &ReceiveReport<Event<P>>| last.counts() && last.offer.sender != report.offer.sender;
        if report.counts() || !self.last.as_ref().is_some_and(stays) {
            self.last = Some(report);
        }
    }

    /// Leaves the private group if no object needs it any more.
    fn leave(&mut self) {
        let needed = |group| self.sessions.values().any(|session| session.offer.group == group);
        if self.sockets.private_group().is_some_and(|group| !needed(group)) {
            self.sockets.leave();
        }
    }
}
