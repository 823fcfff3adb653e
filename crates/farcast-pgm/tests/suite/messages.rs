//! Messages: delivered whole, in order or as they come, with losses reported.

use farcast_core::{Span, Time};
use farcast_delivery::SenderEngine as _;
use farcast_pgm::message::DataKind;
use farcast_pgm::{
    Advance, Delivering, MessageEvent, ReceiverEvent, Released, SendError, Sender, SenderConfig, SenderEvent,
    Sqn,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Reported, Session, TSDU, data, hears_messages, messages, ms, say};

fn lens(count: u32) -> Vec<u32> {
    (0..count).map(|n| 1 + n * 977 % 5000).collect()
}

fn session(name: &str, seed: u64, config: SenderConfig, delivering: Delivering, link: Link) -> Session {
    let mut session = Session::empty(name, Setup::plain(seed), config, link);
    for n in 0..3 {
        session.add(n, hears_messages(n, delivering));
    }
    session
}

#[test]
fn they_come_in_order_without_a_gap() {
    for seed in 0..5 {
        for loss in [0.0, 0.01, 0.1, 0.3] {
            let mut config = messages();
            // As many SPMs as it takes until everybody knows where it begins.
            config.opening = 16;
            let link = Link::lossy(ms(100), loss);
            let mut session = session("ordered", seed, config, Delivering::Ordered, link);
            say(&mut session, ms(500), ms(50), &lens(100));
            let session = session.run();
            for client in &session.clients {
                assert_eq!(client.messages(), lens(100), "{} {loss}", session.net.context());
                let finished = client.pick(|event| {
                    matches!(event, ReceiverEvent::Own(MessageEvent::Finished(_))).then_some(())
                });
                assert_eq!((client.lost(), finished.len()), (0, 1));
            }
        }
    }
}

#[test]
fn unordered_they_come_as_soon_as_they_are_whole() {
    let mut session = session("unordered", 3, messages(), Delivering::Unordered, Link::lossy(ms(100), 0.1));
    say(&mut session, ms(500), ms(50), &lens(100));
    let session = session.run();
    for client in &session.clients {
        let mut came = client.messages();
        assert_ne!(came, lens(100));
        came.sort_unstable();
        let mut said = lens(100);
        said.sort_unstable();
        assert_eq!(came, said);
    }
}

#[test]
fn fragments_say_of_what_they_are() {
    let mut session = session("fragments", 1, messages(), Delivering::Ordered, Link::clean(ms(10)));
    say(&mut session, ms(100), ms(100), &[u32::from(TSDU), u32::from(TSDU) + 1]);
    let mut session = session.run();
    let sent = data(&session.net.take_log(), DataKind::Original);
    let said: Vec<_> = sent.iter().map(|(_, data)| (data.sqn, data.len, data.options.fragment)).collect();
    assert_eq!((said[0], said.len()), ((Sqn(0), 1000, None), 3), "what fits is not cut");
    let [(_, first_len, first), (_, second_len, second)] = [said[1], said[2]];
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.first, first.offset, first.len), (Sqn(1), 0, 1001));
    assert_eq!((second.first, second.offset, second.len), (Sqn(1), first_len.into(), 1001));
    assert_eq!((first_len, second_len), (980, 21), "the option takes 20 octets");
}

#[test]
fn what_the_window_has_left_behind_is_told_in_its_place() {
    let mut config = messages();
    config.advance = Advance::Time(ms(200));
    let mut session = session("gone", 1, config, Delivering::Ordered, Link::clean(ms(20)));
    // Message 5 and its repairs never come; 7 is in two pieces, of which one does not.
    session.net.drop_if(|leg| leg.message.data().is_some_and(|data| [5, 8].contains(&data.sqn.0)));
    let mut said = vec![500; 20];
    said[7] = 1500;
    say(&mut session, ms(100), ms(50), &said);
    let session = session.run();
    for client in &session.clients {
        let mut whole = said.clone();
        whole.remove(7);
        whole.remove(5);
        assert_eq!((client.messages(), client.lost()), (whole, 2));
        let order = client.pick(|event| match event {
            ReceiverEvent::Own(MessageEvent::Apdu(apdu)) => Some(apdu.at as u32),
            ReceiverEvent::Own(MessageEvent::Lost { sqn, .. }) => Some(sqn.0),
            _ => None,
        });
        assert!(order.is_sorted() && order.contains(&5), "{order:?}");
        let dropped =
            client.pick(|event| matches!(event, ReceiverEvent::Own(MessageEvent::Dropped(_))).then_some(()));
        assert_eq!(dropped.len(), 1, "what came of the cut one is not needed");
    }
}

#[test]
fn with_data_the_window_waits_for_who_asks() {
    let mut config = messages();
    config.advance = Advance::Data { sqns: 16, hold: ms(400) };
    config.backlog = 200;
    // Without the wait, 16 TPDUs pass in a tenth of a second, and a request takes as long to come.
    let mut session = session("held", 2, config, Delivering::Ordered, Link::lossy(ms(50), 0.05));
    say(&mut session, ms(300), ms(1), &vec![900; 150]);
    let mut session = session.run();
    let log = session.net.take_log();
    for (_, data) in data(&log, DataKind::Original) {
        assert!(data.sqn.since(data.trail) < 16, "{data:?}");
    }
    let told = session.told.borrow();
    let released = told.iter().filter(|(_, event)| matches!(event, SenderEvent::Own(Released(_)))).count();
    assert!((130..150).contains(&released), "{released}");
}

#[test]
fn numbers_go_round() {
    let mut config = messages();
    config.first = Sqn(u32::MAX - 20);
    let mut session = session("round", 1, config, Delivering::Ordered, Link::lossy(ms(50), 0.1));
    say(&mut session, ms(300), ms(30), &lens(60));
    let session = session.run();
    for client in &session.clients {
        assert_eq!(client.messages(), lens(60));
    }
}

#[test]
fn who_joins_in_the_middle_begins_there() {
    let mut session = session("late", 1, messages(), Delivering::Ordered, Link::clean(ms(50)));
    let late = session.add(3, hears_messages(3, Delivering::Ordered));
    session.net.appear(Time::ZERO + Span::from_secs(1), late.handle);
    say(&mut session, ms(100), ms(100), &[700; 20]);
    let session = session.run();
    assert_eq!((late.messages(), late.lost()), (vec![700; 11], 0));
    drop(session);
}

#[test]
fn what_cannot_be_taken_is_refused() {
    let mut engine = Sender::new(SenderConfig { backlog: 2, ..messages() }).unwrap();
    engine.open(Time::ZERO);
    assert_eq!(engine.send(Time::ZERO, 0), Err(SendError::Size(0)));
    assert!(engine.send(Time::ZERO, 5).is_ok() && engine.send(Time::ZERO, 5).is_ok());
    assert_eq!(engine.send(Time::ZERO, 5), Err(SendError::Full));
    engine.finish(Time::ZERO);
    assert_eq!(engine.send(Time::ZERO, 5), Err(SendError::Closed));
}
