//! `farcast model`: throughput and transfer times from closed formulas.

mod args;
mod report;

use std::num::NonZeroU32;

use farcast_core::Span;
use farcast_core::units::Bytes;
use farcast_model::{Bound, ModelError, Path, Throughput, cardwell, mathis, mlppp, packets, pftk, pgmcc};

pub(crate) use args::ModelArgs;
use args::{CardwellArgs, MathisArgs, MlpppArgs, Name, PathArgs, PftkArgs, PgmccArgs, TcpArgs, WindowArg};
use report::{Line, Report, Value};

use crate::output::Output;
use crate::{Exit, Failure};

/// Smallest default of the first retransmission timeout (RFC 6298 §2.4).
const LEAST_TIMEOUT: Span = Span::from_secs(1);
/// Default of the initial window in packets (RFC 6928 §2).
const INITIAL_WINDOW: u32 = 10;

/// Runs the command.
pub(crate) fn run(args: &ModelArgs) -> Result<Exit, Failure> {
    let (report, json) = match &args.name {
        Name::Pftk(args) => (pftk(args)?, args.show.json),
        Name::Mathis(args) => (mathis(args)?, args.show.json),
        Name::Cardwell(args) => (cardwell(args)?, args.show.json),
        Name::Mlppp(args) => (mlppp(args)?, args.json),
        Name::Pgmcc(args) => (pgmcc(args)?, args.show.json),
    };
    let output = Output::of(json, false);
    if json {
        output.object(&report);
    } else {
        output.result(&report.text());
    }
    Ok(Exit::Done)
}

fn refused(error: ModelError) -> Failure {
    Failure::usage(error.to_string())
}

fn pftk(args: &PftkArgs) -> Result<Report, Failure> {
    let mss = mss(args.show.mss)?;
    let path = path(&args.path, &args.tcp, mss);
    let full = pftk::full(&path).map_err(refused)?;
    let approximate = pftk::approximate(&path).map_err(refused)?;
    let mut found = steady(&full.sent, mss);
    found.extend([
        rate("received_packets_per_s", "of these arrive", full.received_packets_per_s),
        held("unconstrained_window_packets", "window at a loss, unconstrained", full.unconstrained_window),
        Line::number("timeout_probability", "a loss ends in a timeout", full.timeout_probability),
        rate("approximate_packets_per_s", "by the approximation", approximate.packets_per_s),
        Line::new("approximate_bit_per_s", "", Value::BitRate(approximate.bits_per_s(mss))),
        Line::new("approximate_bound", "bounded by", bound(approximate.bound)),
    ]);
    let mut given = given_path(&path);
    given.extend(given_sizes(mss, args.size));
    found.extend(transfer_time(&full.sent, args.size, mss));
    Ok(Report { model: "pftk", title: "PFTK: TCP in steady state, with timeouts", given, found })
}

fn mathis(args: &MathisArgs) -> Result<Report, Failure> {
    let mss = mss(args.show.mss)?;
    let PathArgs { loss, rtt, window } = args.path;
    let (packets_per_ack, window) = (args.packets_per_ack, limit(window, mss));
    let input = mathis::Input { loss, rtt, packets_per_ack, window };
    let throughput = mathis::throughput(&input).map_err(refused)?;
    let mut given = given_link(&args.path, window);
    given.push(given_acks(packets_per_ack));
    given.extend(given_sizes(mss, args.size));
    let mut found = steady(&throughput, mss);
    found.push(Line::number("constant", "C", mathis::constant(packets_per_ack).map_err(refused)?));
    found.extend(transfer_time(&throughput, args.size, mss));
    Ok(Report { model: "mathis", title: "Mathis: TCP in steady state, without timeouts", given, found })
}

fn cardwell(args: &CardwellArgs) -> Result<Report, Failure> {
    let mss = mss(args.show.mss)?;
    let transfer = cardwell_transfer(args, mss);
    let latency = transfer.latency().map_err(refused)?;
    let mut given = given_path(&transfer.path);
    given.extend(given_transfer(&transfer));
    given.extend(given_sizes(mss, Some(args.size)));
    let mut found = found_times(&latency);
    let total_s = latency.total_s();
    found.extend([
        rate("throughput_packets_per_s", "throughput", transfer.segments as f64 / total_s),
        Line::new("throughput_bit_per_s", "", Value::BitRate(args.size.0 as f64 * 8.0 / total_s)),
        Line::number("loss_probability", "any packet is lost", latency.loss_probability),
        held("slow_start_packets", "slow start sends", latency.slow_start_segments),
        held("slow_start_window_packets", "and reaches a window of", latency.slow_start_window),
        Line::new("bound", "which is bounded by", slow_start_bound(latency.slow_start_bound)),
    ]);
    Ok(Report { model: "cardwell", title: "Cardwell: a TCP transfer of any size", given, found })
}

