//! Schema of scenarios: keys, their effects, and error messages.

use farcast_scenario::document::Origin;
use farcast_sim::outcome::Replication;
use farcast_sim::scenario::Scenario;

use crate::worlds::{
    BGAN, PIPE, document, dtus_per_pass, error, naks_sent, once, passes, replications, scenario, transfer,
};

/// Returns the keys and values that are in effect.
fn shown(text: &str, settings: &[&str]) -> Vec<(String, String, Origin)> {
    let document = document(text, settings).unwrap();
    Scenario::read(&document).unwrap();
    document.keys_read()
}

fn value(shown: &[(String, String, Origin)], key: &str) -> String {
    let found = shown.iter().find(|(name, ..)| name == key);
    found.unwrap_or_else(|| panic!("{key} is not in {shown:?}")).1.clone()
}

#[test]
fn bgan_links_have_the_recommended_defaults() {
    // The text has only the kinds of both links.
    let text = PIPE
        .replace("[link.forward]\ndelay = \"250 ms\"\nloses = \"data\"", "[link.forward]\nkind = \"bgan\"")
        .replace("[link.return]\ndelay = \"250 ms\"", "[link.return]\nkind = \"bgan\"");
    let shown = shown(&text, &[]);
    for (key, expected) in [
        ("link.forward.frame", "\"80 ms\""),
        ("link.forward.fec_blocks", "8"),
        ("link.forward.fec_block_octets", "375"),
        ("link.forward.pdu_payloads", "[251, 108, 217]"),
        ("link.forward.pdu_overheads", "[9, 7, 7]"),
        ("link.forward.packing", "\"packet_aligned\""),
        ("link.forward.loss_unit", "\"pdu\""),
        ("link.forward.drop_rest_of_block", "false"),
        ("link.forward.propagation", "\"450 ms\""),
        ("link.return.frame", "\"80 ms\""),
        ("link.return.c_slots", "4"),
        ("link.return.r_slots", "3"),
        ("link.return.propagation", "\"450 ms\""),
        ("link.return.processing", "\"100 ms\""),
        ("link.return.backoff_frames", "12"),
        // A packet of the bearer takes whole FEC blocks, so the pace counts whole blocks.
        ("protocol.granule", "\"375 B\""),
        ("protocol.srt.restart_on_nak", "false"),
    ] {
        assert_eq!(value(&shown, key), expected, "{key}");
    }
    let given =
        |(key, _, origin): &&(String, String, Origin)| key.starts_with("link.") && *origin != Origin::Default;
    let given: Vec<&str> = shown.iter().filter(given).map(|(key, ..)| key.as_str()).collect();
    assert_eq!(given, ["link.forward.kind", "link.return.kind"]);
}

#[test]
fn the_shipped_scenario_is_the_studys() {
    let shown = shown(BGAN, &[]);
    for (key, expected) in [
        ("receivers", "20"),
        ("protocol.file", "\"1 MB\""),
        ("protocol.dtu_size", "\"526 B\""),
        ("protocol.block_size", "488"),
        ("protocol.rate", "\"300 kbit/s\""),
        ("protocol.pass_wait", "\"fixed\""),
        ("protocol.nak_timing", "\"end_of_first_pass\""),
        ("protocol.srt.n", "4"),
        ("protocol.srt.restart_on_nak", "false"),
        ("link.return.backoff_frames", "12"),
    ] {
        assert_eq!(value(&shown, key), expected, "{key}");
    }
    // The keys for the study's open questions can be set.
    for setting in [
        "protocol.file=1024000 B",
        "link.forward.packing=shared",
        "link.forward.loss_unit=packet",
        "link.forward.loss_unit=fec_block",
        "protocol.spread=0 s",
        "link.return.c_slots=3",
        "link.return.r_slots=2",
        "link.return.backoff_frames=8",
        "link.return.backoff_doubling=3",
        "protocol.nak_timing=each_block",
        "protocol.srt.restart_on_nak=true",
    ] {
        let (key, value) = setting.split_once('=').unwrap();
        let shown = self::shown(BGAN, &[setting]);
        let (_, effect, origin) = shown.iter().find(|(name, ..)| name == key).unwrap();
        assert_eq!(*origin, Origin::Setting, "{setting}");
        assert!(effect.trim_matches('"') == value, "{setting}: {effect}");
    }
}

