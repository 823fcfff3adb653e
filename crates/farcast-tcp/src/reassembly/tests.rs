//! Against a map of octets, and by the examples of RFC 2018 and RFC 2883.

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn reported(reassembly: &mut Reassembly) -> Vec<(u64, u64)> {
    reassembly.report(true).collect()
}

/// The ranges of a set, in order.
fn ranges(octets: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &octet in octets {
        match ranges.last_mut().filter(|range| range.1 == octet) {
            Some(range) => range.1 += 1,
            None => ranges.push((octet, octet + 1)),
        }
    }
    ranges
}

proptest! {
    /// Compares with a set of octets, for segments in any order: octets in order, octets behind gaps, and the report of
    /// both and of duplicates.
    #[test]
    fn it_does_as_a_set_of_octets(segments in prop::collection::vec((1u64..300, 1u64..40), 1..80)) {
        let mut reassembly = Reassembly::new(1);
        let (mut octets, mut next) = (BTreeSet::new(), 1);
        for (left, len) in segments {
            let right = left + len;
            let known = |octet: &u64| *octet < next || octets.contains(octet);
            let (old, before) = ((left..right).all(|octet| known(&octet)), next);
            let duplicates: BTreeSet<u64> = (left..right).filter(known).collect();
            let gap_before = octets.iter().any(|&octet| octet >= next);
            let taken = reassembly.take(left, right);
            octets.extend(left..right);
            while octets.contains(&next) {
                next += 1;
            }
            octets.retain(|&octet| octet >= next);
            prop_assert_eq!(reassembly.next(), next);
            reassembly.check();
            let expected = match (old, next > before) {
                (true, _) => SegmentEffect::Old,
                (false, true) => SegmentEffect::InOrder { filled: gap_before },
                (false, false) => SegmentEffect::OutOfOrder,
            };
            prop_assert_eq!(taken, expected);
            prop_assert_eq!(reassembly.has_gap(), !octets.is_empty());
            for position in [1, left, right, next, 350] {
                let beyond = next > position || octets.iter().any(|&octet| octet >= position);
                prop_assert_eq!(reassembly.has_beyond(position), beyond, "{}", position);
            }
            // RFC 2883 section 4: the first of the duplicate pieces comes first, then the block that this is part of.
            let mut told = reported(&mut reassembly);
            if let Some(&first) = ranges(&duplicates).first() {
                prop_assert_eq!(told.remove(0), first);
            }
            let islands = ranges(&octets);
            if let Some(island) = islands.iter().find(|island| island.0 <= left && right <= island.1) {
                prop_assert_eq!(&told[0], island, "RFC 2018 section 4");
            }
            let distinct: BTreeSet<_> = told.iter().collect();
            prop_assert!(told.iter().all(|block| islands.contains(block)) && distinct.len() == told.len());
            prop_assert!(told.len() >= islands.len().min(1), "something is told of a gap");
        }
    }
}

/// RFC 2018 section 7, where segments of 500 octets begin with 5000. Case 2: the first of eight is lost, and seven
/// acknowledgments tell of one growing block.
#[test]
fn the_first_of_eight_is_lost() {
    let mut reassembly = Reassembly::new(5000);
    for n in 1..8 {
        assert_eq!(reassembly.take(5000 + 500 * n, 5500 + 500 * n), SegmentEffect::OutOfOrder);
        assert_eq!(reported(&mut reassembly), [(5500, 5500 + 500 * n)]);
    }
}

