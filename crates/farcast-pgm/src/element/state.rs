//! State of an element for each number that is asked for (RFC 3208 §7.2 to §7.5).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use farcast_core::{Span, Time};

use super::config::ElementConfig;
use crate::ports::Ports;
use crate::sqn::Place;

/// Destination of an element's NAKs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Way {
    /// The neighbour from which SPMs come.
    Neighbour,
    /// A repairer further up that has announced itself (§9.5.2.1).
    Redirected,
    /// A repairer beside the tree (§9.5.2.2).
    Beside,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// A repairer below announced by a NNAK that it repairs the number; no NAK was forwarded.
    Null,
    /// A NAK was forwarded. It is repeated until it is confirmed, at the latest until this time.
    Pending { until: Time },
    /// The NAK was confirmed; from this time on another NAK is forwarded.
    Outstanding { eliminated_until: Time },
}

#[derive(Clone, Copy, Debug)]
struct State {
    phase: Phase,
    /// Destination of the latest NAK.
    way: Way,
    due: Time,
    /// Time of the first NAK to this destination.
    asked: Time,
    /// Ports to which repair goes.
    ports: Ports,
    /// Ports on which the number was confirmed, and the time of the latest confirmation.
    confirmed: (Ports, Time),
}

/// Reaction to a NAK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reaction {
    /// The NAK is confirmed on the port from which it came.
    pub(super) confirm: bool,
    /// The NAK is forwarded.
    pub(super) forward: bool,
}

/// Results of expired timers.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Requests that are to be repeated, ordered by destination.
    pub(super) repeat: Vec<(Way, Place)>,
    /// Destinations that did not answer in time.
    pub(super) silent: Vec<Way>,
    /// Number of requests that were given up, since nobody confirmed them.
    pub(super) cancelled: u64,
}

/// Estimated delay of confirmations; `None` while unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Confirming(Option<Span>);

impl Confirming {
    /// Returns the time after which a NAK is repeated.
    pub(super) fn wait(self, config: &ElementConfig) -> Span {
        let Some(unknown) = config.unknown else { return config.repeat };
        self.0.map_or(unknown, |takes| takes * 5 / 4).max(config.repeat)
    }

    /// Takes a measured delay. A longer one replaces the estimate, a shorter one counts an eighth.
    pub(super) fn learn(&mut self, takes: Span) {
        self.0 = Some(self.0.map_or(takes, |known| takes.max((known * 7 + takes) / 8)));
    }
}

/// Numbers of one session that are asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    map: BTreeMap<Place, State>,
    deadlines: BTreeSet<(Time, Place)>,
    confirming: Confirming,
}

/// NAK for a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlaceRequest {
    pub(super) place: Place,
    /// Ports that the NAK came from; none for a repairer's own NAK.
    pub(super) ports: Ports,
    /// Destination, if the NAK is forwarded.
    pub(super) way: Way,
}