/// Returns the share of DTUs, of 2000, that one receiver loses in pass 1, which pass 2 repeats.
fn lost_of(settings: &[&str]) -> f64 {
    // One request brings NAKs of at most 64 blocks.
    let own = ["receivers=1", "protocol.file=1 MB", "protocol.block_size=200"];
    let settings: Vec<&str> = own.into_iter().chain(settings.iter().copied()).collect();
    let all = once(PIPE, &settings);
    assert_eq!((transfer(&all).incomplete, dtus_per_pass(&all)[0]), (0, 2000));
    dtus_per_pass(&all).get(1).copied().unwrap_or(0) as f64 / 2000.0
}

#[test]
fn every_loss_process_loses_about_what_it_should() {
    // 2000 DTUs of 4.544 ms take 9.088 s. The tolerance is four standard deviations of independent losses, more for
    // bursts.
    let near = |settings: &[&str], expected: f64, tolerance: f64| {
        let lost = lost_of(settings);
        assert!((lost - expected).abs() <= tolerance, "{settings:?}: {lost}, {expected} expected");
    };
    near(&[], 0.0, 0.0);
    near(&["link.forward.per=5 %"], 0.05, 4.0 * (0.05f64 * 0.95 / 2000.0).sqrt());
    // 568 octets a DTU: 1 - (1 - 1e-5)^4544.
    let of_bits = 1.0 - (1.0 - 1e-5f64).powi(4544);
    near(&["link.forward.ber=0.00001"], of_bits, 4.0 * (of_bits / 2000.0).sqrt());
    let of_frames = 1.0 - (1.0 - 1e-5f64).powi(8000);
    near(
        &["link.forward.ber=0.00001", "link.forward.ber_frame=1000 B"],
        of_frames,
        4.0 * (of_frames / 2000.0).sqrt(),
    );
    // A share p / (p + r) of frames is in the bad state; bursts of mean 1 / r multiply the variance by (2 - p - r) / (p
    // + r).
    let (p, r) = (0.02, 0.2);
    let share = p / (p + r);
    let variance = share * (1.0 - share) * (2.0 - p - r) / (p + r) / 2000.0;
    let bursts = ["link.forward.gilbert_elliott.p=0.02", "link.forward.gilbert_elliott.r=0.2"];
    near(&bursts, share, 4.0 * variance.sqrt());
    let halved: Vec<&str> =
        bursts.iter().copied().chain(["link.forward.gilbert_elliott.loss_bad=0.5"]).collect();
    near(&halved, share / 2.0, 4.0 * variance.sqrt());
    // Sojourns of 9.09 DTUs in the bad state and 90.9 in the good one: the same share, decided by time.
    let timed = ["link.forward.gilbert_elliott.good=413 ms", "link.forward.gilbert_elliott.bad=41.3 ms"];
    let share: f64 = 41.3 / 454.3;
    // Two-sided correlation of e^-t/37.5 ms between DTUs, 16.5 DTUs in all.
    near(&timed, share, 4.0 * (share * (1.0 - share) * 16.5 / 2000.0).sqrt());
    // Every fifth frame.
    near(&["link.forward.error_vector=00001"], 0.2, 0.0);
    // A tenth of the time, a second a period: 220 of 2200, rounded at nine edges.
    let scheduled =
        ["start=0.5 s", "length=100 ms", "period=1 s"].map(|s| format!("link.forward.outages.{s}"));
    near(&scheduled.each_ref().map(String::as_str), 9.0 * 22.0 / 2000.0, 9.0 / 2000.0);
    // Outages of 45 ms, one in 450 ms and its length on average: 1 / 11 of the time. They number 18 with a deviation
    // below 5.
    let random = ["between=450 ms", "length=45 ms"].map(|s| format!("link.forward.outages.{s}"));
    near(&random.each_ref().map(String::as_str), 1.0 / 11.0, 4.0 * (2.0 * 18.0f64).sqrt() * 9.9 / 2000.0);
    // Two processes lose every frame that either loses.
    near(
        &["link.forward.error_vector=00001", "link.forward.per=0.1"],
        0.28,
        4.0 * (0.08f64 * 0.9 / 2000.0).sqrt(),
    );
}

