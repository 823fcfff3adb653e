//! Sending files by PGM.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_core::Time;
use farcast_delivery::KeyNumber;
use farcast_files::{Entry, Outgoing};
use farcast_net::SendSeal;
use farcast_pgm::settings::{PathLimits, SendPlan as Plan};
use farcast_pgm::{
    Codec, ConfigError, Gsi, Object, Pgm, Sender, SenderConfig, SenderEvent, Sending, Settings, Tsi,
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

/// Prefix that separates the sources of one host that send to several groups.
const SOURCE: &[u8] = b"farcast: the PGM source at ";
/// Data-destination port if UDP has a port of its own: that of OpenPGM.
const PORT: u16 = 7500;

/// Sender of files by PGM.
#[derive(Debug)]
pub struct SendPgm {
    basis: Basis,
    settings: Settings,
    named: Named,
    raw: bool,
}

impl SendPgm {
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
            tsi: session(source, self.basis.to, self.basis.sealing.as_ref().map(Sealing::number)),
            sending: Sending::Files(objects),
            source,
            group: self.basis.to,
            named: self.named.nodes().collect(),
        };
        let way = way(job, self.basis.to, self.basis.sealing.is_some());
        on_wire(job, self.settings.sender(plan, way))
    }

    /// Returns the configuration for sending `files` from `source`.
    pub fn configured(&self, job: &SendJob, files: &Scanned, source: SocketAddr) -> SenderConfig {
        let object = |entry: &Entry| {
            let (size, name, vouched) = said_of(job, entry);
            Object { size, name, vouched }
        };
        let entries = files.objects.iter().flat_map(|one| one.manifest().entries());
        self.configuration(job, entries.map(object).collect(), source)
    }
}

impl SendProtocol for SendPgm {
    type Protocol = Pgm;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Pgm;

    fn new(job: &SendJob, sealing: Option<Sealing>) -> Result<Self, Error> {
        let settings = settings(job)?;
        let to = destination(job)?;
        let named = Named::new(Self::NAME, sealing.is_some(), named(job, sealing.as_ref())?);
        let (limit, burst) = (settings.time_limit, burst(Some(settings.rate), settings.burst));
        let basis = Basis { to, sealing, patience: limit, time_limit: limit, burst };
        Ok(Self { basis, settings, named, raw: job.pgm.raw })
    }

    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn scan(&self, job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
        nack::scan(job, note)
    }

    fn check(&self, job: &SendJob, files: &Scanned) -> Result<(), Error> {
        let segment = self.configured(job, files, self.basis.to).tsdu.into();
        let (beside, longest) = (farcast_pgm::NAME_OVERHEAD, farcast_pgm::MOST_NAME);
        check_names(job, files, &NameRoom { by: "PGM", segment, beside, longest })
    }

    fn destined(&self, _job: &SendJob) -> String {
        format!("for {}", nack::whom(self.named.len()))
    }

    fn codec(&self) -> Codec {
        Codec { raw: self.raw }
    }

    fn seal(&self, job: &SendJob) -> Result<Option<SendSeal>, Error> {
        nack::seal(job, self.basis.to, self.settings.rate, self.basis.sealing.as_ref())
    }

    fn engine<'a>(&mut self, job: &'a SendJob, files: &Scanned) -> Result<MakeSender<'a, Self>, Error> {
        let (config, to) = (self.configured(job, files, self.basis.to), self.basis.to);
        let number = self.basis.sealing.as_ref().map(Sealing::number);
        Ok(Box::new(move |source| {
            Sender::new(SenderConfig { tsi: session(source, to, number), source, ..config })
        }))
    }

    fn event(&mut self, now: Time, _sender: &Sender, event: &SenderEvent) -> Option<SendEvent> {
        // A transfer of files keeps everything.
        self.named.event(now, event, |_, _| None)
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
        figures(sender.sent_per_round(), None, sender.rejects())
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_pgm::settings::in_effect(sender.config()))
    }
}

/// Returns the settings that `job` asks for.
pub(super) fn settings(job: &SendJob) -> Result<Settings, Error> {
    settings::read(job, |table| Settings::read(table))
}

/// Returns the session id of a transfer. The source part is the same for the same two addresses, or in a sealed
/// transfer follows from the key. The port part is another for each session: receivers thereby know that the session
/// before is over.
#[expect(
    clippy::disallowed_methods,
    reason = "one session is told from the other by when it is, and a face is no engine"
)]
pub(super) fn session(source: SocketAddr, to: SocketAddr, number: Option<KeyNumber>) -> Tsi {
    let who = [SOURCE, source.ip().to_string().as_bytes(), b" to ", to.to_string().as_bytes()].concat();
    let mut gsi = [0; 6];
    blake3::Hasher::new().update(&who).finalize_xof().fill(&mut gsi);
    let gsi = number.map_or(gsi, KeyNumber::source);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Two sessions that begin within these 16 ms do no harm: the second waits for the first.
    let port = (now.as_millis() / 16) as u16;
    Tsi { gsi: Gsi(gsi), port }
}

/// Returns the properties of the path to `group`.
pub(super) fn way(job: &SendJob, group: SocketAddr, sealed: bool) -> PathLimits {
    // Without UDP, packets that network elements have to look at carry the router alert, an IP option of four octets.
    let headers = if job.pgm.raw { 24 } else { signed_headers(group, sealed) };
    PathLimits { headers, mtu: path_mtu(job, group), granule: 1 }
}

/// Returns `config` for UDP or for IP alone.
pub(super) fn on_wire(job: &SendJob, config: SenderConfig) -> SenderConfig {
    let raw = job.pgm.raw;
    // Without a UDP port, PGM's own port separates the transfers of a group.
    let port = if raw { config.group.port() } else { PORT };
    SenderConfig { port, router_alert: raw, ..config }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a session is told from the next by when it is")]
    fn a_source_is_the_same_each_time_and_its_sessions_are_not() {
        let address = |text: &str| text.parse().unwrap();
        let (source, to) = (address("10.0.0.1:4000"), address("239.1.1.1:5402"));
        let (one, port) = (session(source, to, None), address("10.0.0.1:4001"));
        assert_eq!(one.gsi, session(port, to, None).gsi);
        assert_ne!(one.gsi, session(source, address("239.1.1.2:5402"), None).gsi);
        std::thread::sleep(std::time::Duration::from_millis(40));
        assert_ne!(one, session(source, to, None));
    }
}
