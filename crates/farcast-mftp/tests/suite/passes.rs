//! Contents and start of each pass, and times of requests and answers (rules 5 to 9).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use farcast_core::{Message as _, Span, Time};
use farcast_mftp::message::{Nak, StatusRequest};
use farcast_mftp::{Body, NakTiming, Pace, PassWait, SenderConfig, SenderEvent, StatusRetry};
use farcast_testkit::{Cut, Link, Setup, Wake};

use crate::common::{
    MftpLog, OVERHEAD, Session, data, duration, lose_data, ms, rate, response_group, secs, sender, sent,
};

/// Returns the DTUs that each pass sent, counted through the product, in order of sending.
fn passes(log: &MftpLog, block_size: u32) -> Vec<Vec<u32>> {
    let mut passes = Vec::new();
    for (_, d) in data(log, 0) {
        passes.resize_with(passes.len().max(d.pass as usize), Vec::new);
        passes[d.pass as usize - 1].push(d.block * block_size + d.dtus.first());
    }
    passes
}

/// Returns the DTUs that at least one of `receivers` lacks after `pass`, according to the network.
fn lacking(log: &MftpLog, receivers: usize, dtus: u32, block_size: u32, pass: u32) -> BTreeSet<u32> {
    let mut lacking: Vec<BTreeSet<u32>> = vec![(0..dtus).collect(); receivers];
    for leg in &log.legs {
        if let Body::Data(d) = &leg.message.body
            && leg.copies > 0
            && d.pass <= pass
        {
            // The sender is host 0.
            lacking[leg.to - 1].remove(&(d.block * block_size + d.dtus.first()));
        }
    }
    lacking.into_iter().flatten().collect()
}

#[test]
fn a_pass_sends_the_union_of_what_was_lost() {
    for wait in [PassWait::Draft, PassWait::FixedTimer] {
        for seed in 0..20 {
            // The delays are far shorter than the wait, and one block is a pass, so no NAK is late.
            let mut config = SenderConfig { pass_wait: wait, ..sender(60, 60, 5) };
            if wait == PassWait::FixedTimer {
                config = SenderConfig { block_size: 16, ..config };
            }
            let block = config.block_size;
            let mut session = Session::new("union", Setup::plain(seed), config, 5, Link::clean(ms(20)));
            lose_data(&mut session.net, seed, 0.2);
            let mut session = session.run();
            session.assert_complete();
            let log = session.net.take_log();
            let sent = passes(&log, block);
            assert!(sent.len() > 1, "{} nothing was lost", session.net.context());
            for (before, sent) in (1..).zip(&sent[1..]) {
                let expected: Vec<u32> = lacking(&log, 5, 60, block, before).into_iter().collect();
                let context = format!("{} after pass {before}", session.net.context());
                if wait == PassWait::FixedTimer {
                    assert_eq!(*sent, expected, "{context}");
                } else {
                    // The first NAK begins the pass, so DTUs that only others lack come one pass later.
                    assert!(sent.iter().all(|dtu| expected.contains(dtu)), "{context}: {sent:?}");
                }
            }
        }
    }
}

#[test]
fn a_small_pass_is_sent_twice_where_that_is_set() {
    for twice in [false, true] {
        // 1 DTU takes 8.3 ms at 1 Mbit/s, an eighth of the round trip is 62 ms: up to 7 DTUs are a small pass.
        let config = SenderConfig { repeat_small_passes: twice, ..sender(60, 60, 1) };
        let mut session = Session::new("twice", Setup::plain(3), config, 1, Link::clean(ms(250)));
        lose_data(&mut session.net, 3, 0.05);
        let mut session = session.run();
        session.assert_complete();
        let sent = passes(&session.net.take_log(), 60);
        let repair: BTreeSet<u32> = sent[1].iter().copied().collect();
        assert!((1..=7).contains(&repair.len()), "{} lost {repair:?}", session.net.context());
        assert_eq!(sent[1].len(), repair.len() * if twice { 2 } else { 1 });
    }
}

