//! Octets through framing and deframing: packets leave as they entered, at the times and with the fates that a line has
//! without octets.

use std::vec::Vec;

use farcast_core::Probability;
use farcast_core::random::RandomStream;
use farcast_core::stage::{Port, Stage};
use farcast_ppp::framing::{DEFAULT_ACCM, PROTOCOL_IPV4};
use proptest::prelude::*;

use super::*;
use crate::outage::{Schedule, Window};
use crate::ppp::damage::Damage;
use crate::ppp::stage::EndCounters;
use crate::tests::packet::Packet;

/// A packet that enters: the gap to the one before in microseconds, `true` at a terminal, and its length.
type Entry = (u64, bool, usize);

/// Sends packets through a stage. Returns those that leave, with their octets checked.
fn play(ppp: &mut Ppp<Packet>, entries: &[Entry]) -> Vec<(Time, Port, u32)> {
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    for (number, &(gap, back, len)) in (0..).zip(entries) {
        now += Span::from_micros(gap);
        while let Some(due) = ppp.poll_timeout().filter(|due| due.at <= now) {
            ppp.handle_timeout(due.at);
        }
        let port = if back { Port::Terminal(1) } else { Port::Hub };
        ppp.handle(now, port, Packet::new(number, len, true).frame());
        while let Some(output) = ppp.poll_output() {
            output.frame.message.assert_arrived();
            out.push((output.at, output.port, output.frame.message.number));
        }
    }
    out
}

/// The same without the stage: lines are told the octets, and say what becomes of them.
fn lines(config: &PppConfig, seed: u64, entries: &[Entry]) -> Vec<(Time, Port, u32)> {
    let mut stream = RandomStream::derive(seed, &[]);
    let mut line = |config: &LineConfig| {
        let line = SerialLine::new(config.clone(), RandomStream::derive(stream.bits(), &[])).expect("valid");
        let _magic = stream.below(u32::MAX.into());
        line
    };
    let mut lines = [line(&config.forward), line(&config.back)];
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    for (number, &(gap, back, len)) in (0..).zip(entries) {
        now += Span::from_micros(gap);
        let packet = Packet::new(number, len, true);
        if len > config.mtu.into() {
            continue;
        }
        let port = if back { Port::Hub } else { Port::Terminals };
        let sent = lines[usize::from(back)].send(now, PROTOCOL_IPV4, Information::Octets(packet.contents()));
        if let PacketFate::Frame { arrives, intact: true, .. } = sent {
            out.push((arrives, port, number));
        }
    }
    out
}

fn stage(config: &PppConfig, seed: u64) -> Ppp<Packet> {
    Ppp::new(config.clone(), RandomStream::derive(seed, &[])).expect("valid")
}

/// Returns the sum of a counter over both ends.
fn counted(ppp: &Ppp<Packet>, counter: fn(&EndCounters) -> u64) -> u64 {
    counter(ppp.counters(Port::Hub)) + counter(ppp.counters(Port::Terminals))
}

fn framings() -> impl Strategy<Value = Framing> {
    let accm = prop_oneof![Just(0), Just(DEFAULT_ACCM), Just(0x000A_0000), any::<u32>()];
    (any::<bool>(), accm, any::<bool>(), any::<bool>()).prop_map(|(long, accm, acfc, pfc)| Framing {
        fcs: if long { Fcs::Fcs32 } else { Fcs::Fcs16 },
        accm,
        acfc,
        pfc,
    })
}

fn errors() -> impl Strategy<Value = LineErrors> {
    let vector = (200..40_000u64, 1..20u64, any::<u64>()).prop_map(|(bits, count, seed)| {
        let vector = ErrorVector::random(bits, count, &mut RandomStream::derive(seed, &[])).expect("valid");
        LineErrors::Vector { vector, start: None }
    });
    let ber = (0..8u32).prop_map(|ber| Probability::new(f64::from(ber) * 5e-5).expect("a probability"));
    prop_oneof![Just(LineErrors::None), ber.prop_map(LineErrors::Ber), vector]
}

