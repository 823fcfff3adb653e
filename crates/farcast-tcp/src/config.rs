//! The settings of a connection, and presets of them.

mod presets;

use farcast_core::Span;

use crate::rto::RtoConfig;

/// Method by which a connection finds and repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recovery {
    /// Fast retransmit and fast recovery, which the first new acknowledgment ends (RFC 5681 section 3.2).
    Reno,
    /// Partial acknowledgments repair a hole each (RFC 6582, the impatient variant).
    NewReno,
    /// A scoreboard of SACK blocks (RFC 6675).
    #[default]
    Sack,
    /// Forward acknowledgment: data more than three segments below the highest SACK block is lost (Mathis and Mahdavi,
    /// SIGCOMM 1996), as Linux 2.4 has it.
    Fack,
    /// Losses by time of sending, with tail loss probes (RFC 8985).
    Rack,
}

impl Recovery {
    /// Returns `true` if this recovery needs SACK blocks. If the peer sends none, the recovery works as
    /// [`NewReno`](Self::NewReno).
    pub const fn needs_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Fack | Self::Rack)
    }
}

/// Manner in which the congestion window shrinks in a recovery with SACK blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reduction {
    /// At once (RFC 6675 section 5).
    #[default]
    Immediate,
    /// In proportion to the data delivered (RFC 6937 with the slow start reduction bound).
    Proportional,
    /// Likewise, with a safer limit below the threshold, as in today's Linux (RFC 9937). There, one segment more than
    /// was delivered leaves only with an acknowledgment that advances and reports no further loss. Above the threshold,
    /// the allowance is rounded up to whole segments, because Linux counts segments.
    ProportionalSafe,
    /// By one segment for every two acknowledgments, as in Linux 2.4.
    RateHalving,
}

/// Growth of the congestion window in congestion avoidance, and its reduction after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Algorithm {
    /// Growth by a segment a round trip; a loss leaves half (RFC 5681).
    #[default]
    Reno,
    /// Growth as a cubic function of time; a loss leaves 0.7 (RFC 9438).
    Cubic,
}

/// Unit by which the congestion window grows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Increase {
    /// Acknowledgments (RFC 5681 section 3.1, equations 2 and 3). Delayed acknowledgments slow the growth down.
    #[default]
    PerAcknowledgment,
    /// Octets acknowledged. In slow start, an acknowledgment counts for at most this many segments (RFC 3465; its L).
    Octets(u16),
    /// Octets delivered, with every acknowledgment that advances, as in today's Linux. Selectively acknowledged octets
    /// count too. If the acknowledgment of a retransmission covers data that had arrived before, the data counts once
    /// and not twice. Linux counts in segments: the threshold is a whole number of segments, and Reno's congestion
    /// avoidance adds one segment for each window (RFC 3465 section 2.1).
    Delivered,
}

/// Reaction to a retransmission timeout, until all data is acknowledged that was in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AfterTimeout {
    /// Slow start repairs all data that was in flight. The threshold falls once. F-RTO checks only timeouts outside
    /// recoveries.
    #[default]
    SlowStart,
    /// Behaviour of today's Linux, if SACK is in use:
    ///
    /// * The threshold falls with a timeout if acknowledgments came since the previous one (RFC 5681 section 3.1). It
    ///   stays with a timeout that merely repeats.
    /// * F-RTO checks timeouts outside recoveries and also repeated timeouts with nothing acknowledged in between. The
    ///   acknowledgment of the first segment lets new data out as far as slow start allows. Data that was in flight is
    ///   not sent again before the next acknowledgment.
    /// * A fast recovery begins, and the threshold falls, if a retransmission is found lost by its time of sending. The
    ///   same happens if everything is acknowledged and something that was sent since is lost (RFC 5681 section 4.3: a
    ///   second sign of congestion).
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
    /// Returns the initial window in octets, for segments of `smss` octets.
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
    /// Returns the size in octets, for segments of `smss` octets.
    pub const fn octets(self, smss: u64) -> u64 {
        match self {
            Self::Octets(octets) => octets,
            Self::Segments(count) => count as u64 * smss,
        }
    }
}

