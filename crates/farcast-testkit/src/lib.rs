//! A deterministic driver in virtual time, and the laws of engines as tests.
//!
//! [`Network`] holds hosts, the links between them, and the clock. A [`Host`] is an engine and its owner, a closure
//! that answers the engine's events. Between each ordered pair of hosts a [`Link`] delays, loses, doubles, reorders and
//! damages single segments. Each link draws from its own streams, in the order of departure, so that neither another
//! host nor the cutting of runs changes its draws. A multicast reaches every member of the group but its sender.
//!
//! # Runs
//!
//! A message with a run of n segments leaves as n segments, `spacing` apart. The segments that survive arrive as runs.
//! A run is cut where another event can happen at the host (its own deadline, another arrival, a script, or a message
//! that an event elsewhere could cause), and where [`prefix`](farcast_core::Engine::prefix) requires. [`Cut`] decides
//! further cuts. A scenario must have the same [`Log`] for every `Cut`, because the cutting of runs must not matter to
//! a protocol (law 9).
//!
//! # Temporary faults
//!
//! [`Network::outage`] interrupts links between hosts for a time, [`Network::freeze`] stops a host as SIGSTOP does,
//! [`Network::vanish`] and [`Network::appear`] switch hosts off and on, and after [`Network::calm`] links only delay. A
//! transmit that names a source arrives from that address: a host may claim to be another.
//!
//! # Assertions of every run
//!
//! Each run of a network also fails, with the scenario, its seed and the host in the message, if
//!
//! * something leaves before the engine's deadline although nothing happened to it (law 8),
//! * a deadline passes without progress, or the same instant brings wake-ups or output without end (law 4),
//! * waking an engine early has a consequence ([`Wake::Early`], law 3),
//! * the network is not at rest when its limit passes.
//!
//! # Testing a protocol
//!
//! A protocol's crate writes one closure that builds a scenario from a [`Setup`], and passes it to [`laws`]. Tests of
//! behaviour build the same scenarios, run them, and check the engines, the owners' notes and the log.
//! [`Log::legs`](log::Log::legs) records every loss independently of the engines.
//!
//! ```
//! use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, Transmit};
//! use farcast_core::{Span, Time};
//! use farcast_testkit::{Host, Link, Network, Setup, laws};
//! use std::net::SocketAddr;
//! use std::num::NonZeroU32;
//!
//! /// The protocol: a question, repeated every second until the answer comes.
//! #[derive(Clone, PartialEq, Debug)]
//! enum Packet { Question, Answer }
//!
//! impl Message for Packet {
//!     fn segments(&self) -> NonZeroU32 { NonZeroU32::MIN }
//!     fn split(self, _: NonZeroU32) -> (Self, Option<Self>) { (self, None) }
//!     fn wire_len(&self, _: u32) -> usize { 1 }
//! }
//!
//! /// Asks if it has somebody to ask, answers otherwise.
//! struct Peer { asks: Option<SocketAddr>, next: Time, owes: Option<SocketAddr>, answered: bool }
//!
//! impl Engine for Peer {
//!     type Message = Packet;
//!     type Event = &'static str;
//!
//!     fn handle(&mut self, _now: Time, from: &Arrival, packet: &Packet) -> Result<(), Reject> {
//!         match packet {
//!             Packet::Question => self.owes = Some(from.source),
//!             Packet::Answer if self.asks.take().is_some() => self.answered = true,
//!             Packet::Answer => return Err(Reject::Duplicate),
//!         }
//!         Ok(())
//!     }
//!     fn handle_timeout(&mut self, _now: Time) {}
//!     fn poll_transmit(&mut self, now: Time, _until: Time) -> Option<Transmit<Packet>> {
//!         if let Some(to) = self.owes.take() {
//!             return Some(Transmit::new(Packet::Answer, to));
//!         }
//!         let to = self.asks.filter(|_| self.next <= now)?;
//!         self.next = now + Span::from_secs(1);
//!         Some(Transmit::new(Packet::Question, to))
//!     }
//!     fn poll_timeout(&self) -> Option<Deadline> {
//!         self.asks.map(|_| Deadline { at: self.next, timer: "ask" })
//!     }
//!     fn poll_event(&mut self) -> Option<&'static str> {
//!         std::mem::take(&mut self.answered).then_some("answered")
//!     }
//!     fn settled_until(&self) -> Time { Time::ZERO }
//! }
//!
//! let peer = |asks| Peer { asks, next: Time::ZERO, owes: None, answered: false };
//! let (one, other): (SocketAddr, SocketAddr) =
//!     ("192.0.2.1:7".parse().unwrap(), "192.0.2.2:7".parse().unwrap());
//! let build = |setup: Setup| {
//!     let mut network = Network::new("question and answer", setup);
//!     network.links(Link::lossy(Span::from_millis(250), 0.3));
//!     network.add(one, &[], Host::alone(peer(Some(other))));
//!     network.add(other, &[], Host::alone(peer(None)));
//!     network
//! };
//!
//! // The laws, over ten seeds, with wake-ups up to 100 ms late.
//! laws::all(0..10, Span::from_millis(100), build, |_| true);
//!
//! // A behaviour: two questions were lost, so the answer comes after two seconds and a round trip.
//! let mut network = build(Setup::plain(0));
//! network.links(Link::clean(Span::from_millis(250)));
//! network.drop_if(|leg| leg.message == Packet::Question && leg.at < Time::ZERO + Span::from_secs(2));
//! network.run();
//! assert_eq!(network.take_log().events[0].at.since(Time::ZERO).as_millis(), 2500);
//! ```

mod absent;
pub mod browser;
pub mod drawn;
mod host;
pub mod hostile;
pub mod laws;
mod link;
pub mod log;
mod network;
pub mod session;

pub use absent::{Absent, assert_cost_little};
pub use host::{Handle, Host};
pub use link::{Link, Transmitter};
pub use log::{Departure, Happening, Leg, Log};
pub use network::{Cut, Network, Setup, Wake};
pub use session::{Client, Fixture, Owner, Session};
