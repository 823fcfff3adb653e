//! Outages that the defaults survive, by their start and their duration.

use farcast_core::{Span, Time};
use farcast_mftp::{
    Group, Invited, MemberState, Pace, SenderConfig, SenderEvent, SenderOutcome, Start, StatusRetry,
};
use farcast_testkit::{Link, Setup};

use crate::common::{Session, at, lose_data, ms, product, receiver_address, secs, sender, server};

/// Returns the defaults of `send` that matter here: 300 DTUs of 1,000 bytes at 1 Mbit/s, 2.6 s of data.
fn defaults(receivers: usize, window: bool) -> SenderConfig {
    let plain = sender(300, 30, receivers as u32);
    let mut config = SenderConfig::new(product(300_000), server(), plain.public);
    let invited = (0..receivers).map(|n| Invited::new(&receiver_address(n).ip().to_string()));
    config.group = Group::Closed(invited.collect());
    config.start = Start::default();
    (config.dtu_size, config.block_size, config.pace, config.secret) =
        (plain.dtu_size, plain.block_size, plain.pace, plain.secret);
    if window {
        config.pace = Pace::Window { segments: 90, paced: true };
    }
    config.status_retry = StatusRetry::Measured;
    config.repeat_small_passes = true;
    config
}

/// Direction of an outage: both, to the receiver, or from it.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Both,
    There,
    Back,
}

fn survives(begins: Span, lasts: Span, cut: Cut, window: bool, loss: f64, everyone: bool) {
    let link = Link::clean(ms(250));
    let name = format!("{lasts} from {begins}, {cut:?}, window {window}, loss {loss}, everyone {everyone}");
    let mut session = Session::new(&name, Setup::plain(1), defaults(3, window), 3, link);
    session.net.limit(secs(100_000));
    if loss > 0.0 {
        lose_data(&mut session.net, 1, loss);
    }
    let (sender, victim) = (session.sender.index(), session.clients[0].handle.index());
    let victim = (!everyone).then_some(victim);
    let during = at(begins)..at(begins + lasts);
    if !matches!(cut, Cut::Back) {
        session.net.outage(during.clone(), Some(sender), victim);
    }
    if !matches!(cut, Cut::There) {
        session.net.outage(during, victim, Some(sender));
    }
    let session = session.run();
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished), "{name}");
    for (id, member) in session.engine().members() {
        assert_eq!(member.state, MemberState::Done, "{name}: {id}");
    }
    assert!(session.clients.iter().all(|client| client.owner.is_complete()), "{name}");
    assert_eq!(session.count(|event| matches!(event, SenderEvent::Lost { .. })), 0, "{name}");
}

/// Starts of outages. Data takes 2.6 s and a round trip half a second, so they hit the announcement, pass 1, its end,
/// the repairs, and the Dones.
const BEGINS: [u64; 12] = [0, 300, 600, 900, 1500, 2500, 3000, 3200, 3300, 3400, 3700, 4000];

#[test]
fn a_minute_without_a_receiver_is_survived() {
    for begins in BEGINS {
        for lasts in [ms(1500), secs(9), secs(60), secs(90)] {
            for cut in [Cut::Both, Cut::There, Cut::Back] {
                survives(ms(begins), lasts, cut, false, 0.0, false);
            }
        }
    }
}

#[test]
fn a_minute_without_anyone_is_survived() {
    for begins in BEGINS {
        for lasts in [ms(1500), secs(60)] {
            for (window, loss) in [(false, 0.0), (false, 0.05), (true, 0.0), (true, 0.05)] {
                survives(ms(begins), lasts, Cut::Both, window, loss, true);
            }
        }
    }
}

#[test]
fn one_that_stands_still_is_waited_for() {
    for begins in BEGINS {
        for lasts in [secs(9), secs(60)] {
            let link = Link::clean(ms(250));
            let mut session = Session::new("frozen", Setup::plain(1), defaults(3, false), 3, link);
            session.net.freeze(at(ms(begins)), session.clients[1].handle, lasts, 50);
            let session = session.run();
            session.assert_complete();
        }
    }
}

#[test]
fn who_never_comes_back_is_given_up_after_two_minutes() {
    let mut session = Session::new("gone", Setup::plain(1), defaults(2, false), 2, Link::clean(ms(250)));
    let gone = session.clients[1].handle;
    session.net.vanish(at(ms(1500)), gone);
    let session = session.run();
    let lost = session.when(|event| matches!(event, SenderEvent::Lost { .. })).expect("given up");
    assert!(lost > at(secs(120)) && lost < at(secs(130)), "{lost:?}");
    assert_eq!(session.outcome(), Some(SenderOutcome::Finished));
}

#[test]
fn a_laggard_does_not_hold_up_the_others() {
    // The laggard acknowledges one block every five seconds; the others are a few milliseconds away.
    let link = Link::clean(ms(5));
    let mut config = defaults(3, true);
    config.product.size = 3_000_000;
    let mut session = Session::new("laggard", Setup::plain(1), config, 3, link);
    let laggard = session.clients[0].handle.index();
    let mut next = Time::ZERO;
    session.net.drop_if(move |leg| {
        let acknowledges = matches!(leg.message.body, farcast_mftp::Body::Ack(_));
        let early = leg.from == laggard && acknowledges && leg.at < next;
        if leg.from == laggard && acknowledges && !early {
            next = leg.at + secs(5);
        }
        early
    });
    let session = session.run();
    session.assert_complete();
    let done = |n: usize| {
        let id = session.net.engine(session.clients[n].handle).id();
        session
            .when(|event| matches!(event, SenderEvent::Done { client, .. } if *client == id))
            .expect("done")
    };
    assert!(done(1).max(done(2)) < at(secs(20)), "{:?} {:?}", done(1), done(2));
}

#[test]
fn a_small_buffer_does_not_set_everybodys_pace() {
    let time = |small: bool| {
        let mut session = Session::empty("buffer", Setup::plain(1), defaults(2, true), Link::clean(ms(250)));
        for n in 0..2 {
            let mut config = crate::common::receiver(n);
            config.receive_buffer_bytes = Some(if small && n == 0 { 1 } else { 4 << 20 });
            session.add(n, config, crate::common::Ownership::default());
        }
        let session = session.run();
        session.assert_complete();
        session.when(|event| *event == SenderEvent::Delivered).expect("delivered")
    };
    assert!(time(true).since(Time::ZERO) < time(false).since(Time::ZERO) * 3 / 2);
}
