//! Stages that carry both ways: `kind = "ppp"`, `"multilink"` and `"umts"` in `link.stages`.
//!
//! A key that both directions share stands in the table of the stage, one that they may have different in its tables
//! `forward` and `return`.

mod multilink;
mod ppp;
mod umts;

use farcast_core::Span;
use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::units::Bytes;
use farcast_link::multilink::MultilinkConfig;
use farcast_link::pipe::QueueLimit;
use farcast_link::ppp::{Fcs, Framing};
use farcast_link::umts::{BearerConfig, ChannelConfig};

use crate::document::{DocumentError, Reader};
use farcast_link::BoxedStage;
pub use ppp::PppSpec;

/// A bearer.
#[derive(Clone, PartialEq, Debug)]
pub enum BearerSpec {
    /// Two serial lines with PPP.
    Ppp(Box<PppSpec>),
    /// A bundle of lines.
    Multilink(Box<MultilinkConfig>),
    /// A UMTS bearer with RLC.
    Umts(Box<BearerConfig>),
}

/// The kinds that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BearerKind {
    /// `ppp`.
    Ppp,
    /// `multilink`.
    Multilink,
    /// `umts`.
    Umts,
}

impl BearerKind {
    /// The words of `kind`.
    pub const CHOICES: [(&'static str, Self); 3] =
        [("ppp", Self::Ppp), ("multilink", Self::Multilink), ("umts", Self::Umts)];
}

impl BearerSpec {
    /// Reads the keys that go with `kind`.
    pub fn read(table: &mut Reader<'_>, kind: BearerKind) -> Result<Self, DocumentError> {
        match kind {
            BearerKind::Ppp => ppp::read(table).map(Box::new).map(Self::Ppp),
            BearerKind::Multilink => multilink::read(table).map(Box::new).map(Self::Multilink),
            BearerKind::Umts => umts::read(table).map(Box::new).map(Self::Umts),
        }
    }

    /// The shortest time that a frame of no length takes there and back.
    pub fn least_round_trip(&self) -> Span {
        match self {
            Self::Ppp(spec) => spec.least_round_trip(),
            Self::Multilink(config) => {
                config.links.iter().map(|link| link.delay).min().unwrap_or_default() * 2
            }
            Self::Umts(config) => {
                let of = |channel: &ChannelConfig| channel.tti + channel.processing;
                of(&config.downlink) + of(&config.uplink)
            }
        }
    }

    /// The stage, whose draws are from `stream`.
    pub(super) fn stage<M: Message + Send + 'static>(&self, stream: RandomStream) -> BoxedStage<M> {
        // The settings were checked when they were read.
        const CHECKED: &str = "checked when read";
        match self {
            Self::Ppp(spec) => spec.stage(stream),
            Self::Multilink(config) => {
                let stage = farcast_link::multilink::Multilink::new(config, stream);
                Box::new(stage.expect(CHECKED))
            }
            Self::Umts(config) => Box::new(farcast_link::umts::Bearer::new(config, stream).expect(CHECKED)),
        }
    }
}

/// How PPP makes frames. By default as Linux's pppd does after it has negotiated.
fn framing(table: &mut Reader<'_>) -> Result<Framing, DocumentError> {
    let default = Framing::default();
    let fcs = match table.integer_or("fcs", 16..=32_u8, 16)? {
        16 => Fcs::Fcs16,
        32 => Fcs::Fcs32,
        _ => return Err(table.refuse("fcs", "PPP has no check sequence of this length", "16 or 32 bits")),
    };
    Ok(Framing {
        fcs,
        accm: table.integer_or("accm", 0..=u32::MAX, default.accm)?,
        acfc: table.flag_or("acfc", default.acfc)?,
        pfc: table.flag_or("pfc", default.pfc)?,
    })
}

/// `queue` or `queue_packets`; without one of them, no limit.
pub(super) fn queue(table: &mut Reader<'_>) -> Result<QueueLimit, DocumentError> {
    let octets = table.optional_bytes("queue")?;
    let packets = table.optional_integer("queue_packets", 1..=u32::MAX)?;
    match (octets, packets) {
        (None, None) => Ok(QueueLimit::Unbounded),
        (Some(Bytes(0)), None) => Err(table.refuse("queue", "nothing could ever be sent", "at least 1 B")),
        (Some(Bytes(octets)), None) => Ok(QueueLimit::Octets(octets)),
        (None, Some(packets)) => Ok(QueueLimit::Packets(packets)),
        (Some(_), Some(_)) => {
            Err(table.refuse("queue_packets", "queue limits the queue already", "one of the two"))
        }
    }
}

/// A timer that is off where it is absent.
fn positive(table: &mut Reader<'_>, key: &'static str) -> Result<Option<Span>, DocumentError> {
    match table.optional_span(key)? {
        Some(span) if span.is_zero() => {
            Err(table.refuse(key, "it would expire without end", "above 0 s, or no such key"))
        }
        span => Ok(span),
    }
}
