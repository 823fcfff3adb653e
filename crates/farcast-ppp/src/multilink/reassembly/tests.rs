use super::*;
use core::iter;
use proptest::prelude::*;
use std::vec;

mod model;
mod schedules;

const START: Time = Time::ZERO;

fn config() -> ReassemblyConfig {
    ReassemblyConfig::default()
}

/// A reassembler with links `0..links`.
fn with(links: usize, config: ReassemblyConfig) -> Reassembler<Vec<u8>> {
    let mut reassembler = Reassembler::new(config, Format::Long).expect("valid");
    (0..links).for_each(|link| reassembler.join(START, link));
    reassembler
}

fn header(sequence: u32, bits: &str) -> Header {
    Header { begins: bits.contains('B'), ends: bits.contains('E'), sequence }
}

/// Hands over a fragment whose one octet is its number. Returns the packets that were released.
fn give(to: &mut Reassembler<Vec<u8>>, link: usize, sequence: u32, bits: &str) -> Vec<Vec<u8>> {
    to.receive(START, link, header(sequence, bits), vec![sequence as u8]).expect("taken");
    packets(to)
}

fn packets(from: &mut Reassembler<Vec<u8>>) -> Vec<Vec<u8>> {
    iter::from_fn(|| from.poll_packet()).collect()
}

const NONE: [Vec<u8>; 0] = [];

#[test]
fn a_packet_is_complete_when_all_its_numbers_are_there() {
    let mut r = with(3, config());
    assert_eq!(give(&mut r, 2, 2, "E"), NONE);
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 0, 3, "BE"), NONE, "packets leave in order");
    assert_eq!(give(&mut r, 1, 1, ""), [vec![0, 1, 2], vec![3]]);
    assert_eq!((r.held(), r.held_octets(), r.decided()), (0, 0, 4));
}

#[test]
fn a_packet_is_lost_when_m_has_passed_its_end() {
    let mut r = with(2, config());
    // 1 is lost on link 1.
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 0, 2, "E"), NONE);
    assert_eq!(give(&mut r, 0, 3, "BE"), NONE, "M waits for link 1");
    assert_eq!(give(&mut r, 0, 5, "BE"), NONE);
    assert_eq!(give(&mut r, 1, 4, "BE"), [vec![3], vec![4], vec![5]]);
    let counters = *r.counters();
    assert_eq!((counters.lost, counters.discarded, counters.packets), (1, 2, 3));
}

#[test]
fn m_may_come_to_lie_within_a_packet_that_can_be_completed() {
    let mut r = with(2, config());
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 1, 2, ""), NONE);
    // 1 is lost and M is 2, within the packet, whose end is not known.
    assert_eq!(give(&mut r, 0, 3, ""), NONE);
    assert_eq!(r.counters().lost, 0);
    // The end is 4, and M is 3; then 4, which is not past it.
    assert_eq!(give(&mut r, 1, 4, "E"), NONE);
    assert_eq!(give(&mut r, 0, 5, "BE"), NONE);
    assert_eq!(give(&mut r, 1, 6, "BE"), [vec![5], vec![6]]);
    assert_eq!(r.counters().discarded, 4);
}

#[test]
fn a_beginning_at_m_ends_what_is_before_it_and_stays() {
    let mut r = with(2, config());
    // 0 arrives; 1, which bore E, is lost; 2 begins the next packet.
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 0, 3, "E"), NONE);
    assert_eq!(give(&mut r, 1, 2, "B"), [vec![2, 3]], "M is 2, which begins a packet");
    assert_eq!((r.counters().lost, r.counters().discarded), (1, 1));
    // The same with one link, where two whole packets are gone.
    let mut r = with(1, config());
    assert_eq!(give(&mut r, 0, 4, "B"), NONE);
    assert_eq!(give(&mut r, 0, 5, "E"), [vec![4, 5]]);
    assert_eq!((r.counters().lost, r.counters().discarded), (1, 0));
}

