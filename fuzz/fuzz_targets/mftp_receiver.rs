//! Any sequence of datagrams, timers and answers of its owner: a receiver never panics and always drains.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::engine::{Arrival, Engine, Message as _};
use farcast_core::{Bitmap, Span, Time};
use farcast_mftp::message::DeclineReason;
use farcast_mftp::{ClientId, Receiver, ReceiverConfig, ReceiverEvent, wire};
use farcast_fuzz::repair;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Datagram { transmission: bool, bytes: Vec<u8> },
    Wait(u32),
    Timeout,
    Stop,
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(choices) = u64::arbitrary(&mut input) else { return };
    let source = "192.0.2.1:40000".parse().expect("address");
    let group = "239.255.1.1:5402".parse().expect("address");
    let mut config = ReceiverConfig::new(ClientId(0xF000_0001), 5402);
    config.keep_early_data = choices & 1 == 0;
    let mut receiver = Receiver::new(config).expect("valid");
    let (mut now, mut choices) = (Time::ZERO, choices);
    while !input.is_empty() {
        let Ok(step) = Step::arbitrary(&mut input) else { return };
        match step {
            Step::Datagram { transmission, mut bytes } => {
                repair(&mut bytes, transmission);
                let Ok(packet) = wire::decode(&bytes) else { continue };
                assert!(receiver.prefix(&packet.message) <= packet.message.segments());
                let _ = receiver.handle(now, &Arrival::new(source, group), &packet.message);
            }
            Step::Wait(micros) => now += Span::from_micros(micros.into()),
            Step::Timeout => {
                if let Some(deadline) = receiver.poll_timeout() {
                    now = now.max(deadline.at);
                }
                receiver.handle_timeout(now);
            }
            Step::Stop => receiver.stop(now),
        }
        own(&mut receiver, now, &mut choices);
        let mut polls = 0;
        while receiver.poll_transmit(now, now).is_some() {
            polls += 1;
            assert!(polls < 10_000, "transmits without end");
        }
    }
});

/// Answers events, one way or the other.
fn own(receiver: &mut Receiver, now: Time, choices: &mut u64) {
    let mut events = 0;
    while let Some(event) = receiver.poll_event() {
        events += 1;
        assert!(events < 100_000, "events without end");
        *choices = choices.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let yes = *choices >> 60 > 2;
        match event {
            // A claim of a billion DTUs costs 128 MiB of bitmap, which the owner's disk would refuse.
            ReceiverEvent::Offered(offer) if yes && offer.geometry.segments() < 1 << 20 => {
                receiver.accept(now, Bitmap::new(0));
            }
            ReceiverEvent::Offered(_) => receiver.decline(DeclineReason::Disk),
            ReceiverEvent::Decode { block } => receiver.decoded(block, yes),
            ReceiverEvent::Complete if yes => receiver.verified(now),
            ReceiverEvent::Complete => receiver.fail(2003, None),
            _ => {}
        }
    }
}
