//! tshark reads what we write, and complains about nothing.
//!
//! It has no link type for RLC: PDUs travel in UDP datagrams with a header of its own, which says the mode and the size
//! of length indicators.

use core::fmt::Display;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::{encoded, properties, vectors};
use crate::format::Format;
use crate::pdu::{DataPdu, EndedBefore, LastEnd, Pdu, Reset, Status, SuperField};

/// The fields of a line but for the last, the text of the info column.
const FIELDS: [&str; 24] = [
    "_ws.malformed",
    "_ws.expert",
    "rlc.dc",
    "rlc.ctrl_pdu_type",
    "rlc.rsn",
    "rlc.hfni",
    "rlc.seq",
    "rlc.p",
    "rlc.he",
    "rlc.li.value",
    "rlc.data",
    "rlc.sufi.type",
    "rlc.sufi.lsn",
    "rlc.sufi.wsn",
    "rlc.sufi.sn",
    "rlc.sufi.l",
    "rlc.sufi.len",
    "rlc.sufi.fsn",
    "rlc.sufi.cw",
    "rlc.sufi.n",
    "rlc.sufi.sn_ack",
    "rlc.sufi.sn_mrw",
    "rlc.sufi.poll_sn",
    "_ws.col.Info",
];

/// A capture of raw IP packets (the pcap format, link type 101) that hold `pdus` in UDP.
fn capture(pdus: &[(Format, Vec<u8>)]) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    let words = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|w| file.extend(w.to_le_bytes()));
    words(&mut file, &[0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 101]);
    for (index, (format, pdu)) in pdus.iter().enumerate() {
        // Acknowledged mode, downlink, a terminal of its own, a bearer, the size of indicators, the PDU.
        let mut framed = b"umts-rlc\x03\x02\x04\x01\x05".to_vec();
        framed.extend((index as u32).to_be_bytes());
        framed.extend([6, 5, 7, format.indicator_octets() as u8, 1]);
        framed.extend(pdu);
        let (udp, ip) = (8 + framed.len() as u16, 28 + framed.len() as u16);
        words(&mut file, &[index as u32, 0, ip.into(), ip.into()]);
        let mut headers = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2].to_vec();
        headers[2..4].copy_from_slice(&ip.to_be_bytes());
        headers.extend([40_000, 40_001, udp, 0].iter().flat_map(|word: &u16| word.to_be_bytes()));
        file.extend(headers);
        file.extend(framed);
    }
    file
}

