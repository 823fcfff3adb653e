//! Packets of flows in a trace, compared with tshark and with a log of the same replication.

use std::fmt::Write as _;
use std::net::IpAddr;

use farcast_core::Time;
use farcast_core::stage::Frame;
use farcast_delivery::SenderEngine;
use farcast_mftp::{Codec, Message};
use farcast_sim::scenario::mftp::Mftp;
use farcast_sim::star::{FlowPacket, Observer, Star};
use farcast_sim::trace::{Trace, TraceConfig};
use farcast_sim::traffic::{Datagram, End, FlowMessage};

use super::beside;
use crate::trace::{read, tshark};
use crate::worlds::scenario;

/// Returns a scenario of two TCP transfers and two sources of datagrams beside a transfer to three receivers.
fn world() -> String {
    let tcp = "protocol = \"tcp\"\nsize = \"40 kB\"\n";
    let cbr = "protocol = \"cbr\"\nrate = \"50 kbit/s\"\nstop = \"1 s\"\n";
    let mut flows = String::new();
    for (name, kind) in [("down", tcp), ("up", tcp), ("tone", cbr), ("echo", cbr)] {
        let direction = if ["up", "echo"].contains(&name) { "return" } else { "forward" };
        write!(flows, "[[traffic]]\nname = \"{name}\"\ndirection = \"{direction}\"\n{kind}").unwrap();
    }
    beside(&flows)
}

const SETTINGS: [&str; 5] = [
    "receivers=3",
    "link.forward.per=0.05",
    "link.return.per=0.05",
    "link.forward.rate=1 Mbit/s",
    "link.return.rate=1 Mbit/s",
];

/// Observer that computes the expected line of tshark for each packet of a flow.
struct Witness<'a> {
    trace: &'a mut dyn Observer<Mftp>,
    lines: Vec<String>,
    /// Packets that terminals sent, and those that reached the hub.
    up: (u64, u64),
}

impl Witness<'_> {
    fn see(&mut self, at: Time, interface: &str, packet: &FlowPacket<'_>) {
        let ends = format!("{}|{}", packet.source, packet.destination);
        let at = format!("{}.{:09}", at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        self.lines.push(match packet.message {
            FlowMessage::Tcp(segment) => {
                let (ports, len) = ((segment.source_port, segment.destination_port), segment.payload.len);
                let octets = 20 + segment.header_len() + usize::from(len);
                format!(
                    "{at}|{interface}|{octets}|{ends}|1|{}|{}|{}|{len}|1|||",
                    ports.0, ports.1, segment.sequence.0
                )
            }
            FlowMessage::Datagram(Datagram { octets, .. }) => {
                let len = octets + 8;
                format!("{at}|{interface}|{}|{ends}|1||||||{len}|1|", octets + 28)
            }
        });
    }
}

impl Observer<Mftp> for Witness<'_> {
    fn sent(&mut self, at: Time, destination: std::net::SocketAddr, frame: &Frame<Message>) {
        self.trace.sent(at, destination, frame);
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        self.trace.answered(at, receiver, frame);
    }

    fn reached(&mut self, at: Time, receiver: u32, message: &Message) {
        self.trace.reached(at, receiver, message);
    }

    fn flow_sent(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        self.up.0 += u64::from(end == End::Terminal);
        self.see(at, if end == End::Hub { "sender" } else { "receivers" }, packet);
        self.trace.flow_sent(at, end, packet);
    }

    fn flow_reached(&mut self, at: Time, end: End, packet: &FlowPacket<'_>) {
        if end == End::Hub {
            self.up.1 += 1;
            self.see(at, "sender", packet);
        }
        self.trace.flow_reached(at, end, packet);
    }
}

/// Returns the trace file, the expected lines of flows, and the numbers of packets that terminals sent and that
/// arrived.
fn traced(payload_octets: u32) -> (Vec<u8>, Vec<String>, (u64, u64)) {
    let scenario = scenario(&world(), &SETTINGS);
    let config = TraceConfig { payload_octets, ..TraceConfig::default() };
    let world = scenario.star(1, 0).unwrap();
    let routes = world.sender.as_ref().map(SenderEngine::routes);
    let mut trace = Trace::new(Vec::new(), routes, Codec, &config).unwrap();
    let mut witness = Witness { trace: &mut trace, lines: Vec::new(), up: (0, 0) };
    let mut star = Star::new(world, Some(&mut witness)).unwrap();
    star.run();
    drop(star);
    let Witness { lines, up, .. } = witness;
    (trace.finish().unwrap(), lines, up)
}

#[test]
fn tshark_reads_packets_of_flows() {
    let (file, expected, _) = traced(u32::MAX);
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "ip.src",
        "ip.dst",
        "ip.checksum.status",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.seq_raw",
        "tcp.len",
        "tcp.checksum.status",
        "udp.length",
        "udp.checksum.status",
        "_ws.malformed",
    ];
    let lines = tshark("flows", &file, &fields);
    // The first flow's terminal is behind the three receivers.
    let terminals: Vec<IpAddr> = (3..7).map(|n| IpAddr::from([10, 64, 0, n])).collect();
    let of_flow = |line: &&String| {
        let ends: Vec<&str> = line.split('|').skip(3).take(2).collect();
        terminals.iter().any(|ip| ends.contains(&ip.to_string().as_str()))
    };
    let found: Vec<&String> = lines.iter().filter(of_flow).collect();
    assert!(found.len() > 150 && lines.len() > found.len() + 60, "{} of {}", found.len(), lines.len());
    assert_eq!(found.len(), expected.len());
    // tshark prints the checksum of TCP before the fields of UDP, which a segment does not have.
    for (found, expected) in found.iter().zip(&expected) {
        let blank = |line: &str| line.trim_end_matches('|').to_owned();
        assert_eq!(blank(found), blank(expected));
    }
}

#[test]
fn cut_packets_keep_their_headers_and_their_identity() {
    let (file, expected, (sent, reached)) = traced(64);
    let file = read(&file);
    let at_hub = |ip: [u8; 4]| ip == [10, 0, 0, 1];
    let (mut left, mut arrived, mut flows) = (Vec::new(), Vec::new(), 0);
    for packet in &file.packets {
        let octets = &packet.captured;
        let source: [u8; 4] = octets[12..16].try_into().unwrap();
        let (flow, tcp) = (source[3] >= 3 && source[0..3] == [10, 64, 0], octets[9] == 6);
        let to_flow = octets[16..19] == [10, 64, 0] && octets[19] >= 3;
        flows += u64::from(flow || to_flow);
        if flow || to_flow {
            let headers = if tcp { 20 + usize::from(octets[32] >> 4) * 4 } else { 28 };
            assert_eq!(octets.len(), headers + (packet.octets - headers).min(64));
            assert_eq!(usize::from(u16::from_be_bytes([octets[2], octets[3]])), packet.octets);
        }
        if flow {
            let id = (u16::from_be_bytes([octets[4], octets[5]]), octets[20..].to_vec());
            if file.interfaces[packet.interface] == "receivers" { &mut left } else { &mut arrived }.push(id);
        }
        assert_eq!(packet.outbound, at_hub(source) || file.interfaces[packet.interface] == "receivers");
    }
    assert_eq!((flows, left.len(), arrived.len()), (expected.len() as u64, sent as usize, reached as usize));
    // An arrived packet has the identification under which it left; a packet that only terminals have was lost.
    assert!(arrived.iter().all(|id| left.contains(id)) && arrived.len() < left.len());
}
