use std::path::{Path, PathBuf};

use farcast_core::random::RandomStream;
use farcast_core::{Among, Probability, Time};

use super::*;
use crate::document::Document;
use farcast_link::pipe::QueueLimit;

use crate::links::{DefaultQueue, LinkSpec, Links};

const TRACE: &str = "0\n5\n5\n10\n";
const TABLE: &str = "time_s,rate_bit_per_s,delay_s,per\n0,1e6,0.25,0\n1.5,8e6,0.02,1\n";

fn document(link: &str, assignments: &[&str]) -> Document {
    let mut document = Document::parse("test.toml", link).expect("TOML");
    document.attach("a.trace", TRACE);
    document.attach("a.csv", TABLE);
    document.attach("bad.csv", "time_s,per\n0,2\n");
    for assignment in assignments {
        document.set(assignment).expect("an assignment");
    }
    document
}

fn read(document: &Document) -> Result<Links, DocumentError> {
    let mut top = document.root();
    let links = Links::read(&mut top)?;
    top.finish()?;
    Ok(links)
}

fn refuse(link: &str, assignments: &[&str]) -> String {
    read(&document(link, assignments)).expect_err(link).to_string()
}

#[test]
fn a_trace_and_a_timeline_are_read_with_their_keys() {
    let text = "[link.forward]\nkind = \"trace\"\ntrace = \"a.trace\"\ndelay = \"30 ms\"\nqueue_packets = 7\n\
                frame_overhead = \"4 B\"\nper = 0.5\n\
                [link.return]\nkind = \"timeline\"\ntimeline = \"a.csv\"\nperiod = \"3 s\"\nqueue = \"9 kB\"\n";
    let links = read(&document(text, &[])).expect("valid");
    let trace = Arc::new(RateTrace::parse(TRACE).expect("valid"));
    let (queue, delay, overhead) = (QueueLimit::Packets(7), Span::from_millis(30), 4);
    let config = TracePipeConfig { trace, queue, delay, overhead };
    assert_eq!(links.forward, LinkSpec::Trace(TraceSpec { config, limit_said: true }));
    assert_eq!(links.losses.per().map(Probability::get), Some(0.5));

    let timeline = Timeline::parse(TABLE, Some(Span::from_secs(3))).expect("valid");
    let (timeline, queue) = (Arc::new(timeline), QueueLimit::Octets(9000));
    let config = TimelinePipeConfig { timeline, queue, overhead: 0 };
    assert_eq!(links.back, LinkSpec::Timeline(TimelineSpec { config, limit_said: true }));
    assert!(links.forward.takes_time() && links.back.takes_time());
    assert_eq!(links.round_trip(), Span::from_millis(30 + 20));
    assert_eq!(links.clone().default_queues(Span::ZERO), []);
}

#[test]
fn the_column_of_losses_is_the_links() {
    let text = "[link.forward]\nkind = \"timeline\"\ntimeline = \"a.csv\"\nperiod = \"3 s\"\n";
    let links = read(&document(text, &[])).expect("valid");
    assert_eq!(links.losses.per(), None);
    let mut losses = links.losses.make(0, 4, RandomStream::derive(1, &[]));
    for (tenths, lost) in [(0, 0), (14, 0), (15, 4), (29, 4), (30, 0), (45, 4)] {
        let mut who = Vec::new();
        losses.draw(Time::ZERO + Span::from_millis(tenths * 100), 1000, Among::All, &mut who);
        assert_eq!(who.len(), lost, "at {tenths} tenths of a second");
    }
    assert_eq!(links.back_losses.per().map(Probability::get), Some(0.0));
}

#[test]
fn queues_without_a_limit_get_a_bandwidth_delay_product() {
    let text = "[[link.stages]]\nname = \"cell\"\nkind = \"trace\"\ndirection = \"forward\"\ntrace = \"a.trace\"\n\
                [link.forward]\nkind = \"timeline\"\ntimeline = \"a.csv\"\n[link.return]\ndelay = \"80 ms\"\n";
    let mut links = read(&document(text, &[])).expect("valid");
    // A round trip of 20 + 80 ms; 4 x 1504 octets in 10 ms, and 8 Mbit/s at most.
    let given: Vec<_> =
        [("cell", "link.stages.cell.queue", 60_160), ("forward", "link.forward.queue", 100_000)]
            .map(|(stage, key, octets)| DefaultQueue { stage: stage.into(), key: key.into(), octets })
            .into();
    assert_eq!(links.default_queues(Span::ZERO), given);
    assert_eq!(links.default_queues(Span::ZERO), [], "they have one now");
}

