//! Waiting for room on a full disk.
//!
//! What cannot be written is kept, one buffer of it, and tried again each second. What comes meanwhile is dropped, and
//! only when there is room is the engine told that it is missing: asked for earlier, it would come in vain.

use std::path::PathBuf;

use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::Offer;
use farcast_files::{Options, StoreError};

use super::worker::{Answer, Worker};
use super::{Arena, Reply, Step};
use crate::error::NetError;

/// Between two tries.
const TRY_EVERY: Span = Span::from_secs(1);

/// What is tried again.
pub(super) enum Retry {
    /// To open the product.
    Open { offer: Box<Offer>, dir: PathBuf, options: Options },
    /// To do what all that is stored makes possible, and the steps of this buffer from one of them on.
    Steps { arena: Option<Arena>, from: usize },
}

/// What waits for room.
pub(super) struct NoRoom {
    since: Time,
    next: Time,
    retry: Retry,
    /// Segments that came and were dropped.
    dropped: Bitmap,
    /// Whether the engine believes that everything is there.
    pub(super) finish: bool,
}

impl NoRoom {
    /// Since `now`; the product has so many `segments`.
    pub(super) fn new(now: Time, retry: Retry, segments: u32) -> Self {
        Self { since: now, next: now + TRY_EVERY, retry, dropped: Bitmap::new(segments), finish: false }
    }

    /// Notes what is dropped.
    pub(super) fn drop_steps(&mut self, arena: &Arena, answer: &Answer) {
        for step in &arena.steps {
            match *step {
                Step::Store { segment, .. } => _ = self.dropped.insert(segment),
                // A symbol that is missing makes rebuilding fail, and then others are asked for.
                Step::Parity { .. } => {}
                Step::Decode { block } => answer.send(Reply::Decoded { block, rebuilt: false }),
            }
        }
    }
}

impl Worker {
    /// Tries again what the full disk has stopped, if it is time.
    pub(super) fn try_for_room(&mut self) {
        let now = self.clock.now();
        let Some(mut no_room) = self.no_room.take_if(|no_room| now >= no_room.next) else { return };
        let error = match self.again(&mut no_room.retry) {
            Ok(()) => return self.room_again(no_room),
            Err(error) => error,
        };
        let full = matches!(error, NetError::Store(StoreError::DiskFull { .. }));
        let over = now.since(no_room.since) >= self.wait_for_room;
        no_room.next = now + TRY_EVERY;
        self.no_room = Some(no_room);
        if !full || over {
            self.fail(error);
        }
    }

    fn again(&mut self, retry: &mut Retry) -> Result<(), NetError> {
        match retry {
            Retry::Open { offer, dir, options } => self.open(offer, dir, *options),
            Retry::Steps { arena, from } => {
                self.retry()?;
                let Some(arena) = arena else { return Ok(()) };
                self.steps(arena, *from).map_err(|failure| {
                    *from = failure.at;
                    failure.error
                })
            }
        }
    }

    fn room_again(&mut self, no_room: NoRoom) {
        self.answer.send(Reply::Room);
        if let Retry::Steps { arena: Some(arena), .. } = no_room.retry {
            self.give_back(arena);
        }
        let runs: Vec<_> = no_room.dropped.iter_runs().collect();
        if !runs.is_empty() {
            self.answer.send(Reply::Lost(runs));
        } else if no_room.finish {
            self.finish();
        }
    }

    /// Forgets what waits for room.
    pub(super) fn wait_no_more(&mut self) {
        if let Some(NoRoom { retry: Retry::Steps { arena: Some(arena), .. }, .. }) = self.no_room.take() {
            self.give_back(arena);
        }
    }
}
