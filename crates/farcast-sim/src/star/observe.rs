//! Watching a replication.

use farcast_core::Time;
use farcast_core::stage::Frame;
use farcast_mftp::{Message, SenderEvent};

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

/// Someone who is told what happens in a replication; it changes nothing.
pub trait Observer {
    /// The sender sends a frame, the first datagram of its run at `at`.
    fn sent(&mut self, _at: Time, _frame: &Frame<Message>) {}
    /// A receiver sends a message.
    fn answered(&mut self, _at: Time, _receiver: u32, _frame: &Frame<Message>) {}
    /// A message reaches the sender.
    fn reached(&mut self, _at: Time, _receiver: u32, _message: &Message) {}
    /// A NAK reaches the sender: of what pass, and what became of it. Merged NAKs are `count`.
    fn nak(&mut self, _at: Time, _pass: u32, _count: u64, _fate: NakFate) {}
    /// The sender tells its owner something.
    fn told(&mut self, _at: Time, _event: &SenderEvent) {}
    /// A receiver has everything.
    fn completed(&mut self, _at: Time, _receiver: u32) {}
}
