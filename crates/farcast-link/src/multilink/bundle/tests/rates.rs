//! Rates and round trips that follow from the octets of headers.

use super::*;

/// Returns the mean octets on the lines for a packet of 1500 octets in `fragments` fragments. The packet has its
/// protocol field. Each fragment has 1 octet of protocol, the header, 2 of FCS and a flag. Escapes add 2 in 256 of all
/// octets but headers and flags.
fn octets_of_packet(fragments: f64, header: f64) -> f64 {
    let plain = 1501.0 + fragments * (1.0 + header + 2.0 + 1.0);
    plain + (1501.0 + 2.0 * fragments) * 2.0 / 256.0
}

/// Returns the octets of packets that pass in a second in the long run, and the fragments of a packet of 1500 octets.
fn goodput(config: &MultilinkConfig) -> (f64, f64) {
    let mut bundle = bundle(config, 11);
    for number in 0..1000 {
        bundle.handle(START, Port::Hub, packet(number, 1500));
    }
    let out = drive(&mut bundle, Time::NEVER);
    assert_eq!(out.len(), 1000);
    let lines = (0..config.links.len()).filter_map(|link| bundle.line(link, End::Terminal));
    let fragments = lines.map(|line| line.fragments).sum::<u64>() as f64 / 1000.0;
    // The first and the last packets do not find every link busy.
    let (first, last) = (out[100].0, out[900].0);
    (800.0 * 1500.0 / last.since(first).as_secs_f64(), fragments)
}

#[test]
fn eight_links_carry_what_headers_leave_of_their_rates() {
    // 64 octets of headers (4.3 %) beside 1501; with escapes 1577 of 19,200 bit/s: 18.26 kbit/s.
    assert!((octets_of_packet(8.0, 4.0) - 1576.85).abs() < 0.01);
    for (header, octets) in [(Format::Long, 4.0), (Format::Short, 2.0)] {
        let check = |policy, expected_fragments: core::ops::RangeInclusive<f64>, tolerance| {
            let (measured, fragments) = goodput(&MultilinkConfig { header, policy, ..iridium(8) });
            assert!(expected_fragments.contains(&fragments), "{policy:?}: {fragments} fragments");
            let expected = 2400.0 * 1500.0 / octets_of_packet(fragments, octets);
            assert!((measured / expected - 1.0).abs() < tolerance, "{policy:?}: {measured} for {expected}");
        };
        // Escapes of sequence numbers add at most 0.05 %; those drawn for 800 packets vary by 0.01 %.
        check(Policy::Equal { smallest: 64 }, 8.0..=8.0, 0.001);
        check(Policy::Proportional { smallest: 64 }, 8.0..=8.0, 0.001);
        // A packet goes when half of the links are free, so most are cut over half of them.
        check(Policy::Free, 4.0..=5.0, 0.001);
        // Packets of 5 s each leave in groups of eight: the ends of the measurement are not sharp.
        check(Policy::Whole, 1.0..=1.0, 0.01);
    }
}

#[test]
fn four_links_carry_what_was_measured_in_greenland() {
    // 9.26 kbit/s over four channels in 2003, at more than 90 %. With start and stop bits it could not be.
    let (measured, _) = goodput(&iridium(4));
    assert!((9200.0..9500.0).contains(&(measured * 8.0)), "{measured}");
    let mut config = iridium(4);
    config.links.iter_mut().for_each(|link| link.octet_bits = 10);
    let (with_start_and_stop, _) = goodput(&config);
    assert!((with_start_and_stop / measured - 0.8).abs() < 0.001, "{with_start_and_stop}");
}

#[test]
fn all_control_octets_escaped_cost_an_eighth() {
    let equal = MultilinkConfig { policy: Policy::Equal { smallest: 64 }, ..iridium(8) };
    let framing = Framing { accm: u32::MAX, ..Framing::default() };
    let ratio = goodput(&MultilinkConfig { framing, ..equal.clone() }).0 / goodput(&equal).0;
    // (1517 × 34/256 + 1565 + escaped headers, 8 of 80 and 00 octets each at most) against 1577.
    let most = 1576.85 / (1565.0 + 1517.0 * 34.0 / 256.0);
    let least = 1576.85 / (1565.0 + 1517.0 * 34.0 / 256.0 + 8.0 * 4.0);
    assert!((least..most).contains(&ratio), "{ratio}");
}

