//! tshark reads the vectors, and what we write, as they are meant, and complains about nothing.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::String;
use std::vec::Vec;

use super::vectors::{Vector, all};
use crate::multilink::{Format, Header};

/// A capture of PPP frames (the pcap format, link type 9), a second apart.
fn capture<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    let words = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|w| file.extend(w.to_le_bytes()));
    words(&mut file, &[0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 9]);
    for (second, frame) in frames.enumerate() {
        let len = frame.len() as u32;
        words(&mut file, &[second as u32, 0, len, len]);
        file.extend(frame);
    }
    file
}

/// Returns the output of tshark for a capture.
fn tshark(file: &[u8], format: Format, how: &[&str]) -> String {
    let mut command = Command::new("tshark");
    let short = std::format!("mp.short_seqno:{}", format == Format::Short);
    command.args(["-r", "-", "-o", &short]).args(how);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    child.stdin.take().unwrap().write_all(file).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The line of fields that a frame with this header must make.
fn line(format: Format, header: Header) -> String {
    let (long, short) = match format {
        Format::Long => (std::format!("{}", header.sequence), String::new()),
        Format::Short => (String::new(), std::format!("{}", header.sequence)),
    };
    std::format!("{}|{}|{long}|{short}||", u8::from(header.begins), u8::from(header.ends))
}

const FIELDS: [&str; 18] = [
    "-T",
    "fields",
    "-E",
    "separator=|",
    "-E",
    "occurrence=f",
    "-e",
    "mp.first",
    "-e",
    "mp.last",
    "-e",
    "mp.seq",
    "-e",
    "mp.sseq",
    "-e",
    "_ws.malformed",
    "-e",
    "_ws.expert.message",
];

fn agrees(format: Format, frames: &[(Vec<u8>, Header)]) -> String {
    let file = capture(frames.iter().map(|(frame, _)| &frame[..]));
    let read = tshark(&file, format, &FIELDS);
    let meant: Vec<String> = frames.iter().map(|(_, header)| line(format, *header)).collect();
    assert_eq!(read.lines().collect::<Vec<_>>(), meant);
    let words = tshark(&file, format, &["-V"]);
    assert!(!words.contains("Malformed"), "{words}");
    words
}

#[test]
fn tshark_reads_the_vectors_as_they_are_meant() {
    for format in [Format::Long, Format::Short] {
        let vectors = all().into_iter().filter(|vector| vector.format == format);
        let frames: Vec<_> = vectors.map(|Vector { frame, header, .. }| (frame, header)).collect();
        let words = agrees(format, &frames);
        // The whole packet, and with the long format the one of three fragments as well, is read to its end.
        let packets = words.matches("Dst Port: 9").count();
        assert_eq!(packets, if format == Format::Long { 2 } else { 1 }, "{words}");
    }
}

#[test]
fn tshark_reads_what_we_write() {
    for format in [Format::Long, Format::Short] {
        let frames: Vec<_> = (0..200u64)
            .map(|k| {
                // Three fragments a packet, numbers all over the range, no two packets of one number.
                let sequence = format.wrap(k * 7 + u64::from(format.largest()) - 600);
                let header = Header { begins: k % 3 == 0, ends: k % 3 == 2, sequence };
                let mut frame = std::vec![0xFF, 0x03, 0x00, 0x3D];
                frame.extend(header.encode(format));
                frame.extend([0x00, 0x21, 0x45, k as u8]);
                (frame, header)
            })
            .collect();
        agrees(format, &frames);
    }
}
