//! The settings of a connection, and presets of them.

mod presets;

use farcast_core::Span;

use crate::rto::RtoConfig;

/// How losses are found and repaired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recovery {
    /// Fast retransmit and fast recovery, which the first new acknowledgment ends (RFC 5681 section 3.2).
    Reno,
    /// Partial acknowledgments repair a hole each (RFC 6582, the impatient variant).
    NewReno,
    /// A scoreboard of SACK blocks (RFC 6675).
    #[default]
    Sack,
    /// Forward acknowledgment: what lies more than three segments below the highest SACK block is lost (Mathis and
    /// Mahdavi, SIGCOMM 1996), as Linux 2.4 has it.
    Fack,
    /// Losses by time of sending, with tail loss probes (RFC 8985).
    Rack,
}

impl Recovery {
    /// Whether it needs SACK blocks. Without them from the peer, it does as [`NewReno`](Self::NewReno).
    pub const fn needs_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Fack | Self::Rack)
    }
}

/// How the congestion window comes down in a recovery with SACK blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reduction {
    /// At once (RFC 6675 section 5).
    #[default]
    Immediate,
    /// In proportion to what is delivered (RFC 6937 with the slow start reduction bound).
    Proportional,
    /// Likewise, but below the threshold a segment more than was delivered leaves only with an acknowledgment that
    /// advances and tells of no further loss (RFC 9937), as in today's Linux. What may leave above the threshold is
    /// rounded up to whole segments, in which Linux counts.
    ProportionalSafe,
    /// By one segment for every two acknowledgments, as in Linux 2.4.
    RateHalving,
}

/// How the congestion window grows in congestion avoidance, and what a loss costs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Algorithm {
    /// A segment a round trip; half (RFC 5681).
    #[default]
    Reno,
    /// A cubic function of time; 0.7 (RFC 9438).
    Cubic,
}

/// By what the congestion window grows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Increase {
    /// By acknowledgments (RFC 5681 section 3.1, equations 2 and 3): delayed ones slow it down.
    #[default]
    PerAcknowledgment,
    /// By octets acknowledged, in slow start at most this many segments for an acknowledgment (RFC 3465; its L).
    Octets(u16),
    /// By octets delivered, selectively acknowledged ones too, with every acknowledgment that advances: as today's
    /// Linux. Where an acknowledgment of a repetition covers what had arrived before, that counts once and not twice.
    /// Linux counts in segments, so the threshold is of whole ones, and Reno's congestion avoidance adds one for each
    /// window (RFC 3465 section 2.1).
    Delivered,
}

/// What a retransmission timeout costs, and what is sent until everything is acknowledged that was in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AfterTimeout {
    /// Slow start repairs what was in flight. The threshold falls once. F-RTO is for timeouts outside recoveries.
    #[default]
    SlowStart,
    /// As in today's Linux, where SACK is in use:
    ///
    /// * The threshold falls with every timeout that acknowledgments have come before, as RFC 5681 section 3.1 has it,
    ///   and stays with those that repeat.
    /// * F-RTO is for these as well: for timeouts outside recoveries, and for those that repeat with nothing
    ///   acknowledged in between. The acknowledgment of the first segment lets new data out as far as slow start lets
    ///   it; what was in flight is not sent again before the next acknowledgment.
    /// * Where a repetition is found to be lost by its time of sending, or when everything is acknowledged and
    ///   something that was sent since is lost, a fast recovery begins, and the threshold falls (RFC 5681 section 4.3:
    ///   a second sign of congestion).
    Linux,
}

/// The congestion window before the first round trip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum InitialWindow {
    /// Two to four segments by their size (RFC 5681 section 3.1).
    Rfc5681,
    /// Up to ten segments (RFC 6928).
    #[default]
    Rfc6928,
    /// This many segments.
    Segments(u32),
}

impl InitialWindow {
    /// In octets, for segments of `smss`.
    pub(crate) fn octets(self, smss: u64) -> u64 {
        match self {
            Self::Rfc5681 if smss <= 1095 => 4 * smss,
            Self::Rfc5681 if smss <= 2190 => 3 * smss,
            Self::Rfc5681 => 2 * smss,
            Self::Rfc6928 => (10 * smss).min((2 * smss).max(14_600)),
            Self::Segments(count) => u64::from(count) * smss,
        }
    }
}

