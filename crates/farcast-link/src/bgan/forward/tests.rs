use super::*;
use crate::bgan::tests::probe::{Probe, drain, ms, packet, run};
use alloc::vec;
use alloc::vec::Vec;
use farcast_core::Probability;
use proptest::prelude::*;

fn config(packing: Packing) -> ForwardConfig {
    ForwardConfig { packing, propagation: Span::ZERO, ..ForwardConfig::default() }
}

fn bearer(config: &ForwardConfig) -> Forward<Probe> {
    Forward::new(config.clone()).expect("a valid configuration")
}

#[test]
fn the_study_cuts_576_octets_into_three_pdus_and_two_blocks() {
    let aligned = config(Packing::PacketAligned);
    assert_eq!(aligned.pdu_lengths(576).collect::<Vec<_>>(), [260, 115, 224]);
    assert_eq!((aligned.pdus(576), aligned.fec_blocks(576), aligned.octets_on_air(576)), (3, 2, 750));
    assert_eq!((aligned.pdus(124), aligned.fec_blocks(124), aligned.octets_on_air(124)), (1, 1, 375));
    assert_eq!(aligned.block_time(), Span::from_millis(10));
    let shared = config(Packing::Shared);
    assert_eq!((shared.pdus(576), shared.octets_on_air(576)), (3, 599));
}

#[test]
fn the_table_begins_again_and_pdus_do_not_span_blocks() {
    let aligned = config(Packing::PacketAligned);
    assert_eq!(aligned.pdu_lengths(600).collect::<Vec<_>>(), [260, 115, 224, 33]);
    // 260 + 115 | 224 (260 more do not fit in 151) | 260 + 115 | 224
    assert_eq!((aligned.pdus(1152), aligned.fec_blocks(1152)), (6, 4));
    assert_eq!(aligned.fec_blocks(576 + 142), 2, "142 + 9 octets fill the second block");
    assert_eq!(aligned.fec_blocks(576 + 143), 3);
    assert_eq!(aligned.pdu_lengths(0).collect::<Vec<_>>(), [10], "an empty packet takes a PDU");
    assert_eq!(aligned.pdus(u64::MAX), aligned.pdus(65_535), "no packet of IP is longer");
}

#[test]
fn a_file_of_1902_packets_takes_38_04_s_if_each_starts_a_block() {
    let mut bearer = bearer(&config(Packing::PacketAligned));
    bearer.handle(Time::ZERO, Port::Hub, run(0, 1902, &[576], Span::ZERO));
    assert_eq!(drain(&mut bearer).last(), Some(&(ms(38_040), 1901)));
    let counters = bearer.counters();
    assert_eq!((counters.packets, counters.octets, counters.fec_blocks), (1902, 1902 * 576, 3804));
    assert_eq!(counters.airtime, Span::from_millis(38_040));
}

#[test]
fn shared_blocks_take_15_973_ms_a_packet() {
    // 375 packets of 599 octets on the air fill 599 blocks of 375 octets exactly.
    let mut bearer = bearer(&config(Packing::Shared));
    bearer.handle(Time::ZERO, Port::Hub, run(0, 375, &[576], Span::ZERO));
    assert_eq!(drain(&mut bearer).last(), Some(&(ms(5_990), 374)));
    assert_eq!(bearer.counters().fec_blocks, 599);
}

#[test]
fn a_packet_leaves_at_the_end_of_its_last_block_and_the_propagation() {
    let mut bearer = bearer(&ForwardConfig::default());
    bearer.handle(ms(3), Port::Hub, packet(0, 576)); // on the air from 3 to 23 ms
    bearer.handle(ms(12), Port::Hub, packet(1, 124)); // from 23 to 33 ms
    bearer.handle(ms(40), Port::Hub, packet(2, 124)); // from 40 to 50 ms
    assert_eq!(drain(&mut bearer), [(ms(473), 0), (ms(483), 1), (ms(500), 2)]);
    assert_eq!(bearer.poll_timeout(), None);
}

#[test]
fn an_aligned_bearer_starts_at_multiples_of_a_block() {
    let aligned = ForwardConfig { align_to_blocks: true, ..config(Packing::PacketAligned) };
    let mut bearer = bearer(&aligned);
    bearer.handle(ms(3), Port::Hub, packet(0, 576)); // from 10 to 30 ms
    bearer.handle(ms(30), Port::Hub, packet(1, 576)); // from 30 to 50 ms
    assert_eq!(drain(&mut bearer), [(ms(30), 0), (ms(50), 1)]);
}

#[test]
fn a_shared_block_is_open_while_its_time_lasts() {
    let mut bearer = bearer(&config(Packing::Shared));
    bearer.handle(ms(0), Port::Hub, packet(0, 576)); // leaves 151 octets in the block from 10 to 20 ms
    bearer.handle(ms(15), Port::Hub, packet(1, 124)); // 133 of them; 18 are left
    bearer.handle(ms(20), Port::Hub, packet(2, 124)); // 18 there and 115 in the block from 20 to 30 ms
    bearer.handle(ms(31), Port::Hub, packet(3, 124)); // the bearer is idle: from 31 to 41 ms
    assert_eq!(drain(&mut bearer), [(ms(20), 0), (ms(20), 1), (ms(30), 2), (ms(41), 3)]);
    assert_eq!(bearer.counters().fec_blocks, 4);
}

