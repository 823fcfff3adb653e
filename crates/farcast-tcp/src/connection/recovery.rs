//! Detection and repair of losses.
//!
//! The module connects the scoreboard, which knows the losses, and the congestion window, which limits the octets in
//! flight.

use farcast_core::Time;

use super::Connection;
use super::rack::TailProbe;
use super::timing::Timer;
use crate::config::{Increase, Recovery, Reduction};
use crate::scoreboard::Delivered;

/// Recovery that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecoveryPhase {
    /// No recovery.
    Open,
    /// Recovery from a loss that acknowledgments reported, until everything below `point` is acknowledged.
    Recovery {
        point: u64,
        /// No partial acknowledgment has come yet.
        partial: bool,
        /// Reduction of the window.
        descent: Descent,
        /// Position beyond which an acknowledgment lets one segment be sent again that is not marked lost (RFC 6675's
        /// `RescueRxt`).
        rescue: u64,
    },
    /// Recovery from a timeout, until everything below `point` is acknowledged.
    Loss { point: u64 },
}

/// Reduction of the window in a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Descent {
    /// The reduction is complete.
    Done,
    /// Proportional rate reduction (RFC 6937 and RFC 9937): octets delivered and sent since it began, and octets in
    /// flight then. If `careful`, one segment more than was delivered leaves only with a safe acknowledgment.
    Proportional { delivered: u64, sent: u64, flight: u64, careful: bool },
    /// Rate halving of Linux 2.4: acknowledgments since the window last fell.
    Halving { counted: u32 },
}

/// State of loss repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub phase: RecoveryPhase,
    /// Duplicate acknowledgments in a row.
    pub duplicates: u32,
    /// Octets of new data sent since the first duplicate.
    pub sent_early: u64,
    /// Position behind the last octet sent when the last loss was found (RFC 6582's recover).
    pub recover: u64,
    /// The first lost segment leaves even if the window has no room.
    pub force: bool,
    /// Octets of new data that may leave even if the congestion window has no room.
    pub credit: u64,
    /// Tail loss probe that is under way (RFC 8985 section 7).
    pub probe: Option<TailProbe>,
}

impl Default for Repair {
    fn default() -> Self {
        Self {
            phase: RecoveryPhase::Open,
            duplicates: 0,
            sent_early: 0,
            recover: 0,
            force: false,
            credit: 0,
            probe: None,
        }
    }
}

/// Facts that an acknowledgment reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub now: Time,
    pub position: u64,
    pub delivered: Delivered,
    /// The acknowledgment covers new data.
    pub advanced: bool,
    /// The acknowledgment is a duplicate (RFC 5681 section 2) or, with SACK, reports further arrivals.
    pub duplicate: bool,
    /// The acknowledgment reports a duplicate.
    pub repeated: bool,
    /// Timestamp that the acknowledgment echoes.
    pub echo: Option<u32>,
    /// The congestion window limited sending before the acknowledgment came.
    pub busy: bool,
    /// Octets that were in flight before the acknowledgment came.
    pub flight: u64,
}

/// Number of duplicate acknowledgments that indicate a loss.
pub(super) const THRESHOLD: u32 = 3;

impl Connection {
    /// Acts on an acknowledgment.
    pub(super) fn learn(&mut self, news: &News) {
        self.hear_of_probe(news);
        match self.repair.phase {
            RecoveryPhase::Open => {
                if news.advanced {
                    (self.repair.duplicates, self.repair.sent_early) = (0, 0);
                }
                self.repair.duplicates += u32::from(news.duplicate && !news.advanced);
                // In Linux, an acknowledgment that begins a recovery grows nothing, and one that ends a recovery
                // counts.
                let linux = self.config.increase == Increase::Delivered;
                let grows = !self.descend_locally(news);
                if grows && !linux {
                    self.grow(news);
                }
                if self.find_losses(news) {
                    self.recover_from_loss(news);
                } else if grows && linux {
                    self.grow(news);
                }
            }
            RecoveryPhase::Recovery { point, .. } if news.advanced && news.position >= point => {
                self.leave_recovery();
                // A loss among the segments sent in the recovery is another loss.
                if self.find_losses(news) || self.board.first_is_lost() {
                    self.recover_from_loss(news);
                } else if self.config.increase == Increase::Delivered {
                    self.grow(news);
                }
            }
            RecoveryPhase::Recovery { .. } => self.go_on_recovering(news),
            RecoveryPhase::Loss { point } => self.climb_after_timeout(news, point),
        }
    }

