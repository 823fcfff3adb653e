//! `farcast simulate`: its output for people and for programs, and its errors.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{self, Ended, Place, pause};

fn simulate(place: &Place, args: &[&str]) -> Ended {
    place.run("simulate", place.farcast([&["simulate"], args].concat()))
}

/// Returns the only object that `--json` prints, and the exit code.
fn json(args: &[&str]) -> (Value, i32) {
    let ended = simulate(&Place::new(), &[args, &["--json"]].concat());
    assert_eq!(ended.stderr, "", "{}", ended.story());
    (serde_json::from_str(&ended.stdout).unwrap(), ended.code.unwrap())
}

/// Returns the only sentence about wrong usage.
fn sentence(args: &[&str]) -> String {
    let ended = simulate(&Place::new(), args);
    ended.assert_one_sentence(2, &[]);
    assert_eq!(ended.stdout, "");
    ended.stderr.trim_end().to_owned()
}

/// Ten receivers of a small file.
const SMALL: [&str; 7] =
    ["mftp-bgan", "--set", "receivers=10", "--set", "protocol.file=60 kB", "--set", "link.forward.per=0.01"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL, more].concat()
}

#[test]
fn results_do_not_depend_on_threads() {
    let place = Place::new();
    let run = |args: &[&str]| {
        let ended = simulate(&place, args);
        assert_eq!(ended.code, Some(0), "{}", ended.story());
        ended.stdout
    };
    let shipped = |threads| run(&["mftp-bgan", "--json", "-n", "6", "--per-receiver", "--threads", threads]);
    let one = shipped("1");
    assert_eq!(one, shipped("1"), "repeated");
    assert_eq!(one, shipped("2"));
    assert_eq!(one, shipped("7"));
    let seed = |seed| run(&small(&["--json", "-n", "6", "--seed", seed]));
    assert_ne!(seed("1"), seed("2"));
    // More replications change none of the first.
    let few: Value = serde_json::from_str(&seed("1")).unwrap();
    let many: Value = serde_json::from_str(&run(&small(&["--json", "-n", "20"]))).unwrap();
    assert_eq!(few["replications"].as_array().unwrap()[..], many["replications"].as_array().unwrap()[..6]);
    // The index at which the precision is reached is the same, and it is reached there.
    let until = |threads| run(&small(&["--json", "--until-precision", "3 %", "--threads", threads]));
    let one = until("1");
    assert_eq!(one, until("2"));
    let object: Value = serde_json::from_str(&one).unwrap();
    let time = &object["summary"]["completion_time_s"];
    let share = time["ci95_half_width"].as_f64().unwrap() / time["mean"].as_f64().unwrap();
    assert!(share <= 0.03 && time["n"].as_u64().unwrap() >= 10, "{time}");
    let most = json(&small(&["--until-precision", "0.1 %", "--most", "12"])).0;
    assert_eq!(most["summary"]["replications"], 12);
}