#[test]
fn evenly_leaving_segments_stay_one_run() {
    let outputs = |config: &ForwardConfig, count, lengths: &[usize], spacing| {
        let mut bearer = bearer(config);
        bearer.handle(Time::ZERO, Port::Hub, run(0, count, lengths, Span::from_millis(spacing)));
        let outputs = core::iter::from_fn(|| bearer.poll_output());
        outputs.map(|output| (output.at, output.frame.segments(), output.frame.spacing)).collect::<Vec<_>>()
    };
    let aligned = config(Packing::PacketAligned);
    let (paced, kept) = (Span::from_millis(25), Span::from_millis(20));
    assert_eq!(outputs(&aligned, 100, &[576], 25), [(ms(20), 100, paced)]);
    assert_eq!(outputs(&aligned, 100, &[576], 15), [(ms(20), 100, kept)], "a busy bearer spaces them");
    // The last is shorter, takes one block, and leaves out of step.
    assert_eq!(outputs(&aligned, 4, &[576, 576, 576, 80], 25), [(ms(20), 3, paced), (ms(85), 1, Span::ZERO)]);
}

#[test]
fn packets_from_elsewhere_go_nowhere() {
    let mut bearer = bearer(&config(Packing::PacketAligned));
    bearer.handle(Time::ZERO, Port::Terminal(0), run(0, 3, &[576], Span::ZERO));
    bearer.handle(Time::ZERO, Port::Terminals, packet(3, 576));
    assert_eq!(drain(&mut bearer), []);
    assert_eq!((bearer.counters().misdirected, bearer.counters().packets), (4, 0));
}

#[test]
fn a_full_queue_drops_what_comes_last() {
    let limited = ForwardConfig { queue: QueueLimit::Octets(1200), ..config(Packing::PacketAligned) };
    let mut bearer = bearer(&limited);
    // The first goes on the air, two wait, the fourth and fifth find 1152 octets waiting.
    bearer.handle(ms(0), Port::Hub, run(0, 5, &[576], Span::ZERO));
    // At 20 ms the second is on the air.
    bearer.handle(ms(20), Port::Hub, packet(5, 576));
    assert_eq!(drain(&mut bearer), [(ms(20), 0), (ms(40), 1), (ms(60), 2), (ms(80), 5)]);
    assert_eq!(bearer.counters().dropped, 2);
}

#[test]
fn nothing_overflows() {
    for packing in [Packing::PacketAligned, Packing::Shared] {
        let extreme = ForwardConfig {
            propagation: Span::MAX,
            align_to_blocks: true,
            queue: QueueLimit::Octets(u64::MAX),
            ..config(packing)
        };
        let mut bearer = bearer(&extreme);
        for at in [Time::ZERO, Time::NEVER - Span::from_nanos(1), Time::NEVER] {
            bearer.handle(at, Port::Hub, run(0, 3, &[0, usize::MAX / 2, 70_000], Span::MAX));
        }
        let left = drain(&mut bearer);
        assert_eq!(left.len(), 9);
        assert!(left.iter().all(|&(at, _)| at == Time::NEVER));
    }
}

#[test]
fn senseless_settings_are_refused() {
    type Change = fn(&mut ForwardConfig);
    let cases: [(Change, BganError); 8] = [
        (|c| c.frame = Span::ZERO, BganError::Zero("the forward frame")),
        (|c| c.fec_blocks = 0, BganError::Zero("the number of FEC blocks in a forward frame")),
        (|c| c.fec_blocks = 7, BganError::FecBlocks { frame: Span::from_millis(80), fec_blocks: 7 }),
        (|c| c.pdu_payloads = vec![], BganError::PduTable { payloads: 0, overheads: 3 }),
        (|c| c.pdu_overheads = vec![9], BganError::PduTable { payloads: 3, overheads: 1 }),
        (|c| c.pdu_payloads[1] = 0, BganError::Zero("the payload of a PDU")),
        (|c| c.fec_block_octets = 259, BganError::PduTooLong { payload: 251, overhead: 9, block: 259 }),
        (|c| (c.loss_unit, c.drop_rest_of_block) = (LossUnit::Packet, true), BganError::DropRest),
    ];
    for (change, error) in cases {
        let mut config = ForwardConfig::default();
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        assert_eq!(config.check(), Err(error));
    }
}