#[test]
fn an_end_that_is_lost_takes_the_next_packet_along_if_its_beginning_is_lost_too() {
    let mut r = with(1, config());
    // 0 B, 1 E and 2 B are of two packets; without 1 and 2 the lowest known end is 3.
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 0, 3, "E"), NONE);
    assert_eq!(give(&mut r, 0, 4, "BE"), [vec![4]]);
    assert_eq!((r.counters().lost, r.counters().discarded), (1, 2));
}

#[test]
fn a_link_that_leaves_no_longer_holds_up_the_others() {
    let mut r = with(3, config());
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 1, 1, ""), NONE);
    // 2, the end, is lost with link 2.
    assert_eq!(give(&mut r, 0, 3, "BE"), NONE);
    assert_eq!(give(&mut r, 1, 4, "BE"), NONE);
    r.leave(START, 2);
    assert_eq!(packets(&mut r), [vec![3], vec![4]], "decided at once");
    assert_eq!(r.receive(START, 2, header(5, "BE"), vec![5]), Err(Refusal::NotMember));
    // Back again, it holds M where it is.
    r.join(START, 2);
    assert_eq!(give(&mut r, 0, 6, "BE"), NONE);
    assert_eq!(give(&mut r, 1, 7, "BE"), NONE);
    assert_eq!(give(&mut r, 2, 8, "BE"), [vec![6], vec![7], vec![8]], "5 was lost");
    assert_eq!(r.counters().not_member, 1);
}

#[test]
fn when_no_link_is_left_all_that_was_received_is_decided() {
    let mut r = with(2, config());
    assert_eq!(give(&mut r, 0, 1, "E"), NONE);
    assert_eq!(give(&mut r, 0, 2, "BE"), NONE);
    assert_eq!(give(&mut r, 0, 4, "E"), NONE);
    r.leave(START, 0);
    r.leave(START, 1);
    assert_eq!(packets(&mut r), [vec![2]]);
    assert_eq!((r.held(), r.counters().lost, r.decided()), (0, 2, 5));
    // Numbers go on; a packet may still begin at the first that is not decided.
    r.join(START, 7);
    r.join(START, 8);
    assert_eq!(give(&mut r, 8, 6, "E"), NONE);
    assert_eq!(give(&mut r, 7, 5, "B"), [vec![5, 6]]);
}

#[test]
fn what_breaks_the_rules_is_refused_and_changes_nothing() {
    let mut r = with(2, config());
    let refused = |r: &mut Reassembler<Vec<u8>>, link, sequence| {
        let before = (r.held(), r.decided());
        let refusal = r.receive(START, link, header(sequence, "BE"), vec![0]).expect_err("refused");
        assert_eq!((r.held(), r.decided(), r.poll_packet()), (before.0, before.1, None));
        refusal
    };
    assert_eq!(refused(&mut r, 2, 0), Refusal::NotMember);
    assert_eq!(refused(&mut r, usize::MAX, 0), Refusal::NotMember);
    assert_eq!(refused(&mut r, 0, 0xFF_FFFF), Refusal::Backwards, "before the first number");
    assert_eq!(give(&mut r, 0, 5, "B"), NONE);
    assert_eq!(refused(&mut r, 0, 5), Refusal::Backwards);
    assert_eq!(refused(&mut r, 0, 4), Refusal::Backwards);
    assert_eq!(refused(&mut r, 1, 5), Refusal::Duplicate);
    assert_eq!(give(&mut r, 1, 6, "E"), [vec![5, 6]], "5 begins a packet and M is 5");
    r.join(START, 2);
    assert_eq!(refused(&mut r, 2, 3), Refusal::Late);
    let counters = *r.counters();
    let counted = [counters.not_member, counters.backwards, counters.duplicates, counters.late];
    assert_eq!((counted, counters.fragments), ([2, 3, 1, 1], 2));
}

#[test]
fn a_peer_that_breaks_off_packets_harms_only_these() {
    let mut r = with(1, config());
    // 0 begins and so does 1, which says that 0 was an end, which it was not.
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 0, 1, "B"), NONE);
    assert_eq!(give(&mut r, 0, 2, "E"), [vec![1, 2]]);
    // 3 does not begin.
    assert_eq!(give(&mut r, 0, 3, "E"), NONE);
    assert_eq!(give(&mut r, 0, 4, "BE"), [vec![4]]);
    assert_eq!((r.counters().lost, r.counters().discarded), (2, 2));
}

