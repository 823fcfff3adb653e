//! Law 11: a population equals N single engines, to the nanosecond and the NAK count, on the same losses. Law 9:
//! cutting runs anywhere changes nothing.

mod fate;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, Port};
use farcast_core::{BitRate, Span, Time};
use farcast_link::pipe::{Pipe, PipeConfig};
use farcast_mftp::{
    Body, ClientId, Group, Invited, Message, NakTiming, Pace, PassWait, Product, ReceiverConfig, Secret,
    SenderConfig, SenderEvent, StatusRetry, Waits,
};
use farcast_sim::scenario::mftp::{self, Mftp, receiver_id};
use farcast_sim::star::{
    Back, BackLosses, Chains, Cut, GroupConfig, Kind, Observer, SealConfig, SealCounts, SealMessage, Star,
    StarConfig, Tally,
};

use fate::Fate;

/// Session with drawn settings.
#[expect(clippy::struct_excessive_bools, reason = "they are settings, each independent of the others")]
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    receivers: u32,
    dtus: u32,
    block: u32,
    model: u32,
    wait: PassWait,
    timing: NakTiming,
    forward_loss: f64,
    return_loss: f64,
    delay: Span,
    rate: Option<u64>,
    ask_twice: bool,
    given: bool,
    keep_early_data: bool,
    late: bool,
    restart: bool,
    head: u32,
    data_only: bool,
    limit: Span,
    parity: u32,
    parity_ahead: bool,
    small_twice: bool,
    burst: u64,
    cluster: u32,
    parity_memory: u64,
    window: Span,
    overheard: bool,
    sealed: bool,
    /// Rate of the return in bit/s, with which receivers take turns.
    turns: Option<u64>,
    proofs: bool,
    /// Number of invited receivers that never come.
    absent: u32,
}

impl Case {
    fn draw(seed: u64) -> Self {
        let mut random = RandomStream::derive(seed, &[11]);
        let lossy = random.chance(0.6);
        Self {
            seed,
            receivers: 1 + random.below(12) as u32,
            dtus: 1 + random.below(90) as u32,
            block: 3 + random.below(40) as u32,
            model: random.below(3) as u32,
            wait: if random.chance(0.5) { PassWait::Draft } else { PassWait::FixedTimer },
            timing: if random.chance(0.5) { NakTiming::EachBlock } else { NakTiming::EndOfFirstPass },
            // Half and more of the sessions lose requests, DTUs and NAKs.
            forward_loss: [0.1, 0.1, 0.2, 0.3, 0.6, 0.0, 0.02]
                [random.below(if lossy { 5 } else { 7 }) as usize],
            return_loss: if lossy { 0.3 } else { 0.0 },
            data_only: !lossy && random.chance(0.5),
            limit: if random.chance(0.2) {
                Span::from_nanos(random.below(12_000_000_000))
            } else {
                Span::from_secs(9000)
            },
            delay: Span::from_nanos(1 + random.below(700_000_000)),
            rate: [None, Some(300_000), Some(1_000_000)][random.below(3) as usize],
            ask_twice: random.chance(0.5),
            given: random.chance(0.3),
            keep_early_data: random.chance(0.7),
            late: random.chance(0.5),
            restart: random.chance(0.5),
            head: random.below(2) as u32,
            parity: 0,
            parity_ahead: false,
            small_twice: false,
            burst: 1,
            cluster: 1,
            parity_memory: 64 << 20,
            window: Span::ZERO,
            overheard: false,
            sealed: false,
            turns: None,
            proofs: false,
            absent: 0,
        }
    }

    /// Draws a session with parity: few symbols or many, foreseen or not, blocks long and short, losses alone and in
    /// bursts, and receivers without memory for all parity.
    fn draw_with_parity(seed: u64) -> Self {
        let mut random = RandomStream::derive(seed, &[12]);
        let case = Self::draw(seed);
        let longest = if random.chance(0.5) { 12 } else { 60 };
        let block = 2 + random.below(longest) as u32;
        Self {
            block,
            // Parity is foreseen only under the draft's rule.
            wait: if random.chance(0.8) { PassWait::Draft } else { case.wait },
            forward_loss: [0.02, 0.05, 0.1, 0.2, 0.3][random.below(5) as usize],
            parity: 1 + random.below(u64::from(block)) as u32,
            parity_ahead: random.chance(0.7),
            small_twice: random.chance(0.3),
            burst: [1, 1, 1, 2, 7][random.below(5) as usize],
            parity_memory: [64 << 20, 64 << 20, 3000, 12_000][random.below(4) as usize],
            ..case
        }
    }

