//! Streams from end to end, in virtual time.

mod pieces;

use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::vec;
use std::vec::Vec;

use core::cmp::Reverse;

use farcast_core::engine::{Arrival, Reject};
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::{KeyNumber, Proved, StreamEngine, StreamReceiverEngine, StreamSenderEngine, Taken};

use super::{StreamReceiver, StreamReceiverConfig, StreamReceiverEvent, StreamSender, StreamSenderEvent};
use crate::message::{Body, Fec, Flags, FromSender};
use crate::{NodeId, ReceiverConfig, SenderConfig, SenderOutcome, wire};

const SEGMENT: u16 = 100;
const BLOCK: u16 = 10;
/// Octets of a block.
const OCTETS: u64 = SEGMENT as u64 * BLOCK as u64;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

fn group() -> SocketAddr {
    "239.255.57.41:6003".parse().expect("address")
}

fn address(n: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n as u8 + 1], 6003))
}

/// Returns the configuration of node 1: blocks of 10 segments of 100 octets with 4 parity symbols at 1 Mbit/s, of which
/// `blocks` are kept.
fn sender(blocks: u64, ackers: u32) -> SenderConfig {
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    let mut config = SenderConfig::new(NodeId(1), blocks * OCTETS, address(0), group(), rate);
    (config.segment_size, config.block_len, config.parity) = (SEGMENT, BLOCK, 4);
    (config.grtt, config.ackers) = (ms(100), (0..ackers).map(|n| NodeId(n + 2)).collect());
    config
}

fn receiver(n: usize) -> StreamReceiverConfig {
    let config = ReceiverConfig::new(NodeId(n as u32 + 2), group());
    StreamReceiverConfig::new(ReceiverConfig { seed: n as u64, ..config })
}

/// Result of a receiver's reads.
#[derive(Default)]
struct Got {
    octets: Vec<u8>,
    gaps: Vec<(u64, Option<u64>)>,
    /// Place of the first octets that came.
    from: Option<u64>,
    end: Option<u64>,
    events: Vec<StreamReceiverEvent>,
}

/// Function that returns `true` if a datagram is lost, by its source (0 is the sender), its destination, and its
/// octets.
type Drops = dyn FnMut(Time, usize, usize, &[u8]) -> bool;

/// Datagram under way: its arrival, its number in the order of departures, its source, its destination, and its octets.
type Flying = (Time, u64, usize, usize, Vec<u8>);

struct World {
    sender: StreamSender,
    receivers: Vec<(Time, StreamReceiver, Got)>,
    delay: Span,
    now: Time,
    flight: BinaryHeap<Reverse<Flying>>,
    count: u64,
    drops: std::boxed::Box<Drops>,
    told: Vec<StreamSenderEvent>,
    /// Text to write, the octets written so far, and the length of a message.
    text: Vec<u8>,
    written: usize,
    message: usize,
    sent: usize,
}

impl World {
    /// Makes a world in which `receivers` listen from the beginning. The sender writes `text` as fast as it is taken,
    /// in messages of `message` octets.
    fn new(config: SenderConfig, receivers: usize, text: Vec<u8>, message: usize) -> Self {
        let mut world = Self {
            sender: StreamSender::new(config).expect("valid"),
            receivers: Vec::new(),
            delay: ms(20),
            now: Time::ZERO,
            flight: BinaryHeap::new(),
            count: 0,
            drops: std::boxed::Box::new(|_, _, _, _| false),
            told: Vec::new(),
            text,
            written: 0,
            message,
            sent: 0,
        };
        for n in 0..receivers {
            world.join(Time::ZERO, receiver(n));
        }
        world.sender.open(Time::ZERO);
        world
    }

    fn join(&mut self, at: Time, config: StreamReceiverConfig) {
        self.receivers.push((at, StreamReceiver::new(config).expect("valid"), Got::default()));
    }

    fn lossy(&mut self, loss: f64, seed: u64) {
        let mut random = RandomStream::derive(seed, &[7]);
        self.drops = std::boxed::Box::new(move |_, _, _, _| random.unit() < loss);
    }

