//! Several objects, one after the other.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Time};
use farcast_delivery::SenderEngine as _;
use farcast_delivery::{Answer as Owner, Decline, ReceiverEngine as _};
use farcast_norm::message::{Answer, Flags, FromSender, Level};
use farcast_norm::{
    Body, Kind, Message, NodeId, Object, Reached, Receiver, ReceiverConfig, ReceiverEvent, SenderConfig,
    SenderEvent, SenderOutcome, Sync,
};
use farcast_testkit::{Host, Link, Setup, laws};

use crate::common::{
    Client, SEGMENT, Session, data, group, is_nack, ms, node, receiver, receiver_address, said, sender, sent,
    server,
};

/// Returns objects of these sizes in octets, named by their index.
fn list(sizes: &[u64], ackers: u32) -> SenderConfig {
    let object = |(at, &size): (usize, &u64)| Object {
        kind: if at % 2 == 0 { Kind::File } else { Kind::Data },
        size,
        info: format!("object {at}").into_bytes(),
        vouched: None,
    };
    SenderConfig { objects: sizes.iter().enumerate().map(object).collect(), ..sender(1, ackers) }
}

const SIZES: [u64; 7] = [20_000, 0, 1, 54_321, 1000, 999, 30_001];

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("object {at}")).collect()
}

/// Asserts that each receiver has all `count` objects with their names, and all their segments.
fn assert_named(session: &Session, count: usize) {
    session.assert_received(count);
    for client in &session.clients {
        let mut complete = client.complete_names();
        complete.sort_by_key(|name| name.strip_prefix("object ").and_then(|n| n.parse::<u32>().ok()));
        assert_eq!(complete, names(count), "{}", session.net.context());
    }
}

#[test]
fn all_of_them_arrive_under_their_names() {
    for seed in 0..10 {
        let session =
            Session::new("list", Setup::plain(seed), list(&SIZES, 3), 3, Link::lossy(ms(50), 0.1)).run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
        assert_named(&session, SIZES.len());
        let segments: u64 = SIZES.iter().map(|size| size.div_ceil(SEGMENT.into())).sum();
        assert!(session.clients.iter().all(|client| client.stored().len() as u64 <= segments));
    }
}

#[test]
fn without_losses_nothing_is_asked_for_and_each_is_complete_before_the_next_ends() {
    let mut session =
        Session::new("clean list", Setup::plain(1), list(&SIZES, 2), 2, Link::clean(ms(250))).run();
    assert_named(&session, SIZES.len());
    assert!(session.clients.iter().all(|client| client.complete_names() == names(SIZES.len())), "in order");
    let log = session.net.take_log();
    assert!(!log.departures.iter().any(|departure| is_nack(&departure.message)));
    let infos = sent(&log, 0, |m| matches!(said(m), Some(FromSender::Info(_))).then_some(()));
    assert_eq!((data(&log).len(), infos.len()), (20 + 1 + 55 + 1 + 1 + 31, SIZES.len()));
}

/// Returns the greatest number of objects that were under way at once.
fn most_at_once(client: &Client) -> i32 {
    let (mut open, mut most) = (0, 0);
    for (_, event) in client.told.borrow().iter() {
        open += match event {
            ReceiverEvent::Offered(_) => 1,
            ReceiverEvent::Ended(..) => -1,
            _ => 0,
        };
        most = most.max(open);
    }
    most
}

#[test]
fn many_small_ones_arrive_although_few_can_be_under_way() {
    let sizes = [1500; 200];
    for seed in 0..3 {
        let mut session =
            Session::new("many", Setup::plain(seed), list(&sizes, 2), 2, Link::lossy(ms(100), 0.05));
        // In a second without arrivals, more whole objects are missed than can be under way.
        session.net.drop_if(|leg| {
            let at = leg.at.since(Time::ZERO);
            leg.from == 0 && at > ms(500) && at < ms(1500)
        });
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
        assert_named(&session, sizes.len());
        assert!(session.clients.iter().all(|client| most_at_once(client) <= 32));
    }
}

