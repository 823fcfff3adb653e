use super::*;
use crate::message::Mask;

fn symbols(first: u32, count: u32) -> Run {
    Run::new(first, count).expect("a run")
}

/// Returns ten segments in blocks of 4, 4 and 2, the last of them short, with three parity symbols, of which `auto` go
/// unasked.
fn outgoing(auto: u8) -> Outgoing {
    Outgoing::new(Geometry::new(950, 100, 4).expect("valid"), 3, auto, Vec::new())
}

/// Sends everything, and returns (block, first symbol, count, is parity, is repair) of each run.
fn drain(one: &mut Outgoing) -> Vec<(u32, u32, u32, bool, bool)> {
    let mut sent = Vec::new();
    while let Some(next) = one.next() {
        one.sent(&next, next.symbols.count());
        sent.push((next.block, next.symbols.first(), next.symbols.count(), next.parity, next.repair));
    }
    sent
}

fn lacks(block: u32, erasures: u8, which: &[u32]) -> Request {
    let mut mask = Mask::new(7);
    for &symbol in which {
        mask.insert(Run::one(symbol));
    }
    Request::Segments { erasures, offset: block * 400, mask }
}

/// Returns the runs that are sent after everything was sent and `requests` came.
fn answer(requests: &[Request]) -> Vec<(u32, u32, u32, bool, bool)> {
    let mut one = outgoing(0);
    drain(&mut one);
    for request in requests {
        one.check(request).expect("all of it is there");
        one.note(request, 0, Time::NEVER);
    }
    one.commit();
    assert!(one.asked.is_empty());
    drain(&mut one)
}

#[test]
fn blocks_follow_one_another_and_a_short_segment_stands_alone() {
    let expected =
        [(0, 0, 4, false, false), (1, 0, 4, false, false), (2, 0, 1, false, false), (2, 1, 1, false, false)];
    assert_eq!(drain(&mut outgoing(0)), expected);
}

#[test]
fn each_block_is_followed_by_the_parity_that_goes_unasked() {
    let sent = drain(&mut outgoing(2));
    assert_eq!(sent[..3], [(0, 0, 4, false, false), (0, 4, 2, true, false), (1, 0, 4, false, false)]);
    assert_eq!(sent.last(), Some(&(2, 2, 2, true, false)));
}

#[test]
fn a_block_ends_with_the_last_that_leaves_for_the_first_time() {
    for (auto, ends) in [
        (0, [true, true, false, true].to_vec()),
        (1, [false, true, false, true, false, false, true].to_vec()),
    ] {
        let (mut one, mut ended) = (outgoing(auto), Vec::new());
        while let Some(next) = one.next() {
            ended.push(one.sent(&next, next.symbols.count()));
        }
        assert_eq!(ended, ends, "{auto}");
        one.note(&lacks(0, 1, &[0]), 0, Time::NEVER);
        one.commit();
        let next = one.next().expect("a repair");
        assert!(!one.sent(&next, 1), "not what is sent again");
    }
}

#[test]
fn the_worst_need_of_a_block_decides() {
    assert_eq!(answer(&[lacks(1, 1, &[4])]), [(1, 4, 1, true, true)]);
    assert_eq!(answer(&[lacks(1, 1, &[4]), lacks(1, 2, &[4, 5])]), [(1, 4, 2, true, true)]);
    assert_eq!(
        answer(&[lacks(1, 1, &[4]), lacks(0, 1, &[4])]),
        [(0, 4, 1, true, true), (1, 4, 1, true, true)]
    );
}

#[test]
fn parity_that_was_sent_is_not_sent_again_while_there_is_fresh() {
    let mut one = outgoing(0);
    drain(&mut one);
    let mut ask = |erasures, which: &[u32]| {
        one.note(&lacks(0, erasures, which), 0, Time::NEVER);
        one.commit();
        drain(&mut one)
    };
    assert_eq!(ask(2, &[4, 5]), [(0, 4, 2, true, true)]);
    assert_eq!(ask(1, &[4]), [(0, 6, 1, true, true)], "fresh, and not the one of the mask");
    assert_eq!(
        ask(2, &[3, 5]),
        [(0, 3, 1, false, true), (0, 5, 1, true, true)],
        "used up: what was asked for"
    );
}

#[test]
fn who_lacks_a_whole_block_or_object_gets_it() {
    let mut mask = Mask::new(2);
    mask.insert(symbols(0, 2));
    let whole = Request::Blocks { offset: 400, mask };
    let blocks = [(1, 0, 4, false, true), (2, 0, 1, false, true), (2, 1, 1, false, true)];
    assert_eq!(answer(core::slice::from_ref(&whole)), blocks);
    assert_eq!(answer(&[whole, lacks(1, 1, &[0])])[0], (1, 0, 4, false, true));
    assert_eq!(answer(&[Request::Object])[0], (0, 0, 4, false, true));
}

#[test]
fn what_has_not_left_is_not_repaired() {
    let mut one = outgoing(0);
    let next = one.next().expect("the first block");
    one.sent(&next, 2);
    assert_eq!(one.note(&lacks(1, 1, &[0]), 0, Time::NEVER), 0, "it will come");
    assert_eq!(one.note(&lacks(0, 1, &[4]), 1, Time::NEVER), 0, "behind a position, nothing before");
    assert_eq!(one.note(&Request::Object, 0, Time::NEVER), 1 + 4);
    one.commit();
    assert_eq!(
        drain(&mut one)[..2],
        [(0, 0, 2, false, true), (0, 2, 2, false, false)],
        "two are not one run"
    );
}

#[test]
fn what_is_not_there_is_refused() {
    let one = outgoing(0);
    let bad = [
        lacks(3, 1, &[0]),
        lacks(0, 8, &[0]),
        lacks(2, 6, &[0]),
        lacks(2, 1, &[5]),
        Request::Segments { erasures: 1, offset: 1, mask: Mask::new(7) },
        Request::Segments { erasures: 1, offset: 0, mask: Mask(alloc::vec![0xFF; 60]) },
        Request::Blocks { offset: 800, mask: Mask(alloc::vec![0x40]) },
        Request::Blocks { offset: 1200, mask: Mask(alloc::vec![0x80]) },
        Request::Blocks { offset: u32::MAX, mask: Mask(alloc::vec![0x80]) },
    ];
    for bad in bad {
        assert_eq!(one.check(&bad), Err(Reject::OutOfRange), "{bad:?}");
    }
}
