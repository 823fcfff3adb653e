//! Unreasonable texts: no panic, no stack overflow, and one sentence for an error.

use proptest::prelude::*;

use super::{FULL, Scenario, document};
use crate::document::{Document, Origin, nesting};

/// Reads the text and lays the assignments over it; an error is one line that says where.
fn check(text: &str, assignments: &[String]) -> Result<(), TestCaseError> {
    let mut document = match Document::parse("x.toml", text) {
        Ok(document) => document,
        Err(error) => return one_line(&error.to_string()),
    };
    for assignment in assignments {
        if let Err(error) = document.set(assignment) {
            one_line(&error.to_string())?;
        }
    }
    match Scenario::read(&document) {
        Ok(_) => prop_assert!(!document.keys_read().is_empty()),
        Err(error) => one_line(&error.to_string())?,
    }
    Ok(())
}

fn one_line(error: &str) -> Result<(), TestCaseError> {
    prop_assert!(error.starts_with("x.toml:") || error.starts_with("--set "), "{}", error);
    prop_assert!(!error.chars().any(char::is_control), "{:?}", error);
    prop_assert!(error.chars().count() < 1_500, "{}", error);
    Ok(())
}

/// Pieces that mean something in TOML.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "[",
        "]",
        "{",
        "}",
        "[[",
        "]]",
        "=",
        ".",
        ",",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "#",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\u{feff}",
        "\u{0}",
        "é",
        "世",
        "link",
        "forward",
        "stages",
        "name",
        "rate",
        "per",
        "title",
        "1",
        "0.5",
        "inf",
        "nan",
        "1979-05-27",
        "07:32",
        "true",
        "9e999",
        "0xFF",
        "99999999999999999999",
        "_",
        "+",
        "-",
        "e",
        "\\u12",
        "a.b.c",
        "[link.forward]",
        "[[link.stages]]",
        "rate = \"1 Mbit/s\"",
        "title = \"t\"",
    ];
    prop_oneof![4 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

fn pieces(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..most).prop_map(|pieces| pieces.concat())
}

/// Generates the full document with some of its characters removed, replaced or repeated.
fn mutated() -> impl Strategy<Value = String> {
    let cut = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), piece(), 0..4_u8);
    prop::collection::vec(cut, 1..6).prop_map(|cuts| {
        let mut text: Vec<char> = FULL.chars().collect();
        for (at, len, piece, action) in cuts {
            let at = at.index(text.len() + 1);
            let end = (at + len.index(12)).min(text.len());
            let insert: Vec<char> = match action {
                0 => Vec::new(),
                1 => text[at..end].repeat(2),
                _ => piece.chars().collect(),
            };
            text.splice(at..end, insert);
        }
        text.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn random_text_is_survived(text in any::<String>(), assignment in any::<String>()) {
        check(&text, &[assignment])?;
    }

    #[test]
    fn random_pieces_are_survived(text in pieces(60), assignments in prop::collection::vec(pieces(12), 0..4)) {
        check(&text, &assignments)?;
        check(FULL, &assignments)?;
    }

    #[test]
    fn mutations_are_survived(text in mutated()) {
        check(&text, &["link.stages.air.per=0.5".to_owned(), "a.b=1".to_owned()])?;
    }

    #[test]
    fn a_document_that_is_read_tells_values_that_read_back(text in mutated()) {
        let Ok(first) = Document::parse("x.toml", &text) else { return Ok(()) };
        let Ok(scenario) = Scenario::read(&first) else { return Ok(()) };
        let name = |(key, value, _): &(String, String, Origin)| {
            key.strip_suffix(".name").map(|_| format!("{{name={value}}}"))
        };
        let members: Vec<String> = first.keys_read().iter().filter_map(name).collect();
        let mut again = document("");
        again.set(&format!("link.stages=[{}]", members.join(","))).expect("an assignment");
        for (key, value, _) in first.keys_read() {
            again.set(&format!("{key}={value}")).expect("an assignment");
        }
        prop_assert_eq!(Scenario::read(&again), Ok(scenario));
    }

    #[test]
    fn the_depth_of_brackets_is_counted((text, depth) in nested()) {
        let text = format!("# [[[\na = {text}\n[b]\nc = ']'\n");
        prop_assert!(toml::de::DeTable::parse(&text).is_ok(), "{}", text);
        let depth = depth.max(1);
        prop_assert_eq!(nesting::first_beyond(&text, depth), None);
        prop_assert!(nesting::first_beyond(&text, depth - 1).is_some(), "{}", text);
    }
}

/// Generates a TOML value and the depth of its brackets.
fn nested() -> impl Strategy<Value = (String, usize)> {
    let leaves = [
        "1",
        "true",
        r#""[""#,
        "'{'",
        r#""\"[\\""#,
        r"'\'",
        "\"\"\"\n[\"[\"\"[\\\"\"\"\"\"\"",
        "'''[\n'[''[''''",
        "\"\"",
        "''",
        "\"'\"",
        "'\"'",
        "\"# [\"",
        "\"\"\"\"\"\"",
        "''''''",
    ];
    let leaf = prop::sample::select(leaves.to_vec()).prop_map(|text| (text.to_owned(), 0));
    leaf.prop_recursive(12, 64, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(|values| {
            let deepest = values.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
            let texts: Vec<String> = values.into_iter().map(|(text, _)| text).collect();
            (format!("[ # [\n{}]", texts.join(",\r\n")), deepest + 1)
        });
        let table =
            inner.prop_map(|(text, depth)| (format!("{{a.'['.\"{{\\\"\" = {text}, b = 1}}"), depth + 1));
        prop_oneof![list, table]
    })
}

