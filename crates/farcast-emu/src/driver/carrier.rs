//! Conversion of segments to packets of the device and back, with losses on the way.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use farcast_core::{Among, Arrival, Losses, Time};
use farcast_tcp::Segment;
use farcast_tcp::wire::{self, Addresses};

use crate::EmuError;
use crate::packet;
use crate::tun::Tun;

/// Counts of packets by their fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets read from the device.
    pub received: u64,
    /// Packets written to the device.
    pub sent: u64,
    /// Packets of the kernel that were lost on purpose.
    pub lost_incoming: u64,
    /// Packets of ours that were lost on purpose.
    pub lost_outgoing: u64,
    /// Packets of ours that the kernel refused.
    pub not_taken: u64,
    /// Segments of ours that do not fit an IP packet: the settings allow too large ones.
    pub too_long: u64,
    /// Packets that are not TCP, such as ICMP.
    pub other_protocol: u64,
    /// Packets with a header that is not accepted, fragments among them.
    pub bad_packet: u64,
    /// Malformed TCP segments.
    pub bad_segment: u64,
}

/// The device, with loss processes for both directions.
#[derive(Debug)]
pub(super) struct Carrier {
    tun: Tun,
    incoming: Option<Box<dyn Losses>>,
    outgoing: Option<Box<dyn Losses>>,
    /// Receivers that lose the current packet; kept for its memory.
    lost: Vec<u32>,
    counts: Counts,
}

/// A segment that arrived, and its data.
pub(super) type Arrived<'a> = (Arrival, Segment, &'a [u8]);

impl Carrier {
    pub(super) fn new(tun: Tun) -> Self {
        Self { tun, incoming: None, outgoing: None, lost: Vec::new(), counts: Counts::default() }
    }

    pub(super) fn lose(&mut self, incoming: Box<dyn Losses>, outgoing: Box<dyn Losses>) {
        (self.incoming, self.outgoing) = (Some(incoming), Some(outgoing));
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Reads the next packet into `buffer`. Returns its length, or `None` if none is waiting.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, EmuError> {
        let len = self.tun.read(buffer)?;
        self.counts.received += u64::from(len.is_some());
        Ok(len)
    }

    /// Returns the segment in a packet that was read at `now`; `None` if the packet is lost, or is not for us.
    pub(super) fn parse<'a>(&mut self, octets: &'a [u8], now: Time) -> Option<Arrived<'a>> {
        if is_lost(self.incoming.as_mut(), &mut self.lost, now, octets.len()) {
            self.counts.lost_incoming += 1;
            return None;
        }
        let Ok(packet) = packet::decode(octets) else {
            self.counts.bad_packet += 1;
            return None;
        };
        if packet.protocol != wire::PROTOCOL {
            self.counts.other_protocol += 1;
            return None;
        }
        let addresses = packet.addresses;
        let Ok((segment, payload)) = wire::decode(packet.payload, addresses) else {
            self.counts.bad_segment += 1;
            return None;
        };
        let source = SocketAddr::new(addresses.source(), segment.source_port);
        let destination = SocketAddr::new(addresses.destination(), segment.destination_port);
        let arrival = Arrival { ecn: Some(packet.ecn), ..Arrival::new(source, destination) };
        Some((arrival, segment, payload))
    }

    /// Sends a segment whose data are `payload`, without a copy.
    pub(super) fn write(
        &mut self,
        segment: &Segment,
        addresses: Addresses,
        payload: &[u8],
        now: Time,
    ) -> Result<(), EmuError> {
        let mut ip = [0; packet::MAX_HEADER_LEN];
        let mut tcp = [0; wire::MAX_HEADER_LEN];
        let tcp_len = wire::encode(segment, addresses, &[payload], &mut tcp).ok();
        let behind = tcp_len.map_or(0, |len| len + payload.len());
        let ip_len = packet::encode_header(addresses, behind, &mut ip);
        let (Some(tcp_len), Some(ip_len)) = (tcp_len, ip_len) else {
            self.counts.too_long += 1;
            return Ok(());
        };
        if is_lost(self.outgoing.as_mut(), &mut self.lost, now, ip_len + behind) {
            self.counts.lost_outgoing += 1;
            return Ok(());
        }
        let taken = self.tun.write(&[&ip[..ip_len], &tcp[..tcp_len], payload].map(IoSlice::new))?;
        self.counts.sent += u64::from(taken);
        self.counts.not_taken += u64::from(!taken);
        Ok(())
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// Returns `true` if a packet of `octets` octets is lost.
fn is_lost(losses: Option<&mut Box<dyn Losses>>, lost: &mut Vec<u32>, now: Time, octets: usize) -> bool {
    let Some(losses) = losses else { return false };
    lost.clear();
    losses.draw(now, octets as u64, Among::All, lost);
    lost.first() == Some(&0)
}
