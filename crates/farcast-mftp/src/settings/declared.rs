//! Declarations of the settings, and how they are read.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use farcast_core::setting::{SettingKind, SettingSource, SettingType, SettingValue};
use farcast_core::units::Bytes;
use farcast_core::{Setting, Span, settings};
use farcast_delivery::settings::{
    BURST, PARITY_WORDS, RATE as SENDING_RATE, RETURN_RATE as SHARED_RETURN_RATE,
    ROUND_TRIP as ANY_ROUND_TRIP, TRANSFER_LIMIT as LIMIT,
};

use super::{Fine, SendRate, Settings};
use crate::config::{NakTiming, Pace, PassWait, SenderConfig, StatusRetry};

/// Shortest time between repetitions: with a shorter one, a simulation would do nothing else.
pub const LEAST_INTERVAL: Span = Span::from_millis(1);

const FROM_RATE: &str = "from the rate";

settings! {
    /// Rate of the sender, headers included; "max": receivers set the pace
    pub(super) RATE = SENDING_RATE.kind(SettingKind::RateOr(&["max"]));
    /// Defaults of the other keys: those of farcast send, or of the draft
    pub(super) PRESET = Setting::new("preset", SettingKind::Words(&["farcast", "draft"]));
    /// Product bytes in a datagram, 1 B to 65000 B; a bare number means bytes
    pub(super) DTU_SIZE = Setting::new("dtu_size", SettingKind::Octets(1, 65_000)).option("dtu-size", "SIZE")
        .otherwise("the most that fits 1500 bytes with all headers").unit("B");
    /// DTUs in a block; receivers report losses block by block
    BLOCK_SIZE = Setting::new("block_size", SettingKind::Integer(1, 1 << 30)).option("block-size", "DTUS")
        .otherwise("as many as leave in a quarter of a second").unit("DTUs");
    /// Most parity symbols of a block. They are sent in place of lost DTUs if fewer of them suffice. "auto" chooses a
    /// number that suits the block, and sends some unasked if round trips are long
    pub(super) PARITY = Setting::new("parity", SettingKind::IntegerOr(0, 32_768, PARITY_WORDS))
        .option("parity", "N|auto|off").unit("symbols of a block");
    /// Start of the next pass: as soon as something is missing (draft), or after a whole Status Retry Timer (fixed),
    /// as in the BGAN study
    pub(super) PASS_WAIT = Setting::new("pass_wait", SettingKind::Words(&["draft", "fixed"]))
        .option("pass-wait", "WHEN");
    /// Time of status requests: after every block, or in the first pass only at its end
    NAK_TIMING = Setting::new("nak_timing", SettingKind::Words(&["each_block", "end_of_first_pass"]))
        .option("nak-timing", "WHEN");
    /// Status Retry Timer: a time, "block+4rtt", or "measured" (one and a half round trips)
    STATUS_RETRY = Setting::new("status_retry", SettingKind::Text).option("status-retry", "TIMER")
        .replaces(&["srt.n", "srt.time"]).otherwise("measured");
    /// Give up a receiver after this many unanswered status requests
    STATUS_RETRIES = Setting::new("retries", SettingKind::Integer(0, 1_000_000))
        .option("status-retries", "N");
    /// Give up a receiver only after this much silence, however many requests it left unanswered. The default
    /// survives a minute of rain or a handover
    SILENCE = Setting::new("silence", SettingKind::Span).option("silence", "TIME");
    /// Time over which receivers spread their answers, against implosion in large groups
    SPREAD = Setting::new("spread", SettingKind::Span).option("spread", "TIME");
    /// Begin after this time with the receivers that have registered. By default data follows the announcement at
    /// once, and receivers join when they come
    pub(super) START_AFTER = Setting::new("start_after", SettingKind::Span).option("start-after", "TIME")
        .otherwise("none");
    /// Begin as soon as this many receivers have registered
    pub(super) START_RECEIVERS = Setting::new("start_receivers", SettingKind::Integer(1, 1 << 22))
        .option("wait-for", "N");
    /// Give up if no receiver has registered after this time
    ANNOUNCE_LIMIT = Setting::new("announce_limit", SettingKind::Span).option("announce-time", "TIME");
    /// Refuse receivers that register after data has begun (late_entry = false)
    pub(super) LATE_ENTRY = Setting::new("late_entry", SettingKind::Flag).flag("no-late-entry", "false");
    /// Round trip to assume until one is measured. PGM measures none, so its receivers have the same option
    ROUND_TRIP = ANY_ROUND_TRIP;
    /// Abort after this long; MFTP counts from the first data on
    TRANSFER_LIMIT = LIMIT;
    /// Unused sending time that may be made up for
    CREDIT = Setting::new("credit", SettingKind::Span).otherwise(FROM_RATE);
    /// DTUs at the product's head that the first pass sends twice
    HEAD_SEGMENTS = Setting::new("head_segments", SettingKind::Integer(0, 1 << 20)).otherwise("1");
    /// The request that ends a pass is sent twice
    ASK_TWICE = Setting::new("ask_twice", SettingKind::Flag).otherwise(FROM_RATE);
    /// A pass of less than an eighth of a round trip is sent twice
    REPEAT_SMALL_PASSES = Setting::new("repeat_small_passes", SettingKind::Flag).otherwise("true");
    /// Repetitions of each confirmation
    REPEATS = Setting::new("repeats", SettingKind::Integer(1, 1000)).otherwise("3");
    /// Time from one announcement to the next before data begins
    ANNOUNCE_INTERVAL = Setting::new("announce_interval", SettingKind::Span).otherwise(FROM_RATE);
    /// Time from one announcement to the next once data has begun
    LATE_ANNOUNCE_INTERVAL = Setting::new("late_announce_interval", SettingKind::Span).otherwise(FROM_RATE);
    /// Time from one Completion to the next
    COMPLETION_INTERVAL = Setting::new("completion_interval", SettingKind::Span).otherwise(FROM_RATE);
    /// The timer is a block's time and this many round trips
    SRT_N = Setting::new("n", SettingKind::Integer(0, 1_000_000));
    /// The timer is this
    SRT_TIME = Setting::new("time", SettingKind::Span);
    /// Round trip, which is then not measured
    SRT_ROUND_TRIP = Setting::new("round_trip", SettingKind::Span);
    /// A NAK begins the wait anew
    SRT_RESTART = Setting::new("restart_on_nak", SettingKind::Flag);
}

