//! Sending by PGM.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use farcast_delivery::{Codec as _, KeyNumber, Transport};
use farcast_files::Entry;
use farcast_net::SocketOptions;
use farcast_pgm::settings::{PathLimits, SendPlan as Plan};
use farcast_pgm::stream::{StreamSender, StreamSenderConfig};
use farcast_pgm::{
    Codec, ConfigError, Gsi, Object, Pgm, Released, Sender, SenderConfig, Sending, Settings, Tsi,
};
use serde_json::Value;

use super::nack::{self, NackSendProtocol, NameRoom, SendLimits, SendNack, said_of};
use super::named::figures;
use super::stream::Stream;
use super::{Scanned, SendJob, destination, settings};
use crate::sealing::Sealing;
use crate::{Error, ProtocolName};

/// Prefix that separates the sources of one host that send to several groups.
const SOURCE: &[u8] = b"farcast: the PGM source at ";
/// Data-destination port if UDP has a port of its own: that of OpenPGM.
const PORT: u16 = 7500;

/// Sender of files by PGM.
pub type SendPgm = SendNack<Pgm>;

impl SendPgm {
    /// Returns the configuration for sending `objects` from `source`.
    pub fn configuration(&self, job: &SendJob, objects: Vec<Object>, source: SocketAddr) -> SenderConfig {
        let plan = Plan {
            tsi: session(source, self.basis.to, self.number()),
            sending: Sending::Files(objects),
            source,
            group: self.basis.to,
            named: self.named.nodes().collect(),
        };
        on_wire(job, self.settings.sender(plan, around(job, self.path(job))))
    }
}

impl NackSendProtocol for Pgm {
    // A transfer of files keeps everything, so nothing is released.
    type Own = Released;
    type Settings = Settings;
    type Config = SenderConfig;
    type ConfigError = ConfigError;

    const NAME: ProtocolName = ProtocolName::Pgm;

    fn settings(job: &SendJob, _sealed: bool) -> Result<Settings, Error> {
        settings::read(job, |table| Settings::read(table))
    }

    fn limits(settings: &Settings) -> SendLimits {
        SendLimits { rate: settings.rate, burst: settings.burst, time: settings.time_limit }
    }

    fn configured(sender: &SendPgm, job: &SendJob, files: &Scanned, source: SocketAddr) -> SenderConfig {
        let object = |entry: &Entry| {
            let (size, name, vouched) = said_of(job, entry);
            Object { size, name, vouched }
        };
        sender.configuration(job, files.entries().map(object).collect(), source)
    }

    fn name_room(_job: &SendJob, config: &SenderConfig) -> NameRoom {
        let (beside, longest) = (farcast_pgm::NAME_OVERHEAD, farcast_pgm::MOST_NAME);
        NameRoom { segment: config.tsdu.into(), beside, longest }
    }

    fn codec(_sender: &SendPgm, job: &SendJob) -> Codec {
        Codec { raw: job.pgm.raw }
    }

    fn engine(
        _job: &SendJob,
        config: SenderConfig,
        source: SocketAddr,
        number: Option<KeyNumber>,
    ) -> Result<Sender, ConfigError> {
        Sender::new(SenderConfig { tsi: session(source, config.group, number), source, ..config })
    }

    fn figures(sender: &Sender) -> Value {
        figures(sender.sent_per_round(), None, sender.rejects())
    }

    fn in_effect(sender: &Sender) -> Vec<(&'static str, String)> {
        settings::in_effect(farcast_pgm::settings::in_effect(sender.config()))
    }
}

/// Returns the session id of a transfer. The source part is the same for the same two addresses, or in a sealed
/// transfer follows from the key. The port part is another for each session: receivers thereby know that the session
/// before is over.
#[expect(
    clippy::disallowed_methods,
    reason = "one session is told from the other by when it is, and a face is no engine"
)]
fn session(source: SocketAddr, to: SocketAddr, number: Option<KeyNumber>) -> Tsi {
    let who = [SOURCE, source.ip().to_string().as_bytes(), b" to ", to.to_string().as_bytes()].concat();
    let mut gsi = [0; 6];
    blake3::Hasher::new().update(&who).finalize_xof().fill(&mut gsi);
    let gsi = number.map_or(gsi, KeyNumber::source);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Two sessions that begin within these 16 ms do no harm: the second waits for the first.
    let port = (now.as_millis() / 16) as u16;
    Tsi { gsi: Gsi(gsi), port }
}

/// Returns the properties of `path` for UDP or for IP alone.
fn around(job: &SendJob, path: PathLimits) -> PathLimits {
    // Without UDP, packets that network elements have to look at carry the router alert, an IP option of four octets.
    let headers = if job.pgm.raw { 24 } else { path.headers };
    PathLimits { headers, ..path }
}

/// Returns `config` for UDP or for IP alone.
fn on_wire(job: &SendJob, config: SenderConfig) -> SenderConfig {
    let raw = job.pgm.raw;
    // Without a UDP port, PGM's own port separates the transfers of a group.
    let port = if raw { config.group.port() } else { PORT };
    SenderConfig { port, router_alert: raw, ..config }
}

/// Returns the stream that `job` asks for.
///
/// # Errors
/// The job cannot be done as it is.
pub(super) fn stream<'a>(
    job: &'a SendJob,
    sealing: Option<&'a Sealing>,
) -> Result<Stream<'a, impl FnOnce(SocketAddr) -> Result<StreamSender, ConfigError>>, Error> {
    let settings = Pgm::settings(job, sealing.is_some())?;
    let transport = Codec { raw: job.pgm.raw }.transport();
    if transport != Transport::Udp && job.pgm.unicast_port.is_some() {
        return Err(Error::usage(
            "--unicast-port is a UDP port, and --raw uses no UDP: leave one of them out",
        ));
    }
    let socket = job.socket.socket();
    let (to, named) = (destination(job)?, nack::named(job, sealing)?);
    let (limit, rate) = (settings.time_limit, settings.rate);
    let ackers = named.keys().copied().collect();
    let make = move |source: SocketAddr| {
        let tsi = session(source, to, sealing.map(Sealing::number));
        let plan = Plan { tsi, sending: Sending::Messages, source, group: to, named: ackers };
        let path = around(job, nack::path(job, to, sealing.is_some()));
        let kept = job.stream.window.map(|window| window.0);
        let sender = on_wire(job, settings.stream(plan, path, kept));
        StreamSender::new(StreamSenderConfig { sender, messages: job.stream.lines })
    };
    Ok(Stream {
        protocol: ProtocolName::Pgm,
        to,
        limit,
        socket: SocketOptions { port: job.pgm.unicast_port.unwrap_or(socket.port), ..socket },
        transport,
        rate,
        sealing,
        named,
        make,
    })
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
