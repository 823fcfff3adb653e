//! Comparison of the simulated seal with the real one, datagram by datagram.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use farcast_core::stage::Frame;
use farcast_core::{Message as _, Span, Time};
use farcast_delivery::Delivery as _;
use farcast_mftp::Message;
use farcast_scenario::document::Document;
use farcast_seal::{
    Contents, HEADER, History, Identity, Kind, Listed, Receiver, ReceiverConfig, Refusal, Scope, Sender,
    SenderConfig, TAG,
};
use farcast_sim::outcome::Replication;
use farcast_sim::replicate::Replicable as _;
use farcast_sim::scenario::TreeScenario;
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{Observer, Pulse, SealMessage, Star, hub_address, receiver_address};

use crate::worlds::{once, scenario, transfer};

/// Scenario with two groups, of which the second hears everything later.
const LATE: &str = r#"
time_limit = "1 h"
[[groups]]
name = "near"
[[groups]]
name = "far"
delay = "300 ms"
[protocol]
rate = "20 Mbit/s"
sealed = true
start_receivers = 1
[link.forward]
delay = "250 ms"
[link.return]
delay = "250 ms"
"#;

/// Delay of a datagram to receivers of the first group, and back.
const WAY: Span = Span::from_millis(250);

/// Kind of a datagram that leaves.
#[derive(Clone, Debug)]
enum Leaves {
    /// Datagram of the sender of these octets: with content, without content for all, or for one receiver.
    Content(usize),
    Control(usize),
    Alone(u32, usize),
    /// Datagram of a receiver.
    Answer(u32, usize),
    /// Datagram of the seal itself.
    Seal(SealMessage),
}

/// Datagram, with its sealed length without headers of UDP and IP.
#[derive(Clone, Debug)]
struct Datagram {
    what: Leaves,
    sealed: u64,
}

/// Observer that notes departures with their times.
#[derive(Default)]
struct Notes(Vec<(Time, Datagram)>);

impl Observer<Mftp> for Notes {
    fn sent(&mut self, at: Time, destination: SocketAddr, frame: &Frame<Message>) {
        for segment in 0..frame.segments() {
            let (len, sealed) = (frame.message.wire_len(segment), frame.octets(segment) - 28);
            let what = match receiver_at(destination) {
                _ if frame.message.content().is_some() => Leaves::Content(len),
                None => Leaves::Control(len),
                Some(receiver) => Leaves::Alone(receiver, len),
            };
            self.0.push((at + frame.spacing * u64::from(segment), Datagram { what, sealed }));
        }
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        let what = Leaves::Answer(receiver, frame.message.wire_len(0));
        self.0.push((at, Datagram { what, sealed: frame.octets(0) - 28 }));
    }

    fn sealed(&mut self, at: Time, message: SealMessage) {
        let sealed = message.wire_len(0) as u64;
        self.0.push((at, Datagram { what: Leaves::Seal(message), sealed }));
    }
}

fn receiver_at(address: SocketAddr) -> Option<u32> {
    let number = |ip| if let IpAddr::V4(ip) = ip { ip.to_bits() } else { u32::MAX };
    (!address.ip().is_multicast()).then(|| number(address.ip()) - number(receiver_address(0).ip()))
}

fn identity(n: u32) -> Identity {
    let mut seed = [1; 32];
    seed[..4].copy_from_slice(&n.to_be_bytes());
    Identity::from_seed(seed)
}

fn scope() -> Scope {
    Scope::of("mftp", Real::hub())
}

fn listed(n: u32) -> Listed {
    Listed { name: n.to_string(), key: identity(n).public().clone() }
}

/// Real seal: a sender and its receivers, and datagrams under way.
struct Real {
    sender: Sender,
    receivers: Vec<Receiver>,
    /// Delay of each receiver beyond the common one.
    delays: Vec<Span>,
    /// Current round of KEYS.
    round: (u32, Vec<Vec<u8>>),
    /// Datagrams under way by time and order of departure, with their receiver or `None` for the sender.
    under_way: BTreeMap<(Time, usize), (Option<u32>, Vec<u8>)>,
    left: usize,
    /// Requests for a key, with their times.
    asked: Vec<(Time, u32)>,
    /// Number of datagrams that could not be opened for lack of a key.
    shut: u64,
}

