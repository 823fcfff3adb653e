//! Random losses, duplicates and reorderings, by seed, and the laws that hold in spite of them.

use alloc::collections::BTreeMap;
use std::vec::Vec;
use std::{format, vec};

use farcast_core::random::RandomStream;
use farcast_core::{Span, Time};

use crate::config::{BufferLimit, Discard, ErroneousStatus, MaxTransmissions, Mrw, Polling, ResetConfig};
use crate::format::Format;
use crate::pdu::Pdu;
use crate::report::ReportForm;
use crate::{Config, Entity, Event, Reject, wire};

const TTI: Span = Span::from_millis(10);

/// Faults of the channel, in shares of the PDUs.
#[derive(Clone, Copy)]
struct Channel {
    loss: f64,
    duplicates: f64,
    /// Jitter beyond the fixed delay, up to this many TTIs: a later PDU may arrive earlier.
    jitter: u64,
}

/// Results of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Outcome {
    /// At each end, the SDUs that arrived, by their numbers at the other, in order.
    delivered: [Vec<u64>; 2],
    /// At each end, whether each SDU that it sent was given up.
    discarded: [Vec<bool>; 2],
    resets: u64,
    /// PDUs that left.
    pdus: u64,
    /// PDUs that the channel lost, duplicated or delayed beyond others.
    disturbed: u64,
}

/// A PDU on its way, with the end that it goes to.
type Flying = (usize, Pdu<Vec<u8>>);

/// Two entities and a channel both ways.
struct Run {
    name: &'static str,
    seed: u64,
    random: RandomStream,
    /// `true` if every PDU passes as octets.
    codec: bool,
    channel: Channel,
    ends: [Entity<Vec<u8>>; 2],
    formats: [Format; 2],
    /// The settings of end 0, which both ends share but for their formats.
    config: Config,
    /// `true` if the channel was one that keeps the order of PDUs.
    keeps_order: bool,
    tick: u64,
    /// PDUs on their way, by when and in what order they arrive, and to which end.
    flying: BTreeMap<(u64, u64), Flying>,
    order: u64,
    latest: [u64; 2],
    sdus: [Vec<Vec<u8>>; 2],
    outcome: Outcome,
}

/// The contents of SDU `number` of one end: told apart even where they are short.
fn contents(end: usize, number: u64, len: usize) -> Vec<u8> {
    let head = number.to_le_bytes();
    (0..len).map(|i| if i < 6 { head[i] } else { (number as usize * 31 + i * 7 + end) as u8 }).collect()
}

impl Run {
    fn new(name: &'static str, seed: u64, configs: [Config; 2], channel: Channel, codec: bool) -> Self {
        let formats = [configs[0].format, configs[1].format];
        let config = configs[0].clone();
        Self {
            name,
            seed,
            random: RandomStream::derive(seed, &[1]),
            codec,
            channel,
            ends: configs.map(|config| Entity::new(config).expect("a legal configuration")),
            formats,
            config,
            keeps_order: channel.jitter == 0 && channel.duplicates == 0.0,
            tick: 0,
            flying: BTreeMap::new(),
            order: 0,
            latest: [0; 2],
            sdus: [vec![], vec![]],
            outcome: Outcome::default(),
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + TTI * self.tick
    }

    fn context(&self) -> std::string::String {
        format!("{} seed {} TTI {}:", self.name, self.seed, self.tick)
    }

    /// Runs one TTI: takes arrivals, submits SDUs, and sends PDUs.
    fn step(&mut self, load: f64, blocks: usize) {
        self.tick += 1;
        let now = self.now();
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.tick) {
            let (end, pdu) = entry.remove();
            // What is old or comes twice is rejected; the entity counts it.
            let _ = self.ends[end].handle(now, pdu);
            self.take_events(end);
        }
        for end in 0..2 {
            self.ends[end].tti(now, blocks as u16);
            if self.random.chance(load) {
                self.submit(end);
            }
            for _ in 0..blocks {
                let expected = self.ends[end].has_output(now);
                let Some(pdu) = self.ends[end].poll_pdu(now) else { break };
                assert!(expected, "{} something left that was not announced", self.context());
                self.carry(end, pdu);
            }
            self.take_events(end);
        }
    }