#[test]
fn null_fragments_move_m_and_are_no_packets() {
    let mut r = with(2, config());
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    assert_eq!(give(&mut r, 0, 2, "BE"), NONE);
    r.receive(START, 1, header(3, "BE"), vec![]).expect("taken");
    assert_eq!(packets(&mut r), [vec![2]], "1 is lost");
    assert_eq!((r.counters().nulls, r.counters().packets, r.decided()), (1, 1, 4));
}

#[test]
fn a_packet_over_the_mrru_is_dropped() {
    let mut r = with(1, ReassemblyConfig { mrru: 100, ..config() });
    for (sequence, bits, octets) in [(0, "B", 50), (1, "E", 52), (2, "B", 50), (3, "E", 53), (4, "BE", 1)] {
        r.receive(START, 0, header(sequence, bits), vec![0; octets]).expect("taken");
    }
    assert_eq!(packets(&mut r).iter().map(Vec::len).collect::<Vec<_>>(), [102, 1]);
    assert_eq!((r.counters().over_mrru, r.counters().discarded), (1, 2));
}

#[test]
fn what_is_held_is_bounded_and_the_first_packet_goes() {
    // Link 1 is silent, 0 is missing.
    let mut r = with(2, ReassemblyConfig { most_fragments: 4, ..config() });
    for sequence in 1..5 {
        assert_eq!(give(&mut r, 0, sequence, "BE"), NONE);
    }
    assert_eq!(give(&mut r, 0, 5, "BE"), (1..6).map(|n| vec![n]).collect::<Vec<_>>(), "0 is given up");
    // A packet without end.
    let mut r = with(1, ReassemblyConfig { most_octets: 10, ..config() });
    assert_eq!(give(&mut r, 0, 0, "B"), NONE);
    for sequence in 1..1000 {
        assert_eq!(give(&mut r, 0, sequence, ""), NONE);
        assert!(r.held_octets() <= 10);
    }
    assert_eq!(give(&mut r, 0, 1000, "E"), NONE);
    assert_eq!(give(&mut r, 0, 1001, "BE"), [vec![1001u32 as u8]]);
    // One fragment that alone is too much.
    r.receive(START, 0, header(1002, "BE"), vec![0; 11]).expect("taken");
    assert_eq!(packets(&mut r).len(), 1, "it is complete before it is counted");
    r.receive(START, 0, header(1003, "B"), vec![0; 11]).expect("taken");
    assert_eq!((r.held(), r.decided()), (0, 1004));
}

#[test]
fn gaps_take_no_memory() {
    let mut r = with(2, config());
    for k in 1..100 {
        // Each half the numbers ahead of the one before.
        r.receive(START, 0, header(Format::Long.wrap(k * (1 << 23)), "B"), vec![0]).expect("taken");
    }
    assert_eq!(r.held(), 99);
    assert!(r.held.capacity() < 1000);
}

