//! The page of all keys: it is up to date, and has every key that the sources ask for.

use std::path::{Path, PathBuf};

use farcast_book::{keys, repository};

/// Methods of readers whose first argument is a key.
const METHODS: [&str; 44] = [
    "rate",
    "rate_or",
    "optional_rate",
    "span",
    "span_or",
    "optional_span",
    "bytes",
    "bytes_or",
    "optional_bytes",
    "optional_bytes_or",
    "probability",
    "probability_or",
    "optional_probability",
    "list_of_bytes",
    "list_of_bytes_or",
    "optional_list_of_bytes",
    "list_of_texts",
    "list_of_texts_or",
    "optional_list_of_texts",
    "text",
    "text_or",
    "optional_text",
    "flag",
    "flag_or",
    "optional_flag",
    "integer",
    "integer_or",
    "optional_integer",
    "number",
    "number_or",
    "optional_number",
    "choice",
    "choice_or",
    "optional_choice",
    "list_of_integers",
    "list_of_integers_or",
    "optional_list_of_integers",
    "table",
    "table_or_empty",
    "optional_table",
    "tables",
    "optional_tables",
    "file",
    "optional_file",
];

fn page() -> String {
    keys::page().unwrap_or_else(|error| {
        panic!("{error}\nwhat keys mean is said in crates/farcast-book/src/keys/sections, what leads to them in samples.rs")
    })
}

#[test]
fn the_page_is_what_the_program_says() {
    let path = repository().join("docs/src/scenario-keys.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/src/scenario-keys.md is stale; `cargo run -p farcast-book -- keys` renews it"
    );
}

#[test]
fn every_key_that_the_sources_ask_for_is_on_the_page() {
    let page = page();
    let mut found = 0;
    let mut missing = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).expect("a source");
        for key in asked(&text) {
            found += 1;
            if !page.contains(&format!("\n| `{key}` |")) {
                missing.push(format!("{}: {key}", path.display()));
            }
        }
    }
    assert!(found > 300, "only {found} keys were found: does the scan still know how they are asked for?");
    assert!(missing.is_empty(), "not on the page:\n{}", missing.join("\n"));
}

#[test]
fn the_scan_finds_keys_however_they_are_asked_for() {
    let text = r#"table.rate("a")?; table
        .span_or(
            "b", x); queue_of(table, "c", "d"); positive(&mut inner, "e"); one("f"); other.push("g"); const K: &str = "h";
        optional_interval(&mut t, "i")"#;
    assert_eq!(asked(text), ["a", "b", "c", "d", "e", "i"]);
}

/// Sources that read scenarios, without their tests.
fn sources() -> Vec<PathBuf> {
    let crates = repository().join("crates");
    let mut folders: Vec<_> = ["farcast-scenario/src", "farcast-sim/src/scenario", "farcast-lab/src/tune"]
        .map(|folder| crates.join(folder))
        .into();
    let mut files = vec![crates.join("farcast-sim/src/scenario.rs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_test = |path: &Path| path.file_stem().is_some_and(|stem| stem == "tests");
            // The reader itself has examples, and no schema.
            if is_test(&path) || path.ends_with("document") || path.ends_with("document.rs") {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Keys that a source asks for: literals behind a method of a reader, and behind a reader that is handed to a function.
fn asked(text: &str) -> Vec<String> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let mut keys = Vec::new();
    let mut last = None;
    for (at, _) in code.match_indices('"') {
        // Opening quotes alone: a key follows, and the closing quote.
        let Some(key) = code[at + 1..].split('"').next().filter(|key| is_key(key)) else { continue };
        let before = code[..at].trim_end();
        let by_method = before.strip_suffix('(').is_some_and(|before| {
            METHODS.iter().any(|method| before.strip_suffix(method).is_some_and(|rest| rest.ends_with('.')))
        });
        let reader = before.strip_suffix(',').and_then(|before| {
            let open = before.rfind('(')?;
            let name = before[open + 1..].trim().trim_start_matches("&mut ").to_owned();
            let is_reader = ["table", "inner", "top", "srt", "protocol", "t"].contains(&&*name);
            // The error names a key that was asked for.
            (is_reader && !before[..open].ends_with("refuse") && !before[..open].ends_with("too_short"))
                .then_some(())
        });
        // A second key behind the first, as in `queue_of(table, "queue", "queue_packets")`.
        let second = last.is_some_and(|end| code[end..at].trim() == ",") && before.ends_with(',');
        last = None;
        if by_method || reader.is_some() || second {
            keys.push(key.to_owned());
            if !by_method {
                last = Some(at + key.len() + 2);
            }
        }
    }
    keys
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn shipped_scenarios_ask_for_nothing_else() {
    let page = page();
    for shipped in farcast_lab::shipped::scenarios() {
        let mut document = shipped.document().expect("it is right");
        document.keep_questions();
        farcast_lab::World::read(&document).expect("it is right");
        for question in document.questions() {
            let row = format!("\n| `{}` |", question.key);
            assert!(page.contains(&row), "{} is not on the page", question.path);
        }
    }
}
