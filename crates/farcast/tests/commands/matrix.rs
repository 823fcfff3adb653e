//! The page on what each protocol can do: each option that it says a protocol has is taken, and any other is refused.

use std::path::Path;

use crate::common::Place;

/// Protocols in the order of the page's columns.
const PROTOCOLS: [&str; 5] = ["mftp", "norm", "mdp", "pgm", "one-way"];

/// Row of the page: an option with its value, and whether each protocol has it.
struct Row {
    option: Vec<String>,
    has: Vec<bool>,
}

/// Returns the rows of the page whose first cell begins with an option.
fn rows() -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/matrix.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> =
            line.strip_prefix("| `--")?.trim_end_matches('|').split('|').map(str::trim).collect();
        let [first, has @ ..] = &cells[..] else { return None };
        let (option, words) = first.split_once('`')?;
        // The second table has rows about several options.
        words.starts_with(" (").then_some(()).or_else(|| words.is_empty().then_some(()))?;
        let option = format!("--{option}").split(' ').map(str::to_owned).collect();
        let has = has.iter().map(|cell| match *cell {
            "yes" => true,
            "no" => false,
            other => panic!("{other}: {line}"),
        });
        Some(Row { option, has: has.collect() })
    });
    rows.collect()
}

#[test]
fn the_page_says_which_protocol_has_which_option() {
    let rows = rows();
    assert!(rows.len() >= 14 && rows.iter().all(|row| row.has.len() == PROTOCOLS.len()));
    std::thread::scope(|scope| {
        for (column, protocol) in PROTOCOLS.into_iter().enumerate() {
            let rows = &rows;
            scope.spawn(move || {
                for row in rows {
                    takes(protocol, &row.option, row.has[column]);
                }
            });
        }
    });
}

/// Asserts that `send` by `protocol` takes `option`, or refuses it as wrong usage.
fn takes(protocol: &str, option: &[String], has: bool) {
    let place = Place::new();
    let file = place.file("product.bin", 1_000);
    let option: Vec<&str> = option.iter().map(String::as_str).collect();
    let rate: &[&str] = if option.contains(&"max") { &[] } else { &["--rate", "20 Mbit/s"] };
    // Nobody receives, so that a transfer is over soon.
    let end: &[&str] = match protocol {
        "mftp" => &["--announce-time", "200 ms", "--start-after", "100 ms"],
        "one-way" => &[],
        "pgm" => &["--linger", "100 ms", "--rtt", "10 ms", "--time-limit", "1 s"],
        _ => &["--robust", "1", "--rtt", "10 ms", "--time-limit", "1 s"],
    };
    let paths: &[&Path] = if option.contains(&"--stream") { &[] } else { &[&file] };
    let args = [&["--protocol", protocol], rate, &option[..], end].concat();
    let ended = place.run("sender", place.send_command(paths, &args));
    assert_eq!(ended.code != Some(2), has, "{protocol} {option:?}: {}", ended.story());
    if !has {
        ended.assert_failed(2, &[option[0]]);
    }
}
