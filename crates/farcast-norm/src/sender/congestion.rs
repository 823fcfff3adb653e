//! Rate control, and the content of probes (RFC 5740 §5.5.2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use farcast_core::engine::Reject;
use farcast_core::{BitRate, Time};
use farcast_delivery::{Codec as _, FixedRate, RateControl as _};

use super::{Sender, Timer};
use crate::cc::{Limits, NormCc, Report, RoundTrips};
use crate::config::{Pacing, SenderConfig};
use crate::message::{Answer, FromReceiver, FromSender, NodeId, Probe, Stamp};
use crate::seam::Codec;

/// Least number of GRTTs that receivers have to answer a probe. The GRTT is not shortened before.
const ANSWERS: u64 = 4;

/// Rate control.
#[derive(Debug)]
pub(super) enum Control {
    Fixed(FixedRate),
    NormCc {
        cc: Box<NormCc>,
        /// Time from which the GRTT may be shortened.
        shortens: Time,
    },
}

impl Control {
    pub(super) fn new(config: &SenderConfig) -> Self {
        let most = config.pace.rate;
        match config.pacing {
            Pacing::Fixed => Self::Fixed(FixedRate(most)),
            Pacing::NormCc { least } => {
                let segment = Codec { fec: config.fec }.datagram_len(config.segment_size.into());
                let trips = RoundTrips { grtt: config.grtt, longest: config.grtt_most };
                let overhead = config.pace.overhead;
                let cc = NormCc::new(Limits { least, most }, segment, overhead, trips, config.robust);
                Self::NormCc { cc: Box::new(cc), shortens: Time::ZERO }
            }
        }
    }

    pub(super) fn rate(&self) -> BitRate {
        match self {
            Self::Fixed(fixed) => fixed.rate(),
            Self::NormCc { cc, .. } => cc.rate(),
        }
    }

    /// Notes that there is nothing to send from `now` on.
    pub(super) fn rest(&mut self, now: Time) {
        if let Self::NormCc { cc, .. } = self {
            cc.rest(now);
        }
    }
}

impl Sender {
    /// Returns the current rate.
    pub fn rate(&self) -> BitRate {
        self.control.rate()
    }

    /// Returns the receiver whose reports limit the rate; `None` at a fixed rate, and while no receiver reports.
    pub fn limiting(&self) -> Option<NodeId> {
        match &self.control {
            Control::Fixed(_) => None,
            Control::NormCc { cc, .. } => cc.limiting(),
        }
    }

    /// Returns the number of probes that have left, modulo 2^16.
    pub fn probes(&self) -> u16 {
        self.probes
    }

    pub(super) fn probe(&mut self, now: Time) {
        let (sequence, sent) = (self.probes, Stamp::of(now));
        self.probes = sequence.wrapping_add(1);
        let (rate, mut nodes) = match &mut self.control {
            Control::Fixed(_) => {
                self.timers.set(Timer::Probe, now + self.grtt.probed());
                // A probe without a rate asks for no feedback; it only measures round trips.
                (None, Vec::new())
            }
            Control::NormCc { cc, shortens } => {
                if now >= *shortens {
                    self.grtt.probed();
                    let answers = u64::from(self.config.backoff).max(ANSWERS);
                    *shortens = now + self.grtt.estimate() * answers;
                }
                let (rate, nodes) = cc.probe(now, sequence, self.grtt.estimate());
                self.timers.set(Timer::Probe, cc.until());
                (Some(rate), nodes)
            }
        };
        self.patience.note(now, self.advertised().span(), self.config.backoff);
        nodes.truncate(usize::from(self.config.segment_size) / 8);
        self.core.pacer.set_rate(now, self.control.rate());
        self.outbox.push_back(FromSender::Probe(Probe { flags: 0, sequence, sent, rate, nodes }));
    }

    /// Notes that there is something to send again.
    pub(super) fn take_up(&mut self, now: Time) {
        if let Control::NormCc { cc, .. } = &mut self.control {
            cc.resume(now);
            self.keep_to(now);
        }
    }

    /// Passes a receiver's congestion feedback to the rate control.
    ///
    /// # Errors
    /// Feedback that makes no sense, in a message without other content.
    pub(super) fn heed(&mut self, now: Time, node: NodeId, said: &FromReceiver) -> Result<(), Reject> {
        let (Control::NormCc { cc, .. }, Some(feedback)) = (&mut self.control, said.feedback) else {
            return Ok(());
        };
        let trip = said.response.and_then(|response| Stamp::of(now).since(response));
        let result = cc.report(now, &Report { node, trip, feedback });
        if result.is_ok() {
            self.keep_to(now);
        }
        if matches!(said.answer, Answer::Ack { .. }) {
            return result;
        }
        // The requests in the message count all the same.
        let _ = self.core.rejects.note(result);
        Ok(())
    }

    /// Adopts the current rate, which may have changed at `now`.
    fn keep_to(&mut self, now: Time) {
        self.core.pacer.set_rate(now, self.control.rate());
        if let Control::NormCc { cc, .. } = &self.control {
            self.timers.set(Timer::Probe, cc.until());
        }
    }
}
