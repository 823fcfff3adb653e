//! Settings of a transfer by MFTP. Options override a plan, and a plan overrides defaults.

use farcast_mftp::settings::Rate;
use farcast_mftp::{NakTiming, Pace, PassWait, SenderConfig, Settings, StatusRetry};
use farcast_scenario::{Document, DocumentError};
use farcast_sim::scenario::mftp::table;

use crate::Error;
use crate::send::SendJob;
use crate::send::nack::set;
use crate::send::options::{NakTimingChoice, PassWaitChoice};

const NO_RATE: &str = "--rate is missing: give what the slowest link on the way carries, such as --rate \"20 Mbit/s\" \
    for a satellite carrier of 20 Mbit/s (everything above it is lost in its queue), or --rate max on a local network, \
    where receivers set the pace";

/// Returns the settings that `job` asks for.
pub(super) fn of(job: &SendJob) -> Result<Settings, Error> {
    let mut settings = match (crate::send::plan(job)?, job.rate) {
        (Some(document), rate) => planned(&document, rate).map_err(Error::wrong)?,
        (None, Some(rate)) => Settings::new(rate),
        (None, None) => return Err(Error::usage(NO_RATE)),
    };
    protocol(job, &mut settings);
    let group = &job.group;
    set(&mut settings.announce_time, group.announce_time);
    settings.wait_for = group.wait_for.or(settings.wait_for);
    settings.start_after = group.start_after.or(settings.start_after);
    settings.start_on_demand = group.start_on_enter;
    settings.late_entry &= !group.no_late_entry;
    settings.draft = group.draft;
    Ok(settings)
}

fn protocol(job: &SendJob, settings: &mut Settings) {
    let protocol = &job.protocol;
    settings.dtu_size = protocol.dtu_size.or(settings.dtu_size);
    settings.block_size = protocol.block_size.or(settings.block_size);
    set(&mut settings.parity, protocol.parity);
    let pass_wait = protocol.pass_wait.map(|when| match when {
        PassWaitChoice::Draft => PassWait::Draft,
        PassWaitChoice::Fixed => PassWait::FixedTimer,
    });
    set(&mut settings.pass_wait, pass_wait);
    let nak_timing = protocol.nak_timing.map(|when| match when {
        NakTimingChoice::EachBlock => NakTiming::EachBlock,
        NakTimingChoice::EndOfFirstPass => NakTiming::EndOfFirstPass,
    });
    set(&mut settings.nak_timing, nak_timing);
    set(&mut settings.status_retry, protocol.status_retry);
    set(&mut settings.status_retries, protocol.status_retries);
    set(&mut settings.silence, protocol.silence);
    set(&mut settings.round_trip, protocol.rtt);
    set(&mut settings.spread, protocol.spread);
    set(&mut settings.burst, protocol.burst.map(|burst| burst.0));
    set(&mut settings.time_limit, protocol.time_limit);
}

/// Returns the settings of a plan, with `rate` if that is given.
fn planned(document: &Document, rate: Option<Rate>) -> Result<Settings, DocumentError> {
    let mut top = document.root();
    let mut table = top.table("protocol")?;
    table.choice_or("name", &[("mftp", ())], ())?;
    let rate = table::rate(&mut table, rate)?;
    let settings = table::read(&mut table, rate, false)?;
    table.finish()?;
    top.finish()?;
    Ok(settings)
}

/// Returns the values that came into effect, by the names of their options.
pub(super) fn in_use(config: &SenderConfig) -> Vec<(&'static str, String)> {
    let rate = match config.pace {
        Pace::Rate { rate, .. } => rate.to_string(),
        Pace::Window { .. } => "max".into(),
    };
    let pass_wait = match config.pass_wait {
        PassWait::Draft => "draft",
        PassWait::FixedTimer => "fixed",
    };
    let nak_timing = match config.nak_timing {
        NakTiming::EachBlock => "each-block",
        NakTiming::EndOfFirstPass => "end-of-first-pass",
    };
    let status_retry = match config.status_retry {
        StatusRetry::Fixed(time) => time.to_string(),
        StatusRetry::BlockTime { round_trips } => format!("block+{round_trips}rtt"),
        StatusRetry::Measured => "measured".into(),
    };
    let mut settings = vec![
        ("rate", rate),
        ("dtu-size", format!("{} B", config.dtu_size)),
        ("block-size", format!("{} DTUs", config.block_size)),
        ("parity", format!("{} symbols of a block", config.parity_symbols)),
        ("pass-wait", pass_wait.into()),
        ("nak-timing", nak_timing.into()),
        ("status-retry", status_retry),
        ("status-retries", config.status_retry_count.to_string()),
        ("silence", config.silence.to_string()),
        ("rtt", config.round_trip.to_string()),
        ("spread", config.backoff_window.to_string()),
        ("time-limit", config.transfer_limit.to_string()),
        ("announce-time", config.announce_limit.to_string()),
    ];
    settings.extend(config.start.after.map(|after| ("start-after", after.to_string())));
    settings
}
