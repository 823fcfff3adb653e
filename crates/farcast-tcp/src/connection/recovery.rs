//! Losses: how they are found, and what is done about them.
//!
//! Between the scoreboard, which knows what is lost, and the congestion window, which says how much may be in flight.

use farcast_core::{Span, Time};

use super::Connection;
use super::timing::Timer;
use crate::config::{Recovery, Reduction};
use crate::scoreboard::Delivered;

/// What is being recovered from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing.
    Open,
    /// A loss that acknowledgments told of, until everything below `point` is acknowledged.
    Recovery {
        point: u64,
        /// No partial acknowledgment has come yet.
        partial: bool,
        /// How the window comes down.
        descent: Descent,
        /// Once more than that is acknowledged, one segment may be sent again without being lost (RFC 6675's
        /// `RescueRxt`).
        rescue: u64,
    },
    /// A timeout, until everything below `point` is acknowledged.
    Loss { point: u64 },
}

/// How the window comes down in a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Descent {
    /// It is down.
    Done,
    /// RFC 6937: octets delivered and sent since, and what was in flight.
    Proportional { delivered: u64, sent: u64, flight: u64 },
    /// Linux 2.4: acknowledgments that are not paid for yet.
    Halving { counted: u32 },
}

/// What an acknowledgment told.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub now: Time,
    pub position: u64,
    pub delivered: Delivered,
    /// It acknowledges new data.
    pub advanced: bool,
    /// It is a duplicate (RFC 5681 section 2), or with SACK one that tells of more that arrived.
    pub duplicate: bool,
    /// It reports a repetition.
    pub repeated: bool,
    /// The timestamp that it echoes.
    pub echo: Option<u32>,
    /// The congestion window limited sending before it came.
    pub busy: bool,
    /// Octets that were in flight before it came.
    pub flight: u64,
}

/// RFC 8985's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// When the segment that was sent last of those delivered was sent, and its end.
    latest: Option<(Time, u64)>,
    /// Its round trip.
    trip: Span,
    /// A segment was seen to arrive out of order.
    reordered: bool,
    /// Quarters of the least round trip that reordering may take (`reo_wnd_mult`), and for how many recoveries yet.
    quarters: u64,
    persist: u32,
    /// The round in which a repetition was counted ends there.
    round_end: u64,
}

/// Duplicate acknowledgments that mean a loss.
const THRESHOLD: u32 = 3;

impl Connection {
    /// Lets the connection act on an acknowledgment.
    pub(super) fn learn(&mut self, news: &News) {
        self.hear_of_probe(news);
        match self.phase {
            Phase::Open => {
                if news.advanced {
                    (self.duplicates, self.sent_early) = (0, 0);
                }
                self.duplicates += u32::from(news.duplicate && !news.advanced);
                self.grow(news);
                if self.find_losses(news) {
                    self.recover_from_loss(news);
                }
            }
            Phase::Recovery { point, .. } if news.advanced && news.position >= point => {
                self.leave_recovery();
                // What was sent in the recovery and lost is another loss.
                if self.find_losses(news) || self.board.first_is_lost() {
                    self.recover_from_loss(news);
                }
            }
            Phase::Recovery { .. } => self.go_on_recovering(news),
            Phase::Loss { point } => self.climb_after_timeout(news, point),
        }
    }

    /// The recovery that is in use: without SACK from the peer, `NewReno`.
    pub(super) fn recovery(&self) -> Recovery {
        let wanted = self.config.recovery;
        if wanted.needs_sack() && !self.sack { Recovery::NewReno } else { wanted }
    }

    /// Marks what is lost by now; whether a recovery is to begin.
    fn find_losses(&mut self, news: &News) -> bool {
        if self.board.is_empty() {
            return false;
        }
        let dup = self.duplicates >= THRESHOLD;
        match self.recovery() {
            // What repeats without need makes duplicate acknowledgments too: they count only beyond (RFC 6582).
            Recovery::Reno | Recovery::NewReno => {
                let fresh = self.board.first() > self.recover;
                let lost = self.duplicates == THRESHOLD && fresh;
                if lost {
                    self.board.lose_first();
                }
                lost
            }
            Recovery::Sack => {
                let below = self.board.lost_by_count(u64::from(THRESHOLD), self.smss);
                let more = self.board.lose_below(below);
                self.lose_first_if(dup && !more) || more
            }
            Recovery::Fack => {
                let highest = self.board.highest_arrived();
                let reach = u64::from(THRESHOLD) * self.smss;
                let more = highest > self.board.first() + reach && self.board.lose_below(highest - reach);
                self.lose_first_if(dup && !more) || more
            }
            Recovery::Rack => {
                self.track_time(news);
                self.find_losses_by_rack(news.now)
            }
        }
    }

