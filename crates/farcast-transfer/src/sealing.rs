//! Sealed transfers: the keys of both sides, and the messages about them.
//!
//! A host with a key seals. A host with a key that wants an open transfer needs `--unsealed`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farcast_core::BitRate;
use farcast_delivery::KeyNumber;
use farcast_net::{ReceiveSeal, Revoked, SealCounts, SendSeal, Unlike};
use farcast_seal::{Contents, HYBRID_KEYS_LEN, Identity, KEYS_ENTRIES, Listed, PublicIdentity, Scope, Suite};
use serde_json::{Value, json};

use crate::keys::{self, Own, Stamp, Trust};
use crate::options::SealOptions;
use crate::receive::ReceiveJob;
use crate::send::{SendJob, mftp_receiver_id};
use crate::state::{self, Sessions};
use crate::{Error, ProtocolName};

/// Returns the octets of a datagram to `to` besides its protocol's own: IP and UDP headers, and the seal.
pub fn headers(to: SocketAddr, sealed: bool) -> u16 {
    let ip = if to.is_ipv6() { 48 } else { 28 };
    ip + if sealed { farcast_seal::CONTENT_OVERHEAD as u16 } else { 0 }
}

/// Returns the same octets for datagrams that are signed one by one.
pub fn signed_headers(to: SocketAddr, sealed: bool) -> u16 {
    headers(to, sealed) + if sealed { SIGNED as u16 } else { 0 }
}

/// Additional octets of a datagram that is signed.
pub const SIGNED: usize = farcast_seal::CONTROL_OVERHEAD - farcast_seal::CONTENT_OVERHEAD;

/// Keys of a sealed transfer: this host's own and those of its peers. The debug output has no secret.
#[derive(Clone, Debug)]
pub struct Sealing {
    own: Own,
    /// The peers: receivers of what is sent, or senders of what is received.
    others: Vec<Listed>,
}

impl Sealing {
    /// Prepares to send to the receivers of `--receivers`, or to all trusted ones. Returns `None` for an open transfer.
    pub fn to_send(job: &SendJob) -> Result<Option<Self>, Error> {
        let Some(own) = own(&job.seal)? else { return Ok(None) };
        let group = &job.group;
        if job.pgm.raw {
            return Err(Error::usage(RAW));
        }
        if group.draft {
            return Err(Error::usage(
                "receivers of the draft open nothing that is sealed: add --unsealed to --draft",
            ));
        }
        let trust = Trust::load()?;
        let mut others: Vec<Listed> = trust.receivers().cloned().collect();
        let known: HashSet<&str> = others.iter().map(|one| one.name.as_str()).collect();
        if let Some(name) = group.receivers.iter().find(|name| !known.contains(name.as_str())) {
            let origin = group.origins.of(name);
            if trust.has_revoked(name) {
                return Err(Error::usage(format!(
                    "{origin}{name} is revoked: leave it out of --receivers; farcast key trust --again --as receiver takes its line back"
                )));
            }
            return Err(Error::usage(format!(
                "{origin}{name} has no key here: give farcast key trust the line that farcast key show prints there, or send in the \
                 open with --unsealed"
            )));
        }
        if !group.receivers.is_empty() {
            let listed: HashSet<&str> = group.receivers.iter().map(String::as_str).collect();
            others.retain(|one| listed.contains(one.name.as_str()));
        }
        let number = |one: &Listed| match job.protocol_name() {
            ProtocolName::Mftp | ProtocolName::OneWay => mftp_receiver_id(&one.name),
            ProtocolName::Norm | ProtocolName::Mdp | ProtocolName::Pgm => number_of(&one.key).receiver(),
        };
        // Listed hosts get keys wherever the datagrams go. For one host as destination, the list must name the
        // receivers.
        if group.receivers.is_empty() && others.len() > 1 {
            // MFTP sends keys to the address of its announcements.
            let announced = job.announce.as_ref().filter(|_| job.protocol_name() == ProtocolName::Mftp);
            let to = match announced {
                Some(announce) => announce.resolve("--announce", None)?,
                None => job.to.resolve("--to", None)?,
            };
            let to = to.ip();
            if !to.is_multicast() {
                return Err(Error::usage(format!(
                    "{to} is one host, and this one trusts {} receivers: name those that are there with --receivers",
                    others.len()
                )));
            }
        }
        if let Some((one, other)) = alike(&others, number) {
            return Err(Error::usage(format!(
                "{}{one} and {other} look alike to this protocol: leave one of them out with --receivers",
                group.origins.of(other)
            )));
        }
        if others.is_empty() {
            return Err(Error::usage(
                "this host has a key and trusts no receiver: give farcast key trust the line that farcast key show prints at \
                 each receiver, or send in the open with --unsealed",
            ));
        }
        Ok(Some(Self { own, others }))
    }