#[test]
fn no_more_than_may_be_are_under_way_when_all_lack_something() {
    let config = SenderConfig { parity: 0, ..list(&[3000; 60], 1) };
    let mut session = Session::new("all lack", Setup::plain(1), config, 1, Link::clean(ms(50)));
    session.net.drop_if(|leg| {
        let data = leg.message.data();
        data.is_some_and(|data| data.symbols.first() == 2 && !data.flags.has(Flags::REPAIR))
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_named(&session, 60);
    assert_eq!(most_at_once(&session.clients[0]), 32);
}

#[test]
fn objects_of_which_everything_was_lost_are_asked_for_as_such() {
    let mut session = Session::new("unheard", Setup::plain(1), list(&SIZES, 1), 1, Link::clean(ms(100)));
    let object = |message: &Message| match said(message) {
        Some(FromSender::Data(data)) => Some(data.object),
        Some(FromSender::Info(info)) => Some(info.object),
        _ => None,
    };
    session.net.drop_if(move |leg| {
        leg.at < Time::ZERO + ms(900) && matches!(object(&leg.message), Some(0..=2 | 4..=6))
    });
    let mut session = session.run();
    assert_named(&session, SIZES.len());
    let log = session.net.take_log();
    let asked = sent(&log, 1, |message| match &message.body {
        Body::Receiver(said) => match &said.answer {
            Answer::Nack(requests) => Some(requests.clone()),
            _ => None,
        },
        Body::Sender(..) => None,
    });
    let first = &asked[0].1[0];
    assert_eq!(first.level, Level::OBJECT);
    assert_eq!(first.points.iter().map(|point| point.object).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn content_that_comes_before_what_is_said_of_it_is_kept() {
    for seed in 0..5 {
        let mut session = Session::new("late", Setup::plain(seed), list(&SIZES, 3), 3, Link::clean(ms(100)));
        session.net.drop_if(|leg| {
            let first = |at: Time| at < Time::ZERO + ms(1200);
            first(leg.at) && matches!(said(&leg.message), Some(FromSender::Info(info)) if info.object != 1)
        });
        let mut session = session.run();
        assert_named(&session, SIZES.len());
        let log = session.net.take_log();
        assert_eq!(data(&log).len(), 20 + 1 + 55 + 1 + 1 + 31, "no segment twice");
        let told = session.clients[0].told.borrow();
        let named = told.iter().filter(|(_, event)| matches!(event, ReceiverEvent::Named(_))).count();
        assert_eq!(named, SIZES.len() - 1);
    }
}

#[test]
fn what_nothing_is_said_of_is_called_by_its_numbers() {
    let mut config = list(&[5000, 0, 7], 1);
    config.objects.iter_mut().for_each(|object| object.info.clear());
    let session = Session::new("nameless", Setup::plain(1), config, 1, Link::clean(ms(50))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    let mut complete = session.clients[0].complete_names();
    complete.sort();
    // The INFO of an object that has nothing else is empty.
    assert_eq!(complete, ["", "norm-1-1-0", "norm-1-1-2"]);
}

#[test]
fn who_comes_late_gets_all_or_what_comes_then() {
    for (sync, expected) in [(Sync::All, 7), (Sync::Current, 4)] {
        let mut session = Session::empty("late", Setup::plain(3), list(&SIZES, 0), Link::clean(ms(100)));
        session.add(0, ReceiverConfig { sync, ..receiver(0) });
        // Object 3 is under way: each object takes 75 segments of 8 ms.
        session.net.drop_if(|leg| leg.from == 0 && leg.at < Time::ZERO + ms(400));
        let session = session.run();
        let complete = session.clients[0].complete_names();
        assert_eq!(complete.len(), expected, "{sync:?}: {complete:?}");
        assert!(complete.contains(&"object 3".into()), "from its beginning");
    }
}

#[test]
fn who_hears_nothing_but_the_end_asks_for_everything() {
    let mut session = Session::new("end", Setup::plain(1), list(&SIZES, 1), 1, Link::clean(ms(100)));
    session.net.drop_if(|leg| leg.from == 0 && leg.at < Time::ZERO + ms(1500));
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_named(&session, SIZES.len());
}

#[test]
fn watermarks_tell_how_far_each_receiver_has_come() {
    let config = SenderConfig { watermarks: true, grtt: ms(100), ..list(&[50_000; 12], 2) };
    let session = Session::new("marks", Setup::plain(5), config, 2, Link::lossy(ms(20), 0.002)).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_named(&session, 12);
    let told = session.told.borrow();
    for n in 0..2 {
        let reached: Vec<(Time, u32)> = told
            .iter()
            .filter_map(|(at, event)| match event {
                SenderEvent::Own(Reached { node: who, object }) if *who == node(n) => {
                    Some((*at, object.get()))
                }
                _ => None,
            })
            .collect();
        assert!(reached.len() >= 4 && reached.is_sorted(), "{reached:?}");
        let client = session.clients[n as usize].told.borrow();
        for (at, object) in reached {
            let complete = client
                .iter()
                .filter(|(then, event)| matches!(event, ReceiverEvent::Ended(..)) && *then <= at);
            assert!(complete.count() > object as usize, "only what is there");
        }
    }
}

#[test]
fn an_object_that_its_owner_did_not_take_is_not_acknowledged() {
    let mut session = Session::new("declined", Setup::plain(1), list(&[5000; 3], 1), 1, Link::clean(ms(50)));
    let client = session.clients[0].handle;
    session.net.at(Time::ZERO + ms(120), client, |engine: &mut Receiver, _| {
        engine.decline(farcast_delivery::ObjectId::new(1));
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    assert_eq!(session.clients[0].complete_names(), ["object 0", "object 2"]);
}

#[test]
fn several_senders_are_received_at_once() {
    use farcast_norm::Sender;
    use farcast_testkit::Host;

    let mut session =
        Session::new("two", Setup::plain(2), list(&[40_000; 2], 2), 2, Link::lossy(ms(50), 0.05));
    let other = "192.0.2.2:40000".parse().expect("an address");
    let config = SenderConfig { node: NodeId(99), source: other, ..list(&[30_000; 2], 2) };
    let second = session.net.add(
        other,
        &[group().ip()],
        Host::new(Sender::new(config).expect("valid"), |_: &mut Sender, _, _| {}),
    );
    session.net.at(Time::ZERO + ms(100), second, |engine: &mut Sender, now| engine.open(now));
    let session = session.run();
    for client in &session.clients {
        assert_eq!(client.complete(), 4, "{}", session.net.context());
    }
}

#[test]
fn the_laws_hold() {
    for (unicast, loss, watermarks) in [(false, 0.1, false), (true, 0.05, true), (false, 0.3, true)] {
        let build = |setup: Setup| {
            let config = SenderConfig { watermarks, grtt: ms(300), ..list(&SIZES, 3) };
            let name = format!("list {unicast} {loss} {watermarks}");
            let mut session = Session::empty(&name, setup, config, Link::lossy(ms(100), loss));
            for n in 0..3 {
                session.add(n, ReceiverConfig { unicast, ..receiver(n) });
            }
            let mut random = RandomStream::derive(setup.seed, &[1]);
            session.net.drop_if(move |leg| leg.message.data().is_none() && random.chance(0.05));
            session.net
        };
        laws::all(0..3, ms(20), build, |_| true);
    }
}

/// An owner that has no room for any object when that is offered for the first time.
#[test]
fn what_is_declined_for_lack_of_room_is_asked_for_again() {
    let mut session = Session::empty("busy", Setup::plain(1), list(&SIZES, 1), Link::clean(ms(50)));
    let told = Rc::new(RefCell::new(Vec::new()));
    let (mine, mut declined) = (told.clone(), BTreeSet::new());
    let engine = Receiver::new(receiver(0)).expect("valid");
    let host = Host::new(engine, move |engine: &mut Receiver, now, event: ReceiverEvent| {
        match &event {
            ReceiverEvent::Offered(offer) if declined.insert(offer.name.clone()) => {
                engine.answer(now, offer.object, Owner::Declined(Decline::Busy));
            }
            ReceiverEvent::Offered(offer) => engine.accept(now, offer.object, &Bitmap::new(0)),
            ReceiverEvent::Decode { object, block } => engine.decoded(*object, *block, true),
            ReceiverEvent::Complete(object) => engine.verified(now, *object),
            _ => {}
        }
        mine.borrow_mut().push((now, event));
    });
    let handle = session.net.add(receiver_address(0), &[group().ip()], host);
    session.clients.push(Client { handle, told });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
    assert_eq!(session.clients[0].complete(), SIZES.len());
}

#[test]
fn what_never_came_is_known_when_the_sender_has_left() {
    let mut session = Session::new("missed", Setup::plain(1), list(&SIZES, 1), 1, Link::clean(ms(50)));
    session.net.drop_if(|leg| match said(&leg.message) {
        Some(FromSender::Data(data)) => matches!(data.object, 2 | 3),
        Some(FromSender::Info(info)) => matches!(info.object, 2 | 3),
        _ => false,
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    let engine = session.net.engine(session.clients[0].handle);
    assert_eq!((engine.missed(server()), engine.missed(receiver_address(1))), (2, 0));
}
