//! Declarations of the settings, and how they are read.

use alloc::vec;
use alloc::vec::Vec;

use farcast_core::setting::{SettingKind, SettingSource, SettingType as _, SettingValue};
use farcast_core::units::Bytes;
use farcast_core::{BitRate, Setting, settings};
use farcast_delivery::settings::{
    ANSWERS, BURST, GROUP_SIZE as RECEIVERS, PARITY_WORDS, RATE as SENDING_RATE,
    RETURN_RATE as SHARED_RETURN_RATE, ROBUST, ROUND_TRIP, SEGMENT_SIZE, TRANSFER_LIMIT,
};

use super::{RateControl, Settings};
use crate::config::{Pacing, SenderConfig};

/// Maximum number of segments of a block, and of its parity symbols: together they fit the code over GF(2^16).
const LONGEST: u64 = 32_767;

settings! {
    /// Rate of the sender, headers included; the highest with NORM-CC
    pub(super) RATE = SENDING_RATE;
    /// Control congestion: send as fast as TCP would to the slowest receiver, and at most at --rate (NORM-CC; PGM:
    /// PGMCC)
    RATE_CONTROL = Setting::new("rate_control", SettingKind::Words(&["fixed", "norm-cc"]))
        .flag("cc", "norm-cc");
    /// Lowest rate with --cc
    LEAST_RATE = Setting::new("least_rate", SettingKind::Rate).option("least-rate", "RATE").requires("cc")
        .otherwise("a thousandth of --rate");
    /// Segments of a block
    BLOCK_SIZE = Setting::new("block_size", SettingKind::Integer(1, LONGEST)).option("block-size", "N")
        .otherwise("as many as the code has room for beside the parity").unit("segments");
    /// Parity symbols of a block. "auto" is enough for a loss of a tenth, or half as much again as is expected
    pub(super) PARITY = Setting::new("parity", SettingKind::IntegerOr(0, LONGEST, PARITY_WORDS))
        .option("parity", "N|auto|off").unit("symbols of a block");
    /// Parity symbols that leave with each block unasked. "auto" is as many as the expected loss needs, so that nine
    /// blocks of ten need no request
    PARITY_AHEAD = Setting::new("parity_ahead", SettingKind::IntegerOr(0, LONGEST, PARITY_WORDS))
        .option("parity-ahead", "N|auto").unit("symbols of a block");
    /// Expected share of lost datagrams
    pub(super) EXPECTED_LOSS = Setting::new("expected_loss", SettingKind::Probability).option("expected-loss", "PART");
    /// Round trips of the group over which receivers spread their requests, 0 to 15
    BACKOFF = Setting::new("backoff", SettingKind::Integer(0, 15)).option("backoff", "N")
        .otherwise("from their number");
}

pub(super) const GROUP_SIZE: Setting = RECEIVERS.otherwise("the number of named receivers, or 10000");
const RETURN_RATE: Setting = SHARED_RETURN_RATE.otherwise("a thirtieth of --rate");

impl Settings {
    /// Reads the settings of a transfer.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read<S: SettingSource>(source: &mut S) -> Result<Self, S::Error> {
        let rate = source.required(&RATE)?;
        let base = Self::new(rate);
        Ok(Self {
            control: source.choose(
                &RATE_CONTROL,
                &[RateControl::Fixed, RateControl::NormCc],
                base.control,
            )?,
            least_rate: least_rate(source, rate)?,
            segment_size: source.optional(&SEGMENT_SIZE)?,
            block_len: source.optional(&BLOCK_SIZE)?,
            parity: source.get(&PARITY, base.parity)?,
            ahead: source.get(&PARITY_AHEAD, base.ahead)?,
            loss: source.get(&EXPECTED_LOSS, base.loss)?,
            receivers: source.optional(&GROUP_SIZE)?,
            round_trip: source.get(&ROUND_TRIP, base.round_trip)?,
            backoff: source.optional(&BACKOFF)?,
            unicast: source.choose(&ANSWERS, &[false, true], base.unicast)?,
            robust: source.get(&ROBUST, base.robust)?,
            return_rate: source.optional(&RETURN_RATE)?,
            burst: source.get(&BURST, Bytes(base.burst))?.0,
            time_limit: source.get(&TRANSFER_LIMIT, base.time_limit)?,
            ..base
        })
    }
}

fn least_rate<S: SettingSource>(source: &mut S, most: BitRate) -> Result<Option<BitRate>, S::Error> {
    let least = source.optional(&LEAST_RATE)?;
    if least.is_some_and(|least| least > most) {
        return Err(source.refused(&LEAST_RATE, "it is more than the rate", "at most the rate"));
    }
    Ok(least)
}

/// Returns the settings that came into effect in `config`, with their values.
pub fn in_effect(config: &SenderConfig) -> Vec<(&'static Setting, SettingValue)> {
    let mut all = vec![
        (&RATE, config.pace.rate.to_value()),
        (&SEGMENT_SIZE, config.segment_size.to_value()),
        (&BLOCK_SIZE, config.block_len.to_value()),
        (&PARITY, config.parity.to_value()),
        (&PARITY_AHEAD, config.auto_parity.to_value()),
        (&ROUND_TRIP, config.grtt.to_value()),
        (&BACKOFF, config.backoff.to_value()),
        (&ROBUST, config.robust.to_value()),
    ];
    if let Pacing::NormCc { least } = config.pacing {
        all.push((&LEAST_RATE, least.to_value()));
    }
    all.extend(config.return_rate.map(|rate| (&RETURN_RATE, rate.to_value())));
    all
}
