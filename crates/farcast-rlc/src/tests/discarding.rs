//! SDUs that are given up, and the window that moves past them.

use std::vec;
use std::vec::Vec;

use farcast_core::Piece;
use smallvec::smallvec;

use super::{acknowledging, at, bare, block, entity, events, filling, number, pdus, ttis};
use crate::config::{BufferLimit, Discard, MaxTransmissions, Mrw};
use crate::pdu::{MoveWindow, Pdu, RelativeList, SequenceNumber, Status, StatusBitmap, SuperField};
use crate::{Config, Entity, Event, Reject};

/// Settings of at most `transmissions` transmissions, and of requests to move every 5 TTIs, three times.
fn giving_up_after(transmissions: MaxTransmissions) -> Config {
    Config { max_transmissions: transmissions, mrw: Mrw { timer: ttis(5), max_mrw: 3 }, ..bare() }
}

fn only_once() -> Config {
    giving_up_after(MaxTransmissions::new(1).expect("above 0"))
}

/// The request to move the window that leaves alone.
fn request(sender: &mut Entity<Piece>, tti: u64) -> MoveWindow {
    let status = super::status(sender, at(tti));
    match &status.fields[..] {
        [SuperField::MoveWindow(field)] => field.clone(),
        other => panic!("{other:?}"),
    }
}

fn to(sn: u16, n_length: u8) -> MoveWindow {
    MoveWindow { sns: smallvec![number(sn)], beyond_window: false, n_length }
}

fn answer(sn: u16, n: u8) -> Pdu<Piece> {
    Pdu::Status(Status { fields: smallvec![SuperField::MoveWindowAck { sn: number(sn), n }] })
}

fn asking(field: MoveWindow) -> Pdu<Piece> {
    Pdu::Status(Status { fields: smallvec![SuperField::MoveWindow(field)] })
}

fn discarded(sdus: core::ops::Range<u64>) -> Event<Piece> {
    Event::Discarded { sdus }
}

#[test]
fn max_dat_in_both_conventions() {
    let ours = |count| MaxTransmissions::new(count).expect("above 0");
    let standard = |max_dat| MaxTransmissions::from_max_dat(max_dat).expect("2 or more");
    for (limit, transmissions) in [(ours(1), 1), (ours(4), 4), (standard(2), 1), (standard(5), 4)] {
        let mut sender = entity(giving_up_after(limit));
        assert!(sender.submit(at(0), filling(0, 1)));
        let mut sent = block(&mut sender, at(0), 9).len();
        for tti in 1..20 {
            let missing = sender.handle(at(tti), acknowledging(1, &[0]));
            let given_up = !events(&mut sender).1.is_empty();
            if given_up {
                assert_eq!((sent, missing), (transmissions, Ok(())));
                assert_eq!(request(&mut sender, tti), to(1, 0));
                break;
            }
            sent += block(&mut sender, at(tti), 9).len();
        }
        assert_eq!(sender.counters().sdus_discarded, 1);
    }
}

/// Creates a sender with SDUs A to D of 60 octets, of which `leave` PDUs have left. Worked out by hand, with 40 octets
/// in a PDU and one of them for each indicator:
///
/// | PDU | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
/// |---|---|---|---|---|---|---|---|
/// | holds | A 40 | A 20, B 19 | B 40 | B 1, C 38 | C 22, D 17 | D 40 | D 3 |
fn four_sdus(config: Config, leave: usize) -> Entity<Piece> {
    let mut sender = entity(config);
    (0..4).for_each(|packet| assert!(sender.submit(at(0), Piece::whole(packet, 60))));
    assert_eq!(block(&mut sender, at(0), leave).len(), leave);
    sender
}

#[test]
fn a_discard_takes_every_sdu_up_to_the_pdu_and_no_more() {
    // Which PDUs are missing, what is given up, and to where the window moves.
    let cases: [(&[u16], _, _); 7] = [
        (&[0], 0..1, to(1, 1)),
        (&[1], 0..2, to(3, 1)),
        (&[2], 1..2, to(3, 1)),
        (&[3], 1..3, to(4, 1)),
        (&[4], 2..4, to(7, 0)),
        (&[6], 3..4, to(7, 0)),
        (&[2, 4], 1..4, to(7, 0)),
    ];
    for (nacks, sdus, field) in cases {
        let mut sender = four_sdus(only_once(), 7);
        sender.handle(at(1), acknowledging(7, nacks)).expect("a report");
        assert_eq!(events(&mut sender).1, [discarded(sdus)], "{nacks:?}");
        assert_eq!(request(&mut sender, 1), field, "{nacks:?}");
    }
}

