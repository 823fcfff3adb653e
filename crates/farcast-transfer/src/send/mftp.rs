//! Sending files by MFTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use farcast_core::{Span, Time};
use farcast_files::Outgoing;
use farcast_mftp::message::cancel;
use farcast_mftp::settings::{Addresses, Audience, PathLimits, SendRate, Settings};
use farcast_mftp::{
    ClientId, Codec, ConfigError, GivenUp, Invited, Member, MemberState, Mftp, Neighbourhood, Product,
    Secret, Sender, SenderConfig, SenderEvent, SenderOutcome,
};
use farcast_net::{SendSeal, Waited};
use farcast_seal::Contents;
use serde_json::{Value, json};

use super::scanned::scan_product;
use super::turn::{Other, Turn};
use super::{
    Basis, Locked, MakeSender, Preparation, ReceiverState, Scanned, SendEvent, SendJob, SendProtocol, Tally,
    Unconfirmed, Verdict, burst, datagram_to, path_mtu, receivers, settings,
};
use crate::host::Family;
use crate::sealing::{self, Sealing};
use crate::state::{Known, State, random_secret, transmission};
use crate::{Error, ProtocolName};

mod verdict;

pub use verdict::{given_up, has_it, outcome_word, quit_reason, standing, state_words};

/// Report of the network driver on a transmission by MFTP.
type Report = farcast_net::SendReport<Sender>;

/// Addresses of a transfer, with names resolved.
#[derive(Clone, Copy, Debug)]
struct Destination {
    /// Address of announcements.
    public: SocketAddr,
    /// Address of data.
    private: SocketAddr,
}

impl Destination {
    fn of(job: &SendJob) -> Result<Self, Error> {
        let private = super::destination(job)?;
        let family = Some(Family::of(private.ip()));
        let public =
            job.announce.as_ref().map(|announce| announce.resolve("--announce", family)).transpose()?;
        Ok(Self { public: public.unwrap_or(private), private })
    }
}

/// Sender of files by MFTP.
#[derive(Debug)]
pub struct SendMftp {
    basis: Basis,
    settings: Settings,
    to: Destination,
    /// Memory of this transfer, while one runs.
    state: Option<State>,
    /// Memory of the group.
    known: Option<Known>,
    receivers: Vec<ReceiverState>,
}

impl SendMftp {
    /// Returns the settings in effect.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the most octets of a datagram with keys.
    pub fn keys_in(&self, job: &SendJob) -> usize {
        let dtu = self.settings.dtu_size.map_or(usize::MAX, |dtu| dtu as usize);
        dtu.min(datagram_to(job, self.to.private))
    }

    /// Returns `true` if the sender and its receivers prove the origin of their messages. Receivers of the draft cannot.
    pub fn has_proofs(&self, job: &SendJob) -> bool {
        !job.group.draft
    }

    /// Returns the configuration for sending `files` from `server`.
    ///
    /// # Errors
    /// There is not exactly one product.
    pub fn configured(
        &self,
        job: &SendJob,
        files: &Scanned,
        server: SocketAddr,
    ) -> Result<SenderConfig, Error> {
        let outgoing = product(files)?;
        let list = outgoing.manifest().head_len();
        let product =
            Product { id: *outgoing.id().as_bytes(), size: outgoing.size(), name: files.name.clone() };
        let config = self.configuration(job, list, product, server);
        Ok(SenderConfig { early_data: self.early_data(&config, &files.name), ..config })
    }

    /// Returns the time for which data of a product called `name` may leave before any receiver has registered. It is
    /// zero if receivers most likely have a part of it, or an older version to compare.
    fn early_data(&self, config: &SenderConfig, name: &str) -> Span {
        // A long list of keys together with data would be too much at once.
        let few = self.basis.sealing.as_ref().is_none_or(Sealing::is_for_few);
        let early = few && !Known::load(self.to.private).has_some(name);
        if early { config.early_data } else { Span::ZERO }
    }

