//! Sending files by NORM.

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_files::{Entry, Outgoing};
use farcast_net::SendSeal;
use farcast_norm::settings::{PathLimits, SendPlan as Plan};
use farcast_norm::{
    Codec, ConfigError, Kind, NodeId, Norm, Object, Reached, Sender, SenderConfig, SenderEvent, Settings,
};
use serde_json::Value;

use super::nack::{self, NameRoom, check_names, named, said_of};
use super::named::{Ending, Named, figures};
use super::{
    Basis, MakeSender, Preparation, ReceiverState, ReportOf, Scanned, SendEvent, SendJob, SendProtocol,
    Verdict, burst, destination, path_mtu, settings,
};
use crate::sealing::{Sealing, signed_headers};
use crate::{Error, ProtocolName};

/// Sender of files by NORM.
#[derive(Debug)]
pub struct SendNorm {
    basis: Basis,
    settings: Settings,
    named: Named,
}

impl SendNorm {
    /// Returns the settings in effect.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the number of named receivers.
    pub fn named(&self) -> usize {
        self.named.len()
    }

    /// Returns the configuration for sending `objects` from `source`.
    pub fn configuration(
        &self,
        job: &SendJob,
        objects: Vec<Object>,
        source: SocketAddr,
        instance: u16,
    ) -> SenderConfig {
        let plan = Plan {
            node: job.nack.node(source, self.basis.sealing.as_ref()),
            instance,
            objects,
            source,
            group: self.basis.to,
            ackers: self.named.nodes().collect(),
        };
        let headers = signed_headers(self.basis.to, self.basis.sealing.is_some());
        self.settings.sender(plan, PathLimits { headers, mtu: path_mtu(job, self.basis.to), granule: 1 })
    }

    /// Returns the configuration for sending `files` from `source`.
    pub fn configured(&self, job: &SendJob, files: &Scanned, source: SocketAddr) -> SenderConfig {
        let entries = files.objects.iter().flat_map(|one| one.manifest().entries());
        let objects = entries.map(|one| object(job, one)).collect();
        self.configuration(job, objects, source, instance(&files.objects))
    }
}

impl SendProtocol for SendNorm {
    type Protocol = Norm;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Norm;

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
        check_names(job, files, &NameRoom { by: "NORM", segment, beside: 0, longest: usize::MAX })
    }

    fn destined(&self, _job: &SendJob) -> String {
        format!("for {}", nack::whom(self.named.len()))
    }

    fn codec(&self) -> Codec {
        // The code does not depend on the objects or on the source address.
        let plan = Plan {
            node: NodeId::NONE,
            instance: 0,
            objects: Vec::new(),
            source: self.basis.to,
            group: self.basis.to,
            ackers: self.named.nodes().collect(),
        };
        let config = self.settings.sender(plan, PathLimits { headers: 28, mtu: None, granule: 1 });
        Codec { fec: config.fec }
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
        self.named.event(now, event, |named, Reached { node, object }| {
            Some(SendEvent::Reached { receiver: named.label(*node), object: object.get().into() })
        })
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
        settings::in_effect(farcast_norm::settings::in_effect(sender.config()))
    }
}

/// Returns the settings that `job` asks for.
pub(super) fn settings(job: &SendJob, sealed: bool) -> Result<Settings, Error> {
    let mut settings = settings::read(job, |table| Settings::read(table))?;
    // Only the sender can open a sealed answer.
    settings.unicast |= sealed;
    Ok(settings)
}

/// Returns an instance id that is the same for the same files and most likely another for other files. Receivers
/// thereby recognise the objects that they have.
fn instance(objects: &[Outgoing]) -> u16 {
    let mut hasher = blake3::Hasher::new();
    for one in objects {
        hasher.update(one.id().as_bytes());
    }
    let [a, b, ..] = *hasher.finalize().as_bytes();
    u16::from_be_bytes([a, b])
}

fn object(job: &SendJob, entry: &Entry) -> Object {
    let (size, info, vouched) = said_of(job, entry);
    Object { kind: Kind::File, size, info, vouched }
}
