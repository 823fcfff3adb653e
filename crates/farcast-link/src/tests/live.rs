//! One law for all stages whose settings change while they carry traffic: whatever is changed and when, nothing is
//! lost, doubled or overtaken, and what is refused changes nothing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use farcast_core::random::RandomStream;
use farcast_core::stage::{NotSettable, Port, Setting, Settings, Stage};
use farcast_core::{BitRate, Span, Time};
use farcast_ppp::EchoConfig;
use farcast_ppp::multilink::Policy;
use farcast_rlc::config::MaxTransmissions;
use proptest::prelude::*;

use crate::bgan::{Forward, ForwardConfig, Packing, Return, ReturnConfig};
use crate::multilink::{LinkConfig, Multilink, MultilinkConfig};
use crate::pipe::{Jitter, JitterShape, Pipe, PipeConfig, QueueLimit};
use crate::ppp::{LineConfig, Ppp, PppConfig};
use crate::tests::packet::Packet;
use crate::trace::{RateTrace, Timeline, TimelinePipe, TimelinePipeConfig, TracePipe, TracePipeConfig};
use crate::umts::{Bearer, BearerConfig, ChannelConfig, Erasures};

/// Ports at which packets enter, forward and back.
const PORTS: [Port; 2] = [Port::Hub, Port::Terminal(0)];

/// A stage, and the directions in which it carries.
struct Subject {
    name: &'static str,
    stage: Box<dyn Stage<Packet>>,
    ways: &'static [usize],
}

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps).expect("positive")
}

fn stream() -> RandomStream {
    RandomStream::derive(21, &[])
}

fn pipe(queue: QueueLimit, jitter: Option<Jitter>) -> Box<dyn Stage<Packet>> {
    let delay = Span::from_millis(50);
    let config = PipeConfig { rate: Some(rate(64_000)), queue, delay, jitter, overhead: 4 };
    Box::new(Pipe::new(config, Port::Terminals, stream()).expect("valid"))
}

fn ppp(queue: QueueLimit, echo: Option<EchoConfig>) -> Box<dyn Stage<Packet>> {
    let line = LineConfig { delay: Span::from_millis(50), queue, ..LineConfig::new(rate(64_000)) };
    let config = PppConfig { echo, ..PppConfig::new(line.clone(), line) };
    Box::new(Ppp::new(config, stream()).expect("valid"))
}

fn multilink(queue: QueueLimit, policy: Policy) -> Box<dyn Stage<Packet>> {
    let links = [24_000, 24_000, 9600]
        .map(|bps| LinkConfig { delay: Span::from_millis(50), ..LinkConfig::new(rate(bps)) });
    let mut config = MultilinkConfig { policy, ..MultilinkConfig::new(links.into()) };
    (config.queue, config.back_queue) = (queue, queue);
    Box::new(Multilink::new(&config, stream()).expect("valid"))
}

fn umts(queue: QueueLimit, erased: f64) -> Box<dyn Stage<Packet>> {
    let erasures =
        Erasures { rate: farcast_core::Probability::new(erased).expect("valid"), ..Erasures::default() };
    let channel = ChannelConfig {
        rate: rate(64_000),
        tti: Span::from_millis(20),
        erasures,
        processing: Span::from_millis(50),
        queue,
    };
    let max_transmissions = MaxTransmissions::new(1000).expect("positive");
    let mut rlc = farcast_rlc::Config { max_transmissions, ..farcast_rlc::Config::default() };
    rlc.polling.timer = Some(Span::from_millis(300));
    let config = BearerConfig { downlink: channel, uplink: channel, rlc };
    Box::new(Bearer::new(&config, stream()).expect("valid"))
}

