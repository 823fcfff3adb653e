//! Forecasts of the sender about the parity that it sends.

use std::collections::BTreeMap;

use farcast_core::{Run, Span, Time};
use farcast_mftp::message::DataKind;
use farcast_mftp::{PassWait, SenderConfig};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, at, data, lose_data, ms, sender};

/// Time by which DTUs may leave late and be made up for.
const CREDIT: Span = ms(5);

/// Forecast at one time.
type Said = [Option<(u32, Run)>; 2];

/// Parity of one block in one pass.
struct Sent {
    block: u32,
    symbols: Run,
    from: Time,
    until: Time,
}

/// Returns the number of times that parity of a block was sent, and the number of times that all of it was forecast.
fn foreseen(config: SenderConfig, seed: u64) -> (usize, usize) {
    let mut session = Session::new("foreseen", Setup::plain(seed), config, 16, Link::clean(ms(100)));
    lose_data(&mut session.net, seed, 0.05);
    let mut said: Vec<(Time, Said)> = Vec::new();
    for now in (1..20_000).map(|n| at(ms(n))) {
        session.net.run_until(now);
        said.push((now, session.engine().parity_ahead()));
    }
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    let mut sent: BTreeMap<(u32, u32), Sent> = BTreeMap::new();
    for (time, data) in data(&log, 0).into_iter().filter(|(_, data)| data.kind == DataKind::Parity) {
        let first = Sent { block: data.block, symbols: data.dtus, from: time, until: time };
        let sent = sent.entry((data.pass, data.block)).or_insert(first);
        let (first, end) = (sent.symbols.first(), sent.symbols.end().max(data.dtus.end()));
        (sent.symbols, sent.until) = (Run::new(first, end - first).expect("not empty"), time);
    }
    // The forecast for the current block is exact.
    for (time, [at_hand, _]) in &said {
        let Some((block, run)) = at_hand else { continue };
        let next = sent.values().find(|sent| sent.block == *block && sent.until >= *time);
        let next = next.expect("it is sent");
        assert!(next.symbols.first() <= run.first() && next.symbols.end() == run.end(), "{time:?} {run:?}");
    }
    // The parity behind a block is certain as soon as its DTUs leave.
    for first in sent.iter().filter(|((pass, _), _)| *pass == 1).map(|(_, sent)| sent) {
        let mut before = said.iter().filter(|(time, _)| *time + CREDIT < first.from);
        assert!(before.any(|(_, [at_hand, _])| *at_hand == Some((first.block, first.symbols))));
    }
    let is_foreseen = |sent: &&Sent| {
        let covers = |&(block, run): &(u32, Run)| {
            block == sent.block && run.first() <= sent.symbols.first() && run.end() >= sent.symbols.end()
        };
        let before = said.iter().filter(|(time, _)| *time + CREDIT < sent.from);
        before.flat_map(|(_, said)| said.iter().flatten()).any(covers)
    };
    (sent.len(), sent.values().filter(is_foreseen).count())
}

#[test]
fn parity_behind_a_block_is_foreseen() {
    // Receivers are so far away that all of it is sent ahead of requests.
    let config = SenderConfig { parity_symbols: 60, parity_ahead: true, ..sender(80, 20, 16) };
    let (sent, foreseen) =
        (0..5).map(|seed| foreseen(config.clone(), seed)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(sent >= 10 && foreseen * 10 >= sent * 8, "{foreseen} of {sent}");
}

#[test]
fn most_repairs_are_foreseen() {
    for pass_wait in [PassWait::Draft, PassWait::FixedTimer] {
        let mut config = SenderConfig { parity_symbols: 60, ..sender(600, 20, 16) };
        config.pass_wait = pass_wait;
        let (sent, foreseen) = foreseen(config, 1);
        assert!(sent >= 30 && foreseen * 10 >= sent * 8, "{pass_wait:?}: {foreseen} of {sent}");
    }
}
