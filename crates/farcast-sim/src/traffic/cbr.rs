//! CBR flow: datagrams at a constant rate, optionally with pauses.

use farcast_core::{BitRate, Span, Time};

use super::delays::Delays;
use super::{Counts, Datagram, End, Flow, FlowMessage, FlowReport};

/// Settings of a [`Cbr`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CbrConfig {
    /// End that sends.
    pub source: End,
    /// Rate of the packets with all headers, while the source sends.
    pub rate: BitRate,
    /// Octets of a datagram's payload.
    pub octets: u16,
    /// Octets of a packet besides the payload and the UDP header.
    pub overhead: u16,
    /// Alternation of sending and pausing; without it, the source always sends.
    pub on_off: Option<OnOff>,
}

/// Alternation of a source that sends for some time, then pauses, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnOff {
    /// Duration of sending: packets that are due within it leave. Above zero.
    pub on: Span,
    /// Duration of a pause.
    pub off: Span,
}

impl CbrConfig {
    /// Returns the time from one packet to the next.
    pub fn interval(&self) -> Span {
        let octets = u64::from(self.octets) + u64::from(self.overhead) + Datagram::HEADER_LEN as u64;
        self.rate.time_of_bytes(octets)
    }
}

/// Counters of datagrams at a constant rate. Delays are one-way, of datagrams that arrived, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CbrReport {
    /// Datagrams that left.
    pub sent: u64,
    /// Datagrams that arrived.
    pub received: u64,
    /// Mean delay; `None` if nothing arrived.
    pub delay_mean_s: Option<f64>,
    /// 95 % quantile of the delay, exact to a thousandth.
    pub delay_p95_s: Option<f64>,
    /// Mean absolute difference between the delays of two consecutive arrivals (the packet delay variation of RFC
    /// 3393); `None` if less than two datagrams arrived.
    pub jitter_s: Option<f64>,
}

/// Source and sink of datagrams at a constant rate.
#[derive(Clone, Debug)]
pub struct Cbr {
    config: CbrConfig,
    interval: Span,
    /// Departure time of the next datagram; [`Time::NEVER`] before the start and after the stop.
    next: Time,
    /// Time of the start, which is also the start of a sending period.
    start: Time,
    stopped: bool,
    sent: u64,
    received: u64,
    octets: u64,
    delays: Delays,
    last_delay: Option<Span>,
    /// Sum of the differences of consecutive delays, in nanoseconds.
    variation: u128,
}

impl Cbr {
    /// Makes a flow that has not started.
    pub fn new(config: CbrConfig) -> Self {
        Self {
            interval: config.interval(),
            config,
            next: Time::NEVER,
            start: Time::ZERO,
            stopped: false,
            sent: 0,
            received: 0,
            octets: 0,
            delays: Delays::default(),
            last_delay: None,
            variation: 0,
        }
    }

    /// Moves `next` on to the next departure, or to the end of the pause that it lies in.
    fn advance(&mut self) {
        self.next += self.interval;
        if let Some(OnOff { on, off }) = self.config.on_off {
            let cycle = (on + off).as_nanos();
            let within = Span::from_nanos(self.next.since(self.start).as_nanos() % cycle);
            if within >= on {
                self.next += Span::from_nanos(cycle).saturating_sub(within);
            }
        }
    }
}

impl Flow for Cbr {
    fn start(&mut self, now: Time) {
        (self.next, self.start) = (now, now);
    }

    fn stop(&mut self, _now: Time) {
        (self.next, self.stopped) = (Time::NEVER, true);
    }

    fn handle(&mut self, now: Time, _end: End, message: &FlowMessage) {
        let FlowMessage::Datagram(datagram) = message else { return };
        // Datagrams under way when the source stops were sent in time, so they count for all figures but the goodput.
        if !self.stopped {
            self.octets += u64::from(datagram.octets);
        }
        self.received += 1;
        let delay = now.since(datagram.sent);
        self.delays.add(delay);
        if let Some(last) = self.last_delay.replace(delay) {
            self.variation += u128::from(delay.as_nanos().abs_diff(last.as_nanos()));
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<(End, FlowMessage)> {
        if now < self.next || self.stopped {
            return None;
        }
        let datagram = Datagram { number: self.sent, sent: now, octets: self.config.octets };
        self.sent += 1;
        self.advance();
        Some((self.config.source, FlowMessage::Datagram(datagram)))
    }

    fn poll_timeout(&self) -> Time {
        self.next
    }

    fn report(&self) -> FlowReport {
        let counts = CbrReport {
            sent: self.sent,
            received: self.received,
            delay_mean_s: self.delays.mean(),
            delay_p95_s: self.delays.quantile(0.95),
            jitter_s: (self.received > 1).then(|| self.variation as f64 / (self.received - 1) as f64 / 1e9),
        };
        FlowReport { octets: self.octets, counts: Counts::Cbr(counts) }
    }
}
