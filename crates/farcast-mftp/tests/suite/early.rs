//! Early data behind the announcement.

use farcast_core::{Span, Time};
use farcast_mftp::{Body, Group, Invited, SenderConfig, SenderEvent, SenderOutcome, Start};
use farcast_testkit::{Link, Setup};

use crate::common::{Comparison, Ownership, Session, at, data, ms, rate, receiver, secs, sender};

/// Returns a closed group of `receivers` that is waited for, 250 ms away.
fn closed(receivers: usize, early: Span) -> SenderConfig {
    let invited = (0..receivers).map(|n| {
        let id = receiver(n).id;
        Invited { label: id.to_string(), id }
    });
    let start = Start::default();
    let group = Group::Closed(invited.collect());
    SenderConfig { group, start, early_data: early, pace: rate(4000), ..sender(600, 60, 0) }
}

fn last_done(session: &Session) -> Time {
    let told = session.told.borrow();
    let dones = told.iter().filter(|(_, event)| matches!(event, SenderEvent::Done { .. }));
    dones.map(|&(time, _)| time).next_back().expect("somebody is done")
}

#[test]
fn it_saves_the_round_trip_of_registration() {
    let run = |early| Session::new("early", Setup::plain(1), closed(3, early), 3, Link::clean(ms(250))).run();
    let (mut with, without) = (run(secs(2)), run(Span::ZERO));
    for session in [&with, &without] {
        session.assert_complete();
    }
    assert!(
        last_done(&with) + ms(400) < last_done(&without),
        "{:?} {:?}",
        last_done(&with),
        last_done(&without)
    );
    let begun = with.when(|event| matches!(event, SenderEvent::Started { .. })).expect("it began");
    let log = with.net.take_log();
    assert_eq!(data(&log, 0).len(), 600, "each DTU once");
    // The blocks that have left are asked about at once, and not only at the end.
    let asked = |body: &Body| match body {
        Body::StatusRequest(request) => Some(request.blocks),
        _ => None,
    };
    let (time, blocks) = crate::common::sent(&log, 0, asked)[0];
    assert!(time < begun + ms(10) && blocks.first() == 0 && blocks.count() >= 2, "{time:?} {blocks:?}");
}

#[test]
fn what_is_lost_before_anybody_is_a_member_comes_again() {
    for seed in 0..40 {
        let mut config = closed(4, secs(2));
        config.parity_symbols = if seed % 2 == 0 { 0 } else { 60 };
        config.parity_ahead = seed % 4 == 1;
        let session = Session::new("lossy", Setup::plain(seed), config, 4, Link::lossy(ms(250), 0.1)).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
        assert!(session.clients.iter().all(|client| client.owner.is_complete()), "seed {seed}");
    }
}

#[test]
fn a_lost_announcement_loses_nothing_behind_it() {
    for lost in 0..3 {
        let mut session =
            Session::new("announced", Setup::plain(1), closed(3, secs(2)), 3, Link::clean(ms(250)));
        let (unlucky, mut heard) = (session.clients[0].handle.index(), 0);
        session.net.drop_if(move |leg| {
            let first = leg.to == unlucky && matches!(leg.message.body, Body::Announce(_));
            heard += u32::from(first);
            first && heard <= lost
        });
        let mut session = session.run();
        session.assert_complete();
        let log = session.net.take_log();
        assert_eq!(data(&log, 0).len(), 600, "each DTU once, although {lost} announcements were lost");
        let registered = |body: &Body| matches!(body, Body::Registration(_)).then_some(());
        for client in &session.clients {
            let registrations = crate::common::sent(&log, client.handle.index(), registered);
            // The announcement a tenth of a second later is answered too.
            assert_eq!(registrations.len(), 2, "{lost} lost");
        }
    }
}

#[test]
fn where_announcements_take_long_there_is_one() {
    // The 50 ms of its preparation time are 1.6 kB.
    let config = SenderConfig { pace: rate(256), ..closed(3, secs(2)) };
    let mut session = Session::new("slow", Setup::plain(1), config, 3, Link::clean(ms(250))).run();
    session.assert_complete();
    let announced = |body: &Body| matches!(body, Body::Announce(_)).then_some(());
    let announced = crate::common::sent(&session.net.take_log(), 0, announced);
    assert_eq!(announced.iter().filter(|(time, ())| *time == Time::ZERO).count(), 1);
}