    fn submit(&mut self, end: usize) {
        let len = match self.random.below(4) {
            0 => 1 + self.random.below(12),
            1 => [37, 38, 39, 40, 76, 80, 120][self.random.below(7) as usize],
            _ => 1 + self.random.below(2000),
        };
        let number = self.sdus[end].len() as u64;
        let sdu = contents(end, number, len as usize);
        if self.ends[end].submit(self.now(), sdu.clone()) {
            self.sdus[end].push(sdu);
            self.outcome.discarded[end].push(false);
        }
    }

    /// Brings a PDU to the other end, or not.
    fn carry(&mut self, from: usize, pdu: Pdu<Vec<u8>>) {
        self.outcome.pdus += 1;
        if self.random.chance(self.channel.loss) {
            self.outcome.disturbed += 1;
            return;
        }
        let pdu = if self.codec { self.through_octets(from, &pdu) } else { pdu };
        let copies = 1 + u64::from(self.random.chance(self.channel.duplicates));
        for copy in 0..copies {
            let at = self.tick + 3 + self.random.below(self.channel.jitter + 1);
            self.outcome.disturbed += u64::from(copy > 0 || at < self.latest[from]);
            self.latest[from] = self.latest[from].max(at);
            self.order += 1;
            self.flying.insert((at, self.order), (1 - from, pdu.clone()));
        }
    }

    fn through_octets(&self, from: usize, pdu: &Pdu<Vec<u8>>) -> Pdu<Vec<u8>> {
        let mut octets = [0; 1600];
        let encoded = wire::encode(pdu, self.formats[from], &mut octets);
        let len = encoded.unwrap_or_else(|error| panic!("{} {pdu:?}: {error}", self.context()));
        let decoded = wire::decode(&octets[..len], self.formats[from]);
        decoded.unwrap_or_else(|error| panic!("{} {pdu:?}: {error}", self.context())).map(<[u8]>::to_vec)
    }

    fn take_events(&mut self, end: usize) {
        while let Some(event) = self.ends[end].poll_event() {
            match event {
                Event::Delivered(sdu) => self.on_delivered(end, &sdu),
                Event::Discarded { sdus } => {
                    for sdu in sdus {
                        let discarded = &mut self.outcome.discarded[end][sdu as usize];
                        assert!(!*discarded, "{} SDU {sdu} was discarded twice", self.name);
                        *discarded = true;
                    }
                }
                Event::WindowMoved => (),
                Event::Reset => self.outcome.resets += 1,
                Event::Unrecoverable => panic!("{} an entity gave up", self.context()),
            }
        }
    }

    /// The SDU that arrived is one that was sent, with its contents, and has not arrived before.
    fn on_delivered(&mut self, end: usize, sdu: &[u8]) {
        let before = &self.outcome.delivered[end];
        let from = before.last().map_or(0, |&last| last + 1);
        let sent = &self.sdus[1 - end];
        // Short SDUs are alike every 256 numbers.
        let number = if self.config.in_sequence {
            (from..sent.len() as u64).find(|&number| sent[number as usize] == sdu)
        } else {
            let near = from.saturating_sub(200)..(from + 200).min(sent.len() as u64);
            let is_new = |number: &u64| !before.iter().rev().take(400).any(|seen| seen == number);
            near.filter(is_new).find(|&number| sent[number as usize] == sdu)
        };
        let Some(number) = number else {
            panic!("{} what was delivered at {end} was not sent, or before: {sdu:?}", self.context());
        };
        self.outcome.delivered[end].push(number);
    }

    /// Runs `noisy` TTIs, and on without disturbance and without SDUs until nothing moves any more.
    fn finish(mut self, noisy: u64, load: f64) -> Outcome {
        for _ in 0..noisy {
            self.step(load, 6);
        }
        self.channel = Channel { loss: 0.0, duplicates: 0.0, jitter: 0 };
        // A second without data, moves and resets is longer than any timer: nothing comes any more.
        let (mut quiet, mut before) = (0, 0);
        while quiet < 100 {
            assert!(self.tick < noisy + 100_000, "{} it goes on for good", self.context());
            self.step(0.0, 12);
            let activity = self.activity();
            quiet = if activity == before { quiet + 1 } else { 0 };
            before = activity;
        }
        self.check_silence();
        self.check_all_accounted_for();
        self.outcome
    }

