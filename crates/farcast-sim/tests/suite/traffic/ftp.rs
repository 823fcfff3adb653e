//! FTP sessions.

use farcast_sim::outcome::{FlowCounts, FlowOutcome, Together};
use farcast_sim::traffic::FtpReport;

use super::near;
use crate::worlds::{error, once, replications, scenario};

/// Scenario of three files over links with a delay of 300 ms each way and no rate.
const DELAYS: &str = r#"
[[traffic]]
name = "session"
protocol = "ftp"
files = ["1 kB", "5 kB", "10 kB"]
[link.forward]
delay = "300 ms"
[link.return]
delay = "300 ms"
"#;

/// Scenario of a file over a line of 100 kbit/s.
const LINE: &str = r#"
[[traffic]]
name = "session"
protocol = "ftp"
size = "1 MB"
delayed_ack = "off"
timestamps = false
[link.forward]
rate = "100 kbit/s"
delay = "200 ms"
queue = "unlimited"
[link.return]
rate = "100 kbit/s"
delay = "200 ms"
queue = "unlimited"
"#;

fn ftp(flow: &FlowOutcome) -> &FtpReport {
    match &flow.counts {
        FlowCounts::Ftp(counts) => counts,
        _ => panic!("{flow:?}"),
    }
}

#[test]
fn a_session_takes_the_round_trips_that_can_be_counted() {
    let round = 0.6;
    for mode in ["active", "passive"] {
        for (syst, first) in [(false, 8.0), (true, 9.0)] {
            for direction in ["forward", "return"] {
                let settings = [
                    format!("traffic.session.mode={mode}"),
                    format!("traffic.session.syst={syst}"),
                    format!("traffic.session.direction={direction}"),
                ];
                let settings = settings.each_ref().map(String::as_str);
                // Get: SYN, 220, USER, PASS, (SYST,) TYPE, PASV or PORT, SYN, RETR; three for each further file; QUIT.
                let all = once(DELAYS, &settings);
                let flow = &all.flows[0];
                let report = ftp(flow);
                near(report.login_s, 4.0 * round);
                near(report.session_s, (first + 7.0) * round);
                near(flow.completion_time_s, (first + 6.0) * round);
                near(all.completion_time_s, (first + 6.0) * round);
                assert_eq!(flow.octets, 16_000);
                for (file, rounds) in report.files.iter().zip([first, first + 3.0, first + 6.0]) {
                    near(file.delivered_s, rounds * round);
                    near(file.completed_s, rounds * round);
                    near(file.client_time_s, 0.0);
                    let asked = if mode == "passive" { 1.0 } else { 2.0 };
                    near(file.commanded_s, (rounds - asked) * round);
                }
                // Put: the data leaves when 150 has come, and 226 takes the return path.
                let settings = [&settings[..], &["traffic.session.operation=put"]].concat();
                let all = once(DELAYS, &settings);
                let report = ftp(&all.flows[0]);
                // Each further file waits for the 226 of the one before: four round trips.
                near(report.session_s, (first + 1.0 + 4.0 + 4.0 + 1.0) * round);
                for (file, rounds) in report.files.iter().zip([first, first + 4.0, first + 8.0]) {
                    near(file.clock_started_s, rounds * round);
                    near(file.client_time_s, 0.0);
                    near(file.delivered_s, (rounds + 0.5) * round);
                    near(file.completed_s, (rounds + 1.0) * round);
                }
                near(report.delivery_time_s, 0.5 * round);
            }
        }
    }
}

#[test]
fn a_gap_lies_between_files() {
    let settings = ["traffic.session.gap=5 s", "traffic.session.start=2 s"];
    let all = once(DELAYS, &settings);
    let report = ftp(&all.flows[0]);
    near(report.session_s, 15.0 * 0.6 + 10.0);
    near(report.files[1].requested_s, 8.0 * 0.6 + 5.0);
    near(all.completion_time_s, 2.0 + 14.0 * 0.6 + 10.0);
}

#[test]
fn the_clock_of_a_put_stops_before_the_end_by_the_send_buffer() {
    // A segment of 1460 octets has 40 of headers. Octets in the buffer when the clock stops are sent at the rate of the
    // line. But the acknowledgment that made room for the last octet took the return path, 40 octets and 200 ms.
    let segment = 1500.0 * 8.0 / 100e3;
    for buffer in [32_768.0, 65_536.0] {
        for direction in ["forward", "return"] {
            let settings = [
                "traffic.session.operation=put".to_string(),
                format!("traffic.session.direction={direction}"),
                format!("traffic.session.send_buffer={buffer} B"),
            ];
            let all = once(LINE, &settings.each_ref().map(String::as_str));
            let report = ftp(&all.flows[0]);
            let late = report.delivery_time_s.unwrap() - report.client_time_s.unwrap();
            let expected = buffer / 1460.0 * segment - (0.2 + 40.0 * 8.0 / 100e3);
            assert!((late - expected).abs() <= segment, "{direction} {buffer}: {late}, {expected} expected");
            // The whole takes the time of the line, plus less than a second for slow start.
            let line = (1e6f64 / 1460.0).ceil() * segment;
            let took = report.delivery_time_s.unwrap();
            assert!(took > line && took < line + 1.2, "{took} for {line}");
        }
    }
}