pub(super) const RETURN_RATE: Setting = SHARED_RETURN_RATE.otherwise("learnt");

impl Settings {
    /// Reads the settings of a transfer.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read<S: SettingSource>(source: &mut S) -> Result<Self, S::Error> {
        Self::read_for(source, false)
    }

    /// Reads the settings of a transfer whose receivers have `joined` before, if that is set. Late receivers are then
    /// not served, unless a setting says so.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read_for<S: SettingSource>(source: &mut S, joined: bool) -> Result<Self, S::Error> {
        let rate = source.required(&RATE)?;
        let draft = source.choose(&PRESET, &[false, true], false)?;
        let base = if draft { Self::draft(rate) } else { Self::new(rate) };
        let soon = if joined { Some(Span::ZERO) } else { base.start_after };
        let settings = Self {
            dtu_size: source.optional(&DTU_SIZE)?.or(base.dtu_size),
            block_size: source.optional(&BLOCK_SIZE)?.or(base.block_size),
            parity: source.get(&PARITY, base.parity)?,
            pass_wait: source.choose(&PASS_WAIT, &[PassWait::Draft, PassWait::FixedTimer], base.pass_wait)?,
            nak_timing: source.choose(
                &NAK_TIMING,
                &[NakTiming::EachBlock, NakTiming::EndOfFirstPass],
                base.nak_timing,
            )?,
            spread: source.get(&SPREAD, base.spread)?,
            round_trip: interval(source, &ROUND_TRIP, Some(base.round_trip))?.unwrap_or(base.round_trip),
            silence: source.get(&SILENCE, base.silence)?,
            burst: source.get(&BURST, Bytes(base.burst))?.0,
            time_limit: source.get(&TRANSFER_LIMIT, base.time_limit)?,
            start_after: source.optional(&START_AFTER)?.or(soon),
            wait_for: source.optional(&START_RECEIVERS)?.or(base.wait_for),
            announce_time: source.get(&ANNOUNCE_LIMIT, base.announce_time)?,
            return_rate: source.optional(&RETURN_RATE)?,
            late_entry: source.get(&LATE_ENTRY, base.late_entry && !joined)?,
            fine: fine(source, base.fine)?,
            ..base
        };
        let chosen = status_retry(source)?;
        source.inner("srt", |srt| settings.timer(srt, chosen))
    }

    /// Reads the Status Retry Timer from its table: `n` round trips behind a block's time, or a fixed `time`. The timer
    /// may be `chosen` already.
    fn timer<S: SettingSource>(
        mut self,
        source: &mut S,
        chosen: Option<StatusRetry>,
    ) -> Result<Self, S::Error> {
        let n = source.optional(&SRT_N)?;
        let time = interval(source, &SRT_TIME, None)?;
        if let Some(round_trip) = source.optional(&SRT_ROUND_TRIP)? {
            // A round trip that the table gives is fixed, not measured.
            (self.round_trip, self.fine.fixed_round_trip) = (round_trip, true);
        }
        self.fine.nak_restarts_wait = source.get(&SRT_RESTART, false)?;
        self.status_retries = source.get(&STATUS_RETRIES, self.status_retries)?;
        self.status_retry = match (chosen, n, time) {
            (None, Some(round_trips), None) => StatusRetry::BlockTime { round_trips },
            (None, None, Some(time)) => StatusRetry::Fixed(time),
            (chosen, None, None) => chosen.unwrap_or(StatusRetry::Measured),
            (Some(_), Some(_), _) => return Err(set_already(source, &SRT_N, "status_retry")),
            (Some(_), _, Some(_)) => return Err(set_already(source, &SRT_TIME, "status_retry")),
            (None, Some(_), Some(_)) => return Err(set_already(source, &SRT_TIME, "n")),
        };
        Ok(self)
    }
}

