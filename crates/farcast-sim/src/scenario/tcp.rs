//! Keys of a flow over TCP.

use std::fmt::Display;
use std::str::FromStr;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_tcp::{
    AfterTimeout, Algorithm, Config, DelayedAck, Floor, Increase, InitialWindow, ReceiveWindow, Recovery,
    Reduction, Variation, Window, WriteSpace,
};

use farcast_scenario::{DocumentError, Reader};

/// Bulk transfer: the connection's settings, and the size of the transfer if it has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spec {
    pub(super) config: Config,
    pub(super) size: Option<u64>,
}

/// Settings that a table starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preset {
    Rfc,
    Modern,
    Linux24,
    Ns2,
}

/// Reads the keys of a bulk transfer.
pub(super) fn read(table: &mut Reader<'_>) -> Result<Spec, DocumentError> {
    let size = table.optional_bytes("size")?.map(|Bytes(octets)| octets);
    if size == Some(0) {
        return Err(table.refuse("size", "there is nothing to transfer", "at least 1 B"));
    }
    Ok(Spec { config: config(table)?, size })
}

/// Reads the settings of a connection: a preset's settings, changed by the keys that are given.
pub(super) fn config(table: &mut Reader<'_>) -> Result<Config, DocumentError> {
    let mut config = preset(table)?;
    let Bytes(mss) = table.bytes_or("mss", Bytes(config.mss.into()))?;
    let Ok(mss) = u16::try_from(mss) else {
        return Err(table.refuse("mss", "it fits no segment", "64 B to 65535 B"));
    };
    config.mss = mss;
    losses(table, &mut config)?;
    windows(table, &mut config)?;
    timer(table, &mut config)?;
    acknowledgments(table, &mut config)?;
    options(table, &mut config)?;
    let allowed = "settings that a connection can have";
    config.check().map_err(|error| table.refuse(blamed(&error), error.to_string(), allowed))?;
    Ok(config)
}

/// Reads the preset, with the recovery and the window, on which some of its settings depend.
fn preset(table: &mut Reader<'_>) -> Result<Config, DocumentError> {
    let presets = [
        ("rfc", Preset::Rfc),
        ("modern", Preset::Modern),
        ("linux_2_4", Preset::Linux24),
        ("ns2", Preset::Ns2),
    ];
    let recoveries = [
        ("reno", Recovery::Reno),
        ("newreno", Recovery::NewReno),
        ("sack", Recovery::Sack),
        ("fack", Recovery::Fack),
        ("rack", Recovery::Rack),
    ];
    let chosen = table.choice_or("preset", &presets, Preset::Rfc)?;
    let start = match chosen {
        Preset::Rfc => Config::default(),
        Preset::Modern => Config::modern(),
        Preset::Linux24 => Config::linux_2_4(),
        Preset::Ns2 => Config::ns2(Recovery::Sack, Window::Segments(20)),
    };
    let recovery = table.choice_or("recovery", &recoveries, start.recovery)?;
    let size = parsed_or(table, "window", &Shown(start.receive_window.size))?.0;
    if chosen == Preset::Ns2 {
        return Ok(Config::ns2(recovery, size));
    }
    let receive_window = ReceiveWindow { size, ..start.receive_window };
    Ok(Config { recovery, receive_window, ..start })
}

/// Reads the reaction to losses and the recovery from them.
fn losses(table: &mut Reader<'_>, config: &mut Config) -> Result<(), DocumentError> {
    let algorithms = [("reno", Algorithm::Reno), ("cubic", Algorithm::Cubic)];
    config.congestion = table.choice_or("congestion", &algorithms, config.congestion)?;
    let reductions = [
        ("immediate", Reduction::Immediate),
        ("proportional", Reduction::Proportional),
        ("proportional_safe", Reduction::ProportionalSafe),
        ("rate_halving", Reduction::RateHalving),
    ];
    config.reduction = table.choice_or("reduction", &reductions, config.reduction)?;
    config.halve_window = table.flag_or("halve_window", config.halve_window)?;
    config.limited_transmit = table.flag_or("limited_transmit", config.limited_transmit)?;
    let after_timeout = [("slow_start", AfterTimeout::SlowStart), ("linux", AfterTimeout::Linux)];
    config.after_timeout = table.choice_or("after_timeout", &after_timeout, config.after_timeout)?;
    config.frto = table.flag_or("frto", config.frto)?;
    config.undo = table.flag_or("undo", config.undo)?;
    config.tail_loss_probe = table.flag_or("tail_loss_probe", config.tail_loss_probe)?;
    config.most_retries = table.integer_or("most_retries", 1..=1000, config.most_retries)?;
    let burst = table.optional_integer("most_burst", 1..=u32::MAX)?;
    config.most_burst = burst.or(config.most_burst);
    Ok(())
}

