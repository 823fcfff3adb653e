//! Reading of documents that the schema takes, and reports about them.

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes, Probability};

use super::{Direction, FULL, LEAST, Order, Scenario, Stage, document, rate, read};
use crate::document::{Asked, Origin, Presence};

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

#[test]
fn reads_every_kind_of_value() {
    let expected = Scenario {
        title: "A satellite link".to_owned(),
        seed: 7,
        verbose: true,
        forward: Direction {
            rate: rate(20_000_000),
            delay: Span::from_millis(250),
            per: probability(0.005),
            queue: Some(Bytes(65_536)),
            order: Order::Random,
            weight: 2.0,
        },
        back: Some(Direction {
            rate: rate(64_000),
            delay: Span::from_millis(250),
            per: Probability::ZERO,
            queue: None,
            order: Order::Fifo,
            weight: 1.0,
        }),
        stages: vec![
            Stage::Pipe { name: "uplink".to_owned(), rate: rate(1_000_000_000) },
            Stage::Loss { name: "air".to_owned(), per: probability(0.02) },
        ],
        sizes: vec![500, 1_000],
    };
    assert_eq!(read(FULL), Ok(expected));
}

#[test]
fn every_way_of_writing_tables_reads_alike() {
    let expected = read(LEAST).expect("valid");
    for text in [
        "title = \"t\"\nlink.forward.rate = \"1 Mbit/s\"\n",
        "title = \"t\"\nlink = { forward = { rate = \"1 Mbit/s\" } }\n",
        "title = \"t\"\n[link]\nforward.rate = \"1 Mbit/s\"\n",
        "'title' = 't'\r\n[\"link\".'forward']\r\nrate = '''1 Mbit/s'''\r\n",
        "\u{feff}title = \"t\"\n[link.forward]\nrate = \"1000 kbit/s\"",
    ] {
        assert_eq!(read(text).as_ref(), Ok(&expected), "{text}");
    }
    let inline = format!("link.stages = [{{ name = \"a\", kind = \"pipe\", rate = \"1 bit/s\" }}]\n{LEAST}");
    let inline = inline.replace("[link.forward]\nrate", "link.forward.rate");
    let stage = Stage::Pipe { name: "a".to_owned(), rate: rate(1) };
    assert_eq!(read(&inline).expect("valid").stages, [stage]);
}

#[test]
fn tells_what_is_in_effect_and_why() {
    let mut document = document(LEAST);
    document.set("link.forward.per=0.01").expect("valid");
    document.set("link.stages=[{name='a b', kind='loss', per=1}]").expect("valid");
    Scenario::read(&document).expect("valid");
    let keys = document.keys_read();
    let shown: Vec<(&str, &str, Origin)> =
        keys.iter().map(|(k, v, o)| (k.as_str(), v.as_str(), *o)).collect();
    assert_eq!(
        shown,
        [
            ("title", "\"t\"", Origin::File),
            ("seed", "1", Origin::Default),
            ("verbose", "false", Origin::Default),
            ("sizes", "[1472]", Origin::Default),
            ("link.forward.rate", "\"1 Mbit/s\"", Origin::File),
            ("link.forward.delay", "\"250 ms\"", Origin::Default),
            ("link.forward.per", "0.01", Origin::Setting),
            ("link.forward.order", "\"fifo\"", Origin::Default),
            ("link.forward.weight", "1.0", Origin::Default),
            ("link.stages.\"a b\".name", "\"a b\"", Origin::Setting),
            ("link.stages.\"a b\".kind", "\"loss\"", Origin::Setting),
            ("link.stages.\"a b\".per", "1", Origin::Setting),
        ]
    );
}

#[test]
fn tells_a_key_once_however_often_it_is_read() {
    let document = document(LEAST);
    Scenario::read(&document).expect("valid");
    let once = document.keys_read();
    Scenario::read(&document).expect("valid");
    assert_eq!(document.keys_read(), once);
}

#[test]
fn what_it_tells_reads_back_alike() {
    let first = document(FULL);
    let scenario = Scenario::read(&first).expect("valid");
    let mut again = document(LEAST);
    again.set("link.stages=[{name='uplink'}, {name='air'}]").expect("valid");
    for (key, value, _) in first.keys_read() {
        again.set(&format!("{key}={value}")).expect("valid");
    }
    assert_eq!(Scenario::read(&again), Ok(scenario));
}