#[test]
fn receivers_that_have_joined_before_all_take_part() {
    for group in ["protocol.group=open_limited", "protocol.group=closed", "protocol.group=open_unlimited"] {
        for engines in ["engines=false", "engines=true"] {
            for proofs in ["protocol.proofs=false", "protocol.proofs=true"] {
                let all = once(PIPE, &["receivers=30", "link.forward.per=0.05", group, engines, proofs]);
                assert_eq!(transfer(&all).incomplete, 0, "{group} {engines} {proofs}");
            }
        }
    }
}

#[test]
fn what_happens_beyond_the_time_limit_is_not_counted() {
    // 60 DTUs of 4.544 ms: after 100 ms 22 or 23 have left, and no receiver, 250 ms away, has anything.
    for engines in ["engines=false", "engines=true"] {
        let all = once(PIPE, &["time_limit=100 ms", engines]);
        assert_eq!(transfer(&all).incomplete, 10);
        assert!((22..=23).contains(&dtus_per_pass(&all)[0]), "{all:?}");
    }
}

#[test]
fn recorded_losses_come_from_a_file_a_line_for_each_receiver() {
    let path = std::env::temp_dir().join(format!("farcast-vectors-{}", std::process::id()));
    // Receiver 0 loses the first of 60 DTUs and receiver 1 the last two; receiver 2 has the first line again.
    let lines = [format!("1{}", "0".repeat(59)), format!("{}11", "0".repeat(58))];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let file = format!("link.forward.error_vector_file={}", path.display());
    let settings = ["receivers=3", &file, "link.forward.error_vector_repeats=false"];
    for engines in ["engines=false", "engines=true"] {
        let all = once(PIPE, &[&settings[..], &[engines]].concat());
        assert_eq!((dtus_per_pass(&all), naks_sent(&all)), (&[60, 3][..], 3), "{all:?}");
        let times = times(&all);
        assert!(times[0] < times[1] && times[0].to_bits() == times[2].to_bits(), "{times:?}");
    }
    // On the return path each receiver has its own line: receiver 0 loses its first frame, which is its only NAK.
    let back = format!("link.return.error_vector_file={}", path.display());
    let lossy = [&settings[..], &[&back, "link.return.error_vector_repeats=false"]].concat();
    assert!(naks_sent(&once(PIPE, &lossy)) > 3);
    std::fs::remove_file(&path).unwrap();
    assert!(error(PIPE, &[&file]).starts_with(&format!("--set {file}: link.forward.error_vector_file: ")));
    assert!(error(PIPE, &["link.forward.error_vector=01x"]).contains("an error vector holds 'x'"));
}

#[test]
fn every_kind_of_link_carries_a_transfer() {
    let outage = ["link.forward.kind=hold", "link.forward.start=0.1 s", "link.forward.length=5 s"];
    let without_delay = PIPE.replace("[link.forward]\ndelay = \"250 ms\"", "[link.forward]");
    // Frames that the link holds back leave when the outage is over.
    let late = once(&without_delay, &outage);
    assert_eq!(late.completion_time_s, Some(5.1), "{late:?}");
    let bgan = without_delay.replace("[link.return]\ndelay = \"250 ms\"", "[link.return]");
    let settings = ["link.forward.kind=bgan", "link.return.kind=bgan", "link.forward.per=0.05"];
    let bgan = once(&bgan, &settings);
    assert!(passes(&bgan) > 1 && bgan.back.airtime_s > 0.0 && bgan.forward.airtime_s > 0.0, "{bgan:?}");
    let queue = once(PIPE, &["link.forward.rate=900 kbit/s", "link.forward.queue_packets=3"]);
    assert!(queue.forward.dropped > 0 && passes(&queue) > 1 && transfer(&queue).incomplete == 0, "{queue:?}");
    for jitter in
        [&["link.forward.jitter=30 ms"][..], &["link.forward.jitter=30 ms", "link.forward.reorder=true"]]
    {
        let times: Vec<f64> = replications(&scenario(PIPE, jitter), 5, 50)
            .iter()
            .map(|r| r.completion_time_s.unwrap() - (0.250 + 59.0 * 0.004_544 + 0.001_536))
            .collect();
        assert!(times.iter().all(|late| (-0.030..=0.030).contains(late)), "{times:?}");
        assert!(times.iter().any(|late| late.abs() > 0.005), "{times:?}");
    }
}

