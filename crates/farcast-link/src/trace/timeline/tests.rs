use super::*;
use std::format;
use std::string::{String, ToString};

fn parse(text: &str) -> Timeline {
    Timeline::parse(text, None).expect(text)
}

fn conditions(rate: Option<u64>, delay_ms: u64, per: f64) -> Conditions {
    let per = Probability::new(per).expect("in range");
    Conditions { rate, delay: Span::from_millis(delay_ms), per }
}

fn second(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

const TABLE: &str = "time_s,rate_bit_per_s,delay_s,per
0,1e6,0.25,0
1.5,0,0.25,1
2,2500000.4,0.020,0.01
";

#[test]
fn steps_hold_until_the_next() {
    let timeline = parse(TABLE);
    let (first, outage, last) = (
        conditions(Some(1_000_000), 250, 0.0),
        conditions(Some(0), 250, 1.0),
        conditions(Some(2_500_000), 20, 0.01),
    );
    let just_before = |seconds| second(seconds) - Span::from_nanos(1);
    assert_eq!(timeline.at(Time::ZERO), (first, second(1.5)));
    assert_eq!(timeline.at(just_before(1.5)), (first, second(1.5)));
    assert_eq!(timeline.at(second(1.5)), (outage, second(2.0)));
    assert_eq!(timeline.at(second(2.0)), (last, Time::NEVER));
    assert_eq!(timeline.at(Time::NEVER), (last, Time::NEVER));

    let repeats = Timeline::parse(TABLE, Some(Span::from_secs(3))).expect("valid");
    for lap in [0.0, 3.0, 3000.0] {
        assert_eq!(repeats.at(second(lap)), (first, second(lap + 1.5)));
        assert_eq!(repeats.at(second(lap + 1.7)), (outage, second(lap + 2.0)));
        assert_eq!(repeats.at(second(lap + 2.0)), (last, second(lap + 3.0)));
        assert_eq!(repeats.at(just_before(lap + 3.0)), (last, second(lap + 3.0)));
    }
    assert!(repeats.at(Time::NEVER).1 == Time::NEVER);
}

#[test]
fn a_watch_says_what_the_table_says_wherever_it_is_asked() {
    let timeline = Arc::new(Timeline::parse(TABLE, Some(Span::from_secs(3))).expect("valid"));
    let mut watch = TimelineCursor::new(timeline.clone());
    for tenth in [0, 1, 14, 15, 15, 19, 20, 29, 30, 31, 500, 45, 3, 90_000_000, 0] {
        let now = Time::ZERO + Span::from_millis(tenth * 100);
        assert_eq!(watch.at(now), timeline.at(now), "at {tenth} tenths of a second");
    }
}

#[test]
fn any_of_the_columns_may_be_missing() {
    let rates = parse("time_s,rate_bit_per_s\n0,7");
    assert_eq!(rates.at(Time::ZERO).0, conditions(Some(7), 0, 0.0));
    assert!(rates.has_rate() && !rates.has_delay() && !rates.has_loss());
    let others = parse("time_s , per, delay_s\r\n0 , 0.5, 0.1\r\n1,1,0.3\r\n");
    assert_eq!(others.at(Time::ZERO).0, conditions(None, 100, 0.5));
    assert!(!others.has_rate() && others.has_delay() && others.has_loss());
    assert_eq!((others.highest_rate(), others.shortest_delay()), (None, Span::from_millis(100)));
    assert_eq!(parse(TABLE).highest_rate(), BitRate::from_bps(2_500_000));
    assert_eq!(parse(TABLE).shortest_delay(), Span::from_millis(20));
}

#[test]
fn errors_name_the_line_and_what_is_allowed() {
    let refuse = |text: &str| Timeline::parse(text, None).expect_err(text).to_string();
    let header = |found: &str| {
        format!(
            "line 1: the header is {found:?}; it must be time_s and one or more of rate_bit_per_s, delay_s and per, \
             separated by commas"
        )
    };
    for text in ["", "time_s", "0,1", "rate_bit_per_s,time_s", "time_s,per,per", "time_s,rate", "time_s,per,"]
    {
        assert_eq!(refuse(&format!("{text}\n0,0\n")), header(text));
    }
    let table = [
        ("0,0\n1\n", "line 3: 1 fields; it needs 2, as the header has"),
        ("0,0\n1,2,3,4,5,6\n", "line 3: 6 fields; it needs 2, as the header has"),
        ("0,0\n\n1,0\n", "line 3: 1 fields; it needs 2, as the header has"),
        ("0,1.1\n", "line 2: per is \"1.1\"; it must be a number, 0 to 1"),
        ("0,NaN\n", "line 2: per is \"NaN\"; it must be a number, 0 to 1"),
        ("0,2 %\n", "line 2: per is \"2 %\"; it must be a number, 0 to 1"),
        ("-1,0\n", "line 2: time_s is \"-1\"; it must be a number, 0 to 1e9"),
        ("1,0\n", "line 2: the first time must be 0; what holds before it is not said"),
        ("0,0\n2,0\n2,0\n", "line 4: its time is not after that of the line before; times must ascend"),
        ("", "the timeline has no line behind its header; it needs at least one, for time 0"),
    ];
    for (lines, error) in table {
        assert_eq!(refuse(&format!("time_s,per\n{lines}")), error, "{lines:?}");
    }
    for rate in ["-1", "0.5", "1.1e12", "inf", "1 Mbit/s", ""] {
        assert_eq!(
            refuse(&format!("time_s,rate_bit_per_s\n0,{rate}\n")),
            format!("line 2: rate_bit_per_s is {rate:?}; it must be a number, 0 for an outage, or 1 to 1e12")
        );
    }
    assert_eq!(
        refuse("time_s,rate_bit_per_s\n0,0\n1,0\n"),
        "the rate is 0 in every line; at least one must be above 0"
    );
    let period = Timeline::parse(TABLE, Some(Span::from_secs(2))).expect_err("too short").to_string();
    assert_eq!(
        period,
        "the period is 2.000000000 s, the last line begins at 2.000000000 s; the period must be longer"
    );
}

#[test]
fn a_timeline_has_at_most_a_million_lines() {
    let lines: Vec<String> = (0..1_000_000).map(|line| format!("{line},0")).collect();
    let mut text = format!("time_s,per\n{}\n", lines.join("\n"));
    assert!(Timeline::parse(&text, None).is_ok());
    text += "1000000,0\n";
    assert_eq!(Timeline::parse(&text, None), Err(TimelineError::TooLong { most: 1_000_000 }));
}

#[test]
fn what_editors_and_spreadsheets_leave_is_passed_over() {
    let plain = Timeline::parse("time_s,rate_bit_per_s,delay_s\n0,1000000,0.25\n15,2000000,0.3\n", None);
    assert!(plain.is_ok());
    for text in [
        "\u{feff}time_s,rate_bit_per_s,delay_s\n0,1000000,0.25\n15,2000000,0.3\n",
        "\"time_s\",\"rate_bit_per_s\",\"delay_s\"\r\n\"0\",\"1000000\",\"0.25\"\r\n15,\"2000000\",0.3\r\n",
        " time_s, rate_bit_per_s , delay_s\n 0, 1000000, 0.25\n 15, 2000000,0.3\n\n  \n",
    ] {
        assert_eq!(Timeline::parse(text, None), plain, "{text:?}");
    }
    assert!(Timeline::parse("time_s,delay_s\n0,\"0.25\n", None).is_err(), "a quote that does not end");
    assert!(
        Timeline::parse("time_s,delay_s\n0,0.25\n\n1,0.3\n", None).is_err(),
        "a blank line in the middle"
    );
}
