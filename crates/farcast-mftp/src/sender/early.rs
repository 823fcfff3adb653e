//! Data behind the announcement: where whoever is to receive is there most likely, what is sent first need not wait for
//! registrations, which take a round trip.
//!
//! Receivers keep what comes before they are confirmed. What they lack of it, they are asked when data begins as ever,
//! so who was not there yet, or missed some, loses nothing. It stops after a while, or when another transmission is
//! heard on the group.

use farcast_core::{Run, Span, Time};

use super::delivery::Step;
use super::{Phase, Sender};
use crate::config::{Group, NakTiming, Pace, PassWait};
use crate::event::SenderEvent;
use crate::message::{Body, Message};
use crate::wire;

/// Receivers that hear the announcement have this long to make ready for data.
const READY: Span = Span::from_millis(50);

/// How often the first announcement leaves where data follows it: who misses it misses all that comes before the next.
const COPIES: usize = 3;

impl Sender {
    /// Begins to send data behind the first announcement, where that is so set.
    pub(super) fn begin_early(&mut self, now: Time) {
        if !self.is_early_set() {
            return;
        }
        let progress = &mut self.progress;
        (progress.early_until, progress.pass) = (Some(now + READY + self.config.early_data), 1);
        (progress.block, progress.step, progress.twice, progress.parity) = (None, Step::NextBlock, false, 0);
        self.stats.dtus_per_pass.push(0);
        self.pacer.begin(now + READY);
    }

    fn is_early_set(&self) -> bool {
        let config = &self.config;
        let asks = config.pass_wait == PassWait::Draft && config.nak_timing == NakTiming::EachBlock;
        let paced = matches!(config.pace, Pace::Rate { .. });
        // In an open group who is slow to register would not be known before the others have everything.
        let closed = matches!(config.group, Group::Closed(_));
        !config.early_data.is_zero() && closed && asks && paced && config.join_delay.is_zero()
    }

    /// How often the first announcement, which consists of `pieces`, leaves at once: several times where data follows
    /// it and they take little of the time in between.
    pub(super) fn first_copies(&self, pieces: &[Body]) -> usize {
        if !self.is_early_set() {
            return 1;
        }
        let message = |piece: &Body| Message::new(0, piece.clone());
        let spans = pieces.iter().map(|piece| self.pacer.span(wire::encoded_len(&message(piece), 0)));
        let all = spans.fold(Span::ZERO, |sum, span| sum + span) * COPIES as u64;
        if all <= READY / 4 { COPIES } else { 1 }
    }

    /// Whether data leaves before it has formally begun.
    pub(super) fn is_early(&self) -> bool {
        self.phase == Phase::Announcing && self.progress.early_until.is_some()
    }

    /// No more data leaves before it begins as ever.
    pub(super) fn hold_early(&mut self) {
        self.progress.early_until = None;
    }

    /// Data begins, and some of it has left already. Whether that counts: where everybody holds something, all of them
    /// are asked first after all.
    pub(super) fn go_on_early(&mut self, now: Time) -> bool {
        if self.progress.pass == 0 {
            return false;
        }
        self.hold_early();
        if self.progress.restart {
            self.stats.dtus_per_pass.clear();
            let progress = &mut self.progress;
            let sent = progress.block.map_or(0, |block| (block + 1) * self.geometry.block_size());
            progress.left_early = sent.min(self.geometry.segments());
            (progress.pass, progress.block, progress.step, progress.sent_in_pass) =
                (0, None, Step::NextBlock, 0);
            progress.drop_runs();
            return false;
        }
        self.phase = Phase::Sending;
        if self.progress.block.is_none() {
            // Nothing has left, and all are there already.
            self.pacer.restart(now);
        }
        self.pacer.begin(now);
        self.progress.parity = self.parity_of_pass();
        let segments = self.geometry.segments();
        self.events.push_back(SenderEvent::Pass { pass: 1, dtus: segments });
        let Some(block) = self.progress.block else { return true };
        // The block at hand is asked about at its end.
        let complete = if self.progress.step == Step::NextBlock { block + 1 } else { block };
        if let Some(blocks) = Run::new(0, complete) {
            let all = complete == self.geometry.blocks();
            self.expect_answers(now, all);
            let request = self.status_request(now, blocks);
            self.pacer.owe(self.pacer.span(wire::encoded_len(&request, 0)));
            self.outbox.push_back(farcast_core::Transmit::new(request, self.config.private));
        }
        true
    }
}
