//! Laws of engines, for various configurations.

use farcast_core::{BitRate, Span};
use farcast_oneway::{Duration, SenderConfig};
use farcast_testkit::{Link, Setup, laws};

use crate::common::{ONCE, RATE, Session, ms, sender};

/// Configuration of a sender, and a link.
#[derive(Clone, Copy, Debug)]
struct Case {
    segments: u32,
    /// Maximum number of segments of a block.
    block: u32,
    duration: Duration,
    overhead: u32,
    head: u32,
    loss: f64,
    /// `true` for duplication, jitter and corruption besides loss.
    rough: bool,
}

const CASE: Case =
    Case { segments: 200, block: 70, duration: ONCE, overhead: 20, head: 3, loss: 0.05, rough: false };

impl Case {
    fn config(self) -> SenderConfig {
        let config = sender(self.segments, self.block);
        SenderConfig { duration: self.duration, overhead_percent: self.overhead, head: self.head, ..config }
    }

    fn session(self, setup: Setup) -> Session {
        let link = Link::lossy(ms(100), self.loss);
        let link = if self.rough {
            Link { duplication: 0.02, jitter: ms(3), corruption: 0.02, ..link }
        } else {
            link
        };
        Session::new(&format!("{self:?}"), setup, self.config(), 3, link)
    }
}

fn cases() -> Vec<Case> {
    vec![
        CASE,
        Case { segments: 1, block: 70, ..CASE },
        Case { loss: 0.0, overhead: 0, head: 0, ..CASE },
        Case { duration: Duration::Rounds(4), loss: 0.3, ..CASE },
        Case { duration: Duration::For(ms(700)), overhead: 0, ..CASE },
        Case { segments: 127, block: 127, duration: Duration::Rounds(3), ..CASE },
    ]
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
        let case = Case { rough: true, ..case };
        laws::all(0..2, ms(20), |setup| case.session(setup).net, |_| true);
    }
}

#[test]
fn the_rate_is_kept_and_receivers_say_nothing() {
    for case in cases() {
        let mut session = case.session(Setup::plain(1)).run();
        let log = session.net.take_log();
        assert!(
            log.departures.iter().all(|departure| departure.from == 0),
            "{case:?}: a receiver said something"
        );
        let rate = BitRate::from_bps(RATE).expect("positive");
        laws::keeps_rate(&session.net.context(), &log.departures, rate, 28, Span::from_millis(100));
    }
}
