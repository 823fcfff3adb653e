use farcast_core::Probability;
use farcast_core::random::RandomStream;
use farcast_ppp::framing::PROTOCOL_IPV4;
use proptest::prelude::*;
use std::vec::Vec;

use super::*;
use crate::outage::{Schedule, Window};
use crate::pipe::QueueLimit;
use crate::ppp::errors::Exposure;

fn stream(seed: u64) -> RandomStream {
    RandomStream::derive(seed, &[53])
}

fn line(config: LineConfig) -> SerialLine {
    SerialLine::new(config, stream(1)).expect("valid")
}

/// An asynchronous line that begins every frame with a flag of its own.
fn flagged(bps: u64) -> LineConfig {
    LineConfig { flag_after: Span::ZERO, ..LineConfig::new(rate(bps)) }
}

/// 1500 octets of which none is escaped, nor of their check sequence.
const PACKET: Information<'_> = Information::Octets(&[0x41; 1500]);

/// Returns the times at which a packet departs and arrives, if it arrives.
fn send(line: &mut SerialLine, now: Time, information: Information<'_>) -> Option<(u64, u64)> {
    match line.send(now, PROTOCOL_IPV4, information) {
        PacketFate::Frame { departs, arrives, intact: true } => {
            Some((departs.as_nanos(), arrives.as_nanos()))
        }
        _ => None,
    }
}

/// 1500 octets, protocol, FCS-16 and two flags are 1505 octets of 10 bits: 15,050 / 115,200 s; the next frame shares a
/// flag and takes 15,040 bits.
#[test]
fn frames_take_the_time_of_their_octets() {
    let delay = Span::from_secs(5);
    let mut fast = line(LineConfig { delay, ..LineConfig::new(rate(115_200)) });
    let first = 130_642_362;
    let second = first + 130_555_556;
    assert_eq!(send(&mut fast, Time::ZERO, PACKET), Some((first, first + 5_000_000_000)));
    assert_eq!(send(&mut fast, Time::ZERO, PACKET), Some((second, second + 5_000_000_000)));
    let LineCounters { sent, escapes, octets, busy, .. } = *fast.counters();
    assert_eq!((sent, escapes, octets, busy), (2, 0, 3009, Span::from_nanos(second)));
    assert_eq!(fast.free(), ns(second));
    // 15,050 bits at 2,400 bit/s are 6.2708333 s; on a synchronous line 12,040 bits are 5.0166667 s.
    let slow = LineConfig::new(rate(2_400));
    assert_eq!(send(&mut line(slow.clone()), ns(7), PACKET), Some((6_270_833_341, 6_270_833_341)));
    let synchronous = LineConfig { octet_bits: 8, ..slow };
    assert_eq!(send(&mut line(synchronous), ns(0), PACKET), Some((5_016_666_667, 5_016_666_667)));
}

#[test]
fn the_negotiated_framing_shows_in_the_time() {
    // With the default ACCM 00 and 03 of the header are escaped, and so are all 1500 octets: 8 + 3000 + 4 and two
    // flags, if none of the check sequence is.
    let framing = Framing { fcs: Fcs::Fcs32, ..Framing::UNCONFIGURED };
    let mut slow = line(LineConfig { framing, ..flagged(1_000_000) });
    send(&mut slow, Time::ZERO, Information::Octets(&[0x00; 1500])).expect("intact");
    let of_check = framing.count_escapes(&Fcs::Fcs32.of(&[0xFF, 3, 0, 0x21], &[0; 1500]));
    let LineCounters { octets, escapes, busy, .. } = *slow.counters();
    assert_eq!((octets, escapes), (4 + 1500 + 4 + 2 + 1502 + of_check, 1502 + of_check));
    assert_eq!(busy, Span::from_micros(10 * octets));
}

