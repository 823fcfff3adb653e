//! Tests of whole entities: two of them, and what lies between.

use std::vec::Vec;

use farcast_core::{Piece, Span, Time};
use smallvec::smallvec;

use crate::config::{Polling, StatusReporting};
use crate::pdu::{Pdu, SequenceNumber, Status, SuperField};
use crate::{Config, Entity, Event};

mod discarding;
mod figures;
mod laws;
mod polling;
mod random;
mod reporting;
mod resetting;
mod segmentation;

/// Octets of a PDU of 42 octets without its header.
const ROOM: u32 = 40;

/// The beginning of a TTI of 10 ms.
fn at(tti: u64) -> Time {
    Time::ZERO + ttis(tti)
}

/// Returns the length of `count` TTIs.
fn ttis(count: u64) -> Span {
    Span::from_millis(10) * count
}

fn number(sn: u16) -> SequenceNumber {
    SequenceNumber::new(sn)
}

/// Creates an SDU that fills `pdus` PDUs with its indicator.
fn filling(packet: u64, pdus: u32) -> Piece {
    Piece::whole(packet, pdus * ROOM - 1)
}

fn entity(config: Config) -> Entity<Piece> {
    Entity::new(config).expect("a legal configuration")
}

/// The settings with nothing switched on.
fn bare() -> Config {
    Config { polling: Polling::default(), status: StatusReporting::default(), ..Config::default() }
}

/// The data PDUs of a transport block of up to `most`: number, and whether they carry a poll.
fn block(entity: &mut Entity<Piece>, now: Time, most: usize) -> Vec<(u16, bool)> {
    let pdus = pdus(entity, now, most);
    let data = |pdu| if let Pdu::Data(pdu) = pdu { (pdu.sn.get(), pdu.poll) } else { panic!("{pdu:?}") };
    pdus.into_iter().map(data).collect()
}

/// A transport block of up to `most` PDUs.
fn pdus(entity: &mut Entity<Piece>, now: Time, most: usize) -> Vec<Pdu<Piece>> {
    core::iter::from_fn(|| entity.poll_pdu(now)).take(most).collect()
}

/// The one PDU that wants to leave, a status report.
fn status(entity: &mut Entity<Piece>, now: Time) -> Status {
    let mut pdus = pdus(entity, now, 10);
    match (pdus.pop(), pdus.is_empty()) {
        (Some(Pdu::Status(status)), true) => status,
        other => panic!("{other:?}"),
    }
}

/// A report: all before `lsn` has arrived, but for `missing`.
fn acknowledging(lsn: u16, missing: &[u16]) -> Pdu<Piece> {
    let mut fields = smallvec![];
    if !missing.is_empty() {
        fields.push(SuperField::List(missing.iter().map(|&sn| (number(sn), 0)).collect()));
    }
    fields.push(SuperField::Ack(number(lsn)));
    Pdu::Status(Status { fields })
}

/// The numbers that a report says are missing.
fn missing(status: &Status) -> Vec<u16> {
    status.missing().flat_map(|(first, count)| (0..count).map(move |step| first.plus(step).get())).collect()
}

/// The numbers of the SDUs that were delivered, and everything else that happened.
fn events(entity: &mut Entity<Piece>) -> (Vec<u64>, Vec<Event<Piece>>) {
    let (mut delivered, mut others) = (Vec::new(), Vec::new());
    while let Some(event) = entity.poll_event() {
        match event {
            Event::Delivered(sdu) => {
                assert!(farcast_core::Payload::is_whole(&sdu), "{sdu:?}");
                delivered.push(sdu.packet());
            }
            other => others.push(other),
        }
    }
    (delivered, others)
}
