//! Law 9 beside flows: the number of pieces in which runs of the transfer enter shared links makes no difference, for
//! the transfer and for each packet of a flow. Times are multiples of a few milliseconds, so that many events coincide.

use std::net::SocketAddr;

use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;
use farcast_core::{Span, Time};
use farcast_delivery::{Asked, NakFate};
use farcast_mftp::{Body, Message, SenderEvent};
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{Cut, FlowPacket, Observer, Star};
use farcast_sim::traffic::{End, FlowMessage};

use crate::worlds::scenario;

/// Scenario of a transfer to members, which are asked after each block, beside datagrams and TCP in both directions.
/// Times of the sender are whole milliseconds: a DTU takes four, and a datagram leaves every 4 ms.
const WORLD: &str = r#"
receivers = 6
time_limit = "60 s"
[protocol]
preset = "draft"
file = "25 kB"
dtu_size = "432 B"
block_size = 20
rate = "1 Mbit/s"
granule = "125 B"
srt.time = "1 s"
[[traffic]]
name = "tone"
protocol = "cbr"
rate = "250 kbit/s"
payload = "97 B"
[[traffic]]
name = "echo"
protocol = "cbr"
direction = "return"
rate = "100 kbit/s"
payload = "97 B"
[[traffic]]
name = "fetch"
protocol = "tcp"
start = "1 s"
mss = "460 B"
timestamps = false
[[traffic]]
name = "store"
protocol = "tcp"
direction = "return"
start = "2 s"
size = "200 kB"
timestamps = false
[link.forward]
rate = "1 Mbit/s"
delay = "20 ms"
queue_packets = 30
per = 0.02
[link.return]
rate = "250 kbit/s"
delay = "20 ms"
queue_packets = 20
per = 0.02
"#;

/// Settings of which each session has some.
const VARIATIONS: [&str; 12] = [
    "engines=true",
    "link.forward.rate=2 Mbit/s",
    "link.forward.queue_packets=4",
    "link.forward.delay=0 s",
    "link.return.delay=0 s",
    "link.forward.jitter=0 s",
    "link.forward.per=0.2",
    "protocol.group=open_unlimited",
    "protocol.pass_wait=fixed",
    "protocol.spread=200 ms",
    "protocol.setup=done",
    "link.forward.loses=data",
];

/// Several stages, of which the first passes runs unchanged.
const STAGES: &str = "[[link.stages]]\nname = \"sky\"\ndirection = \"forward\"\ndelay = \"8 ms\"\n\
                      [[link.stages]]\nname = \"gap\"\ndirection = \"forward\"\nkind = \"hold\"\nstart = \"4 s\"\n\
                      length = \"1 s\"\n\
                      [[link.stages]]\nname = \"back\"\ndirection = \"return\"\ndelay = \"8 ms\"\n";

/// Observable events, which do not depend on the cutting of runs.
#[derive(Clone, PartialEq, Debug, Default)]
struct Log {
    /// Datagrams of the sender, in their order.
    sent: Vec<(Time, String)>,
    told: Vec<(Time, SenderEvent)>,
    naks: Vec<(Time, NakFate)>,
    answers: u64,
    flows: Vec<(Time, End, bool, u32, FlowMessage)>,
    completed: Vec<(Time, u32)>,
}

impl Observer<Mftp> for Log {
    fn sent(&mut self, at: Time, _destination: SocketAddr, frame: &Frame<Message>) {
        for segment in 0..frame.segments() {
            let what = match &frame.message.body {
                Body::Data(data) => {
                    format!("data {} {} {}", data.pass, data.block, data.dtus.first() + segment)
                }
                other => format!("{other:?}"),
            };
            self.sent.push((at + frame.spacing * u64::from(segment), what));
        }
    }

    fn answered(&mut self, _at: Time, _receiver: u32, _frame: &Frame<Message>) {
        self.answers += 1;
    }

    fn nak(&mut self, at: Time, asked: &Asked) {
        self.naks.push((at, asked.fate));
    }

    fn told(&mut self, at: Time, event: &SenderEvent) {
        self.told.push((at, event.clone()));
    }

    fn completed(&mut self, at: Time, receiver: u32) {
        self.completed.push((at, receiver));
    }

    fn flow_sent(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        self.flows.push((at, end, false, packet.terminal, *packet.message));
    }

    fn flow_reached(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        self.flows.push((at, end, true, packet.terminal, *packet.message));
    }
}

fn play(text: &str, settings: &[&str], seed: u64, cut: Cut) -> Log {
    let mut log = Log::default();
    let mut config = scenario(text, settings).star(seed, 0).unwrap();
    config.cut = cut;
    let mut star = Star::new(config, Some(&mut log)).unwrap();
    star.run();
    drop(star);
    log.sent.sort();
    log
}