#[test]
fn the_object_for_programs() {
    let (object, code) = json(&small(&["-n", "30", "--seed", "5"]));
    assert_eq!(code, 0);
    assert_eq!((&object["scenario"], &object["seed"]), (&"mftp-bgan".into(), &5.into()));
    let replications = object["replications"].as_array().unwrap();
    assert_eq!(replications.len(), 30);
    let mut times = Vec::new();
    for (index, one) in replications.iter().enumerate() {
        assert_eq!(one["index"], index);
        let passes = one["dtus_per_pass"].as_array().unwrap();
        assert_eq!(one["passes"], passes.len());
        // 60,000 B in DTUs of 526 B.
        assert_eq!((&passes[0], &one["incomplete"]), (&115.into(), &0.into()));
        for key in ["sent", "collided", "late", "used"] {
            assert!(one["naks"][key].is_u64(), "{key}: {one}");
        }
        for way in ["forward", "return"] {
            for key in ["datagrams", "octets", "dropped", "given_up"] {
                assert!(one[way][key].is_u64(), "{way} {key}: {one}");
            }
            assert!(one[way]["airtime_s"].as_f64().unwrap() > 0.0, "{one}");
        }
        let receivers = &one["receiver_time_s"];
        let ordered: Vec<f64> =
            ["p05", "p50", "p95"].iter().map(|key| receivers[key].as_f64().unwrap()).collect();
        assert!(ordered.is_sorted() && receivers["mean"].is_f64(), "{one}");
        assert!(one.get("receivers").is_none(), "not asked for: {one}");
        times.push(one["completion_time_s"].as_f64().unwrap());
        assert!(times[index] >= ordered[2], "{one}");
    }
    // The summary, computed anew.
    let summary = &object["summary"];
    assert_eq!((&summary["replications"], &summary["unfinished"]), (&30.into(), &0.into()));
    let time = &summary["completion_time_s"];
    let mean = times.iter().sum::<f64>() / 30.0;
    let sd = (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 29.0).sqrt();
    times.sort_by(f64::total_cmp);
    // Student's t of 29 degrees of freedom at 97.5 % is 2.0452; quantiles of type 7 lie at 29 p.
    let expected = [
        ("mean", mean),
        ("sd", sd),
        ("ci95_half_width", 2.045_229_6 * sd / 30f64.sqrt()),
        ("p50", f64::midpoint(times[14], times[15])),
        ("p95", times[27] + 0.55 * (times[28] - times[27])),
    ];
    assert_eq!(time["n"], 30);
    for (key, expected) in expected {
        let told = time[key].as_f64().unwrap();
        assert!((told - expected).abs() < 1e-7 * expected, "{key}: {told}, {expected} expected");
    }
    // Under the names that a replication has them by.
    for measure in
        ["/passes", "/naks/sent", "/forward/octets", "/return/airtime_s", "/median_receiver_time_s"]
    {
        assert_eq!(summary.pointer(&format!("{measure}/n")), Some(&30.into()), "{measure}");
        let own = object["replications"][0].pointer(measure);
        assert!(own.is_some() || measure == "/median_receiver_time_s", "{measure}");
    }
}

#[test]
fn it_is_said_why_receivers_were_left() {
    let place = Place::new();
    let said = |args: &[&str]| {
        let ended = simulate(&place, &[&["mftp-bgan", "-n", "3"], args].concat());
        assert_eq!(ended.code, Some(3), "{}", ended.story());
        ended.stdout
    };
    // If no data arrives at all, no setting helps.
    for (lost, part) in [
        ("link.forward.per=1", "in 3 of 3: nothing of the content came through the link"),
        ("link.return.per=1", "as no answer of a receiver came through the link"),
    ] {
        let said = said(&["--set", lost]);
        assert!(said.contains(part) && said.contains("Look at the losses"), "{said}");
        assert!(!said.contains("Raise"), "{said}");
    }
    let late = said(&["--set", "time_limit=30 s"]);
    assert!(late.contains("in 3 of 3: the time limit was reached after 30.00 s"), "{late}");
    assert!(
        late.contains("20 of 20 receivers were left, and lacked 4") && late.contains("of 1902 segments"),
        "{late}"
    );
    assert!(late.contains("Raise time_limit."), "{late}");
    let own = said(&["--set", "protocol.transfer_limit=30 s"]);
    assert!(
        own.contains("the transfer's own time limit was reached")
            && own.contains("Raise protocol.transfer_limit"),
        "{own}"
    );
    let deaf = said(&["--set", "link.return.per=0.9", "--set", "link.forward.per=0.05"]);
    assert!(deaf.contains("as no request for repair reached it any more"), "{deaf}");
    assert!(deaf.contains("requests for repair the return channel brought"), "{deaf}");
    // A receiver that registered and cannot answer any more is given up.
    let outage = [
        "--set",
        "protocol.preset=farcast",
        "--set",
        "protocol.group=open_limited",
        "--set",
        "link.return.per=0.97",
    ];
    let given_up = said(
        &[
            &outage[..],
            &[
                "--set",
                "link.forward.per=0.05",
                "--set",
                "protocol.srt.retries=1",
                "--set",
                "protocol.silence=1 s",
            ],
        ]
        .concat(),
    );
    assert!(given_up.contains("given them up") && given_up.contains("Raise protocol.silence"), "{given_up}");
}

#[test]
fn it_is_said_which_flow_was_left() {
    let place = Place::new();
    let ended = simulate(&place, &["umts", "-n", "5", "--set", "time_limit=5 s"]);
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    assert!(ended.stdout.contains("the flow file was not done at the end; "), "{}", ended.stdout);
}

