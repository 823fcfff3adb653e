//! Settings of a transfer. Options of the command line override a plan, and a plan overrides defaults.

use std::net::SocketAddr;
use std::path::Path;

use farcast_lab::shipped;
use farcast_mftp::settings::{Audience, PathLimits, Rate};
use farcast_mftp::{Invited, NakTiming, Pace, PassWait, Product, SenderConfig, Settings, StatusRetry};
use farcast_sim::scenario::mftp::table;

use super::{Destination, socket_options, transmission};
use crate::args::{NakTimingArg, PassWaitArg, RateArg, SendArgs};
use crate::{Failure, sealing};

const NO_RATE: &str = "--rate is missing: give what the slowest link on the way carries, such as --rate \"20 Mbit/s\" \
    for a satellite carrier of 20 Mbit/s (everything above it is lost in its queue), or --rate max on a local network, \
    where receivers set the pace";

/// Returns the settings that `args` ask for.
pub(super) fn of(args: &SendArgs) -> Result<Settings, Failure> {
    let rate = args.rate.map(|rate| match rate {
        RateArg::Max => Rate::Max,
        RateArg::Rate(rate) => Rate::Limit(rate),
    });
    let mut settings = match (&args.protocol.plan, rate) {
        (Some(path), rate) => plan(path, rate)?,
        (None, Some(rate)) => Settings::new(rate),
        (None, None) => return Err(Failure::usage(NO_RATE)),
    };
    protocol(args, &mut settings);
    let group = &args.group;
    set(&mut settings.announce_time, group.announce_time);
    settings.wait_for = group.wait_for.or(settings.wait_for);
    settings.start_after = group.start_after.or(settings.start_after);
    settings.start_on_demand = group.start_on_enter;
    settings.late_entry &= !group.no_late_entry;
    settings.draft = group.draft;
    Ok(settings)
}