    /// Returns the recovery that is in use: `NewReno` if the peer does not offer SACK.
    pub(super) fn recovery(&self) -> Recovery {
        let wanted = self.config.recovery;
        if wanted.needs_sack() && !self.agreed.sack { Recovery::NewReno } else { wanted }
    }

    /// Marks segments that are lost by now. Returns `true` if a recovery is to begin.
    pub(super) fn find_losses(&mut self, news: &News) -> bool {
        if self.board.is_empty() {
            return false;
        }
        let dup = self.repair.duplicates >= THRESHOLD;
        match self.recovery() {
            // Needless retransmissions cause duplicate acknowledgments too: duplicates count only beyond `recover` (RFC
            // 6582).
            Recovery::Reno | Recovery::NewReno => {
                let fresh = self.board.first() > self.repair.recover;
                let lost = self.repair.duplicates == THRESHOLD && fresh;
                if lost {
                    self.board.lose_first();
                }
                lost
            }
            Recovery::Sack => {
                let below = self.board.lost_by_count(u64::from(THRESHOLD), self.agreed.smss);
                let more = self.board.lose_below(below);
                self.lose_first_if(dup && !more) || more
            }
            Recovery::Fack => {
                let highest = self.board.highest_arrived();
                let reach = u64::from(THRESHOLD) * self.agreed.smss;
                let more = highest > self.board.first() + reach && self.board.lose_below(highest - reach);
                self.lose_first_if(dup && !more) || more
            }
            Recovery::Rack => {
                self.track_time(news);
                self.find_losses_by_rack(news.now)
            }
        }
    }

    /// Marks the first segment as lost after three duplicates, even if the SACK blocks do not show the loss.
    fn lose_first_if(&mut self, lost: bool) -> bool {
        let begins = lost && self.repair.phase == RecoveryPhase::Open;
        if begins {
            self.board.lose_first();
        }
        begins
    }

    /// Enters recovery.
    pub(super) fn recover_from_loss(&mut self, news: &News) {
        self.stats.fast_recoveries += 1;
        // Segments sent by limited transmit do not count (RFC 5681 section 3.2 step 2).
        let flight = self.board.flight() - self.repair.sent_early;
        let base = if self.config.halve_window { self.congestion.window } else { flight };
        let before = self.congestion.window;
        if !self.device.is_paid() {
            self.suspect(false);
            self.congestion.lose(base);
        }
        self.repair.recover = self.board.next();
        self.repair.force = true;
        self.timers.stop(Timer::Probe);
        // Segments sent again now get a whole timeout. Otherwise recovery would end in a timeout if round trips vary
        // little.
        self.timers.set(Timer::Retransmit, news.now + self.estimator.timeout());
        let threshold = self.congestion.threshold;
        let mut descent = Descent::Done;
        if self.agreed.sack && self.recovery().needs_sack() {
            match self.config.reduction {
                Reduction::Immediate => self.congestion.window = threshold,
                Reduction::Proportional => {
                    let flight = self.board.flight();
                    descent = Descent::Proportional { delivered: 0, sent: 0, flight, careful: false };
                }
                Reduction::ProportionalSafe => {
                    // RFC 9937 section 6.1: octets that had arrived before do not count. Linux takes the window
                    // instead.
                    let flight = self.board.flight() + news.delivered.octets - self.board.sacked();
                    let flight = if self.config.halve_window {
                        before / self.agreed.smss * self.agreed.smss
                    } else {
                        flight
                    };
                    // Linux counts a timer that begins a recovery as a segment delivered.
                    let delivered = if news.delivered.octets == 0 { self.agreed.smss } else { 0 };
                    descent = Descent::Proportional { delivered, sent: 0, flight, careful: true };
                }
                Reduction::RateHalving => {
                    descent = Descent::Halving { counted: 0 };
                    self.congestion.window = self.congestion.window.min(self.board.pipe() + self.agreed.smss);
                }
            }
        } else {
            self.congestion.window = threshold + u64::from(THRESHOLD) * self.agreed.smss;
        }
        let rescue = self.board.first_end();
        self.repair.phase =
            RecoveryPhase::Recovery { point: self.repair.recover, partial: true, descent, rescue };
        self.descend(news, true);
    }

