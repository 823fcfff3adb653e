//! Settings of the two engines, checked when an engine is created.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::RatePace;

use crate::error::ConfigError;
use crate::message::ClientId;
use crate::proof::Secret;

/// Maximum symbols of a block in a code of one octet, and the most DTUs that leave enough of them for parity. The large
/// code takes several times as long.
const SMALL_CODE: u32 = 255;
const SMALL_BLOCK: u32 = 220;
/// Longest block that gets parity by default. The large code processes the whole block for each symbol.
const LARGE_BLOCK: u32 = 2200;
/// Maximum memory, in octets, for coding a block with the default parity.
const CODING_MEMORY: u64 = 64 << 20;

/// Product to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// Digest that commits to the whole product.
    pub id: [u8; 32],
    /// Size in bytes.
    pub size: u64,
    /// Name of the product, 1 to 256 bytes.
    pub name: String,
}

/// Group model (draft §6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Group {
    /// Only these receivers.
    Closed(Vec<Invited>),
    /// Any receivers that register, up to `limit`.
    OpenLimited {
        /// Maximum number of members.
        limit: u32,
    },
    /// Anybody who listens.
    OpenUnlimited,
}

/// Receiver that a closed group expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invited {
    /// Name or address by which the user calls the receiver.
    pub label: String,
    /// Identifier on the wire.
    pub id: ClientId,
}

impl Invited {
    /// Creates the receiver that `label` means: an address stands for itself, anything else is a name.
    pub fn new(label: &str) -> Self {
        let id = label.parse::<IpAddr>().map_or_else(|_| ClientId::from_name(label), ClientId::from_address);
        Self { label: label.into(), id }
    }
}

/// Conditions for the start of data, whichever is fulfilled first. The owner may also [start](crate::Sender::start) it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// Number of registered receivers at which data begins.
    pub receivers: Option<u32>,
    /// Time after the first announcement at which data begins, if any receiver has registered.
    pub after: Option<Span>,
    /// `true` if data begins with the first receivers: about a round trip after the first of them has registered. The
    /// others join when they come. The sender still ends only once each of them has had its time to come:
    /// [`silence`](SenderConfig::silence) in a closed group, [`after`](Self::after) in an open one.
    pub with_first: bool,
}

/// Pace of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// A rate that counts every bit of a datagram with its headers (draft §9.9).
    Rate {
        /// Rate limit.
        rate: BitRate,
        /// Bytes of UDP and IP headers, added to each datagram: 28 for IPv4, 48 for IPv6, 0 to leave them out.
        overhead: u16,
        /// Sending time that a late driver may make up for at once. A driver that is never later keeps the rate. A link
        /// of this rate then queues at most the data of that time, what the driver sends ahead, one datagram, and the
        /// control messages that leave out of turn.
        credit: Span,
        /// Size in bytes of the link's transmission unit. Each datagram with its headers is rounded up to whole units,
        /// as on a bearer whose FEC blocks are not shared, or on ATM cells. 1 for a link without them.
        granule: u16,
    },
    /// The pace of acknowledgements: at most `segments` DTUs beyond those that the slowest receiver has acknowledged.
    Window {
        /// Size of the window in DTUs.
        segments: u32,
        /// `true` to avoid flooding a long or narrow path with a whole window: DATA is paced by the path's rate, which
        /// is estimated from the acknowledgements. Otherwise all DTUs that the window allows leave at once.
        paced: bool,
    },
}

impl Pace {
    /// Returns the rate limit, if there is one.
    pub(crate) fn steady(self) -> Option<RatePace> {
        match self {
            Self::Rate { rate, overhead, credit, granule } => {
                Some(RatePace { rate, overhead, credit, granule })
            }
            Self::Window { .. } => None,
        }
    }
}

/// Start of the next pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassWait {
    /// Immediately when any DTU must be sent again (draft §9.5, §11.2.1).
    Draft,
    /// A whole Status Retry Timer after every pass, as the BGAN study interprets it. A pass sends what was requested
    /// before it began; NAKs that come during the pass count for the next one.
    FixedTimer,
}

/// Times of status requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakTiming {
    /// After every block of every pass (draft §11.2.1).
    EachBlock,
    /// At the end of the first pass for all blocks, after each block later, as in the BGAN study.
    EndOfFirstPass,
}

/// Duration of the Status Retry Timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusRetry {
    /// A fixed duration.
    Fixed(Span),
    /// The time of a full block's product bytes at the rate, plus `round_trips` round trips.
    BlockTime {
        /// Number n in the study's `block time + n x RTT`.
        round_trips: u32,
    },
    /// One and a half of the longest measured round trip, plus the back-off window, plus 20 ms.
    Measured,
}

