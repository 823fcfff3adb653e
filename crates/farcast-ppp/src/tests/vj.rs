//! Van Jacobson's compression: vectors worked out by hand from RFC 1144 §3.2.2, drawn streams with and without losses,
//! hostile input, and tshark.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::tshark::{DIRECTED, run};
use crate::Fcs;
use crate::vj::{Compressor, Decompressor, Fault, Kind, MAX_HEADERS, VjConfig};

/// A segment's headers, as far as they vary here.
#[derive(Clone, Debug)]
struct Segment {
    port: u16,
    tos: u8,
    identification: u16,
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    window: u16,
    checksum: u16,
    urgent: u16,
    options: Vec<u8>,
    data: u16,
}

impl Segment {
    const ACK: u8 = 0x10;
    const PSH: u8 = 0x08;
    const URG: u8 = 0x20;

    /// Makes a segment from 10.0.0.3 to 10.0.0.2, with 44 octets of data.
    fn first() -> Self {
        Self {
            port: 1025,
            tos: 0,
            identification: 1,
            sequence: 1,
            acknowledgment: 1,
            flags: Self::ACK,
            window: 0x4000,
            checksum: 0x1111,
            urgent: 0,
            options: Vec::new(),
            data: 44,
        }
    }

    fn headers(&self) -> Vec<u8> {
        let tcp = 20 + self.options.len();
        let len = 20 + tcp as u16 + self.data;
        let mut octets = Vec::from([0x45, self.tos]);
        octets.extend(len.to_be_bytes());
        octets.extend(self.identification.to_be_bytes());
        octets.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 3, 10, 0, 0, 2]);
        let mut sum: u32 = octets.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        octets[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
        octets.extend(self.port.to_be_bytes());
        octets.extend(20u16.to_be_bytes());
        octets.extend(self.sequence.to_be_bytes());
        octets.extend(self.acknowledgment.to_be_bytes());
        octets.extend([(tcp as u8 / 4) << 4, self.flags]);
        octets.extend(self.window.to_be_bytes());
        octets.extend(self.checksum.to_be_bytes());
        octets.extend(self.urgent.to_be_bytes());
        octets.extend(&self.options);
        octets
    }

    fn len(&self) -> usize {
        self.headers().len() + usize::from(self.data)
    }
}

/// Compresses a segment. Returns the kind, and the octets in place of the headers.
fn sent(compressor: &mut Compressor, segment: &Segment) -> (Kind, Vec<u8>) {
    let (headers, mut out) = (segment.headers(), Vec::new());
    let compressed = compressor.compress(&headers, segment.len(), &mut out);
    match compressed.kind {
        Kind::Ip => assert_eq!((compressed.replaces, out.len()), (0, 0)),
        _ => assert_eq!(compressed.replaces, headers.len()),
    }
    (compressed.kind, if compressed.kind == Kind::Ip { headers } else { out })
}

/// Returns the headers that are restored from a packet sent with `data` octets of data.
fn received(
    decompressor: &mut Decompressor,
    (kind, octets): &(Kind, Vec<u8>),
    data: u16,
) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    match kind {
        Kind::Ip => out.clone_from(octets),
        Kind::Uncompressed => decompressor.take_uncompressed(octets, &mut out)?,
        Kind::Compressed => {
            let taken = decompressor.take_compressed(octets, octets.len() + usize::from(data), &mut out)?;
            assert_eq!(taken, octets.len());
        }
    }
    Ok(out)
}

fn ends() -> (Compressor, Decompressor) {
    (Compressor::new(VjConfig::default()), Decompressor::new(VjConfig::default()))
}

