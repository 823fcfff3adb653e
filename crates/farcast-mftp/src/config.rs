//! Settings of the two engines, checked when an engine is made.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::RatePace;

use crate::error::ConfigError;
use crate::message::ClientId;
use crate::proof::Secret;

/// Symbols that a block may have in a code of one octet, and up to how many DTUs of it leave enough for parity: the
/// large code takes several times as long.
const SMALL_CODE: u32 = 255;
const SMALL_BLOCK: u32 = 220;
/// The longest block that gets parity where nobody chose it: a large code codes all of it for each symbol.
const LARGE_BLOCK: u32 = 2200;
/// The memory, in octets, that coding a block with parity chosen by us may take.
const CODING_MEMORY: u64 = 64 << 20;

/// What is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// A digest that commits to all of it.
    pub id: [u8; 32],
    /// Bytes.
    pub size: u64,
    /// What it is called, 1 to 256 bytes.
    pub name: String,
}

/// Who may receive (draft §6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Group {
    /// These and nobody else.
    Closed(Vec<Invited>),
    /// Whoever registers, up to `limit`.
    OpenLimited {
        /// The most members.
        limit: u32,
    },
    /// Whoever listens.
    OpenUnlimited,
}

/// A receiver that a closed group expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invited {
    /// What the user calls it: a name, or an address.
    pub label: String,
    /// Its id on the wire.
    pub id: ClientId,
}

impl Invited {
    /// The receiver that `label` means: an address is itself, everything else a name.
    pub fn new(label: &str) -> Self {
        let id = label.parse::<IpAddr>().map_or_else(|_| ClientId::from_name(label), ClientId::from_address);
        Self { label: label.into(), id }
    }
}

/// When data begins; whichever comes first. The owner may also say so ([`start`](crate::Sender::start)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// When this many receivers have registered.
    pub receivers: Option<u32>,
    /// When this much time has passed since the first announcement and somebody has registered.
    pub after: Option<Span>,
}

/// How fast data leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At a rate that counts every bit of a datagram with its headers (draft §9.9).
    Rate {
        /// The rate.
        rate: BitRate,
        /// Bytes of UDP and IP headers counted with each datagram: 28 for IPv4, 48 for IPv6, 0 to leave them out.
        overhead: u16,
        /// How much sending time a late driver may make up for at once. A driver that is never later than that keeps
        /// the rate, and a link of this rate never has more to hold than what it carries in that time, what the driver
        /// lets leave ahead, a datagram, and control messages that leave out of turn.
        credit: Span,
        /// Bytes that the link sends as one: each datagram with its headers is counted in whole ones, as it is on
        /// a bearer whose FEC blocks are not shared, or on ATM cells. 1 for a link without them.
        granule: u16,
    },
    /// As fast as receivers acknowledge: at most `segments` DTUs beyond what the slowest has acknowledged.
    Window {
        /// The window in DTUs.
        segments: u32,
        /// Whether a long or narrow way is not to be flooded with a windowful: what it carries is estimated from the
        /// acknowledgements, and DATA is paced by that. Otherwise all that the window allows leaves at once.
        paced: bool,
    },
}

impl Pace {
    /// The rate, if there is one.
    pub(crate) fn steady(self) -> Option<RatePace> {
        match self {
            Self::Rate { rate, overhead, credit, granule } => {
                Some(RatePace { rate, overhead, credit, granule })
            }
            Self::Window { .. } => None,
        }
    }
}

/// When the next pass begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassWait {
    /// As soon as anything is to be sent again (draft §9.5, §11.2.1).
    Draft,
    /// A whole Status Retry Timer after every pass, as the BGAN study reads it. A pass then sends what was asked for
    /// before it began; NAKs that come while it runs are for the next.
    FixedTimer,
}

/// When receivers are asked what they miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakTiming {
    /// After every block of every pass (draft §11.2.1).
    EachBlock,
    /// At the end of the first pass for all blocks, after each block later, as in the BGAN study.
    EndOfFirstPass,
}

/// The Status Retry Timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusRetry {
    /// Always this long.
    Fixed(Span),
    /// The time that a full block's product bytes take at the rate, and `round_trips` round trips.
    BlockTime {
        /// n of the study's `block time + n x RTT`.
        round_trips: u32,
    },
    /// One and a half of the longest round trip that was measured, the back-off window, and 20 ms.
    Measured,
}

