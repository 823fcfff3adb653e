//! Advice on settings that cannot work over the links: given where simulations show that it helps, and nowhere else.

use std::fs;

use farcast_core::BitRate;
use farcast_delivery::Forecasting as _;
use farcast_sim::advice::{Naming, over_return};
use farcast_sim::scenario::{Scenario, TreeScenario};

use crate::worlds::{THIN, document, once, scenario};

/// A BGAN bearer, for whose return receivers contend.
const SHARED: &str = r#"
receivers = 100
time_limit = "20 min"
[protocol]
file = "1 MB"
rate = "300 kbit/s"
[link.forward]
kind = "bgan"
per = 0.01
[link.return]
kind = "bgan"
"#;

fn advice(text: &str, settings: &[&str]) -> Vec<String> {
    scenario(text, settings).advice(Naming::Keys)
}

/// Asserts that the only advice is this sentence.
fn assert_advice(text: &str, settings: &[&str], sentence: &str) {
    assert_eq!(advice(text, settings), [sentence], "{settings:?}");
}

fn assert_silent(text: &str, settings: &[&str]) {
    assert_eq!(advice(text, settings), [""; 0], "{settings:?}");
}

#[test]
fn shipped_scenarios_need_none() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let document = document(&fs::read_to_string(&path).unwrap(), &[]).unwrap();
        if !TreeScenario::is_one(&document) {
            assert_eq!(Scenario::read(&document).unwrap().advice(Naming::Keys), [""; 0], "{path:?}");
            read += 1;
        }
    }
    assert!(read >= 7, "{read}");
}

#[test]
fn registrations_of_many_at_once() {
    const TAKES: &str = "1,000 receivers would register at once, with 116 kB, and link.return carries 8 kB a second: that \
                         takes at least 14 s; ";
    let tells = |settings: &[&str], change: &str| assert_advice(THIN, settings, &format!("{TAKES}{change}"));
    let parity = "set protocol.parity = \"auto\", or set protocol.return_rate = \"64 kbit/s\"";
    tells(&["protocol.parity=0"], parity);
    tells(&["protocol.start_receivers=1000"], "leave out protocol.start_receivers");
    tells(&["protocol.start_after=3 s"], "leave out protocol.start_after");
    tells(&["protocol.late_entry=false"], "leave out protocol.late_entry");
    tells(&["protocol.pass_wait=fixed"], "set protocol.pass_wait = \"draft\"");
    tells(&["protocol.preset=draft"], "set protocol.preset = \"farcast\"");
    tells(&["protocol.rate=max"], "set protocol.rate = \"2 Mbit/s\"");
    assert_silent(THIN, &[]);
    assert_silent(THIN, &["receivers=100", "protocol.start_after=3 s"]);
    // A wide return carries them, and a transfer that begins with known receivers has none.
    assert_silent(THIN, &["protocol.start_after=3 s", "link.return.rate=10 Mbit/s"]);
    assert_silent(THIN, &["protocol.setup=done", "link.forward.per=0"]);
}

#[test]
fn requests_of_many_at_once() {
    assert_advice(
        THIN,
        &["receivers=300", "protocol.start_receivers=300"],
        "with a loss of 1 % about 238 of 300 receivers would ask for repair after each block, every 998 ms, and \
         link.return takes at least 4.1 s for that; leave out protocol.start_receivers",
    );
    let unlimited = advice(THIN, &["protocol.group=open_unlimited"]);
    assert!(unlimited[0].ends_with("; leave out protocol.group"), "{unlimited:?}");
    assert_silent(THIN, &["receivers=300", "protocol.start_receivers=300", "link.forward.per=1e-5"]);
}

#[test]
fn repair_without_parity() {
    let tells = |settings: &[&str]| {
        assert_advice(
            THIN,
            &[&["receivers=100"], settings].concat(),
            "with a loss of 1 % one or more of 100 receivers lose 63 % of all segments, and without parity each of these is \
             sent again; set protocol.parity = \"auto\"",
        );
    };
    tells(&["protocol.parity=0"]);
    tells(&["protocol.name=norm", "protocol.parity=0"]);
    tells(&["protocol.name=mdp", "protocol.parity=0"]);
    assert_silent(THIN, &["receivers=20", "protocol.parity=0"]);
    assert_silent(THIN, &["receivers=100", "protocol.parity=0", "link.forward.per=0"]);
}

