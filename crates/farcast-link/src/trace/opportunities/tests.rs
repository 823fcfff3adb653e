use super::*;
use std::format;
use std::string::{String, ToString};

#[test]
fn errors_name_the_line_and_what_is_allowed() {
    let refuse = |text: &str| RateTrace::parse(text).expect_err(text).to_string();
    assert_eq!(
        refuse("1\n2\nx3\n"),
        "line 3: \"x3\" is no time; a line is one whole number of milliseconds from 0 to 4294967295"
    );
    assert_eq!(refuse("4\n7\n6\n"), "line 3: 6 ms comes after 7 ms; times must not go back");
    assert_eq!(refuse(""), "the trace is empty; it needs at least one line with a time above 0 ms");
    assert_eq!(refuse("0\n0\n"), "the trace ends at 0 ms; its last time is its period and must be above 0");
    for text in ["1\n\n2\n", "+1", "-1", "1.5", "4294967296", "1 2", "é"] {
        assert!(matches!(RateTrace::parse(text), Err(TraceError::NotANumber { .. })), "{text:?}");
    }
    let long = format!("5\n{}", "z".repeat(1_000_000));
    assert!(refuse(&long).len() < 200, "an error quotes only the beginning");
    assert!(RateTrace::parse("1\r\n4294967295").is_ok());
}

#[test]
fn what_editors_leave_is_passed_over() {
    let plain = RateTrace::parse("1\n20\n");
    assert!(plain.is_ok());
    for text in ["\u{feff}1\n20\n", " 1\n\t20 \n", "1\n20\n\n", "1\r\n20\r\n\r\n  \n"] {
        assert_eq!(RateTrace::parse(text), plain, "{text:?}");
    }
    assert_eq!(RateTrace::parse("\u{feff}\n \n"), Err(TraceError::Empty));
}

#[test]
fn a_trace_has_at_most_ten_million_lines() {
    let mut text = "1\n".repeat(10_000_000);
    assert!(RateTrace::parse(&text).is_ok());
    text.push('1');
    assert_eq!(RateTrace::parse(&text), Err(TraceError::TooLong { most: 10_000_000 }));
}

#[test]
fn the_mean_rate_is_what_a_period_delivers() {
    let mean = |text: &str| RateTrace::parse(text).expect("valid").mean_rate().map(BitRate::as_bps);
    assert_eq!(mean("1"), Some(12_032_000));
    assert_eq!(mean("0\n5\n5\n10"), Some(4 * 1504 * 8 * 100));
    assert_eq!(mean("4294967295"), None);
}

#[test]
fn opportunities_follow_each_other_as_listed() {
    for lines in [&[1u64][..], &[3], &[0, 2, 2, 5], &[0, 0, 1], &[4, 4, 4]] {
        let text: Vec<String> = lines.iter().map(u64::to_string).collect();
        let trace = RateTrace::parse(&text.join("\n")).expect("valid");
        let period = lines[lines.len() - 1];
        // Laps laid end to end.
        let all: Vec<u64> =
            (0..8).flat_map(|lap| lines.iter().map(move |line| lap * period + line)).collect();
        for now in 0..6 * period * 1_000_000 {
            if now % 1_000_000 > 1 && now % 1_000_000 < 999_999 {
                continue;
            }
            let first = all.iter().position(|at| at * 1_000_000 > now).expect("there is one");
            let place = trace.first_after(Time::from_nanos(now));
            for count in 0..lines.len() * 2 {
                let at = trace.time(trace.behind(place, count as u64));
                assert_eq!(at.as_nanos(), all[first + count] * 1_000_000, "{lines:?} {now} {count}");
            }
        }
    }
}

#[test]
fn extremes_saturate() {
    for text in ["1", "0\n4294967295"] {
        let trace = RateTrace::parse(text).expect("valid");
        let place = trace.first_after(Time::NEVER);
        assert_eq!(trace.time(trace.behind(place, u64::MAX)), Time::NEVER);
        assert!(trace.time(trace.behind(trace.first_after(Time::ZERO), u64::MAX)) == Time::NEVER);
    }
}
