//! Declarations of the settings, and how they are read.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::setting::{SettingKind, SettingSource, SettingType as _, SettingValue};
use farcast_core::units::Bytes;
use farcast_core::{Setting, settings};
use farcast_delivery::settings::{
    BURST, GROUP_SIZE as RECEIVERS, RATE as SENDING_RATE, ROUND_TRIP as ANY_ROUND_TRIP, SEGMENT_SIZE,
    TRANSFER_LIMIT,
};

use super::{GROUP, RateControl, Settings, grouping};
use crate::config::{Grouping, MOST_GROUP, SenderConfig};

settings! {
    /// Highest rate, headers, answers to requests and repairs included
    pub(super) RATE = SENDING_RATE;
    /// Control congestion: the receiver that fares worst decides how fast (PGMCC)
    RATE_CONTROL = Setting::new("rate_control", SettingKind::Words(&["fixed", "pgmcc"])).flag("cc", "pgmcc");
    /// Round trip that source and receivers expect, which nobody measures
    pub(super) ROUND_TRIP = ANY_ROUND_TRIP;
    /// Time over which receivers spread what they ask for
    BACKOFF = Setting::new("backoff", SettingKind::Span).option("spread", "TIME")
        .otherwise("from their number");
    /// Longest wait for silent named receivers after everything was sent
    LINGER = Setting::new("linger", SettingKind::Span).option("linger", "TIME")
        .otherwise("20 s, more if round trips are long");
    /// Repairs are parity, as much as is asked for ("auto"), or what was sent ("off")
    PARITY = Setting::new("parity", SettingKind::Words(&["off", "auto"])).option("parity", "auto|off");
    /// Parity packets with each transmission group, unasked
    pub(super) PARITY_AHEAD = Setting::new("parity_ahead", SettingKind::Integer(0, MOST_GROUP as u64))
        .option("parity-ahead", "N").unit("packets of a group");
    /// Packets of a transmission group, with parity: 2, 4, 8, 16, 32 or 64
    BLOCK_SIZE = Setting::new("block_size", SettingKind::Integer(2, MOST_GROUP as u64))
        .option("block-size", "N").otherwise("16, with parity").unit("packets");
}

const GROUP_SIZE: Setting = RECEIVERS.otherwise("the number of named receivers, or 64");

impl Settings {
    /// Reads the settings of a transfer.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read<S: SettingSource>(source: &mut S) -> Result<Self, S::Error> {
        let base = Self::new(source.required(&RATE)?);
        let settings = Self {
            control: source.choose(&RATE_CONTROL, &[RateControl::Fixed, RateControl::Pgmcc], base.control)?,
            segment_size: source.optional(&SEGMENT_SIZE)?,
            receivers: source.optional(&GROUP_SIZE)?,
            round_trip: source.get(&ROUND_TRIP, base.round_trip)?,
            backoff: source.optional(&BACKOFF)?,
            linger: source.optional(&LINGER)?,
            parity: parity(source)?,
            burst: source.get(&BURST, Bytes(base.burst))?.0,
            time_limit: source.get(&TRANSFER_LIMIT, base.time_limit)?,
            ..base
        };
        if settings.round_trip.is_zero() {
            return Err(source.refused(&ROUND_TRIP, "nothing is as fast", "more than 0 s"));
        }
        Ok(settings)
    }
}

fn parity<S: SettingSource>(source: &mut S) -> Result<Option<Grouping>, S::Error> {
    let on_demand = source.choose(&PARITY, &[false, true], false)?;
    let ahead = source.get(&PARITY_AHEAD, 0_u32)?;
    let Some(grouping) = grouping(None, ahead, on_demand) else {
        return match source.optional::<u32>(&BLOCK_SIZE)? {
            None => Ok(None),
            Some(_) => Err(source.refused(
                &BLOCK_SIZE,
                "there are no transmission groups without parity",
                "parity \"auto\" or parity ahead beside it",
            )),
        };
    };
    let size = source.get(&BLOCK_SIZE, GROUP)?;
    if !size.is_power_of_two() {
        let allowed = "2, 4, 8, 16, 32 or 64";
        return Err(source.refused(&BLOCK_SIZE, "a transmission group is a power of two", allowed));
    }
    Ok(Some(Grouping { size, ..grouping }))
}

/// Returns the settings that came into effect in `config`, with their values.
pub fn in_effect(config: &SenderConfig) -> Vec<(&'static Setting, SettingValue)> {
    let mut all = vec![
        (&RATE, config.pace.rate.to_value()),
        (&SEGMENT_SIZE, config.tsdu.to_value()),
        (&LINGER, config.linger.to_value()),
    ];
    all.extend(config.backoff.map(|backoff| (&BACKOFF, backoff.to_value())));
    let Some(Grouping { size, ahead, on_demand }) = config.parity else {
        all.push((&PARITY, SettingValue::Word("off")));
        return all;
    };
    all.extend([
        (&PARITY, SettingValue::Word(if on_demand { "auto" } else { "off" })),
        (&BLOCK_SIZE, size.to_value()),
        (&PARITY_AHEAD, ahead.to_value()),
    ]);
    all
}
