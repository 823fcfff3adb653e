//! One direction of a dedicated channel.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::stage::{NotSettable, Setting, Settings};
use farcast_core::units::{BitRate, Probability};
use farcast_core::{Span, Time};
use farcast_rlc::format::{Format, HEADER_LEN};
use farcast_rlc::pdu::Pdu;

use super::sdu::Sdu;
use crate::pipe::QueueLimit;

/// Unit of an erasure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErasureUnit {
    /// All PDUs of an interval: the frame of a frame erasure rate.
    #[default]
    Tti,
    /// Each PDU for itself.
    Pdu,
}

/// Erasures, independent of each other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Erasures {
    /// The unit of each erasure.
    pub unit: ErasureUnit,
    /// The share of intervals, or of PDUs, that is erased.
    pub rate: Probability,
}

/// The settings of one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChannelConfig {
    /// The rate of RLC payload, without RLC's headers; bearers are named by it (384 kbit/s).
    pub rate: BitRate,
    /// The transmission time interval; UMTS has 10, 20, 40 and 80 ms (TS 25.302).
    pub tti: Span,
    /// The erasures.
    pub erasures: Erasures,
    /// The one-way delay from the end of an interval to its arrival.
    pub processing: Span,
    /// The limit of the SDUs that wait to be sent for the first time, as a number of SDUs or of their octets. An SDU
    /// that would exceed it is dropped. An SDU that is being sent counts with the octets that are left; as an SDU it
    /// counts until none is left.
    pub queue: QueueLimit,
}

impl ChannelConfig {
    /// Returns the bit rate of RLC payload in whole PDUs of `payload` octets of it, rounded down; `None` below 1 bit/s.
    pub(super) fn capacity(&self, payload: u16) -> Option<BitRate> {
        let pdus = if payload == 0 { None } else { self.pdus(payload).ok() };
        let bits = u128::from(pdus?) * 8 * u128::from(payload) * 1_000_000_000;
        let rate = bits / u128::from(self.tti.as_nanos());
        BitRate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Returns the bit rate of RLC payload of `pdus` PDUs in an interval, rounded up, so that they fit.
    fn rate_of(&self, pdus: u16, payload: u16) -> Option<BitRate> {
        let bits = u128::from(pdus) * 8 * u128::from(payload) * 1_000_000_000;
        let rate = bits.div_ceil(u128::from(self.tti.as_nanos()));
        BitRate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Checks that a setting may change. A rate must be that of a whole number of PDUs in an interval, to the bit/s.
    fn may_set(&self, setting: Setting, payload: u16) -> Result<(), NotSettable> {
        match setting {
            Setting::Rate(rate) => {
                let needed = 8 * u128::from(payload) * 1_000_000_000;
                let fits = u128::from(rate.as_bps()) * u128::from(self.tti.as_nanos()) / needed.max(1);
                let pdus = u16::try_from(fits).unwrap_or(u16::MAX);
                let below = self.rate_of(pdus, payload);
                if below == Some(rate) {
                    return Ok(());
                }
                let above = pdus.checked_add(1).and_then(|more| self.rate_of(more, payload));
                Err(NotSettable::NotWholeUnits { below, above })
            }
            Setting::Delay(_) => Ok(()),
            Setting::Queue(_) if self.queue.is_limit() => Ok(()),
            other => Err(NotSettable::Absent(other.name())),
        }
    }

    /// Changes a setting that may change.
    pub(super) fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Rate(rate) => self.rate = rate,
            Setting::Delay(delay) => self.processing = delay,
            Setting::Queue(octets) => self.queue = QueueLimit::Octets(octets.get()),
            _ => {}
        }
    }

    /// Returns the number of PDUs with `payload` octets of RLC payload that an interval holds.
    ///
    /// # Errors
    /// [`Misfit`] if the interval holds none, or too many to count.
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

/// Error in the settings of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{channel}.tti: {kind}")]
pub struct ChannelError {
    /// Name of the channel: `forward` or `return`.
    pub channel: &'static str,
    /// Kind of the error.
    #[source]
    pub kind: Misfit,
}

/// Reason for which a transmission time interval does not fit the PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// The interval has no length.
    #[error("it is 0; UMTS has 10, 20, 40 and 80 ms")]
    Zero,
    /// The interval holds no PDU.
    #[error("it holds no PDU: it carries {bits} bits, and a PDU has {needed} of data")]
    NoPdu {
        /// Bits of RLC payload in an interval.
        bits: u32,
        /// Bits of RLC payload in a PDU.
        needed: u32,
    },
    /// The interval holds more than 65,535 PDUs.
    #[error("it holds more than 65,535 PDUs")]
    TooManyPdus,
}

