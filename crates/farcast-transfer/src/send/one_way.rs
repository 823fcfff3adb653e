//! Sending files one way.

use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_files::Outgoing;
use farcast_net::SendSeal;
use farcast_oneway::settings::{PathLimits, SendPlan as Plan, Settings};
use farcast_oneway::{Codec, ConfigError, Duration, OneWay, Sender, SenderConfig, SenderEvent};
use farcast_seal::Contents;
use serde_json::{Value, json};

use super::named::judge;
use super::scanned::scan_product;
use super::{
    Basis, MakeSender, Preparation, ReceiverState, ReportOf, Scanned, SendEvent, SendJob, SendOutcome,
    SendProtocol, Verdict, burst, destination, path_mtu, settings,
};
use crate::sealing::{self, Sealing};
use crate::state::transmission;
use crate::{Error, ProtocolName};

/// Longest wait for a path out of this host.
const PATIENCE: Span = Span::from_secs(180);

/// Sender of files one way.
#[derive(Debug)]
pub struct SendOneWay {
    basis: Basis,
    settings: Settings,
    /// Number of segments of the object.
    segments: u32,
}

impl SendOneWay {
    /// Returns the settings in effect.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the most octets of a datagram with keys.
    pub fn keys_in(&self) -> usize {
        self.settings.symbol_size.unwrap_or(1472).into()
    }

    /// Returns the configuration for sending an object of `size` octets that begins with a list of files of `head`
    /// octets. The source address is not known yet.
    ///
    /// # Errors
    /// The settings do not suit the size.
    pub fn configuration(&self, job: &SendJob, object: OneWayObject) -> Result<SenderConfig, Error> {
        let to = self.basis.to;
        let path = PathLimits {
            headers: sealing::headers(to, self.basis.sealing.is_some()),
            mtu: path_mtu(job, to),
        };
        let OneWayObject { id, name, size, head } = object;
        let name = name.as_bytes()[..name.len().min(255)].to_vec();
        let plan = Plan { session: transmission(), id, name, size, head, source: to, group: to };
        self.settings.sender(plan, path).map_err(Error::wrong)
    }

    /// Returns the configuration for sending `files`.
    ///
    /// # Errors
    /// The settings do not suit the files.
    pub fn configured(&self, job: &SendJob, files: &Scanned) -> Result<SenderConfig, Error> {
        let [outgoing] = &files.objects[..] else { return Err(Error::failed("there is nothing to send")) };
        self.configuration(
            job,
            OneWayObject {
                id: *outgoing.id().as_bytes(),
                name: files.name.clone(),
                size: outgoing.size(),
                head: outgoing.manifest().head_len(),
            },
        )
    }
}

/// Object that is sent one way.
#[derive(Clone, Debug)]
pub struct OneWayObject {
    /// Digest that commits to it.
    pub id: [u8; 32],
    /// Name at receivers.
    pub name: String,
    /// Size in octets.
    pub size: u64,
    /// Octets of the list of files at its beginning.
    pub head: u64,
}

impl SendProtocol for SendOneWay {
    type Protocol = OneWay;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::OneWay;
    const SEGMENT_SIZE: &'static str = "--symbol-size";

    fn new(job: &SendJob, sealing: Option<Sealing>) -> Result<Self, Error> {
        let settings = settings(job, sealing.is_some())?;
        let to = destination(job)?;
        let basis = Basis {
            to,
            sealing,
            patience: PATIENCE,
            time_limit: settings.time_limit,
            burst: burst(Some(settings.rate), settings.burst),
        };
        Ok(Self { basis, settings, segments: 0 })
    }

    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn scan(&self, job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
        scan_product(job, self.basis.sealing.is_some(), note)
    }

    fn destined(&self, _job: &SendJob) -> String {
        format!("{}, with {} % added", how_long(self.settings.duration), self.settings.overhead_percent)
    }

    fn codec(&self, _job: &SendJob) -> Codec {
        Codec
    }

    fn seal(&self, job: &SendJob) -> Result<Option<SendSeal>, Error> {
        let scope = sealing::scope(job.protocol_name(), false, self.basis.to);
        // No receiver can ask for a key.
        let seal = |sealing: &Sealing| {
            sealing.sender(scope, Contents::Together, Some(self.settings.rate), self.keys_in())
        };
        self.basis.sealing.as_ref().map(seal).transpose()
    }

    fn engine<'a>(&mut self, job: &'a SendJob, files: &Scanned) -> Result<MakeSender<'a, Self>, Error> {
        let config = self.configured(job, files)?;
        self.segments = config.shape.geometry().segments();
        Ok(Box::new(move |source: SocketAddr| Sender::new(SenderConfig { source, ..config })))
    }

    fn event(&mut self, _now: Time, _sender: &Sender, event: &SenderEvent) -> Option<SendEvent> {
        let SenderEvent::Round { round, symbols } = *event else { return None };
        let fields = json!({ "round": round, "symbols": symbols });
        Some(SendEvent::Other { line: None, kind: "round", fields })
    }

    fn receivers(&self) -> Vec<ReceiverState> {
        Vec::new()
    }

    fn verdict(&self, _job: &SendJob, report: &ReportOf<Self>, late: bool) -> Verdict {
        let own = match report.end {
            SenderEvent::Ended { stopped: false, withdrawn: false } => {
                Verdict { word: "unknown", outcome: SendOutcome::Unknown, sentence: None }
            }
            SenderEvent::Ended { stopped: false, withdrawn: true } => {
                Verdict { word: "incomplete", outcome: SendOutcome::Incomplete, sentence: None }
            }
            _ => {
                let sentence = "stopped; receivers keep what has come, if any, for another time";
                Verdict { word: "aborted", outcome: SendOutcome::Failed, sentence: Some(sentence.into()) }
            }
        };
        judge(report, late, false, own)
    }

    fn figures(&self, sender: &Sender) -> Value {
        let symbols: u64 = sender.sent().iter().sum();
        json!({
            "rounds": sender.sent().len(),
            "symbols": symbols,
            "symbols_per_round": sender.sent(),
            "segments": self.segments,
            "symbol_bytes": sender.config().shape.geometry().segment_size(),
        })
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_oneway::settings::in_effect(sender.config()))
    }
}

/// Returns the duration in words.
pub fn how_long(duration: Duration) -> String {
    match duration {
        Duration::Rounds(1) => "once".into(),
        Duration::Rounds(rounds) => format!("{rounds} times"),
        Duration::For(time) => format!("for {time}"),
    }
}

/// Returns the settings that `job` asks for.
fn settings(job: &SendJob, sealed: bool) -> Result<Settings, Error> {
    // In a sealed transfer these receivers get the keys.
    if !job.group.receivers.is_empty() && !sealed {
        return Err(Error::usage("--receivers has no meaning one way"));
    }
    settings::read(job, |table| Settings::read(table))
}
