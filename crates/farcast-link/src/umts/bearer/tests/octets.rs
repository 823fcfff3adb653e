//! Octets through the codec: packets leave as they entered, and all else is as without octets.

use core::num::NonZeroU32;

use farcast_rlc::config::{Discard, Mrw, Polling, ResetConfig, StatusReporting};
use farcast_rlc::format::Format;
use farcast_rlc::report::ReportForm;
use proptest::prelude::*;

use super::*;
use crate::tests::packet::Packet;

/// A packet that enters: the gap to the one before in microseconds, `true` at a terminal, and its length.
type Entry = (u64, bool, usize);

/// All that can be seen of a bearer from outside.
#[derive(PartialEq, Debug)]
struct BearerRecord {
    left: Vec<(Time, Port, u32)>,
    woken: Vec<Time>,
    held: Vec<u32>,
    counters: [crate::umts::Counters; 2],
    rlc: [farcast_rlc::Counters; 2],
    totals: [farcast_core::stage::Totals; 2],
    figures: Vec<farcast_core::stage::Figure>,
}

/// Plays `entries` and 60 s more, with octets or without. Checks the octets of all that leaves.
fn play(config: &BearerConfig, seed: u64, entries: &[Entry], octets: bool) -> BearerRecord {
    let mut stage = Bearer::new(config, RandomStream::derive(seed, &[])).unwrap();
    let (mut left, mut woken, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    let mut run = |stage: &mut Bearer<Packet>, end: Time| {
        loop {
            while let Some(output) = stage.poll_output() {
                output.frame.message.assert_arrived();
                left.push((output.at, output.port, output.frame.message.number));
            }
            let Some(due) = stage.poll_timeout().filter(|due| due.at < end) else { return };
            woken.push(due.at);
            stage.handle_timeout(due.at);
        }
    };
    for (number, &(gap, up, len)) in (0..).zip(entries) {
        now += Span::from_micros(gap);
        run(&mut stage, now);
        let port = if up { Port::Terminal(0) } else { Port::Hub };
        stage.handle(now, port, Packet::new(number, len, octets).frame());
    }
    run(&mut stage, now + Span::from_secs(60));
    let mut held = Vec::new();
    stage.each_held(&mut |_, frame| held.push(frame.message.number));
    let rlc = stage.rlc().map(|counters| *counters);
    let totals = [stage.totals(), stage.return_totals()];
    BearerRecord { left, woken, held, counters: stage.counters(), rlc, totals, figures: stage.figures() }
}

/// Plays both ways, which must be alike, and gives what was seen.
fn both(config: &BearerConfig, seed: u64, entries: &[Entry]) -> BearerRecord {
    let (plain, octets) = (play(config, seed, entries, false), play(config, seed, entries, true));
    assert_eq!(plain, octets);
    let faults = octets.figures.iter().find(|figure| figure.name == "codec_faults").unwrap();
    assert_eq!(faults.value, Some(0.0));
    octets
}

/// Packets of mixed lengths, most of them down.
fn mixed(count: u32, gap: u64) -> Vec<Entry> {
    let mut random = RandomStream::derive(9, &[]);
    (0..count)
        .map(|_| {
            let len = match random.below(3) {
                0 => 1 + random.below(80),
                1 => 40 * (1 + random.below(8)) - random.below(3),
                _ => 1 + random.below(1500),
            };
            (random.below(2 * gap), random.chance(0.2), len as usize)
        })
        .collect()
}

#[test]
fn times_draws_and_counts_are_those_without_octets() {
    for transmissions in [1, 2, 3, 10] {
        for (unit, rate) in [(ErasureUnit::Tti, 0.2), (ErasureUnit::Pdu, 0.1)] {
            let mut config = lossy(unit, rate);
            config.uplink.erasures = config.downlink.erasures;
            config.rlc.max_transmissions = MaxTransmissions::new(transmissions).unwrap();
            for prohibit in [None, Some(Span::from_millis(60)), Some(Span::from_millis(200))] {
                config.rlc.polling.prohibit = prohibit;
                config.rlc.status.prohibit = prohibit;
                let seen = both(&config, 3, &mixed(300, 40_000));
                let [network, _] = seen.rlc;
                assert!(seen.left.len() > 50 && network.data_pdus > 1000, "{network:?}");
                assert_eq!(network.retransmissions > 0, transmissions > 1);
                assert!(transmissions > 3 || network.sdus_discarded > 0, "{network:?}");
            }
        }
    }
}

#[test]
fn resets_and_timed_discards_are_those_without_octets() {
    let mut config = lossy(ErasureUnit::Tti, 0.3);
    config.uplink.erasures = config.downlink.erasures;
    config.rlc.max_transmissions = MaxTransmissions::new(2).unwrap();
    config.rlc.discard = Discard::None;
    let seen = both(&config, 4, &mixed(300, 60_000));
    assert!(seen.rlc[0].resets > 5 && seen.left.len() > 20, "{seen:?}");
    config.rlc.discard = Discard::Timer { after: Span::from_millis(400) };
    let seen = both(&config, 4, &mixed(300, 60_000));
    assert!(seen.rlc[0].window_moves > 5 && seen.left.len() > 20, "{seen:?}");
    // The network's end is not heard: the terminal's end, whose resets it does not answer, gives up.
    config.downlink.erasures.rate = Probability::new(1.0).unwrap();
    config.rlc.discard = Discard::None;
    let seen = both(&config, 4, &mixed(30, 60_000));
    assert!(seen.counters[1].failed, "{seen:?}");
}

/// With PDUs of 130 octets, 65,535 octets leave one of padding in the last, which the next PDU says.
#[test]
fn packets_of_any_length_pass_or_are_refused() {
    let entries = [0, 1, 20, 1500, 65_535, 65_536, 126, 127, 128].map(|len| (100_000, false, len));
    for pdu_octets in [6, 42, 129, 130, 1505] {
        let mut config = config();
        config.downlink = channel(2000, 80);
        config.rlc.format = Format::new(pdu_octets);
        config.rlc.tx_window = 2047;
        config.rlc.polling.window_percent = Some(50);
        config.rlc.polling.timer = Some(Span::from_millis(300));
        let seen = both(&config, 1, &entries);
        let numbers: Vec<u32> = seen.left.iter().map(|&(_, _, number)| number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 6, 7, 8], "PDUs of {pdu_octets}");
        assert_eq!(seen.rlc[0].sdus_refused, 2);
    }
}

