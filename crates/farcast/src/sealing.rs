//! Sealed transfers: whether one is, for whom, and what is said of it.
//!
//! Who has a key seals; who has one and wants a transfer in the open says so.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use farcast_core::BitRate;
use farcast_delivery::KeyNumber;
use farcast_mftp::ClientId;
use farcast_net::{ReceiveSeal, Revoked, SealCounts, SendSeal, Unlike};
use farcast_seal::{Contents, HYBRID_KEYS_LEN, Identity, KEYS_ENTRIES, Listed, PublicIdentity, Scope, Suite};
use farcast_sim::scenario::Sealed;
use serde_json::{Value, json};

use crate::Failure;
use crate::args::{ReceiveArgs, SendArgs};
use crate::keys::{self, Own, Stamp, Trust};
use crate::protocols::Speaks;
use crate::state::{self, Sessions};
use crate::stdio;

/// Octets of a datagram to `to` besides what its protocol says in it.
pub(crate) fn headers(to: SocketAddr, sealed: bool) -> u16 {
    let ip = if to.is_ipv6() { 48 } else { 28 };
    ip + if sealed { farcast_seal::CONTENT_OVERHEAD as u16 } else { 0 }
}

/// The same where each datagram is signed.
pub(crate) fn signed_headers(to: SocketAddr, sealed: bool) -> u16 {
    headers(to, sealed) + if sealed { SIGNED as u16 } else { 0 }
}

/// Octets that a datagram grows by more that is signed.
pub(crate) const SIGNED: usize = farcast_seal::CONTROL_OVERHEAD - farcast_seal::CONTENT_OVERHEAD;

/// What `send` and `receive` are told of keys.
#[derive(Args, Debug)]
#[command(next_help_heading = "Seal")]
pub(crate) struct SealArgs {
    /// Neither seal nor open anything, although this host has a key (farcast key): whoever hears the group can read it,
    /// and nobody is proved.
    #[arg(long)]
    pub(crate) unsealed: bool,
    /// Seal with the key in this file instead of the one that farcast key new has made.
    #[arg(long, value_name = "FILE", conflicts_with = "unsealed")]
    pub(crate) key: Option<PathBuf>,
}

/// Who seals, and for whom.
pub(crate) struct Sealing {
    own: Own,
    /// The others: receivers of what is sent, senders of what is received.
    others: Vec<Listed>,
}

impl Sealing {
    /// For sending to the receivers that are listed, or to all that are trusted; `None` in the open.
    pub(crate) fn to_send(args: &SendArgs) -> Result<Option<Self>, Failure> {
        let Some(own) = own(&args.seal)? else { return Ok(None) };
        let group = &args.group;
        if args.pgm.raw {
            return Err(Failure::usage(RAW));
        }
        if group.draft {
            return Err(Failure::usage(
                "receivers of the draft open nothing that is sealed: add --unsealed to --draft",
            ));
        }
        let trust = Trust::load()?;
        let mut others: Vec<Listed> = trust.receivers().cloned().collect();
        if let Some(name) = group.receivers.iter().find(|name| !is_in(&others, name)) {
            if trust.has_revoked(name) {
                return Err(Failure::usage(format!(
                    "{name} is revoked: leave it out of --receivers; farcast key trust --again --as receiver takes its line back"
                )));
            }
            return Err(Failure::usage(format!(
                "{name} has no key here: give farcast key trust the line that farcast key show prints there, or send in the \
                 open with --unsealed"
            )));
        }
        if !group.receivers.is_empty() {
            others.retain(|one| group.receivers.contains(&one.name));
        }
        let number = |one: &Listed| match args.speaks() {
            Speaks::Mftp | Speaks::OneWay => ClientId::from_name(&one.name).0,
            Speaks::Norm | Speaks::Mdp | Speaks::Pgm => number_of(&one.key).receiver(),
        };
        // Keys reach whoever is listed, by whatever way; what goes to one host is for whom it is meant for alone.
        if group.receivers.is_empty() && others.len() > 1 {
            // By MFTP keys go where announcements go.
            let announced = args.announce.as_ref().filter(|_| args.speaks() == Speaks::Mftp);
            let to = match announced {
                Some(announce) => announce.resolve("--announce", None)?,
                None => args.to.resolve("--to", None)?,
            };
            let to = to.ip();
            if !to.is_multicast() {
                return Err(Failure::usage(format!(
                    "{to} is one host, and this one trusts {} receivers: name those that are there with --receivers",
                    others.len()
                )));
            }
        }
        if let Some((one, other)) = alike(&others, number) {
            return Err(Failure::usage(format!(
                "{one} and {other} look alike to this protocol: leave one of them out with --receivers"
            )));
        }
        if others.is_empty() {
            return Err(Failure::usage(
                "this host has a key and trusts no receiver: give farcast key trust the line that farcast key show prints at \
                 each receiver, or send in the open with --unsealed",
            ));
        }
        Ok(Some(Self { own, others }))
    }