/// Every stage that has settings to change, with queues of this limit.
fn subjects(queue: QueueLimit) -> Vec<Subject> {
    let shape = JitterShape::Uniform { half_width: Span::from_millis(40) };
    let trace = Arc::new(RateTrace::parse("3\n20\n20\n90").expect("valid"));
    let delay = Span::from_millis(50);
    let traced = TracePipeConfig { trace, queue, delay, overhead: 0 };
    let table = "time_s,rate_bit_per_s,delay_s\n0,64e3,0.05\n1,0,0.01\n1.2,128e3,0.02\n";
    let timeline = Arc::new(Timeline::parse(table, Some(Span::from_secs(2))).expect("valid"));
    let timed = TimelinePipeConfig { timeline, queue, overhead: 0 };
    let echo = EchoConfig { interval: Span::from_secs(1), failures: 1000 };
    let forward = |packing| ForwardConfig { packing, queue, ..ForwardConfig::default() };
    let back = ReturnConfig { queue, ..ReturnConfig::default() };
    let one = |name, stage| Subject { name, stage, ways: &[0] };
    let both = |name, stage| Subject { name, stage, ways: &[0, 1] };
    vec![
        one("pipe", pipe(queue, None)),
        one("pipe with jitter", pipe(queue, Some(Jitter { shape, reorder: false }))),
        one("trace", Box::new(TracePipe::new(traced, Port::Terminals).expect("valid"))),
        one("timeline", Box::new(TimelinePipe::new(timed, Port::Terminals).expect("valid"))),
        both("ppp", ppp(queue, None)),
        both("ppp with echoes", ppp(queue, Some(echo))),
        both("multilink, free", multilink(queue, Policy::Free)),
        both("multilink, equal", multilink(queue, Policy::Equal { smallest: 64 })),
        both("umts", umts(queue, 0.0)),
        both("umts with erasures", umts(queue, 0.1)),
        one("bgan forward", Box::new(Forward::new(forward(Packing::PacketAligned)).expect("valid"))),
        one("bgan forward, shared", Box::new(Forward::new(forward(Packing::Shared)).expect("valid"))),
        Subject {
            name: "bgan return",
            stage: Box::new(Return::new(back, 1, stream()).expect("valid")),
            ways: &[1],
        },
    ]
}

/// An event in one direction: a packet of this many octets enters, or a setting changes.
#[derive(Clone, Debug)]
enum LinkEvent {
    Enter(usize),
    Set(Setting),
}

/// Draws steps: the gap before each in microseconds, `true` for the second of two directions, and the event.
fn steps() -> impl Strategy<Value = Vec<(u64, bool, LinkEvent)>> {
    // Multiples of 16 kbit/s are whole PDUs of 40 octets in 20 ms; not all rates are.
    let rate = prop_oneof![(1u64..40).prop_map(|times| 16_000 * times), 600u64..100_000];
    let step = prop_oneof![
        4 => (40usize..1500).prop_map(LinkEvent::Enter),
        1 => rate.prop_map(|bps| LinkEvent::Set(Setting::Rate(self::rate(bps)))),
        1 => (0u64..2000).prop_map(|ms| LinkEvent::Set(Setting::Delay(Span::from_millis(ms)))),
        1 => (1u64..9000).prop_map(|octets| LinkEvent::Set(Setting::Queue(NonZeroU64::new(octets).expect("positive")))),
    ];
    proptest::collection::vec((0u64..200_000, any::<bool>(), step), 1..60)
}

/// Entries and outputs of a stage in one direction.
#[derive(Default)]
struct StageRecord {
    entered: Vec<Time>,
    left: Vec<(Time, u32)>,
}

struct Player {
    subject: Subject,
    octets: bool,
    now: Time,
    seen: [StageRecord; 2],
}

impl Player {
    fn drain(&mut self) {
        while let Some(output) = self.subject.stage.poll_output() {
            assert!(output.at >= self.now, "{}: it left before it was known", self.subject.name);
            output.frame.message.assert_arrived();
            let way = usize::from(output.port == Port::Hub);
            self.seen[way].left.push((output.at, output.frame.message.number));
        }
    }

    /// Wakes the stage whenever it wants to be before `until`.
    fn run(&mut self, until: Time) {
        while let Some(due) = self.subject.stage.poll_timeout().filter(|due| due.at < until) {
            self.now = due.at;
            self.subject.stage.handle_timeout(due.at);
            self.drain();
        }
        self.now = until;
    }

