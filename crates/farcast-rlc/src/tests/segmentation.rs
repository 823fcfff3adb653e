//! Segmentation: the number of PDUs that SDUs take, and the SDUs that come out again.

use std::vec;
use std::vec::Vec;

use farcast_core::random::RandomStream;
use farcast_core::{Payload, Piece};

use super::{acknowledging, at, bare, entity, events, pdus};
use crate::config::{BufferLimit, Discard, MaxTransmissions};
use crate::format::Format;
use crate::pdu::{DataPdu, EndedBefore, LastEnd, Pdu, Segment};
use crate::{Config, ConfigError, Entity};

#[test]
fn an_sdu_alone_takes_the_expected_number_of_pdus() {
    // In 42 octets: 40 of data. 1480 = 37 * 40 needs another PDU that says where it ended, 1500 = 37 * 40 + 20, and up
    // to 39 octets leave room for the indicator.
    for (octets, expected) in [(1480, 38), (1500, 38), (1479, 37), (39, 1), (40, 2), (1, 1), (41, 2)] {
        let mut sender = entity(bare());
        let mut receiver = entity(bare());
        assert!(sender.submit(at(0), Piece::whole(9, octets)));
        let sent = pdus(&mut sender, at(0), 99);
        assert_eq!(sent.len(), expected, "{octets} octets");
        for pdu in sent {
            receiver.handle(at(0), pdu).expect("a new PDU");
        }
        assert_eq!(events(&mut receiver).0, [9], "{octets} octets");
    }
}

fn config(format: Format) -> Config {
    Config { format, peer_format: format, discard: Discard::None, tx_window: 2000, rx_window: 2000, ..bare() }
}

/// The segments of the PDUs of SDUs with these lengths: octets, and whether the end is said. A second way to the same:
/// octet by octet, from the prose of TS 25.322 section 9.2.2.8, for indicators of one octet.
fn naive(room: usize, lens: &[usize]) -> Vec<(bool, Vec<(usize, bool)>)> {
    let mut pdus = Vec::new();
    let (mut current, mut left, mut before): (Vec<(usize, bool)>, usize, bool) = (vec![], room, false);
    for &len in lens {
        let mut fresh = true;
        for octet in 0..len {
            if left == 0 {
                pdus.push((before, core::mem::take(&mut current)));
                (left, before, fresh) = (room, false, true);
            }
            if core::mem::replace(&mut fresh, false) {
                current.push((0, false));
            }
            if let Some(segment) = current.last_mut() {
                segment.0 += 1;
            }
            left -= 1;
            if octet + 1 == len && left > 0 {
                left -= 1;
                if let Some(segment) = current.last_mut() {
                    segment.1 = true;
                }
            } else if octet + 1 == len {
                // No room is left for the indicator: the next PDU begins with it.
                pdus.push((before, core::mem::take(&mut current)));
                (left, before) = (room - 1, true);
            }
        }
    }
    if before || !current.is_empty() {
        pdus.push((before, current));
    }
    pdus
}

#[test]
fn segments_are_those_of_a_naive_count_octet_by_octet() {
    let mut random = RandomStream::derive(11, &[]);
    for round in 0..200 {
        let room = 4 + random.below(60) as usize;
        let lens: Vec<usize> = (0..10).map(|_| 1 + random.below(3 * room as u64) as usize).collect();
        let mut sender = entity(config(Format::new(room as u16 + 2)));
        for (packet, &len) in (0..).zip(&lens) {
            assert!(sender.submit(at(0), Piece::whole(packet, len as u32)));
        }
        let cut: Vec<_> = pdus(&mut sender, at(0), 9999)
            .into_iter()
            .map(|pdu| {
                let Pdu::Data(DataPdu { ended_before, segments, .. }) = pdu else { panic!("{pdu:?}") };
                let segments = segments.iter().map(|it| (it.data.len(), it.ends)).collect::<Vec<_>>();
                (ended_before == Some(EndedBefore::Exactly), segments)
            })
            .collect();
        assert_eq!(cut, naive(room, &lens), "round {round}: {room} octets, {lens:?}");
    }
}

