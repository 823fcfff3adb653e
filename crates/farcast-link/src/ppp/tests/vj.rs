//! Header compression on a link: lengths alone fare as octets do, and lost frames cost what RFC 1144 §4 says.

use core::num::NonZeroU32;
use std::vec::Vec;

use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::stage::{Frame, Port, Stage};
use farcast_ppp::VjConfig;

use super::*;
use crate::outage::{Schedule, Window};

/// A TCP segment over IPv4, which shows its octets to links or only its headers and its length.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    octets: Vec<u8>,
    headers: usize,
    shows: bool,
    carried: Option<Vec<u8>>,
}

impl Segment {
    /// A segment of `port` with timestamps, as everything in it follows from these numbers.
    fn new(
        port: u16,
        sequence: u32,
        acknowledgment: u32,
        tick: u32,
        identification: u16,
        data: usize,
    ) -> Self {
        let len = 52 + data as u16;
        let mut octets = Vec::from([0x45, 0]);
        octets.extend(len.to_be_bytes());
        octets.extend(identification.to_be_bytes());
        octets.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 64, 0, 0]);
        let words = octets.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let sum = (sum & 0xFFFF) + (sum >> 16);
        octets[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
        octets.extend(port.to_be_bytes());
        octets.extend(20u16.to_be_bytes());
        octets.extend(sequence.to_be_bytes());
        octets.extend(acknowledgment.to_be_bytes());
        octets.extend([0x80, 0x10, 0x40, 0, 0x12, 0x34, 0, 0, 1, 1, 8, 10]);
        octets.extend(tick.to_be_bytes());
        octets.extend([0, 0, 0, 9]);
        let headers = octets.len();
        octets.resize(headers + data, 0x41);
        Self { octets, headers, shows: true, carried: None }
    }

    fn hidden(&self) -> Self {
        Self { shows: false, ..self.clone() }
    }
}

impl Message for Segment {
    fn segments(&self) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    fn split(self, _count: NonZeroU32) -> (Self, Option<Self>) {
        (self, None)
    }

    fn wire_len(&self, _segment: u32) -> usize {
        self.octets.len()
    }

    fn octets(&self, _segment: u32) -> Option<&[u8]> {
        self.shows.then_some(&self.octets)
    }

    fn put_octets(&mut self, _segment: u32, octets: &[u8]) {
        self.carried = Some(octets.to_vec());
    }

    fn headers(&self, _segment: u32, out: &mut Vec<u8>) {
        assert!(!self.shows, "its octets are at hand");
        out.extend_from_slice(&self.octets[..self.headers]);
    }
}

/// Lines of 10,000 octets a second, with compression.
fn config() -> PppConfig {
    let line = || LineConfig::new(rate(100_000));
    PppConfig { vj: Some(VjConfig::default()), ..PppConfig::new(line(), line()) }
}

fn stage(config: PppConfig) -> Ppp<Segment> {
    Ppp::new(config, RandomStream::derive(3, &[91])).expect("valid")
}

/// Sends a segment from the hub. Returns `true` if it leaves; its octets are then as they were.
fn send(ppp: &mut Ppp<Segment>, now: Time, segment: &Segment) -> bool {
    ppp.handle(now, Port::Hub, Frame::new(segment.clone(), 0));
    let Some(output) = ppp.poll_output() else { return false };
    let arrived = output.frame.message;
    assert_eq!(arrived.carried.as_ref(), segment.shows.then_some(&segment.octets));
    true
}

/// Returns the octets on the line so far, without escapes, which a length does not tell.
fn octets(ppp: &Ppp<Segment>) -> u64 {
    let counters = ppp.line_counters(Port::Hub);
    counters.octets - counters.escapes
}

/// A bulk transfer that is acknowledged, repeats, pauses, and shares the link with another and with what is no TCP.
fn stream() -> Vec<Segment> {
    let mut random = RandomStream::derive(8, &[]);
    let (mut sequence, mut acknowledgment, mut tick) = (1_u32, 1, 0);
    let mut segments = Vec::new();
    for n in 0..500_u16 {
        tick += u32::from(random.below(4) == 0);
        acknowledgment += u32::from(random.below(10) == 0) * random.below(70_000) as u32;
        let back = random.below(20) == 0;
        let data = [0, 100, 1448, 1448][random.below(4) as usize];
        if back {
            sequence = sequence.saturating_sub(3000);
        }
        let mut segment = Segment::new(1025, sequence, acknowledgment, tick, n, data);
        sequence += data as u32;
        match random.below(20) {
            0 => segment = Segment::new(1026, sequence, 5, 0, n, 10),
            1 => {
                // A UDP datagram.
                segment.octets[9] = 17;
            }
            _ => {}
        }
        segments.push(segment);
    }
    segments
}

