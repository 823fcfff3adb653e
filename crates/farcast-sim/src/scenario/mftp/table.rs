//! Settings of a transfer by MFTP in a TOML table: `[protocol]` of a scenario, or of a sender's plan.

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_mftp::settings::{Fine, Parity, Rate};
use farcast_mftp::{NakTiming, Pace, PassWait, SenderConfig, Settings, StatusRetry};
use farcast_scenario::{DocumentError, Reader};

/// Shortest time between repetitions: with a shorter one, a simulation would do nothing else.
const LEAST_INTERVAL: Span = Span::from_millis(1);

/// Reads the key `rate` of `table`. A `given` rate replaces it; without one, the key must be there.
///
/// # Errors
/// The mistake in the key, and its place.
pub fn rate(table: &mut Reader<'_>, given: Option<Rate>) -> Result<Rate, DocumentError> {
    let Some(rate) = given else {
        return Ok(table.rate_or_word("rate", "max")?.map_or(Rate::Max, Rate::Limit));
    };
    // A given rate wins over the table's, but the table's must be valid.
    if table.holds("rate") {
        let _ = table.rate_or_word("rate", "max")?;
    }
    Ok(rate)
}

/// Reads the settings of `table`. Defaults are those of its `preset`: `farcast`, as in `farcast send`, or `draft`, as
/// in MFTP's draft. If the receivers are `given`, late receivers are not served.
///
/// # Errors
/// The first mistake, and its place.
pub fn read(table: &mut Reader<'_>, rate: Rate, given: bool) -> Result<Settings, DocumentError> {
    let draft = table.choice_or("preset", &[("farcast", false), ("draft", true)], false)?;
    let base = if draft { Settings::draft(rate) } else { Settings::new(rate) };
    let mut settings = base.clone();
    let dtu_size = table.optional_bytes("dtu_size")?;
    let dtu_size = dtu_size.map(|Bytes(size)| u32::try_from(size).unwrap_or(u32::MAX));
    settings.dtu_size = dtu_size.or(base.dtu_size);
    settings.block_size = table.optional_integer("block_size", 1..=1 << 30)?.or(base.block_size);
    let parity = match base.parity {
        Parity::Auto => None,
        Parity::Symbols(symbols) => Some(symbols),
    };
    let parity = table.integer_or_word("parity", 0..=32_768, "auto", parity)?;
    settings.parity = parity.map_or(Parity::Auto, Parity::Symbols);
    let waits = [("draft", PassWait::Draft), ("fixed", PassWait::FixedTimer)];
    settings.pass_wait = table.choice_or("pass_wait", &waits, base.pass_wait)?;
    let timings = [("each_block", NakTiming::EachBlock), ("end_of_first_pass", NakTiming::EndOfFirstPass)];
    settings.nak_timing = table.choice_or("nak_timing", &timings, base.nak_timing)?;
    settings.spread = table.span_or("spread", base.spread)?;
    settings.round_trip = interval(table, "round_trip", base.round_trip)?;
    settings.silence = table.span_or("silence", base.silence)?;
    let Bytes(burst) = table.bytes_or("burst", Bytes(base.burst))?;
    settings.burst = burst;
    settings.time_limit = table.span_or("transfer_limit", base.time_limit)?;
    let soon = if given { Some(Span::ZERO) } else { base.start_after };
    settings.start_after = table.optional_span("start_after")?.or(soon);
    settings.wait_for = table.optional_integer("start_receivers", 1..=1 << 22)?.or(base.wait_for);
    settings.announce_time = table.span_or("announce_limit", base.announce_time)?;
    settings.late_entry = table.flag_or("late_entry", base.late_entry && !given)?;
    settings.fine = fine(table, base.fine)?;
    let mut srt = table.table_or_empty("srt")?;
    status_retry(&mut srt, &mut settings)?;
    srt.finish()?;
    Ok(settings)
}

