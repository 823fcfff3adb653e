//! Text from strangers in output. A name may hold newlines, terminal commands and writing directions. It must be shown
//! as one part of one line, by every command and from every source.

use std::fs;
use std::path::Path;

use farcast_report::text::is_obeyed;

use crate::common::{Ended, Place, Running, need_root, wait_for_journal, wait_until};

/// Name that would forge a line, with all characters that no line may hold.
const EVIL: &str = "x\nforged\r\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\
                    \u{200f}\u{61c}\u{2028}\u{2029}\u{1b}[2J\u{9b}2J\u{7f}y";
/// The name as a text of TOML or JSON.
const QUOTED: &str = "\"x\\nforged\\r\\u202a\\u202b\\u202c\\u202d\\u202e\\u2066\\u2067\\u2068\\u2069\\u200e\
                      \\u200f\\u061c\\u2028\\u2029\\u001b[2J\\u009b2J\\u007fy\"";
/// Beginning of the name as shown, in text and in JSON.
const SHOWN: &str = "x\\nforged";

/// Scenario with a file to two groups and a flow beside it, all with that name.
const SCENARIO: &str = r#"
name = NAME
time_limit = "1 min"
[[groups]]
name = NAME
receivers = 2
[[groups]]
name = "other"
receivers = 2
[protocol]
name = "mftp"
file = "20 kB"
rate = "1 Mbit/s"
[[traffic]]
name = NAME
protocol = "cbr"
rate = "10 kbit/s"
payload = "100 B"
[link.forward]
rate = "2 Mbit/s"
delay = "10 ms"
[link.return]
rate = "2 Mbit/s"
delay = "10 ms"
"#;

/// Asserts that nothing in `text` forges a line or commands the reader's terminal.
fn assert_harmless(what: &str, text: &str) {
    for line in text.lines() {
        let said = line.strip_prefix("farcast: ").unwrap_or(line);
        assert!(!said.starts_with("forged"), "{what}: a forged line: {line:?}");
    }
    let obeyed = text.chars().find(|&c| c != '\n' && is_obeyed(c));
    assert_eq!(obeyed, None, "{what}: {text:?}");
}

/// Asserts the same of all output of a command, which must show the name.
fn assert_shown(ended: &Ended) {
    assert_harmless("standard output", &ended.stdout);
    assert_harmless("standard error", &ended.stderr);
    assert!(ended.stdout.contains(SHOWN) || ended.stderr.contains(SHOWN), "{}", ended.story());
}

/// Asserts that the page at `path` holds the name, and no character that is obeyed.
fn assert_page(path: &Path) {
    let page = fs::read_to_string(path).unwrap();
    // The drawing library is the same in each page, and contains no stranger's text.
    let shown: String = page
        .split("<script>")
        .enumerate()
        .map(
            |(n, part)| if n == 0 { part } else { part.split_once("</script>").map_or("", |(_, rest)| rest) },
        )
        .collect();
    let obeyed = shown.chars().find(|&c| c != '\n' && c != '\t' && is_obeyed(c));
    assert_eq!(obeyed, None, "{}", path.display());
    assert!(shown.contains("forged\\r\\u{202a}"), "{} does not show the name", path.display());
}

fn scenario(place: &Place, text: &str) -> std::path::PathBuf {
    let path = place.path(&format!("{EVIL}.toml"));
    fs::write(&path, text.replace("NAME", QUOTED)).unwrap();
    path
}

/// Runs the words of `args`, with `path` in place of `{}`.
fn run(place: &Place, args: &[&str], path: &Path) -> Ended {
    let args = args.iter().map(|arg| arg.replace("{}", path.to_str().unwrap()).replace("EVIL", EVIL));
    let args = args.map(|arg| arg.replace("FILE", place.path("file").to_str().unwrap()));
    place.run(args.clone().next().as_deref().unwrap_or_default(), place.farcast(args))
}

