//! One direction of a serial line in virtual time.

use alloc::boxed::Box;
use core::ops::Range;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_ppp::{EchoConfig, FrameLength, Framing, echo};

use super::damage::Damage;
use super::error::PppError;
use super::errors::{Exposure, LineErrors};
use crate::outage::{Phase, Schedule};
use crate::pipe::{QueueLimit, Waiting};

/// The most octets of a packet: what a Maximum-Receive-Unit can say (RFC 1661 §6.1).
const LONGEST_PACKET: u64 = u16::MAX as u64;

/// The settings of a [`Line`].
#[derive(Clone, PartialEq, Debug)]
pub struct LineConfig {
    /// The rate of bits on the line, start and stop bits included.
    pub rate: BitRate,
    /// The bits that an octet takes: 8 on a synchronous line, 10 with start and stop bit (8N1); 8 to 12.
    pub octet_bits: u8,
    /// The one-way delay behind the end of sending.
    pub delay: Span,
    /// How frames are made.
    pub framing: Framing,
    /// A frame begins with a flag of its own if the line has been idle for so long, else with the flag that ended the
    /// frame before it. Linux's asynchronous PPP does so after 1 s (`flag_time`, there from the start of the frame
    /// before).
    pub flag_after: Span,
    /// What damages octets.
    pub errors: LineErrors,
    /// What may wait or be sent at once. Octets are those of information: what waits is not yet framed.
    pub queue: QueueLimit,
    /// When the sending end is cut off. What it sends then is lost; it notices nothing, for there are no handshake
    /// lines.
    pub cut_offs: Schedule,
}

impl LineConfig {
    /// A good asynchronous line of this rate: 8N1, no delay, no errors, no limit, flags as Linux puts them.
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

    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`PppError::OctetBits`], [`PppError::ZeroQueue`], or what [`LineErrors::check`] refuses.
    pub const fn check(&self) -> Result<(), PppError> {
        if self.octet_bits < 8 || self.octet_bits > 12 {
            return Err(PppError::OctetBits(self.octet_bits));
        }
        if matches!(self.queue, QueueLimit::Packets(0) | QueueLimit::Octets(0)) {
            return Err(PppError::ZeroQueue);
        }
        self.errors.check()
    }

    /// The bit rate at which it carries octets of 8 bits, frames' own included; rounded down, `None` below 1 bit/s.
    pub const fn capacity(&self) -> Option<BitRate> {
        packet_rate(self.rate, self.octet_bits)
    }

    /// The most time that an Echo-Request and an Echo-Reply take of it.
    pub(super) fn echo_time(&self) -> Span {
        self.time_of(echo::exchange_octets(&self.framing))
    }

    /// The lowest rate at which they take no more of it than the time between two requests.
    pub(super) fn least_rate(&self, echo: EchoConfig) -> Option<BitRate> {
        let octets = echo::exchange_octets(&self.framing);
        let bits = u128::from(octets) * u128::from(self.octet_bits) * 1_000_000_000;
        let least = bits.div_ceil(u128::from(echo.interval.as_nanos().max(1)));
        BitRate::from_bps(u64::try_from(least).unwrap_or(u64::MAX))
    }

    /// How long `octets` take, rounded up to the nanosecond.
    pub fn time_of(&self, octets: u64) -> Span {
        self.rate.time_of_bits(octets.saturating_mul(u64::from(self.octet_bits)))
    }

    /// How many whole octets `span` holds.
    fn octets_in(&self, span: Span) -> u64 {
        let bits = u128::from(span.as_nanos()) * u128::from(self.rate.as_bps()) / 1_000_000_000;
        u64::try_from(bits / u128::from(self.octet_bits)).unwrap_or(u64::MAX)
    }
}

/// The packet that a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Information<'a> {
    /// Its octets; escapes are counted.
    Octets(&'a [u8]),
    /// How many octets; escapes are drawn as for random octets, but for the header's, which is known.
    Length(u64),
}

