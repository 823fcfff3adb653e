//! Declarations of the settings, and how they are read.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::setting::{SettingKind, SettingSource, SettingType as _, SettingValue};
use farcast_core::units::Bytes;
use farcast_core::{Setting, Span, settings};
use farcast_delivery::Parity;
use farcast_delivery::settings::{
    ANSWERS, BURST, GROUP_SIZE as RECEIVERS, PARITY_WORDS, RATE, ROBUST, ROUND_TRIP, SEGMENT_SIZE as OCTETS,
    TRANSFER_LIMIT,
};

use super::{Counts, Preset, Settings};
use crate::config::SenderConfig;

/// Maximum number of segments of a block, and of its parity symbols.
const LONGEST: u64 = 254;
/// Longest pause between two objects.
const LONGEST_GAP: Span = Span::from_secs(7 * 24 * 3600);

settings! {
    /// Defaults of the other keys: two readings of the [study](papers/mdp-ftp.md)
    PRESET = Setting::new("preset", SettingKind::Words(&["none", "space_link_a", "space_link_b"]));
    /// Octets that --rate counts
    COUNTS = Setting::new("counts", SettingKind::Words(&["payload", "message", "packet"]))
        .option("counts", "WHAT");
    /// Segments of a block
    BLOCK_SIZE = Setting::new("block_size", SettingKind::Integer(1, LONGEST)).option("block-size", "N")
        .unit("segments");
    /// Parity symbols of a block. "auto" is the default
    pub(super) PARITY = Setting::new("parity", SettingKind::IntegerOr(0, LONGEST, PARITY_WORDS))
        .option("parity", "N|auto|off").unit("symbols of a block");
    /// Parity symbols of a block that leave with it unasked. "auto" is the default
    pub(super) PARITY_AHEAD = Setting::new("parity_ahead", SettingKind::IntegerOr(0, LONGEST, PARITY_WORDS))
        .option("parity-ahead", "N|auto").unit("symbols of a block");
    /// Pause between the last segment of a file and the next file, at most a week
    GAP = Setting::new("gap", SettingKind::Span).option("gap", "TIME");
    /// Number of receivers that the back-off assumes. The more they are, the longer each waits before it asks; a
    /// receiver has the same option
    GROUP_SIZE = RECEIVERS;
}

const SEGMENT_SIZE: Setting = OCTETS.otherwise("1024, or what fits 1500 octets");

impl Settings {
    /// Reads the settings of a transfer.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read<S: SettingSource>(source: &mut S) -> Result<Self, S::Error> {
        let presets = [None, Some(Preset::SpaceLinkA), Some(Preset::SpaceLinkB)];
        let base = match source.choose(&PRESET, &presets, None)? {
            Some(preset) => Self::preset(preset),
            None => Self::new(source.required(&RATE)?),
        };
        let segment_size: Option<u16> = source.optional(&SEGMENT_SIZE)?;
        let gap = source.get(&GAP, base.gap)?;
        if gap > LONGEST_GAP {
            return Err(source.refused(&GAP, "nobody waits so long", "at most a week"));
        }
        let counts = [Counts::Payload, Counts::Message, Counts::Packet];
        Ok(Self {
            rate: source.get(&RATE, base.rate)?,
            counts: source.choose(&COUNTS, &counts, base.counts)?,
            segment_size: segment_size.or(base.segment_size),
            block_len: source.get(&BLOCK_SIZE, base.block_len)?,
            parity: symbols(source, &PARITY, base.parity)?,
            auto_parity: symbols(source, &PARITY_AHEAD, base.auto_parity)?,
            round_trip: source.get(&ROUND_TRIP, base.round_trip)?,
            receivers: source.get(&GROUP_SIZE, base.receivers)?,
            unicast: source.choose(&ANSWERS, &[false, true], base.unicast)?,
            robust: source.get(&ROBUST, base.robust)?,
            gap,
            burst: source.get(&BURST, Bytes(base.burst))?.0,
            time_limit: source.get(&TRANSFER_LIMIT, base.time_limit)?,
        })
    }
}

fn symbols<S: SettingSource>(source: &mut S, setting: &'static Setting, default: u8) -> Result<u8, S::Error> {
    match source.get(setting, Parity::Symbols(default))? {
        Parity::Auto => Ok(default),
        Parity::Symbols(symbols) => Ok(symbols),
    }
}

/// Returns the settings that came into effect in `config`, with their values.
pub fn in_effect(config: &SenderConfig) -> Vec<(&'static Setting, SettingValue)> {
    vec![
        (&RATE, config.rate.to_value()),
        (&SEGMENT_SIZE, config.segment_size.to_value()),
        (&BLOCK_SIZE, config.block_len.to_value()),
        (&PARITY, config.parity.to_value()),
        (&PARITY_AHEAD, config.auto_parity.to_value()),
        (&ROUND_TRIP, config.grtt.to_value()),
        (&ROBUST, config.robust.to_value()),
        (&GAP, config.gap.to_value()),
    ]
}
