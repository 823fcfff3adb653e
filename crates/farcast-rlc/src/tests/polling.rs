//! Polls beyond the figures: the prohibit timer, limits, the window.

use std::vec;

use smallvec::smallvec;

use super::{acknowledging, at, bare, block, entity, filling, number, ttis};
use crate::config::{ErroneousStatus, MaxTransmissions};
use crate::pdu::{Pdu, Status, SuperField};
use crate::{Config, Reject};

#[test]
fn prohibited_polls_are_made_up_for_by_one() {
    let mut config = bare();
    config.polling.poll_pdu = 1.try_into().ok();
    config.polling.prohibit = Some(ttis(5));
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, 4)));
    // Each PDU triggers a poll; the first is sent, three are held.
    assert_eq!(block(&mut sender, at(0), 4), [(0, true), (1, false), (2, false), (3, false)]);
    assert_eq!(sender.poll_timeout().map(|it| (it.at, it.timer)), Some((at(5), "Timer_Poll_Prohibit")));
    assert_eq!(block(&mut sender, at(4), 4), []);
    // Nothing waits: the last PDU carries the one poll, and the timer runs anew.
    assert_eq!(block(&mut sender, at(5), 4), [(3, true)]);
    assert_eq!(block(&mut sender, at(9), 4), []);
    // That PDU triggered no other.
    assert_eq!(block(&mut sender, at(10), 4), []);
    assert_eq!(sender.counters().polls, 2);
    assert_eq!(sender.counters().retransmissions_for_polls, 1);
}

#[test]
fn a_held_poll_goes_with_the_next_pdu_after_the_prohibit_timer() {
    let mut config = bare();
    config.polling.last_pdu = true;
    config.polling.prohibit = Some(ttis(5));
    let mut sender = entity(config);
    for (packet, tti) in [(0, 0), (1, 2)] {
        assert!(sender.submit(at(tti), filling(packet, 1)));
        assert_eq!(block(&mut sender, at(tti), 9), [(packet as u16, packet == 0)]);
    }
    assert!(sender.submit(at(6), filling(2, 2)));
    assert_eq!(block(&mut sender, at(6), 9), [(2, true), (3, false)]);
}

#[test]
fn held_polls_are_dropped_when_all_is_acknowledged() {
    let mut config = bare();
    config.polling.last_pdu = true;
    config.polling.prohibit = Some(ttis(5));
    let mut sender = entity(config);
    for (packet, tti) in [(0, 0), (1, 2)] {
        assert!(sender.submit(at(tti), filling(packet, 1)));
        block(&mut sender, at(tti), 9);
    }
    sender.handle(at(4), acknowledging(2, &[])).expect("a report");
    assert_eq!(block(&mut sender, at(5), 9), []);
    assert!(!sender.has_output(at(5)));
    assert_eq!(sender.poll_timeout(), None);
}

#[test]
fn the_poll_timer_waits_for_the_prohibit_timer() {
    let mut config = bare();
    config.polling.last_pdu = true;
    config.polling.timer = Some(ttis(3));
    config.polling.prohibit = Some(ttis(5));
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, 1)));
    assert_eq!(block(&mut sender, at(0), 9), [(0, true)]);
    assert_eq!(block(&mut sender, at(3), 9), []);
    assert_eq!(block(&mut sender, at(5), 9), [(0, true)]);
    // Both timers began anew with that poll.
    assert_eq!(block(&mut sender, at(8), 9), []);
    assert_eq!(block(&mut sender, at(10), 9), [(0, true)]);
}

#[test]
fn a_retransmission_for_a_poll_counts_as_a_transmission() {
    let mut config = bare();
    config.polling.last_pdu = true;
    config.polling.timer = Some(ttis(3));
    config.max_transmissions = MaxTransmissions::new(3).expect("above 0");
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, 1)));
    for tti in [0, 3, 6] {
        assert_eq!(block(&mut sender, at(tti), 9), [(0, true)]);
    }
    // The fourth would be one too many: the SDU is given up.
    let pdus = super::pdus(&mut sender, at(9), 9);
    assert!(
        matches!(&pdus[..], [Pdu::Status(status)] if matches!(status.fields[0], SuperField::MoveWindow(_)))
    );
}

