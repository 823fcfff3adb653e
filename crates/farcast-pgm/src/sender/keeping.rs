//! Messages for named receivers. The source keeps what one of them lacks, and sends nothing new while the window is
//! full of it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{Span, Time};
use farcast_delivery::Phase;

use super::window::Window;
use super::{Sender, Timer};
use crate::config::{Advance, SenderConfig, Sending};
use crate::event::SenderEvent;
use crate::message::{NodeId, Sqn};
use crate::sqn::Place;

/// The shortest interval between questions to named receivers, however short a round trip is.
const SHORTEST: Span = Span::from_millis(10);

/// Progress of the named receivers in a source of messages.
#[derive(Debug)]
pub(super) struct Keeping {
    /// Place behind the last TPDU that each receiver has, for those that are still waited for.
    has: BTreeMap<NodeId, Place>,
    /// Least of these places.
    least: Option<Place>,
    /// Number of receivers that were given up.
    lost: u32,
}

impl Keeping {
    pub(super) fn new(config: &SenderConfig) -> Self {
        let named = if config.sending == Sending::Messages { &config.named[..] } else { &[] };
        let first = Place::first(config.first);
        let least = (!named.is_empty()).then_some(first);
        Self { has: named.iter().map(|&node| (node, first)).collect(), least, lost: 0 }
    }

    /// Returns the number of receivers that were given up.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    fn note(&mut self) {
        self.least = self.has.values().min().copied();
    }
}

impl Sender {
    /// Returns `true` if the window cannot advance because a named receiver lacks its oldest part.
    pub(super) fn is_held(&self) -> bool {
        let Advance::Data { sqns, .. } = self.config.advance else { return false };
        let trail = self.window.trail.plus(sqns / 8);
        self.keeping.least.is_some_and(|least| least < trail)
    }

    /// Returns `true` if named receivers are to report: more than half of the window is not acknowledged.
    pub(super) fn is_pressed(&self) -> bool {
        let Advance::Data { sqns, .. } = self.config.advance else { return false };
        self.keeping.least.is_some_and(|least| Window::between(least, self.window.next) > sqns / 2)
    }

    /// Asks named receivers for their progress, if that is due. While a full window waits for them, they have as long
    /// to answer as after the last data.
    pub(super) fn press(&mut self, now: Time) {
        if self.core.phase != Phase::Sending || !self.is_pressed() {
            return;
        }
        if !self.timers.is_set(Timer::Ask) {
            self.spms = self.spms.max(1);
            self.timers.set(Timer::Ask, now + self.config.holdoff.max(SHORTEST));
        }
        if self.is_full() && self.is_held() && !self.timers.is_set(Timer::Linger) {
            self.timers.set(Timer::Linger, now + self.config.linger);
        }
    }

    fn is_full(&self) -> bool {
        let Advance::Data { sqns, .. } = self.config.advance else { return false };
        Window::between(self.window.trail, self.window.next) >= sqns
    }

    /// Notes that `node` has all messages up to `upto`.
    pub(super) fn hear_progress(&mut self, now: Time, upto: Sqn, node: NodeId) -> Result<(), Reject> {
        let place = self.window.next.near(upto).next();
        let is_all = self.core.phase == Phase::Waiting && place == self.window.end;
        if place > self.window.lead {
            return Err(Reject::OutOfRange);
        }
        let Some(has) = self.keeping.has.get_mut(&node) else {
            let known = self.config.named.contains(&node);
            return Err(if known { Reject::Duplicate } else { Reject::Stranger });
        };
        if place <= *has && !is_all {
            return Err(Reject::Duplicate);
        }
        *has = place.max(*has);
        if is_all {
            self.keeping.has.remove(&node);
            self.lacking.retain(|&lacking| lacking != node);
            self.has_all(now, node);
        } else if self.core.phase == Phase::Waiting || self.timers.is_set(Timer::Linger) {
            self.timers.set(Timer::Linger, now + self.config.linger);
        }
        self.keeping.note();
        self.look_whether_held();
        Ok(())
    }

    /// Stops the timer by which receivers are given up, unless the window waits for one of them.
    fn look_whether_held(&mut self) {
        if self.core.phase == Phase::Sending && !self.is_held() {
            self.timers.stop(Timer::Linger);
        }
    }

    /// Gives up the receivers that have held the window for long without a word.
    pub(super) fn give_up_who_lags(&mut self) {
        let Advance::Data { sqns, .. } = self.config.advance else { return };
        let trail = self.window.trail.plus(sqns / 8);
        let lag = |&(_, &has): &(&NodeId, &Place)| has < trail;
        let lost: Vec<NodeId> = self.keeping.has.iter().filter(lag).map(|(&node, _)| node).collect();
        for node in lost {
            self.keeping.has.remove(&node);
            self.lacking.retain(|&lacking| lacking != node);
            self.keeping.lost += 1;
            self.core.events.push_back(SenderEvent::Lost(node));
        }
        self.keeping.note();
    }
}
