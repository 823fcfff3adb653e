//! Reports beyond the figures: the prohibit timer, the estimated PDU counter, reports in parts and in padding.

use std::vec::Vec;

use farcast_core::Piece;

use super::{acknowledging, at, bare, entity, filling, missing, number, pdus, status, ttis};
use crate::format::Format;
use crate::pdu::{DataPdu, Pdu, Status, SuperField};
use crate::report::ReportForm;
use crate::{Config, Entity, Reject};

/// The data PDUs of one SDU.
fn of_one_sdu(count: u32) -> Vec<DataPdu<Piece>> {
    let config = Config { tx_window: 4095, max_sdu_octets: 1_000_000.try_into().expect("above 0"), ..bare() };
    let mut sender = entity(config);
    assert!(sender.submit(at(0), filling(0, count)));
    let data = |pdu| if let Pdu::Data(pdu) = pdu { pdu } else { panic!("{pdu:?}") };
    pdus(&mut sender, at(0), usize::MAX).into_iter().map(data).collect()
}

fn arrive(receiver: &mut Entity<Piece>, tti: u64, pdu: &DataPdu<Piece>, poll: bool) {
    receiver.handle(at(tti), Pdu::Data(DataPdu { poll, ..pdu.clone() })).expect("a new PDU");
}

/// Settings that report what is missing.
fn alert() -> Config {
    let mut config = bare();
    config.status.missing_pdu = true;
    config
}

#[test]
fn prohibited_reports_are_made_up_for_by_one_with_the_latest_state() {
    let mut config = alert();
    config.status.prohibit = Some(ttis(5));
    let mut receiver = entity(config);
    let sent = of_one_sdu(20);
    arrive(&mut receiver, 0, &sent[1], false);
    assert_eq!(missing(&status(&mut receiver, at(1))), [0]);
    // The timer runs from 1 to 6: a gap at 2 and a poll at 3 are remembered, what arrives at 4 counts.
    arrive(&mut receiver, 2, &sent[4], false);
    arrive(&mut receiver, 3, &sent[5], true);
    arrive(&mut receiver, 4, &sent[2], false);
    assert_eq!(receiver.poll_timeout().map(|it| (it.at, it.timer)), Some((at(6), "Timer_Status_Prohibit")));
    for tti in 2..6 {
        assert!(!receiver.has_output(at(tti)) && receiver.poll_pdu(at(tti)).is_none(), "TTI {tti}");
    }
    let report = status(&mut receiver, at(6));
    assert_eq!((missing(&report), report.ack()), (std::vec![0, 3], Some(number(6))));
    // That was one report for both, and the timer runs again.
    assert!(receiver.poll_pdu(at(20)).is_none());
    assert_eq!(receiver.counters().status_pdus, 2);
}

#[test]
fn only_a_new_gap_is_reported() {
    let mut receiver = entity(alert());
    let sent = of_one_sdu(20);
    for (tti, arrives, reported) in [
        (0, 0, false),
        (1, 3, true),
        (2, 4, false),
        (3, 1, false),
        (4, 6, true),
        (5, 5, false),
        (6, 2, false),
    ] {
        arrive(&mut receiver, tti, &sent[arrives], false);
        assert_eq!(receiver.poll_pdu(at(tti)).is_some(), reported, "{arrives} arrives");
    }
}

#[test]
fn old_and_repeated_pdus_are_counted_and_their_polls_answered() {
    let mut receiver = entity(Config { rx_window: 5, ..bare() });
    let sent = of_one_sdu(20);
    arrive(&mut receiver, 0, &sent[0], false);
    arrive(&mut receiver, 0, &sent[2], false);
    for (pdu, reason) in [(0, Reject::OutsideWindow), (2, Reject::Duplicate), (6, Reject::OutsideWindow)] {
        for poll in [false, true] {
            let result = receiver.handle(at(1), Pdu::Data(DataPdu { poll, ..sent[pdu].clone() }));
            assert_eq!(result, Err(reason));
            assert_eq!(receiver.poll_pdu(at(1)).is_some(), poll, "{pdu}");
        }
    }
    // The last number inside is taken.
    arrive(&mut receiver, 2, &sent[5], false);
    let rejected = receiver.counters().rejected;
    assert_eq!((rejected.of(Reject::OutsideWindow), rejected.of(Reject::Duplicate)), (4, 2));
    assert_eq!(receiver.counters().data_pdus_received, 3);
}

/// Returns the TTIs up to 20 in which a report leaves. The receiver lacks 0 to 2 of 4 PDUs, and `expected` PDUs could
/// have come in each TTI. `comes` lists TTIs and the PDUs that arrive in them.
fn with_epc(expected: u16, comes: &[(u64, usize)]) -> Vec<u64> {
    let mut config = alert();
    config.status.epc = Some(ttis(5));
    let mut receiver = entity(config);
    let sent = of_one_sdu(20);
    arrive(&mut receiver, 0, &sent[3], false);
    let mut reports = Vec::new();
    for tti in 1..=20 {
        for &(_, pdu) in comes.iter().filter(|&&(when, _)| when == tti) {
            arrive(&mut receiver, tti, &sent[pdu], false);
        }
        receiver.tti(at(tti), expected);
        reports.extend(receiver.poll_pdu(at(tti)).map(|_| tti));
    }
    reports
}

