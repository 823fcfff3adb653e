//! Encoding of ANNOUNCE.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::DecodeError;
use super::parameter::{ByteSink, Parameter, ParameterReader, kind, need, padding, refuse_repeated, set};
use crate::hostset::HostSet;
use crate::message::{Announce, AnnounceOptions, ClientId, DeclineReason, GroupModel, HostState};
use crate::proof::Proof;
use crate::turn::Turn;

pub(super) fn encode<S: ByteSink>(m: &Announce, out: &mut S) {
    // The first five parameters are ordered.
    out.address(kind::SERVER_ADDRESS, kind::SERVER_ADDRESS_6, m.server.ip());
    out.integer(kind::SERVER_PORT, m.server.port().into());
    out.address(kind::RESPONSE_ADDRESS, kind::RESPONSE_ADDRESS_6, m.response.ip());
    out.integer(kind::RESPONSE_PORT, m.response.port().into());
    out.address(kind::PRIVATE_ADDRESS, kind::PRIVATE_ADDRESS_6, m.private);
    out.integer(kind::ANNOUNCE_DURATION, m.announce_duration_s);
    out.parameter(kind::ANNOUNCE_OPTIONS, &option_bytes(m.options));
    out.parameter(kind::APPLICATION_REFERENCE, m.application.as_bytes());
    out.integer(kind::BLOCK_SIZE, m.block_size);
    out.integer(kind::DATA_RATE, m.data_rate_bps);
    out.parameter(kind::PRODUCT_NAME, m.product_name.as_bytes());
    out.integer(kind::TRANSFER_DURATION, m.transfer_duration_s);
    out.integer(kind::DTU_SIZE, m.dtu_size);
    out.integer(kind::PRODUCT_SIZE, m.product_size as u32);
    if u32::try_from(m.product_size).is_err() {
        out.parameter(kind::PRODUCT_SIZE_64, &m.product_size.to_be_bytes());
    }
    out.optional(kind::ERROR_THRESHOLD, m.error_threshold);
    if let Some(data) = &m.user_data {
        out.parameter(kind::USER_DATA, data);
    }
    out.optional(kind::BACKOFF_WINDOW, m.backoff_window_ms);
    if let Some(id) = &m.product_id {
        out.parameter(kind::PRODUCT_ID, id);
    }
    out.optional(kind::PARITY_SYMBOLS, m.parity_symbols);
    if let Some(commitment) = &m.commitment {
        out.parameter(kind::COMMITMENT, &commitment.0);
    }
    out.turn(m.turn);
    if let Some(hosts) = &m.hosts {
        out.head(kind::HOST_LIST_COMPLEX, hosts.len() * 8);
        for (client, standing) in hosts {
            out.put(&client.0.to_be_bytes());
            out.put(&standing_bytes(*standing));
        }
    }
    if let Some(set) = &m.host_set {
        let len = STANDING_LEN + set.octets().len();
        out.head(kind::HOST_SET, len);
        out.put(&standing_bytes(set.standing()));
        out.put(set.octets());
        out.put(&[0; 3][..padding(len)]);
    }
}

fn option_bytes(options: AnnounceOptions) -> [u8; 4] {
    let model = match options.model {
        GroupModel::Closed => 1,
        GroupModel::OpenLimited => 2,
        GroupModel::OpenUnlimited => 3,
    };
    let bit = |flag: bool, at: u8| u8::from(flag) << at;
    [
        b'F',
        model | bit(options.stay_in_group, 2),
        bit(!options.restart, 0) | bit(options.overwrite, 1) | bit(options.late_entry, 2),
        0,
    ]
}

fn options(parameter: Parameter<'_>) -> Result<AnnounceOptions, DecodeError> {
    let [_, group, flags] = parameter.options(b"F")?;
    let model = match group & 3 {
        1 => GroupModel::Closed,
        2 => GroupModel::OpenLimited,
        3 => GroupModel::OpenUnlimited,
        _ => return Err(DecodeError::Value { parameter: parameter.kind }),
    };
    Ok(AnnounceOptions {
        model,
        stay_in_group: group & 4 != 0,
        restart: flags & 1 == 0,
        overwrite: flags & 2 != 0,
        late_entry: flags & 4 != 0,
    })
}

/// Bytes of a client's state.
const STANDING_LEN: usize = 4;

fn standing_bytes(standing: HostState) -> [u8; STANDING_LEN] {
    match standing {
        HostState::Pending => [b'P', 0, 0, 0],
        HostState::Accepted => [b'A', 0, 0, 0],
        HostState::Declined(reason) => [b'D', reason as u8, 0, 0],
    }
}

/// Reads a client's state from its first two bytes.
fn standing(status: u8, reason: u8) -> Option<HostState> {
    match status {
        b'P' => Some(HostState::Pending),
        b'A' => Some(HostState::Accepted),
        b'D' => DeclineReason::from_wire(reason).map(HostState::Declined),
        _ => None,
    }
}

fn host_set(parameter: Parameter<'_>) -> Result<HostSet, DecodeError> {
    let Some((&[status, reason, ..], octets)) = parameter.value.split_first_chunk::<STANDING_LEN>() else {
        return Err(DecodeError::ParameterLength { parameter: parameter.kind });
    };
    let set = standing(status, reason).and_then(|standing| HostSet::read(standing, octets));
    set.ok_or(DecodeError::Value { parameter: parameter.kind })
}

fn hosts(parameter: Parameter<'_>) -> Result<Vec<(ClientId, HostState)>, DecodeError> {
    let wrong = DecodeError::Value { parameter: parameter.kind };
    let (records, rest) = parameter.value.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(DecodeError::ParameterLength { parameter: parameter.kind });
    }
    let record = |&[a, b, c, d, status, reason, ..]: &[u8; 8]| {
        Ok((ClientId(u32::from_be_bytes([a, b, c, d])), standing(status, reason).ok_or(wrong)?))
    };
    records.iter().map(record).collect()
}