#[test]
fn a_pass_that_grows_is_no_longer_small() {
    // The first NAK requests one DTU and begins the pass; the second, which is on its way, requests a block.
    let mut config = SenderConfig { repeat_small_passes: true, ..sender(60, 20, 1) };
    config.nak_timing = NakTiming::EndOfFirstPass;
    let mut session = Session::new("growing", Setup::plain(3), config, 1, Link::clean(ms(250)));
    session.net.drop_if(|leg| match &leg.message.body {
        Body::Data(d) => d.pass == 1 && (d.block == 1 || (d.block == 0 && d.dtus.first() == 7)),
        _ => false,
    });
    let mut session = session.run();
    session.assert_complete();
    let sent = passes(&session.net.take_log(), 20);
    let expected: Vec<u32> = [7, 7].into_iter().chain(20..40).collect();
    assert_eq!(sent[1], expected);
}

fn requests(log: &MftpLog) -> Vec<(Time, StatusRequest)> {
    sent(log, 0, |body| if let Body::StatusRequest(m) = body { Some(m.clone()) } else { None })
}

/// Returns the first departure of DATA in `pass`.
fn begin_of(log: &MftpLog, pass: u32) -> Time {
    data(log, 0).iter().find(|(_, d)| d.pass == pass).expect("that pass").0
}

/// Returns the end of the last status request of `pass`, after which nothing of the pass leaves.
fn end_of(log: &MftpLog, pass: u32) -> Time {
    let own = |d: &&farcast_testkit::Departure<_>| {
        let message: &farcast_mftp::Message = &d.message;
        matches!(&message.body, Body::StatusRequest(m) if m.pass == pass)
    };
    let last = log.departures.iter().find(|d| own(d) && d.at > begin_of_block_end(log, pass)).expect("asked");
    last.at + duration(last.message.wire_len(0), 1000)
}

/// Returns the last departure of DATA in `pass`.
fn begin_of_block_end(log: &MftpLog, pass: u32) -> Time {
    data(log, 0).iter().rfind(|(_, d)| d.pass == pass).expect("that pass").0
}

#[test]
fn the_fixed_timer_waits_after_every_pass() {
    for seed in 0..10 {
        let srt = ms(1234);
        let retry = StatusRetry::Fixed(srt);
        let config =
            SenderConfig { pass_wait: PassWait::FixedTimer, status_retry: retry, ..sender(60, 16, 3) };
        let mut session = Session::new("fixed timer", Setup::plain(seed), config, 3, Link::clean(ms(100)));
        lose_data(&mut session.net, seed, 0.2);
        let mut session = session.run();
        session.assert_complete();
        let log = session.net.take_log();
        let last = passes(&log, 16).len() as u32;
        assert!(last > 1);
        for pass in 2..=last {
            let since = begin_of(&log, pass).since(end_of(&log, pass - 1));
            assert_eq!(since, srt, "{} pass {pass}", session.net.context());
        }
    }
}

#[test]
fn the_drafts_next_pass_begins_at_once() {
    // NAKs of early blocks arrive before the pass ends.
    let mut session = Session::new("draft", Setup::plain(1), sender(60, 6, 3), 3, Link::clean(ms(20)));
    session.net.drop_if(|leg| matches!(&leg.message.body, Body::Data(d) if (d.pass, d.block) == (1, 2)));
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    assert_eq!(begin_of(&log, 2), end_of(&log, 1), "nothing is waited for");
    assert_eq!(passes(&log, 6)[1], (12..18).collect::<Vec<_>>());
}

#[test]
fn the_drafts_pass_begins_with_the_first_nak_if_nothing_is_known() {
    let mut session = Session::new("draft", Setup::plain(1), sender(60, 60, 3), 3, Link::clean(ms(120)));
    session.net.drop_if(|leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && leg.to == 2));
    let mut session = session.run();
    session.assert_complete();
    let client = session.clients[1].handle;
    let delay = session.net.delay(client, session.sender);
    let log = session.net.take_log();
    let naks = sent(&log, 2, |body| matches!(body, Body::Nak(_)).then_some(()));
    assert_eq!(begin_of(&log, 2), naks[0].0 + delay);
}

