//! Stages that carry both directions in scenarios: PPP, multilink PPP and UMTS.

use farcast_sim::outcome::{FlowCounts, Replication, StageOutcome};
use farcast_sim::traffic::TcpReport;

use crate::worlds::{error, once, replications, scenario, transfer};

const SGLS: &str = include_str!("../../../../scenarios/sgls.toml");
const IRIDIUM: &str = include_str!("../../../../scenarios/iridium.toml");
const INMARSAT: &str = include_str!("../../../../scenarios/inmarsat.toml");
const UMTS: &str = include_str!("../../../../scenarios/umts.toml");

/// Returns a scenario of a multicast transfer to three receivers behind a bearer.
fn multicast(stage: &str) -> String {
    format!(
        r#"receivers = 3
time_limit = "10 h"
[protocol]
preset = "draft"
file = "30 kB"
rate = "10 kbit/s"
[[link.stages]]
name = "bearer"
{stage}
"#
    )
}

const LINES: &str = r#"
kind = "ppp"
[link.stages.forward]
rate = "64 kbit/s"
ber = 1e-5
[link.stages.return]
rate = "2400 bit/s"
"#;

fn figure(replication: &Replication, name: &str) -> f64 {
    replication.stages[0].figure(name).unwrap_or_else(|| panic!("no {name} in {:?}", replication.stages))
}

#[test]
fn shipped_scenarios_are_what_the_studies_did() {
    let read = |text| scenario(text, &[]);
    for (text, name) in [
        (SGLS, "FTP through the space-to-ground link simulator"),
        (IRIDIUM, "TCP over eight Iridium channels"),
        (INMARSAT, "TCP over four Inmarsat channels"),
        (UMTS, "FTP over UMTS"),
    ] {
        assert_eq!((read(text).name(), read(text).flows()), (name, 1));
    }
    // Table 1 of the report: 16 files of each size.
    let all = once(SGLS, &[]);
    let FlowCounts::Ftp(report) = &all.flows[0].counts else { panic!("{all:?}") };
    let count = |octets: u64| report.files.iter().filter(|file| file.octets == octets).count();
    assert_eq!([10_240, 102_400, 1_024_000, 10_240_000].map(count), [16; 4]);
    assert!(all.completion_time_s.is_some() && report.files.iter().all(|file| file.delivered_s.is_some()));
}

#[test]
fn a_long_file_fills_a_serial_line() {
    let settings = ["traffic.files.files=[\"1 MB\", \"2 MB\"]", "traffic.files.gap=0 s"];
    let all = once(SGLS, &settings);
    let FlowCounts::Ftp(report) = &all.flows[0].counts else { panic!("{all:?}") };
    let time = |file: usize| report.files[file].delivery_time_s().unwrap();
    // Another 1 MB takes the time of its frames: 1500 octets of packet for 1448 of data, one of protocol, two of check
    // sequence, one flag, and 2 in 256 escaped, at 11,520 octets a second.
    let frame = 1503.0 * (1.0 + 2.0 / 256.0) + 1.0;
    let expected = 1e6 / 1448.0 * frame / 11_520.0;
    let extra = time(1) - time(0);
    assert!((extra / expected - 1.0).abs() < 0.002, "{extra} instead of {expected}");
    assert!(figure(&all, "forward_corrupted") < 0.5);
}

#[test]
fn errors_on_a_serial_line_are_those_of_its_vector() {
    let settings = ["traffic.files.files=[\"1 MB\"]", "link.stages.serial.forward.vector_errors=100"];
    let all = replications(&scenario(SGLS, &settings), 1, 40);
    let mean = |name: &str| all.iter().map(|one| figure(one, name)).sum::<f64>() / 40.0;
    let octets = mean("forward_octets");
    // 100 errors in 10,000,000 bits; several in one frame are one loss, which takes about a 16th off at 1e-5.
    let expected = octets * 8.0 * 1e-5;
    let corrupted = mean("forward_corrupted");
    assert!(corrupted > 0.88 * expected && corrupted < 1.0 * expected, "{corrupted} of {expected}");
}

