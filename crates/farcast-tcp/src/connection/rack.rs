//! Losses found by the time of sending, and probes of the tail (RFC 8985).

use farcast_core::{Span, Time};

use super::Connection;
use super::recovery::{News, RecoveryPhase, THRESHOLD};
use super::timing::Timer;
use crate::scoreboard::{Delivered, LostByTime};

/// RFC 8985's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Sending time and end of the delivered segment that was sent last.
    latest: Option<(Time, u64)>,
    /// Round trip of that segment.
    trip: Span,
    /// A segment was seen to arrive out of order.
    reordered: bool,
    /// Reordering window in quarters of the least round trip (`reo_wnd_mult`). It lasts for `persist` more recoveries.
    quarters: u64,
    persist: u32,
    /// Position whose acknowledgment ends the round in which a duplicate was counted.
    round_end: u64,
}

/// A probe of the tail that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TailProbe {
    /// SND.NXT behind it (RFC 8985's `TLP.end_seq`).
    pub end: u64,
    /// The probe repeated data instead of sending new data.
    pub again: bool,
}

impl Rack {
    /// Reacts to a timeout. Without SACK, the record of delivered segments is no longer valid.
    pub(super) fn time_out(&mut self, sack: bool) {
        self.latest = self.latest.filter(|_| sack);
    }
}

impl Connection {
    /// Updates the state from an acknowledgment (RFC 8985 section 6.2 steps 1 to 3).
    pub(super) fn track_time(&mut self, news: &News) {
        self.rack.reordered |= news.delivered.reordered;
        if let Some((sent, end, again)) = news.delivered.latest {
            let trip = news.now.since(sent);
            // For a segment sent twice, the acknowledgment may be that of the first copy. The echoed timestamp does not
            // resolve this for a segment out of order: it is the timestamp of the last segment in order (RFC 7323
            // section 4.3). Linux does not look.
            let doubtful = again && trip < self.estimator.least();
            if !doubtful && self.rack.latest.is_none_or(|latest| latest < (sent, end)) {
                self.rack.latest = Some((sent, end));
                self.rack.trip = trip;
            }
        }
        if news.repeated && news.position >= self.rack.round_end {
            self.rack.round_end = self.board.next();
            self.rack.quarters += 1;
            self.rack.persist = 16;
        }
    }

    /// Returns the time for which a segment may still arrive after its turn (step 4).
    fn patience(&self) -> Span {
        let segments = self.board.sacked() / self.agreed.smss;
        if !self.rack.reordered
            && (self.repair.phase != RecoveryPhase::Open || segments >= u64::from(THRESHOLD))
        {
            return Span::ZERO;
        }
        let quarter = Span::from_nanos(self.estimator.least().as_nanos() / 4);
        let most = self.estimator.smoothed().unwrap_or(Span::ZERO);
        (quarter * (self.rack.quarters + 1)).min(most)
    }

    pub(super) fn find_losses_by_rack(&mut self, now: Time) -> bool {
        let Some((latest, end)) = self.rack.latest else { return false };
        let patience = self.rack.trip + self.patience();
        let LostByTime { any, rest_at } = self.board.lose_by_time(now, latest, end, patience);
        match rest_at {
            Some(at) => self.timers.set(Timer::Reorder, at),
            None => self.timers.stop(Timer::Reorder),
        }
        any
    }

    /// Handles expiry of the reordering timer: segments that have not arrived by now are lost.
    pub(super) fn find_losses_by_time(&mut self, now: Time) {
        let begins = match self.repair.phase {
            RecoveryPhase::Open => true,
            RecoveryPhase::Loss { .. } => self.times_out_as_linux(),
            RecoveryPhase::Recovery { .. } => false,
        };
        if !self.find_losses_by_rack(now) || !begins {
            return;
        }
        let news = News {
            now,
            position: self.board.first(),
            delivered: Delivered::default(),
            advanced: false,
            duplicate: false,
            repeated: false,
            echo: None,
            busy: false,
            flight: self.board.flight(),
        };
        self.recover_from_loss(&news);
    }

    /// Notes a recovery that ended without a report of a duplicate: the reordering window may shrink (section 6.2).
    pub(super) fn trust_more(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.quarters = 0;
        }
    }

    /// Checks whether the tail loss probe has repaired a loss, which costs as much as any other (RFC 8985 section
    /// 7.4.2). The acknowledgment of the probe itself may be that of the original segment: only an acknowledgment
    /// beyond the probe is sure.
    pub(super) fn hear_of_probe(&mut self, news: &News) {
        let Some(TailProbe { end, again }) = self.repair.probe else { return };
        let both_arrived = again && news.repeated;
        if !both_arrived && (news.position < end || (again && news.position == end)) {
            return;
        }
        self.repair.probe = None;
        if again && !both_arrived && self.repair.phase == RecoveryPhase::Open {
            let base = if self.config.halve_window { self.congestion.window } else { news.flight };
            self.congestion.lose(base);
            self.congestion.window = self.congestion.window.min(self.congestion.threshold);
        }
    }

    /// Handles an acknowledgment that reports nothing new: a peer without DSACK answers the second copy of a probe with
    /// it (RFC 8985 section 7.4.2).
    pub(super) fn hear_of_probe_silently(&mut self, position: u64) {
        if self.repair.probe == Some(TailProbe { end: position, again: true }) {
            self.repair.probe = None;
        }
    }
}
