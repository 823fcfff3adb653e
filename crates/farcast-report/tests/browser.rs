//! Pages as a browser shows them: `examples/page.rs`, opened in headless Chromium.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use farcast_testkit::browser;

#[path = "../examples/page.rs"]
#[allow(dead_code, reason = "its main is the example's")]
mod example;

#[test]
fn every_figure_is_drawn_and_every_number_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    std::fs::write(&path, example::page().html()).unwrap();
    let opened = browser::open(&path, "");
    assert!(opened.console.is_empty(), "{:?}", opened.console);
    assert_eq!(opened.document.matches("class=\"marks\"").count(), 5, "a figure is missing");
    // Labels that only a drawn figure has.
    for label in ["packet error rate", "completion time, s", "share, %", "octets", "protocol.srt.n = 4"] {
        assert!(opened.document.contains(&format!(">{label}</text>")), "{label} is nowhere drawn");
    }
    assert_eq!(
        opened.texts("table-0", "td"),
        ["a", "10.5", "agrees", "b", "9.25", "differs", "<c>", "", "undetermined"]
    );
}