#[test]
fn nak_timing_decides_when_receivers_are_asked() {
    for (timing, asked) in [(NakTiming::EachBlock, vec![0, 1, 2, 3]), (NakTiming::EndOfFirstPass, vec![0, 0])]
    {
        let mut config = SenderConfig { nak_timing: timing, ..sender(60, 16, 2) };
        config.pass_wait = PassWait::FixedTimer;
        let mut session = Session::new("NAK timing", Setup::plain(1), config, 2, Link::clean(ms(20)));
        session
            .net
            .drop_if(|leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() == 3));
        let mut session = session.run();
        session.assert_complete();
        let log = session.net.take_log();
        let first: Vec<_> = requests(&log).into_iter().filter(|(_, m)| m.pass == 1).collect();
        let blocks: Vec<u32> = first.iter().map(|(_, m)| m.blocks.first()).collect();
        assert_eq!(blocks, asked, "{timing:?}");
        let whole = timing == NakTiming::EndOfFirstPass;
        assert!(first.iter().all(|(_, m)| (m.blocks.count() == 4) == whole), "{timing:?}");
        let second: Vec<_> = requests(&log).into_iter().filter(|(_, m)| m.pass == 2).collect();
        let blocks: Vec<u32> = second.iter().map(|(_, m)| m.blocks.first()).collect();
        assert_eq!(blocks, [0, 1, 2, 3], "later passes ask after each block");
        let early = data(&log, 0).iter().rfind(|(_, d)| d.pass == 1).expect("data").0;
        let naks = naks(&log, 1);
        assert_eq!(naks.iter().any(|(at, _)| *at < early), !whole, "{timing:?}");
    }
}

fn naks(log: &MftpLog, from: usize) -> Vec<(Time, Nak)> {
    sent(log, from, |body| if let Body::Nak(m) = body { Some(m.clone()) } else { None })
}

/// Returns a sender whose answers go to a group and are spread over a second.
fn spread(receivers: u32) -> SenderConfig {
    let mut config = SenderConfig { pass_wait: PassWait::FixedTimer, ..sender(60, 60, receivers) };
    config.response = SocketAddr::new(response_group(), 40000);
    (config.backoff_window, config.status_retry) = (secs(1), StatusRetry::Fixed(ms(1500)));
    config
}

#[test]
fn answers_spread_over_the_back_off_window() {
    let mut session = Session::new("spread", Setup::plain(1), spread(20), 20, Link::clean(ms(20)));
    // Each receiver lacks another DTU, so no NAKs are the same.
    session.net.drop_if(
        |leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() as usize == leg.to),
    );
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    let asked = requests(&log)[0].0;
    let mut waits: Vec<Span> = Vec::new();
    for client in &session.clients {
        let naks = naks(&log, client.handle.index());
        assert_eq!(naks.len(), 1, "{:?}", client.handle);
        waits.push(naks[0].0.since(asked + session.net.delay(session.sender, client.handle)));
    }
    waits.sort_unstable();
    assert!(waits[19] <= secs(1), "{waits:?}");
    // The probability that a quarter of the window has none of 20 uniform draws is 0.3 %, for one seed of these.
    for quarter in 0..4 {
        let range = ms(250 * quarter)..ms(250 * (quarter + 1));
        assert!(waits.iter().any(|wait| range.contains(wait)), "{range:?} {waits:?}");
    }
}

#[test]
fn equal_naks_are_suppressed() {
    let mut session = Session::new("suppression", Setup::plain(1), spread(20), 20, Link::clean(ms(20)));
    session
        .net
        .drop_if(|leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() == 7));
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    let said: Vec<_> = session.clients.iter().flat_map(|c| naks(&log, c.handle.index())).collect();
    let kept: u64 = session.clients.iter().map(|c| session.net.engine(c.handle).stats().suppressed).sum();
    assert_eq!(said.len() as u64 + kept, 20);
    // Only receivers whose time came before they could hear the first NAK send one: within 40 ms on the way.
    let first = said.iter().map(|(at, _)| *at).min().expect("one spoke");
    assert!(said.len() < 6 && said.iter().all(|(at, _)| at.since(first) <= ms(21)), "{said:?}");
}

