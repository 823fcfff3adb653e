//! Multilink PPP: a long TCP transfer over a bundle of links whose calls drop.
//!
//! S. Zaghloul, V. Frost and A. J. Mohammad, "Modeling TCP long file transfer latency over long delay wireless
//! multilink PPP", IEEE Communications Letters, 2005. Each link drops its call as a Poisson process. A drop makes TCP
//! time out; losses otherwise only halve the window. Between timeouts TCP is [PFTK](crate::pftk)'s without timeouts.
//!
//! # Corrections to the paper
//!
//! * Equation (1) is printed as the packets *times* B; a time is the packets divided by it.
//! * Equation (6) prints the condition of its first branch as E\[`W_u`\] > `W_max`. Its formula is PFTK's for
//!   E\[`W_u`\] < `W_max`, and as printed the two conditions overlap and leave out the values below.
//! * Assumption 3 says that the window grows by one packet every 1/b packets; the formulas have PFTK's 1/b packet each
//!   round trip.
//! * Section IV-B assumes E\[`W_u`\] = `W_max`. That is the second branch of (6), and must not be put into (5).
//! * n is both the number of links and the number of periods between drops: here `links` and
//!   [`periods_between_drops`](Model::periods_between_drops).
//! * Equation (3) has E\[`W_u`\] where PFTK has E\[W\]; they are the same in its first branch, and (6) has `W_max` in
//!   the second.
//! * The rate of drops is printed per minute and times in seconds; here both are spans.
//!
//! # Validity
//!
//! The mean time between drops of the bundle, 1/λ, must be well above the mean length of the timeout after one,
//! E\[`Z_TO`\]; λ E\[`Z_TO`\] of 1 or more is refused. The link is back before slow start ends; slow start itself takes
//! no time. Losses other than drops must be rare, for they never cause a timeout here. The rate of the bundle does not
//! enter: it must be in the round trip and the window, and a window of more than the bundle carries in a round trip
//! gives a throughput above its rate. The model also refuses all that [`Path::check_steady`] refuses.

use core::num::NonZeroU32;

use farcast_core::Span;
use farcast_core::units::Bytes;

use crate::cycle::{Cycle, timeouts_s};
use crate::path::Path;
use crate::{ModelError, Throughput, packets};

/// A bundle of equal, independent links, and TCP over it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bundle {
    /// Member links, at least 1.
    pub links: u32,
    /// 1/β: the mean time between call drops of one link.
    pub time_between_drops: Span,
    /// The path through the bundle. The timeout T0 is the first cost of a drop.
    pub path: Path,
}

/// The model of a bundle, with checked inputs. Each method is an equation of the paper.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    bundle: Bundle,
    cycle: Cycle,
}

impl Model {
    /// Creates the model of `bundle`; refuses inputs for which the model is not valid.
    pub fn new(bundle: Bundle) -> Result<Self, ModelError> {
        bundle.path.check_steady()?;
        if bundle.links == 0 {
            return Err(ModelError::NoLinks);
        }
        let model = Self { bundle, cycle: Cycle::of(&bundle.path) };
        let (interval_s, timeout_s) = (model.interval_s(), model.timeout_s());
        if timeout_s < interval_s { Ok(model) } else { Err(ModelError::Drops { interval_s, timeout_s }) }
    }

    /// Returns E\[S\] = 1/λ: the mean time between drops of any link, in seconds. λ = nβ for n links (section III).
    pub fn interval_s(&self) -> f64 {
        self.bundle.time_between_drops.as_secs_f64() / f64::from(self.bundle.links)
    }

    /// Returns λ: call drops of the bundle per second.
    pub fn drops_per_s(&self) -> f64 {
        1.0 / self.interval_s()
    }

    /// Returns E\[`W_u`\] in packets, equation (4): (2+b)/(3b) + sqrt(8(1-p)/(3bp) + ((2+b)/(3b))^2). Infinite without
    /// loss.
    pub fn unconstrained_window(&self) -> f64 {
        self.cycle.unconstrained
    }

