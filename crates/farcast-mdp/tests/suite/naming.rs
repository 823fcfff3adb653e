//! INFO of an object may come after its content, or never.

use farcast_core::engine::Reject;
use farcast_core::{BitRate, Run, Span, Time};
use farcast_delivery::Outcome;
use farcast_mdp::message::{About, Flags, FromSender, Info, ObjectNack, Request};
use farcast_mdp::{ReceiverConfig, ReceiverEvent, SenderConfig, SenderOutcome};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, data, ms, receiver, said, sender, sent};
use crate::rules::{Alone, about, says, symbols};

fn info(about: About) -> FromSender {
    FromSender::Info(Info { about, segment_size: 1000, content: b"name".to_vec(), vouched: None })
}

/// Returns the names that the owner was told.
fn names(events: &[ReceiverEvent]) -> Vec<(bool, &[u8])> {
    let told = events.iter().filter_map(|event| match event {
        ReceiverEvent::Offered(offer) => Some((false, &offer.name[..])),
        ReceiverEvent::Named(offer) => Some((true, &offer.name[..])),
        _ => None,
    });
    told.collect()
}

#[test]
fn content_is_kept_before_the_name_comes_and_is_whole_with_it() {
    let about = about(3, Flags::FILE.with(Flags::INFO));
    let mut one = Alone::new();
    for block in 0..3 {
        one.hears(Time::ZERO, &symbols(about, block, Run::new(0, 10).unwrap(), false)).unwrap();
    }
    assert_eq!(names(&one.1), [(false, &b"mdp-1-3"[..])]);
    let stored = one.1.iter().filter(|event| matches!(event, ReceiverEvent::Store { .. })).count();
    assert_eq!(stored, 3);
    let complete = |one: &Alone| one.1.iter().any(|event| matches!(event, ReceiverEvent::Complete(_)));
    assert!(!complete(&one), "it has no name yet");
    let other = About { size: 29_000, ..about };
    assert_eq!(one.hears(Time::ZERO, &says(info(other))), Err(Reject::Inconsistent));
    assert!(!complete(&one));
    let again = About { flags: about.flags.with(Flags::REPAIR), ..about };
    one.hears(Time::ZERO, &says(info(again))).unwrap();
    assert_eq!(names(&one.1)[1..], [(true, &b"name"[..])]);
    assert!(complete(&one));
    assert_eq!(one.hears(Time::ZERO, &says(info(again))), Err(Reject::Duplicate));
}

#[test]
fn the_name_is_asked_for_before_what_else_lacks() {
    let about = about(0, Flags::FILE.with(Flags::INFO));
    let mut one = Alone::new();
    one.hears(Time::ZERO, &symbols(about, 0, Run::new(0, 9).unwrap(), false)).unwrap();
    one.hears(Time::ZERO, &symbols(about, 1, Run::new(0, 10).unwrap(), false)).unwrap();
    let asked = one.asks(Time::ZERO);
    let [ObjectNack { object: 0, requests }] = &asked[0].1[..] else { panic!("{asked:?}") };
    assert!(matches!(requests[..], [Request::Info, Request::Segments { erasures: 1, .. }]), "{requests:?}");
    // Repeated INFO tells nothing of the sender's position: what the sender has passed is still missing.
    let now = Time::ZERO + Span::from_secs(61);
    let again = About { flags: about.flags.with(Flags::REPAIR), ..about };
    one.hears(now, &says(info(again))).unwrap();
    one.hears(now, &says(FromSender::Flush { eot: false, object: 0 })).unwrap();
    let asked = one.asks(now);
    assert!(
        matches!(asked[0].1[0].requests[0], Request::Segments { erasures: 1, offset: 0, .. }),
        "{asked:?}"
    );
}

#[test]
fn who_lost_the_name_needs_nothing_else_again() {
    let mut session = Session::new("name", Setup::plain(1), sender(40, 3), 3, Link::clean(ms(50)));
    session.net.drop_if(|leg| match said(&leg.message) {
        Some(FromSender::Info(info)) => !info.about.flags.has(Flags::REPAIR),
        _ => false,
    });
    let mut session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Acknowledged));
    session.assert_received(1);
    for client in &session.clients {
        let told = client.told.borrow();
        assert!(told.iter().any(|(_, event)| matches!(event, ReceiverEvent::Named(_))));
    }
    let log = session.net.take_log();
    assert_eq!(data(&log).iter().map(|(_, data)| data.symbols.count()).sum::<u32>(), 40);
    let infos = sent(&log, 0, |message| matches!(said(message), Some(FromSender::Info(_))).then_some(()));
    assert_eq!(infos.len(), 2, "one repair is for all");
}

#[test]
fn what_is_whole_when_the_sender_leaves_keeps_its_numbers() {
    let mut session = Session::empty("nameless", Setup::plain(1), sender(40, 0), Link::clean(ms(50)));
    let client = session.add(0, ReceiverConfig { silent: true, ..receiver(0) });
    session.net.drop_if(|leg| matches!(said(&leg.message), Some(FromSender::Info(_))));
    session.run();
    let told = client.told.borrow();
    let left = told.iter().find(|(_, event)| matches!(event, ReceiverEvent::Complete(_))).unwrap().0;
    let flushing = ms(300) * 2 * 20;
    assert!(left >= Time::ZERO + flushing, "{left:?}: not before nothing more can come");
    assert!(matches!(client.outcomes()[..], [Outcome::Complete(_)]), "{told:?}");
}

/// 300 receivers of 715 segments in blocks of 200 lose a twentieth, INFO too. The worst of them loses about 19 segments
/// of a block. That takes 4 * 19 parity symbols, some of which are lost again. A receiver that requested the content
/// again together with the name would have all of it sent once more.
#[test]
fn a_large_group_that_loses_names_costs_what_its_worst_member_lacks() {
    let rate = BitRate::from_bps(10_000_000).unwrap();
    let config = SenderConfig { block_len: 200, parity: 54, rate, grtt: ms(500), ..sender(715, 0) };
    let mut session = Session::new("group", Setup::plain(1), config, 300, Link::lossy(ms(250), 0.05)).run();
    session.assert_received(1);
    let log = session.net.take_log();
    let sent: u32 = data(&log).iter().map(|(_, data)| data.symbols.count()).sum();
    assert!((715 + 4 * 15..=715 * 6 / 5).contains(&sent), "{sent} symbols");
}
