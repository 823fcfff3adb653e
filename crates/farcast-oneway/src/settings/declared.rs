//! Declarations of the settings, and how they are read.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::setting::{SettingKind, SettingSource, SettingType as _, SettingValue};
use farcast_core::units::Bytes;
use farcast_core::{Setting, Span, settings};
use farcast_delivery::settings::{BURST, RATE, TRANSFER_LIMIT as LIMIT};

use super::{MOST, Settings};
use crate::config::{Duration, SenderConfig};

settings! {
    /// Octets of a symbol, rounded down to an even number
    pub(super) SYMBOL_SIZE = Setting::new("symbol_size", SettingKind::Octets(2, MOST as u64))
        .option("symbol-size", "OCTETS").otherwise("the most that fits 1500 bytes with all headers")
        .unit("B");
    /// Send for this long, instead of a number of rounds
    FOR = Setting::new("for", SettingKind::Span).option("for", "TIME").replaces(&["repeat"]);
    /// Number of rounds; each round sends other symbols, until the code is used up
    REPEAT = Setting::new("repeat", SettingKind::Integer(1, u32::MAX as u64)).option("repeat", "N")
        .replaces(&["for"]);
    /// Octets of a round beyond the size of the files, in per cent, 0 to 900
    OVERHEAD = Setting::new("overhead_percent", SettingKind::Integer(0, 900)).option("overhead", "PERCENT")
        .unit("%");
}

const TRANSFER_LIMIT: Setting = LIMIT.otherwise("none");

impl Settings {
    /// Reads the settings of a transfer.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read<S: SettingSource>(source: &mut S) -> Result<Self, S::Error> {
        let base = Self::new(source.required(&RATE)?);
        let symbol_size = source.optional(&SYMBOL_SIZE)?;
        let span = source.optional(&FOR)?.unwrap_or(Span::ZERO);
        let rounds = source.get(&REPEAT, 1)?;
        Ok(Self {
            symbol_size,
            duration: if span.is_zero() { Duration::Rounds(rounds) } else { Duration::For(span) },
            overhead_percent: source.get(&OVERHEAD, base.overhead_percent)?,
            burst: source.get(&BURST, Bytes(base.burst))?.0,
            time_limit: source.optional(&TRANSFER_LIMIT)?.unwrap_or(base.time_limit),
            ..base
        })
    }
}

/// Returns the settings that came into effect in `config`, with their values.
pub fn in_effect(config: &SenderConfig) -> Vec<(&'static Setting, SettingValue)> {
    let duration = match config.duration {
        Duration::Rounds(rounds) => (&REPEAT, rounds.to_value()),
        Duration::For(time) => (&FOR, time.to_value()),
    };
    vec![
        (&RATE, config.pace.rate.to_value()),
        duration,
        (&OVERHEAD, config.overhead_percent.to_value()),
        (&SYMBOL_SIZE, config.shape.geometry().segment_size().to_value()),
    ]
}
