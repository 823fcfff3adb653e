//! User's settings of a transfer, and the configuration derived from them, the same for every command.
//!
//! [`Settings`] has the values that may be chosen, each with a default that is best if nothing is known. Values that
//! depend on the link or on the number of receivers are computed from these in [`Settings::sender`], and nowhere else.
//! So sending, predicting or reproducing a transfer uses the same [`SenderConfig`].

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
pub use farcast_delivery::settings::SendRate;
pub use farcast_delivery::{Parity, PathLimits};

mod declared;
mod forecast;

pub use declared::{LEAST_INTERVAL, in_effect};

use crate::config::{Group, Invited, NakTiming, Pace, PassWait, Product, SenderConfig, Start, StatusRetry};
use crate::wire;

/// Bounds of the sending time that a late wake-up may make up for at once; between them it is the time of a burst. A
/// busy machine takes the processor away for a time slice or more, whose sending time would else be lost for good. At
/// the upper bound, together with what leaves ahead, 21 ms of data queue at a link of the sender's rate. That is less
/// than any queue that suits the link.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// Interval between announcements while data runs.
const LATE_ANNOUNCE: Span = Span::from_secs(2);
/// Number of DTUs in a block if receivers set the pace: four and a half full batches, about the content of a default
/// receive buffer. Losses vary less in a longer block. The cheapest code has room at this length for the parity of a
/// loss of a quarter.
const WINDOW_BLOCK: u32 = 198;
/// Window in DTUs if receivers set the pace, about 4 MiB; receivers with smaller buffers shrink it.
const WINDOW: u32 = 15 * WINDOW_BLOCK;
/// Maximum length of a block in DTUs. Receivers' answers take no fewer octets with longer blocks, and coding takes
/// longer.
const LONGEST_BLOCK: u32 = 2048;
/// Number of DTUs in a block for which the one-octet code has enough symbols, and the number of listed receivers beyond
/// which blocks are as long.
const CODED_BLOCK: u64 = 200;
/// Number of DTUs in a block of a large group at a low rate, where fewer leave in a second.
const SHORT_CODED_BLOCK: u64 = 64;
const FEW: u64 = 64;
/// Time that receivers of an open group have to register before the sender may end, and after which data begins for
/// receivers that may know only the draft.
const OPEN_START: Span = Span::from_secs(3);
/// Longest time for which data leaves after the first announcement, before receivers have registered. It is longer than
/// registrations take over a satellite, and shorter than the time after which others take the group for used.
const EARLY: Span = Span::from_millis(900);
/// Approximate octets of an announcement without its host list, with headers.
const ANNOUNCE_BYTES: u64 = 300;

/// Receivers of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Audience {
    /// Only these receivers.
    Listed(Vec<Invited>),
    /// Any receivers that register, up to this many.
    Open(u32),
    /// Anybody who listens, unknown and unconfirmed.
    Anybody,
}

/// Addresses of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Address of the sender.
    pub server: SocketAddr,
    /// Address to which announcements go.
    pub public: SocketAddr,
    /// Address to which data goes.
    pub private: SocketAddr,
}

/// Settings that the user may choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Rate of sending.
    pub rate: SendRate,
    /// Product bytes in a DTU; `None` for the number that fits the path.
    pub dtu_size: Option<u32>,
    /// DTUs in a block; `None` for those of a quarter of a second.
    pub block_size: Option<u32>,
    /// Parity symbols of a block.
    pub parity: Parity,
    /// Start of the next pass.
    pub pass_wait: PassWait,
    /// Times of status requests.
    pub nak_timing: NakTiming,
    /// Duration of the Status Retry Timer.
    pub status_retry: StatusRetry,
    /// Number of unanswered requests after which a receiver is given up.
    pub status_retries: u32,
    /// Silence after which a receiver is given up.
    pub silence: Span,
    /// Round trip that is assumed until one is measured.
    pub round_trip: Span,
    /// Window over which receivers spread their answers.
    pub spread: Span,
    /// Maximum octets that may leave together.
    pub burst: u64,
    /// Time after which the transfer is aborted.
    pub time_limit: Span,
    /// Number of registered receivers at which data begins.
    pub wait_for: Option<u32>,
    /// Time at which data begins with the registered receivers; `None` to begin with the first of them.
    pub start_after: Option<Span>,
    /// `true` if data begins on the owner's demand.
    pub start_on_demand: bool,
    /// Time after which the sender gives up if no receiver has registered.
    pub announce_time: Span,
    /// `true` if receivers may register once data has begun.
    pub late_entry: bool,
    /// Rate of the return channel that all receivers share; learnt if `None`.
    pub return_rate: Option<BitRate>,
    /// `true` if receivers may know only the draft of MFTP.
    pub draft: bool,
    /// Settings for experts.
    pub fine: Fine,
}

