//! One direction of a serial line in virtual time.

use alloc::boxed::Box;
use core::ops::Range;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_ppp::{EchoConfig, FrameLength, Framing, echo};

use super::damage::Damage;
use super::error::PppError;
use super::errors::{Exposure, LineErrors};
use crate::outage::{OutagePhase, Schedule};
use crate::pipe::{QueueLimit, WaitingFrames};

/// The most octets of a packet: the largest value of a Maximum-Receive-Unit (RFC 1661 §6.1).
const LONGEST_PACKET: u64 = u16::MAX as u64;

/// The settings of a [`SerialLine`].
#[derive(Clone, PartialEq, Debug)]
pub struct LineConfig {
    /// The rate of bits on the line, start and stop bits included.
    pub rate: BitRate,
    /// The bits that an octet takes: 8 on a synchronous line, 10 with start and stop bit (8N1); 8 to 12.
    pub octet_bits: u8,
    /// The one-way delay from the end of sending to the arrival.
    pub delay: Span,
    /// The framing of packets.
    pub framing: Framing,
    /// Idle time after which a frame begins with a flag of its own. After a shorter time, the flag that ended the frame
    /// before serves. Linux's asynchronous PPP uses 1 s (`flag_time`, there from the start of the frame before).
    pub flag_after: Span,
    /// The cause of bit errors.
    pub errors: LineErrors,
    /// The limit of the packets that wait or are being sent. Octets are those of information: a packet that waits is
    /// not yet framed.
    pub queue: QueueLimit,
    /// The times at which the sending end is cut off. Octets that it sends then are lost. It does not notice, for there
    /// are no handshake lines.
    pub cut_offs: Schedule,
}

impl LineConfig {
    /// Creates the settings of a good asynchronous line of this rate: 8N1, no delay, no errors, no limit, flags as
    /// Linux puts them.
    pub fn new(rate: BitRate) -> Self {
        Self {
            rate,
            octet_bits: 10,
            delay: Span::ZERO,
            framing: Framing::default(),
            flag_after: Span::from_secs(1),
            errors: LineErrors::None,
            queue: QueueLimit::Unbounded,
            cut_offs: Schedule::default(),
        }
    }

    /// Checks the conditions that the types do not express.
    ///
    /// # Errors
    /// [`PppError::OctetBits`], [`PppError::ZeroQueue`], or the error of [`LineErrors::check`].
    pub const fn check(&self) -> Result<(), PppError> {
        if self.octet_bits < 8 || self.octet_bits > 12 {
            return Err(PppError::OctetBits(self.octet_bits));
        }
        if matches!(self.queue, QueueLimit::Packets(0) | QueueLimit::Octets(0)) {
            return Err(PppError::ZeroQueue);
        }
        self.errors.check()
    }

    /// Returns the bit rate of octets of 8 bits on the line, framing included; rounded down, `None` below 1 bit/s.
    pub const fn capacity(&self) -> Option<BitRate> {
        packet_rate(self.rate, self.octet_bits)
    }

    /// Returns the longest time that an Echo-Request and an Echo-Reply take on the line.
    pub(super) fn echo_time(&self) -> Span {
        self.time_of(echo::exchange_octets(&self.framing))
    }

    /// Returns the lowest rate at which a request and a reply take no longer than the time between two requests.
    pub(super) fn least_rate(&self, echo: EchoConfig) -> Option<BitRate> {
        let octets = echo::exchange_octets(&self.framing);
        let bits = u128::from(octets) * u128::from(self.octet_bits) * 1_000_000_000;
        let least = bits.div_ceil(u128::from(echo.interval.as_nanos().max(1)));
        BitRate::from_bps(u64::try_from(least).unwrap_or(u64::MAX))
    }

    /// Returns the time that `octets` take, rounded up to the nanosecond.
    pub fn time_of(&self, octets: u64) -> Span {
        self.rate.time_of_bits(octets.saturating_mul(u64::from(self.octet_bits)))
    }

    /// Returns the number of whole octets that fit `span`.
    fn octets_in(&self, span: Span) -> u64 {
        let bits = u128::from(span.as_nanos()) * u128::from(self.rate.as_bps()) / 1_000_000_000;
        u64::try_from(bits / u128::from(self.octet_bits)).unwrap_or(u64::MAX)
    }
}