#[test]
fn the_deepest_text_that_the_parser_takes_needs_little_stack() {
    // 79 brackets with 79 dotted keys in each are a tree of 6,241 levels, which takes more than a megabyte to drop.
    let level = format!("{{{}=", ["a"; 79].join("."));
    let value = format!("{}1{}", level.repeat(79), "}".repeat(79));
    for text in [format!("x={value}"), format!("x=1\nx={value}"), format!("x=[[{value}] {value}")] {
        let error = Document::parse("x.toml", &text).expect_err("too deep").to_string();
        assert!(error.contains("lies too deep"), "{error}");
    }
    let mut document = document("");
    assert!(document.set(&format!("x={value}")).expect_err("too deep").to_string().contains("lies too deep"));
    for open in ["[", "{a=", "[[", "[{a=[", "{\"a\"={", "a.b.", "[a.b]\n", "\"\"\"", "'''"] {
        let error = Document::parse("x.toml", &format!("x={}", open.repeat(100_000)));
        assert!(error.is_err(), "{open}");
    }
}

#[test]
fn brackets_in_strings_and_comments_are_no_brackets() {
    let limit_of = |text: &str| (0..20).find(|limit| nesting::first_beyond(text, *limit).is_none());
    for (text, depth) in [
        ("a = 1", 0),
        ("a = [[], {b = [1]}]", 3),
        ("[a]\n[[b.c]]\nd = []", 2),
        ("a = \"[[[\" # [[[[\nb = '[[[{'", 0),
        ("a = \"\\\"[\\\\\"\nb = [']']", 1),
        ("a = \"\"\"[\n[\"\" [\\\"\"\"\"\"\nb = [1]", 1),
        ("a = '''[\n['' [''''' \nb = [[1]]", 2),
        ("[\"a[b\"]\n[c\n[d\n[e\n", 1),
        ("a = [1}, [2]}]", 2),
        ("it's = [[1]]", 2),
        ("a = \"[[\nb = [1]", 1),
    ] {
        assert_eq!(limit_of(text), Some(depth), "{text}");
    }
}
