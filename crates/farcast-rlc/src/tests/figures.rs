//! The polling and status mechanisms of Teyeb et al., "Emulation Based Performance Investigation of FTP File Downloads
//! over UMTS Dedicated Channels", section 2: its figures 1 and 2, TTI by TTI.
//!
//! The stored text of the paper has the prose and not the drawings. The prose fixes the PDUs that carry polls, the PDUs
//! that are sent again, and their TTIs relative to one another. Chosen here are two PDUs in a TTI where the prose is
//! silent, and TTI 0 for the first. PDUs are numbered from 1, as in the paper.

use core::slice;
use std::vec;
use std::vec::Vec;

use farcast_core::Piece;

use super::{acknowledging, at, bare, entity, filling, missing, number, pdus, status, ttis};
use crate::pdu::{Pdu, SuperField};
use crate::report::ReportForm;
use crate::{Config, Entity};

/// Returns the data PDUs that leave in a TTI, numbered from 1, each with `true` if it carries a poll.
fn leave(entity: &mut Entity<Piece>, tti: u64, most: usize) -> Vec<(u16, bool)> {
    let leaving = super::block(entity, at(tti), most);
    leaving.into_iter().map(|(sn, poll)| (sn + 1, poll)).collect()
}

/// A TTI: the PDU that arrives before the sender sends, and the PDUs that leave.
type Row<'a> = (Option<Pdu<Piece>>, &'a [(u16, bool)]);

/// Sends TTI by TTI, two PDUs each, and compares with the table.
fn follow(config: Config, sdus: &[u32], table: &[Row]) {
    let mut sender = entity(config);
    for (packet, &count) in (0..).zip(sdus) {
        assert!(sender.submit(at(0), filling(packet, count)));
    }
    for (tti, (told, expected)) in (0..).zip(table) {
        if let Some(pdu) = told {
            sender.handle(at(tti), pdu.clone()).expect("a report");
        }
        assert_eq!(leave(&mut sender, tti, 2), *expected, "TTI {tti}");
    }
}

/// Makes the peer's report in the paper's numbers: all PDUs up to `cumulative` have arrived, and `nacks` have not.
fn report(cumulative: u16, nacks: &[u16]) -> Pdu<Piece> {
    let nacks: Vec<u16> = nacks.iter().map(|nack| nack - 1).collect();
    acknowledging(cumulative, &nacks)
}

const P: bool = true;
const N: bool = false;

#[test]
fn figure_1a_poll_last_pdu_and_last_retransmitted_pdu() {
    // "PDU #4 will be polled at TTI i if Poll last PDU is set and the retransmitted PDU #2 will be polled at TTI j if
    // Poll last Retransmitted PDU is set." i is 1, j is 5 here, and #2 was lost.
    for (last, again) in [(P, P), (P, N), (N, P), (N, N)] {
        let mut config = bare();
        config.polling.last_pdu = last;
        config.polling.last_retransmitted_pdu = again;
        let table: &[Row] = &[
            (None, &[(1, N), (2, N)]),
            (None, &[(3, N), (4, last)]),
            (None, &[]),
            (None, &[]),
            (None, &[]),
            (Some(report(4, &[2])), &[(2, again)]),
        ];
        follow(config, &[4], table);
    }
}

#[test]
fn figure_1b_poll_every_poll_pdu() {
    // "The poll_PDU value was set to 4. Thus, at TTI i, when the 4th PDU is sent, and when PDU #7 is sent at TTI j the
    // poll bits are set", on every fourth "(re)transmitted PDU": between them one PDU was sent again (here #2).
    let mut config = bare();
    config.polling.poll_pdu = 4.try_into().ok();
    let table: &[Row] = &[
        (None, &[(1, N), (2, N)]),
        (None, &[(3, N), (4, P)]),
        (Some(report(4, &[2])), &[(2, N), (5, N)]),
        (None, &[(6, N), (7, P)]),
    ];
    follow(config, &[8], table);
}

