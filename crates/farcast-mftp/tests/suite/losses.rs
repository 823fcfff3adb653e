//! Losses: the share of the DTUs sent to a receiver that did not reach it. Both ends report the same.

use farcast_core::Run;
use farcast_core::random::RandomStream;
use farcast_mftp::message::Body;
use farcast_mftp::{Member, SenderConfig};
use farcast_testkit::{Link, Setup};

use crate::common::{Ownership, Session, at, lose_data, ms, rate, receiver, sender};

/// Returns the losses and the DTUs sent, as the sender and each receiver report them.
fn told(session: &Session) -> Vec<[(u64, u64); 2]> {
    let of_sender =
        |member: &Member| (member.lost_dtus, member.sent_dtus(session.engine().geometry().segments()));
    let members = session.engine().members().map(|(_, member)| of_sender(member));
    let of_receiver = session.clients.iter().map(|client| {
        let stats = session.net.engine(client.handle).stats();
        (stats.lost, stats.lost + stats.dtus + stats.parity)
    });
    members.zip(of_receiver).map(|(sender, receiver)| [sender, receiver]).collect()
}

fn share((lost, sent): (u64, u64)) -> f64 {
    lost as f64 / sent.max(1) as f64
}

#[test]
fn each_receivers_loss_is_that_of_its_way_however_many_others_ask() {
    for (loss, parity_symbols) in [(0.03, 0), (0.2, 0), (0.49, 0), (0.1, 20), (0.3, 60)] {
        let config = SenderConfig { parity_symbols, ..sender(4000, 100, 6) };
        let mut session = Session::new("losses", Setup::plain(1), config, 6, Link::clean(ms(50)));
        lose_data(&mut session.net, 7, loss);
        let session = session.run();
        session.assert_complete();
        for (n, ends) in told(&session).into_iter().enumerate() {
            for (end, figures) in ["sender", "receiver"].iter().zip(ends) {
                let told = share(figures);
                // Four standard deviations of as many draws.
                let most = 4.0 * (loss * (1.0 - loss) / 4000.0f64).sqrt()
                    + if parity_symbols > 0 { 0.04 } else { 0.0 };
                assert!(
                    (told - loss).abs() < most,
                    "{loss} with {parity_symbols}: {end} of {n} says {told}: {figures:?}"
                );
            }
        }
    }
}

#[test]
fn what_a_restart_asks_for_was_not_lost() {
    for naks_per_request in [2, 64] {
        let lacks: Vec<u32> = (300..1000).collect();
        let mut session =
            Session::empty("restart", Setup::plain(1), sender(1000, 20, 2), Link::clean(ms(50)));
        for n in 0..2 {
            let config = farcast_mftp::ReceiverConfig { naks_per_request, ..receiver(n) };
            session.add(n, config, Ownership { lacks: Some(lacks.clone()), ..Ownership::default() });
        }
        let session = session.run();
        session.assert_complete();
        assert_eq!(session.engine().stats().dtus_per_pass.iter().sum::<u64>(), 700);
        assert_eq!(told(&session), [[(0, 700), (0, 700)]; 2]);
    }
}

#[test]
fn what_went_by_before_it_joined_was_not_lost() {
    let config = sender(1000, 20, 1);
    let mut session = Session::new("late", Setup::plain(1), config, 2, Link::clean(ms(50)));
    let late = session.clients[1].handle.index();
    session.net.drop_if(move |leg| leg.to == late && leg.at < at(ms(4000)));
    let session = session.run();
    session.assert_complete();
    let ends = told(&session);
    let sent: u64 = session.engine().stats().dtus_per_pass.iter().sum();
    assert!(sent > 1200, "it joins late: {sent}");
    for end in ends.into_iter().flatten() {
        assert!(share(end) < 0.03, "{:?}", told(&session));
    }
}

#[test]
fn what_came_and_was_not_stored_was_not_lost() {
    let session = Session::new("unstored", Setup::plain(1), sender(200, 20, 1), 1, Link::clean(ms(50)));
    session.clients[0].owner.loses.borrow_mut().extend(Run::new(35, 50));
    let session = session.run();
    let member = session.engine().members().next().expect("one").1;
    assert_eq!((member.lost_dtus, member.unstored_dtus), (0, 50));
    let stats = session.net.engine(session.clients[0].handle).stats();
    assert_eq!((stats.lost, stats.dtus), (0, 250));
}

#[test]
fn losses_count_though_requests_are_lost_too() {
    for (loss, parity_symbols) in [(0.1, 0), (0.2, 64), (0.4, 64), (0.4, 0), (0.6, 64)] {
        let config = SenderConfig { parity_symbols, pace: rate(20_000), ..sender(2097, 190, 1) };
        let mut session = Session::new("requests", Setup::plain(1), config, 1, Link::clean(ms(1)));
        let mut random = RandomStream::derive(7, &[1]);
        let forward = |body: &Body| matches!(body, Body::Data(_) | Body::StatusRequest(_));
        session.net.drop_if(move |leg| forward(&leg.message.body) && random.chance(loss));
        let session = session.run();
        session.assert_complete();
        let sent: u64 = session.engine().stats().dtus_per_pass.iter().sum();
        for figures in told(&session).into_iter().flatten() {
            // Four standard deviations of as many draws; losses of the last DTUs are not reported.
            let most = 4.0 * (loss * (1.0 - loss) / sent as f64).sqrt();
            assert!((share(figures) - loss).abs() < most, "{loss} with {parity_symbols}: {figures:?}");
            assert!(figures.1 <= sent && figures.1 * 100 >= sent * 99, "{loss}: {figures:?} of {sent}");
        }
    }
}
