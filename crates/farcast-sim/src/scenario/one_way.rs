//! One-way delivery in a scenario: what `[protocol]` says of it, and the engines that it makes.

use std::net::SocketAddr;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_oneway::settings::{Sent, Settings, Way};
use farcast_oneway::{Codec, Duration, Population, Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_scenario::receivers::Group as Receivers;
use farcast_scenario::{DocumentError, Links, Reader};

use super::transfer;
use crate::star::{self, StarError, hub_address};

pub use farcast_oneway::OneWay;

/// An engine, without what it has received.
const ENGINE: u64 = 1024;
/// Any port will do.
const PORT: u16 = 5402;

/// The multicast transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    sender: SenderConfig,
    overhead: u16,
}

impl Transfer {
    /// Whether any symbol may leave twice.
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

    fn read(
        mut table: Reader<'_>,
        top: &Reader<'_>,
        groups: &[Receivers],
        links: &Links,
    ) -> Result<Self, DocumentError> {
        let Bytes(size) = table.bytes("file")?;
        let Bytes(overhead) = table.bytes_or("packet_overhead", Bytes(28))?;
        let Ok(overhead) = u16::try_from(overhead) else {
            return Err(table.refuse("packet_overhead", "it is larger than any packet", "at most 65535 B"));
        };
        let settings = read(&mut table)?;
        let port = |address| SocketAddr::new(address, PORT);
        let sent = Sent {
            session: 1,
            id: [1; 32],
            name: b"file".to_vec(),
            size,
            head: 0,
            source: port(hub_address()),
            group: SocketAddr::from(([239, 255, 1, 1], PORT)),
        };
        let sender = settings.sender(sent, Way { headers: overhead, mtu: None });
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
        Ok(Self { sender, overhead })
    }

    fn codec(&self) -> Codec {
        Codec
    }

    fn overhead(&self) -> u16 {
        self.overhead
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
            // Half of all symbols missed, at most: who misses more is no receiver.
            8 * blocks + 16 + 4 * segments
        } else {
            8 * blocks + 16
        };
        receivers.saturating_mul(each)
    }
}

/// The settings of `table`, which is `[protocol]` of a scenario.
fn read(table: &mut Reader<'_>) -> Result<Settings, DocumentError> {
    let base = Settings::new(table.rate("rate")?);
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
