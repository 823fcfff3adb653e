//! NORM with NRL's library, in both directions, over the loopback interface.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and be a driver of its own"
)]

mod driver;
mod object;
mod peer;

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span};
use farcast_delivery::Vouched;
use farcast_delivery::{ReceiverEngine as _, SenderEngine as _};
use farcast_norm::{Fec, Kind, NodeId, Object, Pacing, ReceiverConfig, SenderConfig, SenderOutcome};

use driver::Place;
use peer::Running;

/// Settings of a transfer.
#[derive(Clone, Debug)]
struct Case {
    receivers: u32,
    sizes: &'static [usize],
    fec: Fec,
    block: u16,
    parity: u16,
    auto: u16,
    /// Fraction of datagrams that each end loses in both directions.
    loss: f64,
    unicast: bool,
    /// `true` if the receivers' reports control the rate.
    controlled: bool,
}

/// 215 segments of 1400 octets, in blocks of 54 and 53.
const CASE: Case = Case {
    receivers: 1,
    sizes: &[300_000],
    fec: Fec::ReedSolomon8,
    block: 64,
    parity: 16,
    auto: 0,
    loss: 0.03,
    unicast: false,
    controlled: false,
};

fn noise(len: usize) -> Vec<u8> {
    let mut random = RandomStream::derive(len as u64, &[]);
    (0..len).map(|_| random.bits() as u8).collect()
}

/// Returns a port that no other test of this machine uses now.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    20_000 + (std::process::id() % 2000) as u16 * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns the contents to send, by name.
fn contents(case: &Case) -> BTreeMap<String, Vec<u8>> {
    case.sizes.iter().enumerate().map(|(at, &size)| (format!("{at}-{size}.bin"), noise(size))).collect()
}

impl Case {
    /// Sends from farcast to the library. Returns the number of rounds.
    fn library_receives(&self) -> u32 {
        let dir = tempfile::tempdir().unwrap();
        let port = port();
        let mut place = Place::new(port, self.fec, self.loss, 1);
        let percent = self.loss * 100.0;
        let receivers: Vec<(Running, _)> = (0..self.receivers)
            .map(|n| {
                let into = dir.path().join(n.to_string());
                fs::create_dir(&into).unwrap();
                let words = [format!("unicast={}", u8::from(self.unicast)), format!("rxloss={percent}")];
                let place =
                    ["receive", &place.group.ip().to_string(), &port.to_string(), "lo", &(n + 2).to_string()]
                        .map(String::from);
                let words = place.into_iter().chain([into.to_str().unwrap().into()]).chain(words);
                let mut receiver = Running::start(words);
                assert_eq!(receiver.line(), "listening");
                (receiver, into)
            })
            .collect();
        let contents = contents(self);
        let rate = BitRate::from_bps(8_000_000).unwrap();
        let mut config = SenderConfig::new(NodeId(1), 1, place.address(), place.group, rate);
        // Data and files alternate.
        let object = |(at, (name, content)): (usize, (&String, &Vec<u8>))| Object {
            kind: if at % 2 == 0 { Kind::File } else { Kind::Data },
            size: content.len() as u64,
            info: name.as_bytes().to_vec(),
            // The library skips the unknown extension.
            vouched: Some(Vouched { digest: [7; 32], mode: 0o644, mtime_ns: 1 }),
        };
        config.objects = contents.iter().enumerate().map(object).collect();
        (config.fec, config.block_len) = (self.fec, self.block);
        (config.parity, config.auto_parity) = (self.parity, self.auto);
        config.grtt = Span::from_millis(50);
        config.watermarks = true;
        if self.controlled {
            config.pacing = Pacing::NormCc { least: BitRate::from_bps(8000).unwrap() };
        }
        config.ackers = (0..self.receivers).map(|n| NodeId(n + 2)).collect();
        let octets: Vec<&[u8]> = contents.values().map(Vec::as_slice).collect();
        let (outcome, sender) = place.send(config, &octets);
        assert_eq!(outcome, SenderOutcome::Acknowledged, "{self:?}");
        assert_eq!(sender.limiting().is_some(), self.controlled, "{self:?}");
        for (mut receiver, into) in receivers {
            let mut complete: Vec<String> = (0..contents.len()).map(|_| receiver.line()).collect();
            complete.sort();
            let expected: Vec<String> = contents.keys().map(|name| format!("complete {name}")).collect();
            assert_eq!(complete, expected, "{self:?}");
            for (name, content) in &contents {
                assert!(fs::read(into.join(name)).unwrap() == *content, "{self:?}: {name}");
            }
        }
        sender.progress().round
    }