#[test]
fn times_of_each_receiver() {
    let (object, _) = json(&small(&["-n", "3", "--per-receiver"]));
    for one in object["replications"].as_array().unwrap() {
        let times: Vec<f64> =
            one["receivers"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert_eq!(times.len(), 10);
        let last = times.iter().copied().fold(0.0, f64::max);
        assert_eq!(one["completion_time_s"].as_f64(), Some(last));
    }
}

#[test]
fn what_reaches_the_time_limit_is_unfinished() {
    // Nobody is complete before the first pass is over, at 38 s.
    let limit = ["mftp-bgan", "-n", "5", "--set", "time_limit=30 s", "--per-receiver"];
    let (object, code) = json(&limit);
    assert_eq!(code, 3);
    for one in object["replications"].as_array().unwrap() {
        assert!(one["completion_time_s"].is_null() && one["receiver_time_s"].is_null(), "{one}");
        assert_eq!(one["incomplete"], 20);
        assert!(one["receivers"].as_array().unwrap().iter().all(Value::is_null), "{one}");
    }
    assert_eq!(object["summary"]["unfinished"], 5);
    assert_eq!(object["summary"]["completion_time_s"], serde_json::json!({ "n": 0 }));
    // Some of 40 are: one receiver gets 96 DTUs in one pass with 0.997^96 = 75 %.
    let some = [
        "mftp-bgan",
        "--set",
        "receivers=1",
        "--set",
        "protocol.file=50 kB",
        "--set",
        "time_limit=4 s",
        "-n",
        "40",
    ];
    let (object, code) = json(&some);
    assert_eq!(code, 3);
    let nulls = object["replications"].as_array().unwrap().iter();
    let nulls = nulls.filter(|one| one["completion_time_s"].is_null()).count();
    // Four standard deviations of a binomial count about 10.
    assert!((1..=21).contains(&nulls), "{nulls}");
    let summary = &object["summary"];
    assert_eq!(summary["unfinished"], nulls);
    let time = &summary["completion_time_s"];
    assert_eq!(time["n"], 40 - nulls);
    for key in ["mean", "sd", "ci95_half_width", "p95"] {
        assert!(time.get(key).is_none(), "there is no {key}: {time}");
    }
    // 95 DTUs of 20 ms, one of 30 B and the announcement of 10 ms each, and the way.
    assert!((time["p50"].as_f64().unwrap() - 2.37).abs() < 1e-9, "{time}");
    // For people: no mean, and a sentence.
    let ended = simulate(&Place::new(), &some);
    assert_eq!(ended.code, Some(3), "{}", ended.story());
    let row = ended.stdout.lines().find(|line| line.starts_with("completion time")).unwrap();
    assert_eq!(row.split_whitespace().nth(2), Some("-"), "{row}");
    let closing = format!("{nulls} of 40 replications ended with receivers incomplete: there is no mean");
    assert!(ended.stdout.contains(&closing), "{}", ended.stdout);
}

#[test]
fn a_table_for_people() {
    let ended = simulate(&Place::new(), &small(&["-n", "4", "--seed", "9"]));
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    assert!(
        ended.stdout.starts_with("MFTP over BGAN: 10 receivers, 4 replications, seed 9\n"),
        "{}",
        ended.stdout
    );
    for part in ["95 % interval", "completion time", "passes", "NAKs sent", "airtime return", "\u{b1}"] {
        assert!(ended.stdout.contains(part), "no {part:?} in {}", ended.stdout);
    }
    let quiet = simulate(&Place::new(), &small(&["-n", "2", "--quiet"]));
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str(), quiet.code), ("", "", Some(0)));
}

#[test]
fn keys_in_effect_are_shown_with_their_origin() {
    let ended = simulate(&Place::new(), &["mftp-bgan", "--show", "--set", "protocol.srt.n=7"]);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let row = |key: &str| {
        let line = ended.stdout.lines().find(|line| line.split_whitespace().next() == Some(key));
        let line = line.unwrap_or_else(|| panic!("no {key} in {}", ended.stdout));
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("protocol.srt.n"), "7 --set");
    assert_eq!(row("receivers"), "20 file");
    assert_eq!(row("protocol.file"), "\"1 MB\" file");
    assert_eq!(row("link.forward.fec_blocks"), "8 default");
}

