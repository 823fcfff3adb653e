//! Octets in fragments, headers and frames: packets leave as they entered, and losses are as without octets.

use super::*;
use crate::tests::packet::Packet;
use farcast_ppp::Fcs;

impl Number for Packet {
    fn number(&self) -> u32 {
        self.assert_arrived();
        self.number
    }
}

/// A packet that enters: the gap to the one before in ms, `true` at a terminal, and its length.
type Entry = (u64, bool, usize);

/// Plays `entries` and an hour more. Returns the packets that leave, with their octets checked.
fn play(bundle: &mut Multilink<Packet>, entries: &[Entry], octets: bool) -> Vec<(Time, Port, u32)> {
    let (mut now, mut out) = (START, Vec::new());
    for (number, &(gap, back, len)) in (0..).zip(entries) {
        now += ms(gap);
        out.extend(drive(bundle, now));
        let port = if back { Port::Terminal(0) } else { Port::Hub };
        bundle.handle(now, port, Packet::new(number, len, octets).frame());
    }
    out.extend(drive(bundle, now + Span::from_secs(3600)));
    out
}

fn both(bundle: &Multilink<Packet>, counter: fn(&WayCounters) -> u64) -> u64 {
    counter(bundle.counters(End::Terminal)) + counter(bundle.counters(End::Hub))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_leaves_is_what_entered_whatever_the_settings(
        config in laws::config(), fcs32 in any::<bool>(), accm in prop_oneof![Just(0), Just(u32::MAX)],
        (acfc, pfc) in any::<(bool, bool)>(), seed in any::<u64>(),
        entries in prop::collection::vec((0..5000u64, any::<bool>(), 0..1600usize), 1..40),
    ) {
        let fcs = if fcs32 { Fcs::Fcs32 } else { Fcs::Fcs16 };
        let config = MultilinkConfig { framing: Framing { fcs, accm, acfc, pfc }, ..config };
        // With other framing, echoes may need more time than there is.
        prop_assume!(config.check().is_ok());
        let mut bundle = bundle(&config, seed);
        let out = play(&mut bundle, &entries, true);
        prop_assert_eq!(both(&bundle, |way| way.codec_faults), 0);
        prop_assert_eq!(both(&bundle, |way| way.delivered), out.len() as u64);
        let held = bundle.forward.held().count() + bundle.back.held().count();
        let fates = both(&bundle, |way| {
            way.delivered + way.too_long + way.queue_dropped + way.lost_by_drops + way.lost_by_errors + way.given_up
        });
        prop_assert_eq!(fates + held as u64, entries.len() as u64);
    }
}

/// Each packet has a fragment on each link, so the same draw decides on the same fragment, however long escapes make
/// it.
#[test]
fn the_same_packets_are_lost_as_without_octets() {
    for header in [Format::Long, Format::Short] {
        let mut config = iridium(4);
        config.header = header;
        config.policy = Policy::Equal { smallest: 1 };
        config.frame_loss = Probability::new(0.05).expect("a probability");
        let entries: Vec<Entry> = (0..2000).map(|n| (600, n % 2 == 0, 4 + n * 11 % 300)).collect();
        let (mut plain, mut octets) = (bundle(&config, 8), bundle(&config, 8));
        let sorted = |out: &[_]| {
            let mut numbers = numbers(out);
            numbers.sort_unstable();
            numbers
        };
        let left = sorted(&play(&mut plain, &entries, false));
        assert_eq!(sorted(&play(&mut octets, &entries, true)), left);
        // 2,000 packets survive with a probability of 0.95^4 = 0.81: 1,629, with a deviation of 17.4.
        assert!((left.len() as f64 - 1629.0).abs() < 5.0 * 17.4, "{}", left.len());
        assert_eq!(both(&octets, |way| way.lost_by_errors), both(&plain, |way| way.lost_by_errors));
        // Some 400 lost fragments, all of them refused.
        let line = |link| octets.line(link, End::Terminal).expect("a link").errors;
        assert!((0..4).map(line).sum::<u64>() > 150);
        assert_eq!(both(&octets, |way| way.fcs_missed + way.codec_faults), 0);
        assert_eq!(both(&plain, |way| way.fcs_missed + way.codec_faults), 0);
    }
}

