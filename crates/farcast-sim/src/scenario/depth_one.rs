//! Conversion of a scenario's star into a tree of depth one: the hub, one edge, and all receivers and flows at its far
//! ends.

use farcast_core::stage::End;
use farcast_delivery::Protocol;
use farcast_scenario::links::ChannelLosses;
use farcast_scenario::streams::Streams;

use super::transfer::{Transfer, TransferSpec, TreeTask, Visit};
use super::{Scenario, way_back};
use crate::star::{Cut, StarError};
use crate::tree::{EdgeConfig, FarEnd, NodeConfig, Role, TreeConfig, TreeFlow};

impl Scenario {
    /// Returns the tree of replication number `replication`, whose random numbers follow from `seed`. Its outcome is
    /// that of the star.
    pub(super) fn depth_one<T: Transfer>(
        &self,
        transfer: Option<&T>,
        seed: u64,
        replication: u64,
    ) -> Result<TreeConfig<T::Protocol>, StarError> {
        let streams = Streams::new(seed, replication);
        let receivers = u32::try_from(self.receivers()).unwrap_or(u32::MAX);
        let terminals = receivers.saturating_add(self.traffic.len() as u32);
        let links = &self.links;
        let chains = links.chains(terminals, false, streams);
        let back = way_back(links, &chains, receivers, streams);
        let node = |name: String, role| NodeConfig { name, role };
        let mut nodes = vec![node("hub".into(), Role::Plain)];
        let mut far = Vec::new();
        let mut end = |losses, return_losses| {
            let node = far.len() as u32 + 1;
            far.push(FarEnd { node, losses, return_losses });
            node
        };
        for (number, group) in
            transfer.map_or_else(Vec::new, |transfer| self.groups(transfer, streams)).into_iter().enumerate()
        {
            end(None, None);
            nodes.push(node(format!("group {number}"), Role::Receivers(group)));
        }
        let mut flows = Vec::new();
        for (number, spec) in (0..).zip(&self.traffic) {
            let terminal = receivers.saturating_add(number);
            let [forward, back] = links.flow_losses(number, terminal, streams).map(ChannelLosses::make);
            let made = spec.make(number, receivers, links, streams);
            nodes.push(node(made.name.clone(), Role::Plain));
            let ends = [0, end(Some(forward), Some(back))];
            flows.push(TreeFlow { ends, flow: made });
        }
        let edge = EdgeConfig {
            name: "link".into(),
            near: 0,
            far,
            delays: [None, back.delay.filter(|_| chains.numbers(End::Hub).next().is_none())],
            chains,
            return_losses: back.losses,
            relayed: true,
        };
        Ok(TreeConfig {
            sender: transfer.map(Transfer::sender).transpose()?.map(|sender| (0, sender)),
            nodes,
            edges: vec![edge],
            flows,
            overhead: transfer.map_or(0, Transfer::overhead),
            seal: transfer.and_then(Transfer::seal),
            given: transfer.is_some_and(Transfer::given),
            lookahead: links.back.least_delay(),
            limit: self.time_limit(),
            cut: Cut::Whole,
        })
    }

    /// Runs `task` on the scenario as a tree of depth one.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn visit_as_tree<T: TreeTask>(
        &self,
        seed: u64,
        replication: u64,
        task: T,
    ) -> Result<T::Output, StarError> {
        let visitor = DepthOne { scenario: self, seed, replication, task };
        TransferSpec::visit(self.transfer.as_ref(), visitor)
    }
}

/// Visitor that runs a task on a star as a tree.
struct DepthOne<'a, T> {
    scenario: &'a Scenario,
    seed: u64,
    replication: u64,
    task: T,
}

impl<K: TreeTask> Visit for DepthOne<'_, K> {
    type Output = Result<K::Output, StarError>;

    fn visit<T: Transfer>(
        self,
        transfer: Option<&T>,
        codec: <T::Protocol as Protocol>::Codec,
    ) -> Self::Output {
        Ok(self.task.on(self.scenario.depth_one(transfer, self.seed, self.replication)?, codec))
    }
}
