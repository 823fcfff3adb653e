//! Which loss processes there are behind the links, over whom, and what they draw from: the same where packets are
//! simulated and where they are emulated.

use farcast_core::Losses;
use farcast_core::random::RandomStream;
use farcast_link::losses::BackLosses;

use super::{Links, LossSpec};
use crate::receivers::Group;
use crate::streams::{Purpose, Streams};

/// Loss processes over the receivers of one channel.
#[derive(Clone, Debug)]
pub struct ChannelLosses<'a> {
    /// Which ones.
    pub losses: &'a LossSpec,
    /// The number of the first receiver, where error vectors are dealt out.
    pub first: u32,
    /// How many receivers.
    pub receivers: u32,
    /// What they draw from.
    pub stream: RandomStream,
}

impl ChannelLosses<'_> {
    /// The processes.
    pub fn make(self) -> Box<dyn Losses> {
        self.losses.make(self.first, self.receivers, self.stream)
    }

    /// All processes but outages, and the outages: together what they are as one, with the same draws.
    pub fn make_apart(self) -> (Box<dyn Losses>, Box<dyn Losses>) {
        let (others, outages) = self.losses.apart();
        let make = |losses: &LossSpec, stream| losses.make(self.first, self.receivers, stream);
        (make(&others, self.stream.clone()), make(&outages, self.stream))
    }
}

impl Links {
    /// What a group loses behind the way forward: one channel, on which every packet to one of its receivers or to all
    /// is.
    pub fn forward_losses<'a>(
        &'a self,
        number: u64,
        group: &'a Group,
        streams: Streams,
    ) -> ChannelLosses<'a> {
        ChannelLosses {
            losses: group.losses.as_ref().unwrap_or(&self.losses),
            first: 0,
            receivers: group.receivers,
            stream: streams.of(number, Purpose::Losses),
        }
    }

    /// What is lost of what so many receivers send. Each has a link of its own, but where a process has no memory one
    /// may serve all.
    pub fn return_losses(&self, receivers: u32, streams: Streams) -> BackLosses<ChannelLosses<'_>> {
        let of = |first, receivers, entity| ChannelLosses {
            losses: &self.back_losses,
            first,
            receivers,
            stream: streams.of(entity, Purpose::ReturnLosses),
        };
        if self.back_losses.is_memoryless() {
            BackLosses::Shared(of(0, receivers, 0))
        } else {
            BackLosses::Each((0..receivers).map(|receiver| of(receiver, 1, receiver.into())).collect())
        }
    }

    /// What flow number `flow` loses behind the way forward and behind the way back; it has a terminal of its own with
    /// this number.
    pub fn flow_losses(&self, flow: u32, terminal: u32, streams: Streams) -> [ChannelLosses<'_>; 2] {
        let ways = [(&self.losses, Purpose::FlowLosses), (&self.back_losses, Purpose::FlowReturnLosses)];
        ways.map(|(losses, purpose)| {
            let stream = streams.of(flow.into(), purpose);
            ChannelLosses { losses, first: terminal, receivers: 1, stream }
        })
    }
}