/// Everything that a [`Sender`](crate::Sender) needs to know.
#[expect(clippy::struct_excessive_bools, reason = "they are settings, each independent of the others")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// The Transmission Identifier, not 0; with the server's address it names this transmission.
    pub transmission: u32,
    /// Where data comes from, as receivers see it.
    pub server: SocketAddr,
    /// Where receivers answer.
    pub response: SocketAddr,
    /// Where announcements go.
    pub public: SocketAddr,
    /// Where data goes; its port is the public one's.
    pub private: SocketAddr,
    /// The Application Reference, 1 to 64 bytes.
    pub application: String,
    /// What is sent.
    pub product: Product,
    /// What tokens are made from: receivers then prove what they say ([`proof`](crate::proof)). Without it everyone is
    /// believed, as in the draft.
    pub secret: Option<Secret>,
    /// Product bytes in a DTU.
    pub dtu_size: u32,
    /// DTUs in a block.
    pub block_size: u32,
    /// The largest UDP payload for control messages, bytes; longer host lists are split.
    pub datagram: usize,
    /// Who may receive.
    pub group: Group,
    /// When data begins.
    pub start: Start,
    /// Between announcements before data begins.
    pub announce_interval: Span,
    /// Between announcements for late joiners, once data has begun.
    pub late_announce_interval: Span,
    /// After this long without a start, it starts with whoever is there, or gives up.
    pub announce_limit: Span,
    /// Between the last announcement and data, for receivers to join a private group of its own.
    pub join_delay: Span,
    /// For how long data may leave behind the first announcement, before anybody has registered; zero for not at all.
    /// In a closed group, at a rate, to the group that announcements go to, with [`PassWait::Draft`] and
    /// [`NakTiming::EachBlock`].
    pub early_data: Span,
    /// Whether receivers may register once data has begun.
    pub late_entry: bool,
    /// How fast.
    pub pace: Pace,
    /// When the next pass begins.
    pub pass_wait: PassWait,
    /// When receivers are asked.
    pub nak_timing: NakTiming,
    /// How long answers are waited for.
    pub status_retry: StatusRetry,
    /// Whether a NAK that comes while answers are waited for begins the wait anew
    /// (with [`PassWait::FixedTimer`]).
    pub nak_restarts_wait: bool,
    /// Repeated status requests without any answer after which a receiver is given up; with the first request, that
    /// is one more without an answer.
    pub status_retry_count: u32,
    /// A receiver is given up only when it has left requests unanswered for this long, however many. One that answers
    /// and comes no further for five times as long is given up too.
    pub silence: Span,
    /// Whether the request that ends a pass is sent twice: a lost one costs a Status Retry Timer. On a thin return
    /// channel the doubled answers may cost more.
    pub ask_twice: bool,
    /// Whether a pass that takes less than an eighth of a round trip to send is sent twice: the link would be idle,
    /// and a repair that is lost costs another round trip. Not with [`PassWait::FixedTimer`].
    pub repeat_small_passes: bool,
    /// The round trip to assume until one is measured.
    pub round_trip: Span,
    /// Whether it is measured; otherwise it stays as it is assumed.
    pub measure_round_trip: bool,
    /// Over how long receivers spread their answers; zero for at once.
    pub backoff_window: Span,
    /// Parity symbols that a block may have; 0 turns parity off. While one takes part that has shown no proofs to a
    /// sender that asks for them, none are sent: it may know nothing of parity.
    pub parity_symbols: u32,
    /// Whether some of them are sent before they are asked for, where asking would take longer: behind the blocks at
    /// the first pass's end, and with repairs. With members and a rate, and [`PassWait::Draft`].
    pub parity_ahead: bool,
    /// Segments at the product's head that the first pass sends twice (the manifest).
    pub head_segments: u32,
    /// Segments at the product's head by which receivers can tell what they have of it already: sent alone before the
    /// first pass where all who take part hold something and some of them have yet to compare. 0 where nobody can.
    pub list_segments: u32,
    /// The transfer is aborted after this long.
    pub transfer_limit: Span,
    /// Between Completions.
    pub completion_interval: Span,
    /// How often each confirmation, the last Completion and an Abort are sent.
    pub repeats: u32,
}