#[test]
fn the_estimated_pdu_counter_asks_again() {
    // The first report at 1 asks for three PDUs. The timer ends at 6, and from 6 on each TTI counts two: at 7 as many
    // could have come. The second report starts all anew.
    assert_eq!(with_epc(2, &[]), [1, 7, 13, 19]);
    assert_eq!(with_epc(3, &[]), [1, 6, 11, 16]);
    // Without capacity nothing could have come.
    assert_eq!(with_epc(0, &[]), [1]);
    // Two of three have come: the second report asks for one.
    assert_eq!(with_epc(2, &[(6, 0), (7, 1)]), [1, 7, 12, 17]);
    // All have come.
    assert_eq!(with_epc(2, &[(6, 0), (6, 1), (7, 2)]), [1]);
}

#[test]
fn a_report_that_one_pdu_does_not_hold_goes_on_in_the_next() {
    // 100 single holes: 18 in a PDU of 336 bits, in a LIST of 15 (248 bits) and one of 3 (56), before 16 bits of ACK.
    let mut config = bare();
    config.status.form = ReportForm::List;
    config.status.prohibit = Some(ttis(10));
    let mut receiver = entity(config);
    let sent = of_one_sdu(201);
    for odd in 0..100 {
        arrive(&mut receiver, 0, &sent[2 * odd + 1], odd == 99);
    }
    let mut named = Vec::new();
    let mut left = 0;
    // Two in a TTI; what arrives between two parts is not asked for.
    for tti in 1..10 {
        for pdu in pdus(&mut receiver, at(tti), 2) {
            let Pdu::Status(report) = pdu else { panic!("{pdu:?}") };
            assert_eq!(report.ack(), Some(number(0)));
            assert!(report.octets() <= 42);
            named.extend(missing(&report));
            left += 1;
        }
        if tti == 1 {
            arrive(&mut receiver, tti, &sent[100], false);
        }
    }
    let expected: Vec<u16> = (0..100).map(|hole| 2 * hole).filter(|&hole| hole != 100).collect();
    assert_eq!((named, left), (expected, 6));
    // It was one report for the prohibit timer, which began with its last part at 3.
    assert_eq!(receiver.poll_timeout().map(|it| it.at), Some(at(13)));
}

#[test]
fn reports_go_into_padding_where_they_fit() {
    for (octets, piggyback, in_padding) in [(20, true, true), (38, true, false), (20, false, false)] {
        let mut end = entity(Config { piggyback, ..bare() });
        let sent = of_one_sdu(20);
        assert!(end.submit(at(0), Piece::whole(1, octets)));
        arrive(&mut end, 0, &sent[0], true);
        let report = Status { fields: smallvec::smallvec![SuperField::Ack(number(1))] };
        match (&pdus(&mut end, at(0), 9)[..], in_padding) {
            ([Pdu::Data(data)], true) => assert_eq!(data.piggybacked, Some(report)),
            ([Pdu::Status(status), Pdu::Data(data)], false) => {
                assert_eq!((status, &data.piggybacked), (&report, &None));
            }
            (other, _) => panic!("{other:?}"),
        }
        assert_eq!(end.counters().piggybacked, u64::from(in_padding));
    }
}

#[test]
fn a_piggybacked_report_counts_even_if_its_pdu_does_not() {
    let mut end = entity(bare());
    let sent = of_one_sdu(3);
    assert!(end.submit(at(0), filling(1, 2)));
    assert_eq!(pdus(&mut end, at(0), 9).len(), 2);
    arrive(&mut end, 0, &sent[0], false);
    let Pdu::Status(report) = acknowledging(2, &[1]) else { unreachable!("it is one") };
    let again = DataPdu { piggybacked: Some(report), ..sent[0].clone() };
    assert_eq!(end.handle(at(1), Pdu::Data(again)), Err(Reject::OutsideWindow));
    assert_eq!(super::block(&mut end, at(1), 9), [(1, false)]);
}

#[test]
fn the_smallest_pdus_hold_every_report() {
    for form in [ReportForm::List, ReportForm::Bitmap, ReportForm::RelativeList] {
        let mut config = alert();
        config.format = Format::new(6);
        config.status.form = form;
        let mut receiver = entity(config);
        let sent = of_one_sdu(200);
        for pdu in [3, 4, 9, 190] {
            arrive(&mut receiver, 0, &sent[pdu], false);
        }
        let mut named = Vec::new();
        for pdu in pdus(&mut receiver, at(1), 1000) {
            let Pdu::Status(report) = pdu else { panic!("{pdu:?}") };
            assert!(report.octets() <= 6);
            named.extend(missing(&report));
        }
        named.sort_unstable();
        named.dedup();
        assert_eq!(named, (0..190).filter(|it| ![3, 4, 9].contains(it)).collect::<Vec<_>>(), "{form:?}");
    }
}
