//! The format by hand-worked octets, and by the output of tshark and tcpdump.

use std::process::{Command, Stdio};

use farcast_core::Span;
use farcast_core::random::RandomStream;

use super::*;

/// Returns the packet of an empty IPv4 datagram.
fn datagram(interface: u32, at: u64) -> Packet<'static> {
    let captured = &[0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0x66, 0xD6, 10, 0, 0, 1, 10, 64, 0, 1];
    let direction = Direction::Inbound;
    Packet { interface, at: Time::from_nanos(at), octets: 20, direction, captured, comment: "" }
}

/// The high and the low word of the last packet's timestamp, whose options are its flags alone.
fn timestamp(file: &[u8], captured: usize) -> (u32, u32) {
    let block = file.len() - (28 + captured.next_multiple_of(4) + 8 + 4 + 4);
    let word = |at: usize| u32::from_le_bytes(file[block + at..block + at + 4].try_into().unwrap());
    assert_eq!(word(0), 6);
    (word(12), word(16))
}

/// A disk that is full after this many octets.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let taken = octets.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_interface_is_described_as_the_format_has_it() {
    let mut file = Writer::new(Vec::new());
    assert_eq!(file.interface("abc", ""), 0);
    let written = file.finish().unwrap();
    // Written out by hand from the tables of the format's draft.
    let expected = [
        &[1, 0, 0, 0, 40, 0, 0, 0][..],
        &[228, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 3, 0, b'a', b'b', b'c', 0],
        &[9, 0, 1, 0, 9, 0, 0, 0],
        &[0, 0, 0, 0, 40, 0, 0, 0],
    ];
    assert_eq!(written, expected.concat());
}

#[test]
fn a_section_and_a_packet_are_written_as_the_format_has_them() {
    let mut file = Writer::starting_at(Vec::new(), 1 << 32);
    file.section("f", "");
    file.interface("", "");
    let captured = &[1, 2, 3];
    let at = Time::from_nanos(5);
    file.packet(&Packet {
        interface: 0,
        at,
        octets: 9,
        direction: Direction::Outbound,
        captured,
        comment: "c",
    });
    let expected = [
        // Section: magic, version 1.0, no length, application.
        &[0x0A, 0x0D, 0x0D, 0x0A, 40, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0][..],
        &[255; 8],
        &[4, 0, 1, 0, b'f', 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0],
        // Interface: link type, snap length, resolution.
        &[1, 0, 0, 0, 32, 0, 0, 0, 228, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0],
        // Packet: interface, time, lengths, octets, flags, comment.
        &[6, 0, 0, 0, 56, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0],
        &[1, 2, 3, 0, 2, 0, 4, 0, 2, 0, 0, 0, 1, 0, 1, 0, b'c', 0, 0, 0, 0, 0, 0, 0, 56, 0, 0, 0],
    ];
    assert_eq!(file.finish().unwrap(), expected.concat());
}

#[test]
fn times_count_from_the_epoch_and_saturate() {
    for (epoch, at, expected) in [
        (0, 7, (0, 7)),
        (1 << 40, (1 << 33) + 3, ((1 << 8) + 2, 3)),
        (u64::MAX, 1, (u32::MAX, u32::MAX)),
        (1, u64::MAX, (u32::MAX, u32::MAX)),
    ] {
        let mut file = Writer::starting_at(Vec::new(), epoch);
        file.interface("i", "");
        file.packet(&datagram(0, at));
        assert_eq!(timestamp(&file.finish().unwrap(), 20), expected, "{epoch} and {at}");
    }
}

#[test]
fn what_a_reader_would_not_take_is_refused() {
    let mut file = Writer::new(Vec::new());
    file.interface("only", "");
    file.packet(&datagram(1, 0));
    let error = file.finish().unwrap_err();
    let told = "a packet of interface 1, of 1 that are described: describe it first";
    assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidInput, told));

    for (octets, fits) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let mut file = Writer::new(Vec::new());
        file.interface("only", "");
        file.packet(&Packet { captured: &vec![0; octets], ..datagram(0, 0) });
        assert_eq!(file.finish().is_ok(), fits, "{octets}");
    }
}

#[test]
fn after_an_error_nothing_more_is_written() {
    // The interface takes 40 octets, a packet 64.
    for (room, packets) in [(0, 0), (39, 0), (40 + 64, 2), (40 + 64 + 63, 2)] {
        let mut file = Writer::new(Disk(room));
        file.interface("only", "");
        (0..packets).for_each(|at| file.packet(&datagram(0, at)));
        assert_eq!(file.finish().err().unwrap().kind(), io::ErrorKind::StorageFull, "{room}");
    }
    let mut file = Writer::new(Disk(40 + 64));
    file.interface("only", "");
    file.packet(&datagram(0, 1));
    assert_eq!(file.finish().ok().unwrap().0, 0);
}

#[test]
fn long_texts_are_cut_between_characters() {
    let mut file = Writer::new(Vec::new());
    // The two octets of the last character would be the 65,535th and the next.
    file.section("", &("x".repeat(65_534) + "é"));
    let written = file.finish().unwrap();
    assert_eq!(u16::from_le_bytes([written[26], written[27]]), 65_534);
    assert_eq!(written.len(), 24 + 4 + 65_536 + 4 + 4);
}

