//! Preset `modern` beside the kernel of Linux: the segments that both send when the same transmissions are lost.

use std::collections::BTreeMap;

use farcast_core::{BitRate, Span};
use farcast_tcp::{AfterTimeout, Algorithm, Config, Increase, Reduction, RtoConfig, Variation};

use crate::common::{CLIENT, SERVER, World, drop_data, prompt};

const SMSS: u64 = 1000;

/// A transmission of the kernel's.
#[derive(Clone, Copy)]
struct Theirs {
    round_trip: u64,
    at: f64,
    segment: u64,
    lost: bool,
}

/// The cases by name.
fn cases() -> BTreeMap<&'static str, Vec<Theirs>> {
    let mut cases = BTreeMap::<_, Vec<_>>::new();
    let table = include_str!("../../../../vectors/tcp/linux_losses.csv");
    for line in table.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&'static str> = line.split(',').collect();
        let [name, round_trip, at, segment, lost] = fields[..] else { panic!("{line}") };
        cases.entry(name).or_default().push(Theirs {
            round_trip: round_trip.parse().expect("ms"),
            at: at.parse().expect("ms"),
            segment: segment.parse().expect("a number"),
            lost: lost == "1",
        });
    }
    cases
}

/// The preset with Reno, which the kernel was set to.
fn modern() -> Config {
    Config { mss: SMSS as u16 + 12, congestion: Algorithm::Reno, hystart: false, ..Config::modern() }
}

/// Returns our segments, with times in ms, for the losses that the kernel had. Segments follow each other by 80 us, so
/// that acknowledgments do not come at one instant.
fn ours(config: &Config, theirs: &[Theirs]) -> Vec<(u64, u64)> {
    let segments = 1 + theirs.iter().map(|one| one.segment).max().expect("a case sends something");
    let lost: Vec<usize> = (0..).zip(theirs).filter(|(_, one)| one.lost).map(|(n, _)| n).collect();
    let receiver = Config { mss: SMSS as u16 + 12, ..prompt() };
    let round_trip = Span::from_millis(theirs[0].round_trip);
    let mut world = World::open(config.clone(), receiver, round_trip, (segments * SMSS) as usize);
    world.paths[CLIENT].script = drop_data(&lost);
    world.paths[CLIENT].rate = BitRate::from_bps(100_000_000);
    let begin = world.now;
    world.write(CLIENT, segments * SMSS);
    world.run_to_receipt(SERVER, segments * SMSS);
    world.schedule(CLIENT, SMSS, begin)
}

/// Every transmission in its order, with the kernel's time since the one before. Allowed are 6 ms of noise, and the
/// lateness of a kernel timer (an eighth of its time, and 32 ms where that is more).
#[test]
fn the_kernel_sends_the_same() {
    let cases = cases();
    assert_eq!(cases.len(), 21);
    for (name, theirs) in &cases {
        let ours = ours(&modern(), theirs);
        let order = |n: usize| (ours.get(n).map(|one| one.1), theirs.get(n).map(|one| one.segment));
        for n in 0..ours.len().max(theirs.len()) {
            let (our, their) = order(n);
            assert_eq!(our, their, "{name}: transmission {n}: {ours:?}");
        }
        for n in 1..ours.len() {
            let (our, their) = ((ours[n].0 - ours[n - 1].0) as f64, theirs[n].at - theirs[n - 1].at);
            // Timers that have run for long are late by more than the gap that they end.
            let late = (our / 8.0).max(32.0) + 6.0;
            assert!((our - their).abs() <= late, "{name}: transmission {n}: after {our} and {their} ms");
        }
    }
}

/// Each of the settings in which `modern` follows Linux matters to some of the cases: without it they come out
/// otherwise.
#[test]
fn without_any_of_linux_rules_something_else_is_sent() {
    let cases = cases();
    for (what, config) in [
        (
            "variation",
            Config { rto: RtoConfig { variation: Variation::Rfc6298, ..RtoConfig::linux() }, ..modern() },
        ),
        ("after_timeout", Config { after_timeout: AfterTimeout::SlowStart, ..modern() }),
        ("reduction", Config { reduction: Reduction::Proportional, ..modern() }),
        ("increase", Config { increase: Increase::Octets(u16::MAX), ..modern() }),
    ] {
        let other = |theirs: &Vec<Theirs>| {
            let ours = ours(&config, theirs);
            ours.len() != theirs.len() || ours.iter().zip(theirs).any(|(our, their)| our.1 != their.segment)
        };
        let count = cases.values().filter(|theirs| other(theirs)).count();
        assert!(count > 0, "{what} changes nothing");
    }
}