#[test]
fn stages_are_set_by_name() {
    let text = format!(
        "{PIPE}\n[[link.stages]]\nname = \"uplink\"\ndirection = \"forward\"\ndelay = \"1 s\"\n\
         [[link.stages]]\nname = \"backhaul\"\ndirection = \"return\"\ndelay = \"3 s\"\n"
    );
    let base = once(PIPE, &[]).completion_time_s.unwrap();
    let late = |settings: &[&str]| once(&text, settings).completion_time_s.unwrap() - base;
    assert!((late(&[]) - 1.0).abs() < 1e-9);
    assert!((late(&["link.stages.uplink.delay=2 s"]) - 2.0).abs() < 1e-9);
    // The return path matters once something is lost: the timer of 2 s expires before the NAKs have come.
    let vector = ["link.forward.error_vector=0001", "link.forward.error_vector_repeats=false"];
    let lossy = [&vector[..], &["protocol.file=2 kB"]].concat();
    let (near, far) = (once(PIPE, &lossy), once(&text, &lossy));
    assert!(far.completion_time_s.unwrap() - near.completion_time_s.unwrap() > 2.0, "{far:?}");
    assert_eq!(
        error(&text, &["link.stages.downlink.delay=2 s"]),
        "--set link.stages.downlink.delay=2 s: link.stages.downlink: this list has no member of this name; its members \
         are \"uplink\", \"backhaul\""
    );
}

const GROUPS: &str = r#"
[[groups]]
name = "clear"
receivers = 4
per = "0 %"
[[groups]]
name = "rainy"
receivers = 6
delay = "100 ms"
per = "30 %"
"#;

fn grouped() -> String {
    format!("{}{GROUPS}", PIPE.replace("receivers = 10\n", ""))
}

fn times(replication: &Replication) -> Vec<f64> {
    transfer(replication).receivers.as_ref().unwrap().iter().map(|time| time.unwrap()).collect()
}

#[test]
fn groups_have_losses_and_a_delay_of_their_own() {
    let clear = 0.250 + 59.0 * 0.004_544 + 0.001_536;
    for engines in ["engines=false", "engines=true"] {
        let all = once(&grouped(), &[engines, "link.forward.per=0.5"]);
        let times = times(&all);
        assert!(times[..4].iter().all(|time| (time - clear).abs() < 1e-9), "{times:?}");
        assert!(times[4..].iter().all(|time| *time > clear + 2.0), "{times:?}");
        // 60 DTUs, each lost by any of six with 1 - 0.7^6 = 0.882; sd 2.5.
        assert!((43..=60).contains(&dtus_per_pass(&all)[1]), "{all:?}");
    }
    let near = once(&grouped(), &["groups.rainy.per=0 %"]);
    assert!((times(&near)[9] - clear - 0.1).abs() < 1e-9);
    // A group without losses of its own has the link's.
    let text = grouped().replace("per = \"0 %\"\n", "");
    assert!(times(&once(&text, &["link.forward.per=0.5"]))[..4].iter().all(|time| *time > clear + 2.0));
}

