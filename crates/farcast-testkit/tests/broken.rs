//! Each law catches an engine that breaks it, and lets a good one pass.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};

use farcast_core::engine::{Arrival, Deadline, Engine, Message, Reject, Transmit};
use farcast_core::{BitRate, Run, Span, Time};
use farcast_testkit::{Cut, Handle, Host, Link, Network, Setup, Wake, laws};

#[derive(Clone, Debug, PartialEq)]
enum Packet {
    Data(Run),
    Ack(u32),
}

impl Message for Packet {
    fn segments(&self) -> NonZeroU32 {
        let Packet::Data(run) = self else { return NonZeroU32::MIN };
        NonZeroU32::new(run.count()).expect("a run is not empty")
    }

    fn split(self, count: NonZeroU32) -> (Self, Option<Self>) {
        let Packet::Data(run) = self else { return (self, None) };
        let (head, tail) = run.split(count);
        (Packet::Data(head), tail.map(Packet::Data))
    }

    fn wire_len(&self, _segment: u32) -> usize {
        100
    }
}

/// Flaw of a toy engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    /// Waits a little after each run, so that cuts show.
    PauseAfterRun,
    /// Its deadline never moves.
    Livelock,
    /// Acts whenever it is woken.
    ActsEarly,
    /// Sends although its time has not come.
    SendsEarly,
    /// Draws on something besides its seed.
    Moody(u64),
    /// Keeps messages that it turns down.
    Hoards,
    /// Acknowledges runs as a whole instead of their segments.
    AcksRuns,
    /// Gives up when it is woken late.
    Punctual,
}

const SPACING: Span = Span::from_millis(1);

/// Sends 40 segments, one each millisecond, and is content once all are acknowledged.
struct Toy {
    flaw: Flaw,
    to: SocketAddr,
    next: u32,
    next_at: Time,
    acked: u32,
    hoard: Vec<u32>,
    told: bool,
}

impl Toy {
    fn new(flaw: Flaw) -> Self {
        Self { flaw, to: address(1), next: 0, next_at: Time::ZERO, acked: 0, hoard: Vec::new(), told: false }
    }
}

impl Engine for Toy {
    type Message = Packet;
    type Event = &'static str;

    fn handle(&mut self, _now: Time, _from: &Arrival, message: &Packet) -> Result<(), Reject> {
        match message {
            Packet::Ack(n) if *n < self.next => {
                self.acked += 1;
                self.told = self.acked == 40;
                Ok(())
            }
            Packet::Ack(n) => {
                if self.flaw == Flaw::Hoards {
                    self.hoard.push(*n);
                }
                Err(Reject::OutOfRange)
            }
            Packet::Data(_) => Err(Reject::Unexpected),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self.flaw {
            Flaw::ActsEarly => self.next_at = now,
            Flaw::Punctual if now > self.next_at => self.next = 40,
            _ => {}
        }
    }

    fn poll_transmit(&mut self, now: Time, until: Time) -> Option<Transmit<Packet>> {
        let early = self.flaw == Flaw::SendsEarly && self.next > 3;
        if (now < self.next_at && !early) || self.next == 40 || self.flaw == Flaw::Livelock {
            return None;
        }
        let room = until.since(self.next_at).as_nanos().div_ceil(SPACING.as_nanos()).max(1);
        let run = Run::new(self.next, (40 - self.next).min(u32::try_from(room).unwrap_or(u32::MAX)))?;
        self.next = run.end();
        self.next_at += SPACING * u64::from(run.count());
        match self.flaw {
            Flaw::PauseAfterRun => self.next_at += SPACING,
            Flaw::Moody(mood) => self.next_at += Span::from_nanos(mood),
            _ => {}
        }
        Some(Transmit::new(Packet::Data(run), self.to).spaced(SPACING))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        (self.next < 40).then_some(Deadline { at: self.next_at, timer: "pace" })
    }

    fn poll_event(&mut self) -> Option<&'static str> {
        core::mem::take(&mut self.told).then_some("all acknowledged")
    }

    fn settled_until(&self) -> Time {
        Time::NEVER
    }
}

/// Acknowledges each segment when it comes.
struct Mirror {
    flaw: Flaw,
    outbox: Vec<Transmit<Packet>>,
}

impl Engine for Mirror {
    type Message = Packet;
    type Event = ();