#[test]
fn packets_without_octets_pass_among_others() {
    let mut stage = Bearer::new(&lossy(ErasureUnit::Tti, 0.2), RandomStream::derive(5, &[])).unwrap();
    for number in 0..100 {
        stage.handle(
            micros(10_000 * u64::from(number)),
            Port::Hub,
            Packet::new(number, 333, number % 3 == 0).frame(),
        );
    }
    let mut left = 0;
    while let Some(due) = stage.poll_timeout() {
        stage.handle_timeout(due.at);
        while let Some(output) = stage.poll_output() {
            output.frame.message.assert_arrived();
            left += 1;
        }
    }
    assert_eq!(left, 100);
}

fn span(millis: core::ops::Range<u64>) -> impl Strategy<Value = Option<Span>> {
    prop::option::of(millis.prop_map(Span::from_millis))
}

fn rlc() -> impl Strategy<Value = farcast_rlc::Config> {
    let format = || {
        let octets = prop_oneof![20..60u16, Just(42), 120..140u16, 200..400u16];
        (octets, any::<bool>())
            .prop_map(|(pdu_octets, header_extension)| Format { pdu_octets, header_extension })
    };
    let polling =
        (any::<bool>(), any::<bool>(), prop::option::of(1..40u32), prop::option::of(1..9u32), span(20..300));
    let polling = polling.prop_map(|(last_pdu, last_retransmitted_pdu, pdus, sdus, prohibit)| Polling {
        last_pdu,
        last_retransmitted_pdu,
        poll_pdu: pdus.and_then(NonZeroU32::new),
        poll_sdu: sdus.and_then(NonZeroU32::new),
        timer: Some(Span::from_millis(300)),
        prohibit,
        ..Polling::default()
    });
    let forms = prop_oneof![Just(ReportForm::List), Just(ReportForm::Bitmap), Just(ReportForm::RelativeList)];
    let status = (any::<bool>(), span(100..900), span(100..300), span(20..300), forms).prop_map(
        |(missing_pdu, periodic, epc, prohibit, form)| StatusReporting {
            missing_pdu,
            periodic,
            epc,
            prohibit,
            form,
        },
    );
    let discard = prop_oneof![
        Just(Discard::None),
        Just(Discard::MaxTransmissions),
        (100..3000u64).prop_map(|after| Discard::Timer { after: Span::from_millis(after) }),
    ];
    let rest = (1..12u32, 10..2047u16, any::<bool>(), any::<bool>());
    (format(), format(), polling, status, discard, rest).prop_map(
        |(format, peer_format, polling, status, discard, (most, window, in_sequence, piggyback))| {
            farcast_rlc::Config {
                format,
                peer_format,
                polling,
                status,
                discard,
                max_transmissions: MaxTransmissions::new(most).unwrap(),
                tx_window: window,
                rx_window: window,
                in_sequence,
                piggyback,
                mrw: Mrw { timer: Span::from_millis(300), max_mrw: 3 },
                reset: ResetConfig { timer: Span::from_millis(500), max_rst: 4 },
                ..farcast_rlc::Config::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_leaves_is_what_entered_whatever_the_settings(
        rlc in rlc(),
        (down, up, pdus) in (0..40u32, 0..40u32, any::<bool>()),
        seed in any::<u64>(),
        entries in prop::collection::vec((0..100_000u64, prop::bool::weighted(0.3), 0..1600usize), 1..60),
    ) {
        let unit = if pdus { ErasureUnit::Pdu } else { ErasureUnit::Tti };
        let erasures = |percent: u32| Erasures { unit, rate: Probability::new(f64::from(percent) / 100.0).unwrap() };
        let mut config = BearerConfig { downlink: channel(384, 10), uplink: channel(320, 20), rlc };
        (config.downlink.erasures, config.uplink.erasures) = (erasures(down), erasures(up));
        both(&config, seed, &entries);
    }
}