/// The packet that a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Information<'a> {
    /// The packet's octets; escapes are counted.
    Octets(&'a [u8]),
    /// A number of octets. Escapes are drawn as for random octets, except in the header, which is known.
    Length(u64),
}

impl Information<'_> {
    /// Returns the number of octets.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Octets(octets) => octets.len() as u64,
            Self::Length(length) => *length,
        }
    }

    /// Returns `true` if there are no octets.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFate {
    /// The packet found the queue full, or is longer than 65,535 octets.
    Dropped,
    /// The packet is sent in a frame.
    Frame {
        /// Time at which the last bit of its closing flag leaves.
        departs: Time,
        /// Time at which that bit arrives.
        arrives: Time,
        /// `true` if the receiver takes the frame.
        intact: bool,
    },
}

/// Counters of a [`SerialLine`]. Every frame that was sent and lost counts once, as cut off or as corrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCounters {
    /// Frames that were or will be sent, lost ones included.
    pub sent: u64,
    /// Packets of more than 65,535 octets.
    pub too_long: u64,
    /// Packets that found the queue full.
    pub queue_dropped: u64,
    /// Frames lost to a bit error in them or in a flag that they share, or because a cut-off left a part of another
    /// frame before them without its end.
    pub corrupted: u64,
    /// Frames with octets that met a cut-off.
    pub cut_off: u64,
    /// Octets that were sent as two.
    pub escapes: u64,
    /// All octets that were sent: headers, escapes and flags included.
    pub octets: u64,
    /// The time that sending took.
    pub busy: Span,
}

/// One direction of a serial line. It takes packets in order of time and returns the fate of each at once.
///
/// A frame is lost if any of its octets is in error or cut off: the check sequence finds this. The flag between two
/// frames belongs to both. The remains of two frames at a cut-off are never taken for one frame, although they may fit
/// together. They fit if the closing flag is all that was cut off and the next frame has a leading one, or if the
/// octets cut off from one are the same as the octets that remain of the other.
#[derive(Clone, Debug)]
pub struct SerialLine {
    config: LineConfig,
    exposure: Exposure,
    escapes: RandomStream,
    /// Time at which every packet that entered has been sent.
    free: Time,
    /// `true` once a frame was sent.
    begun: bool,
    /// `true` while the receiver holds octets that no flag has ended yet, as it does before the first flag.
    ragged: bool,
    /// `true` if the receiver has met a damaged frame since the last question.
    heard_damage: bool,
    /// Arrival of the last frame; no later frame arrives before it.
    latest: Time,
    /// Packets that wait or are being sent; kept only if there is a limit.
    waiting: WaitingFrames,
    /// Damage to the last frame, if it is noted.
    damage: Option<Box<Damage>>,
    counters: LineCounters,
}

/// Result of sending octets in a row.
#[derive(Clone, Copy)]
struct LinePassage {
    /// Octets that were sent while the line was not cut off.
    passed: u64,
    /// `true` if these are all octets of the row.
    whole: bool,
    /// `true` if one of them was in error.
    hit: bool,
}

impl LinePassage {
    const fn is_clean(self) -> bool {
        self.whole && !self.hit
    }
}