#[test]
fn a_silent_link_is_left_out_after_a_while() {
    let s = |seconds| START + Span::from_secs(seconds);
    let mut r = with(3, ReassemblyConfig { idle: Some(Span::from_secs(10)), ..config() });
    let take = |r: &mut Reassembler<Vec<u8>>, at, link, sequence, bits| {
        r.receive(at, link, header(sequence, bits), vec![sequence as u8]).expect("taken");
        packets(r)
    };
    assert_eq!(r.poll_timeout(), None, "nothing is held");
    assert_eq!(take(&mut r, s(100), 0, 1, "BE"), NONE);
    assert_eq!(r.poll_timeout(), Some(s(110)));
    assert_eq!(take(&mut r, s(105), 1, 2, "BE"), NONE);
    r.handle_timeout(s(109));
    assert_eq!((packets(&mut r), r.poll_timeout()), (NONE.into(), Some(s(110))));
    // Links 0 and 2 have been silent since 100 s and are left out; what link 1 says, that M is 2, decides.
    r.handle_timeout(s(110));
    assert_eq!((packets(&mut r), r.counters().idled), (vec![vec![1], vec![2]], 2));
    assert_eq!(r.poll_timeout(), None);
    // Once heard, each counts again: what link 1 leaves out is not lost by what link 0 says alone.
    assert_eq!(take(&mut r, s(120), 0, 5, "BE"), NONE);
    assert_eq!(take(&mut r, s(121), 1, 3, "BE"), [vec![3]]);
    assert_eq!(take(&mut r, s(122), 1, 4, "BE"), [vec![4], vec![5]]);
    // A link that was left out is waited for anew when there is something to wait for, for as long as before.
    assert_eq!(take(&mut r, s(200), 0, 7, "BE"), NONE);
    r.handle_timeout(s(210));
    assert_eq!((packets(&mut r), r.poll_timeout()), (vec![vec![7]], None));
    assert_eq!(take(&mut r, s(300), 0, 9, "B"), NONE);
    r.handle_timeout(s(310));
    assert_eq!((packets(&mut r), r.held(), r.poll_timeout()), (vec![], 1, None), "8 is lost, 9 has no end");
    assert_eq!(take(&mut r, s(400), 0, 11, "BE"), NONE);
    assert_eq!(r.poll_timeout(), Some(s(410)));
    r.handle_timeout(s(410));
    assert_eq!(packets(&mut r), [vec![11]]);
    // A link that comes back with a number that was given up is late.
    assert_eq!(r.receive(s(123), 2, header(0, "BE"), vec![0]), Err(Refusal::Late));
}

#[test]
fn bounds_of_zero_are_refused_by_name() {
    let refused = |config: ReassemblyConfig| config.check().expect_err("refused");
    assert_eq!(refused(ReassemblyConfig { mrru: 0, ..config() }), ConfigError::Zero("mrru"));
    assert_eq!(
        refused(ReassemblyConfig { most_fragments: 0, ..config() }),
        ConfigError::Zero("most_fragments")
    );
    assert_eq!(refused(ReassemblyConfig { most_octets: 0, ..config() }), ConfigError::Zero("most_octets"));
    assert_eq!(refused(ReassemblyConfig { idle: Some(Span::ZERO), ..config() }), ConfigError::Zero("idle"));
    assert_eq!(config().check(), Ok(()));
}

proptest! {
    /// The reassembler stays within its bounds and counts octets correctly, whatever fragments come.
    #[test]
    fn hostile_fragments_stay_within_bounds(
        steps in prop::collection::vec((0usize..5, any::<u32>(), any::<(bool, bool)>(), 0usize..40), 0..400),
        near: bool,
    ) {
        let idle = Some(Span::from_millis(300));
        let bounds = ReassemblyConfig { mrru: 60, most_fragments: 16, most_octets: 200, idle };
        let mut r = Reassembler::new(bounds, Format::Short).expect("valid");
        let (mut given, mut released, mut now) = (0, 0, START);
        for (link, number, (begins, ends), octets) in steps {
            let until = now + Span::from_millis(u64::from(number % 101));
            while let Some(due) = r.poll_timeout().filter(|&due| due <= until) {
                prop_assert!(due >= now, "a timer lies in the past");
                now = due;
                r.handle_timeout(now);
                prop_assert!(r.poll_timeout().is_none_or(|next| next > now), "a timer stays due");
            }
            now = until;
            match number % 23 {
                0 => r.leave(now, link),
                1..=4 => r.join(now, link),
                _ => {
                    let sequence = number >> 8 & if near { 31 } else { 0xFFF };
                    let header = Header { begins, ends, sequence };
                    given += u64::from(r.receive(now, link, header, vec![7; octets]).is_ok());
                }
            }
            for packet in packets(&mut r) {
                released += 1;
                prop_assert!(!packet.is_empty() && packet.len() <= 62);
            }
            prop_assert!(r.held() <= 16 && r.held_octets() <= 200);
        }
        prop_assert_eq!((r.counters().fragments, r.counters().packets), (given, released));
    }
}
