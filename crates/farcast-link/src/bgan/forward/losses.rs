//! Losses of the forward bearer at each of its receivers.

use alloc::vec::Vec;

use farcast_core::Time;
use farcast_core::random::RandomStream;

use super::packing::{Memo, OpenBlock, Share};
use super::{ForwardConfig, LossUnit, Packing};
use crate::bgan::BganError;
use crate::losses::{Among, Hazard, Losses};

/// The losses of a forward bearer at each of its receivers.
///
/// Receivers lose independently. A packet that has FEC blocks for itself is lost with probability 1 - (1 - p)^k, where
/// k is the number of its PDUs, of its blocks, or 1. Its loss says nothing about the next packet.
///
/// Neighbours are lost together where packets share blocks and either a block is the unit of loss or a lost PDU takes
/// the rest of its block. Then every packet that leaves the [`Forward`](super::Forward) must be drawn, once and in
/// order, at the time that it leaves or a fixed time later. These times tell which packets share a block.
#[derive(Clone, Debug)]
pub struct ForwardLosses {
    config: ForwardConfig,
    trials: Trials,
    kind: Kind,
    /// Units of a memoryless packet, or octets on the air of a packet that shares blocks.
    size: Memo,
    open: OpenBlock,
    failed: Failed,
}

/// Extent of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The packet of the lost unit alone.
    Packet,
    /// All of its FEC block.
    Block,
    /// The part of its FEC block from the lost PDU to the end.
    RestOfBlock,
}

/// Draws of one unit for all receivers.
#[derive(Clone, Debug)]
struct Trials {
    hazard: Hazard,
    /// The hazard of one unit.
    unit: f64,
    receivers: u32,
}

/// Sets of receivers that lose something.
#[derive(Clone, Debug, Default)]
struct Failed {
    /// Receivers that lose the rest of the last block.
    block: Vec<u32>,
    /// Receivers that lose the packet at hand.
    packet: Vec<u32>,
    /// Receivers that lose the PDU at hand.
    pdu: Vec<u32>,
}

impl ForwardLosses {
    /// Creates the losses at `receivers` receivers, drawn from `stream`.
    ///
    /// # Errors
    /// The first error that [`ForwardConfig::check`] finds.
    pub fn new(config: ForwardConfig, receivers: u32, stream: RandomStream) -> Result<Self, BganError> {
        config.check()?;
        let kind = match (config.packing, config.loss_unit) {
            (Packing::Shared, LossUnit::FecBlock) => Kind::Block,
            (Packing::Shared, LossUnit::Pdu) if config.drop_rest_of_block => Kind::RestOfBlock,
            _ => Kind::Packet,
        };
        Ok(Self {
            trials: Trials { hazard: Hazard::new(stream), unit: Hazard::of(config.loss), receivers },
            kind,
            size: Memo::default(),
            open: OpenBlock::new(&config),
            failed: Failed::default(),
            config,
        })
    }

    fn draw_packet(&mut self, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let lambda = self.packet_hazard(octets);
        self.trials.hazard.lost(lambda, self.trials.receivers, among, lost);
    }

    fn packet_hazard(&mut self, octets: u64) -> f64 {
        let config = &self.config;
        let units = self.size.get(octets, |octets| match config.loss_unit {
            LossUnit::Pdu => config.pdus(octets),
            LossUnit::Packet => 1,
            LossUnit::FecBlock => config.fec_blocks(octets),
        });
        self.trials.unit * units as f64
    }

    fn draw_blocks(&mut self, now: Time, octets: u64) {
        let Self { config, failed, .. } = self;
        let length = self.size.get(octets, |octets| config.octets_on_air(octets));
        let Share { before, blocks } = self.open.take(now, length);
        if before > 0 {
            failed.packet.extend_from_slice(&failed.block);
        }
        for _ in 0..blocks {
            self.trials.draw(&mut failed.block);
            failed.packet.extend_from_slice(&failed.block);
        }
    }

    fn draw_rest_of_blocks(&mut self, now: Time, octets: u64) {
        let Self { config, failed, .. } = self;
        let length = self.size.get(octets, |octets| config.octets_on_air(octets));
        let mut room = self.open.take(now, length).before;
        for pdu in config.pdu_lengths(octets) {
            if room == 0 {
                failed.block.clear();
                room = config.block_octets();
            }
            self.trials.draw(&mut failed.pdu);
            failed.packet.extend_from_slice(&failed.block);
            failed.packet.extend_from_slice(&failed.pdu);
            if pdu > room {
                // The receiver finds the checksum of this PDU wrong where the PDU ends. A PDU that was dropped with the
                // block before does not count there: otherwise one loss would run on from block to block.
                failed.block.clear();
                room += config.block_octets();
            }
            room -= pdu;
            failed.block.extend_from_slice(&failed.pdu);
        }
        sort(&mut failed.block);
    }
}

impl Losses for ForwardLosses {
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        self.failed.packet.clear();
        match self.kind {
            Kind::Packet => return self.draw_packet(octets, among, lost),
            Kind::Block => self.draw_blocks(now, octets),
            Kind::RestOfBlock => self.draw_rest_of_blocks(now, octets),
        }
        sort(&mut self.failed.packet);
        match among {
            Among::All => lost.extend_from_slice(&self.failed.packet),
            Among::These(these) => {
                lost.extend(
                    self.failed.packet.iter().filter(|receiver| these.binary_search(receiver).is_ok()),
                );
            }
        }
    }

    fn spared(&mut self, octets: u64, frames: u32) -> u32 {
        if self.kind != Kind::Packet {
            return 0;
        }
        let lambda = self.packet_hazard(octets);
        self.trials.hazard.spared(lambda, self.trials.receivers, frames)
    }

    fn is_memoryless(&self) -> bool {
        self.kind == Kind::Packet
    }
}

impl Trials {
    /// Draws one unit for every receiver and fills `lost` with the receivers that lose it, ascending.
    fn draw(&mut self, lost: &mut Vec<u32>) {
        lost.clear();
        self.hazard.lost(self.unit, self.receivers, Among::All, lost);
    }
}

fn sort(receivers: &mut Vec<u32>) {
    receivers.sort_unstable();
    receivers.dedup();
}

#[cfg(test)]
mod tests;
