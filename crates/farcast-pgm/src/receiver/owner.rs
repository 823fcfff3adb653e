//! The receiver as its owner sees it: answers to its requests, and what it knows of objects.

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, RejectCounts};
use farcast_core::{Bitmap, Time};
use farcast_delivery::{Answer, ErasureCode, ObjectId, Outcome, Proved, Received, ReceiverEngine, Request};

use super::Receiver;
use super::remote::Remote;
use crate::event::ReceiverEvent;
use crate::message::{Body, Gsi, Message};

impl ReceiverEngine for Receiver {
    fn request(event: &ReceiverEvent) -> Option<Request<'_>> {
        event.request()
    }

    fn answer(&mut self, now: Time, object: ObjectId, answer: Answer) {
        match answer {
            Answer::Open(held) | Answer::OpenEarlier(held, _) => self.accept(now, object, &held),
            Answer::Declined(_) | Answer::Failed(..) => self.decline(now, object),
            Answer::Held(held) | Answer::Compared(held) => self.held(now, object, &held),
            Answer::Lost(segments) => self.lost(now, object, segments),
            Answer::Verified => self.verified(now, object),
            Answer::Decoded { block, rebuilt } => self.decoded(now, object, block, rebuilt),
            Answer::ListIs(_) | Answer::Listed => {}
        }
    }

    /// Ends all receptions, and accepts nothing more. Informs the sources that rely on this receiver's
    /// acknowledgements.
    fn stop(&mut self, now: Time) {
        if self.is_stopped {
            return;
        }
        self.outbox.clear();
        self.resign(now);
        for at in 0..self.remotes.len() {
            self.end_all(at, Outcome::Failed);
        }
        self.remotes.clear();
        self.is_stopped = true;
    }

    fn moved(&mut self, _now: Time) {}

    fn begins_anew(&mut self, _now: Time, who: &Proved<'_>) {
        Self::begins_anew(self, Gsi(who.number.source()));
    }

    fn is_busy(&self) -> bool {
        // A joined stream is acknowledged even if it had no content.
        let joined = |remote: &Remote| self.only == Some(remote.tsi) && remote.is_unfinished();
        self.remotes.iter().any(|remote| remote.is_busy() || joined(remote))
    }

    fn is_busy_with(&self, source: SocketAddr) -> bool {
        self.remotes.iter().any(|remote| remote.source == source && remote.is_busy())
    }

    fn erasure_code(&self, _object: ObjectId) -> ErasureCode {
        ErasureCode::ReedSolomon8
    }

    fn have(&self, object: ObjectId) -> Option<&Bitmap> {
        self.objects().find(|found| found.id == object).map(|found| &found.have)
    }

    fn unstored(&mut self, _from: &Arrival, message: &Message) {
        let Body::Data(data) = &message.body else { return };
        if let Some(remote) = self.remotes.iter_mut().find(|remote| remote.tsi == message.tsi) {
            remote.note_passage(data);
        }
    }

    fn received(&self, object: ObjectId) -> Received {
        let under_way = self.remotes.iter().find_map(|remote| {
            let found = remote.objects().find(|found| found.id == object);
            found.map(|found| found.came(remote.passage))
        });
        let over = || self.over.iter().rev().find(|(over, _)| *over == object).map(|&(_, received)| received);
        under_way.or_else(over).unwrap_or_default()
    }

    fn naks(&self) -> u64 {
        self.naks
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}
