//! A receiver's messages.

use alloc::vec::Vec;

use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::Stamp;
use farcast_delivery::octets::{Reader, Sink};

use super::{DecodeError, kind, put_stamp, stamp};
use crate::message::{Answer, FromReceiver, Mask, ObjectNack, Request};

/// Octets of a receiver's message without its requests or acknowledgement.
pub(crate) const FROM_RECEIVER: usize = 21;

/// Acknowledgements.
mod ack {
    pub(super) const OBJECT: u8 = 1;
    pub(super) const GRTT: u8 = 2;
}

/// Repair requests.
mod request {
    pub(super) const SEGMENTS: u8 = 1;
    pub(super) const BLOCKS: u8 = 2;
    pub(super) const INFO: u8 = 3;
    pub(super) const OBJECT: u8 = 4;
}

pub(super) fn kind_of(said: &FromReceiver) -> u8 {
    if matches!(said.answer, Answer::Nack(_)) { kind::NACK } else { kind::ACK }
}

/// Writes the message behind the common header.
pub(super) fn encode<S: Sink>(said: &FromReceiver, out: &mut S) {
    out.u32(said.server.0);
    // A time stamp of zero stands for no response.
    put_stamp(said.response.unwrap_or(Stamp { seconds: 0, micros: 0 }), out);
    out.u16(said.loss);
    out.u8(said.probe);
    match &said.answer {
        Answer::Nack(nacks) => put_nacks(nacks, out),
        Answer::Object(object) => {
            out.u8(ack::OBJECT);
            out.u32(*object);
        }
        Answer::Probe => {
            out.u8(ack::GRTT);
            out.u32(0);
        }
    }
}

/// Reads the message of type `kind` behind the common header.
pub(super) fn decode(kind: u8, mut reader: Reader<'_>) -> Result<FromReceiver, DecodeError> {
    let (server, stamp) = (NodeId(reader.u32()?), stamp(&mut reader)?);
    let response = Some(stamp).filter(|stamp| (stamp.seconds, stamp.micros) != (0, 0));
    let (loss, probe) = (reader.u16()?, reader.u8()?);
    let answer = if kind == kind::NACK {
        Answer::Nack(nacks(&mut reader)?)
    } else {
        let (kind, object) = (reader.u8()?, reader.u32()?);
        match kind {
            ack::OBJECT => Answer::Object(object),
            ack::GRTT => Answer::Probe,
            other => return Err(DecodeError::Ack(other)),
        }
    };
    Ok(FromReceiver { server, response, loss, probe, answer })
}

/// Returns the octets of a repair request.
pub(crate) fn request_len(request: &Request) -> usize {
    match request {
        Request::Segments { mask, .. } => 8 + mask.0.len(),
        Request::Blocks { mask, .. } => 7 + mask.0.len(),
        Request::Info | Request::Object => 1,
    }
}

/// Octets before the requests for an object: the object's number, and the length of the requests.
pub(crate) const NACK_HEADER: usize = 6;

/// Returns the octets of the requests for an object.
pub(crate) fn nack_len(nack: &ObjectNack) -> usize {
    NACK_HEADER + nack.requests.iter().map(request_len).sum::<usize>()
}

pub(super) fn put_nacks<S: Sink>(nacks: &[ObjectNack], out: &mut S) {
    for ObjectNack { object, requests } in nacks {
        out.u32(*object);
        // Requests were limited to a segment before.
        out.u16(requests.iter().map(request_len).sum::<usize>() as u16);
        for one in requests {
            match one {
                Request::Segments { erasures, offset, mask } => {
                    out.put(&[request::SEGMENTS, *erasures]);
                    put_mask(*offset, mask, out);
                }
                Request::Blocks { offset, mask } => {
                    out.u8(request::BLOCKS);
                    put_mask(*offset, mask, out);
                }
                Request::Info => out.u8(request::INFO),
                Request::Object => out.u8(request::OBJECT),
            }
        }
    }
}

fn put_mask<S: Sink>(offset: u32, mask: &Mask, out: &mut S) {
    out.u32(offset);
    out.u16(mask.0.len() as u16);
    out.put(&mask.0);
}

pub(super) fn nacks(reader: &mut Reader<'_>) -> Result<Vec<ObjectNack>, DecodeError> {
    let mut nacks = Vec::new();
    while !reader.rest().is_empty() {
        let (object, len) = (reader.u32()?, reader.u16()?);
        let (mut inner, mut requests) = (Reader::new(reader.take(len.into())?), Vec::new());
        while !inner.rest().is_empty() {
            let one = read_request(&mut inner).map_err(|error| match error {
                DecodeError::Truncated => DecodeError::RequestLength(len),
                other => other,
            })?;
            requests.push(one);
        }
        nacks.push(ObjectNack { object, requests });
    }
    Ok(nacks)
}

fn read_request(reader: &mut Reader<'_>) -> Result<Request, DecodeError> {
    Ok(match reader.u8()? {
        request::SEGMENTS => {
            let erasures = reader.u8()?;
            let (offset, mask) = mask(reader)?;
            Request::Segments { erasures, offset, mask }
        }
        request::BLOCKS => {
            let (offset, mask) = mask(reader)?;
            Request::Blocks { offset, mask }
        }
        request::INFO => Request::Info,
        request::OBJECT => Request::Object,
        other => return Err(DecodeError::Request(other)),
    })
}

fn mask(reader: &mut Reader<'_>) -> Result<(u32, Mask), DecodeError> {
    let (offset, len) = (reader.u32()?, reader.u16()?);
    Ok((offset, Mask(reader.take(len.into())?.into())))
}
