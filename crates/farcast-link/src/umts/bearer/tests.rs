use std::vec;
use std::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, Port, Stage};
use farcast_core::{BitRate, Probability, Span, Time};
use farcast_rlc::config::MaxTransmissions;

use super::{Bearer, BearerConfig};
use crate::pipe::QueueLimit;
use crate::tests::probe::{Probe, flatten};
use crate::umts::{ChannelConfig, ErasureUnit, Erasures};

mod live;
mod octets;
mod queue;

/// 57.5 ms, as every channel here has.
const PROCESSING: Span = Span::from_micros(57_500);

fn channel(kbps: u64, tti_ms: u64) -> ChannelConfig {
    ChannelConfig {
        rate: BitRate::from_bps(kbps * 1000).unwrap(),
        tti: Span::from_millis(tti_ms),
        erasures: Erasures::default(),
        processing: PROCESSING,
        queue: QueueLimit::Unbounded,
    }
}

/// 384 kbit/s down in intervals of 10 ms, 32 kbit/s up in intervals of 20 ms, PDUs of 40 octets of data.
fn config() -> BearerConfig {
    let rlc = farcast_rlc::Config::default();
    BearerConfig { downlink: channel(384, 10), uplink: channel(32, 20), rlc }
}

fn lossy(unit: ErasureUnit, rate: f64) -> BearerConfig {
    let mut config = config();
    config.downlink.erasures = Erasures { unit, rate: Probability::new(rate).unwrap() };
    config.rlc.max_transmissions = MaxTransmissions::new(1000).unwrap();
    // Without it, a transfer whose last poll is erased stands still for good.
    config.rlc.polling.timer = Some(Span::from_millis(300));
    config
}

fn bearer(config: &BearerConfig) -> Bearer<Probe> {
    Bearer::new(config, RandomStream::derive(5, &[])).unwrap()
}

fn micros(at: u64) -> Time {
    Time::ZERO + Span::from_micros(at)
}

/// `count` packets of `octets`, numbered from `first`.
fn packets(first: u32, count: u32, octets: usize, spacing: Span) -> Frame<Probe> {
    Frame { message: Probe::new(first, count, octets, octets), overhead: 0, spacing }
}

/// Wakes `stage` whenever it wants to be, until it is quiet or `end`; when what leaves.
fn drain(stage: &mut Bearer<Probe>, end: Time) -> Vec<(Time, u32)> {
    let mut out = Vec::new();
    flatten(stage, &mut out);
    while let Some(deadline) = stage.poll_timeout().filter(|deadline| deadline.at <= end) {
        stage.handle_timeout(deadline.at);
        flatten(stage, &mut out);
    }
    out
}

/// Returns the time at which a packet of `octets` leaves that enters at `at`, both in microseconds.
fn crossing(port: Port, at: u64, octets: usize) -> u64 {
    let mut stage = bearer(&config());
    stage.handle(micros(at), port, packets(0, 1, octets, Span::ZERO));
    let out = drain(&mut stage, micros(10_000_000));
    assert_eq!(out.len(), 1);
    out[0].0.as_nanos() / 1000
}

#[test]
fn a_packet_takes_as_many_intervals_as_its_pdus_fill() {
    // 39 octets and their indicator fill a PDU; 40 need a second, which says that they end there.
    assert_eq!(crossing(Port::Hub, 9_999, 39), 10_000 + 10_000 + 57_500);
    assert_eq!(crossing(Port::Hub, 9_999, 40), 10_000 + 10_000 + 57_500);
    // 37 PDUs and one to say so are 38, of which an interval takes 12.
    assert_eq!(crossing(Port::Hub, 9_999, 1480), 10_000 + 40_000 + 57_500);
    assert_eq!(crossing(Port::Hub, 9_999, 1500), 10_000 + 40_000 + 57_500);
    // 11 full PDUs and an indicator of the end fill the first interval.
    assert_eq!(crossing(Port::Hub, 9_999, 12 * 40 - 1), 10_000 + 10_000 + 57_500);
    assert_eq!(crossing(Port::Hub, 9_999, 12 * 40), 10_000 + 20_000 + 57_500);
    // The uplink takes 2 PDUs in 20 ms.
    assert_eq!(crossing(Port::Terminal(0), 19_999, 79), 20_000 + 20_000 + 57_500);
    assert_eq!(crossing(Port::Terminal(0), 19_999, 80), 20_000 + 40_000 + 57_500);
}

#[test]
fn what_comes_while_an_interval_runs_waits_for_the_next() {
    assert_eq!(crossing(Port::Hub, 9_999, 39), 20_000 + 57_500);
    assert_eq!(crossing(Port::Hub, 10_001, 39), 30_000 + 57_500);
    // So does what comes as one begins.
    assert_eq!(crossing(Port::Hub, 10_000, 39), 30_000 + 57_500);
    assert_eq!(crossing(Port::Terminal(3), 19_999, 39), 40_000 + 57_500);
}