impl SerialLine {
    /// Creates a line with these settings. Escapes, errors and the start of a vector are drawn from `stream`.
    ///
    /// # Errors
    /// The error of [`LineConfig::check`].
    pub fn new(mut config: LineConfig, mut stream: RandomStream) -> Result<Self, PppError> {
        config.check()?;
        // Separate streams: a change of errors does not change the escapes.
        let mut part = |label| RandomStream::derive(stream.bits(), &[label]);
        let (escapes, errors) = (part(0), part(1));
        let exposure = Exposure::new(core::mem::take(&mut config.errors), errors);
        Ok(Self {
            config,
            exposure,
            escapes,
            free: Time::ZERO,
            begun: false,
            ragged: true,
            heard_damage: false,
            latest: Time::ZERO,
            waiting: WaitingFrames::default(),
            damage: None,
            counters: LineCounters::default(),
        })
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &LineCounters {
        &self.counters
    }

    /// Returns the time at which every packet that entered so far has been sent.
    pub const fn free(&self) -> Time {
        self.free
    }

    /// Returns the settings.
    pub(super) const fn config(&self) -> &LineConfig {
        &self.config
    }

    /// Sends packets that enter from now on at `rate`.
    pub(super) const fn set_rate(&mut self, rate: BitRate) {
        self.config.rate = rate;
    }

    /// Delays packets that enter from now on by `delay`. A frame that would overtake an earlier one arrives together
    /// with it.
    pub(super) const fn set_delay(&mut self, delay: Span) {
        self.config.delay = delay;
    }

    /// Sets the limit for packets that enter from now on, where there has been one; packets that wait stay.
    pub(super) const fn set_queue(&mut self, queue: QueueLimit) {
        self.config.queue = queue;
    }

    /// Notes the damage to each frame from now on.
    pub(super) fn note_damage(&mut self) {
        self.damage.get_or_insert_default();
    }

    /// Returns the damage to the octets of the last frame, if it is noted.
    pub(super) fn damage(&self) -> Option<&Damage> {
        self.damage.as_deref()
    }

    /// Returns the framing of packets.
    pub(super) const fn framing(&self) -> Framing {
        self.config.framing
    }

    /// Returns `true` if the receiver stands between two frames: the last octet that it took was a flag.
    pub(super) const fn is_aligned(&self) -> bool {
        !self.ragged
    }

    /// Returns `true` if the receiver has met a damaged frame since the last call, so that it knows of a loss. It does
    /// not learn of a frame of which no octet arrives.
    pub(super) const fn take_heard_damage(&mut self) -> bool {
        core::mem::replace(&mut self.heard_damage, false)
    }

    /// Sends a packet that enters at `now`.
    pub fn send(&mut self, now: Time, protocol: u16, information: Information<'_>) -> PacketFate {
        if self.admits(now, information.len()) {
            self.transmit(now, protocol, information, information.len())
        } else {
            PacketFate::Dropped
        }
    }

    /// Returns `true` if a packet of `octets` octets that enters at `now` is taken, to be
    /// [transmitted](Self::transmit). A packet that is not taken is counted.
    pub(super) fn admits(&mut self, now: Time, octets: u64) -> bool {
        let too_long = octets > LONGEST_PACKET;
        let full = !too_long && !self.has_room(now, octets);
        self.counters.too_long += u64::from(too_long);
        self.counters.queue_dropped += u64::from(full);
        !too_long && !full
    }

    /// Sends a packet that was admitted at `now` and takes the room of `waiting` octets until it is sent.
    pub(super) fn transmit(
        &mut self,
        now: Time,
        protocol: u16,
        information: Information<'_>,
        waiting: u64,
    ) -> PacketFate {
        let FrameLength { octets, escapes } = self.measure(protocol, information);
        let start = now.max(self.free);
        let leading = !self.begun || start.since(self.free) >= self.config.flag_after;
        let begins = u64::from(leading);
        let ends = begins + octets + escapes;
        let total = ends + 1;
        let departs = start + self.config.time_of(total);

        if let Some(damage) = &mut self.damage {
            damage.begin(leading);
        }
        let flag = leading.then(|| self.pass(start, 0..1));
        let body = self.pass(start, begins..ends);
        let closing = self.pass(start, ends..total);
        let intact = self.receive(flag, body, closing);

        self.counters.escapes += escapes;
        self.counters.octets += total;
        self.counters.busy = self.counters.busy + departs.since(start);
        (self.free, self.begun) = (departs, true);
        self.latest = self.latest.max(departs + self.config.delay);
        self.remember(departs, waiting);
        PacketFate::Frame { departs, arrives: self.latest, intact }
    }

    /// Returns the length of the frame.
    fn measure(&mut self, protocol: u16, information: Information<'_>) -> FrameLength {
        let framing = self.config.framing;
        match information {
            Information::Octets(octets) => framing.measure(protocol, octets),
            Information::Length(length) => {
                let header = framing.header(protocol);
                let random = length.saturating_add(framing.fcs.octets());
                let escapes = framing.escapes(random, &mut self.escapes);
                let octets = framing.frame_octets(protocol, length);
                FrameLength { octets, escapes: framing.count_escapes(&header) + escapes }
            }
        }
    }

    /// Lets the octets of a frame that begins at `start` pass.
    fn pass(&mut self, start: Time, octets: Range<u64>) -> LinePassage {
        let count = octets.end - octets.start;
        let passed = count - self.cut_off(start, octets);
        let error = self.exposure.pass(passed);
        if let Some(damage) = &mut self.damage {
            damage.pass(passed, error);
        }
        LinePassage { passed, whole: passed == count, hit: error.is_some() }
    }

    /// Returns the number of these octets that are sent, in part or whole, during a cut-off.
    fn cut_off(&mut self, start: Time, octets: Range<u64>) -> u64 {
        let begin = |octet| start + self.config.time_of(octet);
        let end = begin(octets.end);
        let (mut next, mut lost) = (octets.start, 0);
        while next < octets.end {
            // The first octet that belongs to the next phase.
            let behind = match self.config.cut_offs.at(begin(next)) {
                OutagePhase::Clear { until } if until >= end => break,
                OutagePhase::Outage { until } if until >= end => octets.end,
                // The octet that is being sent when the cut-off begins is lost; the octets before it pass.
                OutagePhase::Clear { until } => {
                    next = self.config.octets_in(until.since(start)).max(next);
                    next + 1
                }
                // The first octet that begins after the end of the cut-off.
                OutagePhase::Outage { until } => {
                    let within = until.since(start).saturating_sub(Span::from_nanos(1));
                    self.config.octets_in(within).saturating_add(1).clamp(next + 1, octets.end)
                }
            };
            lost += behind - next;
            if let Some(damage) = &mut self.damage {
                damage.cut(next..behind);
            }
            next = behind;
        }
        lost
    }

    /// Returns `true` if the receiver takes the frame that was sent in these parts.
    fn receive(&mut self, flag: Option<LinePassage>, body: LinePassage, closing: LinePassage) -> bool {
        if let Some(flag) = flag {
            self.heard_damage |= self.ragged && flag.is_clean();
            self.receive_flag(flag);
        }
        let content = !self.ragged && body.is_clean();
        let intact = content && closing.is_clean();
        self.ragged |= body.passed > 0;
        self.heard_damage |= !intact && self.ragged && closing.is_clean();
        self.receive_flag(closing);
        let whole = body.whole && closing.whole && flag.is_none_or(|flag| flag.whole);
        self.counters.sent += 1;
        self.counters.corrupted += u64::from(!intact && whole);
        self.counters.cut_off += u64::from(!intact && !whole);
        intact
    }

    /// Takes a flag, which ends the octets before it. A flag in error is content, and a flag that was cut off is
    /// nothing.
    const fn receive_flag(&mut self, flag: LinePassage) {
        if flag.whole {
            self.ragged = flag.hit;
        }
    }

    /// Returns `true` if there is room for a packet of `octets` octets to wait or be sent.
    pub(super) fn has_room(&mut self, now: Time, octets: u64) -> bool {
        self.waiting.settle(now);
        self.config.queue.room(self.waiting.total(), weight(octets)) > 0
    }

    fn remember(&mut self, departs: Time, octets: u64) {
        if self.config.queue.is_limit() {
            self.waiting.push_one(departs, weight(octets));
        }
    }
}

/// Returns the bit rate of octets of 8 bits on a line of `rate` with `octet_bits` bits an octet; rounded down, `None`
/// below 1 bit/s.
pub(crate) const fn packet_rate(rate: BitRate, octet_bits: u8) -> Option<BitRate> {
    let bits = if octet_bits < 8 { 8 } else { octet_bits };
    // The result is at most the rate, which fits.
    BitRate::from_bps((rate.as_bps() as u128 * 8 / bits as u128) as u64)
}

/// Returns the octets that a packet counts in a queue with a limit in octets: even an empty one takes room.
const fn weight(octets: u64) -> u64 {
    if octets == 0 { 1 } else { octets }
}