/// A line for each PDU.
fn tshark(pdus: &[(Format, Vec<u8>)]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=|"]);
    // SDUs are not joined: these PDUs do not follow each other.
    command.args(["--enable-heuristic", "rlc_udp", "-o", "rlc.perform_reassembly:FALSE"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    let (mut input, file) = (child.stdin.take().unwrap(), capture(pdus));
    // It writes while it reads: neither pipe may fill up.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(&file).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split('|').map(String::from).collect()).collect();
    assert_eq!(lines.len(), pdus.len());
    lines
}

/// Fields of a PDU that tshark must show, in order, all but the last.
#[derive(Default)]
struct Expected([Vec<String>; FIELDS.len() - 1]);

impl Expected {
    fn of(pdu: &Pdu<Vec<u8>>, format: Format) -> Self {
        let mut all = Self::default();
        match pdu {
            Pdu::Data(pdu) => all.data(pdu, format),
            Pdu::Status(report) => {
                all.put("rlc.dc", 0);
                all.put("rlc.ctrl_pdu_type", 0);
                all.report(report, usize::from(format.pdu_octets));
            }
            Pdu::Reset(Reset { acknowledges, rsn, hfni }) => {
                all.put("rlc.dc", 0);
                all.put("rlc.ctrl_pdu_type", if *acknowledges { 2 } else { 1 });
                all.put("rlc.rsn", u8::from(*rsn));
                all.put("rlc.hfni", hfni);
            }
        }
        all
    }

    fn put(&mut self, field: &str, value: impl Display + Copy) {
        let at = FIELDS.iter().position(|known| *known == field).unwrap();
        self.0[at].push(value.to_string());
    }

    fn data(&mut self, pdu: &DataPdu<Vec<u8>>, format: Format) {
        self.put("rlc.dc", 1);
        self.put("rlc.seq", pdu.sn);
        self.put("rlc.p", u8::from(pdu.poll));
        let (size, padding) = if format.pdu_octets > 126 { (2, 0x7FFF) } else { (1, 0x7F) };
        let mut indicators: Vec<usize> = Vec::new();
        if let Some(ended) = pdu.ended_before {
            indicators.push(if ended == EndedBefore::Exactly { 0 } else { 0x7FFB });
            // tshark shows the data of this indicator, which are none.
            self.put("rlc.data", "<MISSING>");
        }
        let mut octets = 0;
        for segment in &pdu.segments {
            octets += segment.data.len();
            if segment.ends && pdu.last_end == LastEnd::Indicator {
                indicators.push(octets);
            }
            self.put("rlc.data", hex(&segment.data).as_str());
        }
        let left = usize::from(format.pdu_octets) - 2 - size * indicators.len() - octets;
        if pdu.piggybacked.is_some() {
            indicators.push(padding - 1);
        } else if left >= size {
            indicators.push(padding);
        } else if left > 0 {
            // It takes the padding that nothing announces for data; the standard says to ignore it.
            self.put("rlc.data", "00");
        }
        let plain = if pdu.last_end == LastEnd::HeaderExtension { 2 } else { 0 };
        self.put("rlc.he", if indicators.is_empty() { plain } else { 1 });
        for indicator in indicators {
            self.put("rlc.li.value", indicator);
        }
        if let Some(report) = &pdu.piggybacked {
            self.report(report, left - size);
        }
    }

    fn report(&mut self, report: &Status, room: usize) {
        let mut bits = 4;
        for field in &report.fields {
            self.field(field);
            bits += field.bits();
        }
        let ended = matches!(report.fields.last(), Some(SuperField::Ack(_)));
        if !ended && bits < 8 * room {
            self.put("rlc.sufi.type", 0);
        }
    }

    fn field(&mut self, field: &SuperField) {
        let kind = match field {
            SuperField::Window(size) => {
                self.put("rlc.sufi.wsn", size);
                1
            }
            SuperField::Ack(sn) => {
                self.put("rlc.sufi.lsn", sn);
                2
            }
            SuperField::List(pairs) => {
                self.put("rlc.sufi.len", pairs.len());
                for (first, more) in pairs {
                    self.put("rlc.sufi.sn", first);
                    self.put("rlc.sufi.l", more);
                }
                3
            }
            // Where octets of a bitmap are not aligned, tshark shows others; its info column has the right ones.
            SuperField::Bitmap(bitmap) => {
                self.put("rlc.sufi.len", bitmap.octets.len() - 1);
                self.put("rlc.sufi.fsn", bitmap.first);
                4
            }
            SuperField::RelativeList(list) => {
                self.put("rlc.sufi.len", list.words.len());
                self.put("rlc.sufi.fsn", list.first);
                list.words.iter().for_each(|word| self.put("rlc.sufi.cw", word));
                5
            }
            SuperField::MoveWindow(window) => {
                self.put("rlc.sufi.len", if window.beyond_window { 0 } else { window.sns.len() });
                window.sns.iter().for_each(|sn| self.put("rlc.sufi.sn_mrw", sn));
                self.put("rlc.sufi.n", window.n_length);
                6
            }
            SuperField::MoveWindowAck { sn, n } => {
                self.put("rlc.sufi.n", n);
                self.put("rlc.sufi.sn_ack", sn);
                7
            }
            SuperField::Poll(sn) => {
                self.put("rlc.sufi.poll_sn", sn);
                8
            }
        };
        self.put("rlc.sufi.type", kind);
    }

    fn line(&self) -> Vec<String> {
        self.0.iter().map(|values| values.join(",")).collect()
    }
}

fn hex(octets: &[u8]) -> String {
    let digits = octets.iter().flat_map(|octet| [octet >> 4, octet & 0xF]);
    digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect()
}

/// Returns the numbers that the info column reports as missing, field by field: those that LIST and RLIST name, and
/// those that BITMAP does not name.
fn missing_in(info: &str, report: &Status) -> Vec<Vec<u16>> {
    let mut rest = info;
    // The text behind `from`, as far as it may be numbers.
    let mut next = |from: &str| {
        let (_, behind) = rest.split_once(from).unwrap_or_else(|| panic!("{from} in {info}"));
        let end = behind.find(|c: char| !(c.is_ascii_digit() || " ->".contains(c))).unwrap_or(behind.len());
        rest = &behind[end..];
        behind[..end].split_whitespace()
    };
    let number = |text: &str| text.parse::<u16>().unwrap();
    let run =
        |first: u16, last: u16| (0..=(last + 4096 - first) % 4096).map(move |step| (first + step) % 4096);
    let named = |field: &SuperField| match field {
        SuperField::List(_) => next(") - ")
            .flat_map(|item| {
                let (first, last) = item.split_once('-').unwrap_or((item, item));
                run(number(first), number(last))
            })
            .collect(),
        SuperField::Bitmap(bitmap) => {
            let arrived: Vec<_> = next("BITMAP=(").map(number).collect();
            let all = run(bitmap.first.get(), bitmap.first.plus(bitmap.len() - 1).get());
            all.filter(|sn| !arrived.contains(sn)).collect()
        }
        SuperField::RelativeList(_) => {
            let mut numbers: Vec<u16> = Vec::new();
            for item in next("RLIST=(") {
                match item.strip_prefix("->") {
                    Some(last) => numbers.extend(run(*numbers.last().unwrap(), number(last)).skip(1)),
                    None => numbers.push(number(item)),
                }
            }
            numbers
        }
        _ => Vec::new(),
    };
    report.fields.iter().map(named).collect()
}

#[test]
fn tshark_reads_what_we_write() {
    let mut runner = TestRunner::new_with_rng(
        proptest::test_runner::Config::default(),
        TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]),
    );
    let random = std::iter::repeat_with(|| properties::pdu().new_tree(&mut runner).unwrap().current());
    let mut pdus: Vec<_> = vectors::vectors().into_iter().map(|v| (v.format, v.pdu)).collect();
    pdus.extend(random.take(500));
    let octets: Vec<_> = pdus.iter().map(|(format, pdu)| (*format, encoded(pdu, *format).unwrap())).collect();
    let mut reports = 0;
    for (line, (format, pdu)) in tshark(&octets).iter().zip(&pdus) {
        let (info, fields) = line.split_last().unwrap();
        assert_eq!(fields, Expected::of(pdu, *format).line(), "{pdu:?}");
        let report = match pdu {
            Pdu::Status(report) => Some(report),
            Pdu::Data(pdu) => pdu.piggybacked.as_ref(),
            Pdu::Reset(_) => None,
        };
        if let Some(report) = report {
            let ours: Vec<Vec<u16>> = report
                .fields
                .iter()
                .map(|field| {
                    let runs = field.missing();
                    runs.flat_map(|(first, count)| (0..count).map(move |step| first.plus(step).get()))
                        .collect()
                })
                .collect();
            assert_eq!(missing_in(info, report), ours, "{info}");
            reports += 1;
        }
    }
    assert!(reports > 150, "{reports} reports");
}

/// Tshark complains about PDUs that we refuse, so its silence above means something.
#[test]
fn tshark_complains_about_what_makes_no_sense() {
    let format = Format::new(42);
    let bad: [&[u8]; 4] = [
        &[0x80, 0x01, 0xF8],             // a reserved indicator
        &[0x80, 0x01, 0xC8],             // one that leads behind the end
        &[0x03, 0x00],                   // a LIST of length 0
        &[0x05, 0x10, 0x05, 0x40, 0x00], // code words without an end
    ];
    let octets = bad.map(|octets| {
        let mut octets = octets.to_vec();
        octets.resize(42, 0);
        (format, octets)
    });
    for (line, (_, octets)) in tshark(&octets).iter().zip(&octets) {
        assert_ne!(line[1], "", "{octets:?}");
        assert!(crate::wire::decode(octets, format).is_err(), "{octets:?}");
    }
}
