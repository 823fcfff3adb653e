//! Laws of engines, for every configuration.

use std::net::SocketAddr;
use std::ops::Range;

use farcast_mftp::{Group, Invited, NakTiming, Pace, PassWait, SenderConfig, StatusRetry};
use farcast_testkit::{Cut, Link, Setup, Wake, laws};

use crate::common::{Ownership, Session, at, ms, receiver, receiver_address, response_group, sender};

/// Configuration of a sender, a group and a link.
#[derive(Clone, Copy, Debug)]
struct Case {
    wait: PassWait,
    window: bool,
    parity: u32,
    loss: f64,
    receivers: u32,
    block: u32,
    /// `true` for duplication, jitter and corruption besides loss.
    rough: bool,
    group: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    OpenLimited,
    Closed,
    OpenUnlimited,
    /// Answers go to a group, spread and suppressed.
    Spread,
    /// All receivers hold part of the product.
    Restart,
    /// One receiver comes in the middle of pass 1, and a stranger registers under another's id.
    Late,
    /// The time limit ends the transfer in the middle of a block.
    TimeLimit,
}

impl Case {
    fn config(self) -> SenderConfig {
        let mut config = sender(60, self.block, self.receivers);
        (config.pass_wait, config.parity_symbols) = (self.wait, self.parity);
        config.status_retry_count = 20;
        if self.window {
            config.pace = Pace::Window { segments: 40, paced: self.parity > 0 };
        }
        if self.block == 7 {
            config.nak_timing = NakTiming::EndOfFirstPass;
        }
        match self.group {
            Kind::Closed => {
                let labels = (0..self.receivers).map(|n| Invited::new(&format!("10.0.0.{}", n + 1)));
                config.group = Group::Closed(labels.collect());
            }
            Kind::OpenUnlimited => {
                (config.group, config.start.after) = (Group::OpenUnlimited, Some(ms(400)));
            }
            Kind::Spread => {
                config.response = SocketAddr::new(response_group(), 40000);
                (config.backoff_window, config.status_retry) = (ms(500), StatusRetry::Measured);
            }
            Kind::Late => {
                config.late_announce_interval = ms(110);
                config.start.receivers = Some(self.receivers - 1);
            }
            Kind::TimeLimit => config.transfer_limit = ms(203),
            Kind::OpenLimited | Kind::Restart => {}
        }
        config
    }

    fn session(self, setup: Setup) -> Session {
        let mut link = Link::lossy(ms(120), self.loss);
        if self.rough {
            (link.duplication, link.jitter, link.corruption) = (0.1, ms(40), 0.05);
        }
        let mut session = Session::empty(&format!("{self:?}"), setup, self.config(), link);
        for n in 0..self.receivers as usize {
            let lacks = (self.group == Kind::Restart).then(|| (n as u32..60).step_by(3).collect());
            session.add(n, receiver(n), Ownership { lacks, ..Ownership::default() });
        }
        if self.group == Kind::Late {
            let last = session.clients[self.receivers as usize - 1].handle;
            session.net.appear(at(ms(450)), last);
            let mut address = receiver_address(0);
            address.set_port(41000);
            let double = session.add_at(address, receiver(0), Ownership::default());
            session.net.appear(at(ms(600)), double.handle);
        }
        session
    }

    fn obeys(self, seeds: Range<u64>) {
        let build = |setup| self.session(setup).net;
        laws::repeats(seeds.start..seeds.start + 1, build);
        laws::ignores_cuts(seeds.clone(), build);
        laws::ignores_early_wakes(seeds, build);
    }
}

/// Returns every combination of pass rule, pace and parity with some losses and block sizes.
fn cases(receivers: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    for wait in [PassWait::Draft, PassWait::FixedTimer] {
        for (window, parity) in [(false, 0), (false, 6), (true, 0), (true, 6)] {
            for (loss, block) in [(0.0, 7), (0.01, 16), (0.2, 16), (0.2, 7), (0.2, 60), (0.01, 1)] {
                let (rough, group) = (false, Kind::OpenLimited);
                cases.push(Case { wait, window, parity, loss, receivers, block, rough, group });
            }
        }
    }
    cases
}

#[test]
fn one_receiver() {
    for case in cases(1) {
        case.obeys(0..4);
    }
}

#[test]
fn three_receivers() {
    for case in cases(3) {
        case.obeys(0..3);
    }
}

#[test]
fn twenty_receivers() {
    for case in cases(20) {
        case.obeys(0..1);
    }
}

#[test]
fn rough_links() {
    for case in cases(3) {
        Case { rough: true, ..case }.obeys(0..2);
    }
}

#[test]
fn other_groups() {
    for case in cases(4) {
        for group in
            [Kind::Closed, Kind::OpenUnlimited, Kind::Spread, Kind::Restart, Kind::Late, Kind::TimeLimit]
        {
            if group != Kind::OpenUnlimited || !case.window {
                Case { group, ..case }.obeys(0..2);
            }
        }
    }
}

#[test]
fn everyone_completes() {
    for case in cases(3) {
        for group in [Kind::OpenLimited, Kind::Closed, Kind::OpenUnlimited, Kind::Spread, Kind::Restart] {
            if group != Kind::OpenUnlimited || !case.window {
                Case { group, ..case }.session(Setup::plain(5)).run().assert_complete();
            }
        }
    }
}

#[test]
fn late_wake_ups_are_survived() {
    for case in cases(3) {
        for (seed, cut) in [(0, Cut::Whole), (1, Cut::One), (2, Cut::Random(2))] {
            case.session(Setup { seed, cut, wake: Wake::Late(ms(30)) }).run().assert_complete();
        }
    }
}
