//! Sending files by MDP.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_files::{Entry, Outgoing};
use farcast_mdp::settings::{PathLimits, SendPlan as Plan};
use farcast_mdp::{
    Codec, ConfigError, Mdp, NodeId, Object, ObjectBegun, Sender, SenderConfig, SenderEvent, Settings,
};
use farcast_net::SendSeal;
use serde_json::Value;

use super::nack::{self, NameRoom, check_names, named, said_of};
use super::named::{Ending, Named, figures};
use super::{
    Basis, MakeSender, Preparation, ReceiverState, ReportOf, Scanned, SendEvent, SendJob, SendProtocol,
    Verdict, burst, destination, path_mtu, settings,
};
use crate::sealing::{Sealing, signed_headers};
use crate::{Error, ProtocolName};

/// Sender of files by MDP.
#[derive(Debug)]
pub struct SendMdp {
    basis: Basis,
    settings: Settings,
    named: Named,
}

impl SendMdp {
    /// Returns the settings in effect.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the number of named receivers.
    pub fn named(&self) -> usize {
        self.named.len()
    }

    /// Returns the configuration for sending `objects` from `source`.
    pub fn configuration(&self, job: &SendJob, objects: Vec<Object>, source: SocketAddr) -> SenderConfig {
        let plan = Plan {
            node: job.nack.node(source, self.basis.sealing.as_ref()),
            source,
            group: self.basis.to,
            objects,
            ackers: self.named.nodes().collect(),
        };
        let headers = signed_headers(self.basis.to, self.basis.sealing.is_some());
        self.settings.sender(plan, PathLimits { headers, mtu: path_mtu(job, self.basis.to), granule: 1 })
    }

    /// Returns the configuration for sending `files` from `source`.
    pub fn configured(&self, job: &SendJob, files: &Scanned, source: SocketAddr) -> SenderConfig {
        let object = |entry: &Entry| {
            let (size, info, vouched) = said_of(job, entry);
            Object { size, info, vouched: vouched.filter(|_| !job.mdp.names_alone) }
        };
        let entries = files.objects.iter().flat_map(|one| one.manifest().entries());
        self.configuration(job, entries.map(object).collect(), source)
    }
}

impl SendProtocol for SendMdp {
    type Protocol = Mdp;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Mdp;

    fn new(job: &SendJob, sealing: Option<Sealing>) -> Result<Self, Error> {
        let settings = settings(job, sealing.is_some())?;
        let to = destination(job)?;
        let named = Named::new(Self::NAME, sealing.is_some(), named(job, sealing.as_ref())?);
        let (limit, burst) = (settings.time_limit, burst(Some(settings.rate), settings.burst));
        let basis = Basis { to, sealing, patience: limit, time_limit: limit, burst };
        Ok(Self { basis, settings, named })
    }

    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn scan(&self, job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
        nack::scan(job, note)
    }

    fn check(&self, job: &SendJob, files: &Scanned) -> Result<(), Error> {
        let segment = self.configured(job, files, self.basis.to).segment_size.into();
        let beside = if job.mdp.names_alone { 0 } else { farcast_mdp::VOUCHED_LEN };
        check_names(job, files, &NameRoom { by: "MDP", segment, beside, longest: usize::MAX })
    }

    fn destined(&self, _job: &SendJob) -> String {
        format!("for {}", nack::whom(self.named.len()))
    }

    fn codec(&self) -> Codec {
        Codec
    }

    fn seal(&self, job: &SendJob) -> Result<Option<SendSeal>, Error> {
        nack::seal(job, self.basis.to, self.settings.rate, self.basis.sealing.as_ref())
    }

    fn engine<'a>(&mut self, job: &'a SendJob, files: &Scanned) -> Result<MakeSender<'a, Self>, Error> {
        let config = self.configured(job, files, self.basis.to);
        let chosen = self.basis.sealing.as_ref().map(|sealing| sealing.number().sender());
        Ok(Box::new(move |source| {
            let node = chosen.map_or_else(|| job.nack.node(source, None), NodeId);
            Sender::new(SenderConfig { node, source, ..config })
        }))
    }

    fn event(&mut self, now: Time, _sender: &Sender, event: &SenderEvent) -> Option<SendEvent> {
        self.named.event(now, event, |_, &ObjectBegun(object)| Some(SendEvent::Object(object.into())))
    }

    fn receivers(&self) -> Vec<ReceiverState> {
        self.named.receivers()
    }

    fn verdict(&self, _job: &SendJob, report: &ReportOf<Self>, late: bool) -> Verdict {
        let ending = Ending {
            error: report.error.as_ref(),
            late,
            changed: &report.changed,
            known: self.named.len() > 0,
        };
        ending.judge(self.named.verdict(&report.end))
    }

    fn figures(&self, sender: &Sender) -> Value {
        figures(sender.sent_per_round(), Some(sender.grtt()), sender.rejects())
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_mdp::settings::in_effect(sender.config()))
    }
}

/// Returns the settings that `job` asks for.
fn settings(job: &SendJob, sealed: bool) -> Result<Settings, Error> {
    let mut settings = settings::read(job, |table| Settings::read(table))?;
    // Only the sender can open a sealed answer.
    settings.unicast |= sealed;
    Ok(settings)
}