    /// Returns the configuration of a sender of `product`, which begins with a list of files of `list` octets.
    pub fn configuration(
        &self,
        job: &SendJob,
        list: u64,
        product: Product,
        server: SocketAddr,
    ) -> SenderConfig {
        let (group, to, sealed) = (&job.group, self.to, self.basis.sealing.is_some());
        let audience = if group.unlimited {
            Audience::Anybody
        } else if group.receivers.is_empty() {
            Audience::Open(group.limit)
        } else {
            Audience::Listed(group.receivers.iter().map(|label| Invited::new(label)).collect())
        };
        let headers = sealing::headers(to.private, sealed);
        let path = PathLimits { headers, mtu: path_mtu(job, to.private), granule: 1 };
        let config = {
            let addresses = Addresses { server, public: to.public, private: to.private };
            self.settings.sender(product, addresses, &audience, path)
        };
        // Receivers that have an older version compare it with the list of files.
        let list_segments = u32::try_from(list.div_ceil(config.dtu_size.into())).unwrap_or(u32::MAX);
        // A signed datagram grows by more octets than a datagram of content.
        let datagram = config.datagram.saturating_sub(if sealed { sealing::SIGNED } else { 0 });
        SenderConfig { transmission: transmission(), list_segments, datagram, ..config }
    }

    fn rate_limit(&self) -> Option<farcast_core::BitRate> {
        match self.settings.rate {
            SendRate::Max => None,
            SendRate::Limit(rate) => Some(rate),
        }
    }
}

impl SendProtocol for SendMftp {
    type Protocol = Mftp;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Mftp;
    const HEARS_OTHERS: bool = true;
    const SEGMENT_SIZE: &'static str = "--dtu-size";
    // A receiver that is done has verified its data.
    const LOOKS_AGAIN: bool = false;

    fn new(job: &SendJob, sealing: Option<Sealing>) -> Result<Self, Error> {
        let settings = settings(job)?;
        let to = Destination::of(job)?;
        check(job, to, &settings, sealing.is_some())?;
        let rate = if let SendRate::Limit(rate) = settings.rate { Some(rate) } else { None };
        let basis = Basis {
            to: to.private,
            sealing,
            patience: settings.announce_time,
            time_limit: Span::MAX,
            burst: burst(rate, settings.burst),
        };
        Ok(Self { basis, settings, to, state: None, known: None, receivers: Vec::new() })
    }

    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn scan(&self, job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
        scan_product(job, self.basis.sealing.is_some(), note)
    }

    fn lock(
        &self,
        turn: &mut Turn<'_>,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Locked, Error> {
        let mut locked = turn.lock(note, stop)?;
        if self.basis.sealing.is_some() {
            let announced = turn.lock_announcements(self.to.public, note, stop)?;
            locked.waited |= announced.waited;
            locked.locks.extend(announced.locks);
        }
        Ok(locked)
    }

    fn destined(&self, job: &SendJob) -> String {
        match job.group.receivers.len() {
            0 if job.group.unlimited => "for whoever listens".to_owned(),
            0 => "for whoever registers".to_owned(),
            n if job.group.unlimited => format!("for whoever listens of {}", receivers(n)),
            n => format!("for {}", receivers(n)),
        }
    }

    fn codec(&self, _job: &SendJob) -> Codec {
        Codec
    }

    fn seal(&self, job: &SendJob) -> Result<Option<SendSeal>, Error> {
        // Without registration no receiver asks for the key of content.
        let contents = if job.group.unlimited { Contents::Together } else { Contents::Apart };
        let scope = sealing::scope(job.protocol_name(), false, self.to.public);
        let seal = |sealing: &Sealing| sealing.sender(scope, contents, self.rate_limit(), self.keys_in(job));
        self.basis.sealing.as_ref().map(seal).transpose()
    }

