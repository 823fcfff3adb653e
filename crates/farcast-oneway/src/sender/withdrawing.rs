//! Withdrawn segments, whose files changed or are gone.
//!
//! A block with such a segment is torn: its parity is of the content before, and useless to a receiver that lacks any of
//! the segment. So a torn block sends its source symbols again instead.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use farcast_core::engine::{Message as _, Transmit};
use farcast_core::{Bitmap, Run};
use farcast_delivery::{Gone, Phase};

use super::{Cursor, Sender, Stretch};
use crate::config::Duration;
use crate::message::{Kind, MAX_GONE, MAX_NAME, Message, Withdrawn};

/// Withdrawn segments, and the messages about them.
#[derive(Clone, Debug)]
pub(super) struct Withdrawal {
    /// Segments that are gone completely.
    whole: Bitmap,
    /// Segments that are gone at least in part.
    touched: Bitmap,
    /// Segments of each withdrawn file, and the reason.
    files: Vec<(Gone, String)>,
    /// Index of the file with which the next message begins.
    next: usize,
    /// The message that precedes the next description has left.
    is_told: bool,
}

impl Withdrawal {
    fn new(segments: u32) -> Self {
        let (whole, touched) = (Bitmap::new(segments), Bitmap::new(segments));
        Self { whole, touched, files: Vec::new(), next: 0, is_told: false }
    }

    /// Returns the number of segments that are gone completely.
    pub(super) fn count(&self) -> u32 {
        self.whole.count()
    }

    /// Returns the next message: of many files, each message has some.
    fn message(&mut self, session: u32) -> Withdrawn {
        let rest = &self.files[self.next..];
        let part = &rest[..rest.len().min(MAX_GONE)];
        let gone = part.iter().map(|(gone, _)| *gone).collect();
        let why = part.first().map(|(_, why)| why.clone()).unwrap_or_default();
        let files = self.files.len() as u32;
        self.next = (self.next + part.len()) % self.files.len();
        Withdrawn { session, files, gone, why }
    }
}

impl Sender {
    /// Withdraws the segments `gone` of a file, for the reason `why`. Does nothing if they have been sent for the last
    /// time: receivers may have them, and parity is of the content before.
    pub fn withdraw(&mut self, gone: &Gone, why: &str) {
        let segments = self.geometry().segments();
        let Some(touched) = gone.touched.clip(0, segments) else { return };
        if matches!(self.phase, Phase::Completing | Phase::Aborting | Phase::Ended) || !self.comes(touched) {
            return;
        }
        let end = (0..=why.len().min(MAX_NAME)).rev().find(|&end| why.is_char_boundary(end));
        let why = why[..end.unwrap_or(0)].to_string();
        let whole = gone.whole.and_then(|whole| whole.clip(0, segments));
        let withdrawal = self.withdrawal.get_or_insert_with(|| Box::new(Withdrawal::new(segments)));
        withdrawal.touched.insert_run(touched);
        if let Some(whole) = whole {
            withdrawal.whole.insert_run(whole);
        }
        // The news leave at once.
        (withdrawal.next, withdrawal.is_told) = (withdrawal.files.len(), false);
        withdrawal.files.push((Gone { whole, touched }, why));
        let is_nothing_left = withdrawal.count() + self.head_len() >= segments;
        self.describe_at = self.describe_at.min(self.pacer.next());
        if is_nothing_left && self.phase != Phase::Idle {
            self.phase = Phase::Completing;
        }
    }

    /// Returns `true` if source symbols of `segments` are still to be sent.
    fn comes(&self, segments: Run) -> bool {
        let Duration::Rounds(rounds) = self.config.duration else { return true };
        let Cursor { left, width, .. } = self.cursor;
        let now = self.symbols_until(self.round).saturating_sub(u64::from(left + width));
        let (end, ring) = (self.symbols_until(rounds), u64::from(self.ring()));
        let geometry = self.geometry();
        let comes = |block: u32| {
            let base = geometry.first_of(block);
            let Some(run) = segments.clip(base, base + geometry.block_len(block)) else { return false };
            let (first, last) = (u64::from(run.first() - base), u64::from(run.last() - base));
            let turns = [now / ring, now / ring + 1];
            self.is_torn(block)
                || turns.iter().any(|turn| turn * ring + first < end && turn * ring + last >= now)
        };
        (geometry.block_of(segments.first())..=geometry.block_of(segments.last())).any(comes)
    }

    /// Returns `true` if a segment of `block` is gone at least in part.
    pub(super) fn is_torn(&self, block: u32) -> bool {
        let run = self.geometry().block_run(block);
        self.withdrawal
            .as_ref()
            .zip(run)
            .is_some_and(|(withdrawal, run)| withdrawal.touched.count_in(run) > 0)
    }

    /// Returns the remaining part of the stripe in the current block, which is torn.
    pub(super) fn remaining_of_torn(&self) -> Option<Stretch> {
        let (geometry, withdrawal) = (self.geometry(), self.withdrawal.as_ref()?);
        let Cursor { first, width, block, within, .. } = self.cursor;
        let (base, len, source) =
            (geometry.first_of(block), geometry.block_len(block), geometry.block_size());
        let symbol = |at: u32| if at < source { at } else { (at - source) % len };
        let is_sent = |at: u32| symbol(at) < len && !withdrawal.whole.contains(base + symbol(at));
        let end = first + width;
        let at = (first + within..end).find(|&at| is_sent(at))?;
        let follows = |next: &u32| is_sent(*next) && symbol(*next) == symbol(at) + (next - at);
        let count = 1 + (at + 1..end).take_while(follows).count() as u32;
        Some(Stretch { kind: Kind::Source, run: Run::new(symbol(at), count)?, within: at - first })
    }

    /// Returns the message about withdrawn segments, if there are any and the next message is a description.
    pub(super) fn tell_withdrawn(&mut self) -> Option<Transmit<Message>> {
        let session = self.config.session;
        let withdrawal = self.withdrawal.as_mut()?;
        withdrawal.is_told = !withdrawal.is_told;
        if !withdrawal.is_told {
            return None;
        }
        let message = Message::Withdrawn(withdrawal.message(session));
        self.pacer.charge(self.pacer.span(message.wire_len(0)));
        Some(Transmit::new(message, self.config.group))
    }
}