fn set_already<S: SettingSource>(source: &S, setting: &'static Setting, by: &str) -> S::Error {
    source.refused(setting, &format!("{by} sets the timer already"), "one of n and time, or status_retry")
}

fn fine<S: SettingSource>(source: &mut S, base: Fine) -> Result<Fine, S::Error> {
    Ok(Fine {
        credit: source.optional(&CREDIT)?.or(base.credit),
        head_segments: source.optional(&HEAD_SEGMENTS)?.or(base.head_segments),
        ask_twice: source.optional(&ASK_TWICE)?.or(base.ask_twice),
        repeat_small_passes: source.optional(&REPEAT_SMALL_PASSES)?.or(base.repeat_small_passes),
        repeats: source.optional(&REPEATS)?.or(base.repeats),
        announce_interval: interval(source, &ANNOUNCE_INTERVAL, None)?.or(base.announce_interval),
        late_announce_interval: interval(source, &LATE_ANNOUNCE_INTERVAL, None)?
            .or(base.late_announce_interval),
        completion_interval: interval(source, &COMPLETION_INTERVAL, None)?.or(base.completion_interval),
        ..base
    })
}

/// Reads a time between repetitions.
fn interval<S: SettingSource>(
    source: &mut S,
    setting: &'static Setting,
    default: Option<Span>,
) -> Result<Option<Span>, S::Error> {
    let value = source.value(setting, default.map(|span| span.to_value()))?.and_then(Span::from_value);
    if value.is_some_and(|span| span < LEAST_INTERVAL) {
        return Err(source.refused(setting, "it is too short to be simulated", "1 ms or more"));
    }
    Ok(value)
}

