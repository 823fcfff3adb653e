//! Spurious timeouts and recoveries, in which nothing was lost. F-RTO (RFC 5682), timestamps (RFC 3522) or reported
//! duplicates (RFC 3708) reveal them, and the reduction is undone (RFC 4015).

use farcast_core::Time;

use super::Connection;
use super::recovery::{News, RecoveryPhase};
use crate::congestion::Congestion;

/// State kept until it is clear whether a reduction was due.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspicion {
    /// Congestion control state before the reduction.
    before: Option<Congestion>,
    /// Timestamp of the first retransmission.
    first_resent: Option<u32>,
    /// Number of retransmissions of which no duplicate was reported.
    unreported: u32,
    any_resent: bool,
    asking: Option<Asking>,
}

/// State of F-RTO (RFC 5682 section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asking {
    /// Waiting for the first acknowledgment after the timeout.
    First,
    /// Waiting for the second.
    Second,
}

impl Connection {
    /// Keeps the congestion control state before a reduction. A `timeout` keeps the state from before the recovery that
    /// it interrupts.
    pub(super) fn suspect(&mut self, timeout: bool) {
        let kept = self.suspicion.before.take().filter(|_| timeout);
        let before = kept.unwrap_or_else(|| self.congestion.clone());
        self.forget_suspicion();
        self.suspicion.before = Some(before);
    }

    pub(super) fn is_suspected(&self) -> bool {
        self.suspicion.before.is_some()
    }

    /// Forgets the suspicion. Counts of retransmissions stay while copies are in flight: answers to them are not to be
    /// taken for answers to later retransmissions.
    pub(super) fn forget_suspicion(&mut self) {
        let copies = self.board.has_copies();
        let Suspicion { first_resent, unreported, any_resent, .. } = self.suspicion;
        self.suspicion = Suspicion::default();
        if copies {
            self.suspicion = Suspicion { first_resent, unreported, any_resent, ..Suspicion::default() };
        }
    }

    /// Notes a retransmission.
    pub(super) fn note_resent(&mut self, now: Time) {
        let value = self.agreed.clock.map(|clock| clock.value(now));
        self.suspicion.first_resent = self.suspicion.first_resent.or(value);
        self.suspicion.unreported += 1;
        self.suspicion.any_resent = true;
    }

    /// Notes whether an acknowledgment reported a duplicate.
    pub(super) fn note_repetition(&mut self, repeated: bool) {
        if repeated {
            self.suspicion.unreported = self.suspicion.unreported.saturating_sub(1);
        }
    }

    /// Undoes a reduction that timestamps or reported duplicates show to have been needless.
    pub(super) fn undo_if_spurious(&mut self, news: &News) {
        if !self.config.undo || self.repair.phase == RecoveryPhase::Open || !self.is_suspected() {
            return;
        }
        let earlier = self
            .suspicion
            .first_resent
            .zip(news.echo)
            .is_some_and(|(resent, echo)| echo.wrapping_sub(resent).cast_signed() < 0);
        let all_repeated = self.suspicion.any_resent && self.suspicion.unreported == 0 && news.repeated;
        if (news.advanced && earlier && self.suspicion.any_resent) || all_repeated {
            self.undo();
        }
    }

    fn undo(&mut self) {
        let Some(before) = self.suspicion.before.take() else { return };
        self.stats.undone += 1;
        let window = before.window.max(self.congestion.window);
        self.congestion = before;
        self.congestion.window = window;
        self.board.lose_nothing();
        self.repair.phase = RecoveryPhase::Open;
        (self.repair.duplicates, self.repair.sent_early, self.repair.force, self.repair.credit) =
            (0, 0, false, 0);
        self.estimator.stop_backing_off();
        self.forget_suspicion();
        self.moderate();
    }

    /// Begins F-RTO: only the first segment is sent again.
    pub(super) fn ask_whether_spurious(&mut self) {
        if self.times_out_as_linux() {
            self.board.lose_all();
        } else {
            self.board.lose_first();
        }
        self.suspicion.asking = Some(Asking::First);
    }

    pub(super) fn stop_asking(&mut self) {
        self.suspicion.asking = None;
        self.repair.credit = 0;
    }

    pub(super) fn is_asking(&self) -> bool {
        self.suspicion.asking.is_some()
    }

    /// Returns `true` if retransmission of segments marked lost waits for F-RTO's judgment.
    pub(super) fn withholds_repairs(&self) -> bool {
        self.is_asking() && self.times_out_as_linux()
    }

    /// Returns `true` if F-RTO was to send new data and none could leave. Lost segments are then sent instead (RFC 5682
    /// section 3.1 step 2b).
    pub(super) fn has_nothing_to_ask_with(&mut self) -> bool {
        let nothing = self.withholds_repairs()
            && self.suspicion.asking == Some(Asking::Second)
            && self.board.next() == self.repair.recover;
        if nothing {
            self.stop_asking();
        }
        nothing
    }

    /// Judges a timeout by an acknowledgment (F-RTO). Returns `true` if the acknowledgment needs no further handling.
    pub(super) fn judge_timeout(&mut self, news: &News) -> bool {
        // With SACK, an arrival that was not sent again decides (RFC 5682 section 3); without SACK, two acknowledgments
        // that advance (section 2.1). Segments sent after the timeout decide nothing.
        let point = self.repair.recover;
        let before_timeout = news.delivered.original.is_some_and(|end| end <= point);
        let original = if self.agreed.sack { before_timeout } else { news.advanced };
        let second = self.suspicion.asking == Some(Asking::Second);
        if original && (self.agreed.sack || second) {
            self.stop_asking();
            self.undo();
            return true;
        }
        let linux = self.times_out_as_linux();
        let room = self.data_end() > self.board.next() && self.peer_room() > 0;
        if news.advanced && !second && news.position < point && room {
            self.suspicion.asking = Some(Asking::Second);
            // With everything marked as lost, slow start lets out two segments.
            self.repair.credit = if linux { 0 } else { 2 * self.agreed.smss };
            return true;
        }
        if linux {
            if second || news.advanced {
                self.stop_asking();
            }
            return false;
        }
        self.stop_asking();
        if second {
            // Slow start would have grown as far in two round trips (step 3a).
            let caught_up = (3 * self.agreed.smss).min(self.congestion.threshold);
            self.congestion.window = self.congestion.window.max(caught_up);
        }
        self.board.lose_below(point);
        false
    }
}