#[test]
fn queues_of_which_nothing_is_said_are_told() {
    let tone = ["--traffic", "cbr, rate = 1 Mbit/s, stop = 1 s", "-n", "1", "--set", "time_limit=2 s"];
    let of = |link: &'static str, more: &[&'static str]| [&[link][..], &tone, more].concat();
    // 10 and 2 Mbit/s for 540 ms.
    let (object, _) = json(&of("geo", &[]));
    let expected = serde_json::json!([
        { "stage": "forward", "octets": 675_000 }, { "stage": "return", "octets": 135_000 }
    ]);
    assert_eq!(object["default_queues"], expected);
    let said = of("geo", &["--set", "link.forward.queue=unlimited"]);
    let (object, _) = json(&said);
    assert_eq!(object["default_queues"], serde_json::json!([{ "stage": "return", "octets": 135_000 }]));
    // Less than ten packets: 4,000 octets a second for 145 ms.
    let told = simulate(&Place::new(), &of("umts-384", &[]));
    let sentence = "the queue of bearer.return holds ten packets of 1500 B, 15000 B";
    assert!(told.stderr.contains(sentence), "{}", told.story());
    let shown = simulate(&Place::new(), &of("umts-384", &["--show"])).stdout;
    let row = |key: &str| shown.lines().find(|line| line.contains(key)).map(str::to_owned);
    let words = |line: String| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    let limit = row("link.stages.bearer.forward.queue").map(words);
    assert_eq!(limit.as_deref(), Some("\"15000 B\" default"));
}

#[test]
fn shipped_scenarios_are_listed() {
    let ended = simulate(&Place::new(), &["--list"]);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    for name in ["mftp-bgan ", "tcp-geo "] {
        assert!(ended.stdout.lines().any(|line| line.starts_with(name)), "{}", ended.stdout);
    }
}

#[test]
fn a_file_beside_the_user_is_a_scenario() {
    let place = Place::new();
    let path = place.path("own.toml");
    let shipped = include_str!("../../../../scenarios/mftp-bgan.toml");
    fs::write(&path, shipped.replace("receivers = 20", "receivers = 3")).unwrap();
    let name = path.to_str().unwrap();
    let (object, _) = json(&[name, "-n", "1", "--per-receiver"]);
    assert_eq!(object["scenario"], name);
    assert_eq!(object["replications"][0]["receivers"].as_array().unwrap().len(), 3);
}

/// TCP and a source of datagrams over one link, without a transfer.
const TRAFFIC: &str = r#"
name = "Traffic alone"
time_limit = "20 s"
[[traffic]]
name = "fetch"
protocol = "tcp"
size = "200 kB"
[[traffic]]
name = "tone"
protocol = "cbr"
rate = "100 kbit/s"
stop = "15 s"
[link.forward]
rate = "1 Mbit/s"
delay = "50 ms"
queue_packets = 20
per = 0.01
[link.return]
delay = "50 ms"
"#;

#[test]
fn traffic_needs_no_transfer() {
    let place = Place::new();
    let path = place.path("traffic.toml");
    fs::write(&path, TRAFFIC).unwrap();
    let name = path.to_str().unwrap();
    let (object, code) = json(&[name, "-n", "4"]);
    assert_eq!(code, 0);
    for one in object["replications"].as_array().unwrap() {
        let [fetch, tone] = one["flows"].as_array().unwrap().as_slice() else { panic!("{one}") };
        assert_eq!((&fetch["name"], &fetch["protocol"]), (&"fetch".into(), &"tcp".into()));
        assert_eq!((&fetch["direction"], &fetch["octets"]), (&"forward".into(), &200_000.into()));
        let time = fetch["completion_time_s"].as_f64().unwrap();
        let goodput = fetch["goodput_bit_per_s"].as_f64().unwrap();
        assert!((goodput * time - 1_600_000.0).abs() < 1e-3, "{fetch}");
        assert_eq!(one["completion_time_s"], fetch["completion_time_s"]);
        for key in ["segments", "retransmits", "timeouts", "dropped", "lost"] {
            assert!(fetch[key].is_u64(), "{key}: {fetch}");
        }
        // 1028 octets at 100 kbit/s: one in 82.24 ms until 15 s.
        assert_eq!((&tone["sent"], &tone["completion_time_s"]), (&183.into(), &Value::Null));
        let missing = tone["dropped"].as_u64().unwrap() + tone["lost"].as_u64().unwrap();
        assert_eq!(tone["received"].as_u64().unwrap() + missing, 183);
        assert!((tone["loss"].as_f64().unwrap() - missing as f64 / 183.0).abs() < 1e-12);
        for key in ["delay_mean_s", "delay_p95_s"] {
            assert!(tone[key].as_f64().unwrap() >= 0.05, "{key}: {tone}");
        }
        assert!(tone["jitter_s"].is_f64() && tone.get("segments").is_none(), "{tone}");
        // There is no word about a transfer, as there is none.
        for key in
            ["data_begins_s", "passes", "dtus_per_pass", "naks", "incomplete", "receiver_time_s", "receivers"]
        {
            assert!(one.get(key).is_none(), "{key}: {one}");
        }
    }
    for key in ["median_receiver_time_s", "passes", "naks"] {
        assert!(object["summary"].get(key).is_none(), "{key}: {object}");
    }
    let flows = object["summary"]["flows"].as_array().unwrap();
    assert_eq!(flows[0]["goodput_bit_per_s"]["n"], 4);
    assert_eq!(flows[0]["completion_time_s"], object["summary"]["completion_time_s"]);
    assert!(flows[1].get("completion_time_s").is_none() && flows[1]["loss"]["n"] == 4);
    // The same for any number of threads.
    let run = |threads| simulate(&place, &[name, "-n", "4", "--json", "--threads", threads]).stdout;
    assert_eq!(run("1"), run("3"));
}

