//! Equal seeds draw the same losses where packets are simulated and where they are emulated.
//!
//! A scenario is simulated. The packets of its hosts then enter the emulated link of the same seed at the same times.
//! Every packet that reaches a host must do so in both, at the same nanosecond. Every packet that one of them loses
//! must be lost in the other.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use farcast_core::stage::Frame;
use farcast_core::{Among, Losses, Span, Time};
use farcast_delivery::Protocol;
use farcast_emu::host::HostPosition;
use farcast_emu::link::{Link, LinkConfig};
use farcast_link::End;
use farcast_scenario::{Document, Links, receivers};
use farcast_sim::scenario::Scenario;
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{FlowPacket, Observer, Star, receiver_address};

type Message = <Mftp as Protocol>::Message;

/// Packet that enters the links: time, destination, source or destination terminal unless it is for all, and octets.
type Entering = (Time, End, Option<u32>, u64);
/// Packet that has reached the hub (from a terminal) or a terminal: time, end, terminal and octets.
type Reached = (Time, End, u32, u64);

/// Packets seen in a simulation.
#[derive(Debug, Default)]
struct Seen {
    entering: Vec<Entering>,
    reached: Vec<Reached>,
}

/// Losses of a group of terminals, with a record of their draws.
#[derive(Debug)]
struct Spy {
    inner: Box<dyn Losses>,
    first: u32,
    receivers: u32,
    seen: Arc<Mutex<Seen>>,
}

impl Losses for Spy {
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let already = lost.len();
        self.inner.draw(now, octets, among, lost);
        let all: Vec<u32> = (0..self.receivers).collect();
        let asked = if let Among::These(asked) = among { asked } else { &all };
        let mut seen = self.seen.lock().unwrap();
        let got = asked.iter().filter(|&number| !lost[already..].contains(number));
        seen.reached.extend(got.map(|number| (now, End::Terminal, self.first + number, octets)));
    }

    fn is_memoryless(&self) -> bool {
        self.inner.is_memoryless()
    }
}

/// Observer that records packets that enter, and packets that reach the hub or the terminal of a flow.
struct Watch {
    seen: Arc<Mutex<Seen>>,
    receivers: u32,
    overhead: u64,
}

impl Observer<Mftp> for Watch {
    fn sent(&mut self, at: Time, destination: SocketAddr, frame: &Frame<Message>) {
        let alone = (0..self.receivers).find(|&n| receiver_address(n).ip() == destination.ip());
        assert!(alone.is_some() || destination.ip().is_multicast(), "{destination}");
        let each = 0..frame.segments();
        let one = |n: u32| (at + frame.spacing * u64::from(n), End::Terminal, alone, frame.octets(n));
        self.seen.lock().unwrap().entering.extend(each.map(one));
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        self.seen.lock().unwrap().entering.push((at, End::Hub, Some(receiver), frame.octets(0)));
    }

    fn reached(&mut self, at: Time, receiver: u32, message: &Message) {
        let octets = Frame::new(message.clone(), 0).octets(0) + self.overhead;
        self.seen.lock().unwrap().reached.push((at, End::Hub, receiver, octets));
    }

    fn flow_sent(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        let octets = Frame::new(*packet.message, 20).octets(0);
        self.seen.lock().unwrap().entering.push((at, end.other(), Some(packet.terminal), octets));
    }

    fn flow_reached(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        let octets = Frame::new(*packet.message, 20).octets(0);
        self.seen.lock().unwrap().reached.push((at, end, packet.terminal, octets));
    }
}

/// Simulates `text` with `seed`. Returns the packets and the end time.
fn simulate(text: &str, seed: u64) -> (Seen, Time) {
    let document = Document::parse("scenario.toml", text).unwrap();
    let mut config = Scenario::read(&document).unwrap().star(seed, 0).unwrap();
    let notes = Arc::new(Mutex::new(Seen::default()));
    let mut first = 0;
    for group in &mut config.groups {
        let (inner, receivers) = (std::mem::replace(&mut group.losses, no_losses()), group.receivers);
        group.losses = Box::new(Spy { inner, first, receivers, seen: Arc::clone(&notes) });
        first += receivers;
    }
    let overhead = config.overhead.into();
    let mut watch = Watch { seen: Arc::clone(&notes), receivers: first, overhead };
    let mut star = Star::new(config, Some(&mut watch)).unwrap();
    star.run();
    let end = star.end();
    let notes = std::mem::take(&mut *notes.lock().unwrap());
    (notes, end)
}

