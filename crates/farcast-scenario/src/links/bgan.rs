//! The keys of `kind = "bgan"`.

use farcast_link::bgan::{Access, ForwardConfig, LossUnit, Packing, RequestFor, ReturnConfig};

use super::queues::queue;
use crate::document::{DocumentError, Reader};

/// The shared channel of a BGAN bearer as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct BganForwardSpec {
    /// Settings of the channel.
    pub config: ForwardConfig,
    /// True if the limit of the queue was given.
    pub limit_said: bool,
}

/// Return path of a BGAN bearer as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BganReturnSpec {
    /// Settings of the return path.
    pub config: ReturnConfig,
    /// True if the limit of the terminals' queues was given.
    pub limit_said: bool,
}

pub(super) fn forward(table: &mut Reader<'_>) -> Result<BganForwardSpec, DocumentError> {
    let default = ForwardConfig::default();
    let packings = [("packet_aligned", Packing::PacketAligned), ("shared", Packing::Shared)];
    let units = [("pdu", LossUnit::Pdu), ("packet", LossUnit::Packet), ("fec_block", LossUnit::FecBlock)];
    let queue = queue(table)?;
    let config = ForwardConfig {
        frame: table.span_or("frame", default.frame)?,
        fec_blocks: table.integer_or("fec_blocks", 1..=1000, default.fec_blocks)?,
        fec_block_octets: table.integer_or("fec_block_octets", 1..=65_535, default.fec_block_octets)?,
        pdu_payloads: table.list_of_integers_or("pdu_payloads", 1..=65_535, default.pdu_payloads)?,
        pdu_overheads: table.list_of_integers_or("pdu_overheads", 0..=65_535, default.pdu_overheads)?,
        packing: table.choice_or("packing", &packings, default.packing)?,
        align_to_blocks: table.flag_or("align_to_blocks", default.align_to_blocks)?,
        queue: queue.unwrap_or_default(),
        propagation: table.span_or("propagation", default.propagation)?,
        loss_unit: table.choice_or("loss_unit", &units, default.loss_unit)?,
        loss: table.probability_or("per", default.loss)?,
        drop_rest_of_block: table.flag_or("drop_rest_of_block", default.drop_rest_of_block)?,
    };
    config
        .check()
        .map_err(|error| table.refuse("kind", error.to_string(), "settings that fit each other"))?;
    Ok(BganForwardSpec { config, limit_said: queue.is_some() })
}

pub(super) fn back(table: &mut Reader<'_>) -> Result<BganReturnSpec, DocumentError> {
    let default = ReturnConfig::default();
    let requests = [("queue", RequestFor::Queue), ("packet", RequestFor::Packet)];
    let accesses = [("contention", Access::Contention), ("ideal", Access::Ideal)];
    let queue = queue(table)?;
    let config = ReturnConfig {
        frame: table.span_or("frame", default.frame)?,
        contention_slots: table.integer_or("c_slots", 0..=10_000, default.contention_slots)?,
        contention_slot: table.span_or("c_slot", default.contention_slot)?,
        reservation_slots: table.integer_or("r_slots", 1..=10_000, default.reservation_slots)?,
        reservation_slot: table.span_or("r_slot", default.reservation_slot)?,
        r_slot_octets: table.integer_or("r_slot_octets", 1..=65_535, default.r_slot_octets)?,
        propagation: table.span_or("propagation", default.propagation)?,
        processing: table.span_or("processing", default.processing)?,
        backoff_frames: table.integer_or("backoff_frames", 1..=1_000_000, default.backoff_frames)?,
        backoff_doubling: table.optional_integer("backoff_doubling", 0..=31)?,
        request: table.choice_or("request", &requests, default.request)?,
        piggyback: table.flag_or("piggyback", default.piggyback)?,
        access: table.choice_or("access", &accesses, default.access)?,
        queue: queue.unwrap_or_default(),
        give_up_after: table.optional_integer("give_up_after", 1..=u32::MAX)?,
    };
    config
        .check()
        .map_err(|error| table.refuse("kind", error.to_string(), "settings that fit each other"))?;
    Ok(BganReturnSpec { config, limit_said: queue.is_some() })
}
