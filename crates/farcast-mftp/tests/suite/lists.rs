//! Lists of many invited receivers, in short and as in the draft.

use std::collections::BTreeSet;

use farcast_core::{BitRate, Message as _, Span, Time};
use farcast_mftp::message::{Announce, HostState};
use farcast_mftp::{
    Body, ClientId, Group, Invited, MemberState, Message, ReceiverEvent, SenderConfig, SenderEvent,
    SenderOutcome,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, ms, receiver, secs, sent};
use crate::turns::by_turns;

const PRESENT: usize = 100;
/// Time of the first pass.
const PASS: Span = secs(13);

/// Returns a sender that has listed `present` receivers and `absent` others, whose ids come first.
fn many(present: usize, absent: u32) -> SenderConfig {
    let ids = (1..=absent).map(ClientId).chain((0..present).map(|n| receiver(n).id));
    let invited = ids.map(|id| Invited { label: id.to_string(), id });
    let return_rate = BitRate::from_bps(40_000);
    let brief_announce_interval = ms(500);
    SenderConfig { return_rate, brief_announce_interval, ..by_turns(Group::Closed(invited.collect())) }
}

/// Returns a session of `present` receivers, the last `older` of which know nothing of sets.
fn session(config: SenderConfig, present: usize, older: usize, link: Link) -> Session {
    let mut session = Session::empty("lists", Setup::plain(11), config, link);
    session.net.corrupt_with(|message, _| Some(without_set(message)));
    for n in 0..present {
        let client = session.add(n, receiver(n), Ownership::default());
        if n >= present - older {
            session.net.link(session.sender, client.handle, Link { corruption: 1.0, ..link });
        }
    }
    session
}

/// Returns a message as a receiver reads it that skips the set.
fn without_set(message: &Message) -> Message {
    let mut message = message.clone();
    if let Body::Announce(announce) = &mut message.body {
        announce.host_set = None;
    }
    message
}

/// Returns the announcements of a session with their times.
fn announcements(session: &mut Session) -> Vec<(Time, Announce)> {
    let log = session.net.take_log();
    assert!(log.departures.iter().all(|departure| departure.message.wire_len(0) <= 1472));
    sent(&log, 0, |body| if let Body::Announce(m) = body { Some((**m).clone()) } else { None })
}

/// Returns the number of announcements with a set in the first pass of a session.
fn sets_of(present: usize, listed: usize) -> usize {
    let mut session = session(many(listed, 0), present, 0, Link::lossy(ms(100), 0.01)).run();
    session.assert_complete();
    let early = announcements(&mut session).into_iter().filter(|(when, _)| *when < at(PASS));
    early.filter(|(_, m)| m.host_set.is_some()).count()
}

/// Returns the time at which the owner of the `n`th receiver was offered the product.
fn offered(session: &Session, n: usize) -> Time {
    let told = session.clients[n].owner.told.borrow();
    let offer = told.iter().find(|(_, event)| matches!(event, ReceiverEvent::Offered(_)));
    offer.expect("it is invited").0
}

#[test]
fn the_first_announcements_name_everyone_in_short() {
    let mut session = session(many(PRESENT, 900), PRESENT, 0, Link::lossy(ms(100), 0.01)).run();
    session.assert_complete();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    let all = announcements(&mut session);
    let early = all.iter().filter(|(when, _)| *when < at(ms(50)));
    let mut named = [0; 2];
    for (_, m) in early {
        named[0] += m.host_set.as_ref().map_or(0, |set| set.hosts().count());
        named[1] += m.hosts.as_ref().map_or(0, Vec::len);
        assert!(m.host_set.iter().all(|set| set.standing() == HostState::Pending));
    }
    assert_eq!(named[0], 3 * (PRESENT + 900), "three times, before data");
    assert!(named[1] < PRESENT + 900, "{named:?}");
    // The draft's list has named everyone after a while, and takes little of the rate.
    let listed = |until: Time| {
        let before = all.iter().take_while(move |(when, _)| *when < until);
        before.flat_map(|(_, m)| m.hosts.iter().flatten()).map(|(host, _)| *host).collect::<Vec<_>>()
    };
    assert!(listed(at(PASS)).len() < 8 * (PRESENT + 900), "{}", listed(at(PASS)).len());
    let everyone: BTreeSet<ClientId> = listed(at(PASS)).into_iter().collect();
    assert_eq!(everyone.len(), PRESENT + 900, "within the first pass");
}

#[test]
fn few_are_listed_as_in_the_draft() {
    for (present, short) in [(64, false), (65, true)] {
        let mut session = session(many(present, 0), present, 0, Link::clean(ms(100))).run();
        session.assert_complete();
        let with_set = announcements(&mut session).iter().any(|(_, m)| m.host_set.is_some());
        assert_eq!(with_set, short, "{present}");
    }
}

#[test]
fn older_receivers_find_themselves_in_the_drafts_list() {
    let older = 10;
    let session = session(many(PRESENT, 400), PRESENT, older, Link::lossy(ms(100), 0.01)).run();
    session.assert_complete();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
    let done = session.engine().members().filter(|(_, member)| member.state == MemberState::Done).count();
    assert_eq!(done, PRESENT, "all are confirmed");
    for n in 0..PRESENT - older {
        assert!(offered(&session, n) < at(secs(2)), "{n}: {:?}", offered(&session, n));
    }
    // A part of the list leaves every half second.
    let late: Vec<Time> = (PRESENT - older..PRESENT).map(|n| offered(&session, n)).collect();
    assert!(late.iter().all(|&when| when < at(secs(6))), "{late:?}");
    assert!(late.iter().any(|&when| when > at(ms(400))), "the list left in parts: {late:?}");
}

#[test]
fn latecomers_soon_find_themselves_invited() {
    let appears = secs(6);
    let mut session = session(many(PRESENT, 900), PRESENT, 0, Link::lossy(ms(100), 0.01));
    for n in PRESENT / 2..PRESENT {
        session.net.appear(at(appears), session.clients[n].handle);
    }
    let session = session.run();
    session.assert_complete();
    let done = session.count(|event| matches!(event, SenderEvent::Done { .. }));
    assert_eq!((session.outcome(), done), (Some(SenderOutcome::Finished), PRESENT));
    let waits: Vec<Span> = (PRESENT / 2..PRESENT).map(|n| offered(&session, n).since(at(appears))).collect();
    let mean = waits.iter().fold(Span::ZERO, |sum, &wait| sum + wait) / waits.len() as u64;
    // The draft's list takes 3.5 s to name everyone.
    assert!(mean < ms(1_000) && waits.iter().all(|&wait| wait < secs(3)), "{waits:?}");
}

#[test]
fn sets_leave_more_often_if_many_are_silent() {
    let (all, half) = (sets_of(PRESENT, PRESENT), sets_of(PRESENT / 2, PRESENT));
    assert!(2 * half >= 3 * all, "{half} sets if half are absent, {all} if nobody is");
}

#[test]
fn receivers_that_are_switched_on_after_the_sender_soon_find_themselves_invited() {
    // The draft's whole list would leave every 7 s.
    let config =
        SenderConfig { announce_interval: secs(7), brief_announce_interval: ms(200), ..many(PRESENT, 0) };
    let mut session = session(config, PRESENT, 0, Link::lossy(ms(100), 0.01));
    for n in 0..PRESENT {
        session.net.appear(at(secs(1)), session.clients[n].handle);
    }
    let session = session.run();
    session.assert_complete();
    let last = (0..PRESENT).map(|n| offered(&session, n)).max().expect("some");
    assert!(last < at(secs(4)), "{last:?}");
}