fn cardwell_transfer(args: &CardwellArgs, mss: NonZeroU32) -> cardwell::Transfer {
    let path = path(&args.path, &args.tcp, mss);
    let most = path.window.map_or(INITIAL_WINDOW, |packets| packets as u32);
    let handshake = cardwell::Handshake { timeout: args.syn_timeout, return_loss: args.return_loss };
    cardwell::Transfer {
        segments: packets(args.size, mss),
        initial_window: args.initial_window.unwrap_or(INITIAL_WINDOW.min(most).max(1)),
        path,
        delayed_ack: args.delayed_ack,
        handshake: (!args.no_handshake).then_some(handshake),
    }
}

fn mlppp(args: &MlpppArgs) -> Result<Report, Failure> {
    let mss = mss(args.mss)?;
    let window = match args.window {
        // The paper gives windows as sizes, and rounding up to whole packets reproduces its numbers.
        WindowArg::Size(_) => limit(args.window, mss).map(f64::ceil),
        WindowArg::None | WindowArg::Packets(_) => limit(args.window, mss),
    };
    let MlpppArgs { loss, rtt, timeout, packets_per_ack, .. } = *args;
    let path = Path { loss, rtt, timeout, packets_per_ack, window };
    let bundle = mlppp::Bundle { links: args.links, time_between_drops: args.time_between_drops, path };
    let model = mlppp::Model::new(bundle).map_err(refused)?;
    let mut given = vec![
        Line::new("links", "links", Value::Count(bundle.links.into(), "")),
        seconds("time_between_drops_s", "time between drops of a link", bundle.time_between_drops),
    ];
    given.extend(given_path(&path));
    given.extend(given_sizes(mss, args.size));
    let throughput = model.throughput();
    let mut found = steady(&throughput, mss);
    found.extend(found_drops(&model, mss));
    found.extend(transfer_time(&throughput, args.size, mss));
    Ok(Report { model: "mlppp", title: "TCP over a multilink bundle whose calls drop", given, found })
}

fn pgmcc(args: &PgmccArgs) -> Result<Report, Failure> {
    let mss = mss(args.show.mss)?;
    let PathArgs { loss, rtt, window } = args.path;
    let input = pgmcc::Input { loss, rtt, window: limit(window, mss) };
    let throughput = pgmcc::throughput(&input).map_err(refused)?;
    let mut given = given_link(&args.path, input.window);
    given.extend(given_sizes(mss, args.size));
    let mut found = steady(&throughput, mss);
    let slowness = pgmcc::slowness_s(&input).map_err(refused)?;
    found.push(Line::seconds("slowness_s", "M, which chooses the acker", slowness));
    found.extend(transfer_time(&throughput, args.size, mss));
    Ok(Report { model: "pgmcc", title: "PGMCC: a PGM session as its acker sees it", given, found })
}

fn mss(size: Bytes) -> Result<NonZeroU32, Failure> {
    let mss = u32::try_from(size.0).ok().and_then(NonZeroU32::new);
    mss.ok_or_else(|| {
        Failure::usage(format!(
            "the data in a packet is {} octets; it must be 1 to 4294967295 octets",
            size.0
        ))
    })
}

fn path(args: &PathArgs, tcp: &TcpArgs, mss: NonZeroU32) -> Path {
    Path {
        loss: args.loss,
        rtt: args.rtt,
        timeout: tcp.timeout.unwrap_or((args.rtt * 2).max(LEAST_TIMEOUT)),
        packets_per_ack: tcp.packets_per_ack,
        window: limit(args.window, mss),
    }
}

/// Returns the window limit in packets.
fn limit(window: WindowArg, mss: NonZeroU32) -> Option<f64> {
    match window {
        WindowArg::None => None,
        WindowArg::Packets(packets) => Some(packets),
        WindowArg::Size(size) => Some(size.0 as f64 / f64::from(mss.get())),
    }
}

fn rate(key: &'static str, label: &'static str, packets_per_s: f64) -> Line {
    Line::new(key, label, Value::Number(packets_per_s, "packets/s"))
}

fn held(key: &'static str, label: &'static str, packets: f64) -> Line {
    Line::new(key, label, Value::Number(packets, "packets"))
}

