//! Settings of the two engines, checked when an engine is made.

use alloc::vec::Vec;
use core::net::SocketAddr;

use farcast_core::{BitRate, Span};
use farcast_delivery::{Geometry, GeometryError, MAX_SEGMENTS, RatePace};

use crate::message::MAX_NAME;

/// The most segments of a block. A larger one would hardly need fewer symbols, and cost more memory (`docs/src/oneway.md`).
pub const MAX_BLOCK: u32 = 8192;
/// The most symbols of a block of which the small field's code is made: there, parity costs little.
const SMALL_CODE: u32 = 255;

/// How an object is cut and coded: a function of its size and of the segments' alone, so that what receivers keep of it
/// is good for every later transmission of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    geometry: Geometry,
    parity: u32,
}

impl Shape {
    /// An object of `size` octets in segments of `segment` octets.
    ///
    /// # Errors
    /// If it has no segment, too many, or one that no datagram carries.
    pub fn new(size: u64, segment: u16) -> Result<Self, GeometryError> {
        Self::with_blocks(size, segment, MAX_BLOCK)
    }

    /// The same with blocks of at most so many segments, up to 8,192: what receivers keep is of use only where that is the
    /// same again.
    ///
    /// # Errors
    /// As of [`new`](Self::new), and if there may be none.
    pub fn with_blocks(size: u64, segment: u16, most: u32) -> Result<Self, GeometryError> {
        let most = if most <= MAX_BLOCK { most } else { return Err(GeometryError::BlockSize(most)) };
        let segments = Geometry::new(size, segment.into(), most)?.segments();
        let block = segments.div_ceil(segments.div_ceil(most));
        let geometry = Geometry::partitioned(size, segment.into(), block)?;
        let parity = if 2 * block <= SMALL_CODE { SMALL_CODE - block } else { block };
        Ok(Self { geometry, parity })
    }

    /// How it is cut.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Parity symbols of each block.
    pub const fn parity(&self) -> u32 {
        self.parity
    }
}

/// How long a sender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duration {
    /// So many rounds.
    Rounds(u32),
    /// So long, counted from the first symbol.
    For(Span),
}

/// What a sender sends, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Another number for each time that it is started.
    pub session: u32,
    /// The digest that commits to the object.
    pub id: [u8; 32],
    /// What the object is called: at most 255 octets.
    pub name: Vec<u8>,
    /// How it is cut and coded.
    pub shape: Shape,
    /// Segments at the beginning of the object that say what is in it: they are repeated for those who come late.
    pub head: u32,
    /// Where what it says comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub group: SocketAddr,
    /// How fast. There is nobody who could say that it is too fast.
    pub pace: RatePace,
    /// How long.
    pub duration: Duration,
    /// Symbols that a round sends of each block more than it has segments, in per cent; at most 900.
    pub overhead_percent: u32,
    /// How long the object is described before its first symbol, so that receivers can make ready: at most so long, and
    /// no longer than a tenth of a round, or what ten descriptions take.
    pub lead: Span,
    /// Whether receivers replace an object that is there already.
    pub overwrite: bool,
}

impl SenderConfig {
    /// An object to `group` at `rate`, all else as usual: one round with 10 % added.
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

    /// Symbols of each block that a round sends.
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

/// How a receiver receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverConfig {
    /// The most segments that all objects at hand may have together: each takes a bit, and one more for each parity symbol
    /// that is kept.
    pub segments: u32,
    /// How long a sender may be silent before what there is of its object is put aside. It is gone on with when that is
    /// described again.
    pub silence: Span,
    /// How long it must have been silent before another transmission of the same object, from anywhere, takes its place.
    pub succession: Span,
    /// How long it must have been silent, once the end that it told is past, before that is believed: at least so long,
    /// and longer at a rate at which it is heard less often.
    pub grace: Span,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        let silence = Span::from_secs(60);
        let (succession, grace) = (Span::from_secs(2), Span::from_secs(2));
        Self { segments: MAX_SEGMENTS, silence, succession, grace }
    }
}

/// A setting that the engines cannot work with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The object cannot be cut like this.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The name does not fit a description.
    #[error("a name of {0} octets: at most 255 can be told")]
    Name(usize),
    /// More is to be added than the code has use for.
    #[error("{0} % to be added: at most 900")]
    Overhead(u32),
    /// Nothing is to be sent.
    #[error("nothing is to be sent: no round, or for no time")]
    Nothing,
}