fn fine(table: &mut Reader<'_>, base: Fine) -> Result<Fine, DocumentError> {
    Ok(Fine {
        credit: table.optional_span("credit")?.or(base.credit),
        head_segments: table.optional_integer("head_segments", 0..=1 << 20)?.or(base.head_segments),
        ask_twice: table.optional_flag("ask_twice")?.or(base.ask_twice),
        repeat_small_passes: table.optional_flag("repeat_small_passes")?.or(base.repeat_small_passes),
        repeats: table.optional_integer("repeats", 1..=1000)?.or(base.repeats),
        announce_interval: optional_interval(table, "announce_interval")?.or(base.announce_interval),
        late_announce_interval: optional_interval(table, "late_announce_interval")?
            .or(base.late_announce_interval),
        completion_interval: optional_interval(table, "completion_interval")?.or(base.completion_interval),
        ..base
    })
}

/// Reads the Status Retry Timer from `[protocol.srt]`: `n` round trips behind a block's time, or a fixed `time`;
/// without both, it is measured.
fn status_retry(table: &mut Reader<'_>, settings: &mut Settings) -> Result<(), DocumentError> {
    let n = table.optional_integer("n", 0..=1_000_000)?;
    let time = optional_interval(table, "time")?;
    if let Some(round_trip) = table.optional_span("round_trip")? {
        // A round trip that the table gives is fixed, not measured.
        (settings.round_trip, settings.fine.fixed_round_trip) = (round_trip, true);
    }
    settings.fine.nak_restarts_wait = table.flag_or("restart_on_nak", false)?;
    settings.status_retries = table.integer_or("retries", 0..=1_000_000, settings.status_retries)?;
    settings.status_retry = match (n, time) {
        (Some(round_trips), None) => StatusRetry::BlockTime { round_trips },
        (None, Some(time)) => StatusRetry::Fixed(time),
        (None, None) => StatusRetry::Measured,
        (Some(_), Some(_)) => {
            return Err(table.refuse("time", "n sets the timer already", "one of n and time"));
        }
    };
    Ok(())
}

/// Reports the values of `config` that follow from other settings as defaults of keys that `table` lacks.
///
/// # Errors
/// None that [`read`] has not found.
pub(super) fn show(table: &mut Reader<'_>, config: &SenderConfig) -> Result<(), DocumentError> {
    table.bytes_or("dtu_size", Bytes(config.dtu_size.into()))?;
    table.integer_or("block_size", 1..=1 << 30, config.block_size)?;
    if let Pace::Rate { credit, .. } = config.pace {
        table.span_or("credit", credit)?;
    }
    table.integer_or("head_segments", 0..=1 << 20, config.head_segments)?;
    table.flag_or("ask_twice", config.ask_twice)?;
    table.flag_or("repeat_small_passes", config.repeat_small_passes)?;
    table.integer_or("repeats", 1..=1000, config.repeats)?;
    table.span_or("announce_interval", config.announce_interval)?;
    table.span_or("late_announce_interval", config.late_announce_interval)?;
    table.span_or("completion_interval", config.completion_interval)?;
    Ok(())
}

/// Reads a time between repetitions.
pub(super) fn interval(
    table: &mut Reader<'_>,
    key: &'static str,
    default: Span,
) -> Result<Span, DocumentError> {
    let span = table.span_or(key, default)?;
    if span < LEAST_INTERVAL { Err(too_short(table, key)) } else { Ok(span) }
}

fn optional_interval(table: &mut Reader<'_>, key: &'static str) -> Result<Option<Span>, DocumentError> {
    let span = table.optional_span(key)?;
    if span.is_some_and(|span| span < LEAST_INTERVAL) { Err(too_short(table, key)) } else { Ok(span) }
}

fn too_short(table: &Reader<'_>, key: &'static str) -> DocumentError {
    table.refuse(key, "it is too short to be simulated", "1 ms or more")
}