    /// Three duplicates mean that the first is lost, whatever the blocks say.
    fn lose_first_if(&mut self, lost: bool) -> bool {
        let begins = lost && self.phase == Phase::Open;
        if begins {
            self.board.lose_first();
        }
        begins
    }

    /// Enters recovery.
    pub(super) fn recover_from_loss(&mut self, news: &News) {
        self.stats.fast_recoveries += 1;
        // What limited transmit has sent does not count (RFC 5681 section 3.2 step 2).
        let flight = self.board.flight() - self.sent_early;
        let base = if self.config.halve_window { self.congestion.window } else { flight };
        self.suspect(false);
        self.congestion.lose(base);
        self.recover = self.board.next();
        self.force = true;
        self.timers.stop(Timer::Probe as usize);
        // What is sent again now is to have a whole timeout, or recovery would end in one where round trips vary little.
        self.timers.set(Timer::Retransmit as usize, news.now + self.estimator.timeout());
        let threshold = self.congestion.threshold;
        let mut descent = Descent::Done;
        if self.sack && self.recovery().needs_sack() {
            match self.config.reduction {
                Reduction::Immediate => self.congestion.window = threshold,
                Reduction::Proportional => {
                    descent = Descent::Proportional { delivered: 0, sent: 0, flight: self.board.flight() };
                }
                Reduction::RateHalving => {
                    descent = Descent::Halving { counted: 0 };
                    self.congestion.window = self.congestion.window.min(self.board.pipe() + self.smss);
                }
            }
        } else {
            self.congestion.window = threshold + u64::from(THRESHOLD) * self.smss;
        }
        let rescue = self.board.first_end();
        self.phase = Phase::Recovery { point: self.recover, partial: true, descent, rescue };
        self.descend(news);
    }

    /// An acknowledgment within a recovery.
    fn go_on_recovering(&mut self, news: &News) {
        match self.recovery() {
            Recovery::Reno if news.advanced => self.leave_recovery(),
            Recovery::NewReno if news.advanced => {
                // RFC 6582 step 3: the next hole; the window comes down by what left the network.
                self.board.lose_first();
                self.force = true;
                let acknowledged = news.delivered.acknowledged;
                let back = if acknowledged >= self.smss { self.smss } else { 0 };
                self.congestion.window =
                    self.congestion.window.saturating_sub(acknowledged).max(self.smss) + back;
            }
            Recovery::Reno | Recovery::NewReno => {
                if news.duplicate {
                    self.congestion.window += self.smss;
                }
            }
            Recovery::Sack | Recovery::Fack | Recovery::Rack => {
                self.find_losses(news);
                self.descend(news);
            }
        }
    }