/// Reads the start, the growth and the limits of windows.
fn windows(table: &mut Reader<'_>, config: &mut Config) -> Result<(), DocumentError> {
    let initial = Shown(config.initial_window);
    config.initial_window = parsed_or(table, "initial_window", &initial)?.0;
    config.initial_ssthresh = parsed_or(table, "initial_ssthresh", &Shown(config.initial_ssthresh))?.0;
    let given = table.optional_integer("increase_limit", 1..=u16::MAX)?;
    let limit = match config.increase {
        Increase::Octets(limit) => given.unwrap_or(limit),
        _ => given.unwrap_or(2),
    };
    let kinds = [
        ("per_acknowledgment", Increase::PerAcknowledgment),
        ("octets", Increase::Octets(limit)),
        ("delivered", Increase::Delivered),
    ];
    let start = if matches!(config.increase, Increase::Octets(_)) {
        Increase::Octets(limit)
    } else {
        config.increase
    };
    config.increase = table.choice_or("increase", &kinds, start)?;
    config.hystart = table.flag_or("hystart", config.hystart)?;
    config.idle_restart = table.flag_or("idle_restart", config.idle_restart)?;
    let first = Shown(config.receive_window.first);
    config.receive_window.first = parsed_or(table, "first_window", &first)?.0;
    if let Some(Bytes(octets)) = table.optional_bytes("send_buffer")? {
        config.send_buffer = octets;
    }
    let spaces = [("any", WriteSpace::Any), ("third", WriteSpace::Third)];
    config.write_space = table.choice_or("write_space", &spaces, config.write_space)?;
    config.nagle = table.flag_or("nagle", config.nagle)?;
    Ok(())
}

/// Reads the retransmission timer, `[traffic.rto]`.
fn timer(table: &mut Reader<'_>, config: &mut Config) -> Result<(), DocumentError> {
    let mut inner = table.table_or_empty("rto")?;
    let rto = &mut config.rto;
    rto.initial = inner.span_or("initial", rto.initial)?;
    rto.least = inner.span_or("min", rto.least)?;
    rto.most = inner.span_or("max", rto.most)?;
    rto.granularity = inner.span_or("granularity", rto.granularity)?;
    let floors = [("timeout", Floor::Timeout), ("variation", Floor::Variation)];
    rto.floor = inner.choice_or("min_of", &floors, rto.floor)?;
    let variations = [("rfc6298", Variation::Rfc6298), ("linux", Variation::Linux)];
    rto.variation = inner.choice_or("variation", &variations, rto.variation)?;
    rto.after_lost_syn = inner.span_or("after_lost_syn", rto.after_lost_syn)?;
    inner.finish()
}

/// Reads the times of acknowledgments.
fn acknowledgments(table: &mut Reader<'_>, config: &mut Config) -> Result<(), DocumentError> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum When {
        AtOnce,
        Second,
        Quick,
    }
    let (when, delay, least, quick) = match config.delayed_ack {
        DelayedAck::Off => (When::AtOnce, Span::from_millis(200), Span::from_millis(40), 16),
        DelayedAck::Delayed { delay } => (When::Second, delay, Span::from_millis(40), 16),
        DelayedAck::Quick { segments, least, most } => (When::Quick, most, least, segments),
    };
    let choices = [("off", When::AtOnce), ("second", When::Second), ("quick", When::Quick)];
    config.delayed_ack = match table.choice_or("delayed_ack", &choices, when)? {
        When::AtOnce => DelayedAck::Off,
        When::Second => DelayedAck::Delayed { delay: table.span_or("ack_delay", delay)? },
        When::Quick => DelayedAck::Quick {
            most: table.span_or("ack_delay", delay)?,
            least: table.span_or("ack_delay_least", least)?,
            segments: table.integer_or("quick_acks", 0..=10_000, quick)?,
        },
    };
    Ok(())
}