impl Real {
    fn new(delays: Vec<Span>) -> Self {
        let count = delays.len() as u32;
        let config = SenderConfig {
            identity: identity(u32::MAX),
            receivers: (0..count).map(listed).collect(),
            began_ms: 1,
            scope: scope(),
            contents: Contents::Apart,
            datagram: 1472,
        };
        let receiver = |n| {
            let config = ReceiverConfig {
                identity: identity(n),
                senders: vec![listed(u32::MAX)],
                scopes: vec![scope()],
            };
            Receiver::new(config, History::default(), [n as u8; 32])
        };
        Self {
            sender: Sender::new(config, [7; 32]),
            receivers: (0..count).map(receiver).collect(),
            delays,
            round: (u32::MAX, Vec::new()),
            under_way: BTreeMap::new(),
            left: 0,
            asked: Vec::new(),
            shut: 0,
        }
    }

    fn hub() -> SocketAddr {
        SocketAddr::new(hub_address(), 5402)
    }

    /// Seals a departing datagram and sends it. Returns its length.
    fn leave(&mut self, at: Time, what: &Leaves) -> usize {
        let mut datagram = Vec::new();
        let plain = |len: usize| vec![0x55; len];
        match *what {
            Leaves::Content(len) => {
                datagram = vec![0x55; HEADER + len + TAG];
                self.sender.seal_content(&mut datagram).unwrap();
            }
            Leaves::Control(len) => {
                datagram = plain(len);
                self.sender.seal_control(&mut datagram).unwrap();
            }
            Leaves::Alone(receiver, len) => {
                datagram = plain(len);
                self.sender.seal_to(receiver_address(receiver), &mut datagram).unwrap();
            }
            Leaves::Answer(receiver, len) => {
                datagram = plain(len);
                self.receivers[receiver as usize].seal_answer(Self::hub(), &mut datagram).unwrap();
            }
            Leaves::Seal(SealMessage::Keys { round, first, .. }) => {
                if self.round.0 != round {
                    // The first round is for all receivers, and a transfer of this length ends before the next such
                    // round.
                    self.round = (round, self.sender.keys(round == 0));
                }
                datagram.clone_from(&self.round.1[first as usize / 15]);
            }
            Leaves::Seal(SealMessage::Key(receiver)) => {
                assert!(self.sender.lacks_key(receiver as usize), "{receiver} has it");
                self.sender.seal_to(receiver_address(receiver), &mut datagram).unwrap();
                assert_eq!(Kind::of(&datagram), Some(Kind::ToOneKey));
            }
            Leaves::Seal(SealMessage::Ask(receiver)) => {
                assert!(self.asked.contains(&(at, receiver)), "{receiver} asks at {at:?} without need");
                self.receivers[receiver as usize].seal_answer(Self::hub(), &mut datagram).unwrap();
            }
        }
        let len = datagram.len();
        let to: Vec<Option<u32>> = match *what {
            Leaves::Answer(..) | Leaves::Seal(SealMessage::Ask(_)) => vec![None],
            Leaves::Alone(receiver, _) | Leaves::Seal(SealMessage::Key(receiver)) => vec![Some(receiver)],
            _ => (0..self.receivers.len() as u32).map(Some).collect(),
        };
        for to in to {
            let behind = to.map_or(Span::ZERO, |n| self.delays[n as usize]);
            let from = if let Leaves::Answer(n, _) | Leaves::Seal(SealMessage::Ask(n)) = *what {
                Some(n)
            } else {
                None
            };
            self.left += 1;
            let mut sent = datagram.clone();
            if let Some(from) = from {
                // The number of the receiver is appended, for the arrival at the sender.
                sent.extend_from_slice(&from.to_be_bytes());
            }
            self.under_way.insert((at + WAY + behind, self.left), (to, sent));
        }
        len
    }

    /// Delivers the datagrams that arrive before or at `now`.
    fn arrive(&mut self, now: Time) {
        while let Some(((at, n), (to, mut datagram))) = self.under_way.pop_first() {
            if at > now {
                self.under_way.insert((at, n), (to, datagram));
                return;
            }
            let Some(to) = to else {
                let (sealed, from) = datagram.split_last_chunk_mut::<4>().unwrap();
                let from = u32::from_be_bytes(*from);
                let answer = self.sender.open(receiver_address(from), sealed).unwrap();
                assert_eq!(answer.receiver, from as usize);
                continue;
            };
            let receiver = &mut self.receivers[to as usize];
            match receiver.open(at, Self::hub(), &mut datagram) {
                Err(Refusal::UnknownEpoch) => {
                    self.shut += 1;
                    if receiver.wants_key(at, &datagram).is_some() {
                        self.asked.push((at, to));
                    }
                }
                // Accepted are datagrams that open, KEYS for others, and datagrams before a receiver's own KEYS.
                Ok(_) | Err(Refusal::NotListed | Refusal::UnknownSession) => {}
                Err(why) => panic!("{to} at {at:?}: {why}"),
            }
        }
    }
}