    fn play(&mut self, way: usize, step: &LinkEvent) {
        let port = PORTS[way];
        match *step {
            LinkEvent::Enter(octets) => {
                let number = self.seen[way].entered.len() as u32;
                self.seen[way].entered.push(self.now);
                // Only the octets of some stages pass a codec.
                let packet = Packet::new(number, octets, self.octets && self.subject.ways.len() > 1);
                self.subject.stage.handle(self.now, port, packet.frame());
            }
            LinkEvent::Set(setting) => self.set(port, setting),
        }
        self.drain();
    }

    fn set(&mut self, port: Port, setting: Setting) {
        let stage = &mut self.subject.stage;
        let all = |stage: &dyn Stage<Packet>| PORTS.map(|port| stage.settings(port));
        let (before, allowed) = (all(&**stage), stage.may_set(port, setting));
        assert_eq!(all(&**stage), before);
        assert_eq!(stage.set(self.now, port, setting), allowed, "{}", self.subject.name);
        let expected = match (allowed, setting) {
            (Err(_), _) => before[usize::from(port != Port::Hub)],
            (Ok(()), Setting::Rate(rate)) => {
                Settings { rate: Some(rate), ..before[usize::from(port != Port::Hub)] }
            }
            (Ok(()), Setting::Delay(delay)) => {
                Settings { delay: Some(delay), ..before[usize::from(port != Port::Hub)] }
            }
            (Ok(()), Setting::Queue(octets)) => {
                Settings { queue: Some(octets.get()), ..before[usize::from(port != Port::Hub)] }
            }
            _ => return,
        };
        let (own, other) = if port == Port::Hub { (0, 1) } else { (1, 0) };
        assert_eq!(all(&**stage)[own], expected, "{}: {setting:?}", self.subject.name);
        // The settings of the other way are its own, where there is one.
        if self.subject.ways.len() > 1 {
            assert_eq!(all(&**stage)[other], before[other], "{}: {setting:?}", self.subject.name);
        }
    }

    /// Every packet that entered has left in its turn, once, or has been dropped by a limit and counted.
    fn check(&self) {
        let name = self.subject.name;
        for &way in self.subject.ways {
            let StageRecord { entered, left } = &self.seen[way];
            let totals =
                if way == 0 { self.subject.stage.totals() } else { self.subject.stage.return_totals() };
            assert!(left.is_sorted_by_key(|&(at, _)| at), "{name}: {left:?}");
            assert!(left.is_sorted_by(|one, next| one.1 < next.1), "{name}: {left:?}");
            assert!(left.iter().all(|&(at, number)| at >= entered[number as usize]), "{name}");
            let counted = (totals.sent, totals.sent + totals.dropped, totals.given_up);
            assert_eq!(counted, (left.len() as u64, entered.len() as u64, 0), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn changes_lose_double_and_turn_nothing(
        steps in steps(),
        octets in any::<bool>(),
        limit in prop_oneof![
            Just(QueueLimit::Unbounded), (1u32..20).prop_map(QueueLimit::Packets), (1u64..9000).prop_map(QueueLimit::Octets)
        ],
    ) {
        for subject in subjects(limit) {
            let mut player = Player { subject, octets, now: Time::ZERO, seen: Default::default() };
            let mut at = Time::ZERO;
            for (gap, second, step) in &steps {
                at += Span::from_micros(*gap);
                player.run(at);
                let ways = player.subject.ways;
                player.play(ways[usize::from(*second) % ways.len()], step);
            }
            // 90,000 octets at 600 bit/s, ten bits each, take 25 minutes.
            player.run(at + Span::from_secs(3600));
            player.check();
        }
    }
}

#[test]
fn a_queue_without_a_limit_gets_none() {
    for subject in subjects(QueueLimit::Unbounded) {
        let port = PORTS[subject.ways[0]];
        let setting = Setting::Queue(NonZeroU64::MIN);
        assert_eq!(
            subject.stage.may_set(port, setting),
            Err(NotSettable::Absent("queue")),
            "{}",
            subject.name
        );
    }
}
