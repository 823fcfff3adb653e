//! One-way delivery in a scenario: its keys in `[protocol]`, and its engines.

use std::net::SocketAddr;

use farcast_core::units::Bytes;
use farcast_delivery::{Forecast, Forecasting as _};
use farcast_oneway::settings::{PathLimits, SendPlan, Settings, in_effect};
use farcast_oneway::{Codec, Duration, Population, Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

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
        let settings = Settings::read(&mut table)?;
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
        keys::show(&mut table, in_effect(&sender))?;
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

    fn forecast(&self) -> Forecast {
        self.sender.forecast()
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