    /// For receiving from the senders that are listed, or from all that are trusted; `None` in the open.
    pub(crate) fn to_receive(args: &ReceiveArgs) -> Result<Option<Self>, Failure> {
        let Some(own) = own(&args.seal)? else {
            if args.trust.is_empty() {
                return Ok(None);
            }
            return Err(Failure::usage(
                "--trust needs a key here, which farcast key new makes; without keys, --accept takes addresses",
            ));
        };
        if args.pgm.raw {
            return Err(Failure::usage(RAW));
        }
        let mut others: Vec<Listed> = Trust::load()?.senders().cloned().collect();
        if let Some(name) = args.trust.iter().find(|name| !is_in(&others, name)) {
            return Err(Failure::usage(format!("{name} is no trusted sender: farcast key list shows them")));
        }
        if !args.trust.is_empty() {
            others.retain(|one| args.trust.contains(&one.name));
        }
        // Who has made a key that is alike could speak for the other.
        let pair = match args.speaks() {
            Speaks::Mftp | Speaks::OneWay => None,
            Speaks::Norm | Speaks::Mdp => alike(&others, |one| number_of(&one.key).sender()),
            Speaks::Pgm => alike(&others, |one| number_of(&one.key).source()),
        };
        if let Some((one, other)) = pair {
            return Err(Failure::usage(format!(
                "{one} and {other} look alike to this protocol: name the one that is to be heard with --trust"
            )));
        }
        if others.is_empty() {
            return Err(Failure::usage(
                "this host has a key and trusts no sender: give farcast key trust the line that farcast key show prints at the \
                 sender, or receive in the open with --unsealed",
            ));
        }
        Ok(Some(Self { own, others }))
    }

    /// What the owner of the key is called.
    pub(crate) fn name(&self) -> &str {
        &self.own.name
    }

    /// By what protocols know the owner of the key that number their nodes.
    pub(crate) fn number(&self) -> KeyNumber {
        number_of(self.identity().public())
    }

    /// The receivers of these names, or senders, by their numbers.
    pub(crate) fn numbered<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = (KeyNumber, &'a str)> {
        let wanted = self.others.iter().filter(|one| names.contains(&one.name));
        wanted.map(|one| (number_of(&one.key), one.name.as_str()))
    }

    /// Who is proved to whom.
    pub(crate) fn sentence(&self) -> String {
        let own = format!("{} ({})", self.name(), self.identity().public().fingerprint());
        match &self.others[..] {
            [one] => format!("sealed between {own} and {} ({})", one.name, one.key.fingerprint()),
            others => format!("sealed between {own} and {} whom it trusts", others.len()),
        }
    }