/// Reads the options that the SYN offers.
fn options(table: &mut Reader<'_>, config: &mut Config) -> Result<(), DocumentError> {
    config.sack = table.flag_or("sack", config.sack)?;
    config.dsack = table.flag_or("dsack", config.dsack)?;
    config.window_scaling = table.flag_or("window_scaling", config.window_scaling)?;
    if table.flag_or("timestamps", config.timestamps.is_some())? {
        let tick = config.timestamps.unwrap_or(Span::from_millis(1));
        config.timestamps = Some(table.span_or("timestamp_tick", tick)?);
    } else {
        config.timestamps = None;
    }
    config.time_wait = table.span_or("time_wait", config.time_wait)?;
    Ok(())
}

/// Returns the key that an error of the whole configuration is about.
fn blamed(error: &farcast_tcp::ConfigError) -> &'static str {
    use farcast_tcp::ConfigError;
    match error {
        ConfigError::Mss(_) => "mss",
        ConfigError::ReceiveWindow { .. } => "window",
        ConfigError::FirstWindow => "first_window",
        ConfigError::InitialWindow => "initial_window",
        ConfigError::InitialSsthresh => "initial_ssthresh",
        ConfigError::SendBuffer { .. } => "send_buffer",
        ConfigError::NoSack => "recovery",
        ConfigError::TimestampTick => "timestamp_tick",
        ConfigError::AckDelay => "ack_delay",
        ConfigError::Rto => "rto",
        _ => "preset",
    }
}

/// Setting in the text form of a scenario.
struct Shown<T>(T);

impl Display for Shown<Window> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Window::Octets(octets) => write!(f, "{octets} B"),
            Window::Segments(count) => write!(f, "{count} packets"),
        }
    }
}

impl FromStr for Shown<Window> {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const ALLOWED: &str = "a number of packets or a size, as in \"20 packets\" or \"64 KiB\"";
        let window = match packets(text) {
            Some(count) => Window::Segments(count.parse().map_err(|_| ALLOWED)?),
            None => Window::Octets(text.parse::<Bytes>().map_err(|_| ALLOWED)?.0),
        };
        Ok(Self(window))
    }
}

impl Display for Shown<Option<Window>> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(window) => Shown(window).fmt(f),
            None => f.write_str("none"),
        }
    }
}

impl FromStr for Shown<Option<Window>> {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self(None));
        }
        let window: Shown<Window> =
            text.parse().map_err(|_| "\"none\", \"20 packets\", or a size such as \"64 KiB\"")?;
        Ok(Self(Some(window.0)))
    }
}

impl Display for Shown<InitialWindow> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            InitialWindow::Rfc5681 => f.write_str("rfc5681"),
            InitialWindow::Rfc6928 => f.write_str("rfc6928"),
            InitialWindow::Segments(count) => write!(f, "{count} packets"),
        }
    }
}

impl FromStr for Shown<InitialWindow> {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let window = match text {
            "rfc5681" => InitialWindow::Rfc5681,
            "rfc6928" => InitialWindow::Rfc6928,
            _ => packets(text)
                .and_then(|count| count.parse().ok())
                .map(InitialWindow::Segments)
                .ok_or("\"rfc5681\", \"rfc6928\", or a number of packets, as in \"2 packets\"")?,
        };
        Ok(Self(window))
    }
}

/// Returns the number in a text such as `20 packets`; `None` for a text without that word.
fn packets(text: &str) -> Option<&str> {
    let text = text.trim();
    text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")).map(str::trim)
}

/// Reads the value at `key` from its text.
fn parsed_or<T>(table: &mut Reader<'_>, key: &'static str, default: &T) -> Result<T, DocumentError>
where
    T: FromStr<Err = &'static str> + Display,
{
    let text = table.text_or(key, default.to_string())?;
    text.parse().map_err(|allowed: &str| table.refuse(key, format!("{text:?} is not known"), allowed))
}
