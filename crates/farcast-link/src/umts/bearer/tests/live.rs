//! Settings that change while a bearer carries packets. Intervals down begin every 10 ms and take 12 PDUs of 40 octets;
//! they arrive 57.5 ms after their end.

use std::string::ToString;

use core::num::NonZeroU64;

use farcast_core::stage::{NotSettable, Setting, Settings};

use super::*;
use crate::tests::packet::Packet;

fn kbps(kbps: u64) -> Setting {
    Setting::Rate(BitRate::from_bps(kbps * 1000).unwrap())
}

fn enter(stage: &mut Bearer<Probe>, at: u64, number: u32, octets: usize) {
    stage.handle(micros(at), Port::Hub, packets(number, 1, octets, Span::ZERO));
}

#[test]
fn a_new_rate_holds_for_intervals_that_begin_later() {
    let mut stage = bearer(&config());
    // 38 PDUs: 12 at 10 ms and at 20 ms, then 6 at 30 and at 40 ms, and the last two at 50 ms.
    enter(&mut stage, 9_999, 0, 1500);
    stage.handle(micros(9_999), Port::Terminal(0), packets(0, 1, 79, Span::ZERO));
    let mut out = drain(&mut stage, micros(19_999));
    stage.set(micros(20_000), Port::Hub, kbps(192)).unwrap();
    out.extend(drain(&mut stage, micros(1_000_000)));
    // Up, two PDUs in the interval from 20 ms to 40 ms, as ever.
    assert_eq!(out, [(micros(97_500), 0), (micros(60_000 + 57_500), 0)]);
    let set = |bps, queue| Settings { rate: BitRate::from_bps(bps), delay: Some(PROCESSING), queue };
    assert_eq!(stage.settings(Port::Hub), set(192_000, None));
    assert_eq!(stage.settings(Port::Terminal(3)), set(32_000, None));
}

#[test]
fn an_interval_waits_for_the_one_before() {
    let mut stage = bearer(&config());
    enter(&mut stage, 9_999, 0, 479);
    let mut out = drain(&mut stage, micros(25_000));
    stage.set(micros(25_000), Port::Hub, Setting::Delay(Span::ZERO)).unwrap();
    enter(&mut stage, 29_999, 1, 479);
    out.extend(drain(&mut stage, micros(89_999)));
    enter(&mut stage, 89_999, 2, 479);
    out.extend(drain(&mut stage, micros(1_000_000)));
    // The second would be there at 40 ms.
    assert_eq!(out, [(micros(77_500), 0), (micros(77_500), 1), (micros(100_000), 2)]);
}

#[test]
fn rates_are_whole_pdus_in_an_interval() {
    let mut stage = bearer(&config());
    let refused = stage.set(micros(0), Port::Hub, kbps(400)).unwrap_err();
    let near = [384_000, 416_000].map(BitRate::from_bps);
    assert_eq!(refused, NotSettable::NotWholeUnits { below: near[0], above: near[1] });
    assert_eq!(
        refused.to_string(),
        "the rate is no whole number of PDUs in an interval of this channel; 384 kbit/s and 416 kbit/s are the \
         nearest that it can have"
    );
    let refused = stage.set(micros(0), Port::Terminal(0), kbps(15)).unwrap_err().to_string();
    assert!(refused.ends_with("; 16 kbit/s is the lowest that it can have"), "{refused}");
    let most = BitRate::from_bps(65_535 * 32_000);
    let beyond = stage.may_set(Port::Hub, kbps(3_000_000));
    assert_eq!(beyond, Err(NotSettable::NotWholeUnits { below: most, above: None }));
    assert_eq!(stage.settings(Port::Hub).rate, BitRate::from_bps(384_000));
    // 320 bits in 30 ms are 10,666.7 bit/s: the next whole number above is the one that leaves room for them.
    let mut odd = config();
    odd.uplink.tti = Span::from_millis(30);
    let mut stage = bearer(&odd);
    for (bps, pdus) in
        [(10_666, None), (10_667, Some(1)), (10_668, None), (21_334, Some(2)), (32_000, Some(3))]
    {
        let rate = BitRate::from_bps(bps).unwrap();
        let set = stage.set(micros(0), Port::Terminal(0), Setting::Rate(rate));
        assert_eq!(set.is_ok(), pdus.is_some(), "{bps} bit/s: {set:?}");
        if let Some(pdus) = pdus {
            assert_eq!(ChannelConfig { rate, ..odd.uplink }.pdus(40), Ok(pdus));
        }
    }
}

#[test]
fn what_is_set_before_anything_enters_holds_with_octets_too() {
    for octets in [false, true] {
        let mut queued = config();
        (queued.downlink.queue, queued.uplink.queue) = (QueueLimit::Packets(9), QueueLimit::Packets(9));
        let mut stage: Bearer<Packet> = Bearer::new(&queued, RandomStream::derive(5, &[])).unwrap();
        stage.set(micros(0), Port::Hub, kbps(192)).unwrap();
        stage.set(micros(0), Port::Hub, Setting::Delay(Span::ZERO)).unwrap();
        stage.set(micros(0), Port::Hub, Setting::Queue(NonZeroU64::new(700).unwrap())).unwrap();
        // Two fill the queue. Of 6 PDUs in 10 ms the first takes 12.
        for number in 0..3 {
            stage.handle(
                micros(9_999),
                Port::Hub,
                Packet::new(number, [479, 200, 200][number as usize], octets).frame(),
            );
        }
        let mut out = Vec::new();
        while let Some(due) = stage.poll_timeout().filter(|due| due.at < micros(1_000_000)) {
            stage.handle_timeout(due.at);
            out.extend(
                core::iter::from_fn(|| stage.poll_output()).map(|out| (out.at, out.frame.message.number)),
            );
        }
        assert_eq!(out, [(micros(30_000), 0), (micros(40_000), 1)], "octets: {octets}");
        assert_eq!((stage.totals().sent, stage.totals().dropped), (2, 1));
    }
}