#[test]
fn the_last_pdu_of_a_closed_window_carries_the_poll() {
    let mut config = Config { tx_window: 3, ..bare() };
    config.polling.last_pdu = true;
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, 5)));
    assert_eq!(block(&mut sender, at(0), 9), [(0, false), (1, false), (2, true)]);
    assert!(!sender.has_output(at(1)));
    // VT(A) moves by one, and so does the window.
    sender.handle(at(2), acknowledging(3, &[1])).expect("a report");
    assert_eq!(block(&mut sender, at(2), 9), [(1, false), (3, true)]);
}

#[test]
fn the_peer_sets_the_window() {
    let config = Config { tx_window: 10, erroneous_status: ErroneousStatus::Ignore, ..bare() };
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, 30)));
    let mut tell = |tti, window, lsn, expected: &[u16]| {
        let fields = smallvec![SuperField::Window(window), SuperField::Ack(number(lsn))];
        sender.handle(at(tti), Pdu::Status(Status { fields })).expect("a report");
        let sent: vec::Vec<_> = block(&mut sender, at(tti), 99).into_iter().map(|(sn, _)| sn).collect();
        assert_eq!(sent, expected, "window {window}");
    };
    tell(0, 2, 0, &[0, 1]);
    // Less than what is outstanding: nothing new.
    tell(1, 1, 0, &[]);
    tell(2, 3, 2, &[2, 3, 4]);
    // 0 says nothing; more than is configured is as much as is configured.
    tell(3, 0, 3, &[5]);
    tell(4, 4095, 3, &[6, 7, 8, 9, 10, 11, 12]);
    // The other end says it on request.
    let mut receiver = entity(bare());
    receiver.set_peer_window(7);
    assert!(receiver.has_output(at(0)));
    assert_eq!(super::status(&mut receiver, at(0)).fields[..], [SuperField::Window(7)]);
    assert!(!receiver.has_output(at(0)));
}

#[test]
fn a_report_queues_once_and_there_is_no_guard_against_what_is_on_its_way() {
    let mut sender = entity(bare());
    assert!(sender.submit(at(0), filling(0, 5)));
    block(&mut sender, at(0), 9);
    // Twice before it leaves: once. Asked for again while on its way: again.
    sender.handle(at(1), acknowledging(4, &[1, 3])).expect("a report");
    sender.handle(at(1), acknowledging(4, &[1, 3])).expect("a report");
    assert_eq!(block(&mut sender, at(1), 9), [(1, false), (3, false)]);
    sender.handle(at(2), acknowledging(5, &[1])).expect("a report");
    assert_eq!(block(&mut sender, at(2), 9), [(1, false)]);
    // Acknowledged before it leaves: not at all.
    sender.handle(at(3), acknowledging(5, &[1])).expect("a report");
    sender.handle(at(3), acknowledging(5, &[])).expect("a report");
    assert_eq!(block(&mut sender, at(3), 9), []);
    assert_eq!((sender.counters().data_pdus, sender.counters().retransmissions), (5, 3));
}

#[test]
fn numbers_outside_the_window_are_an_error() {
    let config = Config { erroneous_status: ErroneousStatus::Ignore, ..bare() };
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, 5)));
    block(&mut sender, at(0), 9);
    sender.handle(at(1), acknowledging(2, &[])).expect("a report");
    for (lsn, nacks) in [(6, &[][..]), (1, &[]), (5, &[1]), (5, &[5]), (5, &[4095])] {
        let result = sender.handle(at(1), acknowledging(lsn, nacks));
        assert_eq!(result, Err(Reject::ErroneousSequenceNumber), "{lsn} {nacks:?}");
    }
    assert_eq!(sender.counters().rejected.of(Reject::ErroneousSequenceNumber), 5);
    assert_eq!(sender.counters().rejected.total(), 5);
    assert!(!sender.has_output(at(1)));
    // By default such a report leads to a reset.
    let mut strict = entity(bare());
    assert!(strict.handle(at(0), acknowledging(1, &[])).is_err());
    assert!(matches!(strict.poll_pdu(at(0)), Some(Pdu::Reset(reset)) if !reset.acknowledges));
}

#[test]
fn reports_may_name_their_runs_in_any_order() {
    let mut sender = entity(bare());
    assert!(sender.submit(at(0), filling(0, 9)));
    block(&mut sender, at(0), 9);
    sender.handle(at(1), acknowledging(9, &[7, 2, 4])).expect("a report");
    assert_eq!(block(&mut sender, at(1), 9), [(7, false), (2, false), (4, false)]);
    // Exactly these are kept.
    sender.handle(at(2), acknowledging(9, &[1, 2, 3, 4, 5, 6, 7, 8])).expect_err("1 is settled");
}
