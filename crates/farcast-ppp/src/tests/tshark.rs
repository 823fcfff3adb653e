//! tshark reads the vectors, and what we write, as they are meant, and complains about nothing.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::String;
use std::vec::Vec;

use super::vectors::{Vector, all};
use crate::framing::PROTOCOL_LCP;
use crate::lcp::{Code, Packet, echo};
use crate::{Deframer, Fcs, Framing};

/// PPP without flags and escapes, as `LINKTYPE_PPP_HDLC` has it.
const HDLC: u32 = 50;
/// The same behind an octet that tells the direction: `LINKTYPE_PPP_WITH_DIR`.
pub(super) const DIRECTED: u32 = 204;
/// The first of the link types whose meaning the user gives: here, octets as they are on the line.
const USER: u32 = 147;

/// A capture in the pcap format.
fn capture(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let header = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, link];
    let mut file: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
    for frame in frames {
        let len = frame.len() as u32;
        file.extend([0, 0, len, len].into_iter().flat_map(u32::to_le_bytes));
        file.extend(frame);
    }
    file
}

/// Returns the output of tshark for a capture, with these arguments besides.
pub(super) fn run(link: u32, fcs: Fcs, frames: &[Vec<u8>], arguments: &[&str]) -> String {
    let check = if fcs == Fcs::Fcs16 { "ppp.fcs_type:16-Bit" } else { "ppp.fcs_type:32-Bit" };
    let raw = "uat:user_dlts:\"User 0 (DLT=147)\",\"ppp_raw_hdlc\",\"0\",\"\",\"0\",\"\"";
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-o", check, "-o", raw]).args(arguments);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    child.stdin.take().unwrap().write_all(&capture(link, frames)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the output of tshark for a capture without complaints, a text for each frame.
fn tshark(link: u32, fcs: Fcs, frames: &[Vec<u8>]) -> Vec<String> {
    let text = run(link, fcs, frames, &["-V"]);
    assert!(!text.contains("Malformed") && !text.contains("Expert Info"), "{text}");
    text.split("\nFrame ").map(Into::into).collect()
}

/// A frame of a line without flags and escapes, its check sequence left in place.
fn bare(line: &[u8]) -> Vec<u8> {
    let mut octets = line.iter().filter(|&&octet| octet != 0x7E);
    let mut bare = Vec::new();
    while let Some(&octet) = octets.next() {
        bare.push(if octet == 0x7D { octets.next().expect("a pair") ^ 0x20 } else { octet });
    }
    bare
}

/// Returns the texts that tshark must show for each vector.
fn meant(name: &str) -> &'static [&'static str] {
    match name {
        "echo_request" => &["Echo Request (9)", "Identifier: 7 ", "Length: 8", "Magic Number: 0x127e347d"],
        "echo_reply" => &["Echo Reply (10)", "Identifier: 7 ", "Length: 8", "Magic Number: 0x56789abc"],
        "configure_request" => &[
            "Configuration Request (1)",
            "Maximum Receive Unit: 1500",
            "Async Control Character Map: 0x00000000",
            "Magic Number: 0x127e347d",
            "Protocol Field Compression",
            "Address and Control Field Compression",
        ],
        "terminate_request" => &["Termination Request (5)", "Identifier: 2 ", "Data: 646f6e65"],
        "protocol_reject" => &["Protocol Reject (8)", "Rejected Protocol: IPv6 Control Protocol (0x8057)"],
        "ipv4_compressed" | "ipv4_fcs32" => {
            &["Source Address: 10.0.0.3", "Destination Port: 5402", "Data: 7e7d7e"]
        }
        other => panic!("{other} is unknown here"),
    }
}

fn reads(link: u32, fcs: Fcs, vectors: &[Vector], frames: &[Vec<u8>]) {
    let read = tshark(link, fcs, frames);
    assert_eq!(read.len(), vectors.len());
    for (vector, text) in vectors.iter().zip(read) {
        let good = "FCS Status: Good";
        for meant in meant(vector.name).iter().chain([&good]) {
            assert!(text.contains(meant), "{}: no {meant:?} in {text}", vector.name);
        }
    }
}

#[test]
fn the_vectors_are_what_they_are_meant_to_be() {
    for fcs in [Fcs::Fcs16, Fcs::Fcs32] {
        let vectors: Vec<Vector> = all().into_iter().filter(|vector| vector.framing.fcs == fcs).collect();
        let frames: Vec<_> = vectors.iter().map(|vector| bare(&vector.line)).collect();
        reads(HDLC, fcs, &vectors, &frames);
        // And with their flags and escapes, which tshark takes off.
        let lines: Vec<_> = vectors.iter().map(|vector| vector.line.clone()).collect();
        reads(USER, fcs, &vectors, &lines);
    }
}

#[test]
fn what_we_write_has_good_check_sequences() {
    let unescaped = Framing { accm: 0, ..Framing::UNCONFIGURED };
    for framing in [Framing::UNCONFIGURED, Framing::default(), Framing { fcs: Fcs::Fcs32, ..unescaped }] {
        let mut data = Vec::new();
        Packet { code: Code::DiscardRequest, identifier: 3, data: &[0x7E; 9] }.emit(&mut data);
        let packets = [echo(Code::EchoRequest, 255, 0x7D7E_1113).to_vec(), data];
        let lines = packets.map(|packet| {
            let mut line = Vec::new();
            framing.encode(PROTOCOL_LCP, &packet, true, &mut line);
            assert!(Deframer::new(framing, 100).next(&mut &line[..]).is_some());
            line
        });
        let read = tshark(HDLC, framing.fcs, &lines.map(|line| bare(&line)));
        for (text, meant) in read.iter().zip(["Magic Number: 0x7d7e1113", "Discard Request (11)"]) {
            assert!(text.contains("FCS Status: Good") && text.contains(meant), "{text}");
        }
    }
}