#[test]
fn a_new_request_brings_held_back_answers_at_once() {
    // The second request, after the next block, comes long before the window of the first is over.
    let mut config = SenderConfig { block_size: 6, ..spread(1) };
    config.status_retry = StatusRetry::Fixed(secs(2));
    let mut session = Session::new("flush", Setup::plain(1), config, 1, Link::clean(ms(20)));
    session
        .net
        .drop_if(|leg| matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() == 2));
    let mut session = session.run();
    session.assert_complete();
    let log = session.net.take_log();
    let delay = session.net.delay(session.sender, session.clients[0].handle);
    let asked = requests(&log);
    for (block, pair) in asked.windows(2).enumerate().take(8) {
        let nak = naks(&log, 1).into_iter().find(|(_, nak)| nak.block == block as u32).expect("answered");
        assert!(nak.0 <= pair[1].0 + delay, "block {block}");
    }
}

#[test]
fn data_keeps_to_the_rate() {
    for (kbps, loss) in [(64, 0.0), (300, 0.1), (1000, 0.1), (1000, 0.3)] {
        // Tokens, and announcements that confirm them, leave out of turn and are charged at the next block.
        let config = SenderConfig { pace: rate(kbps), secret: None, ..sender(200, 16, 3) };
        let link = Link::lossy(ms(250), loss);
        let mut session = Session::new("rate", Setup::plain(2), config, 3, link).run();
        session.assert_complete();
        let log = session.net.take_log();
        let (first, last) = (begin_of(&log, 1), begin_of_block_end(&log, session.engine().pass().round));
        let own: Vec<_> =
            log.departures.into_iter().filter(|d| d.from == 0 && d.at >= first && d.at <= last).collect();
        let rate = farcast_core::BitRate::from_bps(kbps * 1000).expect("positive");
        farcast_testkit::laws::keeps_rate(&session.net.context(), &own, rate, OVERHEAD, secs(1));
    }
}

#[test]
fn a_late_driver_catches_up_by_the_credit_alone() {
    for seed in 0..5 {
        let setup = Setup { seed, cut: Cut::One, wake: Wake::Late(ms(200)) };
        let mut session = Session::new("late", setup, sender(200, 50, 1), 1, Link::clean(ms(250))).run();
        session.assert_complete();
        let log = session.net.take_log();
        let own: Vec<_> =
            log.departures.into_iter().filter(|d| matches!(d.message.body, Body::Data(_))).collect();
        // 1 Mbit/s over a second, plus the credit of 5 ms.
        let rate = farcast_core::BitRate::from_bps(1_005_000).expect("positive");
        farcast_testkit::laws::keeps_rate(&session.net.context(), &own, rate, OVERHEAD, secs(1));
        let gaps = own.windows(2).map(|pair| pair[1].at.since(pair[0].at));
        let short = gaps.filter(|gap| *gap < duration(1040, 1000).saturating_sub(ms(5))).count();
        assert_eq!(short, 0, "{} what passed unused is not made up for", session.net.context());
    }
}

/// Returns the maximum queue in octets at a link of `bps` that carries these departures, one datagram after the other.
fn most_waiting(departures: &[(Time, usize)], bps: u64) -> f64 {
    let (mut waiting, mut before, mut most) = (0.0_f64, Time::ZERO, 0.0_f64);
    for &(at, octets) in departures {
        waiting = (waiting - at.since(before).as_secs_f64() * bps as f64 / 8.0).max(0.0) + octets as f64;
        (before, most) = (at, most.max(waiting));
    }
    most
}