    fn handle(&mut self, _now: Time, from: &Arrival, message: &Packet) -> Result<(), Reject> {
        let Packet::Data(run) = message else { return Err(Reject::Unexpected) };
        let segments = if self.flaw == Flaw::AcksRuns { run.last()..run.end() } else { run.segments() };
        self.outbox.extend(segments.map(|n| Transmit::new(Packet::Ack(n), from.source)));
        Ok(())
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time, _until: Time) -> Option<Transmit<Packet>> {
        (!self.outbox.is_empty()).then(|| self.outbox.remove(0))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        Time::ZERO
    }

    fn prefix(&self, message: &Packet) -> NonZeroU32 {
        if self.flaw == Flaw::AcksRuns { message.segments() } else { NonZeroU32::MIN }
    }
}

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n], 1000))
}

fn network(flaw: Flaw, setup: Setup, link: Link) -> (Network<Packet>, Handle<Toy>) {
    let mut network = Network::new(format!("{flaw:?}"), setup);
    network.links(link);
    let toy = network.add(address(0), &[], Host::alone(Toy::new(flaw)));
    network.add(address(1), &[], Host::alone(Mirror { flaw, outbox: Vec::new() }));
    network.limit(Span::from_secs(10));
    (network, toy)
}

fn clean(flaw: Flaw) -> impl Fn(Setup) -> Network<Packet> {
    move |setup| network(flaw, setup, Link::clean(Span::from_millis(5))).0
}

/// The message with which `test` fails.
fn failure(test: impl FnOnce()) -> String {
    let error = catch_unwind(AssertUnwindSafe(test)).expect_err("the flaw is not caught");
    error.downcast_ref::<String>().cloned().expect("a message")
}

#[test]
fn a_good_engine_passes() {
    let late = Span::from_millis(20);
    laws::all(0..3, late, clean(Flaw::None), |_| true);
    let lossy = Link { duplication: 0.2, jitter: Span::from_millis(3), ..Link::lossy(SPACING * 7, 0.3) };
    laws::all(0..10, late, |setup| network(Flaw::None, setup, lossy).0, |_| true);
}

#[test]
fn a_failure_names_the_scenario_and_the_seed() {
    let message = failure(|| laws::ignores_cuts(7..8, clean(Flaw::PauseAfterRun)));
    assert!(message.starts_with("[PauseAfterRun, seed 7, "), "{message}");
}

#[test]
fn law_3_catches_what_acts_when_woken_early() {
    let message = failure(|| laws::ignores_early_wakes(0..5, clean(Flaw::ActsEarly)));
    assert!(message.contains("woken early"), "{message}");
}

#[test]
fn law_3_catches_what_cannot_be_late() {
    let all_left = |network: &Network<Packet>| network.now() > Time::ZERO + SPACING * 45;
    let late = Span::from_millis(2);
    laws::survives_late_wakes(0..3, late, clean(Flaw::None), all_left);
    let message = failure(|| laws::survives_late_wakes(0..3, late, clean(Flaw::Punctual), all_left));
    assert!(message.contains("not finished"), "{message}");
}

#[test]
fn law_4_catches_a_livelock() {
    let message = failure(|| clean(Flaw::Livelock)(Setup::plain(0)).run());
    assert!(message.contains("made no progress"), "{message}");
}

#[test]
fn law_5_catches_moods() {
    let mood = std::cell::Cell::new(0);
    let moody = |setup| {
        mood.set(mood.get() + 1);
        network(Flaw::Moody(mood.get()), setup, Link::clean(SPACING)).0
    };
    let message = failure(|| laws::repeats(0..1, moody));
    assert!(message.contains("the same seed twice"), "{message}");
}

#[test]
fn law_6_catches_a_trace() {
    let trace = |toy: &Toy| format!("{:?}", (toy.next, toy.next_at, toy.acked, &toy.hoard));
    let bad = |n: u32| (Time::ZERO, Arrival::new(address(9), address(0)), Packet::Ack(100 + n));
    let run = |flaw| {
        let mut toy = Toy::new(flaw);
        let _ = toy.poll_transmit(Time::ZERO, Time::ZERO);
        laws::rejects_without_trace("acks", &mut toy, (0..10).map(bad), trace, |_, _| false)
    };
    assert_eq!(run(Flaw::None), 10);
    assert!(failure(|| assert_eq!(run(Flaw::Hoards), 10)).contains("left a trace"));
}

