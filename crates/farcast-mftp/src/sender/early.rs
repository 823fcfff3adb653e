//! Early data behind the announcement. If the receivers are probably present, the first data need not wait for their
//! registrations, which take a round trip.
//!
//! Receivers keep data that comes before their confirmation. They are asked as usual what they lack of it when data
//! formally begins. So a receiver that was not there yet, or missed some, loses nothing. Early data stops after a
//! while, or when another transmission is heard on the group.

use farcast_core::{Run, Span, Time};

use super::delivery::SendStep;
use super::{Phase, Sender, Timer};
use crate::config::{Group, NakTiming, Pace, PassWait};
use crate::event::SenderEvent;
use crate::message::{Body, Message};
use crate::wire;

/// Time that receivers have to prepare for data after the announcement.
const READY: Span = Span::from_millis(50);

/// Least further time for early data if receivers take turns.
const COUNTING: Span = Span::from_secs(3);

/// Number of copies of the first announcement if data follows it. A receiver that misses the announcement misses all
/// data before the next one.
const COPIES: usize = 3;
/// Time after which these copies are sent once more, in case all of them are lost in one burst. Receivers take all of
/// them for one announcement.
pub(super) const BURST_PAUSE: Span = Span::from_millis(15);

impl Sender {
    /// Begins to send data behind the first announcement, if so configured.
    pub(super) fn begin_early(&mut self, now: Time) {
        if !self.is_early_set() {
            return;
        }
        // The first receiver may be called later.
        let counting = if self.by_turns() { COUNTING.max(self.first_answer_in()) } else { Span::ZERO };
        let progress = &mut self.progress;
        (progress.early_until, progress.pass) = (Some(now + READY + self.config.early_data + counting), 1);
        (progress.block, progress.step, progress.twice, progress.parity) =
            (None, SendStep::NextBlock, false, 0);
        self.stats.dtus_per_pass.push(0);
        self.pacer.begin(now + READY);
    }

    pub(super) fn is_early_set(&self) -> bool {
        let config = &self.config;
        let asks = config.pass_wait == PassWait::Draft && config.nak_timing == NakTiming::EachBlock;
        let paced = matches!(config.pace, Pace::Rate { .. });
        // A slow receiver of an open group may register when the others are complete, so the sender must not end before
        // such receivers had their time.
        let register = match config.group {
            Group::Closed(_) => true,
            Group::OpenLimited { .. } => config.start.with_first,
            Group::OpenUnlimited => false,
        };
        !config.early_data.is_zero() && register && asks && paced && config.join_delay.is_zero()
    }

    /// Returns the number of copies of the first announcement, which consists of `pieces`. It is several if data
    /// follows and the copies take little of the time in between.
    pub(super) fn first_copies(&self, pieces: &[Body]) -> usize {
        if !self.is_early_set() || self.phase != Phase::Announcing {
            return 1;
        }
        let message = |piece: &Body| Message::new(0, piece.clone());
        let spans = pieces.iter().map(|piece| self.pacer.span(wire::encoded_len(&message(piece), 0)));
        let all = spans.fold(Span::ZERO, |sum, span| sum + span) * COPIES as u64;
        if all <= READY / 4 { COPIES } else { 1 }
    }

    /// Returns `true` if data leaves before its formal start.
    pub(super) fn is_early(&self) -> bool {
        self.phase == Phase::Announcing && self.progress.early_until.is_some()
    }

    /// Returns `true` if early data has left for long enough, and no receiver has shown that it is there.
    pub(super) fn is_early_over(&self, now: Time) -> bool {
        let until = self.progress.early_until;
        until.is_none_or(|until| now >= until && !self.timers.is_set(Timer::StartAfter))
    }

    /// Stops early data.
    pub(super) fn hold_early(&mut self) {
        self.progress.early_until = None;
    }

    /// Begins data formally after some has left early. Returns `false` if there was no early data, or if all receivers
    /// hold something and are asked first after all.
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
                (0, None, SendStep::NextBlock, 0);
            progress.drop_runs();
            return false;
        }
        self.phase = Phase::Sending;
        if self.progress.block.is_none() {
            // Nothing has left, and all receivers are present already.
            self.pacer.restart(now);
        }
        self.pacer.begin(now);
        self.progress.parity = self.parity_of_pass();
        let segments = self.geometry.segments();
        self.events.push_back(SenderEvent::Pass { pass: 1, dtus: segments });
        let Some(block) = self.progress.block else { return true };
        // The request about the current block follows at its end.
        let complete = if self.progress.step == SendStep::NextBlock { block + 1 } else { block };
        if let Some(blocks) = Run::new(0, complete) {
            let all = complete == self.geometry.blocks();
            self.expect_answers(now, all);
            let request = self.status_request(now, blocks);
            self.pacer.owe(self.pacer.span(wire::encoded_len(&request, 0)));
            self.outbox.push_back(farcast_core::Transmit::new(request, self.config.private));
        }
        self.send_head_again();
        true
    }
}