#[test]
fn a_driver_that_is_late_within_the_credit_keeps_the_rate_and_overruns_no_queue() {
    for (seed, credit) in [(0, 20), (1, 20), (2, 20), (3, 40), (4, 5), (5, 5)] {
        let (mut config, link) = (sender(400, 100, 1), Link::clean(ms(250)));
        let Pace::Rate { rate, overhead, granule, .. } = config.pace else { unreachable!() };
        config.pace = Pace::Rate { rate, overhead, granule, credit: ms(credit) };
        let setup = Setup { seed, cut: Cut::One, wake: Wake::Late(ms(20)) };
        let mut session = Session::new("late", setup, config, 1, link).run();
        session.assert_complete();
        let log = session.net.take_log();
        let (first, last) = (begin_of(&log, 1), begin_of_block_end(&log, 1));
        let own = log.departures.iter().filter(|d| d.from == 0 && d.at >= first && d.at <= last);
        let own: Vec<_> = own.map(|d| (d.at, d.message.wire_len(0) + OVERHEAD)).collect();
        assert!(own.len() > 400, "{}", session.net.context());
        // All but the last datagram, which may begin when these have been sent, at 1 Mbit/s.
        let exact = own[..own.len() - 1].iter().map(|(_, octets)| *octets as f64 * 8e-6).sum::<f64>();
        let took = last.since(first).as_secs_f64();
        if credit >= 20 {
            assert!((took - exact).abs() <= 0.02, "{} {took} s", session.net.context());
        } else {
            // Each wake-up, one per datagram, loses its lateness beyond 5 of up to 20 ms: 5.6 ms in the mean.
            assert!(took > exact + 1.0, "{} {took} s", session.net.context());
        }
        let most = 1e6 / 8.0 * 1e-3 * credit as f64 + own[0].1 as f64;
        // An announcement leaves out of turn, and its time is charged at the next block.
        let in_turn = log.departures.iter().filter(|d| !matches!(d.message.body, Body::Announce(_)));
        let in_turn = in_turn.filter(|d| d.from == 0 && d.at >= first && d.at <= last);
        let in_turn: Vec<_> = in_turn.map(|d| (d.at, d.message.wire_len(0) + OVERHEAD)).collect();
        let waited = most_waiting(&in_turn, 1_000_000);
        assert!(waited <= most + 1e-6, "{} {waited} octets waited", session.net.context());
    }
}

#[test]
fn a_pass_begins_as_soon_as_the_last_member_is_complete() {
    // The first receiver lacks a DTU, and answers before the second, which is farther away and lacks nothing.
    let config = SenderConfig { parity_symbols: 4, ..sender(20, 20, 2) };
    let mut session = Session::new("the last is complete", Setup::plain(1), config, 2, Link::clean(ms(20)));
    let (from, far) = (session.sender, session.clients[1].handle);
    session.net.link(from, far, Link::clean(ms(150)));
    session.net.link(far, from, Link::clean(ms(150)));
    session.net.drop_if(|leg| {
        leg.to == 1 && matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() == 3)
    });
    let mut session = session.run();
    session.assert_complete();
    let complete = session.when(|event| matches!(event, SenderEvent::Done { .. })).expect("the second is");
    let log = session.net.take_log();
    let again = data(&log, session.sender.index()).into_iter().find(|(_, data)| data.pass == 2);
    let (begins, _) = again.expect("the first receiver lacks something");
    assert!((complete..complete + ms(5)).contains(&begins), "{begins:?}, complete at {complete:?}");
}

#[test]
fn a_request_is_repeated_after_the_longest_registration() {
    // Three announcements leave before the first answer, so that none of them measures the round trip of 300 ms.
    let mut config = SenderConfig { announce_interval: ms(100), ..sender(20, 20, 2) };
    config.parity_symbols = 4;
    (config.status_retry, config.round_trip) = (StatusRetry::Measured, secs(1));
    let mut session = Session::new("repeated", Setup::plain(1), config, 2, Link::clean(ms(150)));
    let mut first = None;
    session.net.drop_if(move |leg| {
        let lacks = matches!(&leg.message.body, Body::Data(d) if d.pass == 1 && d.dtus.first() == 3);
        let asks = matches!(leg.message.body, Body::StatusRequest(_));
        lacks || (asks && leg.at < *first.get_or_insert(leg.at) + ms(100))
    });
    let mut session = session.run();
    session.assert_complete();
    let asks = |body: &Body| matches!(body, Body::StatusRequest(_)).then_some(());
    let log = session.net.take_log();
    let asked: Vec<Time> = sent(&log, 0, asks).into_iter().map(|(at, ())| at).collect();
    let again = asked.iter().find(|&&at| at > asked[0] + ms(100)).expect("the first was lost");
    assert!(again.since(asked[0]) < ms(600), "{:?}", again.since(asked[0]));
}