#[test]
fn an_sdu_that_is_broken_off_leaves_a_number_behind_that_nobody_sends() {
    let mut sender = four_sdus(only_once(), 3);
    sender.handle(at(1), acknowledging(3, &[1])).expect("a report");
    assert_eq!(events(&mut sender).1, [discarded(0..2)]);
    let leaving = pdus(&mut sender, at(1), 9);
    let [Pdu::Status(status), Pdu::Data(first), ..] = &leaving[..] else { panic!("{leaving:?}") };
    assert_eq!(status.fields[..], [SuperField::MoveWindow(to(4, 0))]);
    // C begins at its first octet, in the PDU behind the one that is skipped.
    let data = &first.segments[0].data;
    assert_eq!((first.sn.get(), data.packet(), data.range().clone()), (4, 2, 0..40));
    // Asking for the number that is skipped, or for what was given up, brings nothing.
    sender.handle(at(2), acknowledging(4, &[1, 3])).expect("a report");
    assert!(pdus(&mut sender, at(2), 9).is_empty());
    sender.handle(at(3), answer(4, 0)).expect("an answer");
    assert_eq!(events(&mut sender).1, [Event::WindowMoved]);
    sender.handle(at(3), acknowledging(7, &[])).expect("a report");
    assert_eq!((sender.poll_timeout(), sender.has_output(at(9))), (None, false));
}

#[test]
fn an_sdu_beyond_the_window_is_broken_off_behind_it() {
    let config = Config { tx_window: 3, rx_window: 3, ..only_once() };
    let mut sender = four_sdus(config.clone(), 3);
    let mut receiver = entity(config);
    // B goes on in the PDU that the window does not allow: its number, 3, is the one to skip.
    sender.handle(at(1), acknowledging(3, &[0, 1])).expect("a report");
    let field = request(&mut sender, 1);
    assert_eq!(field, MoveWindow { beyond_window: true, ..to(4, 0) });
    assert!(!sender.has_output(at(2)));
    receiver.handle(at(2), asking(field)).expect("a request");
    let ack = receiver.poll_pdu(at(2)).expect("an answer");
    assert_eq!(ack, answer(4, 0));
    sender.handle(at(3), ack).expect("an answer");
    for pdu in pdus(&mut sender, at(3), 9) {
        receiver.handle(at(4), pdu).expect("in the window");
    }
    assert_eq!(events(&mut receiver).0, [2]);
}

/// Returns the SDUs that a receiver of some of the seven PDUs delivers before and after a request to move, and its
/// answer.
fn moved(
    config: Config,
    arrive: &[u16],
    field: MoveWindow,
) -> (Vec<u64>, Vec<u64>, Pdu<Piece>, Entity<Piece>) {
    let mut sender = four_sdus(bare(), 0);
    let mut receiver = entity(config);
    for pdu in pdus(&mut sender, at(0), 9) {
        if matches!(&pdu, Pdu::Data(data) if arrive.contains(&data.sn.get())) {
            receiver.handle(at(0), pdu).expect("a new PDU");
        }
    }
    let (before, _) = events(&mut receiver);
    receiver.handle(at(1), asking(field)).expect("a request");
    let (after, _) = events(&mut receiver);
    let answer = receiver.poll_pdu(at(1)).expect("an answer");
    (before, after, answer, receiver)
}

#[test]
fn the_receiver_delivers_what_is_complete_and_not_given_up() {
    let cases: [(&[u16], _, &[u64], &[u64], _); 5] = [
        // A is given up, and was the only one that kept the others back.
        (&[1, 2, 3, 4, 5, 6], to(1, 1), &[], &[1, 2, 3], answer(7, 0)),
        (&[0, 1, 3, 4, 5, 6], to(3, 1), &[0], &[2, 3], answer(7, 0)),
        // All are given up, B is complete.
        (&[1, 2, 3, 5, 6], to(7, 0), &[], &[1], answer(7, 0)),
        // The last one that is given up is complete as well, but named.
        (&[1, 2, 3, 4, 5, 6], to(7, 0), &[], &[1, 2], answer(7, 0)),
        // Nothing is there.
        (&[], to(3, 1), &[], &[], answer(3, 1)),
    ];
    for (arrive, field, before, after, answer) in cases {
        let result = moved(bare(), arrive, field.clone());
        assert_eq!(
            (&result.0[..], &result.1[..], &result.2),
            (before, after, &answer),
            "{arrive:?} {field:?}"
        );
    }
    // Out of sequence they were delivered before.
    let unordered = Config { in_sequence: false, ..bare() };
    let result = moved(unordered, &[1, 2, 3, 4, 5, 6], to(1, 1));
    assert_eq!((result.0, result.1, result.2), (vec![1, 2, 3], vec![], answer(7, 0)));
}