    /// What its sender should know, on a way for datagrams of so many octets; `None` where no receiver has a hybrid key.
    pub(crate) fn hybrids(&self, datagram: usize) -> Option<Hybrids<'_>> {
        let without: Vec<&str> = self.without_hybrid().map(|one| one.name.as_str()).collect();
        let narrow = (datagram < HYBRID_KEYS_LEN).then_some(datagram);
        (without.len() < self.others.len()).then_some(Hybrids { without, narrow })
    }

    fn without_hybrid(&self) -> impl Iterator<Item = &Listed> {
        self.others.iter().filter(|one| one.key.suite() != Suite::Hybrid)
    }

    /// A session of sending, whose keys leave at `rate` at most, in datagrams of so many octets.
    pub(crate) fn sender(
        &self,
        (scope, contents): (Scope, Contents),
        (rate, datagram): (Option<BitRate>, usize),
    ) -> Result<SendSeal, Failure> {
        // Since the list was read, files were hashed, and the group or the network may have been waited for.
        let (stamp, trust) = (Trust::stamp(), Trust::load()?);
        let trusted = signing_keys(&trust);
        let is_trusted = |one: &Listed| trusted.contains(one.key.signing());
        let (receivers, left_out): (Vec<Listed>, Vec<Listed>) =
            self.others.iter().cloned().partition(is_trusted);
        let revoked = revoked(receivers.clone(), stamp);
        let began_ms = state::session_ms().unwrap_or_else(|(began_ms, why)| {
            stdio::say(&format!(
                "farcast: {why}; if the clock is set back, receivers will take the next transfer for an earlier one: make room \
                 there, or set XDG_STATE_HOME to another place"
            ));
            began_ms
        });
        let config = farcast_seal::SenderConfig {
            identity: self.identity().clone(),
            receivers,
            began_ms,
            scope,
            contents,
            datagram,
        };
        let seal = farcast_seal::Sender::new(config, state::random_secret()?.0);
        Ok(SendSeal::new(seal, rate, (revoked, left_out)))
    }

    /// What a receiver opens and seals with; what it has heard is remembered over restarts. Some never `answer`.
    pub(crate) fn receiver(&self, scopes: Vec<Scope>, answer: bool) -> Result<ReceiveSeal, Failure> {
        let (sessions, history) = Sessions::of(&self.identity().public().fingerprint())?;
        let (identity, senders) = (self.identity().clone(), self.others.clone());
        let config = farcast_seal::ReceiverConfig { identity, senders, scopes };
        let seal = farcast_seal::Receiver::new(config, history, state::random_secret()?.0);
        Ok(ReceiveSeal::new(seal, answer, Box::new(sessions)))
    }

    /// For whom a prediction has to seal, whose keys leave in datagrams of so many octets.
    pub(crate) fn predicted(&self, datagram: usize) -> Sealed {
        Sealed { listed: u32::try_from(self.others.len()).unwrap_or(u32::MAX), datagram }
    }

    /// Whether one datagram has the keys of all.
    pub(crate) fn is_for_few(&self) -> bool {
        let without = self.without_hybrid().count();
        without.div_ceil(KEYS_ENTRIES) + (self.others.len() - without) <= 1
    }

    fn identity(&self) -> &Identity {
        &self.own.identity
    }
}

/// That receivers have hybrid keys, some or all.
pub(crate) struct Hybrids<'a> {
    /// Those who have none.
    without: Vec<&'a str>,
    /// Octets of a datagram that passes, where that is less than keys for one with a hybrid key have.
    narrow: Option<usize>,
}

impl Hybrids<'_> {
    /// As people are told. What keeps a quantum computer out is of no use for the group while one of it lacks that.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let covered = match self.without[..] {
            [] => {
                "all receivers have hybrid keys: what is recorded stays shut for quantum computers too".into()
            }
            [one] => format!("{one} has no hybrid key: {OPEN_LATER}"),
            [one, ref others @ ..] => {
                format!("{one} and {} more have no hybrid key: {OPEN_LATER}", others.len())
            }
        };
        let narrow = self.narrow.map(|datagram| {
            format!(
                "the way carries datagrams of {datagram} octets, and those with keys for receivers with a hybrid key have \
                 {HYBRID_KEYS_LEN}: they leave in fragments, of which none may be lost"
            )
        });
        [covered].into_iter().chain(narrow)
    }

    /// The same for programs.
    pub(crate) fn fields(&self) -> Value {
        json!({ "without": self.without, "keys_in_fragments": self.narrow.is_some() })
    }
}

/// What a session is for that goes `to` a group, or to one host.
pub(crate) fn scope(speaks: Speaks, streams: bool, to: SocketAddr) -> Scope {
    let protocol = match (speaks, streams) {
        (Speaks::Mftp, _) => "mftp",
        (Speaks::OneWay, _) => "one way",
        (Speaks::Norm, false) => "norm",
        (Speaks::Norm, true) => "norm stream",
        (Speaks::Mdp, _) => "mdp",
        (Speaks::Pgm, false) => "pgm",
        (Speaks::Pgm, true) => "pgm stream",
    };
    Scope::of(protocol, to)
}