#[test]
fn parity_ahead_of_requests() {
    let mdp = |settings: &[&str]| advice(THIN, &[&["protocol.name=mdp", "receivers=100"], settings].concat());
    assert_eq!(
        mdp(&[]),
        [
            "with a loss of 1 % one or more of 100 receivers lack something of nearly all of the blocks, and ask for it; set \
          protocol.parity_ahead = 3, so that parity comes before anybody asks"
        ]
    );
    assert_eq!(mdp(&["protocol.parity_ahead=3"]), [""; 0]);
    assert_eq!(mdp(&["link.forward.per=1e-4"]), [""; 0]);
    let pgm = advice(THIN, &["protocol.name=pgm"]);
    assert!(pgm[0].contains("set protocol.parity_ahead = 3,"), "{pgm:?}");
    // Under congestion control the source has no parity.
    assert_silent(THIN, &["protocol.name=pgm", "protocol.rate_control=pgmcc"]);
    // NORM's receivers ask little where they do not contend.
    assert_silent(THIN, &["protocol.name=norm"]);
    let norm = |settings: &[&str]| {
        advice(SHARED, &[&["protocol.name=norm", "protocol.rate=238 kbit/s"], settings].concat())
    };
    let tells = "set protocol.expected_loss = 0.116 and protocol.group_size = 100, so that";
    assert!(norm(&[])[0].contains(tells), "{:?}", norm(&[]));
    assert!(norm(&["protocol.group_size=100"])[0].contains("set protocol.expected_loss = 0.116, so that"));
    assert_eq!(norm(&["protocol.group_size=100", "protocol.expected_loss=0.116"]), [""; 0]);
}

#[test]
fn datagrams_that_fit_a_block() {
    const WHOLE: &str = "a datagram of 1500 B takes 5 blocks of 375 B of link.forward, and is lost with any part of them; at \
                         this rate they take 375 kbit/s, and link.forward carries 300 kbit/s; ";
    let few = ["receivers=20", "link.forward.per=0"];
    let tells = |settings: &[&str], change: &str| {
        assert_advice(
            SHARED,
            &[&few, settings].concat(),
            &format!("{WHOLE}{change}, so that each fits one block"),
        );
    };
    tells(&[], "set protocol.dtu_size = \"288 B\"");
    tells(
        &["protocol.name=norm"],
        "set protocol.segment_size = \"298 B\" and protocol.rate = \"280 kbit/s\"",
    );
    tells(
        &["protocol.name=one-way"],
        "set protocol.symbol_size = \"318 B\" and protocol.rate = \"280 kbit/s\"",
    );
    let with = |settings: &[&str]| advice(SHARED, &[&few, settings].concat());
    assert_eq!(with(&["protocol.dtu_size=288 B"]), [""; 0]);
    assert_eq!(with(&["protocol.rate=240 kbit/s"]), [""; 0]);
    assert_eq!(with(&["link.forward.packing=shared"]), [""; 0]);
    // Options are named as a user gives them.
    let options = scenario(SHARED, &[&few[..], &["protocol.name=norm"]].concat()).advice(Naming::Options);
    assert!(options[0].contains("; give --segment-size 298 and --rate \"280 kbit/s\", so"), "{options:?}");
    // PGM keeps room for the parity that other advice may add.
    let pgm = with(&["protocol.name=pgm", "protocol.round_trip=2 s"]);
    assert!(pgm[0].contains("set protocol.segment_size = \"287 B\" and protocol.rate = \"270 kbit/s\""));
}