/// A length stands for random octets: 2/256 of information and check sequence are escaped. Within four standard errors.
#[test]
fn lengths_draw_their_escapes() {
    let mut line = line(LineConfig::new(rate(115_200)));
    let (packets, n, p) = (5000, 1502.0, 2.0 / 256.0);
    for _ in 0..packets {
        send(&mut line, Time::ZERO, Information::Length(1500)).expect("no errors");
    }
    let LineCounters { octets, escapes, busy, .. } = *line.counters();
    let trials = f64::from(packets) * n;
    let error = (trials * p * (1.0 - p)).sqrt();
    assert!((escapes as f64 - trials * p).abs() < 4.0 * error, "{escapes} for {}", trials * p);
    assert_eq!(octets, 1504 * 5000 + 1 + escapes);
    // Every frame's time is rounded up to the nanosecond.
    let exact = octets * 10 * 1_000_000_000 / 115_200;
    assert!((exact..exact + 5000).contains(&busy.as_nanos()));
}

#[test]
fn a_flag_leads_after_the_line_was_idle() {
    let flags = |flag_after, gaps: [u64; 3]| {
        let mut line = line(LineConfig { flag_after, ..LineConfig::new(rate(1_000_000)) });
        for gap in [0].into_iter().chain(gaps) {
            let now = line.free() + Span::from_nanos(gap);
            send(&mut line, now, PACKET).expect("intact");
        }
        line.counters().octets - 4 * 1504
    };
    let second = 1_000_000_000;
    assert_eq!(flags(Span::from_secs(1), [0, second - 1, second]), 2);
    assert_eq!(flags(Span::ZERO, [0, 0, 5]), 4);
    assert_eq!(flags(Span::MAX, [0, second, 99 * second]), 1);
}

#[test]
fn the_queue_counts_what_waits_and_what_is_sent() {
    let config = |queue| LineConfig { queue, ..flagged(1_000_000) };
    let octets = |n: usize| Information::Octets(&[0x41; 1500][..n]);
    let fits = |line: &mut SerialLine, at, n| send(line, ns(at), octets(n)).is_some();
    let mut packets = line(config(QueueLimit::Packets(2)));
    // The first has gone after (200 + 5) · 10 µs.
    assert!(fits(&mut packets, 0, 200) && fits(&mut packets, 0, 10) && !fits(&mut packets, 0, 0));
    assert!(!fits(&mut packets, 2_049_999, 1) && fits(&mut packets, 2_050_000, 1));
    let mut bounded = line(config(QueueLimit::Octets(300)));
    assert!(fits(&mut bounded, 0, 200) && !fits(&mut bounded, 0, 101) && fits(&mut bounded, 0, 100));
    assert!(!fits(&mut bounded, 0, 0) && fits(&mut bounded, 2_050_000, 200));
    assert_eq!((bounded.counters().queue_dropped, bounded.counters().sent), (2, 3));
    // Longer than an MRU can say: none such is sent, whatever the queue.
    let mut any = line(flagged(1_000_000));
    assert_eq!(any.send(ns(0), PROTOCOL_IPV4, Information::Length(65_536)), PacketFate::Dropped);
    assert!(any.send(ns(0), PROTOCOL_IPV4, Information::Length(65_535)) != PacketFate::Dropped);
    assert_eq!((any.counters().too_long, any.counters().queue_dropped), (1, 0));
}

/// A frame of n octets is lost with probability 1 - (1 - b)^(8n), n = 1505 with both flags. Within four standard
/// errors.
#[test]
fn bit_errors_lose_frames_as_their_ratio_says() {
    for (ber, packets, seed) in [(1e-6, 40_000, 1), (1e-5, 10_000, 2), (1e-4, 2000, 3)] {
        let errors = LineErrors::Ber(Probability::new(ber).expect("a probability"));
        let mut line =
            SerialLine::new(LineConfig { errors, ..flagged(115_200) }, stream(seed)).expect("valid");
        let lost = (0..packets).filter(|_| send(&mut line, Time::ZERO, PACKET).is_none()).count();
        let p = 1.0 - (1.0 - ber).powi(8 * 1505);
        let n = f64::from(packets);
        let error = (n * p * (1.0 - p)).sqrt();
        assert!((lost as f64 - n * p).abs() < 4.0 * error, "{lost} for {} at {ber}", n * p);
        assert_eq!(line.counters().corrupted, lost as u64);
    }
}

