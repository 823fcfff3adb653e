//! Encoding of group management, registration, and the messages that end a transmission.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use super::DecodeError;
use super::parameter::{ByteSink, Parameter, ParameterReader, kind, need, refuse_repeated, set};
use crate::message::{
    Abort, Completion, DeclineReason, Echo, End, Grant, Join, Leave, Query, Quit, Registration,
    RegistrationEntry,
};
use crate::proof::{Proof, Token};

fn group_options(all: bool) -> [u8; 4] {
    [if all { b'A' } else { b'F' }, 0, 0, 0]
}

fn is_all(parameter: Parameter<'_>) -> Result<bool, DecodeError> {
    parameter.options(b"FA").map(|[mark, ..]| mark == b'A')
}

pub(super) fn encode_query<S: ByteSink>(m: &Query, out: &mut S) {
    out.parameter(kind::APPLICATION_REFERENCE, m.application.as_bytes());
    out.parameter(kind::GROUP_OPTIONS, &group_options(m.all));
}

pub(super) fn decode_query(reader: &mut ParameterReader<'_>) -> Result<Query, DecodeError> {
    let (mut application, mut all) = (None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::APPLICATION_REFERENCE => set(&mut application, p, p.text(64)?)?,
            kind::GROUP_OPTIONS => set(&mut all, p, is_all(p)?)?,
            _ => {}
        }
    }
    Ok(Query {
        application: need(application, kind::APPLICATION_REFERENCE)?,
        all: need(all, kind::GROUP_OPTIONS)?,
    })
}

pub(super) fn encode_join<S: ByteSink>(m: &Join, out: &mut S) {
    out.parameter(kind::APPLICATION_REFERENCE, m.application.as_bytes());
    out.address(kind::PUBLIC_ADDRESS, kind::PUBLIC_ADDRESS_6, m.public);
    out.parameter(kind::GROUP_OPTIONS, &group_options(m.all));
    out.hosts(m.hosts.as_ref());
}

pub(super) fn decode_join(reader: &mut ParameterReader<'_>) -> Result<Join, DecodeError> {
    let (mut application, mut public, mut all, mut hosts) = (None, None, None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::APPLICATION_REFERENCE => set(&mut application, p, p.text(64)?)?,
            kind::PUBLIC_ADDRESS => set(&mut public, p, p.address4()?)?,
            kind::PUBLIC_ADDRESS_6 => set(&mut public, p, p.address6()?)?,
            kind::GROUP_OPTIONS => set(&mut all, p, is_all(p)?)?,
            kind::HOST_LIST => set(&mut hosts, p, p.hosts()?)?,
            _ => {}
        }
    }
    Ok(Join {
        application: need(application, kind::APPLICATION_REFERENCE)?,
        public: need(public, kind::PUBLIC_ADDRESS)?,
        all: need(all, kind::GROUP_OPTIONS)?,
        hosts,
    })
}

pub(super) fn encode_leave<S: ByteSink>(m: &Leave, out: &mut S) {
    out.address(kind::PUBLIC_ADDRESS, kind::PUBLIC_ADDRESS_6, m.public);
    out.hosts(m.hosts.as_ref());
}

pub(super) fn decode_leave(reader: &mut ParameterReader<'_>) -> Result<Leave, DecodeError> {
    let (mut public, mut hosts): (Option<IpAddr>, _) = (None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::PUBLIC_ADDRESS => set(&mut public, p, p.address4()?)?,
            kind::PUBLIC_ADDRESS_6 => set(&mut public, p, p.address6()?)?,
            kind::HOST_LIST => set(&mut hosts, p, p.hosts()?)?,
            _ => {}
        }
    }
    Ok(Leave { public: need(public, kind::PUBLIC_ADDRESS)?, hosts })
}

pub(super) fn encode_echo<S: ByteSink>(m: &Echo, hosts: Option<&Vec<crate::message::ClientId>>, out: &mut S) {
    out.integer(kind::ECHO_SEQUENCE, m.sequence);
    if let Some(data) = &m.data {
        out.parameter(kind::ECHO_DATA, data);
    }
    out.hosts(hosts);
}

