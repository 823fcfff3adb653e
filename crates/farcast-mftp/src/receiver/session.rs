//! State of a receiver for the current transmission.

use alloc::collections::{BTreeMap, BTreeSet};
use core::num::NonZeroU32;

use farcast_core::{Bitmap, Run, Time};
use farcast_delivery::Geometry;

use super::answers::{Gaps, Question};
use super::control::{Control, Terms};
use super::guard::Guard;
use super::losses::Losses;
use super::parity::Cost;
use crate::message::{Data, DataKind, Nak};
use crate::turn::{HeardData, Turn};

/// Answers that are held back, to spread them.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) question: Question,
    /// Blocks for which another receiver has sent the same NAK.
    pub(super) suppressed: BTreeSet<u32>,
}

/// Progress of the comparison with stored older versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    /// There is nothing to compare, or the comparison is over.
    None,
    /// The receiver waits for the list of files.
    Due {
        /// Number of segments of the list, once the owner knows it.
        list: Option<u32>,
        /// Number of status requests during the wait for the owner's report.
        asked: u8,
    },
    /// The owner knows the list.
    Listed,
    /// The owner compares, and will answer this question.
    Running(Question),
}

/// Parity symbols of a block.
#[derive(Clone, Debug)]
pub(super) struct Symbols {
    pub(super) held: Bitmap,
    /// Number of symbols for which memory is reserved: the last symbol of a block must never be refused for lack of it.
    pub(super) reserved: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) terms: Terms,
    pub(super) control: Control,
    pub(super) have: Bitmap,
    /// Segments that were held before the transmission; empty if none were.
    pub(super) held_before: Bitmap,
    /// Parity symbols held, of incomplete blocks.
    pub(super) parity: BTreeMap<u32, Symbols>,
    /// Bytes that these symbols take and have reserved, at their owner too.
    pub(super) parity_memory: u64,
    pub(super) comparison: Comparison,
    /// `true` if the sender announces that it sends only requested DTUs.
    pub(super) restart: bool,
    /// `true` if the sender has asked about a pass that sends everything.
    pub(super) whole: bool,
    /// Blocks that the owner is rebuilding.
    pub(super) decoding: BTreeSet<u32>,
    pub(super) pass: u32,
    pub(super) pending: Option<Pending>,
    pub(super) naked_dtus: u64,
    pub(super) losses: Losses,
    /// Losses of the first pass, for a registration.
    pub(super) heard: HeardData,
    /// Turn that was called before the owner took part, and its time.
    pub(super) called: Option<(Time, Turn)>,
    /// Round in which the receiver last spoke by turn.
    pub(super) spoke: Option<u16>,
    pub(super) guard: Guard,
    /// Last Done that was sent.
    pub(super) done: Option<farcast_core::Transmit<crate::message::Message>>,
}

impl Session {
    pub(super) fn offered(now: Time, terms: Terms, guard: Guard, called: Option<Turn>) -> Self {
        Self {
            guard,
            done: None,
            control: Control::offered(now, &terms, called.is_some()),
            terms,
            have: Bitmap::new(0),
            held_before: Bitmap::new(0),
            parity: BTreeMap::new(),
            parity_memory: 0,
            comparison: Comparison::None,
            restart: false,
            whole: false,
            decoding: BTreeSet::new(),
            pass: 0,
            pending: None,
            naked_dtus: 0,
            losses: Losses::default(),
            heard: HeardData::default(),
            called: called.map(|turn| (now, turn)),
            spoke: None,
        }
    }

    pub(super) fn geometry(&self) -> &Geometry {
        self.terms.geometry()
    }

    /// Adds to `nak`, an answer to `question`, the number of DTUs that came and were not stored. Returns the number of
    /// further lost DTUs.
    pub(super) fn note_asked(&mut self, question: &Question, nak: &mut Nak) -> u32 {
        nak.unstored = self.losses.unstored_of(nak);
        self.losses.asked(question, nak, self.restart)
    }

