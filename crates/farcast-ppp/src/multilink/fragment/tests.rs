use super::*;
use proptest::prelude::*;
use std::vec;

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps).expect("positive")
}

/// Links of 1 bit/s each: `F` has room, `b` has none, `-` is down.
fn links(states: &str) -> Vec<Candidate> {
    states.chars().map(|state| Candidate { up: state != '-', room: state == 'F', rate: rate(1) }).collect()
}

fn cut(policy: Policy, octets: u32, links: &[Candidate], turn: usize) -> Vec<(usize, u32)> {
    let mut parts = vec![PacketPart { link: 99, octets: 99 }];
    policy.cut(octets, links, turn, &mut parts);
    parts.iter().map(|part| (part.link, part.octets)).collect()
}

#[test]
fn equal_parts_over_all_links_that_are_up() {
    let policy = Policy::Equal { smallest: 64 };
    // 1501 = 8 × 187.625: the example of the notes, fragments of at most 188.
    let parts = cut(policy, 1501, &links("FFFFFFFF"), 3);
    assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 0, 1, 2]);
    assert_eq!(parts.iter().filter(|part| part.1 == 188).count(), 5);
    assert_eq!(parts.iter().filter(|part| part.1 == 187).count(), 3);
    assert_eq!(cut(policy, 200, &links("F-FF"), 0), [(0, 67), (2, 67), (3, 66)]);
    // 191 octets make two parts of 64 and more, 127 one.
    assert_eq!(cut(policy, 191, &links("FFFF"), 2), [(2, 96), (3, 95)]);
    assert_eq!(cut(policy, 127, &links("FFFF"), 3), [(3, 127)]);
    assert_eq!(cut(policy, 1, &links("FFFF"), 0), [(0, 1)]);
    // It waits for the links that it uses, and for no others.
    assert_eq!(cut(policy, 1000, &links("FFbF"), 0), []);
    assert_eq!(cut(policy, 128, &links("FFbF"), 0), [(0, 64), (1, 64)]);
    assert_eq!(cut(policy, 128, &links("FFbF"), 1), []);
}

#[test]
fn parts_by_rate_end_together() {
    let mut links = links("FFF");
    (links[0].rate, links[1].rate, links[2].rate) = (rate(2400), rate(9600), rate(4800));
    for policy in [Policy::Proportional { smallest: 64 }, Policy::Free] {
        assert_eq!(cut(policy, 700, &links, 0), [(0, 100), (1, 400), (2, 200)]);
        assert_eq!(cut(policy, 700, &links, 2), [(2, 200), (0, 100), (1, 400)]);
    }
    // A rate that is nothing beside another gets nothing.
    links[0].rate = rate(1);
    assert_eq!(cut(Policy::Free, 10, &links, 1), [(1, 7), (2, 3)]);
}

#[test]
fn free_links_share_when_half_of_them_are_free() {
    assert_eq!(cut(Policy::Free, 100, &links("FbFb"), 1), [(2, 50), (0, 50)]);
    assert_eq!(cut(Policy::Free, 100, &links("bbFb"), 0), [], "one of four is less than half");
    assert_eq!(cut(Policy::Free, 100, &links("bbF"), 0), [(2, 100)], "half of three is one");
    assert_eq!(cut(Policy::Free, 100, &links("b-F-"), 0), [(2, 100)]);
    assert_eq!(cut(Policy::Free, 3, &links("FFFF"), 0).len(), 3, "no part is empty");
    assert_eq!(cut(Policy::Free, 40, &links("FFFFFFFF"), 0), [0, 1, 2, 3, 4, 5, 6, 7].map(|link| (link, 5)));
    for states in ["b", "-", "--", "bb", ""] {
        assert_eq!(cut(Policy::Free, 100, &links(states), 0), [], "{states}");
    }
}

#[test]
fn whole_packets_take_turns() {
    assert_eq!(cut(Policy::Whole, 1501, &links("FFF"), 1), [(1, 1501)]);
    assert_eq!(cut(Policy::Whole, 1501, &links("Fb-F"), 1), [(3, 1501)]);
    assert_eq!(cut(Policy::Whole, 1501, &links("b-b"), 0), []);
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_goes_where_there_is_no_room(
        states in prop::collection::vec((any::<bool>(), any::<bool>(), 1u64..1 << 40), 0..20),
        octets: u32,
        turn: usize,
        smallest: u16,
        kind in 0..4,
    ) {
        let links: Vec<_> =
            states.into_iter().map(|(up, room, bps)| Candidate { up, room, rate: rate(bps) }).collect();
        let policy = [
            Policy::Free, Policy::Whole, Policy::Equal { smallest }, Policy::Proportional { smallest },
        ][kind as usize];
        let parts = cut(policy, octets, &links, turn);
        if !parts.is_empty() {
            prop_assert_eq!(parts.iter().map(|part| u64::from(part.1)).sum::<u64>(), u64::from(octets));
        }
        for &(link, part) in &parts {
            prop_assert!(part > 0 && links[link].up && links[link].room);
        }
        let mut used: Vec<_> = parts.iter().map(|part| part.0).collect();
        used.sort_unstable();
        used.dedup();
        prop_assert_eq!(used.len(), parts.len(), "a link carries one part of a packet");
    }
}