impl States {
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn has(&self, place: Place) -> bool {
        self.map.contains_key(&place)
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Returns the phase and the deadline of a NAK that is forwarded now.
    fn pending(&self, now: Time, config: &ElementConfig) -> (Phase, Time) {
        (
            Phase::Pending { until: now + config.confirm },
            now + self.confirming.wait(config).min(config.confirm),
        )
    }

    fn put(&mut self, place: Place, state: State) {
        if let Some(before) = self.map.insert(place, state) {
            self.deadlines.remove(&(before.due, place));
        }
        self.deadlines.insert((state.due, place));
    }

    fn remove(&mut self, place: Place) -> Option<State> {
        let state = self.map.remove(&place)?;
        self.deadlines.remove(&(state.due, place));
        Some(state)
    }

    /// Notes a NAK.
    pub(super) fn ask(
        &mut self,
        now: Time,
        PlaceRequest { place, ports, way }: PlaceRequest,
        config: &ElementConfig,
    ) -> Reaction {
        let before = self.map.get(&place).copied();
        let forward = before.is_none_or(|state| match state.phase {
            Phase::Null => true,
            Phase::Pending { .. } => false,
            Phase::Outstanding { eliminated_until } => now >= eliminated_until,
        });
        let mut state = before.unwrap_or(State {
            phase: Phase::Null,
            way,
            due: now,
            asked: now,
            ports: Ports::NONE,
            confirmed: (Ports::NONE, now),
        });
        let (known, at) = state.confirmed;
        let known = if now.since(at) < config.holdoff { known } else { Ports::NONE };
        let confirm = ports != Ports::NONE && !known.has(ports);
        if confirm {
            state.confirmed = (known.with(ports), now);
        }
        state.ports = state.ports.with(ports);
        if forward {
            (state.phase, state.due) = self.pending(now, config);
            (state.way, state.asked) = (way, now);
        }
        self.put(place, state);
        Reaction { confirm, forward }
    }

    /// Notes that a repairer beside the tree asks for `place` itself. If the place was asked of it, asks the neighbour
    /// instead and returns `true`.
    pub(super) fn hand_back(&mut self, now: Time, place: Place, config: &ElementConfig) -> bool {
        let Some(&state) = self.map.get(&place).filter(|state| state.way == Way::Beside) else {
            return false;
        };
        let (phase, due) = self.pending(now, config);
        self.put(place, State { phase, way: Way::Neighbour, due, asked: now, ..state });
        true
    }

    /// Notes that a repairer below repairs `place`. Returns `true` if nothing was known of `place`, so that those above
    /// are told (§9.5.3.2).
    pub(super) fn null(&mut self, now: Time, place: Place, config: &ElementConfig) -> bool {
        if self.has(place) {
            return false;
        }
        let (ports, confirmed) = (Ports::NONE, (Ports::NONE, Time::ZERO));
        let (phase, way, due) = (Phase::Null, Way::Neighbour, now + config.eliminate);
        self.put(place, State { phase, way, due, asked: now, ports, confirmed });
        true
    }

    /// Notes that `place` was confirmed from above (§7.3). If nobody below has asked for it, anticipates the repair,
    /// given `room` for a state. Returns `true` if the state has changed.
    pub(super) fn confirmed(&mut self, now: Time, place: Place, room: bool, config: &ElementConfig) -> bool {
        let before = self.map.get(&place).copied();
        let is_known = before.is_some_and(|state| matches!(state.phase, Phase::Outstanding { .. }));
        if is_known || (before.is_none() && !room) {
            return false;
        }
        let (phase, due) =
            (Phase::Outstanding { eliminated_until: now + config.eliminate }, now + config.repair);
        let fresh = State {
            phase,
            way: Way::Neighbour,
            due,
            asked: now,
            ports: Ports::NONE,
            confirmed: (Ports::NONE, Time::ZERO),
        };
        if let Some(state) = before.filter(|state| matches!(state.phase, Phase::Pending { .. })) {
            self.confirming.learn(now.since(state.asked));
        }
        self.put(place, before.map_or(fresh, |state| State { phase, due, ..state }));
        true
    }

    /// Returns `true` if a NAK for `place` was forwarded and is not confirmed.
    pub(super) fn is_pending(&self, place: Place) -> bool {
        self.map.get(&place).is_some_and(|state| matches!(state.phase, Phase::Pending { .. }))
    }

    /// Notes that `place` is repaired, and returns the ports to which the repair goes.
    pub(super) fn repaired(&mut self, place: Place) -> Option<Ports> {
        let state = self.remove(place)?;
        if state.phase == Phase::Null {
            return None;
        }
        Some(state.ports)
    }

    /// Removes the numbers before `trail`, which are no longer repaired.
    pub(super) fn advance(&mut self, trail: Place) {
        while let Some(&place) = self.map.keys().next().filter(|&&place| place < trail) {
            self.remove(place);
        }
    }

    /// Handles the timers that have expired.
    pub(super) fn expire(&mut self, now: Time, config: &ElementConfig) -> Due {
        let mut due = Due::default();
        while let Some(&(at, place)) = self.deadlines.first().filter(|&&(at, _)| at <= now) {
            let Some(state) = self.map.get(&place).copied() else {
                self.deadlines.remove(&(at, place));
                continue;
            };
            let Phase::Pending { until } = state.phase else {
                self.remove(place);
                continue;
            };
            if now < until {
                due.repeat.push((state.way, place));
                let due = now + self.confirming.wait(config);
                self.put(place, State { due: due.min(until), ..state });
            } else if state.way == Way::Neighbour {
                self.remove(place);
                due.cancelled += 1;
            } else {
                due.silent.push(state.way);
                due.repeat.push((Way::Neighbour, place));
                let (phase, due) = self.pending(now, config);
                self.put(place, State { phase, way: Way::Neighbour, due, asked: now, ..state });
            }
        }
        due.repeat.sort_unstable();
        due.silent.sort_unstable();
        due.silent.dedup();
        due
    }
}