    /// Draws a session with or without parity, with spread answers, most of them heard by other receivers, of which
    /// several may lack the same.
    fn draw_with_spread(seed: u64) -> Self {
        let mut random = RandomStream::derive(seed, &[13]);
        let case = if random.chance(0.5) { Self::draw(seed) } else { Self::draw_with_parity(seed) };
        Self {
            window: Span::from_millis([50, 300, 1000, 4000][random.below(4) as usize]),
            overheard: random.chance(0.8),
            // Receivers that are given a transmission have joined before data begins, in contrast to spread
            // registrations.
            given: false,
            cluster: [1, 2, 4, 100][random.below(4) as usize],
            forward_loss: case.forward_loss.max(0.02),
            delay: Span::from_nanos(case.delay.as_nanos() / [1, 10, 1000][random.below(3) as usize]),
            ..case
        }
    }

    /// Draws a session in which receivers take turns.
    fn draw_with_turns(seed: u64) -> Self {
        let mut random = RandomStream::derive(seed, &[14]);
        let case = Self::draw_with_parity(seed);
        Self {
            model: 1 + case.model % 2,
            wait: PassWait::Draft,
            given: false,
            // A handful takes no turns, and receivers that may not come late do not.
            turns: Some([400, 2_000, 5_000][random.below(3) as usize]),
            receivers: 4 + case.receivers,
            late: true,
            // Many that are invited are listed in short.
            absent: if random.chance(0.3) { 70 } else { 0 },
            ..case
        }
    }

    /// Draws a sealed session, with or without parity: keys are lost like everything else.
    fn draw_sealed(seed: u64) -> Self {
        let case = if seed.is_multiple_of(2) { Self::draw(seed) } else { Self::draw_with_parity(seed) };
        Self { sealed: true, forward_loss: case.forward_loss.min(0.3), ..case }
    }

    /// Draws a session of any kind with proofs.
    fn draw_with_proofs(seed: u64) -> Self {
        let kinds = [
            Self::draw,
            Self::draw_with_parity,
            Self::draw_with_spread,
            Self::draw_with_turns,
            Self::draw_sealed,
        ];
        let case = kinds[seed as usize % kinds.len()](seed);
        // Where nobody registers, nothing but the end is proved.
        let model = if case.model == 0 && !seed.is_multiple_of(4) { 1 } else { case.model };
        Self { proofs: true, model, ..case }
    }

    fn seal(self) -> SealConfig {
        SealConfig {
            listed: self.receivers + 2,
            together: 4,
            rate: BitRate::from_bps(300_000),
            content: 28,
            apart: self.model > 0,
        }
    }

