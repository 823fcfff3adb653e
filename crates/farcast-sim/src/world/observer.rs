//! Observers of a replication.

use std::net::{IpAddr, SocketAddr};

use farcast_core::stage::Frame;
use farcast_core::{Engine, Time};
use farcast_delivery::{Asked, Phase, Protocol};

use super::SealMessage;
use crate::traffic::{End, FlowMessage};

/// Event type of the sender of protocol `P`.
pub type SenderEvent<P> = <<P as Protocol>::Sender as Engine>::Event;

/// Packet of a flow, with its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowPacket<'a> {
    /// Number of the flow's terminal. The numbers of flows follow those of all receivers.
    pub terminal: u32,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Content of the packet.
    pub message: &'a FlowMessage,
}

/// Addresses of a datagram in a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Source address.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
}

/// Observer that is told of events in a replication. It changes nothing.
pub trait Observer<P: Protocol> {
    /// Returns `true` if the observer wants each message of a population, so that NAKs are not merged. The simulation's
    /// outcome is the same (law 10).
    fn wants_each(&self) -> bool {
        true
    }
    /// Called when the sender sends a frame to a group or a receiver; the first datagram of its run leaves at `at`.
    fn sent(&mut self, _at: Time, _destination: SocketAddr, _frame: &Frame<P::Message>) {}
    /// Called when a receiver sends a message.
    fn answered(&mut self, _at: Time, _receiver: u32, _frame: &Frame<P::Message>) {}
    /// Called in a tree instead of [`answered`](Self::answered), with the addresses of the message.
    fn answered_to(&mut self, at: Time, receiver: u32, _addresses: Addresses, frame: &Frame<P::Message>) {
        self.answered(at, receiver, frame);
    }
    /// Called when an element of a tree sends a frame; the first datagram of its run leaves at `at`.
    fn element_sent(&mut self, _at: Time, _addresses: Addresses, _frame: &Frame<P::Message>) {}
    /// Called when a datagram leaves that only the seal of the transfer sends, once for each copy.
    fn sealed(&mut self, _at: Time, _message: SealMessage) {}
    /// Called when a message reaches the sender.
    fn reached(&mut self, _at: Time, _receiver: u32, _message: &P::Message) {}
    /// Called in a tree instead of [`reached`](Self::reached), with the addresses of the message. A message of an
    /// element has no `receiver`.
    fn reached_from(&mut self, at: Time, receiver: Option<u32>, _addresses: Addresses, message: &P::Message) {
        if let Some(receiver) = receiver {
            self.reached(at, receiver, message);
        }
    }
    /// Called when the sender has taken or refused a repair request, or merged ones: the request and its fate.
    fn nak(&mut self, _at: Time, _asked: &Asked) {}
    /// Called when the sender reports an event to its owner.
    fn told(&mut self, _at: Time, _event: &SenderEvent<P>) {}
    /// Called when the sender has done everything that was to be done at `at`, with its phase then.
    fn phase(&mut self, _at: Time, _phase: Phase) {}
    /// Called when a packet of a flow leaves `end`.
    fn flow_sent(&mut self, _at: Time, _end: End, _packet: &FlowPacket<'_>) {}
    /// Called when a packet of a flow reaches `end`.
    fn flow_reached(&mut self, _at: Time, _end: End, _packet: &FlowPacket<'_>) {}
    /// Called when the replication is over, for each receiver that has had everything since `at`, in the order of these
    /// times.
    fn completed(&mut self, _at: Time, _receiver: u32) {}
}
