//! Packets beyond a link's rate wait no longer than its queue takes to empty.

use std::path::Path;

use super::*;

/// Packets of 1500 octets into a link that ships, with its queues as they are by default.
struct Flood {
    name: &'static str,
    /// Settings that disable losses, so that only queues drop.
    settings: &'static [&'static str],
    to: End,
    /// Time from one packet to the next: half of the time that the link needs for each.
    every: Span,
    packets: u32,
    /// The longest delay lies between these: worked out from the file's figures.
    longest: (Span, Span),
}

const fn us(us: u64) -> Span {
    Span::from_micros(us)
}

const CLEAN: &[&str] = &["link.forward.per=0", "link.return.per=0"];
const BGAN: &[&str] = &["link.forward.per=0"];
/// Calls that never drop.
const IRIDIUM: &[&str] = &["link.return.per=0", "link.stages.bundle.time_between_drops=1e5 h"];
const UMTS: &[&str] = &["link.stages.bearer.forward.erasures=0"];

const fn flood(
    (name, settings, to): (&'static str, &'static [&'static str], End),
    (every, packets): (u64, u32),
    (least, most): (u64, u64),
) -> Flood {
    Flood { name, settings, to, every: us(every), packets, longest: (us(least), us(most)) }
}

/// Times in microseconds. The longest delay is that of a full queue, or of one with no room for one packet more, and
/// the propagation.
const FLOODS: [Flood; 15] = [
    // 675,000 octets at 10 Mbit/s, 540 ms; 135,000 at 2 Mbit/s as well.
    flood(("geo", CLEAN, End::Terminal), (600, 3000), (808_800, 810_000)),
    flood(("geo", CLEAN, End::Hub), (3000, 600), (804_000, 810_000)),
    // 325,000 octets at 100 Mbit/s and 32,500 at 10 Mbit/s: 26 ms.
    flood(("leo", CLEAN, End::Terminal), (60, 3000), (38_880, 39_000)),
    flood(("leo", CLEAN, End::Hub), (600, 300), (37_800, 39_000)),
    // 1,750,000 octets at 100 Mbit/s: 140 ms.
    flood(("meo", CLEAN, End::Terminal), (60, 6000), (209_880, 210_000)),
    flood(("meo", CLEAN, End::Hub), (60, 6000), (209_880, 210_000)),
    // In its first 15 s 162 and 17.5 Mbit/s, and 21.4 ms: 579,150 and 56,452 octets take 28.6 and 25.807 ms.
    flood(("starlink-like", CLEAN, End::Terminal), (37, 3000), (49_900, 50_000)),
    flood(("starlink-like", CLEAN, End::Hub), (340, 1000), (46_500, 47_208)),
    // A packet takes five FEC blocks, 50 ms. 22 of them wait for their first block behind one that is on the air.
    flood(("bgan", BGAN, End::Terminal), (25_000, 200), (1_550_000, 1_600_000)),
    // A packet takes 9 slots of 3 in 80 ms; a terminal has ten of them until their slots are over: 2.4 s. A request is
    // sent once the last is answered, a second and 5 ms after it was sent, and in the next frame, of which it ends
    // within the first 20 ms; slots begin a second later, in the next frame.
    flood(
        ("bgan", BGAN, End::Hub),
        (120_000, 200),
        (2_610_000, 1_005_000 + 100_000 + 1_000_000 + 80_000 + 2_850_000),
    ),
    // Ten packets, each in a frame of 1504 octets, two of which may be escaped, and a flag before the first: 11,520
    // octets a second.
    flood(("sgls-115200", &[], End::Terminal), (65_000, 100), (1_275_000, 1_407_379)),
    flood(("sgls-115200", &[], End::Hub), (65_000, 100), (1_275_000, 1_407_379)),
    // 15,000 octets and an indicator for each of 11 ends fill 376 PDUs, 32 intervals of 12, which begin within one.
    // When the window is full, once in 2.56 s, a poll is answered within 10 + 57.5 + 20 + 20 + 57.5 + 10 ms.
    flood(("umts-384", UMTS, End::Terminal), (15_000, 400), (338_750, 10_000 + 320_000 + 57_500 + 175_000)),
    // 188 intervals of 2 PDUs; the window is not filled in 30 s.
    flood(("umts-384", UMTS, End::Hub), (180_000, 120), (3_432_500, 20_000 + 3_760_000 + 57_500)),
    // Ten packets wait for 8 links, each of which has up to two fragments, at most 1515 octets each. So what is ahead,
    // with 14 octets for each of 8 fragments of a packet, is at most 40,370 octets at 2400 a second; then a link may
    // have two such fragments at 300 a second, and 0.9 s.
    flood(("iridium-8", IRIDIUM, End::Hub), (300_000, 200), (6_525_000, 16_821_000 + 10_100_000 + 900_000)),
];

fn shipped(flood: &Flood) -> Link {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/links").join(flood.name);
    let path = path.with_extension("toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut document = Document::parse(path.to_str().unwrap(), &text).unwrap();
    for setting in flood.settings {
        document.set(setting).unwrap();
    }
    let (links, queues) = Links::read_alone(&document).unwrap();
    assert_eq!(queues.len(), 2, "{}: both ways have a queue without a limit", flood.name);
    let groups = vec![Group { receivers: 1, delay: Span::ZERO, losses: None }];
    Link::new(LinkConfig { links, groups, flows: 0, seed: 1 }, None)
}

/// Number `number`, of octets that no line escapes.
fn packet(number: u32) -> [u8; 1500] {
    let mut octets = [0; 1500];
    for (octet, place) in octets.iter_mut().zip([1000, 100, 10, 1]) {
        *octet = (number / place % 10) as u8;
    }
    octets
}

/// The delay of each packet that leaves by `now`.
fn delays(link: &mut Link, now: Time, every: Span) -> Vec<Span> {
    let mut delays = Vec::new();
    link.advance(now, |link, departure| {
        let digits = &departure.packet.octets()[..4];
        let number = digits.iter().fold(0, |number, &digit| 10 * number + u64::from(digit));
        delays.push(departure.at.since(Time::ZERO + every * number));
        link.delivered(departure, Some(now));
    });
    delays
}

#[test]
fn a_flood_waits_no_longer_than_a_full_queue_takes() {
    for flood in &FLOODS {
        let mut link = shipped(flood);
        let mut all = Vec::new();
        for number in 0..flood.packets {
            let now = Time::ZERO + flood.every * u64::from(number);
            all.extend(delays(&mut link, now, flood.every));
            let terminal = if flood.to == End::Terminal { None } else { Some(0) };
            link.enter(now, flood.to, terminal, &packet(number));
        }
        all.extend(delays(&mut link, Time::ZERO + Span::from_secs(1000), flood.every));
        let (name, to) = (flood.name, flood.to);
        let longest = all.iter().copied().max().unwrap();
        let (least, most) = flood.longest;
        assert!(least <= longest && longest <= most, "{name} to {to:?}: {longest}, not {least} to {most}");
        let counts = if to == End::Terminal { link.forward() } else { link.back() };
        let [entered, delivered, dropped, lost] =
            [counts.entered, counts.delivered, counts.dropped, counts.lost].map(|sum| sum.packets);
        assert_eq!(
            (entered, delivered, lost),
            (flood.packets.into(), all.len() as u64, 0),
            "{name} to {to:?}"
        );
        // Twice the link's rate: of the packets that came after the queue was full, half.
        assert_eq!(delivered + dropped, entered, "{name} to {to:?}");
        assert!(dropped >= entered / 8, "{name} to {to:?}: {dropped} of {entered}");
    }
}
