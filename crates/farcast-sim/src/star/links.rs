//! Entry of frames into the chains of stages, and their exit.

use std::num::NonZeroU32;

use farcast_core::Time;
use farcast_core::engine::Message;
use farcast_core::stage::{Frame, Port, Totals};
use farcast_delivery::Protocol;
use farcast_link::chain::{ChainOwner, Driver, Entry, follow};

use super::{Addressed, Event, Packet, SealMessage, Star};
use crate::traffic::End;
use crate::world::Layout as _;

impl<P: Protocol> Star<'_, P> {
    /// Returns the counters of the stages of the forward chain, in order.
    pub fn forward_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.layout.totals(End::Terminal)
    }

    /// Returns the counters of the stages of the return path, in order.
    pub fn return_totals(&self) -> impl Iterator<Item = Totals> + '_ {
        self.layout.totals(End::Hub)
    }

    /// Returns the time before which only the frame at hand enters the forward chain.
    fn alone_until(&self) -> Time {
        if self.owes_key() {
            // A key leaves behind the first datagram.
            return self.now;
        }
        // Datagrams that are not handed over yet may answer those that are, but then an answer has come back meanwhile.
        // Only the queue knows of packets of flows and of answers that the hub forwards to other receivers.
        self.quiet_until(self.flows.is_empty() && !self.layout.relays)
    }

    /// Enters a frame into a chain, or into a stage behind the first.
    #[inline]
    pub(super) fn enter(&mut self, entry: Entry<Packet<P::Message>>) {
        let Some(port) = self.port(&entry) else { return };
        // Only a run can be cut.
        let single = entry.message().segments() == NonZeroU32::MIN;
        let known = if single { Time::NEVER } else { self.alone_until() };
        let (cut, cuts) = (self.cut, &mut self.cuts);
        self.layout.links.enter(self.now, port, entry, known, |most| cut.choose(most, cuts));
        follow(self);
    }

    /// Returns the port at which a frame enters. A frame to the hub enters at the terminal that sent it.
    fn port(&self, entry: &Entry<Packet<P::Message>>) -> Option<Port> {
        match (entry.to(), entry.message()) {
            (End::Terminal, _) => Some(Port::Hub),
            (End::Hub, Packet::Transfer(message)) => message.from.as_receiver().map(Port::Terminal),
            (End::Hub, Packet::Seal(SealMessage::Ask(receiver))) => Some(Port::Terminal(*receiver)),
            (End::Hub, Packet::Seal(_)) => None,
            (End::Hub, Packet::Flow { flow, .. }) => Some(Port::Terminal(self.receivers + flow)),
        }
    }

    pub(super) fn wake_stage(&mut self, stage: u32) {
        self.layout.links.wake(self.now, stage);
        follow(self);
    }

    /// Passes on a frame that leaves the last stage of the forward chain, by its kind.
    fn leave_forward(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => self.reach_groups(at, Frame { message, overhead, spacing }),
            Packet::Seal(message) => self.unseal_later(at, message),
            Packet::Flow { flow, message, .. } => self.leave_links(at, flow, End::Terminal, &message),
        }
    }

    /// Schedules the arrival of a frame that leaves the last stage of the return path.
    fn leave_return(&mut self, at: Time, frame: Frame<Packet<P::Message>>) {
        let Frame { message, overhead, spacing } = frame;
        match message {
            Packet::Transfer(message) => {
                self.queue.push(at, Event::Reach(Frame { message, overhead, spacing }));
            }
            Packet::Seal(SealMessage::Ask(receiver)) => self.queue.push(at, Event::ReachRequest(receiver)),
            Packet::Seal(_) => {}
            Packet::Flow { flow, message, .. } => {
                self.leave_links(at, flow, End::Hub, &message);
            }
        }
    }
}

impl<P: Protocol> ChainOwner<Packet<P::Message>> for Star<'_, P> {
    fn driver(&mut self) -> &mut Driver<Packet<P::Message>> {
        &mut self.layout.links
    }

    fn keep(&mut self, at: Time, entry: Entry<Packet<P::Message>>) {
        self.under_way += u32::from(is_sent(&entry));
        self.queue.push(at, Event::Enter(entry));
    }

    fn left(&mut self, at: Time, to: End, frame: Frame<Packet<P::Message>>) {
        match to {
            End::Terminal => self.leave_forward(at, frame),
            End::Hub => self.leave_return(at, frame),
        }
    }

    fn drained(&mut self, stage: u32, wake: Option<Time>) {
        if let Some(due) = wake {
            self.queue.push(due, Event::StageWake(stage));
        }
    }
}

/// Wraps a frame of the transfer as a packet on the links.
pub(super) fn on_links<M>(frame: Frame<Addressed<M>>) -> Frame<Packet<M>> {
    let Frame { message, overhead, spacing } = frame;
    Frame { message: Packet::Transfer(message), overhead, spacing }
}

/// Returns `true` if an entry is a frame of the transfer that the hub has sent.
pub(super) fn is_sent<M: Message>(entry: &Entry<Packet<M>>) -> bool {
    entry.to() == End::Terminal && matches!(entry.message(), Packet::Transfer(_))
}
