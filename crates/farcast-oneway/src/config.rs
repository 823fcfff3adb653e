//! Settings of the two engines, checked when an engine is created.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::{Geometry, GeometryError, MAX_SEGMENTS, RatePace};

use crate::message::MAX_NAME;

/// Maximum number of segments of a block. A larger block would hardly need fewer symbols, and would cost more memory
/// (`docs/src/oneway.md`).
pub const MAX_BLOCK: u32 = 8192;
/// Maximum number of symbols of a block coded over the small field, where parity costs little.
const SMALL_CODE: u32 = 255;

/// Division of an object into blocks and segments, and its code. It depends on the sizes of the object and of the
/// segments only, so that the symbols a receiver keeps are valid for every later transmission of the object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    geometry: Geometry,
    parity: u32,
}

impl Shape {
    /// Creates the shape of an object of `size` octets in segments of `segment` octets.
    ///
    /// # Errors
    /// Returns an error if there are no segments or too many, or if no datagram can carry one.
    pub fn new(size: u64, segment: u16) -> Result<Self, GeometryError> {
        Self::with_blocks(size, segment, MAX_BLOCK)
    }

    /// Creates a shape with blocks of at most `most` segments, up to 8,192. The symbols that receivers keep are valid
    /// only for transmissions with the same value.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if `most` is 0 or above 8,192.
    pub fn with_blocks(size: u64, segment: u16, most: u32) -> Result<Self, GeometryError> {
        let most = if most <= MAX_BLOCK { most } else { return Err(GeometryError::BlockSize(most)) };
        let segments = Geometry::new(size, segment.into(), most)?.segments();
        let block = segments.div_ceil(segments.div_ceil(most));
        let geometry = Geometry::partitioned(size, segment.into(), block)?;
        let parity = if 2 * block <= SMALL_CODE { SMALL_CODE - block } else { block };
        Ok(Self { geometry, parity })
    }

    /// Returns the division into blocks and segments.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the number of parity symbols of each block.
    pub const fn parity(&self) -> u32 {
        self.parity
    }
}

/// Duration of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duration {
    /// This many rounds.
    Rounds(u32),
    /// This time, counted from the first symbol.
    For(Span),
}

/// Configuration of a sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Number of the session, which must differ each time that the sender is started.
    pub session: u32,
    /// Digest that commits to the object.
    pub id: [u8; 32],
    /// Name of the object, at most 255 octets.
    pub name: Vec<u8>,
    /// Division and code of the object.
    pub shape: Shape,
    /// Number of segments at the beginning of the object that describe its contents. They are repeated for receivers
    /// that come late.
    pub head: u32,
    /// Source address of the datagrams.
    pub source: SocketAddr,
    /// Destination address of the datagrams.
    pub group: SocketAddr,
    /// Rate of sending. No receiver can tell the sender that the rate is too high.
    pub pace: RatePace,
    /// Duration of the transmission.
    pub duration: Duration,
    /// Additional symbols that a round sends of each block, in per cent of its segments; at most 900.
    pub overhead_percent: u32,
    /// Maximum time for which the object is described before its first symbol, so that receivers can prepare. The
    /// actual time is at most a tenth of a round, or the time of ten descriptions if that is longer.
    pub lead: Span,
    /// `true` if receivers replace an object that exists already.
    pub overwrite: bool,
}

impl SenderConfig {
    /// Creates a configuration for an object to `group` at `rate`, with default settings: one round with 10 % added.
    pub fn new(id: [u8; 32], shape: Shape, source: SocketAddr, group: SocketAddr, rate: BitRate) -> Self {
        let overhead = if group.is_ipv4() { 28 } else { 48 };
        Self {
            session: 1,
            id,
            name: Vec::new(),
            shape,
            head: 0,
            source,
            group,
            pace: RatePace { rate, overhead, credit: Span::from_millis(2), granule: 1 },
            duration: Duration::Rounds(1),
            overhead_percent: 10,
            lead: Span::from_millis(500),
            overwrite: true,
        }
    }

    /// Returns the number of symbols of each block that a round sends. To end with a whole stripe, a round may send up to
    /// three more, which the next one sends less.
    pub fn round_symbols(&self) -> u32 {
        let block = u64::from(self.shape.geometry.block_size());
        (block + (block * u64::from(self.overhead_percent)).div_ceil(100)) as u32
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.name.len() > MAX_NAME {
            return Err(ConfigError::Name(self.name.len()));
        }
        if self.overhead_percent > 900 {
            return Err(ConfigError::Overhead(self.overhead_percent));
        }
        if matches!(self.duration, Duration::Rounds(0) | Duration::For(Span::ZERO)) {
            return Err(ConfigError::Nothing);
        }
        Ok(())
    }
}

/// Configuration of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// Maximum number of segments of all current objects together. Each takes a bit of memory, and one more for each
    /// parity symbol that is kept.
    pub segments: u32,
    /// Silence of a sender after which its unfinished object is put aside. Reception continues when the object is
    /// described again.
    pub silence: Span,
    /// Silence of a sender after which another transmission of the same object, from any sender, takes its place.
    pub succession: Span,
    /// Minimum silence of a sender, after the announced end, before the end is assumed. The silence is longer at a rate
    /// at which descriptions come less often.
    pub grace: Span,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        let silence = Span::from_secs(60);
        let (succession, grace) = (Span::from_secs(2), Span::from_secs(2));
        Self { segments: MAX_SEGMENTS, silence, succession, grace }
    }
}

/// Setting with which the engines cannot work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The object cannot be divided like this.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The name does not fit in a description.
    #[error("a name of {0} octets: at most 255 can be told")]
    Name(usize),
    /// The additional symbols exceed the limit.
    #[error("{0} % to be added: at most 900")]
    Overhead(u32),
    /// The duration is zero.
    #[error("nothing is to be sent: no round, or for no time")]
    Nothing,
}