/// Counters of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelCounters {
    /// Intervals with at least one PDU.
    pub intervals: u64,
    /// Erased intervals among these: no PDU of them was spared.
    pub erased_intervals: u64,
    /// PDUs that were sent.
    pub pdus: u64,
    /// Erased PDUs among these.
    pub erased_pdus: u64,
    /// Other PDUs that had no encoding, or did not fit the PDU sent when they were decoded. There should be none. They
    /// are lost.
    pub codec_faults: u64,
}

/// Content of one interval on its way.
#[derive(Clone, Debug)]
pub(super) struct ChannelInterval<P: Sdu> {
    /// Arrival of the interval.
    at: Time,
    /// PDUs that were sent in it.
    pub(super) sent: u16,
    /// PDUs that were not erased.
    pdus: Vec<Pdu<P>>,
    /// Their octets.
    coded: P::Coded,
}

/// A channel and its state. Its intervals begin at multiples of the TTI.
#[derive(Clone, Debug)]
pub(super) struct UmtsChannel<P: Sdu> {
    config: ChannelConfig,
    /// Format of the PDUs on the channel.
    format: Format,
    /// PDUs that fit an interval.
    capacity: u16,
    /// The number of the first interval that has not begun.
    next: u64,
    stream: RandomStream,
    under_way: VecDeque<ChannelInterval<P>>,
    /// Emptied intervals, kept to reuse their memory.
    spare: Vec<ChannelInterval<P>>,
    counters: ChannelCounters,
}

impl<P: Sdu> UmtsChannel<P> {
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

    /// Returns the octets of data in a PDU.
    const fn payload(&self) -> u16 {
        self.format.pdu_octets - HEADER_LEN
    }

    /// Returns the settings; the rate is that of the PDUs which fit an interval.
    pub(super) fn settings(&self) -> Settings {
        let ChannelConfig { processing, queue, .. } = self.config;
        let rate = self.config.rate_of(self.capacity, self.payload());
        Settings { rate, delay: Some(processing), queue: queue.octets() }
    }

    pub(super) fn may_set(&self, setting: Setting) -> Result<(), NotSettable> {
        self.config.may_set(setting, self.payload())
    }

    /// Changes a setting that may change, for the intervals that begin from now on.
    pub(super) fn set(&mut self, setting: Setting) {
        self.config.set(setting);
        // A rate that may be set is one that fits.
        self.capacity = self.config.pdus(self.payload()).unwrap_or(self.capacity);
    }

    /// Returns the start of the first interval that has not begun yet, at `now` or later.
    pub(super) fn next_interval(&self, now: Time) -> Time {
        let tti = self.config.tti.as_nanos();
        let number = self.next.max(now.as_nanos().div_ceil(tti));
        Time::from_nanos(number.saturating_mul(tti))
    }

    /// Sends an interval that begins at `now`, with the PDUs that `poll` returns.
    pub(super) fn send(&mut self, now: Time, mut poll: impl FnMut() -> Option<Pdu<P>>) {
        self.next = now.as_nanos() / self.config.tti.as_nanos() + 1;
        let Erasures { unit, rate } = self.config.erasures;
        let mut interval = self.spare.pop().unwrap_or_default();
        let mut sent = 0;
        let mut spared = 0;
        // Drawn only once an interval has something to carry: an idle one loses nothing.
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
        // Where the processing has become shorter, an interval arrives no earlier than the one before.
        let last = self.under_way.back().map_or(Time::ZERO, |last| last.at);
        interval.at = last.max(now + self.config.tti + self.config.processing);
        interval.sent = sent;
        self.under_way.push_back(interval);
    }

    /// Returns the arrival of the next interval.
    pub(super) fn next_arrival(&self) -> Time {
        self.under_way.front().map_or(Time::NEVER, |interval| interval.at)
    }

    /// Returns an interval that has arrived by `now`, if there is one.
    pub(super) fn arrive(&mut self, now: Time) -> Option<ChannelInterval<P>> {
        self.under_way.pop_front_if(|interval| interval.at <= now)
    }

    /// Unpacks an interval that has arrived, and gives its PDUs to `each`.
    pub(super) fn unpack(&mut self, mut interval: ChannelInterval<P>, mut each: impl FnMut(Pdu<P>)) {
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

impl<P: Sdu> Default for ChannelInterval<P> {
    fn default() -> Self {
        Self { at: Time::ZERO, sent: 0, pdus: Vec::new(), coded: P::Coded::default() }
    }
}