    /// Records that `segments` came and are not stored, so that they were not lost on the way.
    pub(super) fn note_unstored(&mut self, segments: Run) {
        let geometry = *self.geometry();
        let mut rest = segments.clip(0, geometry.segments());
        while let Some(run) = rest {
            let block = geometry.block_of(run.first());
            let end = geometry.first_of(block).saturating_add(geometry.block_len(block)).min(run.end());
            self.losses.unstored(block, self.pass, end - run.first());
            rest = Run::new(end, run.end() - end);
        }
    }

    /// Records that `segments` came for the first time, in `pass`. Those that lie before others of the first pass that
    /// came do not count.
    pub(super) fn note_heard(&mut self, pass: u32, segments: Run) {
        let heard = &mut self.heard;
        let began = heard.sent > 0;
        let end = heard.missed + heard.sent;
        let from = if began { segments.first().max(end) } else { segments.first() };
        if pass != 1 || self.restart || from >= segments.end() {
            return;
        }
        if !began {
            heard.missed = from;
        }
        if let Some(between) = Run::new(end, from - end).filter(|_| began) {
            heard.lost += between.count() - self.held_before.count_in(between);
        }
        heard.sent = segments.end() - heard.missed;
    }

    /// Records that the segments held now were held before the transmission.
    pub(super) fn note_held(&mut self) {
        let none = self.have.next_set(0).is_none();
        self.held_before = if none { Bitmap::new(0) } else { self.have.clone() };
    }

    /// Drops the parity symbols of `block`, which is complete, or which they did not help to rebuild.
    pub(super) fn forget_parity(&mut self, block: u32) {
        if let Some(symbols) = self.parity.remove(&block) {
            self.parity_memory -= Cost::of(&self.terms).bytes(symbols.reserved);
        }
    }

    /// Returns the number of segments held, as a registration reports it. If there is something to compare, it is an
    /// explicit 0.
    pub(super) fn claim(&self) -> Option<u32> {
        match self.comparison {
            Comparison::None if self.control.speaks_by_turns() => {
                Some(self.held_before.count()).filter(|&held| held > 0)
            }
            Comparison::None => Some(self.have.count()).filter(|&held| held > 0),
            _ => Some(0),
        }
    }

    /// Drops a pending comparison if everything is being sent and some is stored. The receiver then reports that instead.
    /// Data that comes before the first request may have left before the sender knew of the comparison.
    pub(super) fn drop_stale_comparison(&mut self) {
        let Comparison::Due { list, .. } = self.comparison else { return };
        if self.whole && self.have.next_set(list.unwrap_or(0)).is_some() {
            self.comparison = Comparison::None;
        }
    }

    /// Returns the number of DTUs of `block` that are missing.
    pub(super) fn missing_in(&self, block: u32) -> u32 {
        self.geometry().block_run(block).map_or(0, |run| run.count() - self.have.count_in(run))
    }

    /// Returns the number of segments of `data` that may be taken at once, up to the one that changes the receiver's
    /// state.
    pub(super) fn prefix(&self, data: &Data) -> NonZeroU32 {
        let whole = NonZeroU32::new(data.dtus.count()).unwrap_or(NonZeroU32::MIN);
        let delicate = data.kind == DataKind::Parity
            || self.parity.contains_key(&data.block)
            || data.pass != self.pass
            || (!self.control.accepted && !self.control.register_timer);
        if delicate {
            return NonZeroU32::MIN;
        }
        let Some(segments) = self.geometry().segments_of(data.block, data.dtus) else { return whole };
        if segments.count() - self.have.count_in(segments) < self.have.len() - self.have.count() {
            return whole;
        }
        // The last gap is in this run: the product is complete once it is filled.
        let last = (segments.segments()).rev().find(|&segment| !self.have.contains(segment));
        last.and_then(|last| NonZeroU32::new(last - segments.first() + 1)).unwrap_or(whole)
    }
}

impl Gaps for Session {
    fn next_gap(&self, from: u32) -> Option<u32> {
        self.have.next_clear(from)
    }

    fn gaps_in(&self, run: Run, each: &mut dyn FnMut(Run)) {
        for gap in self.have.gaps_in(run) {
            each(gap);
        }
    }

    fn is_rebuilding(&self, block: u32) -> bool {
        self.decoding.contains(&block)
    }

    fn parity_held(&self, block: u32) -> u32 {
        self.parity.get(&block).map_or(0, |symbols| symbols.held.count())
    }
}
