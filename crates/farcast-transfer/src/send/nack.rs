//! Parts of sending that NORM, MDP and PGM share. Their receivers do not register, and ask for the data that they lack.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farcast_core::BitRate;
use farcast_delivery::nack::{MOST_OBJECTS, NodeId};
use farcast_delivery::{KeyNumber, Vouched};
use farcast_files::names::first_meeting;
use farcast_files::{Entry, Outgoing, safe_path, shown_name};
use farcast_net::SendSeal;
use farcast_seal::Contents;

use super::options::NackOptions;
use super::{Preparation, Scanned, SendJob, datagram_to};
use crate::sealing::{self, Sealing};
use crate::{Error, node};

impl NackOptions {
    /// Returns the node id of the sender at `source`.
    pub(super) fn node(&self, source: SocketAddr, sealing: Option<&Sealing>) -> NodeId {
        let chosen = sealing.map(|sealing| sealing.number().sender()).or(self.node);
        chosen.map_or_else(|| node::of_sender(source.ip()), NodeId)
    }
}

/// Refuses options that do not go with a seal.
fn check(job: &SendJob, sealing: Option<&Sealing>) -> Result<(), Error> {
    if sealing.is_some() && job.nack.node.is_some() {
        return Err(Error::usage("--node: in what is sealed the node id follows from the key"));
    }
    if sealing.is_some() && job.protocol.option("answers") == Some("group") {
        return Err(Error::usage(
            "--answers group: what is sealed is answered to the sender, as nobody else could open it",
        ));
    }
    Ok(())
}

/// Makes the seal of a transfer to `to`, if it is sealed. Receivers do not register, so every receiver gets the same
/// keys. When a receiver finds forged data, the sender may be unable to repair it, so every datagram is signed.
pub fn seal(
    job: &SendJob,
    to: SocketAddr,
    rate: BitRate,
    sealing: Option<&Sealing>,
) -> Result<Option<SendSeal>, Error> {
    let datagram = datagram_to(job, to);
    let scope = sealing::scope(job.protocol_name(), job.stream.stream, to);
    sealing.map(|sealing| sealing.sender(scope, Contents::Signed, Some(rate), datagram)).transpose()
}

/// Scans the files that are sent, an object each.
pub(super) fn scan(job: &SendJob, note: &mut dyn FnMut(Preparation<'_>)) -> Result<Vec<Outgoing>, Error> {
    let mut skipped = Vec::new();
    let files = super::hashed(note, |progress| {
        let (files, left_out) = Outgoing::each(&job.paths, progress)?;
        skipped = left_out;
        Ok(files)
    })?;
    for one in &skipped {
        note(Preparation::Skipped(one));
    }
    check_meeting(job, &files)?;
    if files.len() > MOST_OBJECTS {
        return Err(Error::usage(format!("{} files: at most {MOST_OBJECTS} at a time", files.len())));
    }
    Ok(files)
}

/// Refuses two files that would have one name at receivers. A receiver that takes no hidden names renames a file whose
/// name begins with a dot.
fn check_meeting(job: &SendJob, files: &[Outgoing]) -> Result<(), Error> {
    let entries = files.iter().flat_map(|one| one.manifest().entries());
    let names: Vec<Vec<u8>> = entries.map(|entry| said_of(job, entry).1).collect();
    for hidden in [true, false] {
        let mapping = |name: &[u8]| safe_path(name, hidden, "");
        if let Some(met) = first_meeting(names.iter().map(Vec::as_slice), mapping) {
            return Err(Error::usage(format!(
                "\"{}\" and \"{}\" would both be {} at receivers: rename one, or send them one after the other into \
                 directories of their own",
                shown_name(&met.first),
                shown_name(&met.second),
                shown_name(&met.name)
            )));
        }
    }
    Ok(())
}

/// Checks that a datagram has room for the name of each file.
pub(super) fn check_names(job: &SendJob, files: &Scanned, room: &NameRoom) -> Result<(), Error> {
    for entry in files.objects.iter().flat_map(|one| one.manifest().entries()) {
        let (_, name, _) = said_of(job, entry);
        let needed = name.len() + room.beside;
        if needed <= room.segment && name.len() <= room.longest {
            continue;
        }
        let fits = name.len() <= room.longest && needed <= LARGEST_SEGMENT;
        let remedy = if fits { format!("--segment-size {needed} has room for it, ") } else { String::new() };
        return Err(Error::usage(format!(
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

/// Returns the receivers in words, if `named` receivers are named.
pub fn whom(named: usize) -> String {
    match named {
        0 => "whoever listens".to_owned(),
        1 => "1 named receiver".to_owned(),
        n => format!("{n} named receivers"),
    }
}

/// Returns the nodes of `--receivers`, with the user's names for them. In a sealed transfer the nodes follow from keys.
pub(super) fn named(job: &SendJob, sealing: Option<&Sealing>) -> Result<BTreeMap<NodeId, String>, Error> {
    check(job, sealing)?;
    let receivers = &job.group.receivers;
    if let Some(sealing) = sealing {
        let node = |(number, name): (KeyNumber, &str)| (NodeId(number.receiver()), name.to_owned());
        return Ok(sealing.numbered(receivers).map(node).collect());
    }
    let mut nodes = BTreeMap::new();
    for name in receivers {
        if let Some(other) = nodes.insert(node::of_name(name)?, name.clone()) {
            return Err(Error::usage(format!("--receivers: {other} and {name} are the same node")));
        }
    }
    Ok(nodes)
}

/// Returns the description of a file for receivers: its size in octets, its name and its digest with other metadata.
/// The name is the path of the file. A file that is sent alone has the name that the user gave it.
pub(super) fn said_of(job: &SendJob, entry: &Entry) -> (u64, Vec<u8>, Option<Vouched>) {
    let vouched = entry.digest().map(|digest| Vouched { digest, mode: entry.mode, mtime_ns: entry.mtime_ns });
    let alone = job.paths.len() == 1 && !entry.path.contains(&b'/');
    let name = job.name.as_ref().filter(|_| alone);
    (entry.size(), name.map_or_else(|| entry.path.clone(), |name| name.clone().into_bytes()), vouched)
}