/// A window or threshold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Window {
    /// In octets.
    Octets(u64),
    /// In segments of the maximum size.
    Segments(u32),
}

impl Window {
    /// In octets, for segments of `smss`.
    pub const fn octets(self, smss: u64) -> u64 {
        match self {
            Self::Octets(octets) => octets,
            Self::Segments(count) => count as u64 * smss,
        }
    }
}

/// When data is acknowledged. Data out of order, and data that fills a gap, always is at once (RFC 5681 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DelayedAck {
    /// At once.
    Off,
    /// Every second full-sized segment, and anything after `delay` at the latest (RFC 9293 section 3.8.6.3: at most 0.5
    /// s).
    Delayed {
        /// The longest that an acknowledgment waits.
        delay: Span,
    },
    /// As Linux does: the first segments at once, and a delay that follows the time between arrivals.
    Quick {
        /// How many segments at the start, and after a pause, are acknowledged at once; Linux has 16.
        segments: u32,
        /// The shortest delay; Linux has 40 ms.
        least: Span,
        /// The longest; Linux has 200 ms.
        most: Span,
    },
}

impl Default for DelayedAck {
    fn default() -> Self {
        Self::Delayed { delay: Span::from_millis(200) }
    }
}

/// The receive window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReceiveWindow {
    /// The receive buffer: how much the peer may have sent that the owner has not consumed.
    pub size: Window,
    /// What is advertised at first, growing by two segments with each that arrives in order, as in Linux 2.4; the whole
    /// from the start where absent.
    pub first: Option<Window>,
}

/// Everything that can be set about a connection. By default: SACK, window scaling, timestamps, initial window and
/// timer as the RFCs recommend them today, with Reno's congestion avoidance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The largest segment in octets, without headers and options (RFC 9293 section 3.7.1): announced, and the limit
    /// of what is sent. Timestamps take 12 octets of it. From 64.
    pub mss: u16,
    /// How losses are found.
    pub recovery: Recovery,
    /// How the window comes down.
    pub reduction: Reduction,
    /// How it grows.
    pub congestion: Algorithm,
    /// By what it grows.
    pub increase: Increase,
    /// Whether slow start ends when the round trip grows (`HyStart++`, RFC 9406).
    pub hystart: bool,
    /// The initial window.
    pub initial_window: InitialWindow,
    /// The slow start threshold at first; none where absent.
    pub initial_ssthresh: Option<Window>,
    /// Whether a loss halves the congestion window, as Linux does, instead of what is in flight (RFC 5681 equation 4).
    pub halve_window: bool,
    /// Whether the first two duplicate acknowledgments send a new segment each (RFC 3042).
    pub limited_transmit: bool,
    /// Whether a connection that was idle for a retransmission timeout starts from the initial window (RFC 5681
    /// section 4.1).
    pub idle_restart: bool,
    /// How many segments may leave at once when a recovery ends; without limit where absent. Linux 2.4 has 3.
    pub most_burst: Option<u32>,
    /// What a timeout costs, and what follows it.
    pub after_timeout: AfterTimeout,
    /// Whether a timeout is checked for being spurious (F-RTO, RFC 5682).
    pub frto: bool,
    /// Whether a reduction is undone when timestamps (RFC 3522) or DSACK (RFC 3708) show that nothing was lost.
    pub undo: bool,
    /// Whether tail loss probes are sent; only with [`Recovery::Rack`].
    pub tail_loss_probe: bool,
    /// Whether SACK is offered and used.
    pub sack: bool,
    /// Whether the first SACK block reports duplicates (RFC 2883).
    pub dsack: bool,
    /// The retransmission timer.
    pub rto: RtoConfig,
    /// When to acknowledge.
    pub delayed_ack: DelayedAck,
    /// The receive window.
    pub receive_window: ReceiveWindow,
    /// How much may be written that is not acknowledged yet, in octets.
    pub send_buffer: u64,
    /// When a writer whom it had no room for is told of some.
    pub write_space: WriteSpace,
    /// Whether window scaling is offered (RFC 7323 section 2).
    pub window_scaling: bool,
    /// The tick of the timestamp clock, where timestamps are offered (RFC 7323 section 3): 1 ms to 1 s.
    pub timestamps: Option<Span>,
    /// Whether a small segment waits while others are in flight (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// How often a segment, a SYN or a window probe is sent again before the connection fails.
    pub most_retries: u32,
    /// How long a closed connection lingers: twice the maximum segment lifetime (RFC 9293 section 3.4.2).
    pub time_wait: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1460,
            recovery: Recovery::Sack,
            reduction: Reduction::Immediate,
            congestion: Algorithm::Reno,
            increase: Increase::PerAcknowledgment,
            hystart: false,
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: None,
            halve_window: false,
            limited_transmit: true,
            idle_restart: true,
            most_burst: None,
            after_timeout: AfterTimeout::SlowStart,
            frto: false,
            undo: false,
            tail_loss_probe: false,
            sack: true,
            dsack: true,
            rto: RtoConfig::default(),
            delayed_ack: DelayedAck::default(),
            receive_window: ReceiveWindow { size: Window::Octets(4 << 20), first: None },
            send_buffer: u64::MAX,
            write_space: WriteSpace::Any,
            window_scaling: true,
            timestamps: Some(Span::from_millis(1)),
            nagle: false,
            most_retries: 15,
            time_wait: Span::from_secs(240),
        }
    }
}