#[test]
fn the_end_of_what_was_given_up_may_arrive_later() {
    let (before, after, first, mut receiver) = moved(bare(), &[0, 1, 3], to(4, 1));
    assert_eq!((before, after, &first), (vec![0], vec![], &answer(4, 1)));
    // The answer was lost: the same again.
    receiver.handle(at(2), asking(to(4, 1))).expect("a request");
    assert_eq!(receiver.poll_pdu(at(2)), Some(first));
    // C ends in PDU 4, complete and given up; D begins behind it.
    let mut sender = four_sdus(bare(), 4);
    for pdu in pdus(&mut sender, at(3), 9) {
        receiver.handle(at(3), pdu).expect("a new PDU");
    }
    assert_eq!(events(&mut receiver).0, [3]);
    // A request from before changes nothing and is answered with how things are.
    receiver.handle(at(4), asking(to(1, 1))).expect("a request");
    assert_eq!(receiver.poll_pdu(at(4)), Some(answer(7, 0)));
}

#[test]
fn listed_sdus_are_dropped_where_they_can_be_told() {
    // A ends in PDU 1 and B in PDU 3, each alone: B is listed, D is the last. C is not, and complete.
    let field = MoveWindow { sns: smallvec![number(3), number(7)], ..to(7, 0) };
    let (_, after, ..) = moved(bare(), &[1, 2, 3, 4, 5, 6], field);
    assert_eq!(after, [2]);
}

#[test]
fn a_request_is_repeated_until_it_is_answered_and_then_the_entity_resets() {
    let mut sender = four_sdus(only_once(), 7);
    sender.handle(at(1), acknowledging(7, &[2])).expect("a report");
    for tti in [1, 6, 11] {
        assert_eq!(request(&mut sender, tti), to(3, 1), "TTI {tti}");
        assert!(pdus(&mut sender, at(tti + 4), 9).is_empty());
    }
    let [Pdu::Reset(reset)] = pdus(&mut sender, at(16), 9)[..] else { panic!("a reset") };
    assert!(!reset.acknowledges);
    // Answered in time, it ends; a second answer is one too many.
    let mut sender = four_sdus(only_once(), 7);
    sender.handle(at(1), acknowledging(7, &[2])).expect("a report");
    request(&mut sender, 1);
    // Of an answer to another request nothing follows.
    for wrong in [answer(3, 0), answer(2, 1), answer(9, 0)] {
        assert_eq!(sender.handle(at(2), wrong), Err(Reject::Unexpected));
    }
    sender.handle(at(2), answer(3, 1)).expect("an answer");
    assert_eq!(sender.handle(at(2), answer(3, 1)), Err(Reject::Unexpected));
    assert_eq!(events(&mut sender).1, [discarded(1..2), Event::WindowMoved]);
    assert_eq!(sender.poll_timeout(), None);
    assert_eq!((sender.counters().window_moves, sender.counters().mrw_sent), (1, 1));
}

#[test]
fn an_acknowledgment_beyond_ends_the_request_as_well() {
    for (lsn, ends) in [(3, false), (4, true), (7, true)] {
        let mut sender = four_sdus(only_once(), 7);
        sender.handle(at(1), acknowledging(7, &[2])).expect("a report");
        request(&mut sender, 1);
        events(&mut sender);
        sender.handle(at(2), acknowledging(lsn, &[])).expect("a report");
        assert_eq!(events(&mut sender).1.contains(&Event::WindowMoved), ends, "LSN {lsn}");
        assert_eq!(sender.poll_timeout().is_none(), ends, "LSN {lsn}");
    }
}

#[test]
fn one_request_at_a_time() {
    let mut sender = four_sdus(only_once(), 7);
    sender.handle(at(1), acknowledging(1, &[0])).expect("a report");
    assert_eq!(request(&mut sender, 1), to(1, 1));
    sender.handle(at(2), acknowledging(7, &[0, 2])).expect("a report");
    assert!(pdus(&mut sender, at(2), 9).is_empty());
    assert_eq!(events(&mut sender).1, [discarded(0..1)]);
    sender.handle(at(3), answer(2, 0)).expect("an answer");
    assert_eq!(events(&mut sender).1, [Event::WindowMoved, discarded(1..2)]);
    assert_eq!(request(&mut sender, 3), to(3, 1));
}

