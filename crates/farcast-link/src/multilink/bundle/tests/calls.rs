//! Calls that drop: the losses, the detection, and the frequency of drops.

use super::*;

/// 1000 octet/s with 200 ms of delay; a packet of 991 plain octets makes a frame of 1000 with its closing flag.
fn two_links(detection: Detection) -> MultilinkConfig {
    let calls = Calls { time_between_drops: Span::from_secs(3000), redial: Span::from_secs(30), detection };
    let link = LinkConfig { delay: ms(200), calls: Some(calls), ..LinkConfig::new(rate(8000)) };
    MultilinkConfig { policy: Policy::Whole, ..MultilinkConfig::new(vec![link.clone(), link]) }
}

const CARRIER: Detection = Detection::Carrier { after: Span::from_secs(10) };

/// Returns the drops within `seconds` seconds of a bundle that carries nothing.
fn drops(config: &MultilinkConfig, seed: u64, seconds: u64) -> Vec<CallDrop> {
    let mut idle = bundle::<Probe>(config, seed);
    idle.handle_timeout(START + Span::from_secs(seconds));
    idle.drops().to_vec()
}

/// A seed with which nothing else drops from 100 s before the first drop until 100 s after it, and the drop.
fn lonely_drop(config: &MultilinkConfig) -> (u64, CallDrop) {
    let lonely = |seed| {
        let drops = drops(config, seed, 100_000);
        let (first, second) = (drops[0], drops[1]);
        let apart =
            first.at.since(START) > Span::from_secs(100) && second.at.since(first.at) > Span::from_secs(100);
        apart.then_some((seed, first))
    };
    (0..100).find_map(lonely).expect("a seed of a hundred")
}

#[test]
fn a_drop_takes_along_what_the_link_has_and_gets_until_it_is_noticed() {
    let config = two_links(CARRIER);
    let (seed, CallDrop { at: drop, link: gone }) = lonely_drop(&config);
    let mut bundle = bundle(&config, seed);
    // Packets alternate between the links, each of which gets one a second and sends it in one (the first with a flag
    // more). A packet is there 1.201 s after it entered.
    let begin = drop - ms(10_250);
    let mut out = Vec::new();
    for number in 0..=40 {
        let at = begin + ms(500) * u64::from(number);
        out.extend(drive(&mut bundle, at));
        bundle.handle(at, Port::Hub, plain(number, 991));
    }
    out.extend(drive(&mut bundle, drop + ms(10_000)));
    // Number 18 came at 9.0 s and arrived at 10.201 s, before the drop at 10.25 s; 19 came at 9.5 s and 20 at 10.0 s.
    // So one of these was lost, and all even or odd numbers from there on until the last, which came at 20.0 s.
    let lost = |number: u32| number >= 19 && number as usize % 2 == gone;
    let arrived: Vec<u32> = (0..=40).filter(|&number| !lost(number)).collect();
    // The last may still be on its way when the drop is noticed at 20.25 s, behind another that began 1 s before.
    out.extend(drive(&mut bundle, drop + ms(20_000)));
    assert_eq!(numbers(&out), arrived);
    let counters = *bundle.counters(End::Terminal);
    assert_eq!(
        (counters.lost_by_drops, counters.delivered),
        ((19..=40).filter(|&n| lost(n)).count() as u64, arrived.len() as u64)
    );
    // Until it was noticed M stood still, and nothing behind the first loss was released; then all that had arrived
    // was.
    let first = (19..=20).find(|&number| lost(number)).expect("one of the two");
    for &(at, _, number) in &out {
        let whenever = begin + ms(500) * u64::from(number) + ms(1201);
        let expected = if number < first { whenever } else { whenever.max(drop + ms(10_000)) };
        assert_eq!(at, expected, "{number}");
    }
    // No octet was escaped, so the times above are exact.
    assert!((0..2).all(|link| bundle.line(link, End::Terminal).expect("a link").escapes == 0));
    assert_eq!(bundle.drops(), [CallDrop { at: drop, link: gone }]);
}

