//! Parts of `send` that NORM, MDP and PGM share. Their receivers do not register, and ask for the data that they lack.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use farcast_core::BitRate;
use farcast_delivery::{KeyNumber, Vouched};
use farcast_files::names::first_meeting;
use farcast_files::{Entry, Outgoing, safe_name, shown_name};
use farcast_net::SendSeal;
use farcast_norm::settings::Parity;
use farcast_norm::{MOST_OBJECTS, NodeId};
use farcast_seal::Contents;

use crate::Failure;
use crate::args::{RateArg, SendArgs};
use crate::node;
use crate::output::Output;
use crate::progress::size;
use crate::protocols::{NORM_AND_MDP, NORM_MDP_AND_PGM};
use crate::sealing::{self, Sealing};
use crate::send::datagram_to;

/// How they behave.
#[derive(Args, Debug)]
#[command(next_help_heading = NORM_AND_MDP)]
pub(crate) struct NackArgs {
    /// Octets of a segment [default: by NORM and PGM what fits 1500 bytes with all headers, by MDP 1024].
    #[arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "OCTETS", value_parser = clap::value_parser!(u16).range(4..=65_000))]
    pub(super) segment_size: Option<u16>,
    /// Parity symbols that leave with each block before anybody has asked, or "auto": by NORM as many as what is
    /// expected to be lost asks for, by MDP none [default: auto; by PGM, where it is a number, 0].
    #[arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "N|auto", value_parser = ahead)]
    pub(super) parity_ahead: Option<Parity>,
    /// How many receivers there are, where they are not named: they wait the longer before they ask, the more they are
    /// [default: as many as named, or 10000, by PGM 64; by MDP receivers are told themselves].
    #[arg(help_heading = NORM_MDP_AND_PGM, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) group_size: Option<u32>,
    /// Whom receivers answer, for --predict: the group, or the sender alone. They decide [default: group].
    #[arg(long, value_enum, value_name = "WHOM")]
    answers: Option<Answers>,
    /// How often the end is said, and named receivers are asked whether they have it [default: 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) robust: Option<u32>,
    /// The sender's own node id, 1 to 4294967294 [default: from its address].
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..=0xFFFF_FFFE))]
    node: Option<u32>,
}

/// Whom receivers answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Answers {
    /// The group, so that who hears it need not ask for the same.
    Group,
    /// The sender alone.
    Sender,
}

fn ahead(text: &str) -> Result<Parity, String> {
    match text {
        "auto" => Ok(Parity::Auto),
        number => {
            let symbols = number.parse().ok().filter(|symbols| *symbols <= 254);
            symbols.map(Parity::Symbols).ok_or_else(|| "it must be \"auto\", or a number up to 254".into())
        }
    }
}

impl NackArgs {
    /// Returns `true` if receivers answer the sender alone, or `None` without the option.
    pub(super) fn unicast(&self) -> Option<bool> {
        self.answers.map(|whom| whom == Answers::Sender)
    }

    /// Returns the node id of the sender at `source`.
    pub(super) fn node(&self, source: SocketAddr, sealing: Option<&Sealing>) -> NodeId {
        let chosen = sealing.map(|sealing| sealing.number().sender()).or(self.node);
        chosen.map_or_else(|| node::of_sender(source.ip()), NodeId)
    }

    /// Refuses options that do not go with a seal.
    fn check(&self, sealing: Option<&Sealing>) -> Result<(), Failure> {
        if sealing.is_some() && self.node.is_some() {
            return Err(Failure::usage("--node: in what is sealed the node id follows from the key"));
        }
        if sealing.is_some() && self.answers == Some(Answers::Group) {
            return Err(Failure::usage(
                "--answers group: what is sealed is answered to the sender, as nobody else could open it",
            ));
        }
        Ok(())
    }
}

