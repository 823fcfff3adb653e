//! Messages of receivers (RFC 5740 §4.3).

use alloc::vec::Vec;

use farcast_delivery::octets::{Reader, Sink};

use super::extension::put_feedback;
use super::fec::{point, put_point};
use super::{DecodeError, Parts, kind};
use crate::message::{Answer, Form, FromReceiver, Level, NodeId, Request, Stamp};

/// Acknowledgement type of a flush.
const FLUSH: u8 = 2;

pub(super) fn kind_of(said: &FromReceiver) -> u8 {
    if matches!(said.answer, Answer::Nack(_)) { kind::NACK } else { kind::ACK }
}

/// Writes the part behind the common header. Returns the position at which the header ends.
pub(super) fn encode<S: Sink>(said: &FromReceiver, out: &mut S) -> usize {
    out.u32(said.sender.0);
    out.u16(said.instance);
    out.put(&match said.answer {
        Answer::Nack(_) => [0, 0],
        Answer::Flushed { id, .. } => [FLUSH, id],
        Answer::Ack { kind, id, .. } => [kind, id],
    });
    // A zero time means that there is no response to a probe.
    let stamp = said.response.unwrap_or(Stamp { seconds: 0, micros: 0 });
    out.u32(stamp.seconds);
    out.u32(stamp.micros);
    put_feedback(said.feedback.as_ref(), out);
    let end = out.at();
    match &said.answer {
        Answer::Nack(requests) => put_requests(requests, out),
        Answer::Flushed { point, .. } => put_point(point, out),
        Answer::Ack { content, .. } => out.put(content),
    }
    end
}

/// Reads the part behind the common header of a message of `kind`.
pub(super) fn decode(
    kind: u8,
    mut reader: Reader<'_>,
    parts: &Parts<'_>,
) -> Result<FromReceiver, DecodeError> {
    let (sender, instance) = (NodeId(reader.u32()?), reader.u16()?);
    let (ack, id) = (reader.u8()?, reader.u8()?);
    let stamp = Stamp { seconds: reader.u32()?, micros: reader.u32()? };
    let response = Some(stamp).filter(|stamp| (stamp.seconds, stamp.micros) != (0, 0));
    let found = parts.extensions(&reader)?;
    let answer = match (kind, ack) {
        (kind::NACK, _) => Answer::Nack(requests(parts.rest(), parts.field_bits)?),
        (_, FLUSH) => Answer::Flushed { id, point: point(&mut parts.rest(), parts.field_bits)? },
        (_, kind) => Answer::Ack { kind, id, content: parts.content().into() },
    };
    Ok(FromReceiver { sender, instance, response, feedback: found.feedback, answer })
}

pub(super) fn put_requests<S: Sink>(requests: &[Request], out: &mut S) {
    for Request { form, level, points } in requests {
        let form = match form {
            Form::Items => 1,
            Form::Ranges => 2,
            Form::Erasures => 3,
        };
        out.put(&[form, level.0]);
        let octets: usize = points.iter().map(|point| 4 + point.fec.payload_id_len()).sum();
        // Requests are limited to a segment long before.
        out.u16(octets as u16);
        for point in points {
            put_point(point, out);
        }
    }
}

pub(super) fn requests(mut reader: Reader<'_>, field_bits: u8) -> Result<Vec<Request>, DecodeError> {
    let mut requests = Vec::new();
    while !reader.rest().is_empty() {
        let form = match reader.u8()? {
            1 => Form::Items,
            2 => Form::Ranges,
            3 => Form::Erasures,
            other => return Err(DecodeError::Form(other)),
        };
        let (level, len) = (Level(reader.u8()?), reader.u16()?);
        let wrong = DecodeError::RequestLength(len);
        let mut items = Reader::new(reader.take(len.into())?);
        let mut points = Vec::new();
        while !items.rest().is_empty() {
            let short = |error| if error == DecodeError::Truncated { wrong } else { error };
            points.push(point(&mut items, field_bits).map_err(short)?);
        }
        if form == Form::Ranges && !points.len().is_multiple_of(2) {
            return Err(wrong);
        }
        requests.push(Request { form, level, points });
    }
    Ok(requests)
}