    /// Returns the number of PDUs sent besides reports.
    fn activity(&self) -> u64 {
        let sent = self.ends.iter().map(Entity::counters);
        sent.map(|it| it.data_pdus + it.retransmissions + it.mrw_sent + it.reset_pdus).sum()
    }

    /// Nothing is on its way, nothing wants to leave, and no timer runs, but where reports are periodic.
    fn check_silence(&self) {
        for end in self.ends.iter().filter(|_| self.config.status.periodic.is_none()) {
            assert!(self.flying.is_empty(), "{}", self.context());
            assert!(!end.has_output(self.now()), "{}", self.context());
            assert_eq!(end.poll_timeout(), None, "{}", self.context());
        }
    }

    /// Every SDU was delivered, or its sender was told that it was not.
    fn check_all_accounted_for(&self) {
        for end in 0..2 {
            let mut arrived = vec![false; self.sdus[end].len()];
            for &number in &self.outcome.delivered[1 - end] {
                assert!(!core::mem::replace(&mut arrived[number as usize], true), "{} twice", self.name);
            }
            let discarded = &self.outcome.discarded[end];
            let lost = (0..arrived.len()).find(|&number| !arrived[number] && !discarded[number]);
            assert_eq!(lost, None, "{} an SDU of end {end} was lost and nobody was told", self.context());
            let counters = self.ends[end].counters();
            assert_eq!(counters.sdus_submitted, self.sdus[end].len() as u64);
            assert_eq!(counters.sdus_discarded, discarded.iter().filter(|&&it| it).count() as u64);
            let delivered = self.outcome.delivered[end].len() as u64;
            assert_eq!(counters.sdus_delivered, delivered);
            assert_eq!((counters.sdus_broken, counters.sdus_too_long), (0, 0));
            if self.keeps_order {
                assert_eq!(counters.rejected.of(Reject::ErroneousSequenceNumber), 0, "{}", self.context());
            }
            if self.name == "reliable" {
                assert_eq!(counters.sdus_discarded, 0);
            }
        }
    }
}

/// For carriers that keep order, losses only; any setting may be used, resets included.
const IN_ORDER: Channel = Channel { loss: 0.2, duplicates: 0.0, jitter: 0 };
/// Everything at once.
const ROUGH: Channel = Channel { loss: 0.2, duplicates: 0.15, jitter: 8 };

fn timers(poll: u64, prohibit: u64) -> Polling {
    let span = |millis: u64| (millis > 0).then(|| Span::from_millis(millis));
    Polling {
        last_pdu: true,
        last_retransmitted_pdu: true,
        timer: span(poll),
        prohibit: span(prohibit),
        ..Polling::default()
    }
}

/// For carriers that do not keep order.
fn tolerant() -> Config {
    Config {
        tx_window: 256,
        rx_window: 256,
        polling: timers(150, 0),
        erroneous_status: ErroneousStatus::Ignore,
        max_transmissions: MaxTransmissions::new(4).expect("above 0"),
        mrw: Mrw { timer: Span::from_millis(120), max_mrw: 1000 },
        ..Config::default()
    }
}

fn same(config: Config) -> [Config; 2] {
    [config.clone(), config]
}

