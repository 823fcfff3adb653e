//! Comparison of a trace with the sent datagrams, by a reader of the test's own, and by tshark.

mod reader;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;

use farcast_core::random::RandomStream;
use farcast_core::stage::Frame;
use farcast_core::{BitRate, Probability, Run, Span, Time};
use farcast_delivery::{Asked, NakFate, SenderEngine as _};
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_mftp::message::Data;
use farcast_mftp::{
    Body, ClientId, Codec, Group, Message, NakTiming, Pace, PassWait, Product, ReceiverConfig, SenderConfig,
    StatusRetry, wire,
};
use farcast_sim::scenario::mftp::{self, Mftp};
use farcast_sim::star::{
    Back, BackLosses, Chains, Cut, GroupConfig, Observer, Star, StarConfig, receiver_address,
};
use farcast_sim::trace::{Trace, TraceConfig};

use reader::datagram;
pub(crate) use reader::read;

/// Octets of a DTU's payload that the traces here keep by default.
const KEPT: u32 = 64;

/// World of 24 receivers with a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    seed: u64,
    pub(crate) fixed_timer: bool,
    cut: Cut,
    return_loss: f64,
}

impl World {
    pub(crate) const RECEIVERS: u32 = 24;

    fn sender(self) -> SenderConfig {
        let product = Product { id: [7; 32], size: 200_001, name: "file".into() };
        let server = "10.0.0.1:5402".parse().unwrap();
        let mut config = SenderConfig::new(product, server, "239.255.54.2:5402".parse().unwrap());
        config.private = "239.255.54.3:5402".parse().unwrap();
        (config.dtu_size, config.block_size) = (526, 100);
        let rate = BitRate::from_bps(300_000).unwrap();
        config.pace = Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule: 1 };
        (config.backoff_window, config.status_retry) =
            (Span::from_millis(1800), StatusRetry::Fixed(Span::from_millis(3901)));
        if self.fixed_timer {
            (config.group, config.start.after) = (Group::OpenUnlimited, Some(Span::ZERO));
            (config.pass_wait, config.nak_timing) = (PassWait::FixedTimer, NakTiming::EndOfFirstPass);
            config.ask_twice = false;
        }
        config
    }

    /// Runs the world. Returns the completion time of each receiver.
    pub(crate) fn play(self, observer: &mut dyn Observer<Mftp>) -> Vec<Time> {
        let n = Self::RECEIVERS;
        let p = |p| Probability::new(p).unwrap();
        let losses = Box::new(Bernoulli::new(p(0.02), n, RandomStream::derive(self.seed, &[1])));
        let back: Box<dyn farcast_core::Losses> = if self.return_loss > 0.0 {
            Box::new(Bernoulli::new(p(self.return_loss), n, RandomStream::derive(self.seed, &[2])))
        } else {
            Box::new(NoLoss)
        };
        let receiver = ReceiverConfig { seed: self.seed, ..ReceiverConfig::new(ClientId(1), 5402) };
        let delay = Span::from_millis(300);
        let sender = self.sender();
        let config = StarConfig {
            groups: vec![GroupConfig {
                receivers: n,
                kind: mftp::receivers(receiver, n, true),
                losses,
                delay,
                data_only: false,
            }],
            sender: Some(mftp::sender(sender).unwrap()),
            flows: Vec::new(),
            chains: Chains::new(),
            back: Back::uniform(delay, BackLosses::Shared(back)),
            overhead: 28,
            seal: None,
            given: false,
            lookahead: delay,
            limit: Time::ZERO + Span::from_secs(600),
            cut: self.cut,
        };
        let mut star = Star::new(config, Some(observer)).unwrap();
        star.run();
        (0..n).map(|receiver| star.groups()[0].completed(receiver)).collect()
    }
}

/// Returns three kinds of worlds: the fixed timer, the draft's rule with members, and lost answers.
pub(crate) fn worlds() -> [World; 3] {
    let world = World { seed: 3, fixed_timer: true, cut: Cut::Whole, return_loss: 0.0 };
    [
        world,
        World { seed: 4, fixed_timer: false, cut: Cut::Random(9), ..world },
        World { seed: 5, return_loss: 0.2, ..world },
    ]
}

/// Observer that passes events on and keeps them as single datagrams.
struct Witness<'a> {
    trace: &'a mut dyn Observer<Mftp>,
    seen: Vec<Seen>,
    fates: BTreeMap<&'static str, u64>,
    passes: u64,
}

/// Datagram that must be in the file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Seen {
    at: Time,
    interface: &'static str,
    source: SocketAddr,
    destination: SocketAddr,
    /// Message as text, because messages have no order.
    message: String,
}

impl<'a> Witness<'a> {
    fn new(trace: &'a mut dyn Observer<Mftp>) -> Self {
        Self { trace, seen: Vec::new(), fates: BTreeMap::new(), passes: 0 }
    }

    fn see(
        &mut self,
        at: Time,
        interface: &'static str,
        from: SocketAddr,
        to: SocketAddr,
        message: &Message,
    ) {
        self.seen.push(Seen {
            at,
            interface,
            source: from,
            destination: to,
            message: format!("{message:?}"),
        });
    }
}

