//! Declarations of settings that several protocols have, rates of sending, and numbers of parity symbols.

use farcast_core::setting::{SettingKind, SettingType, SettingValue};
use farcast_core::{BitRate, Setting, settings};

settings! {
    /// Rate of the sender, headers included
    pub RATE = Setting::new("rate", SettingKind::Rate);
    /// Octets of a segment
    pub SEGMENT_SIZE = Setting::new("segment_size", SettingKind::Octets(4, 65_000))
        .option("segment-size", "OCTETS").otherwise("the most that fits 1500 bytes with all headers")
        .unit("B");
    /// Number of receivers, if they are not named. The more they are, the longer each waits before it asks
    pub GROUP_SIZE = Setting::new("group_size", SettingKind::Integer(1, u32::MAX as u64))
        .option("group-size", "N");
    /// Destination of the receivers' answers in a prediction or a simulation: the group, or the sender alone. In a
    /// real transfer receivers decide
    pub ANSWERS = Setting::new("answers", SettingKind::Words(&["group", "sender"])).option("answers", "WHOM");
    /// Number of times that the sender announces the end, and asks named receivers to confirm
    pub ROBUST = Setting::new("robust", SettingKind::Integer(1, 1000)).option("robust", "N");
    /// Rate of the return channel that all receivers share, against implosion: receivers then speak by turns
    pub RETURN_RATE = Setting::new("return_rate", SettingKind::Rate).option("return-rate", "RATE");
    /// Round trip to assume until one is measured
    pub ROUND_TRIP = Setting::new("round_trip", SettingKind::Span).option("rtt", "TIME");
    /// Most bytes that leave together, ahead of their time (1 ms at most) or after a late wake-up (5 ms to 20 ms)
    pub BURST = Setting::new("burst", SettingKind::Bytes).option("burst", "SIZE");
    /// Abort after this long
    pub TRANSFER_LIMIT = Setting::new("transfer_limit", SettingKind::Span).option("time-limit", "TIME");
}

/// Rate of sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendRate {
    /// Fixed rate, which the slowest link on the path must carry.
    Limit(BitRate),
    /// Pace of the receivers' acknowledgements.
    Max,
}

impl SettingType for SendRate {
    fn to_value(&self) -> SettingValue {
        match self {
            Self::Limit(rate) => rate.to_value(),
            Self::Max => SettingValue::Word("max"),
        }
    }

    fn from_value(value: SettingValue) -> Option<Self> {
        match value {
            SettingValue::Rate(rate) => Some(Self::Limit(rate)),
            SettingValue::Word(_) => Some(Self::Max),
            _ => None,
        }
    }
}

/// Number of parity symbols of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parity<N = u32> {
    /// A number that suits the block, the receivers and their losses.
    Auto,
    /// A fixed number; 0 for none.
    Symbols(N),
}

/// Words in place of a number of parity symbols.
pub const PARITY_WORDS: &[&str] = &["auto", "off"];

impl<N: SettingType + From<u8>> SettingType for Parity<N> {
    fn to_value(&self) -> SettingValue {
        match self {
            Self::Auto => SettingValue::Word("auto"),
            Self::Symbols(symbols) => symbols.to_value(),
        }
    }

    fn from_value(value: SettingValue) -> Option<Self> {
        match value {
            SettingValue::Word("auto") => Some(Self::Auto),
            SettingValue::Word(_) => Some(Self::Symbols(N::from(0))),
            number => N::from_value(number).map(Self::Symbols),
        }
    }
}
