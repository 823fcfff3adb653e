//! farcast's TCP and the kernel's send files to each other, with and without losses, for various options of the kernel.

use std::fs;
use std::thread;

use farcast_emu::driver::Counts;
use farcast_emu::namespace::Namespace;
use farcast_tcp::endpoint::ConnectionId;
use farcast_tcp::{Config, ReceiveWindow, Recovery, Stats, Window};

use crate::common::{KERNEL, KERNEL_6, OURS, OURS_6, Ours, at, kernel, octets};
use crate::http;

/// A meeting of the two.
#[derive(Clone, Debug)]
struct Meeting {
    config: Config,
    /// The kernel's congestion control: its default differs from machine to machine.
    congestion: &'static str,
    mtu: u16,
    /// The kernel's parameters below `net.ipv4`.
    parameters: &'static [(&'static str, &'static str)],
    /// The probability of loss in each direction.
    loss: f64,
    six: bool,
    octets: usize,
}

/// Outcome of a meeting.
#[derive(Debug)]
struct Outcome {
    stats: Stats,
    counts: Counts,
    segment_size: u64,
    /// Segments that the kernel has sent again.
    kernel_retransmits: u64,
    /// Retransmission timeouts of either side.
    timeouts: u64,
    /// Tail loss probes of either side.
    probes: u64,
    /// Output of `ss` about the kernel's side.
    said: String,
}

impl Meeting {
    fn new(config: Config) -> Self {
        let congestion = "cubic";
        Self { config, congestion, mtu: 1500, parameters: &[], loss: 0.0, six: false, octets: 5_000_000 }
    }

    fn prepare(&self) -> (Namespace, Ours) {
        let (namespace, tun) = kernel(self.mtu);
        for (name, value) in self.parameters {
            namespace.set_parameter(&format!("net.ipv4.{name}"), value).unwrap();
        }
        let mut ours = Ours::new(tun, self.addresses().1, self.config.clone());
        if self.loss > 0.0 {
            ours.lose(self.loss);
        }
        (namespace, ours)
    }

    fn addresses(&self) -> (&'static str, &'static str) {
        if self.six { (KERNEL_6, OURS_6) } else { (KERNEL, OURS) }
    }

    /// The kernel gives us the file.
    fn receive(&self) -> Outcome {
        let (namespace, mut ours) = self.prepare();
        let address = at(self.addresses().0, 80);
        let file = octets(self.octets);
        let listener = namespace.run(|| http::listener(address, self.congestion)).unwrap();
        let serve = || http::serve_once(&listener, &file).unwrap();
        let (id, answer, said) = thread::scope(|scope| {
            let server = scope.spawn(|| namespace.run(serve).unwrap());
            let (id, answer) = http::fetch_with(&mut ours, address).unwrap();
            (id, answer, server.join().unwrap())
        });
        assert_eq!(blake3::hash(http::body(&answer)), blake3::hash(&file));
        self.outcome(&namespace, &ours, id, said)
    }

    /// We give the kernel the file.
    fn send(&self) -> Outcome {
        let (namespace, mut ours) = self.prepare();
        let address = at(self.addresses().1, 80);
        let file = octets(self.octets);
        let fetch = || http::fetch(address, self.congestion).unwrap();
        let (id, (answer, said)) = thread::scope(|scope| {
            let client = scope.spawn(|| namespace.run(fetch).unwrap());
            let id = http::serve_once_with(&mut ours, 80, &file).unwrap();
            (id, ours.joined(client))
        });
        assert_eq!(blake3::hash(http::body(&answer)), blake3::hash(&file));
        self.outcome(&namespace, &ours, id, said)
    }

    /// Gathers the reports of both sides, and checks the facts that hold for every meeting.
    fn outcome(&self, namespace: &Namespace, ours: &Ours, id: ConnectionId, said: String) -> Outcome {
        let read = |file: &str| namespace.run(|| fs::read_to_string(file).unwrap()).unwrap();
        let snmp = read("/proc/thread-self/net/snmp");
        let damaged = ["InErrs", "InCsumErrors"].map(|name| kernel_count(&snmp, "Tcp", name));
        assert_eq!(damaged, [0, 0], "{snmp}");
        let devices = read("/proc/thread-self/net/dev");
        let device = devices.lines().find_map(|line| line.trim().strip_prefix("tun0:")).unwrap();
        // Eight columns of the kernel's receiving, then octets, packets, errors and drops of its sending.
        assert_eq!(device.split_whitespace().nth(11), Some("0"), "the queue of the device was full");
        let counts = *ours.driver.counts();
        let wrong = [counts.bad_packet, counts.bad_segment, counts.not_taken, counts.too_long];
        assert_eq!(wrong, [0; 4], "{counts:?}");
        assert!(said.contains(self.congestion), "{said}");
        let connection = ours.connection(id);
        connection.check();
        let (stats, segment_size) = (*connection.stats(), connection.segment_size());
        let kernel_retransmits = kernel_count(&snmp, "Tcp", "RetransSegs");
        let netstat = read("/proc/thread-self/net/netstat");
        let timeouts = stats.timeouts + kernel_count(&netstat, "TcpExt", "TCPTimeouts");
        let probes = stats.tail_loss_probes + kernel_count(&netstat, "TcpExt", "TCPLossProbes");
        Outcome { stats, counts, segment_size, kernel_retransmits, timeouts, probes, said }
    }