#[test]
fn packets_in_a_row_share_pdus_and_saturate_the_rate() {
    // 1,877 PDUs: fewer than the window has.
    let mut stage = bearer(&config());
    stage.handle(Time::ZERO, Port::Hub, packets(0, 50, 1500, Span::ZERO));
    let out = drain(&mut stage, micros(100_000_000));
    assert_eq!(out.iter().map(|&(_, number)| number).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    // Packet n is over when n + 1 packets and as many indicators of one octet have left. One that ends with a PDU has
    // its indicator in the next.
    for &(at, number) in &out {
        let octets = 1501 * u64::from(number + 1);
        let intervals = octets.div_ceil(40).div_ceil(12);
        assert_eq!(at, micros(10_000 * (1 + intervals) + 57_500), "packet {number}");
    }
}

/// Returns the channel's counters of intervals and PDUs after many packets, and the number of packets that left.
fn erased(unit: ErasureUnit) -> (crate::umts::ChannelCounters, usize) {
    let mut stage = bearer(&lossy(unit, 0.1));
    stage.handle(Time::ZERO, Port::Hub, packets(0, 3000, 1500, Span::ZERO));
    let out = drain(&mut stage, micros(1_000_000_000));
    (stage.counters()[0].channel, out.len())
}

#[test]
fn erasures_take_intervals_or_pdus() {
    let (counts, delivered) = erased(ErasureUnit::Tti);
    assert_eq!(delivered, 3000);
    let share = |part: u64, all: u64| part as f64 / all as f64;
    // Five sigma of a binomial share of 0.1.
    let near = |part, all: u64| (share(part, all) - 0.1).abs() < 5.0 * (0.09 / all as f64).sqrt();
    assert!(near(counts.erased_intervals, counts.intervals), "{counts:?}");
    assert!(counts.erased_pdus >= 10 * counts.erased_intervals, "whole intervals: {counts:?}");
    let (counts, delivered) = erased(ErasureUnit::Pdu);
    assert_eq!(delivered, 3000);
    assert!(near(counts.erased_pdus, counts.pdus), "{counts:?}");
    // An interval of 12 is hardly ever lost as a whole.
    assert!(counts.erased_intervals < counts.intervals / 50, "{counts:?}");
}

#[test]
fn nothing_is_lost_and_order_is_kept_both_ways() {
    for unit in [ErasureUnit::Tti, ErasureUnit::Pdu] {
        let mut config = lossy(unit, 0.3);
        config.uplink.erasures = config.downlink.erasures;
        let mut stage = bearer(&config);
        stage.handle(Time::ZERO, Port::Hub, packets(0, 100, 700, Span::from_millis(9)));
        stage.handle(Time::ZERO, Port::Terminal(0), packets(1000, 100, 60, Span::from_millis(30)));
        let out = drain(&mut stage, micros(100_000_000));
        let of = |range: std::ops::Range<u32>| {
            out.iter().map(|&(_, number)| number).filter(|number| range.contains(number)).collect::<Vec<_>>()
        };
        assert_eq!(of(0..100), (0..100).collect::<Vec<_>>());
        assert_eq!(of(1000..1100), (1000..1100).collect::<Vec<_>>());
        let [downlink, uplink] = stage.counters();
        assert_eq!((downlink.delivered, uplink.delivered), (100, 100));
        assert!(stage.poll_timeout().is_none(), "it is quiet in the end");
    }
}

#[test]
fn a_packet_that_is_given_up_lets_those_behind_it_pass() {
    let mut config = lossy(ErasureUnit::Tti, 0.2);
    config.rlc.max_transmissions = MaxTransmissions::new(1).unwrap();
    let mut stage = bearer(&config);
    stage.handle(Time::ZERO, Port::Hub, packets(0, 500, 300, Span::from_millis(100)));
    let out = drain(&mut stage, micros(600_000_000));
    let [downlink, _] = stage.counters();
    let discarded = stage.rlc()[0].sdus_discarded;
    assert!(discarded > 50, "{discarded}");
    // Each was delivered or given up; one may be both, where only the report of it was missing.
    assert!(out.len() as u64 + discarded >= 500 && out.len() < 450, "{} and {discarded}", out.len());
    assert_eq!(downlink.delivered, out.len() as u64);
    assert!(out.is_sorted_by(|a, b| a.1 < b.1 && a.0 <= b.0));
    assert!(out.last().unwrap().1 > 480, "those behind it pass");
}

/// A prohibit of 50 ms has a PDU asked for again while its only repetition is under way: the sender gives it up, and it
/// arrives all the same.
#[test]
fn what_is_given_up_too_early_arrives() {
    let mut config = lossy(ErasureUnit::Tti, 0.1);
    config.rlc.max_transmissions = MaxTransmissions::new(2).unwrap();
    config.rlc.status.prohibit = Some(Span::from_millis(50));
    let mut stage = bearer(&config);
    for first in [0, 400] {
        stage.handle(Time::ZERO, Port::Hub, packets(first, 400, 1500, Span::from_millis(400)));
    }
    let out = drain(&mut stage, micros(600_000_000));
    let [network, terminal] = stage.rlc().map(|counters| *counters);
    assert_eq!(out.len() as u64, terminal.sdus_delivered, "all that RLC delivers leaves");
    assert!(out.len() < 800 && out.len() as u64 + network.sdus_discarded > 850, "{} {network:?}", out.len());
    assert!(out.is_sorted_by(|a, b| a.0 <= b.0));
}

#[test]
fn cutting_a_run_changes_nothing() {
    let spacing = Span::from_micros(3_700);
    let whole = {
        let mut stage = bearer(&lossy(ErasureUnit::Tti, 0.2));
        stage.handle(Time::ZERO, Port::Hub, packets(0, 50, 900, spacing));
        drain(&mut stage, micros(60_000_000))
    };
    let mut stage = bearer(&lossy(ErasureUnit::Tti, 0.2));
    let mut cut = Vec::new();
    for (number, at) in (0..50).map(|n| (n, Time::ZERO + spacing * u64::from(n))) {
        cut.extend(drain(&mut stage, Time::from_nanos(at.as_nanos().saturating_sub(1))));
        stage.handle(at, Port::Hub, packets(number, 1, 900, Span::ZERO));
    }
    cut.extend(drain(&mut stage, micros(60_000_000)));
    assert_eq!(whole, cut);
    assert_eq!(whole.len(), 50);
}

#[test]
fn it_makes_no_difference_whether_a_wake_up_or_a_frame_comes_first() {
    let played = |frames_first: bool| {
        let mut stage = bearer(&lossy(ErasureUnit::Tti, 0.2));
        let mut out = Vec::new();
        for number in 0..100 {
            // As an interval of the downlink begins, and some of these with one of the uplink.
            let at = micros(10_000 * u64::from(number));
            out.extend(drain(&mut stage, Time::from_nanos(at.as_nanos().saturating_sub(1))));
            if !frames_first {
                out.extend(drain(&mut stage, at));
            }
            stage.handle(at, Port::Terminal(0), packets(1000 + number, 1, 40, Span::ZERO));
            stage.handle(at, Port::Hub, packets(number, 1, 300, Span::ZERO));
            out.extend(drain(&mut stage, at));
        }
        out.extend(drain(&mut stage, micros(60_000_000)));
        out
    };
    let frames_first = played(true);
    assert_eq!(frames_first.len(), 200);
    assert_eq!(frames_first, played(false));
}

#[test]
fn an_early_wake_up_changes_nothing_and_a_late_one_delays_only_what_is_seen() {
    let start = || {
        let mut stage = bearer(&lossy(ErasureUnit::Tti, 0.2));
        stage.handle(Time::ZERO, Port::Hub, packets(0, 20, 900, Span::ZERO));
        stage
    };
    let mut on_time = start();
    let expected = drain(&mut on_time, micros(60_000_000));
    let mut often = start();
    let mut out = Vec::new();
    for at in (0..2_000_000).step_by(333) {
        often.handle_timeout(micros(at));
        flatten(&mut often, &mut out);
    }
    // Woken every 333 us: it leaves at the first of these instants that is not before its time.
    let rounded = |at: Time| micros(at.as_nanos().div_ceil(333_000) * 333);
    assert_eq!(out, expected.iter().map(|&(at, n)| (rounded(at), n)).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let refused = |change: fn(&mut BearerConfig)| {
        let mut config = config();
        change(&mut config);
        let error = Bearer::<Probe>::new(&config, RandomStream::derive(0, &[])).unwrap_err();
        std::string::ToString::to_string(&error)
    };
    let errors = vec![
        refused(|config| config.downlink.rate = BitRate::from_bps(31_999).unwrap()),
        refused(|config| config.uplink.tti = Span::ZERO),
        refused(|config| config.uplink.tti = Span::from_secs(100_000_000)),
        refused(|config| config.rlc.tx_window = 0),
    ];
    assert_eq!(
        errors,
        [
            "forward.tti: it holds no PDU: it carries 319 bits, and a PDU has 320 of data",
            "return.tti: it is 0; UMTS has 10, 20, 40 and 80 ms",
            "return.tti: it holds more than 65,535 PDUs",
            "tx_window is 0: it must be 1 to 4095",
        ]
    );
}
