//! One-way delivery in a scenario: its keys in `[protocol]`, and its engines.

use std::net::SocketAddr;

use farcast_core::units::Bytes;
use farcast_core::{BitRate, Span};
use farcast_oneway::settings::{PathLimits, SendPlan, Settings};
use farcast_oneway::{Codec, Duration, Population, Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{Document, DocumentError, Links, Reader};

use super::seal::{Manner, Sealed};
use super::transfer::{self, TransferSpec};
use super::{LinkAlone, Scenario, keys};
use crate::outcome::Remedies;
use crate::star::{self, SealConfig, StarError, hub_address};

pub use farcast_oneway::OneWay;

/// Octets of an engine, without received data.
const ENGINE: u64 = 1024;
/// UDP port; any would do.
const PORT: u16 = 5402;
/// Seal of one-way delivery, whose receivers cannot answer.
const MANNER: Manner = Manner { signs_content: false, apart: false };

/// Settings of the multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    sender: SenderConfig,
    overhead: u16,
    seal: Option<SealConfig>,
}

impl Transfer {
    /// Returns `true` if any symbol may leave twice.
    fn repeats(&self) -> bool {
        let (shape, config) = (&self.sender.shape, &self.sender);
        let ring = u64::from(shape.geometry().block_size() + shape.parity());
        let once = match config.duration {
            Duration::Rounds(rounds) => u64::from(rounds) * u64::from(config.round_symbols()) <= ring,
            Duration::For(_) => false,
        };
        !once || config.head > 0
    }
}

impl transfer::Transfer for Transfer {
    type Protocol = OneWay;

    const REMEDIES: Remedies = Remedies {
        time: "Raise time_limit.",
        transfer_time: "Raise time_limit.",
        silence: "Raise protocol.overhead_percent or protocol.repeat.",
        requests: "Raise protocol.overhead_percent or protocol.repeat.",
        nobody: "Raise protocol.overhead_percent or protocol.repeat.",
    };

    fn read(
        mut table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
        sealed: bool,
    ) -> Result<Self, DocumentError> {
        let Bytes(size) = table.bytes("file")?;
        let overhead = keys::overhead(&mut table)?;
        let settings = read(&mut table, None)?;
        let sent = SendPlan {
            session: 1,
            id: [1; 32],
            name: b"file".to_vec(),
            size,
            head: 0,
            source: source(),
            group: group(),
        };
        let grows = if sealed { MANNER.content() } else { 0 };
        let sender = settings.sender(sent, PathLimits { headers: overhead.saturating_add(grows), mtu: None });
        let checked = sender.and_then(|sender| Sender::new(sender.clone()).map(|_| sender));
        let sender = match checked {
            Ok(sender) => sender,
            Err(error) => {
                return Err(table.refuse("file", error.to_string(), "settings that a transfer can have"));
            }
        };
        table.bytes_or("symbol_size", Bytes(sender.shape.geometry().segment_size().into()))?;
        table.finish()?;
        super::check_marks(top, groups, links)?;
        let seal = sealed.then(|| {
            Sealed::to(groups, settings.symbol_size.map(usize::from), overhead)
                .config(MANNER, Some(sender.pace.rate))
        });
        Ok(Self { sender, overhead, seal })
    }

    fn codec(&self) -> Codec {
        Codec
    }

    fn overhead(&self) -> u16 {
        self.overhead
    }

    fn seal(&self) -> Option<SealConfig> {
        self.seal
    }

    fn given(&self) -> bool {
        false
    }

    fn sender(&self) -> Result<Sender, StarError> {
        Sender::new(self.sender.clone()).map_err(|error| StarError::Engine(error.to_string()))
    }

    fn receivers(&self, count: u32, _seed: u64, engines: bool) -> star::Receivers<OneWay> {
        if engines {
            return star::Receivers::Engines(Box::new(|_| Ok(Receiver::new(ReceiverConfig::default()))));
        }
        let remembers = self.repeats();
        star::Receivers::Population(Box::new(move |_| Ok(Population::new(count, remembers))))
    }

    fn memory(&self, groups: &[Receivers], _links: &Links, engines: bool) -> u64 {
        let geometry = self.sender.shape.geometry();
        let receivers: u64 = groups.iter().map(|group| u64::from(group.receivers)).sum();
        let (segments, blocks) = (u64::from(geometry.segments()), u64::from(geometry.blocks()));
        let each = if engines {
            ENGINE + segments / 4
        } else if self.repeats() {
            // A receiver misses at most half of all symbols; one that misses more cannot receive the file.
            8 * blocks + 16 + 4 * segments
        } else {
            8 * blocks + 16
        };
        receivers.saturating_mul(each)
    }
}

fn source() -> SocketAddr {
    SocketAddr::new(hub_address(), PORT)
}

fn group() -> SocketAddr {
    SocketAddr::from(([239, 255, 1, 1], PORT))
}

/// Makes a scenario of the transfer that `sender` describes over a link alone. Addresses are the simulator's own.
///
/// # Errors
/// The first mistake in the link.
pub fn over(link: &LinkAlone<'_>, sender: &SenderConfig) -> Result<Scenario, DocumentError> {
    let seal = link.sealed.map(|sealed| sealed.config(MANNER, Some(sender.pace.rate)));
    // The overhead of the rate includes the octets that the seal adds.
    let overhead = sender.pace.overhead - seal.map_or(0, |seal| seal.content);
    let sender = SenderConfig { source: source(), group: group(), ..sender.clone() };
    Scenario::over_link(link, TransferSpec::OneWay(Transfer { sender, overhead, seal }))
}

/// Returns the sender's settings, if there is a one-way transfer.
pub fn sender(scenario: &Scenario) -> Option<&SenderConfig> {
    match &scenario.transfer {
        Some(TransferSpec::OneWay(transfer)) => Some(&transfer.sender),
        _ => None,
    }
}

/// Reads the settings of a plan: a document with a table `protocol`. A `given` rate replaces that of the table.
///
/// # Errors
/// The first mistake, and its place.
pub fn plan(document: &Document, given: Option<BitRate>) -> Result<Settings, DocumentError> {
    keys::plan(document, "one-way", |table| read(table, given))
}

/// Reads the settings of `table`: `[protocol]` of a scenario or of a sender's plan. A `given` rate replaces that of the
/// table.
fn read(table: &mut Reader<'_>, given: Option<BitRate>) -> Result<Settings, DocumentError> {
    let rate = keys::rate(table, given)?;
    let base = Settings::new(rate);
    let symbol_size = table.optional_bytes("symbol_size")?;
    let Ok(symbol_size) = symbol_size.map(|Bytes(size)| u16::try_from(size)).transpose() else {
        return Err(table.refuse("symbol_size", "it is larger than any packet", "at most 65000 B"));
    };
    let span = table.span_or("for", Span::ZERO)?;
    let rounds = table.integer_or("repeat", 1..=u32::MAX, 1)?;
    let duration = if span.is_zero() { Duration::Rounds(rounds) } else { Duration::For(span) };
    Ok(Settings {
        symbol_size,
        duration,
        overhead_percent: table.integer_or("overhead_percent", 0..=900, base.overhead_percent)?,
        burst: table.bytes_or("burst", Bytes(base.burst))?.0,
        ..base
    })
}