    /// Prepares to receive from the senders of `--trust`, or from all trusted ones. Returns `None` for an open
    /// transfer.
    pub fn to_receive(job: &ReceiveJob) -> Result<Option<Self>, Error> {
        let Some(own) = own(&job.seal)? else {
            if job.trust.is_empty() {
                return Ok(None);
            }
            return Err(Error::usage(
                "--trust needs a key here, which farcast key new makes; without keys, --accept takes addresses",
            ));
        };
        if job.pgm.raw {
            return Err(Error::usage(RAW));
        }
        let mut others: Vec<Listed> = Trust::load()?.senders().cloned().collect();
        if let Some(name) = job.trust.iter().find(|name| !is_in(&others, name)) {
            return Err(Error::usage(format!("{name} is no trusted sender: farcast key list shows them")));
        }
        if !job.trust.is_empty() {
            others.retain(|one| job.trust.contains(&one.name));
        }
        // The owner of a key with the same number could speak for the other.
        let pair = match job.protocol_name() {
            ProtocolName::Mftp | ProtocolName::OneWay => None,
            ProtocolName::Norm | ProtocolName::Mdp => alike(&others, |one| number_of(&one.key).sender()),
            ProtocolName::Pgm => alike(&others, |one| number_of(&one.key).source()),
        };
        if let Some((one, other)) = pair {
            return Err(Error::usage(format!(
                "{one} and {other} look alike to this protocol: name the one that is to be heard with --trust"
            )));
        }
        if others.is_empty() {
            return Err(Error::usage(
                "this host has a key and trusts no sender: give farcast key trust the line that farcast key show prints at the \
                 sender, or receive in the open with --unsealed",
            ));
        }
        Ok(Some(Self { own, others }))
    }

    /// Returns the name of the key's owner.
    pub fn name(&self) -> &str {
        &self.own.name
    }

    /// Returns the number of this host's key, by which protocols with numbered nodes know the host.
    pub fn number(&self) -> KeyNumber {
        number_of(self.identity().public())
    }

    /// Returns the peers of these names, each with the number of its key.
    pub fn numbered<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = (KeyNumber, &'a str)> {
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        let wanted = self.others.iter().filter(move |one| names.contains(one.name.as_str()));
        wanted.map(|one| (number_of(&one.key), one.name.as_str()))
    }

    /// Returns a sentence with the names of both sides and their fingerprints.
    pub fn sentence(&self) -> String {
        let own = format!("{} ({})", self.name(), self.identity().public().fingerprint());
        match &self.others[..] {
            [one] => format!("sealed between {own} and {} ({})", one.name, one.key.fingerprint()),
            others => format!("sealed between {own} and {} whom it trusts", others.len()),
        }
    }

    /// Returns facts about hybrid keys for the sender, on a path for datagrams of `datagram` octets. Returns `None` if
    /// no receiver has a hybrid key.
    pub fn hybrids(&self, datagram: usize) -> Option<Hybrids<'_>> {
        let without: Vec<&str> = self.without_hybrid().map(|one| one.name.as_str()).collect();
        let narrow = (datagram < HYBRID_KEYS_LEN).then_some(datagram);
        (without.len() < self.others.len()).then_some(Hybrids { without, narrow })
    }

    fn without_hybrid(&self) -> impl Iterator<Item = &Listed> {
        self.others.iter().filter(|one| one.key.suite() != Suite::Hybrid)
    }

    /// Makes the seal of a sending session. Its keys leave at `rate` at most, in datagrams of `datagram` octets at
    /// most.
    pub fn sender(
        &self,
        scope: Scope,
        contents: Contents,
        rate: Option<BitRate>,
        datagram: usize,
    ) -> Result<SendSeal, Error> {
        // Time has passed since the list was read: files were hashed, and the group or the network may have been waited
        // for.
        let (stamp, trust) = (Trust::stamp(), Trust::load()?);
        let trusted = signing_keys(&trust);
        let is_trusted = |one: &Listed| trusted.contains(one.key.signing());
        let (receivers, left_out): (Vec<Listed>, Vec<Listed>) =
            self.others.iter().cloned().partition(is_trusted);
        let revoked = revoked(receivers.clone(), stamp);
        let began_ms = state::session_ms().unwrap_or_else(|(began_ms, why)| {
            log::warn!(
                "{why}; if the clock is set back, receivers will take the next transfer for an earlier one: make room \
                 there, or set XDG_STATE_HOME to another place"
            );
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
        let seal = farcast_seal::Sender::new(config, state::random_secret()?);
        Ok(SendSeal::new(seal, rate, revoked, left_out))
    }

    /// Makes the seal of a receiver, which remembers the sessions that it has heard over restarts. A silent receiver
    /// does not `answer`.
    pub fn receiver(&self, scopes: Vec<Scope>, answer: bool) -> Result<ReceiveSeal, Error> {
        let (sessions, history) = Sessions::of(&self.identity().public().fingerprint())?;
        let (identity, senders) = (self.identity().clone(), self.others.clone());
        let config = farcast_seal::ReceiverConfig { identity, senders, scopes };
        let seal = farcast_seal::Receiver::new(config, history, state::random_secret()?);
        Ok(ReceiveSeal::new(seal, answer, Box::new(sessions)))
    }

    /// Returns the number of peers: receivers of what is sent, or senders of what is received.
    pub fn peers(&self) -> u32 {
        u32::try_from(self.others.len()).unwrap_or(u32::MAX)
    }

    /// Returns `true` if the keys of all receivers fit one datagram.
    pub fn is_for_few(&self) -> bool {
        let without = self.without_hybrid().count();
        without.div_ceil(KEYS_ENTRIES) + (self.others.len() - without) <= 1
    }

    fn identity(&self) -> &Identity {
        &self.own.identity
    }
}

/// Facts about a group of which some or all receivers have hybrid keys.
pub struct Hybrids<'a> {
    /// Names of the receivers without one.
    without: Vec<&'a str>,
    /// Octets of a datagram on the path, if that is too short for the key datagram of a receiver with a hybrid key.
    narrow: Option<usize>,
}