/// Configuration of a [`Sender`](crate::Sender).
#[expect(clippy::struct_excessive_bools, reason = "they are settings, each independent of the others")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Transmission Identifier, not 0. Together with the server's address it identifies the transmission.
    pub transmission: u32,
    /// Source address of data, as receivers see it.
    pub server: SocketAddr,
    /// Destination address of receivers' answers.
    pub response: SocketAddr,
    /// Destination address of announcements.
    pub public: SocketAddr,
    /// Destination address of data; its port is the public one's.
    pub private: SocketAddr,
    /// Application Reference, 1 to 64 bytes.
    pub application: String,
    /// Product to be sent.
    pub product: Product,
    /// Secret from which tokens are made, so that receivers prove their messages ([`proof`](crate::proof)). Without it
    /// every message is believed, as in the draft.
    pub secret: Option<Secret>,
    /// Product bytes in a DTU.
    pub dtu_size: u32,
    /// DTUs in a block.
    pub block_size: u32,
    /// Maximum UDP payload of control messages in bytes; longer host lists are split.
    pub datagram: usize,
    /// Group model.
    pub group: Group,
    /// Conditions for the start of data.
    pub start: Start,
    /// Interval between announcements before data begins.
    pub announce_interval: Span,
    /// Interval between announcements for late joiners, once data has begun.
    pub late_announce_interval: Span,
    /// Shortest interval between announcements that list clients in short, where many take turns.
    pub brief_announce_interval: Span,
    /// Maximum time of the announcement phase. Afterwards the sender starts with the registered receivers, or gives up.
    pub announce_limit: Span,
    /// Time between the last announcement and data, for receivers to join a separate private group.
    pub join_delay: Span,
    /// Time for which data may leave after the first announcement, before any receiver has registered; zero for none.
    /// It requires a group whose receivers register, a rate, data on the announcement group, [`PassWait::Draft`] and
    /// [`NakTiming::EachBlock`].
    pub early_data: Span,
    /// `true` if receivers may register once data has begun.
    pub late_entry: bool,
    /// Pace of data.
    pub pace: Pace,
    /// Start of the next pass.
    pub pass_wait: PassWait,
    /// Times of status requests.
    pub nak_timing: NakTiming,
    /// Time for which the sender waits for answers.
    pub status_retry: StatusRetry,
    /// `true` if a NAK that comes during the wait for answers restarts the wait (with [`PassWait::FixedTimer`]).
    pub nak_restarts_wait: bool,
    /// Number of repeated status requests without an answer after which a receiver is given up. Together with the first
    /// request, one more goes unanswered.
    pub status_retry_count: u32,
    /// Time for which a receiver must have left all requests unanswered before it is given up, however many they are. A
    /// receiver that answers but makes no progress for five times as long is given up too.
    pub silence: Span,
    /// `true` if the request that ends a pass is sent twice, because a lost one costs a Status Retry Timer. On a thin
    /// return channel the doubled answers may cost more.
    pub ask_twice: bool,
    /// `true` if a pass that takes less than an eighth of a round trip is sent twice. The link would be idle anyway,
    /// and a lost repair costs another round trip. Not with [`PassWait::FixedTimer`].
    pub repeat_small_passes: bool,
    /// Round trip that is assumed until one is measured.
    pub round_trip: Span,
    /// `true` if the round trip is measured; otherwise the assumed one stays.
    pub measure_round_trip: bool,
    /// Window over which receivers spread their answers; zero to answer at once.
    pub backoff_window: Span,
    /// `true` if receivers are called by turns where they are too many for the return channel
    /// ([`turn`](crate::Turn)). It requires a group whose receivers register, a rate,
    /// [`PassWait::Draft`], and parity ahead or a `return_rate`.
    pub turns: bool,
    /// Rate of the return channel that all receivers share, for turns; `None` if it is to be learnt.
    pub return_rate: Option<BitRate>,
    /// Maximum number of parity symbols of a block; 0 turns parity off. A sender that asks for proofs sends no parity
    /// while a receiver without proofs takes part, because that receiver may know nothing of parity.
    pub parity_symbols: u32,
    /// `true` if some parity symbols are sent before they are requested, where a request would take longer: after the
    /// blocks at the end of the first pass, and with repairs. It requires members, a rate, and [`PassWait::Draft`].
    pub parity_ahead: bool,
    /// Number of segments at the product's head that the first pass sends twice (the manifest).
    pub head_segments: u32,
    /// Number of segments at the product's head (the list of files) from which receivers can tell which parts they have
    /// already. They are sent alone before the first pass if all receivers hold something and some have yet to compare.
    /// 0 if no receiver can compare.
    pub list_segments: u32,
    /// Time after which the transfer is aborted.
    pub transfer_limit: Span,
    /// Interval between Completions.
    pub completion_interval: Span,
    /// Number of times that each confirmation, the last Completion and an Abort are sent.
    pub repeats: u32,
}