#[test]
fn where_nobody_is_it_ends_soon() {
    let mut session = Session::empty("nobody", Setup::plain(1), closed(1, ms(400)), Link::clean(ms(250)));
    let late = session.add(0, receiver(0), Ownership::default());
    session.net.appear(at(secs(10)), late.handle);
    let mut session = session.run();
    assert!(late.owner.is_complete());
    let sent = data(&session.net.take_log(), 0);
    let early: Vec<Time> = sent.iter().map(|&(time, _)| time).filter(|&time| time < at(secs(9))).collect();
    assert!(early.len() > 100 && early.iter().all(|&time| time < at(ms(600))), "{}", early.len());
    assert_eq!(sent.len(), 600 + early.len(), "what was sent to nobody is sent again");
}

#[test]
fn where_all_hold_something_they_are_asked_first_after_all() {
    let mut session = Session::empty("held", Setup::plain(1), closed(2, secs(2)), Link::clean(ms(250)));
    for n in 0..2 {
        let owner = Ownership { lacks: Some(vec![590, 591]), ..Ownership::default() };
        session.add(n, receiver(n), owner);
    }
    let mut session = session.run();
    assert!(session.clients.iter().all(|client| client.owner.is_complete()));
    let log = session.net.take_log();
    let (first, last) = (data(&log, 0)[0].0, data(&log, 0).last().expect("data").0);
    let early = data(&log, 0).iter().filter(|(time, _)| *time < at(ms(501))).count();
    assert!(first < at(ms(60)) && last > at(secs(1)), "{first:?} {last:?}");
    assert_eq!(data(&log, 0).len(), early + 2, "and only what is missing follows");
}

#[test]
fn what_comes_before_the_first_request_ends_no_comparison() {
    let config = SenderConfig { list_segments: 2, ..closed(2, secs(2)) };
    let mut session = Session::empty("compares", Setup::plain(1), config, Link::clean(ms(250)));
    for n in 0..2 {
        let compares = Some(Comparison { list: 2, lacks: vec![590, 591], slow: false });
        session.add(n, receiver(n), Ownership { compares, ..Ownership::default() });
    }
    let mut session = session.run();
    assert!(session.clients.iter().all(|client| client.owner.is_complete()));
    let log = session.net.take_log();
    let early = data(&log, 0).iter().filter(|(time, _)| *time < at(ms(501))).count();
    assert_eq!(data(&log, 0).len(), early + 2 + 2, "the list and what is missing follow");
}

#[test]
fn on_a_group_in_use_it_stops_at_once() {
    let mut session = Session::empty("in use", Setup::plain(1), closed(1, secs(5)), Link::clean(ms(20)));
    let other = SenderConfig { server: "192.0.2.9:40000".parse().expect("address"), ..closed(1, secs(9)) };
    let other = SenderConfig { response: other.server, transmission: 9, ..other };
    crate::common::add_sender(&mut session.net, other, at(ms(500)));
    let mut session = session.run();
    let log = session.net.take_log();
    assert!(data(&log, 0).len() > 500, "who was first goes on");
    assert!(data(&log, 1).is_empty(), "the other hears it before its own would begin");
}

#[test]
fn a_short_product_is_there_before_its_receivers_are_known() {
    let config = SenderConfig { early_data: secs(2), ..closed(2, secs(2)) };
    let mut product = config.product.clone();
    product.size = 20_000;
    let mut session =
        Session::new("short", Setup::plain(1), SenderConfig { product, ..config }, 2, Link::clean(ms(250)))
            .run();
    session.assert_complete();
    assert!(last_done(&session) < at(ms(1_100)), "{:?}", last_done(&session));
    let log = session.net.take_log();
    let requests = log.departures.iter().filter(|d| matches!(d.message.body, Body::StatusRequest(_)));
    assert!(requests.count() <= 3);
}