fn protocol(args: &SendArgs, settings: &mut Settings) {
    let protocol = &args.protocol;
    settings.dtu_size = protocol.dtu_size.or(settings.dtu_size);
    settings.block_size = protocol.block_size.or(settings.block_size);
    set(&mut settings.parity, protocol.parity);
    let pass_wait = protocol.pass_wait.map(|when| match when {
        PassWaitArg::Draft => PassWait::Draft,
        PassWaitArg::Fixed => PassWait::FixedTimer,
    });
    set(&mut settings.pass_wait, pass_wait);
    let nak_timing = protocol.nak_timing.map(|when| match when {
        NakTimingArg::EachBlock => NakTiming::EachBlock,
        NakTimingArg::EndOfFirstPass => NakTiming::EndOfFirstPass,
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

fn set<T>(setting: &mut T, chosen: Option<T>) {
    if let Some(chosen) = chosen {
        *setting = chosen;
    }
}

/// Returns the settings of the plan at `path`, with `rate` if that is given.
fn plan(path: &Path, rate: Option<Rate>) -> Result<Settings, Failure> {
    let document = shipped::file(path).map_err(Failure::wrong)?;
    let mut top = document.root();
    let settings = (|| {
        let mut table = top.table("protocol")?;
        table.choice_or("name", &[("mftp", ())], ())?;
        let rate = table::rate(&mut table, rate)?;
        let settings = table::read(&mut table, rate, false)?;
        table.finish()?;
        top.finish()?;
        Ok(settings)
    })();
    settings.map_err(|error: farcast_scenario::DocumentError| Failure::usage(error.to_string()))
}

/// Returns the configuration of a sender of `product`, which begins with a list of files of `list` octets.
pub(super) fn configuration(
    args: &SendArgs,
    (to, settings, sealed): (Destination, &Settings, bool),
    list: u64,
    product: Product,
    server: SocketAddr,
) -> SenderConfig {
    let group = &args.group;
    let audience = if group.unlimited {
        Audience::Anybody
    } else if group.receivers.is_empty() {
        Audience::Open(group.limit)
    } else {
        Audience::Listed(group.receivers.iter().map(|label| Invited::new(label)).collect())
    };
    let mtu = farcast_net::path_mtu(to.private, &socket_options(&args.socket)).ok().flatten();
    let way = PathLimits { headers: sealing::headers(to.private, sealed), mtu, granule: 1 };
    let config = settings.sender(product, (server, to.public, to.private), &audience, way);
    // Receivers that have an older version compare it with the list of files.
    let list_segments = u32::try_from(list.div_ceil(config.dtu_size.into())).unwrap_or(u32::MAX);
    // A signed datagram grows by more octets than a datagram of content.
    let datagram = config.datagram.saturating_sub(if sealed { sealing::SIGNED } else { 0 });
    SenderConfig { transmission: transmission(), list_segments, datagram, ..config }
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use farcast_core::Span;
    use farcast_mftp::Group;
    use farcast_scenario::document::Document;
    use farcast_sim::scenario::Scenario;

    use super::*;
    use crate::args::{Cli, Command};

    const FIXED: &str = "pass_wait = \"fixed\"\nnak_timing = \"end_of_first_pass\"";

    /// Returns the configuration with which `farcast send` with these arguments sends 1 MB.
    fn sent(args: &[&str]) -> SenderConfig {
        let fixed = ["farcast", "send", "file", "--to", "239.255.54.2:5402", "--interface", "lo"];
        let cli = Cli::try_parse_from(fixed.iter().chain(args)).unwrap();
        let Command::Send(args) = cli.command else { panic!("send") };
        let to = Destination::of(&args).unwrap();
        let product = Product { id: [1; 32], size: 1_000_000, name: "file".into() };
        configuration(&args, (to, &of(&args).unwrap(), false), 0, product, "10.0.0.1:5402".parse().unwrap())
    }

    /// Returns the configuration of a scenario with these lines in its `[protocol]`.
    fn simulated(lines: &str) -> SenderConfig {
        let text = format!("receivers = 3\n[protocol]\nfile = \"1 MB\"\n{lines}");
        let scenario = Scenario::read(&Document::parse("test.toml", &text).unwrap()).unwrap();
        scenario.sender().unwrap().clone()
    }

    #[test]
    fn a_scenario_at_its_defaults_sends_as_the_command_line_does() {
        for rate in ["2 Mbit/s", "64 kbit/s", "500 Mbit/s", "max"] {
            let open = simulated(&format!("rate = \"{rate}\"\ngroup_limit = 1024"));
            let mut real = sent(&["--rate", rate]);
            real.transmission = open.transmission;
            assert_eq!(real, open, "{rate}");
            let closed = simulated(&format!("rate = \"{rate}\"\ngroup = \"closed\""));
            let mut real = sent(&["--rate", rate, "--receivers", "a,b,c"]);
            // The simulator chooses the receivers' names itself.
            (real.transmission, real.group) = (closed.transmission, closed.group.clone());
            assert!(matches!(&closed.group, Group::Closed(listed) if listed.len() == 3));
            assert_eq!(real, closed, "{rate}, listed");
        }
    }

    #[test]
    fn the_draft_preset_is_the_draft_alone() {
        let draft = simulated("preset = \"draft\"\nrate = \"1 Mbit/s\"");
        let plain = SenderConfig {
            group: Group::OpenLimited { limit: 1 << 22 },
            pace: Pace::Rate {
                rate: "1 Mbit/s".parse().unwrap(),
                overhead: 28,
                credit: Span::ZERO,
                granule: 1,
            },
            ask_twice: false,
            silence: Span::ZERO,
            transfer_limit: Span::from_secs(30 * 24 * 3600),
            ..SenderConfig::new(draft.product.clone(), draft.server, draft.private)
        };
        assert_eq!(draft, plain);
    }

    #[test]
    fn nobody_is_waited_for_where_nobody_registers() {
        let config = simulated("rate = \"1 Mbit/s\"\ngroup = \"open_unlimited\"\nstart_receivers = 2");
        assert_eq!((config.start.receivers, config.start.after), (None, Some(Span::from_secs(3))));
    }

    #[test]
    fn options_and_keys_are_the_same_settings() {
        for (args, lines) in [
            (&["--parity", "16"][..], "parity = 16"),
            (&["--parity", "off", "--dtu-size", "500 B"], "parity = 0\ndtu_size = \"500 B\""),
            (&["--block-size", "100", "--spread", "2 s"], "block_size = 100\nspread = \"2 s\""),
            (&["--pass-wait", "fixed", "--nak-timing", "end-of-first-pass"], FIXED),
            (&["--rtt", "3 s", "--silence", "9 s"], "round_trip = \"3 s\"\nsilence = \"9 s\""),
            (&["--time-limit", "1 h", "--burst", "1 MiB"], "transfer_limit = \"1 h\"\nburst = \"1 MiB\""),
            (&["--wait-for", "2", "--no-late-entry"], "start_receivers = 2\nlate_entry = false"),
            (
                &["--start-after", "9 s", "--announce-time", "8 s"],
                "start_after = \"9 s\"\nannounce_limit = \"8 s\"",
            ),
            (
                &["--status-retry", "block+4rtt", "--status-retries", "3"],
                "[protocol.srt]\nn = 4\nretries = 3",
            ),
            (&["--status-retry", "2 s"], "[protocol.srt]\ntime = \"2 s\""),
        ] {
            let keys = simulated(&format!("rate = \"2 Mbit/s\"\ngroup_limit = 1024\n{lines}"));
            let mut real = sent(&[&["--rate", "2 Mbit/s"], args].concat());
            real.transmission = keys.transmission;
            assert_eq!(real, keys, "{args:?}");
        }
    }
}
