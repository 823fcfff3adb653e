//! NAKs that arrive at one instant, handled one by one and merged (rules 34 and 35).

use std::collections::BTreeSet;

use farcast_core::engine::{Engine, Reject};
use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span};
use farcast_mftp::{Group, NakTiming, Pace, PassWait, SenderConfig, StatusRetry};

use crate::alone::{Alone, to_all};
use crate::common::ms;

fn draw(random: &mut RandomStream) -> SenderConfig {
    let mut config = to_all(1 + random.below(60) as u32, 1 + random.below(20) as u32);
    config.nak_restarts_wait = random.chance(0.5);
    config.backoff_window = ms(300 * random.below(2));
    config.status_retry_count = random.below(4) as u32;
    config.nak_timing = [NakTiming::EachBlock, NakTiming::EndOfFirstPass][random.below(2) as usize];
    config.status_retry =
        [StatusRetry::Fixed(ms(700)), StatusRetry::Measured, StatusRetry::BlockTime { round_trips: 2 }]
            [random.below(3) as usize];
    config.round_trip = ms(200);
    let rate = BitRate::from_bps(1_000_000).expect("positive");
    config.pace =
        Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule: 1 + random.below(800) as u16 };
    config
}

/// Returns the NAKs of receivers about one block at one instant: the pass, the block, and the DTUs that each misses.
fn said(random: &mut RandomStream, sender: &Alone) -> (u32, u32, Vec<Vec<u32>>) {
    let geometry = sender.engine.geometry();
    let block = random.below(geometry.blocks().into()) as u32;
    let len = u64::from(geometry.block_len(block));
    // The pass is occasionally one that never was.
    let pass = random.below(u64::from(sender.engine.pass().round) + 2) as u32;
    let missing = |random: &mut RandomStream| {
        let dtus: BTreeSet<u32> = (0..=random.below(4)).map(|_| random.below(len) as u32).collect();
        dtus.into_iter().collect()
    };
    let receivers = 1 + random.below(5);
    (pass, block, (0..receivers).map(|_| missing(random)).collect())
}

#[test]
fn merged_naks_do_what_single_ones_do() {
    let (mut taken, mut refused, mut passes) = (0, 0, 0);
    for seed in 0..300 {
        let mut random = RandomStream::derive(seed, &[10]);
        let config = draw(&mut random);
        let (mut single, mut merged) = (Alone::new(config.clone()), Alone::new(config));
        assert!(merged.engine.may_merge());
        for step in 0..40 {
            let later = single.now + Span::from_millis(random.below(400));
            single.run_until(later);
            merged.run_until(later);
            let (pass, block, lists) = said(&mut random, &single);
            let union: BTreeSet<u32> = lists.iter().flatten().copied().collect();
            let union: Vec<u32> = union.into_iter().collect();
            let results: Vec<_> =
                lists.iter().enumerate().map(|(n, missing)| single.nak(n, pass, block, missing)).collect();
            let result = merged.naks(lists.len() as u64, pass, block, &union);
            let context = format!("seed {seed} step {step} pass {pass} block {block} {lists:?}");
            assert!(results.iter().all(|one| *one == result), "{context}: {results:?} {result:?}");
            assert_eq!(single.engine.stats(), merged.engine.stats(), "{context}");
            assert_eq!(single.engine.pass(), merged.engine.pass(), "{context}");
            assert_eq!(single.engine.phase(), merged.engine.phase(), "{context}");
            assert_eq!(single.engine.poll_timeout(), merged.engine.poll_timeout(), "{context}");
            assert_eq!(single.engine.status_retry(), merged.engine.status_retry(), "{context}");
            if result.is_ok() { taken += 1 } else { refused += 1 }
        }
        let end = single.now + Span::from_secs(60);
        single.run_until(end);
        merged.run_until(end);
        assert_eq!(single.sent, merged.sent, "seed {seed}");
        assert_eq!(single.told, merged.told, "seed {seed}");
        passes += single.engine.pass().round;
    }
    // The sessions had enough events for a comparison.
    assert!(taken > 3000 && refused > 500 && passes > 1000, "{taken} {refused} {passes}");
}

#[test]
fn naks_are_not_merged_where_it_would_show() {
    let with_members = SenderConfig { group: Group::OpenLimited { limit: 9 }, ..to_all(20, 10) };
    let draft = SenderConfig { pass_wait: PassWait::Draft, ..to_all(20, 10) };
    let parity = SenderConfig { parity_symbols: 4, ..to_all(20, 10) };
    for config in [with_members, draft, parity] {
        let mut sender = Alone::new(config);
        sender.run_until(sender.now + ms(400));
        let before = (sender.engine.stats().clone(), sender.engine.poll_timeout(), sender.sent.len());
        assert!(!sender.engine.may_merge());
        assert_eq!(sender.naks(2, 1, 0, &[3]), Err(Reject::Unexpected));
        assert_eq!(sender.engine.rejects().of(Reject::Unexpected), 1);
        let after = (sender.engine.stats().clone(), sender.engine.poll_timeout(), sender.sent.len());
        assert_eq!(before, after, "nothing but the counter changes");
    }
}