    /// Sends from the library to farcast. Returns the number of requests.
    fn library_sends(&self) -> u64 {
        let dir = tempfile::tempdir().unwrap();
        let port = port();
        let contents = contents(self);
        let places: Vec<Place> =
            (0..self.receivers).map(|n| Place::new(port, self.fec, self.loss, 10 + u64::from(n))).collect();
        let group = places[0].group;
        let fec = if self.fec == Fec::ReedSolomon8 { 0 } else { self.fec.id() };
        let mut words: Vec<String> = [
            "send".into(),
            group.ip().to_string(),
            port.to_string(),
            "lo".into(),
            self.receivers.to_string(),
        ]
        .into();
        words.push(format!("fec={fec}"));
        words.extend([format!("block={}", self.block), format!("parity={}", self.parity)]);
        words.extend([format!("auto={}", self.auto), format!("rxloss={}", self.loss * 100.0)]);
        words.push(format!("cc={}", u8::from(self.controlled)));
        for (at, (name, content)) in contents.iter().enumerate() {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            words.push(format!("{}={}", ["file", "data"][at % 2], path.to_str().unwrap()));
        }
        let mut sender = Running::start(words);
        // The library never counts an object of no octets as acknowledged.
        let known = *self.sizes.last().unwrap() > 0;
        let done = std::sync::Mutex::new(false);
        let complete = AtomicU16::new(0);
        let mut naks = 0;
        thread::scope(|scope| {
            let receivers: Vec<_> = (0..)
                .zip(places)
                .map(|(n, mut place)| {
                    let (case, done, complete, expected) = (self, &done, &complete, &contents);
                    scope.spawn(move || {
                        let config = ReceiverConfig {
                            unicast: case.unicast,
                            seed: u64::from(n),
                            ..ReceiverConfig::new(NodeId(n + 2), group)
                        };
                        let mut counted = false;
                        let (received, engine) = place.receive(config, |objects| {
                            if objects == expected.len() && !std::mem::replace(&mut counted, true) {
                                complete.fetch_add(1, Ordering::Relaxed);
                            }
                            *done.lock().unwrap()
                        });
                        assert!(received == *expected, "{case:?}: {:?}", received.keys());
                        engine.naks()
                    })
                })
                .collect();
            if known {
                // The test waits until the library has heard the acknowledgements and left.
                assert_eq!(sender.line(), "acknowledged", "{self:?}");
            } else {
                while complete.load(Ordering::Relaxed) < self.receivers as u16 {
                    assert!(receivers.iter().all(|receiver| !receiver.is_finished()), "{self:?}");
                    thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            *done.lock().unwrap() = true;
            naks = receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum();
        });
        naks
    }
}

/// Runs every case in both directions, all at the same time, because they mostly wait.
fn both_ways(cases: impl IntoIterator<Item = Case>) {
    thread::scope(|scope| {
        for case in cases {
            let other = case.clone();
            scope.spawn(move || case.library_receives());
            scope.spawn(move || other.library_sends());
        }
    });
}

#[test]
fn with_losses_it_takes_requests_and_more_than_a_round() {
    assert!(CASE.library_receives() > 1);
    assert!(CASE.library_sends() > 0);
}

#[test]
fn to_one_and_to_three() {
    both_ways([1, 3].map(|receivers| Case { sizes: &[1_000_000], receivers, ..CASE }));
}

#[test]
fn several_objects_and_such_of_few_octets() {
    let several = Case { sizes: &[0, 1, 50_000, 1400, 1399, 100_000], receivers: 3, ..CASE };
    let single = [&[0][..], &[1]].map(|sizes| Case { sizes, ..CASE });
    both_ways([several].into_iter().chain(single));
}

#[test]
fn a_fifth_is_lost_at_both_ends() {
    let parity = [(16, 0), (16, 8), (0, 0)];
    both_ways(parity.map(|(parity, auto)| Case {
        sizes: &[100_000, 20_000],
        loss: 0.2,
        parity,
        auto,
        ..CASE
    }));
}

#[test]
fn answers_come_by_unicast() {
    both_ways([Case { unicast: true, receivers: 3, ..CASE }]);
}

#[test]
fn receivers_decide_the_rate() {
    // At the initial rate of a segment a second, this would take minutes.
    both_ways([1, 3].map(|receivers| Case { controlled: true, receivers, ..CASE }));
}

#[test]
fn the_other_codes() {
    let codes = [(Fec::SmallBlock, 64, 16), (Fec::ReedSolomon(8), 64, 16), (Fec::ReedSolomon(16), 300, 40)];
    both_ways(codes.map(|(fec, block, parity)| Case { fec, block, parity, sizes: &[500_000], ..CASE }));
}
