//! The reset procedure.

use farcast_core::Piece;

use super::{acknowledging, at, bare, block, entity, events, filling, pdus, ttis};
use crate::config::{Discard, MaxTransmissions, ResetConfig};
use crate::pdu::{Pdu, Reset};
use crate::{Config, Entity, Event, Reject};

/// A second transmission is one too many; RESET every 5 TTIs, at most 3 times.
fn resetting() -> Config {
    Config {
        discard: Discard::None,
        max_transmissions: MaxTransmissions::new(1).expect("above 0"),
        reset: ResetConfig { timer: ttis(5), max_rst: 4 },
        ..bare()
    }
}

fn reset(rsn: bool) -> Pdu<Piece> {
    Pdu::Reset(Reset { acknowledges: false, rsn, hfni: 0 })
}

fn ack(rsn: bool) -> Pdu<Piece> {
    Pdu::Reset(Reset { acknowledges: true, rsn, hfni: 0 })
}

/// An entity that has sent two of three SDUs, of two PDUs each, and then calls for a reset.
fn in_trouble() -> Entity<Piece> {
    let mut end = entity(resetting());
    (0..3).for_each(|packet| assert!(end.submit(at(0), filling(packet, 2))));
    assert_eq!(block(&mut end, at(0), 3).len(), 3);
    end.handle(at(1), acknowledging(3, &[1])).expect("a report");
    end
}

#[test]
fn a_pdu_that_is_sent_too_often_leads_to_a_reset() {
    let mut end = in_trouble();
    assert_eq!(pdus(&mut end, at(1), 9), [reset(false)]);
    assert!(pdus(&mut end, at(2), 9).is_empty());
    // Nothing else counts meanwhile, nor another answer.
    assert_eq!(end.handle(at(2), acknowledging(3, &[])), Err(Reject::Resetting));
    assert_eq!(end.handle(at(2), ack(true)), Err(Reject::Unexpected));
    assert!(events(&mut end).1.is_empty());
    end.handle(at(3), ack(false)).expect("the answer");
    // What was begun is lost; the third SDU was not, and starts at number 0.
    assert_eq!(events(&mut end).1, [Event::Discarded { sdus: 0..2 }, Event::Reset]);
    assert_eq!(block(&mut end, at(3), 9), [(0, false), (1, false)]);
    assert_eq!(end.handle(at(4), ack(false)), Err(Reject::Unexpected));
    // The next procedure has the other number.
    end.handle(at(4), acknowledging(2, &[0])).expect("a report");
    assert_eq!(pdus(&mut end, at(4), 9), [reset(true)]);
    assert_eq!((end.counters().resets, end.counters().reset_pdus), (2, 2));
}

#[test]
fn a_reset_that_is_not_answered_is_repeated_and_then_given_up() {
    let mut end = in_trouble();
    for tti in [1, 6, 11] {
        assert_eq!(pdus(&mut end, at(tti), 9), [reset(false)], "TTI {tti}");
        assert_eq!(end.poll_timeout().map(|it| (it.at, it.timer)), Some((at(tti + 5), "Timer_RST")));
    }
    // MaxRST is 4: three times was enough.
    assert!(pdus(&mut end, at(16), 9).is_empty());
    let lost = [Event::Discarded { sdus: 0..2 }, Event::Discarded { sdus: 2..3 }, Event::Unrecoverable];
    assert_eq!(events(&mut end).1, lost);
    assert_eq!((end.poll_timeout(), end.has_output(at(99))), (None, false));
    assert!(!end.submit(at(17), filling(3, 1)));
    assert_eq!(end.handle(at(17), reset(false)), Err(Reject::Stopped));
    // With MaxRST 1 nothing is sent at all.
    let reset = ResetConfig { timer: ttis(5), max_rst: 1 };
    let mut end = entity(Config { reset, ..resetting() });
    assert!(end.handle(at(0), acknowledging(1, &[])).is_err());
    assert!(pdus(&mut end, at(0), 9).is_empty());
    assert_eq!(events(&mut end).1, [Event::Unrecoverable]);
}

#[test]
fn the_peer_starts_anew_once_for_each_number() {
    let mut end = entity(resetting());
    assert!(end.submit(at(0), filling(7, 1)));
    assert_eq!(block(&mut end, at(0), 9), [(0, false)]);
    // First: all is new.
    end.handle(at(1), reset(false)).expect("a reset");
    assert_eq!(pdus(&mut end, at(1), 9), [ack(false)]);
    assert_eq!(events(&mut end).1, [Event::Discarded { sdus: 0..1 }, Event::Reset]);
    // The answer was lost: the same number again brings the same answer and no more.
    assert!(end.submit(at(2), filling(8, 1)));
    assert_eq!(block(&mut end, at(2), 9), [(0, false)]);
    end.handle(at(3), reset(false)).expect("a reset");
    assert_eq!(pdus(&mut end, at(3), 9), [ack(false)]);
    assert!(events(&mut end).1.is_empty());
    end.handle(at(4), acknowledging(1, &[])).expect("the PDU is still known");
    // The other number is another reset.
    end.handle(at(5), reset(true)).expect("a reset");
    assert_eq!(events(&mut end).1, [Event::Reset]);
    assert_eq!(end.counters().resets_of_peer, 2);
}

#[test]
fn both_may_reset_at_once() {
    let (mut one, mut two) = (in_trouble(), in_trouble());
    assert_eq!(pdus(&mut one, at(1), 9), [reset(false)]);
    assert_eq!(pdus(&mut two, at(1), 9), [reset(false)]);
    for end in [&mut one, &mut two] {
        end.handle(at(2), reset(false)).expect("a reset");
        assert_eq!(pdus(end, at(2), 9), [ack(false)]);
        end.handle(at(3), ack(false)).expect("the answer");
    }
    for pdu in pdus(&mut one, at(4), 9) {
        two.handle(at(5), pdu).expect("number 0 and on");
    }
    assert_eq!(events(&mut two).0, [2]);
}

#[test]
fn a_reset_drops_what_has_arrived() {
    let mut from = entity(bare());
    (0..2).for_each(|packet| assert!(from.submit(at(0), filling(packet, 2))));
    let sent = pdus(&mut from, at(0), 9);
    let mut end = entity(bare());
    for index in [0, 2, 3] {
        end.handle(at(0), sent[index].clone()).expect("a new PDU");
    }
    end.handle(at(1), reset(false)).expect("a reset");
    // The same numbers again are new, and nothing of before goes into what they bring.
    for pdu in sent {
        end.handle(at(2), pdu).expect("a new PDU");
    }
    assert_eq!(events(&mut end).0, [0, 1]);
}
