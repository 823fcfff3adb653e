//! Settings that change while a bundle carries packets.

use core::num::NonZeroU64;

use farcast_core::stage::NotSettable;

use super::*;

const HUB: Port = Port::Hub;

/// One link of 300 octet/s, on which packets of 1500 octets are 1509, the first 1510; of 40 are 50 after a pause.
#[test]
fn a_change_leaves_what_is_on_the_line_and_lets_nothing_overtake() {
    let link = LinkConfig { delay: ms(10_000), ..LinkConfig::new(rate(2400)) };
    let mut bundle = bundle(&MultilinkConfig::new(vec![link]), 1);
    for number in 0..3 {
        bundle.handle(START, HUB, plain(number, 1500));
    }
    let mut out = drive(&mut bundle, START + ms(1000));
    bundle.set(START + ms(1000), HUB, Setting::Rate(rate(4800))).expect("links have a rate");
    out.extend(drive(&mut bundle, START + ms(6000)));
    bundle.set(START + ms(6000), HUB, Setting::Delay(Span::ZERO)).expect("links have a delay");
    out.extend(drive(&mut bundle, START + ms(20_000)));
    bundle.handle(START + ms(20_000), HUB, plain(3, 40));
    bundle.handle(START + ms(20_000), Port::Terminal(0), plain(4, 40));
    out.extend(drive(&mut bundle, Time::NEVER));
    let time = |octets: u64, per_second: u64| Span::from_nanos((octets * 1_000_000_000).div_ceil(per_second));
    // The first is sent by 5.03 s. The second by 7.55 s, the third by 10.06 s: both would be there before it.
    let first = START + time(1510, 300) + ms(10_000);
    assert_eq!(
        out,
        [
            (first, Port::Terminals, 0),
            (first, Port::Terminals, 1),
            (first, Port::Terminals, 2),
            (START + ms(20_000) + time(50, 600), Port::Terminals, 3),
            (START + ms(30_000) + time(50, 300), Port::Hub, 4),
        ]
    );
    // The line was busy for as long as these took.
    let busy = bundle.line(0, End::Terminal).expect("a link").busy;
    assert_eq!(busy, time(1510, 300) + time(1509, 600) * 2 + time(50, 600));
}

#[test]
fn a_link_that_is_down_has_the_new_rate_when_it_is_back() {
    let calls = Calls {
        time_between_drops: ms(1000),
        redial: ms(500),
        detection: Detection::Carrier { after: Span::ZERO },
    };
    let link = LinkConfig { calls: Some(calls), ..LinkConfig::new(rate(2400)) };
    let mut bundle: Multilink<Plain> = bundle(&MultilinkConfig::new(vec![link; 2]), 4);
    // A packet that waits keeps the bundle awake.
    let mut now = START;
    let call = |bundle: &Multilink<Plain>| *bundle.call(0).expect("a link");
    while call(&bundle).drops == 0 {
        bundle.handle(now, HUB, plain(0, 40));
        now += ms(10);
        let _ = drive(&mut bundle, now);
    }
    bundle.set(now, HUB, Setting::Rate(rate(9600))).expect("links have a rate");
    while call(&bundle).down.is_zero() {
        bundle.handle(now, HUB, plain(0, 40));
        now += ms(10);
        let _ = drive(&mut bundle, now);
    }
    let octets =
        |bundle: &Multilink<Plain>| bundle.line(0, End::Terminal).map(|line| (line.octets, line.busy));
    let (before, busy) = octets(&bundle).expect("a link");
    for number in 0..100 {
        bundle.handle(now, HUB, plain(number, 1000));
    }
    let _ = drive(&mut bundle, now + ms(100));
    let (after, busy_after) = octets(&bundle).expect("a link");
    // Each frame is rounded up to a nanosecond.
    let (sent, took) = (after - before, busy_after.saturating_sub(busy));
    assert!(sent > 0);
    assert!(took.as_nanos().abs_diff(sent * 1_000_000_000 / 1200) <= 100, "{sent} octets took {took:?}");
}

#[test]
fn a_new_limit_of_the_queue_holds_for_what_comes() {
    let mut bundle = bundle(&MultilinkConfig { queue: QueueLimit::Packets(1), ..iridium(1) }, 1);
    let dropped = |at: u64, bundle: &mut Multilink<Plain>| {
        bundle.handle(START + ms(at), HUB, plain(0, 100));
        bundle.totals().dropped
    };
    // One on the line, one at the link, one before the bundle.
    assert_eq!([0, 0, 0, 0].map(|at| dropped(at, &mut bundle)), [0, 0, 0, 1]);
    bundle.set(START, HUB, Setting::Queue(NonZeroU64::new(250).expect("positive"))).expect("it has a limit");
    assert_eq!([1, 1].map(|at| dropped(at, &mut bundle)), [1, 2]);
    let unlimited = bundle.may_set(Port::Terminal(0), Setting::Queue(NonZeroU64::MIN));
    assert_eq!(unlimited, Err(NotSettable::Absent("queue")));
}

/// Two echoes of 30 octets with all escapes and flags in 10 s; after 30 s without an answer the link is given up.
#[test]
fn changes_leave_echoes_their_room() {
    let echo = EchoConfig { interval: ms(10_000), failures: 3 };
    let calls = Calls { time_between_drops: ms(1_000_000), redial: ms(1), detection: Detection::Echo(echo) };
    let link = |bps, delay| LinkConfig { delay, calls: Some(calls), ..LinkConfig::new(rate(bps)) };
    let bundle: Multilink<Plain> = bundle(&MultilinkConfig::new(vec![link(2400, ms(900))]), 1);
    let may = |setting| bundle.may_set(HUB, setting);
    assert_eq!(may(Setting::Rate(rate(47))), Err(NotSettable::RateBelowEchoes { least: rate(48) }));
    assert_eq!(may(Setting::Rate(rate(48))), Ok(()));
    let (half, below) = (ms(15_000), Span::from_nanos(14_999_999_999));
    assert_eq!(may(Setting::Delay(half)), Err(NotSettable::DelayBeyondEchoes { below: half }));
    assert_eq!(may(Setting::Delay(below)), Ok(()));
    // The bounds are those with which a bundle may be made.
    let made = |bps, delay| MultilinkConfig::new(vec![link(bps, delay)]).check().is_ok();
    assert_eq!(
        [made(47, ms(0)), made(48, ms(0)), made(2400, half), made(2400, below)],
        [false, true, false, true]
    );
}