#[test]
fn lengths_alone_fare_as_octets_do() {
    let (mut shown, mut hidden) = (stage(config()), stage(config()));
    let mut now = Time::ZERO;
    let (mut plain, mut total) = (0, 0);
    for segment in stream() {
        assert!(send(&mut shown, now, &segment) && send(&mut hidden, now, &segment.hidden()));
        assert_eq!(octets(&shown), octets(&hidden));
        (plain, total) = (plain + segment.octets.len() + 4, total + 1);
        now += Span::from_millis(500);
    }
    let [of_shown, of_hidden] = [&shown, &hidden].map(|ppp| ppp.counters(Port::Hub).vj);
    assert_eq!(of_shown, of_hidden);
    assert!(of_shown.compressed > 150 && of_shown.uncompressed > 150, "{of_shown:?}");
    assert!(of_shown.compressed + of_shown.uncompressed < total, "UDP goes as it is");
    // At least 33 octets less for each header of 52 that is compressed.
    assert!(octets(&shown) + 33 * of_shown.compressed < plain as u64);
    assert_eq!(shown.counters(Port::Hub).codec_faults, 0);
}

/// Segments of 100 octets within a tick: all but the first are compressed.
fn burst(n: u32) -> Segment {
    Segment::new(1025, 1 + 100 * n, 1, 0, n as u16, 100)
}

/// The tenth frame is damaged. Later frames are tossed until the sender goes back, shown or hidden alike.
#[test]
fn a_damaged_frame_costs_all_until_the_sender_goes_back() {
    // The first is 1 + 152 + 4 octets with its leading flag, each other 3 + 100 + 4.
    let position = 8 * (157 + 8 * 107 + 50);
    let vector = ErrorVector::new(10_000_000, Vec::from([position])).expect("valid");
    let mut config = config();
    config.forward.errors = LineErrors::Vector { vector, start: Some(0) };
    for shows in [true, false] {
        let mut ppp = stage(config.clone());
        let mut arrive = |n, at| {
            let segment = if shows { burst(n) } else { burst(n).hidden() };
            send(&mut ppp, ms(at), &segment)
        };
        for n in 0..20 {
            assert_eq!(arrive(n, u64::from(n) * 10), n < 9, "segment {n}, shown: {shows}");
        }
        // The repetition is whole, and in step again goes what follows it.
        for n in 9..12 {
            assert!(arrive(n, 300 + u64::from(n)));
        }
        let counters = *ppp.counters(Port::Hub);
        assert_eq!((counters.delivered, counters.lost), (12, 11));
        assert_eq!((counters.vj.tossed, counters.vj.out_of_step, counters.vj.uncompressed), (10, 0, 2));
    }
}

/// A cut-off swallows a frame with both its flags, so that the receiver does not learn of it. Later headers are
/// restored to wrong numbers.
#[test]
fn a_frame_that_vanishes_unheard_puts_the_ends_out_of_step() {
    let mut config = config();
    // From 500 ms to 600 ms: the sixth, which leaves at 500 ms and takes 10.7 ms.
    let window = Window { start: ms(500), length: Span::from_millis(100) };
    config.forward.cut_offs = Schedule::new(&[window], None).expect("valid");
    for shows in [true, false] {
        let mut ppp = stage(config.clone());
        let mut arrive = |n: u32, at| {
            let segment = if shows { burst(n) } else { burst(n).hidden() };
            send(&mut ppp, ms(at), &segment)
        };
        for n in 0..10 {
            assert_eq!(arrive(n, u64::from(n) * 100), n < 5, "segment {n}, shown: {shows}");
        }
        assert!(arrive(5, 1500));
        let counters = *ppp.counters(Port::Hub);
        assert_eq!((counters.vj.tossed, counters.vj.out_of_step, counters.vj.uncompressed), (0, 4, 2));
    }
}

#[test]
fn what_waits_counts_as_it_came() {
    let mut config = config();
    config.forward.queue = crate::pipe::QueueLimit::Octets(1000);
    let mut ppp = stage(config);
    // Segments of 152 octets, of which six have room, although ten compressed ones would have.
    let taken = (0..10).filter(|&n| send(&mut ppp, Time::ZERO, &burst(n).hidden())).count();
    assert_eq!((taken, ppp.counters(Port::Hub).queue_dropped), (6, 4));
    // What found no room was not compressed either: the ends are in step.
    assert!(send(&mut ppp, ms(1000), &burst(6).hidden()));
    assert_eq!(ppp.counters(Port::Hub).vj.compressed, 6);
}
