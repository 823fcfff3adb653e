//! Declarations of settings that several protocols have, and numbers of parity symbols.

use farcast_core::Setting;
use farcast_core::setting::{SettingKind, SettingType, SettingValue};

/// Rate of sending.
pub const RATE: Setting = Setting::new("rate", SettingKind::Rate, "Rate of the sender, headers included");

/// Octets of a segment.
pub const SEGMENT_SIZE: Setting =
    Setting::new("segment_size", SettingKind::Octets(4, 65_000), "Octets of a segment")
        .option("segment-size", "OCTETS")
        .otherwise("the most that fits 1500 bytes with all headers")
        .unit("B");

/// Number of receivers.
pub const GROUP_SIZE: Setting = Setting::new(
    "group_size",
    SettingKind::Integer(1, u32::MAX as u64),
    "Number of receivers, if they are not named. The more they are, the longer each waits before it asks",
)
.option("group-size", "N");

/// Destination of the receivers' answers.
pub const ANSWERS: Setting = Setting::new(
    "answers",
    SettingKind::Words(&["group", "sender"]),
    "Destination of the receivers' answers in a prediction or a simulation: the group, or the sender alone. In a real \
     transfer receivers decide",
)
.option("answers", "WHOM");

/// Repetitions of messages that must arrive.
pub const ROBUST: Setting = Setting::new(
    "robust",
    SettingKind::Integer(1, 1000),
    "Number of times that the sender announces the end, and asks named receivers to confirm",
)
.option("robust", "N");

/// Round trip to assume until one is measured.
pub const ROUND_TRIP: Setting =
    Setting::new("round_trip", SettingKind::Span, "Round trip to assume until one is measured")
        .option("rtt", "TIME");

/// Octets that may leave together.
pub const BURST: Setting = Setting::new(
    "burst",
    SettingKind::Bytes,
    "Most bytes that leave together, ahead of their time (1 ms at most) or after a late wake-up (5 ms to 20 ms)",
)
.option("burst", "SIZE");

/// Time after which a transfer is aborted.
pub const TRANSFER_LIMIT: Setting =
    Setting::new("transfer_limit", SettingKind::Span, "Abort after this long").option("time-limit", "TIME");

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
