//! Changes while a link runs: of all of its stages, and all or nothing.

use std::num::NonZeroU64;

use super::*;

/// 8 ms a packet of 1000 octets, and a delay from which jitter of 20 ms may be taken, both ways.
const JITTER: &str = "[link.forward]\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\nqueue = \"9 kB\"\n\
                      [link.return]\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\njitter = \"20 ms\"\n";

fn shipped(name: &str) -> String {
    let path = format!("{}/../../scenarios/links/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn bps(bps: u64) -> Option<BitRate> {
    BitRate::from_bps(bps)
}

fn octets(octets: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(octets)
}

fn of(way: LinkDirection, change: Change) -> Change {
    Change { way: Some(way), ..change }
}

#[test]
fn a_change_that_is_refused_in_part_changes_nothing() {
    let mut link = link(JITTER, 1, 1);
    let (forward, back) = (link.settings(End::Terminal), link.settings(End::Hub));
    let short = Some(Span::from_millis(19));
    let everything = Change {
        rate: bps(8_000_000),
        delay: short,
        per: Probability::new(1.0),
        outage: Some(Span::from_secs(9)),
        ..Change::default()
    };
    // The return direction refuses the delay, and the forward direction has no jitter: neither changes, nor do other
    // settings of the change.
    for change in [everything.clone(), of(LinkDirection::Return, everything.clone())] {
        let sentence = link.change(at(0), &change).unwrap_err().to_string();
        let expected =
            "return: the delay is less than the jitter around it; it must be at least 0.020000000 s";
        assert_eq!(sentence, expected);
        assert_eq!((link.settings(End::Terminal), link.settings(End::Hub)), (forward, back));
        assert_eq!((link.outage(End::Terminal), link.outage(End::Hub)), (None, None));
    }
    link.enter(at(0), End::Terminal, Some(0), &[7; 1000]);
    assert_eq!(leave(&mut link, at(500)), [(at(108), TERMINAL, 7)]);
    // An earlier part of a change is not kept if a later part is refused: no queue in this direction has a limit.
    let change =
        of(LinkDirection::Return, Change { rate: bps(1000), queue: octets(5000), ..Change::default() });
    assert_eq!(link.change(at(500), &change), Err(ChangeError::NoneHas("queue")));
    assert_eq!(link.settings(End::Hub), back);
    // Forward alone takes all of it.
    let change = Change { per: None, outage: None, ..everything };
    assert_eq!(link.change(at(500), &of(LinkDirection::Forward, change)), Ok(()));
    link.enter(at(500), End::Terminal, Some(0), &[8; 1000]);
    assert_eq!(leave(&mut link, at(600)), [(at(500 + 1 + 19), TERMINAL, 8)]);
}

#[test]
fn a_limit_holds_for_what_enters() {
    let mut link = link(SLOW, 1, 1);
    let inside = |link: &mut Link, now: u64| {
        link.enter(at(now), End::Terminal, Some(0), &[0; 1000]);
        link.forward().dropped.packets
    };
    assert_eq!([0; 4].map(|now| inside(&mut link, now)), [0, 0, 0, 1]);
    link.change(at(0), &Change { queue: octets(4999), ..Change::default() }).unwrap();
    assert_eq!([0; 2].map(|now| inside(&mut link, now)), [1, 2]);
    link.change(at(0), &Change { queue: octets(1000), ..Change::default() }).unwrap();
    assert_eq!(link.settings(End::Terminal).queue, Some(1000));
    // The four leave as they would have; a packet has room when the last has been sent, at 32 ms.
    assert_eq!(leave(&mut link, at(31)), []);
    assert_eq!(inside(&mut link, 31), 3);
    assert_eq!(leave(&mut link, at(32)), []);
    assert_eq!(inside(&mut link, 32), 3);
    let times: Vec<Time> = leave(&mut link, at(1000)).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [108, 116, 124, 132, 140].map(at));
}

/// Returns the settings of a direction, in bit/s and milliseconds.
fn known(link: &Link, to: End) -> (Option<u64>, Option<u64>) {
    let WaySettings { rate, delay, .. } = link.settings(to);
    (rate.map(BitRate::as_bps), delay.map(Span::as_millis))
}

