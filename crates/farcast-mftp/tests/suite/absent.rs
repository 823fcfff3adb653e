//! Absent senders: they announce once, perhaps send a little, and nothing follows.

use std::net::SocketAddr;

use farcast_core::{Arrival, Engine as _, Run, Span, Time};
use farcast_mftp::message::{AnnounceOptions, Data, DataKind, GroupModel};
use farcast_mftp::{Body, Message, Proof, ReceiverEvent, ReceiverOutcome, Sender};
use farcast_testkit::{Absent, Link, Setup, assert_cost_little};

use crate::common::{Session, at, group, ms, secs, sender};

/// Returns the messages of sender `n`: an announcement with the longest possible duration, every other one with tokens;
/// and one DTU if it `sends`.
fn words(n: u32, sends: bool) -> Vec<(Arrival, Message)> {
    let source = SocketAddr::from(([198, 51, (n >> 8) as u8, n as u8], 40_000));
    let mut config = sender(1000, 100, 1);
    (config.server, config.transmission, config.product.id) = (source, 0x0b00_0000 + n, [n as u8; 32]);
    let mut engine = Sender::new(config).expect("valid");
    engine.open(Time::ZERO);
    let mut announcement = engine.poll_transmit(Time::ZERO, Time::ZERO).expect("an announcement").message;
    let Body::Announce(announce) = &mut announcement.body else { panic!("{announcement:?}") };
    let (model, commitment) = if n.is_multiple_of(2) {
        (GroupModel::OpenLimited, Some(Proof([n as u8; 8])))
    } else {
        (GroupModel::OpenUnlimited, None)
    };
    announce.options = AnnounceOptions { model, ..announce.options };
    (announce.commitment, announce.hosts) = (commitment, None);
    (announce.announce_duration_s, announce.transfer_duration_s) = (u32::MAX, u32::MAX);
    let dtus = Run::one(0);
    let data = Data { pass: 1, block: 0, kind: DataKind::Source, dtus, len: 1000, last_len: 1000 };
    let data = Message::new(announcement.transmission, Body::Data(data));
    let from = Arrival::new(source, group());
    std::iter::once(announcement).chain(sends.then_some(data)).map(|message| (from, message)).collect()
}

/// Returns the duration of a transfer beside absent senders.
fn takes(absent: Absent) -> Span {
    let mut session = Session::new("absent", Setup::plain(1), sender(60, 16, 1), 1, Link::clean(ms(50)));
    let (client, source) = (session.clients[0].handle, session.sender);
    session.net.appear(absent.begins(), source);
    session.net.at(absent.begins(), source, |engine: &mut Sender, now| engine.open(now));
    absent.speak(&mut session.net, client, words);
    session.net.run_until(at(secs(60)));
    let told = session.clients[0].owner.told.borrow();
    // The complete product is of the real sender: at most one DTU of the others came.
    let ended =
        |event: &ReceiverEvent| matches!(event, ReceiverEvent::Ended(ReceiverOutcome::Complete { .. }));
    let complete = told.iter().find(|(_, event)| ended(event)).map_or(Time::NEVER, |&(when, _)| when);
    complete.since(absent.begins())
}

#[test]
fn senders_that_are_not_there_cost_a_transfer_little() {
    assert_cost_little(takes);
}
