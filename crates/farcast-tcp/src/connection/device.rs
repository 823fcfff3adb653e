//! Local congestion, as in Linux 2.4: the host's own device has no room for a segment.
//!
//! In Linux the queue before a device tells TCP at once when it drops a segment. TCP takes the drop for congestion
//! (`tcp_transmit_skb` calls `tcp_enter_cwr`) and not for a loss: new data stays unsent, and a retransmission stays
//! due. The slow start threshold falls to half of the window. The window falls to the octets in flight and one segment
//! more. From there it falls by a segment with every second acknowledgment, until all data is acknowledged that had
//! been sent before.

use farcast_core::{Span, Time};

use super::recovery::{News, RecoveryPhase};
use super::timing::Timer;
use super::{Connection, State};
use crate::{Flags, Segment};

/// Longest wait until a segment that found no room is tried again (Linux's `TCP_RESOURCE_PROBE_INTERVAL`).
const MOST_PATIENCE: Span = Span::from_millis(500);

/// Effect of the host's queue on a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Device {
    /// The queue is full: nothing more leaves before the next event of the connection.
    full: bool,
    /// Reduction of the window that is under way.
    curb: Option<Curb>,
}

/// Reduction of the window after a local drop (Linux's `TCP_CA_CWR`).
#[derive(Clone, Copy, Debug)]
struct Curb {
    /// Position whose acknowledgment ends the reduction.
    point: u64,
    /// Acknowledgments since the window last fell.
    counted: u32,
}

impl Device {
    /// Notes an event, after which the queue may have room again.
    pub(super) const fn stir(&mut self) {
        self.full = false;
    }

    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Ends a reduction. Returns `true` if one was under way: it then counts for the loss that follows as well.
    pub(super) const fn is_paid(&mut self) -> bool {
        self.curb.take().is_some()
    }
}

impl Connection {
    /// Notes that the segment polled last has not left: the queue of this host's device had no room. Its data counts as
    /// not sent, and the window comes down. The data is tried again after the next acknowledgment or, if nothing is in
    /// flight, after a retransmission timeout.
    ///
    /// A SYN, a reset or a bare acknowledgment is lost by the drop, as on the path.
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

    /// Begins to reduce the window, unless a reduction is under way or has been made for the data in flight.
    fn come_down(&mut self) {
        if self.repair.phase != RecoveryPhase::Open || self.device.curb.is_some() {
            return;
        }
        let window = self.congestion.window;
        let base = if self.config.halve_window { window } else { self.board.flight() };
        self.forget_suspicion();
        self.congestion.lose(base);
        self.congestion.window = window.min(self.board.pipe() + self.agreed.smss);
        self.device.curb = Some(Curb { point: self.board.next(), counted: 0 });
    }

    /// Reduces the window with an acknowledgment. Returns `true` if a reduction is under way; the window then does not
    /// grow.
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