    /// Handles an acknowledgment within a recovery.
    fn go_on_recovering(&mut self, news: &News) {
        match self.recovery() {
            Recovery::Reno if news.advanced => self.leave_recovery(),
            Recovery::NewReno if news.advanced => {
                // RFC 6582 step 3: the next hole; the window shrinks by the octets that left the network.
                self.board.lose_first();
                self.repair.force = true;
                let acknowledged = news.delivered.acknowledged;
                let back = if acknowledged >= self.agreed.smss { self.agreed.smss } else { 0 };
                self.congestion.window =
                    self.congestion.window.saturating_sub(acknowledged).max(self.agreed.smss) + back;
            }
            Recovery::Reno | Recovery::NewReno => {
                if news.duplicate {
                    self.congestion.window += self.agreed.smss;
                }
            }
            Recovery::Sack | Recovery::Fack | Recovery::Rack => {
                let more = self.find_losses(news);
                self.descend(news, more);
            }
        }
    }

    /// Reduces the window with an acknowledgment; `more` if the acknowledgment reports further losses.
    fn descend(&mut self, news: &News, more: bool) {
        let pipe = self.board.pipe();
        let (threshold, smss) = (self.congestion.threshold, self.agreed.smss);
        let RecoveryPhase::Recovery { descent, .. } = &mut self.repair.phase else { return };
        match descent {
            Descent::Done => {}
            Descent::Proportional { delivered, sent, flight, careful } => {
                let now = news.delivered.octets;
                if *careful && now == 0 && *sent > 0 {
                    return; // it reports nothing that left the network
                }
                let safe = !*careful || (news.advanced && !more);
                *delivered += now;
                let allowed = if pipe > threshold {
                    let share = u128::from(*delivered) * u128::from(threshold);
                    let share = share.div_ceil(u128::from((*flight).max(1))) as u64;
                    let share = if *careful { share.next_multiple_of(smss) } else { share };
                    share.saturating_sub(*sent)
                } else {
                    let limit = delivered.saturating_sub(*sent).max(now) + if safe { smss } else { 0 };
                    limit.min(threshold - pipe)
                };
                let allowed = if *careful && *sent == 0 { allowed.max(smss) } else { allowed };
                self.congestion.window = (pipe + allowed).max(smss);
            }
            Descent::Halving { counted } => {
                *counted += 1;
                let window = &mut self.congestion.window;
                if *counted == 2 && *window > threshold {
                    *window = (*window - smss).max(threshold);
                }
                *counted %= 2;
                *window = (*window).min(pipe + smss);
            }
        }
    }

    /// Counts octets sent in a recovery.
    pub(super) fn count_sent(&mut self, octets: u64) {
        if let RecoveryPhase::Recovery { descent: Descent::Proportional { sent, .. }, .. } =
            &mut self.repair.phase
        {
            *sent += octets;
        }
    }

    /// Takes back the count of octets that did not leave.
    pub(super) fn count_unsent(&mut self, octets: u64) {
        if let RecoveryPhase::Recovery { descent: Descent::Proportional { sent, .. }, .. } =
            &mut self.repair.phase
        {
            *sent = sent.saturating_sub(octets);
        }
    }

    fn leave_recovery(&mut self) {
        self.repair.phase = RecoveryPhase::Open;
        (self.repair.duplicates, self.repair.sent_early, self.repair.force) = (0, 0, false);
        let threshold = self.congestion.threshold;
        self.congestion.window = match self.recovery() {
            Recovery::Sack | Recovery::Fack | Recovery::Rack
                if self.config.reduction == Reduction::RateHalving =>
            {
                self.congestion.window.min(threshold)
            }
            _ => threshold,
        };
        self.moderate();
        self.forget_suspicion();
        self.trust_more();
    }

    /// Limits the window so that no burst leaves.
    pub(super) fn moderate(&mut self) {
        if let Some(burst) = self.config.most_burst {
            let most = self.board.pipe() + u64::from(burst) * self.agreed.smss;
            self.congestion.window = self.congestion.window.min(most.max(2 * self.agreed.smss));
        }
    }

    /// Claims the right to send one segment again that is not known to be lost (RFC 6675 `NextSeg` rule 4). Returns
    /// `true` if granted.
    pub(super) fn rescue(&mut self) -> bool {
        match &mut self.repair.phase {
            RecoveryPhase::Recovery { rescue, .. } if self.board.first() > *rescue => {
                *rescue = u64::MAX;
                true
            }
            _ => false,
        }
    }
}
