//! Any sequence of datagrams, timers and answers of its owner: a receiver of one-way delivery never panics, says nothing,
//! and always drains; each segment is stored once unless it was lost, and an object is complete only with all of them.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::{Answer, Decline, Geometry, ObjectId};
use farcast_oneway::{Description, Kind, Message, Receiver, ReceiverConfig, ReceiverEvent, Symbols, wire};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    /// Arbitrary octets.
    Datagram { port: bool, bytes: Vec<u8> },
    /// A plausible description of a small object, which can become complete.
    Describe { port: bool, session: u8, id: u8, size: u16, block: u8, over: bool, left: u16 },
    Symbol { port: bool, session: u8, parity: bool, block: u8, first: u8, count: u8, last: u8 },
    Kept { block: u8, bits: u64 },
    Lost { first: u8, count: u8 },
    Wait(u32),
    Timeout,
    Stop,
}

const SEGMENT: u16 = 10;

/// State of an object at the owner of its bytes.
struct Owned {
    geometry: Geometry,
    have: Bitmap,
    /// Segments held when the object was offered; `None` once the engine knows them.
    looks: Option<Bitmap>,
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(mut choices) = u64::arbitrary(&mut input) else { return };
    let group = "239.255.1.1:5402".parse().expect("address");
    let from = |port: bool| Arrival::new(([192, 0, 2, 1], 40_000 + u16::from(port)).into(), group);
    let config = ReceiverConfig { segments: 1 << 20, ..ReceiverConfig::default() };
    let mut receiver = Receiver::new(config);
    let mut owned: BTreeMap<ObjectId, Owned> = BTreeMap::new();
    let mut now = Time::ZERO;
    while !input.is_empty() {
        let Ok(step) = Step::arbitrary(&mut input) else { return };
        let heard = match step {
            Step::Datagram { port, bytes } => {
                wire::decode(&bytes).ok().map(|packet| (from(port), packet.message))
            }
            Step::Describe { port, session, id, size, block, over, left } => {
                let message = Message::Description(Description {
                    session: u32::from(session % 4),
                    id: [id % 4; 32],
                    size: u64::from(size % 2000),
                    segment: SEGMENT,
                    block: u16::from(block % 64),
                    parity: 64,
                    rate_kbps: 1000,
                    left_ms: left.into(),
                    overwrite: true,
                    over,
                    name: b"x".to_vec(),
                });
                Some((from(port), message))
            }
            Step::Symbol { port, session, parity, block, first, count, last } => {
                let run = Run::new(u32::from(first % 70), u32::from(count % 70) + 1);
                run.map(|run| {
                    let last = if last < 200 { SEGMENT } else { u16::from(last % 11) };
                    let kind = if parity { Kind::Parity } else { Kind::Source };
                    let session = u32::from(session % 4);
                    let block = u32::from(block % 8);
                    let symbols = Symbols { session, round: 1, kind, block, run, len: SEGMENT, last };
                    (from(port), Message::Symbols(symbols))
                })
            }
            Step::Kept { block, bits } => {
                let mut symbols = Bitmap::new(64);
                for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                    symbols.insert(bit);
                }
                if let Some(&object) = owned.keys().next() {
                    receiver.kept(object, u32::from(block % 8), &symbols);
                }
                None
            }
            Step::Lost { first, count } => {
                // Whoever has not looked can say nothing of it.
                if let Some((&object, mine)) = owned.iter_mut().find(|(_, mine)| mine.looks.is_none())
                    && let Some(run) = Run::new(first.into(), u32::from(count) + 1)
                {
                    if let Some(run) = run.clip(0, mine.have.len()) {
                        mine.have.remove_run(run);
                    }
                    receiver.answer(now, object, Answer::Lost(run));
                }
                None
            }
            Step::Wait(micros) => {
                now += Span::from_micros(micros.into());
                None
            }
            Step::Timeout => {
                if let Some(deadline) = receiver.poll_timeout() {
                    now = now.max(deadline.at);
                }
                receiver.handle_timeout(now);
                assert!(receiver.poll_timeout().is_none_or(|deadline| deadline.at > now));
                None
            }
            Step::Stop => {
                receiver.stop();
                None
            }
        };
        if let Some((from, message)) = heard {
            assert!(receiver.prefix(&message) <= message.segments());
            let _ = receiver.handle(now, &from, &message);
        }
        own(&mut receiver, now, &mut owned, &mut choices);
        assert!(receiver.poll_transmit(now, now).is_none(), "it says something");
    }
});

/// Answers events, accepting or refusing at random, and checks them against the state of the owner.
fn own(receiver: &mut Receiver, now: Time, owned: &mut BTreeMap<ObjectId, Owned>, choices: &mut u64) {
    for (&object, mine) in owned.iter_mut() {
        *choices = choices.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if *choices >> 62 != 0
            && let Some(held) = mine.looks.take()
        {
            receiver.answer(now, object, Answer::Open(held));
        }
    }
    let mut events = 0;
    while let Some(event) = receiver.poll_event() {
        events += 1;
        assert!(events < 10_000, "events without end");
        *choices = choices.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let yes = *choices >> 60 > 2;
        match event {
            ReceiverEvent::Offered(offer) => {
                let (object, geometry) = (offer.object, offer.geometry);
                if !yes {
                    receiver.answer(now, object, Answer::Declined(Decline::Disk));
                    continue;
                }
                let mut have = Bitmap::new(geometry.segments());
                if *choices & 3 == 0 {
                    have.insert_run(Run::one((*choices >> 8) as u32 % geometry.segments()));
                }
                let looks = Some(have.clone());
                owned.insert(object, Owned { geometry, have, looks });
            }
            ReceiverEvent::Store { object, segments, .. } => {
                let mine = owned.get_mut(&object).expect("offered");
                assert!(segments.end() <= mine.geometry.segments());
                mine.have.insert_run(segments);
            }
            ReceiverEvent::Parity { object, block, symbols, .. } => {
                let mine = owned.get(&object).expect("offered");
                assert!(mine.looks.is_none(), "what is kept is not known");
                assert!(block < mine.geometry.blocks() && symbols.end() <= 65_535);
            }
            ReceiverEvent::Decode { object, block } => {
                let mine = owned.get_mut(&object).expect("offered");
                assert!(mine.looks.is_none(), "what is kept is not known");
                if yes && let Some(run) = mine.geometry.block_run(block) {
                    mine.have.insert_run(run);
                }
                receiver.answer(now, object, Answer::Decoded { block, rebuilt: yes });
            }
            ReceiverEvent::Complete(object) => {
                assert!(owned.get(&object).is_some_and(|mine| mine.have.is_full()), "it lacks something");
                let answer = if yes { Answer::Verified } else { Answer::Lost(Run::one(0)) };
                if !yes && let Some(mine) = owned.get_mut(&object) {
                    mine.have.remove_run(Run::one(0));
                }
                receiver.answer(now, object, answer);
            }
            ReceiverEvent::Ended(object, _) => drop(owned.remove(&object)),
            _ => {}
        }
    }
}
