//! Timers of PGM's engines in a scenario: `[protocol.source]`, `[protocol.receiver]`, `[protocol.element]` and
//! `[protocol.repairer]`. Defaults follow from the round trip, or are the engine's own.

use std::net::SocketAddr;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_scenario::{DocumentError, Reader};

use super::{
    Element, ElementConfig, NodeId, Receiver, ReceiverConfig, SenderConfig, StoreConfig, receiver_settings,
};

/// Settings of receivers, elements and repairers, without their identities.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    pub(super) receiver: ReceiverConfig,
    pub(super) element: ElementConfig,
    pub(super) store: StoreConfig,
}

impl Timers {
    /// Returns the defaults, of which the receiver's follow from the round trip.
    pub(super) fn of(group: SocketAddr, round_trip: Span) -> Self {
        Self {
            receiver: receiver_settings(NodeId(0), group, round_trip),
            element: ElementConfig::new(Vec::new()),
            store: StoreConfig::new(),
        }
    }

    /// Reads the tables of `protocol`, with the defaults of [`of`](Self::of).
    pub(super) fn read(
        protocol: &mut Reader<'_>,
        group: SocketAddr,
        round_trip: Span,
    ) -> Result<Self, DocumentError> {
        let base = Self::of(group, round_trip);
        Ok(Self {
            receiver: receiver(protocol, base.receiver)?,
            element: element(protocol, base.element)?,
            store: store(protocol, base.store)?,
        })
    }
}

/// Reads a source's timers: `[protocol.source]`.
pub(super) fn source(protocol: &mut Reader<'_>, base: SenderConfig) -> Result<SenderConfig, DocumentError> {
    let Some(mut table) = protocol.optional_table("source")? else { return Ok(base) };
    let config = SenderConfig {
        opening: table.integer_or("opening", 1..=16, base.opening)?,
        ambient: table.span_or("ambient", base.ambient)?,
        heartbeat: table.span_or("heartbeat", base.heartbeat)?,
        heartbeat_most: table.span_or("heartbeat_most", base.heartbeat_most)?,
        gather: table.span_or("gather", base.gather)?,
        holdoff: table.span_or("holdoff", base.holdoff)?,
        ..base
    };
    table.finish()?;
    Ok(config)
}

/// Reads a receiver's timers: `[protocol.receiver]`.
fn receiver(protocol: &mut Reader<'_>, base: ReceiverConfig) -> Result<ReceiverConfig, DocumentError> {
    let Some(mut table) = protocol.optional_table("receiver")? else { return Ok(base) };
    let confirm = table.optional_span("confirm")?;
    let config = ReceiverConfig {
        reorder: table.span_or("reorder", base.reorder)?,
        confirm: confirm.unwrap_or(base.confirm),
        confirm_adapts: base.confirm_adapts && confirm.is_none(),
        repair: table.span_or("repair", base.repair)?,
        listed: table.integer_or("listed", 0..=62, base.listed)?,
        confirm_retries: table.integer_or("confirm_retries", 0..=u32::MAX, base.confirm_retries)?,
        repair_retries: table.integer_or("repair_retries", 0..=u32::MAX, base.repair_retries)?,
        expiry: table.span_or("expiry", base.expiry)?,
        ..base
    };
    if let Err(error) = Receiver::new(config.clone()) {
        return Err(table.refuse("confirm", error.to_string(), "times that a receiver can have"));
    }
    table.finish()?;
    Ok(config)
}

/// Reads an element's timers: `[protocol.element]`.
fn element(protocol: &mut Reader<'_>, base: ElementConfig) -> Result<ElementConfig, DocumentError> {
    let Some(mut table) = protocol.optional_table("element")? else { return Ok(base) };
    let config = ElementConfig {
        unknown: unknown(&mut table, base.unknown)?,
        repeat: table.span_or("repeat", base.repeat)?,
        confirm: table.span_or("confirm", base.confirm)?,
        repair: table.span_or("repair", base.repair)?,
        eliminate: table.span_or("eliminate", base.eliminate)?,
        holdoff: table.span_or("holdoff", base.holdoff)?,
        idle: table.span_or("idle", base.idle)?,
        expiry: table.span_or("expiry", base.expiry)?,
        ..base
    };
    let ports = vec![std::net::IpAddr::from([10, 0, 0, 1])];
    if let Err(error) = Element::new(ElementConfig { ports, ..config.clone() }) {
        return Err(table.refuse("repeat", error.to_string(), "times that an element can have"));
    }
    table.finish()?;
    Ok(config)
}

/// Reads the time between repetitions of a NAK while the element has not measured confirmation times. With `learns =
/// false` the element never measures them, and the result is `None`.
fn unknown(table: &mut Reader<'_>, base: Option<Span>) -> Result<Option<Span>, DocumentError> {
    if !table.flag_or("learns", base.is_some())? {
        return Ok(None);
    }
    let ours = ElementConfig::new(Vec::new()).unknown.unwrap_or_default();
    table.span_or("unknown", base.unwrap_or(ours)).map(Some)
}

/// Reads a repairer's settings: `[protocol.repairer]`.
fn store(protocol: &mut Reader<'_>, base: StoreConfig) -> Result<StoreConfig, DocumentError> {
    let Some(mut table) = protocol.optional_table("repairer")? else { return Ok(base) };
    let config = StoreConfig {
        octets: table.bytes_or("octets", Bytes(base.octets))?.0,
        tpdus: table.integer_or("tpdus", 1..=1 << 28, base.tpdus)?,
        holdoff: table.span_or("holdoff", base.holdoff)?,
        feedback: table.flag_or("feedback", base.feedback)?,
        backoff: table.span_or("backoff", base.backoff)?,
        confirm: table.span_or("confirm", base.confirm)?,
        repair: table.span_or("repair", base.repair)?,
        retries: table.integer_or("retries", 0..=u32::MAX, base.retries)?,
        ..base
    };
    let ports = vec![std::net::IpAddr::from([10, 0, 0, 1])];
    let element = ElementConfig { store: Some(config.clone()), ..ElementConfig::new(ports) };
    if let Err(error) = Element::new(element) {
        return Err(table.refuse("confirm", error.to_string(), "settings that a repairer can have"));
    }
    table.finish()?;
    Ok(config)
}
