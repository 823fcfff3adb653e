//! Law 11: a population equals N single engines, to the nanosecond and the NACK, on the same losses. Law 9: cutting
//! runs anywhere changes nothing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, Port};
use farcast_core::{Among, BitRate, Losses, Span, Time};
use farcast_link::pipe::{Pipe, PipeConfig};
use farcast_norm::message::Answer;
use farcast_norm::quantise::GroupSize;
use farcast_norm::{
    Body, Message, NodeId, Norm, Population, Receiver, ReceiverConfig, Sender, SenderConfig, SenderEvent,
};
use farcast_sim::star::{
    Back, BackLosses, Chains, Cut, GroupConfig, Kind, Observer, Receivers, Star, StarConfig, Tally,
};

/// Losses that depend only on the receiver and the number of the frame, so that they are the same for each caller.
#[derive(Clone, Debug)]
struct Fate {
    seed: u64,
    probability: f64,
    receivers: u32,
    /// Frames so far: of the channel, or of each receiver on its own return path.
    frames: Vec<u64>,
    own: bool,
    /// Number of consecutive frames with the same fate, and number of receivers with the same fate.
    burst: u64,
    cluster: u32,
}

impl Losses for Fate {
    fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let all: Vec<u32> = (0..self.receivers).collect();
        let receivers = if let Among::These(list) = among { list } else { &all };
        for &receiver in receivers {
            let frame = self.frames[if self.own { receiver as usize } else { 0 }];
            let path = [u64::from(receiver / self.cluster), frame / self.burst];
            if RandomStream::derive(self.seed, &path).unit() < self.probability {
                lost.push(receiver);
            }
            if self.own {
                self.frames[receiver as usize] += 1;
            }
        }
        if !self.own {
            self.frames[0] += 1;
        }
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

/// Session with drawn settings.
#[expect(clippy::struct_excessive_bools, reason = "they are settings, each independent of the others")]
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    receivers: u32,
    segments: u32,
    block: u16,
    parity: u16,
    auto: u16,
    unicast: bool,
    info: bool,
    forward_loss: f64,
    return_loss: f64,
    burst: u64,
    cluster: u32,
    delay: Span,
    near: Span,
    rate: Option<u64>,
    grtt: Span,
    backoff: u8,
    group: u64,
    robust: u32,
    ackers: u32,
    silent: bool,
    data_only: bool,
    limit: Span,
    /// Factor on the number of segments: with many, one request may not fit one message.
    times: u32,
    /// Rate of the return, in bits a second. If it is low, few named receivers are asked at once.
    return_rate: Option<u64>,
}

impl Case {
    fn draw(seed: u64) -> Self {
        let mut random = RandomStream::derive(seed, &[11]);
        let receivers = 1 + random.below(12) as u32;
        let longest = [6, 20, 60][random.below(3) as usize];
        let block = 2 + random.below(longest) as u16;
        let parity = random.below(u64::from(block) + 3) as u16;
        let far = [700_000_000, 2_000_000][random.below(2) as usize];
        let case = Self {
            seed,
            receivers,
            segments: 1 + random.below(90) as u32,
            block,
            parity,
            auto: if random.chance(0.4) { random.below(u64::from(parity) + 1) as u16 } else { 0 },
            unicast: random.chance(0.4),
            info: random.chance(0.5),
            forward_loss: [0.02, 0.05, 0.1, 0.2, 0.3, 0.6][random.below(6) as usize],
            return_loss: [0.0, 0.0, 0.3][random.below(3) as usize],
            burst: [1, 1, 1, 2, 7, 40][random.below(6) as usize],
            cluster: [1, 1, 2, 4, 100][random.below(5) as usize],
            delay: Span::from_nanos(1 + random.below(far)),
            near: Span::from_nanos(random.below(1000)),
            rate: [None, Some(350_000), Some(1_000_000)][random.below(3) as usize],
            grtt: Span::from_millis([10, 100, 500, 2000][random.below(4) as usize]),
            backoff: [0, 1, 4, 4, 6][random.below(5) as usize],
            group: [10, 1000, 100_000][random.below(3) as usize],
            robust: [20, 25][random.below(2) as usize],
            ackers: if random.chance(0.5) { random.below(u64::from(receivers) + 1) as u32 } else { 0 },
            silent: random.chance(0.03),
            data_only: random.chance(0.2),
            limit: if random.chance(0.2) {
                Span::from_nanos(random.below(12_000_000_000))
            } else {
                Span::from_secs(9000)
            },
            times: [1, 1, 1, 1, 1, 1, 1, 1, 8, 20][random.below(10) as usize],
            return_rate: [None, Some(1000), Some(4000)][random.below(3) as usize],
        };
        // Populations leave out a sender that comes back after it was given up: after a burst of losses, by a short GRTT.
        let comes_back = case.burst > 7 && case.grtt < Span::from_millis(100);
        Self { return_rate: case.return_rate.filter(|_| !comes_back), ..case }
    }