#[test]
fn long_indicators_and_the_header_extension() {
    let pdus_of = |format: Format, lens: &[u32]| {
        let mut sender = entity(config(format));
        let mut receiver = entity(config(format));
        for (packet, &len) in (0..).zip(lens) {
            assert!(sender.submit(at(0), Piece::whole(packet, len)));
        }
        let sent = pdus(&mut sender, at(0), 99);
        for pdu in &sent {
            receiver.handle(at(0), pdu.clone()).expect("a new PDU");
        }
        assert_eq!(events(&mut receiver).0, (0..lens.len() as u64).collect::<Vec<_>>());
        let data = |pdu: Pdu<Piece>| if let Pdu::Data(pdu) = pdu { pdu } else { panic!("{pdu:?}") };
        sent.into_iter().map(data).collect::<Vec<_>>()
    };
    // 200 octets: 198 of data and indicators of two octets.
    let long = Format::new(200);
    let short = pdus_of(long, &[197, 5]);
    assert_eq!(short[1].ended_before, Some(EndedBefore::OneOctetShort));
    assert_eq!(pdus_of(long, &[198, 5])[1].ended_before, Some(EndedBefore::Exactly));
    // Three octets are left: an indicator, and one in which nothing begins.
    assert_eq!(pdus_of(long, &[195, 5])[0].segments.len(), 1);
    assert_eq!(pdus_of(long, &[194, 5])[0].segments.len(), 2);
    // The extension saves the second PDU, but only where there is no indicator.
    let extended = Format { header_extension: true, ..long };
    assert_eq!(pdus_of(extended, &[198]).len(), 1);
    assert_eq!(pdus_of(long, &[198]).len(), 2);
    assert_eq!(pdus_of(extended, &[10, 186]).len(), 2);
}

/// Both kinds of delivery, with PDUs that come in a random order, each perhaps twice.
#[test]
fn whatever_the_order_all_sdus_come_out_once() {
    let mut random = RandomStream::derive(12, &[]);
    for round in 0..300 {
        let in_sequence = round % 2 == 0;
        let config = Config { in_sequence, ..config(Format::new(6 + random.below(40) as u16)) };
        let (mut sender, mut receiver) = (entity(config.clone()), entity(config));
        for packet in 0..20 {
            assert!(sender.submit(at(0), Piece::whole(packet, 1 + random.below(120) as u32)));
        }
        let mut sent = pdus(&mut sender, at(0), 9999);
        let mut arrived = Vec::new();
        while !sent.is_empty() {
            let next = random.below(sent.len().min(30) as u64) as usize;
            let pdu = if random.chance(0.2) { sent[next].clone() } else { sent.remove(next) };
            // What comes twice is rejected.
            let _ = receiver.handle(at(1), pdu);
            arrived.extend(events(&mut receiver).0);
        }
        let ordered = arrived.is_sorted();
        assert!(ordered || !in_sequence, "round {round}: {arrived:?}");
        arrived.sort_unstable();
        assert_eq!(arrived, (0..20).collect::<Vec<_>>(), "round {round}");
    }
}

#[test]
fn out_of_sequence_an_sdu_is_there_with_its_last_pdu() {
    // Three SDUs of 40 + 39 octets: PDUs 0 and 1, 2 and 3, 4 and 5.
    let unordered = Config { in_sequence: false, ..bare() };
    let (mut sender, mut receiver) = (entity(bare()), entity(unordered));
    (0..3).for_each(|packet| assert!(sender.submit(at(0), super::filling(packet, 2))));
    let sent = pdus(&mut sender, at(0), 9);
    let delivered = [(4, vec![]), (1, vec![]), (3, vec![]), (2, vec![1]), (5, vec![2]), (0, vec![0])];
    for (index, expected) in delivered {
        receiver.handle(at(0), sent[index].clone()).expect("a new PDU");
        assert_eq!(events(&mut receiver).0, expected, "PDU {index}");
    }
}

