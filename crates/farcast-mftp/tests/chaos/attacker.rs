//! Host off the path that hears multicasts and sends arbitrary messages from arbitrary addresses.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, Transmit};
use farcast_core::{Span, Time};

use crate::grammar::{Pen, Seen};
use crate::parcel::{self, Forged, Parcel};
use crate::plan::{Attack, Draw};

/// Purpose of an attacker's draws.
const FORGE: u64 = 20;

/// Attacker at work.
pub(crate) struct Attacker {
    seed: u64,
    number: u32,
    own: SocketAddr,
    attack: Attack,
    seen: Seen,
    next: Time,
    sent: u32,
    /// Set of its messages that may leave, if limited.
    only: Option<Rc<BTreeSet<Forged>>>,
}

impl Attacker {
    pub(crate) fn new(
        seed: u64,
        number: u32,
        attack: Attack,
        knows: Seen,
        only: Option<Rc<BTreeSet<Forged>>>,
    ) -> Self {
        let (own, next) = (crate::grammar::attacker(number as usize), attack.during.start);
        Self { seed, number, own, attack, seen: knows, next, sent: 0, only }
    }

    fn is_over(&self) -> bool {
        self.attack.forgeries.is_empty()
            || self.sent >= self.attack.most
            || self.next >= self.attack.during.end
    }

    /// Returns the next message, whose draws depend on its number alone.
    fn forge(&mut self) -> Option<Transmit<Parcel>> {
        let name = Forged { attacker: self.number, number: self.sent };
        let mut draw = Draw::new(self.seed, &[FORGE, u64::from(self.number), u64::from(self.sent)]);
        self.sent += 1;
        self.next += self.attack.gap * draw.below(2001) / 1000 + Span::from_nanos(1);
        let forgery = draw.pick(&self.attack.forgeries);
        if self.only.as_ref().is_some_and(|only| !only.contains(&name)) {
            return None;
        }
        let (fidelity, knows_ports) = (self.attack.fidelity, self.attack.knows_ports);
        let scheme = self.seed ^ u64::from(self.number) << 56;
        let mut pen = Pen { draw, seen: &self.seen, fidelity, knows_ports, own: self.own, scheme };
        let (source, destination, message) = pen.write(forgery);
        let message = parcel::over_the_wire(&message)?;
        let parcel = Parcel { message: Rc::new(message), spoiled: true, forged: Some(name) };
        let mut transmit = Transmit::new(parcel, destination);
        transmit.source = Some(source);
        Some(transmit)
    }
}

impl Engine for Attacker {
    type Message = Parcel;
    type Event = ();

    fn handle(&mut self, _: Time, from: &Arrival, parcel: &Parcel) -> Result<(), Reject> {
        // The attacker ignores forged messages.
        if parcel.forged.is_none() && from.destination.ip().is_multicast() {
            self.seen.note(from.source, &parcel.message);
        }
        Ok(())
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, _: Time) -> Option<Transmit<Parcel>> {
        while !self.is_over() && self.next <= now {
            if let Some(transmit) = self.forge() {
                return Some(transmit);
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        (!self.is_over()).then_some(Deadline { at: self.next, timer: "forge" })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }
}