#[test]
fn a_table_of_flows() {
    let place = Place::new();
    let path = place.path("traffic.toml");
    fs::write(&path, TRAFFIC).unwrap();
    let ended = simulate(&place, &[path.to_str().unwrap(), "-n", "3"]);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let text = &ended.stdout;
    assert!(text.starts_with("Traffic alone: 2 flows, 3 replications, seed 1\n"), "{text}");
    assert!(text.contains("completion time") && !text.contains("NAKs"), "{text}");
    let heading = text.lines().find(|line| line.starts_with("flow ")).unwrap();
    for column in ["protocol", "direction", "goodput", "time", "segments", "again", "loss", "delay", "jitter"]
    {
        assert!(heading.contains(column), "{column}: {text}");
    }
    // Columns line up: of each row the goodput ends where its heading does.
    let end = heading.find("goodput").unwrap() + "goodput".len();
    for name in ["fetch  tcp", "tone   cbr"] {
        let row = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row[..end].ends_with("kbit/s"), "{text}");
    }
    // Beside a transfer, both are told of.
    let flows = &TRAFFIC[TRAFFIC.find("[[").unwrap()..TRAFFIC.find("[link").unwrap()];
    let own = format!("{}\n{flows}", include_str!("../../../../scenarios/mftp-bgan.toml"));
    fs::write(&path, own).unwrap();
    let both = simulate(&place, &[path.to_str().unwrap(), "-n", "1", "--set", "protocol.file=30 kB"]);
    assert!(
        both.stdout.starts_with("MFTP over BGAN: 20 receivers, 2 flows, 1 replication,"),
        "{}",
        both.story()
    );
    assert!(both.stdout.contains("NAKs sent") && both.stdout.contains("fetch  tcp"), "{}", both.story());
}

#[test]
fn the_shipped_connection_is_what_ns_2_measures() {
    // 20 packets of 8000 bit each round trip of 560 ms and what sending takes: ns-2.35 gives 282,864 bit/s, start-up
    // included, and 2 Mbit/s give at most 1000/1040 of it.
    let setting = ["tcp-geo", "-n", "1", "--set", "traffic.bulk.window=20 packets"];
    let (object, code) = json(&setting);
    assert_eq!(code, 0);
    let flow = &object["replications"][0]["flows"][0];
    let goodput = flow["goodput_bit_per_s"].as_f64().unwrap();
    assert!((goodput / 282_864.0 - 1.0).abs() < 0.01, "{flow}");
    assert_eq!(object["summary"]["unfinished"], 0);
    assert!(object["replications"][0]["completion_time_s"].is_null());
    // A trace of it, and no timeline.
    let place = Place::new();
    let path = place.path("tcp.pcapng");
    let trace = ["tcp-geo", "-n", "1", "--set", "time_limit=5 s", "--trace", path.to_str().unwrap()];
    let ended = simulate(&place, &trace);
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let told = ended.stderr.lines().find_map(|line| line.strip_suffix(" packets of replication 0"));
    let told = told.and_then(|line| line.rsplit(": ").next());
    // Two interfaces, of which tcpdump reads only those of one link type.
    let read = Command::new("tcpdump").args(["-nn", "-r"]).arg(&path).output();
    let read = read.unwrap_or_else(|error| panic!("{error}; this test needs the Debian package tcpdump"));
    let (lines, said) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    assert!(lines.lines().all(|line| line.contains(" IP ") && line.contains(": Flags [")), "{lines}");
    assert_eq!(told, Some(lines.lines().count().to_string().as_str()), "{said}{}", ended.story());
    assert!(lines.lines().count() > 100, "{lines}");
    let said = sentence(&["tcp-geo", "-n", "1", "--timeline", "no.html"]);
    assert!(said.contains("a timeline is drawn of a multicast transfer"), "{said}");
    assert!(said.contains("--report draws") && said.contains("--trace keeps"), "{said}");
}