#[test]
fn defaults_are_told_without_loss() {
    let document = document("");
    let mut top = document.root();
    for (key, bps) in [("a", 1), ("b", 1_234_567), ("c", 2_500_000), ("d", 1_000_000_000_000)] {
        assert_eq!(top.rate_or(key, rate(bps)), Ok(rate(bps)));
    }
    for (key, nanoseconds) in
        [("e", 0), ("f", 1), ("g", 1_500_000_000), ("h", 90_000_000_000), ("i", 7_200_000_000_000)]
    {
        assert_eq!(top.span_or(key, Span::from_nanos(nanoseconds)), Ok(Span::from_nanos(nanoseconds)));
    }
    for (key, bytes) in
        [("j", 0), ("k", 1_472), ("l", 65_536), ("m", 50_000_000), ("n", 9_000_000_000_000_000)]
    {
        assert_eq!(top.bytes_or(key, Bytes(bytes)), Ok(Bytes(bytes)));
    }
    assert_eq!(top.probability_or("o", probability(1e-9)), Ok(probability(1e-9)));
    assert_eq!(top.text_or("p", "a \"b\"\n\u{7f}".to_owned()).as_deref(), Ok("a \"b\"\n\u{7f}"));
    assert_eq!(top.number_or("q", 0.0..=1e300, 1e17), Ok(1e17));
    let values: Vec<String> = document.keys_read().into_iter().map(|(_, value, _)| value).collect();
    let expected = [
        "\"1 bit/s\"",
        "\"1234567 bit/s\"",
        "\"2500 kbit/s\"",
        "\"1000 Gbit/s\"",
        "\"0 s\"",
        "\"1 ns\"",
        "\"1500 ms\"",
        "\"90 s\"",
        "\"2 h\"",
        "\"0 B\"",
        "\"1472 B\"",
        "\"64 KiB\"",
        "\"50 MB\"",
        "\"9000 TB\"",
        "1e-9",
        "\"a \\\"b\\\"\\n\\u007F\"",
        "1e17",
    ];
    assert_eq!(values, expected);
    // Each text in effect reads back as the same value.
    let mut again = super::document("");
    for (key, value, _) in document.keys_read() {
        again.set(&format!("{key}={value}")).expect("valid");
    }
    let mut top = again.root();
    assert_eq!(top.rate("b").map(BitRate::as_bps), Ok(1_234_567));
    assert_eq!(top.span("h").map(Span::as_nanos), Ok(90_000_000_000));
    assert_eq!(top.bytes("l"), Ok(Bytes(65_536)));
    assert_eq!(top.probability("o"), Ok(probability(1e-9)));
    assert_eq!(top.text("p").as_deref(), Ok("a \"b\"\n\u{7f}"));
}

#[test]
fn the_three_forms_differ_only_where_the_key_is_absent() {
    let text = "a = 3\nb = [1, 2]\nc = 1.5\nd = \"on\"\n[e]\n[[f]]\n";
    let document = document(text);
    let mut top = document.root();
    assert_eq!(top.integer("a", 1..=5_u8), Ok(3));
    assert_eq!(top.integer_or("a", 1..=5_u8, 4), Ok(3));
    assert_eq!(top.optional_integer("a", 1..=5_u8), Ok(Some(3)));
    assert_eq!(top.optional_integer("z", 1..=5_u8), Ok(None));
    assert_eq!(top.integer_or("z", 1..=5_u8, 4), Ok(4));
    assert_eq!(top.list_of_integers("b", 1..=2_u32), Ok(vec![1, 2]));
    assert_eq!(top.optional_list_of_integers("z", 1..=2_u32), Ok(None));
    assert_eq!(top.number("c", 0.0..=2.0), Ok(1.5));
    assert_eq!(top.optional_number("z", 0.0..=2.0), Ok(None));
    assert_eq!(top.choice("d", &[("off", 0), ("on", 1)]), Ok(1));
    assert_eq!(top.optional_choice("z", &[("off", 0)]), Ok(None));
    assert!(top.table("e").is_ok());
    assert!(top.optional_table("z").expect("absent").is_none());
    assert_eq!(top.table_or_empty("z").expect("absent").path(), "z");
    assert_eq!(top.tables("f").expect("a list").len(), 1);
    assert!(top.optional_tables("z").expect("absent").is_none());
    for error in [
        top.rate("z").map(drop),
        top.span("z").map(drop),
        top.bytes("z").map(drop),
        top.probability("z").map(drop),
        top.text("z").map(drop),
        top.flag("z").map(drop),
        top.integer("z", 1..=2_u8).map(drop),
        top.number("z", 0.0..=1.0).map(drop),
        top.choice("z", &[("on", 1)]).map(drop),
        top.list_of_integers("z", 1..=2_u8).map(drop),
        top.table("z").map(drop),
        top.tables("z").map(drop),
    ] {
        let error = error.expect_err("absent").to_string();
        assert!(
            error.starts_with("scenarios/x.toml: z: this key is missing at the top; add it, as in "),
            "{error}"
        );
    }
}

#[test]
fn who_wants_to_know_learns_what_was_asked_for() {
    let mut document = document(FULL);
    assert!(Scenario::read(&document).is_ok());
    assert_eq!(document.questions(), [], "nobody wanted to know");

    document.keep_questions();
    assert!(Scenario::read(&document).is_ok());
    let questions = document.questions();
    let find = |path: &str| questions.iter().find(|question| question.path == path).expect("asked");
    let air = find("link.stages.air.per");
    assert_eq!((&*air.table, air.key, air.given), ("link.stages", "per", true));
    assert_eq!(air.presence, Presence::Required);
    assert!(matches!(&air.asked, Asked::Value { noun, .. } if noun == "a probability"));
    let order = find("link.return.order");
    assert_eq!((order.given, &order.presence), (false, &Presence::Default("\"fifo\"".into())));
    assert!(matches!(&order.asked, Asked::Value { words, .. } if words == &["\"fifo\"", "\"random\""]));
    assert_eq!(find("link.return").presence, Presence::Optional);
    assert_eq!(find("link.stages").asked, Asked::Tables);
}

#[test]
fn what_was_asked_for_is_known_up_to_an_error() {
    let mut document = document("title = \"t\"\nseed = \"x\"\n");
    document.keep_questions();
    assert!(Scenario::read(&document).is_err());
    let keys: Vec<_> = document.questions().iter().map(|question| question.key).collect();
    assert_eq!(keys, ["title", "seed"]);
}