impl SenderConfig {
    /// A sender of `product` to the group `to`, every other setting at its default: open-limited group of 1,024,
    /// the draft's pass rule, requests after each block, 1 Mbit/s.
    pub fn new(product: Product, server: SocketAddr, to: SocketAddr) -> Self {
        let ipv6 = to.is_ipv6();
        let datagram = if ipv6 { 1452 } else { 1472 };
        Self {
            transmission: 1,
            server,
            response: server,
            public: to,
            private: to,
            application: "farcast".into(),
            product,
            secret: None,
            dtu_size: crate::wire::dtu_size_for(datagram) as u32,
            block_size: crate::wire::block_size_for(datagram, 32) as u32,
            datagram,
            group: Group::OpenLimited { limit: 1024 },
            start: Start { receivers: None, after: Some(Span::from_secs(3)) },
            announce_interval: Span::from_secs(1),
            late_announce_interval: Span::from_secs(5),
            announce_limit: Span::from_secs(180),
            join_delay: Span::ZERO,
            early_data: Span::ZERO,
            late_entry: true,
            pace: Pace::Rate {
                rate: BitRate::from_bps(1_000_000).unwrap_or_else(|| unreachable!()),
                overhead: if ipv6 { 48 } else { 28 },
                credit: Span::from_millis(5),
                granule: 1,
            },
            pass_wait: PassWait::Draft,
            nak_timing: NakTiming::EachBlock,
            status_retry: StatusRetry::Measured,
            nak_restarts_wait: false,
            status_retry_count: 5,
            silence: Span::from_secs(120),
            ask_twice: true,
            repeat_small_passes: false,
            round_trip: Span::from_secs(1),
            measure_round_trip: true,
            backoff_window: Span::ZERO,
            parity_symbols: 0,
            parity_ahead: false,
            head_segments: 0,
            list_segments: 0,
            transfer_limit: Span::from_secs(24 * 3600),
            completion_interval: Span::from_secs(1),
            repeats: 3,
        }
    }

    /// Parity symbols for blocks as they are set, where nobody has chosen a number: as many as the codes of one octet
    /// have room for, where that is enough; else one for four DTUs, up to the next power of two, which is what coding
    /// takes its time for. They cost nothing until they are asked for. None where a receiver would have to refuse the
    /// memory that coding takes, and for blocks so long that coding one would hold up sending.
    pub fn automatic_parity(&self) -> u32 {
        let segments = self.product.size.div_ceil(self.dtu_size.max(1).into());
        let block = u32::try_from(segments).unwrap_or(u32::MAX).min(self.block_size);
        if block <= SMALL_BLOCK {
            return SMALL_CODE - block;
        }
        // Symbols of the larger codes have an even length.
        let fits = block <= LARGE_BLOCK && self.dtu_size.is_multiple_of(2);
        let parity = (block / 4).next_power_of_two();
        let memory = || u64::from((block + parity).next_power_of_two()) * u64::from(self.dtu_size);
        if fits && memory() <= CODING_MEMORY { parity } else { 0 }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        text(&self.application, "application reference", 64)?;
        text(&self.product.name, "product name", 256)?;
        if self.datagram < 512 {
            return Err(ConfigError::Datagram(self.datagram));
        }
        if matches!((&self.group, self.pace), (Group::OpenUnlimited, Pace::Window { .. })) {
            return Err(ConfigError::WindowWithoutMembers);
        }
        for (zero, what) in [
            (self.transmission == 0, "the transmission identifier"),
            (self.announce_interval.is_zero(), "the announce interval"),
            (self.late_announce_interval.is_zero(), "the late announce interval"),
            (self.completion_interval.is_zero(), "the completion interval"),
            (self.round_trip.is_zero(), "the assumed round trip"),
            (self.repeats == 0, "the number of repeats"),
            (matches!(self.pace, Pace::Window { segments: 0, .. }), "the window"),
            (matches!(self.pace, Pace::Rate { granule: 0, .. }), "the granule of the rate"),
            (matches!(self.status_retry, StatusRetry::Fixed(Span::ZERO)), "the Status Retry Timer"),
            (matches!(self.group, Group::OpenLimited { limit: 0 }), "the limit of an open group"),
        ] {
            if zero {
                return Err(ConfigError::Zero(what));
            }
        }
        self.check_invited()
    }

    fn check_invited(&self) -> Result<(), ConfigError> {
        let Group::Closed(invited) = &self.group else { return Ok(()) };
        if invited.is_empty() {
            return Err(ConfigError::NobodyInvited);
        }
        let mut sorted: Vec<&Invited> = invited.iter().collect();
        sorted.sort_by_key(|receiver| receiver.id);
        for pair in sorted.windows(2) {
            if pair[0].id == pair[1].id {
                let (first, second) = (pair[0].label.clone(), pair[1].label.clone());
                return Err(ConfigError::SameId { first, second, id: pair[0].id });
            }
        }
        Ok(())
    }
}