#[test]
fn figure_1c_poll_every_poll_sdu() {
    // "The poll_SDU is set to 1. At TTI i, when #2 is sent, and at TTI j, when #9 is sent, the polling bit is set, as
    // they are the last PDUs of the corresponding SDUs."
    let mut config = bare();
    config.polling.poll_sdu = 1.try_into().ok();
    let table: &[Row] = &[
        (None, &[(1, N), (2, P)]),
        (None, &[(3, N), (4, N)]),
        (None, &[(5, N), (6, N)]),
        (None, &[(7, N), (8, N)]),
        (None, &[(9, P)]),
    ];
    follow(config, &[2, 7], table);
}

#[test]
fn figure_1d_window_based_polling() {
    // "This threshold is set to 60%, and the window size is set to 10 PDUs. At TTI j, % reaches 60, triggering the
    // sending of a poll along with PDU #6." Nothing has been acknowledged. Beyond the threshold every PDU carries a
    // poll, for no prohibit timer is set; what is acknowledged brings the share down.
    let mut config = Config { tx_window: 10, ..bare() };
    config.polling.window_percent = Some(60);
    let table: &[Row] = &[
        (None, &[(1, N), (2, N)]),
        (None, &[(3, N), (4, N)]),
        (None, &[(5, N), (6, P)]),
        (None, &[(7, P), (8, P)]),
        (Some(report(6, &[])), &[(9, N), (10, N)]),
        (None, &[(11, N), (12, P)]),
        (None, &[(13, P), (14, P)]),
    ];
    follow(config, &[20], table);
}

#[test]
fn figure_1e_periodic_polling() {
    // "The period is set to ten TTIs. When the ten TTIs have elapsed (when we reach TTI j), a poll is triggered. As
    // there are no PDUs scheduled to be sent, one of the PDUs that have not been acknowledged yet will be resent with
    // the poll." Which one the prose leaves open; the standard says VT(S) - 1, here #4.
    let mut config = bare();
    config.polling.periodic = Some(ttis(10));
    let mut table: Vec<Row> = vec![(None, &[(1, N), (2, N)]), (None, &[(3, N), (4, N)])];
    table.extend((2..10).map(|_| (None, &[][..])));
    table.push((None, &[(4, P)]));
    table.extend((11..20).map(|_| (None, &[][..])));
    table.push((None, &[(4, P)]));
    follow(config.clone(), &[4], &table);
    // Where everything is acknowledged, there is nothing to ask.
    table[15].0 = Some(report(4, &[]));
    table[20].1 = &[];
    follow(config, &[4], &table);
}

#[test]
fn figure_1f_timer_based_polling() {
    // "A poll was sent at TTI i and when this poll was sent, the last PDU that was expecting an ACK was #4. When the
    // timer expired at TTI j, neither a NACK nor a cumulative ACK for #4 has been received so a poll will be sent along
    // with the retransmission of #4." i is 1, the timer is set to 5 TTIs, so j is 6.
    let mut config = bare();
    config.polling.last_pdu = true;
    config.polling.timer = Some(ttis(5));
    // What the sender is told at 3, what leaves then, and at 6 and on.
    let with = |row: Row, rest: &[Row]| {
        let begin: [Row; 3] = [(None, &[(1, N), (2, N)]), (None, &[(3, N), (4, P)]), (None, &[])];
        let table: Vec<Row> = begin.into_iter().chain([row, (None, &[]), (None, &[])]).collect();
        follow(config.clone(), &[4], &[&table, rest].concat());
    };
    let poll: Row = (None, &[(4, P)]);
    let none: Row = (None, &[]);
    // With the poll the timer starts anew.
    with(none.clone(), &[poll.clone(), none.clone(), none.clone(), none.clone(), none.clone(), poll.clone()]);
    // An acknowledgment of others does not stop it; one of #4, or a NACK, does.
    with((Some(report(3, &[])), &[]), &[poll]);
    with((Some(report(4, &[])), &[]), slice::from_ref(&none));
    with((Some(report(3, &[4])), &[(4, N)]), slice::from_ref(&none));
}

/// Brings PDUs to the receiver, numbered from 1, one SDU in all of them; `poll` is the one with a poll.
fn arrive(receiver: &mut Entity<Piece>, tti: u64, numbers: &[u16], poll: Option<u16>) {
    let mut sender = entity(bare());
    assert!(sender.submit(at(0), filling(0, 20)));
    for pdu in pdus(&mut sender, at(0), 20) {
        let Pdu::Data(mut pdu) = pdu else { panic!("{pdu:?}") };
        let number = pdu.sn.get() + 1;
        pdu.poll = poll == Some(number);
        if numbers.contains(&number) {
            receiver.handle(at(tti), Pdu::Data(pdu)).expect("a new PDU");
        }
    }
}

