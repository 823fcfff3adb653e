//! Waiting for room on a full disk.
//!
//! One buffer that cannot be written is kept, and tried again each second. All content that arrives meanwhile is
//! dropped, whatever its object. Only when there is room again is the engine told that this content is missing. If the
//! engine asked for it earlier, it would come in vain.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::{ObjectId, Offer};
use farcast_files::StoreError;

use super::product::Product;
use super::worker::{AnswerChannel, Worker};
use super::{Arena, ArenaStep, Opening, Reply};
use crate::error::NetError;

/// Interval between two tries.
const TRY_EVERY: Span = Span::from_secs(1);

/// Work that is tried again.
pub(super) enum Retry {
    /// Opens an object.
    Open { opening: Opening, answer: AnswerChannel },
    /// Does what the stored content of an object makes possible, and then the steps of this buffer from one of them on.
    Steps { object: ObjectId, arena: Option<Arena>, from: usize },
}

impl Retry {
    /// Returns the channel for replies about it, if the object is still open.
    pub(super) fn answer<'a>(
        &'a self,
        products: &'a BTreeMap<ObjectId, Product>,
    ) -> Option<&'a AnswerChannel> {
        match self {
            Self::Open { answer, .. } => Some(answer),
            Self::Steps { object, .. } => products.get(object).map(|product| &product.answer),
        }
    }

    fn is_opening(&self, object: ObjectId) -> bool {
        matches!(self, Self::Open { opening, .. } if opening.offer.object == object)
    }
}

/// Work that waits for room, and the content that was dropped meanwhile.
pub(super) struct NoRoom {
    since: Time,
    next: Time,
    /// Channel of the object that found the disk full.
    answer: AnswerChannel,
    /// Work in the order in which it is tried. Buffers are dropped as long as one waits, so there is one at most.
    retries: VecDeque<Retry>,
    /// Segments that arrived and were dropped.
    dropped: BTreeMap<ObjectId, Bitmap>,
    /// Objects that the engine believes to be complete here.
    pub(super) finish: BTreeSet<ObjectId>,
}

impl NoRoom {
    /// Returns the state for a disk that is full since `now`.
    pub(super) fn new(now: Time, answer: AnswerChannel, retry: Retry) -> Self {
        Self {
            since: now,
            next: now + TRY_EVERY,
            answer,
            retries: VecDeque::from([retry]),
            dropped: BTreeMap::new(),
            finish: BTreeSet::new(),
        }
    }

    /// Adds work that waits too.
    pub(super) fn add(&mut self, retry: Retry) {
        self.retries.push_back(retry);
    }

    /// Notes a new name for an object that waits to be opened.
    pub(super) fn rename(&mut self, offer: Box<Offer>) {
        let object = offer.object;
        let openings = self.retries.iter_mut().filter_map(|retry| match retry {
            Retry::Open { opening, .. } => Some(opening),
            Retry::Steps { .. } => None,
        });
        if let Some(opening) = openings.into_iter().find(|opening| opening.offer.object == object) {
            opening.offer = offer;
        }
    }

    /// Notes the content of a buffer that is dropped.
    pub(super) fn drop_steps(&mut self, arena: &Arena, products: &BTreeMap<ObjectId, Product>) {
        let mut of = None;
        for step in &arena.steps {
            match *step {
                ArenaStep::Of(object) => of = products.get(&object),
                ArenaStep::Store { segment, .. } => {
                    if let Some(product) = of {
                        let fresh = || Bitmap::new(product.incoming.held().len());
                        self.dropped.entry(product.object).or_insert_with(fresh).insert(segment);
                    }
                }
                // A missing symbol makes rebuilding fail, and then others are requested.
                ArenaStep::Parity { .. } => {}
                ArenaStep::Decode { block } => {
                    if let Some(product) = of {
                        product.answer.send(Reply::Decoded { block, rebuilt: false });
                    }
                }
            }
        }
    }
}

impl Worker {
    /// Tries again the work that the full disk has stopped, if it is time.
    pub(super) fn try_for_room(&mut self) {
        let now = self.clock.now();
        let Some(mut no_room) = self.no_room.take_if(|no_room| now >= no_room.next) else { return };
        let over = now.since(no_room.since) >= self.wait_for_room;
        while let Some(mut retry) = no_room.retries.pop_front() {
            let Err(error) = self.again(&mut retry) else {
                if let Retry::Steps { arena: Some(arena), .. } = retry {
                    self.give_back(arena);
                }
                continue;
            };
            if over || !matches!(error, NetError::Store(StoreError::DiskFull { .. })) {
                // Only this work is given up: the other objects are told what they lack, and find out whether there is
                // room for it.
                self.give_up(error, retry);
                continue;
            }
            no_room.retries.push_front(retry);
            no_room.next = now + TRY_EVERY;
            self.no_room = Some(no_room);
            return;
        }
        self.room_again(no_room);
    }

    fn again(&mut self, retry: &mut Retry) -> Result<(), NetError> {
        match retry {
            Retry::Open { opening, answer } => self.open(opening, answer),
            Retry::Steps { object, arena, from } => {
                self.retry(*object)?;
                let Some(arena) = arena else { return Ok(()) };
                self.steps(arena, *from).map_err(|failure| {
                    (*object, *from) = (failure.object, failure.at);
                    failure.error
                })
            }
        }
    }

    fn room_again(&mut self, mut no_room: NoRoom) {
        if !self.products.is_empty() {
            no_room.answer.send(Reply::Room);
        }
        for (object, dropped) in no_room.dropped {
            let runs: Vec<_> = dropped.iter_runs().collect();
            if let Some(product) = self.products.get(&object) {
                product.answer.send(Reply::Lost(runs));
                no_room.finish.remove(&object);
            }
        }
        for object in no_room.finish {
            self.finish(object);
        }
    }

    /// Forgets the waiting work of `object`, which is closed.
    pub(super) fn wait_no_more(&mut self, object: ObjectId) {
        let Some(no_room) = &mut self.no_room else { return };
        no_room.dropped.remove(&object);
        no_room.finish.remove(&object);
        no_room.retries.retain(|retry| !retry.is_opening(object));
        let opens = no_room.retries.iter().any(|retry| matches!(retry, Retry::Open { .. }));
        if self.products.is_empty() && !opens {
            // Nobody wants the content of the buffer that waits.
            let retries = self.no_room.take().map(|no_room| no_room.retries).unwrap_or_default();
            for retry in retries {
                if let Retry::Steps { arena: Some(arena), .. } = retry {
                    self.give_back(arena);
                }
            }
        }
    }
}