/// Settings under which both ends must stay in order whatever the channel does.
fn rough_settings() -> Vec<(&'static str, [Config; 2])> {
    let plain = tolerant();
    let mut reliable = tolerant();
    reliable.max_transmissions = MaxTransmissions::new(1_000_000).expect("above 0");
    let mut bitmaps = tolerant();
    bitmaps.status.form = ReportForm::List;
    bitmaps.status.prohibit = Some(Span::from_millis(50));
    bitmaps.polling.poll_pdu = Some(8.try_into().expect("above 0"));
    bitmaps.polling.prohibit = Some(Span::from_millis(40));
    bitmaps.max_transmissions = MaxTransmissions::new(1).expect("above 0");
    let mut relative = tolerant();
    relative.status.form = ReportForm::RelativeList;
    relative.status.epc = Some(Span::from_millis(100));
    relative.polling.window_percent = Some(50);
    relative.polling.poll_sdu = Some(2.try_into().expect("above 0"));
    relative.piggyback = true;
    let mut timed = tolerant();
    timed.discard = Discard::Timer { after: Span::from_millis(300) };
    timed.transmission_buffer = Some(BufferLimit::Sdus(20));
    timed.polling.periodic = Some(Span::from_millis(200));
    let mut narrow = tolerant();
    (narrow.tx_window, narrow.rx_window) = (8, 8);
    narrow.transmission_buffer = Some(BufferLimit::Octets(20_000));
    narrow.max_transmissions = MaxTransmissions::new(2).expect("above 0");
    let mut small = tolerant();
    (small.format, small.peer_format) = (Format::new(6), Format::new(6));
    (small.tx_window, small.rx_window) = (1024, 1024);
    small.transmission_buffer = Some(BufferLimit::Sdus(4));
    let mut unordered = tolerant();
    unordered.in_sequence = false;
    let mut wide = tolerant();
    let format = Format { pdu_octets: 200, header_extension: true };
    (wide.format, wide.peer_format) = (format, format);
    wide.in_sequence = false;
    wide.status.periodic = Some(Span::from_millis(100));
    let mut odd = tolerant();
    (odd.format, odd.peer_format) = (Format::new(131), Format::new(42));
    odd.piggyback = true;
    let back = Config { format: odd.peer_format, peer_format: odd.format, ..odd.clone() };
    vec![
        ("plain", same(plain)),
        ("reliable", same(reliable)),
        ("lists, one transmission", same(bitmaps)),
        ("relative lists and EPC", same(relative)),
        ("discard by timer", same(timed)),
        ("narrow window", same(narrow)),
        ("small PDUs", same(small)),
        ("out of sequence", same(unordered)),
        ("large PDUs out of sequence", same(wide)),
        ("two formats", [odd, back]),
    ]
}

/// Settings with resets: for carriers that keep order.
fn orderly_settings() -> Vec<(&'static str, [Config; 2])> {
    let reset = ResetConfig { timer: Span::from_millis(100), max_rst: 1000 };
    let mut resets = Config { reset, polling: timers(150, 60), ..Config::default() };
    resets.discard = Discard::None;
    resets.max_transmissions = MaxTransmissions::new(4).expect("above 0");
    let mut moves = Config { reset, polling: timers(150, 0), ..Config::default() };
    moves.max_transmissions = MaxTransmissions::new(2).expect("above 0");
    moves.mrw = Mrw { timer: Span::from_millis(100), max_mrw: 2 };
    let mut unordered = resets.clone();
    unordered.in_sequence = false;
    vec![("resets", same(resets)), ("moves and resets", same(moves)), ("unordered resets", same(unordered))]
}

/// Runs all settings with and without the codec; gives how many PDUs were disturbed.
fn run_all(
    settings: impl IntoIterator<Item = (&'static str, [Config; 2])>,
    channel: Channel,
    seeds: core::ops::Range<u64>,
    noisy: u64,
) -> u64 {
    let mut disturbed = 0;
    for (name, configs) in settings {
        for seed in seeds.clone() {
            let run = |codec| Run::new(name, seed, configs.clone(), channel, codec).finish(noisy, 0.1);
            let (typed, coded) = (run(false), run(true));
            assert_eq!(typed, coded, "{name} seed {seed}: octets made a difference");
            assert_eq!(typed.resets > 0, name.ends_with("resets"), "{name} seed {seed}");
            for end in &typed.delivered {
                assert!(end.len() as u64 > noisy / 100, "{name} seed {seed}: {} arrived", end.len());
            }
            disturbed += typed.disturbed + coded.disturbed;
        }
    }
    disturbed
}

#[test]
fn rough_carriers_lose_nothing_unannounced() {
    let disturbed = run_all(rough_settings(), ROUGH, 0..6, 2_000);
    assert!(disturbed > 1_000_000, "only {disturbed} PDUs were disturbed");
}

#[test]
fn resets_lose_nothing_unannounced() {
    run_all(orderly_settings(), IN_ORDER, 0..12, 2_000);
}