fn status_retry<S: SettingSource>(source: &mut S) -> Result<Option<StatusRetry>, S::Error> {
    let Some(text) = source.optional::<String>(&STATUS_RETRY)? else { return Ok(None) };
    let timer = match text.strip_prefix("block+").and_then(|rest| rest.strip_suffix("rtt")) {
        Some(n) => n.parse().ok().map(|round_trips| StatusRetry::BlockTime { round_trips }),
        None if text == "measured" => Some(StatusRetry::Measured),
        None => text.parse().ok().filter(|time: &Span| !time.is_zero()).map(StatusRetry::Fixed),
    };
    let wrong = || {
        let allowed = "a time (\"3 s\"), \"block+4rtt\", or \"measured\"";
        source.refused(&STATUS_RETRY, "it is no Status Retry Timer", allowed)
    };
    timer.ok_or_else(wrong).map(Some)
}

/// Returns the settings that came into effect in `config`, with their values.
pub fn in_effect(config: &SenderConfig) -> Vec<(&'static Setting, SettingValue)> {
    let (rate, credit) = match config.pace {
        Pace::Rate { rate, credit, .. } => (SendRate::Limit(rate), Some(credit)),
        Pace::Window { .. } => (SendRate::Max, None),
    };
    let pass_wait = match config.pass_wait {
        PassWait::Draft => "draft",
        PassWait::FixedTimer => "fixed",
    };
    let nak_timing = match config.nak_timing {
        NakTiming::EachBlock => "each-block",
        NakTiming::EndOfFirstPass => "end-of-first-pass",
    };
    let timer = match config.status_retry {
        StatusRetry::Fixed(time) => time.to_string(),
        StatusRetry::BlockTime { round_trips } => format!("block+{round_trips}rtt"),
        StatusRetry::Measured => "measured".into(),
    };
    let mut all = vec![
        (&RATE, rate.to_value()),
        (&DTU_SIZE, config.dtu_size.to_value()),
        (&BLOCK_SIZE, config.block_size.to_value()),
        (&PARITY, config.parity_symbols.to_value()),
        (&PASS_WAIT, SettingValue::Word(pass_wait)),
        (&NAK_TIMING, SettingValue::Word(nak_timing)),
        (&STATUS_RETRY, SettingValue::Text(timer)),
        (&STATUS_RETRIES, config.status_retry_count.to_value()),
        (&SILENCE, config.silence.to_value()),
        (&ROUND_TRIP, config.round_trip.to_value()),
        (&SPREAD, config.backoff_window.to_value()),
        (&TRANSFER_LIMIT, config.transfer_limit.to_value()),
        (&ANNOUNCE_LIMIT, config.announce_limit.to_value()),
    ];
    all.extend(config.return_rate.map(|rate| (&RETURN_RATE, rate.to_value())));
    all.extend(config.start.after.map(|after| (&START_AFTER, after.to_value())));
    all.extend(credit.map(|credit| (&CREDIT, credit.to_value())));
    all.extend([
        (&HEAD_SEGMENTS, config.head_segments.to_value()),
        (&ASK_TWICE, config.ask_twice.to_value()),
        (&REPEAT_SMALL_PASSES, config.repeat_small_passes.to_value()),
        (&REPEATS, config.repeats.to_value()),
        (&ANNOUNCE_INTERVAL, config.announce_interval.to_value()),
        (&LATE_ANNOUNCE_INTERVAL, config.late_announce_interval.to_value()),
        (&COMPLETION_INTERVAL, config.completion_interval.to_value()),
    ]);
    all
}
