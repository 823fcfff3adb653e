//! A history against a plain log of the same replication, and against closed forms.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{Asked, NakFate, Phase};
use farcast_mftp::{Body, Message, SenderEvent};
use farcast_sim::history::{History, HistoryConfig, Point, Record, WaitFor, total};
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::Observer;

use crate::trace::{World, worlds};

/// Observer that logs everything and passes it on.
struct Log {
    history: History,
    /// Departure times of datagrams with data, by pass.
    data: BTreeMap<u32, Vec<Time>>,
    requests: Vec<Time>,
    naks_sent: Vec<Time>,
    naks: Vec<(Time, NakFate)>,
}

impl Log {
    fn observer(&mut self) -> &mut dyn Observer<Mftp> {
        &mut self.history
    }
}

impl Observer<Mftp> for Log {
    fn sent(&mut self, at: Time, destination: SocketAddr, frame: &Frame<Message>) {
        match &frame.message.body {
            Body::Data(data) => {
                let times = (0..frame.segments()).map(|n| at + frame.spacing * u64::from(n));
                self.data.entry(data.pass).or_default().extend(times);
            }
            Body::StatusRequest(_) => self.requests.push(at),
            _ => {}
        }
        self.observer().sent(at, destination, frame);
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        if matches!(frame.message.body, Body::Nak(_)) {
            self.naks_sent.push(at);
        }
        self.observer().answered(at, receiver, frame);
    }

    fn reached(&mut self, at: Time, receiver: u32, message: &Message) {
        self.observer().reached(at, receiver, message);
    }

    fn nak(&mut self, at: Time, asked: &Asked) {
        assert_eq!(asked.count, 1);
        self.naks.push((at, asked.fate));
        self.observer().nak(at, asked);
    }

    fn told(&mut self, at: Time, event: &SenderEvent) {
        self.observer().told(at, event);
    }

    fn phase(&mut self, at: Time, phase: Phase) {
        self.observer().phase(at, phase);
    }

    fn completed(&mut self, at: Time, receiver: u32) {
        self.observer().completed(at, receiver);
    }
}

fn played(world: World, config: HistoryConfig) -> (Record, Log, Vec<Time>) {
    let mut log = Log {
        history: History::new(World::RECEIVERS, config),
        data: BTreeMap::new(),
        requests: Vec::new(),
        naks_sent: Vec::new(),
        naks: Vec::new(),
    };
    let completed = world.play(&mut log);
    let record = log.history.clone().finish();
    (record, log, completed)
}

/// Returns the times of points that each stand for one instant.
fn times(points: &[Point]) -> Vec<Time> {
    points.iter().flat_map(|point| std::iter::repeat_n(point.from, point.count as usize)).collect()
}

const EXACT: HistoryConfig = HistoryConfig { points: 100_000, lanes: 60 };

#[test]
fn a_record_is_what_a_plain_log_says() {
    for world in worlds() {
        let (record, log, completed) = played(world, EXACT);
        assert_eq!(times(&record.status_requests), log.requests);
        assert_eq!(times(&record.naks_sent), log.naks_sent);
        for (points, fate) in [
            (&record.naks_used, NakFate::Used),
            (&record.naks_known, NakFate::Known),
            (&record.naks_late, NakFate::Late),
        ] {
            let expected: Vec<Time> = log.naks.iter().filter(|nak| nak.1 == fate).map(|nak| nak.0).collect();
            assert_eq!(times(points), expected);
        }
        let mut ascending = completed;
        ascending.sort_unstable();
        assert_eq!(times(&record.completions), ascending);
        assert!(ascending.iter().all(|&at| at <= record.end) && log.naks.len() > 50);

        assert_eq!(record.passes.len(), log.data.len());
        for (pass, (number, times)) in record.passes.iter().zip(&log.data) {
            assert_eq!((pass.number, pass.dtus as usize), (*number, times.len()));
            assert!(pass.begin <= times[0] && *times.last().unwrap() < pass.end);
        }
        let all: Vec<Time> = log.data.values().flatten().copied().collect();
        assert_eq!(record.data.iter().map(|interval| interval.count).sum::<u64>(), all.len() as u64);
        for interval in &record.data {
            let within = all.iter().filter(|&&at| interval.begin <= at && at < interval.end);
            assert_eq!(within.count() as u64, interval.count);
        }
    }
}

