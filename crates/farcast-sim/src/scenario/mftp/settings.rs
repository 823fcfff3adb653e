//! The transfer that a scenario describes.

use std::net::SocketAddr;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_link::bgan::Packing;
use farcast_mftp::{
    Group, Invited, NakTiming, Pace, PassWait, Product, ReceiverConfig, Sender, SenderConfig, StatusRetry,
    wire,
};

use super::{NOBODY, receiver_id};
use farcast_scenario::links::LinkSpec;
use farcast_scenario::{DocumentError, Reader};

/// What the engines of a scenario are set to.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) sender: SenderConfig,
    pub(super) receiver: ReceiverConfig,
    pub(super) overhead: u16,
    pub(super) given: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Model {
    OpenUnlimited,
    OpenLimited,
    Closed,
}

/// Reads `[protocol]`.
pub(super) fn read(top: &mut Reader<'_>, forward: &LinkSpec) -> Result<Settings, DocumentError> {
    let mut table = top.table("protocol")?;
    table.choice_or("name", &[("mftp", ())], ())?;
    let server = SocketAddr::from(([10, 0, 0, 1], 5402));
    let group = SocketAddr::from(([239, 255, 54, 2], 5402));
    let Bytes(size) = table.bytes("file")?;
    let mut config = SenderConfig::new(Product { id: [1; 32], size, name: "file".into() }, server, group);
    let overhead = pace(&mut table, &mut config, forward)?;
    let given = model(&mut table, &mut config)?;
    passes(&mut table, &mut config)?;
    let mut srt = table.table_or_empty("srt")?;
    status_retry(&mut srt, &mut config)?;
    srt.finish()?;
    control(&mut table, &mut config)?;
    let mut receiver = ReceiverConfig::new(NOBODY, group.port());
    receiver.keep_early_data = table.flag_or("keep_early_data", receiver.keep_early_data)?;
    receiver.naks_per_request =
        table.integer_or("naks_per_request", 1..=65_535, receiver.naks_per_request)?;
    receiver.register_retry = interval(&mut table, "register_retry", receiver.register_retry)?;
    receiver.done_retry = interval(&mut table, "done_retry", receiver.done_retry)?;
    receiver.patience = interval(&mut table, "patience", Span::from_secs(24 * 3600))?;
    if let Err(error) = Sender::new(config.clone()) {
        return Err(table.refuse("file", error.to_string(), "settings that a transfer can have"));
    }
    table.finish()?;
    Ok(Settings { sender: config, receiver, overhead, given })
}

/// How the product is cut and how fast it leaves; the octets of a packet besides the message.
fn pace(table: &mut Reader<'_>, config: &mut SenderConfig, forward: &LinkSpec) -> Result<u16, DocumentError> {
    let Bytes(dtu) = table.bytes_or("dtu_size", Bytes(wire::dtu_size_for(config.datagram) as u64))?;
    config.dtu_size = u32::try_from(dtu).unwrap_or(u32::MAX);
    config.block_size = table.integer_or("block_size", 1..=1 << 30, config.block_size)?;
    let Bytes(overhead) = table.bytes_or("packet_overhead", Bytes(28))?;
    let Ok(overhead) = u16::try_from(overhead) else {
        return Err(table.refuse("packet_overhead", "it is larger than any packet", "at most 65535 B"));
    };
    // A bearer on which a packet takes whole FEC blocks is paced in whole blocks.
    let block = match forward {
        LinkSpec::BganForward(link) if link.config.packing == Packing::PacketAligned => {
            u64::from(link.config.fec_block_octets)
        }
        _ => 1,
    };
    let Bytes(granule) = table.bytes_or("granule", Bytes(block))?;
    let Some(granule) = u16::try_from(granule).ok().filter(|&granule| granule > 0) else {
        return Err(table.refuse("granule", "it must hold something and fit a packet", "1 B to 65535 B"));
    };
    config.pace = Pace::Rate { rate: table.rate("rate")?, overhead, credit: Span::ZERO, granule };
    Ok(overhead)
}

/// A time between repetitions: without a least one, a simulation would do nothing else.
fn interval(table: &mut Reader<'_>, key: &'static str, default: Span) -> Result<Span, DocumentError> {
    let span = table.span_or(key, default)?;
    if span < Span::from_millis(1) {
        return Err(table.refuse(key, "it is too short to be simulated", "1 ms or more"));
    }
    Ok(span)
}

