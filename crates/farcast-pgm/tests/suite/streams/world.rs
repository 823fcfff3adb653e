//! A stream's source and its receivers in virtual time, as datagrams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use farcast_core::engine::Arrival;
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span, Time};
use farcast_delivery::{StreamEngine, StreamReceiverEngine, StreamSenderEngine, Taken};
use farcast_pgm::settings::{self, PathLimits, SendPlan, Settings};
use farcast_pgm::stream::{
    StreamReceiver, StreamReceiverConfig, StreamReceiverEvent, StreamSender, StreamSenderConfig,
    StreamSenderEvent,
};
use farcast_pgm::{NodeId, Sending};

use crate::common::{TSI, group, ms, receiver_address, source};

/// Octets of a TSDU in these tests.
pub(crate) const TSDU: u16 = 500;
/// Round trip in the settings of both ends.
pub(crate) const RTT: Span = Span::from_millis(60);

pub(crate) fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

/// Returns octets to send, each unlike the one before.
pub(crate) fn text(octets: usize) -> Vec<u8> {
    (0..octets).map(|n| (n.wrapping_mul(31) ^ (n >> 8)) as u8).collect()
}

/// Returns settings for 1 Mbit/s that keep `kept` octets, for the first `named` receivers.
pub(crate) fn config(kept: u64, named: u32) -> StreamSenderConfig {
    let settings = Settings {
        segment_size: Some(TSDU),
        round_trip: RTT,
        linger: Some(Span::from_secs(5)),
        ..Settings::new(BitRate::from_bps(1_000_000).expect("positive"))
    };
    let sent = SendPlan {
        tsi: TSI,
        sending: Sending::Messages,
        source: source(),
        group: group(),
        named: (0..named).map(NodeId).collect(),
    };
    let way = PathLimits { headers: 28, mtu: None, granule: 1 };
    StreamSenderConfig { sender: settings.stream(sent, way, Some(kept)), messages: false }
}

pub(crate) fn receiver(n: u32) -> StreamReceiverConfig {
    let receiver = settings::receiver(NodeId(n), group(), RTT);
    let address = Some(receiver_address(n).ip());
    let receiver = farcast_pgm::ReceiverConfig { seed: u64::from(n), address, ..receiver };
    StreamReceiverConfig { receiver, from_now: false }
}

/// Octets that a receiver has read, and the reports with them.
#[derive(Default)]
pub(crate) struct Got {
    pub(crate) octets: Vec<u8>,
    /// Places at which octets began that do not continue earlier ones, with the number of octets read until then.
    pub(crate) begins: Vec<(u64, usize)>,
    /// The next octets continue those already read.
    follows: bool,
    pub(crate) gaps: Vec<(u64, Option<u64>)>,
    pub(crate) end: Option<u64>,
    pub(crate) events: Vec<StreamReceiverEvent>,
    /// Octets of each message.
    pub(crate) messages: Vec<usize>,
    /// The most octets that were kept at a time.
    pub(crate) most_kept: u64,
}

/// Function that returns `true` if a datagram is lost. Its arguments are the time, the sender (0: the source), the
/// destination, and the octets.
type Drops = dyn FnMut(Time, usize, usize, &[u8]) -> bool;

/// Datagram under way: time of arrival, order of departure, sender, destination, and octets.
type Flying = (Time, u64, usize, usize, Vec<u8>);

pub(crate) struct World {
    pub(crate) sender: StreamSender,
    pub(crate) receivers: Vec<(Time, StreamReceiver, Got)>,
    pub(crate) told: Vec<(Time, StreamSenderEvent)>,
    /// Times at which receivers are killed, and their numbers.
    pub(crate) killed: Vec<(Time, usize)>,
    /// Share of datagrams that come twice, and the longest random delay, which changes their order.
    pub(crate) twice: f64,
    pub(crate) jitter: Span,
    pub(crate) most_kept: u64,
    /// Time at which the source dies.
    pub(crate) dies: Time,
    now: Time,
    flight: BinaryHeap<Reverse<Flying>>,
    count: u64,
    drops: Box<Drops>,
    chance: RandomStream,
    text: Vec<u8>,
    written: usize,
    /// Octets of each message; `None` without messages.
    message: Option<usize>,
    pub(crate) said: Vec<(Time, usize, Vec<u8>)>,
}

impl World {
    pub(crate) fn new(config: StreamSenderConfig, receivers: u32, text: Vec<u8>) -> Self {
        let mut world = Self {
            sender: StreamSender::new(config).expect("valid"),
            receivers: Vec::new(),
            told: Vec::new(),
            killed: Vec::new(),
            twice: 0.0,
            jitter: Span::ZERO,
            most_kept: 0,
            dies: Time::NEVER,
            now: Time::ZERO,
            flight: BinaryHeap::new(),
            count: 0,
            drops: Box::new(|_, _, _, _| false),
            chance: RandomStream::derive(1, &[8]),
            text,
            written: 0,
            message: None,
            said: Vec::new(),
        };
        for n in 0..receivers {
            world.join(Time::ZERO, receiver(n));
        }
        world.sender.open(Time::ZERO);
        world
    }

    /// Creates a world with one receiver whose stream is messages of `len` octets.
    pub(crate) fn messages(config: StreamSenderConfig, text: Vec<u8>, len: usize) -> Self {
        let config = StreamSenderConfig { messages: true, ..config };
        Self { message: Some(len), ..Self::new(config, 1, text) }
    }

    pub(crate) fn join(&mut self, at: Time, config: StreamReceiverConfig) {
        self.receivers.push((at, StreamReceiver::new(config).expect("valid"), Got::default()));
    }

