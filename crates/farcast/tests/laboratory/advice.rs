//! Notes on settings that cannot work over the links, of `farcast simulate`, `send --predict` and `send`.

use std::fs;

use serde_json::Value;

use crate::common::Place;

/// Receivers that would all register at once, over a return of 64 kbit/s.
const AT_ONCE: &str = "receivers = 1000\ntime_limit = \"1 s\"\n[protocol]\nfile = \"1 MB\"\nrate = \"1.9 Mbit/s\"\nparity = 0\n\
                       [link.return]\nrate = \"64 kbit/s\"\nqueue = \"unlimited\"\n";

#[test]
fn a_simulation_notes_what_cannot_work() {
    let place = Place::new();
    let file = place.path("at_once.toml");
    fs::write(&file, AT_ONCE).unwrap();
    let run = |more: &[&str]| {
        let args = [&["simulate", file.to_str().unwrap(), "-n", "1"], more].concat();
        place.run("simulate", place.farcast(args))
    };
    let tells = "1,000 receivers would register at once, with 116 kB, and link.return carries 8 kB a second: that takes at least \
                 14 s; set protocol.parity = \"auto\", or set protocol.return_rate = \"64 kbit/s\"";
    let shown = run(&[]);
    assert_eq!(shown.stderr, format!("note: {tells}\n"), "{}", shown.story());
    assert!(!shown.stdout.contains("note: "), "{}", shown.story());
    let json = run(&["--json"]);
    assert_eq!(json.stderr, "", "{}", json.story());
    let object: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(object["advice"], Value::from(vec![tells]));
    let silent = run(&["--json", "--set", "protocol.parity=auto"]);
    let object: Value = serde_json::from_str(&silent.stdout).unwrap();
    assert_eq!(object.get("advice"), None);
}

#[test]
fn a_prediction_names_options() {
    let place = Place::new();
    let product = place.file("product.bin", 20_000);
    let predict = |more: &[&str]| {
        let args = ["--rate", "300 kbit/s", "--predict", "bgan", "--replications", "2"];
        place.run("sender", place.send_command(&[&product], &[&args, more].concat()))
    };
    let norm = ["--protocol", "norm", "--group-size", "20"];
    let shown = predict(&norm);
    let tells = "link.forward carries 300 kbit/s; give --segment-size 298 and --rate \"280 kbit/s\", so that each fits one block\n";
    assert!(shown.stderr.starts_with("note: a datagram of 1500 B takes 5 blocks"), "{}", shown.story());
    assert!(shown.stderr.contains(tells), "{}", shown.story());
    let event = &predict(&[&norm[..], &["--json"]].concat()).events()[0];
    assert!(event["advice"][0].as_str().unwrap().contains("--segment-size 298"), "{event}");
    let one_way = predict(&["--protocol", "one-way"]);
    assert!(one_way.stderr.contains("give --symbol-size 318 and --rate"), "{}", one_way.story());
}

#[test]
fn a_prediction_counts_proofs_and_names() {
    let place = Place::new();
    let product = place.file("product.bin", 20_000);
    let link = place.path("link.toml");
    fs::write(&link, "[link.forward]\ndelay = \"100 ms\"\n[link.return]\ndelay = \"100 ms\"\n").unwrap();
    let answers = |names: &str, more: &[&str]| {
        let args = ["--rate", "300 kbit/s", "--receivers", names, "--replications", "2", "--json"];
        let args = [&args, &["--predict", link.to_str().unwrap()][..], more].concat();
        let shown = place.run("sender", place.send_command(&[&product], &args));
        let events = shown.events();
        let prediction = events.iter().find(|one| one["event"] == "prediction").unwrap();
        prediction["return"]["octets"]["mean"].as_f64().unwrap()
    };
    let (short, long) = (answers("ant,bee", &[]), answers("ant-of-the-south,bee-of-the-north", &[]));
    // Each of two receivers registers twice, with a name of 4 words instead of 1.
    assert_eq!(long - short, 2.0 * 2.0 * 12.0);
    // With the draft there are no nonces and proofs, of 12 octets: two and three from each receiver.
    let draft = answers("ant,bee", &["--draft"]);
    assert!(short - draft >= 2.0 * 5.0 * 12.0, "{short} {draft}");
}

#[test]
fn a_transfer_tells_how_long_confirmations_take() {
    let place = Place::new();
    let product = place.file("product.bin", 1000);
    let list = place.path("stations.txt");
    fs::write(&list, (0..400).map(|n| format!("station{n}")).collect::<Vec<_>>().join("\n")).unwrap();
    let list = format!("@{}", list.display());
    let send = |rate: &str, more: &[&str]| {
        let args =
            ["--rate", "1 Mbit/s", "--receivers", &list, "--announce-time", "200 ms", "--return-rate", rate];
        place.run("sender", place.send_command(&[&product], &[&args, more].concat()))
    };
    let tells = "confirming 400 receivers takes at least 33 s over the return, which carries 1.2 kB a second";
    let shown = send("9.6 kbit/s", &[]);
    assert!(shown.stderr.contains(&format!("note: {tells}\n")), "{}", shown.story());
    let said = send("9.6 kbit/s", &["--json"]).all("advice");
    assert_eq!(said[0]["advice"], tells, "{said:?}");
    assert!(!send("64 kbit/s", &[]).stderr.contains("note: "));
}