    /// Returns E\[Y\]: packets in a period between two losses, equation (3): (1-p)/p + E\[W\], where E\[W\] is `W_max`
    /// once E\[`W_u`\] is at least that. Infinite without loss.
    pub fn packets_per_period(&self) -> f64 {
        (1.0 + self.cycle.scaled_window) / self.cycle.odds
    }

    /// Returns E\[A\]: the length of that period in seconds. If the window does not limit, equation (5):
    /// RTT ((2+b)/6 + sqrt(2b(1-p)/(3p) + ((2+b)/6)^2) + 1). If it does, the denominator of (6):
    /// RTT (b/8 `W_max` + (1-p)/(p `W_max`) + 2). Infinite without loss.
    pub fn period_s(&self) -> f64 {
        self.bundle.path.rtt_s() * self.cycle.scaled_rounds / self.cycle.odds
    }

    /// Returns `B_NT` = E\[Y\]/E\[A\]: the throughput without drops, equations (2) and (6), the condition of the first
    /// branch corrected to E\[`W_u`\] < `W_max`. `W_max`/RTT without loss.
    pub fn without_drops(&self) -> Throughput {
        let packets_per_s =
            (1.0 + self.cycle.scaled_window) / (self.bundle.path.rtt_s() * self.cycle.scaled_rounds);
        Throughput { packets_per_s, bound: self.cycle.bound }
    }

    /// Returns E\[`Z_TO`\]: the length of the timeouts after a drop in seconds, equation (8): T0 f(p)/(1-p) with f(p) =
    /// 1 + p + 2p^2 + 4p^3 + 8p^4 + 16p^5 + 32p^6.
    pub fn timeout_s(&self) -> f64 {
        timeouts_s(self.bundle.path.loss.get(), self.bundle.path.timeout)
    }

    /// Returns E\[R\]: packets sent in that time, equation (11): 1/(1-p).
    pub fn packets_in_timeout(&self) -> f64 {
        1.0 / (1.0 - self.bundle.path.loss.get())
    }

    /// Returns E\[n\]: periods between two drops, equation (10): (1/λ - E\[`Z_TO`\])/E\[A\]. Zero without loss, when
    /// one period has no end.
    pub fn periods_between_drops(&self) -> f64 {
        (self.interval_s() - self.timeout_s()) / self.period_s()
    }

    /// Returns E\[M\]: packets between two drops, equation (9): E\[n\] E\[Y\] + E\[R\]. The product is taken as the
    /// time times E\[Y\]/E\[A\], which holds without loss too.
    pub fn packets_between_drops(&self) -> f64 {
        let sending_s = self.interval_s() - self.timeout_s();
        sending_s * self.without_drops().packets_per_s + self.packets_in_timeout()
    }

    /// Returns 1 - λ E\[`Z_TO`\]: the share of time in which TCP sends, between 0 and 1: the factor of `B_NT` in
    /// equation (13).
    pub fn share_sending(&self) -> f64 {
        1.0 - self.timeout_s() / self.interval_s()
    }

    /// Returns B: the throughput, equation (13), which follows from (7), (9) and (12): (1 - λ E\[`Z_TO`\]) `B_NT` +
    /// λ/(1-p).
    pub fn throughput(&self) -> Throughput {
        let Throughput { packets_per_s, bound } = self.without_drops();
        let packets_per_s =
            self.share_sending() * packets_per_s + self.drops_per_s() * self.packets_in_timeout();
        Throughput { packets_per_s, bound }
    }

    /// Returns `T_d`: the time of a file of `size` in seconds, equation (1), corrected to a quotient: the packets of
    /// `mss` octets, rounded up, divided by B.
    pub fn transfer_time_s(&self, size: Bytes, mss: NonZeroU32) -> f64 {
        self.throughput().transfer_time_s(packets(size, mss))
    }
}

#[cfg(test)]
mod tests;
