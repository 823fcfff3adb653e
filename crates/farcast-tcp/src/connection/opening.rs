//! Opening of a connection: SYN and the answer to it (RFC 9293 sections 3.5 and 3.10.7).

use core::net::SocketAddr;

use farcast_core::engine::Reject;
use farcast_core::{Span, Time};

use super::timing::Timer;
use super::{Connection, State};
use crate::congestion::Congestion;
use crate::event::Failure;
use crate::scoreboard::Scoreboard;
use crate::sequence::Numbering;
use crate::{Flags, Options, Recovery, Segment, Timestamps};

/// The timestamps option in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub tick: Span,
    /// The peer's timestamp to echo (TS.Recent); `recent_at` is the time of its arrival.
    pub recent: u32,
    pub recent_at: Time,
}

impl Clock {
    pub(super) const fn value(&self, now: Time) -> u32 {
        (now.as_nanos() / self.tick.as_nanos()) as u32
    }
}

/// Options that both SYNs have settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// The largest payload that is sent, in octets.
    pub smss: u64,
    /// SACK is in use.
    pub sack: bool,
    /// Timestamps, if they are in use.
    pub clock: Option<Clock>,
    /// Time at which our SYN left; [`Time::NEVER`] if ambiguous.
    syn_sent_at: Time,
}

impl Agreed {
    /// Returns the state before the peer's SYN arrives.
    pub(super) const fn before(smss: u64) -> Self {
        Self { smss, sack: false, clock: None, syn_sent_at: Time::NEVER }
    }
}

impl Connection {
    /// Takes a segment while listening.
    pub(super) fn take_syn(
        &mut self,
        now: Time,
        source: SocketAddr,
        segment: &Segment,
    ) -> Result<(), Reject> {
        if !segment.flags.has(Flags::SYN)
            || segment.flags.0 & (Flags::RST.0 | Flags::ACK.0 | Flags::FIN.0) != 0
        {
            return Err(Reject::Unexpected);
        }
        self.remote = Some(SocketAddr::new(source.ip(), segment.source_port));
        self.agree(now, segment);
        self.state = State::SynReceived;
        self.due.syn = true;
        Ok(())
    }

    /// Takes a segment that answers our SYN.
    pub(super) fn take_answer(&mut self, now: Time, segment: &Segment) -> Result<(), Reject> {
        let acknowledges = segment.flags.has(Flags::ACK);
        if acknowledges && segment.acknowledgment != self.outgoing.numbering.number(1) {
            // The peer has an old connection: this ends it (RFC 9293 figure 9).
            self.due.refusal = Some(segment.acknowledgment).filter(|_| !segment.flags.has(Flags::RST));
            return Err(Reject::OutOfRange);
        }
        if segment.flags.has(Flags::RST) {
            if !acknowledges {
                return Err(Reject::Unexpected);
            }
            self.fail(Failure::Refused);
            return Ok(());
        }
        if !segment.flags.has(Flags::SYN) {
            return Err(Reject::Unexpected);
        }
        self.agree(now, segment);
        if acknowledges {
            self.syn_was_acknowledged(now, segment);
            self.acknowledger.now();
        } else {
            // Both opened at once (RFC 9293 figure 8).
            self.state = State::SynReceived;
            self.due.syn = true;
        }
        Ok(())
    }

    /// Takes the peer's numbering and options.
    fn agree(&mut self, now: Time, segment: &Segment) {
        self.incoming.numbering = Some(Numbering::new(segment.sequence));
        let options = &segment.options;
        self.agreed.sack = self.config.sack && options.sack_permitted;
        self.agreed.clock = self.config.timestamps.zip(options.timestamps).map(|(tick, told)| Clock {
            tick,
            recent: told.value,
            recent_at: now,
        });
        let scaled = self.config.window_scaling && options.window_scale.is_some();
        self.peer.scale = options.window_scale.filter(|_| scaled).unwrap_or(0).min(14);
        self.acknowledger.use_scale(scaled);
        self.peer.size = u64::from(segment.window);
        self.peer.largest = self.peer.size;
        // RFC 9293 section 3.7.1: 536 octets where the peer does not say; options come off (RFC 6691).
        let told = options.mss.unwrap_or(536).max(LEAST_MSS);
        let mss = self.config.mss.min(told);
        self.agreed.smss = u64::from(mss - if self.agreed.clock.is_some() { 12 } else { 0 });
        self.congestion = Congestion::new(&self.config, self.agreed.smss);
        let timed = self.agreed.sack && self.config.recovery == Recovery::Rack;
        self.board = Scoreboard::new(1, timed);
    }

    /// Notes that our SYN is acknowledged: data may flow.
    pub(super) fn syn_was_acknowledged(&mut self, now: Time, segment: &Segment) {
        self.state = State::Established;
        self.events.connected = true;
        self.timers.stop(Timer::Retransmit);
        self.due.syn = false;
        if self.unanswered.retries > 0 {
            // RFC 5681 section 3.1: after a lost SYN data begins with one segment.
            self.estimator.syn_was_lost();
            self.congestion.window = self.agreed.smss;
        } else if self.agreed.syn_sent_at != Time::NEVER {
            self.estimator.sample(now.since(self.agreed.syn_sent_at), self.progress());
        }
        self.unanswered.retries = 0;
        self.peer.told_at = (0, 1);
        if !segment.flags.has(Flags::SYN) {
            // A window in a SYN is never shifted; this one is.
            self.peer.size = u64::from(segment.window) << self.peer.scale;
        }
        self.peer.largest = self.peer.size;
    }

    /// Returns the SYN, or the SYN with an acknowledgment.
    pub(super) fn syn(&mut self, now: Time) -> Segment {
        self.due.syn = false;
        // If a SYN leaves twice, or once more with an answer, nothing can be measured (RFC 6298 section 3).
        self.agreed.syn_sent_at = if self.stats.segments_sent == 0 { now } else { Time::NEVER };
        self.timers.set(Timer::Retransmit, now + self.estimator.timeout());
        let answers = self.state == State::SynReceived;
        // An answer has only options that the peer has offered.
        let tick = if answers { self.agreed.clock.map(|clock| clock.tick) } else { self.config.timestamps };
        let timestamps = tick.map(|tick| {
            let clock = self.agreed.clock.unwrap_or(Clock { tick, recent: 0, recent_at: now });
            Timestamps { value: clock.value(now), echo: clock.recent }
        });
        let scale = if answers { self.acknowledger.scale() } else { self.acknowledger.offered_scale() };
        let options = Options {
            mss: Some(self.config.mss),
            window_scale: scale,
            sack_permitted: if answers { self.agreed.sack } else { self.config.sack },
            timestamps,
            ..Options::default()
        };
        let edge = self.window_edge();
        let window = self.acknowledger.window_of_syn(edge);
        let mut segment = self.segment(0, Flags::SYN);
        segment.options = options;
        segment.window = window;
        if answers {
            segment.flags = segment.flags.with(Flags::ACK);
            segment.acknowledgment = self.acknowledgment();
            self.acknowledger.told = 1;
        }
        segment
    }
}

/// Least segment size in octets. Even a peer that asks for less gets this: otherwise most octets sent would be headers.
const LEAST_MSS: u16 = 48;
