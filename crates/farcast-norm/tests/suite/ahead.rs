//! Parity that leaves before any receiver has asked for it, and requests without a back-off.

use farcast_core::Time;
use farcast_norm::SenderConfig;
use farcast_norm::message::Flags;
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, is_nack, ms, sender};

/// Returns 200 segments in blocks of 20 with 8 parity symbols, for two receivers without a back-off.
fn config() -> SenderConfig {
    SenderConfig { block_len: 20, parity: 8, backoff: 0, grtt: ms(200), ..sender(200, 2) }
}

/// Loses the given numbers of segments of these blocks at each of two receivers. Returns the unasked and the requested
/// parity symbols by block, and the number of requests.
fn parity(lost: &'static [(u32, [u32; 2])]) -> (Vec<u32>, Vec<u32>, usize) {
    let mut session = Session::new("ahead", Setup::plain(4), config(), 2, Link::clean(ms(80)));
    session.net.drop_if(move |leg| {
        leg.message.data().is_some_and(|data| {
            let here =
                |(block, of): &(u32, [u32; 2])| data.block == *block && data.symbols.first() < of[leg.to - 1];
            !data.flags.has(Flags::REPAIR) && lost.iter().any(here)
        })
    });
    let mut session = session.run();
    session.assert_received(1);
    let log = session.net.take_log();
    let symbols = |repair: bool| {
        let parity = data(&log).into_iter().map(|(_, data)| data);
        let parity =
            parity.filter(|data| data.symbols.first() >= 20 && data.flags.has(Flags::REPAIR) == repair);
        parity.flat_map(|data| data.symbols.segments().map(move |_| data.block)).collect()
    };
    (symbols(false), symbols(true), log.departures.iter().filter(|one| is_nack(&one.message)).count())
}

#[test]
fn the_last_blocks_take_with_them_what_others_needed() {
    // Block 1 is repaired on request; the parity for block 9 arrives before any receiver could ask.
    let (unasked, repairs, nacks) = parity(&[(1, [2, 0]), (9, [0, 2])]);
    assert_eq!((repairs, nacks), (vec![1, 1], 1));
    // 0.42 s are 48 segments: the last two blocks. They need two symbols, and get as many again for the spread of
    // losses.
    assert_eq!(unasked, [8, 8, 8, 8, 9, 9, 9, 9]);
}

#[test]
fn without_losses_nothing_leaves_unasked() {
    assert_eq!(parity(&[]), (vec![], vec![], 0));
}

#[test]
fn an_outage_says_nothing_of_other_blocks() {
    let (unasked, repairs, _) = parity(&[(1, [12, 0])]);
    assert!(unasked.is_empty() && repairs.len() == 8, "{unasked:?} {repairs:?}");
}

#[test]
fn receivers_that_do_not_wait_are_answered_as_one() {
    for (one, other) in [(1, 3), (3, 1)] {
        let config = SenderConfig { block_len: 20, parity: 8, backoff: 0, grtt: ms(200), ..sender(600, 2) };
        let mut session = Session::new("together", Setup::plain(4), config, 2, Link::clean(ms(80)));
        session.net.drop_if(move |leg| {
            let lost = if leg.to == 1 { one } else { other };
            leg.message.data().is_some_and(|data| data.block == 1 && data.symbols.first() < lost)
        });
        let mut session = session.run();
        session.assert_received(1);
        let log = session.net.take_log();
        let repaired: Vec<Time> = (data(&log).into_iter())
            .filter(|(_, data)| data.flags.has(Flags::REPAIR))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(repaired.len(), 3, "as many as the worst needs");
        assert!(repaired[2].since(repaired[0]) < ms(50), "at once: {repaired:?}");
    }
}
