//! Default limits of queues, where a scenario has none.

use farcast_core::Span;
use farcast_scenario::links::DefaultQueue;
use farcast_scenario::{Document, Links};
use farcast_sim::outcome::FlowCounts;
use farcast_sim::scenario::TreeScenario;

use crate::worlds::{BGAN, PIPE, document, once, scenario};

/// Flow of twice the link's capacity, in packets of 1000 octets.
const FLOOD: &str = r#"
time_limit = "20 s"
[[traffic]]
name = "flood"
protocol = "cbr"
rate = "2 Mbit/s"
payload = "972 B"
stop = "10 s"
[link.forward]
rate = "1 Mbit/s"
delay = "400 ms"
[link.return]
rate = "1 Mbit/s"
delay = "100 ms"
"#;

#[test]
fn a_flood_waits_no_longer_than_a_full_queue_takes() {
    let all = once(FLOOD, &[]);
    let FlowCounts::Cbr(counts) = &all.flows[0].counts else { panic!("{all:?}") };
    // 500 ms there and back at 1 Mbit/s are 62 packets of 8 ms, behind which one leaves 496 ms later; then 400 ms of
    // propagation. One enters each 4 ms, so the queue is full after half a second.
    let longest = 0.896;
    let p95 = counts.delay_p95_s.unwrap();
    assert!(longest - 0.008 < p95 && p95 <= longest, "{counts:?}");
    // At 9.992 s 1249 packets have been sent and 62 are queued; the last one, 4 ms later, finds no room.
    assert_eq!((counts.sent, counts.received), (2500, 1249 + 62));
    assert_eq!((all.flows[0].dropped, all.flows[0].lost), (2500 - counts.received, 0));

    let all = once(FLOOD, &["link.forward.queue=unlimited"]);
    let FlowCounts::Cbr(counts) = &all.flows[0].counts else { panic!("{all:?}") };
    // All 2500 packets leave one after the other, the last at 20 s; later arrivals do not count.
    assert!(counts.delay_p95_s.unwrap() > 9.0 && all.flows[0].dropped == 0, "{counts:?}");
}

#[test]
fn a_scenario_has_the_queues_that_it_has_where_it_is_emulated() {
    let groups = "[[groups]]\nname = \"near\"\nreceivers = 1\n\
                  [[groups]]\nname = \"far\"\nreceivers = 1\ndelay = \"300 ms\"\n";
    let text = PIPE.replace("receivers = 10\n", "") + groups;
    let settings = ["link.forward.rate=8 Mbit/s", "link.return.rate=80 kbit/s"];
    // 250 + 250 + 300 ms at 1,000,000 and 10,000 octets a second.
    let queue =
        |way: &str, octets| DefaultQueue { stage: way.into(), key: format!("link.{way}.queue"), octets };
    let expected = [queue("forward", 800_000), queue("return", 15_000)];
    assert_eq!(scenario(&text, &settings).default_queues(), expected);
    let document = document(&text, &settings).unwrap();
    let mut links = Links::read(&mut document.root()).unwrap();
    assert_eq!(links.default_queues(Span::from_millis(300)), expected);
}

#[test]
fn the_scenarios_that_ship_say_what_their_queues_hold() {
    let shipped = [
        BGAN,
        include_str!("../../../../scenarios/inmarsat.toml"),
        include_str!("../../../../scenarios/iridium.toml"),
        include_str!("../../../../scenarios/sgls.toml"),
        include_str!("../../../../scenarios/sgls-mdp.toml"),
        include_str!("../../../../scenarios/tcp-geo.toml"),
        include_str!("../../../../scenarios/umts.toml"),
    ];
    for text in shipped {
        assert_eq!(scenario(text, &[]).default_queues(), [], "{text}");
    }
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let files = std::fs::read_dir(here).unwrap().map(|entry| entry.unwrap().path());
    let toml = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    // Trees have a reader of their own.
    let trees = [include_str!("../../../../scenarios/pgm-satellite.toml")];
    for text in trees {
        let document = Document::parse("tree.toml", text).unwrap();
        assert_eq!(TreeScenario::read(&document).unwrap().default_queues(), [], "{text}");
    }
    assert_eq!(toml.count(), shipped.len() + trees.len());
}