/// Segments, and what RFC 1144 makes of them, worked out by hand.
fn vectors() -> Vec<(Segment, Kind, &'static [u8])> {
    let first = Segment::first();
    // The data of the last segment further on, pushed: all that need be said is in the mask.
    let stream = Segment {
        identification: 2,
        sequence: 45,
        flags: Segment::ACK | Segment::PSH,
        checksum: 0x2222,
        ..first.clone()
    };
    // Window less by one, acknowledgment more by 300, sequence by 44.
    let all = Segment {
        identification: 3,
        sequence: 89,
        acknowledgment: 301,
        window: 0x3FFF,
        flags: Segment::ACK,
        checksum: 0x3333,
        ..first.clone()
    };
    // The identification is three further.
    let skipped = Segment { identification: 6, sequence: 133, checksum: 0x4444, ..all.clone() };
    let urgent = Segment {
        identification: 7,
        sequence: 177,
        flags: Segment::ACK | Segment::URG,
        urgent: 5,
        checksum: 0x5555,
        ..skipped.clone()
    };
    // URG is gone and its pointer as it was: what the two special masks stand for, a receiver may take for urgent too.
    let pointed = Segment { identification: 8, sequence: 221, flags: Segment::ACK, ..urgent.clone() };
    // The pointer is gone too: no mask tells of that.
    let calm = Segment {
        identification: 9,
        sequence: 265,
        flags: Segment::ACK,
        urgent: 0,
        checksum: 0x6666,
        ..urgent.clone()
    };
    // An echoed character: one octet, then both numbers one further.
    let typed = Segment { identification: 10, sequence: 309, data: 1, ..calm.clone() };
    let echoed = Segment { identification: 11, sequence: 310, acknowledgment: 302, ..typed.clone() };
    // The same identification again, as of a sender that sets none.
    let still = Segment { sequence: 311, ..echoed.clone() };
    let other = Segment { port: 1026, identification: 12, ..first.clone() };
    let back = Segment { identification: 12, sequence: 312, ..still.clone() };
    let again = Segment { identification: 13, ..back.clone() };
    let earlier = Segment { identification: 14, sequence: 311, ..again.clone() };
    let fin = Segment { flags: Segment::ACK | 1, ..back.clone() };
    Vec::from([
        (first, Kind::Uncompressed, &[][..]),
        (stream, Kind::Compressed, &[0x1F, 0x22, 0x22]),
        (all, Kind::Compressed, &[0x0E, 0x33, 0x33, 0, 0xFF, 0xFF, 0, 0x01, 0x2C, 44]),
        (skipped, Kind::Compressed, &[0x2F, 0x44, 0x44, 3]),
        (urgent, Kind::Compressed, &[0x09, 0x55, 0x55, 5, 44]),
        (pointed, Kind::Compressed, &[0x08, 0x55, 0x55, 44]),
        (calm, Kind::Uncompressed, &[]),
        (typed, Kind::Compressed, &[0x0F, 0x66, 0x66]),
        (echoed, Kind::Compressed, &[0x0B, 0x66, 0x66]),
        (still, Kind::Compressed, &[0x2F, 0x66, 0x66, 0, 0, 0]),
        (other, Kind::Uncompressed, &[]),
        (back, Kind::Compressed, &[0x4F, 0, 0x66, 0x66]),
        (again, Kind::Uncompressed, &[]),
        (earlier, Kind::Uncompressed, &[]),
        (fin, Kind::Ip, &[]),
    ])
}

#[test]
fn headers_become_what_rfc_1144_says() {
    let (mut compressor, mut decompressor) = ends();
    let mut slots = [0u8, 0, 1, 0, 0].into_iter();
    for (number, (segment, kind, octets)) in vectors().into_iter().enumerate() {
        let on_the_line = sent(&mut compressor, &segment);
        assert_eq!(on_the_line.0, kind, "segment {number}");
        match kind {
            Kind::Compressed => assert_eq!(on_the_line.1, octets, "segment {number}"),
            Kind::Uncompressed => {
                // The slot stands where the protocol does, and all else is as it was.
                let mut expected = segment.headers();
                expected[9] = slots.next().unwrap();
                assert_eq!(on_the_line.1, expected, "segment {number}");
            }
            Kind::Ip => assert_eq!(on_the_line.1, segment.headers()),
        }
        let restored = received(&mut decompressor, &on_the_line, segment.data);
        assert_eq!(restored, Ok(segment.headers()), "segment {number}");
    }
    let counters = decompressor.counters();
    assert_eq!((counters.uncompressed, counters.compressed), (5, 9));
}

#[test]
fn the_headers_of_the_vectors_have_the_checksum_that_was_worked_out() {
    // 4500 + 0054 + 0001 + 4000 + 4006 + 0a00 + 0003 + 0a00 + 0002 = d960.
    assert_eq!(Segment::first().headers()[10..12], [0x26, 0x9F]);
}