/// Settings that a study or an experiment may override; `None` leaves a value to be derived from the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fine {
    /// Sending time that a late wake-up may make up for at once.
    pub credit: Option<Span>,
    /// Number of segments at the product's head that the first pass sends twice.
    pub head_segments: Option<u32>,
    /// `true` if the request that ends a pass is sent twice.
    pub ask_twice: Option<bool>,
    /// `true` if a pass that takes little of a round trip is sent twice.
    pub repeat_small_passes: Option<bool>,
    /// Number of times that each confirmation is sent.
    pub repeats: Option<u32>,
    /// Interval between announcements before data begins.
    pub announce_interval: Option<Span>,
    /// Interval between announcements once data has begun.
    pub late_announce_interval: Option<Span>,
    /// Interval between Completions.
    pub completion_interval: Option<Span>,
    /// `true` if the round trip stays at the assumed value.
    pub fixed_round_trip: bool,
    /// `true` if a NAK that comes during the wait for answers restarts the wait.
    pub nak_restarts_wait: bool,
}

impl Settings {
    /// Creates the default settings with `rate`.
    pub const fn new(rate: SendRate) -> Self {
        Self {
            rate,
            dtu_size: None,
            block_size: None,
            parity: Parity::Auto,
            pass_wait: PassWait::Draft,
            nak_timing: NakTiming::EachBlock,
            status_retry: StatusRetry::Measured,
            status_retries: 5,
            silence: Span::from_secs(120),
            round_trip: Span::from_secs(1),
            spread: Span::ZERO,
            burst: 64 << 10,
            time_limit: Span::from_secs(24 * 3600),
            wait_for: None,
            start_after: None,
            start_on_demand: false,
            announce_time: Span::from_secs(180),
            late_entry: true,
            return_rate: None,
            draft: false,
            fine: Fine {
                credit: None,
                head_segments: None,
                ask_twice: None,
                repeat_small_passes: None,
                repeats: None,
                announce_interval: None,
                late_announce_interval: None,
                completion_interval: None,
                fixed_round_trip: false,
                nak_restarts_wait: false,
            },
        }
    }

    /// Creates settings for MFTP as in its draft, without farcast's additions that make transfers faster, for studies
    /// of it.
    pub const fn draft(rate: SendRate) -> Self {
        let mut settings = Self::new(rate);
        // The maximum is the number of DTUs that a NAK's bitmap has room for.
        settings.block_size = Some(u32::MAX);
        settings.parity = Parity::Symbols(0);
        settings.silence = Span::ZERO;
        settings.start_after = Some(OPEN_START);
        settings.time_limit = Span::from_secs(30 * 24 * 3600);
        settings.fine.credit = Some(Span::ZERO);
        settings.fine.head_segments = Some(0);
        settings.fine.ask_twice = Some(false);
        settings.fine.repeat_small_passes = Some(false);
        settings.fine.announce_interval = Some(Span::from_secs(1));
        settings.fine.late_announce_interval = Some(Span::from_secs(5));
        settings.fine.completion_interval = Some(Span::from_secs(1));
        settings
    }

    /// Returns the sending time that a late wake-up may make up for at once.
    fn credit(&self, rate: BitRate) -> Span {
        let (least, most) = CREDIT;
        rate.time_of_bytes(self.burst).clamp(least, most)
    }

    /// Returns the configuration of a sender of `product`.
    pub fn sender(
        &self,
        product: Product,
        addresses: Addresses,
        audience: &Audience,
        way: PathLimits,
    ) -> SenderConfig {
        let Addresses { server, public, private } = addresses;
        let mut config = SenderConfig::new(product, server, private);
        let listed = if let Audience::Listed(invited) = audience { invited.len() } else { 0 };
        config.public = public;
        self.cut(&mut config, listed as u64, way);
        config.group = match audience {
            Audience::Listed(invited) => Group::Closed(invited.clone()),
            Audience::Open(limit) => Group::OpenLimited { limit: *limit },
            Audience::Anybody => Group::OpenUnlimited,
        };
        // The sender cannot wait for receivers that do not register.
        let wait_for = self.wait_for.filter(|_| *audience != Audience::Anybody);
        let told = self.start_after.is_some() || wait_for.is_some() || self.start_on_demand;
        // Receivers of the draft discard data that comes before they are confirmed.
        let with_first = !told && !self.draft && *audience != Audience::Anybody;
        let waits = listed > 0 || wait_for.is_some() || self.start_on_demand;
        let after = self.start_after.or((!waits).then_some(OPEN_START));
        config.start = Start { receivers: wait_for, after, with_first };
        config.early_data = if with_first { EARLY } else { Span::ZERO };
        // A receiver that comes late, or starts again after a power cut, waits for the next announcement.
        config.late_announce_interval = LATE_ANNOUNCE;
        config.brief_announce_interval = LATE_ANNOUNCE;
        config.announce_limit = self.announce_time;
        config.late_entry = self.late_entry;
        config.pass_wait = self.pass_wait;
        config.nak_timing = self.nak_timing;
        config.status_retry = self.status_retry;
        config.status_retry_count = self.status_retries;
        config.silence = self.silence;
        config.round_trip = self.round_trip.max(Span::from_millis(1));
        config.backoff_window = self.spread;
        config.turns = with_first;
        config.return_rate = self.return_rate;
        config.parity_symbols = match self.parity {
            Parity::Symbols(symbols) => symbols,
            // There is no sign that receivers know parity.
            Parity::Auto if *audience == Audience::Anybody || self.draft => 0,
            Parity::Auto => config.automatic_parity(),
        };
        config.parity_ahead = self.parity == Parity::Auto;
        // The first DTU always carries the beginning of the manifest, and often the whole.
        config.head_segments = 1;
        config.repeat_small_passes = true;
        config.transfer_limit = self.time_limit;
        self.spare_slow_link(&mut config, listed as u64);
        self.fine.apply(&mut config);
        config.join_delay = if public == private { Span::ZERO } else { config.announce_interval };
        config
    }

