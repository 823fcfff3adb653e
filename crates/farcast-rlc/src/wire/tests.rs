//! Witnesses of the codec: vectors worked out by hand, a naive codec over strings of '0' and '1', and tshark.

mod naive;
mod properties;
mod refusals;
mod sdus;
mod tshark;
mod vectors;

use std::string::String;
use std::vec;
use std::vec::Vec;

use super::{encode, wire_len};
use crate::format::Format;
use crate::pdu::{DataPdu, Pdu, Segment, SequenceNumber, Status, SuperField};

/// Octets of the PDUs of the study's bearers, with indicators of one octet.
const SHORT: Format = Format::new(42);
/// A size that needs indicators of two octets.
const LONG: Format = Format::new(130);

fn sn(number: u16) -> SequenceNumber {
    SequenceNumber::new(number)
}

/// A data PDU without data.
fn data_pdu(number: u16) -> DataPdu<Vec<u8>> {
    DataPdu {
        sn: sn(number),
        poll: false,
        ended_before: None,
        segments: [].into_iter().collect(),
        last_end: crate::pdu::LastEnd::Indicator,
        piggybacked: None,
    }
}

fn segment(data: impl IntoIterator<Item = u8>, ends: bool) -> Segment<Vec<u8>> {
    Segment { data: data.into_iter().collect(), ends }
}

fn report(fields: impl IntoIterator<Item = SuperField>) -> Status {
    Status { fields: fields.into_iter().collect() }
}

/// The octets of a PDU, written over a buffer that is not zero and longer than needed.
fn encoded(pdu: &Pdu<Vec<u8>>, format: Format) -> Result<Vec<u8>, super::EncodeError> {
    let mut out = vec![0xA5; wire_len(format) + 3];
    let len = encode(pdu, format, &mut out)?;
    assert_eq!(out[len..], [0xA5; 3]);
    out.truncate(len);
    Ok(out)
}

/// The bits of octets, as '0' and '1'.
fn bit_string(octets: &[u8]) -> String {
    octets
        .iter()
        .flat_map(|octet| (0..8).rev().map(move |bit| if octet >> bit & 1 == 1 { '1' } else { '0' }))
        .collect()
}

/// A PDU that was read, with octets of its own.
fn owned(pdu: Pdu<&[u8]>) -> Pdu<Vec<u8>> {
    pdu.map(<[u8]>::to_vec)
}