#[test]
fn waits_fill_what_passes_leave() {
    for world in worlds() {
        let (record, log, _) = played(world, EXACT);
        // Passes and waits follow one another without a gap.
        let mut all: Vec<(Time, Time)> = record.passes.iter().map(|pass| (pass.begin, pass.end)).collect();
        all.extend(record.waits.iter().map(|wait| (wait.begin, wait.end)));
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0), "{all:?}");
        let answers = || record.waits.iter().filter(|wait| wait.waits_for == WaitFor::Answers);
        let retry = Span::from_millis(3901);
        if world.fixed_timer {
            // Every wait for answers lasts as long as the Status Retry Timer.
            assert!(answers().all(|wait| wait.end.since(wait.begin) == retry));
        } else {
            assert!(answers().all(|wait| wait.end.since(wait.begin) <= retry));
        }
        assert!(answers().count() >= 1);
        for wait in &record.waits {
            let came = log.naks.iter().filter(|nak| wait.begin < nak.0 && nak.0 <= wait.end).count();
            assert_eq!((wait.naks.used + wait.naks.known + wait.naks.late) as usize, came, "{wait:?}");
        }
    }
}

#[test]
fn the_first_pass_takes_as_long_as_its_octets() {
    let (record, ..) = played(worlds()[0], EXACT);
    // 380 DTUs of 526 octets and one of 121, each with 40 octets of MFTP, padding to a multiple of 4 and 28 octets of
    // UDP and IPv4, behind the announcement of 200 octets that opens the session and before a status request of 80, at
    // 300 kbit/s, each rounded up to the nanosecond.
    let span = |octets: u64| (octets * 8 * 1_000_000_000).div_ceil(300_000);
    let expected = span(200) + 380 * span(596) + span(192) + span(80);
    let pass = record.passes[0];
    assert_eq!(pass.end.since(pass.begin).as_nanos(), expected);
    assert_eq!((pass.scheduled, pass.dtus), (381, 381));
}

#[test]
fn lanes_are_of_the_receivers() {
    for world in worlds() {
        let (record, log, completed) = played(world, EXACT);
        let of_lanes: Vec<_> =
            record.lanes.iter().map(|lane| lane.completed.unwrap_or(Time::NEVER)).collect();
        assert_eq!(of_lanes, completed);
        let naks = || record.lanes.iter().flat_map(|lane| &lane.naks);
        let mut sent: Vec<Time> = naks().map(|nak| nak.sent).collect();
        sent.sort_unstable();
        assert_eq!(sent, log.naks_sent);
        let mut reached: Vec<Time> = naks().filter_map(|nak| nak.reached).map(|(at, _)| at).collect();
        reached.sort_unstable();
        assert_eq!(reached, log.naks.iter().map(|nak| nak.0).collect::<Vec<_>>());
        // The return path takes 300 ms.
        let delay = Span::from_millis(300);
        assert!(naks().all(|nak| nak.reached.is_none_or(|(at, _)| at.since(nak.sent) == delay)));
    }
}

#[test]
fn few_points_stand_for_many() {
    let world = worlds()[2];
    let (exact, ..) = played(world, EXACT);
    let (coarse, ..) = played(world, HistoryConfig { points: 12, lanes: 23 });
    assert!(coarse.lanes.is_empty() && exact.naks_sent.len() > 12);
    for (few, many) in [
        (&coarse.naks_sent, &exact.naks_sent),
        (&coarse.naks_used, &exact.naks_used),
        (&coarse.naks_known, &exact.naks_known),
        (&coarse.completions, &exact.completions),
    ] {
        assert!(few.len() <= 12);
        assert_eq!(total(few), total(many));
        let within = |point: &&Point| few.iter().any(|of| of.from <= point.from && point.to <= of.to);
        assert!(many.iter().filter(within).count() == many.len());
    }
}