#[test]
fn slots_are_given_to_whoever_needs_one_from_whoever_was_silent_longest() {
    let config = VjConfig { max_slot_id: 2, ..VjConfig::default() };
    let mut compressor = Compressor::new(config);
    let mut of = |port| sent(&mut compressor, &Segment { port, ..Segment::first() });
    let slots: Vec<u8> = [1, 2, 3].map(|port| of(port).1[9]).into();
    assert_eq!(slots, [0, 1, 2]);
    // Port 1 speaks again, so it is port 2 that gives way to port 4, and then port 3 to port 2.
    assert_eq!((of(1).1[9], of(4).1[9], of(2).1[9], of(1).1[9]), (0, 1, 2, 0));
}

#[test]
fn without_comp_slot_id_every_header_names_its_slot() {
    let mut compressor = Compressor::new(VjConfig { comp_slot_id: false, ..VjConfig::default() });
    let [first, second] = [Segment::first(), Segment { identification: 2, sequence: 45, ..Segment::first() }];
    sent(&mut compressor, &first);
    assert_eq!(sent(&mut compressor, &second).1, [0x4F, 0, 0x11, 0x11]);
}

/// A stream of 44 octets a segment; every tenth is pushed.
fn nth(n: u16) -> Segment {
    let flags = if n.is_multiple_of(10) { Segment::ACK | Segment::PSH } else { Segment::ACK };
    Segment {
        identification: 1 + n,
        sequence: 1 + 44 * u32::from(n),
        checksum: 0x1111 ^ n,
        flags,
        ..Segment::first()
    }
}

/// RFC 1144 §4.1: headers behind a damaged frame are tossed as long as they leave out their slot.
#[test]
fn after_damage_headers_are_tossed_until_one_names_its_slot() {
    let (mut compressor, mut decompressor) = ends();
    let frames: Vec<_> = (0..6).map(|n| sent(&mut compressor, &nth(n))).collect();
    assert_eq!(received(&mut decompressor, &frames[0], 44), Ok(nth(0).headers()));
    decompressor.hear_of_damage();
    assert_eq!(received(&mut decompressor, &frames[2], 44), Err(Fault::Tossed));
    assert_eq!(received(&mut decompressor, &frames[3], 44), Err(Fault::Tossed));
    // The sender goes back.
    let again = sent(&mut compressor, &nth(1));
    assert_eq!(again.0, Kind::Uncompressed);
    assert_eq!(received(&mut decompressor, &again, 44), Ok(nth(1).headers()));
    let next = sent(&mut compressor, &Segment { identification: 3, ..nth(2) });
    assert_eq!(received(&mut decompressor, &next, 44), Ok(nth(2).headers()));
    assert_eq!(decompressor.counters().tossed, 2);
}

/// A header that cannot be restored counts as damage, too.
#[test]
fn after_a_fault_headers_are_tossed_as_well() {
    let (mut compressor, mut decompressor) = ends();
    let frames: Vec<_> = (0..3).map(|n| sent(&mut compressor, &nth(n))).collect();
    received(&mut decompressor, &frames[0], 44).unwrap();
    let short = (Kind::Compressed, frames[1].1[..2].to_vec());
    assert_eq!(received(&mut decompressor, &short, 0), Err(Fault::Truncated));
    assert_eq!(received(&mut decompressor, &frames[2], 44), Err(Fault::Tossed));
    let unknown = (Kind::Compressed, Vec::from([0x4F, 9, 0, 0]));
    assert_eq!(received(&mut decompressor, &unknown, 44), Err(Fault::Slot(9)));
    assert_eq!(received(&mut decompressor, &frames[2], 44), Err(Fault::Tossed));
    let long = (Kind::Compressed, Vec::from([0x4F, 0, 0, 0]));
    assert_eq!(received(&mut decompressor, &long, u16::MAX - 39), Err(Fault::TooLong(65_536)));
    let counters = decompressor.counters();
    assert_eq!((counters.truncated, counters.tossed, counters.unknown_slot, counters.too_long), (1, 2, 1, 1));
}