/// Returns the output of a program with `file` as its input. The program is in the Debian package of its name.
fn printed(program: &str, args: &[&str], file: &[u8]) -> String {
    let mut command = Command::new(program);
    let pipes = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap_or_else(|error| {
        panic!(
            "{program}: {error}; this test needs the Debian package {program}, which scripts/setup installs"
        )
    });
    let mut stdin = child.stdin.take().unwrap();
    let file = file.to_vec();
    // It answers while it reads: both pipes must be served at once.
    let feeder = std::thread::Builder::new().spawn(move || stdin.write_all(&file)).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    feeder.join().unwrap().unwrap_or_else(|error| panic!("{program} did not read on: {error}; {said}"));
    String::from_utf8(output.stdout).unwrap()
}

/// An IPv4 datagram of `len` octets (RFC 791), whose protocol 253 is for experiments (RFC 3692).
fn ipv4(id: u16, len: u16) -> Vec<u8> {
    let mut octets = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 64, 0, 1];
    octets[2..4].copy_from_slice(&len.to_be_bytes());
    octets[4..6].copy_from_slice(&id.to_be_bytes());
    octets.resize(usize::from(len), 0xA5);
    octets
}

/// A packet of a file, as a reader should see it.
struct Expected {
    time: String,
    id: u16,
    interface: u32,
    direction: Direction,
    octets: usize,
    kept: usize,
    comment: &'static str,
}

/// A file with 500 packets of two interfaces, and these packets.
fn five_hundred() -> (Vec<u8>, Vec<Expected>) {
    // 2026-11-21T12:00:00Z and a little.
    let epoch = 1_795_262_400_000_000_123;
    let mut stream = RandomStream::derive(6, &[1]);
    let mut file = Writer::starting_at(Vec::new(), epoch);
    file.section("farcast", "a test");
    file.interface("near", "the terminal");
    file.interface("far", "the hub");
    let (mut at, mut packets) = (Time::ZERO, Vec::new());
    for id in 0..500 {
        at += Span::from_nanos(stream.below(3_000_000_000));
        let interface = stream.below(2) as u32;
        let whole = ipv4(id, 20 + stream.below(1481) as u16);
        let kept = if stream.chance(0.2) { whole.len().min(68) } else { whole.len() };
        let direction = if stream.chance(0.5) { Direction::Inbound } else { Direction::Outbound };
        let comment = if id % 50 == 7 { "lost: forward: errors" } else { "" };
        let octets = whole.len();
        let captured = &whole[..kept];
        file.packet(&Packet { interface, at, octets: octets as u32, direction, captured, comment });
        let (seconds, rest) =
            ((epoch + at.as_nanos()) / 1_000_000_000, (epoch + at.as_nanos()) % 1_000_000_000);
        let time = format!("{seconds}.{rest:09}");
        packets.push(Expected { time, id, interface, direction, octets, kept, comment });
    }
    (file.finish().unwrap(), packets)
}

#[test]
fn tshark_reads_what_we_write() {
    const FIELDS: [&str; 9] = [
        "ip.id",
        "frame.time_epoch",
        "frame.interface_id",
        "frame.interface_name",
        "frame.interface_description",
        "frame.packet_flags_direction",
        "frame.len",
        "frame.cap_len",
        "frame.comment",
    ];
    let (file, packets) = five_hundred();
    let mut args = vec!["-r", "-", "-T", "fields", "-E", "separator=|"];
    args.extend(FIELDS.iter().flat_map(|field| ["-e", field]));
    let line = |packet: &Expected| {
        let Expected { time, id, interface, octets, kept, comment, .. } = packet;
        let (name, about) = [("near", "the terminal"), ("far", "the hub")][*interface as usize];
        // The draft's §4.3.1: 01 is inbound, 10 outbound.
        let way = if packet.direction == Direction::Inbound { "0x00000001" } else { "0x00000002" };
        format!("0x{id:04x}|{time}|{interface}|{name}|{about}|{way}|{octets}|{kept}|{comment}")
    };
    let expected: Vec<String> = packets.iter().map(line).collect();
    assert_eq!(printed("tshark", &args, &file).lines().collect::<Vec<_>>(), expected);
}

/// With `-v` it prints a line for each IPv4 header, and others that begin with a blank.
#[test]
fn tcpdump_reads_what_we_write() {
    let (file, packets) = five_hundred();
    let args = ["-r", "-", "-nn", "-v", "-tt", "--time-stamp-precision=nano"];
    let text = printed("tcpdump", &args, &file);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(lines.len(), packets.len());
    for (line, Expected { time, id, octets, .. }) in lines.iter().zip(&packets) {
        let begin = format!("{time} IP (tos 0x0, ttl 64, id {id}, offset 0, ");
        let rest = line.strip_prefix(&begin).unwrap_or_else(|| panic!("no {begin:?} in {line}"));
        let length = rest.split(", length ").nth(1).and_then(|rest| rest.split([',', ')']).next());
        assert_eq!(length, Some(octets.to_string().as_str()), "{line}");
    }
}