#[test]
fn runs_may_be_cut_anywhere_beside_flows() {
    let (mut together, mut lost, mut segments) = (0u64, 0u64, 0);
    for seed in 0..60 {
        let mut random = RandomStream::derive(seed, &[9]);
        let settings: Vec<&str> = VARIATIONS.into_iter().filter(|_| random.chance(0.25)).collect();
        let staged = format!("{WORLD}{STAGES}");
        let text = if random.chance(0.4) { staged.as_str() } else { WORLD };
        let whole = play(text, &settings, seed, Cut::Whole);
        for cut in [Cut::One, Cut::Random(seed)] {
            let other = play(text, &settings, seed, cut);
            let differs = whole.flows.iter().zip(&other.flows).position(|(a, b)| a != b);
            if let Some(n) = differs {
                panic!("seed {seed} {cut:?} {settings:?}: {:?} and {:?}", whole.flows[n], other.flows[n]);
            }
            assert!(whole == other, "seed {seed} {cut:?} {settings:?}: the transfer differs");
        }
        // The sessions are worth comparing: DTUs and packets of flows enter the link at one instant, and some are lost.
        let departures: Vec<Time> = of_flows(&whole, End::Hub, false);
        together += whole.sent.iter().filter(|(at, _)| departures.binary_search(at).is_ok()).count() as u64;
        lost += (departures.len() - of_flows(&whole, End::Terminal, true).len()) as u64;
        segments += whole.sent.len();
    }
    assert!(together > 1000 && lost > 1000 && segments > 6000, "{together} {lost} {segments}");
}

/// Returns the times at which packets of flows left an end, or reached it.
fn of_flows(log: &Log, end: End, arrives: bool) -> Vec<Time> {
    let of_end = log.flows.iter().filter(|entry| (entry.1, entry.2) == (end, arrives));
    of_end.map(|entry| entry.0).collect()
}

#[test]
fn a_pause_of_the_limit_changes_no_order() {
    // The same replication runs to an earlier and to a later limit: its first events do not depend on the limit.
    let short = play(WORLD, &["time_limit=7 s"], 3, Cut::Whole);
    let long = play(WORLD, &["time_limit=9 s"], 3, Cut::Whole);
    let until = Time::ZERO + Span::from_secs(7);
    let first: Vec<_> = long.flows.iter().filter(|entry| entry.0 <= until).collect();
    assert_eq!(first, short.flows.iter().collect::<Vec<_>>());
}

/// Stages that carry both directions, in which frames of both directions wait for each other.
const BEARERS: [&str; 3] = [
    r#"
kind = "ppp"
echo_interval = "1 s"
[link.stages.forward]
rate = "1 Mbit/s"
ber = 1e-5
queue_packets = 30
[link.stages.return]
rate = "250 kbit/s"
"#,
    r#"
kind = "multilink"
links = 4
rate = "250 kbit/s"
delay = "8 ms"
per = 0.01
time_between_drops = "5 s"
redial = "1 s"
queue_packets = 30
"#,
    r#"
kind = "umts"
[link.stages.poll]
timer = "100 ms"
[link.stages.forward]
rate = "960 kbit/s"
erasures = 0.1
processing = "8 ms"
queue_packets = 30
[link.stages.return]
rate = "256 kbit/s"
processing = "8 ms"
queue_packets = 30
"#,
];

/// Returns the scenario without its flows: nothing shortens the runs of the transfer, and its NAKs arrive during them.
fn alone() -> String {
    let (transfer, rest) = WORLD.split_once("[[traffic]]").unwrap();
    let (_, links) = rest.split_once("[link.forward]").unwrap();
    format!("{transfer}[link.forward]{links}")
}

#[test]
fn runs_may_be_cut_before_link_layers_that_carry_both_ways() {
    let stage = |name: &str, which: usize| format!("[[link.stages]]\nname = \"{name}\"{}", BEARERS[which]);
    for seed in 0..40 {
        let mut random = RandomStream::derive(seed, &[99]);
        let settings: Vec<&str> = VARIATIONS.into_iter().filter(|_| random.chance(0.25)).collect();
        let (world, chain) = match seed as usize % 8 {
            which @ 0..3 => (alone(), stage("one", which)),
            which @ 3..6 => (WORLD.into(), stage("one", which - 3)),
            6 => (alone(), format!("{}{}", stage("one", 2), stage("two", 0))),
            _ => (WORLD.into(), format!("{STAGES}{}", stage("one", 1))),
        };
        let text = format!("{world}{chain}");
        let whole = play(&text, &settings, seed, Cut::Whole);
        for cut in [Cut::One, Cut::Random(seed)] {
            assert!(play(&text, &settings, seed, cut) == whole, "seed {seed}, {cut:?}, {settings:?}");
        }
    }
}
