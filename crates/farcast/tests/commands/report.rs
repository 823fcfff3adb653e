//! Pages of real transfers, as a browser shows them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use farcast_testkit::browser::{self, Opened};
use serde_json::Value;

use crate::common::{Place, names, pause, wait_until};

/// Opens the page at `path`, which must not log any message.
fn opened(path: &Path) -> Opened {
    let page = browser::open(path, "");
    assert!(page.console.is_empty(), "{}: {:?}", path.display(), page.console);
    page
}

/// Returns the rows of a table.
fn rows(page: &Opened, table: usize) -> Vec<Vec<String>> {
    let id = format!("table-{table}");
    let columns = page.texts(&id, "th").len();
    page.texts(&id, "td").chunks(columns).map(<[String]>::to_vec).collect()
}

/// Returns the table with this heading, and its rows.
fn with_heading(page: &Opened, heading: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let number = (0..20).find(|n| page.texts(&format!("table-{n}"), "th").iter().any(|one| one == heading));
    let number = number.unwrap_or_else(|| panic!("a table of {heading}"));
    (page.texts(&format!("table-{number}"), "th"), rows(page, number))
}

/// Returns the cell of `row` below `heading`.
fn cell<'a>(headings: &[String], row: &'a [String], heading: &str) -> &'a str {
    let at = headings.iter().position(|one| one == heading);
    &row[at.unwrap_or_else(|| panic!("{heading} in {headings:?}"))]
}

fn delivered(protocol: &str) -> (Place, Value, Value) {
    let place = Place::new();
    let file = place.file("image.bin", 1_500_000);
    let page = |name: &str| place.path(name).display().to_string();
    let (sending, receiving) = (page("send.html"), page("receive.html"));
    let common = ["--protocol", protocol];
    let lossy = ["--simulate-loss", "5 %", "--report", &receiving];
    let ant = place.receive("ant", &[&common[..], &lossy].concat());
    let bee = place.receive("bee", &common);
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant,bee", "--report", &sending];
    let sent = place.send(&[&file], &[&common[..], &args].concat()).succeed().summary();
    let got = ant.succeed().summary();
    bee.succeed();
    assert!(!names(place.root()).iter().any(|name| name.starts_with('.')), "nothing half-written is left");
    (place, sent, got)
}