/// Runs a transfer to these numbers of near and far receivers, and seals every datagram with the real seal.
fn witness([near, far]: [u32; 2], file: &str) {
    let settings = [
        format!("groups.near.receivers={near}"),
        format!("groups.far.receivers={far}"),
        format!("protocol.file={file}"),
    ];
    let world = scenario(LATE, &settings.each_ref().map(String::as_str)).with_engines();
    let mut notes = Notes::default();
    let mut star = Star::new(world.star(1, 0).unwrap(), Some(&mut notes)).unwrap();
    star.run();
    let counts = *star.seal_counts().unwrap();
    let replication = Replication::of(0, &star, false);
    assert!(replication.completion_time_s.is_some());
    drop(star);
    let mut notes = notes.0;
    // The notes of runs have the time of the run's beginning.
    notes.sort_by_key(|(at, _)| *at);
    let delays = [vec![Span::ZERO; near as usize], vec![Span::from_millis(300); far as usize]].concat();
    let mut real = Real::new(delays);
    let (mut keys, mut for_one) = ((0, 0), 0);
    for (at, Datagram { what, sealed }) in &notes {
        real.arrive(*at);
        let octets = real.leave(*at, what) as u64;
        assert_eq!(octets, *sealed, "{what:?} at {at:?}");
        match what {
            Leaves::Seal(SealMessage::Keys { .. }) => keys = (keys.0 + 1, keys.1 + octets),
            Leaves::Seal(SealMessage::Key(_)) => for_one += 1,
            _ => {}
        }
    }
    assert_eq!((counts.keys_datagrams, counts.keys_octets), keys);
    assert_eq!(counts.asks as usize, real.asked.len(), "everyone who needs a key asks for it");
    // In large groups some receivers have their keys before content comes, which begins when the first have answered.
    let asking = if near + far > 1000 { far / 5 } else { far };
    assert!(counts.asks >= asking.into() && real.shut > counts.asks, "{counts:?}");
    assert!(counts.keys_for_one >= for_one && for_one >= u64::from(near + far), "{counts:?}");
    assert_eq!(counts.unsealable, 0);
}

/// Uses as many receivers as the variable `SEALED_RECEIVERS` sets: 10,000 take two minutes.
#[test]
#[expect(clippy::disallowed_methods, reason = "how many is for who runs it to say")]
fn what_leaves_is_as_long_as_the_real_seal_makes_it() {
    let wanted = std::env::var("SEALED_RECEIVERS").ok().and_then(|number| number.parse().ok());
    let receivers: u32 = wanted.unwrap_or(101);
    let near = receivers * 3 / 5;
    witness([near, receivers - near], "100 kB");
}

/// Scenario of a transfer to a few receivers over a link with losses.
const LOSSY: &str = r#"
receivers = 40
time_limit = "1 h"
[protocol]
file = "200 kB"
rate = "2 Mbit/s"
sealed = true
[link.forward]
rate = "2 Mbit/s"
delay = "250 ms"
per = 0.2
[link.return]
delay = "250 ms"
per = 0.1
"#;

#[test]
fn whoever_misses_keys_gets_them_later() {
    // Keys leave in rounds alone, because no receiver answers.
    let one_way = ["protocol.name=one-way", "protocol.overhead_percent=900", "protocol.rate=100 kbit/s"];
    let one = once(LOSSY, &one_way);
    let seal = one.seal.unwrap();
    assert_eq!((transfer(&one).incomplete, seal.first_answers, seal.keys_for_one), (0, 0, 0));
    assert!(seal.keys_datagrams > 2 * 3, "{seal:?}");
    // If receivers answer, keys leave by requests too.
    let one = once(LOSSY, &["receivers=300", "link.forward.per=0.1", "protocol.silence=300 s"]);
    let seal = one.seal.unwrap();
    assert_eq!(transfer(&one).incomplete, 0);
    assert!(seal.keys_datagrams > 20 && seal.asks > 0 && seal.keys_for_one > 300, "{seal:?}");
}

