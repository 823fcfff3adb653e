//! Messages of senders (RFC 5740 §4.2).

use core::ops::Range;

use farcast_core::Run;

use farcast_delivery::octets::{Reader, Sink};

use super::extension::{put_feedback, put_rate, put_vouched};
use super::fec::{self, put_fti, put_symbol};
use super::{DecodeError, Parts, kind, receiver};
use crate::message::{
    Body, Data, Flags, FromSender, Info, NodeId, Point, Probe, ProbedNode, Stamp, Symbol, Terms,
};
use crate::quantise::{GroupSize, Rate, Rtt};

/// Commands (RFC 5740 §4.2.3).
mod command {
    pub(super) const FLUSH: u8 = 1;
    pub(super) const EOT: u8 = 2;
    pub(super) const SQUELCH: u8 = 3;
    pub(super) const CC: u8 = 4;
    pub(super) const REPAIR_ADV: u8 = 5;
    pub(super) const ACK_REQ: u8 = 6;
    pub(super) const APPLICATION: u8 = 7;
}

pub(super) fn kind_of(said: &FromSender) -> u8 {
    match said {
        FromSender::Data(_) => kind::DATA,
        FromSender::Info(_) => kind::INFO,
        _ => kind::CMD,
    }
}

/// Writes the part behind the common header. Returns the position at which the header ends.
pub(super) fn encode<S: Sink>(terms: Terms, said: &FromSender, segment: u32, out: &mut S) -> usize {
    out.u16(terms.instance);
    out.put(&[terms.grtt.0, terms.backoff << 4 | terms.group.bits()]);
    match said {
        FromSender::Data(data) => {
            out.put(&[data.flags.0, data.fec.id()]);
            out.u16(data.object);
            let symbol = (data.symbols.first() + segment) as u16;
            let symbol = Symbol { block: data.block, block_len: data.block_len, symbol };
            put_symbol(data.fec, &symbol, out);
            put_fti(data.fec, data.fti.as_ref(), out);
            out.at()
        }
        FromSender::Info(info) => {
            out.put(&[info.flags.0, info.fec.id()]);
            out.u16(info.object);
            put_fti(info.fec, info.fti.as_ref(), out);
            put_vouched(info.vouched.as_ref(), out);
            header_and(out, |out| out.put(&info.content))
        }
        said => encode_command(said, out),
    }
}

/// Writes the content behind a header that ends here. Returns that position.
fn header_and<S: Sink>(out: &mut S, content: impl FnOnce(&mut S)) -> usize {
    let end = out.at();
    content(out);
    end
}

fn encode_command<S: Sink>(said: &FromSender, out: &mut S) -> usize {
    match said {
        FromSender::Data(_) | FromSender::Info(_) => out.at(),
        FromSender::Flush { point, ackers } => {
            put_place(command::FLUSH, point, out);
            header_and(out, |out| put_nodes(ackers, out))
        }
        FromSender::Eot => {
            out.put(&[command::EOT, 0, 0, 0]);
            out.at()
        }
        FromSender::Squelch { point, invalid } => {
            put_place(command::SQUELCH, point, out);
            header_and(out, |out| invalid.iter().for_each(|&object| out.u16(object)))
        }
        FromSender::Probe(probe) => encode_probe(probe, out),
        FromSender::RepairAdv { flags, feedback, requests } => {
            out.put(&[command::REPAIR_ADV, *flags, 0, 0]);
            put_feedback(feedback.as_ref(), out);
            header_and(out, |out| receiver::put_requests(requests, out))
        }
        FromSender::AckReq { kind, id, ackers } => {
            out.put(&[command::ACK_REQ, 0, *kind, *id]);
            header_and(out, |out| put_nodes(ackers, out))
        }
        FromSender::Application(content) => {
            out.put(&[command::APPLICATION, 0, 0, 0]);
            header_and(out, |out| out.put(content))
        }
    }
}

fn encode_probe<S: Sink>(probe: &Probe, out: &mut S) -> usize {
    out.put(&[command::CC, probe.flags]);
    out.u16(probe.sequence);
    out.u32(probe.sent.seconds);
    out.u32(probe.sent.micros);
    put_rate(probe.rate, out);
    header_and(out, |out| {
        for &ProbedNode { node, flags, rtt, rate } in &probe.nodes {
            out.u32(node.0);
            out.put(&[flags, rtt.0]);
            out.u16(rate.0);
        }
    })
}

/// Writes the header fields of a command that is about a point of the transmission.
fn put_place<S: Sink>(command: u8, point: &Point, out: &mut S) {
    out.put(&[command, point.fec.id()]);
    out.u16(point.object);
    put_symbol(point.fec, &point.symbol, out);
}

fn put_nodes<S: Sink>(nodes: &[NodeId], out: &mut S) {
    for node in nodes {
        out.u32(node.0);
    }
}