pub(super) fn decode_echo(reader: &mut ParameterReader<'_>) -> Result<Echo, DecodeError> {
    let (mut sequence, mut data, mut hosts) = (None, None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::ECHO_SEQUENCE => set(&mut sequence, p, p.integer()?)?,
            kind::ECHO_DATA => set(&mut data, p, p.bytes(4096)?.to_vec())?,
            kind::HOST_LIST => set(&mut hosts, p, p.hosts()?)?,
            _ => {}
        }
    }
    Ok(Echo { sequence: need(sequence, kind::ECHO_SEQUENCE)?, data, hosts })
}

/// Encodes the server's address and port, which open every answer.
pub(super) fn encode_server<S: ByteSink>(server: SocketAddr, out: &mut S) {
    out.address(kind::SERVER_ADDRESS, kind::SERVER_ADDRESS_6, server.ip());
    out.integer(kind::SERVER_PORT, server.port().into());
}

pub(super) fn decode_server(reader: &mut ParameterReader<'_>) -> Result<SocketAddr, DecodeError> {
    let address = reader.expect_address(kind::SERVER_ADDRESS, kind::SERVER_ADDRESS_6)?;
    Ok(SocketAddr::new(address, reader.expect(&[kind::SERVER_PORT])?.port()?))
}

pub(super) fn encode_registration<S: ByteSink>(m: &Registration, out: &mut S) {
    encode_server(m.server, out);
    for entry in &m.entries {
        out.integer(kind::CLIENT_ADDRESS, entry.client.0);
        out.optional(kind::SERIAL_NUMBER, entry.serial);
        let response = match entry.response {
            Ok(()) => [b'A', 0, 0, 0],
            Err(reason) => [b'D', reason as u8, 0, 0],
        };
        out.parameter(kind::REGISTRATION_RESPONSE, &response);
    }
    out.text(kind::RECEIVER_NAME, m.name.as_ref());
    out.optional(kind::SEGMENTS_HELD, m.segments_held);
    out.optional(kind::RECEIVE_BUFFER, m.receive_buffer_bytes);
    if let Some(nonce) = &m.nonce {
        out.parameter(kind::NONCE, &nonce.0);
    }
    if let Some(heard) = &m.heard {
        out.head(kind::HEARD, 12);
        for count in [heard.missed, heard.sent, heard.lost] {
            out.put(&count.to_be_bytes());
        }
    }
    out.optional(kind::ROUND, m.round.map(u32::from));
    out.optional(kind::COMPLETE, m.complete);
}

pub(super) fn decode_registration(reader: &mut ParameterReader<'_>) -> Result<Registration, DecodeError> {
    let server = decode_server(reader)?;
    let first = reader.expect(&[kind::CLIENT_ADDRESS])?;
    let mut entries = alloc::vec![decode_entry(first, reader)?];
    let (mut name, mut held, mut buffer) = (None, None, None);
    let (mut nonce, mut heard, mut round, mut complete) = (None, None, None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::CLIENT_ADDRESS => entries.push(decode_entry(p, reader)?),
            kind::RECEIVER_NAME => set(&mut name, p, p.text(64)?)?,
            kind::SEGMENTS_HELD => set(&mut held, p, p.integer()?)?,
            kind::RECEIVE_BUFFER => set(&mut buffer, p, p.integer()?)?,
            kind::NONCE => set(&mut nonce, p, Proof(p.octets()?))?,
            kind::HEARD => set(&mut heard, p, p.heard()?)?,
            kind::ROUND => set(&mut round, p, p.round()?)?,
            kind::COMPLETE => set(&mut complete, p, p.integer()?)?,
            other => refuse_repeated(other, &[kind::REGISTRATION_RESPONSE, kind::SERIAL_NUMBER])?,
        }
    }
    Ok(Registration {
        server,
        entries,
        name,
        segments_held: held,
        receive_buffer_bytes: buffer,
        nonce,
        heard,
        round,
        complete,
    })
}

fn decode_entry(
    client: Parameter<'_>,
    reader: &mut ParameterReader<'_>,
) -> Result<RegistrationEntry, DecodeError> {
    let mut p = reader.expect(&[kind::REGISTRATION_RESPONSE, kind::SERIAL_NUMBER])?;
    let mut serial = None;
    if p.kind == kind::SERIAL_NUMBER {
        serial = Some(p.integer()?);
        p = reader.expect(&[kind::REGISTRATION_RESPONSE])?;
    }
    let [mark, reason, _] = p.options(b"AD")?;
    let response = match mark {
        b'A' => Ok(()),
        _ => Err(DeclineReason::from_wire(reason).ok_or(DecodeError::Value { parameter: p.kind })?),
    };
    Ok(RegistrationEntry { client: client.client()?, serial, response })
}