/// A frame that vanishes unheard leaves the receiver behind by its data: the numbers are wrong, the checksum is the
/// sender's, and TCP finds that they do not fit.
#[test]
fn after_a_frame_that_nobody_missed_numbers_are_wrong_until_the_sender_goes_back() {
    let (mut compressor, mut decompressor) = ends();
    let frames: Vec<_> = (0..4).map(|n| sent(&mut compressor, &nth(n))).collect();
    received(&mut decompressor, &frames[0], 44).unwrap();
    for n in [2, 3] {
        let wrong = received(&mut decompressor, &frames[usize::from(n)], 44).unwrap();
        let mut expected = Segment { checksum: nth(n).checksum, ..nth(n - 1) };
        expected.flags = nth(n).flags;
        assert_eq!(wrong, expected.headers());
    }
    let again = sent(&mut compressor, &nth(1));
    assert_eq!(received(&mut decompressor, &again, 44), Ok(nth(1).headers()));
}

#[test]
fn what_could_not_be_restored_goes_as_it_is() {
    let (mut compressor, mut out) = (Compressor::new(VjConfig::default()), Vec::new());
    let good = Segment::first();
    let mut as_is = |change: &dyn Fn(&mut Vec<u8>), len: usize| {
        let mut headers = good.headers();
        change(&mut headers);
        compressor.compress(&headers, len, &mut out).kind == Kind::Ip
    };
    let len = good.len();
    assert!(!as_is(&|_| {}, len));
    assert!(as_is(&|_| {}, len + 1), "longer than its header says");
    assert!(as_is(&|headers| headers[11] ^= 1, len), "wrong checksum");
    assert!(as_is(&|headers| headers[0] = 0x65, len), "IPv6");
    assert!(as_is(&|headers| headers[0] = 0x44, len), "IP header too short");
    assert!(as_is(&|headers| headers[32] = 0x40, len), "TCP header too short");
    assert!(as_is(&|headers| headers[32] = 0xF0, len), "TCP header cut off");
    assert!(as_is(&|headers| headers.truncate(39), len), "headers cut off");
    assert!(as_is(&Vec::clear, 0), "nothing");
    for protocol in [1, 17] {
        assert!(as_is(&|headers| headers[9] = protocol, len));
    }
}

/// One step of a drawn stream.
#[derive(Clone, Debug)]
struct Step {
    connection: u16,
    identification: u16,
    sequence: i32,
    by_data: bool,
    acknowledgment: i32,
    echoes: bool,
    window: i16,
    flags: u8,
    urgent: u16,
    options: u8,
    data: u16,
    checksum: u16,
    /// 0: arrives, 1: is damaged, 2: vanishes.
    fate: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let small = prop_oneof![4 => Just(0i32), 2 => 1..256i32, 2 => 256..70_000i32, 1 => -3000..0i32];
    let numbers = (
        0..20u16,
        prop_oneof![6 => Just(1u16), 1 => Just(0), 1 => any::<u16>()],
        small.clone(),
        prop::bool::weighted(0.7),
        small,
        prop::bool::weighted(0.2),
    );
    let rest = (
        prop_oneof![3 => Just(0i16), 1 => any::<i16>()],
        prop_oneof![8 => Just(0x10u8), 4 => Just(0x18), 2 => Just(0x30), 1 => any::<u8>()],
        prop_oneof![6 => Just(0u16), 1 => any::<u16>()],
        prop_oneof![12 => Just(0u8), 1 => 0..4u8],
        prop_oneof![3 => Just(0u16), 3 => Just(536), 1 => 0..1400u16],
        any::<u16>(),
        prop_oneof![8 => Just(0u8), 1 => Just(1), 1 => Just(2)],
    );
    (numbers, rest).prop_map(|(numbers, rest)| {
        let (connection, identification, sequence, by_data, acknowledgment, echoes) = numbers;
        let (window, flags, urgent, options, data, checksum, fate) = rest;
        Step {
            // Most are of three connections, and some of more than there are slots.
            connection: if connection < 17 { connection % 3 } else { connection },
            identification,
            sequence,
            by_data,
            acknowledgment,
            echoes,
            window,
            flags,
            urgent,
            options,
            data,
            checksum,
            fate,
        }
    })
}

