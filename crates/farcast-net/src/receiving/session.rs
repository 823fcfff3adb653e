//! One transmission, from its offer to its report.

use std::sync::Arc;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Offer;
use farcast_files::StoreError;
use farcast_mftp::ReceiverOutcome;
use farcast_mftp::message::{DeclineReason, cancel};

use super::driver::{Driver, Due};
use super::nap::Nap;
use super::{ReceiveNotice, ReceiveReport};
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

impl Driver<'_> {
    /// A transmission is offered: open its product, unless it says nothing of what it is.
    pub(super) fn offered(&mut self, offer: &Offer) {
        if offer.id.is_none() {
            return self.engine.decline(DeclineReason::UnwantedType);
        }
        if offer.group.is_multicast()
            && offer.group != self.options.from.ip()
            && let Err(error) = self.ears.join(offer.group)
        {
            return self.refuse(offer, error, DeclineReason::System);
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
    fn refuse(&mut self, offer: &Offer, error: NetError, reason: DeclineReason) {
        let (offer, joined) = (offer.clone(), self.clock.now());
        let files = Arc::default();
        let fresh = Session { offer, files, vouched: false, joined, held: 0, lost: 0, error: None };
        let session = self.session.get_or_insert(fresh);
        session.error = Some(error);
        self.engine.decline(reason);
    }

    pub(super) fn on_reply(&mut self, reply: Reply) {
        let now = self.clock.now();
        match reply {
            Reply::Opened { held, earlier, listed } => self.opened(now, held, earlier, listed),
            Reply::ListLength(segments) => self.engine.list_is(segments),
            Reply::Compared(held) => self.compared(now, &held),
            Reply::Manifest { newly_held, files } => {
                let mut map = Bitmap::new(self.engine.have().map_or(0, Bitmap::len));
                for run in newly_held {
                    map.insert_run(run);
                }
                self.engine.held(&map);
                self.engine.listed();
                self.notice(&ReceiveNotice::Files(&files));
                if let Some(session) = &mut self.session {
                    session.held += map.count();
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
            Reply::Decoded { block, rebuilt } => self.engine.decoded(block, rebuilt),
            Reply::Finished => self.engine.verified(now),
            Reply::Failed { error, vouched } => {
                if let Some(session) = &mut self.session {
                    session.vouched |= vouched;
                }
                self.failed(error);
            }
        }
    }

    /// What is there already was compared with what is sent.
    fn compared(&mut self, now: Time, held: &Bitmap) {
        let before = self.engine.have().map_or(0, Bitmap::count);
        self.engine.compared(now, held);
        let found = self.engine.have().map_or(0, Bitmap::count).saturating_sub(before);
        let Some(session) = &mut self.session else { return };
        // Files that are the same were found when their list came.
        session.held += found;
        let found = session.held;
        self.notice(&ReceiveNotice::Compared { found });
    }

    fn opened(&mut self, now: Time, held: Bitmap, earlier: bool, listed: bool) {
        let Some(mut session) = self.session.take() else { return };
        session.held = held.count();
        let notice = ReceiveNotice::Joined { offer: &session.offer, held: session.held };
        (self.observer)(now, &self.engine, &notice);
        self.session = Some(session);
        if earlier && (listed || held.is_empty()) {
            // Also one that knew the list of files may have ended before what it took over was safe.
            self.engine.accept_comparing(now, held, listed);
        } else {
            self.engine.accept(now, held);
        }
    }

    /// These segments have to come again.
    fn lost(&mut self, runs: &[Run]) {
        for &run in runs {
            self.engine.lost(run);
            if let Some(session) = &mut self.session {
                session.lost = session.lost.saturating_add(run.count());
            }
        }
    }

    /// The product cannot be stored: leave the transmission and say why.
    fn failed(&mut self, error: NetError) {
        let reason = match &error {
            NetError::Store(
                StoreError::DiskFull { .. }
                | StoreError::TooLarge { .. }
                | StoreError::OverQuota { .. }
                | StoreError::TooManyFiles { .. }
                | StoreError::TooManyProducts { .. },
            ) => DeclineReason::Disk,
            NetError::Store(StoreError::AlreadyExists { .. }) => DeclineReason::AlreadyHave,
            _ => DeclineReason::System,
        };
        let mut text = error.to_string();
        let end = (0..=text.len().min(256)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        if let Some(session) = &mut self.session {
            session.error = Some(error);
        }
        // Of the two, one applies: before it was accepted it is declined, later it is left.
        self.engine.decline(reason);
        self.engine.fail(cancel::QUIT_SYSTEM, Some(text));
    }

    pub(super) fn ended(&mut self, outcome: &ReceiverOutcome) {
        self.ears.leave();
        if !matches!(outcome, ReceiverOutcome::Complete { .. }) {
            // What changed at its source can never be completed; everything else is kept for the next try.
            // But what was here before this session is not its sender's to take.
            let held = self.session.as_ref().is_some_and(|session| session.held > 0);
            let useless = !held
                && matches!(outcome, ReceiverOutcome::Aborted { reason: cancel::ABORT_SOURCE_CHANGED, .. });
            self.due.push(if useless { Due::Discard } else { Due::Close });
        }
        let Some(session) = self.session.take() else { return };
        let now = self.clock.now();
        let stats = *self.engine.stats();
        let came = session.held.saturating_add(u32::try_from(stats.dtus).unwrap_or(u32::MAX));
        let have = came.saturating_sub(session.lost);
        let (have, end) = match outcome {
            ReceiverOutcome::Complete { at, .. } => (session.offer.geometry.segments(), *at),
            _ => (have.min(session.offer.geometry.segments()), now),
        };
        let dtu_size = u64::from(session.offer.geometry.dtu_size());
        let in_files = |first: &FileInfo| u64::from(have) > first.start.div_ceil(dtu_size);
        let report = ReceiveReport {
            outcome: outcome.clone(),
            error: session.error,
            vouched: session.vouched,
            duration: end.since(session.joined),
            held: session.held,
            have,
            kept: session.files.first().is_some_and(in_files),
            stats,
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
