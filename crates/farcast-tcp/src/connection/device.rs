//! What the host's own device has no room for: local congestion, as Linux 2.4 knows it.
//!
//! In Linux the queue before a device tells TCP at once when it drops a segment. TCP takes that for congestion
//! (`tcp_transmit_skb` calls `tcp_enter_cwr`) and for no loss: new data stays unsent, and what was to be sent again
//! stays to be sent again. The slow start threshold falls to half of the window, the window to what is in flight and
//! one segment more, and from there with every second acknowledgment by a segment, until what had been sent before is
//! acknowledged.

use farcast_core::{Span, Time};

use super::recovery::{News, Phase};
use super::timing::Timer;
use super::{Connection, State};
use crate::{Flags, Segment};

/// How long at most until what found no room is tried again (Linux's `TCP_RESOURCE_PROBE_INTERVAL`).
const MOST_PATIENCE: Span = Span::from_millis(500);

/// What the host's queue has done to a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Device {
    /// Nothing more leaves before something happens: the queue is full.
    full: bool,
    /// The window comes down.
    curb: Option<Curb>,
}

/// How the window comes down (Linux's `TCP_CA_CWR`).
#[derive(Clone, Copy, Debug)]
struct Curb {
    /// Until more than this is acknowledged.
    point: u64,
    /// Acknowledgments that are not paid for yet.
    counted: u32,
}

impl Device {
    /// Something has happened: the queue may have room again.
    pub(super) const fn stir(&mut self) {
        self.full = false;
    }

    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the window was coming down; what follows now has been paid for.
    pub(super) const fn is_paid(&mut self) -> bool {
        self.curb.take().is_some()
    }
}

impl Connection {
    /// The segment that was polled last has not left: the queue of this host's device had no room for it. Its data
    /// counts as not sent, and the window comes down. It is tried again after the next acknowledgment, or where
    /// nothing is in flight after a retransmission timeout.
    ///
    /// A SYN, a reset or a bare acknowledgment is lost by that, as on the way.
    pub fn refused(&mut self, now: Time, segment: &Segment) {
        self.stats.local_drops += 1;
        if matches!(self.state, State::Listen | State::SynSent | State::SynReceived | State::Closed) {
            return;
        }
        if segment.sequence_len() > 0 && !segment.flags.has(Flags::SYN) {
            self.take_back(now, segment);
        }
        self.device.full = true;
        self.come_down();
    }

    /// Undoes the sending of a segment.
    fn take_back(&mut self, now: Time, segment: &Segment) {
        let Some(start) = self.outgoing.numbering.position(segment.sequence, self.board.next()) else {
            return;
        };
        let data = u64::from(segment.payload.len);
        if self.board.unsend(start) {
            if segment.flags.has(Flags::FIN) {
                self.state = match self.state {
                    State::FinWait1 => State::Established,
                    State::LastAck => State::CloseWait,
                    other => other,
                };
            }
        } else if self.board.unsend_copy(start) {
            self.stats.retransmits -= 1;
            let due = self.timers.due(Timer::Retransmit).min(now + MOST_PATIENCE);
            self.timers.set(Timer::Retransmit, due);
        } else {
            return;
        }
        self.stats.data_segments_sent -= u64::from(data > 0);
        self.stats.octets_sent -= data;
        self.count_unsent(u64::from(segment.sequence_len()));
        if self.board.is_empty() {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::Probe);
            self.time_persist(now);
        }
    }

    /// Lets the window come down, unless it does or has done for what is in flight.
    fn come_down(&mut self) {
        if self.repair.phase != Phase::Open || self.device.curb.is_some() {
            return;
        }
        let window = self.congestion.window;
        let base = if self.config.halve_window { window } else { self.board.flight() };
        self.forget_suspicion();
        self.congestion.lose(base);
        self.congestion.window = window.min(self.board.pipe() + self.agreed.smss);
        self.device.curb = Some(Curb { point: self.board.next(), counted: 0 });
    }

    /// Lets the window come down with an acknowledgment; whether it does, and so does not grow.
    pub(super) fn descend_locally(&mut self, news: &News) -> bool {
        let Some(curb) = &mut self.device.curb else { return false };
        let threshold = self.congestion.threshold;
        let window = &mut self.congestion.window;
        if news.position > curb.point {
            *window = (*window).min(threshold);
            self.device.curb = None;
            return true;
        }
        curb.counted += 1;
        if curb.counted == 2 && *window > threshold {
            *window = (*window - self.agreed.smss).max(threshold);
        }
        curb.counted %= 2;
        *window = (*window).min(self.board.pipe() + self.agreed.smss);
        true
    }
}