/// Reads the part behind the common header of a message of `kind`.
pub(super) fn decode(
    kind: u8,
    mut reader: Reader<'_>,
    parts: &Parts<'_>,
) -> Result<(Body, Range<usize>), DecodeError> {
    let (instance, grtt, spread) = (reader.u16()?, Rtt(reader.u8()?), reader.u8()?);
    let terms = Terms { instance, grtt, backoff: spread >> 4, group: GroupSize::from_bits(spread) };
    let (said, payload) = match kind {
        kind::DATA => (FromSender::Data(decode_data(reader, parts)?), parts.payload()),
        kind::INFO => (FromSender::Info(decode_info(reader, parts)?), 0..0),
        _ => (decode_command(reader, parts)?, 0..0),
    };
    Ok((Body::Sender(terms, said), payload))
}

fn decode_data(mut reader: Reader<'_>, parts: &Parts<'_>) -> Result<Data, DecodeError> {
    let (flags, id, object) = (Flags(reader.u8()?), reader.u8()?, reader.u16()?);
    // An extension behind the payload id may decide the meaning of the payload id, but its length depends on the code
    // alone.
    let mut behind = reader.clone();
    behind.take(fec::from_id(id, 8)?.payload_id_len())?;
    let found = parts.extensions(&behind)?;
    let (fec, fti) = fec::with_fti(id, found.fti, parts.field_bits)?;
    let Symbol { block, block_len, symbol } = fec::symbol(fec, &mut reader)?;
    let symbols = Run::new(symbol.into(), 1).ok_or(DecodeError::Symbol)?;
    let payload = parts.content().len();
    let len = u16::try_from(payload).ok().filter(|&len| len > 0).ok_or(DecodeError::Payload(payload))?;
    Ok(Data { flags, fec, object, block, block_len, symbols, fti, len, last_len: len })
}

fn decode_info(mut reader: Reader<'_>, parts: &Parts<'_>) -> Result<Info, DecodeError> {
    let (flags, id, object) = (Flags(reader.u8()?), reader.u8()?, reader.u16()?);
    let found = parts.extensions(&reader)?;
    let (fec, fti) = fec::with_fti(id, found.fti, parts.field_bits)?;
    Ok(Info { flags, fec, object, fti, vouched: found.vouched, content: parts.content().into() })
}

fn decode_command(mut reader: Reader<'_>, parts: &Parts<'_>) -> Result<FromSender, DecodeError> {
    let command = reader.u8()?;
    match command {
        command::FLUSH | command::SQUELCH => {
            let fec = fec::from_id(reader.u8()?, parts.field_bits)?;
            let object = reader.u16()?;
            let point = Point { fec, object, symbol: fec::symbol(fec, &mut reader)? };
            parts.extensions(&reader)?;
            Ok(if command == command::FLUSH {
                FromSender::Flush { point, ackers: nodes(parts)? }
            } else {
                FromSender::Squelch { point, invalid: fec::list(parts.content(), u16::from_be_bytes)? }
            })
        }
        command::CC => decode_probe(reader, parts),
        _ => decode_short(command, reader, parts),
    }
}

/// Decodes a command whose own fields fit the one word that it begins with.
fn decode_short(command: u8, mut reader: Reader<'_>, parts: &Parts<'_>) -> Result<FromSender, DecodeError> {
    let (flags, kind, id) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let found = parts.extensions(&reader)?;
    match command {
        command::EOT => Ok(FromSender::Eot),
        command::REPAIR_ADV => {
            let requests = receiver::requests(parts.rest(), parts.field_bits)?;
            Ok(FromSender::RepairAdv { flags, feedback: found.feedback, requests })
        }
        command::ACK_REQ => Ok(FromSender::AckReq { kind, id, ackers: nodes(parts)? }),
        command::APPLICATION => Ok(FromSender::Application(parts.content().into())),
        other => Err(DecodeError::Command(other)),
    }
}

fn decode_probe(mut reader: Reader<'_>, parts: &Parts<'_>) -> Result<FromSender, DecodeError> {
    let (flags, sequence) = (reader.u8()?, reader.u16()?);
    let sent = Stamp { seconds: reader.u32()?, micros: reader.u32()? };
    let found = parts.extensions(&reader)?;
    let nodes = fec::list(parts.content(), |[n0, n1, n2, n3, flags, rtt, r0, r1]| ProbedNode {
        node: NodeId(u32::from_be_bytes([n0, n1, n2, n3])),
        flags,
        rtt: Rtt(rtt),
        rate: Rate(u16::from_be_bytes([r0, r1])),
    })?;
    Ok(FromSender::Probe(Probe { flags, sequence, sent, rate: found.rate, nodes }))
}

fn nodes(parts: &Parts<'_>) -> Result<alloc::vec::Vec<NodeId>, DecodeError> {
    fec::list(parts.content(), |octets| NodeId(u32::from_be_bytes(octets)))
}