/// What sessions may be for that are received from a group: for that, or for one host. A relay may have sent that on.
pub(crate) fn scopes(speaks: Speaks, streams: bool, from: SocketAddr) -> Vec<Scope> {
    let host = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    [from, host].map(|to| scope(speaks, streams, to)).to_vec()
}

fn number_of(key: &PublicIdentity) -> KeyNumber {
    KeyNumber(key.fingerprint().number())
}

/// Tells which of `receivers` are trusted no more since the list was as at `stamp`.
fn revoked(receivers: Vec<Listed>, mut stamp: Option<Stamp>) -> Revoked {
    let (mut there, mut seen) = (vec![true; receivers.len()], stamp);
    Box::new(move || {
        let now = Trust::stamp();
        // Who edits the list may have it half done: what it says counts once it has stayed so. Without a list, or with one
        // that cannot be read, nobody has said anything.
        let stays = std::mem::replace(&mut seen, now) == now;
        if now == stamp || now.is_none() || !stays {
            return Vec::new();
        }
        let Ok(trust) = Trust::load() else { return Vec::new() };
        stamp = now;
        let trusted = signing_keys(&trust);
        if trust.is_empty() {
            return Vec::new();
        }
        let gone = |&at: &usize| there[at] && !trusted.contains(receivers[at].key.signing());
        let gone: Vec<usize> = (0..receivers.len()).filter(gone).collect();
        for &at in &gone {
            there[at] = false;
        }
        gone
    })
}

/// The signing keys of those whom we send to.
fn signing_keys(trust: &Trust) -> BTreeSet<[u8; 32]> {
    trust.receivers().map(|one| *one.key.signing()).collect()
}

/// Two that a protocol takes for one, which knows them by these numbers.
fn alike<N: Ord>(listed: &[Listed], number: impl Fn(&Listed) -> N) -> Option<(&str, &str)> {
    let mut known = BTreeMap::new();
    listed.iter().find_map(|one| known.insert(number(one), &*one.name).map(|other| (other, &*one.name)))
}

fn is_in(listed: &[Listed], name: &str) -> bool {
    listed.iter().any(|one| one.name == name)
}

/// Returns this host's key where the transfer is to be sealed, and `None` where it is to be in the open.
///
/// # Errors
/// The key cannot be used, or there is none beside a list of whom to trust: somebody meant to seal.
fn own(args: &SealArgs) -> Result<Option<Own>, Failure> {
    if args.unsealed {
        return Ok(None);
    }
    let own = keys::own(args.key.as_deref())?;
    if own.is_none()
        && let Some(list) = Trust::file()?
    {
        return Err(Failure::usage(format!(
            "this host has a list of whom it trusts, {}, and no key: put the key back, make one with farcast key new, or go on \
             in the open with --unsealed",
            list.display()
        )));
    }
    Ok(own)
}

const OPEN_LATER: &str = "who records this, and has a quantum computer one day, reads what is for the group";

const RAW: &str = "what is sealed is carried by UDP, and --raw does without: leave it out, or add --unsealed";

/// What is said of something that another seal would open, and its word for programs.
/// A receiver that is to hear only what is `unsealed` is told that.
pub(crate) fn unlike(why: Unlike, source: IpAddr, unsealed: bool) -> (&'static str, String) {
    let passed_over = format!("passed over: what comes from {source}");
    match why {
        Unlike::Sealed if unsealed => (
            "sealed",
            format!("{passed_over} is sealed, and --unsealed hears only what is not: leave it out"),
        ),
        Unlike::Sealed => (
            "sealed",
            format!(
                "{passed_over} is sealed, and this host has no key: farcast key new makes one, and its line goes to the sender"
            ),
        ),
        Unlike::Unsealed => {
            ("not_sealed", format!("{passed_over} is not sealed; receive with --unsealed if that is to be"))
        }
        Unlike::Untrusted => (
            "not_trusted",
            format!(
                "{passed_over} is sealed by somebody who is not trusted: farcast key trust takes the line that farcast key \
                 show prints there"
            ),
        ),
        Unlike::NotForUs => (
            "no_key",
            format!(
                "{passed_over} is sealed by a trusted sender, and no key for this host has come so far: its sender has to \
                 trust the line that farcast key show prints here, and to name this host where it sends with --receivers"
            ),
        ),
        Unlike::Elsewhere => (
            "other_scope",
            format!(
                "{passed_over} is sealed for another protocol or group; --protocol and --from have to be as at its sender"
            ),
        ),
        Unlike::Foreign => (
            "foreign",
            format!(
                "{passed_over} cannot be read by the protocol that is received here: --protocol (or --one-way) has to be as at \
                 its sender, and what is no farcast's needs another port"
            ),
        ),
        Unlike::Earlier => (
            "earlier",
            format!(
                "{passed_over} is of a transfer before the last one of its sender; if it is new, the sender's clock was set \
                 back, or somebody else sends with its key"
            ),
        ),
    }
}

