//! Parity in place of the union, sending by window, and the number of passes (rules 26 to 31).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::{Bitmap, Message as _, Run, Time};
use farcast_mftp::message::{Announce, AnnounceOptions, Data, DataKind, GroupModel};
use farcast_mftp::{
    Body, Message, Pace, PassWait, Receiver, ReceiverConfig, ReceiverEvent, SenderConfig, SenderEvent,
    SenderOutcome,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, data, group, lose_data, ms, receiver, sender, sent, server};

/// Creates a session with one block of 20 DTUs for four receivers, each of which loses another DTU in pass 1.
fn each_loses_another(parity_symbols: u32, owner: &Ownership) -> Session {
    let mut config = SenderConfig { parity_symbols, ..sender(20, 20, 4) };
    config.pass_wait = PassWait::FixedTimer;
    let mut session = Session::empty("each another", Setup::plain(1), config, Link::clean(ms(50)));
    for n in 0..4 {
        let told = Ownership::default().told;
        session.add(n, receiver(n), Ownership { told, ..owner.clone() });
    }
    session.net.drop_if(
        |leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() as usize == leg.to),
    );
    session.run()
}

#[test]
fn one_parity_symbol_does_for_four_dtus() {
    let session = each_loses_another(4, &Ownership::default());
    session.assert_complete();
    assert_eq!(session.engine().stats().dtus_per_pass, [20, 1]);
    assert_eq!(session.engine().stats().parity_sent, 1);
    for client in &session.clients {
        let told = client.owner.told.borrow();
        assert!(told.iter().any(|(_, event)| *event == ReceiverEvent::Decode { block: 0 }));
    }
}

#[test]
fn without_parity_the_union_goes() {
    let session = each_loses_another(0, &Ownership::default());
    session.assert_complete();
    assert_eq!(session.engine().stats().dtus_per_pass, [20, 4]);
}

#[test]
fn parity_that_saves_nothing_is_not_sent() {
    let mut config = SenderConfig { parity_symbols: 4, ..sender(20, 20, 4) };
    config.pass_wait = PassWait::FixedTimer;
    let mut session = Session::new("all the same", Setup::plain(1), config, 4, Link::clean(ms(50)));
    session.net.drop_if(
        |leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && (3..6).contains(&d.dtus.first())),
    );
    let session = session.run();
    session.assert_complete();
    assert_eq!(session.engine().stats().dtus_per_pass, [20, 3]);
    assert_eq!(session.engine().stats().parity_sent, 0);
}

#[test]
fn what_cannot_be_decoded_is_sent_itself() {
    let mut session = each_loses_another(3, &Ownership { cannot_decode: true, ..Ownership::default() });
    session.assert_complete();
    let log = session.net.take_log();
    let parity = data(&log, 0).iter().filter(|(_, d)| d.kind == DataKind::Parity).count();
    assert_eq!(parity, 3, "every symbol is tried");
    let last: Vec<u32> =
        data(&log, 0).iter().filter(|(_, d)| d.pass == 5).map(|(_, d)| d.dtus.first()).collect();
    assert_eq!(last, [1, 2, 3, 4]);
}

#[test]
fn parity_completes_under_loss_and_sends_less() {
    let sent = |parity_symbols: u32, seed: u64| {
        let mut config = SenderConfig { parity_symbols, ..sender(100, 20, 20) };
        config.pass_wait = PassWait::FixedTimer;
        let mut session = Session::new("parity", Setup::plain(seed), config, 20, Link::clean(ms(50)));
        lose_data(&mut session.net, seed, 0.05);
        let session = session.run();
        session.assert_complete();
        session.engine().stats().dtus_per_pass.iter().sum::<u64>()
    };
    for seed in 0..10 {
        let (with, without) = (sent(10, seed), sent(0, seed));
        assert!(with < without, "seed {seed}: {with} with parity, {without} without");
    }
}