#[test]
fn one_more_group_changes_no_draw_of_another() {
    // The clear group needs nothing, so the first group's losses decide everything: passes and NAKs.
    let one = PIPE.replace("receivers = 10\n", "");
    let first = "[[groups]]\nname = \"first\"\nreceivers = 5\nper = \"10 %\"\n";
    let clear = "[[groups]]\nname = \"clear\"\nreceivers = 7\nper = \"0 %\"\n";
    for engines in ["engines=false", "engines=true"] {
        let alone = replications(&scenario(&format!("{one}{first}"), &[engines]), 3, 20);
        let both = replications(&scenario(&format!("{one}{first}{clear}"), &[engines]), 3, 20);
        for (alone, both) in alone.iter().zip(&both) {
            assert_eq!(times(alone), times(both)[..5], "{engines}");
            assert_eq!(&transfer(alone).figures, &transfer(both).figures, "{engines}");
        }
        assert!(alone.iter().any(|r| naks_sent(r) > 5));
    }
    // A lossy second group changes the repairs, but not the losses of the first group in pass 1. NAKs of one DTU a
    // block in pass 1 are as many as without the second group.
    let lossy = clear.replace("0 %", "10 %");
    let one_pass = ["protocol.transfer_limit=3 s", "time_limit=3 s", "protocol.block_size=1"];
    let naks = |groups: &str| -> Vec<u64> {
        let all = replications(&scenario(&format!("{one}{groups}"), &one_pass), 4, 20);
        all.iter().map(naks_sent).collect()
    };
    let (alone, both, other) = (naks(first), naks(&format!("{first}{lossy}")), naks(&lossy));
    assert!(alone.iter().zip(&both).all(|(alone, both)| alone < both), "{alone:?} {both:?}");
    assert_ne!(alone, other);
}

#[test]
fn groups_that_register_complete_over_lossy_links() {
    let settings = |group: &'static str, engines: &'static str| {
        [
            group,
            engines,
            "protocol.setup=simulated",
            "protocol.announce_interval=1 s",
            "protocol.start_after=5 s",
            "link.forward.loses=everything",
            "link.forward.per=0.1",
            "link.return.per=0.1",
            "protocol.srt.retries=20",
        ]
    };
    for group in ["protocol.group=closed", "protocol.group=open_limited"] {
        for engines in ["engines=false", "engines=true"] {
            let all = replications(&scenario(PIPE, &settings(group, engines)), 6, 50);
            for one in &all {
                assert_eq!(transfer(one).incomplete, 0, "{group} {engines}: {one:?}");
                assert!(transfer(one).data_begins_s.is_some_and(|begins| begins > 0.0), "{one:?}");
                // Each receiver sends at least a registration and a Done.
                assert!(one.back.datagrams >= 20, "{one:?}");
            }
        }
    }
}