#[test]
fn a_timer_gives_up_what_is_old() {
    let discard = Discard::Timer { after: ttis(20) };
    let config = Config { discard, transmission_buffer: Some(BufferLimit::Sdus(3)), ..only_once() };
    let mut sender = entity(config);
    assert!(sender.submit(at(0), Piece::whole(0, 60)));
    assert!(sender.submit(at(0), Piece::whole(1, 60)));
    assert!(sender.submit(at(5), Piece::whole(2, 60)));
    assert!(!sender.submit(at(5), Piece::whole(3, 60)));
    assert_eq!(block(&mut sender, at(5), 1).len(), 1);
    // Without a limit of transmissions.
    for tti in 6..10 {
        sender.handle(at(tti), acknowledging(1, &[0])).expect("a report");
        assert_eq!(block(&mut sender, at(tti), 1), [(0, false)]);
    }
    assert_eq!(sender.poll_timeout().map(|it| (it.at, it.timer)), Some((at(20), "Timer_Discard")));
    // A has been begun: it is broken off. B has not: nobody needs to know. C is younger.
    sender.handle_timeout(at(20));
    assert_eq!(events(&mut sender).1, [discarded(0..1), discarded(1..2)]);
    let leaving = pdus(&mut sender, at(20), 9);
    let [Pdu::Status(status), Pdu::Data(first), Pdu::Data(_)] = &leaving[..] else { panic!("{leaving:?}") };
    assert_eq!(status.fields[..], [SuperField::MoveWindow(to(2, 0))]);
    assert_eq!((first.sn, first.segments[0].data.packet()), (SequenceNumber::new(2), 2));
    // While the request is not answered, others wait.
    assert_eq!(sender.poll_timeout().map(|it| (it.at, it.timer)), Some((at(25), "Timer_MRW")));
    assert!(pdus(&mut sender, at(25), 9).len() == 1 && events(&mut sender).1.is_empty());
    sender.handle(at(26), answer(2, 0)).expect("an answer");
    sender.handle_timeout(at(26));
    assert_eq!(events(&mut sender).1, [Event::WindowMoved, discarded(2..3)]);
}

#[test]
fn a_buffer_is_limited_by_octets_or_sdus() {
    let config = Config { transmission_buffer: Some(BufferLimit::Octets(100)), ..bare() };
    let mut sender = entity(config);
    assert!(sender.submit(at(0), Piece::whole(0, 60)));
    assert!(!sender.submit(at(0), Piece::whole(1, 41)));
    assert!(sender.submit(at(0), Piece::whole(2, 40)));
    // What has left for the first time no longer waits.
    assert_eq!(block(&mut sender, at(0), 1).len(), 1);
    assert!(!sender.submit(at(0), Piece::whole(3, 41)));
    assert!(sender.submit(at(0), Piece::whole(4, 40)));
    assert_eq!((sender.counters().sdus_submitted, sender.counters().sdus_refused), (3, 2));
}

#[test]
fn fields_that_make_no_sense_are_rejected() {
    let moving = |sns: &[u16], beyond_window, n_length| {
        let sns = sns.iter().copied().map(number).collect();
        SuperField::MoveWindow(MoveWindow { sns, beyond_window, n_length })
    };
    let relative = |words: &[u8]| {
        SuperField::RelativeList(RelativeList { first: number(0), words: words.iter().copied().collect() })
    };
    let fields = [
        moving(&[], false, 0),
        moving(&[1; 16], false, 0),
        moving(&[1, 2], true, 0),
        moving(&[1], false, 16),
        SuperField::List(smallvec![]),
        SuperField::List(smallvec![(number(0), 16)]),
        SuperField::Bitmap(StatusBitmap { first: number(0), octets: smallvec![] }),
        // The last code word ends no number; an error burst indicator stands alone.
        relative(&[0b0010]),
        relative(&[0b0001]),
    ];
    let mut end = four_sdus(bare(), 7);
    for field in fields {
        let status = Status { fields: smallvec![field, SuperField::Ack(number(7))] };
        assert_eq!(end.handle(at(0), Pdu::Status(status)), Err(Reject::InvalidField));
    }
    assert!(!end.has_output(at(0)));
    // Nothing was acknowledged.
    end.handle(at(1), acknowledging(1, &[0])).expect("a report");
}