/// Both frames at a shared flag are lost with it: consecutive losses are more frequent than independent ones by just
/// the flag. With b = 0.01 and empty packets (3 octets and a flag), of N frames both a frame and the next are lost with
/// probability 1 - 2q⁴⁰ + q⁷², where q = (1 - b): a frame needs its 5 octets, two in a row need 9.
#[test]
fn a_shared_flag_loses_both() {
    let errors = LineErrors::Ber(Probability::new(0.01).expect("a probability"));
    let config = LineConfig { errors, framing: Framing::default(), ..LineConfig::new(rate(115_200)) };
    let mut line = SerialLine::new(config, stream(4)).expect("valid");
    // Their FCS-16 has no octet that is escaped.
    let mut lost = || send(&mut line, Time::ZERO, Information::Octets(&[])).is_none();
    let pairs = 100_000;
    let both = (0..pairs).filter(|_| lost() & lost()).count();
    let q = 0.99_f64;
    let p = 1.0 - 2.0 * q.powi(40) + q.powi(72);
    let n = f64::from(pairs);
    // Pairs that touch are not independent; only neighbours are, through one flag: twice the variance bounds it.
    let error = (2.0 * n * p * (1.0 - p)).sqrt();
    assert!((both as f64 - n * p).abs() < 4.0 * error, "{both} for {}", n * p);
    assert!((1.0 - q.powi(40)).powi(2) < p - 4.0 * error / n, "the test tells shared flags from own ones");
    assert_eq!(line.counters().escapes, 0);
}

