//! Any sequence of datagrams, timers and polls: a sender never panics, always drains, and its memory stays bounded.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::engine::{Arrival, Engine};
use farcast_core::{Span, Time};
use farcast_mftp::{Group, Invited, Pace, PassWait, Product, Sender, SenderConfig, wire};
use farcast_fuzz::repair;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    Datagram { port: u8, transmission: bool, bytes: Vec<u8> },
    Wait(u32),
    Timeout,
    Poll(u32),
    Start,
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok((closed, window, paced)) = <(bool, bool, bool)>::arbitrary(&mut input) else { return };
    let Ok((fixed, parity)) = <(bool, u8)>::arbitrary(&mut input) else { return };
    let server = "192.0.2.1:40000".parse().expect("address");
    let group = "239.255.1.1:5402".parse().expect("address");
    let product = Product { id: [7; 32], size: 10_000, name: "p".into() };
    let mut config = SenderConfig::new(product, server, group);
    (config.dtu_size, config.block_size, config.parity_symbols) = (100, 16, u32::from(parity % 8));
    if closed {
        config.group = Group::Closed(vec![Invited::new("a"), Invited::new("b"), Invited::new("10.0.0.1")]);
    }
    if window {
        config.pace = Pace::Window { segments: 40, paced };
    }
    if fixed {
        config.pass_wait = PassWait::FixedTimer;
    }
    let mut sender = Sender::new(config).expect("valid");
    let mut now = Time::ZERO;
    sender.open(now);
    while !input.is_empty() {
        let Ok(step) = Step::arbitrary(&mut input) else { return };
        match step {
            Step::Datagram { port, transmission, mut bytes } => {
                repair(&mut bytes, transmission);
                let source = std::net::SocketAddr::new([10, 0, 0, 1].into(), 5000 + u16::from(port % 4));
                if let Ok(packet) = wire::decode(&bytes) {
                    let _ = sender.handle(now, &Arrival::new(source, server), &packet.message);
                }
            }
            Step::Wait(micros) => now += Span::from_micros(micros.into()),
            Step::Timeout => {
                if let Some(deadline) = sender.poll_timeout() {
                    now = now.max(deadline.at);
                }
                sender.handle_timeout(now);
            }
            Step::Poll(micros) => {
                let until = now + Span::from_micros(micros.into());
                let mut polls = 0;
                while sender.poll_transmit(now, until).is_some() {
                    polls += 1;
                    assert!(polls < 10_000, "transmits without end");
                }
            }
            Step::Start => sender.start(now),
        }
        let mut events = 0;
        while sender.poll_event().is_some() {
            events += 1;
            assert!(events < 10_000, "events without end");
        }
        assert!(sender.members().count() <= 1024);
    }
});