#[test]
fn a_return_for_which_many_contend() {
    let fits = ["protocol.dtu_size=288 B"];
    let contend = "receivers contend for link.return, which carries at most 18 of their messages a second; set \
                   protocol.return_rate = \"14 kbit/s\", so that the sender need not find that out";
    assert_advice(SHARED, &fits, contend);
    assert_silent(SHARED, &[&fits[..], &["receivers=20"]].concat());
    assert_silent(SHARED, &[&fits[..], &["protocol.return_rate=14 kbit/s"]].concat());
    assert_silent(SHARED, &[&fits[..], &["link.return.access=ideal"]].concat());
    let long = "confirming 1,000 receivers takes at least 54 s over link.return, which carries at most 18 messages a second";
    assert_eq!(advice(SHARED, &[&fits[..], &["receivers=1000"]].concat()), [contend, long]);
}

#[test]
fn confirmations_that_take_long() {
    let long =
        "confirming 10,000 receivers takes at least 2 min over link.return, which carries 8 kB a second";
    assert_advice(THIN, &["receivers=10000"], long);
    // The one who sends knows the rate alone, and no link.
    let config = scenario(THIN, &["protocol.return_rate=64 kbit/s"]).sender().unwrap().forecast();
    let rate = |bps| BitRate::from_bps(bps).unwrap();
    let told = |receivers, bps| over_return(&config, receivers, rate(bps), Naming::Options);
    assert_eq!(told(10_000, 64_000), [long.replace("link.return", "the return")]);
    assert_eq!(told(10_000, 1_000_000), [""; 0]);
    assert_eq!(told(1_000, 64_000), [""; 0]);
}

#[test]
fn answers_that_take_longer_than_receivers_expect() {
    let pgm = ["protocol.name=pgm", "protocol.rate=230 kbit/s", "receivers=5", "link.forward.per=0.001"];
    assert_advice(
        SHARED,
        &pgm,
        "an answer and what follows it take 1.9 s over these links, and receivers expect 500 ms and ask again; set \
         protocol.round_trip = \"2 s\"",
    );
    assert_silent(SHARED, &[&pgm[..], &["protocol.round_trip=2 s"]].concat());
    assert_silent(SHARED, &[&pgm[..], &["link.forward.per=0"]].concat());
}

/// Simulates a transfer without and with the changes that its advice names, and asserts that they save a tenth of the
/// time or more.
fn assert_helps(text: &str, settings: &[&str], changes: &[&str]) {
    let told = advice(text, settings).join("\n");
    let named = |change: &&str| {
        let (key, value) = change.split_once('=').unwrap();
        told.contains(&format!("{key} = {value}")) || told.contains(&format!("{key} = \"{value}\""))
    };
    assert!(changes.iter().all(named), "{changes:?}: {told}");
    let time = |settings: &[&str]| once(text, settings).completion_time_s;
    let (before, after) = (time(settings), time(&[settings, changes].concat()));
    let after = after.unwrap_or_else(|| panic!("{settings:?} {changes:?} does not end"));
    assert!(before.is_none_or(|before| after < before * 0.9), "{settings:?}: {before:?}, then {after}");
}

#[test]
fn advice_helps() {
    assert_helps(THIN, &["receivers=300", "protocol.parity=0"], &["protocol.parity=auto"]);
    assert_helps(THIN, &["protocol.name=mdp"], &["protocol.parity_ahead=3"]);
    assert_helps(THIN, &["protocol.name=pgm", "protocol.group_size=1000"], &["protocol.parity_ahead=3"]);
    let mftp = ["protocol.dtu_size=288 B", "protocol.return_rate=14 kbit/s"];
    assert_helps(SHARED, &[], &mftp);
    let norm = ["segment_size=298 B", "rate=280 kbit/s", "expected_loss=0.03", "group_size=100"];
    let norm = norm.map(|change| format!("protocol.{change}"));
    assert_helps(SHARED, &["protocol.name=norm"], &norm.each_ref().map(String::as_str));
    let few = ["protocol.name=pgm", "receivers=20", "link.forward.per=0.001"];
    assert_helps(SHARED, &few, &["protocol.round_trip=2 s"]);
}