#[test]
fn in_a_command_line() {
    let place = Place::new();
    let nowhere = place.path(EVIL);
    place.file("file", 1000);
    for command in [
        "send",
        "receive",
        "emulate",
        "simulate",
        "model",
        "sweep",
        "tune",
        "compare",
        "reproduce",
        "element",
        "repair",
        "partials",
        "key",
        "demo",
        "completions",
        "manual",
    ] {
        for args in [[command, "EVIL", "--EVIL"], [command, "--EVIL=EVIL", "-n"]] {
            let ended = run(&place, &args, &nowhere);
            assert_harmless(command, &ended.stdout);
            assert_harmless(command, &ended.stderr);
        }
    }
    for args in [
        &["send", "{}", "--rate", "1 Mbit/s", "--to", "239.1.1.1:9"][..],
        &["send", "FILE", "--rate", "1 Mbit/s", "--to", "EVIL"],
        &["send", "FILE", "--rate", "1 Mbit/s", "--to", "239.1.1.1:9", "--receivers", "EVIL"],
        &["send", "FILE", "--rate", "1 Mbit/s", "--to", "239.1.1.1:9", "--wait-for", "2", "--predict", "{}"],
        &["send", "FILE", "--rate", "1 Mbit/s", "--to", "239.1.1.1:9", "--plan", "{}"],
        &["receive", "--from", "239.1.1.1:9", "--into", ".", "--name", "EVIL"],
        &["receive", "--from", "239.1.1.1:9", "--into", ".", "--trust", "{}"],
        &["receive", "--from", "239.1.1.1:9", "--into", ".", "--log", "{}/log"],
        &["simulate", "{}"],
        &["simulate", "mftp-bgan", "--set", "EVIL=1"],
        &["simulate", "mftp-bgan", "--set", "name=EVIL", "--set", "receivers=EVIL"],
        &["simulate", "geo", "--traffic", "EVIL"],
        &["sweep", "mftp-bgan", "--vary", "EVIL=1,2"],
        &["sweep", "mftp-bgan", "--vary", "receivers=EVIL,2"],
        &["tune", "mftp-bgan", "--minimise", "EVIL"],
        &["compare", "{}", "{}.csv"],
        &["reproduce", "EVIL"],
        &["partials", "{}"],
        &["key", "trust", "EVIL"],
        &["key", "trust", "{}"],
        &["key", "new", "EVIL"],
        &["key", "revoke", "EVIL"],
        &["key", "show", "--key", "{}"],
        &["element", "--group", "EVIL", "--interfaces", "lo,eth0"],
        &["emulate", "{}", "--", "true"],
        &["emulate", "geo", "--set", "EVIL=1", "--", "true"],
        &["emulate", "--control", "EVIL"],
    ] {
        let ended = run(&place, args, &nowhere);
        assert_ne!(ended.code, Some(0), "{args:?}");
        assert_shown(&ended);
    }
}

#[test]
fn in_a_scenario() {
    let place = Place::new();
    let path = scenario(&place, SCENARIO);
    for more in [&[][..], &["--show"], &["--json"], &["--json", "--per-receiver"]] {
        let ended = run(&place, &[&["simulate", "{}", "-n", "2"], more].concat(), &path);
        assert_eq!(ended.code, Some(0), "{}", ended.story());
        assert_shown(&ended);
    }
    let (page, timeline) = (place.path("page.html"), place.path("timeline.html"));
    let pages = ["-n", "2", "--report", page.to_str().unwrap(), "--timeline", timeline.to_str().unwrap()];
    assert_shown(&run(&place, &[&["simulate", "{}"], &pages[..]].concat(), &path));
    assert_page(&page);
    assert_page(&timeline);
}

#[test]
fn in_what_is_swept_tuned_and_compared() {
    let place = Place::new();
    let path = scenario(&place, SCENARIO);
    let page = place.path("page.html");
    let out = place.path(EVIL);
    let vary = ["--vary", "protocol.srt.n=2,3", "-n", "3"];
    let more = ["--column", "completion_time_s", "--out", out.to_str().unwrap()];
    assert_shown(&run(&place, &[&["sweep", "{}"], &vary[..], &more].concat(), &path));
    let names = ["--set", "name=\"EVIL\"", "--case", "EVIL: protocol.srt.n=4"];
    for more in [&names[..2], &names, &["--json"], &["--report", page.to_str().unwrap()]] {
        assert_shown(&run(&place, &[&["tune", "{}"], &vary[..], more].concat(), &path));
    }
    assert_page(&page);
    let csv = place.path(&format!("{EVIL}.csv"));
    fs::write(&csv, format!("what,\"{EVIL}\"\r\n\"{EVIL}\",1\r\n\"{EVIL}\",2\r\n\"{EVIL}\",3\r\n")).unwrap();
    for more in [&[][..], &["--json"], &["--report", page.to_str().unwrap()]] {
        assert_shown(&run(&place, &[&["compare", "{}", "{}"], more].concat(), &csv));
    }
    assert_page(&page);
}

