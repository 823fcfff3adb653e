//! The settings of a transfer by MFTP in a table of TOML: `[protocol]` of a scenario, and of the plan of a sender.

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_mftp::settings::{Fine, Parity, Rate};
use farcast_mftp::{NakTiming, Pace, PassWait, SenderConfig, Settings, StatusRetry};
use farcast_scenario::{DocumentError, Reader};

/// The shortest time between repetitions: without one, a simulation would do nothing else.
const LEAST_INTERVAL: Span = Span::from_millis(1);

/// How fast: the key `rate` of `table`, which must be there unless `given` is.
///
/// # Errors
/// What is wrong with it, and where.
pub fn rate(table: &mut Reader<'_>, given: Option<Rate>) -> Result<Rate, DocumentError> {
    let Some(rate) = given else {
        return Ok(table.rate_or_word("rate", "max")?.map_or(Rate::Max, Rate::Limit));
    };
    // Who gives one sends at it, whatever the table says; but that must be sound.
    if table.holds("rate") {
        let _ = table.rate_or_word("rate", "max")?;
    }
    Ok(rate)
}

/// The settings of `table`, where they are not said those of its `preset`: `farcast`, what `farcast send` does, or
/// `draft`, MFTP as its draft has it. Where receivers are `given`, who comes late is not served.
///
/// # Errors
/// The first thing that is wrong, and where.
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

/// `[protocol.srt]`: `n` round trips behind a block's time, or a fixed `time`; else it is measured.
fn status_retry(table: &mut Reader<'_>, settings: &mut Settings) -> Result<(), DocumentError> {
    let n = table.optional_integer("n", 0..=1_000_000)?;
    let time = optional_interval(table, "time")?;
    if let Some(round_trip) = table.optional_span("round_trip")? {
        // Who says what it is means that: it is not measured.
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

/// Shows what `config` has where `table` says nothing: what follows from the rest.
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

/// A time between repetitions.
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