impl Config {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.mss < 64 {
            return Err(ConfigError::Mss(self.mss));
        }
        let mss = u64::from(self.mss);
        let window = self.receive_window.size.octets(mss);
        let most = if self.window_scaling { 65_535 << 14 } else { 65_535 };
        if window < mss || window > most {
            return Err(ConfigError::ReceiveWindow { window, least: mss, most });
        }
        if self.receive_window.first.is_some_and(|first| first.octets(mss) < mss) {
            return Err(ConfigError::FirstWindow);
        }
        if self.initial_window.octets(mss) == 0 {
            return Err(ConfigError::InitialWindow);
        }
        if self.initial_ssthresh.is_some_and(|ssthresh| ssthresh.octets(mss) < 2 * mss) {
            return Err(ConfigError::InitialSsthresh);
        }
        if self.send_buffer < mss {
            return Err(ConfigError::SendBuffer { least: mss });
        }
        if self.recovery.needs_sack() && !self.sack {
            return Err(ConfigError::NoSack);
        }
        if self.timestamps.is_some_and(|tick| tick < Span::from_millis(1) || tick > Span::from_secs(1)) {
            return Err(ConfigError::TimestampTick);
        }
        let delay = match self.delayed_ack {
            DelayedAck::Off => Span::ZERO,
            DelayedAck::Delayed { delay } => delay,
            DelayedAck::Quick { least, most, .. } => most.max(least),
        };
        if delay > Span::from_millis(500) {
            return Err(ConfigError::AckDelay);
        }
        self.rto.check()
    }
}

/// When a writer that the send buffer had no room for is told that there is some.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WriteSpace {
    /// As soon as there is any.
    #[default]
    Any,
    /// When a third of the buffer is free, so that several segments are written at once: as Linux does
    /// (`tcp_min_write_space`).
    Third,
}

/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The maximum segment size.
    #[error("a maximum segment size of {0} octets is too small: at least 64")]
    Mss(u16),
    /// The receive window.
    #[error("a receive window of {window} octets cannot work: {least} to {most} octets with these settings")]
    ReceiveWindow {
        /// What was set.
        window: u64,
        /// One segment.
        least: u64,
        /// What the header can say.
        most: u64,
    },
    /// The window that is advertised first.
    #[error("the window advertised first is smaller than a segment")]
    FirstWindow,
    /// The initial window.
    #[error("an initial window of no segments sends nothing: at least 1")]
    InitialWindow,
    /// The initial slow start threshold.
    #[error("the initial slow start threshold is below two segments")]
    InitialSsthresh,
    /// The send buffer.
    #[error("the send buffer must hold a segment: at least {least} octets")]
    SendBuffer {
        /// One segment.
        least: u64,
    },
    /// A recovery that needs SACK.
    #[error("this recovery works on SACK blocks, and sack is off")]
    NoSack,
    /// The timestamp clock.
    #[error("the timestamp clock ticks every 1 ms to 1 s (RFC 7323 section 5.4)")]
    TimestampTick,
    /// The delay of acknowledgments.
    #[error("an acknowledgment is delayed by at most 500 ms (RFC 9293 section 3.8.6.3)")]
    AckDelay,
    /// The retransmission timer's limits.
    #[error("the retransmission timer needs 1 ms <= least <= first <= most and a granularity of at most 1 s")]
    Rto,
}