#[test]
fn proofs_and_names_cost_their_octets() {
    let back = |settings: &[&str]| {
        let own = [
            "protocol.group=open_limited",
            "protocol.setup=simulated",
            "protocol.start_receivers=10",
            "protocol.done_retry=1 h",
        ];
        let one = once(PIPE, &[&own, settings].concat());
        assert_eq!(one.transfer.as_ref().unwrap().confirmed, 10, "{settings:?}");
        (one.back.datagrams, one.back.octets)
    };
    for engines in ["engines=false", "engines=true"] {
        let (plain, of_plain) = back(&[engines]);
        // Without losses each receiver sends a registration and a Done, and the Done again for the request that ends the
        // pass.
        assert_eq!(plain, 30, "{engines}");
        let (proved, of_proved) = back(&[engines, "protocol.proofs=true"]);
        // It registers again as soon as it has its token, and for the announcement behind it, which cannot confirm it.
        assert_eq!(proved, 50, "{engines}");
        // A nonce or a proof takes 12 octets: registrations have a nonce, and all messages but the first a proof.
        let registration = 28 + 44;
        let more = 10 * (2 * registration + 3 * 12 + 4 * 12);
        assert_eq!(of_proved - of_plain, more, "{engines}");
        // A name takes 4 octets and its own, in whole words; a buffer takes 8.
        let (named, of_named) = back(&[engines, "protocol.proofs=true", "protocol.name_length=11"]);
        assert_eq!((named, of_named - of_proved), (proved, 30 * 16), "{engines}");
        let (held, of_held) = back(&[engines, "protocol.proofs=true", "protocol.receive_buffer=16 MiB"]);
        assert_eq!((held, of_held - of_proved), (proved, 30 * 8), "{engines}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    for (settings, expected) in [
        (
            &["link.forward.pre=0.1"][..],
            "--set link.forward.pre=0.1: link.forward.pre: this key is unknown, did you mean per; ",
        ),
        (&["receivers=0"], "--set receivers=0: receivers: 0 is out of range; it must be "),
        (
            &["time_limit=0 s"],
            "--set time_limit=0 s: time_limit: nothing happens in no time; a time above zero",
        ),
        (&["link.forward.per=1.5"], "--set link.forward.per=1.5: link.forward.per: 1.5 is out of range; "),
        (
            &["protocol.srt.n=4"],
            "test.toml:16: protocol.srt.time: n sets the timer already; one of n and time",
        ),
        (
            &["link.forward.kind=pip"],
            "--set link.forward.kind=pip: link.forward.kind: \"pip\" is not known, did you mean ",
        ),
        (
            &["link.forward.queue=1 kB", "link.forward.queue_packets=3"],
            "--set link.forward.queue_packets=3: link.forward.queue_packets: queue limits the queue already; one of the two",
        ),
        (
            &["protocol.receive_buffer=0 B"],
            "--set protocol.receive_buffer=0 B: protocol.receive_buffer: no receiver can report it; 1 B to ",
        ),
    ] {
        let said = error(PIPE, settings);
        assert!(said.starts_with(expected), "{settings:?}: {said}");
    }
    let both = format!("{PIPE}{GROUPS}");
    assert_eq!(
        error(&both, &[]),
        "test.toml:2: receivers: there are groups, and they say how many receivers they have; either receivers or \
         [[groups]]"
    );
    let nobody = PIPE.replace("receivers = 10\n", "");
    assert_eq!(
        error(&nobody, &["groups=[]"]),
        "--set groups=[]: groups: it is empty; at least one [[groups]]"
    );
    assert!(error(&nobody, &[]).starts_with("test.toml: receivers: this key is missing at the top; "));
    assert!(error(&grouped(), &["groups.clear.receivers=1073741824"]).contains("groups.rainy.receivers: "));
}

#[test]
fn parity_that_comes_to_none_is_refused_in_words() {
    let said = error(PIPE, &["protocol.group=open_unlimited", "protocol.parity=auto"]);
    assert!(said.contains("comes to none with group = \"open_unlimited\""), "{said}");
    let said = error(
        PIPE,
        &[
            "protocol.preset=draft",
            "protocol.file=100 MB",
            "protocol.group=open_limited",
            "protocol.parity=auto",
            "protocol.block_size=10848",
        ],
    );
    assert!(said.contains("comes to none with blocks"), "{said}");
}

#[test]
fn parity_of_what_is_sent_as_it_comes_into_being_is_refused_in_words() {
    let pgm = "receivers = 2\n[protocol]\nname = \"pgm\"\nfile = \"1 MB\"\nrate = \"1 Mbit/s\"\n\
               [link.forward]\ndelay = \"250 ms\"\n[link.return]\ndelay = \"250 ms\"\n";
    scenario(pgm, &["protocol.source_rate=500 kbit/s"]);
    for (key, parity) in [("parity", "protocol.parity=auto"), ("parity_ahead", "protocol.parity_ahead=2")] {
        let said = error(pgm, &["protocol.source_rate=500 kbit/s", parity]);
        let begin = format!("--set {parity}: protocol.{key}: ");
        assert!(said.starts_with(&begin) && said.contains("(source_rate) has no parity"), "{said}");
    }
    let said = error(pgm, &["protocol.rate_control=pgmcc", "protocol.parity=auto"]);
    assert!(said.contains("not with PGMCC"), "{said}");
}

#[test]
fn a_registration_answers_all_pieces_of_a_long_list() {
    let settings =
        ["receivers=3000", "protocol.group=closed", "protocol.setup=simulated", "protocol.start_after=1 s"];
    let one = once(PIPE, &settings);
    assert!(one.completion_time_s.is_some(), "{one:?}");
    // The list of 3000 receivers comes in some twenty pieces. Each receiver registers and is done; some send these
    // twice.
    let sent = one.back.datagrams;
    assert!((6_000..9_500).contains(&sent), "{sent} datagrams from 3000 receivers");
}