    fn sender(self) -> SenderConfig {
        let (source, group) = ("10.0.0.1:6003".parse().unwrap(), "239.255.57.40:6003".parse().unwrap());
        let size = u64::from(self.segments * self.times) * 500 - 123;
        let mut config =
            SenderConfig::new(NodeId(1), size, source, group, BitRate::from_bps(300_000).unwrap());
        config.pace.credit = Span::ZERO;
        (config.segment_size, config.block_len) = (500, self.block);
        (config.parity, config.auto_parity) = (self.parity, self.auto);
        (config.grtt, config.backoff, config.robust) = (self.grtt, self.backoff, self.robust);
        (config.receivers, config.unicast) = (GroupSize::of(self.group), self.unicast);
        config.ackers = (0..self.ackers).map(node).collect();
        config.return_rate = self.return_rate.and_then(BitRate::from_bps);
        if self.info {
            config.objects[0].info = b"a file".to_vec();
        }
        config
    }

    fn star(self, population: bool, cut: Cut, observer: &mut Story) -> Star<'_, Norm> {
        let n = self.receivers;
        let group = "239.255.57.40:6003".parse().unwrap();
        let receiver = move |n| ReceiverConfig {
            unicast: self.unicast,
            silent: self.silent,
            robust: self.robust,
            seed: self.seed,
            ..ReceiverConfig::new(node(n), group)
        };
        let kind = if population {
            Receivers::Population(Box::new(move |first| Ok(Population::new(&receiver(first), n).unwrap())))
        } else {
            Receivers::Engines(Box::new(move |n| Ok(Receiver::new(receiver(n)).unwrap())))
        };
        let fate = |seed, probability, own| Fate {
            seed,
            probability,
            receivers: n,
            frames: vec![0; if own { n as usize } else { 1 }],
            own,
            burst: if own { 1 } else { self.burst },
            cluster: if own { 1 } else { self.cluster },
        };
        let pipe = PipeConfig {
            rate: self.rate.and_then(BitRate::from_bps),
            delay: self.delay,
            ..PipeConfig::default()
        };
        let mut chains = Chains::new();
        let pipe = Pipe::new(pipe, Port::Terminals, RandomStream::derive(0, &[])).unwrap();
        chains.push_forward("pipe", Box::new(pipe));
        let back = fate(self.seed + 1, self.return_loss, true);
        let config = StarConfig {
            groups: vec![GroupConfig {
                receivers: n,
                kind,
                losses: Box::new(fate(self.seed, self.forward_loss, false)),
                delay: self.near,
                data_only: self.data_only,
            }],
            sender: Some(Sender::new(self.sender()).unwrap()),
            flows: Vec::new(),
            chains,
            back: Back::uniform(self.delay, BackLosses::Shared(Box::new(back))),
            overhead: 28,
            seal: None,
            given: false,
            lookahead: self.delay,
            limit: Time::ZERO + self.limit,
            cut,
        };
        Star::new(config, Some(observer)).unwrap()
    }
}

fn node(n: u32) -> NodeId {
    NodeId(n + 2)
}

/// Observable events of a session, which do not depend on the cutting of runs.
#[derive(Clone, PartialEq, Debug, Default)]
struct Story {
    /// Datagrams of the sender, with their times.
    sent: Vec<(Time, String)>,
    told: Vec<(Time, SenderEvent)>,
    /// Messages of receivers, with their times.
    said: Vec<(Time, u32, String)>,
    /// NACKs that reached the sender.
    reached: u64,
}

impl Story {
    /// Returns `true` if the receivers of both stories said the same, up to an instant at which the order differs.
    /// Engines whose timers expire at one instant speak in the order in which the timers were set, which is not
    /// guaranteed.
    fn is_tied(&self, other: &Self) -> bool {
        let parts = self.said.iter().zip(&other.said).find(|(ours, theirs)| ours != theirs);
        let Some(((at, ..), _)) = parts else { return false };
        let then = |story: &Self| {
            let mut said: Vec<_> = story.said.iter().filter(|said| said.0 == *at).cloned().collect();
            said.sort();
            said
        };
        then(self) == then(other)
    }
}

impl Story {
    /// Returns `true` if a receiver sent two messages at one instant.
    fn asks_in_several(&self) -> bool {
        self.said.windows(2).any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1))
    }
}

impl Story {
    /// Returns `true` if the first flush that asks anybody asks one receiver.
    fn asks_one_by_one(&self) -> bool {
        let lists =
            self.sent.iter().filter_map(|(_, said)| said.split_once("ackers: [").map(|(_, list)| list));
        let asked = lists.map(|list| list.matches("node").count()).find(|&asked| asked > 0);
        asked == Some(1)
    }
}

