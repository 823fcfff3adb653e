//! Settings of the forward bearer, and the lengths that follow from them.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::{BitRate, Probability, Span};

use crate::bgan::{BganError, rate_of};
use crate::pipe::QueueLimit;

/// The longest packet in octets: IP's longest. A longer one counts as this long.
pub(super) const LONGEST_PACKET: u64 = 65_535;

/// Ways for packets to share FEC blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// Each packet starts an FEC block and takes whole ones. A PDU never spans two: if it does not fit into the rest of
    /// a block, it begins the next. The study's packet of 576 octets takes two blocks, 20 ms.
    PacketAligned,
    /// Packets lie one behind the other, and a PDU that does not fit continues in the next block. The study's packet
    /// takes 599 octets, 15.973 ms on the mean. A packet that enters before a block's time is over may use the
    /// room that is left in it.
    Shared,
}

/// Unit of loss: lost as a whole, independently of every other unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossUnit {
    /// A PDU: each has its own checksum (TT-100-MSO-030207). A packet lives if all its PDUs do.
    Pdu,
    /// A packet, whatever its length.
    Packet,
    /// An FEC block: every packet with a part in it is lost.
    FecBlock,
}

/// Settings of the forward bearer. The default is the study's bearer F80T4.5X-R, without loss.
#[derive(Clone, PartialEq, Debug)]
pub struct ForwardConfig {
    /// The length of a frame; it divides into its FEC blocks. Default 80 ms.
    pub frame: Span,
    /// FEC blocks in a frame, at least 1. Default 8.
    pub fec_blocks: u32,
    /// Octets that an FEC block carries, PDU overheads included. Default 375.
    pub fec_block_octets: u32,
    /// Payloads of a packet's PDUs in octets, each at least 1. They are used in turn; a longer packet begins the
    /// table again, and the last PDU is as short as it may be. Default 251, 108, 217 (the study's figure 4: a table,
    /// since no rule gives it).
    pub pdu_payloads: Vec<u32>,
    /// Overheads of these PDUs in octets. Default 9, 7, 7.
    pub pdu_overheads: Vec<u32>,
    /// Sharing of FEC blocks. Default packet-aligned, as the study's delays demand.
    pub packing: Packing,
    /// Alignment: a packet that finds the bearer idle waits for the next multiple of a block's time. Default no: the
    /// block starts when the packet enters, so that a sender paced at the bearer's rate is not slowed by its phase.
    pub align_to_blocks: bool,
    /// Limit of the packets that wait for their first block, as a number of packets or of their octets. A packet that
    /// would exceed it is dropped. Default no limit. A packet that finds the bearer idle is never dropped.
    pub queue: QueueLimit,
    /// Time from the end of a packet's last FEC block to its arrival: flight, coding and decoding. Default 450 ms.
    pub propagation: Span,
    /// Unit that is lost as a whole. Default a PDU.
    pub loss_unit: LossUnit,
    /// The probability that a receiver loses such a unit. Default 0.
    pub loss: Probability,
    /// Loss of the PDUs behind a lost one in its FEC block (TT-100-MSO-030207). It matters only where packets share
    /// blocks, since a packet is lost with its first lost PDU anyway. Default no.
    pub drop_rest_of_block: bool,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        Self {
            frame: Span::from_millis(80),
            fec_blocks: 8,
            fec_block_octets: 375,
            pdu_payloads: vec![251, 108, 217],
            pdu_overheads: vec![9, 7, 7],
            packing: Packing::PacketAligned,
            align_to_blocks: false,
            queue: QueueLimit::Unbounded,
            propagation: Span::from_millis(450),
            loss_unit: LossUnit::Pdu,
            loss: Probability::ZERO,
            drop_rest_of_block: false,
        }
    }
}

impl ForwardConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn check(&self) -> Result<(), BganError> {
        let (frame, fec_blocks) = (self.frame, self.fec_blocks);
        if frame.is_zero() {
            return Err(BganError::Zero("the forward frame"));
        }
        if fec_blocks == 0 {
            return Err(BganError::Zero("the number of FEC blocks in a forward frame"));
        }
        if frame.as_nanos() % u64::from(fec_blocks) != 0 {
            return Err(BganError::FecBlocks { frame, fec_blocks });
        }
        if self.drop_rest_of_block && self.loss_unit != LossUnit::Pdu {
            return Err(BganError::DropRest);
        }
        self.check_pdus()
    }

    fn check_pdus(&self) -> Result<(), BganError> {
        let (payloads, overheads) = (self.pdu_payloads.len(), self.pdu_overheads.len());
        if payloads == 0 || payloads != overheads {
            return Err(BganError::PduTable { payloads, overheads });
        }
        let block = self.fec_block_octets;
        for (&payload, &overhead) in self.pdu_payloads.iter().zip(&self.pdu_overheads) {
            if payload == 0 {
                return Err(BganError::Zero("the payload of a PDU"));
            }
            if u64::from(payload) + u64::from(overhead) > u64::from(block) {
                return Err(BganError::PduTooLong { payload, overhead, block });
            }
        }
        Ok(())
    }

    /// Returns the bit rate of all blocks, PDU overheads included, rounded down; `None` below 1 bit/s.
    pub fn capacity(&self) -> Option<BitRate> {
        let octets = u64::from(self.fec_blocks).saturating_mul(u64::from(self.fec_block_octets));
        rate_of(octets, self.frame)
    }

    /// Returns the time that an FEC block is on the air; zero if a frame has no blocks.
    pub fn block_time(&self) -> Span {
        if self.fec_blocks == 0 { Span::ZERO } else { self.frame / u64::from(self.fec_blocks) }
    }

    /// Returns the lengths in octets of the PDUs of a packet of `octets`, overheads included. An empty packet takes a
    /// PDU of one octet; a packet of more than 65,535 octets counts as that long.
    pub fn pdu_lengths(&self, octets: u64) -> impl Iterator<Item = u64> + '_ {
        let mut rest = octets.clamp(1, LONGEST_PACKET);
        self.pdu_payloads.iter().zip(&self.pdu_overheads).cycle().map_while(move |(&payload, &overhead)| {
            let taken = rest.min(u64::from(payload.max(1)));
            rest -= taken;
            (taken > 0).then(|| taken + u64::from(overhead))
        })
    }

    /// Returns the number of PDUs of a packet of `octets`.
    pub fn pdus(&self, octets: u64) -> u64 {
        self.pdu_lengths(octets).count() as u64
    }

    /// Returns the number of FEC blocks of a packet of `octets` that starts a block.
    pub fn fec_blocks(&self, octets: u64) -> u64 {
        self.octets_on_air(octets).div_ceil(self.block_octets())
    }

    /// Returns the octets of the bearer that a packet of `octets` uses up: whole blocks if it starts one, else its
    /// PDUs.
    pub fn octets_on_air(&self, octets: u64) -> u64 {
        match self.packing {
            Packing::PacketAligned => self.aligned_blocks(octets) * self.block_octets(),
            Packing::Shared => self.pdu_lengths(octets).sum(),
        }
    }

    /// Returns the octets of an FEC block, at least 1, so that lengths of an unchecked configuration divide by it.
    pub(super) fn block_octets(&self) -> u64 {
        u64::from(self.fec_block_octets.max(1))
    }

    fn aligned_blocks(&self, octets: u64) -> u64 {
        let mut room = 0;
        let mut blocks = 0;
        for pdu in self.pdu_lengths(octets) {
            if pdu > room {
                room = self.block_octets();
                blocks += 1;
            }
            room = room.saturating_sub(pdu);
        }
        blocks
    }
}