#[test]
fn every_kind_of_stage_shows_and_takes_what_it_has() {
    for (name, forward, back) in [
        ("geo", (Some(10_000_000), Some(270)), (Some(2_000_000), Some(270))),
        ("umts-384", (Some(384_000), Some(57)), (Some(32_000), Some(57))),
        ("sgls-115200", (Some(115_200), Some(100)), (Some(115_200), Some(100))),
        ("iridium-8", (Some(2400), Some(900)), (Some(2400), Some(900))),
        ("bgan", (None, Some(450)), (None, Some(450))),
    ] {
        let mut link = link(&shipped(name), 1, 1);
        assert_eq!((known(&link, End::Terminal), known(&link, End::Hub)), (forward, back), "{name}");
        let delay = Some(Span::from_millis(33));
        link.change(at(0), &of(LinkDirection::Return, Change { delay, ..Change::default() })).unwrap();
        assert_eq!(
            (known(&link, End::Terminal), known(&link, End::Hub)),
            (forward, (back.0, Some(33))),
            "{name}"
        );
        let rate = Change { rate: bps(64_000), ..Change::default() };
        if forward.0.is_none() {
            assert_eq!(link.change(at(0), &rate), Err(ChangeError::NoneHas("rate")), "{name}");
            continue;
        }
        assert_eq!(link.change(at(0), &of(LinkDirection::Forward, rate)), Ok(()), "{name}");
        assert_eq!(known(&link, End::Terminal), (Some(64_000), forward.1), "{name}");
        assert_eq!(known(&link, End::Hub), (back.0, Some(33)), "{name}");
    }
}

#[test]
fn a_delay_is_that_of_the_bearer_where_the_link_has_none_of_its_own() {
    let text = shipped("umts-384").replace("erasures = 0.1", "erasures = 0");
    let mut bearer = link(&text, 1, 1);
    let change = of(LinkDirection::Forward, Change { delay: Some(Span::ZERO), ..Change::default() });
    bearer.change(at(0), &change).unwrap();
    bearer.enter(at(9), End::Terminal, Some(0), &[1; 479]);
    // 12 PDUs in the interval from 10 to 20 ms.
    assert_eq!(leave(&mut bearer, at(30)), [(at(20), TERMINAL, 1)]);
    let named = Change { stage: Some("forward".into()), delay: Some(Span::from_secs(1)), ..change };
    bearer.change(at(30), &named).unwrap();
    assert_eq!(known(&bearer, End::Terminal).1, Some(0));
    let both = Change { rate: bps(400_000), ..Change::default() };
    let sentence = bearer.change(at(30), &both).unwrap_err().to_string();
    let expected = "bearer: the rate is no whole number of PDUs in an interval of this channel; 384 kbit/s and \
                    416 kbit/s are the nearest that it can have";
    assert_eq!(sentence, expected);
}

#[test]
fn a_timeline_says_its_rate_and_its_delay_itself() {
    let csv = std::env::temp_dir().join(format!("farcast-live-{}.csv", std::process::id()));
    std::fs::write(&csv, "time_s,rate_bit_per_s,delay_s\n0,1e6,0.1\n").unwrap();
    let text =
        format!("[link.forward]\nkind = \"timeline\"\ntimeline = \"{}\"\nqueue = \"2 kB\"\n", csv.display());
    let mut link = link(&text, 1, 1);
    std::fs::remove_file(&csv).unwrap();
    let rate = Change { rate: bps(1000), ..Change::default() };
    assert_eq!(link.change(at(0), &of(LinkDirection::Forward, rate)), Err(ChangeError::NoneHas("rate")));
    assert_eq!(known(&link, End::Terminal), (None, None));
    let queue = Change { queue: octets(1000), ..Change::default() };
    assert_eq!(link.change(at(0), &queue), Ok(()));
    for number in 0..2 {
        link.enter(at(0), End::Terminal, Some(0), &[number; 1000]);
    }
    assert_eq!(leave(&mut link, at(500)), [(at(108), TERMINAL, 0)]);
}