impl Observer<Norm> for Story {
    fn wants_each(&self) -> bool {
        false
    }

    fn sent(&mut self, at: Time, _destination: SocketAddr, frame: &Frame<Message>) {
        use farcast_core::Message as _;
        let (mut at, mut rest) = (at, Some(frame.message.clone()));
        while let Some(message) = rest {
            let (head, tail) = message.split(std::num::NonZeroU32::MIN);
            self.sent.push((at, format!("{head:?}")));
            (at, rest) = (at + frame.spacing, tail);
        }
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        self.said.push((at, receiver, format!("{:?}", frame.message)));
    }

    fn reached(&mut self, _at: Time, _receiver: u32, message: &Message) {
        self.reached += u64::from(is_nack(message));
    }

    fn told(&mut self, at: Time, event: &SenderEvent) {
        self.told.push((at, *event));
    }
}

fn is_nack(message: &Message) -> bool {
    matches!(&message.body, Body::Receiver(said) if matches!(said.answer, Answer::Nack(_)))
}

/// Outcome of a session: completion times, number of NACKs, tally, and segments sent in each round.
#[derive(Clone, PartialEq, Debug)]
struct Outcome {
    completed: Vec<Time>,
    nacks: u64,
    tally: Tally,
    rounds: Vec<u64>,
}

fn play(case: Case, population: bool, cut: Cut) -> (Outcome, Story) {
    let mut story = Story::default();
    let mut star = case.star(population, cut, &mut story);
    star.run();
    let group = &star.groups()[0];
    assert_eq!(matches!(group.kind, Kind::Population { .. }), population);
    let outcome = Outcome {
        completed: (0..case.receivers).map(|n| group.completed(n)).collect(),
        nacks: group.naks(),
        // The number of events is not part of the outcome.
        tally: Tally { events: 0, ..star.tally() },
        rounds: star.sender().unwrap().sent_per_round().to_vec(),
    };
    drop(star);
    story.sent.sort();
    (outcome, story)
}

fn compare(case: Case, left: &(Outcome, Story), right: &(Outcome, Story), what: &str) {
    let seed = case.seed;
    for (a, b) in left.1.said.iter().zip(&right.1.said) {
        assert_eq!(a, b, "seed {seed}, {what}: {case:?}");
    }
    for (a, b) in left.1.sent.iter().zip(&right.1.sent) {
        assert_eq!(a, b, "seed {seed}, {what}: {case:?}");
    }
    assert_eq!(left.1.told, right.1.told, "seed {seed}, {what}: {case:?}");
    assert_eq!(left.0, right.0, "seed {seed}, {what}: {case:?}");
    assert_eq!(left.1, right.1, "seed {seed}, {what}: {case:?}");
}

const SESSIONS: u64 = 2000;

#[test]
fn a_population_equals_single_engines() {
    let (mut complete, mut nacks, mut suppressed, mut coded, mut ties) = (0u64, 0, 0u64, 0u64, 0u64);
    let (mut several, mut pieces) = (0u64, 0u64);
    for seed in 0..SESSIONS {
        let case = Case::draw(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        if alone.1.is_tied(&together.1) {
            ties += 1;
            continue;
        }
        compare(case, &alone, &together, "engines and population");
        complete += u64::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
        nacks += alone.0.nacks;
        coded += u64::from(case.parity > 0);
        several += u64::from(alone.1.asks_in_several());
        pieces += u64::from(case.ackers > 3 && alone.1.asks_one_by_one());
        if !case.unicast && case.backoff > 0 {
            let deaf = Case { unicast: true, ..case };
            suppressed += u64::from(play(deaf, true, Cut::Whole).0.nacks > alone.0.nacks);
        }
    }
    // The sessions were worth comparing: in every tenth a receiver kept quiet because others had asked.
    assert!(
        complete > SESSIONS / 2 && nacks > SESSIONS * 8 && coded > SESSIONS / 2,
        "{complete} {nacks} {coded}"
    );
    assert!(suppressed > SESSIONS / 12 && ties < SESSIONS / 50, "{suppressed} {ties}");
    // In some sessions the requests of a receiver did not fit one message.
    assert!(several > SESSIONS / 100, "{several}");
    // In others, flushes asked one named receiver after the other.
    assert!(pieces > SESSIONS / 20, "{pieces}");
}

#[test]
fn cutting_runs_changes_nothing() {
    for seed in 0..300 {
        let case = Case::draw(seed);
        let whole = play(case, true, Cut::Whole);
        compare(case, &whole, &play(case, true, Cut::One), "whole runs and packets");
        compare(case, &whole, &play(case, true, Cut::Random(seed)), "whole runs and runs cut at random");
    }
}
