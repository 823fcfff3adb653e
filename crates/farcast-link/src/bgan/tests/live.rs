//! Settings of both directions that change while they carry packets.

use core::num::NonZeroU64;
use std::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::stage::{NotSettable, Port, Setting, Settings};
use farcast_core::{BitRate, Span, Stage, Time};

use super::probe::{Probe, drain, drive, ms, packet};
use crate::bgan::{Forward, ForwardConfig, Return, ReturnConfig};
use crate::pipe::QueueLimit;

fn delay(milliseconds: u64) -> Setting {
    Setting::Delay(Span::from_millis(milliseconds))
}

fn queue(octets: u64) -> Setting {
    Setting::Queue(NonZeroU64::new(octets).expect("positive"))
}

/// A packet of 576 octets takes two blocks of 10 ms.
#[test]
fn forward_lets_nothing_overtake() {
    let config = ForwardConfig { queue: QueueLimit::Packets(9), ..ForwardConfig::default() };
    let mut bearer: Forward<Probe> = Forward::new(config).expect("valid");
    let mut left = Vec::new();
    for (at, change) in [(0, None), (5, Some(delay(100))), (400, None), (400, Some(queue(1100)))] {
        if let Some(setting) = change {
            bearer.set(ms(at), Port::Hub, setting).expect("it has it");
        }
        bearer.handle(ms(at), Port::Hub, packet(left.len() as u32, 576));
        left.extend(drain(&mut bearer));
    }
    // The second would be there at 140 ms.
    assert_eq!(left, [(ms(470), 0), (ms(470), 1), (ms(520), 2), (ms(540), 3)]);
    // One packet waits, and 1100 octets have no room for another.
    bearer.handle(ms(400), Port::Hub, packet(4, 576));
    assert_eq!((drain(&mut bearer), bearer.totals().dropped), (Vec::new(), 1));
    let settings = Settings { rate: None, delay: Some(Span::from_millis(100)), queue: Some(1100) };
    assert_eq!(bearer.settings(Port::Hub), settings);
    let rate = Setting::Rate(BitRate::from_bps(1000).expect("positive"));
    assert_eq!(bearer.set(ms(400), Port::Hub, rate), Err(NotSettable::Absent("rate")));
}

/// Whichever of the four contention slots a request takes, its packet gets the same reservation slot.
#[test]
fn what_was_granted_arrives_as_it_would_have() {
    let config = ReturnConfig { queue: QueueLimit::Packets(2), ..ReturnConfig::default() };
    let mut link: Return<Probe> = Return::new(config, 1, RandomStream::derive(3, &[])).expect("valid");
    let terminal = Port::Terminal(0);
    // The request ends at 5 to 20 ms and is answered at 1005 to 1020 ms; the slot from 1020 to 1040 ms is the next.
    link.handle(ms(0), terminal, packet(0, 100));
    let mut left = drive(&mut link, ms(500));
    link.set(ms(500), terminal, delay(50)).expect("it has a delay");
    // The next asks in the frame from 1040 ms on, when its terminal knows of the first. The answer is there 200 ms
    // after the request, the slot begins at 1260 ms: it would arrive at 1330 ms.
    link.handle(ms(600), terminal, packet(1, 100));
    left.extend(drive(&mut link, ms(1999)));
    // Frame 25, an answer at 2205 to 2220 ms, the slot from 2220 to 2240 ms.
    link.handle(ms(2000), terminal, packet(2, 100));
    left.extend(drive(&mut link, Time::NEVER));
    assert_eq!(left, [(ms(1040 + 450), 0), (ms(1040 + 450), 1), (ms(2240 + 50), 2)]);
    link.set(ms(3000), terminal, queue(150)).expect("it has a limit");
    for number in 3..5 {
        link.handle(ms(3000), terminal, packet(number, 100));
    }
    assert_eq!((drive(&mut link, Time::NEVER).len(), link.totals().dropped), (1, 1));
}