impl SenderConfig {
    /// Creates a configuration to send `product` to the group `to` with default settings: open-limited group of 1,024,
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
            start: Start { after: Some(Span::from_secs(3)), ..Start::default() },
            announce_interval: Span::from_secs(1),
            late_announce_interval: Span::from_secs(5),
            brief_announce_interval: Span::from_secs(5),
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
            turns: false,
            return_rate: None,
            parity_symbols: 0,
            parity_ahead: false,
            head_segments: 0,
            list_segments: 0,
            transfer_limit: Span::from_secs(24 * 3600),
            completion_interval: Span::from_secs(1),
            repeats: 3,
        }
    }

    /// Returns the default number of parity symbols for the configured blocks. It is the room of the one-octet code if
    /// that is enough. Otherwise it is a quarter of the DTUs, rounded up to a power of two, on which the time of coding
    /// depends. Symbols cost nothing until they are requested. The number is 0 if coding would need more memory than a
    /// receiver grants, or if a block is so long that coding it would hold up sending.
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
            (self.brief_announce_interval.is_zero(), "the brief announce interval"),
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

/// Configuration of a [`Receiver`](crate::Receiver).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// Name of the receiver, 1 to 64 bytes; the identifier is derived from it.
    pub name: Option<String>,
    /// Identifier of a receiver without a name.
    pub id: ClientId,
    /// Port for announcements and data.
    pub port: u16,
    /// Application Reference to listen for.
    pub application: String,
    /// Seed of the random waits before answers.
    pub seed: u64,
    /// Secret from which nonces are made. With it the receiver proves its messages to senders that grant tokens
    /// ([`proof`](crate::proof)), and limits what it sends by what it receives.
    pub secret: Option<Secret>,
    /// Bytes that the driver can buffer, as reported to the sender.
    pub receive_buffer_bytes: Option<u32>,
    /// `true` if data that comes before the registration is confirmed is kept.
    pub keep_early_data: bool,
    /// Interval between registrations while data runs and no confirmation comes.
    pub register_retry: Span,
    /// Number of unconfirmed registrations after which the receiver gives up or, with proofs, registers less often.
    pub register_retry_count: u32,
    /// Interval between Dones until one is confirmed.
    pub done_retry: Span,
    /// Number of unconfirmed Dones after which they come ten times less often.
    pub done_retry_count: u32,
    /// Time without a confirmation after which the receiver stops asking for one; the product is complete all the same.
    pub done_patience: Span,
    /// Time without any sign of the sender after which the receiver gives up.
    pub patience: Span,
    /// Maximum number of DTUs of a product; a bitmap of them is kept.
    pub max_segments: u32,
    /// Maximum bytes of memory for the parity symbols of blocks that cannot be rebuilt yet, overhead included.
    pub parity_memory_bytes: u64,
    /// Maximum number of NAKs for one status request; the next request brings the rest.
    pub naks_per_request: u32,
    /// Method by which the random waits before answers are drawn from `seed`.
    pub waits: Waits,
}

/// Receiver for which a wait is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    /// Seed of the receiver's random numbers.
    pub(crate) seed: u64,
    pub(crate) id: ClientId,
}

/// Method by which a receiver's random waits are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Waits {
    /// One after the other from one stream: that of an engine, or that of a whole population.
    #[default]
    InTurn,
    /// Each from a stream of its own, identified by the receiver's id and the instant at which the wait begins. A
    /// population then waits exactly as single engines with the same seed do, so that the two can be compared.
    ByReceiver,
}

impl Waits {
    /// Draws a uniform part of `window` for a receiver whose wait begins now; `turn` is the stream for
    /// [`InTurn`](Self::InTurn).
    pub(crate) fn draw(self, waiter: Waiter, now: Time, window: Span, turn: &mut RandomStream) -> Span {
        let bound = window.as_nanos().saturating_add(1);
        Span::from_nanos(match self {
            Self::InTurn => turn.below(bound),
            Self::ByReceiver => {
                RandomStream::derive(waiter.seed, &[u64::from(waiter.id.0), now.as_nanos()]).below(bound)
            }
        })
    }
}

impl ReceiverConfig {
    /// Creates a configuration for a receiver with this id that listens on `port`, with default settings.
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

    /// Sets the name, and the id that is derived from it.
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
