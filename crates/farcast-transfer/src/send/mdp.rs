//! Sending files by MDP.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_delivery::KeyNumber;
use farcast_delivery::nack::NodeId;
use farcast_files::Entry;
use farcast_mdp::settings::SendPlan as Plan;
use farcast_mdp::{Codec, ConfigError, Mdp, Object, ObjectBegun, Sender, SenderConfig, Settings};
use serde_json::Value;

use super::nack::{NackSendProtocol, NameRoom, SendLimits, SendNack, said_of};
use super::named::{Named, figures};
use super::{Scanned, SendEvent, SendJob, settings};
use crate::{Error, ProtocolName};

/// Sender of files by MDP.
pub type SendMdp = SendNack<Mdp>;

impl SendMdp {
    /// Returns the configuration for sending `objects` from `source`.
    pub fn configuration(&self, job: &SendJob, objects: Vec<Object>, source: SocketAddr) -> SenderConfig {
        let plan = Plan {
            node: job.nack.node(source, self.number()),
            source,
            group: self.basis.to,
            objects,
            ackers: self.named.nodes().collect(),
        };
        self.settings.sender(plan, self.path(job))
    }
}

impl NackSendProtocol for Mdp {
    type Own = ObjectBegun;
    type Settings = Settings;
    type Config = SenderConfig;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Mdp;

    fn settings(job: &SendJob, sealed: bool) -> Result<Settings, Error> {
        let mut settings = settings::read(job, |table| Settings::read(table))?;
        // Only the sender can open a sealed answer.
        settings.unicast |= sealed;
        Ok(settings)
    }

    fn limits(settings: &Settings) -> SendLimits {
        SendLimits { rate: settings.rate, burst: settings.burst, time: settings.time_limit }
    }

    fn configured(sender: &SendMdp, job: &SendJob, files: &Scanned, source: SocketAddr) -> SenderConfig {
        let object = |entry: &Entry| {
            let (size, info, vouched) = said_of(job, entry);
            Object { size, info, vouched: vouched.filter(|_| !job.mdp.names_alone) }
        };
        sender.configuration(job, files.entries().map(object).collect(), source)
    }

    fn name_room(job: &SendJob, config: &SenderConfig) -> NameRoom {
        let beside = if job.mdp.names_alone { 0 } else { farcast_mdp::VOUCHED_LEN };
        NameRoom { segment: config.segment_size.into(), beside, longest: usize::MAX }
    }

    fn codec(_sender: &SendMdp, _job: &SendJob) -> Codec {
        Codec
    }

    fn engine(
        job: &SendJob,
        config: SenderConfig,
        source: SocketAddr,
        number: Option<KeyNumber>,
    ) -> Result<Sender, ConfigError> {
        Sender::new(SenderConfig { node: job.nack.node(source, number), source, ..config })
    }

    fn own_event(_named: &Named, &ObjectBegun(object): &ObjectBegun) -> Option<SendEvent> {
        Some(SendEvent::Object(object.into()))
    }

    fn heard(sender: &Sender, node: NodeId) -> Option<Time> {
        sender.heard(node)
    }

    fn figures(sender: &Sender) -> Value {
        figures(sender.sent_per_round(), Some(sender.grtt()), sender.rejects())
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_mdp::settings::in_effect(sender.config()))
    }
}
