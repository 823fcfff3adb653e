//! Files: named receivers have them before the source reports so.

use farcast_core::{Bitmap, Run, Span, Time};
use farcast_delivery::Outcome;
use farcast_delivery::ReceiverEngine as _;
use farcast_delivery::SenderEngine as _;
use farcast_pgm::message::{DataKind, Opt};
use farcast_pgm::{ReceiverEvent, SenderEvent, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Reported, Session, data, files, ms, receiver, spms};

#[test]
fn without_losses_everything_is_sent_once() {
    let mut session =
        Session::new("clean", Setup::plain(1), files(&[30, 0, 1], 2), 2, Link::clean(ms(250))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    for client in &session.clients {
        assert_eq!((client.complete(), client.stored_count(), client.lost()), (3, 31, 0));
    }
    let log = session.net.take_log();
    assert_eq!((data(&log, DataKind::Original).len(), data(&log, DataKind::Repair).len()), (34, 0));
    // Three SPMs open the session, and name its first number.
    let spms = spms(&log);
    assert!(
        spms[..3]
            .iter()
            .all(|(at, spm)| *at == Time::ZERO && spm.options == [Opt::Join(farcast_pgm::Sqn(0))])
    );
}

#[test]
fn with_losses_everybody_completes_and_stores_nothing_twice() {
    for seed in 0..10 {
        for loss in [0.01, 0.1, 0.3] {
            let link = Link::lossy(ms(250), loss);
            let session = Session::new("lossy", Setup::plain(seed), files(&[60, 0, 40], 4), 4, link).run();
            let context = session.net.context();
            assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged), "{context} {loss}");
            for client in &session.clients {
                assert_eq!(
                    (client.complete(), client.stored_count(), client.lost()),
                    (3, 100, 0),
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn a_lost_descriptor_costs_what_came_behind_it() {
    let mut session = Session::new("head", Setup::plain(1), files(&[20], 1), 1, Link::clean(ms(50)));
    session.net.drop_if(|leg| {
        leg.message.data().is_some_and(|data| data.descriptor.is_some() && data.kind == DataKind::Original)
    });
    let mut session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_eq!(session.clients[0].stored_count(), 20);
    let log = session.net.take_log();
    let repaired = data(&log, DataKind::Repair);
    assert!(repaired[0].1.descriptor.is_some(), "that is asked for first");
}

#[test]
fn who_comes_late_gets_all() {
    let mut session =
        Session::new("late", Setup::plain(1), files(&[60, 10], 2), 1, Link::lossy(ms(50), 0.02));
    let late = session.add(1, receiver(1));
    session.net.appear(Time::ZERO + ms(400), late.handle);
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_eq!((late.complete(), late.stored_count()), (2, 70));
}

#[test]
fn what_is_there_is_not_asked_for_again() {
    let mut session = Session::empty("resumed", Setup::plain(1), files(&[60], 1), Link::clean(ms(50)));
    let late = session.add_holding(0, receiver(0), Run::new(5, 50));
    session.net.appear(Time::ZERO + ms(400), late.handle);
    let mut session = session.run();
    assert_eq!((session.outcome(), late.complete()), (Some(SenderOutcome::Acknowledged), 1));
    let repaired = data(&session.net.take_log(), DataKind::Repair);
    // The descriptor and ten segments are repaired: everything was sent before the receiver knew where to ask.
    assert_eq!(repaired.len(), 11);
}

#[test]
fn a_named_receiver_that_is_not_there_is_told_and_not_called_done() {
    let mut session = Session::new("absent", Setup::plain(1), files(&[10], 2), 1, Link::clean(ms(50))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }));
    let lost =
        session.told.borrow().iter().filter(|(_, event)| matches!(event, SenderEvent::Lost(_))).count();
    assert_eq!(lost, 1);
    assert!(session.net.now() >= Time::ZERO + Span::from_secs(10), "it is waited for");
    let named = |spm: &farcast_pgm::message::Spm| {
        spm.options.iter().find_map(|option| match option {
            Opt::Ask(ask) => Some(ask.nodes.len()),
            _ => None,
        })
    };
    let log = session.net.take_log();
    let asked: Vec<usize> = spms(&log).iter().filter_map(|(_, spm)| named(spm)).collect();
    assert_eq!(
        (asked.first(), asked.last()),
        (Some(&2), Some(&1)),
        "who has acknowledged is not asked again"
    );
}

#[test]
fn a_receiver_acknowledges_only_what_its_owner_has_verified() {
    let mut session = Session::new("verified", Setup::plain(1), files(&[10], 1), 1, Link::clean(ms(50)));
    let client = session.clients[0].clone();
    // The owner finds, before the file is complete, that stored segments are missing.
    session.net.at(Time::ZERO + ms(100), client.handle, |engine, now| {
        engine.lost(now, farcast_delivery::ObjectId::new(0), Run::new(0, 3).unwrap());
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    assert_eq!(client.stored_count(), 13, "those came again");
}

#[test]
fn a_source_that_gives_up_says_so() {
    let mut session = Session::new("aborted", Setup::plain(1), files(&[60], 1), 1, Link::clean(ms(50)));
    session.net.at(Time::ZERO + ms(200), session.sender, |engine: &mut farcast_pgm::Sender, now| {
        engine.abort(now, farcast_delivery::Cause::Application, None);
    });
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Aborted));
    let ends = session.clients[0].pick(|event| match event {
        ReceiverEvent::Ended(_, outcome) => Some(*outcome),
        _ => None,
    });
    assert_eq!(ends, [Outcome::Lost]);
    let log_has_rst = |session: &mut Session| {
        let log = session.net.take_log();
        spms(&log)
            .iter()
            .any(|(_, spm)| spm.options.iter().any(|o| matches!(o, Opt::Rst { no_naks: true, .. })))
    };
    let mut session = session;
    assert!(log_has_rst(&mut session));
}

#[test]
fn a_receiver_that_lacks_any_file_never_acknowledges() {
    // The owner declines the first file, or stops.
    for is_declined in [true, false] {
        let mut session =
            Session::new("partly", Setup::plain(1), files(&[20, 20], 1), 1, Link::clean(ms(50)));
        let client = session.clients[0].clone();
        session.net.at(
            Time::ZERO + ms(150),
            client.handle,
            move |engine: &mut farcast_pgm::Receiver, now| {
                let first = farcast_delivery::ObjectId::new(0);
                if is_declined { engine.decline(now, first) } else { engine.stop(now) }
            },
        );
        let session = session.run();
        assert_eq!(session.outcome(), Some(SenderOutcome::Incomplete { lacking: 1 }), "{is_declined}");
        if is_declined {
            assert_eq!((client.complete(), client.stored_count() < 40), (1, true));
        }
    }
}

#[test]
fn a_head_that_leaves_twice_is_missed_seldom() {
    let mut config = files(&[40, 3], 1);
    config.heads_twice = true;
    let mut session = Session::new("twice", Setup::plain(1), config, 1, Link::clean(ms(50)));
    session.net.drop_if(|leg| {
        leg.message.data().is_some_and(|data| data.descriptor.is_some() && data.kind == DataKind::Original)
    });
    let mut session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    let log = session.net.take_log();
    let repaired = data(&log, DataKind::Repair);
    // The descriptor of the long file leaves once more, unasked. That of the short file, and the segments behind it,
    // leave on request.
    assert_eq!(repaired.iter().filter(|(_, data)| data.descriptor.is_none()).count(), 3);
    assert_eq!(repaired.iter().filter(|(_, data)| data.descriptor.is_some()).count(), 2);
}

#[test]
fn more_receivers_than_an_spm_asks_are_asked_before_the_source_leaves() {
    let mut config = files(&[3], 300);
    config.linger = ms(2000);
    let session = Session::new("many", Setup::plain(1), config, 300, Link::clean(ms(50))).run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
}

#[test]
fn who_is_asked_stays_until_it_is_asked_no_more() {
    let mut session = Session::new("asked", Setup::plain(1), files(&[3], 1), 1, Link::clean(ms(50)));
    // The receiver's acknowledgements are lost at first.
    session.net.drop_if(|leg| {
        leg.at < Time::ZERO + ms(900) && matches!(&leg.message.body, farcast_pgm::Body::Ack(_))
    });
    let client = session.clients[0].clone();
    let net = &mut session.net;
    let busy = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = busy.clone();
    net.at(Time::ZERO + ms(850), client.handle, move |engine: &mut farcast_pgm::Receiver, _| {
        seen.set(engine.is_busy());
    });
    let session = session.run();
    assert_eq!((session.outcome(), client.complete()), (Some(SenderOutcome::Acknowledged), 1));
    assert!(busy.get(), "it has left while it was asked");
    assert!(!session.net.engine(client.handle).is_busy());
}

#[test]
fn another_session_of_a_source_ends_the_one_before() {
    let mut session = Session::new("again", Setup::plain(1), files(&[400], 1), 1, Link::clean(ms(50)));
    let net = &mut session.net;
    net.vanish(Time::ZERO + ms(300), session.sender);
    let mut config = files(&[400], 1);
    config.tsi.port += 1;
    config.source.set_port(config.source.port() + 1);
    let own = config.source;
    let outcome = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let mine = outcome.clone();
    let host = farcast_testkit::Host::new(
        farcast_pgm::Sender::new(config).unwrap(),
        move |_: &mut farcast_pgm::Sender, _, event| mine.borrow_mut().push(event),
    );
    let second = net.add(own, &[crate::common::group().ip()], host);
    net.at(Time::ZERO + ms(1000), second, |engine: &mut farcast_pgm::Sender, now| engine.open(now));
    let client = session.clients[0].clone();
    let _session = session.run();
    let ended = client.pick(|event| match event {
        ReceiverEvent::Ended(_, outcome) => Some(*outcome),
        _ => None,
    });
    assert_eq!(ended[0], Outcome::Lost, "{ended:?}");
    assert!(matches!(ended[1], Outcome::Complete(_)), "{ended:?}");
    assert!(outcome.borrow().contains(&SenderEvent::Ended(SenderOutcome::Acknowledged)));
}

#[test]
fn nothing_of_a_file_is_asked_for_before_its_owner_has_said_what_is_there() {
    let mut session = Session::empty("opening", Setup::plain(1), files(&[60], 0), Link::lossy(ms(50), 0.2));
    let mut held = Bitmap::new(60);
    held.insert_run(Run::new(0, 60).unwrap());
    let asked = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = asked.clone();
    let offered = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let mine = offered.clone();
    let host = farcast_testkit::Host::new(
        farcast_pgm::Receiver::new(receiver(0)).unwrap(),
        move |_: &mut farcast_pgm::Receiver, _, event| {
            if let ReceiverEvent::Offered(offer) = event {
                mine.borrow_mut().push(offer.object);
            }
        },
    );
    let handle = session.net.add(crate::common::receiver_address(0), &[crate::common::group().ip()], host);
    session.net.at(Time::ZERO + ms(3000), handle, move |engine: &mut farcast_pgm::Receiver, now| {
        seen.set(engine.naks());
        engine.accept(now, offered.borrow()[0], &held);
    });
    let session = session.run();
    // The receiver asks once for the descriptor, if that was lost, and never for kept segments.
    assert!(asked.get() <= 1, "{}", asked.get());
    assert!(session.net.engine(handle).naks() <= 1);
}