fn no_losses() -> Box<dyn Losses> {
    Box::new(farcast_link::losses::NoLoss)
}

/// Lets the same packets enter the emulated link. Returns the packets that reached a host, and the link.
fn emulate(text: &str, seed: u64, entering: &[Entering]) -> (Vec<Reached>, Link) {
    let document = Document::parse("scenario.toml", text).unwrap();
    let mut top = document.root();
    let groups = if top.holds("groups") { receivers::read(&mut top).unwrap() } else { Vec::new() };
    let flows = u32::from(top.holds("traffic"));
    let mut links = Links::read(&mut top).unwrap();
    links.default_queues(groups.iter().map(|group| group.delay).max().unwrap_or_default());
    let mut link = Link::new(LinkConfig { links, groups, flows, seed }, None);
    let mut reached = Vec::new();
    for &(at, to, terminal, octets) in entering {
        advance(&mut link, at, &mut reached);
        // No layer has to escape these octets.
        link.enter(at, to, terminal, &vec![0x55; octets as usize]);
    }
    advance(&mut link, Time::ZERO + Span::from_secs(1_000_000), &mut reached);
    (reached, link)
}

fn advance(link: &mut Link, now: Time, reached: &mut Vec<Reached>) {
    link.advance(now, |link, departure| {
        let label = *departure.packet.label();
        let (end, terminal) = match departure.to {
            HostPosition::Hub => (End::Hub, label.terminal.unwrap()),
            HostPosition::Terminal(terminal) => (End::Terminal, terminal),
        };
        reached.push((departure.at, end, terminal, label.octets.into()));
        link.delivered(departure, Some(now));
    });
}

/// Compares simulation and emulation for several seeds. Over all seeds, at least `lost` packets must be lost or dropped
/// in each direction.
fn assert_equal(name: &str, text: &str, lost: [u64; 2]) {
    let mut missing = [0; 2];
    for seed in 1..4 {
        let (Seen { mut entering, reached: mut simulated }, end) = simulate(text, seed);
        entering.sort_by_key(|entry| entry.0);
        let (mut emulated, link) = emulate(text, seed, &entering);
        // Packets that would arrive after the end of a replication are not simulated.
        emulated.retain(|packet| packet.0 < end);
        simulated.retain(|packet| packet.0 < end);
        emulated.sort_unstable();
        simulated.sort_unstable();
        let differ = simulated.iter().zip(&emulated).find(|(a, b)| a != b);
        assert_eq!(differ, None, "{name}, seed {seed}: simulated, and emulated");
        assert_eq!(simulated.len(), emulated.len(), "{name}, seed {seed}");
        for (missing, counts) in missing.iter_mut().zip([link.forward(), link.back()]) {
            *missing += counts.lost.packets + counts.dropped.packets;
        }
    }
    assert!(missing[0] >= lost[0] && missing[1] >= lost[1], "{name}: {missing:?}");
}

/// Returns a transfer with repairs to receivers in two groups. The second group is further away and loses more.
fn transfer(link: &str) -> String {
    format!(
        "engines = true\ntime_limit = \"1 h\"\n\
         [[groups]]\nname = \"near\"\nreceivers = 4\n\
         [[groups]]\nname = \"far\"\nreceivers = 3\ndelay = \"7 ms\"\nper = 0.1\n\
         [protocol]\nname = \"mftp\"\nfile = \"150 kB\"\nrate = \"1 Mbit/s\"\nparity = 0\nspread = \"300 ms\"\nblock_size = 20\n{link}"
    )
}

/// Returns the same transfer without the second group's own losses.
fn alone(link: &str) -> String {
    transfer(link).replace("per = 0.1\n", "")
}

