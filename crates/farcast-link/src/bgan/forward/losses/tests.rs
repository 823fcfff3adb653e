use super::*;
use crate::bgan::forward::packing::Packer;
use crate::bgan::tests::probe::ms;
use farcast_core::{Probability, Span};
use proptest::prelude::*;

/// Receivers are independent, so one draw for many is as many trials.
const RECEIVERS: u32 = 200_000;
const P: f64 = 0.05;
const Q: f64 = 1.0 - P;

fn config(packing: Packing, loss_unit: LossUnit) -> ForwardConfig {
    let loss = Probability::new(P).expect("a probability");
    ForwardConfig { packing, loss_unit, loss, ..ForwardConfig::default() }
}

fn losses(config: &ForwardConfig, seed: u64) -> ForwardLosses {
    let stream = RandomStream::derive(seed, &[]);
    ForwardLosses::new(config.clone(), RECEIVERS, stream).expect("a valid configuration")
}

/// Returns the receivers that lose each of the packets (arrival, octets).
fn lost(losses: &mut ForwardLosses, packets: &[(Time, u64)]) -> Vec<Vec<u32>> {
    let draw = |&(at, octets): &(Time, u64)| {
        let mut lost = Vec::new();
        losses.draw(at, octets, Among::All, &mut lost);
        assert!(lost.is_sorted_by(|a, b| a < b), "ascending, each once");
        lost
    };
    packets.iter().map(draw).collect()
}

/// The share of receivers that are in both sets.
fn both(a: &[u32], b: &[u32]) -> f64 {
    let common = a.iter().filter(|receiver| b.binary_search(receiver).is_ok()).count();
    common as f64 / f64::from(RECEIVERS)
}

/// Five standard deviations of a share of all receivers around `p`.
fn assert_share(share: f64, p: f64, what: &str) {
    let sigma = libm::sqrt(p * (1.0 - p) / f64::from(RECEIVERS));
    assert!((share - p).abs() < 5.0 * sigma, "{what}: {share}, expected {p} +- {sigma}");
}

#[test]
fn each_unit_has_its_packet_loss() {
    let shared_loss = |n: i32| 1.0 - libm::pow(Q, f64::from(n));
    for (unit, k576, k124) in [(LossUnit::Pdu, 3, 1), (LossUnit::Packet, 1, 1), (LossUnit::FecBlock, 2, 1)] {
        let mut losses = losses(&config(Packing::PacketAligned, unit), 1);
        assert!(losses.is_memoryless());
        let sets = lost(&mut losses, &[(ms(20), 576), (ms(30), 124), (ms(50), 576)]);
        for (set, k) in sets.iter().zip([k576, k124, k576]) {
            assert_share(both(set, set), shared_loss(k), "a packet");
        }
        let independent = shared_loss(k576) * shared_loss(k124);
        assert_share(both(&sets[0], &sets[1]), independent, "neighbours");
        assert_share(both(&sets[0], &sets[2]), shared_loss(k576) * shared_loss(k576), "one after the next");
    }
}

#[test]
fn packets_that_share_a_lost_block_are_lost_together() {
    // 599 octets each, one behind the other: the first in blocks 0 and 1, the second in 1 to 3, the third in 3 and 4.
    let mut losses = losses(&config(Packing::Shared, LossUnit::FecBlock), 2);
    assert!(!losses.is_memoryless());
    let sets = lost(&mut losses, &[(ms(20), 576), (ms(40), 576), (ms(50), 576)]);
    let (q2, q3) = (Q * Q, Q * Q * Q);
    for (set, q) in sets.iter().zip([q2, q3, q2]) {
        assert_share(both(set, set), 1.0 - q, "a packet");
    }
    // Both live if four blocks do: P(A and B) = 1 - P(not A) - P(not B) + P(neither).
    assert_share(both(&sets[0], &sets[1]), 1.0 - q2 - q3 + Q * q3, "first and second");
    assert_share(both(&sets[1], &sets[2]), 1.0 - q2 - q3 + Q * q3, "second and third");
    assert_share(both(&sets[0], &sets[2]), (1.0 - q2) * (1.0 - q2), "first and third");
}

#[test]
fn one_octet_in_a_lost_block_is_enough() {
    // 374 octets leave one, and the second packet has 1 + 108: whoever loses the first loses the second.
    let mut losses = losses(&config(Packing::Shared, LossUnit::FecBlock), 9);
    let sets = lost(&mut losses, &[(ms(10), 358), (ms(20), 100)]);
    assert_share(both(&sets[0], &sets[1]), P, "both");
    assert_share(both(&sets[1], &sets[1]), 1.0 - Q * Q, "the second");
}

#[test]
fn a_packet_that_comes_too_late_starts_a_block_of_its_own() {
    let mut losses = losses(&config(Packing::Shared, LossUnit::FecBlock), 3);
    // A nanosecond after the block of the first ended, the second entered and took one block.
    let late = ms(20) + Span::from_nanos(1);
    let sets = lost(&mut losses, &[(ms(10), 100), (late, 100), (late, 100)]);
    assert_share(both(&sets[0], &sets[1]), P * P, "apart");
    assert_eq!(sets[1], sets[2], "the third shares the block of the second");
}