    fn sender(self) -> SenderConfig {
        let product = Product { id: [7; 32], size: u64::from(self.dtus) * 500 - 123, name: "file".into() };
        let server = "10.0.0.1:5402".parse().unwrap();
        let mut config = SenderConfig::new(product, server, "239.255.54.2:5402".parse().unwrap());
        (config.dtu_size, config.block_size) = (500, self.block);
        let rate = BitRate::from_bps(300_000).unwrap();
        config.pace = Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule: 1 };
        config.start.after = Some(Span::from_millis(1500));
        config.group = match self.model {
            0 => Group::OpenUnlimited,
            1 => Group::OpenLimited { limit: 1000 },
            _ => Group::Closed((0..self.receivers + self.absent).map(|n| invited(receiver_id(n))).collect()),
        };
        (config.pass_wait, config.nak_timing, config.ask_twice) = (self.wait, self.timing, self.ask_twice);
        config.status_retry = StatusRetry::Fixed(Span::from_millis(1901));
        config.nak_restarts_wait = self.restart;
        (config.late_entry, config.head_segments) = (self.late, self.head);
        config.late_announce_interval = Span::from_millis(700);
        config.brief_announce_interval = Span::from_millis(500);
        config.announce_limit = Span::from_secs(20);
        config.transfer_limit = Span::from_secs(4000);
        (config.parity_symbols, config.parity_ahead) = (self.parity, self.parity_ahead);
        config.repeat_small_passes = self.small_twice;
        config.backoff_window = self.window;
        config.turns = self.turns.is_some();
        config.secret = self.proofs.then_some(Secret([1; 32]));
        config.return_rate = self.turns.and_then(BitRate::from_bps);
        if self.overheard {
            config.response = "239.255.54.9:5402".parse().unwrap();
        }
        config
    }

    /// Returns the world, and the counter of lost status requests.
    fn star(self, population: bool, cut: Cut, observer: &mut Story) -> (Star<'_, Mftp>, Arc<AtomicU64>) {
        let n = self.receivers;
        let mut receiver = ReceiverConfig::new(ClientId(1), 5402);
        receiver.keep_early_data = self.keep_early_data;
        receiver.secret = self.proofs.then_some(Secret([2; 32]));
        // A population counts silence for all its receivers together, so no receiver's patience may end here.
        receiver.patience = Span::from_secs(100_000);
        (receiver.parity_memory_bytes, receiver.waits) = (self.parity_memory, Waits::ByReceiver);
        let mut losses = Box::new(Fate::channel(self.seed, self.forward_loss, n));
        (losses.burst, losses.cluster) = (self.burst, self.cluster);
        let requests_lost = Arc::clone(&losses.requests_lost);
        let back = Fate::own(self.seed + 1, self.return_loss, n);
        let pipe = PipeConfig {
            rate: self.rate.and_then(BitRate::from_bps),
            delay: Span::from_millis(250),
            ..PipeConfig::default()
        };
        let pipe = Pipe::new(pipe, Port::Terminals, RandomStream::derive(0, &[])).unwrap();
        let mut chains = Chains::new();
        chains.push_forward("pipe", Box::new(pipe));
        let sender = self.sender();
        let config = StarConfig {
            groups: vec![GroupConfig {
                receivers: n,
                kind: mftp::receivers(receiver, n, !population),
                losses,
                delay: Span::from_nanos(17),
                data_only: self.data_only,
            }],
            sender: Some(mftp::sender(sender).unwrap()),
            flows: Vec::new(),
            chains,
            back: Back::uniform(self.delay, BackLosses::Shared(Box::new(back))),
            overhead: 28,
            seal: self.sealed.then(|| self.seal()),
            given: self.given,
            lookahead: self.delay,
            limit: Time::ZERO + self.limit,
            cut,
        };
        (Star::new(config, Some(observer)).unwrap(), requests_lost)
    }
}

fn invited(id: ClientId) -> Invited {
    Invited { label: id.to_string(), id }
}

/// Observable events of a session, which do not depend on the cutting of runs.
#[derive(Clone, PartialEq, Debug, Default)]
struct Story {
    /// Datagrams of the sender, with their times.
    sent: Vec<(Time, String)>,
    told: Vec<(Time, SenderEvent)>,
    /// NAKs that left receivers, and those that reached the sender.
    naks: (u64, u64),
    /// Number of lost status requests, counted for each receiver.
    requests_lost: u64,
    /// NAKs that engines did not send because they had heard the same.
    suppressed: u64,
    /// Messages that engines did not send because of the limits on answers.
    unsaid: u64,
    /// Messages of receivers, with their times, where nothing was merged.
    said: Vec<(Time, u32, String)>,
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

impl Observer<Mftp> for Story {
    fn wants_each(&self) -> bool {
        false
    }

    fn sent(&mut self, at: Time, _destination: SocketAddr, frame: &Frame<Message>) {
        for segment in 0..frame.segments() {
            let what = match &frame.message.body {
                Body::Data(data) => {
                    let dtu = data.dtus.first() + segment;
                    format!("{:?} {} {} {dtu}", data.kind, data.pass, data.block)
                }
                other => format!("{other:?}"),
            };
            self.sent.push((at + frame.spacing * u64::from(segment), what));
        }
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        let Message { body, proof, .. } = &frame.message;
        self.said.push((at, receiver, format!("{body:?} {proof:?}")));
        self.naks.0 += u64::from(matches!(frame.message.body, Body::Nak(_)));
    }

    fn sealed(&mut self, at: Time, message: SealMessage) {
        self.sent.push((at, format!("{message:?}")));
    }

    fn reached(&mut self, _at: Time, _receiver: u32, message: &Message) {
        self.naks.1 += u64::from(matches!(message.body, Body::Nak(_)));
    }