/// Makes the seal of a transfer to `to`, if it is sealed. Receivers do not register, so every receiver gets the same
/// keys. When a receiver finds forged data, the sender may be unable to repair it, so every datagram is signed.
pub(super) fn seal(
    args: &SendArgs,
    (to, rate): (SocketAddr, BitRate),
    sealing: Option<&Sealing>,
) -> Result<Option<SendSeal>, Failure> {
    let datagram = datagram_to(args, to);
    let scope = sealing::scope(args.speaks(), args.stream.stream, to);
    sealing.map(|sealing| sealing.sender((scope, Contents::Signed), (Some(rate), datagram))).transpose()
}

const NO_RATE: &str = "--rate is missing: give what the slowest link on the way carries, such as --rate \"20 Mbit/s\" \
    for a satellite carrier of 20 Mbit/s (everything above it is lost in its queue)";
const HOW_MANY: &str = "--predict has to know how many receive: list them with --receivers, or give their number with --group-size";

/// Returns the settings of the plan, or those that `new` makes from the rate. Without a plan the rate is required. `by`
/// is the protocol's name.
pub(super) fn base<S>(
    args: &SendArgs,
    by: &str,
    plan: impl FnOnce(&farcast_scenario::Document, Option<BitRate>) -> Result<S, farcast_scenario::DocumentError>,
    new: impl FnOnce(BitRate) -> S,
) -> Result<S, Failure> {
    let rate = match args.rate {
        Some(RateArg::Max) => {
            return Err(Failure::usage(format!(
                "--rate max is MFTP's, where receivers set the pace: by {by} give a rate, as in --rate \"20 Mbit/s\""
            )));
        }
        Some(RateArg::Rate(rate)) => Some(rate),
        None => None,
    };
    match (&args.protocol.plan, rate) {
        (Some(path), rate) => {
            let document = farcast_lab::shipped::file(path).map_err(Failure::wrong)?;
            plan(&document, rate).map_err(|error| Failure::usage(error.to_string()))
        }
        (None, Some(rate)) => Ok(new(rate)),
        (None, None) => Err(Failure::usage(NO_RATE)),
    }
}

pub(super) fn set<T>(setting: &mut T, chosen: Option<T>) {
    if let Some(chosen) = chosen {
        *setting = chosen;
    }
}

/// Returns the number of receivers for a prediction: that of the named ones, or the number that the user gave.
pub(super) fn how_many(named: &BTreeMap<NodeId, String>, said: Option<u32>) -> Result<u32, Failure> {
    match (named.len(), said) {
        (0, said) => said.ok_or_else(|| Failure::usage(HOW_MANY)),
        (named, _) => Ok(u32::try_from(named).unwrap_or(u32::MAX)),
    }
}

/// Scans the files that are sent, an object each.
pub(super) fn scan(args: &SendArgs, output: &mut Output) -> Result<Vec<Outgoing>, Failure> {
    let mut skipped = Vec::new();
    let files = super::hashed(output, |progress| {
        let (files, left_out) = Outgoing::each(&args.paths, progress)?;
        skipped = left_out;
        Ok(files)
    })?;
    super::tell_skipped(&skipped, output);
    check_meeting(args, &files)?;
    if files.len() > MOST_OBJECTS {
        return Err(Failure::usage(format!("{} files: at most {MOST_OBJECTS} at a time", files.len())));
    }
    Ok(files)
}

/// Refuses two files that would have one name at receivers. A file's name there has no directories. A receiver that
/// takes no hidden names renames a file whose name begins with a dot.
fn check_meeting(args: &SendArgs, files: &[Outgoing]) -> Result<(), Failure> {
    let entries = files.iter().flat_map(|one| one.manifest().entries());
    let names: Vec<Vec<u8>> = entries.map(|entry| said_of(args, entry).1).collect();
    for hidden in [true, false] {
        let mapping = |name: &[u8]| safe_name(name, hidden, "");
        if let Some(met) = first_meeting(names.iter().map(Vec::as_slice), mapping) {
            return Err(Failure::usage(format!(
                "\"{}\" and \"{}\" would be one file at receivers, {}, as this protocol sends names without directories: \
                 rename one, send them one after the other into directories of their own, or choose --protocol mftp",
                shown_name(&met.first),
                shown_name(&met.second),
                shown_name(&met.name)
            )));
        }
    }
    Ok(())
}

