//! Event loop in virtual time.

use farcast_core::Time;
use farcast_delivery::{Phase, Protocol, SenderEngine as _};

use super::pulse::{EVERY, Pulse};
use super::{Group, Layout, World};

/// Result of running a part of a replication.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    GoesOn,
    Over,
    Stopped,
}

impl<P: Protocol, L: Layout<P>> World<'_, P, L> {
    /// Runs until no event is left, or until the limit. Where something has no end but the transfer or a flow has one,
    /// the replication is over when everything that has an end has reached it.
    pub fn run(&mut self) {
        self.run_while(&Pulse::default());
    }

    /// Runs like [`run`](Self::run), unless `pulse` is stopped meanwhile. Returns `true` if the replication was
    /// completed; else the events until then are not a replication.
    pub fn run_while(&mut self, pulse: &Pulse) -> bool {
        self.run_with_look(pulse, self.limit, |_| {})
    }

    /// Runs like [`run_while`](Self::run_while), and calls `look` with the state after all events until `at`, unless
    /// the replication was over before.
    pub fn run_with_look(&mut self, pulse: &Pulse, at: Time, look: impl FnOnce(&Self)) -> bool {
        self.open_transfer();
        self.schedule_flows();
        let mut standing = self.run_until(at.min(self.limit), pulse);
        if standing == Standing::GoesOn {
            look(self);
            standing = self.run_until(self.limit, pulse);
        }
        if standing == Standing::Stopped {
            return false;
        }
        if !self.flows.is_empty() {
            L::count_under_way(self);
        }
        self.tell_completed();
        true
    }

    /// Handles all events until an instant.
    fn run_until(&mut self, until: Time, pulse: &Pulse) -> Standing {
        while L::next_at(self) <= until
            && let Some(at) = L::happen_next(self)
        {
            self.counts.events += 1;
            if self.counts.events.is_multiple_of(EVERY) && !pulse.beat(at) {
                return Standing::Stopped;
            }
            if self.stops_early && self.is_over() {
                self.end = at;
                return Standing::Over;
            }
        }
        Standing::GoesOn
    }

    /// Returns the end of the replication: the limit, or the earlier time at which everything that has an end had
    /// reached it.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns `true` if everything that has an end has reached it. The transfer has when its sender has ended and none
    /// of the frames that it waits for is under way.
    fn is_over(&self) -> bool {
        let ended = |sender: &P::Sender| sender.phase() == Phase::Ended;
        let over = self.unended == 0 && self.sender.as_ref().is_none_or(ended) && self.under_way == 0;
        over && !self.layout.is_held()
    }

    /// Reports the completion times of receivers to the observer, those of one instant in the order of the receivers.
    fn tell_completed(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        let each = |group: &Group<P>| {
            (0..group.receivers).map(|n| (group.completed(n), group.first + n)).collect::<Vec<_>>()
        };
        let mut completed: Vec<(Time, u32)> = self.groups.iter().flat_map(each).collect();
        completed.retain(|&(at, _)| at != Time::NEVER);
        completed.sort_unstable();
        for (at, receiver) in completed {
            observer.completed(at, receiver);
        }
    }
}
