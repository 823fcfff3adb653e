//! Encoding of data, status requests and their answers.

use core::ops::Range;

use alloc::vec::Vec;
use farcast_core::{Bitmap, Run};
use md5::{Digest, Md5};

use super::control::{decode_server, encode_server};
use super::parameter::{ByteSink, Parameter, ParameterReader, kind, need, refuse_repeated, set};
use super::{DecodeError, HEADER_LEN};
use crate::message::{Ack, Data, DataKind, Done, Nak, StatusRequest, StatusType};

pub(super) fn encode_data<S: ByteSink>(m: &Data, segment: u32, out: &mut S) {
    out.integer(kind::PASS_NUMBER, m.pass);
    out.integer(kind::BLOCK_NUMBER, m.block + 1);
    let number = match m.kind {
        DataKind::Source => kind::DTU_NUMBER,
        DataKind::Parity => kind::PARITY_SYMBOL,
    };
    out.integer(number, m.dtus.first() + segment + 1);
    out.head(kind::PRODUCT_DATA, m.payload_len(segment));
}

pub(super) fn decode_data(datagram: &[u8]) -> Result<(Data, Range<usize>), DecodeError> {
    let mut reader = ParameterReader::new(datagram, HEADER_LEN);
    let (mut pass, mut block, mut number, mut payload) = (None, None, None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::PASS_NUMBER => set(&mut pass, p, p.integer()?)?,
            kind::BLOCK_NUMBER => set(&mut block, p, p.ordinal()?)?,
            kind::DTU_NUMBER => set(&mut number, p, (DataKind::Source, p.ordinal()?))?,
            kind::PARITY_SYMBOL => set(&mut number, p, (DataKind::Parity, p.ordinal()?))?,
            kind::PRODUCT_DATA => set(&mut payload, p, p.offset..p.offset + p.value.len())?,
            _ => {}
        }
    }
    let payload = need(payload, kind::PRODUCT_DATA)?;
    let (data_kind, dtu) = need(number, kind::DTU_NUMBER)?;
    // A datagram is at most 65,535 bytes long, so the payload's length fits.
    let len = payload.len() as u16;
    let data = Data {
        pass: need(pass, kind::PASS_NUMBER)?,
        block: need(block, kind::BLOCK_NUMBER)?,
        kind: data_kind,
        dtus: Run::one(dtu),
        len,
        last_len: len,
    };
    if len == 0 {
        return Err(DecodeError::ParameterLength { parameter: kind::PRODUCT_DATA });
    }
    Ok((data, payload))
}

pub(super) fn encode_status_request<S: ByteSink>(m: &StatusRequest, out: &mut S) {
    out.integer(kind::PASS_NUMBER, m.pass);
    out.range(kind::BLOCK_RANGE, m.blocks);
    out.range(kind::DTU_RANGE, m.dtus);
    out.integer(kind::STATUS_TYPE, if m.status == StatusType::NakOnly { 1 } else { 2 });
    out.hosts(m.hosts.as_ref());
    out.turn(m.turn);
}

pub(super) fn decode_status_request(reader: &mut ParameterReader<'_>) -> Result<StatusRequest, DecodeError> {
    let (mut pass, mut blocks, mut dtus, mut status) = (None, None, None, None);
    let (mut hosts, mut turn) = (None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::PASS_NUMBER => set(&mut pass, p, p.integer()?)?,
            kind::BLOCK_RANGE => set(&mut blocks, p, p.range()?)?,
            kind::DTU_RANGE => set(&mut dtus, p, p.range()?)?,
            kind::STATUS_TYPE => set(&mut status, p, status_type(p)?)?,
            kind::HOST_LIST => set(&mut hosts, p, p.hosts()?)?,
            kind::TURN => set(&mut turn, p, p.turn()?)?,
            _ => {}
        }
    }
    Ok(StatusRequest {
        pass: need(pass, kind::PASS_NUMBER)?,
        blocks: need(blocks, kind::BLOCK_RANGE)?,
        dtus: need(dtus, kind::DTU_RANGE)?,
        status: need(status, kind::STATUS_TYPE)?,
        hosts,
        turn,
    })
}

fn status_type(p: Parameter<'_>) -> Result<StatusType, DecodeError> {
    match p.integer()? {
        1 => Ok(StatusType::NakOnly),
        2 => Ok(StatusType::All),
        _ => Err(DecodeError::Value { parameter: p.kind }),
    }
}

pub(super) fn encode_nak<S: ByteSink>(m: &Nak, out: &mut S) {
    encode_server(m.server, out);
    out.integer(kind::CLIENT_ADDRESS, m.client.0);
    out.integer(kind::PASS_NUMBER, m.pass);
    out.integer(kind::BLOCK_NUMBER, m.block + 1);
    out.integer(kind::EVENT_COUNT, m.missing.count());
    out.made(kind::EVENT_HASH, 16, || Md5::digest(event_list(&m.missing)).to_vec());
    out.made(kind::EVENT_LIST, m.missing.len().div_ceil(8) as usize, || event_list(&m.missing));
    if m.parity_held > 0 {
        out.integer(kind::PARITY_HELD, m.parity_held);
    }
    if m.unstored > 0 {
        out.integer(kind::UNSTORED, m.unstored);
    }
}

