//! The engine contract: a protocol as a state machine without I/O.
//!
//! An [`Engine`] owns no socket, file, thread, clock or global random generator. Its driver tells it the time and the
//! messages that arrived. The driver asks it for messages to send, for the time to wake it, and for events. The same
//! inputs and the same seed give the same outputs, under a network driver, an emulator or a simulator.
//!
//! # Duties of a driver
//!
//! 1. It changes the engine by exactly one of [`handle`](Engine::handle),
//!    [`handle_timeout`](Engine::handle_timeout), or a command of the engine's own, and then
//! 2. drains [`poll_event`](Engine::poll_event), giving the answers that events require (bytes that arrived stay valid
//!    until this is done), and [`poll_transmit`](Engine::poll_transmit), until both give `None` (asking for a transmit
//!    may cause an event, even if nothing leaves);
//! 3. reads [`poll_timeout`](Engine::poll_timeout) and sleeps until then or until a message arrives.
//!
//! # Runs
//!
//! Payload is never inside an engine: a message that carries payload names a [`Run`](crate::Run) of segments. The
//! driver owns the bytes, and fills them in or stores them. A run leaves as `count` datagrams, the first at `now` and
//! each [`spacing`](Transmit::spacing) after the one before. A run arrives likewise: `handle`'s `now` is the arrival of
//! its last segment.
//!
//! A run in flight is open: any other arrival or timer at the receiving engine cuts it, and the engine is given only
//! [`prefix`](Engine::prefix) segments at once. A cut anywhere changes neither the messages sent, nor their times, nor
//! the events.
//!
//! # Laws
//!
//! `farcast-testkit` tests these for every engine:
//!
//! 1. No clock, thread, environment, global or hash-map iteration inside.
//! 2. After each change the driver drains transmits and events, then reads the timeout.
//! 3. A late wake-up is legal; an early one changes nothing; time never goes back.
//! 4. At any deadline `handle_timeout` makes progress: the next deadline is later, or output is pending.
//! 5. The same seed and inputs give the same outputs.
//! 6. Bad input returns a [`Reject`], changes only counters, and never panics; if the protocol answers bad input (a
//!    refusal, a confirmation repeated), the answer leaves too.
//! 7. Memory is bounded by configuration.
//! 8. Pacing is inside the engine: `poll_transmit` gives `None` until a message may leave, and `poll_timeout` returns
//!    that time.
//! 9. Runs may be cut anywhere: the same segments leave at the same times and the same events happen. (An owner's
//!    command in the middle of a run does not call back segments that were handed out: cut runs where commands may
//!    come.)
//!
//! A sender that transmits `count` segments at a fixed spacing and waits for one acknowledgement:
//!
//! ```
//! use core::net::SocketAddr;
//! use core::num::NonZeroU32;
//! use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, Transmit};
//! use farcast_core::{Run, Span, Time};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! enum Packet {
//!     Data(Run),
//!     Ack,
//! }
//!
//! impl Message for Packet {
//!     fn segments(&self) -> NonZeroU32 {
//!         match self {
//!             Packet::Data(run) => NonZeroU32::new(run.count()).unwrap(),
//!             Packet::Ack => NonZeroU32::MIN,
//!         }
//!     }
//!     fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
//!         match self {
//!             Packet::Data(run) => {
//!                 let (head, tail) = run.split(count);
//!                 (Packet::Data(head), tail.map(Packet::Data))
//!             }
//!             Packet::Ack => (Packet::Ack, None),
//!         }
//!     }
//!     fn wire_len(&self, _segment: u32) -> usize {
//!         if matches!(self, Packet::Ack) { 1 } else { 1001 }
//!     }
//! }
//!
//! struct Blast { to: SocketAddr, spacing: Span, next: u32, count: u32, next_at: Time, done: Option<bool> }
//!
//! impl Engine for Blast {
//!     type Message = Packet;
//!     type Event = ();
//!
//!     fn handle(&mut self, _now: Time, _from: &Arrival, message: &Packet) -> Result<(), Reject> {
//!         if *message != Packet::Ack || self.next < self.count {
//!             return Err(Reject::Unexpected);
//!         }
//!         self.done.get_or_insert(true);
//!         Ok(())
//!     }
//!
//!     fn handle_timeout(&mut self, _now: Time) {} // its one deadline is the pacer's, which poll_transmit serves
//!
//!     fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Packet>> {
//!         if now < self.next_at || self.next == self.count {
//!             return None;
//!         }
//!         // Every segment whose turn comes before `until`, but at least the one that is due.
//!         let room = until.since(self.next_at).as_nanos().div_ceil(self.spacing.as_nanos());
//!         let run = Run::new(self.next, (self.count - self.next).min(u32::try_from(room).unwrap_or(u32::MAX)).max(1))?;
//!         self.next = run.end();
//!         self.next_at += self.spacing * u64::from(run.count());
//!         Some(Transmit::new(Packet::Data(run), self.to).spaced(self.spacing))
//!     }
//!
//!     fn poll_timeout(&self) -> Option<Deadline> {
//!         (self.next < self.count).then_some(Deadline { at: self.next_at, timer: "pace" })
//!     }
//!
//!     fn poll_event(&mut self) -> Option<()> {
//!         self.done.as_mut().filter(|fresh| **fresh).map(|fresh| *fresh = false)
//!     }
//!
//!     fn settled_until(&self) -> Time {
//!         Time::NEVER // no arrival alters what leaves
//!     }
//! }
//!
//! let to = "239.255.1.1:5402".parse().unwrap();
//! let (spacing, next_at) = (Span::from_millis(1), Time::ZERO);
//! let mut blast = Blast { to, spacing, next: 0, count: 5, next_at, done: None };
//!
//! let first = blast.poll_transmit(Time::ZERO, Time::ZERO + Span::from_millis(3)).unwrap();
//! assert_eq!(first.message, Packet::Data(Run::new(0, 3).unwrap()));
//! let due = blast.poll_timeout().unwrap().at;
//! assert_eq!(due, Time::ZERO + Span::from_millis(3));
//! let rest = blast.poll_transmit(due, Time::NEVER).unwrap();
//! assert_eq!(rest.message, Packet::Data(Run::new(3, 2).unwrap()));
//! let from = Arrival::new("192.0.2.1:40000".parse().unwrap(), to);
//! blast.handle(due + Span::from_millis(500), &from, &Packet::Ack).unwrap();
//! assert_eq!(blast.poll_event(), Some(()));
//! assert_eq!(blast.poll_timeout(), None);
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use crate::{Span, Time};