#[test]
fn figure_2a_the_answer_to_a_poll() {
    // "The receiver gets a status request along with PDU #4 at TTI i. During the next TTI, the receiver sends a status
    // report. In this case, as everything up to PDU #4 is received, the status contains a cumulative ACK for #4." i is
    // 1.
    let mut receiver = entity(bare());
    arrive(&mut receiver, 0, &[1, 2], None);
    assert!(!receiver.has_output(at(0)) && receiver.poll_pdu(at(0)).is_none());
    arrive(&mut receiver, 1, &[3, 4], Some(4));
    assert!(receiver.has_output(at(2)));
    let answer = status(&mut receiver, at(2));
    assert_eq!(answer.fields[..], [SuperField::Ack(number(4))]);
    assert!(receiver.poll_pdu(at(3)).is_none());
}

#[test]
fn figure_2b_periodic_status_reporting() {
    // "The status periodic is set to two TTIs. At TTI i a poll is received so the receiver sends a status report
    // (containing cumulative ACK for #2). At TTI i + 2, the periodic status fires for the first time. At TTI i + 4, the
    // periodic status timer fires again and a new status report, containing cumulative ACK #4, is sent." i is 0.
    // That #3 comes at i + 1 and
    // #4 at i + 3 is chosen; so is that the timer begins with the first PDU, which is what i + 2 says.
    let mut config = bare();
    config.status.periodic = Some(ttis(2));
    let mut receiver = entity(config);
    let mut reported = Vec::new();
    for tti in 0..=6 {
        match tti {
            0 => arrive(&mut receiver, tti, &[1, 2], Some(2)),
            1 => arrive(&mut receiver, tti, &[3], None),
            3 => arrive(&mut receiver, tti, &[4], None),
            _ => (),
        }
        // The answer to the poll leaves in the next TTI: what arrives in a TTI is there at its end.
        let sends = tti > 0;
        reported.extend(sends.then(|| receiver.poll_pdu(at(tti))).flatten().map(|pdu| (tti, pdu)));
    }
    let ack = |tti, lsn| (tti, acknowledging(lsn, &[]));
    assert_eq!(reported, [ack(1, 3), ack(2, 3), ack(4, 4), ack(6, 4)]);
}

#[test]
fn figure_2c_missing_pdu_indication() {
    // "PDUs #3 and #4 are lost in the air interface. The receiver gets PDU #5 while it was expecting #3 at TTI i + 2.
    // The receiver responds, if missing PDU indication is set, by sending a status PDU, containing cumulative ACK
    // for #2, and a [0, 0, 1, 1] bitmap." The fourth bit says that #6 came in the same TTI. In the standard's form the
    // bitmap has whole octets and may begin before; and as it names all that is missing, LSN speaks of all PDUs up
    // to #6, so that the cumulative acknowledgment of #2 follows from both.
    let mut config = bare();
    config.status.missing_pdu = true;
    config.status.form = ReportForm::Bitmap;
    let mut receiver = entity(config);
    arrive(&mut receiver, 0, &[1, 2], None);
    assert!(receiver.poll_pdu(at(1)).is_none());
    arrive(&mut receiver, 2, &[5, 6], None);
    let answer = status(&mut receiver, at(3));
    let [SuperField::Bitmap(bitmap), SuperField::Ack(lsn)] = &answer.fields[..] else { panic!("{answer:?}") };
    let bit = |paper: u16| u8::from(!bitmap.is_missing(number(paper - 1).since(bitmap.first)));
    assert_eq!([3, 4, 5, 6].map(bit), [0, 0, 1, 1]);
    assert_eq!((missing(&answer), lsn.get()), (vec![2, 3], 6));
    // Without it nothing is said.
    let mut silent = entity(bare());
    arrive(&mut silent, 0, &[1, 2, 5, 6], None);
    assert!(!silent.has_output(at(3)) && silent.poll_pdu(at(3)).is_none());
}
