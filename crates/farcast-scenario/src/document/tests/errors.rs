//! The exact sentence and line of every error.

use super::{LEAST, document, error, read};
use crate::document::{Document, Problem, Reader};

/// Returns the least document with `line` added to its link's forward direction, where it is line 4.
fn forward(line: &str) -> String {
    error(&format!("{LEAST}{line}\n"))
}

#[test]
fn what_is_not_toml() {
    for (text, line) in
        [("a = 1\nb = \n", 2), ("a = 1\n\n[b\n", 3), ("a = \"x\n", 1), ("= 1", 1), ("a = 01\n", 1)]
    {
        let error = error(text);
        assert!(error.starts_with(&format!("scenarios/x.toml:{line}: this is not TOML: ")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(
        error("a = 1\r\nb = [\r\n  1,\r\n  2\r\nc = 3\r\n").split("TOML: ").next(),
        Some("scenarios/x.toml:5: this is not ")
    );
}

#[test]
fn a_key_that_is_given_twice() {
    assert_eq!(
        error("title = \"t\"\n\ntitle = \"u\"\n"),
        "scenarios/x.toml:3: title: this key is given twice; give it once"
    );
    assert_eq!(
        error("[link.forward]\n[link.return]\n[link.forward]\n"),
        "scenarios/x.toml:3: forward: this key is given twice; give it once"
    );
}

#[test]
fn numbers_that_fit_nowhere() {
    assert_eq!(
        error("title = \"t\"\nseed = 99999999999999999999\n"),
        "scenarios/x.toml:2: seed: 99999999999999999999 is too large; an integer must fit into 64 bits with its sign"
    );
    assert_eq!(
        error("a.b = [\n 1,\n 0xFFFFFFFFFFFFFFFF]\n"),
        "scenarios/x.toml:3: a.b: 0xFFFFFFFFFFFFFFFF is too large; an integer must fit into 64 bits with its sign"
    );
    assert_eq!(
        forward("weight = 1e999"),
        "scenarios/x.toml:4: link.forward.weight: 1e999 is too large; a number must fit into a double"
    );
    assert_eq!(
        forward("weight = -inf"),
        "scenarios/x.toml:4: link.forward.weight: -inf is out of range; it must be a number from 0.5 to 2"
    );
    assert_eq!(
        forward("weight = nan"),
        "scenarios/x.toml:4: link.forward.weight: nan is out of range; it must be a number from 0.5 to 2"
    );
}

#[test]
fn keys_that_are_unknown() {
    assert_eq!(
        forward("dealy = \"1 s\""),
        "scenarios/x.toml:4: link.forward.dealy: this key is unknown, did you mean delay; \
         the keys here are rate, delay, per, queue, order, weight"
    );
    assert_eq!(
        forward("bandwidth = 5"),
        "scenarios/x.toml:4: link.forward.bandwidth: this key is unknown; \
         the keys here are rate, delay, per, queue, order, weight"
    );
    assert_eq!(
        error("title = \"t\"\n[lnik]\n[link.forward]\nrate = \"1 bit/s\"\n"),
        "scenarios/x.toml:2: lnik: this key is unknown, did you mean link; \
         the keys here are title, seed, verbose, sizes, link"
    );
    assert_eq!(
        error(&format!("{LEAST}[[stages]]\n[[stages]]\n")),
        "scenarios/x.toml:4: stages: this key is unknown; the keys here are title, seed, verbose, sizes, link"
    );
    let bare = document("a = 1\n");
    assert_eq!(
        bare.root().finish().expect_err("unknown").to_string(),
        "scenarios/x.toml:1: a: this key is unknown; there are no keys here"
    );
}

#[test]
fn the_first_of_several_unknown_keys() {
    // The alphabet would put zz last and aa first.
    assert_eq!(
        forward("zz = 1\naa = 2"),
        "scenarios/x.toml:4: link.forward.zz: this key is unknown; \
         the keys here are rate, delay, per, queue, order, weight"
    );
}

#[test]
fn keys_that_only_another_alternative_has() {
    assert_eq!(
        error(&format!(
            "{LEAST}[[link.stages]]\nname = \"air\"\nkind = \"loss\"\nper = 0\nrate = \"1 bit/s\"\n"
        )),
        "scenarios/x.toml:8: link.stages.air.rate: this key is unknown; the keys here are name, kind, per"
    );
}

#[test]
fn keys_that_are_missing() {
    assert_eq!(
        error("seed = 1\n"),
        "scenarios/x.toml: title: this key is missing at the top; add it, as in title = \"...\""
    );
    assert_eq!(
        error("title = \"t\"\n"),
        "scenarios/x.toml: link: this key is missing at the top; add it, as in [link]"
    );
    assert_eq!(
        error("title = \"t\"\n\n[link]\n"),
        "scenarios/x.toml:3: link.forward: this key is missing in the table link; add it, as in [link.forward]"
    );
    assert_eq!(
        error("title = \"t\"\n\n[link.forward]\nper = 0\n"),
        "scenarios/x.toml:3: link.forward.rate: this key is missing in the table link.forward; \
         add it, as in rate = \"20 Mbit/s\""
    );
    assert_eq!(
        error(&format!("{LEAST}[[link.stages]]\nname = \"up\"\n\n[[link.stages]]\nname = \"a\"\n")),
        "scenarios/x.toml:4: link.stages.up.kind: this key is missing in the table link.stages.up; \
         add it, as in kind = \"pipe\""
    );
    assert_eq!(
        error(&format!("{LEAST}[[link.stages]]\n")),
        "scenarios/x.toml:4: link.stages[0].name: this key is missing in the table link.stages[0]; \
         add it, as in name = \"...\""
    );
}

#[test]
fn every_kind_has_its_example() {
    let document = document("\n[a]\n");
    let mut top = document.root();
    let mut table = top.table("a").expect("there");
    let example = |error: Result<(), crate::document::DocumentError>| {
        let error = error.expect_err("missing").to_string();
        error
            .strip_prefix("scenarios/x.toml:2: a.k: this key is missing in the table a; add it, as in ")
            .map(str::to_owned)
    };
    let examples = [
        example(table.rate("k").map(drop)),
        example(table.span("k").map(drop)),
        example(table.bytes("k").map(drop)),
        example(table.probability("k").map(drop)),
        example(table.text("k").map(drop)),
        example(table.flag("k").map(drop)),
        example(table.integer("k", 5..=9_u8).map(drop)),
        example(table.number("k", 0.0..=1.0).map(drop)),
        example(table.choice("k", &[("on", 1), ("off", 0)]).map(drop)),
        example(table.list_of_integers("k", 5..=9_u8).map(drop)),
        example(table.table("k").map(drop)),
        example(table.tables("k").map(drop)),
    ];
    let expected = [
        "k = \"20 Mbit/s\"",
        "k = \"250 ms\"",
        "k = \"1 MiB\"",
        "k = 0.005",
        "k = \"...\"",
        "k = true",
        "k = 5",
        "k = 0.0",
        "k = \"on\"",
        "k = [5]",
        "[a.k]",
        "[[a.k]]",
    ];
    assert_eq!(examples.map(Option::unwrap_or_default), expected);
}

#[test]
fn quantities_without_a_unit() {
    assert_eq!(
        error("title = \"t\"\n[link.forward]\nrate = 20\n"),
        "scenarios/x.toml:3: link.forward.rate: 20 has no unit; \
         a number needs one of the units bit/s, kbit/s, Mbit/s, Gbit/s, as in \"20 Mbit/s\""
    );
    assert_eq!(
        forward("delay = 0.25"),
        "scenarios/x.toml:4: link.forward.delay: 0.25 has no unit; \
         a number needs one of the units ns, us, ms, s, min, h, d, as in \"250 ms\""
    );
    assert_eq!(
        forward("queue = 65536"),
        "scenarios/x.toml:4: link.forward.queue: 65536 has no unit; \
         a number needs one of the units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, as in \"1 MiB\""
    );
    assert_eq!(
        forward("delay = \"250\""),
        "scenarios/x.toml:4: link.forward.delay: \"250\" is not a time; \
         a number needs one of the units ns, us, ms, s, min, h, d, as in \"250 ms\""
    );
}

#[test]
fn quantities_that_are_none() {
    assert_eq!(
        forward("delay = \"long\""),
        "scenarios/x.toml:4: link.forward.delay: \"long\" is not a time; it must begin with a number, as in \"250 ms\""
    );
    assert_eq!(
        forward("delay = true"),
        "scenarios/x.toml:4: link.forward.delay: true is not a time; it must begin with a number, as in \"250 ms\""
    );
    assert_eq!(
        forward("delay = [\"250 ms\"]"),
        "scenarios/x.toml:4: link.forward.delay: a list is not a time; it must begin with a number, as in \"250 ms\""
    );
    assert_eq!(
        forward("delay = 07:32:00"),
        "scenarios/x.toml:4: link.forward.delay: the date or time 07:32:00 is not a time; \
         it must begin with a number, as in \"250 ms\""
    );
    assert_eq!(
        error("title = \"t\"\nlink.forward.rate = \"0 bit/s\"\n"),
        "scenarios/x.toml:2: link.forward.rate: \"0 bit/s\" is out of range; \
         it must lie within 1 bit/s to 1000 Gbit/s"
    );
}

#[test]
fn probabilities_out_of_range() {
    for (value, shown) in [("1.5", "1.5"), ("-1", "-1"), ("\"101 %\"", "\"101 %\"")] {
        assert_eq!(
            forward(&format!("per = {value}")),
            format!(
                "scenarios/x.toml:4: link.forward.per: {shown} is out of range; \
                 it must lie within 0 to 1, or 0 % to 100 %"
            )
        );
    }
    assert_eq!(
        forward("per = nan"),
        "scenarios/x.toml:4: link.forward.per: nan is not a probability; it must begin with a number, as in \"2 %\""
    );
}

#[test]
fn values_of_another_kind() {
    for (line, expected) in [
        ("weight = \"1\"", "weight: \"1\" is not a number; it must be a number from 0.5 to 2"),
        ("weight = 3", "weight: 3 is out of range; it must be a number from 0.5 to 2"),
        (
            "order = \"fif\"",
            "order: \"fif\" is not known, did you mean \"fifo\"; it must be one of \"fifo\", \"random\"",
        ),
        ("order = \"best\"", "order: \"best\" is not known; it must be one of \"fifo\", \"random\""),
        ("order = 1", "order: 1 is not known; it must be one of \"fifo\", \"random\""),
    ] {
        assert_eq!(forward(line), format!("scenarios/x.toml:4: link.forward.{expected}"));
    }
    for (text, expected) in [
        ("title = 1", "title: 1 is not text; it must be text in quotes"),
        ("title = {}", "title: a table is not text; it must be text in quotes"),
        (
            "title = ''\nseed = 1.0",
            "seed: 1.0 is not an integer; it must be an integer from 0 to 9223372036854775807",
        ),
        (
            "title = ''\nseed = -1",
            "seed: -1 is out of range; it must be an integer from 0 to 9223372036854775807",
        ),
        ("title = ''\nverbose = \"yes\"", "verbose: \"yes\" is not a flag; it must be true or false"),
        ("title = ''\nsizes = 5", "sizes: 5 is not a list; it must be a list, as in [1]"),
        ("title = ''\nlink = 5", "link: 5 is not a table; it must be a table, headed [link]"),
        ("title = ''\n[[link]]", "link: a list is not a table; it must be a table, headed [link]"),
    ] {
        let line = text.lines().count();
        assert_eq!(error(text), format!("scenarios/x.toml:{line}: {expected}"));
    }
}

#[test]
fn lists_of_tables_that_are_none() {
    assert_eq!(
        error(&format!("{LEAST}[link.stages]\n")),
        "scenarios/x.toml:4: link.stages: a table is not a list of tables; \
         it must be tables, each headed [[link.stages]]"
    );
    assert_eq!(
        error(&format!(
            "{}link.stages = [\n {{ name = \"a\" }},\n 5\n]\n",
            "title = \"t\"\nlink.forward.rate = \"1 bit/s\"\n"
        )),
        "scenarios/x.toml:5: link.stages[1]: 5 is not a table; it must be tables, each headed [[link.stages]]"
    );
    assert_eq!(
        error(&format!("{LEAST}[[link.stages]]\nname = \"a\"\n[[link.stages]]\nname = \"a\"\n")),
        "scenarios/x.toml:6: link.stages: two members of this list are named \"a\"; each must have its own name"
    );
}

#[test]
fn the_header_in_an_error_leaves_out_names_of_members() {
    let document = document("[[s]]\nname = \"a\"\n");
    let mut top = document.root();
    let mut member = top.tables("s").expect("a list").remove(0);
    assert_eq!(
        member.table("queue").map(drop).expect_err("missing").to_string(),
        "scenarios/x.toml:1: s.a.queue: this key is missing in the table s.a; add it, as in [s.queue]"
    );
}

#[test]
fn an_element_of_a_list_has_its_own_line() {
    assert_eq!(
        error("title = \"t\"\nsizes = [\n  500, # small\n  70_000,\n  1_000,\n]\n"),
        "scenarios/x.toml:4: sizes: 70000 is out of range; it must be an integer from 1 to 65535"
    );
    assert_eq!(
        error("title = \"t\"\nsizes = [\n  500,\n\n  \"x\",\n]\n"),
        "scenarios/x.toml:5: sizes: \"x\" is not an integer; it must be an integer from 1 to 65535"
    );
}

#[test]
fn the_line_is_right_however_the_key_is_written() {
    // Dotted keys.
    assert_eq!(
        error("title = \"t\"\nlink.forward.rate = \"1 bit/s\"\nlink.forward.\"p r\" = 1\n"),
        "scenarios/x.toml:3: link.forward.\"p r\": this key is unknown, did you mean per; \
         the keys here are rate, delay, per, queue, order, weight"
    );
    // Inline tables.
    assert_eq!(
        error("title = \"t\"\nlink = { forward = { rate = \"1 bit/s\", per = 2 } }\n"),
        "scenarios/x.toml:2: link.forward.per: 2 is out of range; it must lie within 0 to 1, or 0 % to 100 %"
    );
    assert_eq!(
        error("title = \"t\"\nlink = { forward = { per = 0 } }\n"),
        "scenarios/x.toml:2: link.forward.rate: this key is missing in the table link.forward; \
         add it, as in rate = \"20 Mbit/s\""
    );
    // A table that exists only because one inside it does.
    assert_eq!(
        error("title = \"t\"\n\n[link.back]\n"),
        "scenarios/x.toml:3: link.forward: this key is missing in the table link; add it, as in [link.forward]"
    );
    // Lines that end with a carriage return.
    assert_eq!(
        error("title = \"t\"\r\n\r\n[link.forward]\r\nrate = \"1 bit/s\"\r\nper = 2\r\n"),
        "scenarios/x.toml:5: link.forward.per: 2 is out of range; it must lie within 0 to 1, or 0 % to 100 %"
    );
    // Long strings before it.
    assert_eq!(
        error("title = \"\"\"\none\ntwo \\\"\"\"\"\nseed = \"\"\"\nx\"\"\"\n"),
        "scenarios/x.toml:4: seed: \"x\" is not an integer; it must be an integer from 0 to 9223372036854775807"
    );
}

#[test]
fn the_line_is_right_behind_marks_and_letters_of_several_bytes() {
    assert_eq!(
        error("\u{feff}titel = \"t\"\n"),
        "scenarios/x.toml: title: this key is missing at the top; add it, as in title = \"...\""
    );
    assert_eq!(
        error("\u{feff}title = 1\n"),
        "scenarios/x.toml:1: title: 1 is not text; it must be text in quotes"
    );
    assert_eq!(
        error(
            "\u{feff}# Grüße, 世界\ntitle = \"Straße 🛰\"\n\"größe 世界\" = { a = 1 }\nlink.forward.rate = \"1 bit/s\"\n"
        ),
        "scenarios/x.toml:3: \"größe 世界\": this key is unknown; \
         the keys here are title, seed, verbose, sizes, link"
    );
    assert_eq!(
        error("title = \"t\"\nlink = { \"世界\" = \"🛰\", forward = { rate = \"ü\" } }\n"),
        "scenarios/x.toml:2: link.forward.rate: \"ü\" is not a bit rate; \
         it must begin with a number, as in \"20 Mbit/s\""
    );
}

#[test]
fn what_lies_too_deep() {
    let lists = |depth: usize| format!("title = \"t\"\na = {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(
        error(&lists(17)),
        "scenarios/x.toml:2: this lies too deep; at most 16 tables and lists may lie within each other"
    );
    assert_eq!(
        error(&lists(16)),
        "scenarios/x.toml:2: a: this lies too deep; at most 16 tables and lists may lie within each other"
    );
    assert!(Document::parse("x", &lists(15)).is_ok());
    let dots = |depth: usize| format!("{}x = 1\n", "a.".repeat(depth));
    assert!(Document::parse("x", &dots(15)).is_ok());
    assert!(
        error(&dots(16))
            .ends_with(": this lies too deep; at most 16 tables and lists may lie within each other")
    );
}

#[test]
fn long_and_odd_text_stays_in_one_short_line() {
    let long = "x".repeat(10_000);
    assert_eq!(
        forward(&format!("delay = \"{long}\"")),
        format!(
            "scenarios/x.toml:4: link.forward.delay: \"{}...\" is not a time; \
             it must begin with a number, as in \"250 ms\"",
            "x".repeat(40)
        )
    );
    assert_eq!(
        forward(&format!("{long} = 1")),
        format!(
            "scenarios/x.toml:4: link.forward.{}...: this key is unknown; \
             the keys here are rate, delay, per, queue, order, weight",
            "x".repeat(67)
        )
    );
    assert_eq!(
        forward("\"a\\nb\\u202E\" = 1"),
        "scenarios/x.toml:4: link.forward.\"a\\nb\\u202E\": this key is unknown; \
         the keys here are rate, delay, per, queue, order, weight"
    );
}

#[test]
fn what_the_schema_refuses_for_its_own_reasons() {
    let document = document("[link]\nper = 0.1\n");
    let mut top = document.root();
    let link = top.table("link").expect("there");
    let refuse =
        |reader: &Reader<'_>, key| reader.refuse(key, "it excludes ber", "give one of the two").to_string();
    assert_eq!(refuse(&link, "per"), "scenarios/x.toml:2: link.per: it excludes ber; give one of the two");
    assert_eq!(
        refuse(&link, "queue"),
        "scenarios/x.toml:1: link.queue: it excludes ber; give one of the two"
    );
}

#[test]
fn a_caller_can_match_on_what_is_wrong() {
    let error = read("title = \"t\"\nseed = -1\n").expect_err("refused");
    assert_eq!(error.key, "seed");
    assert!(matches!(*error.problem, Problem::Range { .. }));
}