#[test]
fn outputs_that_are_one_file_are_refused() {
    let place = Place::new();
    let text = include_str!("../../../../scenarios/mftp-bgan.toml");
    fs::write(place.path("own.toml"), text).unwrap();
    let own = place.path("own.toml");
    let (page, detour) = (place.path("page.html"), place.path("./page.html"));
    let [own, page, detour] = [&own, &page, &detour].map(|path| path.to_str().unwrap());
    for (one, other, named) in [
        (["--trace", page], ["--timeline", detour], ["--trace", "--timeline"]),
        (["--trace", own], ["--timeline", page], ["the scenario", "--trace"]),
    ] {
        let said = sentence(&[&[own, "-n", "1"][..], &one, &other].concat());
        assert!(said.contains(&format!("{} and {} are one file", named[0], named[1])), "{said}");
    }
    assert!(!place.path("page.html").exists());
    assert_eq!(fs::read_to_string(own).unwrap(), text);
}

#[test]
fn settings_that_are_wrong() {
    let said = |setting: &str| {
        let said = sentence(&["mftp-bgan", "--set", setting]);
        let expected = format!("farcast: --set {setting}: ");
        said.strip_prefix(&expected).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let unknown = said("protocol.srt.m=4");
    assert!(
        unknown
            .starts_with("protocol.srt.m: this key is unknown, did you mean n; the keys here are n, time, "),
        "{unknown}"
    );
    for (setting, expected) in [
        (
            "protocol.rate=300",
            "protocol.rate: 300 has no unit; a number needs one of the units bit/s, kbit/s, Mbit/s, Gbit/s, as in \
             \"20 Mbit/s\"",
        ),
        ("receivers=0", "receivers: 0 is out of range; it must be an integer from 1 to 1073741824"),
        (
            "receivers=many",
            "receivers: \"many\" is not an integer; it must be an integer from 1 to 1073741824",
        ),
        (
            "protocol.pass_wait=fixd",
            "protocol.pass_wait: \"fixd\" is not known, did you mean \"fixed\"; it must be one of \"draft\", \"fixed\"",
        ),
        ("engines=yes", "engines: \"yes\" is not a flag; it must be true or false"),
        ("receivers", "this is no assignment; write KEY=VALUE, as in link.forward.per=0.005"),
    ] {
        assert_eq!(said(setting), expected);
    }
}

#[test]
fn files_that_are_wrong() {
    let place = Place::new();
    let said = |text: &str| {
        let path = place.path("own.toml");
        fs::write(&path, text).unwrap();
        let name = path.to_str().unwrap().to_owned();
        sentence(&[&name]).replace(&name, "own.toml")
    };
    let shipped = include_str!("../../../../scenarios/mftp-bgan.toml");
    let line = 1 + shipped.lines().position(|line| line.starts_with("per = ")).unwrap();
    let expected = format!("farcast: own.toml:{line}: link.forward.per: 2.5 is out of range; ");
    let wrong = said(&shipped.replace("per = 0.001", "per = 2.5"));
    assert!(wrong.starts_with(&expected), "{wrong}");
    assert!(
        said("receivers = 1\nreceivers = 2\n")
            .starts_with("farcast: own.toml:2: receivers: this key is given twice")
    );
    assert!(said("receivers = \n").starts_with("farcast: own.toml:1: this is not TOML: "));
    assert!(
        said("receivers = 1\n").starts_with("farcast: own.toml: protocol: this key is missing at the top; ")
    );
    let missing = sentence(&["no-such-scenario"]);
    assert!(missing.contains("no-such-scenario: No such file"), "{missing}");
    assert!(
        missing.contains("it is no file, nor one of the shipped scenarios (")
            && missing.contains("mftp-bgan")
    );
    let directory = place.root().to_str().unwrap();
    let unreadable = sentence(&[directory]);
    assert!(unreadable.starts_with(&format!("farcast: {directory}: Is a directory")), "{unreadable}");
    fs::write(place.path("latin.toml"), b"name = \"\xE9\"\n").unwrap();
    let name = place.path("latin.toml");
    let unreadable = sentence(&[name.to_str().unwrap()]);
    assert!(unreadable.contains("latin.toml: stream did not contain valid UTF-8"), "{unreadable}");
}

#[test]
fn wrong_usage() {
    let place = Place::new();
    for (args, part) in [
        (&["mftp-bgan", "--replications", "0"][..], "--replications"),
        (&["mftp-bgan", "--threads", "0"], "--threads"),
        (&["mftp-bgan", "-n", "5", "--until-precision", "2 %"], "cannot be used with"),
        (&["mftp-bgan", "--until-precision", "2"], "--until-precision"),
        (&["mftp-bgan", "--most", "0"], "--most"),
        (&[], "SCENARIO"),
    ] {
        simulate(&place, args).assert_failed(2, &[part]);
    }
    simulate(&place, &["mftp-bgan", "--until-precision", "0 %"]).assert_one_sentence(2, &["precision"]);
    let help = simulate(&place, &["--help"]);
    assert!(help.stdout.contains("Exit codes: 0 done, 1 failed, 2 "), "{}", help.stdout);
}

#[test]
fn what_repeats_without_end_has_a_shortest_time() {
    let tcp = ["--traffic", "tcp, size = 30 kB", "-n", "1"];
    for (link, key) in [
        ("umts-384", "link.stages.bearer.status.periodic"),
        ("umts-384", "link.stages.bearer.poll.periodic"),
        ("umts-384", "link.stages.bearer.poll.timer"),
        ("iridium-8", "link.stages.bundle.time_between_drops"),
    ] {
        let setting = format!("{key}=1 ns");
        let said = sentence(&[&[link][..], &tcp, &["--set", &setting]].concat());
        assert!(said.contains(&format!("{key}: ")) && said.contains("1 ms or more"), "{said}");
    }
    let flood = "cbr, rate = 1000 Gbit/s, payload = 0 B";
    let said = sentence(&["geo", "--traffic", flood, "-n", "1"]);
    assert!(said.contains("traffic.cbr-1.rate: ") && said.contains("too fast to be simulated"), "{said}");
}

#[test]
fn what_others_call_a_loss_is_suggested_as_per() {
    let said = sentence(&["mftp-bgan", "--set", "link.forward.loss=1%"]);
    assert!(said.contains("link.forward.loss: this key is unknown, did you mean per;"), "{said}");
}

/// Options for more receivers than the return link can carry requests of.
const DROWNED: [&str; 3] = ["mftp-bgan", "--set", "receivers=200000"];

#[test]
fn one_signal_ends_it_within_a_replication() {
    let place = Place::new();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let running =
            place.start("simulate", place.farcast([&["simulate"][..], &DROWNED, &["-n", "2"]].concat()));
        pause(Duration::from_millis(1500));
        let pid = rustix::process::Pid::from_child(&running.child);
        rustix::process::kill_process(pid, signal).unwrap();
        let told = Instant::now();
        // A note before it says that the return carries nothing of this.
        let ended = running.wait();
        assert_eq!(ended.code, Some(1), "{}", ended.story());
        let [note, sentence] = &ended.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("{}", ended.story())
        };
        assert!(note.starts_with("note: with a loss of 0.30 % about 153,772 of 200,000"), "{note}");
        assert_eq!(*sentence, "farcast: interrupted before the first replication was done");
        // It takes half a second, or hours if the signal is not heeded.
        assert!(told.elapsed() < Duration::from_secs(20), "{:?}", told.elapsed());
    }
}

