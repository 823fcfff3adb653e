//! One connection, from its SYN to its end.
//!
//! Inside, both directions count positions from their SYN, in 64 bits: the SYN has position 0, the first octet of data
//! position 1, a FIN the position behind the last.

mod acknowledging;
mod arriving;
mod device;
mod opening;
mod rack;
mod receiving;
mod recovery;
mod sending;
mod spurious;
mod timeouts;
mod timing;

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Deadline, Engine, Reject, RejectCounts, Transmit};
use farcast_core::{Span, Time, Timers};

use crate::config::{Config, ConfigError};
use crate::congestion::Congestion;
use crate::event::{Event, Failure, Pending, Stats};
use crate::reassembly::Reassembly;
use crate::rto::Estimator;
use crate::scoreboard::Scoreboard;
use crate::sequence::Numbering;
use crate::{Segment, SequenceNumber};

use device::Device;
use rack::Rack;
use receiving::Acknowledger;
use recovery::Phase;
use spurious::Suspicion;
use timing::Timer;

/// Where a connection stands (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has sent a SYN and received one.
    SynReceived,
    /// Open both ways.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN is acknowledged.
    FinWait2,
    /// Has received a FIN.
    CloseWait,
    /// Has sent a FIN and received one.
    Closing,
    /// Has received a FIN, and sent one.
    LastAck,
    /// Both FINs are acknowledged; it lingers to answer a repetition.
    TimeWait,
    /// There is no connection.
    Closed,
}

/// What the peer has told about its receive window.
#[derive(Clone, Copy, Debug, Default)]
struct PeerWindow {
    /// How much it takes beyond what it acknowledged, in octets.
    size: u64,
    /// The largest that it has offered.
    largest: u64,
    /// By how many bits it shifts.
    scale: u8,
    /// The positions of the segment that told (SND.WL1, SND.WL2).
    told_at: (u64, u64),
}

/// The timestamps option in use.
#[derive(Clone, Copy, Debug)]
struct Clock {
    tick: Span,
    /// The peer's value to echo, and when it came (TS.Recent).
    recent: u32,
    recent_at: Time,
}

impl Clock {
    const fn value(&self, now: Time) -> u32 {
        (now.as_nanos() / self.tick.as_nanos()) as u32
    }
}

/// A TCP endpoint. It is an [`Engine`]: see its contract for how to drive it.
///
/// It knows streams as offsets and lengths. Its owner keeps the octets: what it [writes](Self::write) until
/// [acknowledged](Self::acknowledged), and what arrives, as [`Event::Store`] says.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    local: SocketAddr,
    remote: Option<SocketAddr>,
    state: State,
    stats: Stats,
    rejects: RejectCounts,
    events: Pending,
    timers: Timers<Timer>,
    /// A segment that says so is to be sent.
    syn_due: bool,
    reset_due: bool,
    /// A reset with this number is to be sent, to a peer that has an old connection.
    refusal: Option<SequenceNumber>,
    challenge_due: bool,
    window_probe_due: bool,
    syn_sent_at: Time,
    /// Timeouts in a row, and probes in a row that nobody answered.
    retries: u32,
    /// Probes since the peer's window closed.
    probes: u32,
    /// Challenges in the second that began then.
    challenged: (Time, u32),

    // The sending direction.
    outgoing: Numbering,
    board: Scoreboard,
    /// Octets that the owner has written.
    written: u64,
    closing: bool,
    buffer_full: bool,
    smss: u64,
    peer: PeerWindow,
    congestion: Congestion,
    estimator: Estimator,
    phase: Phase,
    rack: Rack,
    suspicion: Suspicion,
    /// Duplicate acknowledgments in a row.
    duplicates: u32,
    /// Octets of new data sent since the first of them.
    sent_early: u64,
    /// What was sent last when the last loss was found (RFC 6582's recover).
    recover: u64,
    /// The first lost segment leaves whatever the window says.
    force: bool,
    /// New data that may leave whatever the congestion window says, in octets.
    credit: u64,
    /// RFC 8985's `TLP.end_seq`, and whether the probe repeated something.
    probe: Option<(u64, bool)>,
    probe_due: bool,
    /// Small segments leave too: the window has been too small for long.
    any_size: bool,
    last_sent_at: Time,
    device: Device,

    // The receiving direction.
    incoming: Option<Numbering>,
    reassembly: Reassembly,
    fin_at: Option<u64>,
    consumed: u64,
    acknowledger: Acknowledger,
    clock: Option<Clock>,
    sack: bool,
}

