//! Congestion control of a source (section 3).

use core::net::{IpAddr, Ipv4Addr};

use farcast_core::engine::Reject;
use farcast_core::{Span, Time};

use super::election::{slowness, takes_over};
use super::rtt::RoundTrip;
use super::window::Window;
use crate::message::{Ack, CcData, DataKind, Feedback};
use crate::sqn::Place;

/// Number of timeouts in a row after which another acker is sought.
const MOST_TIMEOUTS: u32 = 2;
/// The longest round trip that is accepted, in milliseconds.
const MOST_RTT_MS: u32 = 60_000;

/// Settings of congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CcConfig {
    /// Number of packets up to which the window doubles each round trip (SSTHRESH).
    pub threshold: u32,
    /// The most packets under way. An acknowledgement covers 32.
    pub most: u32,
    /// A receiver becomes the acker if its throughput is below this percentage of the acker's (`C`), 1 to 100.
    pub hysteresis_percent: u32,
    /// The shortest time after which an acknowledgement counts as overdue.
    pub timeout: Span,
}

impl Default for CcConfig {
    fn default() -> Self {
        Self { threshold: 4, most: 1024, hysteresis_percent: 75, timeout: Span::from_millis(500) }
    }
}

/// The receiver that acknowledges.
#[derive(Clone, Copy, Debug)]
struct Acker {
    address: IpAddr,
    slowness: f64,
}

/// Congestion control: decides when data may leave, and which receiver acknowledges them.
#[derive(Clone, Debug)]
pub struct Controller {
    config: CcConfig,
    window: Window,
    rtt: RoundTrip,
    acker: Option<Acker>,
    timeouts: u32,
    /// Number of elections of an acker.
    elections: u32,
}

/// Returns the source's clock as on the wire, in milliseconds.
fn stamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

impl Controller {
    pub(crate) fn new(config: CcConfig, first: Place) -> Self {
        let window = Window::new(first, config.threshold.into(), config.most.into());
        Self { config, window, rtt: RoundTrip::new(config.timeout), acker: None, timeouts: 0, elections: 0 }
    }

    /// Returns the window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the address of the acker; `None` while one is sought.
    pub fn acker(&self) -> Option<IpAddr> {
        self.acker.map(|acker| acker.address)
    }

    /// Returns the number of elections of an acker.
    pub fn elections(&self) -> u32 {
        self.elections
    }

    /// Returns the acker's smoothed round trip.
    pub fn rtt(&self) -> Option<Span> {
        self.rtt.smoothed()
    }

    /// Returns the time at which an answer to what leaves now is overdue; [`Time::NEVER`] if none is awaited.
    pub(crate) fn due(&self, now: Time) -> Time {
        if self.window.is_idle() { Time::NEVER } else { now + self.rtt.timeout() }
    }

    /// Notes that `place` leaves at `now`, and returns its option of PGMCC.
    pub(crate) fn sent(&mut self, now: Time, kind: DataKind, place: Place, is_ipv4: bool) -> CcData {
        match kind {
            DataKind::Original => self.window.sent(place),
            DataKind::Repair => self.window.repaired(now),
        }
        let nobody =
            if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { core::net::Ipv6Addr::UNSPECIFIED.into() };
        let acker = self.acker().unwrap_or(nobody);
        CcData { stamp: stamp(now), acker }
    }