/// A protocol endpoint without I/O. The [module](self) states the duties of a driver and the laws of an engine.
pub trait Engine {
    /// Message that it sends and receives: typed, possibly holding a run; the protocol's `wire` module encodes it.
    type Message: Message;
    /// Event for its owner.
    type Event;

    /// Takes a message whose last segment arrived at `now`.
    ///
    /// # Errors
    /// A message that is not valid here changes nothing but a counter, and the reason is returned.
    fn handle(&mut self, now: Time, from: &Arrival, message: &Self::Message) -> Result<(), Reject>;

    /// Acts on every timer that is due at `now`. Called early, it does nothing.
    fn handle_timeout(&mut self, now: Time);

    /// Returns the next message that leaves at `now`, if any. A run in it holds only segments that leave before `until`
    /// (but at least one, if one is due). The driver sets `until` no later than the first event that could alter the
    /// sending. It need not be earlier than [`settled_until`](Self::settled_until).
    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Self::Message>>;

    /// Returns the next deadline, with its timer. The pacer's own deadline counts: at it, `poll_transmit` has a message
    /// to send.
    fn poll_timeout(&self) -> Option<Deadline>;

    /// Returns the next event, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns the time before which no arrival alters the messages that leave.
    fn settled_until(&self) -> Time;

    /// Returns the number of segments of `message` that may be handed over at once without effect on the outcome. After
    /// that many, the engine may want to send, or set a timer, at the time of that segment.
    fn prefix(&self, message: &Self::Message) -> NonZeroU32 {
        message.segments()
    }
}

/// A message between engines.
pub trait Message: Clone {
    /// Returns the length of its run; 1 for a message without one. A message of n segments leaves as n datagrams.
    fn segments(&self) -> NonZeroU32;

    /// Cuts after `count` segments. Returns the head, and the tail if anything is left. A message without a run is all
    /// head.
    fn split(self, count: NonZeroU32) -> (Self, Option<Self>);

    /// Returns the length in bytes of datagram `segment` (from 0) of this message, without UDP and IP headers. It is
    /// the length of its encoding, known without encoding.
    fn wire_len(&self, segment: u32) -> usize;