/// Timing of acknowledgments. Data out of order, and data that fills a gap, is always acknowledged at once (RFC 5681
/// section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DelayedAck {
    /// At once.
    Off,
    /// Acknowledges every second full-sized segment, and any other data after `delay` at the latest (RFC 9293 section
    /// 3.8.6.3: at most 0.5 s).
    Delayed {
        /// Longest wait of an acknowledgment.
        delay: Span,
    },
    /// Acknowledges the first segments at once, then after a delay that follows the time between arrivals, as Linux
    /// does.
    Quick {
        /// Number of segments acknowledged at once at the start and after a pause; Linux has 16.
        segments: u32,
        /// Shortest delay; Linux has 40 ms.
        least: Span,
        /// Longest delay; Linux has 200 ms.
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
    /// Size of the receive buffer: the limit of data that the peer may have sent and the owner has not consumed.
    pub size: Window,
    /// Window advertised at first. It grows by two segments with each segment that arrives in order, as in Linux 2.4.
    /// If absent, the whole window is advertised from the start.
    pub first: Option<Window>,
}

/// Settings of a connection. The defaults for SACK, window scaling, timestamps, initial window and timer are those that
/// the RFCs recommend today, with Reno's congestion avoidance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The largest segment in octets, without headers and options (RFC 9293 section 3.7.1). The connection announces
    /// this value and sends no larger segment. Timestamps take 12 octets of it. At least 64.
    pub mss: u16,
    /// Loss detection and repair.
    pub recovery: Recovery,
    /// Reduction of the congestion window in a recovery.
    pub reduction: Reduction,
    /// Congestion control algorithm.
    pub congestion: Algorithm,
    /// Unit by which the congestion window grows.
    pub increase: Increase,
    /// Use of `HyStart++` (RFC 9406), which ends slow start when the round trip grows.
    pub hystart: bool,
    /// The initial window.
    pub initial_window: InitialWindow,
    /// Initial slow start threshold; no threshold if absent.
    pub initial_ssthresh: Option<Window>,
    /// Base of a reduction: a loss halves the congestion window, as in Linux, and not the octets in flight (RFC 5681
    /// equation 4).
    pub halve_window: bool,
    /// Limited transmit: a new segment for each of the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// Restart from the initial window after a connection was idle for a retransmission timeout (RFC 5681 section
    /// 4.1).
    pub idle_restart: bool,
    /// Number of segments that may leave at once when a recovery ends; no limit if absent. Linux 2.4 has 3.
    pub most_burst: Option<u32>,
    /// Reaction to a retransmission timeout.
    pub after_timeout: AfterTimeout,
    /// Check of timeouts for being spurious (F-RTO, RFC 5682).
    pub frto: bool,
    /// Undoing of a reduction when timestamps (RFC 3522) or DSACK (RFC 3708) show that nothing was lost.
    pub undo: bool,
    /// Use of tail loss probes; only with [`Recovery::Rack`].
    pub tail_loss_probe: bool,
    /// Offer of SACK, and its use if the peer agrees.
    pub sack: bool,
    /// Report of duplicates in the first SACK block (RFC 2883).
    pub dsack: bool,
    /// The retransmission timer.
    pub rto: RtoConfig,
    /// Timing of acknowledgments.
    pub delayed_ack: DelayedAck,
    /// The receive window.
    pub receive_window: ReceiveWindow,
    /// Most octets that may be written and not acknowledged yet.
    pub send_buffer: u64,
    /// Amount of free send buffer after which a blocked writer is notified.
    pub write_space: WriteSpace,
    /// Offer of window scaling (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Tick of the timestamp clock, 1 ms to 1 s (RFC 7323 section 3). If absent, timestamps are not offered.
    pub timestamps: Option<Span>,
    /// Nagle's algorithm: a small segment waits while others are in flight (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// Number of times that a segment, a SYN or a window probe is sent again before the connection fails.
    pub most_retries: u32,
    /// Time for which a closed connection lingers: twice the maximum segment lifetime (RFC 9293 section 3.4.2).
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
    /// Checks the settings for values that the types allow and that cannot work.
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

/// Amount of free send buffer after which a writer is notified that found no room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WriteSpace {
    /// Any number of free octets.
    #[default]
    Any,
    /// A third of the buffer, so that several segments are written at once, as Linux does (`tcp_min_write_space`).
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
        /// Window that was set.
        window: u64,
        /// Least window: one segment.
        least: u64,
        /// Largest window that the header can express.
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
        /// Least buffer: one segment.
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
