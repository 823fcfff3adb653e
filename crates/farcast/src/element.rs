//! `farcast element` and `farcast repair`: PGM network elements and repairers between a source and its receivers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use farcast_core::Time;
use farcast_core::units::Bytes;
use farcast_delivery::{ElementEngine as _, Figure, FigureValue};
use farcast_net::{ElementCounts, ElementNotice, ElementOptions, Port};
use farcast_pgm::{Codec, Element, ElementConfig, StoreConfig};
use farcast_transfer::names;
use serde_json::{Map, Value, json};

use crate::args::{ElementArgs, RepairArgs};
use crate::interrupt::interrupted_service;
use crate::output::Output;
use crate::text::Text;
use crate::{Exit, Failure};

/// UDP port of PGM groups where none is given: that of OpenPGM's programs.
const UDP_PORT: u16 = 7500;
/// Octets that a store may take beyond its limit, for contents that are just being replaced.
const MARGIN: u64 = 1 << 20;
/// Smallest content of a TPDU in octets that is expected. The number of TPDUs that a store holds follows from it.
const SMALL_TPDU: u64 = 256;

pub(crate) fn run(args: &ElementArgs) -> Result<Exit, Failure> {
    names::none_empty("--interfaces", &args.interfaces)?;
    let mut known = args.interfaces.clone();
    known.sort_unstable();
    if let Some((twice, _)) = known.iter().zip(&known[1..]).find(|(one, next)| one == next) {
        return Err(Failure::usage(format!("interface {twice} is named twice in --interfaces")));
    }
    if known.len() < 2 {
        return Err(Failure::usage(
            "--interfaces names one interface, and an element stands between two at least; separate them by commas",
        ));
    }
    let options = ElementOptions {
        interfaces: args.interfaces.clone(),
        groups: groups(&args.group, 0)?,
        keep: 0,
        receive_buffer: octets(args.receive_buffer.0),
        ttl: 1,
    };
    serve(&options, Codec { raw: true }, None, &args.output)
}

pub(crate) fn repair(args: &RepairArgs) -> Result<Exit, Failure> {
    if args.upstream == args.downstream {
        return Err(Failure::usage(
            "--upstream and --downstream name the same interface; a repairer stands between two",
        ));
    }
    let cache = args.cache.0;
    if cache == 0 {
        return Err(Failure::usage("--cache is 0, and a repairer without a store is `farcast element`"));
    }
    let options = ElementOptions {
        interfaces: vec![args.upstream.clone(), args.downstream.clone()],
        groups: groups(&args.group, if args.udp { UDP_PORT } else { 0 })?,
        keep: cache.saturating_add(MARGIN),
        receive_buffer: octets(args.receive_buffer.0),
        ttl: args.ttl,
    };
    let tpdus = usize::try_from(cache / SMALL_TPDU).unwrap_or(usize::MAX).clamp(1024, 1 << 24);
    let store = StoreConfig { octets: cache, tpdus, ..StoreConfig::new() };
    serve(&options, Codec { raw: !args.udp }, Some(store), &args.output)
}