    /// Returns the octets of datagram `segment` as a link sees them, if they are available, as in emulation. If they
    /// are not, a link whose timing depends on them (PPP's escapes) draws random ones.
    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        None
    }

    /// Replaces the octets of datagram `segment` by those that have come out of a link. A link that carries octets
    /// through its own formats (PPP, RLC) returns the octets that its far end made of them. They are the same octets,
    /// unless a codec is broken. By default it does nothing, for messages without [`octets`](Self::octets).
    fn put_octets(&mut self, _segment: u32, _octets: &[u8]) {}

    /// Appends the IPv4 and TCP headers of datagram `segment` to `out`, if its octets are not available. A link that
    /// compresses headers (PPP) needs the headers that the datagram would have. A field that depends on missing data,
    /// such as TCP's checksum, may have any value. By default there are no headers.
    fn headers(&self, _segment: u32, _out: &mut Vec<u8>) {}
}

/// Addresses and circumstances of a message's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Source address.
    pub source: SocketAddr,
    /// Destination address: a group or one of ours.
    pub destination: SocketAddr,
    /// Index of the receiving interface; 0 if unknown.
    pub interface: u32,
    /// The two ECN bits; `None` if the driver cannot tell (a coalesced receive loses them).
    pub ecn: Option<u8>,
    /// The time between the arrivals of its segments; zero for a single one.
    pub spacing: Span,
}

impl Arrival {
    /// Creates the arrival of a message from `source` to `destination`, with nothing else known.
    pub const fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        Self { source, destination, interface: 0, ecn: None, spacing: Span::ZERO }
    }
}

/// A message that leaves, and its destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit<M> {
    /// The message.
    pub message: M,
    /// Destination: a group or one host.
    pub destination: SocketAddr,
    /// Source address to use; `None` leaves it to the driver.
    pub source: Option<SocketAddr>,
    /// Index of the interface to leave by; 0 leaves it to the driver.
    pub interface: u32,
    /// Time to live or hop limit; `None` is the driver's setting.
    pub ttl: Option<u8>,
    /// Router alert: routers on the path must examine the datagram (RFC 2113, RFC 2711).
    pub router_alert: bool,
    /// The time between the departures of its segments.
    pub spacing: Span,
}

impl<M> Transmit<M> {
    /// Creates the transmit of `message` to `destination`, with all else left to the driver.
    pub const fn new(message: M, destination: SocketAddr) -> Self {
        let (source, ttl, spacing) = (None, None, Span::ZERO);
        Self { message, destination, source, interface: 0, ttl, router_alert: false, spacing }
    }

    /// Returns the transmit with `spacing` between its segments.
    #[must_use]
    pub fn spaced(self, spacing: Span) -> Self {
        Self { spacing, ..self }
    }
}

/// Time at which an engine must be woken, with the name of its timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The instant; [`Engine::handle_timeout`] before it does nothing.
    pub at: Time,
    /// The timer's name, for logs and for finding out why a simulation does not end.
    pub timer: &'static str,
}

/// Reason for which an engine turned a well-formed message down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// The message belongs to another session, or names another server.
    #[error("message of another session")]
    OtherSession,
    /// The sender is not a member of this session.
    #[error("message from a stranger")]
    Stranger,
    /// A number in the message lies outside the session's range.
    #[error("number out of range")]
    OutOfRange,
    /// The parts of the message contradict one another or known facts.
    #[error("inconsistent message")]
    Inconsistent,
    /// Nothing in the present state asks for the message.
    #[error("unexpected message")]
    Unexpected,
    /// The message brings nothing new.
    #[error("duplicate")]
    Duplicate,
    /// A limit of the configuration is reached.
    #[error("limit reached")]
    Limit,
    /// Two members claim one identity.
    #[error("identity already in use")]
    Collision,
    /// The message does not prove that it comes from the sender that it names.
    #[error("message without proof")]
    Unproven,
}

impl Reject {
    /// Every reason, in the order of [`RejectCounts`].
    pub const ALL: [Self; 9] = [
        Self::OtherSession,
        Self::Stranger,
        Self::OutOfRange,
        Self::Inconsistent,
        Self::Unexpected,
        Self::Duplicate,
        Self::Limit,
        Self::Collision,
        Self::Unproven,
    ];
}

/// A counter for each reason to reject.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RejectCounts([u64; Reject::ALL.len()]);

impl RejectCounts {
    /// Counts `result` if it is a rejection, and passes it on.
    pub fn note<T>(&mut self, result: Result<T, Reject>) -> Result<T, Reject> {
        if let Err(reason) = result {
            self.0[reason as usize] += 1;
        }
        result
    }

    /// Returns the number of rejections with `reason`.
    pub fn of(&self, reason: Reject) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the reasons that were given, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reject, u64)> + '_ {
        Reject::ALL.into_iter().map(|reason| (reason, self.of(reason))).filter(|&(_, n)| n > 0)
    }
}

impl fmt::Debug for RejectCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