    /// Takes a receiver's report, from an acknowledgement or a request for repair. Returns `true` if the wait for the
    /// next answer begins anew. A request does not restart the wait: otherwise an acker that only asks for repair would
    /// hold up the repair itself.
    ///
    /// # Errors
    /// [`Reject::OutOfRange`] for a report that is impossible, which changes nothing.
    pub(crate) fn report(&mut self, now: Time, said: &Feedback, ack: Option<&Ack>) -> Result<bool, Reject> {
        let rtt_ms = stamp(now).wrapping_sub(said.stamp);
        if rtt_ms > MOST_RTT_MS || said.receiver.is_unspecified() {
            return Err(Reject::OutOfRange);
        }
        // The clock counts milliseconds: a difference of 0 means less than 1 ms.
        let rtt = Span::from_millis(rtt_ms.max(1).into());
        let slow = slowness(rtt.as_secs_f64(), said.loss);
        self.timeouts = 0;
        self.window.pass(now, self.rtt.smoothed().unwrap_or(rtt));
        let hysteresis = f64::from(self.config.hysteresis_percent) / 100.0;
        let is_acker = self.acker() == Some(said.receiver);
        if said.leaving {
            if is_acker {
                self.acker = None;
            }
            return Ok(is_acker);
        }
        match &mut self.acker {
            None => self.elect(said.receiver, slow),
            Some(acker) if is_acker => acker.slowness = slow,
            Some(acker) if takes_over(slow, acker.slowness, hysteresis) => {
                self.elect(said.receiver, slow);
            }
            Some(_) => {}
        }
        let Some(ack) = ack else { return Ok(false) };
        // Answers of the previous acker still come for a round trip: each number counts once, whoever acknowledges it.
        let is_new = self.window.acknowledged(ack.highest, ack.bitmap);
        if self.acker() == Some(said.receiver) {
            self.rtt.note(rtt);
        }
        Ok(is_new)
    }

    fn elect(&mut self, address: IpAddr, slowness: f64) {
        if self.acker.is_none() {
            self.window.begin();
        }
        self.acker = Some(Acker { address, slowness });
        self.elections += 1;
        self.rtt.restart();
    }

    /// Notes that an answer is overdue.
    pub(crate) fn timeout(&mut self) {
        self.timeouts += 1;
        self.window.restart();
        if self.timeouts >= MOST_TIMEOUTS {
            self.acker = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Sqn;

    const FIRST: Place = Place(1 << 32);
    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn said(receiver: IpAddr, stamp: u32, loss: u16) -> Feedback {
        Feedback { stamp, loss, receiver, leaving: false }
    }

    #[test]
    fn the_first_that_answers_acknowledges_and_who_is_slower_takes_over() {
        let mut cc = Controller::new(CcConfig::default(), FIRST);
        let data = cc.sent(at(0), DataKind::Original, FIRST, true);
        assert_eq!((data.acker, cc.due(at(0))), (IpAddr::V4(Ipv4Addr::UNSPECIFIED), at(3000)));
        let ack = Ack { highest: Sqn(0), bitmap: u32::MAX, options: std::vec![] };
        assert_eq!(cc.report(at(100), &said(ONE, 0, 600), Some(&ack)), Ok(true));
        assert_eq!((cc.acker(), cc.rtt(), cc.elections()), (Some(ONE), Some(Span::from_millis(100)), 1));
        // As much is lost on a way that is a fifth longer: that is not enough; on one twice as long it is.
        assert_eq!(cc.report(at(120), &said(TWO, 0, 600), None), Ok(false));
        assert_eq!(cc.acker(), Some(ONE));
        cc.report(at(200), &said(TWO, 0, 600), None).expect("sound");
        assert_eq!((cc.acker(), cc.rtt()), (Some(TWO), None), "its way is not known yet");
        let leaves = Feedback { leaving: true, ..said(TWO, 0, 600) };
        assert_eq!(cc.report(at(210), &leaves, None), Ok(true));
        assert_eq!(cc.acker(), None);
    }

    #[test]
    fn two_timeouts_in_a_row_and_another_is_sought() {
        let mut cc = Controller::new(CcConfig::default(), FIRST);
        cc.sent(at(0), DataKind::Original, FIRST, true);
        cc.report(at(100), &said(ONE, 0, 600), None).expect("sound");
        cc.timeout();
        assert_eq!(cc.acker(), Some(ONE));
        cc.report(at(100), &said(TWO, 0, 0), None).expect("sound");
        cc.timeout();
        assert_eq!(cc.acker(), Some(ONE), "somebody answered between");
        cc.timeout();
        assert_eq!(cc.acker(), None);
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        let mut cc = Controller::new(CcConfig::default(), FIRST);
        assert_eq!(cc.report(at(100), &said(ONE, 101, 0), None), Err(Reject::OutOfRange), "of the future");
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert_eq!(cc.report(at(100), &said(nobody, 0, 0), None), Err(Reject::OutOfRange));
    }
}
