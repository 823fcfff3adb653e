use std::path::Path;

use farcast_core::Span;
use farcast_link::pipe::QueueLimit;

use crate::document::Document;
use crate::links::{BearerSpec, LinkSpec, Links, StageSpec};

/// Returns the default limits of a shipped link with these settings, and checks that a second call sets none.
fn preset(name: &str, settings: &[&str]) -> Vec<(String, u64)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/links").join(name);
    let path = path.with_extension("toml");
    let text = std::fs::read_to_string(&path).expect("it ships");
    let mut document = Document::parse(path.to_str().expect("a path of UTF-8"), &text).expect("TOML");
    for setting in settings {
        document.set(setting).expect(setting);
    }
    let (mut links, given) = Links::read_alone(&document).expect("valid");
    assert_eq!(links.default_queues(Span::ZERO), [], "they have one now");
    given.into_iter().map(|queue| (queue.stage, queue.octets)).collect()
}

fn named(queues: &[(&str, u64)]) -> Vec<(String, u64)> {
    queues.iter().map(|&(stage, octets)| (stage.to_owned(), octets)).collect()
}

/// A default limit is the octets that pass in the round trip of a packet of no length, worked out from the files'
/// figures. It is at least ten packets of 1500 octets.
#[test]
fn the_links_that_ship_have_a_bandwidth_delay_product() {
    let cases: [(&str, &[(&str, u64)]); 8] = [
        // 10 and 2 Mbit/s for 540 ms.
        ("geo", &[("forward", 675_000), ("return", 135_000)]),
        // 100 and 10 Mbit/s for 26 ms.
        ("leo", &[("forward", 325_000), ("return", 32_500)]),
        // 100 Mbit/s for 140 ms.
        ("meo", &[("forward", 1_750_000), ("return", 1_750_000)]),
        // 8 blocks of 375 octets in 80 ms are 37,500 a second, for 900 ms; 3 slots of 168 octets are 6,300, so 5,670.
        ("bgan", &[("forward", 33_750), ("return", 15_000)]),
        // 8 times 300 octets a second for 1.8 s: 4,320.
        ("iridium-8", &[("bundle.forward", 15_000), ("bundle.return", 15_000)]),
        // 48,000 and 4,000 octets a second for 10 + 57.5 + 20 + 57.5 ms: 6,960 and 580.
        ("umts-384", &[("bearer.forward", 15_000), ("bearer.return", 15_000)]),
        // 11,520 octets a second for 200 ms: 2,304.
        ("sgls-115200", &[("serial.forward", 15_000), ("serial.return", 15_000)]),
        // At most 198 and 19.3 Mbit/s, for twice 11.7 ms.
        ("starlink-like", &[("forward", 579_150), ("return", 56_452)]),
    ];
    for (name, queues) in cases {
        assert_eq!(preset(name, &[]), named(queues), "{name}");
    }
}

#[test]
fn the_rate_is_that_of_what_the_line_carries_of_packets() {
    // 10 bits an octet one way and 8 the other, for 10 s.
    let serial = |key: &str| format!("link.stages.serial.{key}");
    let settings = ["forward.delay=8 s", "return.delay=2 s", "return.octet_bits=8"].map(serial);
    assert_eq!(
        preset("sgls-115200", &settings.each_ref().map(String::as_str)),
        named(&[("serial.forward", 115_200), ("serial.return", 144_000)])
    );
    // 4 links of 2400 and of 1200 bit/s, with 10 bits an octet, for 40 s.
    let bundle = |key: &str| format!("link.stages.bundle.{key}");
    let settings = ["links=4", "return_rate=1200 bit/s", "octet_bits=10", "delay=20 s"].map(bundle);
    assert_eq!(
        preset("iridium-8", &settings.each_ref().map(String::as_str)),
        named(&[("bundle.forward", 38_400), ("bundle.return", 19_200)])
    );
    // 39.9 kbit/s are 399 bits in 10 ms, of which a PDU takes 320: 4,000 octets a second like 32 kbit/s, for
    // 10 + 4,957.5 + 20 + 57.5 ms.
    let bearer = |key: &str| format!("link.stages.bearer.{key}");
    let settings = ["forward.rate=39900 bit/s", "forward.processing=4957.5 ms"].map(bearer);
    assert_eq!(
        preset("umts-384", &settings.each_ref().map(String::as_str)),
        named(&[("bearer.forward", 20_180), ("bearer.return", 20_180)])
    );
    // 37,500 and 6,300 octets a second for 4 s.
    let settings = ["link.forward.propagation=2 s", "link.return.propagation=2 s"];
    assert_eq!(preset("bgan", &settings), named(&[("forward", 150_000), ("return", 25_200)]));
}

#[test]
fn what_is_said_of_a_queue_holds() {
    for said in ["queue=unlimited", "queue=3 kB", "queue_packets=7"] {
        let both = |table: &str| [format!("{table}forward.{said}"), format!("{table}return.{said}")];
        let cases = [
            ("geo", both("link.").to_vec()),
            ("bgan", both("link.").to_vec()),
            ("starlink-like", both("link.").to_vec()),
            ("sgls-115200", both("link.stages.serial.").to_vec()),
            ("umts-384", both("link.stages.bearer.").to_vec()),
            ("iridium-8", vec![format!("link.stages.bundle.{said}")]),
            (
                "iridium-8",
                vec![format!("link.stages.bundle.{said}"), format!("link.stages.bundle.return_{said}")],
            ),
        ];
        for (name, settings) in cases {
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            assert_eq!(preset(name, &settings), [], "{name} with {settings:?}");
        }
        // The queue of the other direction has no given limit.
        let one = format!("link.stages.bundle.return_{said}");
        assert_eq!(preset("iridium-8", &[&one]), named(&[("bundle.forward", 15_000)]));
    }
}