#[test]
fn errors_say_where_and_what_is_allowed() {
    let forward = |rest: &str| format!("[link.forward]\n{rest}");
    let timeline = forward("kind = \"timeline\"\ntimeline = \"bad.csv\"\n");
    assert_eq!(
        refuse(&timeline, &[]),
        "test.toml:3: link.forward.timeline: line 2: per is \"2\"; it must be a number, 0 to 1; a CSV file with the \
         columns time_s and rate_bit_per_s, delay_s or per"
    );
    let trace = forward("kind = \"trace\"\ntrace = \"a.csv\"\n");
    assert!(refuse(&trace, &[]).starts_with("test.toml:3: link.forward.trace: line 1: \"time_s,rate"));
    let absent = forward("kind = \"trace\"\ntrace = \"absent.trace\"\n");
    assert!(refuse(&absent, &[]).starts_with("test.toml:3: link.forward.trace: absent.trace: No such file"));
    assert!(refuse(&forward("kind = \"trace\"\n"), &[]).starts_with("test.toml:1: link.forward.trace: "));
    let zero = "link.forward.queue=0 B";
    assert!(refuse(&timeline.replace("bad", "a"), &[zero]).contains("nothing could ever be sent"));
    let period = "link.forward.period=1 s";
    assert!(refuse(&timeline.replace("bad", "a"), &[period]).contains("the period is 1.000000000 s"));
    let rate = "link.forward.rate=1 Mbit/s";
    assert!(
        refuse(&timeline.replace("bad", "a"), &[rate]).contains("link.forward.rate"),
        "its rate is the table's"
    );
    let stage =
        "[[link.stages]]\nname = \"x\"\nkind = \"timeline\"\ndirection = \"forward\"\ntimeline = \"a.csv\"\n";
    assert!(refuse(stage, &[]).contains("link.stages.x.timeline: it has a column per"));
}

/// Returns the directory of the shipped links.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/links")
}

fn preset(name: &str) -> Document {
    let path = shipped().join(name).with_extension("toml");
    let text = std::fs::read_to_string(&path).expect("it ships");
    Document::parse(path.to_str().expect("a path of UTF-8"), &text).expect("TOML")
}

#[test]
fn files_lie_beside_the_document_and_those_of_an_assignment_where_the_program_runs() {
    let mut starlink = preset("starlink-like");
    let LinkSpec::Timeline(spec) = read(&starlink).expect("valid").forward else { panic!("a timeline") };
    assert!(spec.timeline().has_rate() && spec.timeline().has_delay() && !spec.timeline().has_loss());

    let beside_the_crate = "../../scenarios/links/starlink-like-up.csv";
    starlink.set(&format!("link.forward.timeline={beside_the_crate}")).expect("an assignment");
    let up = read(&starlink).expect("tests run in the directory of their crate");
    assert_eq!(up.forward, up.back);
    starlink.set("link.forward.timeline=starlink-like-up.csv").expect("an assignment");
    assert!(read(&starlink).expect_err("not here").to_string().contains("No such file"));
}

#[test]
fn every_shipped_link_is_valid_and_has_its_delay() {
    // The shortest way there and back, in tenths of a millisecond.
    let round_trips = [
        ("geo", 5400),
        ("leo", 260),
        ("meo", 1400),
        ("bgan", 9000),
        ("iridium-8", 18_000),
        ("umts-384", 1150),
        ("sgls-115200", 2000),
        ("starlink-like", 234),
    ];
    for (name, tenths) in round_trips {
        let links = read(&preset(name)).expect(name);
        let trip = links.round_trip();
        // The transmission time of a frame's octets on serial lines and bearers is not delay.
        let expected = Span::from_micros(tenths * 100);
        assert!(trip >= expected && trip < expected + Span::from_millis(100), "{name}: {trip:?}");
        assert!(links.take_time(), "{name}");
    }
    let toml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    let files =
        std::fs::read_dir(shipped()).expect("a directory").map(|entry| entry.expect("an entry").path());
    assert_eq!(files.filter(toml).count(), round_trips.len());
}

/// The rule in the file's comment, in whole numbers: the fractional parts of multiples of three constants.
#[test]
fn the_tables_of_starlink_like_follow_their_rule() {
    let one = 10_000_000_000u64;
    let fraction = |k: u64, constant: u64| (k + 1) * constant % one;
    let rounded = |value: u64, step: u64| (value + step * one / 2) / (step * one) * step;
    let header = || vec!["time_s,rate_bit_per_s,delay_s".to_owned()];
    let (mut down, mut up) = (header(), header());
    for k in 0..40 {
        let (x, y, z) = (fraction(k, 6_180_339_887), fraction(k, 7_548_776_662), fraction(k, 5_698_402_910));
        // In kbit/s and in tenths of a millisecond.
        let (forward, back) =
            (rounded(100_000 * one + 100_000 * x, 1000), rounded(10_000 * one + 10_000 * y, 100));
        let delay = rounded(100 * one + 200 * z, 1);
        down.push(format!("{},{},0.{delay:04}", 15 * k, forward * 1000));
        up.push(format!("{},{},0.{delay:04}", 15 * k, back * 1000));
    }
    let shipped = |name: &str| std::fs::read_to_string(shipped().join(name)).expect("it ships");
    assert_eq!(shipped("starlink-like-down.csv"), down.join("\n") + "\n");
    assert_eq!(shipped("starlink-like-up.csv"), up.join("\n") + "\n");
}

#[test]
fn jitter_does_not_shorten_a_default_queue() {
    let text = "[link.forward]\nrate = \"10 Mbit/s\"\ndelay = \"270 ms\"\njitter = \"1 ms\"\n\
                [link.return]\nrate = \"2 Mbit/s\"\ndelay = \"270 ms\"\n";
    let document = Document::parse("link.toml", text).unwrap();
    let (_, queues) = Links::read_alone(&document).unwrap();
    // The rate times 540 ms.
    assert_eq!(queues.iter().map(|queue| queue.octets).collect::<Vec<_>>(), [675_000, 135_000]);
}
