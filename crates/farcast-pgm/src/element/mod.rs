//! A network element (RFC 3208 §7), and with a store a designated local repairer ([`crate::repairer`]).
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | settings |
//! | `session.rs` | state of a session |
//! | `state.rs` | state of each number that is asked for |
//! | `hearing.rs` | reactions to messages |
//! | `asking.rs` | confirmations and forwarded NAKs |
//! | `parity.rs` | parity that is asked for by count |
//! | `serving.rs` | functions of an element that has a store |
//! | `polls.rs` | polls for repairers and for the number of neighbours |

mod asking;
mod config;
mod hearing;
mod parity;
mod polls;
mod serving;
mod session;
mod state;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};
use farcast_core::random::RandomStream;
use farcast_delivery::{ElementEngine, ElementRequest, Figure};

use crate::error::ConfigError;
use crate::event::ElementEvent;
use crate::message::{DataKind, Message};
use crate::ports::Ports;
use crate::repairer::Store;

pub(crate) use asking::about;
pub use config::{ElementConfig, MOST_PORTS};
pub(crate) use polls::GENERAL;
pub(crate) use session::{RequestOrigin, Session};

/// Counts of an element's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ElementCounts {
    /// NAKs that came from below.
    pub naks: u64,
    /// NAKs sent upstream: forwarded, repeated, and a repairer's own.
    pub forwarded: u64,
    /// NAKs of which nothing was forwarded, since all of it is already asked for.
    pub eliminated: u64,
    /// NCFs sent.
    pub confirmations: u64,
    /// Numbers whose repair was anticipated by an NCF from above.
    pub anticipated: u64,
    /// Numbers that were given up, since nobody above confirmed them.
    pub cancelled: u64,
    /// Numbers that could not be asked for, since there was no room.
    pub crowded: u64,
    /// RDATA forwarded, counted for each port.
    pub repairs: u64,
    /// RDATA that nobody below had asked for.
    pub unasked: u64,
    /// RDATA from the element's own store.
    pub served: u64,
    /// TPDUs that were taken into the store.
    pub kept: u64,
    /// NNAKs sent upstream.
    pub nulls: u64,
}

/// Engine of a network element or a repairer.
#[derive(Clone, Debug)]
pub struct Element {
    pub(crate) config: ElementConfig,
    pub(crate) sessions: Vec<Session>,
    pub(crate) store: Option<Store>,
    pub(crate) random: RandomStream,
    pub(crate) outbox: VecDeque<Transmit<Message>>,
    pub(crate) events: VecDeque<ElementEvent>,
    pub(crate) counts: ElementCounts,
    pub(crate) rejects: RejectCounts,
}

impl Element {
    /// Creates an element with these settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn new(config: ElementConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            random: RandomStream::derive(polls::lot(&config), &[3]),
            store: config.store.clone().map(Store::new),
            config,
            sessions: Vec::new(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counts: ElementCounts::default(),
            rejects: RejectCounts::default(),
        })
    }

    /// Returns the counts of the element's work.
    pub fn counts(&self) -> ElementCounts {
        self.counts
    }

    /// Returns the number of known sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of states of repair in all sessions: numbers that are asked for, and groups whose parity is.
    pub fn states(&self) -> usize {
        self.sessions.iter().map(|session| session.states.len() + session.groups.len()).sum()
    }

    /// Returns the TPDUs in the store, and the octets of their contents.
    pub fn held(&self) -> (usize, u64) {
        self.store.as_ref().map_or((0, 0), |store| (store.tpdus(), store.octets()))
    }

    /// Returns the address of port `number`, from 1, with the UDP port of `like`.
    pub(crate) fn address(&self, number: u32, like: SocketAddr) -> Option<SocketAddr> {
        let address = self.config.ports.get((number as usize).checked_sub(1)?)?;
        Some(SocketAddr::new(*address, like.port()))
    }

    /// Returns the set of all ports.
    pub(crate) fn ports(&self) -> Ports {
        (1..=self.config.ports.len() as u32).fold(Ports::NONE, |all, port| all.with(Ports::one(port)))
    }

    /// Returns `true` if the element is a repairer beside the tree.
    pub(crate) fn is_beside(&self) -> bool {
        self.config.store.as_ref().is_some_and(|store| store.beside)
    }

    fn forget(&mut self, at: usize) {
        let session = self.sessions.remove(at);
        if let Some(store) = &mut self.store {
            store.forget_all(session.tsi, &mut self.events);
        }
    }
}

