//! One transmission, from its offer to its report.

use std::sync::Arc;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::{Answer, Cause, Decline, ObjectId, Offer, Outcome, Protocol, ReceiverEngine};
use farcast_files::StoreError;

use super::driver::{Driver, Due};
use super::nap::Nap;
use super::{Event, ReceiveNotice, ReceiveReport};
use crate::error::NetError;
use crate::store::{FileInfo, Reply};

/// What the driver knows of the transmission at hand.
pub(super) struct Session {
    offer: Offer,
    files: Arc<[FileInfo]>,
    vouched: bool,
    joined: Time,
    held: u32,
    /// Segments that came and had to be forgotten.
    lost: u32,
    error: Option<NetError>,
}

impl<P: Protocol> Driver<'_, P> {
    /// A transmission is offered: open its product, unless it says nothing of what it is.
    pub(super) fn offered(&mut self, offer: &Offer) {
        if offer.id.is_none() {
            let now = self.clock.now();
            return self.engine.answer(now, offer.object, Answer::Declined(Decline::Unwanted));
        }
        if offer.group.is_multicast()
            && offer.group != self.options.from.ip()
            && let Err(error) = self.ears.join(offer.group)
        {
            return self.refuse(offer, error, Decline::System);
        }
        self.nap = Nap::default();
        self.session = Some(Session {
            offer: offer.clone(),
            files: Arc::default(),
            vouched: false,
            joined: self.clock.now(),
            held: 0,
            lost: 0,
            error: None,
        });
        self.due.push(Due::Open(Box::new(offer.clone())));
    }

    /// Declines what cannot be received, and keeps the reason for the report.
    fn refuse(&mut self, offer: &Offer, error: NetError, why: Decline) {
        let (offer, joined) = (offer.clone(), self.clock.now());
        let files = Arc::default();
        let fresh = Session { offer, files, vouched: false, joined, held: 0, lost: 0, error: None };
        let session = self.session.get_or_insert(fresh);
        session.error = Some(error);
        self.answer(Answer::Declined(why));
    }

    fn answer(&mut self, answer: Answer) {
        let object = self.session.as_ref().map_or(ObjectId::FIRST, |session| session.offer.object);
        self.engine.answer(self.clock.now(), object, answer);
    }

    pub(super) fn on_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Opened { held, earlier, listed } => self.opened(held, earlier, listed),
            Reply::ListLength(segments) => self.answer(Answer::ListIs(segments)),
            Reply::Compared(held) => self.compared(held),
            Reply::Manifest { newly_held, files } => {
                let mut map = Bitmap::new(self.engine.have(ObjectId::FIRST).map_or(0, Bitmap::len));
                for run in newly_held {
                    map.insert_run(run);
                }
                let count = map.count();
                self.answer(Answer::Held(map));
                self.answer(Answer::Listed);
                self.notice(&ReceiveNotice::Files(&files));
                if let Some(session) = &mut self.session {
                    session.held += count;
                    (session.files, session.vouched) = (files, true);
                }
            }
            Reply::FilesDone(numbers) => {
                let files =
                    self.session.as_ref().map(|session| Arc::clone(&session.files)).unwrap_or_default();
                for file in numbers.iter().filter_map(|&number| files.get(number)) {
                    self.notice(&ReceiveNotice::FileDone { path: &file.path });
                }
            }
            Reply::Damaged { path, lost } => {
                self.lost(&[lost]);
                self.notice(&ReceiveNotice::Damaged { path: path.as_deref(), segments: lost.count() });
            }
            Reply::Lost(runs) => self.lost(&runs),
            Reply::NoRoom(error) => {
                self.notice(&ReceiveNotice::NoRoom { error: &error, wait: self.options.wait_for_room });
            }
            Reply::Room => self.notice(&ReceiveNotice::Room),
            Reply::Decoded { block, rebuilt } => self.answer(Answer::Decoded { block, rebuilt }),
            Reply::Finished => self.answer(Answer::Verified),
            Reply::Failed { error, vouched } => {
                if let Some(session) = &mut self.session {
                    session.vouched |= vouched;
                }
                self.failed(error);
            }
        }
    }

    /// What is there already was compared with what is sent.
    fn compared(&mut self, held: Bitmap) {
        let before = self.engine.have(ObjectId::FIRST).map_or(0, Bitmap::count);
        self.answer(Answer::Compared(held));
        let found = self.engine.have(ObjectId::FIRST).map_or(0, Bitmap::count).saturating_sub(before);
        let Some(session) = &mut self.session else { return };
        // Files that are the same were found when their list came.
        session.held += found;
        let found = session.held;
        self.notice(&ReceiveNotice::Compared { found });
    }

    fn opened(&mut self, held: Bitmap, earlier: bool, listed: bool) {
        let Some(mut session) = self.session.take() else { return };
        session.held = held.count();
        let notice = ReceiveNotice::Joined { offer: &session.offer, held: session.held };
        (self.observer)(self.clock.now(), &self.engine, &notice);
        self.session = Some(session);
        // Also one that knew the list of files may have ended before what it took over was safe.
        let compares = earlier && (listed || held.is_empty());
        self.answer(if compares { Answer::OpenEarlier(held, listed) } else { Answer::Open(held) });
    }

    /// These segments have to come again.
    fn lost(&mut self, runs: &[Run]) {
        for &run in runs {
            self.answer(Answer::Lost(run));
            if let Some(session) = &mut self.session {
                session.lost = session.lost.saturating_add(run.count());
            }
        }
    }

    /// The product cannot be stored: leave the transmission and say why.
    fn failed(&mut self, error: NetError) {
        let why = match &error {
            NetError::Store(
                StoreError::DiskFull { .. }
                | StoreError::TooLarge { .. }
                | StoreError::OverQuota { .. }
                | StoreError::TooManyFiles { .. }
                | StoreError::TooManyProducts { .. },
            ) => Decline::Disk,
            NetError::Store(StoreError::AlreadyExists { .. }) => Decline::AlreadyHave,
            _ => Decline::System,
        };
        let mut text = error.to_string();
        let end = (0..=text.len().min(256)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        if let Some(session) = &mut self.session {
            session.error = Some(error);
        }
        // Of the two, one applies: before it was accepted it is declined, later it is left.
        self.answer(Answer::Declined(why));
        self.answer(Answer::Failed(Cause::System, Some(text)));
    }

    /// It is over, as the engine says with `event`.
    pub(super) fn ended(&mut self, outcome: Outcome, event: &Event<P>) {
        self.ears.leave();
        if !matches!(outcome, Outcome::Complete(_)) {
            // What changed at its source can never be completed; everything else is kept for the next try.
            // But what was here before this session is not its sender's to take.
            let held = self.session.as_ref().is_some_and(|session| session.held > 0);
            let useless = !held && outcome == Outcome::SourceChanged;
            self.due.push(if useless { Due::Discard } else { Due::Close });
        }
        let Some(session) = self.session.take() else { return };
        let now = self.clock.now();
        let received = self.engine.received(session.offer.object);
        let came = session.held.saturating_add(u32::try_from(received.segments).unwrap_or(u32::MAX));
        let have = came.saturating_sub(session.lost);
        let (have, over) = match outcome {
            Outcome::Complete(at) => (session.offer.geometry.segments(), at),
            _ => (have.min(session.offer.geometry.segments()), now),
        };
        let dtu_size = u64::from(session.offer.geometry.segment_size());
        let in_files = |first: &FileInfo| u64::from(have) > first.start.div_ceil(dtu_size);
        let report = ReceiveReport {
            outcome,
            end: event.clone(),
            error: session.error,
            vouched: session.vouched,
            duration: over.since(session.joined),
            held: session.held,
            have,
            kept: session.files.first().is_some_and(in_files),
            received,
            malformed: self.counts.malformed,
            unsent: self.counts.unsent,
            not_accepted: self.counts.not_accepted,
            misdirected: self.counts.misdirected,
            unstored: self.counts.unstored,
            rejects: *self.engine.rejects(),
            offer: session.offer,
        };
        self.notice(&ReceiveNotice::Ended(&report));
        self.last = Some(report);
    }
}
