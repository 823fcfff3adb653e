//! The laws of engines, in each mode of sending and requesting.

use farcast_core::{BitRate, Span};
use farcast_pgm::{Advance, Delivering, Grouping};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{Session, files, hears_messages, messages, ms, receiver, say};

/// A mode of sending, and a link.
#[derive(Clone, Copy, Debug)]
struct Case {
    receivers: u32,
    /// All receivers are named.
    named: bool,
    /// Messages are sent, and delivered in this order; `None`: files.
    messages: Option<Delivering>,
    advance: Option<Advance>,
    parity: Option<Grouping>,
    multicast_naks: bool,
    gather: Span,
    loss: f64,
    /// Duplication, jitter and corruption, besides loss.
    rough: bool,
}

const CASE: Case = Case {
    receivers: 3,
    named: true,
    messages: None,
    advance: None,
    parity: None,
    multicast_naks: false,
    gather: Span::ZERO,
    loss: 0.05,
    rough: false,
};

impl Case {
    fn session(self, setup: Setup) -> Session {
        let link = Link::lossy(ms(100), self.loss);
        let link = if self.rough {
            Link { duplication: 0.02, jitter: ms(3), corruption: 0.02, ..link }
        } else {
            link
        };
        let named = if self.named { self.receivers } else { 0 };
        let mut config = if self.messages.is_some() { messages() } else { files(&[40, 0, 25], named) };
        config.advance = self.advance.unwrap_or(config.advance);
        config.gather = self.gather;
        config.parity = self.parity;
        let mut session = Session::empty(&format!("{self:?}"), setup, config, link);
        session.net.limit(Span::from_secs(20_000));
        for n in 0..self.receivers {
            let config = self.messages.map_or_else(|| receiver(n), |how| hears_messages(n, how));
            let multicast_naks = self.multicast_naks;
            session.add(n, farcast_pgm::ReceiverConfig { multicast_naks, ..config });
        }
        if self.messages.is_some() {
            let lens: Vec<u32> = (0..60).map(|n| 1 + n * 67 % 3500).collect();
            say(&mut session, ms(300), ms(40), &lens);
        }
        session
    }
}

fn cases() -> Vec<Case> {
    let parity = |size, ahead, on_demand| Case { parity: Some(Grouping { size, ahead, on_demand }), ..CASE };
    let files = [
        CASE,
        Case { named: false, ..CASE },
        Case { multicast_naks: true, loss: 0.1, ..CASE },
        Case { gather: ms(30), loss: 0.1, ..CASE },
        Case { loss: 0.0, ..CASE },
        Case { receivers: 10, loss: 0.1, ..CASE },
        parity(8, 1, true),
        Case { loss: 0.2, gather: ms(20), ..parity(16, 0, true) },
        Case { loss: 0.1, multicast_naks: true, ..parity(4, 2, false) },
    ];
    let ordered = Case { messages: Some(Delivering::Ordered), ..CASE };
    let data = |sqns| Some(Advance::Data { sqns, hold: ms(300) });
    let messages = [
        ordered,
        Case { messages: Some(Delivering::Unordered), loss: 0.1, ..CASE },
        Case { advance: data(16), loss: 0.1, ..ordered },
        Case { advance: data(32), gather: ms(20), ..ordered },
        Case { advance: Some(Advance::Time(ms(400))), loss: 0.2, ..ordered },
    ];
    files.into_iter().chain(messages).collect()
}

#[test]
fn every_way_of_sending_obeys() {
    for case in cases() {
        laws::all(0..3, ms(20), |setup| case.session(setup).net, |_| true);
    }
}

#[test]
fn rough_links_change_no_law() {
    for case in cases() {
        laws::all(0..2, ms(20), |setup| Case { rough: true, ..case }.session(setup).net, |_| true);
    }
}

#[test]
fn the_rate_is_kept() {
    for case in cases() {
        let mut session = case.session(Setup::plain(1)).run();
        let log = session.net.take_log();
        // SPMs and confirmations leave out of turn, and later data pay for them.
        let departures: Vec<_> =
            log.departures.into_iter().filter(|d| d.from == 0 && d.message.data().is_some()).collect();
        let rate = BitRate::from_bps(1_000_000).unwrap();
        laws::keeps_rate(&session.net.context(), &departures, rate, 28, ms(100));
    }
}