    fn told(&mut self, at: Time, event: &SenderEvent) {
        self.told.push((at, event.clone()));
    }
}

/// Outcome of a session: completion times, number of NAKs, tally, and events.
#[derive(Clone, PartialEq, Debug)]
struct Outcome {
    completed: Vec<Time>,
    naks: u64,
    tally: Tally,
    passes: Vec<u64>,
    scheduled: u64,
    parity_sent: u64,
    members: Vec<(ClientId, u64, u64, u32)>,
    seal: Option<SealCounts>,
}

fn play(case: Case, population: bool, cut: Cut) -> (Outcome, Story) {
    let mut story = Story::default();
    let (mut star, requests_lost) = case.star(population, cut, &mut story);
    star.run();
    let group = &star.groups()[0];
    let sender = star.sender().unwrap();
    let members = sender.members();
    let outcome = Outcome {
        completed: (0..case.receivers).map(|n| group.completed(n)).collect(),
        naks: group.naks(),
        // The number of events is not part of the outcome; merged NAKs enter the return path uncounted.
        tally: Tally { events: 0, return_datagrams: 0, return_octets: 0, ..star.tally() },
        passes: sender.stats().dtus_per_pass.clone(),
        scheduled: sender.stats().scheduled,
        parity_sent: sender.stats().parity_sent,
        members: members.map(|(id, m)| (id, m.lost_dtus, m.naks, m.held)).collect(),
        seal: star.seal_counts().copied(),
    };
    let (suppressed, unsaid) = match &group.kind {
        Kind::Engines(stations) => {
            let stats = || stations.iter().map(|station| station.engine.stats());
            (stats().map(|one| one.suppressed).sum(), stats().map(|one| one.unsaid).sum())
        }
        Kind::Population { .. } => (0, 0),
    };
    drop(star);
    (story.suppressed, story.unsaid) = (suppressed, unsaid);
    story.requests_lost = requests_lost.load(Ordering::Relaxed);
    story.sent.sort();
    (outcome, story)
}

fn compare(case: Case, left: &(Outcome, Story), right: &(Outcome, Story), what: &str) {
    let seed = case.seed;
    for (a, b) in left.1.sent.iter().zip(&right.1.sent) {
        assert_eq!(a, b, "seed {seed}, {what}: {case:?}");
    }
    assert_eq!(left.1.told, right.1.told, "seed {seed}, {what}: {case:?}");
    assert_eq!(left.0, right.0, "seed {seed}, {what}: {case:?}");
    assert_eq!(left.1.sent.len(), right.1.sent.len(), "seed {seed}, {what}: {case:?}");
}

/// Number of sessions to compare.
const SESSIONS: u64 = 2400;
const TURN_SESSIONS: u64 = 400;

/// Number of sessions with spread answers. They are more, because one in nine is compared only until two receivers wake
/// at one nanosecond. Engines wake in the order in which their timers moved last, a population in the order of its
/// receivers.
const SPREAD_SESSIONS: u64 = 3200;

#[test]
fn a_population_equals_single_engines() {
    let (mut lossy, mut complete, mut naks) = (0u64, 0, 0);
    for seed in 0..SESSIONS {
        let case = Case::draw(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        compare(case, &alone, &together, "engines and population");
        let (sent, reached) = alone.1.naks;
        lossy += u64::from(sent > reached && alone.1.requests_lost > 0);
        complete += u32::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
        naks += alone.0.naks;
    }
    // The sessions were worth comparing: half of them have lost requests and lost NAKs.
    assert!(lossy >= SESSIONS / 2 && complete > 1000 && naks > 20_000, "{lossy} {complete} {naks}");
}

#[test]
fn so_it_does_with_parity() {
    let (mut coded, mut foreseen, mut complete, mut naks, mut ties) = (0u64, 0u64, 0u64, 0, 0);
    for seed in 0..SESSIONS {
        let case = Case::draw_with_parity(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        if alone.1.is_tied(&together.1) {
            ties += 1;
            continue;
        }
        compare(case, &alone, &together, "engines and population with parity");
        let parity = |(_, what): &(Time, String)| what.starts_with("Parity");
        coded += u64::from(alone.1.sent.iter().any(parity));
        foreseen +=
            u64::from(alone.1.sent.iter().any(|sent| parity(sent) && sent.1.starts_with("Parity 1 ")));
        complete += u64::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
        naks += alone.0.naks;
    }
    // Most of them had parity, and some had parity before it was requested.
    assert!(coded > SESSIONS / 2 && foreseen > SESSIONS / 10, "{coded} {foreseen}");
    assert!(complete > SESSIONS / 2 && naks > 20_000 && ties < SESSIONS / 50, "{complete} {naks} {ties}");
}

#[test]
fn so_it_does_where_answers_are_spread_and_overheard() {
    let (mut suppressed, mut complete, mut ties) = (0u64, 0u64, 0u64);
    for seed in 0..SPREAD_SESSIONS {
        let case = Case::draw_with_spread(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        if alone.1.is_tied(&together.1) {
            ties += 1;
            continue;
        }
        compare(case, &alone, &together, "engines and population with spread answers");
        suppressed += alone.1.suppressed;
        complete += u64::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
    }
    assert!(suppressed > 4000 && complete > SPREAD_SESSIONS / 2, "{suppressed} {complete}");
    assert!(ties < SPREAD_SESSIONS / 8, "{ties}");
}

#[test]
fn so_it_does_where_receivers_take_turns() {
    let (mut called, mut complete, mut ties) = (0u64, 0u64, 0u64);
    for seed in 0..TURN_SESSIONS {
        let case = Case::draw_with_turns(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        if alone.1.is_tied(&together.1) {
            ties += 1;
            continue;
        }
        compare(case, &alone, &together, "engines and population with turns");
        called += u64::from(alone.1.said.iter().any(|(.., what)| what.contains("round: Some")));
        complete += u64::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
    }
    assert!(called > TURN_SESSIONS * 3 / 4 && complete > TURN_SESSIONS / 2, "{called} {complete}");
    assert!(ties < TURN_SESSIONS / 4, "{ties}");
}

#[test]
fn so_it_does_sealed() {
    let (mut complete, mut asks, mut again, mut ties) = (0u64, 0, 0, 0u64);
    for seed in 0..SESSIONS {
        let case = Case::draw_sealed(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        if alone.1.is_tied(&together.1) {
            ties += 1;
            continue;
        }
        compare(case, &alone, &together, "engines and population that are sealed");
        let seal = alone.0.seal.unwrap();
        complete += u64::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
        asks += seal.asks;
        again += u64::from(seal.keys_for_one > u64::from(case.receivers));
    }
    // In many sessions, receivers lacked keys.
    assert!(
        complete > SESSIONS / 2 && asks > SESSIONS / 10 && again > SESSIONS / 10,
        "{complete} {asks} {again}"
    );
    assert!(ties < SESSIONS / 50, "{ties}");
}

#[test]
fn so_it_does_with_proofs() {
    let (mut granted, mut again, mut complete, mut ties, mut limited) = (0u64, 0u64, 0u64, 0u64, 0u64);
    for seed in 0..SESSIONS {
        let case = Case::draw_with_proofs(seed);
        let alone = play(case, false, Cut::Whole);
        let together = play(case, true, Cut::Whole);
        if alone.1.is_tied(&together.1) {
            ties += 1;
            continue;
        }
        if alone.1.unsaid > 0 {
            limited += 1;
            continue;
        }
        compare(case, &alone, &together, "engines and population with proofs");
        if case.model > 0 {
            assert_eq!(alone.1.said, together.1.said, "seed {seed}: {case:?}");
        }
        let grants = alone.1.sent.iter().filter(|(_, what)| what.starts_with("Grant")).count();
        granted += u64::from(grants > 0);
        again += u64::from(grants > case.receivers as usize);
        complete += u64::from(alone.0.completed.iter().all(|&at| at != Time::NEVER));
    }
    assert!(granted > SESSIONS / 2 && again > SESSIONS / 10, "{granted} {again}");
    assert!(
        complete > SESSIONS / 2 && ties < SESSIONS / 10 && limited < SESSIONS / 20,
        "{complete} {ties} {limited}"
    );
}

#[test]
fn cutting_runs_changes_nothing() {
    let kinds = [
        Case::draw,
        Case::draw_with_parity,
        Case::draw_with_spread,
        Case::draw_sealed,
        Case::draw_with_proofs,
    ];
    for seed in 0..800 {
        let case = kinds[seed as usize % kinds.len()](seed);
        let whole = play(case, true, Cut::Whole);
        compare(case, &whole, &play(case, true, Cut::One), "whole runs and packets");
        compare(case, &whole, &play(case, true, Cut::Random(seed)), "whole runs and runs cut at random");
    }
}