#[test]
fn independent_losses_are_equal() {
    let link = "[link.forward]\nrate = \"1.2 Mbit/s\"\ndelay = \"250 ms\"\nper = 0.05\n\
                [link.return]\ndelay = \"250 ms\"\nper = 0.2\n";
    assert_equal("packet error rate", &transfer(link), [150, 20]);
    let stages = link.replace("[link.return]\n", "[link.return]\nrate = \"64 kbit/s\"\n");
    assert_equal("packet error rate, a queue on the way back", &transfer(&stages), [150, 20]);
    let bits = link.replace("per = 0.05", "ber = 1e-5").replace("per = 0.2", "ber = 1e-4");
    assert_equal("bit errors", &transfer(&bits), [150, 5]);
}

#[test]
fn bursts_are_equal() {
    for chain in ["p = 0.02, r = 0.2", "good = \"300 ms\", bad = \"40 ms\""] {
        let link = format!(
            "[link.forward]\nrate = \"1.2 Mbit/s\"\ndelay = \"250 ms\"\ngilbert_elliott = {{ {chain} }}\n\
             [link.return]\ndelay = \"250 ms\"\ngilbert_elliott = {{ {chain} }}\n"
        );
        assert_equal(chain, &alone(&link), [100, 1]);
        assert_equal(chain, &transfer(&link), [100, 1]);
    }
}

#[test]
fn outages_and_vectors_are_equal() {
    for losses in [
        "outages = { between = \"700 ms\", length = \"100 ms\" }",
        "outages = { start = \"300 ms\", length = \"300 ms\", period = \"700 ms\" }",
        "error_vector = \"0001000110\"",
    ] {
        let link = format!(
            "[link.forward]\nrate = \"1.2 Mbit/s\"\ndelay = \"250 ms\"\nper = 0.01\n{losses}\n\
             [link.return]\ndelay = \"250 ms\"\n{losses}\n"
        );
        assert_equal(losses, &alone(&link), [50, 1]);
    }
}

#[test]
fn stages_draw_the_same() {
    let jitter = "[[link.stages]]\nname = \"a\"\ndirection = \"forward\"\ndelay = \"30 ms\"\njitter = \"20 ms\"\n\
                  [link.forward]\nrate = \"900 kbit/s\"\nqueue = \"9 kB\"\ndelay = \"200 ms\"\nper = 0.02\n\
                  [link.return]\ndelay = \"200 ms\"\njitter = \"100 ms\"\nreorder = true\nper = 0.1\n";
    assert_equal("jitter, and a queue that drops", &transfer(jitter), [100, 5]);
    let rlc = "[[link.stages]]\nname = \"bearer\"\nkind = \"umts\"\nmax_transmissions = 1\n\
               [link.stages.poll]\ntimer = \"100 ms\"\n[link.stages.status]\nmissing_pdu = true\n\
               [link.stages.forward]\nrate = \"1280 kbit/s\"\nerasures = 0.05\n\
               [link.stages.return]\nrate = \"384 kbit/s\"\nerasures = 0.1\n\
               [link.forward]\nper = 0.02\n[link.return]\nper = 0.05\n";
    assert_equal("RLC", &transfer(rlc), [100, 10]);
    let bgan = "[link.forward]\nkind = \"bgan\"\nper = 0.01\npropagation = \"450 ms\"\n\
                [link.return]\nkind = \"bgan\"\npropagation = \"450 ms\"\nper = 0.05\n";
    assert_equal("BGAN", &transfer(bgan).replace("1 Mbit/s", "250 kbit/s"), [50, 1]);
}

/// A flow has a terminal and losses of its own.
#[test]
fn a_flow_meets_the_same_losses() {
    for losses in ["per = 0.01", "gilbert_elliott = { p = 0.01, r = 0.3 }"] {
        let text = format!(
            "time_limit = \"300 s\"\n[[traffic]]\nname = \"bulk\"\nprotocol = \"tcp\"\nsize = \"2 MB\"\n\
             [link.forward]\nrate = \"2 Mbit/s\"\ndelay = \"100 ms\"\n{losses}\n\
             [link.return]\ndelay = \"100 ms\"\n{losses}\n"
        );
        assert_equal(losses, &text, [20, 5]);
    }
}