#[test]
fn law_7_catches_growth() {
    let bad = |n: u32| (Time::ZERO, Arrival::new(address(9), address(0)), Packet::Ack(100 + n));
    let run = |flaw| {
        laws::stays_small("acks", &mut Toy::new(flaw), (0..100).map(bad), |toy| toy.hoard.len(), 50);
    };
    run(Flaw::None);
    assert!(failure(|| run(Flaw::Hoards)).contains("size 51 of at most 50"));
}

#[test]
fn law_8_catches_what_does_not_wait() {
    // Segments that leave before their time leave at once, which violates the rate that the spacing implies.
    let mut network = clean(Flaw::SendsEarly)(Setup { cut: Cut::One, ..Setup::plain(0) });
    network.run();
    let log = network.take_log();
    let toys: Vec<_> = log.departures.into_iter().filter(|d| d.from == 0).collect();
    let rate = BitRate::from_bps(800_000).expect("positive");
    let message = failure(|| laws::keeps_rate("toy", &toys, rate, 0, Span::from_millis(10)));
    assert!(message.contains("bytes left in the 10 ms"), "{message}");
}

#[test]
fn law_8_lets_the_rate_pass() {
    let mut network = clean(Flaw::None)(Setup::plain(0));
    network.run();
    let toys: Vec<_> = network.take_log().departures.into_iter().filter(|d| d.from == 0).collect();
    let rate = BitRate::from_bps(800_000).expect("positive");
    laws::keeps_rate("toy", &toys, rate, 0, Span::from_millis(10));
}

#[test]
fn law_9_catches_both_directions() {
    for flaw in [Flaw::PauseAfterRun, Flaw::AcksRuns] {
        let message = failure(|| laws::ignores_cuts(0..1, clean(flaw)));
        assert!(message.contains("runs cut otherwise changed the outcome"), "{message}");
    }
}

#[test]
fn links_lose_what_they_say() {
    let link = Link { loss: 0.25, duplication: 0.5, ..Link::clean(SPACING) };
    let (mut lost, mut twice, mut all) = (0, 0, 0);
    for seed in 0..100 {
        let (mut network, _) = network(Flaw::None, Setup::plain(seed), link);
        network.run();
        for leg in network.take_log().legs.iter().filter(|leg| leg.from == 0) {
            all += 1;
            lost += u32::from(leg.copies == 0);
            twice += u32::from(leg.copies == 2);
        }
    }
    // 4000 segments: the standard deviations are 27 and 31.
    assert_eq!(all, 4000);
    assert!((1000 - 110..1000 + 110).contains(&lost), "{lost}");
    assert!((1500 - 125..1500 + 125).contains(&twice), "{twice}");
}

#[test]
fn who_stands_still_keeps_the_rest_of_a_run() {
    let (mut net, toy) = network(Flaw::None, Setup::plain(0), Link::clean(SPACING));
    let (stops, goes_on) = (Time::ZERO + SPACING * 10, Time::ZERO + SPACING * 60);
    net.freeze(stops, toy, SPACING * 50, 40);
    net.run();
    let departures = net.take_log().departures;
    let sent: Vec<Time> = departures.iter().filter(|d| d.from == toy.index()).map(|d| d.at).collect();
    assert_eq!(sent.len(), 40);
    assert!(sent.iter().all(|&at| at <= stops || at >= goes_on), "{sent:?}");
}

#[test]
fn hosts_vanish_appear_and_take_commands() {
    let (mut network, toy) = network(Flaw::None, Setup::plain(0), Link::clean(SPACING));
    let (off, on) = (Time::ZERO + Span::from_micros(10_500), Time::ZERO + Span::from_micros(50_500));
    network.vanish(off, toy);
    network.at(on, toy, |_, _| panic!("a host that is off takes no command"));
    network.run();
    let sent = network.take_log().departures.iter().filter(|d| d.from == 0).count();
    assert_eq!(sent, 11, "segments 0 to 10 left before it vanished");
}

#[test]
fn a_run_that_is_not_at_rest_says_who_waits() {
    let (mut network, _) =
        network(Flaw::None, Setup { wake: Wake::Prompt, ..Setup::plain(3) }, Link::default());
    network.limit(Span::from_millis(20));
    let message = failure(|| network.run());
    assert!(message.contains("seed 3") && message.contains("not at rest"), "{message}");
}
