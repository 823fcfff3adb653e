//! A sender's messages.

use alloc::vec::Vec;

use farcast_core::Run;
use farcast_delivery::nack::NodeId;
use farcast_delivery::nack::quantise::Rtt;

use farcast_delivery::octets::{Reader, Sink};

use super::receiver::{nacks, put_nacks};
use super::vouched::{put_vouched, split};
use super::{DecodeError, kind, numbers, put_stamp, stamp};
use crate::message::{About, Body, Data, Flags, FromSender, Head, Info, Probe};

/// Commands.
mod flavor {
    pub(super) const FLUSH: u8 = 1;
    pub(super) const SQUELCH: u8 = 2;
    pub(super) const ACK_REQ: u8 = 3;
    pub(super) const GRTT_REQ: u8 = 4;
    pub(super) const NACK_ADV: u8 = 5;
}

/// Flag of a sender's last flush.
const EOT: u8 = 0x01;
/// Flag of a probe that all receivers are to answer.
const WILDCARD: u8 = 0x01;

pub(super) fn kind_of(said: &FromSender) -> u8 {
    match said {
        FromSender::Info(_) => kind::INFO,
        FromSender::Data(data) if data.parity => kind::PARITY,
        FromSender::Data(_) => kind::DATA,
        _ => kind::CMD,
    }
}

fn put_about<S: Sink>(head: Head, about: &About, more: Flags, out: &mut S) {
    out.u16(head.sequence);
    out.u32(about.object);
    out.u32(about.size);
    out.put(&[about.ndata, about.nparity, about.flags.with(more).0, head.grtt.0]);
}

/// Writes the message behind the common header, without payload.
pub(super) fn encode<S: Sink>(head: Head, said: &FromSender, segment: u32, out: &mut S) {
    let flavor = match said {
        FromSender::Info(info) => {
            put_about(head, &info.about, Flags::default(), out);
            out.u16(info.segment_size);
            out.put(&info.content);
            return put_vouched(info.vouched.as_ref(), out);
        }
        FromSender::Data(data) => return put_data(head, data, segment, out),
        FromSender::Flush { .. } => flavor::FLUSH,
        FromSender::Squelch { .. } => flavor::SQUELCH,
        FromSender::AckReq { .. } => flavor::ACK_REQ,
        FromSender::Probe(_) => flavor::GRTT_REQ,
        FromSender::NackAdv(_) => flavor::NACK_ADV,
    };
    out.u16(head.sequence);
    out.put(&[head.grtt.0, flavor]);
    match said {
        FromSender::Flush { eot, object } => {
            out.u8(if *eot { EOT } else { 0 });
            out.u32(*object);
        }
        FromSender::Squelch { sync, invalid } => {
            out.u32(*sync);
            for object in invalid {
                out.u32(*object);
            }
        }
        FromSender::AckReq { object, nodes } => {
            out.u32(*object);
            for node in nodes {
                out.u32(node.0);
            }
        }
        FromSender::Probe(probe) => {
            out.put(&[if probe.wildcard { WILDCARD } else { 0 }, probe.sequence]);
            put_stamp(probe.sent, out);
            put_stamp(probe.hold, out);
            out.u16(probe.segment_size);
            out.u32(probe.rate);
            out.u8(probe.rtt.0);
            out.u16(probe.loss);
            for node in &probe.nodes {
                out.u32(node.0);
            }
        }
        FromSender::NackAdv(nacks) => put_nacks(nacks, out),
        FromSender::Info(_) | FromSender::Data(_) => {}
    }
}

fn put_data<S: Sink>(mut head: Head, data: &Data, segment: u32, out: &mut S) {
    let (symbol, last) = (data.symbols.first() + segment, segment + 1 == data.symbols.count());
    head.sequence = head.sequence.wrapping_add(segment as u16);
    let (mut flags, runt) = (Flags::default(), data.is_runt() && !data.parity);
    for (is, flag) in [(last && data.ends_block, Flags::BLOCK_END), (runt, Flags::RUNT)] {
        flags = if is { flags.with(flag) } else { flags };
    }
    put_about(head, &data.about, flags, out);
    let size = u32::from(data.segment_size);
    // Offsets of data that are sent lie below 2^32; a decoder has checked the same.
    let start = data.block.wrapping_mul(data.about.ndata.into()).wrapping_mul(size);
    if data.parity {
        out.u32(start);
        out.u8(symbol as u8);
    } else {
        out.u32(start.wrapping_add(symbol.wrapping_mul(size)));
        if runt {
            out.u16(data.segment_size);
        }
    }
}

