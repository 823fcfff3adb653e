//! Messages of PGM's engines, as tshark reads them: a dissector that knows nothing of farcast.

use std::process::Command;

use farcast_core::{BitRate, Message as _, Time};
use farcast_pgm::cc::CcConfig;
use farcast_pgm::{Delivering, Grouping, Message, ReceiverConfig, wire};
use farcast_testkit::{Link, Log, Setup};

use crate::common::{
    Session, files, group, hears_messages, messages, ms, receiver, receiver_address, say, source,
};

/// Fields that are read of each packet, in this order.
const FIELDS: [&str; 6] =
    ["pgm.hdr.type", "_ws.expert.message", "pgm.spm.sqn", "pgm.spm.trail", "pgm.nak.sqn", "_ws.malformed"];

/// Returns a capture of everything in a log as raw IPv4 packets (pcap, link type 101), and the messages in it.
fn capture(log: &Log<Message>) -> (Vec<u8>, Vec<Message>) {
    let mut file = Vec::new();
    let words = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 101];
    file.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
    let mut said = Vec::new();
    for departure in &log.departures {
        let mut datagram = Vec::new();
        wire::encode(&departure.message, 0, &mut datagram);
        datagram.resize(departure.message.wire_len(0), 7);
        wire::finish(&mut datagram);
        let from = if departure.from == 0 { source() } else { receiver_address(departure.from as u32 - 1) };
        let (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) = (from.ip(), departure.to.ip()) else {
            panic!()
        };
        let len = datagram.len() as u16 + 28;
        let nanos = departure.at.since(Time::ZERO).as_nanos();
        let stamps =
            [(nanos / 1_000_000_000) as u32, (nanos / 1000 % 1_000_000) as u32, len.into(), len.into()];
        file.extend(stamps.iter().flat_map(|word| word.to_le_bytes()));
        file.extend([0x45, 0]);
        file.extend(len.to_be_bytes());
        // Identification, no fragment, TTL, UDP, no checksum.
        file.extend([0, 0, 0, 0, 16, 17, 0, 0]);
        file.extend(from.octets());
        file.extend(to.octets());
        file.extend(
            [group().port(), departure.to.port(), len - 20, 0].iter().flat_map(|word| word.to_be_bytes()),
        );
        file.extend(datagram);
        said.push(departure.message.clone());
    }
    (file, said)
}

/// Returns the lines that tshark prints for a file: [`FIELDS`] of each packet.
fn read(name: &str, file: &[u8]) -> Vec<Vec<String>> {
    let path = format!("{}/pgm-{name}.pcap", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, file).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-r", &path, "-d", "udp.port==3056,pgm", "-o", "pgm.check_checksum:TRUE", "-T", "fields"]);
    command.args(["-E", "separator=|", "-E", "occurrence=f"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap_or_else(|error| {
        panic!("tshark: {error}; this test needs the Debian package tshark, which scripts/setup installs")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('|').map(String::from).collect()).collect()
}

/// Asserts that tshark reads the messages of a session as they are meant.
fn assert_read(name: &str, session: Session) {
    let mut session = session.run();
    let (file, said) = capture(&session.net.take_log());
    let lines = read(name, &file);
    assert_eq!(lines.len(), said.len());
    let mut kinds = [0; 5];
    for (line, message) in lines.iter().zip(&said) {
        use farcast_pgm::Body;
        let [kind, expert, sqn, trail, nak, malformed] = &line[..] else { panic!("{line:?}") };
        assert_eq!((malformed.as_str(), expert.as_str()), ("", ""), "{line:?} {message:?}");
        let number =
            |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok().map(farcast_pgm::Sqn);
        match &message.body {
            Body::Spm(said) => {
                kinds[0] += 1;
                assert_eq!(
                    (kind.as_str(), number(sqn), number(trail)),
                    ("0x00", Some(said.sqn), Some(said.trail)),
                    "{line:?}"
                );
            }
            Body::Data(said) => {
                kinds[1] += 1;
                // tshark uses the field names of SPMs for the fields that data share with them.
                assert_eq!((number(sqn), number(trail)), (Some(said.sqn), Some(said.trail)), "{line:?}");
            }
            Body::Nak(said) => {
                kinds[2] += 1;
                assert_eq!(number(nak), Some(said.sqn), "{line:?}");
            }
            Body::Ack(_) => {
                kinds[3] += 1;
                assert_eq!(kind, "0x0d", "{line:?}");
            }
            // It knows no SPMR.
            Body::Spmr => kinds[4] += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(kinds[..3].iter().all(|&count| count > 0), "{name}: {kinds:?}");
}

#[test]
fn tshark_reads_files() {
    let lossy = Link::lossy(ms(50), 0.1);
    assert_read("files", Session::new("files", Setup::plain(1), files(&[60, 20], 3), 3, lossy));
    let mut config = files(&[60, 20], 3);
    config.parity = Some(Grouping { size: 8, ahead: 1, on_demand: true });
    assert_read("parity", Session::new("parity", Setup::plain(1), config, 3, Link::lossy(ms(50), 0.2)));
    let mut config = files(&[100], 2);
    config.cc = Some(CcConfig::default());
    config.pace.rate = BitRate::from_bps(10_000_000).unwrap();
    let mut session = Session::empty("cc", Setup::plain(1), config, lossy);
    for n in 0..2 {
        session.add(n, ReceiverConfig { address: Some(receiver_address(n).ip()), ..receiver(n) });
    }
    assert_read("cc", session);
}

#[test]
fn tshark_reads_messages_and_their_fragments() {
    let mut session = Session::empty("messages", Setup::plain(1), messages(), Link::lossy(ms(50), 0.1));
    session.add(0, hears_messages(0, Delivering::Ordered));
    say(&mut session, ms(300), ms(30), &[100, 3000, 5000].repeat(10));
    assert_read("messages", session);
}