/// Ordered parameters after the server.
const ORDER: [u16; 5] = [
    kind::RESPONSE_ADDRESS,
    kind::RESPONSE_ADDRESS_6,
    kind::RESPONSE_PORT,
    kind::PRIVATE_ADDRESS,
    kind::PRIVATE_ADDRESS_6,
];

/// Parameters after the five ordered ones, as they are found.
#[derive(Default)]
struct FoundParameters {
    announce_duration: Option<u32>,
    options: Option<AnnounceOptions>,
    application: Option<alloc::string::String>,
    block_size: Option<u32>,
    data_rate: Option<u32>,
    product_name: Option<alloc::string::String>,
    transfer_duration: Option<u32>,
    dtu_size: Option<u32>,
    product_size: Option<u32>,
    product_size_64: Option<u64>,
    error_threshold: Option<u32>,
    user_data: Option<Vec<u8>>,
    hosts: Option<Vec<(ClientId, HostState)>>,
    host_set: Option<HostSet>,
    backoff_window: Option<u32>,
    product_id: Option<[u8; 32]>,
    parity_symbols: Option<u32>,
    commitment: Option<Proof>,
    turn: Option<Turn>,
}

impl FoundParameters {
    fn take(&mut self, p: Parameter<'_>) -> Result<(), DecodeError> {
        match p.kind {
            kind::ANNOUNCE_DURATION => set(&mut self.announce_duration, p, p.integer()?),
            kind::ANNOUNCE_OPTIONS => set(&mut self.options, p, options(p)?),
            kind::APPLICATION_REFERENCE => set(&mut self.application, p, p.text(64)?),
            kind::BLOCK_SIZE => set(&mut self.block_size, p, p.integer()?),
            kind::DATA_RATE => set(&mut self.data_rate, p, p.integer()?),
            kind::PRODUCT_NAME => set(&mut self.product_name, p, p.text(256)?),
            kind::TRANSFER_DURATION => set(&mut self.transfer_duration, p, p.integer()?),
            kind::DTU_SIZE => set(&mut self.dtu_size, p, p.integer()?),
            kind::PRODUCT_SIZE => set(&mut self.product_size, p, p.integer()?),
            kind::PRODUCT_SIZE_64 => set(&mut self.product_size_64, p, p.octets().map(u64::from_be_bytes)?),
            kind::ERROR_THRESHOLD => set(&mut self.error_threshold, p, p.integer()?),
            kind::USER_DATA => set(&mut self.user_data, p, p.bytes(64)?.to_vec()),
            kind::HOST_LIST_COMPLEX => set(&mut self.hosts, p, hosts(p)?),
            kind::HOST_SET => set(&mut self.host_set, p, host_set(p)?),
            kind::BACKOFF_WINDOW => set(&mut self.backoff_window, p, p.integer()?),
            kind::PRODUCT_ID => set(&mut self.product_id, p, p.octets()?),
            kind::PARITY_SYMBOLS => set(&mut self.parity_symbols, p, p.integer()?),
            kind::COMMITMENT => set(&mut self.commitment, p, Proof(p.octets()?)),
            kind::TURN => set(&mut self.turn, p, p.turn()?),
            other => refuse_repeated(other, &ORDER),
        }
    }

    /// Returns the product's size; the 64-bit form, if present, must end in the 32-bit one.
    fn size(&self) -> Result<u64, DecodeError> {
        let low = need(self.product_size, kind::PRODUCT_SIZE)?;
        match self.product_size_64 {
            None => Ok(low.into()),
            Some(size) if size as u32 == low => Ok(size),
            Some(_) => Err(DecodeError::Value { parameter: kind::PRODUCT_SIZE_64 }),
        }
    }
}

pub(super) fn decode(reader: &mut ParameterReader<'_>) -> Result<Announce, DecodeError> {
    let server = reader.expect_address(kind::SERVER_ADDRESS, kind::SERVER_ADDRESS_6)?;
    let server_port = reader.expect(&[kind::SERVER_PORT])?.port()?;
    let response = reader.expect_address(kind::RESPONSE_ADDRESS, kind::RESPONSE_ADDRESS_6)?;
    let response_port = reader.expect(&[kind::RESPONSE_PORT])?.port()?;
    let private = reader.expect_address(kind::PRIVATE_ADDRESS, kind::PRIVATE_ADDRESS_6)?;
    let mut found = FoundParameters::default();
    while let Some(parameter) = reader.next()? {
        found.take(parameter)?;
    }
    Ok(Announce {
        server: SocketAddr::new(server, server_port),
        response: SocketAddr::new(response, response_port),
        private,
        announce_duration_s: need(found.announce_duration, kind::ANNOUNCE_DURATION)?,
        options: need(found.options, kind::ANNOUNCE_OPTIONS)?,
        block_size: need(found.block_size, kind::BLOCK_SIZE)?,
        data_rate_bps: need(found.data_rate, kind::DATA_RATE)?,
        transfer_duration_s: need(found.transfer_duration, kind::TRANSFER_DURATION)?,
        dtu_size: need(found.dtu_size, kind::DTU_SIZE)?,
        product_size: found.size()?,
        application: need(found.application, kind::APPLICATION_REFERENCE)?,
        product_name: need(found.product_name, kind::PRODUCT_NAME)?,
        error_threshold: found.error_threshold,
        user_data: found.user_data,
        hosts: found.hosts,
        host_set: found.host_set,
        backoff_window_ms: found.backoff_window,
        product_id: found.product_id,
        parity_symbols: found.parity_symbols,
        commitment: found.commitment,
        turn: found.turn,
    })
}
