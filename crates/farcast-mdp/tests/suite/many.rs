//! Many short objects at a receiver whose owner is slow or has little room.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use farcast_core::{Bitmap, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::{Answer, Decline, ObjectId, ReceiverEngine as _};
use farcast_mdp::message::FromSender;
use farcast_mdp::{Receiver, ReceiverConfig, ReceiverEvent, SenderConfig, SenderEvent, SenderOutcome, Sync};
use farcast_testkit::{Host, Link, Setup};

use crate::common::{Client, Session, group, ms, object, receiver, receiver_address, said, sender, server};

/// An owner with room for `room` objects at once, which verifies one of them in each span `each`.
#[derive(Clone, Copy)]
struct Owner {
    room: usize,
    each: Span,
}

/// Objects that an owner has in hand, and those of them that it is to verify.
#[derive(Default)]
struct Hands {
    held: Vec<ObjectId>,
    whole: VecDeque<ObjectId>,
}

/// Receives `count` objects of a segment over `link` for `owner`.
fn receives(name: &str, count: usize, owner: Owner, link: Link) -> (Session, Client) {
    let objects = (0..count).map(|_| object(1)).collect();
    receives_from(name, SenderConfig { objects, grtt: ms(20), ..sender(1, 1) }, owner, link)
}

/// Receives what a sender with the settings `config` sends over `link`, for `owner`.
fn receives_from(name: &str, config: SenderConfig, owner: Owner, link: Link) -> (Session, Client) {
    let count = config.objects.len();
    let mut session = Session::empty(name, Setup::plain(1), config, link);
    let told = Rc::new(RefCell::new(Vec::new()));
    let hands = Rc::new(RefCell::new(Hands::default()));
    let (mine, has) = (told.clone(), hands.clone());
    let engine = Receiver::new(ReceiverConfig { sync: Sync::Anywhere, ..receiver(0) }).expect("valid");
    let host = Host::new(engine, move |engine: &mut Receiver, now, event: ReceiverEvent| {
        let mut hands = has.borrow_mut();
        match &event {
            ReceiverEvent::Offered(offer) if hands.held.len() < owner.room => {
                hands.held.push(offer.object);
                engine.accept(offer.object, &Bitmap::new(offer.geometry.segments()));
            }
            ReceiverEvent::Offered(offer) => {
                engine.answer(now, offer.object, Answer::Declined(Decline::Busy));
            }
            ReceiverEvent::Complete(object) => hands.whole.push_back(*object),
            ReceiverEvent::Ended(object, _) => hands.held.retain(|held| held != object),
            _ => {}
        }
        mine.borrow_mut().push((now, event));
    });
    let handle = session.net.add(receiver_address(0), &[group().ip()], host);
    let client = Client { handle, told };
    session.clients.push(client.clone());
    for n in 1..=2 * count as u64 {
        let hands = hands.clone();
        session.net.at(Time::ZERO + owner.each * n, handle, move |engine: &mut Receiver, now| {
            let whole = hands.borrow_mut().whole.pop_front();
            if let Some(object) = whole {
                engine.verified(now, object);
            }
        });
    }
    session.net.limit(Span::from_secs(600));
    (session.run(), client)
}

/// Asserts that the session ended with every object at the receiver.
fn assert_all(session: &Session, client: &Client, count: usize) {
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{}", session.net.context());
    assert_eq!(client.complete(), count, "{}", session.net.context());
}

/// An object takes the sender 8 ms: the owner falls behind by far more than can be in hand.
#[test]
fn what_there_was_no_room_for_is_asked_for_again() {
    let owner = Owner { room: 32, each: ms(25) };
    for link in [Link::clean(ms(5)), Link::lossy(ms(5), 0.1)] {
        let (session, client) = receives("slow", 500, owner, link);
        assert_all(&session, &client, 500);
        let lost = client.outcomes().iter().filter(|one| **one == Outcome::Lost).count();
        assert_eq!(lost, 0, "no more are offered than an owner has in hand");
    }
}

/// An owner may have less room than most.
#[test]
fn what_is_declined_for_lack_of_room_is_asked_for_again() {
    let owner = Owner { room: 12, each: ms(25) };
    let (session, client) = receives("busy", 100, owner, Link::clean(ms(5)));
    assert_all(&session, &client, 100);
    let declined = client.outcomes().iter().filter(|one| **one == Outcome::Lost).count();
    assert!(declined > 0, "there was no room for some");
}

/// The round trip stays long for longer than the objects take. Each flush waits for two of them.
#[test]
fn many_objects_are_acknowledged_in_a_few_round_trips() {
    let owner = Owner { room: 400, each: ms(5) };
    let objects = (0..400).map(|_| object(1)).collect();
    let config = SenderConfig { objects, grtt: ms(500), ..sender(1, 1) };
    let (session, client) = receives_from("acknowledged", config, owner, Link::clean(ms(5)));
    assert_all(&session, &client, 400);
    let told = session.told.borrow();
    let ended = told.iter().find(|(_, event)| matches!(event, SenderEvent::Ended(_))).map(|(at, _)| *at);
    assert!(ended.is_some_and(|at| at < Time::ZERO + Span::from_secs(15)), "{ended:?}");
}

/// The owner verifies for longer than a sender asks, and lacks nothing.
#[test]
fn a_sender_waits_for_what_is_verified() {
    let owner = Owner { room: 32, each: Span::from_secs(9) };
    let (session, client) = receives("verifies", 3, owner, Link::clean(ms(5)));
    assert_all(&session, &client, 3);
}

#[test]
fn what_never_came_is_known_when_the_sender_has_left() {
    let objects = (0..6).map(|_| object(2)).collect();
    let config = SenderConfig { objects, ..sender(1, 1) };
    let mut session = Session::new("missed", Setup::plain(1), config, 1, Link::clean(ms(50)));
    session.net.drop_if(|leg| match said(&leg.message) {
        Some(FromSender::Data(data)) => matches!(data.about.object, 2 | 3),
        Some(FromSender::Info(info)) => matches!(info.about.object, 2 | 3),
        _ => false,
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    let engine = session.net.engine(session.clients[0].handle);
    assert_eq!((engine.missed(server()), engine.missed(receiver_address(1))), (2, 0));
}