/// Keys for so many receivers take seconds. Content at the link's full rate beside them would make the queue drop both,
/// so they share the rate.
#[test]
fn keys_of_many_and_content_share_the_rate() {
    let many = r#"
receivers = 3000
[protocol]
name = "one-way"
file = "1 MB"
rate = "1 Mbit/s"
sealed = true
[link.forward]
rate = "1 Mbit/s"
delay = "270 ms"
queue = "60 kB"
"#;
    let one = once(many, &[]);
    let seal = one.seal.unwrap();
    assert_eq!(transfer(&one).incomplete, 0, "{seal:?}");
    // One round leaves before content; the second, with a fifth of the rate, takes longer than the transfer.
    assert!((210..400).contains(&seal.keys_datagrams), "{seal:?}");
    // No receiver is complete before everything could have passed the link.
    let least = (one.forward.octets * 8) as f64 / 1e6;
    let time = one.completion_time_s.unwrap();
    assert!(time > 8.0 && time < least + 1.0, "{time} s, {least} s on the link");
    // If receivers answer, keys are repeated only for those that have not answered within a second or two.
    let one = once(many, &["protocol.name=mftp", "protocol.start_receivers=3000"]);
    let seal = one.seal.unwrap();
    assert_eq!(transfer(&one).incomplete, 0, "{seal:?}");
    assert!((200..300).contains(&seal.keys_datagrams), "{seal:?}");
}

#[test]
fn every_protocol_adds_what_its_seal_does() {
    let still = |name, size| {
        [format!("protocol.name={name}"), format!("protocol.{size}=1000 B"), "receivers=7".to_owned()]
    };
    let signed = ["norm", "mdp", "pgm"].map(|name| (still(name, "segment_size"), 92));
    let cases = [(still("one-way", "symbol_size"), 28)].into_iter().chain(signed);
    for (settings, content) in cases {
        let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        settings.extend(["link.forward.per=0", "link.return.per=0"]);
        let sealed = once(LOSSY, &settings);
        settings.push("protocol.sealed=false");
        let open = once(LOSSY, &settings);
        let seal = sealed.seal.unwrap();
        assert_eq!((transfer(&sealed).incomplete, open.seal), (0, None), "{settings:?}");
        // For few receivers, KEYS leave three times at first.
        assert_eq!((seal.keys_octets / seal.keys_datagrams, seal.asks, seal.keys_for_one), (738, 0, 0));
        let keys = seal.keys_octets + 28 * seal.keys_datagrams;
        let datagrams = sealed.forward.datagrams - seal.keys_datagrams;
        let grown = seal.forward_octets - keys;
        // Most of it is content.
        assert!(grown >= content * 200 && grown <= 92 * datagrams, "{settings:?} {seal:?} {datagrams}");
        assert!(sealed.completion_time_s > open.completion_time_s, "{settings:?}");
        let lighter = sealed.forward.octets - seal.forward_octets;
        assert!(lighter.abs_diff(open.forward.octets) < 5000, "{settings:?} {lighter} {:?}", open.forward);
    }
}

#[test]
fn where_the_set_up_is_given_so_are_the_keys() {
    let settings = ["protocol.setup=done", "link.forward.per=0", "link.return.per=0", "receivers=1000"];
    let one = once(LOSSY, &settings);
    let seal = one.seal.unwrap();
    assert_eq!((seal.keys_datagrams, seal.first_answers, seal.asks, seal.keys_for_one), (0, 0, 0, 0));
    assert_eq!(seal.return_octets, 28 * one.back.datagrams);
    assert_eq!(transfer(&one).incomplete, 0);
}

/// Tree of a source, a node of this kind, and a receiver.
fn with_between(kind: &str) -> String {
    format!(
        r#"
        [protocol]
        name = "pgm"
        file = "100 kB"
        rate = "1 Mbit/s"
        sealed = true
        [[node]]
        name = "source"
        kind = "source"
        [[node]]
        name = "between"
        kind = "{kind}"
        [[node]]
        name = "receiver"
        kind = "receiver"
        [[edge]]
        name = "first"
        from = "source"
        to = ["between"]
        [edge.link]
        forward.delay = "1 ms"
        return.delay = "1 ms"
        [[edge]]
        name = "second"
        from = "between"
        to = ["receiver"]
        [edge.link]
        forward.delay = "1 ms"
        return.delay = "1 ms"
    "#
    )
}

#[test]
fn a_seal_passes_routers_and_is_refused_where_elements_are_on_the_way() {
    let read = |kind| TreeScenario::read(&Document::parse("test.toml", &with_between(kind)).unwrap());
    let why = read("element").unwrap_err().to_string();
    assert!(why.contains("elements on the way cannot read what is sealed"), "{why}");
    let replication = read("router").unwrap().replicate(1, 0, false, &Pulse::default()).unwrap().unwrap();
    assert!(replication.common.completion_time_s.is_some());
    assert!(replication.common.seal.is_some_and(|seal| seal.keys_datagrams > 0));
    let keys = replication.edge("second").unwrap().forward.packets_of("seal");
    assert_eq!(keys, replication.common.seal.unwrap().keys_datagrams);
}