impl Information<'_> {
    /// How many octets.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Octets(octets) => octets.len() as u64,
            Self::Length(length) => *length,
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It found the queue full, or is longer than 65,535 octets.
    Dropped,
    /// It is sent.
    Frame {
        /// When the last bit of its closing flag leaves.
        departs: Time,
        /// When that bit arrives.
        arrives: Time,
        /// Whether the receiver takes the frame.
        intact: bool,
    },
}

/// What a [`Line`] has done. Every frame that was sent and lost counts once, as cut off or as corrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCounters {
    /// Frames that were or will be sent, those that are lost included.
    pub sent: u64,
    /// Packets of more than 65,535 octets.
    pub too_long: u64,
    /// Packets that found the queue full.
    pub queue_dropped: u64,
    /// Frames with a bit error in them or in a flag that they share, or behind a part of another frame, which a cut-off
    /// has left without its end.
    pub corrupted: u64,
    /// Frames of which octets met a cut-off.
    pub cut_off: u64,
    /// Octets that were sent as two.
    pub escapes: u64,
    /// All octets that were sent: headers, escapes and flags included.
    pub octets: u64,
    /// The time that sending took.
    pub busy: Span,
}

/// One direction of a serial line: it is told of packets in order of time and says what becomes of each at once.
///
/// A frame is lost if any of its octets is in error or cut off: the check sequence finds it. The flag between two
/// frames belongs to both. What a cut-off leaves of two frames is never taken for one, although it may fit: if the
/// closing flag is all that was cut off, and the next frame has a leading one, or if the same octets were cut off as
/// remain of the other.
#[derive(Clone, Debug)]
pub struct Line {
    config: LineConfig,
    exposure: Exposure,
    escapes: RandomStream,
    /// When everything that entered has been sent.
    free: Time,
    /// Whether anything was sent.
    begun: bool,
    /// Whether the receiver holds octets of which no flag has told it that they end. Before the first flag it does.
    ragged: bool,
    /// Whether the receiver has met a frame that is none since somebody asked.
    heard_damage: bool,
    /// When the last frame arrives, which the next may not precede.
    latest: Time,
    /// What waits or is being sent; kept only where there is a limit.
    waiting: Waiting,
    /// What befell the last frame, if anybody wants to know.
    damage: Option<Box<Damage>>,
    counters: LineCounters,
}

/// How the octets in a row fared.
#[derive(Clone, Copy)]
struct Passage {
    /// How many were sent while the line was there.
    passed: u64,
    /// Whether that is all of them.
    whole: bool,
    /// Whether one of them was in error.
    hit: bool,
}

impl Passage {
    const fn is_clean(self) -> bool {
        self.whole && !self.hit
    }
}