/// A link with a queue of each kind, in which `Q` stands for the keys of its limit, and `R` for those of a bundle's
/// return queue.
const ALL: &str = r#"
[[link.stages]]
name = "serial"
kind = "ppp"
[link.stages.forward]
rate = "9600 bit/s"
Q
[link.stages.return]
rate = "9600 bit/s"
[[link.stages]]
name = "bundle"
kind = "multilink"
links = 2
rate = "9600 bit/s"
Q
R
[[link.stages]]
name = "bearer"
kind = "umts"
[link.stages.forward]
rate = "64 kbit/s"
[link.stages.return]
rate = "64 kbit/s"
Q
[[link.stages]]
name = "pipe"
direction = "forward"
rate = "1 Mbit/s"
Q
[link.forward]
kind = "bgan"
Q
[link.return]
kind = "bgan"
Q
"#;

/// Limits of the queues: the serial line forward, the bundle both ways, the bearer's return, the pipe, BGAN both
/// ways.
fn limits(said: &str, back: &str) -> [QueueLimit; 7] {
    let text = ALL.replace('Q', said).replace('R', back);
    let document = Document::parse("link.toml", &text).expect("TOML");
    let mut top = document.root();
    let mut links = Links::read(&mut top).expect("valid");
    let queue = |stage: &mut StageSpec, way: usize| match stage {
        StageSpec::Both(bearer) => *bearer.queues()[way].1.limit,
        StageSpec::One(_, link) => *link.queue().expect("it has a rate").limit,
    };
    let mut of = |number: usize, way: usize| queue(&mut links.stages[number].1, way);
    let stages = [of(0, 0), of(1, 0), of(1, 1), of(2, 1), of(3, 0)];
    let BearerSpec::Umts(umts) = (match &links.stages[2].1 {
        StageSpec::Both(bearer) => bearer,
        StageSpec::One(..) => panic!("it carries both ways"),
    }) else {
        panic!("a bearer of UMTS")
    };
    assert_eq!((umts.config.uplink.queue, umts.config.downlink.queue), (stages[3], QueueLimit::Unbounded));
    let (LinkSpec::BganForward(forward), LinkSpec::BganReturn(back)) = (&links.forward, &links.back) else {
        panic!("a bearer of BGAN")
    };
    let [one, two, three, four, five] = stages;
    [one, two, three, four, five, forward.config.queue, back.config.queue]
}

#[test]
fn every_queue_is_read_alike() {
    assert_eq!(limits("", ""), [QueueLimit::Unbounded; 7]);
    assert_eq!(limits("queue = \"unlimited\"", ""), [QueueLimit::Unbounded; 7]);
    assert_eq!(limits("queue = \"3 kB\"", ""), [QueueLimit::Octets(3000); 7]);
    assert_eq!(limits("queue_packets = 5", ""), [QueueLimit::Packets(5); 7]);
    // Unlimited octets allow a limit in packets.
    assert_eq!(limits("queue = \"unlimited\"\nqueue_packets = 5", ""), [QueueLimit::Packets(5); 7]);
    let mut apart = [QueueLimit::Octets(3000); 7];
    apart[2] = QueueLimit::Packets(9);
    assert_eq!(limits("queue = \"3 kB\"", "return_queue_packets = 9"), apart);
    apart[2] = QueueLimit::Unbounded;
    assert_eq!(limits("queue = \"3 kB\"", "return_queue = \"unlimited\""), apart);
}

#[test]
fn what_a_queue_cannot_be_is_refused_in_a_sentence() {
    let refuse = |said: &str| {
        let document =
            Document::parse("link.toml", &format!("[link.forward]\nrate = \"1 Mbit/s\"\n{said}\n"))
                .expect("TOML");
        let mut top = document.root();
        Links::read(&mut top).expect_err(said).to_string()
    };
    assert_eq!(
        refuse("queue = \"unlimted\""),
        "link.toml:3: link.forward.queue: \"unlimted\" is not known, did you mean \"unlimited\"; it must be one of \
         \"unlimited\", a size such as \"1 MiB\""
    );
    assert!(refuse("queue = \"much\"").contains("link.forward.queue: \"much\" is"));
    assert!(refuse("queue = 5").contains("5 has no unit"));
    assert!(refuse("queue = \"0 B\"").contains("nothing could ever be sent; at least 1 B"));
    assert!(refuse("queue_packets = 0").contains("link.forward.queue_packets: 0 is out of range"));
    let twice = refuse("queue = \"1 kB\"\nqueue_packets = 3");
    assert!(twice.contains("queue limits the queue already; one of the two"), "{twice}");
}

#[test]
fn no_figures_overflow() {
    // The highest possible rate for the longest time.
    let link = "rate = \"1000 Gbit/s\"\ndelay = \"1000000000 s\"\n";
    let text = format!("[link.forward]\n{link}[link.return]\n{link}");
    let document = Document::parse("link.toml", &text).expect("TOML");
    let (_, given) = Links::read_alone(&document).expect("valid");
    // The product, 125 GB a second for 2e9 s, exceeds 64 bits.
    assert_eq!(given.iter().map(|queue| queue.octets).collect::<Vec<_>>(), [u64::MAX; 2]);
}