const BUNDLE: &str = r#"
kind = "multilink"
links = 3
rate = "9600 bit/s"
time_between_drops = "20 s"
redial = "5 s"
"#;

const BEARER: &str = r#"
kind = "umts"
[link.stages.poll]
timer = "300 ms"
[link.stages.forward]
rate = "64 kbit/s"
erasures = 0.1
[link.stages.return]
rate = "32 kbit/s"
tti = "20 ms"
"#;

#[test]
fn the_same_seed_gives_the_same_and_bearers_carry_a_multicast_too() {
    for stage in [LINES, BUNDLE, BEARER] {
        for engines in ["engines=false", "engines=true"] {
            let (one, other) = (once(&multicast(stage), &[engines]), once(&multicast(stage), &[engines]));
            assert!(one.completion_time_s.is_some_and(|time| time > 24.0), "{one:?}");
            assert_eq!(one, other);
            assert_eq!(
                one.stages.iter().map(|stage: &StageOutcome| &*stage.name).collect::<Vec<_>>(),
                ["bearer"]
            );
        }
    }
}

#[test]
fn a_bundle_is_as_fast_as_its_links() {
    // Without drops and losses the queue limits the rate: 34 packets of 1448 octets, each of which crosses in
    // fragments.
    let settings =
        ["link.return.per=0", "link.stages.bundle.time_between_drops=1e5 h", "traffic.file.size=3 MB"];
    let all = once(IRIDIUM, &settings);
    // A packet crosses in four to eight fragments, as many links as are free, each with a protocol field, 4 octets of
    // header, 2 of check sequence, a flag and 2 in 256 escaped, over 8 times 300 octets a second. Begin and end are
    // slower.
    let packet = |fragments: f64| (1501.0 + fragments * (1.0 + 4.0 + 2.0)) * (1.0 + 2.0 / 256.0) + fragments;
    let [least, most] = [4.0, 8.0].map(|fragments| 3e6 / 1448.0 * packet(fragments) / 2400.0);
    let time = all.completion_time_s.unwrap();
    assert!(time > least && time < 1.01 * most, "{time}, not {least} to {most}");
}