    fn leave(&mut self, from: usize, datagram: &[u8]) {
        self.sent += if from == 0 { datagram.len() } else { 0 };
        for to in (0..=self.receivers.len()).filter(|&to| to != from) {
            if !(self.drops)(self.now, from, to, datagram) {
                self.count += 1;
                self.flight.push(Reverse((self.now + self.delay, self.count, from, to, datagram.to_vec())));
            }
        }
    }

    fn settle(&mut self) {
        while self.written < self.text.len() {
            let end = (self.written / self.message + 1) * self.message;
            let taken = self.sender.write(self.now, &self.text[self.written..end.min(self.text.len())]);
            self.written += taken;
            if self.written == end {
                self.sender.end_message();
            }
            if taken == 0 {
                break;
            }
        }
        if self.written == self.text.len() {
            self.sender.finish(self.now);
        }
        let mut out = Vec::new();
        while self.sender.poll_transmit(self.now, &mut out).is_some() {
            self.leave(0, &std::mem::take(&mut out));
        }
        self.told.extend(std::iter::from_fn(|| self.sender.poll_event()));
        let now = self.now;
        for n in 0..self.receivers.len() {
            let (_, engine, got) = &mut self.receivers[n];
            while let Some(taken) = engine.read(&mut got.octets) {
                match taken {
                    Taken::Octets(at) => got.from = got.from.or(Some(at)),
                    Taken::Gap(from, to) => got.gaps.push((from, to)),
                    Taken::End(at) => got.end = Some(at),
                }
            }
            engine.settle(now);
            got.events.extend(std::iter::from_fn(|| engine.poll_event()));
            while self.receivers[n].1.poll_transmit(now, &mut out).is_some() {
                self.leave(n + 1, &std::mem::take(&mut out));
            }
        }
    }

    fn run(mut self, until: Time) -> Self {
        self.settle();
        loop {
            let next = self.flight.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            let timers = self.receivers.iter().map(|(from, engine, _)| (*from).max(engine.poll_timeout()));
            let due = timers.chain([self.sender.poll_timeout(), next]).min().unwrap_or(Time::NEVER);
            if due > until || due == Time::NEVER {
                return self;
            }
            assert!(due >= self.now, "time goes back");
            self.now = due;
            if next == due {
                let Some(Reverse((_, _, from, to, datagram))) = self.flight.pop() else { continue };
                let arrival = Arrival::new(address(from), group());
                match to {
                    0 => self.sender.handle(due, &arrival, &datagram),
                    to => {
                        let (since, engine, _) = &mut self.receivers[to - 1];
                        if due >= *since {
                            engine.handle(due, &arrival, &datagram);
                        }
                    }
                }
            } else {
                self.sender.handle_timeout(due);
                for (since, engine, _) in &mut self.receivers {
                    if due >= *since {
                        engine.handle_timeout(due);
                    }
                }
            }
            self.settle();
        }
    }

    fn outcome(&self) -> Option<SenderOutcome> {
        self.told
            .iter()
            .find_map(|event| if let StreamSenderEvent::Ended(how) = event { Some(*how) } else { None })
    }

    #[track_caller]
    fn assert_whole(&self) {
        for (n, (_, _, got)) in self.receivers.iter().enumerate() {
            assert_eq!(got.gaps, [], "receiver {n}");
            assert!(got.octets == self.text, "receiver {n}: {} of {}", got.octets.len(), self.text.len());
            assert_eq!(got.end, Some(self.text.len() as u64), "receiver {n}");
        }
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn every_octet_comes_in_order_whatever_is_lost() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.2), (4, 0.4)] {
        for len in [0, 1, 99, 100, 999, 1000, 30_000] {
            let mut world = World::new(sender(8, 3), 3, text(len), 250);
            world.lossy(loss, seed);
            let world = world.run(at(600_000));
            world.assert_whole();
            assert_eq!(world.outcome(), Some(SenderOutcome::Acknowledged), "{loss} {len}");
        }
    }
}