    pub(crate) fn lossy(&mut self, loss: f64, seed: u64) {
        let mut random = RandomStream::derive(seed, &[7]);
        self.drops = Box::new(move |_, _, _, _| random.unit() < loss);
    }

    pub(crate) fn drop_if(&mut self, drops: impl FnMut(Time, usize, usize, &[u8]) -> bool + 'static) {
        self.drops = Box::new(drops);
    }

    fn leave(&mut self, from: usize, datagram: &[u8]) {
        self.said.push((self.now, from, datagram.to_vec()));
        for to in (0..=self.receivers.len()).filter(|&to| to != from) {
            let times = if self.chance.unit() < self.twice { 2 } else { 1 };
            for _ in 0..times {
                if !(self.drops)(self.now, from, to, datagram) {
                    self.count += 1;
                    let late = Span::from_nanos(self.chance.below(self.jitter.as_nanos() + 1));
                    let there = self.now + ms(20) + late;
                    self.flight.push(Reverse((there, self.count, from, to, datagram.to_vec())));
                }
            }
        }
    }

    fn feed(&mut self) {
        while self.written < self.text.len() {
            let end = self.message.map_or(self.text.len(), |len| (self.written / len + 1) * len);
            let part = &self.text[self.written..end.min(self.text.len())];
            let taken = self.sender.write(self.now, part);
            self.written += taken;
            if self.message.is_some() && self.written == end {
                self.sender.end_message();
            }
            if taken == 0 {
                break;
            }
        }
        if self.written == self.text.len() {
            self.sender.finish(self.now);
        }
        self.most_kept = self.most_kept.max(self.sender.kept());
        let mut out = Vec::new();
        while self.sender.poll_transmit(self.now, &mut out).is_some() {
            self.leave(0, &std::mem::take(&mut out));
        }
        self.told.extend(std::iter::from_fn(|| self.sender.poll_event()).map(|event| (self.now, event)));
    }

    fn read(&mut self, n: usize) {
        let now = self.now;
        let (_, engine, got) = &mut self.receivers[n];
        got.most_kept = got.most_kept.max(engine.kept());
        loop {
            let before = got.octets.len();
            match engine.read(&mut got.octets) {
                Some(Taken::Octets(at)) => {
                    if !std::mem::replace(&mut got.follows, true) {
                        got.begins.push((at, before));
                    }
                    got.messages.push(got.octets.len() - before);
                }
                Some(Taken::Gap(from, to)) => {
                    got.gaps.push((from, to));
                    got.follows = false;
                }
                Some(Taken::End(at)) => got.end = Some(at),
                None => break,
            }
        }
        engine.settle(now);
        got.events.extend(std::iter::from_fn(|| engine.poll_event()));
        let mut out = Vec::new();
        while self.receivers[n].1.poll_transmit(now, &mut out).is_some() {
            self.leave(n + 1, &std::mem::take(&mut out));
        }
    }

    fn is_there(&self, n: usize) -> bool {
        let killed = self.killed.iter().any(|&(at, who)| who == n && self.now >= at);
        self.now >= self.receivers[n].0 && !killed
    }

    fn settle(&mut self) {
        if self.now < self.dies {
            self.feed();
        }
        for n in 0..self.receivers.len() {
            if self.is_there(n) {
                self.read(n);
            }
        }
    }

    pub(crate) fn run(mut self, until: Time) -> Self {
        self.settle();
        loop {
            let next = self.flight.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            let there = self
                .receivers
                .iter()
                .enumerate()
                .filter(|&(n, _)| !self.killed.iter().any(|&(at, who)| who == n && self.now >= at));
            let timers = there.map(|(_, (from, engine, _))| (*from).max(engine.poll_timeout()));
            let own = if self.now < self.dies { self.sender.poll_timeout() } else { Time::NEVER };
            let due = timers.chain([own, next]).min().unwrap_or(Time::NEVER);
            if due > until || due == Time::NEVER {
                return self;
            }
            self.now = self.now.max(due);
            if next == due {
                let Some(Reverse((now, _, from, to, datagram))) = self.flight.pop() else { continue };
                let from = if from == 0 { source() } else { receiver_address(from as u32 - 1) };
                self.arrive(now, from, to, &datagram);
            } else {
                self.expire();
            }
            self.settle();
        }
    }

    fn arrive(&mut self, now: Time, from: SocketAddr, to: usize, datagram: &[u8]) {
        let arrival = Arrival::new(from, group());
        if to == 0 {
            if now < self.dies {
                self.sender.handle(now, &arrival, datagram);
            }
        } else if self.is_there(to - 1) {
            self.receivers[to - 1].1.handle(now, &arrival, datagram);
        }
    }

    fn expire(&mut self) {
        let now = self.now;
        if now < self.dies {
            self.sender.handle_timeout(now);
        }
        for n in 0..self.receivers.len() {
            if self.is_there(n) {
                self.receivers[n].1.handle_timeout(now);
            }
        }
    }

    pub(crate) fn got(&self, n: usize) -> &Got {
        &self.receivers[n].2
    }

    /// Asserts that receiver `n` has everything, from the beginning to the end.
    #[track_caller]
    pub(crate) fn assert_whole(&self, n: usize, text: &[u8]) {
        let got = self.got(n);
        assert!(got.octets == text, "{n}: {} of {} octets, or others", got.octets.len(), text.len());
        assert_eq!((got.end, got.gaps.len()), (Some(text.len() as u64), 0), "{n}");
        assert!(got.begins.iter().all(|&begin| begin == (0, 0)), "{n}: {:?}", got.begins);
    }
}