fn octets(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the groups, with `port` where the text gives none. A `port` of 0 means that groups have no ports.
fn groups(texts: &[String], port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let read = |text: &String| {
        let with_port = || text.parse::<SocketAddrV4>().ok().filter(|_| port != 0);
        let group =
            text.parse::<Ipv4Addr>().ok().map(|group| SocketAddrV4::new(group, port)).or_else(with_port);
        group.filter(|group| group.ip().is_multicast()).map(SocketAddr::V4).ok_or_else(|| {
            let form = if port == 0 { "such as 239.255.1.1" } else { "such as 239.255.1.1:7500" };
            Failure::usage(format!("--group {text} is no IPv4 multicast group, {form}"))
        })
    };
    texts.iter().map(read).collect()
}

fn serve(
    options: &ElementOptions,
    codec: Codec,
    store: Option<StoreConfig>,
    output: &crate::args::OutputArgs,
) -> Result<Exit, Failure> {
    let stop = interrupted_service(output.log.is_some())?;
    let mut output = Output::new(output)?;
    let repairs = store.is_some();
    let make = |ports: &[Port]| {
        let addresses = ports.iter().map(|port| IpAddr::V4(port.address)).collect();
        let router_alert = codec.raw;
        Element::new(ElementConfig { store, router_alert, ..ElementConfig::new(addresses) })
    };
    let mut observer = |_: Time, engine: &Element, notice: ElementNotice<'_>| match notice {
        ElementNotice::Listening { ports, routed, outlives } => {
            let hears: Vec<Value> =
                ports.iter().map(|port| json!({ "interface": port.name, "address": port.address })).collect();
            output.event(
                "listening",
                json!({ "ports": hears, "kernel_forwards": routed, "outlives": outlives.ok() }),
            );
            let between: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            output.line(&format!("between {}", between.join(", ")));
            if routed {
                output
                    .line("a multicast routing daemon has the kernel forward; data that pass are left to it");
            } else {
                output.line(&match outlives {
                    Ok(table) => format!("if this is killed, the kernel forwards: nft table netdev {table}"),
                    Err(why) => format!("if this is killed, nothing is forwarded: {why}"),
                });
            }
        }
        ElementNotice::Going(counts) => {
            output.event("progress", said(engine, counts, &options.interfaces));
            output.line(&told(engine, counts, repairs));
        }
        ElementNotice::Refused(why) => {
            output.event("blocked", json!({ "reason": why.to_string() }));
            output.line(&why.to_string());
        }
        ElementNotice::Waiting(error) => {
            output.event("waiting", json!({ "reason": error.to_string() }));
            output.line(&format!("waiting: {error}"));
        }
    };
    let served = farcast_net::serve(options, &codec, make, &stop, &mut observer);
    let (engine, counts) = served?;
    output.event("summary", said(&engine, &counts, &options.interfaces));
    output.result(&Text::line(&told(&engine, &counts, repairs)));
    Ok(Exit::Done)
}

/// Returns the figures of the element as JSON, for programs.
fn said(engine: &Element, counts: &ElementCounts, names: &[String]) -> Value {
    let mut object = Map::new();
    for Figure { name, value, .. } in engine.figures() {
        let value = match value {
            FigureValue::Count(count) => json!(count),
            FigureValue::Number(number) => json!(number),
            FigureValue::Counts(counts) => json!(counts),
        };
        // The prefix adds nothing: all figures here are those of an element.
        object.insert(name.strip_prefix("element.").unwrap_or(name).into(), value);
    }
    let rejects: Map<String, Value> =
        engine.rejects().iter().map(|(reason, count)| (reason.to_string(), json!(count))).collect();
    let ports: Vec<Value> = names
        .iter()
        .zip(&counts.ports)
        .map(|(name, port)| {
            json!({
                "interface": name,
                "packets_heard": port.heard,
                "octets_heard": port.octets_heard,
                "packets_said": port.said,
                "octets_said": port.octets_said,
            })
        })
        .collect();
    object.insert("ports".into(), json!(ports));
    object.insert("packets_passed".into(), json!(counts.forwarded));
    object.insert("store_octets".into(), json!(counts.kept_octets));
    object.insert("malformed".into(), json!(counts.malformed));
    object.insert("off_the_tree".into(), json!(counts.off_the_tree));
    object.insert("unsent".into(), json!(counts.unsent));
    object.insert("not_kept".into(), json!(counts.not_kept));
    object.insert("rejects".into(), Value::Object(rejects));
    Value::Object(object)
}

/// Returns the figures of the element as a line of text, for people.
fn told(engine: &Element, net: &ElementCounts, repairs: bool) -> String {
    let counts = engine.counts();
    let passed = format!(
        "{} NAKs heard, {} sent upstream, {} packets passed",
        counts.naks, counts.forwarded, net.forwarded
    );
    if repairs {
        format!("{} repairs served from {} kept, {passed}", counts.served, Bytes(net.kept_octets))
    } else {
        format!("{} repairs forwarded, {passed}", counts.repairs)
    }
}