    fn engine<'a>(&mut self, job: &'a SendJob, files: &Scanned) -> Result<MakeSender<'a, Self>, Error> {
        let config = self.configured(job, files, self.to.private)?;
        let state = State::load(product(files)?.id(), self.to.private);
        let remembered: Vec<ClientId> = state.done().iter().copied().map(ClientId).collect();
        let early_data = if remembered.is_empty() { config.early_data } else { Span::ZERO };
        // Until it has ended well, receivers may have a part.
        self.known.insert(Known::load(self.to.private)).add(&files.name, true);
        self.state = Some(state);
        let secret = if self.has_proofs(job) { Some(Secret(random_secret()?)) } else { None };
        Ok(Box::new(move |server| {
            let mut sender =
                Sender::new(SenderConfig { server, response: server, secret, early_data, ..config })?;
            // The sender does not wait for a receiver that had everything in an earlier run.
            for client in remembered {
                sender.remember(client);
            }
            Ok(sender)
        }))
    }

    fn event(&mut self, _now: Time, sender: &Sender, event: &SenderEvent) -> Option<SendEvent> {
        if let (SenderEvent::Done { client, .. }, Some(state)) = (event, &mut self.state) {
            state.add(client.0);
        }
        let label = |client| label(sender, client);
        Some(match event {
            SenderEvent::Started { receivers, .. } => SendEvent::Started { receivers: u64::from(*receivers) },
            SenderEvent::Pass { pass, dtus } => SendEvent::Round { round: *pass, segments: *dtus },
            SenderEvent::Done { client, .. } => SendEvent::Has(label(*client)),
            SenderEvent::Lost { client, .. } => SendEvent::Lost(label(*client)),
            SenderEvent::Ended(outcome) => SendEvent::Ended(outcome_word(outcome)),
            _ => return None,
        })
    }

    fn ended(&mut self, job: &SendJob, files: &Scanned, report: &Report) {
        let draft = job.group.draft;
        let members = || report.sender.members().map(|(_, member)| member);
        let finished = *outcome(report) == SenderOutcome::Finished;
        let everyone = members().all(|member| has_it(member, draft));
        if let (true, true, Some(known)) = (finished, everyone, &mut self.known) {
            known.add(&files.name, report.sender.compares());
        }
        if let (true, Some(state)) = (finished && report.error.is_none() && everyone, &self.state) {
            state.forget();
        }
        let state = |member: &Member| ReceiverState {
            name: member.label.clone(),
            state: standing(member, draft),
            complete: member.done_at.filter(|_| has_it(member, draft)),
        };
        self.receivers = members().map(state).collect();
    }

    fn wait_after(
        report: &Report,
        turn: &mut Turn<'_>,
        note: &mut dyn FnMut(Preparation<'_>),
        stop: &AtomicBool,
    ) -> Result<Waited, Error> {
        let &SenderOutcome::GroupInUse { by, transmission } = outcome(report) else {
            return Ok(Waited::Over);
        };
        let theirs = |now| Neighbourhood::of(now, by, transmission);
        turn.after(Other { by, codec: &Codec, occupancy: theirs }, note, stop)
    }

    fn stopped(report: &mut Report) {
        report.end = SenderEvent::Ended(SenderOutcome::Aborted { reason: cancel::ABORT_APPLICATION });
    }

    fn again(_job: &SendJob, report: &Report) -> bool {
        *outcome(report) == (SenderOutcome::Aborted { reason: cancel::ABORT_SOURCE_RENEWED })
    }

    fn receivers(&self) -> Vec<ReceiverState> {
        self.receivers.clone()
    }

    fn tally(&self, sender: &Sender) -> Tally {
        verdict::tally(sender)
    }

    fn unconfirmed(&self, job: &SendJob, report: &Report) -> Vec<Unconfirmed> {
        verdict::unconfirmed(&report.sender, job.group.draft)
    }

    fn verdict(&self, job: &SendJob, report: &Report, _late: bool) -> Verdict {
        verdict::verdict(job, self.to.private, report)
    }

    fn figures(&self, sender: &Sender) -> Value {
        let stats = sender.stats();
        json!({
            "round_trip_s": sender.round_trip().as_secs_f64(),
            "passes": stats.dtus_per_pass.len(),
            "dtus_per_pass": stats.dtus_per_pass,
            "parity_dtus": stats.parity_sent,
            "left_out_segments": sender.left_out(),
            "naks": stats.naks,
            "status_requests": stats.status_requests,
        })
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_mftp::settings::in_effect(sender.config()))
    }
}

