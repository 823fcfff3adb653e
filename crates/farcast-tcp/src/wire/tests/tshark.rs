//! tshark reads our segments, and complains about none.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::{hosts, properties, whole};
use crate::Segment;

const FIELDS: [&str; 18] = [
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.hdr_len",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.urgent_pointer",
    "tcp.len",
    "tcp.checksum.status",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.sack_perm",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "_ws.malformed",
];

/// A capture of raw IP packets (the pcap format, link type 101).
fn capture(segments: &[Vec<u8>]) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    let words = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|w| file.extend(w.to_le_bytes()));
    words(&mut file, &[0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 101]);
    for (second, segment) in segments.iter().enumerate() {
        let len = 20 + segment.len() as u32;
        words(&mut file, &[second as u32, 0, len, len]);
        let mut header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        file.extend(header);
        file.extend(segment);
    }
    file
}

/// A line for each packet.
fn tshark(file: &[u8]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=|"]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "tcp.analyze_sequence_numbers:FALSE"]);
    // The ports are arbitrary: everything above TCP counts as data, for any protocol.
    command.args(["-d", "tcp.port==0-65535,data"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    child.stdin.take().unwrap().write_all(file).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

/// The line that a segment must make.
fn line(segment: &Segment) -> String {
    let mut line = std::format!(
        "{}|{}|{}|{}|{}|0x{:04x}|{}|{}|{}|1|",
        segment.source_port,
        segment.destination_port,
        segment.sequence.0,
        segment.acknowledgment.0,
        segment.header_len(),
        segment.flags.0,
        segment.window,
        segment.urgent,
        segment.payload.len,
    );
    let options = &segment.options;
    let optional = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    let sack = |edge: fn(&crate::SackBlock) -> u32| {
        let edges: Vec<String> =
            options.sack.as_slice().iter().map(|block| edge(block).to_string()).collect();
        edges.join(",")
    };
    let permitted = if options.sack_permitted { "0402" } else { "" };
    write!(
        line,
        "{}|{}|{permitted}|{}|{}|{}|{}|",
        optional(options.mss.map(u32::from)),
        optional(options.window_scale.map(u32::from)),
        optional(options.timestamps.map(|t| t.value)),
        optional(options.timestamps.map(|t| t.echo)),
        sack(|block| block.left.0),
        sack(|block| block.right.0),
    )
    .unwrap();
    line
}

#[test]
fn tshark_reads_what_we_write() {
    let mut runner = TestRunner::new_with_rng(
        proptest::test_runner::Config::default(),
        TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]),
    );
    let segments: Vec<_> =
        std::iter::repeat_with(|| properties::segment().new_tree(&mut runner).unwrap().current())
            .take(300)
            .collect();
    let octets: Vec<_> = segments.iter().map(|(segment, data)| whole(segment, hosts(), data)).collect();
    let lines = tshark(&capture(&octets));
    assert_eq!(lines.len(), segments.len());
    for (read, (written, _)) in lines.iter().zip(&segments) {
        assert_eq!(*read, line(written));
    }
}