fn seconds(key: &'static str, label: &'static str, span: Span) -> Line {
    Line::seconds(key, label, span.as_secs_f64())
}

fn given_link(args: &PathArgs, window: Option<f64>) -> Vec<Line> {
    vec![
        Line::number("loss", "loss probability", args.loss.get()),
        seconds("rtt_s", "round trip", args.rtt),
        given_window(window),
    ]
}

fn given_window(window: Option<f64>) -> Line {
    held("window_packets", "window", window.unwrap_or(f64::INFINITY))
}

fn given_acks(packets_per_ack: u32) -> Line {
    Line::new("packets_per_ack", "packets for each ACK", Value::Count(packets_per_ack.into(), ""))
}

fn given_path(path: &Path) -> Vec<Line> {
    vec![
        Line::number("loss", "loss probability", path.loss.get()),
        seconds("rtt_s", "round trip", path.rtt),
        seconds("timeout_s", "first timeout", path.timeout),
        given_window(path.window),
        given_acks(path.packets_per_ack),
    ]
}

fn given_transfer(transfer: &cardwell::Transfer) -> Vec<Line> {
    let mut given = vec![
        Line::new(
            "initial_window_packets",
            "initial window",
            Value::Count(transfer.initial_window.into(), "packets"),
        ),
        seconds("delayed_ack_wait_s", "a delayed ACK waits", transfer.delayed_ack),
    ];
    if let Some(handshake) = &transfer.handshake {
        given.push(seconds("syn_timeout_s", "timeout of a SYN", handshake.timeout));
        given.push(Line::number("return_loss", "loss probability on return", handshake.return_loss.get()));
    }
    given
}

fn given_sizes(mss: NonZeroU32, size: Option<Bytes>) -> Vec<Line> {
    let mut given =
        vec![Line::new("mss_bytes", "data in a packet", Value::Count(mss.get().into(), "octets"))];
    if let Some(size) = size {
        given.push(Line::new("size_bytes", "size", Value::Count(size.0, "octets")));
        given.push(Line::new("size_packets", "", Value::Count(packets(size, mss), "packets")));
    }
    given
}

/// Returns the parts of a transfer's time.
fn found_times(latency: &cardwell::Latency) -> Vec<Line> {
    vec![
        Line::seconds("transfer_time_s", "transfer time", latency.total_s()),
        Line::seconds("handshake_s", "  handshake", latency.handshake_s),
        Line::seconds("slow_start_s", "  slow start", latency.slow_start_s),
        Line::seconds("loss_s", "  first loss", latency.loss_s),
        Line::seconds("congestion_avoidance_s", "  congestion avoidance", latency.congestion_avoidance_s),
        Line::seconds("delayed_ack_s", "  first delayed ACK", latency.delayed_ack_s),
    ]
}

/// Returns the effects of call drops on a bundle.
fn found_drops(model: &mlppp::Model, mss: NonZeroU32) -> Vec<Line> {
    let without = model.without_drops();
    vec![
        rate("without_drops_packets_per_s", "without drops", without.packets_per_s),
        Line::new("without_drops_bit_per_s", "", Value::BitRate(without.bits_per_s(mss))),
        held("unconstrained_window_packets", "window at a loss, unconstrained", model.unconstrained_window()),
        Line::seconds("drop_interval_s", "a call drops every", model.interval_s()),
        Line::seconds("timeout_after_drop_s", "and costs timeouts of", model.timeout_s()),
        Line::number("share_sending", "share of time without them", model.share_sending()),
    ]
}

/// Returns the lines that all steady states share.
fn steady(throughput: &Throughput, mss: NonZeroU32) -> Vec<Line> {
    vec![
        rate("throughput_packets_per_s", "throughput", throughput.packets_per_s),
        Line::new("throughput_bit_per_s", "", Value::BitRate(throughput.bits_per_s(mss))),
        Line::new("bound", "bounded by", bound(throughput.bound)),
    ]
}

fn transfer_time(throughput: &Throughput, size: Option<Bytes>, mss: NonZeroU32) -> Option<Line> {
    let time = |size| throughput.transfer_time_s(packets(size, mss));
    size.map(|size| Line::seconds("transfer_time_s", "transfer time", time(size)))
}

const fn bound(bound: Bound) -> Value {
    match bound {
        Bound::Loss => Value::Word("loss", "losses"),
        Bound::Window => Value::Word("window", "the window"),
    }
}

const fn slow_start_bound(bound: Bound) -> Value {
    match bound {
        Bound::Loss => Value::Word("loss", "a loss or the end"),
        Bound::Window => Value::Word("window", "the window"),
    }
}
