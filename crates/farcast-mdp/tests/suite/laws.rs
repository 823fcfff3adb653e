//! The laws of engines, in each mode of sending and requesting.

use farcast_core::{BitRate, Span};
use farcast_mdp::{ReceiverConfig, SenderConfig};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{Session, ms, object, receiver, sender};

/// A mode of sending, and a link.
#[derive(Clone, Copy, Debug)]
struct Case {
    receivers: u32,
    /// All receivers are named.
    named: bool,
    parity: u8,
    auto: u8,
    objects: usize,
    gap: u64,
    unicast: bool,
    loss: f64,
    /// Duplication, jitter and corruption, besides loss.
    rough: bool,
}

const CASE: Case = Case {
    receivers: 3,
    named: true,
    parity: 4,
    auto: 0,
    objects: 1,
    gap: 0,
    unicast: false,
    loss: 0.05,
    rough: false,
};

impl Case {
    fn config(self) -> SenderConfig {
        let mut config = sender(60, if self.named { self.receivers } else { 0 });
        (config.parity, config.auto_parity) = (self.parity, self.auto);
        config.objects = vec![object(60 / self.objects as u32); self.objects];
        (config.gap, config.unicast) = (ms(self.gap), self.unicast);
        config
    }

    fn link(self) -> Link {
        let link = Link::lossy(ms(100), self.loss);
        if self.rough { Link { duplication: 0.02, jitter: ms(3), corruption: 0.02, ..link } } else { link }
    }

    fn session(self, setup: Setup) -> Session {
        let name = format!("{self:?}");
        let mut session = Session::empty(&name, setup, self.config(), self.link());
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
    vec![
        CASE,
        Case { named: false, ..CASE },
        Case { parity: 0, loss: 0.1, ..CASE },
        Case { auto: 2, loss: 0.2, ..CASE },
        Case { unicast: true, receivers: 1, ..CASE },
        Case { objects: 4, ..CASE },
        Case { objects: 3, gap: 2000, loss: 0.3, ..CASE },
        Case { objects: 10, named: false, unicast: true, loss: 0.2, ..CASE },
        Case { unicast: true, ..CASE },
        Case { loss: 0.0, ..CASE },
        Case { receivers: 12, loss: 0.1, ..CASE },
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
        // What leaves out of turn, probes and flushes, is paid for by what follows.
        let departures: Vec<_> =
            log.departures.into_iter().filter(|d| d.from == 0 && d.message.data().is_some()).collect();
        let rate = BitRate::from_bps(1_000_000).expect("positive");
        laws::keeps_rate(&session.net.context(), &departures, rate, 28, Span::from_millis(100));
    }
}