/// Case 3: the second, fourth, sixth and eighth are lost; then the fourth comes, then the second.
#[test]
fn every_second_of_eight_is_lost() {
    let mut reassembly = Reassembly::new(5000);
    reassembly.take(5000, 5500);
    assert_eq!(reported(&mut reassembly), []);
    reassembly.take(6000, 6500);
    assert_eq!(reported(&mut reassembly), [(6000, 6500)]);
    reassembly.take(7000, 7500);
    assert_eq!(reported(&mut reassembly), [(7000, 7500), (6000, 6500)]);
    reassembly.take(8000, 8500);
    assert_eq!(reported(&mut reassembly), [(8000, 8500), (7000, 7500), (6000, 6500)]);
    reassembly.take(6500, 7000);
    assert_eq!(reported(&mut reassembly), [(6000, 7500), (8000, 8500)]);
    reassembly.take(5500, 6000);
    assert_eq!((reassembly.next(), reported(&mut reassembly)), (7500, [(8000, 8500)].to_vec()));
}

/// RFC 2883 section 4.1: a duplicate of acknowledged data; the same with a gap besides; a duplicate of data behind a
/// gap.
#[test]
fn duplicate_segments_are_reported() {
    let mut reassembly = Reassembly::new(3000);
    reassembly.take(3000, 3500);
    reassembly.take(3500, 4000);
    assert_eq!(reassembly.take(3000, 3500), SegmentEffect::Old);
    assert_eq!(reported(&mut reassembly), [(3000, 3500)]);
    assert_eq!(reported(&mut reassembly), [], "each is reported once");

    reassembly.take(4500, 5000);
    assert_eq!(reported(&mut reassembly), [(4500, 5000)]);
    reassembly.take(3000, 3500);
    assert_eq!(reported(&mut reassembly), [(3000, 3500), (4500, 5000)]);

    reassembly.take(5000, 5500);
    assert_eq!(reported(&mut reassembly), [(4500, 5500)]);
    assert_eq!(reassembly.take(5000, 5500), SegmentEffect::Old);
    assert_eq!(reported(&mut reassembly), [(5000, 5500), (4500, 5500)]);
}

/// RFC 2883 section 4.2: a segment of which a part came before, below the acknowledgment and behind a gap; of two parts
/// the first is reported.
#[test]
fn duplicate_parts_are_reported() {
    let mut reassembly = Reassembly::new(500);
    reassembly.take(500, 1500);
    reassembly.take(2000, 2500);
    reported(&mut reassembly);
    assert_eq!(reassembly.take(1000, 2000), SegmentEffect::InOrder { filled: true });
    assert_eq!((reassembly.next(), reported(&mut reassembly)), (2500, [(1000, 1500)].to_vec()));

    reassembly.take(3000, 3500);
    reassembly.take(4000, 4500);
    reported(&mut reassembly);
    assert_eq!(reassembly.take(3200, 4200), SegmentEffect::OutOfOrder);
    assert_eq!(reported(&mut reassembly), [(3200, 3500), (3000, 4500)]);
}

/// Duplicates are not reported to a peer that would take them for something else.
#[test]
fn duplicates_can_be_left_out() {
    let mut reassembly = Reassembly::new(1);
    reassembly.take(1, 100);
    reassembly.take(200, 300);
    reassembly.take(1, 50);
    assert!(reassembly.has_report(false));
    assert_eq!(reassembly.report(false).collect::<Vec<_>>(), [(200, 300)]);
    reassembly.take(100, 200);
    reassembly.take(1, 50);
    assert!(!reassembly.has_report(false) && reassembly.has_report(true));
}

#[test]
fn pieces_are_limited() {
    let mut reassembly = Reassembly::new(1);
    for n in 1..=MOST_ISLANDS as u64 {
        assert_eq!(reassembly.take(10 * n, 10 * n + 5), SegmentEffect::OutOfOrder);
    }
    assert_eq!(reassembly.take(5, 6), SegmentEffect::TooMany);
    assert_eq!(reassembly.take(15, 20), SegmentEffect::OutOfOrder, "what joins two is taken");
    assert_eq!(reassembly.take(5, 6), SegmentEffect::OutOfOrder, "and then there is room for one");
    assert_eq!(reassembly.take(1, 5), SegmentEffect::InOrder { filled: true });
    reassembly.check();
}