#[test]
fn who_may_know_nothing_of_parity_is_sent_none() {
    // One of twenty receivers implements the draft, and completes at some time, or leaves.
    let symbols = |draft: bool, leaves: bool| {
        let config = SenderConfig { parity_symbols: 200, ..sender(100, 20, 20) };
        let mut session = Session::empty("mixed", Setup::plain(1), config, Link::clean(ms(50)));
        for n in 0..20 {
            let secret = receiver(n).secret.filter(|_| !draft || n > 0);
            session.add(n, ReceiverConfig { secret, ..receiver(n) }, Ownership::default());
        }
        let first = session.clients[0].handle;
        if leaves {
            session.net.at(at(ms(700)), first, |engine: &mut Receiver, _| {
                engine.fail(farcast_mftp::message::cancel::QUIT_SYSTEM, None);
            });
        }
        lose_data(&mut session.net, 1, 0.3);
        let mut session = session.run();
        assert!(session.clients.iter().skip(usize::from(leaves)).all(|client| client.owner.is_complete()));
        let id = session.net.engine(first).id();
        let is_over = |event: &SenderEvent| match event {
            SenderEvent::Done { client, .. } | SenderEvent::Quit { client, .. } => *client == id,
            _ => false,
        };
        let over = session.when(is_over).expect("done, or gone");
        let parity = |(_, data): &&(Time, Data)| data.kind == DataKind::Parity;
        let sent = data(&session.net.take_log(), session.sender.index());
        let (before, after): (Vec<_>, Vec<_>) =
            sent.iter().filter(parity).partition(|(when, _)| *when < over);
        (before.len(), after.len())
    };
    let (before, _) = symbols(true, false);
    assert_eq!(before, 0);
    let (before, after) = symbols(true, true);
    assert!(before == 0 && after > 0, "once it has left, parity is of use to all who are there");
    let (before, _) = symbols(false, false);
    assert!(before > 0);
}

#[test]
fn over_a_long_link_parity_goes_ahead_of_being_asked_for() {
    // Sixteen receivers are a quarter of a second away, with 2.4 s of data. The result is the duration, the number of
    // DTUs sent, and the number of parity symbols.
    let run = |parity_ahead: bool, loss: f64, seed: u64| {
        let config = SenderConfig { parity_symbols: 200, parity_ahead, ..sender(300, 30, 16) };
        let mut session = Session::new("ahead", Setup::plain(seed), config, 16, Link::clean(ms(250)));
        lose_data(&mut session.net, seed, loss);
        let session = session.run();
        session.assert_complete();
        let time = session.when(|event| *event == SenderEvent::Delivered).expect("delivered");
        let stats = session.engine().stats();
        (time, stats.dtus_per_pass.iter().sum::<u64>(), stats.parity_sent)
    };
    let (mut with, mut without, mut faster) = (0, 0, 0);
    for seed in 0..20 {
        let (ahead, asked) = (run(true, 0.01, seed), run(false, 0.01, seed));
        // The symbols themselves take a part of the round trip that they save.
        faster += u32::from(ahead.0 + ms(350) < asked.0);
        (with, without) = (with + ahead.1, without + asked.1);
    }
    assert!(faster >= 15, "a round trip was saved in {faster} of 20 runs");
    assert!(with < without + without / 25, "{with} DTUs ahead, {without} when asked for");
    let (_, dtus, parity) = run(true, 0.0, 1);
    assert_eq!((dtus, parity), (300, 0), "nothing for who loses nothing");
}

#[test]
fn parity_where_nobody_chose_suits_the_block() {
    let symbols = |block_size: u32, dtu_size: u32, size: u64| {
        let mut config = sender(1, block_size, 1);
        (config.dtu_size, config.product.size) = (dtu_size, size);
        config.automatic_parity()
    };
    // The one-octet code holds 255; above that, a quarter of the DTUs, rounded up to a power of two.
    assert_eq!(
        [1, 132, 220, 221, 513, 2200].map(|block| symbols(block, 1432, u64::MAX)),
        [254, 123, 35, 64, 128, 1024]
    );
    // A product that is shorter than a block is the block.
    assert_eq!(symbols(4000, 1000, 9001), 245);
    // No parity that a receiver would refuse: odd symbols of the larger code, or a quarter of a gigabyte for coding.
    // None that would hold up sending.
    let none = [(2000, 1431), (2000, 65_000), (4000, 1432), (u32::MAX, 4)];
    assert_eq!(none.map(|(block, len)| symbols(block, len, u64::MAX)), [0; 4]);
}

#[test]
fn no_more_than_the_window_is_outstanding() {
    for (loss, seed) in [(0.0, 0), (0.0, 1), (0.1, 2), (0.1, 3), (0.2, 4), (0.2, 5)] {
        let config = SenderConfig { pace: Pace::Window { segments: 24, paced: false }, ..sender(200, 8, 3) };
        let link = Link::lossy(ms(100), loss);
        let mut session = Session::new("window", Setup::plain(seed), config, 3, link).run();
        session.assert_complete();
        let log = session.net.take_log();
        let mut most = 0;
        for (now, outstanding) in outstanding(&log, 3) {
            most = most.max(outstanding);
            assert!(outstanding <= 24, "{} {outstanding} at {now:?}", session.net.context());
        }
        assert_eq!(most, 24, "the window is used");
    }
}