impl Line {
    /// A line of these settings; escapes, errors and where a vector begins are drawn from `stream`.
    ///
    /// # Errors
    /// What [`LineConfig::check`] refuses.
    pub fn new(mut config: LineConfig, mut stream: RandomStream) -> Result<Self, PppError> {
        config.check()?;
        // Streams of their own: other errors draw no other escapes.
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
            waiting: Waiting::default(),
            damage: None,
            counters: LineCounters::default(),
        })
    }

    /// What it has done so far.
    pub const fn counters(&self) -> &LineCounters {
        &self.counters
    }

    /// When everything that entered so far has been sent.
    pub const fn free(&self) -> Time {
        self.free
    }

    /// Its settings.
    pub(super) const fn config(&self) -> &LineConfig {
        &self.config
    }

    /// Sends at `rate` what enters from now on.
    pub(super) const fn set_rate(&mut self, rate: BitRate) {
        self.config.rate = rate;
    }

    /// Delays by `delay` what enters from now on. What would overtake arrives together with what was sent before.
    pub(super) const fn set_delay(&mut self, delay: Span) {
        self.config.delay = delay;
    }

    /// Judges what enters from now on by `queue`, where there has been a limit; what waits stays.
    pub(super) const fn set_queue(&mut self, queue: QueueLimit) {
        self.config.queue = queue;
    }

    /// Notes from now on what befalls each frame.
    pub(super) fn note_damage(&mut self) {
        self.damage.get_or_insert_default();
    }

    /// What befell the octets of the last frame, if that is noted.
    pub(super) fn damage(&self) -> Option<&Damage> {
        self.damage.as_deref()
    }

    /// How it frames packets.
    pub(super) const fn framing(&self) -> Framing {
        self.config.framing
    }

    /// Whether the receiver stands between two frames: a flag was the last that it took.
    pub(super) const fn is_aligned(&self) -> bool {
        !self.ragged
    }

    /// Whether the receiver has met what is no good frame since this was asked last, so that it can tell that
    /// something was lost. Of a frame of which no octet arrives nobody hears.
    pub(super) const fn take_heard_damage(&mut self) -> bool {
        core::mem::replace(&mut self.heard_damage, false)
    }

    /// Sends a packet that enters at `now`.
    pub fn send(&mut self, now: Time, protocol: u16, information: Information<'_>) -> Sent {
        if self.admits(now, information.len()) {
            self.transmit(now, protocol, information, information.len())
        } else {
            Sent::Dropped
        }
    }

    /// Whether a packet of so many octets that enters at `now` is taken, to be [transmitted](Self::transmit); one that
    /// is not is counted.
    pub(super) fn admits(&mut self, now: Time, octets: u64) -> bool {
        let too_long = octets > LONGEST_PACKET;
        let full = !too_long && !self.has_room(now, octets);
        self.counters.too_long += u64::from(too_long);
        self.counters.queue_dropped += u64::from(full);
        !too_long && !full
    }

    /// Sends a packet that was admitted at `now`, and that takes the room of `waiting` octets until it is sent.
    pub(super) fn transmit(
        &mut self,
        now: Time,
        protocol: u16,
        information: Information<'_>,
        waiting: u64,
    ) -> Sent {
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
        Sent::Frame { departs, arrives: self.latest, intact }
    }

    /// The length of the frame.
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
    fn pass(&mut self, start: Time, octets: Range<u64>) -> Passage {
        let count = octets.end - octets.start;
        let passed = count - self.cut_off(start, octets);
        let error = self.exposure.pass(passed);
        if let Some(damage) = &mut self.damage {
            damage.pass(passed, error);
        }
        Passage { passed, whole: passed == count, hit: error.is_some() }
    }

    /// How many of these octets are sent, in part or whole, during a cut-off.
    fn cut_off(&mut self, start: Time, octets: Range<u64>) -> u64 {
        let begin = |octet| start + self.config.time_of(octet);
        let end = begin(octets.end);
        let (mut next, mut lost) = (octets.start, 0);
        while next < octets.end {
            // The first octet that this phase leaves to the one after it.
            let behind = match self.config.cut_offs.at(begin(next)) {
                Phase::Clear { until } if until >= end => break,
                Phase::Outage { until } if until >= end => octets.end,
                // The octet that is being sent when the cut-off begins is lost: what passes ends before it.
                Phase::Clear { until } => {
                    next = self.config.octets_in(until.since(start)).max(next);
                    next + 1
                }
                // The first to begin when the cut-off is over.
                Phase::Outage { until } => {
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

    /// Whether the receiver takes the frame that was sent in these parts.
    fn receive(&mut self, flag: Option<Passage>, body: Passage, closing: Passage) -> bool {
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

    /// A flag ends what was before it; one in error is content, and one that was cut off is nothing.
    const fn receive_flag(&mut self, flag: Passage) {
        if flag.whole {
            self.ragged = flag.hit;
        }
    }

    /// Whether a packet of so many octets may wait or be sent at once.
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

/// The bit rate of octets of 8 bits on a line of `rate` on which each takes `octet_bits`; rounded down, `None` below 1
/// bit/s.
pub(crate) const fn packet_rate(rate: BitRate, octet_bits: u8) -> Option<BitRate> {
    let bits = if octet_bits < 8 { 8 } else { octet_bits };
    // No more than the rate, which fits.
    BitRate::from_bps((rate.as_bps() as u128 * 8 / bits as u128) as u64)
}

/// What a packet counts in a queue with a limit in octets: even an empty one takes room.
const fn weight(octets: u64) -> u64 {
    if octets == 0 { 1 } else { octets }
}
