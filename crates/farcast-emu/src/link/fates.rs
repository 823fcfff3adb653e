//! Fates of packets behind the last stage. Losses come from the processes of a simulation of the same link.

use farcast_core::random::RandomStream;
use farcast_core::{Among, Losses, Probability, Span, Time};
use farcast_link::losses::{BackLosses, Bernoulli, NoLoss};
use farcast_scenario::links::ChannelLosses;
use farcast_scenario::streams::{Purpose, Streams};

use super::{LinkConfig, PacketFate};

/// Losses of the receivers of one channel.
#[derive(Debug)]
pub(super) struct Fates {
    outages: Box<dyn Losses>,
    /// All other processes.
    losses: Box<dyn Losses>,
    /// Receivers that lost the current packet in an outage; `lost` are those that lost it by other processes. Both are
    /// ascending.
    cut_off: Vec<u32>,
    lost: Vec<u32>,
}

impl Fates {
    fn new(channel: ChannelLosses<'_>) -> Self {
        let (losses, outages) = channel.make_apart();
        Self { outages, losses, cut_off: Vec::new(), lost: Vec::new() }
    }

    /// Creates losses of `receivers` receivers that lose packets independently with this probability, and by no other
    /// process.
    fn independent(per: Probability, receivers: u32, stream: RandomStream) -> Self {
        let losses = Box::new(Bernoulli::new(per, receivers, stream));
        Self { outages: Box::new(NoLoss), losses, cut_off: Vec::new(), lost: Vec::new() }
    }

    /// Draws the fate of a packet of `octets` octets that arrives at `now`. Each process draws for every packet.
    pub(super) fn draw(&mut self, now: Time, octets: u64, among: Among<'_>) {
        self.cut_off.clear();
        self.lost.clear();
        self.losses.draw(now, octets, among, &mut self.lost);
        self.outages.draw(now, octets, among, &mut self.cut_off);
    }

    /// Returns the cause for which receiver `number` of the channel has lost the packet, if it has.
    pub(super) fn cause(&self, number: u32) -> Option<PacketFate> {
        if self.cut_off.binary_search(&number).is_ok() {
            Some(PacketFate::OUTAGE)
        } else {
            self.lost.binary_search(&number).is_ok().then_some(PacketFate::LOSSES)
        }
    }
}

/// Terminals that share a channel.
#[derive(Debug)]
pub(super) struct LossChannel {
    /// Number of the first terminal; `terminals` is their count.
    pub(super) first: u32,
    pub(super) terminals: u32,
    /// Delay from the last stage.
    pub(super) delay: Span,
    pub(super) fates: Fates,
    /// Name of its random stream: the number of the group or of the flow, and the purpose.
    entity: (u64, Purpose),
}

impl LossChannel {
    /// Makes packets be lost independently with this probability from now on; this is change number `change`.
    pub(super) fn lose(&mut self, per: Probability, streams: Streams, change: u64) {
        let (entity, purpose) = self.entity;
        let stream = streams.changed(entity, purpose, change);
        self.fates = Fates::independent(per, self.terminals, stream);
    }
}

/// Creates the channels of all groups, followed by one for each flow.
pub(super) fn channels(config: &LinkConfig) -> Vec<LossChannel> {
    let LinkConfig { links, groups, flows, .. } = config;
    let streams = config.streams();
    let mut first = 0;
    let mut channels = Vec::new();
    for (number, group) in (0..).zip(groups) {
        let fates = Fates::new(links.forward_losses(number, group, streams));
        let (terminals, delay) = (group.receivers, group.delay);
        channels.push(LossChannel { first, terminals, delay, fates, entity: (number, Purpose::Losses) });
        first += terminals;
    }
    for flow in 0..*flows {
        let [forward, _] = links.flow_losses(flow, first, streams);
        let (fates, entity) = (Fates::new(forward), (flow.into(), Purpose::FlowLosses));
        channels.push(LossChannel { first, terminals: 1, delay: Span::ZERO, fates, entity });
        first += 1;
    }
    channels
}

/// Losses of packets from terminals.
#[derive(Debug)]
pub(super) struct BackFates {
    receivers: BackLosses<Fates>,
    /// Number of terminals of receivers; the terminals of flows have the numbers behind them.
    count: u32,
    flows: Vec<Fates>,
}

impl BackFates {
    pub(super) fn new(config: &LinkConfig) -> Self {
        let LinkConfig { links, flows, .. } = config;
        let streams = config.streams();
        let count = config.terminals() - flows;
        let of_flow = |flow| {
            let [_, back] = links.flow_losses(flow, count + flow, streams);
            Fates::new(back)
        };
        let receivers = links.return_losses(count, streams).map(Fates::new);
        Self { receivers, count, flows: (0..*flows).map(of_flow).collect() }
    }

    /// Draws the fate of a packet of `octets` octets from a terminal that arrives at `now`. Returns the cause if it is
    /// lost.
    pub(super) fn draw(&mut self, now: Time, octets: u64, terminal: u32) -> Option<PacketFate> {
        let flow = terminal.checked_sub(self.count).and_then(|flow| self.flows.get_mut(flow as usize));
        let (fates, number) = match flow {
            Some(fates) => (fates, 0),
            None => self.receivers.of(terminal)?,
        };
        fates.draw(now, octets, Among::These(&[number]));
        fates.cause(number)
    }

    /// Makes packets be lost independently with this probability from now on; this is change number `change`.
    pub(super) fn lose(&mut self, per: Probability, streams: Streams, change: u64) {
        let stream = streams.changed(0, Purpose::ReturnLosses, change);
        let terminals = self.count + self.flows.len() as u32;
        self.receivers = BackLosses::Shared(Fates::independent(per, terminals, stream));
        (self.count, self.flows) = (terminals, Vec::new());
    }
}
