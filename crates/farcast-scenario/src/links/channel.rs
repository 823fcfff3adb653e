//! Loss processes behind the links: the receivers they cover and the random streams they draw from. Simulator and
//! emulator share them.

use farcast_core::Losses;
use farcast_core::random::RandomStream;
use farcast_link::losses::BackLosses;

use super::{Links, LossSpec};
use crate::receivers::Group;
use crate::streams::{Purpose, Streams};

/// Loss processes over the receivers of one channel.
#[derive(Clone, Debug)]
pub struct ChannelLosses<'a> {
    /// Settings of the processes.
    pub losses: &'a LossSpec,
    /// Number of the first receiver, by which error vectors are assigned.
    pub first: u32,
    /// Number of receivers.
    pub receivers: u32,
    /// Random stream of the draws.
    pub stream: RandomStream,
}

impl ChannelLosses<'_> {
    /// Builds the processes.
    pub fn make(self) -> Box<dyn Losses> {
        self.losses.make(self.first, self.receivers, self.stream)
    }

    /// Builds all processes but outages, and the outages. Together they equal the result of [`make`](Self::make),
    /// with the same draws.
    pub fn make_apart(self) -> (Box<dyn Losses>, Box<dyn Losses>) {
        let (others, outages) = self.losses.apart();
        let make = |losses: &LossSpec, stream| losses.make(self.first, self.receivers, stream);
        (make(&others, self.stream.clone()), make(&outages, self.stream))
    }
}

impl Links {
    /// Returns the losses of a group behind the forward path. The group is one channel: every packet to one of its
    /// receivers or to all is on it.
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

    /// Returns the losses of the packets that `receivers` receivers send. Each receiver has a link of its own, but a
    /// process without memory serves all.
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

    /// Returns the losses of flow number `flow` behind the forward path and behind the return path. The flow has a
    /// terminal of its own, number `terminal`.
    pub fn flow_losses(&self, flow: u32, terminal: u32, streams: Streams) -> [ChannelLosses<'_>; 2] {
        let ways = [(&self.losses, Purpose::FlowLosses), (&self.back_losses, Purpose::FlowReturnLosses)];
        ways.map(|(losses, purpose)| {
            let stream = streams.of(flow.into(), purpose);
            ChannelLosses { losses, first: terminal, receivers: 1, stream }
        })
    }
}