/// Keeps `window` packets of `octets` under way, each answered by one of 40 octets: the mean round trip and the packets
/// a second, once settled.
fn round_trip(config: &MultilinkConfig, window: u32, octets: usize, count: u32) -> (f64, f64) {
    let mut bundle = bundle(config, 7);
    let mut entered = BTreeMap::new();
    for number in 0..window {
        bundle.handle(START, Port::Hub, packet(number, octets));
        entered.insert(number, START);
    }
    let (mut next, mut trips) = (window, Vec::new());
    // What has left the bundle and is not yet dealt with, in the order of its times.
    let mut due: Vec<(Time, Port, u32)> = Vec::new();
    while trips.len() < count as usize {
        while let Some(output) = bundle.poll_output() {
            due.push((output.at, output.port, output.frame.message.number()));
        }
        due.sort_by_key(|&(at, ..)| core::cmp::Reverse(at));
        let wake = bundle.poll_timeout().map_or(Time::NEVER, |deadline| deadline.at);
        match due.pop_if(|&mut (at, ..)| at <= wake) {
            Some((at, Port::Hub, number)) => {
                trips.push((at, at.since(entered[&number]).as_secs_f64()));
                bundle.handle(at, Port::Hub, packet(next, octets));
                entered.insert(next, at);
                next += 1;
            }
            Some((at, _, number)) => bundle.handle(at, Port::Terminal(0), packet(number, 40)),
            None => bundle.handle_timeout(wake),
        }
    }
    let settled = &trips[trips.len() / 4..];
    let mean = settled.iter().map(|&(_, trip)| trip).sum::<f64>() / settled.len() as f64;
    let time = settled[settled.len() - 1].0.since(settled[0].0).as_secs_f64();
    (mean, (settled.len() - 1) as f64 / time)
}

#[test]
fn nineteen_seconds_are_queueing() {
    // The study's eight channels and window: 34 packets. Its round trip of 19 s is not propagation, of which there is
    // 1.8 s.
    for (policy, fragments) in [(Policy::Equal { smallest: 64 }, 8.0..=8.0), (Policy::Free, 4.0..=5.0)] {
        let config = MultilinkConfig { policy, ..iridium(8) };
        let (mean, rate) = round_trip(&config, 34, 1500, 2000);
        assert!((19.0..23.0).contains(&mean), "{policy:?}: {mean}");
        // Little's law: what is under way is the rate times the round trip.
        assert!((mean * rate / 34.0 - 1.0).abs() < 0.01, "{policy:?}: {mean} {rate}");
        // It is what the links need for 34 packets: 34 × 1577 octets at 2400 octet/s where each is cut in eight.
        let bottleneck = |fragments| 34.0 * octets_of_packet(fragments, 4.0) / 2400.0;
        let (least, most) = (bottleneck(*fragments.start()) * 0.995, bottleneck(*fragments.end()) * 1.005);
        assert!((least..most).contains(&mean), "{policy:?}: {mean} outside {least}..{most}");
    }
    let config = iridium(8);
    // One packet alone takes the delay twice and its own sending, over all links both ways: 188 + 9 octets and 6 + 9,
    // at 300 octet/s, and escapes of 1 to 5 octets each way.
    let (alone, _) = round_trip(&config, 1, 1500, 100);
    let unloaded = 1.8 + (197.0 + 15.0) / 300.0;
    assert!((unloaded..unloaded + 10.0 / 300.0).contains(&alone), "{alone} for {unloaded}");
    // With as many channels fewer, and as much less window, it stays.
    let (three, _) = round_trip(&iridium(3), 12, 1500, 1000);
    assert!((19.0..23.0).contains(&three), "{three}");
}
