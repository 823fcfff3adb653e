//! Watching a replication.

use std::net::{IpAddr, SocketAddr};

use farcast_core::stage::Frame;
use farcast_core::{Engine, Time};
use farcast_delivery::{Asked, Phase, Protocol};

use super::SealMessage;
use crate::traffic::{End, FlowMessage};

/// What a sender of `P` tells its owner.
pub type SenderEvent<P> = <<P as Protocol>::Sender as Engine>::Event;

/// A packet of a flow, and between whom it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowPacket<'a> {
    /// The number of the flow's terminal; the first flow's is behind all receivers.
    pub terminal: u32,
    /// Who sent it.
    pub source: IpAddr,
    /// Whom it is for.
    pub destination: IpAddr,
    /// What it says.
    pub message: &'a FlowMessage,
}

/// Someone who is told what happens in a replication; it changes nothing.
pub trait Observer<P: Protocol> {
    /// Whether it wants each message of a population, so that NAKs are not merged. What happens is the same (law 10).
    fn wants_each(&self) -> bool {
        true
    }
    /// The sender sends a frame to a group or a receiver, the first datagram of its run at `at`.
    fn sent(&mut self, _at: Time, _destination: SocketAddr, _frame: &Frame<P::Message>) {}
    /// A receiver sends a message.
    fn answered(&mut self, _at: Time, _receiver: u32, _frame: &Frame<P::Message>) {}
    /// Something leaves that only the seal of the transfer sends; copies of it are told of one by one.
    fn sealed(&mut self, _at: Time, _message: SealMessage) {}
    /// A message reaches the sender.
    fn reached(&mut self, _at: Time, _receiver: u32, _message: &P::Message) {}
    /// The message that has reached the sender, or merged ones, asked for repair: for what, and what became of it.
    fn nak(&mut self, _at: Time, _asked: &Asked) {}
    /// The sender tells its owner something.
    fn told(&mut self, _at: Time, _event: &SenderEvent<P>) {}
    /// The sender has done what was to be done at `at`, and this is where it stands then.
    fn phase(&mut self, _at: Time, _phase: Phase) {}
    /// A packet of a flow leaves `end`.
    fn flow_sent(&mut self, _at: Time, _end: End, _packet: &FlowPacket<'_>) {}
    /// A packet of a flow reaches `end`.
    fn flow_reached(&mut self, _at: Time, _end: End, _packet: &FlowPacket<'_>) {}
    /// A receiver has everything since `at`. This is told when the replication is over, in the order of these times.
    fn completed(&mut self, _at: Time, _receiver: u32) {}
}
