use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parsed(text: &str) -> Request {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sentence(text: &str) -> String {
    text.parse::<Request>().expect_err(text).to_string()
}

#[test]
fn reads_every_request() {
    let everything = r#" {"set": {"way": "return", "stage": "bundle", "rate": "2 Mbit/s", "delay": "260 ms",
        "queue": "64 KiB", "per": 0.001, "outage": "5 s"}} "#;
    let change = Change {
        way: Some(LinkDirection::Return),
        stage: Some("bundle".into()),
        rate: BitRate::from_bps(2_000_000),
        delay: Some(Span::from_millis(260)),
        queue: NonZeroU64::new(65_536),
        per: Probability::new(0.001),
        outage: Some(Span::from_secs(5)),
    };
    assert_eq!(parsed(everything), Request::Set(change));
    let nulls = r#"{"set": {"way": null, "stage": null, "rate": null, "outage": "0 s"}}"#;
    let outage = Some(Span::ZERO);
    assert_eq!(parsed(nulls), Request::Set(Change { outage, ..Change::default() }));
    assert_eq!(parsed(r#"{"watch": {"every": "500 ms"}}"#), Request::Watch { every: Span::from_millis(500) });
    assert_eq!(parsed(r#"{"snapshot": {}}"#), Request::Snapshot);
    assert_eq!(parsed("{\"describe\":\t{}}\r\n"), Request::Describe);
    assert_eq!(parsed(r#"{"stop": {}}"#), Request::Stop);
}

#[test]
fn a_probability_is_a_number_or_a_text() {
    for (written, per) in [("1e-7", 1e-7), ("0", 0.0), ("1", 1.0), ("\"0.1 %\"", 0.001), ("\"0.001\"", 0.001)]
    {
        let Request::Set(change) = parsed(&format!(r#"{{"set":{{"per":{written}}}}}"#)) else {
            panic!("{written}")
        };
        assert!((change.per.unwrap().get() - per).abs() <= per * 1e-15, "{written}");
    }
}

#[test]
fn writes_what_the_protocol_says() {
    let request = Request::Set(Change {
        way: Some(LinkDirection::Forward),
        rate: BitRate::from_bps(2_000_000),
        delay: Some(Span::from_nanos(260_000_001)),
        queue: NonZeroU64::new(3000),
        per: Probability::new(0.25),
        ..Change::default()
    });
    let values = json!({
        "way": "forward", "rate": "2000000 bit/s", "delay": "260000001 ns", "queue": "3000 B", "per": "0.25"
    });
    assert_eq!(serde_json::to_value(&request).unwrap(), json!({"set": values}));
    let every = Span::from_millis(100);
    assert_eq!(
        serde_json::to_value(Request::Watch { every }).unwrap(),
        json!({"watch": {"every": "100000000 ns"}})
    );
    assert_eq!(serde_json::to_value(Request::Stop).unwrap(), json!({"stop": {}}));
}

#[test]
fn says_in_one_sentence_what_is_wrong() {
    let sentences = [
        (
            r#"{"set": {"speed": 3}}"#,
            "unknown field `speed`, expected one of `way`, `stage`, `rate`, `delay`, `queue`, `per`, `outage`",
        ),
        (r#"{"set": {}}"#, "set needs one of rate, delay, queue, per and outage at least"),
        (r#"{"set": {"way": "forward"}}"#, "set needs one of rate, delay, queue, per and outage at least"),
        (
            r#"{"set": {"rate": 2000000}}"#,
            "rate: a number needs one of the units bit/s, kbit/s, Mbit/s, Gbit/s, as in \"20 Mbit/s\"",
        ),
        (r#"{"set": {"rate": "0 bit/s"}}"#, "rate: it must lie within 1 bit/s to 1000 Gbit/s"),
        (r#"{"set": {"delay": "-1 ms"}}"#, "delay: it must lie within 0 s to 1e9 s"),
        (r#"{"set": {"queue": "0 B"}}"#, "queue: nothing could ever be sent; it must be 1 B at least"),
        (r#"{"set": {"per": 1.5}}"#, "per: it must lie within 0 to 1, or 0 % to 100 %"),
        (r#"{"set": {"way": "up", "per": 0}}"#, "unknown variant `up`, expected `forward` or `return`"),
        (r#"{"set": {"per": 0, "per": 1}}"#, "duplicate field `per`"),
        (r#"{"set": ["forward", null, "1 bit/s"]}"#, "invalid type: sequence, expected an object"),
        (
            r#"{"set": {"per": true}}"#,
            "invalid type: boolean `true`, expected a text of a number and its unit",
        ),
        (r#"{"watch": {}}"#, "missing field `every`"),
        (r#"{"watch": {"every": "99 ms"}}"#, "every: it must lie within 100 ms to 1 h"),
        (r#"{"watch": {"every": "61 min"}}"#, "every: it must lie within 100 ms to 1 h"),
        (r#"{"stop": {"now": true}}"#, "unknown field `now`, there are no fields"),
        (r#"{"stop": null}"#, "invalid type: null, expected an object"),
        (r#"{"halt": {}}"#, "unknown request `halt`: there are set, watch, snapshot, describe and stop"),
        (
            r#"{"stop": {}, "set": {}}"#,
            "a request is an object with one key: set, watch, snapshot, describe or stop",
        ),
        ("{}", "a request is an object with one key: set, watch, snapshot, describe or stop"),
        (
            r#""stop""#,
            "invalid type: string \"stop\", expected an object with one key: set, watch, snapshot, describe or stop",
        ),
        ("stop", "the line is no JSON: expected value, at octet 1; a request is one object on one line"),
        (
            r#"{"stop": {}} {"stop": {}}"#,
            "the line is no JSON: trailing characters, at octet 14; a request is one object on one line",
        ),
    ];
    for (text, expected) in sentences {
        assert_eq!(sentence(text), expected, "{text}");
    }
}

#[test]
fn hostile_lines_are_refused() {
    let nested = |open: &str, close: &str| {
        format!(r#"{{"set":{{"rate":{}1{}}}}}"#, open.repeat(1000), close.repeat(1000))
    };
    let lines: [Vec<u8>; 10] = [
        nested("[", "]").into(),
        nested(r#"{"rate":"#, "}").into(),
        vec![b'['; 4096],
        br#"{"set":{"per":1e999}}"#.to_vec(),
        [br#"{"set":{"per":"#.as_slice(), &[b'9'; 4000], b"}}"].concat(),
        [br#"{"set":{"delay":""#.as_slice(), &[b'9'; 4000], b" s\"}}"].concat(),
        b"{\"stop\0\": {}}".to_vec(),
        b"{\"set\":{\"stage\":\"\xff\xfe\",\"per\":0}}".to_vec(),
        br#"{"set":{"stage":"\ud800","per":0}}"#.to_vec(),
        br#"{"set":{"rate":"nan Mbit/s"}}"#.to_vec(),
    ];
    for line in lines {
        assert!(Request::parse(&line).is_err(), "{}", String::from_utf8_lossy(&line));
    }
}

fn requests() -> impl Strategy<Value = Request> {
    let way = prop_oneof![Just(None), Just(Some(LinkDirection::Forward)), Just(Some(LinkDirection::Return))];
    let stage = proptest::option::of(".{0,20}");
    let rate =
        proptest::option::of((1..=1_000_000_000_000_u64).prop_map(|bps| BitRate::from_bps(bps).unwrap()));
    // A quantity is read as seconds in a float of 53 bits, with two roundings: exact to the nanosecond up to six days.
    let span = || proptest::option::of((0..1_u64 << 49).prop_map(Span::from_nanos));
    let per = (0.0..=1.0).prop_map(|per| Probability::new(per).unwrap());
    // A size is rounded in a float, too.
    let queue = proptest::option::of((1..1_u64 << 52).prop_map(|octets| NonZeroU64::new(octets).unwrap()));
    let change = (way, stage, rate, span(), queue, per, span());
    let set = change.prop_map(|(way, stage, rate, delay, queue, per, outage)| {
        Request::Set(Change { way, stage, rate, delay, queue, per: Some(per), outage })
    });
    let watch = (100_000_000..=3_600_000_000_000_u64)
        .prop_map(|nanoseconds| Request::Watch { every: Span::from_nanos(nanoseconds) });
    prop_oneof![set, watch, Just(Request::Snapshot), Just(Request::Describe), Just(Request::Stop)]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(request in requests()) {
        let line = serde_json::to_vec(&request).unwrap();
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(Request::parse(&line), Ok(request));
    }

    /// A refusal has a sentence on one line; an accepted request can be written again.
    #[test]
    fn no_octets_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        match Request::parse(&line) {
            Ok(request) => prop_assert_eq!(Request::parse(&serde_json::to_vec(&request).unwrap()), Ok(request)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn no_json_panics(
        key in "set|watch|stop|[a-z]{1,5}",
        field in "way|stage|rate|delay|per|outage|every|[a-z]{1,5}",
        value in "-?[0-9]{1,400}|-?[0-9]{1,3}\\.[0-9]{1,9}[eE][-+]?[0-9]{1,4}|\".{0,20}\"|null|true|\\{\\}|\\[[0-9]\\]",
    ) {
        let line = format!("{{\"{key}\":{{\"{field}\":{value}}}}}");
        match line.parse::<Request>() {
            Ok(request) => prop_assert_eq!(Request::parse(&serde_json::to_vec(&request).unwrap()), Ok(request)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