/// Encodes the bitmap with DTU 1 in the most significant bit of the first byte; it covers the whole block.
fn event_list(missing: &Bitmap) -> Vec<u8> {
    let bytes = missing.words().iter().flat_map(|word| word.reverse_bits().to_be_bytes());
    bytes.take(missing.len().div_ceil(8) as usize).collect()
}

fn bitmap(list: &[u8]) -> Option<Bitmap> {
    let word =
        |chunk: &[u8]| chunk.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(byte.reverse_bits()));
    Bitmap::from_words(list.chunks(8).map(word).collect(), u32::try_from(list.len()).ok()?.checked_mul(8)?)
}

/// Ordered parameters of a NAK after its server.
const NAK_ORDER: [u16; 6] = [
    kind::CLIENT_ADDRESS,
    kind::PASS_NUMBER,
    kind::BLOCK_NUMBER,
    kind::EVENT_COUNT,
    kind::EVENT_HASH,
    kind::EVENT_LIST,
];

pub(super) fn decode_nak(reader: &mut ParameterReader<'_>) -> Result<Nak, DecodeError> {
    // All of them are ordered.
    let server = decode_server(reader)?;
    let client = reader.expect(&[kind::CLIENT_ADDRESS])?.client()?;
    let pass = reader.expect(&[kind::PASS_NUMBER])?.integer()?;
    let block = reader.expect(&[kind::BLOCK_NUMBER])?.ordinal()?;
    let count = reader.expect(&[kind::EVENT_COUNT])?.integer()?;
    let hash: [u8; 16] = reader.expect(&[kind::EVENT_HASH])?.octets()?;
    let list = reader.expect(&[kind::EVENT_LIST])?.value;
    let (mut parity_held, mut unstored) = (None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::PARITY_HELD => set(&mut parity_held, p, p.integer()?)?,
            kind::UNSTORED => set(&mut unstored, p, p.integer()?)?,
            other => refuse_repeated(other, &NAK_ORDER)?,
        }
    }
    let missing = bitmap(list).ok_or(DecodeError::EventList)?;
    if missing.count() != count || Md5::digest(list).as_slice() != hash {
        return Err(DecodeError::EventList);
    }
    let (parity_held, unstored) = (parity_held.unwrap_or(0), unstored.unwrap_or(0));
    Ok(Nak { server, client, pass, block, missing, parity_held, unstored })
}

pub(super) fn encode_ack<S: ByteSink>(m: &Ack, out: &mut S) {
    encode_server(m.server, out);
    out.integer(kind::PASS_NUMBER, m.pass);
    out.range(kind::BLOCK_RANGE, m.blocks);
    out.integer(kind::CLIENT_ADDRESS, m.client.0);
}

pub(super) fn decode_ack(reader: &mut ParameterReader<'_>) -> Result<Ack, DecodeError> {
    let server = decode_server(reader)?;
    let pass = reader.expect(&[kind::PASS_NUMBER])?.integer()?;
    let blocks = reader.expect(&[kind::BLOCK_RANGE])?.range()?;
    let client = reader.expect(&[kind::CLIENT_ADDRESS])?.client()?;
    reader.finish(&[kind::PASS_NUMBER, kind::BLOCK_RANGE, kind::CLIENT_ADDRESS])?;
    Ok(Ack { server, pass, blocks, client })
}

pub(super) fn encode_done<S: ByteSink>(m: &Done, out: &mut S) {
    encode_server(m.server, out);
    out.integer(kind::CLIENT_ADDRESS, m.client.0);
    out.integer(kind::EVENT_COUNT, m.naked_dtus);
    out.integer(kind::TRANSFER_DURATION, m.duration_s);
    out.optional(kind::ROUND, m.round.map(u32::from));
}

pub(super) fn decode_done(reader: &mut ParameterReader<'_>) -> Result<Done, DecodeError> {
    let server = decode_server(reader)?;
    let client = reader.expect(&[kind::CLIENT_ADDRESS])?.client()?;
    let naked_dtus = reader.expect(&[kind::EVENT_COUNT])?.integer()?;
    let duration_s = reader.expect(&[kind::TRANSFER_DURATION])?.integer()?;
    let mut round = None;
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::ROUND => set(&mut round, p, p.round()?)?,
            other => {
                refuse_repeated(other, &[kind::CLIENT_ADDRESS, kind::EVENT_COUNT, kind::TRANSFER_DURATION])?;
            }
        }
    }
    Ok(Done { server, client, naked_dtus, duration_s, round })
}