fn server() -> SocketAddr {
    "10.0.0.1:5402".parse().unwrap()
}

impl Observer<Mftp> for Witness<'_> {
    fn sent(&mut self, at: Time, destination: SocketAddr, frame: &Frame<Message>) {
        let message = &frame.message;
        for segment in 0..frame.segments() {
            let body = match &message.body {
                Body::Data(data) => {
                    let len = data.payload_len(segment) as u16;
                    let dtus = Run::one(data.dtus.first() + segment);
                    Body::Data(Data { dtus, len, last_len: len, ..data.clone() })
                }
                other => other.clone(),
            };
            let time = at + frame.spacing * u64::from(segment);
            self.see(time, "sender", server(), destination, &Message { body, ..*message });
        }
        self.trace.sent(at, destination, frame);
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        self.see(at, "receivers", receiver_address(receiver), server(), &frame.message);
        self.trace.answered(at, receiver, frame);
    }

    fn reached(&mut self, at: Time, receiver: u32, message: &Message) {
        self.see(at, "sender", receiver_address(receiver), server(), message);
        self.trace.reached(at, receiver, message);
    }

    fn nak(&mut self, at: Time, asked: &Asked) {
        let word = match asked.fate {
            NakFate::Used => "used",
            NakFate::Known => "known",
            NakFate::Late => "late",
        };
        *self.fates.entry(word).or_default() += asked.count;
        self.trace.nak(at, asked);
    }

    fn told(&mut self, at: Time, event: &farcast_mftp::SenderEvent) {
        self.passes += u64::from(matches!(event, farcast_mftp::SenderEvent::Pass { .. }));
        self.trace.told(at, event);
    }
}

/// Trace of a world, with the expected datagrams in the order of time.
struct Traced {
    file: Vec<u8>,
    seen: Vec<Seen>,
    fates: BTreeMap<&'static str, u64>,
    passes: u64,
}

fn traced(world: World, payload_octets: u32) -> Traced {
    let config = TraceConfig { payload_octets, comment: format!("{world:?}") };
    let routes = mftp::sender(world.sender()).unwrap().routes();
    let mut trace = Trace::new(Vec::new(), Some(routes), Codec, &config).unwrap();
    let mut witness = Witness::new(&mut trace);
    world.play(&mut witness);
    let Witness { mut seen, fates, passes, .. } = witness;
    assert_eq!(trace.packets(), seen.len() as u64);
    seen.sort();
    Traced { file: trace.finish().unwrap(), seen, fates, passes }
}

#[test]
fn every_datagram_is_in_the_file_and_right() {
    for world in worlds() {
        for payload_octets in [KEPT, u32::MAX] {
            let traced = traced(world, payload_octets);
            let file = read(&traced.file);
            assert_eq!(file.interfaces, ["sender", "receivers"]);
            assert!(file.comment.starts_with(&format!("{world:?}\n")) && file.comment.contains("zeros"));
            let times: Vec<Time> = file.packets.iter().map(|packet| packet.at).collect();
            assert!(times.is_sorted());
            let mut found: Vec<Seen> = file.packets.iter().map(|packet| datagram(&file, packet).0).collect();
            found.sort();
            assert_eq!(found.len(), traced.seen.len());
            for (found, seen) in found.iter().zip(&traced.seen) {
                assert_eq!(found, seen);
            }
            // Every DATA packet is cut, and no other.
            let cut = file.packets.iter().filter(|packet| packet.captured.len() < packet.octets);
            let cut: Vec<usize> = cut.map(|packet| packet.captured.len()).collect();
            let data = traced.seen.iter().filter(|seen| seen.message.contains("body: Data(")).count();
            let kept = 28 + wire::DATA_HEADER_LEN + KEPT as usize;
            assert_eq!(cut, vec![kept; if payload_octets == KEPT { data } else { 0 }]);
            // At least 381 DTUs, each of 526 octets but the last of 121, and answers.
            assert!(traced.seen.len() > 400);
        }
    }
}

#[test]
fn comments_tell_of_passes_and_of_naks() {
    for world in worlds() {
        let traced = traced(world, KEPT);
        let file = read(&traced.file);
        let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
        let mut passes = 0;
        for packet in &file.packets {
            let Some(comment) = &packet.comment else { continue };
            let (seen, _) = datagram(&file, packet);
            if comment.starts_with("pass ") {
                passes += 1;
                assert_eq!(*comment, format!("pass {passes} begins"));
                assert!(seen.message.contains(&format!("Data(Data {{ pass: {passes}, ")), "{}", seen.message);
            } else {
                assert!(seen.message.contains("Nak(Nak") && seen.interface == "sender", "{seen:?}");
                let word =
                    ["used", "known", "late"].into_iter().find(|word| comment.starts_with(word)).unwrap();
                *fates.entry(word).or_default() += 1;
            }
        }
        assert_eq!((passes, fates), (traced.passes, traced.fates));
        assert!(passes > 1);
    }
}

