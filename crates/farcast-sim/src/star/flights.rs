//! Store for packets of flows that wait for their arrival. A packet is not moved; its event holds its place.

use crate::traffic::FlowMessage;

/// Packets under way.
#[derive(Default)]
pub(super) struct Flights {
    packets: Vec<FlowMessage>,
    free: Vec<u32>,
}

/// Place of a packet in [`Flights`].
#[derive(Clone, Copy)]
pub(super) struct Flight(u32);

impl Flights {
    pub(super) fn begin(&mut self, message: FlowMessage) -> Flight {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = message;
            return Flight(slot);
        }
        self.packets.push(message);
        Flight(self.packets.len() as u32 - 1)
    }

    pub(super) fn of(&self, packet: Flight) -> &FlowMessage {
        &self.packets[packet.0 as usize]
    }

    /// Frees the place of a packet that has arrived or is lost.
    pub(super) fn end(&mut self, packet: Flight) {
        self.free.push(packet.0);
    }
}
