//! The laws of engines, for every way of sending.

use farcast_mftp::{NakTiming, Pace, PassWait, SenderConfig};
use farcast_testkit::{Cut, Link, Setup, Wake, laws};

use crate::common::{Net, Session, ms, sender};

/// One way of sending, one group, one loss.
#[derive(Clone, Copy, Debug)]
struct Case {
    wait: PassWait,
    window: bool,
    parity: u32,
    loss: f64,
    receivers: u32,
    block: u32,
}

impl Case {
    fn config(self) -> SenderConfig {
        let mut config = sender(60, self.block, self.receivers);
        (config.pass_wait, config.parity_symbols) = (self.wait, self.parity);
        if self.window {
            config.pace = Pace::Window { segments: 40 };
        }
        if self.block == 7 {
            config.nak_timing = NakTiming::EndOfFirstPass;
        }
        config
    }

    fn build(self, setup: Setup) -> Net {
        let link = Link { jitter: ms(0), ..Link::lossy(ms(120), self.loss) };
        Session::new(&format!("{self:?}"), setup, self.config(), self.receivers as usize, link).net
    }

    fn session(self, setup: Setup) -> Session {
        let link = Link::lossy(ms(120), self.loss);
        Session::new(&format!("{self:?}"), setup, self.config(), self.receivers as usize, link)
    }
}

/// Every combination of what `Case` has, for groups of `receivers`.
fn cases(receivers: u32) -> impl Iterator<Item = Case> {
    let waits = [PassWait::Draft, PassWait::FixedTimer];
    let of = move |wait, window, parity, (loss, block)| Case { wait, window, parity, loss, receivers, block };
    let links = [(0.0, 7), (0.01, 16), (0.2, 16), (0.2, 7), (0.2, 60), (0.01, 1)];
    waits.into_iter().flat_map(move |wait| {
        [false, true].into_iter().flat_map(move |window| {
            [0, 6]
                .into_iter()
                .flat_map(move |parity| links.into_iter().map(move |link| of(wait, window, parity, link)))
        })
    })
}

fn obeys_all(receivers: u32, seeds: core::ops::Range<u64>) {
    for case in cases(receivers) {
        laws::repeats(seeds.clone(), |setup| case.build(setup));
        laws::ignores_cuts(seeds.clone(), |setup| case.build(setup));
        laws::ignores_early_wakes(seeds.clone(), |setup| case.build(setup));
    }
}

#[test]
fn one_receiver() {
    obeys_all(1, 0..4);
}

#[test]
fn three_receivers() {
    obeys_all(3, 0..3);
}

#[test]
fn twenty_receivers() {
    obeys_all(20, 0..1);
}

#[test]
fn late_wake_ups_are_survived() {
    for case in cases(3) {
        for seed in 0..2 {
            for cut in [Cut::Whole, Cut::Random(seed)] {
                case.session(Setup { seed, cut, wake: Wake::Late(ms(30)) }).run().assert_complete();
            }
        }
    }
}