#[test]
fn a_link_is_out_of_the_bundle_until_it_is_dialled_again() {
    let config = two_links(CARRIER);
    let (seed, CallDrop { at: drop, link: gone }) = lonely_drop(&config);
    let mut bundle = bundle(&config, seed);
    let used = |bundle: &mut Multilink<Plain>, at, number| {
        let before = bundle.line(gone, End::Hub).expect("a link").fragments;
        bundle.handle(at, Port::Terminal(0), plain(number, 991));
        bundle.handle(at, Port::Terminal(0), plain(number + 1, 991));
        drive(bundle, at + ms(5000));
        bundle.line(gone, End::Hub).expect("a link").fragments - before
    };
    let nanosecond = Span::from_nanos(1);
    assert_eq!(used(&mut bundle, drop - ms(9000), 0), 1);
    // Before it is noticed at 10 s, the link is used in vain.
    assert_eq!(used(&mut bundle, drop + ms(10_000) - nanosecond, 2), 1);
    assert_eq!(bundle.counters(End::Hub).lost_by_drops, 1);
    assert_eq!(used(&mut bundle, drop + ms(40_000) - nanosecond, 4), 0, "both on the other link");
    assert_eq!(used(&mut bundle, drop + ms(46_000), 6), 1, "30 s after it was noticed");
    let call = *bundle.call(gone).expect("a link");
    let expected = CallCounters { drops: 1, hang_ups: 0, undetected: ms(10_000), down: ms(40_000) };
    assert_eq!(call, expected);
    assert_eq!(bundle.call(1 - gone), Some(&CallCounters::default()));
    assert_eq!(bundle.counters(End::Hub).delivered, 7);
    let figures = bundle.figures();
    let figure = |name| figures.iter().find(|figure| figure.name == name).and_then(|figure| figure.value);
    assert_eq!((figure("calls_dropped"), figure("calls_hung_up")), (Some(1.0), Some(0.0)));
    assert_eq!((figure("links_down_s"), figure("return_lost_by_drops")), (Some(40.0), Some(1.0)));
}

#[test]
fn packets_wait_while_all_calls_are_down() {
    let mut config = two_links(CARRIER);
    config.links.truncate(1);
    let drop = drops(&config, 1, 1_000_000)[0].at;
    let mut bundle = bundle(&config, 1);
    let down = drop + ms(20_000);
    for number in 0..5 {
        bundle.handle(down, Port::Hub, packet(number, 100));
    }
    assert_eq!(drive(&mut bundle, drop + ms(40_000)), []);
    assert_eq!(numbers(&drive(&mut bundle, drop + ms(50_000))), [0, 1, 2, 3, 4]);
    assert_eq!(bundle.counters(End::Terminal).lost_by_drops, 0);
}

#[test]
fn echoes_find_a_drop_and_take_their_time_on_the_line() {
    let echo = EchoConfig { interval: Span::from_secs(10), failures: 3 };
    let mut config = two_links(Detection::Echo(echo));
    config.links.truncate(1);
    for seed in 0..50 {
        let mut bundle = bundle::<Probe>(&config, seed);
        bundle.handle_timeout(START + Span::from_secs(20_000));
        let call = *bundle.call(0).expect("a link");
        if call.drops == 0 || call.down.is_zero() {
            continue;
        }
        // The first request that fails leaves within an interval of the drop, or is under way when it comes, at most
        // 0.42 s before; the third is given up an interval after it was sent.
        let each = call.undetected.as_secs_f64() / call.drops as f64;
        assert!((29.5..40.0).contains(&each), "{each}");
        assert_eq!(call.hang_ups, 0);
        // FF 03 C0 21, 8 octets, FCS and two flags are 16 octets, for the line was idle for a second; and the
        // identifier may be escaped, at 7D and 7E, or an octet of the check sequence.
        for to in [End::Terminal, End::Hub] {
            let line = bundle.line(0, to).expect("a link");
            assert_eq!((line.octets - line.escapes, line.fragments), (line.echoes * 16, 0));
            assert_eq!(line.overhead, line.echoes * 16);
            assert_eq!(line.busy, ms(line.octets));
        }
        // A request every 10 s while the link is in the bundle.
        let up = 20_000.0 - call.down.as_secs_f64() + call.undetected.as_secs_f64();
        let asked = bundle.line(0, End::Terminal).expect("a link").echoes as f64;
        assert!((asked - up / 10.0).abs() <= 2.0 + 2.0 * call.drops as f64, "{asked} {up}");
    }
}

