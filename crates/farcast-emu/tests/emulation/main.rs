//! An emulation as a library, with a real program behind it (root).

use std::process::Command;

use farcast_emu::emulation::{Emulation, Plan};
use farcast_scenario::{Document, Links};

const LINK: &str = "\
[link.forward]
rate = \"10 Mbit/s\"
delay = \"30 ms\"
[link.return]
rate = \"1 Mbit/s\"
delay = \"20 ms\"
";

#[test]
fn every_packet_of_ping_is_counted() {
    let document = Document::parse("link.toml", LINK).unwrap();
    let links = Links::read(&mut document.root()).unwrap();
    let emulation = Emulation::start(Plan::between_two(links, 1), None).unwrap();
    let near = &emulation.terminals()[0];
    let mut ping = Command::new("ping");
    ping.args(["-q", "-c", "5", "-i", "0.1", &emulation.hub().address().to_string()]);
    let status = near.namespace().spawn(&mut ping).unwrap().wait().unwrap();
    assert!(status.success());
    let view = emulation.handle().look().unwrap();
    assert_eq!(view.back.counts.delivered.packets, 5);
    let report = emulation.finish().unwrap();
    for way in [&report.forward, &report.back] {
        // 56 octets, and headers of ICMP and IP.
        assert_eq!((way.counts.entered.packets, way.counts.delivered.octets), (5, 5 * 84));
        assert_eq!((way.counts.lost.packets, way.counts.dropped.packets), (0, 0));
    }
    assert_eq!((report.lateness.packets, report.terminals.len(), report.seed), (10, 1, 1));
    // The round trip is 50 ms, of which 1 % is less than a millisecond.
    assert!((report.lateness.limit_s - 0.001).abs() < 1e-9);
    assert!(report.duration_s > 0.4);
}