/// The transmission information tells the field of the code; requests and flushes do not.
#[test]
fn blocks_of_more_symbols_than_octets_can_number_are_repaired() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.2)] {
        let wide = |ackers| {
            let config = sender(0, ackers);
            SenderConfig { fec: Fec::ReedSolomon(16), block_len: 300, parity: 100, ..config }
        };
        let text = text(100_000);
        let clean = World::new(wide(3), 3, text.clone(), 250).run(at(600_000));
        let mut world = World::new(wide(3), 3, text, 250);
        world.lossy(loss, seed);
        let world = world.run(at(600_000));
        world.assert_whole();
        assert_eq!(world.outcome(), Some(SenderOutcome::Acknowledged), "{loss}");
        let most = clean.sent as f64 * (1.02 + 2.0 * loss);
        assert!((world.sent as f64) < most, "{loss}: {} octets of {}", world.sent, clean.sent);
    }
}

#[test]
fn without_names_a_block_is_kept_until_whoever_lacks_it_could_ask() {
    let mut whole = 0;
    for seed in 0..10 {
        let mut world = World::new(sender(8, 0), 3, text(30_000), 250);
        world.lossy(0.05, seed);
        let world = world.run(at(600_000));
        assert_eq!(world.outcome(), Some(SenderOutcome::Unknown));
        for (_, _, got) in &world.receivers {
            whole += u32::from(got.octets == world.text);
            assert!(got.octets == world.text || !got.gaps.is_empty(), "seed {seed}: nobody was told");
        }
    }
    // A receiver whose requests or repairs are lost three times in a row is not waited for.
    assert!(whole >= 28, "{whole} of 30");
}

#[test]
fn the_end_waits_for_receivers_that_wait_by_a_longer_round_trip() {
    for seed in 0..20 {
        let mut world = World::new(SenderConfig { grtt: ms(500), ..sender(100, 0) }, 3, text(30_000), 250);
        world.delay = ms(1);
        world.lossy(0.05, seed);
        world.run(at(600_000)).assert_whole();
    }
}

#[test]
fn repairs_are_parity_and_as_few_as_the_worst_needs() {
    let clean = World::new(sender(40, 1), 3, text(30_000), 250).run(at(600_000));
    let mut world = World::new(sender(40, 1), 3, text(30_000), 250);
    // Each receiver lacks another segment of each block.
    world.drops = std::boxed::Box::new(|_, from, to, datagram| {
        let packet = wire::decode(datagram, 8).expect("ours");
        from == 0
            && packet.message.data().is_some_and(|data| {
                data.symbols.first() == to as u32 && !data.flags.has(Flags::REPAIR) && data.block < 20
            })
    });
    let world = world.run(at(600_000));
    world.assert_whole();
    let more = (world.sent - clean.sent) / usize::from(SEGMENT + 40);
    assert!((20..=26).contains(&more), "{more} symbols for 20 blocks");
}

#[test]
fn who_comes_late_has_what_can_be_repaired_from_a_message_on() {
    let mut world = World::new(sender(4, 0), 1, text(60_000), 250);
    world.join(at(8_000), receiver(0));
    let world = world.run(at(600_000));
    let got = &world.receivers[1].2;
    let from = got.from.expect("something");
    assert_eq!((got.gaps.as_slice(), from % 250), (&[(0, None)][..], 0), "from {from}");
    assert!(got.octets == world.text[from as usize..] && (1_000..50_000).contains(&from), "from {from}");
    assert_eq!(got.end, Some(60_000));
    // If everything is kept, a late receiver gets all of a short stream.
    let mut world = World::new(sender(100, 0), 0, text(60_000), 250);
    world.join(at(250), receiver(0));
    world.run(at(600_000)).assert_whole();
}