/// Returns, after each departure of DATA, the number of DTUs that the slowest of `receivers` has not acknowledged. An
/// ACK or a NAK covers DATA up to its request. The numbers come from the log alone.
fn outstanding(log: &crate::common::MftpLog, receivers: usize) -> Vec<(Time, u64)> {
    let departed: Vec<Time> = data(log, 0).iter().map(|(at, _)| *at).collect();
    let mut requested: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut count = 0;
    for departure in log.departures.iter().filter(|d| d.from == 0) {
        match &departure.message.body {
            Body::Data(_) => count += 1,
            Body::StatusRequest(m) => _ = requested.entry((m.pass, m.blocks.last())).or_insert(count),
            _ => {}
        }
    }
    let acked = |host: usize, now: Time| {
        let mine = log.legs.iter().filter(|leg| leg.from == host && leg.to == 0 && leg.copies > 0);
        // Arrivals are 100 ms and a few nanoseconds after departures.
        let there = mine.filter(|leg| leg.at + ms(100) <= now);
        let serials = there.filter_map(|leg| match &leg.message.body {
            Body::Ack(m) => requested.get(&(m.pass, m.blocks.last())).copied(),
            Body::Done(_) => Some(u64::MAX),
            _ => None,
        });
        serials.max().unwrap_or(0)
    };
    let counts = departed.iter().zip(1..).map(|(&now, sent)| {
        let slowest = (1..=receivers).map(|host| acked(host, now)).min().unwrap_or(0);
        (now, u64::saturating_sub(sent, slowest))
    });
    counts.collect()
}

#[test]
fn passes_are_as_many_as_the_binomial_law_says() {
    // P(all of N receivers have all of K DTUs after m passes) = (1 - p^m)^(N K).
    let (receivers, dtus, p, sessions) = (10, 30, 0.1, 400);
    let mut counts = [0.0f64; 4];
    for seed in 0..sessions {
        let mut config = sender(dtus, 8, receivers);
        config.pass_wait = PassWait::FixedTimer;
        let mut session =
            Session::new("binomial", Setup::plain(seed), config, receivers as usize, Link::clean(ms(50)));
        lose_data(&mut session.net, seed, p);
        session.net.forget();
        let session = session.run();
        session.assert_complete();
        let passes = session.engine().stats().dtus_per_pass.len();
        counts[passes.clamp(2, 5) - 2] += 1.0;
    }
    let within = |m: i32| (1.0 - f64::powi(p, m)).powi((receivers * dtus).cast_signed());
    let shares = [within(2), within(3) - within(2), within(4) - within(3), 1.0 - within(4)];
    let chi_square: f64 = shares
        .iter()
        .zip(counts)
        .map(|(share, count)| {
            let expected = share * sessions as f64;
            assert!(expected > 5.0, "the test needs five of each");
            (count - expected).powi(2) / expected
        })
        .sum();
    // Three degrees of freedom: one in a thousand sets of sessions lies above 16.27.
    assert!(chi_square < 16.27, "chi-square {chi_square:.2} of {counts:?}");
}

#[test]
fn dtus_of_each_pass_are_as_many_as_the_binomial_law_says() {
    // Pass m sends K (1 - (1 - p^(m-1))^N) DTUs on average.
    let (receivers, dtus, p, sessions) = (5, 60, 0.2, 300);
    let mut sums = [0.0f64; 3];
    for seed in 0..sessions {
        let mut config = sender(dtus, 16, receivers);
        config.pass_wait = PassWait::FixedTimer;
        let mut session =
            Session::new("shares", Setup::plain(seed), config, receivers as usize, Link::clean(ms(50)));
        lose_data(&mut session.net, seed, p);
        session.net.forget();
        let session = session.run();
        for (sum, &sent) in sums.iter_mut().zip(&session.engine().stats().dtus_per_pass[1..]) {
            *sum += sent as f64;
        }
    }
    for (pass, sum) in (2..).zip(sums) {
        let share = 1.0 - (1.0 - f64::powi(p, pass - 1)).powi(receivers.cast_signed());
        let trials = f64::from(dtus) * sessions as f64;
        // DTUs are lost independently, so the sum is binomial; 3.9 standard deviations leave one in 10,000.
        let tolerance = 3.9 * (trials * share * (1.0 - share)).sqrt();
        let expected = trials * share;
        assert!((sum - expected).abs() < tolerance, "pass {pass}: {sum} DTUs, {expected:.0} expected");
    }
}

#[test]
fn a_window_larger_than_the_product_waits_for_nothing() {
    let config = SenderConfig { pace: Pace::Window { segments: 1000, paced: false }, ..sender(100, 16, 2) };
    let mut session = Session::new("wide open", Setup::plain(1), config, 2, Link::clean(ms(100))).run();
    session.assert_complete();
    let log = session.net.take_log();
    let departed = data(&log, 0);
    assert!(departed.iter().all(|(at, _)| *at == departed[0].0), "all at one instant");
    let acks = sent(&log, 1, |body| matches!(body, Body::Ack(_)).then_some(()));
    assert!(acks.len() >= 6, "each request is acknowledged while something is missing");
    assert!(log.departures.iter().all(|d| d.message.wire_len(0) <= 1472));
}