#[test]
fn in_a_tree() {
    const TREE: &str = r#"
name = NAME
time_limit = "1 min"
node = [{ name = NAME, kind = "source" }, { name = "far", kind = "receiver" }]
[[edge]]
name = NAME
from = NAME
to = ["far"]
link.forward = { rate = "1 Mbit/s", delay = "10 ms" }
link.return = { rate = "1 Mbit/s", delay = "10 ms" }
[protocol]
name = "pgm"
file = "20 kB"
rate = "500 kbit/s"
"#;
    let place = Place::new();
    let path = scenario(&place, TREE);
    let page = place.path("page.html");
    for more in [&[][..], &["--show"], &["--json"], &["--report", page.to_str().unwrap()]] {
        assert_shown(&run(&place, &[&["simulate", "{}", "-n", "2"], more].concat(), &path));
    }
    assert_page(&page);
}

#[test]
fn in_an_emulation() {
    need_root("emulating");
    let place = Place::new();
    let link = "name = NAME\nlink.forward = { rate = \"2 Mbit/s\" }\nlink.return = { rate = \"2 Mbit/s\" }\n";
    let path = scenario(&place, link);
    let (page, log) = (place.path("page.html"), place.path("report.json"));
    let more = ["--timeline", page.to_str().unwrap(), "--report", log.to_str().unwrap(), "--", "true"];
    assert_shown(&run(&place, &[&["emulate", "{}"], &more[..]].concat(), &path));
    assert_page(&page);
}

/// Transfers a file of that name. Returns both ends.
fn transfer(place: &Place, send: &[&str], receive: &[&str]) -> [Ended; 2] {
    let file = place.file(EVIL, 20_000);
    let mut receiver = place.receive_command("ant", &[&["--once"], receive].concat());
    receiver.arg("--report").arg(place.path("receive.html"));
    let receiver = listening(place, receiver);
    let mut sender = place.send_command(&[&file], send);
    sender.arg("--report").arg(place.path("send.html"));
    let near = place.run("sender", sender);
    [near, receiver.wait()]
}

fn listening(place: &Place, command: std::process::Command) -> Running {
    let running = place.start("receiver", command);
    wait_until("a receiver that listens", || {
        running.stderr().contains("listens on") || running.stdout().contains("listening")
    });
    running
}

#[test]
fn in_a_transfer() {
    for protocol in ["mftp", "norm", "mdp", "pgm"] {
        for json in [&[][..], &["--json"]] {
            let place = Place::new();
            let args = [&["--protocol", protocol], json].concat();
            let send = [&args[..], &["--rate", "10 Mbit/s", "--receivers", "ant"]].concat();
            for ended in transfer(&place, &send, &args) {
                assert_eq!(ended.code, Some(0), "{protocol}: {}", ended.story());
                assert_shown(&ended);
            }
            assert_page(&place.path("receive.html"));
            assert_page(&place.path("send.html"));
        }
    }
}

#[test]
fn in_a_transfer_one_way() {
    for json in [&[][..], &["--json"]] {
        let place = Place::new();
        let send = [json, &["--one-way", "--rate", "10 Mbit/s", "--repeat", "2"]].concat();
        for ended in transfer(&place, &send, &[json, &["--one-way"]].concat()) {
            // The sender cannot know which receivers have it.
            assert!([Some(0), Some(4)].contains(&ended.code), "{}", ended.story());
            assert_shown(&ended);
        }
        assert_page(&place.path("receive.html"));
    }
}

#[test]
fn in_what_is_left_of_a_product() {
    let place = Place::new();
    let receiver = listening(&place, place.receive_command("ant", &[]));
    let file = place.file(EVIL, 2_000_000);
    let sender = place.send(&[&file], &["--rate", "4 Mbit/s", "--receivers", "ant"]);
    wait_for_journal(&place.path("ant"));
    let shows = || {
        let ended = run(&place, &["partials", "{}"], &place.path("ant"));
        ended.stdout.contains("forged")
    };
    wait_until("a partial with a name", shows);
    receiver.kill9();
    sender.kill9();
    for more in [&[][..], &["--json"]] {
        assert_shown(&run(&place, &[&["partials", "{}"], more].concat(), &place.path("ant")));
    }
}

#[test]
fn in_a_list_of_keys() {
    let place = Place::new();
    run(&place, &["key", "new", "ant"], Path::new(""));
    let trust = place.path("trust");
    fs::write(&trust, format!("both {} farcast-key\n", EVIL.replace('\n', "\\n"))).unwrap();
    fs::create_dir_all(place.path("config/farcast")).unwrap();
    fs::copy(&trust, place.path("config/farcast/trust")).unwrap();
    let listed = run(&place, &["key", "list"], Path::new(""));
    assert_eq!(listed.code, Some(2), "no name has spaces: {}", listed.story());
    assert_harmless("key list", &(listed.stdout + &listed.stderr));
}