#[test]
fn numbers_go_round() {
    // 3 * 4096 PDUs and some, a quarter of them lost the first time.
    let (mut sender, mut receiver) = (entity(bare()), entity(bare()));
    let mut random = RandomStream::derive(13, &[]);
    let mut delivered = 0..;
    for tti in 0..1300 {
        assert!(sender.submit(at(tti), super::filling(tti, 10)));
        let mut missing = Vec::new();
        let mut last = 0;
        for pdu in pdus(&mut sender, at(tti), 99) {
            let Pdu::Data(data) = &pdu else { panic!("{pdu:?}") };
            last = data.sn.plus(1).get();
            if random.chance(0.25) {
                missing.push(data.sn.get());
            } else {
                receiver.handle(at(tti), pdu).expect("in the window");
            }
        }
        sender.handle(at(tti), acknowledging(last, &missing)).expect("a report");
        for pdu in pdus(&mut sender, at(tti), 99) {
            receiver.handle(at(tti), pdu).expect("in the window");
        }
        sender.handle(at(tti), acknowledging(last, &[])).expect("a report");
        for packet in events(&mut receiver).0 {
            assert_eq!(Some(packet), delivered.next());
        }
    }
    assert_eq!(delivered.next(), Some(1300));
    assert_eq!(sender.counters().data_pdus, 13_000);
}

#[test]
fn an_sdu_must_have_a_length_that_can_be_sent() {
    let config = Config { max_sdu_octets: 100.try_into().expect("above 0"), ..bare() };
    let mut end = entity(config);
    assert!(!end.submit(at(0), Piece::whole(0, 0)));
    assert!(!end.submit(at(0), Piece::whole(0, 101)));
    assert!(end.submit(at(0), Piece::whole(0, 100)));
}

/// Data PDUs of a peer that does as it likes.
fn hostile(end: &mut Entity<Vec<u8>>, sn: u16, before: Option<EndedBefore>, segments: &[(usize, bool)]) {
    let segments = segments.iter().map(|&(len, ends)| Segment { data: vec![1; len], ends }).collect();
    let (sn, last_end) = (super::number(sn), LastEnd::Indicator);
    let pdu = DataPdu { sn, poll: false, ended_before: before, segments, last_end, piggybacked: None };
    end.handle(at(0), Pdu::Data(pdu)).expect("a new PDU");
}

#[test]
fn an_sdu_without_an_end_takes_no_memory_without_end() {
    for in_sequence in [true, false] {
        let max_sdu_octets = 1000.try_into().expect("above 0");
        let config = Config { max_sdu_octets, in_sequence, rx_window: 2047, ..bare() };
        let mut end = Entity::new(config).expect("legal");
        (0..100).for_each(|sn| hostile(&mut end, sn, None, &[(40, false)]));
        hostile(&mut end, 100, Some(EndedBefore::Exactly), &[(3, true)]);
        assert_eq!(end.counters().sdus_too_long, 1);
        // Behind a hole.
        hostile(&mut end, 102, Some(EndedBefore::Exactly), &[(40, false)]);
        (103..200).for_each(|sn| hostile(&mut end, sn, None, &[(40, false)]));
        hostile(&mut end, 200, Some(EndedBefore::OneOctetShort), &[(4, true), (0, true)]);
        hostile(&mut end, 101, None, &[]);
        assert_eq!(end.counters().sdus_too_long, 2);
        let delivered = core::iter::from_fn(|| end.poll_event()).count();
        assert_eq!((delivered, end.counters().sdus_delivered), (2, 2));
    }
}