/// Creates a receiver of a product with blocks of 64 DTUs of 44 bytes, with the maximum number of parity symbols.
fn takes_parity(memory: u64) -> Receiver {
    let mut engine =
        Receiver::new(ReceiverConfig { parity_memory_bytes: memory, ..receiver(0) }).expect("valid");
    let announce = Announce {
        turn: None,
        server: server(),
        response: server(),
        private: group().ip(),
        announce_duration_s: 10,
        options: AnnounceOptions {
            model: GroupModel::OpenUnlimited,
            stay_in_group: false,
            restart: false,
            overwrite: true,
            late_entry: true,
        },
        application: "farcast".into(),
        block_size: 64,
        data_rate_bps: 1000,
        product_name: "file".into(),
        transfer_duration_s: 3600,
        dtu_size: 44,
        product_size: 44 << 24,
        error_threshold: None,
        user_data: None,
        hosts: None,
        host_set: None,
        backoff_window_ms: None,
        product_id: Some([7; 32]),
        parity_symbols: Some(32_768),
        commitment: None,
    };
    let message = Message::new(1, Body::Announce(announce.into()));
    engine.handle(Time::ZERO, &Arrival::new(server(), group()), &message).expect("announced");
    engine.accept(Time::ZERO, Bitmap::new(1 << 24));
    engine
}

fn hear_data(engine: &mut Receiver, block: u32, kind: DataKind, dtus: Run) -> Result<(), Reject> {
    let data = Data { pass: 1, block, kind, dtus, len: 44, last_len: 44 };
    let heard =
        engine.handle(Time::ZERO, &Arrival::new(server(), group()), &Message::new(1, Body::Data(data)));
    while engine.poll_event().is_some() {}
    heard
}

#[test]
fn parity_takes_no_more_memory_than_it_may() {
    // A block needs a bitmap of 4 KiB, and room for the 64 symbols that it may need.
    let mut engine = takes_parity(1 << 20);
    let kept = |engine: &mut Receiver, block| {
        hear_data(engine, block, DataKind::Parity, Run::one(block % 7)).is_ok()
    };
    let first = (0..1000).take_while(|block| kept(&mut engine, *block)).count();
    assert!((60..=80).contains(&first), "{first}");
    // Completing a block frees all of its memory.
    for block in 0..first as u32 {
        hear_data(&mut engine, block, DataKind::Source, Run::new(0, 64).expect("run")).expect("new");
    }
    // A block that was begun is completed, however little room there is.
    let again = (1000..3000).take_while(|block| kept(&mut engine, *block)).count();
    assert_eq!(again, first);
    let mut symbols = (0..64).filter(|symbol| *symbol != 1000 % 7);
    assert!(symbols.all(|symbol| hear_data(&mut engine, 1000, DataKind::Parity, Run::one(symbol)).is_ok()));
    // Many symbols of one block share their bitmap.
    let mut engine = takes_parity(1 << 20);
    let symbols =
        (0..9000).take_while(|&symbol| hear_data(&mut engine, 0, DataKind::Parity, Run::one(symbol)).is_ok());
    assert_eq!(symbols.count(), 64, "with as many as are missing the block is rebuilt");
}

#[test]
fn what_was_there_and_is_lost_is_asked_for_again() {
    for parity_symbols in [0, 4] {
        let mut config = SenderConfig { parity_symbols, ..sender(60, 20, 2) };
        config.pass_wait = PassWait::FixedTimer;
        let mut session = Session::empty("lost", Setup::plain(1), config, Link::clean(ms(50)));
        let losses = [Run::new(5, 3), Run::new(0, 60), Run::new(15, 10)].map(|run| run.expect("run"));
        let owner = Ownership { loses: Rc::new(RefCell::new(losses.to_vec())), ..Ownership::default() };
        session.add(0, receiver(0), owner.clone());
        session.add(1, receiver(1), Ownership::default());
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert!(owner.is_complete(), "{:?}", owner.outcomes());
        assert_eq!(owner.loses.borrow().len(), 0);
        let told = owner.told.borrow();
        let completions = told.iter().filter(|(_, event)| *event == ReceiverEvent::Complete).count();
        assert_eq!(completions, 4, "once for each loss, and then for good");
        if parity_symbols == 0 {
            assert_eq!(session.engine().stats().dtus_per_pass[1..].iter().sum::<u64>(), 10 + 60 + 3);
        }
    }
}