impl Connection {
    /// An active open: the SYN leaves at the first poll.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn connect(
        config: Config,
        local: SocketAddr,
        remote: SocketAddr,
        initial: SequenceNumber,
    ) -> Result<Self, ConfigError> {
        let mut connection = Self::listen(config, local, initial)?;
        connection.remote = Some(remote);
        connection.state = State::SynSent;
        connection.syn_due = true;
        Ok(connection)
    }

    /// A passive open: it takes the first SYN.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn listen(config: Config, local: SocketAddr, initial: SequenceNumber) -> Result<Self, ConfigError> {
        config.check()?;
        let smss = u64::from(config.mss);
        Ok(Self {
            local,
            remote: None,
            state: State::Listen,
            stats: Stats::default(),
            rejects: RejectCounts::default(),
            events: Pending::default(),
            timers: Timers::default(),
            syn_due: false,
            reset_due: false,
            refusal: None,
            challenge_due: false,
            window_probe_due: false,
            syn_sent_at: Time::NEVER,
            retries: 0,
            probes: 0,
            challenged: (Time::ZERO, 0),
            outgoing: Numbering::new(initial),
            board: Scoreboard::new(1, false),
            written: 0,
            closing: false,
            buffer_full: false,
            smss,
            peer: PeerWindow::default(),
            congestion: Congestion::new(&config, smss),
            estimator: Estimator::new(config.rto),
            phase: Phase::Open,
            rack: Rack::default(),
            suspicion: Suspicion::default(),
            duplicates: 0,
            sent_early: 0,
            recover: 0,
            force: false,
            credit: 0,
            probe: None,
            probe_due: false,
            any_size: false,
            last_sent_at: Time::ZERO,
            device: Device::default(),
            incoming: None,
            reassembly: Reassembly::new(1),
            fin_at: None,
            consumed: 0,
            acknowledger: Acknowledger::new(&config),
            clock: None,
            sack: false,
            config,
        })
    }

    /// Appends `octets` to the outgoing stream; how many of them the send buffer took. After fewer,
    /// [`Event::Writable`] tells when there is room. Once closed, it takes none.
    pub fn write(&mut self, octets: u64) -> u64 {
        if self.closing || self.state == State::Closed {
            return 0;
        }
        let room = self.config.send_buffer.saturating_sub(self.written - self.acknowledged());
        let taken = octets.min(room).min(MOST_OCTETS - self.written);
        self.written += taken;
        self.buffer_full |= taken < octets;
        self.device.stir();
        taken
    }

    /// Ends the outgoing stream behind what was written. The peer may go on sending.
    pub fn close(&mut self) {
        if matches!(self.state, State::Listen | State::SynSent) && self.written == 0 {
            self.end();
            self.events.closed = true;
            return;
        }
        self.closing = true;
    }

    /// Ends the connection at once; the peer is told with a reset.
    pub fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        self.reset_due = !matches!(self.state, State::Listen | State::SynSent | State::TimeWait);
        self.fail(Failure::Aborted);
    }

    /// Octets that have arrived in order and are not consumed yet.
    pub const fn readable(&self) -> u64 {
        self.received() - self.consumed
    }

    /// The owner has taken the next `octets` of the peer's stream; at most what is [readable](Self::readable).
    pub fn consume(&mut self, octets: u64) {
        self.consumed += octets.min(self.readable());
        let edge = self.window_edge();
        if self.acknowledger.wants_update(edge, self.reassembly.next()) {
            self.acknowledger.now();
        }
    }

    /// Octets of the outgoing stream that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.board.first() - 1).min(self.written)
    }

    /// Octets of the peer's stream that have arrived in order.
    pub const fn received(&self) -> u64 {
        let next = self.reassembly.next() - 1;
        match self.fin_at {
            Some(fin) if fin - 1 < next => fin - 1,
            _ => next,
        }
    }

    /// Octets that were written so far.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    /// What it has done.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What it has turned down.
    pub const fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    /// The congestion window in octets.
    pub const fn congestion_window(&self) -> u64 {
        self.congestion.window
    }

    /// The slow start threshold in octets; [`u64::MAX`] while there is none.
    pub const fn slow_start_threshold(&self) -> u64 {
        self.congestion.threshold
    }

    /// Octets that are sent and not acknowledged.
    pub const fn in_flight(&self) -> u64 {
        self.board.flight()
    }

    /// The smoothed round-trip time, once it was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.estimator.smoothed()
    }

    /// The retransmission timeout as it stands.
    pub fn retransmission_timeout(&self) -> Span {
        self.estimator.timeout()
    }

    /// The largest payload that it sends, in octets; the peer may ask for less than the settings.
    pub const fn segment_size(&self) -> u64 {
        self.smss
    }

    /// Its own address.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The peer's, once known.
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// Checks what must always hold, and panics if it does not: for tests and fuzzing.
    #[doc(hidden)]
    pub fn check(&self) {
        self.board.check();
        self.reassembly.check();
        assert!(self.congestion.window >= self.smss && self.congestion.threshold >= 2 * self.smss);
        assert!(self.board.next() <= self.data_end() + 1 && self.consumed <= self.received());
    }

    /// The position behind everything that was written, without a FIN.
    const fn data_end(&self) -> u64 {
        1 + self.written
    }

    /// Whether our FIN was sent.
    const fn fin_sent(&self) -> bool {
        self.board.next() > self.data_end()
    }

    /// The connection is over, without a word to the peer.
    fn end(&mut self) {
        self.state = State::Closed;
        self.timers = Timers::default();
        self.syn_due = false;
    }

    fn fail(&mut self, failure: Failure) {
        self.end();
        self.events.failed = Some(failure);
    }
}

