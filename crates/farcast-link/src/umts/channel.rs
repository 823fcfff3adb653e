//! One direction of a dedicated channel.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::units::{BitRate, Probability};
use farcast_core::{Span, Time};
use farcast_rlc::format::{Format, HEADER_LEN};
use farcast_rlc::pdu::Pdu;

use super::sdu::Sdu;

/// What an erasure takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErasureUnit {
    /// Everything that an interval carries: the frame of a frame erasure rate.
    #[default]
    Tti,
    /// Each PDU for itself.
    Pdu,
}

/// How much is erased, independently of each other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Erasures {
    /// What each erasure takes.
    pub unit: ErasureUnit,
    /// The share of intervals, or of PDUs.
    pub rate: Probability,
}

/// The settings of one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChannelConfig {
    /// The rate of RLC payload, without RLC's headers: what a bearer is called by (384 kbit/s).
    pub rate: BitRate,
    /// The transmission time interval; UMTS has 10, 20, 40 and 80 ms (TS 25.302).
    pub tti: Span,
    /// What is erased.
    pub erasures: Erasures,
    /// The one-way delay behind an interval.
    pub processing: Span,
}

impl ChannelConfig {
    /// How many PDUs with `payload` octets of RLC payload an interval holds.
    ///
    /// # Errors
    /// [`Misfit`] if it holds none, or too many to count.
    pub(super) fn pdus(&self, payload: u16) -> Result<u16, Misfit> {
        if self.tti.is_zero() {
            return Err(Misfit::Zero);
        }
        let bits = u128::from(self.rate.as_bps()) * u128::from(self.tti.as_nanos()) / 1_000_000_000;
        let needed = 8 * u32::from(payload);
        match u16::try_from(bits / u128::from(needed)) {
            Ok(0) => Err(Misfit::NoPdu { bits: bits as u32, needed }),
            Ok(pdus) => Ok(pdus),
            Err(_) => Err(Misfit::TooManyPdus),
        }
    }
}

/// What is wrong with a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{channel}.tti: {kind}")]
pub struct ChannelError {
    /// Which: `forward` or `return`.
    pub channel: &'static str,
    /// What.
    #[source]
    pub kind: Misfit,
}

/// Why a transmission time interval does not fit the PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// It has no length.
    #[error("it is 0; UMTS has 10, 20, 40 and 80 ms")]
    Zero,
    /// It holds no PDU.
    #[error("it holds no PDU: it carries {bits} bits, and a PDU has {needed} of data")]
    NoPdu {
        /// Bits of RLC payload in an interval.
        bits: u32,
        /// Bits of RLC payload in a PDU.
        needed: u32,
    },
    /// It holds more than 65,535 PDUs.
    #[error("it holds more than 65,535 PDUs")]
    TooManyPdus,
}

/// What a channel has carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelCounters {
    /// Intervals with at least one PDU.
    pub intervals: u64,
    /// Of these, those that were erased.
    pub erased_intervals: u64,
    /// PDUs that were sent.
    pub pdus: u64,
    /// Of these, those that were erased.
    pub erased_pdus: u64,
    /// Of the others, those that had no encoding, or that were not what they had been when they were decoded: there should
    /// be none. They are lost.
    pub codec_faults: u64,
}

/// What one interval has carried, on its way.
#[derive(Clone, Debug)]
pub(super) struct Interval<P: Sdu> {
    /// When it arrives.
    at: Time,
    /// PDUs that were sent in it.
    pub(super) sent: u16,
    /// Those that were not erased.
    pdus: Vec<Pdu<P>>,
    /// Their octets.
    coded: P::Coded,
}

/// A channel as it stands. Its intervals begin at multiples of the TTI.
#[derive(Clone, Debug)]
pub(super) struct Channel<P: Sdu> {
    config: ChannelConfig,
    /// The PDUs that it carries.
    format: Format,
    /// PDUs that fit an interval.
    capacity: u16,
    /// The number of the first interval that has not begun.
    next: u64,
    stream: RandomStream,
    under_way: VecDeque<Interval<P>>,
    /// Emptied and kept for their room.
    spare: Vec<Interval<P>>,
    counters: ChannelCounters,
}

impl<P: Sdu> Channel<P> {
    pub(super) fn new(config: ChannelConfig, format: Format, stream: RandomStream) -> Result<Self, Misfit> {
        let capacity = config.pdus(format.pdu_octets - HEADER_LEN)?;
        Ok(Self {
            config,
            format,
            capacity,
            next: 0,
            stream,
            under_way: VecDeque::new(),
            spare: Vec::new(),
            counters: ChannelCounters::default(),
        })
    }

    pub(super) const fn counters(&self) -> &ChannelCounters {
        &self.counters
    }

    pub(super) const fn tti(&self) -> Span {
        self.config.tti
    }

    /// When the first interval begins that has not yet, at `now` or later.
    pub(super) fn next_interval(&self, now: Time) -> Time {
        let tti = self.config.tti.as_nanos();
        let number = self.next.max(now.as_nanos().div_ceil(tti));
        Time::from_nanos(number.saturating_mul(tti))
    }

    /// Sends an interval that begins at `now` with what `poll` gives.
    pub(super) fn send(&mut self, now: Time, mut poll: impl FnMut() -> Option<Pdu<P>>) {
        self.next = now.as_nanos() / self.config.tti.as_nanos() + 1;
        let Erasures { unit, rate } = self.config.erasures;
        let mut interval = self.spare.pop().unwrap_or_default();
        let mut sent = 0;
        let mut spared = 0;
        // Drawn when an interval has something to carry: an idle one loses nothing.
        let mut interval_erased = None;
        while sent < self.capacity
            && let Some(pdu) = poll()
        {
            sent += 1;
            let erased = match unit {
                ErasureUnit::Pdu => self.stream.chance(rate.get()),
                ErasureUnit::Tti => *interval_erased.get_or_insert_with(|| self.stream.chance(rate.get())),
            };
            if erased {
                self.counters.erased_pdus += 1;
                continue;
            }
            spared += 1;
            if P::encode(&pdu, self.format, &mut interval.coded) {
                interval.pdus.push(pdu);
            } else {
                self.counters.codec_faults += 1;
            }
        }
        if sent == 0 {
            self.spare.push(interval);
            return;
        }
        self.counters.intervals += 1;
        self.counters.pdus += u64::from(sent);
        self.counters.erased_intervals += u64::from(spared == 0);
        interval.at = now + self.config.tti + self.config.processing;
        interval.sent = sent;
        self.under_way.push_back(interval);
    }

    /// When the next interval arrives.
    pub(super) fn next_arrival(&self) -> Time {
        self.under_way.front().map_or(Time::NEVER, |interval| interval.at)
    }

    /// The interval that arrives at `now`.
    pub(super) fn arrive(&mut self, now: Time) -> Option<Interval<P>> {
        self.under_way.pop_front_if(|interval| interval.at <= now)
    }

    /// Unpacks an interval that has arrived: `each` is given its PDUs.
    pub(super) fn unpack(&mut self, mut interval: Interval<P>, mut each: impl FnMut(Pdu<P>)) {
        for (index, sent) in interval.pdus.drain(..).enumerate() {
            match P::decode(sent, self.format, &interval.coded, index) {
                Some(pdu) => each(pdu),
                None => self.counters.codec_faults += 1,
            }
        }
        P::clear(&mut interval.coded);
        self.spare.push(interval);
    }
}

impl<P: Sdu> Default for Interval<P> {
    fn default() -> Self {
        Self { at: Time::ZERO, sent: 0, pdus: Vec::new(), coded: P::Coded::default() }
    }
}