impl Step {
    /// The next segment of a connection.
    fn after(&self, last: &Segment) -> Segment {
        let data = u32::from(last.data);
        let sequence = if self.by_data { data } else { self.sequence as u32 };
        let acknowledgment = if self.echoes { sequence } else { self.acknowledgment as u32 };
        let mut options = last.options.clone();
        match self.options {
            1 => options = Vec::from([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
            2 => options.iter_mut().for_each(|octet| *octet ^= 0x40),
            3 => options.clear(),
            _ => {}
        }
        Segment {
            identification: last.identification.wrapping_add(self.identification),
            sequence: last.sequence.wrapping_add(sequence),
            acknowledgment: last.acknowledgment.wrapping_add(acknowledgment),
            window: last.window.wrapping_add_signed(self.window),
            flags: self.flags,
            urgent: self.urgent,
            checksum: self.checksum,
            data: self.data,
            options,
            ..*last
        }
    }
}

proptest! {
    /// Over a line that loses nothing every header is restored to the octet; over any, a whole one is, and what follows
    /// it in its slot as long as nothing is lost. SYN, FIN and RST are never compressed.
    #[test]
    fn drawn_streams_are_restored(
        steps in prop::collection::vec(step(), 1..200),
        lossy: bool,
        comp_slot_id: bool,
        max_slot_id in prop_oneof![Just(15u8), 0..4u8],
    ) {
        let config = VjConfig { max_slot_id, comp_slot_id };
        let (mut compressor, mut decompressor) = (Compressor::new(config), Decompressor::new(config));
        let mut last: Vec<Segment> =
            (0..20).map(|n| Segment { port: 1025 + n, ..Segment::first() }).collect();
        // Connections whose receiver has lost nothing since a whole header came.
        let mut in_step = [false; 20];
        let mut clean = true;
        for step in &steps {
            let connection = usize::from(step.connection);
            let segment = step.after(&last[connection]);
            let on_the_line = sent(&mut compressor, &segment);
            prop_assert!(on_the_line.0 != Kind::Compressed || segment.flags & 0x17 == Segment::ACK);
            prop_assert!(on_the_line.0 != Kind::Compressed || on_the_line.1.len() <= 19);
            if on_the_line.0 != Kind::Ip {
                last[connection] = segment.clone();
            }
            if lossy && step.fate > 0 {
                in_step[connection] &= on_the_line.0 == Kind::Ip;
                // Its header may have been the slot's first; and damage to any frame tosses what names no slot.
                clean = false;
                if step.fate == 1 {
                    decompressor.hear_of_damage();
                }
                continue;
            }
            let restored = received(&mut decompressor, &on_the_line, segment.data);
            if on_the_line.0 != Kind::Compressed {
                in_step[connection] |= on_the_line.0 == Kind::Uncompressed;
                prop_assert_eq!(restored, Ok(segment.headers()));
            } else if clean || (in_step[connection] && on_the_line.1[0] & 0x40 != 0) {
                prop_assert_eq!(restored, Ok(segment.headers()));
            } else if matches!(&restored, Ok(restored) if *restored != segment.headers()) {
                // It may have been taken for one of any other connection.
                in_step = [false; 20];
            } else {
                in_step[connection] &= restored == Ok(segment.headers());
            }
        }
    }

    /// Decompression never panics, and makes headers of TCP over IPv4 of the given length, whatever octets come.
    #[test]
    fn hostile_octets_harm_nobody(
        frames in prop::collection::vec(
            (0..4u8, prop::collection::vec(any::<u8>(), 0..140), 0..70_000usize, any::<u8>()),
            1..100,
        ),
    ) {
        let (mut compressor, mut decompressor) = ends();
        let mut out = Vec::new();
        for (what, mut octets, more, slot) in frames {
            let len = octets.len() + more;
            match what {
                0 => decompressor.hear_of_damage(),
                1 => {
                    // A good header in any slot, so that what is compressed has something to go on from.
                    let mut headers = Segment { port: slot.into(), ..Segment::first() }.headers();
                    headers[9] = slot;
                    let result = decompressor.take_uncompressed(&headers, &mut out);
                    prop_assert_eq!(result.is_ok(), slot <= 15);
                    let result = decompressor.take_uncompressed(&octets, &mut out);
                    prop_assert_eq!(result.is_ok(), !out.is_empty());
                }
                2 => {
                    let compressed = compressor.compress(&octets, len, &mut out);
                    prop_assert!(compressed.replaces <= octets.len() && out.len() <= MAX_HEADERS);
                }
                _ => {
                    if let Some(first) = octets.first_mut() {
                        *first &= 0x7F;
                    }
                    if let Ok(taken) = decompressor.take_compressed(&octets, len, &mut out) {
                        prop_assert!(taken <= octets.len() && (40..=MAX_HEADERS).contains(&out.len()));
                        let told = usize::from(u16::from_be_bytes([out[2], out[3]]));
                        prop_assert_eq!(told, out.len() + len - taken);
                    } else {
                        prop_assert!(out.is_empty());
                    }
                }
            }
        }
    }
}

/// Segments whose changes tshark reads correctly. As of version 4.0, against RFC 1144 §3.2.2, it takes the data behind
/// the two special masks for 20 octets more than there are, an urgent pointer for two octets always, and an octet of
/// the window for one with a sign.
fn plain() -> Vec<Segment> {
    let (ack, pushed) = (Segment::ACK, Segment::ACK | Segment::PSH);
    let changes = [
        (0, 1, 0, 0, 0, ack),
        (0, 1, 255, 0, 0, pushed),
        (0, 2, 256, 1, 0, ack),
        (0, 0, 65_535, 65_535, 0, ack),
        (0, 300, 0, 256, 100, pushed),
        (1, 1, 0, 0, 0, ack),
        (0, 1, 7, 0, 256, ack),
        (1, 65_535, 0, 300, 65_535, ack),
        (1, 1, 65_536, 0, 0, ack),
        (1, 1, 5, 0, 0, ack),
        (1, 1, u32::MAX, 0, 0, ack),
    ];
    let mut last = [1025, 1026].map(|port| Segment { port, ..Segment::first() });
    let next = |(which, identification, sequence, acknowledgment, window, flags): (
        usize,
        u16,
        u32,
        u32,
        u16,
        u8,
    )| {
        let segment = &mut last[which];
        segment.identification = segment.identification.wrapping_add(identification);
        segment.sequence = segment.sequence.wrapping_add(sequence);
        segment.acknowledgment = segment.acknowledgment.wrapping_add(acknowledgment);
        segment.window = segment.window.wrapping_add(window);
        segment.checksum = segment.checksum.rotate_left(3) ^ 0x55;
        segment.flags = flags;
        segment.clone()
    };
    changes.into_iter().map(next).collect()
}

/// tshark restores the same headers: a second implementation of the receiving end.
#[test]
fn tshark_restores_what_was_compressed() {
    let mut compressor = Compressor::new(VjConfig::default());
    let (mut frames, mut expected, mut kinds) = (Vec::new(), String::new(), Vec::new());
    for segment in plain() {
        let (kind, header) = sent(&mut compressor, &segment);
        kinds.push(kind);
        // The direction, without which tshark restores nothing.
        let mut frame = Vec::from([0, 0xFF, 3]);
        frame.extend(kind.protocol().to_be_bytes());
        frame.extend(header);
        frame.resize(frame.len() + usize::from(segment.data), 0x41);
        let fcs = Fcs::Fcs16.of(&[], &frame[1..]);
        frame.extend(&fcs[..2]);
        frames.push(frame);
        let Segment { port, identification, sequence, acknowledgment, .. } = segment;
        let Segment { flags, window, checksum, urgent, .. } = segment;
        let len = segment.len();
        let line = format!(
            "{port},{len},{identification:#06x},{sequence},{acknowledgment},{flags:#06x},{window},{checksum:#06x},{urgent}\n"
        );
        expected.push_str(&line);
    }
    let whole = [0, 5, 8, 10];
    assert!(kinds.iter().enumerate().all(|(n, kind)| (*kind == Kind::Uncompressed) == whole.contains(&n)));
    let fields = [
        "tcp.srcport",
        "ip.len",
        "ip.id",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.flags",
        "tcp.window_size_value",
        "tcp.checksum",
        "tcp.urgent_pointer",
    ];
    let mut arguments = Vec::from(["-T", "fields", "-E", "separator=,"]);
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    assert_eq!(run(DIRECTED, Fcs::Fcs16, &frames, &arguments), expected);
}