pub(super) fn encode_completion<S: ByteSink>(m: &Completion, out: &mut S) {
    out.hosts(m.hosts.as_ref());
    out.turn(m.turn);
}

pub(super) fn decode_completion(reader: &mut ParameterReader<'_>) -> Result<Completion, DecodeError> {
    let (mut hosts, mut turn) = (None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::HOST_LIST => set(&mut hosts, p, p.hosts()?)?,
            kind::TURN => set(&mut turn, p, p.turn()?)?,
            _ => {}
        }
    }
    Ok(Completion { hosts, turn })
}

pub(super) fn encode_abort<S: ByteSink>(m: &Abort, out: &mut S) {
    out.integer(kind::CANCEL_REASON, m.reason);
    out.text(kind::REASON_TEXT, m.text.as_ref());
    out.hosts(m.hosts.as_ref());
}

pub(super) fn decode_abort(reader: &mut ParameterReader<'_>) -> Result<Abort, DecodeError> {
    let (mut reason, mut hosts, mut text) = (None, None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::CANCEL_REASON => set(&mut reason, p, p.integer()?)?,
            kind::HOST_LIST => set(&mut hosts, p, p.hosts()?)?,
            kind::REASON_TEXT => set(&mut text, p, p.text(256)?)?,
            _ => {}
        }
    }
    Ok(Abort { reason: need(reason, kind::CANCEL_REASON)?, hosts, text })
}

pub(super) fn encode_quit<S: ByteSink>(m: &Quit, out: &mut S) {
    out.integer(kind::CANCEL_REASON, m.reason);
    out.optional(kind::CLIENT_ADDRESS, m.client.map(|client| client.0));
    out.text(kind::REASON_TEXT, m.text.as_ref());
}

pub(super) fn decode_quit(reader: &mut ParameterReader<'_>) -> Result<Quit, DecodeError> {
    let (mut reason, mut client, mut text) = (None, None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::CANCEL_REASON => set(&mut reason, p, p.integer()?)?,
            kind::CLIENT_ADDRESS => set(&mut client, p, p.client()?)?,
            kind::REASON_TEXT => set(&mut text, p, p.text(256)?)?,
            _ => {}
        }
    }
    Ok(Quit { reason: need(reason, kind::CANCEL_REASON)?, client, text })
}

pub(super) fn encode_end<S: ByteSink>(m: &End, out: &mut S) {
    encode_server(m.server, out);
    out.address(kind::RESPONSE_ADDRESS, kind::RESPONSE_ADDRESS_6, m.response.ip());
    out.integer(kind::RESPONSE_PORT, m.response.port().into());
}

pub(super) fn decode_end(reader: &mut ParameterReader<'_>) -> Result<End, DecodeError> {
    let server = decode_server(reader)?;
    let response = reader.expect_address(kind::RESPONSE_ADDRESS, kind::RESPONSE_ADDRESS_6)?;
    let port = reader.expect(&[kind::RESPONSE_PORT])?.port()?;
    reader.finish(&[kind::RESPONSE_ADDRESS, kind::RESPONSE_ADDRESS_6, kind::RESPONSE_PORT])?;
    Ok(End { server, response: SocketAddr::new(response, port) })
}

pub(super) fn encode_grant<S: ByteSink>(m: &Grant, out: &mut S) {
    out.integer(kind::CLIENT_ADDRESS, m.client.0);
    out.parameter(kind::TOKEN, &m.token.0);
}

pub(super) fn decode_grant(reader: &mut ParameterReader<'_>) -> Result<Grant, DecodeError> {
    let (mut client, mut token) = (None, None);
    while let Some(p) = reader.next()? {
        match p.kind {
            kind::CLIENT_ADDRESS => set(&mut client, p, p.client()?)?,
            kind::TOKEN => set(&mut token, p, Token(p.octets()?))?,
            _ => {}
        }
    }
    Ok(Grant { client: need(client, kind::CLIENT_ADDRESS)?, token: need(token, kind::TOKEN)? })
}
