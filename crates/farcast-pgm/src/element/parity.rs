//! State of an element for each transmission group whose parity is asked for (RFC 3208 §11.6).
//!
//! A request gives the number of packets that it wants of a group, and covers requests for fewer. So each group has one
//! state: the largest number asked for upstream, and for each port the number of packets that have yet to go there.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Reject};
use farcast_delivery::Content;

use super::Element;
use super::config::ElementConfig;
use super::state::{Confirming, Reaction, Way};
use crate::message::{Body, Data, Nak, NakKind, Opt, Origin, Spm};
use crate::ports::Ports;
use crate::sqn::{GroupWant, Place};

/// Returns the size of the transmission groups whose parity can be asked for, by the options of an SPM.
pub(super) fn on_demand(spm: &Spm) -> Option<u32> {
    spm.options.iter().find_map(|option| match *option {
        Opt::ParityPrm { on_demand: true, size, .. } if size.is_power_of_two() => Some(size),
        _ => None,
    })
}

/// Encodes a group and a number of its packets as requests do: as the place `count` - 1 behind the group's first.
fn named(base: Place, count: u32) -> Place {
    base.plus(count.saturating_sub(1))
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A NAK was forwarded. It is repeated until it is confirmed, at the latest until this time.
    Pending { until: Time },
    /// The NAK was confirmed; from this time on another NAK is forwarded.
    Outstanding { eliminated_until: Time },
}

/// Demand of a port.
#[derive(Clone, Copy, Debug)]
struct Wish {
    port: u32,
    /// Number of packets that have yet to go there.
    count: u32,
    /// Number of packets in the latest confirmation on the port, and its time.
    confirmed: (u32, Time),
}

#[derive(Clone, Debug)]
struct Group {
    phase: Phase,
    due: Time,
    /// Time of the first forwarded request for this number of packets.
    asked: Time,
    /// The largest number of packets that were asked for upstream, or confirmed to others, less those that have come.
    largest: u32,
    wishes: Vec<Wish>,
}

/// Groups of one session whose parity is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// Numbers of a group; `None` without parity on demand.
    size: Option<u32>,
    map: BTreeMap<Place, Group>,
    deadlines: BTreeSet<(Time, Place)>,
    confirming: Confirming,
}