/// With 198 octets of data in a PDU, 197 leave one of padding, which the next PDU speaks of; decoded, it is there
/// first.
#[test]
fn padding_does_not_make_the_longest_sdu_too_long() {
    for (in_sequence, len, delivered) in [(true, 197, 1), (true, 395, 1), (false, 197, 1), (true, 396, 0)] {
        let most = if delivered == 1 { len } else { len - 1 };
        let max_sdu_octets = u32::try_from(most).expect("short").try_into().expect("above 0");
        let format = Format::new(200);
        let config = Config { format, peer_format: format, in_sequence, ..bare() };
        let mut sender = Entity::new(config.clone()).expect("legal");
        let mut receiver = Entity::new(Config { max_sdu_octets, ..config }).expect("legal");
        let sdu: Vec<u8> = (0..len).map(|octet: usize| octet as u8).collect();
        assert!(sender.submit(at(0), sdu.clone()));
        let mut octets = [0; 200];
        while let Some(pdu) = sender.poll_pdu(at(0)) {
            crate::wire::encode(&pdu, format, &mut octets).expect("encodes");
            let pdu = crate::wire::decode(&octets, format).expect("decodes").map(<[u8]>::to_vec);
            receiver.handle(at(0), pdu).expect("a new PDU");
        }
        let event = receiver.poll_event();
        assert_eq!(event, (delivered == 1).then_some(crate::Event::Delivered(sdu)), "{len} octets");
        assert_eq!(receiver.counters().sdus_too_long, 1 - delivered);
    }
}

#[test]
fn pieces_that_do_not_belong_together_are_counted_and_dropped() {
    let (mut one, mut two, mut receiver) = (entity(bare()), entity(bare()), entity(bare()));
    assert!(one.submit(at(0), super::filling(1, 2)) && two.submit(at(0), super::filling(2, 2)));
    let (first, second) = (pdus(&mut one, at(0), 9), pdus(&mut two, at(0), 9));
    receiver.handle(at(0), first[0].clone()).expect("a new PDU");
    receiver.handle(at(0), second[1].clone()).expect("a new PDU");
    assert_eq!(events(&mut receiver), (vec![], vec![]));
    assert_eq!(receiver.counters().sdus_broken, 1);
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    use std::string::ToString;
    let base = Config::default;
    let zero = farcast_core::Span::ZERO;
    let mut bad = vec![
        (Config { tx_window: 0, ..base() }, "tx_window is 0: it must be 1 to 4095"),
        (Config { rx_window: 4096, ..base() }, "rx_window is 4096: it must be 1 to 4095"),
        (Config { format: Format::new(5), ..base() }, "format: pdu_octets is 5: it must be 6 to 1505"),
        (
            Config { peer_format: Format::new(0), ..base() },
            "peer_format: pdu_octets is 0: it must be 6 to 1505",
        ),
        (
            Config { discard: Discard::Timer { after: zero }, ..base() },
            "discard.after is 0: it must be above 0",
        ),
        (
            Config { transmission_buffer: Some(BufferLimit::Sdus(0)), ..base() },
            "transmission_buffer is 0: it must be above 0",
        ),
    ];
    let mut with = |change: fn(&mut Config), says| {
        let mut config = base();
        change(&mut config);
        bad.push((config, says));
    };
    with(|it| it.polling.window_percent = Some(0), "polling.window_percent is 0: it must be 1 to 99");
    with(|it| it.polling.window_percent = Some(100), "polling.window_percent is 100: it must be 1 to 99");
    with(|it| it.polling.timer = Some(farcast_core::Span::ZERO), "polling.timer is 0: it must be above 0");
    with(|it| it.status.epc = Some(farcast_core::Span::ZERO), "status.epc is 0: it must be above 0");
    with(|it| it.mrw.max_mrw = 0, "mrw.max_mrw is 0: it must be above 0");
    with(|it| it.reset.max_rst = 0, "reset.max_rst is 0: it must be above 0");
    for (config, says) in bad {
        let error = Entity::<Piece>::new(config).expect_err(says);
        assert_eq!(error.to_string(), says);
    }
    assert_eq!(MaxTransmissions::new(0), Err(ConfigError::Zero("max_transmissions")));
    let max_dat = MaxTransmissions::from_max_dat(0).expect_err("nothing would be sent");
    assert_eq!(
        max_dat.to_string(),
        "max_dat is 0: it must be at least 2, for a PDU is sent max_dat - 1 times"
    );
    assert_eq!(MaxTransmissions::from_max_dat(1), Err(ConfigError::MaxDat(1)));
}