    /// Sets the pace and the division of the product: DTUs that fit the path, blocks of a quarter of a second.
    fn cut(&self, config: &mut SenderConfig, listed: u64, way: PathLimits) {
        if let Some(mtu) = way.mtu {
            config.datagram = config.datagram.min((mtu as usize).saturating_sub(way.headers.into()));
            let fits = u32::try_from(wire::dtu_size_for(config.datagram));
            config.dtu_size = fits.unwrap_or(config.dtu_size).max(4);
        }
        config.dtu_size = self.dtu_size.unwrap_or(config.dtu_size);
        let largest = u32::try_from(wire::block_size_for(config.datagram, 32)).unwrap_or(u32::MAX);
        let datagram = wire::data_len(config.dtu_size as usize) as u64 + u64::from(way.headers);
        let block = match self.rate {
            SendRate::Max => WINDOW_BLOCK,
            // The first NAKs come while most of the product is still to be sent. Large groups get longer blocks, so
            // that answers stay a small part of the traffic.
            SendRate::Limit(rate) => {
                let within = |milliseconds| rate.as_bps() / 8 * milliseconds / 1000 / datagram;
                let few = within(250.max(listed.clamp(16, FEW) * 4));
                // Parity ahead of requests, which serves a large group, takes the smaller a part of a longer block.
                let coded = within(1000).max(within(4000).min(SHORT_CODED_BLOCK)).min(CODED_BLOCK);
                let many = if listed == 0 || listed > FEW { coded } else { 0 };
                u32::try_from(few.max(many)).unwrap_or(LONGEST_BLOCK).min(LONGEST_BLOCK)
            }
        };
        let chosen = self.block_size.map(|wanted| wanted.min(largest));
        config.block_size = chosen.unwrap_or(block.clamp(1, largest).max(16.min(largest)));
        config.pace = match self.rate {
            SendRate::Max => Pace::Window { segments: WINDOW, paced: true },
            SendRate::Limit(rate) => Pace::Rate {
                rate,
                overhead: way.headers,
                credit: self.fine.credit.unwrap_or(self.credit(rate)),
                granule: way.granule,
            },
        };
    }

    /// Makes room for data on a slow link: announcements take at most a twentieth of the rate.
    fn spare_slow_link(&self, config: &mut SenderConfig, listed: u64) {
        let SendRate::Limit(rate) = self.rate else { return };
        let room_with = |list| rate.time_of_bytes(ANNOUNCE_BYTES + list) * 20;
        let room = room_with(8 * listed);
        config.brief_announce_interval = config.brief_announce_interval.max(room_with(0));
        config.announce_interval = config.announce_interval.max(room);
        config.late_announce_interval = config.late_announce_interval.max(room);
        config.ask_twice = rate.as_bps() >= 1_000_000;
        config.completion_interval = config.completion_interval.max(rate.time_of_bytes(100) * 4);
    }
}

impl Fine {
    fn apply(&self, config: &mut SenderConfig) {
        let set = |chosen: &mut _, wanted: Option<_>| *chosen = wanted.unwrap_or(*chosen);
        set(&mut config.announce_interval, self.announce_interval);
        set(&mut config.late_announce_interval, self.late_announce_interval);
        set(&mut config.brief_announce_interval, self.late_announce_interval);
        set(&mut config.completion_interval, self.completion_interval);
        config.head_segments = self.head_segments.unwrap_or(config.head_segments);
        config.repeats = self.repeats.unwrap_or(config.repeats);
        config.ask_twice = self.ask_twice.unwrap_or(config.ask_twice);
        config.repeat_small_passes = self.repeat_small_passes.unwrap_or(config.repeat_small_passes);
        config.measure_round_trip = !self.fixed_round_trip;
        config.nak_restarts_wait = self.nak_restarts_wait;
    }
}
