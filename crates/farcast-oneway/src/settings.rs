//! User's settings of a transmission, and the configuration derived from them, the same for every command.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::RatePace;

mod declared;
mod forecast;

pub use declared::in_effect;

use crate::config::{ConfigError, Duration, SenderConfig, Shape};
use crate::wire::HEADER_LEN;

/// Bounds of the sending time that a late wake-up may make up for at once. Between them it is the time of a burst.
const CREDIT: (Span, Span) = (Span::from_millis(5), Span::from_millis(20));
/// MTU of Ethernet.
const MTU: u32 = 1500;
/// Maximum octets of a symbol: even, because the large code needs even symbols.
const MOST: u32 = 65_000;

/// Properties of the path to receivers, as far as the sender knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLimits {
    /// Octets of IP and UDP headers: 28 or 48.
    pub headers: u16,
    /// Octets of IP packets that pass without fragmentation; `None` for Ethernet's 1500.
    pub mtu: Option<u32>,
}

/// Object of a transmission, and its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendPlan {
    /// Session number of the transmission.
    pub session: u32,
    /// Digest that commits to the object.
    pub id: [u8; 32],
    /// Name of the object.
    pub name: Vec<u8>,
    /// Octets of the object.
    pub size: u64,
    /// Octets at the beginning of the object that describe its contents.
    pub head: u64,
    /// Source address.
    pub source: SocketAddr,
    /// Multicast group, or address of the only receiver.
    pub group: SocketAddr,
}

/// Settings that the user may choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Rate of sending.
    pub rate: BitRate,
    /// Octets of a symbol, rounded down to an even number; `None` for the largest that fits the path.
    pub symbol_size: Option<u16>,
    /// Duration of the transmission.
    pub duration: Duration,
    /// Additional symbols that a round sends, in per cent of the object's segments.
    pub overhead_percent: u32,
    /// Octets that may leave together.
    pub burst: u64,
    /// Time after which the transfer is aborted.
    pub time_limit: Span,
}

impl Settings {
    /// Creates settings with `rate` and defaults: one round with 10 % added.
    pub fn new(rate: BitRate) -> Self {
        Self {
            rate,
            symbol_size: None,
            duration: Duration::Rounds(1),
            overhead_percent: 10,
            burst: 64 << 10,
            time_limit: Span::MAX,
        }
    }

    /// Returns the configuration of the engine.
    ///
    /// # Errors
    /// Returns an error if the object cannot be divided like this.
    pub fn sender(&self, sent: SendPlan, way: PathLimits) -> Result<SenderConfig, ConfigError> {
        let room = way.mtu.map_or(MTU, |mtu| mtu.min(MTU));
        let room = room.saturating_sub(u32::from(way.headers) + HEADER_LEN as u32);
        // The large code has symbols of an even length.
        let symbol = self.symbol_size.map_or(room, u32::from).clamp(2, MOST) & !1;
        let shape = Shape::new(sent.size, symbol as u16)?;
        let credit = self.rate.time_of_bytes(self.burst).clamp(CREDIT.0, CREDIT.1);
        let config = SenderConfig::new(sent.id, shape, sent.source, sent.group, self.rate);
        Ok(SenderConfig {
            session: sent.session,
            name: sent.name,
            head: u32::try_from(sent.head.div_ceil(symbol.into())).unwrap_or(u32::MAX),
            pace: RatePace { rate: self.rate, overhead: way.headers, credit, granule: 1 },
            duration: self.duration,
            overhead_percent: self.overhead_percent,
            ..config
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut Settings), way: PathLimits) -> SenderConfig {
        let mut settings = Settings::new(BitRate::from_bps(1_000_000).expect("positive"));
        change(&mut settings);
        let nobody = SocketAddr::from(([0; 4], 0));
        let sent = SendPlan {
            session: 9,
            id: [1; 32],
            name: b"name".to_vec(),
            size: 20_000_000,
            head: 1461,
            source: nobody,
            group: nobody,
        };
        settings.sender(sent, way).expect("valid")
    }

    #[test]
    fn what_is_not_chosen_follows_from_the_way() {
        let of = |way| {
            let config = config(|_| {}, way);
            let geometry = *config.shape.geometry();
            (geometry.segment_size(), geometry.blocks(), geometry.block_size(), config.head)
        };
        // 13,699 segments in two blocks.
        assert_eq!(of(PathLimits { headers: 28, mtu: None }), (1460, 2, 6850, 2));
        assert_eq!(of(PathLimits { headers: 48, mtu: Some(9000) }).0, 1440, "no more than Ethernet carries");
        assert_eq!(of(PathLimits { headers: 28, mtu: Some(577) }).0, 536, "even");
        let chosen = config(|one| one.symbol_size = Some(1001), PathLimits { headers: 28, mtu: Some(577) });
        assert_eq!(chosen.shape.geometry().segment_size(), 1000);
    }
}