/// What is said at the end of a transfer.
pub(crate) fn closing(counts: Option<&SealCounts>) -> String {
    let Some(counts) = counts else { return "not sealed".into() };
    let refused: u64 = counts.refusals.iter().map(|(_, n)| n).sum::<u64>() + counts.misplaced;
    match refused {
        0 => "sealed".into(),
        1 => "sealed; 1 datagram was refused".into(),
        n => format!("sealed; {n} datagrams were refused"),
    }
}

/// The same for programs.
pub(crate) fn summary(counts: Option<&SealCounts>) -> Value {
    let Some(counts) = counts else { return Value::Null };
    let refused: Vec<Value> = counts
        .refusals
        .iter()
        .map(|(reason, n)| json!({ "reason": reason.to_string(), "count": n }))
        .collect();
    json!({ "refused": refused, "misplaced": counts.misplaced, "unsealable": counts.unsealable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealing(others: &[(&str, bool)]) -> Sealing {
        let identity = |hybrid| {
            if hybrid { Identity::hybrid_from_seed([7; 32]) } else { Identity::from_seed([7; 32]) }
        };
        let listed = |&(name, hybrid): &(&str, bool)| Listed {
            name: name.into(),
            key: identity(hybrid).public().clone(),
        };
        let own = Own { name: "ann".into(), identity: identity(false) };
        Sealing { own, others: others.iter().map(listed).collect() }
    }

    #[test]
    fn a_sender_is_told_who_has_no_hybrid_key() {
        let said = |others: &[(&str, bool)], datagram| {
            let sealing = sealing(others);
            sealing.hybrids(datagram).map(|hybrids| hybrids.lines().collect::<Vec<_>>()).unwrap_or_default()
        };
        assert!(said(&[("bob", false), ("eve", false)], 500).is_empty());
        let all = said(&[("bob", true), ("zoe", true)], HYBRID_KEYS_LEN);
        assert!(all.len() == 1 && all[0].starts_with("all receivers have hybrid keys"), "{all:?}");
        let one = said(&[("bob", true), ("eve", false)], 1472);
        assert!(one.len() == 1 && one[0].starts_with("eve has no hybrid key: who records this"), "{one:?}");
        let some = said(&[("bob", true), ("eve", false), ("zoe", false)], 1472);
        assert!(some[0].starts_with("eve and 1 more have no hybrid key"), "{some:?}");
        let narrow = said(&[("bob", true)], HYBRID_KEYS_LEN - 1);
        assert!(
            narrow[1].contains("datagrams of 1321 octets") && narrow[1].contains("have 1322"),
            "{narrow:?}"
        );
    }

    #[test]
    fn two_that_a_protocol_takes_for_one_are_found() {
        let others = sealing(&[("bob", false), ("eve", false)]).others;
        assert_eq!(alike(&others, |one| number_of(&one.key).sender()), Some(("bob", "eve")), "one key");
        assert_eq!(alike(&others, |one| one.name.clone()), None);
    }

    #[test]
    fn few_are_those_whose_keys_are_one_datagram() {
        let of = |plain: usize, hybrid: usize| {
            let others = [vec![("a", false); plain], vec![("b", true); hybrid]].concat();
            sealing(&others).is_for_few()
        };
        assert_eq!([of(15, 0), of(16, 0), of(0, 1), of(1, 1), of(0, 2)], [true, false, true, false, false]);
    }
}
