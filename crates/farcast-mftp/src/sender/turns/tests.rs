use super::*;

#[test]
fn answers_are_left_alone_the_longer_the_fewer_come() {
    let rate = Pace::Rate {
        rate: BitRate::from_bps(1_000_000).expect("a rate"),
        overhead: 28,
        credit: STEP.0,
        granule: 1,
    };
    for trip in [Span::from_secs(1), Span::from_secs(30)] {
        let mut turns = Turns::new(rate, None, false);
        turns.shortest = Some(trip);
        let called = Called {
            first: 0,
            end: PLACES,
            at: Time::ZERO,
            spread: Span::ZERO,
            expected: 100.0,
            likely: 100.0,
            octets: 100.0,
            heard: 0.0,
            compared: false,
        };
        let mut waits = alloc::vec![];
        for _ in 0..8 {
            turns.past.push_back(called);
            turns.awaits_answers(Time::ZERO, 100.0);
            assert!(turns.past.is_empty(), "nothing has come, so they count as lost");
            waits.push(turns.patience);
        }
        assert!(waits.is_sorted() && waits[0] == trip, "{waits:?}");
        assert_eq!(waits[7], LONGEST_PATIENCE.max(trip));
    }
}