#[test]
fn what_was_done_before_a_signal_is_told() {
    let place = Place::new();
    // The first replications take a moment, and all of them a day.
    let command = place.farcast(["simulate", "mftp-bgan", "-n", "100000000", "--threads", "1"]);
    let running = place.start("simulate", command);
    common::wait_until("progress", || running.stderr().contains(" replications"));
    running.terminate();
    let ended = running.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    let told = ended.stderr.lines().find_map(|line| line.strip_prefix("interrupted after "));
    let done = told.unwrap_or_else(|| panic!("{}", ended.story()));
    assert!(!done.starts_with("0 "), "{done}");
    assert!(
        ended.stdout.starts_with(&format!("MFTP over BGAN: 20 receivers, {done}, seed 1")),
        "{}",
        ended.story()
    );
}

/// Returns the megabytes of a replication with these settings: the command's own estimate, and the measured memory.
fn megabytes(place: &Place, file: &str, settings: &[&str]) -> [f64; 2] {
    let set = settings.iter().flat_map(|one| ["--set", one]);
    let args: Vec<&str> = ["simulate", file, "-n", "1", "--threads", "1"].into_iter().chain(set).collect();
    let refused = place.run("refused", place.farcast([&args[..], &["--memory", "1 B"]].concat()));
    let said = refused.stderr.split("would take about ").nth(1).and_then(|rest| rest.split(" MB").next());
    let said = said.unwrap_or_else(|| panic!("{}", refused.story())).parse().unwrap();
    let mut child = place.farcast(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut kilobytes: f64 = 0.0;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        kilobytes = peak.map_or(kilobytes, |peak| peak.trim().parse().unwrap());
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(ended.success(), "{settings:?}: {ended}");
    [said, kilobytes * 1.024e-3]
}

#[test]
fn the_memory_that_is_said_is_what_is_taken_up_to_a_factor_of_two() {
    let place = Place::new();
    let file = place.path("ideal.toml");
    let text = "receivers = 1\n[protocol]\nfile = \"1 MB\"\nrate = \"1 Mbit/s\"\n[link.forward]\n\
                delay = \"250 ms\"\n[link.return]\ndelay = \"250 ms\"\n";
    fs::write(&file, text).unwrap();
    let unlimited = "protocol.group=open_unlimited";
    for settings in [
        &["receivers=33000"][..],
        &["receivers=65536", "protocol.file=100 kB"],
        &["receivers=16384", "protocol.group=closed"],
        &["receivers=3000", "protocol.file=5 MB", "link.forward.per=0.05"],
        &["receivers=300000", unlimited, "link.forward.per=0.01"],
        &["receivers=300000", unlimited, "protocol.preset=draft", "link.forward.per=0.001"],
        &["receivers=1000000", unlimited, "protocol.pass_wait=fixed", "link.forward.per=0.005"],
        &["receivers=200000", "protocol.name=norm", "link.forward.per=0.01"],
        &["receivers=200000", "protocol.name=one-way"],
        &["receivers=2000", "protocol.name=pgm", "link.forward.per=0.01"],
        &["receivers=2000", "protocol.name=mdp", "link.forward.per=0.01"],
    ] {
        let [said, taken] = megabytes(&place, file.to_str().unwrap(), settings);
        assert!((taken..2.0 * taken).contains(&said), "{settings:?}: {said} MB said, {taken} MB taken");
    }
}

#[test]
fn what_takes_too_much_memory_is_refused_or_ended() {
    let place = Place::new();
    let refused =
        simulate(&place, &["mftp-bgan", "-n", "1", "--set", "receivers=4194304", "--memory", "2 GB"]);
    let parts = ["would take about", "--memory allows", "simulate fewer receivers"];
    refused.assert_one_sentence(1, &parts);
    // Two at once do not fit where one does.
    let two = ["-n", "2", "--threads", "2", "--memory", "1 GB"];
    let refused = simulate(&place, &[&DROWNED[..], &two].concat());
    refused.assert_one_sentence(1, &["for 2 replications at once", "--threads 1"]);
    // No estimate covers the length of a queue without a limit.
    let flood = ["--traffic", "cbr, rate = 1 Gbit/s, stop = 1000 s", "--set", "link.forward.queue=unlimited"];
    let ended = simulate(&place, &[&["geo", "-n", "1", "--memory", "100 MB"][..], &flood].concat());
    ended.assert_failed(1, &["the simulation has taken", "--memory allows"]);
}

#[test]
fn a_long_wait_is_told_of() {
    let place = Place::new();
    let args = ["simulate", "mftp-bgan", "-n", "1", "--memory", "64 GB", "--set", "receivers=1000000"];
    let running = place.start("simulate", place.farcast(args));
    // Four hours, of which the first seconds say it.
    common::wait_until("the estimate", || running.stderr().contains("this takes about "));
    running.terminate();
    running.wait().assert_failed(1, &["interrupted before the first replication was done"]);
}

#[test]
fn a_setting_that_changes_nothing_is_named() {
    let void = ["--set", "protocol.group=closed", "--set", "protocol.group_limit=7"];
    let ended = simulate(&Place::new(), &small(&void));
    assert_eq!(ended.code, Some(0), "{}", ended.story());
    assert!(ended.stderr.contains("protocol.group_limit changes nothing"), "{}", ended.story());
    let (object, code) = json(&small(&void));
    assert_eq!((&object["unused"], code), (&serde_json::json!(["protocol.group_limit"]), 0));
    let (object, _) = json(&small(&["--set", "protocol.group_limit=none"]));
    assert!(object.get("unused").is_none(), "{object}");
}