impl Hybrids<'_> {
    /// Returns the lines for people. Hybrid keys keep a quantum computer out only if every receiver of the group has
    /// one.
    pub fn lines(&self) -> impl Iterator<Item = String> {
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

    /// Returns the facts for programs.
    pub fn fields(&self) -> Value {
        json!({ "without": self.without, "keys_in_fragments": self.narrow.is_some() })
    }
}

/// Returns the scope of a session that goes `to` a group or to one host.
pub fn scope(speaks: ProtocolName, streams: bool, to: SocketAddr) -> Scope {
    let protocol = match (speaks, streams) {
        (ProtocolName::Mftp, _) => "mftp",
        (ProtocolName::OneWay, _) => "one way",
        (ProtocolName::Norm, false) => "norm",
        (ProtocolName::Norm, true) => "norm stream",
        (ProtocolName::Mdp, _) => "mdp",
        (ProtocolName::Pgm, false) => "pgm",
        (ProtocolName::Pgm, true) => "pgm stream",
    };
    Scope::of(protocol, to)
}

/// Returns the allowed scopes of sessions that a receiver hears: the group itself, or one host, as a relay may have
/// passed a session on.
pub fn scopes(speaks: ProtocolName, streams: bool, from: SocketAddr) -> Vec<Scope> {
    let host = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    [from, host].map(|to| scope(speaks, streams, to)).to_vec()
}

fn number_of(key: &PublicIdentity) -> KeyNumber {
    KeyNumber(key.fingerprint().number())
}

/// Returns a function that tells which of `receivers` are no longer trusted, since the list had the given `stamp`.
fn revoked(receivers: Vec<Listed>, mut stamp: Option<Stamp>) -> Revoked {
    let (mut there, mut seen) = (vec![true; receivers.len()], stamp);
    Box::new(move || {
        let now = Trust::stamp();
        // An editor may have written half of the list, so a change counts only once the list has stayed the same. A
        // missing or unreadable list revokes nobody.
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

/// Returns the signing keys of the trusted receivers.
fn signing_keys(trust: &Trust) -> BTreeSet<[u8; 32]> {
    trust.receivers().map(|one| *one.key.signing()).collect()
}

/// Returns the names of two hosts with the same number. A protocol could not tell them apart.
fn alike<N: Ord>(listed: &[Listed], number: impl Fn(&Listed) -> N) -> Option<(&str, &str)> {
    let mut known = BTreeMap::new();
    listed.iter().find_map(|one| known.insert(number(one), &*one.name).map(|other| (other, &*one.name)))
}

fn is_in(listed: &[Listed], name: &str) -> bool {
    listed.iter().any(|one| one.name == name)
}

/// Returns this host's key for a sealed transfer, or `None` for an open one.
///
/// # Errors
/// The key cannot be used, or there is a list of trusted hosts without a key: somebody meant to seal.
fn own(options: &SealOptions) -> Result<Option<Own>, Error> {
    if options.unsealed {
        return Ok(None);
    }
    let own = keys::own(options.key.as_deref())?;
    if own.is_none()
        && let Some(list) = Trust::file()?
    {
        return Err(Error::usage(format!(
            "this host has a list of whom it trusts, {}, and no key: put the key back, make one with farcast key new, or go on \
             in the open with --unsealed",
            list.display()
        )));
    }
    Ok(own)
}

const OPEN_LATER: &str = "who records this, and has a quantum computer one day, reads what is for the group";

const RAW: &str = "what is sealed is carried by UDP, and --raw does without: leave it out, or add --unsealed";

/// Returns the message about a datagram that this receiver cannot open, with its word for programs. With `unsealed` the
/// message tells that only open datagrams are heard.
pub fn unlike(why: Unlike, source: IpAddr, unsealed: bool) -> (&'static str, String) {
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

/// Returns the words about the seal for the end of a transfer.
pub fn closing(counts: Option<&SealCounts>) -> String {
    let Some(counts) = counts else { return "not sealed".into() };
    let refused: u64 = counts.refusals.iter().map(|(_, n)| n).sum::<u64>() + counts.misplaced;
    match refused {
        0 => "sealed".into(),
        1 => "sealed; 1 datagram was refused".into(),
        n => format!("sealed; {n} datagrams were refused"),
    }
}

/// Returns the same facts for programs.
pub fn summary(counts: Option<&SealCounts>) -> Value {
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
