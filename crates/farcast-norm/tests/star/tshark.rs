//! Messages of NORM's engines as tshark reads them: a dissector that is independent of farcast.
//!
//! Of the FEC schemes, tshark 4.0 decodes payload ids of 129, and ignores those of 5. It decodes scheme 2 and streams
//! wrongly, so they are not tested here but against NRL's library.

use std::process::Command;

use farcast_core::BitRate;
use farcast_delivery::SenderEngine;
use farcast_norm::message::Fec;
use farcast_norm::{Codec, Pacing, SenderConfig};
use farcast_sim::star::{Cut, Star};
use farcast_sim::trace::{Trace, TraceConfig};

use crate::{RECEIVERS, around, sender};

/// Fields that are read of each packet, in this order. Of a field that an extension or a request repeats, the first
/// counts.
const FIELDS: [&str; 8] = [
    "norm.version",
    "norm.type",
    "norm.source_id",
    "norm.ack.source",
    "norm.nack.server",
    "norm.nack.form",
    "norm.fec_encoding_id",
    "_ws.malformed",
];

/// Returns a trace of a transfer of a file with a name, and its number of packets.
fn traced(config: SenderConfig) -> (Vec<u8>, u64) {
    let codec = Codec { fec: config.fec };
    let world = around(config, false, Cut::Whole, 1);
    let routes = world.sender.as_ref().map(SenderEngine::routes);
    let whole = TraceConfig { payload_octets: u32::MAX, ..TraceConfig::default() };
    let mut trace = Trace::new(Vec::new(), routes, codec, &whole).unwrap();
    let mut star = Star::new(world, Some(&mut trace)).unwrap();
    star.run();
    assert_eq!(star.groups()[0].incomplete(), 0);
    let packets = trace.packets();
    (trace.finish().unwrap(), packets)
}

/// Returns the fields that tshark reads in a file, a line of [`FIELDS`] for each packet.
fn read(name: &str, file: &[u8]) -> Vec<Vec<String>> {
    let path = format!("{}/norm-{name}.pcapng", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, file).unwrap();
    let mut command = Command::new("tshark");
    command.args([
        "-r",
        &path,
        "-d",
        "udp.port==6003,norm",
        "-T",
        "fields",
        "-E",
        "separator=|",
        "-E",
        "occurrence=f",
    ]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('|').map(String::from).collect()).collect()
}

/// Asserts the fields of a message of each type (RFC 5740 §4): its source and addressee.
fn assert_sound(line: &[String], fec: Fec) {
    let [version, kind, source, acknowledged, requested, form, scheme, malformed] = line else {
        panic!("{line:?}")
    };
    assert_eq!((version.as_str(), malformed.as_str()), ("1", ""), "{line:?}");
    let is_sender = source == "0.0.0.1";
    let is_receiver = (2..RECEIVERS + 2).any(|n| *source == format!("0.0.0.{n}"));
    let scheme_is_said = *scheme == fec.id().to_string();
    let is_right = match kind.as_str() {
        "1" | "2" => is_sender && scheme_is_said,
        // Among the commands, tshark decodes a scheme only in FLUSH and REPAIR_ADV.
        "3" => is_sender && (scheme.is_empty() || scheme_is_said),
        "4" => {
            is_receiver
                && requested == "0.0.0.1"
                && ["1", "2", "3"].contains(&form.as_str())
                && scheme_is_said
        }
        "5" => is_receiver && acknowledged == "0.0.0.1",
        _ => false,
    };
    assert!(is_right, "{line:?}");
}

#[test]
fn tshark_reads_it() {
    let cc = Pacing::NormCc { least: BitRate::from_bps(20_000).unwrap() };
    for fec in [Fec::ReedSolomon8, Fec::SmallBlock] {
        for (pacing, unicast) in [(Pacing::Fixed, false), (Pacing::Fixed, true), (cc, false), (cc, true)] {
            let name = format!("{}-{}-{unicast}", fec.id(), pacing == cc);
            let mut config = SenderConfig { fec, pacing, unicast, ..sender() };
            config.objects[0].info = b"file".to_vec();
            let (file, packets) = traced(config);
            let lines = read(&name, &file);
            assert_eq!(lines.len() as u64, packets);
            for line in &lines {
                assert_sound(line, fec);
            }
            let of = |kind: &str| lines.iter().filter(|line| line[1] == kind).count();
            // 200 segments and repairs; each receiver acknowledges, and several have asked.
            let [info, data, commands, requests, acks] = ["1", "2", "3", "4", "5"].map(of);
            assert!(info >= 1 && data > 200 && commands >= 2, "{name}: {info}, {data}, {commands}");
            assert!(requests >= 2 && acks >= RECEIVERS as usize, "{name}: {requests}, {acks}");
        }
    }
}