impl Engine for Element {
    type Message = Message;
    type Event = ElementEvent;

    fn handle(&mut self, now: Time, from: &Arrival, message: &Message) -> Result<(), Reject> {
        let result = self.hear(now, from, message);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        // An expired session is removed, and those behind it move up.
        for at in (0..self.sessions.len()).rev() {
            if now.since(self.sessions[at].heard) >= self.config.expiry {
                self.forget(at);
                continue;
            }
            self.expire(now, at);
            self.expire_parity(now, at);
            self.poll_if_due(now, at);
            self.answer_poll(now, at);
            self.ask_for_own(now, at);
        }
    }

    fn poll_transmit(&mut self, now: Time, _until: Time) -> Option<Transmit<Message>> {
        self.outbox.pop_front().or_else(|| self.repair(now))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let of = |session: &Session| {
            let own = session.lacking.as_ref().and_then(crate::receiver::Lacking::next);
            let answer = session.polled.and_then(|polled| polled.answer);
            [
                Some(Deadline { at: session.heard + self.config.expiry, timer: "expiry" }),
                session.states.next().map(|at| Deadline { at, timer: "NAK" }),
                session.groups.next().map(|at| Deadline { at, timer: "parity NAK" }),
                Some(Deadline { at: session.next_poll, timer: "poll" }).filter(|poll| poll.at != Time::NEVER),
                answer.map(|at| Deadline { at, timer: "poll response" }),
                own.map(|at| Deadline { at, timer: "own NAK" }),
            ]
        };
        let pace = self.store.as_ref().filter(|store| !store.queue.is_empty());
        let pace = pace.map(|store| Deadline { at: store.pacer.next(), timer: "pace" });
        self.sessions.iter().flat_map(of).flatten().chain(pace).min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<ElementEvent> {
        self.events.pop_front()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, message: &Message) -> NonZeroU32 {
        let session = self.sessions.iter().find(|session| session.tsi == message.tsi);
        let lead = session.and_then(|session| session.lacking.as_ref()).map(crate::receiver::Lacking::lead);
        match (message.data(), lead) {
            // Consecutive datagrams that come in their turn are only stored.
            (Some(data), Some(lead)) if data.kind == DataKind::Original && lead.near(data.sqn) == lead => {
                data.count
            }
            _ => NonZeroU32::MIN,
        }
    }
}

impl ElementEngine for Element {
    fn request(event: &ElementEvent) -> Option<ElementRequest> {
        Some(match event.clone() {
            ElementEvent::Keep { keys, offset } => ElementRequest::Keep { keys, offset },
            ElementEvent::Forget { keys } => ElementRequest::Forget { keys },
        })
    }

    fn overhears(&self) -> bool {
        self.store.is_some()
    }

    fn figures(&self) -> Vec<Figure> {
        let counts = self.counts;
        alloc::vec![
            Figure::count("element.naks", counts.naks).labelled("NAKs heard"),
            Figure::count("element.forwarded", counts.forwarded).labelled("NAKs sent up"),
            Figure::count("element.eliminated", counts.eliminated).labelled("NAKs eliminated"),
            Figure::count("element.confirmations", counts.confirmations),
            Figure::count("element.anticipated", counts.anticipated),
            Figure::count("element.cancelled", counts.cancelled),
            Figure::count("element.crowded", counts.crowded),
            Figure::count("element.repairs", counts.repairs).labelled("RDATA forwarded"),
            Figure::count("element.unasked", counts.unasked).labelled("RDATA stopped"),
            Figure::count("element.served", counts.served).labelled("RDATA of its own"),
            Figure::count("element.kept", counts.kept),
            Figure::count("element.nulls", counts.nulls).labelled("NNAKs sent up"),
        ]
    }

    fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }
}
