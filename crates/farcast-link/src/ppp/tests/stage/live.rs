//! Settings that change while a link carries packets. An octet of 10 bits takes 1 ms at first; frames of 40 octets are
//! 44 with protocol, check sequence and flag, 45 where they begin with a flag of their own.

use core::num::NonZeroU64;

use farcast_core::stage::{NotSettable, Setting, Settings};

use super::*;

const TERMINAL: Port = Port::Terminal(0);

fn lines(queue: QueueLimit) -> PppConfig {
    let line = LineConfig { delay: Span::from_millis(100), queue, ..LineConfig::new(rate(10_000)) };
    PppConfig::new(line.clone(), line)
}

/// Returns the time at which a packet of 40 octets leaves, in milliseconds.
fn leaves(ppp: &mut Ppp<Octets>, at: u64, port: Port) -> Option<u64> {
    send(ppp, ms(at), port, 40).map(|(at, _)| at.as_nanos() / 1_000_000)
}

fn delay(milliseconds: u64) -> Setting {
    Setting::Delay(Span::from_millis(milliseconds))
}

#[test]
fn a_change_holds_behind_what_waits_and_on_its_way_alone() {
    let mut ppp = ppp(lines(QueueLimit::Unbounded));
    assert_eq!(leaves(&mut ppp, 0, Port::Hub), Some(45 + 100));
    ppp.set(ms(10), Port::Hub, Setting::Rate(rate(20_000))).expect("a line has a rate");
    // From 45 ms on, 44 octets of half a millisecond.
    assert_eq!(leaves(&mut ppp, 10, Port::Hub), Some(45 + 22 + 100));
    assert_eq!(leaves(&mut ppp, 10, TERMINAL), Some(10 + 45 + 100));
    ppp.set(ms(20), Port::Hub, delay(10)).expect("a line has a delay");
    // Sent by 89 ms, it would be there at 99, before the one that was sent by 67.
    assert_eq!(leaves(&mut ppp, 20, Port::Hub), Some(167));
    assert_eq!(leaves(&mut ppp, 200, Port::Hub), Some(200 + 22 + 10));
    assert_eq!(leaves(&mut ppp, 200, TERMINAL), Some(200 + 44 + 100));
    let set =
        |bps, delay| Settings { rate: Some(rate(bps)), delay: Some(Span::from_millis(delay)), queue: None };
    assert_eq!((ppp.settings(Port::Hub), ppp.settings(TERMINAL)), (set(20_000, 10), set(10_000, 100)));
}

#[test]
fn a_limit_of_packets_becomes_one_of_octets() {
    let mut ppp = ppp(lines(QueueLimit::Packets(1)));
    assert_eq!(leaves(&mut ppp, 0, Port::Hub), Some(145));
    assert_eq!(leaves(&mut ppp, 1, Port::Hub), None);
    ppp.set(ms(2), Port::Hub, Setting::Queue(NonZeroU64::new(80).expect("positive"))).expect("there is one");
    assert_eq!(leaves(&mut ppp, 2, Port::Hub), Some(189));
    assert_eq!(leaves(&mut ppp, 3, Port::Hub), None);
    ppp.set(ms(4), Port::Hub, Setting::Queue(NonZeroU64::new(79).expect("positive"))).expect("there is one");
    // What waits stays; of the 80 octets 40 have been sent at 45 ms, and 39 are left.
    assert_eq!(leaves(&mut ppp, 46, Port::Hub), None);
    assert_eq!(leaves(&mut ppp, 90, Port::Hub), Some(90 + 44 + 100));
    assert_eq!((ppp.totals().sent, ppp.totals().dropped), (3, 3));
}

/// An echo is 14 octets, escaped 28, with flags 30; two of them are 600 bits a second.
#[test]
fn a_rate_leaves_room_for_echoes() {
    let echo = Some(EchoConfig { interval: Span::from_secs(1), failures: 3 });
    let mut ppp: Ppp<Octets> = ppp(PppConfig { echo, ..lines(QueueLimit::Unbounded) });
    let refused = ppp.set(ms(0), TERMINAL, Setting::Rate(rate(599))).expect_err("too slow for echoes");
    assert_eq!(refused, NotSettable::RateBelowEchoes { least: rate(600) });
    let sentence =
        "the echoes of this stage need more of the line than that; the rate must be at least 600 bit/s";
    assert_eq!(std::string::ToString::to_string(&refused), sentence);
    assert_eq!(ppp.settings(TERMINAL).rate, Some(rate(10_000)));
    assert_eq!(ppp.set(ms(0), TERMINAL, Setting::Rate(rate(600))), Ok(()));
    // The least is the one that a link may be made with.
    let made = |bps| {
        let line = LineConfig::new(rate(bps));
        PppConfig { echo, ..PppConfig::new(line.clone(), line) }.check()
    };
    assert!(made(600).is_ok() && made(599).is_err());
}