fn about(reader: &mut Reader<'_>) -> Result<(Head, About), DecodeError> {
    let sequence = reader.u16()?;
    let (object, size) = (reader.u32()?, reader.u32()?);
    let (ndata, nparity) = (reader.u8()?, reader.u8()?);
    let (flags, grtt) = (Flags(reader.u8()?), Rtt(reader.u8()?));
    Ok((Head { sequence, grtt }, About { object, size, ndata, nparity, flags }))
}

pub(super) fn info(mut reader: Reader<'_>) -> Result<Body, DecodeError> {
    let (head, about) = about(&mut reader)?;
    let (segment_size, content) = (reader.u16()?, reader.rest());
    if content.len() > usize::from(segment_size) {
        return Err(DecodeError::Payload(content.len()));
    }
    let (content, vouched) = split(content);
    let info = Info { about, segment_size, content: content.into(), vouched };
    Ok(Body::Sender(head, FromSender::Info(info)))
}

/// Reads DATA or PARITY. Returns the octets of payload at the end of the datagram as well.
pub(super) fn data(parity: bool, mut reader: Reader<'_>) -> Result<(Body, usize), DecodeError> {
    let (head, mut about) = about(&mut reader)?;
    let offset = reader.u32()?;
    let (ends_block, runt) = (about.flags.has(Flags::BLOCK_END), about.flags.has(Flags::RUNT) && !parity);
    about.flags = about.flags.without(Flags::BLOCK_END).without(Flags::RUNT);
    if about.ndata == 0 {
        return Err(DecodeError::Block);
    }
    let id = if parity { reader.u8()? } else { 0 };
    let size = if runt { Some(reader.u16()?) } else { None };
    let payload = reader.rest().len();
    let len = u16::try_from(payload).ok().filter(|&len| len > 0).ok_or(DecodeError::Payload(payload))?;
    let segment_size = size.unwrap_or(len);
    if offset >= about.size || !offset.is_multiple_of(segment_size.max(1).into()) {
        return Err(DecodeError::Offset(offset));
    }
    let left = (about.size - offset).min(segment_size.into());
    // Only the last segment of an object may be short, and its flags say so.
    if !parity && (u32::from(len) != left || runt != (len < segment_size)) {
        return Err(DecodeError::Payload(payload));
    }
    let segment = offset / u32::from(segment_size);
    let (block, within) = (segment / u32::from(about.ndata), segment % u32::from(about.ndata));
    let symbol = if parity {
        let first = about.block_len(block, segment_size);
        if within > 0 {
            return Err(DecodeError::Offset(offset));
        }
        if u32::from(id) < first || u32::from(id) >= first + u32::from(about.nparity) {
            return Err(DecodeError::Symbol(id));
        }
        id.into()
    } else {
        within
    };
    let symbols = Run::one(symbol);
    let data = Data { about, block, symbols, parity, segment_size, len, ends_block };
    Ok((Body::Sender(head, FromSender::Data(data)), payload))
}

pub(super) fn command(mut reader: Reader<'_>) -> Result<Body, DecodeError> {
    let head = Head { sequence: reader.u16()?, grtt: Rtt(reader.u8()?) };
    let said = match reader.u8()? {
        flavor::FLUSH => {
            let eot = reader.u8()? & EOT != 0;
            FromSender::Flush { eot, object: reader.u32()? }
        }
        flavor::SQUELCH => FromSender::Squelch { sync: reader.u32()?, invalid: numbers(&mut reader)? },
        flavor::ACK_REQ => FromSender::AckReq { object: reader.u32()?, nodes: nodes(&mut reader)? },
        flavor::GRTT_REQ => FromSender::Probe(Probe {
            wildcard: reader.u8()? & WILDCARD != 0,
            sequence: reader.u8()?,
            sent: stamp(&mut reader)?,
            hold: stamp(&mut reader)?,
            segment_size: reader.u16()?,
            rate: reader.u32()?,
            rtt: Rtt(reader.u8()?),
            loss: reader.u16()?,
            nodes: nodes(&mut reader)?,
        }),
        flavor::NACK_ADV => FromSender::NackAdv(nacks(&mut reader)?),
        other => return Err(DecodeError::Command(other)),
    };
    Ok(Body::Sender(head, said))
}

fn nodes(reader: &mut Reader<'_>) -> Result<Vec<NodeId>, DecodeError> {
    Ok(numbers(reader)?.into_iter().map(NodeId).collect())
}