/// Who may receive, and whether the way there is simulated.
fn model(table: &mut Reader<'_>, config: &mut SenderConfig) -> Result<bool, DocumentError> {
    let models = [
        ("open_unlimited", Model::OpenUnlimited),
        ("open_limited", Model::OpenLimited),
        ("closed", Model::Closed),
    ];
    let model = table.choice_or("group", &models, Model::OpenLimited)?;
    let given = table.choice_or("setup", &[("simulated", false), ("done", true)], false)?;
    let limit = table.optional_integer("group_limit", 1..=1 << 22)?;
    config.group = match model {
        Model::OpenUnlimited => Group::OpenUnlimited,
        Model::OpenLimited => Group::OpenLimited { limit: limit.unwrap_or(1 << 22) },
        // The list is made when the number of receivers is known.
        Model::Closed => Group::Closed(vec![invited(0)]),
    };
    let soon = if given { Span::ZERO } else { Span::from_secs(3) };
    config.start.after = Some(table.span_or("start_after", soon)?);
    config.start.receivers = table.optional_integer("start_receivers", 1..=1 << 22)?;
    config.announce_interval = interval(table, "announce_interval", config.announce_interval)?;
    config.late_announce_interval = interval(table, "late_announce_interval", config.late_announce_interval)?;
    config.announce_limit = table.span_or("announce_limit", config.announce_limit)?;
    config.late_entry = table.flag_or("late_entry", !given)?;
    config.completion_interval = interval(table, "completion_interval", config.completion_interval)?;
    Ok(given)
}

/// The invitation of receiver `n`.
pub(super) fn invited(n: u32) -> Invited {
    let id = receiver_id(n);
    Invited { label: id.to_string(), id }
}

fn passes(table: &mut Reader<'_>, config: &mut SenderConfig) -> Result<(), DocumentError> {
    let waits = [("draft", PassWait::Draft), ("fixed", PassWait::FixedTimer)];
    config.pass_wait = table.choice_or("pass_wait", &waits, config.pass_wait)?;
    let timings = [("each_block", NakTiming::EachBlock), ("end_of_first_pass", NakTiming::EndOfFirstPass)];
    config.nak_timing = table.choice_or("nak_timing", &timings, config.nak_timing)?;
    config.backoff_window = table.span_or("spread", Span::ZERO)?;
    config.ask_twice = table.flag_or("ask_twice", false)?;
    config.repeat_small_passes = table.flag_or("repeat_small_passes", false)?;
    config.parity_symbols = table.integer_or("parity", 0..=32_768, 0)?;
    Ok(())
}

/// `[protocol.srt]`: `n` round trips behind a block's time, or a fixed `time`; else it is measured.
fn status_retry(table: &mut Reader<'_>, config: &mut SenderConfig) -> Result<(), DocumentError> {
    let n = table.optional_integer("n", 0..=1_000_000)?;
    let time = table.optional_span("time")?;
    if time.is_some_and(|time| time < Span::from_millis(1)) {
        return Err(table.refuse("time", "it is too short to be simulated", "1 ms or more"));
    }
    if let Some(round_trip) = table.optional_span("round_trip")? {
        // Who says what it is means that: it is not measured.
        (config.round_trip, config.measure_round_trip) = (round_trip, false);
    }
    config.nak_restarts_wait = table.flag_or("restart_on_nak", false)?;
    config.status_retry_count = table.integer_or("retries", 0..=1_000_000, config.status_retry_count)?;
    config.status_retry = match (n, time) {
        (Some(round_trips), None) => StatusRetry::BlockTime { round_trips },
        (None, Some(time)) => StatusRetry::Fixed(time),
        (None, None) => StatusRetry::Measured,
        (Some(_), Some(_)) => {
            return Err(table.refuse("time", "n sets the timer already", "one of n and time"));
        }
    };
    Ok(())
}

fn control(table: &mut Reader<'_>, config: &mut SenderConfig) -> Result<(), DocumentError> {
    config.silence = table.span_or("silence", Span::ZERO)?;
    config.repeats = table.integer_or("repeats", 1..=1000, config.repeats)?;
    config.transfer_limit = table.span_or("transfer_limit", Span::from_secs(30 * 24 * 3600))?;
    Ok(())
}