    /// Brings the window down with an acknowledgment.
    fn descend(&mut self, news: &News) {
        let pipe = self.board.pipe();
        let (threshold, smss) = (self.congestion.threshold, self.smss);
        let Phase::Recovery { descent, .. } = &mut self.phase else { return };
        match descent {
            Descent::Done => {}
            Descent::Proportional { delivered, sent, flight } => {
                let now = news.delivered.octets;
                *delivered += now;
                let allowed = if pipe > threshold {
                    let share = u128::from(*delivered) * u128::from(threshold);
                    (share.div_ceil(u128::from((*flight).max(1))) as u64).saturating_sub(*sent)
                } else {
                    let limit = delivered.saturating_sub(*sent).max(now) + smss;
                    limit.min(threshold - pipe)
                };
                self.congestion.window = pipe + allowed;
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

    /// Counts what a recovery sends.
    pub(super) fn count_sent(&mut self, octets: u64) {
        if let Phase::Recovery { descent: Descent::Proportional { sent, .. }, .. } = &mut self.phase {
            *sent += octets;
        }
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        (self.duplicates, self.sent_early, self.force) = (0, 0, false);
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

    /// Lets no burst leave.
    pub(super) fn moderate(&mut self) {
        if let Some(burst) = self.config.most_burst {
            let most = self.board.pipe() + u64::from(burst) * self.smss;
            self.congestion.window = self.congestion.window.min(most.max(2 * self.smss));
        }
    }

    /// A retransmission timeout (RFC 5681 section 3.1, RFC 6675 section 5.1).
    pub(super) fn time_is_out(&mut self, now: Time) {
        let first = self.board.first();

        let again = matches!(self.phase, Phase::Loss { point } if first < point);
        let reduced =
            self.config.halve_window && matches!(self.phase, Phase::Recovery { point, .. } if first < point);
        // Where acknowledgments have told of a loss, the timeout is not spurious (RFC 5682 section 2.1 step 1).
        let doubtful = self.phase == Phase::Open && self.board.len() > 1;
        if !again && !reduced {
            let flight = self.board.flight();
            // In a recovery without SACK duplicates have inflated both: what the window had come down to counts.
            let inflated = matches!(self.phase, Phase::Recovery { .. }) && !self.recovery().needs_sack();
            let most = if inflated { self.congestion.threshold } else { self.congestion.window };
            let base = if self.config.halve_window { self.congestion.window } else { flight };
            self.suspect(true);
            self.congestion.lose(base.min(most));
        }
        self.recover = self.board.next();
        self.phase = Phase::Loss { point: self.recover };
        (self.duplicates, self.credit, self.probe) = (0, 0, None);
        self.timers.stop(Timer::Reorder as usize);
        self.timers.stop(Timer::Probe as usize);
        if self.config.frto && doubtful {
            self.ask_whether_spurious();
        } else {
            self.stop_asking();
            self.board.lose_all();
        }
        self.congestion.collapse();
        self.force = true;
        self.rack.latest = self.rack.latest.filter(|_| self.sack).map(|(at, end)| (at.min(now), end));
    }

    /// An acknowledgment after a timeout.
    fn climb_after_timeout(&mut self, news: &News, point: u64) {
        if self.is_asking() && self.judge_timeout(news) {
            return;
        }
        self.grow(news);
        if self.recovery() == Recovery::Rack && !self.board.is_empty() {
            self.track_time(news);
            self.find_losses_by_rack(news.now);
        }
        if news.position >= point {
            self.phase = Phase::Open;
            (self.duplicates, self.sent_early, self.force) = (0, 0, false);
            self.forget_suspicion();
        }
    }

    /// RFC 8985 section 6.2 steps 1 to 3.
    fn track_time(&mut self, news: &News) {
        self.rack.reordered |= news.delivered.reordered;
        if let Some((sent, end, again)) = news.delivered.latest {
            let trip = news.now.since(sent);
            // What was sent twice may have been acknowledged for its first time.
            let value = self.clock.map(|clock| clock.value(sent));
            let answers_earlier =
                value.zip(news.echo).is_some_and(|(v, echo)| echo.wrapping_sub(v).cast_signed() < 0);
            let doubtful = again && (trip < self.estimator.least() || answers_earlier);
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

    /// How long after its turn a segment may still come (step 4).
    fn patience(&self) -> Span {
        let segments = self.board.sacked() / self.smss;
        if !self.rack.reordered && (self.phase != Phase::Open || segments >= u64::from(THRESHOLD)) {
            return Span::ZERO;
        }
        let quarter = Span::from_nanos(self.estimator.least().as_nanos() / 4);
        let most = self.estimator.smoothed().unwrap_or(Span::ZERO);
        (quarter * (self.rack.quarters + 1)).min(most)
    }

    fn find_losses_by_rack(&mut self, now: Time) -> bool {
        let Some(latest) = self.rack.latest else { return false };
        let patience = self.rack.trip + self.patience();
        let (more, next) = self.board.lose_by_time(now, latest, patience);
        match next {
            Some(at) => self.timers.set(Timer::Reorder as usize, at),
            None => self.timers.stop(Timer::Reorder as usize),
        }
        more
    }

    /// The reordering timer: what has not come by now is lost.
    pub(super) fn find_losses_by_time(&mut self, now: Time) {
        if !self.find_losses_by_rack(now) || self.phase != Phase::Open {
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

    /// A recovery has ended without a repetition being reported: reordering is less of a worry (section 6.2).
    fn trust_more(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.quarters = 0;
        }
    }

    /// Whether the probe of the tail has repaired a loss, which costs as any (RFC 8985 section 7.4.2). The acknowledgment of
    /// the probe itself may be that of what it repeats: only one beyond it is sure.
    fn hear_of_probe(&mut self, news: &News) {
        let Some((end, again)) = self.probe else { return };
        let both_arrived = again && news.repeated;
        if !both_arrived && (news.position < end || (again && news.position == end)) {
            return;
        }
        self.probe = None;
        if again && !both_arrived && self.phase == Phase::Open {
            let base = if self.config.halve_window { self.congestion.window } else { news.flight };
            self.congestion.lose(base);
            self.congestion.window = self.congestion.window.min(self.congestion.threshold);
        }
    }

    /// A peer that does not report repetitions answers the second copy with an acknowledgment that says nothing new (RFC
    /// 8985 section 7.4.2).
    pub(super) fn hear_of_probe_silently(&mut self, position: u64) {
        if self.probe == Some((position, true)) {
            self.probe = None;
        }
    }

    /// Takes the right to send one segment again that is not known to be lost (RFC 6675 `NextSeg` rule 4).
    pub(super) fn rescue(&mut self) -> bool {
        match &mut self.phase {
            Phase::Recovery { rescue, .. } if self.board.first() > *rescue => {
                *rescue = u64::MAX;
                true
            }
            _ => false,
        }
    }
}