#[test]
fn very_rare_and_certain_errors_have_their_probabilities() {
    let pass = |ber, octets, count, seed| {
        let errors = LineErrors::Ber(Probability::new(ber).expect("a probability"));
        let mut exposure = Exposure::new(errors, stream(seed));
        (0..count).filter(|_| exposure.pass(octets).is_some()).count()
    };
    // 10^6 octets at 10^-9: 1 - e^-0.008.
    let (n, p) = (100_000_f64, -f64::exp_m1(-0.008));
    let lost = pass(1e-9, 1_000_000, 100_000, 5) as f64;
    assert!((lost - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt(), "{lost} for {}", n * p);
    assert_eq!(pass(0.0, u64::MAX / 8, 9, 6), 0);
    assert_eq!(pass(1.0, 1, 9, 7), 9);
    assert_eq!(pass(1.0, 0, 9, 7), 0);
}

/// The 10 million bits of the study with 10, 100 and 1000 errors, as many frames as it takes for the vector to pass
/// once: a frame is lost for every run of errors in one frame.
#[test]
fn a_vector_hits_the_frames_at_its_errors() {
    for (count, seed) in [(10, 1), (100, 2), (1000, 3)] {
        let vector = ErrorVector::random(10_000_000, count, &mut stream(seed)).expect("valid");
        assert_eq!((vector.bits(), vector.errors().len() as u64), (10_000_000, count));
        let frame_bits = 1505 * 8;
        let mut hit: Vec<u64> = vector.errors().iter().map(|error| error / frame_bits).collect();
        hit.dedup();
        let errors = LineErrors::Vector { vector, start: Some(0) };
        let mut line = line(LineConfig { errors, ..flagged(115_200) });
        let frames = 0..10_000_000_u64.div_ceil(frame_bits);
        let lost: Vec<u64> = frames.filter(|_| send(&mut line, Time::ZERO, PACKET).is_none()).collect();
        // The last frame meets the first bits of the repetition as well.
        assert_eq!(lost[..hit.len()], hit[..]);
        assert!(lost.len() - hit.len() <= 1);
    }
}

#[test]
fn errors_of_a_random_vector_are_anywhere_alike() {
    let mut counts = [0_u32; 10];
    for seed in 0..200 {
        let vector = ErrorVector::random(1000, 30, &mut stream(seed)).expect("valid");
        assert!(vector.errors().is_sorted_by(|a, b| a < b) && vector.errors().len() == 30);
        vector.errors().iter().for_each(|&error| counts[error as usize / 100] += 1);
    }
    // Hypergeometric: 30 of 1000 in a tenth, variance 30 · 0.1 · 0.9 · 970/999, times 200. Within four deviations.
    let error = (200.0 * 30.0 * 0.09 * 970.0 / 999.0_f64).sqrt();
    assert!(counts.iter().all(|&count| (f64::from(count) - 600.0).abs() < 4.0 * error), "{counts:?}");
    let full = ErrorVector::random(64, 64, &mut stream(9)).expect("valid");
    assert!(full.errors().iter().copied().eq(0..64));
    assert_eq!(ErrorVector::random(7, 0, &mut stream(9)).expect("valid").errors(), [] as [u64; 0]);
}

#[test]
fn vectors_are_read_as_bits_or_positions() {
    let vector = ErrorVector::from_bits(" 0001 0010\n00").expect("valid");
    assert_eq!((vector.bits(), vector.errors()), (10, &[3, 6][..]));
    assert_eq!(ErrorVector::from_positions(10, "3, 6\n"), Ok(vector));
    let symbol = |text: &str| Err(PppError::VectorSymbol(text.into()));
    assert_eq!(ErrorVector::from_bits("0102"), symbol("2"));
    assert_eq!(ErrorVector::from_positions(10, "1 -2"), symbol("-2"));
    assert_eq!(ErrorVector::from_bits(" "), Err(PppError::EmptyVector));
    assert_eq!(ErrorVector::from_positions(0, ""), Err(PppError::EmptyVector));
    assert_eq!(ErrorVector::from_positions(9, "4 4"), Err(PppError::VectorOrder(4)));
    assert_eq!(ErrorVector::from_positions(9, "4 9"), Err(PppError::VectorPosition { position: 9, bits: 9 }));
    let too_many = Err(PppError::VectorErrors { count: 4, bits: 3 });
    assert_eq!(ErrorVector::random(3, 4, &mut stream(1)), too_many);
}

/// One lost frame, cut in its middle; the sender's timing is untouched.
#[test]
fn a_cut_off_loses_what_is_sent_in_it() {
    // Frames of 1505 octets, 15,050 µs.
    let cut = |start: u64, length: u64| {
        let window = Window { start: ns(start * 1000), length: Span::from_nanos(length) };
        let cut_offs = Schedule::new(&[window], None).expect("valid");
        let mut line = line(LineConfig { cut_offs, ..flagged(1_000_000) });
        let arrived: Vec<bool> = (0..4).map(|_| send(&mut line, Time::ZERO, PACKET).is_some()).collect();
        assert_eq!(line.free(), ns(4 * 15_050_000));
        assert_eq!(line.counters().cut_off, arrived.iter().filter(|arrived| !**arrived).count() as u64);
        arrived
    };
    assert_eq!(cut(20_000, 1), [true, false, true, true]);
    assert_eq!(cut(20_000, 10_100_001), [true, false, false, true]);
    // The first flag of the third frame alone is lost: the flag before it does.
    assert_eq!(cut(30_100, 10_000), [true; 4]);
    // The last flag of the second, and the first of the third beside.
    assert_eq!(cut(30_099, 1), [true, false, true, true]);
    assert_eq!(cut(60_200, 5_000_000), [true; 4]);
}

/// A naive line, which sends octet by octet.
struct NaiveLine {
    bps: u128,
    octet_bits: u128,
    flag_after: u128,
    windows: Vec<(u128, u128)>,
    bits: u64,
    errors: Vec<u64>,
    /// Data bits that have met the vector.
    met: u64,
    free: u128,
    /// Octets that arrive.
    received: Vec<u8>,
    /// `true` if an octet of the last frame, other than its leading flag, was cut off.
    cut: bool,
}

impl NaiveLine {
    /// Sends the octets of a frame one at a time: finds its end, and if it is cut off, and flips the bits in error.
    fn send(&mut self, now: u128, framing: Framing, information: &[u8]) -> u128 {
        let start = now.max(self.free);
        let leading = self.free == 0 || start - self.free >= self.flag_after;
        self.cut = false;
        let mut frame = Vec::new();
        framing.encode(PROTOCOL_IPV4, information, leading, &mut frame);
        let time =
            |octets: usize| start + (octets as u128 * self.octet_bits * 1_000_000_000).div_ceil(self.bps);
        for (k, &octet) in frame.iter().enumerate() {
            let (begin, end) = (time(k), time(k + 1));
            if self.windows.iter().any(|&(from, to)| begin < to && end > from) {
                self.cut |= k > 0 || !leading;
                continue;
            }
            let flipped =
                (0..8).filter(|bit| self.errors.binary_search(&((self.met + bit) % self.bits)).is_ok());
            self.received.push(flipped.fold(octet, |octet, bit| octet ^ 1 << bit));
            self.met += 8;
        }
        self.free = time(frame.len());
        self.free
    }
}

/// Packets as (gap before, length), cut-offs as (gap before, length), and a vector.
type Script = (Vec<(u64, usize)>, Vec<(u64, u64)>, (u64, Vec<u64>), u64);

fn scripts() -> impl Strategy<Value = Script> {
    let packets = proptest::collection::vec((prop_oneof![Just(0), 0_u64..3000], 1_usize..40), 1..30);
    let windows = proptest::collection::vec((1_u64..5000, 1_u64..400), 0..4);
    let vector = (1_u64..3000).prop_flat_map(|bits| {
        let errors = proptest::collection::btree_set(0..bits, 0..4.min(bits as usize + 1));
        (Just(bits), errors.prop_map(|errors| errors.into_iter().collect()))
    });
    (packets, windows, vector, any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A line is what happens to its octets one by one: timing, shared flags, errors and cut-offs at once.
    #[test]
    fn a_line_loses_the_frames_that_a_recording_of_it_lacks(
        (packets, gaps, (bits, errors), seed) in scripts(),
        bps in 1_000_000_000_u64..3_000_000_000, octet_bits in 8_u8..=12, flag_after in 0_u64..2000,
    ) {
        // Errors close to one another pass FCS-16 too often for a test, and may turn a flag into what an ACCM removes.
        let framing = Framing { fcs: Fcs::Fcs32, ..Framing::default() };
        let start = seed % bits;
        let mut end = 0;
        let windows: Vec<_> = gaps.iter().map(|&(gap, length)| {
            let begin = end + gap;
            end = begin + length;
            (begin, end)
        }).collect();
        let window = |&(from, to): &(u64, u64)| Window { start: ns(from), length: Span::from_nanos(to - from) };
        let cut_offs = Schedule::new(&windows.iter().map(window).collect::<Vec<_>>(), None).expect("valid");
        let vector = ErrorVector::new(bits, errors.clone()).expect("valid");
        let mut line = line(LineConfig {
            octet_bits, framing, cut_offs,
            flag_after: Span::from_nanos(flag_after),
            errors: LineErrors::Vector { vector, start: Some(start) },
            ..LineConfig::new(rate(bps))
        });
        let mut naive = NaiveLine {
            bps: bps.into(), octet_bits: octet_bits.into(), flag_after: flag_after.into(),
            windows: windows.iter().map(|&(from, to)| (from.into(), to.into())).collect(),
            bits, errors, met: start, free: 0, received: Vec::new(), cut: false,
        };
        let (mut now, mut intact, mut content) = (0, Vec::new(), stream(seed));
        let mut cut = Vec::new();
        for (number, (gap, length)) in packets.into_iter().enumerate() {
            now += gap;
            let mut information: Vec<u8> = (0..length).map(|_| content.below(256) as u8).collect();
            information.extend([number as u8, 0xA5]);
            let naive_departs = naive.send(now.into(), framing, &information);
            let sent = line.send(ns(now), PROTOCOL_IPV4, Information::Octets(&information));
            let PacketFate::Frame { departs, intact: arrives, .. } = sent else { panic!("no queue limit") };
            prop_assert_eq!(u128::from(departs.as_nanos()), naive_departs);
            if naive.cut {
                prop_assert!(!arrives);
                cut.push(information.clone());
            }
            if arrives {
                intact.push((PROTOCOL_IPV4, information));
            }
        }
        // Another frame's octets or flag may stand in for what was cut off, but the frame is lost all the same.
        let (mut received, _) = naive::deframe(framing, 100, &naive.received);
        received.retain(|(_, information)| !cut.contains(information));
        prop_assert_eq!(received, intact);
    }
}

/// The same with FCS-16 and every control octet escaped, over a vector of a million bits; no error passes with this
/// seed.
#[test]
fn a_long_recording_lacks_what_the_line_lost() {
    for (errors, seed) in [(100, 1), (1000, 2)] {
        let vector = ErrorVector::random(1_000_000, errors, &mut stream(seed)).expect("valid");
        let framing = Framing::UNCONFIGURED;
        let mut naive = NaiveLine {
            bps: 115_200,
            octet_bits: 10,
            flag_after: 1_000_000_000,
            windows: Vec::new(),
            bits: vector.bits(),
            errors: vector.errors().to_vec(),
            met: 77,
            free: 0,
            received: Vec::new(),
            cut: false,
        };
        let errors = LineErrors::Vector { vector, start: Some(77) };
        let mut line = line(LineConfig { framing, errors, ..LineConfig::new(rate(115_200)) });
        let (mut intact, mut content) = (Vec::new(), stream(seed));
        for number in 0..1000_u32 {
            let length = content.below(600);
            let mut information: Vec<u8> = (0..length).map(|_| content.below(256) as u8).collect();
            information.extend(number.to_be_bytes());
            naive.send(0, framing, &information);
            if send(&mut line, Time::ZERO, Information::Octets(&information)).is_some() {
                intact.push((PROTOCOL_IPV4, information));
            }
        }
        assert!(intact.len() < 950 && intact.len() > 100, "{}", intact.len());
        assert_eq!(naive::deframe(framing, 1500, &naive.received).0, intact);
    }
}

#[test]
fn where_a_vector_begins_is_drawn_unless_given() {
    let vector = ErrorVector::new(1000, std::vec![500]).expect("valid");
    let errors = LineErrors::Vector { vector, start: None };
    // A packet of 20 octets meets 24 + 1 octets, 200 of 1000 bits: a fifth of the starts lose it. Within four
    // deviations.
    let information = Information::Octets(&[0x41; 20]);
    let first = |seed| {
        let config = LineConfig { errors: errors.clone(), ..flagged(1000) };
        send(&mut SerialLine::new(config, stream(seed)).expect("valid"), Time::ZERO, information).is_none()
    };
    let lost = (0..2000).filter(|&seed| first(seed)).count() as f64;
    assert!((lost - 400.0).abs() < 4.0 * (2000.0 * 0.2 * 0.8_f64).sqrt(), "{lost}");
}

#[test]
fn settings_without_sense_are_refused() {
    let refuse = |config| SerialLine::new(config, stream(1)).map(|_| ());
    let good = LineConfig::new(rate(1));
    for octet_bits in [0, 7, 13, 255] {
        assert_eq!(refuse(LineConfig { octet_bits, ..good.clone() }), Err(PppError::OctetBits(octet_bits)));
    }
    for queue in [QueueLimit::Packets(0), QueueLimit::Octets(0)] {
        assert_eq!(refuse(LineConfig { queue, ..good.clone() }), Err(PppError::ZeroQueue));
    }
    let vector = ErrorVector::new(9, std::vec![1]).expect("valid");
    let errors = LineErrors::Vector { vector, start: Some(9) };
    let begins = Err(PppError::VectorStart { start: 9, bits: 9 });
    assert_eq!(refuse(LineConfig { errors, ..good.clone() }), begins);
    assert_eq!(refuse(good), Ok(()));
}

#[test]
fn extremes_saturate() {
    let window = |start, length| Window { start: ns(start), length: Span::from_nanos(length) };
    let tiny = Schedule::new(&[window(3, 1)], Some(Span::from_nanos(3))).expect("valid");
    let last = Schedule::new(&[window(u64::MAX - 1, u64::MAX)], None).expect("valid");
    for cut_offs in [Schedule::default(), tiny, last] {
        let vector = ErrorVector::new(u64::MAX, std::vec![0, u64::MAX - 1]).expect("valid");
        let mut line = line(LineConfig {
            delay: Span::MAX,
            errors: LineErrors::Vector { vector, start: Some(u64::MAX - 1) },
            cut_offs,
            flag_after: Span::MAX,
            queue: QueueLimit::Octets(u64::MAX),
            ..LineConfig::new(rate(1))
        });
        for now in [0, u64::MAX - 5, u64::MAX, 3] {
            for information in [Information::Length(65_535), Information::Length(u64::MAX), PACKET] {
                if let PacketFate::Frame { arrives, .. } = line.send(ns(now), 0xFFFF, information) {
                    assert_eq!(arrives, Time::NEVER);
                }
            }
        }
        assert_eq!((line.counters().sent, line.counters().too_long), (8, 4));
    }
}
