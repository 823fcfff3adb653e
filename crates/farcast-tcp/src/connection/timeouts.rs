//! Reaction to retransmission timeouts, and transmission after them.

use super::Connection;
use super::recovery::{News, RecoveryPhase};
use super::timing::Timer;
use crate::config::{AfterTimeout, Recovery};

impl Connection {
    /// Returns `true` if timeouts follow Linux, which needs SACK.
    pub(super) fn times_out_as_linux(&self) -> bool {
        self.config.after_timeout == AfterTimeout::Linux && self.agreed.sack
    }

    /// Handles a retransmission timeout (RFC 5681 section 3.1, RFC 6675 section 5.1).
    pub(super) fn time_is_out(&mut self) {
        let linux = self.times_out_as_linux();
        // Nothing was acknowledged since the last timeout.
        let repeated = self.unanswered.retries > 1;
        // If acknowledgments have reported a loss, the timeout is not spurious (RFC 5682 section 2.1 step 1). If none
        // has come since the last timeout, it may be.
        let doubtful = if linux {
            self.repair.phase == RecoveryPhase::Open || repeated
        } else {
            self.repair.phase == RecoveryPhase::Open && self.board.len() > 1
        };
        self.pay_for_timeout(linux, repeated);
        self.repair.recover = self.board.next();
        self.repair.phase = RecoveryPhase::Loss { point: self.repair.recover };
        (self.repair.duplicates, self.repair.sent_early, self.repair.credit, self.repair.probe) =
            (0, 0, 0, None);
        self.timers.stop(Timer::Reorder);
        self.timers.stop(Timer::Probe);
        if self.config.frto && doubtful {
            self.ask_whether_spurious();
        } else {
            self.stop_asking();
            self.board.lose_all();
        }
        self.congestion.collapse();
        self.repair.force = true;
        self.rack.time_out(self.agreed.sack);
    }

    /// Lowers the threshold, unless the threshold was already lowered for the same loss.
    fn pay_for_timeout(&mut self, linux: bool, repeated: bool) {
        let first = self.board.first();
        let underway = matches!(self.repair.phase, RecoveryPhase::Loss { point } if first < point);
        let again = underway && (repeated || !linux);
        let reduced = self.config.halve_window
            && matches!(self.repair.phase, RecoveryPhase::Recovery { point, .. } if first < point);
        let paid = self.device.is_paid();
        if again || reduced || paid {
            return;
        }
        let flight = self.board.flight();
        // In a recovery without SACK duplicates have inflated both: the reduced window counts.
        let inflated =
            matches!(self.repair.phase, RecoveryPhase::Recovery { .. }) && !self.recovery().needs_sack();
        let most = if inflated { self.congestion.threshold } else { self.congestion.window };
        let base = if self.config.halve_window { self.congestion.window } else { flight };
        self.suspect(!linux);
        self.congestion.lose(base.min(most));
    }

    /// Handles an acknowledgment after a timeout.
    pub(super) fn climb_after_timeout(&mut self, news: &News, point: u64) {
        let linux = self.times_out_as_linux();
        if self.is_asking() && self.judge_timeout(news) && !linux {
            return;
        }
        if self.repair.phase == RecoveryPhase::Open {
            // The timeout was spurious, but segments that it did not mark may be lost.
            if self.find_losses(news) {
                self.recover_from_loss(news);
            } else {
                self.grow(news);
            }
            return;
        }
        let copies = self.board.copies();
        if self.recovery() == Recovery::Rack && !self.board.is_empty() {
            self.find_losses(news);
        }
        let mut worse = linux && self.board.copies() < copies;
        if news.position >= point {
            self.repair.phase = RecoveryPhase::Open;
            (self.repair.duplicates, self.repair.sent_early, self.repair.force) = (0, 0, false);
            self.forget_suspicion();
            worse = linux && self.board.has_lost();
        }
        if worse {
            // A retransmission, or a segment sent since, is lost again. That is a second sign of congestion (RFC 5681
            // section 4.3): a recovery follows instead of slow start.
            self.recover_from_loss(news);
        } else {
            self.grow(news);
        }
    }
}
