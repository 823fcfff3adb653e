//! PGM with OpenPGM, in both directions, over UDP and raw IP on the loopback interface: messages without a gap, whatever is lost.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and be a driver of its own"
)]

mod driver;
mod peer;

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use farcast_core::{BitRate, Span};
use farcast_pgm::{Advance, Delivering, Gsi, NodeId, ReceiverConfig, SenderConfig, Sending, Tsi};

use driver::{Carrier, Place};
use peer::{Running, length, octets, sum};

/// Messages of 10 MB in all: 800 octets each on average.
const COUNT: u32 = 12_500;
/// Octets per second, of both programs.
const RATE: u32 = 4_000_000;

/// Returns a port that no other test on this machine uses now.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    42_000 + (std::process::id() % 2000) as u16 * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A test case.
#[derive(Clone, Copy, Debug)]
struct Case {
    carrier: Carrier,
    /// Number of messages.
    count: u32,
    /// Share of datagrams that our side loses, both received and sent.
    loss: f64,
    /// PGMCC controls the data of the source.
    controlled: bool,
}

const CASE: Case = Case { carrier: Carrier::Udp, count: COUNT, loss: 0.0, controlled: false };

const GROUP: &str = "239.192.57.40";

/// Takes the lock of raw sockets: each hears everything on the machine, so tests with raw sockets run one after the
/// other.
fn turn(carrier: Carrier) -> Option<MutexGuard<'static, ()>> {
    static RAW: Mutex<()> = Mutex::new(());
    (carrier == Carrier::Raw).then(|| RAW.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Case {
    /// Returns the arguments for the peer's carrier and PGMCC.
    fn words(&self) -> (&'static str, &'static str) {
        let carrier = if self.carrier == Carrier::Raw { "raw" } else { "udp" };
        (carrier, if self.controlled { "cc" } else { "-" })
    }

    /// Returns the data-destination port.
    fn port(&self, port: u16) -> u16 {
        if self.carrier == Carrier::Raw { port } else { 7500 }
    }

    /// Sends messages to OpenPGM; `len` gives their lengths.
    fn openpgm_receives(self, len: impl Fn(u32) -> u32 + Sync) {
        let _turn = turn(self.carrier);
        let (port, (carrier, cc)) = (port(), self.words());
        let mut place = Place::new(self.carrier, port, true, self.loss, 1);
        let mut receiver = Running::start(&["receive", carrier, GROUP, &port.to_string(), cc]);
        assert_eq!(receiver.line(), "listening");
        let rate = BitRate::from_bps(u64::from(RATE) * 8).unwrap();
        let tsi = Tsi { gsi: Gsi([2, 0, 0, 0, 0, 1]), port: 4321 };
        let mut config = SenderConfig::new(tsi, Sending::Messages, place.address(), place.group, rate);
        config.port = self.port(port);
        config.advance = Advance::Data { sqns: 4000, hold: Span::from_secs(1) };
        // OpenPGM gives up missing data that it notices before an SPM, so SPMs are frequent.
        (config.opening, config.ambient) = (16, Span::from_millis(50));
        (config.heartbeat, config.heartbeat_most) = (Span::from_millis(20), Span::from_millis(200));
        config.holdoff = Span::from_millis(5);
        let content = |n: u32| octets(n, len(n) as usize);
        let counts = place.send(config, self.count, content, || {
            // The peer receives everything, and prints a line for each message.
            let expected = (0..self.count).map(|n| format!("{} {}", len(n), sum(&content(n))));
            for (n, expected) in expected.enumerate() {
                assert_eq!(receiver.line(), expected, "message {n} of {self:?}");
            }
        });
        assert_eq!(counts.1 > 0, self.loss > 0.0, "{counts:?}");
    }

    /// Receives messages from OpenPGM.
    fn openpgm_sends(self) {
        let _turn = turn(self.carrier);
        let (port, (carrier, cc)) = (port(), self.words());
        let mut place = Place::new(self.carrier, port, false, self.loss, 2);
        let (at, count, rate) = (port.to_string(), self.count.to_string(), RATE.to_string());
        let mut sender = Running::start(&["send", carrier, GROUP, &at, cc, &count, &rate]);
        let mut config = ReceiverConfig::new(NodeId(1), place.group);
        config.delivering = Delivering::Ordered;
        config.unicast_port = Some(place.unicast_port(port));
        config.port = Some(self.port(port));
        config.address = self.controlled.then(|| place.address().ip());
        (config.backoff, config.confirm) = (Span::from_millis(20), Span::from_millis(100));
        config.repair = Span::from_millis(200);
        let (messages, gaps, asked) = place.receive(config, self.count as usize);
        assert_eq!((messages.len(), gaps), (self.count as usize, 0), "{self:?}");
        for (n, message) in (0..).zip(messages) {
            assert!(message == octets(n, length(n)), "message {n} of {self:?}");
        }
        // Under PGMCC, OpenPGM announces data that it has not sent yet, and the receiver asks for them.
        assert!((asked > 0) == (self.loss > 0.0) || self.controlled, "{asked}");
        assert_eq!(sender.line(), "sent");
    }
}

#[test]
fn openpgm_receives_without_loss() {
    CASE.openpgm_receives(|n| length(n) as u32);
}

#[test]
fn openpgm_receives_with_one_per_cent_lost() {
    Case { loss: 0.01, ..CASE }.openpgm_receives(|n| length(n) as u32);
}

#[test]
fn openpgm_receives_with_ten_per_cent_lost() {
    Case { loss: 0.1, ..CASE }.openpgm_receives(|n| length(n) as u32);
}

/// The messages have up to eight pieces.
#[test]
fn openpgm_puts_fragments_together() {
    Case { loss: 0.05, count: 1000, ..CASE }.openpgm_receives(|n| 100 + 1501 * n % 10_000);
}

#[test]
fn openpgm_sends_without_loss() {
    CASE.openpgm_sends();
}

#[test]
fn openpgm_sends_with_one_per_cent_lost() {
    Case { loss: 0.01, ..CASE }.openpgm_sends();
}

#[test]
fn openpgm_sends_with_ten_per_cent_lost() {
    Case { loss: 0.1, ..CASE }.openpgm_sends();
}

const RAW: Case = Case { carrier: Carrier::Raw, ..CASE };

#[test]
fn openpgm_receives_over_raw_ip() {
    for loss in [0.0, 0.01, 0.1] {
        Case { loss, ..RAW }.openpgm_receives(|n| length(n) as u32);
    }
}

#[test]
fn openpgm_sends_over_raw_ip() {
    for loss in [0.0, 0.01, 0.1] {
        Case { loss, ..RAW }.openpgm_sends();
    }
}

/// Our receiver is the acker of its source. It stalls for three seconds whenever one of its timeouts passes, so there
/// are few messages and no losses.
#[test]
fn openpgm_sends_as_our_acker_says() {
    Case { controlled: true, count: 500, ..CASE }.openpgm_sends();
}