impl Groups {
    pub(super) fn new(size: Option<u32>) -> Self {
        Self { size, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Sets the size of groups; `None` where there are none. A change discards all states.
    pub(super) fn set_size(&mut self, size: Option<u32>) {
        if self.size != size {
            *self = Self::new(size);
        }
    }

    /// Removes the groups that end before `trail`, which are no longer repaired.
    pub(super) fn advance(&mut self, trail: Place) {
        let Some(size) = self.size else { return };
        while let Some(&base) = self.map.keys().next().filter(|&&base| base.plus(size) <= trail) {
            self.remove(base);
        }
    }

    fn put(&mut self, base: Place, group: Group) {
        let due = group.due;
        if let Some(before) = self.map.insert(base, group) {
            self.deadlines.remove(&(before.due, base));
        }
        self.deadlines.insert((due, base));
    }

    fn remove(&mut self, base: Place) -> Option<Group> {
        let group = self.map.remove(&base)?;
        self.deadlines.remove(&(group.due, base));
        Some(group)
    }

    /// Notes that `port` asks for packets of a group.
    fn ask(&mut self, now: Time, want: GroupWant, port: u32, config: &ElementConfig) -> Reaction {
        let GroupWant { base, count } = want;
        let before = self.remove(base);
        let forward = before.as_ref().is_none_or(|group| {
            let eliminated = match group.phase {
                Phase::Pending { .. } => true,
                Phase::Outstanding { eliminated_until } => now < eliminated_until,
            };
            count > group.largest || !eliminated
        });
        let mut group = before.unwrap_or(Group {
            phase: Phase::Pending { until: now },
            due: now,
            asked: now,
            largest: 0,
            wishes: Vec::new(),
        });
        group.largest = group.largest.max(count);
        if forward {
            group.phase = Phase::Pending { until: now + config.confirm };
            group.due = now + self.confirming.wait(config).min(config.confirm);
            group.asked = now;
        }
        let known = group.wishes.iter().position(|wish| wish.port == port).unwrap_or_else(|| {
            group.wishes.push(Wish { port, count: 0, confirmed: (0, now) });
            group.wishes.len() - 1
        });
        let wish = &mut group.wishes[known];
        wish.count = wish.count.max(count);
        let (confirmed, at) = wish.confirmed;
        let confirm = now.since(at) >= config.holdoff || confirmed < count;
        if confirm {
            wish.confirmed = (count, now);
        }
        self.put(base, group);
        Reaction { confirm, forward }
    }

    /// Notes that `count` packets were confirmed from above. If nobody below has asked for them, anticipates the
    /// repair, given `room` for a state, and returns `true`.
    fn confirmed(
        &mut self,
        now: Time,
        GroupWant { base, count }: GroupWant,
        room: bool,
        config: &ElementConfig,
    ) -> bool {
        let (phase, due) =
            (Phase::Outstanding { eliminated_until: now + config.eliminate }, now + config.repair);
        match self.remove(base) {
            Some(group) if matches!(group.phase, Phase::Pending { .. }) && count < group.largest => {
                // The confirmation is for another's request, which asked for fewer.
                self.put(base, group);
                false
            }
            Some(group) => {
                let largest = group.largest.max(count);
                if matches!(group.phase, Phase::Pending { .. }) {
                    self.confirming.learn(now.since(group.asked));
                    self.put(base, Group { phase, due, largest, ..group });
                } else {
                    self.put(base, Group { largest, ..group });
                }
                false
            }
            None if room => {
                self.put(base, Group { phase, due, asked: now, largest: count, wishes: Vec::new() });
                true
            }
            None => false,
        }
    }

    /// Notes that a parity packet of the group at `base` has come, and returns the ports to which it goes. `short` is
    /// the number of packets that the group lacks of a full one.
    fn repaired(&mut self, base: Place, short: u32) -> Option<Ports> {
        let mut group = self.remove(base)?;
        let ports = group.wishes.iter().fold(Ports::NONE, |all, wish| all.with(Ports::one(wish.port)));
        for wish in &mut group.wishes {
            wish.count -= 1;
        }
        // Requests count the packets that a short group does not have as missing.
        group.wishes.retain(|wish| wish.count > short);
        group.largest -= 1;
        if group.largest > short {
            self.put(base, group);
        }
        Some(ports)
    }

    /// Returns the requests that are to be repeated, and the number of groups that were given up.
    fn expire(&mut self, now: Time, config: &ElementConfig) -> (Vec<Place>, u64) {
        let (mut repeat, mut cancelled) = (Vec::new(), 0);
        while let Some(&(_, base)) = self.deadlines.first().filter(|&&(at, _)| at <= now) {
            let Some(group) = self.remove(base) else { break };
            let Phase::Pending { until } = group.phase else { continue };
            if now >= until {
                cancelled += 1;
                continue;
            }
            repeat.push(named(base, group.largest));
            let due = (now + self.confirming.wait(config)).min(until);
            self.put(base, Group { due, ..group });
        }
        (repeat, cancelled)
    }
}

impl Element {
    /// Handles requests for parity of groups, or confirmations of them.
    pub(super) fn hear_counts(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        nak: &Nak,
    ) -> Result<(), Reject> {
        // A repairer makes no parity from its store, and says so in the SPMs that it forwards.
        let size = self.sessions[at].groups.size.filter(|_| self.store.is_none());
        let size = size.ok_or(Reject::Unexpected)?;
        let wants = self.wants(at, nak, size)?;
        match nak.kind {
            NakKind::Nak if self.is_from_below(at, from) => {
                self.ask_for_parity(now, at, from.interface, &wants)
            }
            NakKind::Confirmation if self.is_from_above(at, from) => {
                self.anticipate_parity(now, at, &wants);
                Ok(())
            }
            _ => Err(Reject::Unexpected),
        }
    }

    /// Returns the groups that `nak` names and that can still be repaired, each with the number of packets.
    ///
    /// # Errors
    /// [`Reject::OutOfRange`] if there is none.
    fn wants(&self, at: usize, nak: &Nak, size: u32) -> Result<Vec<GroupWant>, Reject> {
        let session = &self.sessions[at];
        let end = session.lead.plus(self.config.ahead);
        let is_known = |&GroupWant { base, .. }: &GroupWant| base < end && base.plus(size) > session.trail;
        let wants: Vec<_> =
            nak.sqns().map(|sqn| session.lead.near(sqn).wanted(size)).filter(is_known).collect();
        if wants.is_empty() { Err(Reject::OutOfRange) } else { Ok(wants) }
    }

    fn ask_for_parity(&mut self, now: Time, at: usize, port: u32, wants: &[GroupWant]) -> Result<(), Reject> {
        let mut room = self.config.states.saturating_sub(self.states());
        let Self { sessions, config, counts, .. } = self;
        let groups = &mut sessions[at].groups;
        counts.naks += 1;
        let (mut confirm, mut ask, mut forward) = (Vec::new(), Vec::new(), false);
        for &want in wants {
            let GroupWant { base, count } = want;
            if !groups.map.contains_key(&base) {
                if room == 0 {
                    counts.crowded += 1;
                    continue;
                }
                room -= 1;
            }
            let reaction = groups.ask(now, want, port, config);
            let largest = groups.map.get(&base).map_or(count, |group| group.largest);
            ask.push(named(base, largest));
            forward |= reaction.forward;
            if reaction.confirm {
                confirm.push(named(base, count));
            }
        }
        if ask.is_empty() {
            return Err(Reject::Limit);
        }
        self.confirm_as(at, port, &confirm, true);
        if forward {
            self.forward_as(at, Way::Neighbour, &ask, &[], true);
        } else {
            self.counts.eliminated += 1;
        }
        Ok(())
    }

    fn anticipate_parity(&mut self, now: Time, at: usize, wants: &[GroupWant]) {
        let mut room = self.config.states.saturating_sub(self.states());
        let Self { sessions, config, counts, .. } = self;
        for &want in wants {
            if sessions[at].groups.confirmed(now, want, room > 0, config) {
                (room, counts.anticipated) = (room - 1, counts.anticipated + 1);
            }
        }
        sessions[at].heard = now;
    }

    /// Forwards parity to the ports that asked for it.
    pub(super) fn hear_parity(
        &mut self,
        now: Time,
        at: usize,
        from: &Arrival,
        data: &Data,
    ) -> Result<(), Reject> {
        let size = self.sessions[at].groups.size.ok_or(Reject::Unexpected)?;
        let actual = data.options.group_size.unwrap_or(size);
        if data.count.get() > 1 || !(1..=size).contains(&actual) {
            return Err(Reject::Inconsistent);
        }
        let session = &mut self.sessions[at];
        let base = session.lead.near(data.sqn).group(size);
        let ports = session.groups.repaired(base, size - actual);
        let ports = ports.ok_or(Reject::Unexpected)?.without(Ports::one(from.interface));
        session.heard = now;
        if ports == Ports::NONE {
            self.counts.unasked += 1;
        }
        for port in ports.numbers() {
            let one = Data { origin: Origin(Content::Passing { datagram: 0 }), ..data.clone() };
            self.counts.repairs += 1;
            self.send_down(at, port, Body::Data(one));
        }
        Ok(())
    }

    /// Repeats requests for parity that nobody has confirmed.
    pub(super) fn expire_parity(&mut self, now: Time, at: usize) {
        let Self { sessions, config, counts, .. } = self;
        let (repeat, cancelled) = sessions[at].groups.expire(now, config);
        counts.cancelled += cancelled;
        if !repeat.is_empty() {
            self.forward_as(at, Way::Neighbour, &repeat, &[], true);
        }
    }
}