#[test]
fn a_lost_pdu_takes_the_rest_of_its_block() {
    // PDUs of 133 octets: two in block 0, the third from block 0 to 1, the fourth in block 1.
    let dropping = ForwardConfig { drop_rest_of_block: true, ..config(Packing::Shared, LossUnit::Pdu) };
    let mut losses = losses(&dropping, 4);
    assert!(!losses.is_memoryless());
    let sets = lost(&mut losses, &[(ms(10), 124), (ms(10), 124), (ms(20), 124), (ms(20), 124)]);
    for (set, k) in sets.iter().zip([1, 2, 3, 2]) {
        assert_share(both(set, set), 1.0 - libm::pow(Q, f64::from(k)), "a packet");
    }
    assert_share(both(&sets[0], &sets[1]), P, "the second falls with the first");
    assert_share(both(&sets[1], &sets[2]), 1.0 - Q * Q, "the third falls with the second");
    // The third takes the fourth only by an error of its own (P); else the fourth has its own error.
    assert_share(both(&sets[2], &sets[3]), P + Q * P * (1.0 - Q * Q), "third and fourth");
    assert_share(both(&sets[0], &sets[3]), P * (1.0 - Q * Q), "a block's loss ends with it");
}

#[test]
fn the_rest_of_a_block_matters_only_where_packets_share_it() {
    let aligned = ForwardConfig { drop_rest_of_block: true, ..config(Packing::PacketAligned, LossUnit::Pdu) };
    let mut losses = losses(&aligned, 5);
    assert!(losses.is_memoryless());
    let sets = lost(&mut losses, &[(ms(20), 576), (ms(40), 576)]);
    assert_share(both(&sets[0], &sets[0]), 1.0 - Q * Q * Q, "a packet");
    assert!(
        ForwardLosses::new(
            ForwardConfig { drop_rest_of_block: false, ..config(Packing::Shared, LossUnit::Pdu) },
            1,
            RandomStream::derive(0, &[])
        )
        .is_ok_and(|losses| losses.is_memoryless())
    );
}

#[test]
fn a_subset_is_answered_from_the_draw_for_all() {
    let these: Vec<u32> = (0..RECEIVERS).step_by(3).collect();
    for drop_rest_of_block in [false, true] {
        let loss_unit = if drop_rest_of_block { LossUnit::Pdu } else { LossUnit::FecBlock };
        let config = ForwardConfig { drop_rest_of_block, ..config(Packing::Shared, loss_unit) };
        let (mut all, mut some) = (losses(&config, 6), losses(&config, 6));
        for (at, octets) in [(ms(20), 576), (ms(40), 576), (ms(45), 40), (ms(50), 576)] {
            let (mut of_all, mut of_some) = (Vec::new(), Vec::new());
            all.draw(at, octets, Among::All, &mut of_all);
            some.draw(at, octets, Among::These(&these), &mut of_some);
            of_all.retain(|receiver| receiver % 3 == 0);
            assert!(!of_all.is_empty());
            assert_eq!(of_some, of_all);
        }
    }
}

#[test]
fn a_memoryless_subset_has_the_rate_of_all() {
    let these: Vec<u32> = (0..RECEIVERS).map(|n| 7 * n).collect();
    let mut losses = losses(&config(Packing::PacketAligned, LossUnit::Pdu), 7);
    let mut lost = alloc::vec![u32::MAX];
    losses.draw(ms(20), 576, Among::These(&these), &mut lost);
    assert_eq!(lost.remove(0), u32::MAX, "what was there stays");
    assert!(lost.iter().all(|receiver| receiver % 7 == 0));
    assert_share(lost.len() as f64 / f64::from(RECEIVERS), 1.0 - Q * Q * Q, "a packet");
}

#[test]
fn certain_loss_and_none() {
    for (p, expected) in [(0.0, 0), (1.0, 100)] {
        for packing in [Packing::PacketAligned, Packing::Shared] {
            for loss_unit in [LossUnit::Pdu, LossUnit::Packet, LossUnit::FecBlock] {
                let mut config = config(packing, loss_unit);
                config.loss = Probability::new(p).expect("a probability");
                let mut losses =
                    ForwardLosses::new(config, 100, RandomStream::derive(8, &[])).expect("valid");
                let mut lost = Vec::new();
                losses.draw(ms(20), 576, Among::All, &mut lost);
                assert_eq!(lost.len(), expected, "{p} {packing:?} {loss_unit:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn the_far_end_knows_which_packets_share_a_block(
        packets in proptest::collection::vec((0u64..25, 1u64..120), 1..60), align in any::<bool>(),
        propagation in 0u64..1000,
    ) {
        let config = ForwardConfig {
            packing: Packing::Shared,
            frame: Span::from_nanos(20),
            fec_blocks: 2,
            fec_block_octets: 37,
            align_to_blocks: align,
            ..ForwardConfig::default()
        };
        let (mut packer, mut open) = (Packer::new(&config), OpenBlock::new(&config));
        let mut entry = Time::ZERO;
        for (gap, length) in packets {
            entry += Span::from_nanos(gap);
            let before = packer.free_at();
            let place = packer.place(entry, length);
            packer.take(&place);
            let Share { before: joined, blocks } = open.take(place.end + Span::from_nanos(propagation), length);
            prop_assert_eq!(blocks, place.blocks);
            prop_assert_eq!(joined > 0, place.begin < before, "at {:?}", entry);
        }
    }
}
