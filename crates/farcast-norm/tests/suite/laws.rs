//! Laws of engines, for all settings of senders and receivers.

use farcast_core::{BitRate, Span};
use farcast_norm::{Pacing, ReceiverConfig, SenderConfig};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{Session, ms, receiver, sender};

/// Settings of a session and its links.
#[derive(Clone, Copy, Debug)]
struct Case {
    receivers: u32,
    /// `true` if the receivers are named.
    named: bool,
    parity: u16,
    auto: u16,
    backoff: u8,
    unicast: bool,
    loss: f64,
    /// Besides loss: duplication, jitter and corruption.
    rough: bool,
    /// Rate control.
    pacing: Pacing,
}

const CASE: Case = Case {
    receivers: 3,
    named: true,
    parity: 4,
    auto: 0,
    backoff: 4,
    unicast: false,
    loss: 0.05,
    rough: false,
    pacing: Pacing::Fixed,
};

impl Case {
    fn config(self) -> SenderConfig {
        let mut config = sender(60, if self.named { self.receivers } else { 0 });
        (config.parity, config.auto_parity) = (self.parity, self.auto);
        (config.backoff, config.grtt) = (self.backoff, ms(300));
        config.pacing = self.pacing;
        config
    }

    fn link(self) -> Link {
        let link = Link::lossy(ms(100), self.loss);
        if self.rough { Link { duplication: 0.02, jitter: ms(3), corruption: 0.02, ..link } } else { link }
    }

    fn session(self, setup: Setup) -> Session {
        let name = format!("{self:?}");
        let mut session = Session::empty(&name, setup, self.config(), self.link());
        // A damaged message may seem to come from another sender with the longest round trip, which is never heard
        // again.
        session.net.limit(Span::from_secs(20_000));
        for n in 0..self.receivers {
            session.add(n, ReceiverConfig { unicast: self.unicast, ..receiver(n) });
        }
        session
    }

    fn obeys(self, seeds: core::ops::Range<u64>) {
        laws::all(seeds, ms(20), |setup| self.session(setup).net, |_| true);
    }
}

fn cases() -> Vec<Case> {
    let pacing = Pacing::NormCc { least: BitRate::from_bps(50_000).expect("positive") };
    vec![
        CASE,
        Case { named: false, ..CASE },
        Case { parity: 0, loss: 0.1, ..CASE },
        Case { auto: 2, loss: 0.2, ..CASE },
        Case { backoff: 0, unicast: true, receivers: 1, ..CASE },
        Case { unicast: true, ..CASE },
        Case { loss: 0.0, ..CASE },
        Case { receivers: 12, loss: 0.1, ..CASE },
        Case { pacing, ..CASE },
        Case { pacing, named: false, loss: 0.0, ..CASE },
        Case { pacing, unicast: true, loss: 0.1, receivers: 5, ..CASE },
    ]
}

#[test]
fn every_way_of_sending_obeys() {
    for case in cases() {
        case.obeys(0..3);
    }
}

#[test]
fn rough_links_change_no_law() {
    for case in cases() {
        Case { rough: true, ..case }.obeys(0..2);
    }
}

#[test]
fn the_rate_is_kept() {
    for case in cases() {
        let mut session = case.session(Setup::plain(1)).run();
        let log = session.net.take_log();
        // Messages out of turn, such as probes and flushes, are charged to the following ones.
        let departures: Vec<_> =
            log.departures.into_iter().filter(|d| d.from == 0 && d.message.data().is_some()).collect();
        let rate = BitRate::from_bps(1_000_000).expect("positive");
        laws::keeps_rate(&session.net.context(), &departures, rate, 28, Span::from_millis(100));
    }
}