#[test]
fn identifications_count_and_tell_what_was_lost() {
    let traced = traced(worlds()[2], KEPT);
    let file = read(&traced.file);
    let (mut sent, mut answers, mut arrived) = (Vec::new(), BTreeMap::new(), Vec::new());
    for packet in &file.packets {
        let (seen, id) = datagram(&file, packet);
        match (seen.interface, packet.outbound) {
            ("receivers", _) => assert!(answers.insert(id, seen).is_none()),
            (_, true) => sent.push(id),
            _ => arrived.push((id, seen)),
        }
    }
    assert_eq!(sent, (1..=sent.len() as u16).collect::<Vec<_>>());
    // Each answer that arrived had left 300 ms before; about a fifth did not arrive.
    for (id, seen) in &arrived {
        let left = answers.remove(id).unwrap();
        assert_eq!((&left.message, left.source), (&seen.message, seen.source));
        assert_eq!(seen.at.since(left.at), Span::from_millis(300));
    }
    // The share of n answers has mean 0.2 and deviation sqrt(0.16 / n): 4 of these are allowed.
    let (lost, all) = (answers.len() as f64, (answers.len() + arrived.len()) as f64);
    assert!(all >= 100.0 && (lost / all - 0.2).abs() < 4.0 * (0.16 / all).sqrt(), "{lost} of {all}");
}

#[test]
fn the_same_replication_gives_the_same_bytes() {
    for world in worlds() {
        let whole = traced(world, KEPT);
        assert!(whole.file == traced(world, KEPT).file);
        let single = traced(World { cut: Cut::One, ..world }, KEPT);
        assert_eq!(whole.seen, single.seen);
    }
}

/// Returns the fields that tshark reads in a file, a line for each packet.
pub(crate) fn tshark(name: &str, file: &[u8], fields: &[&str]) -> Vec<String> {
    let path = format!("{}/{name}.pcapng", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, file).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-r", &path, "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]);
    command.args(["-o", "tcp.check_checksum:TRUE"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

#[test]
fn tshark_reads_it() {
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "ip.src",
        "ip.dst",
        "ip.checksum.status",
        "udp.length",
        "udp.checksum.status",
        "_ws.malformed",
    ];
    for (n, world) in worlds().into_iter().enumerate() {
        let traced = traced(world, u32::MAX);
        let file = read(&traced.file);
        let expected: Vec<String> = file
            .packets
            .iter()
            .map(|packet| {
                let (seen, _) = datagram(&file, packet);
                let at = seen.at.as_nanos();
                let mut line =
                    format!("{}.{:09}|{}|", at / 1_000_000_000, at % 1_000_000_000, seen.interface);
                let (from, to, octets) = (seen.source.ip(), seen.destination.ip(), packet.octets);
                // Status 1 is good; no packet is malformed.
                write!(line, "{octets}|{from}|{to}|1|{}|1|", octets - 20).unwrap();
                line
            })
            .collect();
        let lines = tshark(&format!("whole-{n}"), &traced.file, &fields);
        assert_eq!(lines.len(), expected.len());
        for (line, expected) in lines.iter().zip(&expected) {
            assert_eq!(line, expected);
        }
    }
}

/// With `-vv`, tcpdump prints a line for each IPv4 header, and behind a blank a line with the verdict on the UDP
/// checksum.
#[test]
fn tcpdump_reads_it() {
    let traced = traced(worlds()[2], u32::MAX);
    let path = format!("{}/tcpdump.pcapng", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, &traced.file).unwrap();
    let mut command = Command::new("tcpdump");
    command.args(["-nn", "-vv", "-tt", "--time-stamp-precision=nano", "-r", &path]);
    let output = command.output().unwrap_or_else(|error| {
        panic!("tcpdump: {error}; this test needs the Debian package tcpdump, which scripts/setup installs")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut times: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(rest.starts_with("IP (tos 0x0, ttl 64, ") && !rest.contains("bad cksum"), "{line}");
        times.push(time.to_owned());
    }
    let of = |seen: &Seen| {
        let at = seen.at.as_nanos();
        format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)
    };
    let mut expected: Vec<&Seen> = traced.seen.iter().collect();
    expected.sort_by_key(|seen| seen.at);
    assert_eq!(times, expected.into_iter().map(of).collect::<Vec<_>>());
    assert_eq!(text.matches("[udp sum ok]").count(), traced.seen.len());
}

#[test]
fn tshark_reads_packets_that_are_cut() {
    let traced = traced(worlds()[0], KEPT);
    let fields = ["ip.checksum.status", "udp.length", "_ws.malformed", "frame.comment"];
    let lines = tshark("cut", &traced.file, &fields);
    assert_eq!(lines.len(), traced.seen.len());
    let comments = lines.iter().filter(|line| {
        let fields: Vec<&str> = line.split('|').collect();
        assert_eq!((fields[0], fields[2]), ("1", ""), "{line}");
        !fields[3].is_empty()
    });
    assert_eq!(comments.count() as u64, traced.passes + traced.fates.values().sum::<u64>());
}