/// Checks that a datagram has room for the name of each file.
pub(super) fn check_names(args: &SendArgs, outgoing: &[Outgoing], room: &NameRoom) -> Result<(), Failure> {
    for entry in outgoing.iter().flat_map(|one| one.manifest().entries()) {
        let (_, name, _) = said_of(args, entry);
        let needed = name.len() + room.beside;
        if needed <= room.segment && name.len() <= room.longest {
            continue;
        }
        let fits = name.len() <= room.longest && needed <= LARGEST_SEGMENT;
        let remedy = if fits { format!("--segment-size {needed} has room for it, ") } else { String::new() };
        return Err(Failure::usage(format!(
            "the name of the file {} has {} octets, and {} has room for {} here: {remedy}--protocol mftp takes any, or give \
             the file a shorter name",
            shown_name(&name),
            name.len(),
            room.by,
            room.longest.min(room.segment.saturating_sub(room.beside)),
        )));
    }
    Ok(())
}

/// Largest segment that `--segment-size` takes, in octets.
const LARGEST_SEGMENT: usize = 65_000;

/// Room for the names of files, in octets.
pub(super) struct NameRoom {
    /// Name of the protocol.
    pub(super) by: &'static str,
    /// Size of a segment, which holds the whole description of a file.
    pub(super) segment: usize,
    /// Size of the description without the name.
    pub(super) beside: usize,
    /// Length of the longest name, whatever the size of segments.
    pub(super) longest: usize,
}

pub(super) fn octets(outgoing: &[Outgoing]) -> u64 {
    outgoing.iter().map(|one| one.manifest().content_len()).sum()
}

/// Prints the files, the protocol, the destination and the receivers of a transfer.
pub(super) fn announce(
    output: &mut Output,
    name: &str,
    outgoing: &[Outgoing],
    (by, to, named): (&str, SocketAddr, usize),
    (args, sealing): (&SendArgs, Option<&Sealing>),
) {
    let whom = whom(named);
    let what = if outgoing.len() == 1 { "1 file".to_owned() } else { format!("{} files", outgoing.len()) };
    let octets = size(octets(outgoing));
    output.line(&format!("sending {name} ({what}, {octets}) by {by} to {to}, for {whom}"));
    super::tell_seal(args, to, sealing, output);
}

/// Returns the receivers in words, if `named` receivers are named.
pub(super) fn whom(named: usize) -> String {
    match named {
        0 => "whoever listens".to_owned(),
        1 => "1 named receiver".to_owned(),
        n => format!("{n} named receivers"),
    }
}

/// Returns the nodes of `--receivers`, with the user's names for them. In a sealed transfer the nodes follow from keys.
pub(super) fn named(args: &SendArgs, sealing: Option<&Sealing>) -> Result<BTreeMap<NodeId, String>, Failure> {
    args.nack.check(sealing)?;
    let receivers = &args.group.receivers;
    if let Some(sealing) = sealing {
        let node = |(number, name): (KeyNumber, &str)| (NodeId(number.receiver()), name.to_owned());
        return Ok(sealing.numbered(receivers).map(node).collect());
    }
    let mut nodes = BTreeMap::new();
    for name in receivers {
        if let Some(other) = nodes.insert(node::of_name(name)?, name.clone()) {
            return Err(Failure::usage(format!("--receivers: {other} and {name} are the same node")));
        }
    }
    Ok(nodes)
}

/// Returns the description of a file for receivers: its size in octets, its name and its digest with other metadata.
/// The name is the path of the file. A file that is sent alone has the name that the user gave it.
pub(super) fn said_of(args: &SendArgs, entry: &Entry) -> (u64, Vec<u8>, Option<Vouched>) {
    let vouched = entry.digest().map(|digest| Vouched { digest, mode: entry.mode, mtime_ns: entry.mtime_ns });
    let alone = args.paths.len() == 1 && !entry.path.contains(&b'/');
    let name = args.name.as_ref().filter(|_| alone);
    (entry.size(), name.map_or_else(|| entry.path.clone(), |name| name.clone().into_bytes()), vouched)
}