#[test]
fn lost_echoes_hang_up_a_call_that_works() {
    let echo = EchoConfig { interval: Span::from_secs(10), failures: 2 };
    let mut config = two_links(Detection::Echo(echo));
    config.links.truncate(1);
    config.links[0].calls.as_mut().expect("calls").time_between_drops = Span::MAX;
    let hang_ups = |loss: f64| {
        let config =
            MultilinkConfig { frame_loss: Probability::new(loss).expect("a probability"), ..config.clone() };
        let mut bundle = bundle::<Probe>(&config, 3);
        bundle.handle_timeout(START + Span::from_secs(1_000_000));
        let call = bundle.call(0).expect("a link");
        assert_eq!(call.drops, 0);
        call.hang_ups
    };
    assert_eq!(hang_ups(0.0), 0);
    // An echo fails with 1 - 0.9^2 = 0.19. From a fresh start it takes (1 + 0.19)/0.19^2 = 32.96 requests in the mean
    // until two in a row have failed, then 10 s until the second is given up, which is the next tick, and 30 s to dial:
    // 32.96 × 10 + 30 = 359.6 s, 2781 times. The deviation of one cycle is about its mean, so 5 sigma are 265.
    let measured = hang_ups(0.1);
    assert!(measured.abs_diff(2781) < 265, "{measured}");
}

/// The times for which the calls of link 0 stayed up, over a long time.
fn uptimes(config: &MultilinkConfig, seed: u64, seconds: u64) -> Vec<f64> {
    let of_link = drops(config, seed, seconds).into_iter().filter(|drop| drop.link == 0);
    let times: Vec<f64> = of_link.map(|drop| drop.at.as_secs_f64()).collect();
    let back = core::iter::once(0.0).chain(times.iter().map(|drop| drop + 10.0 + 30.0));
    times.iter().zip(back).map(|(drop, up)| drop - up).collect()
}

#[test]
fn calls_stay_up_for_exponential_times() {
    let up = uptimes(&two_links(CARRIER), 20, 15_000_000);
    let n = up.len() as f64;
    assert!(n > 4000.0);
    // A mean of 3000 s, whose deviation is 3000 / sqrt(n): within 4 sigma.
    let mean = up.iter().sum::<f64>() / n;
    assert!((mean - 3000.0).abs() < 4.0 * 3000.0 / n.sqrt(), "{mean}");
    // Ten classes of equal probability: chi-square with 9 degrees of freedom, 27.9 at 0.1 %.
    let mut classes = [0.0; 10];
    for time in &up {
        let quantile = 1.0 - (-time / 3000.0).exp();
        classes[((quantile * 10.0) as usize).min(9)] += 1.0;
    }
    let chi_square: f64 = classes.iter().map(|count| (count - n / 10.0).powi(2) / (n / 10.0)).sum();
    assert!(chi_square < 27.9, "{chi_square}");
    // No memory: neighbours are not correlated, within 4 sigma of 1 / sqrt(n).
    let products: f64 = up.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let squares: f64 = up.iter().map(|time| (time - mean).powi(2)).sum();
    assert!((products / squares).abs() < 4.0 / n.sqrt(), "{}", products / squares);
}

#[test]
fn another_link_changes_no_other_links_drops() {
    let two = two_links(CARRIER);
    let mut three = two.clone();
    three.links.push(two.links[0].clone());
    let without_third =
        |drops: Vec<CallDrop>| drops.into_iter().filter(|drop| drop.link < 2).collect::<Vec<_>>();
    let (a, b) = (drops(&two, 9, 200_000), drops(&three, 9, 200_000));
    assert!(b.len() > a.len() && a.len() > 50);
    assert_eq!(without_third(b), a);
    assert_ne!(drops(&two, 10, 200_000), a, "another seed, other drops");
    // Nor does traffic.
    let mut busy = bundle(&two, 9);
    (0..200).for_each(|number| busy.handle(START, Port::Hub, packet(number, 500)));
    drive(&mut busy, START + Span::from_secs(200_000));
    busy.handle_timeout(START + Span::from_secs(200_000));
    assert_eq!(busy.drops(), a);
}