#[test]
fn the_clock_of_a_get_stops_with_the_last_octet() {
    // The buffer holds twelve whole segments, so room appears in whole segments.
    let all = once(LINE, &["traffic.session.send_buffer=17520 B", "traffic.session.count=2"]);
    let report = ftp(&all.flows[0]);
    for file in &report.files {
        near(file.client_time_s, file.delivery_time_s().unwrap());
        near(file.delivered_s, file.clock_started_s.unwrap() + file.client_time_s.unwrap());
    }
    assert_eq!(report.tcp.segments, 2 * 685);
    assert_eq!((all.flows[0].octets, report.tcp.retransmits, report.tcp.timeouts), (2_000_000, 0, 0));
    assert!(report.control_segments > 10);
}

#[test]
fn everything_arrives_whatever_is_lost() {
    for operation in ["get", "put"] {
        for mode in ["active", "passive"] {
            let settings = [
                format!("traffic.session.operation={operation}"),
                format!("traffic.session.mode={mode}"),
                "traffic.session.size=100 kB".into(),
                "traffic.session.count=3".into(),
                "link.forward.per=0.03".into(),
                "link.return.per=0.03".into(),
                "link.forward.queue_packets=20".into(),
            ];
            let scenario = scenario(LINE, &settings.each_ref().map(String::as_str));
            for one in replications(&scenario, 5, 8) {
                let flow = &one.flows[0];
                assert_eq!(flow.octets, 300_000, "{operation} {mode} {}", one.index);
                assert!(flow.completion_time_s.is_some() && ftp(flow).session_s >= flow.completion_time_s);
                assert!(ftp(flow).tcp.retransmits > 0);
            }
        }
    }
}

#[test]
fn a_session_that_is_cut_off_counts_what_had_arrived() {
    let all = once(LINE, &["traffic.session.stop=30 s"]);
    let (flow, report) = (&all.flows[0], ftp(&all.flows[0]));
    assert_eq!((flow.completion_time_s, report.session_s, report.client_time_s), (None, None, None));
    // From 8 R of 0.4 s on, the line carries 1460 octets in 0.12 s.
    let most = (30.0 - 3.2) / 0.12 * 1460.0;
    assert!(flow.octets as f64 <= most && flow.octets as f64 > 0.9 * most, "{} of {most}", flow.octets);
    assert_eq!(report.files[0].delivered_s, None);
}

#[test]
fn the_summary_has_both_times() {
    let scenario = scenario(LINE, &["traffic.session.size=50 kB", "link.forward.per=0.01"]);
    let all = replications(&scenario, 1, 10);
    let together = Together::of(&all).unwrap();
    let flow = &together.flows[0];
    assert_eq!(flow.protocol, "ftp");
    let mean = |value: fn(&FtpReport) -> Option<f64>| {
        all.iter().map(|one| value(ftp(&one.flows[0])).unwrap()).sum::<f64>() / 10.0
    };
    for (told, expected) in [
        (&flow.client_time_s, mean(|report| report.client_time_s)),
        (&flow.delivery_time_s, mean(|report| report.delivery_time_s)),
        (&flow.session_s, mean(|report| report.session_s)),
    ] {
        assert!((told.as_ref().unwrap().mean.unwrap() - expected).abs() < 1e-9);
    }
    assert!(flow.loss.is_none() && flow.retransmits.is_some());
}

#[test]
fn what_a_session_cannot_be_is_refused_in_one_sentence() {
    for (settings, expected) in [
        (
            &["traffic.session.size=1 kB"][..],
            "--set traffic.session.size=1 kB: traffic.session.size: files says all sizes; files alone, or size and count",
        ),
        (
            &["traffic.session.files=[]"],
            "--set traffic.session.files=[]: traffic.session.files: there are none, or too many; 1 to 10000 files",
        ),
        (
            &["traffic.session.files=[\"1\"]"],
            "--set traffic.session.files=[\"1\"]: traffic.session.files: \"1\" is not a size; a number needs one of the units",
        ),
        (
            &["traffic.session.mode=pasive"],
            "--set traffic.session.mode=pasive: traffic.session.mode: \"pasive\" is not known, did you mean \"passive\"",
        ),
        (
            &["traffic.session.operation=delete"],
            "--set traffic.session.operation=delete: traffic.session.operation: \"delete\" is not known; it must be one of \"get\", \"put\"",
        ),
        (
            &["link.forward.delay=0 s", "link.return.delay=0 s"],
            "test.toml:4: traffic.session.protocol: over links that take no time",
        ),
        (
            &["traffic.session.mss=10 B"],
            "--set traffic.session.mss=10 B: traffic.session.mss: a maximum segment size of 10",
        ),
    ] {
        let said = error(DELAYS, settings);
        assert!(said.starts_with(expected), "{settings:?}: {said}");
    }
    assert!(error(&DELAYS.replace("files", "#"), &[]).contains("traffic.session.size: this key is missing"));
}