/// Lines with errors and with cut-offs of milliseconds to seconds, which repeat.
fn line_configs() -> impl Strategy<Value = LineConfig> {
    let cut_offs = prop::option::of((0..2000u64, 1..700u64)).prop_map(|cut| {
        let window = |(start, length)| Window { start: ms(start), length: Span::from_millis(length) };
        let windows: Vec<Window> = cut.into_iter().map(window).collect();
        Schedule::new(&windows, None).expect("valid")
    });
    (2400..200_000u64, 8..11u8, framings(), errors(), cut_offs).prop_map(
        |(bps, octet_bits, framing, errors, cut_offs)| LineConfig {
            octet_bits,
            framing,
            errors,
            cut_offs,
            ..LineConfig::new(rate(bps))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn octets_change_neither_times_nor_fates(
        forward in line_configs(), back in line_configs(), seed in any::<u64>(),
        entries in prop::collection::vec((0..400_000u64, any::<bool>(), 1..1600usize), 1..50),
    ) {
        let config = PppConfig::new(forward, back);
        let mut ppp = stage(&config, seed);
        let out = play(&mut ppp, &entries);
        prop_assert_eq!(&out, &lines(&config, seed, &entries));
        prop_assert_eq!(counted(&ppp, |end| end.delivered), out.len() as u64);
        prop_assert_eq!(counted(&ppp, |end| end.codec_faults), 0);
        prop_assert!(counted(&ppp, |end| end.fcs_missed) <= counted(&ppp, |end| end.lost));
    }

    /// Echoes are frames among the others, and pass the codec with them.
    #[test]
    fn echoes_pass_among_packets(
        forward in line_configs(), back in line_configs(), seed in any::<u64>(),
        entries in prop::collection::vec((0..900_000u64, any::<bool>(), 1..1600usize), 1..50),
    ) {
        let echo = Some(EchoConfig { interval: Span::from_millis(400), failures: 3 });
        let mut ppp = stage(&PppConfig { echo, ..PppConfig::new(forward, back) }, seed);
        play(&mut ppp, &entries);
        prop_assert_eq!(counted(&ppp, |end| end.codec_faults), 0);
    }
}

#[test]
fn a_good_line_answers_echoes_that_are_carried() {
    let echo = Some(EchoConfig { interval: Span::from_secs(1), failures: 2 });
    let line = || LineConfig {
        framing: Framing { accm: DEFAULT_ACCM, ..Framing::default() },
        ..LineConfig::new(rate(19_200))
    };
    let mut ppp = stage(&PppConfig { echo, ..PppConfig::new(line(), line()) }, 1);
    let entries = [(0, false, 100), (1000, true, 100), (9_500_000, false, 100), (0, true, 100)];
    assert_eq!(play(&mut ppp, &entries).len(), 4);
    // From 0 to 9 s.
    assert_eq!(counted(&ppp, |end| end.echo_requests), 20);
    assert_eq!(counted(&ppp, |end| end.echo_replies), 20);
    assert_eq!(counted(&ppp, |end| end.codec_faults + end.deaths), 0);
}

/// Every lost frame has a wrong bit, and none of some thousand gets through. A check sequence of 16 bits lets one of
/// 65,536 through where an error makes or breaks a flag or an escape, which of these a few percent do.
#[test]
fn the_check_sequence_refuses_what_the_line_has_damaged() {
    let line = || LineConfig {
        errors: LineErrors::Ber(Probability::new(1e-4).expect("a probability")),
        framing: Framing { accm: DEFAULT_ACCM, ..Framing::default() },
        ..LineConfig::new(rate(115_200))
    };
    let mut ppp = stage(&PppConfig::new(line(), line()), 2);
    let entries: Vec<Entry> = (0..6000).map(|n| (200_000, n % 3 == 0, 40 + n * 7 % 1400)).collect();
    play(&mut ppp, &entries);
    assert!(counted(&ppp, |end| end.lost) > 1500);
    assert_eq!(counted(&ppp, |end| end.fcs_missed + end.codec_faults), 0);
}

#[test]
fn packets_of_any_length_pass_or_are_refused() {
    for framing in
        [Framing::default(), Framing::UNCONFIGURED, Framing { fcs: Fcs::Fcs32, ..Framing::default() }]
    {
        let line = || LineConfig { framing, ..LineConfig::new(rate(1_000_000)) };
        for (mtu, lens) in [(1500, 1..4), (u16::MAX, 1..5)] {
            let mut ppp = stage(&PppConfig { mtu, ..PppConfig::new(line(), line()) }, 3);
            let entries = [0, 1, 20, 1500, 65_535, 65_536].map(|len| (10_000_000, false, len));
            let out = play(&mut ppp, &entries);
            // An empty packet is a frame where the header alone makes it long enough.
            let least = u32::from(framing.header_octets(PROTOCOL_IPV4) < 2);
            let numbers: Vec<u32> = out.iter().map(|&(_, _, number)| number).collect();
            assert_eq!(numbers, (least..lens.end).collect::<Vec<_>>(), "{framing:?}");
            assert_eq!(counted(&ppp, |end| end.codec_faults), 0);
        }
    }
}

#[test]
fn damage_is_done_where_it_befell() {
    let sent: Vec<u8> = (0..10).collect();
    let received = |damage: &Damage| {
        let mut octets = sent.clone();
        damage.inflict(&mut octets);
        octets
    };
    let mut damage = Damage::default();
    damage.begin(true);
    assert!(damage.leading());
    // A flag passes; of 8 octets two and two are cut off, and of those left the third has its second bit wrong; the
    // closing flag's last bit is wrong.
    damage.pass(1, None);
    damage.cut(2..4);
    damage.cut(7..9);
    damage.pass(4, Some(17));
    damage.pass(1, Some(7));
    assert_eq!(received(&damage), [0, 1, 4, 5 ^ 2, 6, 9 ^ 0x80]);
    damage.begin(false);
    assert!(!damage.leading());
    assert_eq!(received(&damage), sent);
    // What there is not is not damaged.
    damage.cut(5..u64::MAX);
    damage.pass(u64::MAX, Some(u64::MAX));
    damage.pass(u64::MAX, Some(0));
    assert_eq!(received(&damage), [0, 1, 2, 3, 4]);
}