    /// Both meetings without a loss. Unless a timer fires, because the machine stood still for longer than it, nothing
    /// is sent twice but probes of the tail.
    fn intact(&self) {
        for outcome in [self.receive(), self.send()] {
            let repeated = outcome.stats.retransmits + outcome.kernel_retransmits;
            assert!(repeated <= outcome.probes || outcome.timeouts > 0, "{outcome:?}");
            self.agrees(&outcome);
        }
    }

    /// Both meetings with losses: each direction loses as much as it should, and the sender repairs it, without waste
    /// unless a timer fires.
    fn lossy(&self) {
        for (outcome, kernel_sends) in [(self.receive(), true), (self.send(), false)] {
            let counts = outcome.counts;
            is_binomial(counts.lost_incoming, counts.received, self.loss);
            is_binomial(counts.lost_outgoing, counts.sent + counts.lost_outgoing, self.loss);
            let (lost, repaired) = if kernel_sends {
                (counts.lost_incoming, outcome.kernel_retransmits)
            } else {
                (counts.lost_outgoing, outcome.stats.retransmits)
            };
            // The sender has sent a few acknowledgments too, which are never repaired.
            assert!(repaired + 5 >= lost, "{outcome:?}");
            assert!(repaired <= 2 * lost || outcome.timeouts > 0, "{outcome:?}");
            self.agrees(&outcome);
        }
    }

    /// Asserts that, by the kernel's report, both sides agreed on the options that both have.
    fn agrees(&self, outcome: &Outcome) {
        let said: Vec<&str> = outcome.said.split_whitespace().collect();
        let off = |name: &str| self.parameters.contains(&(name, "0"));
        let timestamps = self.config.timestamps.is_some() && !off("tcp_timestamps");
        assert_eq!(said.contains(&"ts"), timestamps, "{}", outcome.said);
        assert_eq!(said.contains(&"sack"), self.config.sack && !off("tcp_sack"), "{}", outcome.said);
        let scaling = self.config.window_scaling && !off("tcp_window_scaling");
        assert_eq!(outcome.said.contains(" wscale:"), scaling, "{}", outcome.said);
        let headers = if self.six { 60 } else { 40 };
        let mss = (self.mtu - headers).min(self.config.mss);
        let options = if timestamps { 12 } else { 0 };
        assert_eq!(outcome.segment_size, u64::from(mss - options), "{}", outcome.said);
    }
}

/// The value called `name` in the lines of `group` of the kernel's statistics: one has the names, the next the values.
fn kernel_count(statistics: &str, group: &str, name: &str) -> u64 {
    let mut lines = statistics.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|one| one == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Asserts that `count` of `trials` lies within five standard deviations of the mean for probability `p`.
fn is_binomial(count: u64, trials: u64, p: f64) {
    let (mean, deviation) = (trials as f64 * p, (trials as f64 * p * (1.0 - p)).sqrt());
    assert!((count as f64 - mean).abs() <= 5.0 * deviation, "{count} of {trials}, where p is {p}");
}

const NO_TIMESTAMPS: (&str, &str) = ("tcp_timestamps", "0");
const NO_SACK: (&str, &str) = ("tcp_sack", "0");
const NO_SCALING: (&str, &str) = ("tcp_window_scaling", "0");

#[test]
fn todays_tcp() {
    let meeting = Meeting::new(Config::modern());
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}

#[test]
fn tcp_as_the_rfcs_have_it() {
    let meeting = Meeting::new(Config::default());
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}

#[test]
fn tcp_of_linux_2_4() {
    let meeting = Meeting::new(Config::linux_2_4());
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}

#[test]
fn a_kernel_without_timestamps() {
    let meeting = Meeting { parameters: &[NO_TIMESTAMPS], ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}

#[test]
fn a_kernel_without_sack() {
    let meeting = Meeting { parameters: &[NO_SACK], ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, octets: 2_000_000, ..meeting }.lossy();
}

#[test]
fn a_kernel_without_window_scaling() {
    let meeting = Meeting { parameters: &[NO_SCALING], ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}

#[test]
fn a_kernel_without_any_option() {
    let parameters = &[NO_TIMESTAMPS, NO_SACK, NO_SCALING];
    let meeting = Meeting { parameters, ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, octets: 2_000_000, ..meeting }.lossy();
}

#[test]
fn we_without_any_option() {
    let config = Config {
        recovery: Recovery::NewReno,
        sack: false,
        window_scaling: false,
        timestamps: None,
        receive_window: ReceiveWindow { size: Window::Octets(65_535), first: None },
        ..Config::default()
    };
    let meeting = Meeting::new(config);
    meeting.intact();
    Meeting { loss: 0.02, octets: 2_000_000, ..meeting }.lossy();
}

#[test]
fn small_packets() {
    let meeting = Meeting { mtu: 576, ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, octets: 2_000_000, ..meeting }.lossy();
}

#[test]
fn large_packets() {
    let config = Config { mss: 65_495, ..Config::modern() };
    Meeting { mtu: 65_535, octets: 20_000_000, ..Meeting::new(config) }.intact();
}

#[test]
fn over_ipv6() {
    let meeting = Meeting { six: true, ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}

#[test]
fn a_kernel_with_reno() {
    let meeting = Meeting { congestion: "reno", ..Meeting::new(Config::modern()) };
    meeting.intact();
    Meeting { loss: 0.02, ..meeting }.lossy();
}