/// No stream is longer: positions stay far below 2^63.
const MOST_OCTETS: u64 = 1 << 62;

impl Engine for Connection {
    type Message = Segment;
    type Event = Event;

    fn handle(&mut self, now: Time, from: &Arrival, segment: &Segment) -> Result<(), Reject> {
        self.device.stir();
        let result = self.take(now, from, segment);
        self.rejects.note(result)
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.expire(now) {
            self.device.stir();
            self.time_out(now, timer);
        }
    }

    fn poll_transmit(&mut self, now: Time, _until: Time) -> Option<Transmit<Segment>> {
        let remote = self.remote?;
        let segment = self.next_segment(now)?;
        self.stats.segments_sent += 1;
        Some(Transmit { source: Some(self.local), ..Transmit::new(segment, remote) })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.take()
    }

    fn settled_until(&self) -> Time {
        Time::ZERO // any acknowledgment may alter what leaves
    }
}

impl Connection {
    fn take(&mut self, now: Time, from: &Arrival, segment: &Segment) -> Result<(), Reject> {
        if segment.destination_port != self.local.port() {
            return Err(Reject::OtherSession);
        }
        if self.remote.is_some_and(|r| r.port() != segment.source_port || r.ip() != from.source.ip()) {
            return Err(Reject::OtherSession);
        }
        match self.state {
            State::Closed => Err(Reject::Unexpected),
            State::Listen => self.take_syn(now, from.source, segment),
            State::SynSent => self.take_answer(now, segment),
            _ => self.arrive(now, segment),
        }
    }
}
