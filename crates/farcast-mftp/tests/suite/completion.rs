//! All receivers complete the product, whatever the links do (rules 1 to 4).

use farcast_core::Message as _;
use farcast_mftp::{Body, Group, Invited, PassWait, Sender, SenderConfig, SenderEvent};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, data, duration, ms, product, receiver, secs, sender, sent};

fn completes(name: &str, seeds: u64, receivers: u32, link: Link) {
    for wait in [PassWait::Draft, PassWait::FixedTimer] {
        for seed in 0..seeds {
            // The count is so high that chance does not make a receiver look silent: at 40 % loss, 0.64^30 is 10^-6.
            let status_retry_count = 30;
            let config = SenderConfig { pass_wait: wait, status_retry_count, ..sender(100, 16, receivers) };
            Session::new(name, Setup::plain(seed), config, receivers as usize, link).run().assert_complete();
        }
    }
}

#[test]
fn under_loss_in_both_directions() {
    completes("loss 1 %", 20, 3, Link::lossy(ms(250), 0.01));
    completes("loss 20 %", 20, 3, Link::lossy(ms(250), 0.2));
    completes("loss 20 %, twenty", 5, 20, Link::lossy(ms(250), 0.2));
    completes("loss 40 %", 10, 2, Link::lossy(ms(250), 0.4));
}

#[test]
fn under_duplication() {
    completes("duplication", 10, 3, Link { duplication: 0.5, ..Link::lossy(ms(250), 0.05) });
}

#[test]
fn under_reordering() {
    completes("reordering", 10, 3, Link { jitter: ms(100), ..Link::lossy(ms(250), 0.05) });
}

#[test]
fn under_corruption() {
    completes("corruption", 20, 3, Link { corruption: 0.1, ..Link::clean(ms(250)) });
}

#[test]
fn under_all_of_it() {
    let link = Link { corruption: 0.03, duplication: 0.1, jitter: ms(60), ..Link::lossy(ms(250), 0.1) };
    completes("all of it", 20, 5, link);
}

#[test]
fn a_product_of_one_dtu() {
    for size in [1, 999, 1000] {
        let config = SenderConfig { product: product(size), ..sender(1, 16, 2) };
        let link = Link::clean(ms(50));
        let mut session = Session::new("one DTU", Setup::plain(1), config, 2, link).run();
        session.assert_complete();
        let log = session.net.take_log();
        let lens: Vec<_> = data(&log, 0).iter().map(|(_, d)| (d.block, d.dtus.first(), d.last_len)).collect();
        assert_eq!(lens, [(0, 0, size as u16)], "sent once, as long as it is");
    }
}

#[test]
fn a_short_last_block_and_a_short_last_dtu() {
    let config = SenderConfig { product: product(40_123), ..sender(41, 16, 2) };
    let link = Link::lossy(ms(50), 0.3);
    let mut session = Session::new("short end", Setup::plain(1), config, 2, link).run();
    session.assert_complete();
    for (_, d) in data(&session.net.take_log(), 0) {
        let last = d.block == 2 && d.dtus.last() == 8;
        assert!(d.block < 2 || d.dtus.last() <= 8, "{d:?} lies behind the product's end");
        assert_eq!(d.last_len, if last { 123 } else { 1000 }, "{d:?}");
    }
}

#[test]
fn a_small_file_takes_two_round_trips() {
    let link = Link::clean(ms(250));
    let mut session = Session::new("two round trips", Setup::plain(1), sender(4, 16, 1), 1, link).run();
    session.assert_complete();
    let client = session.clients[0].handle;
    let round_trip = session.net.delay(session.sender, client) + session.net.delay(client, session.sender);
    let log = session.net.take_log();
    let mut announces = log.departures.iter().filter(|d| matches!(d.message.body, Body::Announce(_)));
    let announce = duration(announces.nth(2).expect("confirmed").message.wire_len(0), 1000);
    // The first announcement is soon repeated, so the third goes with data. Announcement there and registration back;
    // the announcement and three DTUs leave; the last DTU there and Done back.
    // The token leaves before data, and is counted like everything that leaves.
    let grant = duration(52, 1000);
    let expected = round_trip + announce + grant + duration(1040, 1000) * 3 + round_trip;
    let delivered = session.when(|event| *event == SenderEvent::Delivered).expect("delivered");
    assert_eq!(delivered.since(farcast_core::Time::ZERO), expected);
    assert_eq!(expected.as_millis(), 1027);
}

#[test]
fn long_host_lists_are_split() {
    let receivers = 2000;
    let label = |n: usize| format!("ship-{n}");
    let mut config = sender(10, 16, receivers);
    config.group = Group::Closed((0..receivers as usize).map(|n| Invited::new(&label(n))).collect());
    let datagram = config.datagram;
    let mut session = Session::empty("2000 receivers", Setup::plain(1), config, Link::lossy(ms(50), 0.01));
    for n in 0..receivers as usize {
        session.add(n, receiver(n).named(&label(n)), Ownership::default());
    }
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    assert!(log.departures.iter().all(|d| d.message.wire_len(0) <= datagram));
    let first = sent(&log, 0, |body| match body {
        Body::Announce(announce) => announce.hosts.as_ref().map(Vec::len),
        _ => None,
    });
    let lists: Vec<_> = first.iter().take_while(|(at, _)| *at == first[0].0).map(|(_, n)| *n).collect();
    assert_eq!(lists.iter().sum::<usize>(), 2000, "{lists:?}");
    assert!(lists.len() >= 2000 * 8 / datagram, "{lists:?}");
    let lists = sent(&log, 0, |body| match body {
        Body::Completion(completion) => completion.hosts.as_ref().map(Vec::len),
        _ => None,
    });
    assert!(lists.len() > 5 && lists.iter().all(|&(_, n)| n <= (datagram - 16) / 4), "{lists:?}");
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Done { .. })), 2000);
}

#[test]
fn the_head_goes_twice_in_the_first_pass() {
    let config = SenderConfig { head_segments: 3, ..sender(20, 16, 1) };
    let mut session = Session::new("head", Setup::plain(1), config, 1, Link::clean(ms(10))).run();
    session.assert_complete();
    let sent: Vec<u32> =
        data(&session.net.take_log(), 0).iter().map(|(_, d)| d.block * 16 + d.dtus.first()).collect();
    let expected: Vec<u32> = (0..3).chain(0..20).collect();
    assert_eq!(sent, expected);
}

#[test]
fn verifying_takes_its_time() {
    // The receiver answers Complete only after 20 s: longer than all status rounds together.
    let link = Link::clean(ms(50));
    let mut session = Session::empty("slow disk", Setup::plain(1), sender(20, 16, 1), link);
    let slow = Ownership { slow: true, ..Ownership::default() };
    let client = session.add(0, receiver(0), slow);
    session.net.at(crate::common::at(secs(20)), client.handle, farcast_mftp::Receiver::verified);
    let session = session.run();
    session.assert_complete();
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Lost { .. })), 0);
    let engine: &Sender = session.engine();
    assert_eq!(engine.stats().dtus_per_pass, [20], "verifying needs no second pass");
}