#[test]
fn without_repetition_a_transfer_over_umts_takes_far_longer() {
    let median = |count: u32| {
        let count = format!("link.stages.bearer.max_transmissions={count}");
        let scenario = scenario(UMTS, &[&count]);
        let all = replications(&scenario, 1, 9);
        let mut times: Vec<f64> =
            all.iter().map(|one| one.completion_time_s.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        times[4]
    };
    let (once, often) = (median(1), median(10));
    assert!(once > 5.0 * often && often < 6.0, "{once} and {often}");
}

/// Flow of a datagram every second without end.
const ENDLESS: &str = r#"
[[traffic]]
name = "probe"
protocol = "cbr"
rate = "800 bit/s"
payload = "72 B"
"#;

/// A sender that hears no receiver ends long before everything has passed a slow link. Receivers that hear everything
/// do not answer.
#[test]
fn a_transfer_is_not_over_while_a_stage_holds_something_of_it() {
    const SENDER: &str = r#"
receivers = 3
time_limit = "2 h"
[protocol]
preset = "draft"
file = "100 kB"
rate = "50 kbit/s"
group = "open_unlimited"
setup = "done"
pass_wait = "fixed"
srt.time = "2 s"
srt.retries = 2
"#;
    let lines = "kind = \"ppp\"\n[link.stages.forward]\nrate = \"9600 bit/s\"\nqueue = \"unlimited\"\n\
                 [link.stages.return]\nrate = \"9600 bit/s\"";
    let bundle = "kind = \"multilink\"\nlinks = 1\nrate = \"9600 bit/s\"\nqueue = \"unlimited\"";
    let bearer = "kind = \"umts\"\n[link.stages.forward]\nrate = \"32 kbit/s\"\nqueue = \"unlimited\"\n\
                  [link.stages.return]\nrate = \"32 kbit/s\"";
    for stage in [lines, bundle, bearer] {
        let text = format!("{SENDER}{ENDLESS}[[link.stages]]\nname = \"bearer\"\n{stage}");
        let all = once(&text, &[]);
        assert!(
            all.completion_time_s.is_some_and(|time| time > 20.0) && transfer(&all).incomplete == 0,
            "{stage}: {all:?}"
        );
    }
}

#[test]
fn what_a_stage_holds_in_the_end_was_not_dropped() {
    let bundle = "kind = \"multilink\"\nlinks = 2\nrate = \"9600 bit/s\"\ndelay = \"5 s\"";
    let bearer = BEARER.replace("erasures = 0.1", "processing = \"5 s\"");
    for stage in [bundle, &bearer] {
        let text = format!("time_limit = \"60 s\"\n{ENDLESS}[[link.stages]]\nname = \"bearer\"\n{stage}");
        let all = once(&text, &[]);
        let FlowCounts::Cbr(counts) = &all.flows[0].counts else { panic!("{all:?}") };
        // One datagram a second leaves from 0 to 60 s, and those of the last seconds are under way.
        assert_eq!((counts.sent, all.flows[0].dropped, all.forward.dropped), (61, 0, 0), "{all:?}");
        assert!((54..=57).contains(&counts.received), "{counts:?}");
    }
}

/// Without repetition an erased interval loses its datagram: half of 61.
#[test]
fn what_rlc_gives_up_is_told_from_what_a_limit_drops() {
    let bearer = BEARER.replace("erasures = 0.1", "erasures = 0.5");
    let text = format!("time_limit = \"60 s\"\n{ENDLESS}[[link.stages]]\nname = \"bearer\"\n{bearer}");
    let all = once(&text, &["link.stages.bearer.max_transmissions=1"]);
    assert_eq!((all.forward.given_up, all.forward.dropped), (all.flows[0].dropped, 0), "{all:?}");
    assert!((12..=50).contains(&all.forward.given_up), "{all:?}");
    assert_eq!((all.back.given_up, all.back.dropped), (0, 0));
}

#[test]
fn timers_that_go_on_for_ever_do_not_outlive_what_has_an_end() {
    let periodic = ["link.stages.bearer.status.periodic=100 ms"];
    let all = once(UMTS, &periodic);
    let time = all.completion_time_s.unwrap();
    // Ten reports a second, and a few more.
    let reports = figure(&all, "return_status_pdus");
    assert!(reports < 10.0 * time + 100.0, "{reports} in {time} s");
    let echoes = [
        "link.stages.serial.echo_interval=1 s",
        "traffic.files.files=[\"100 KiB\"]",
        "traffic.files.gap=0 s",
    ];
    let all = once(SGLS, &echoes);
    assert!(all.forward.airtime_s < 1.1 * all.completion_time_s.unwrap(), "{all:?}");
}

/// Asserts that these settings of `text` are refused with messages that contain these words.
fn refuses(text: &str, cases: &[(&[&str], &str)]) {
    for (settings, expected) in cases {
        let said = error(text, settings);
        assert!(said.contains(expected) && !said.contains('\n'), "{settings:?}: {said}");
    }
}

#[test]
fn what_serial_lines_cannot_be_is_refused_in_one_sentence() {
    let lines = multicast(LINES);
    refuses(
        &lines,
        &[
            (&["link.stages.bearer.kind=pppp"], "link.stages.bearer.kind"),
            (&["link.stages.bearer.direction=forward"], "link.stages.bearer.direction"),
            (&["link.stages.bearer.mtu=60 B"], "link.stages.bearer.mtu"),
            (&["link.stages.bearer.mtu=70000 B"], "link.stages.bearer.mtu"),
            (&["link.stages.bearer.fcs=24"], "link.stages.bearer.fcs"),
            (&["link.stages.bearer.echo_interval=0 s"], "link.stages.bearer.echo_interval"),
            (&["link.stages.bearer.echo_interval=1 ms"], "link.stages.bearer.echo_interval"),
            (&["link.stages.bearer.forward.octet_bits=7"], "link.stages.bearer.forward.octet_bits"),
            (&["link.stages.bearer.forward.vector_errors=10"], "link.stages.bearer.forward.ber"),
            (&["link.stages.bearer.return.vector_bits=10"], "link.stages.bearer.return.vector_bits"),
            (
                &["link.stages.bearer.return.vector_bits=10", "link.stages.bearer.return.vector_errors=11"],
                "link.stages.bearer.return.vector_errors",
            ),
            (&["link.stages.bearer.forward.queue=0 B"], "link.stages.bearer.forward.queue"),
        ],
    );
}

#[test]
fn what_a_bundle_cannot_be_is_refused_in_one_sentence() {
    refuses(
        IRIDIUM,
        &[
            (
                &["link.stages.bundle.links=0"],
                "link.stages.bundle.links: a bundle of no links carries nothing",
            ),
            (
                &["link.stages.bundle.links=65"],
                "link.stages.bundle.links: a bundle cannot have so many links; 1 to 64 links",
            ),
            (&["link.stages.bundle.octet_bits=13"], "link.stages.bundle.octet_bits"),
            (&["link.stages.bundle.time_between_drops=0 s"], "link.stages.bundle.time_between_drops"),
            (&["link.stages.bundle.mrru=0 B"], "link.stages.bundle.mrru"),
            (
                &["link.stages.bundle.fragments=equal", "link.stages.bundle.smallest_fragment=0 B"],
                "link.stages.bundle.smallest_fragment",
            ),
            (&["link.stages.bundle.link_idle=0 s"], "link.stages.bundle.link_idle"),
            (
                &["link.stages.bundle.detection=echo", "link.stages.bundle.echo_interval=100 ms"],
                "link.stages.bundle.echo_interval",
            ),
            (
                &[
                    "link.stages.bundle.detection=echo",
                    "link.stages.bundle.echo_interval=10 ms",
                    "link.stages.bundle.echo_failures=1000",
                ],
                "link.stages.bundle.echo_interval: the echo interval is shorter than",
            ),
        ],
    );
}

#[test]
fn what_a_bearer_cannot_be_is_refused_in_one_sentence() {
    refuses(
        UMTS,
        &[
            (&["link.stages.bearer.window=0"], "link.stages.bearer.window: "),
            (&["link.stages.bearer.window=4096"], "link.stages.bearer.window"),
            (&["link.stages.bearer.max_transmissions=0"], "link.stages.bearer.max_transmissions"),
            (&["link.stages.bearer.max_dat=1"], "link.stages.bearer.max_dat"),
            (&["link.stages.bearer.max_dat=4"], "link.stages.bearer.max_dat"),
            (&["link.stages.bearer.pdu=5 B"], "link.stages.bearer.pdu"),
            (
                &["link.stages.bearer.forward.rate=31 kbit/s"],
                "link.stages.bearer.forward: its tti does not fit: it holds no PDU: it carries 310 bits",
            ),
            (&["link.stages.bearer.return.tti=0 s"], "link.stages.bearer.return"),
            (&["link.stages.bearer.discard=timer"], "link.stages.bearer.discard_timer"),
            (&["link.stages.bearer.poll.timer=0 s"], "link.stages.bearer.poll.timer"),
            (&["link.stages.bearer.status.prohibit=0 s"], "link.stages.bearer.status.prohibit"),
        ],
    );
    // With the counting of the standard.
    let max_dat = UMTS.replace("max_transmissions = 10 ", "max_dat = 1 ");
    assert!(
        error(&max_dat, &[]).contains("link.stages.bearer.max_dat: max_dat is 1"),
        "{}",
        error(&max_dat, &[])
    );
}

/// Runs 1 MB without errors, with a queue before PPP that holds eight packets.
fn over_a_short_queue(settings: &[&str]) -> (Replication, TcpReport) {
    let mut all = vec!["traffic.files.files=[\"1 MB\"]", "link.stages.serial.forward.queue_packets=8"];
    all.extend(settings);
    let one = once(SGLS, &all);
    let FlowCounts::Ftp(report) = &one.flows[0].counts else { panic!("{one:?}") };
    let counts = report.tcp;
    (one, counts)
}

/// A sender that learns of drops in its own queue need not repair them: the packet leaves when there is room, and the
/// line never rests. A sender that does not learn of them repairs them as losses.
#[test]
fn who_is_told_what_his_own_queue_drops_loses_nothing() {
    let (untold, lost) = over_a_short_queue(&["traffic.files.local_congestion=false"]);
    let (told, kept) = over_a_short_queue(&["traffic.files.local_congestion=true"]);
    let drops = |one: &Replication| one.flows[0].dropped;
    assert!(drops(&untold) > 10 && lost.retransmits >= drops(&untold) - 2, "{lost:?}");
    assert!(drops(&told) > 10 && kept.retransmits == 0 && kept.timeouts == 0, "{kept:?}");
    let [untold, told] = [untold, told].map(|one| one.completion_time_s.unwrap());
    assert!(told <= untold, "{told} and {untold}");
}

/// If each acknowledgment lets one segment out, no two segments have the same timestamp, and few are compressed. If a
/// writer wakes when a third of the buffer is free, several leave at once, and most are compressed.
#[test]
fn headers_are_compressed_as_timestamps_let_them() {
    let run = |settings: &[&str]| {
        let mut all = vec!["traffic.files.files=[\"1 MB\"]", "link.stages.serial.vj=true"];
        all.extend(settings);
        once(SGLS, &all)
    };
    let share = |one: &Replication| {
        let of = |kind: &str| figure(one, &format!("forward_vj_{kind}"));
        of("compressed") / (of("compressed") + of("uncompressed"))
    };
    let (any, third) = (run(&["traffic.files.write_space=any"]), run(&["traffic.files.write_space=third"]));
    assert!(share(&any) < 0.05, "{}", share(&any));
    assert!(share(&third) > 0.7, "{}", share(&third));
    let none = run(&["traffic.files.timestamps=false"]);
    assert!(share(&none) > 0.95, "{}", share(&none));
    // A header of 52 octets becomes one of 3, which shortens the transfer by the time of the saved octets.
    let plain = run(&["traffic.files.write_space=third", "link.stages.serial.vj=false"]);
    let saved = plain.completion_time_s.unwrap() - third.completion_time_s.unwrap();
    let expected = 49.0 * figure(&third, "forward_vj_compressed") * 258.0 / 256.0 / 11_520.0;
    assert!((saved / expected - 1.0).abs() < 0.1, "{saved} and {expected}");
    assert!(figure(&third, "forward_vj_tossed") + figure(&third, "forward_vj_out_of_step") < 0.5);
}

/// A damaged frame costs the compressed ones behind it too.
#[test]
fn with_compression_a_bit_error_costs_more_segments() {
    let repeated = |vj: &str| {
        let settings = [
            "traffic.files.files=[\"1 MB\"]",
            "traffic.files.write_space=third",
            "link.stages.serial.forward.vector_errors=10",
            vj,
        ];
        let all = replications(&scenario(SGLS, &settings), 1, 20);
        let lost: f64 = all.iter().map(|one| figure(one, "forward_corrupted")).sum();
        let again: u64 = all
            .iter()
            .map(|one| match &one.flows[0].counts {
                FlowCounts::Ftp(report) => report.tcp.retransmits,
                _ => 0,
            })
            .sum();
        again as f64 / lost
    };
    let (without, with) = (repeated("link.stages.serial.vj=false"), repeated("link.stages.serial.vj=true"));
    assert!((0.9..1.2).contains(&without), "{without}");
    assert!(with > 1.5 * without, "{with} and {without}");
}

#[test]
fn what_compression_and_queues_cannot_be_is_refused_in_one_sentence() {
    refuses(
        SGLS,
        &[
            (&["link.stages.serial.vj=false", "link.stages.serial.vj_max_slots=16"], "serial.vj_max_slots"),
            (&["link.stages.serial.vj=false", "link.stages.serial.vj_ccomp=true"], "serial.vj_ccomp"),
            (&["link.stages.serial.vj=true", "link.stages.serial.vj_max_slots=1"], "serial.vj_max_slots"),
            (&["link.stages.serial.vj=true", "link.stages.serial.vj_max_slots=17"], "serial.vj_max_slots"),
            (&["traffic.files.write_space=half"], "traffic.files.write_space"),
        ],
    );
    refuses(IRIDIUM, &[(&["traffic.file.local_congestion=true"], "local_congestion")]);
}