/// The octets on the line of a whole packet in one fragment, without flags: as RFC 1990 §3 and RFC 1662 §4 and appendix
/// C say, octet by octet.
fn naive_frame(sequence: u32, packet: &[u8], (short, framing): (bool, Framing)) -> u64 {
    let mut content = vec![];
    if !framing.acfc {
        content.extend([0xFF, 0x03]);
    }
    content.extend_from_slice(if framing.pfc { &[0x3D] } else { &[0x00, 0x3D] });
    let [_, high, middle, low] = sequence.to_be_bytes();
    let long = [0xC0, high, middle, low];
    content.extend(if short { vec![0xC0 | middle, low] } else { long.to_vec() });
    content.extend_from_slice(if framing.pfc { &[0x21] } else { &[0x00, 0x21] });
    content.extend_from_slice(packet);
    let mut register = 0xFFFF_u16;
    for octet in &content {
        for bit in 0..8 {
            let out = (register ^ u16::from(octet >> bit)) & 1;
            register = register >> 1 ^ if out == 1 { 0x8408 } else { 0 };
        }
    }
    content.extend((!register).to_le_bytes());
    let escaped =
        |octet: &&u8| matches!(**octet, 0x7D | 0x7E) || **octet < 32 && framing.accm >> **octet & 1 == 1;
    (content.len() + content.iter().filter(escaped).count()) as u64
}

#[test]
fn a_frame_takes_the_time_of_its_octets() {
    let default = Framing::default();
    for (short, framing) in [
        (false, default),
        (true, default),
        (true, Framing::UNCONFIGURED),
        (false, Framing { accm: 0x55, ..default }),
    ] {
        let mut config = iridium(1);
        config.header = if short { Format::Short } else { Format::Long };
        config.policy = Policy::Whole;
        config.framing = framing;
        let entries: Vec<Entry> = (0..60).map(|n| (0, false, 1 + n * 25)).collect();
        let mut bundle = bundle(&config, 1);
        let out = play(&mut bundle, &entries, true);
        assert_eq!(out.len(), 60);
        // One flag of its own at first, and one behind each.
        let mut octets = 1;
        for (number, &(at, ..)) in (0..).zip(&out) {
            let packet = Packet::new(number, entries[number as usize].2, true);
            octets += naive_frame(number, packet.contents(), (short, framing)) + 1;
            let sent = rate(2400).time_of_bits(octets * 8).as_nanos();
            let left = at.since(START + ms(900)).as_nanos();
            // Each of the frames before is rounded up to the nanosecond.
            assert!((sent..=sent + u64::from(number)).contains(&left), "packet {number}: {left}, {sent}");
        }
        assert_eq!(bundle.line(0, End::Terminal).expect("a link").octets, octets);
    }
}

#[test]
fn packets_of_any_length_pass_or_are_refused() {
    for policy in [Policy::Whole, Policy::Free, Policy::Equal { smallest: 64 }] {
        for (mrru, expected) in [(1500, 0..4), (u16::MAX, 0..5)] {
            let mut config = iridium(3);
            config.policy = policy;
            config.reassembly.mrru = mrru;
            let entries = [0, 1, 20, 1500, 65_535, 65_536].map(|len| (400_000, false, len));
            let mut bundle = bundle(&config, 1);
            assert_eq!(numbers(&play(&mut bundle, &entries, true)), expected.collect::<Vec<_>>());
            assert_eq!(both(&bundle, |way| way.codec_faults), 0);
        }
    }
}

#[test]
fn packets_without_octets_pass_among_others() {
    let mut bundle = bundle(&iridium(4), 1);
    for number in 0..100 {
        bundle.handle(START, Port::Hub, Packet::new(number, 333, number % 3 == 0).frame());
    }
    assert_eq!(numbers(&drive(&mut bundle, START + Span::from_secs(3600))), (0..100).collect::<Vec<_>>());
}