#[test]
fn who_comes_late_and_lacks_the_beginning_does_not_acknowledge() {
    let mut world = World::new(sender(4, 0), 0, text(60_000), 250);
    world.sender = StreamSender::new(sender(4, 2)).expect("valid");
    world.sender.open(Time::ZERO);
    world.join(Time::ZERO, receiver(0));
    world.join(at(1_000_000), receiver(1));
    let world = world.run(at(900_000));
    assert_eq!(world.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert!(world.told.contains(&StreamSenderEvent::Lost(NodeId(3))), "{:?}", world.told);
    assert!(world.receivers[0].2.octets == world.text, "it is not held up for ever");
}

#[test]
fn an_outage_longer_than_what_is_kept_is_told() {
    let mut world = World::new(sender(4, 0), 1, text(100_000), 250);
    world.drops = std::boxed::Box::new(|now, _, _, _| now > at(200) && now < at(15_000));
    let world = world.run(at(600_000));
    let got = &world.receivers[0].2;
    assert_eq!(got.gaps.len(), 1, "{:?}", got.gaps);
    let (gap, len) = (got.gaps[0].0 as usize, got.octets.len());
    let behind = got.octets.len() - gap;
    assert!(got.octets[..gap] == world.text[..gap] && got.octets[gap..] == world.text[100_000 - behind..]);
    assert!(behind.is_multiple_of(250) && len < 99_000, "{len}");
    assert_eq!(got.end, Some(100_000));
}

#[test]
fn named_receivers_hold_the_sender_until_they_have_what_it_would_forget() {
    let mut world = World::new(sender(4, 1), 1, text(30_000), 250);
    world.drops = std::boxed::Box::new(|now, _, _, _| now > at(100) && now < at(1_500));
    let world = world.run(at(600_000));
    world.assert_whole();
    assert_eq!(world.outcome(), Some(SenderOutcome::Acknowledged));
}

#[test]
fn a_sender_that_is_killed_is_missed() {
    let mut world = World::new(sender(4, 0), 1, text(100_000), 250);
    world.drops = std::boxed::Box::new(|now, _, _, _| now > at(200));
    let world = world.run(at(600_000));
    let got = &world.receivers[0].2;
    assert!(got.events.contains(&StreamReceiverEvent::Gone), "{:?}", got.events);
    assert!(got.end.is_none() && got.octets[..] == world.text[..got.octets.len()]);
}

#[test]
fn what_fills_no_segment_leaves_when_it_is_flushed() {
    let mut world = World::new(sender(4, 0), 1, Vec::new(), 250);
    assert_eq!(world.sender.write(Time::ZERO, b"hello"), 5);
    world.sender.flush(Time::ZERO);
    world.text = b"hello".to_vec();
    world.written = 5;
    world.run(at(60_000)).assert_whole();
}

#[test]
fn nothing_that_comes_makes_it_panic_or_grow() {
    let mut random = RandomStream::derive(3, &[]);
    // Datagrams of a session with losses, with a few bits flipped.
    let mut said: Vec<Vec<u8>> = Vec::new();
    let mut world = World::new(sender(8, 1), 1, text(20_000), 250);
    world.lossy(0.2, 3);
    let record = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (mine, mut chance) = (record.clone(), RandomStream::derive(4, &[]));
    world.drops = std::boxed::Box::new(move |_, _, _, datagram| {
        mine.borrow_mut().push(datagram.to_vec());
        chance.unit() < 0.2
    });
    world.run(at(60_000)).assert_whole();
    said.append(&mut record.borrow_mut());
    for round in 0..20 {
        let config = StreamReceiverConfig { memory: 20_000, ..receiver(0) };
        let mut engine = StreamReceiver::new(config).expect("valid");
        let mut sending = StreamSender::new(sender(4, 1)).expect("valid");
        sending.open(Time::ZERO);
        assert!(sending.write(Time::ZERO, &text(9_000)) > 0);
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        for datagram in &said {
            now += ms(random.below(20));
            let mut datagram = datagram.clone();
            for _ in 0..random.below(4) {
                let bit = random.below(datagram.len() as u64 * 8) as usize;
                datagram[bit / 8] ^= 1 << (bit % 8);
            }
            if random.below(20) == 0 {
                datagram.truncate(random.below(datagram.len() as u64) as usize);
            }
            engine.handle(now, &Arrival::new(address(0), group()), &datagram);
            sending.handle(now, &Arrival::new(address(1), group()), &datagram);
            for engine in [&mut engine as &mut dyn StreamEngine<Event = StreamReceiverEvent>] {
                engine.handle_timeout(now);
                while engine.poll_transmit(now, &mut out).is_some() {}
            }
            sending.handle_timeout(now);
            let mut left = 0;
            while sending.poll_transmit(now, &mut out).is_some() {
                left += 1;
                assert!(left < 10_000, "round {round}: it sends without end");
            }
            while engine.read(&mut out).is_some() {}
            engine.settle(now);
            assert!(engine.kept() <= 40_000, "round {round}: {} octets", engine.kept());
            out.clear();
        }
    }
}

/// Returns the first `count` datagrams of a sender of `text`, and the time at which the last of them has left.
fn said(text: &[u8], count: usize) -> (Vec<Vec<u8>>, Time) {
    let mut sending = StreamSender::new(sender(4, 0)).expect("valid");
    sending.open(Time::ZERO);
    sending.write(Time::ZERO, text);
    let (mut out, mut datagrams) = (Vec::new(), vec![]);
    let mut now = Time::ZERO;
    while datagrams.len() < count {
        while sending.poll_transmit(now, &mut out).is_some() {
            datagrams.push(std::mem::take(&mut out));
        }
        now = sending.poll_timeout();
        sending.handle_timeout(now);
    }
    (datagrams, now)
}

/// The second stream comes from the same address, with the same instance.
#[test]
fn a_stream_that_is_proved_to_have_begun_anew_is_another() {
    let mut engine = StreamReceiver::new(receiver(0)).expect("valid");
    let (before, after) = ([1; 2000], [2; 2000]);
    let from = Arrival::new(address(0), group());
    let (datagrams, now) = said(&before, 12);
    for datagram in &datagrams {
        engine.handle(now, &from, datagram);
    }
    let mut out = Vec::new();
    assert_eq!(engine.read(&mut out), Some(Taken::Octets(0)));
    let had = out.len();
    let who = |number| Proved { name: "ann", number: KeyNumber(number) };
    engine.begins_anew(now, &who(7));
    let told = std::iter::from_fn(|| engine.poll_event()).collect::<Vec<_>>();
    assert!(matches!(told[..], [StreamReceiverEvent::Joined { .. }]), "{told:?}");
    engine.begins_anew(now, &who(1));
    assert_eq!((engine.poll_event(), engine.poll_timeout()), (Some(StreamReceiverEvent::Gone), Time::NEVER));
    let (datagrams, now) = said(&after, 12);
    for datagram in &datagrams {
        engine.handle(now, &from, datagram);
    }
    let mut second = Vec::new();
    assert_eq!(engine.read(&mut second), Some(Taken::Octets(0)), "from its beginning");
    assert!(out.iter().all(|&octet| octet == 1) && second.iter().all(|&octet| octet == 2));
    assert_eq!((had, second.len()), (had, had), "all that has come");
}

#[test]
fn a_file_is_no_stream_and_a_stream_is_one_session() {
    let mut engine = StreamReceiver::new(receiver(0)).expect("valid");
    let (datagrams, now) = said(&text(500), 5);
    for datagram in &datagrams {
        let mut message = wire::decode(datagram, 8).expect("ours").message;
        if let Body::Sender(_, FromSender::Data(data)) = &mut message.body {
            data.flags = Flags::FILE;
            let mut file = Vec::new();
            wire::encode(&message, 0, &mut file);
            file.extend_from_slice(&[0; 100]);
            engine.handle(now, &Arrival::new(address(0), group()), &file);
        }
    }
    assert!(engine.rejects().of(Reject::Unexpected) > 0);
    let told = std::iter::from_fn(|| engine.poll_event()).collect::<Vec<_>>();
    assert_eq!(told, [StreamReceiverEvent::Files { source: address(0) }], "once");
    for (source, joined) in [(address(0), true), (address(3), false)] {
        for datagram in &datagrams {
            engine.handle(now, &Arrival::new(source, group()), datagram);
        }
        assert_eq!(engine.poll_event().is_some(), joined, "{source}");
    }
    assert!(engine.rejects().of(Reject::OtherSession) > 0);
}