/// Returns the identifier of the receiver called `name`.
pub fn receiver_id(name: &str) -> u32 {
    ClientId::from_name(name).0
}

/// Returns the settings that `job` asks for.
fn settings(job: &SendJob) -> Result<Settings, Error> {
    let settings = settings::read(job, |table| Settings::read(table))?;
    Ok(Settings { start_on_demand: job.group.start_on_enter, draft: job.group.draft, ..settings })
}

/// Refuses two listed receivers with one identifier: 28 bits are left of a name, so that of ten thousand names two may
/// well be alike.
fn check_alike(job: &SendJob) -> Result<(), Error> {
    let mut known: BTreeMap<ClientId, &str> = BTreeMap::new();
    for name in &job.group.receivers {
        let id = Invited::new(name).id;
        if let Some(other) = known.insert(id, name) {
            let origin = job.group.origins.of(name);
            let origin = if origin.is_empty() { "--receivers: " } else { &origin };
            return Err(Error::usage(format!(
                "{origin}{other} and {name} look alike to MFTP ({id}): rename one of them there and here"
            )));
        }
    }
    Ok(())
}

/// Returns the one product of `files`.
fn product(files: &Scanned) -> Result<&Outgoing, Error> {
    let [outgoing] = &files.objects[..] else { return Err(Error::failed("there is nothing to send")) };
    Ok(outgoing)
}

/// Returns the name of a receiver, or its identifier if it is not known.
fn label(sender: &Sender, client: ClientId) -> String {
    sender.member(client).map_or_else(|| client.to_string(), |member| member.label.clone())
}

/// Returns the outcome of the transfer.
fn outcome(report: &Report) -> &SenderOutcome {
    match &report.end {
        SenderEvent::Ended(outcome) => outcome,
        // Any other event is no success.
        _ => &SenderOutcome::Aborted { reason: cancel::ABORT_SYSTEM },
    }
}

/// Checks the options against each other, beyond the checks that clap makes.
fn check(job: &SendJob, to: Destination, settings: &Settings, sealed: bool) -> Result<(), Error> {
    if let Some(after) = settings.start_after.filter(|&after| after > settings.announce_time) {
        let limit = settings.announce_time;
        return Err(Error::usage(format!(
            "--start-after {after} is later than --announce-time {limit}, at which it begins or gives up: give a longer \
             --announce-time"
        )));
    }
    if job.group.unlimited && settings.rate == SendRate::Max {
        return Err(Error::usage(
            "--rate max needs receivers that register, and --unlimited has none; set a rate",
        ));
    }
    if job.group.unlimited && !job.group.receivers.is_empty() && !sealed {
        return Err(Error::usage(
            "--receivers names who gets the keys of an --unlimited transfer, and this one is not sealed: leave one of them out",
        ));
    }
    if job.group.unlimited && settings.wait_for.is_some() {
        return Err(Error::usage(
            "the plan says start_receivers, and with --unlimited nobody registers: leave one of them out",
        ));
    }
    check_alike(job)?;
    let listed = job.group.receivers.len();
    if let Some(wanted) = settings.wait_for.filter(|&wanted| listed > 0 && wanted as usize > listed) {
        return Err(Error::usage(format!(
            "--wait-for {wanted} waits for more than the {listed} in --receivers: nobody else is served"
        )));
    }
    if to.public.port() != to.private.port() {
        return Err(Error::usage("--announce and --to must have the same port: receivers listen on one"));
    }
    if to.public.is_ipv4() != to.private.is_ipv4() {
        return Err(Error::usage("--announce and --to must both be IPv4 or both IPv6"));
    }
    Ok(())
}
