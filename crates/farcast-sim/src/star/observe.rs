//! Watching a replication.

use std::net::{IpAddr, SocketAddr};

use farcast_core::Time;
use farcast_core::stage::Frame;
use farcast_delivery::Phase;
use farcast_mftp::{Message, SenderEvent};

use crate::traffic::{End, FlowMessage};

/// What became of a NAK at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakFate {
    /// It made the sender schedule something.
    Used,
    /// It asked for nothing that was not scheduled or sent already.
    Known,
    /// It answers an earlier pass than the last.
    Late,
}

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
pub trait Observer {
    /// Whether it wants each message of a population, so that NAKs are not merged. What happens is the same (law 10).
    fn wants_each(&self) -> bool {
        true
    }
    /// The sender sends a frame, the first datagram of its run at `at`.
    fn sent(&mut self, _at: Time, _frame: &Frame<Message>) {}
    /// The same, with the group that it is for; who asks for this is not told the other unless it passes it on.
    fn sent_to(&mut self, at: Time, _destination: SocketAddr, frame: &Frame<Message>) {
        self.sent(at, frame);
    }
    /// A receiver sends a message.
    fn answered(&mut self, _at: Time, _receiver: u32, _frame: &Frame<Message>) {}
    /// A message reaches the sender.
    fn reached(&mut self, _at: Time, _receiver: u32, _message: &Message) {}
    /// A NAK reaches the sender: of what pass, and what became of it. Merged NAKs are `count`.
    fn nak(&mut self, _at: Time, _pass: u32, _count: u64, _fate: NakFate) {}
    /// The sender tells its owner something.
    fn told(&mut self, _at: Time, _event: &SenderEvent) {}
    /// The sender has done what was to be done at `at`, and this is where it stands then.
    fn phase(&mut self, _at: Time, _phase: Phase) {}
    /// A packet of a flow leaves `end`.
    fn flow_sent(&mut self, _at: Time, _end: End, _packet: &FlowPacket<'_>) {}
    /// A packet of a flow reaches `end`.
    fn flow_reached(&mut self, _at: Time, _end: End, _packet: &FlowPacket<'_>) {}
    /// A receiver has everything since `at`. This is told when the replication is over, in the order of these times.
    fn completed(&mut self, _at: Time, _receiver: u32) {}
}
