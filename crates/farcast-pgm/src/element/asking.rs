//! Messages of an element: confirmations, forwarded and repeated NAKs, and their destinations.

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::engine::Transmit;

use super::Element;
use super::session::{Neighbour, RequestOrigin, Session};
use super::state::{Due, PlaceRequest, Way};
use crate::message::{Body, MOST_LISTED, Message, Nak, NakKind, Opt};
use crate::ports::Ports;
use crate::sqn::Place;

/// Returns a message about repair of `places`, of which there are at least one and no more than a list holds.
pub(crate) fn about(session: &Session, kind: NakKind, places: &[Place], options: Vec<Opt>) -> Nak {
    let mut sqns = places.iter().map(|place| place.sqn());
    let sqn = sqns.next().unwrap_or_default();
    let (source, group) = (session.source_ip(), session.group.ip());
    Nak { kind, parity: false, sqn, source, group, also: sqns.collect(), list_octet: 0, options }
}

impl Element {
    /// Sends `body` to everybody below `port`, with the source's address (§7.4, §7.6).
    pub(crate) fn send_down(&mut self, at: usize, port: u32, body: Body) {
        let session = &self.sessions[at];
        let message = Message { tsi: session.tsi, port: session.port, body };
        self.outbox.push_back(Transmit {
            source: Some(session.source),
            interface: port,
            router_alert: self.config.router_alert,
            ..Transmit::new(message, session.group)
        });
    }

    /// Sends `body` to one neighbour, with the element's own address.
    pub(crate) fn send_to(&mut self, at: usize, to: Neighbour, body: Body) {
        let session = &self.sessions[at];
        let message = Message { tsi: session.tsi, port: session.port, body };
        let source = self.address(to.port, to.address);
        self.outbox.push_back(Transmit { source, interface: to.port, ..Transmit::new(message, to.address) });
    }

    /// Confirms NAKs for `places` to the nodes below `port`.
    pub(crate) fn confirm(&mut self, at: usize, port: u32, places: &[Place]) {
        self.confirm_as(at, port, places, false);
    }

    /// Confirms NAKs for `places`; with `parity`, places encode groups and counts.
    pub(super) fn confirm_as(&mut self, at: usize, port: u32, places: &[Place], parity: bool) {
        for places in places.chunks(1 + MOST_LISTED) {
            let nak = about(&self.sessions[at], NakKind::Confirmation, places, Vec::new());
            self.counts.confirmations += 1;
            self.send_down(at, port, Body::Nak(Nak { parity, ..nak }));
        }
    }

    /// Forwards a NAK for `places` to the neighbour of `way`.
    pub(super) fn forward(&mut self, at: usize, way: Way, places: &[Place], options: &[Opt]) {
        self.forward_as(at, way, places, options, false);
    }

    /// Forwards a NAK for `places`; with `parity`, places encode groups and counts.
    pub(super) fn forward_as(
        &mut self,
        at: usize,
        way: Way,
        places: &[Place],
        options: &[Opt],
        parity: bool,
    ) {
        let to = self.sessions[at].neighbour(way);
        for places in places.chunks(1 + MOST_LISTED) {
            let nak = about(&self.sessions[at], NakKind::Nak, places, options.to_vec());
            self.counts.forwarded += 1;
            self.send_to(at, to, Body::Nak(Nak { parity, ..nak }));
        }
    }

    /// Handles a NAK for `places` from `port`; port 0 stands for a repairer's own NAK. Confirms it to those below, and
    /// forwards it for places that are not asked for yet. Skips places for which there is no room, and returns `true`
    /// if there was room for any.
    pub(crate) fn ask(&mut self, now: Time, from: RequestOrigin, places: &[Place], options: &[Opt]) -> bool {
        let RequestOrigin { at, port } = from;
        let mut room = self.config.states.saturating_sub(self.states());
        let Self { sessions, config, counts, .. } = self;
        let session = &mut sessions[at];
        let way = session.way(port);
        let (mut confirm, mut taken, mut forward) = (Vec::new(), Vec::new(), false);
        for &place in places {
            if !session.states.has(place) {
                if room == 0 {
                    counts.crowded += 1;
                    continue;
                }
                room -= 1;
            }
            let reaction =
                session.states.ask(now, PlaceRequest { place, ports: Ports::one(port), way }, config);
            taken.push(place);
            forward |= reaction.forward;
            if reaction.confirm {
                confirm.push(place);
            }
        }
        self.confirm(at, port, &confirm);
        // A list is forwarded whole unless all of it is eliminated (§9.3.3).
        if forward {
            self.forward(at, way, &taken, options);
        } else if !taken.is_empty() {
            self.counts.eliminated += 1;
        }
        !taken.is_empty()
    }

    /// Repeats or gives up the numbers whose timers have expired.
    pub(super) fn expire(&mut self, now: Time, at: usize) {
        let Self { sessions, config, counts, .. } = self;
        let session = &mut sessions[at];
        let Due { repeat, silent, cancelled } = session.states.expire(now, config);
        counts.cancelled += cancelled;
        // A repairer that does not answer is asked no more (§9.5.3).
        for way in silent {
            match way {
                Way::Redirected => session.redirected = None,
                Way::Beside => session.beside = None,
                Way::Neighbour => {}
            }
        }
        for same in repeat.chunk_by(|one, other| one.0 == other.0) {
            let places: Vec<Place> = same.iter().map(|&(_, place)| place).collect();
            self.forward(at, same[0].0, &places, &[]);
        }
    }
}
