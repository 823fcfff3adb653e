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
use crate::rto::Estimator;
use crate::scoreboard::Scoreboard;
use crate::{Segment, SequenceNumber};

use acknowledging::PeerWindow;
use arriving::Challenges;
use device::Device;
use opening::Agreed;
use rack::Rack;
use receiving::{Acknowledger, Incoming};
use recovery::Repair;
use sending::{DueSegments, OutgoingStream};
use spurious::Suspicion;
use timing::{Timer, Unanswered};

/// State of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN sent and SYN received.
    SynReceived,
    /// Open both ways.
    Established,
    /// FIN sent.
    FinWait1,
    /// FIN sent and acknowledged.
    FinWait2,
    /// FIN received.
    CloseWait,
    /// FIN sent, then FIN received; ours is not acknowledged.
    Closing,
    /// FIN received, then FIN sent.
    LastAck,
    /// Both FINs are acknowledged; the connection lingers to answer a repeated FIN.
    TimeWait,
    /// No connection.
    Closed,
}

/// A TCP endpoint. It is an [`Engine`]: see its contract for how to drive it.
///
/// The connection knows streams as offsets and lengths. Its owner keeps the octets: those that the owner
/// [writes](Self::write), until [acknowledged](Self::acknowledged), and those that arrive, as [`Event::Store`] says.
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
    unanswered: Unanswered,
    challenges: Challenges,
    agreed: Agreed,

    // The sending direction.
    due: DueSegments,
    outgoing: OutgoingStream,
    peer: PeerWindow,
    board: Scoreboard,
    congestion: Congestion,
    estimator: Estimator,
    repair: Repair,
    rack: Rack,
    suspicion: Suspicion,
    device: Device,

    // The receiving direction.
    incoming: Incoming,
    acknowledger: Acknowledger,
}

impl Connection {
    /// Opens a connection actively. The SYN leaves at the first poll.
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
        connection.due.syn = true;
        Ok(connection)
    }

    /// Opens a connection passively. The connection accepts the first SYN.
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
            unanswered: Unanswered::default(),
            challenges: Challenges::default(),
            agreed: Agreed::before(smss),
            due: DueSegments::default(),
            outgoing: OutgoingStream::new(initial),
            peer: PeerWindow::default(),
            board: Scoreboard::new(1, false),
            congestion: Congestion::new(&config, smss),
            estimator: Estimator::new(config.rto),
            repair: Repair::default(),
            rack: Rack::default(),
            suspicion: Suspicion::default(),
            device: Device::default(),
            incoming: Incoming::default(),
            acknowledger: Acknowledger::new(&config),
            config,
        })
    }

    /// Returns the next segment that leaves at `now`, if any. Serves an owner that knows both addresses and so has no
    /// need of [`poll_transmit`](Engine::poll_transmit).
    pub fn poll_segment(&mut self, now: Time) -> Option<Segment> {
        self.remote?;
        let segment = self.next_segment(now)?;
        self.stats.segments_sent += 1;
        Some(segment)
    }

    /// Appends `octets` to the outgoing stream and returns the number that the send buffer took. If it took fewer,
    /// [`Event::Writable`] tells when there is room. A closed stream takes none.
    pub fn write(&mut self, octets: u64) -> u64 {
        if self.outgoing.closing || self.state == State::Closed {
            return 0;
        }
        let room = self.config.send_buffer.saturating_sub(self.outgoing.written - self.acknowledged());
        let taken = octets.min(room).min(MOST_OCTETS - self.outgoing.written);
        self.outgoing.written += taken;
        self.outgoing.buffer_full |= taken < octets;
        self.device.stir();
        taken
    }

    /// Ends the outgoing stream behind the octets written so far. The peer may go on sending.
    pub fn close(&mut self) {
        if matches!(self.state, State::Listen | State::SynSent) && self.outgoing.written == 0 {
            self.end();
            self.events.closed = true;
            return;
        }
        self.outgoing.closing = true;
    }

    /// Ends the connection at once, and sends a reset to the peer.
    pub fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        self.due.reset = !matches!(self.state, State::Listen | State::SynSent | State::TimeWait);
        self.fail(Failure::Aborted);
    }

    /// Returns the number of octets that have arrived in order and are not consumed yet.
    pub const fn readable(&self) -> u64 {
        self.received() - self.incoming.consumed
    }

    /// Notes that the owner has taken the next `octets` of the peer's stream; at most the [readable](Self::readable)
    /// ones.
    pub fn consume(&mut self, octets: u64) {
        self.incoming.consumed += octets.min(self.readable());
        let edge = self.window_edge();
        if self.acknowledger.wants_update(edge, self.incoming.reassembly.next()) {
            self.acknowledger.now();
        }
    }

    /// Returns the number of octets of the outgoing stream that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.board.first() - 1).min(self.outgoing.written)
    }

    /// Returns the number of octets of the peer's stream that have arrived in order.
    pub const fn received(&self) -> u64 {
        let next = self.incoming.reassembly.next() - 1;
        match self.incoming.fin_at {
            Some(fin) if fin - 1 < next => fin - 1,
            _ => next,
        }
    }

    /// Returns the number of octets written so far.
    pub const fn written(&self) -> u64 {
        self.outgoing.written
    }

    /// Returns the state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns counts of segments, octets and events.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns counts of the segments turned down, by reason.
    pub const fn rejects(&self) -> &RejectCounts {
        &self.rejects
    }

    /// Returns the congestion window in octets.
    pub const fn congestion_window(&self) -> u64 {
        self.congestion.window
    }

    /// Returns the slow start threshold in octets; [`u64::MAX`] while there is none.
    pub const fn slow_start_threshold(&self) -> u64 {
        self.congestion.threshold
    }

    /// Returns the number of octets that are sent and not acknowledged.
    pub const fn in_flight(&self) -> u64 {
        self.board.flight()
    }

    /// Returns the smoothed round-trip time, once it was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.estimator.smoothed()
    }

    /// Returns the current retransmission timeout.
    pub fn retransmission_timeout(&self) -> Span {
        self.estimator.timeout()
    }

    /// Returns the largest payload that the connection sends, in octets. The peer may ask for less than the settings.
    pub const fn segment_size(&self) -> u64 {
        self.agreed.smss
    }

    /// Returns the connection's own address.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the peer's address, once known.
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// Checks the invariants, and panics if one does not hold: for tests and fuzzing.
    #[doc(hidden)]
    pub fn check(&self) {
        self.board.check();
        self.incoming.reassembly.check();
        assert!(
            self.congestion.window >= self.agreed.smss && self.congestion.threshold >= 2 * self.agreed.smss
        );
        assert!(self.board.next() <= self.data_end() + 1 && self.incoming.consumed <= self.received());
    }

    /// Returns the position behind everything that was written, without a FIN.
    const fn data_end(&self) -> u64 {
        1 + self.outgoing.written
    }

    /// Returns `true` if our FIN was sent.
    const fn fin_sent(&self) -> bool {
        self.board.next() > self.data_end()
    }

    /// Ends the connection without sending anything to the peer.
    fn end(&mut self) {
        self.state = State::Closed;
        self.timers = Timers::default();
        self.due.syn = false;
    }

    fn fail(&mut self, failure: Failure) {
        self.end();
        self.events.failed = Some(failure);
    }
}

/// Longest stream in octets: positions stay far below 2^63.
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
        let segment = self.poll_segment(now)?;
        let remote = self.remote?;
        Some(Transmit { source: Some(self.local), ..Transmit::new(segment, remote) })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.timers.next()
    }

    #[inline]
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
