//! PGM with OpenPGM, in both directions, over UDP on the loopback interface: messages without a gap, whatever is lost.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and be a driver of its own"
)]

mod driver;
mod peer;

use std::sync::atomic::{AtomicU16, Ordering};

use farcast_core::{BitRate, Span};
use farcast_pgm::{Advance, Delivering, Gsi, NodeId, ReceiverConfig, SenderConfig, Sending, Tsi};

use driver::Place;
use peer::{Running, length, octets, sum};

/// Messages of 10 MB in all: 800 octets each on average.
const COUNT: u32 = 12_500;
/// Octets in a second, of both.
const RATE: u32 = 4_000_000;

/// A port that no other test of this machine uses now.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    42_000 + (std::process::id() % 2000) as u16 * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// We send, OpenPGM receives: `lens` are the messages' lengths; `loss` is what we lose of what we hear and say.
fn openpgm_receives(loss: f64, count: u32, len: impl Fn(u32) -> u32 + Sync) {
    let port = port();
    let mut place = Place::new(port, true, loss, 1);
    let mut receiver = Running::start(["receive", "239.192.57.40", &port.to_string()]);
    assert_eq!(receiver.line(), "listening");
    let rate = BitRate::from_bps(u64::from(RATE) * 8).unwrap();
    let tsi = Tsi { gsi: Gsi([2, 0, 0, 0, 0, 1]), port: 4321 };
    let mut config = SenderConfig::new(tsi, Sending::Messages, place.address(), place.group, rate);
    config.advance = Advance::Data { sqns: 4000, hold: Span::from_secs(1) };
    // OpenPGM gives up what it lacks before it has heard an SPM.
    (config.opening, config.ambient) = (16, Span::from_millis(50));
    (config.heartbeat, config.heartbeat_most) = (Span::from_millis(20), Span::from_millis(200));
    config.holdoff = Span::from_millis(5);
    let content = |n: u32| octets(n, len(n) as usize);
    let counts = place.send(config, count, content, || {
        // It hears all, and says so message by message.
        let expected = (0..count).map(|n| format!("{} {}", len(n), sum(&content(n))));
        for (n, expected) in expected.enumerate() {
            assert_eq!(receiver.line(), expected, "message {n} at a loss of {loss}");
        }
    });
    assert_eq!(counts.1 > 0, loss > 0.0, "{counts:?}");
}

/// OpenPGM sends, we receive.
fn openpgm_sends(loss: f64) {
    let port = port();
    let mut place = Place::new(port, false, loss, 2);
    let mut sender =
        Running::start(["send", "239.192.57.40", &port.to_string(), &COUNT.to_string(), &RATE.to_string()]);
    let mut config = ReceiverConfig::new(NodeId(1), place.group);
    config.delivering = Delivering::Ordered;
    config.unicast_port = Some(port);
    config.port = Some(7500);
    (config.backoff, config.confirm) = (Span::from_millis(20), Span::from_millis(100));
    config.repair = Span::from_millis(200);
    let (messages, gaps, asked) = place.receive(config, COUNT as usize);
    assert_eq!((messages.len(), gaps), (COUNT as usize, 0), "at a loss of {loss}");
    for (n, message) in (0..).zip(messages) {
        assert!(message == octets(n, length(n)), "message {n} at a loss of {loss}");
    }
    assert_eq!(asked > 0, loss > 0.0, "{asked}");
    assert_eq!(sender.line(), "sent");
}

#[test]
fn openpgm_receives_without_loss() {
    openpgm_receives(0.0, COUNT, |n| length(n) as u32);
}

#[test]
fn openpgm_receives_with_one_per_cent_lost() {
    openpgm_receives(0.01, COUNT, |n| length(n) as u32);
}

#[test]
fn openpgm_receives_with_ten_per_cent_lost() {
    openpgm_receives(0.1, COUNT, |n| length(n) as u32);
}

/// Messages in up to eight pieces.
#[test]
fn openpgm_puts_fragments_together() {
    openpgm_receives(0.05, 1000, |n| 100 + 1501 * n % 10_000);
}

#[test]
fn openpgm_sends_without_loss() {
    openpgm_sends(0.0);
}

#[test]
fn openpgm_sends_with_one_per_cent_lost() {
    openpgm_sends(0.01);
}

#[test]
fn openpgm_sends_with_ten_per_cent_lost() {
    openpgm_sends(0.1);
}