/// Models the bearer octet by octet. Returns the time at which each packet leaves, or `None` if it is dropped.
fn naive(config: &ForwardConfig, packets: &[(u64, u64)]) -> Vec<Option<u64>> {
    let (block_time, block_octets) = (config.block_time().as_nanos(), u64::from(config.fec_block_octets));
    let mut end = 0;
    let mut used = block_octets;
    let mut queue = Vec::new();
    let mut left = Vec::new();
    for &(entry, octets) in packets {
        let state = (end, used);
        let waiting: Vec<u64> =
            queue.iter().filter(|&&(begin, _)| begin > entry).map(|&(_, octets)| octets).collect();
        let busy = end > entry;
        let mut begin = None;
        if config.packing == Packing::PacketAligned || end < entry {
            used = block_octets;
        }
        for pdu in config.pdu_lengths(octets) {
            if config.packing == Packing::PacketAligned && used + pdu > block_octets {
                used = block_octets;
            }
            for _ in 0..pdu {
                if used == block_octets {
                    let mut start = end.max(entry);
                    while config.align_to_blocks && !start.is_multiple_of(block_time) {
                        start += 1;
                    }
                    (end, used) = (start + block_time, 0);
                }
                begin.get_or_insert(end - block_time);
                used += 1;
            }
        }
        let begin = begin.expect("no packet is empty");
        let full = match config.queue {
            QueueLimit::Unbounded => false,
            QueueLimit::Packets(most) => waiting.len() + 1 > most as usize,
            QueueLimit::Octets(most) => waiting.iter().sum::<u64>() + octets > most,
        };
        if busy && begin > entry && full {
            (end, used) = state;
            left.push(None);
        } else {
            queue.push((begin, octets));
            left.push(Some(end));
        }
    }
    left
}

/// Small tables, so that every way to fit occurs.
fn configs() -> impl Strategy<Value = ForwardConfig> {
    let pdus = proptest::collection::vec((1u32..20, 0u32..6), 1..4);
    let queue = prop_oneof![
        Just(QueueLimit::Unbounded),
        (0u64..200).prop_map(QueueLimit::Octets),
        (0u32..5).prop_map(QueueLimit::Packets)
    ];
    (pdus, 25u32..40, any::<bool>(), any::<bool>(), queue).prop_map(
        |(pdus, fec_block_octets, shared, align_to_blocks, queue)| ForwardConfig {
            frame: Span::from_nanos(40),
            fec_blocks: 4,
            fec_block_octets,
            pdu_payloads: pdus.iter().map(|pdu| pdu.0).collect(),
            pdu_overheads: pdus.iter().map(|pdu| pdu.1).collect(),
            packing: if shared { Packing::Shared } else { Packing::PacketAligned },
            align_to_blocks,
            queue,
            propagation: Span::ZERO,
            loss_unit: LossUnit::FecBlock,
            loss: Probability::ZERO,
            drop_rest_of_block: false,
        },
    )
}

/// A run that enters some time after the one before has.
#[derive(Clone, Debug)]
struct Load {
    gap: u64,
    count: u32,
    spacing: u64,
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let load = (0u64..60, 1u32..8, 0u64..40).prop_map(|(gap, count, spacing)| Load { gap, count, spacing });
    proptest::collection::vec(load, 1..12)
}

/// Hands the loads over, each cut into pieces of `cut` segments, and returns what left.
fn carry(bearer: &mut Forward<Probe>, loads: &[Load], lengths: &[usize], cut: u32) -> Vec<(Time, u32)> {
    let (mut entry, mut first) = (0, 0);
    for load in loads {
        entry += load.gap;
        for done in (0..load.count).step_by(cut as usize) {
            let piece = cut.min(load.count - done);
            let at = Time::from_nanos(entry + load.spacing * u64::from(done));
            let frame = run(first + done, piece, lengths, Span::from_nanos(load.spacing));
            bearer.handle(at, Port::Hub, frame);
        }
        entry += load.spacing * u64::from(load.count - 1);
        first += load.count;
    }
    drain(bearer)
}

proptest! {
    #[test]
    fn packets_leave_when_a_naive_bearer_lets_them(
        config in configs(), loads in loads(), lengths in proptest::collection::vec(1usize..90, 1..5),
    ) {
        let mut packets = Vec::new();
        let mut entry = 0;
        for load in &loads {
            entry += load.gap;
            for segment in 0..load.count {
                let octets = lengths[packets.len() % lengths.len()] as u64;
                packets.push((entry + load.spacing * u64::from(segment), octets));
            }
            entry += load.spacing * u64::from(load.count - 1);
        }
        let expected: Vec<(Time, u32)> = naive(&config, &packets)
            .into_iter()
            .zip(0..)
            .filter_map(|(at, id)| Some((Time::from_nanos(at?), id)))
            .collect();
        let mut bearer = bearer(&config);
        prop_assert_eq!(carry(&mut bearer, &loads, &lengths, u32::MAX), expected);
    }

    #[test]
    fn a_cut_changes_nothing(
        config in configs(), loads in loads(), cut in 1u32..8,
        lengths in proptest::collection::vec(1usize..90, 1..5),
    ) {
        let (mut whole, mut pieces) = (bearer(&config), bearer(&config));
        let left = carry(&mut whole, &loads, &lengths, u32::MAX);
        prop_assert_eq!(carry(&mut pieces, &loads, &lengths, cut), left);
        prop_assert_eq!(pieces.counters(), whole.counters());
        let total: u64 = loads.iter().map(|load| u64::from(load.count)).sum();
        prop_assert_eq!(whole.counters().packets + whole.counters().dropped, total);
    }
}