/// Everything that a [`Receiver`](crate::Receiver) needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// Its name, 1 to 64 bytes; it makes the id.
    pub name: Option<String>,
    /// The id where there is no name.
    pub id: ClientId,
    /// The port that announcements and data come to.
    pub port: u16,
    /// The Application Reference to listen for.
    pub application: String,
    /// The seed of its random answers.
    pub seed: u64,
    /// What nonces are made from: with it the receiver proves what it says to senders that grant tokens
    /// ([`proof`](crate::proof)), and what it sends is bounded by what it receives.
    pub secret: Option<Secret>,
    /// Bytes that the driver can buffer, to be told to the sender.
    pub receive_buffer_bytes: Option<u32>,
    /// Whether data that comes before the registration is confirmed is kept.
    pub keep_early_data: bool,
    /// Between registrations while data runs and no confirmation comes.
    pub register_retry: Span,
    /// Registrations without confirmation after which it gives up, or, with proofs, says them less often.
    pub register_retry_count: u32,
    /// Between Dones until one is confirmed.
    pub done_retry: Span,
    /// Dones without confirmation after which they come ten times less often.
    pub done_retry_count: u32,
    /// Without a confirmation for this long, it stops asking; the product is complete all the same.
    pub done_patience: Span,
    /// Without any sign of the sender for this long, it stops waiting.
    pub patience: Span,
    /// DTUs that a product may have; a bitmap of them is kept.
    pub max_segments: u32,
    /// Bytes of memory that parity symbols may take, with all that it takes to keep them, of blocks that cannot be
    /// rebuilt yet.
    pub parity_memory_bytes: u64,
    /// NAKs that one status request may provoke; the next request brings the rest.
    pub naks_per_request: u32,
    /// How the waits that spread answers are drawn from `seed`.
    pub waits: Waits,
}

/// How a receiver's random waits are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Waits {
    /// One after the other from one stream: an engine's own, or one for all receivers of a population.
    #[default]
    InTurn,
    /// Each from a stream of its own, named by the receiver's id and the instant at which the wait begins. Then a
    /// population waits as single engines with the same seed do, so that the two can be compared.
    ByReceiver,
}

impl Waits {
    /// A uniform part of `window` for a receiver of this id, whose wait begins now; `turn` is the stream of those in
    /// turn.
    pub(crate) fn draw(
        self,
        (seed, id): (u64, ClientId),
        now: Time,
        window: Span,
        turn: &mut RandomStream,
    ) -> Span {
        let bound = window.as_nanos().saturating_add(1);
        Span::from_nanos(match self {
            Self::InTurn => turn.below(bound),
            Self::ByReceiver => RandomStream::derive(seed, &[u64::from(id.0), now.as_nanos()]).below(bound),
        })
    }
}

impl ReceiverConfig {
    /// A receiver with this id that listens on `port`, every other setting at its default.
    pub fn new(id: ClientId, port: u16) -> Self {
        Self {
            name: None,
            id,
            port,
            application: "farcast".into(),
            seed: 0,
            secret: None,
            receive_buffer_bytes: None,
            keep_early_data: true,
            register_retry: Span::from_secs(2),
            register_retry_count: 10,
            done_retry: Span::from_secs(1),
            done_retry_count: 10,
            done_patience: Span::from_secs(90),
            patience: Span::from_secs(120),
            max_segments: 1 << 27,
            parity_memory_bytes: 64 << 20,
            naks_per_request: 64,
            waits: Waits::InTurn,
        }
    }

    /// The same under a name, from which its id follows.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { id: ClientId::from_name(name), name: Some(name.into()), ..self }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        text(&self.application, "application reference", 64)?;
        self.name.as_deref().map_or(Ok(()), |name| text(name, "receiver's name", 64))?;
        for (span, what) in [
            (self.register_retry, "the register retry timer"),
            (self.done_retry, "the done retry timer"),
            (self.patience, "the patience"),
        ] {
            if span.is_zero() {
                return Err(ConfigError::Zero(what));
            }
        }
        Ok(())
    }
}

fn text(value: &str, what: &'static str, most: usize) -> Result<(), ConfigError> {
    if (1..=most).contains(&value.len()) { Ok(()) } else { Err(ConfigError::Text { what, most }) }
}