#[test]
fn by_mftp() {
    let (place, sent, got) = delivered("mftp");
    let page = opened(&place.path("send.html"));
    let (headings, receivers) = with_heading(&page, "receiver");
    assert_eq!(receivers.len(), 2);
    for (row, member) in receivers.iter().zip(sent["receivers"].as_array().unwrap()) {
        let cell = |heading| cell(&headings, row, heading);
        assert_eq!((cell("receiver"), cell("state")), (member["receiver"].as_str().unwrap(), "done"));
        assert_eq!(cell("asked again, DTUs"), member["naked_dtus"].to_string());
        assert_eq!(cell("NAKs"), member["naks"].to_string());
    }
    let (headings, passes) = with_heading(&page, "pass");
    let dtus: Vec<&str> =
        passes.iter().map(|row| cell(&headings, row, "DTUs sent, parity included")).collect();
    let expected: Vec<String> =
        sent["dtus_per_pass"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(dtus, expected);
    let (headings, what) = with_heading(&page, "what");
    let all = what.iter().find(|row| row[0] == "all that was sent").unwrap();
    assert_eq!(cell(&headings, all, "octets"), sent["wire_bytes"].to_string());
    for part in
        ["Both receivers have everything", "Delivery over time", "time, s", "rate, Mbit/s", "summary.json"]
    {
        assert!(page.document.contains(part), "{part}");
    }

    let page = opened(&place.path("receive.html"));
    let (headings, products) = with_heading(&page, "product");
    let cell = |heading| cell(&headings, &products[0], heading);
    assert_eq!((products.len(), cell("product"), cell("state")), (1, "image.bin", "complete"));
    assert_eq!(cell("DTUs received"), got["dtus_received"].to_string());
    assert_eq!(cell("NAKs"), got["naks"].to_string());
}

#[test]
fn by_norm() {
    let (place, sent, got) = delivered("norm");
    let page = opened(&place.path("send.html"));
    let (headings, receivers) = with_heading(&page, "receiver");
    let named: Vec<&str> = receivers.iter().map(|row| cell(&headings, row, "receiver")).collect();
    assert_eq!(named, ["ant", "bee"]);
    let (headings, what) = with_heading(&page, "what");
    let all = what.iter().find(|row| row[0] == "all that was sent").unwrap();
    assert_eq!(cell(&headings, all, "octets"), sent["wire_bytes"].to_string());
    let page = opened(&place.path("receive.html"));
    let (headings, products) = with_heading(&page, "product");
    assert_eq!(cell(&headings, &products[0], "segments received"), got["dtus_received"].to_string());
}

#[test]
fn who_is_not_there_has_nothing() {
    let place = Place::new();
    let file = place.file("image.bin", 300_000);
    let (sending, receiving) = (place.path("send.html"), place.path("receive.html"));
    // It goes on listening, and has a page for all that.
    let mut command = place.receive_command("ant", &["--report", receiving.to_str().unwrap()]);
    command.arg("--json");
    let ant = place.start("ant", command);
    ant.until("listening");
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant,bee", "--silence", "3 s", "--report"];
    let ended = place.send(&[&file], &[&args[..], &[sending.to_str().unwrap()]].concat()).wait();
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    let took = ended.summary()["time_s"].as_f64().unwrap();
    assert!(took < 2.5, "{took} s for who came, and three for who did not");
    let page = opened(&sending);
    let (headings, receivers) = with_heading(&page, "receiver");
    let states: Vec<&str> = receivers.iter().map(|row| cell(&headings, row, "state")).collect();
    assert_eq!(states, ["done", "did not register"]);
    assert!(page.document.contains("Incomplete: not every receiver has it: bee"), "it is said first");
    let figures = fs::read_to_string(&sending).unwrap();
    let figures = figures.split_once("id=\"figures\"").unwrap().1.split_once('>').unwrap().1;
    let figures: Value = serde_json::from_str(figures.split_once("</script>").unwrap().0).unwrap();
    let most = |name: &str| {
        let points = figures[0]["data"]["values"].as_array().unwrap().iter();
        points
            .filter(|point| point["series"] == name)
            .map(|point| point["y"].as_f64().unwrap())
            .fold(-1.0, f64::max)
    };
    assert_eq!((most("ant"), most("bee")), (100.0, 0.0));
    wait_until("there is a page", || receiving.exists());
    let page = fs::read_to_string(&receiving).unwrap();
    assert!(page.contains("image.bin complete and verified") && page.contains("It goes on listening."));
    ant.kill9();
    assert!(!names(place.root()).iter().any(|name| name.starts_with('.')), "nothing half-written is left");
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_anything_leaves() {
    let place = Place::new();
    let file = place.file("image.bin", 1000);
    let nowhere = place.path("not/there/page.html").display().to_string();
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant", "--report", &nowhere];
    place
        .send(&[&file], &args)
        .wait()
        .assert_one_sentence(2, &["--report", &nowhere, "there is no directory"]);
    let mut command = place.receive_command("ant", &["--once", "--report", &nowhere]);
    command.arg("--json");
    place
        .start("ant", command)
        .wait()
        .assert_one_sentence(2, &["--report", &nowhere, "there is no directory"]);
    let same = place.path("same").display().to_string();
    let args = ["--rate", "8 Mbit/s", "--receivers", "ant", "--report", &same, "--log", &same];
    place.send(&[&file], &args).wait().assert_one_sentence(2, &["--log", "--report"]);
    assert!(!place.path("same").exists());
}

#[test]
fn who_is_killed_leaves_no_page_and_no_part_of_one() {
    let place = Place::new();
    let file = place.file("image.bin", 1_000_000);
    let page = place.path("send.html").display().to_string();
    let ant = place.receive("ant", &[]);
    let args = ["--rate", "2 Mbit/s", "--receivers", "ant", "--report", &page];
    let sender = place.send(&[&file], &args);
    sender.until("started");
    pause(Duration::from_millis(500));
    sender.kill9();
    ant.kill9();
    let left = names(place.root());
    assert!(!left.iter().any(|name| name.contains("html")), "{left:?}");
}
