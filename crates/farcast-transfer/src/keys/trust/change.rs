//! Changes of the list.

use farcast_seal::{Fingerprint, Listed};

use super::super::own::renewed;
use super::{Item, Line, Revoked, Role, Trust, Trusted};
use crate::Error;

/// Result of adding a host to the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// The host is trusted now.
    New,
    /// The host was trusted before, and has a later agreement key now.
    Renewed,
    /// The host was trusted before, and has another role now.
    Changed,
    /// Nothing has changed.
    Same,
}

impl Trust {
    /// Trusts a host in the given `role`, or else in its role so far, or else in both roles. A revoked key needs
    /// `again`. The role of a revoked name or key is not remembered, so `role` has to be given then.
    ///
    /// # Errors
    /// The list contradicts the name, the key or the missing role.
    pub fn add(&mut self, listed: Listed, role: Option<Role>, again: bool) -> Result<(Added, Role), Error> {
        let fingerprint = listed.key.fingerprint();
        if !again && let Some(revoked) = self.revoked().find(|one| one.fingerprint == fingerprint) {
            let name = revoked.name.as_ref().map_or(String::new(), |name| format!(" as {name}"));
            return Err(Error::usage(format!(
                "the key {fingerprint} was revoked{name}: say --again if it is to be trusted all the same"
            )));
        }
        let known = self.lines.iter_mut().find_map(|line| match &line.item {
            Item::Trusted(known) if known.listed.key.fingerprint() == fingerprint => {
                Some((known.clone(), line))
            }
            _ => None,
        });
        if let Some((known, line)) = known {
            let added = judge(&known, &listed, role)?;
            let role = role.unwrap_or(known.role);
            if added != Added::Same {
                *line = Line::new(Item::Trusted(Trusted { role, listed }));
            }
            return Ok((added, role));
        }
        if let Some(other) = self.trusted().find(|one| one.listed.name == listed.name) {
            let (name, other) = (&listed.name, other.listed.key.fingerprint());
            return Err(Error::usage(format!(
                "{name} has another key here, {other}: if it is to have this one, {fingerprint}, instead, first say \
                 `farcast key revoke {name}`; if that is somebody else, give this one another name with --name"
            )));
        }
        let is = |one: &Revoked| one.fingerprint == fingerprint || one.name.as_deref() == Some(&listed.name);
        if role.is_none() && self.revoked().any(is) {
            let name = &listed.name;
            return Err(Error::usage(format!(
                "{name} was revoked here, so it has to be said what the key {fingerprint} is trusted as: add --as receiver, \
                 --as sender or --as both"
            )));
        }
        self.lines.retain(
            |line| !matches!(&line.item, Item::Revoked(revoked) if revoked.fingerprint == fingerprint),
        );
        let role = role.unwrap_or(Role::Both);
        self.lines.push(Line::new(Item::Trusted(Trusted { role, listed })));
        Ok((Added::New, role))
    }

    /// Trusts the host that has the name or fingerprint `who` no more. A fingerprint is remembered even if it is not
    /// known.
    ///
    /// # Errors
    /// Nobody has this name or fingerprint, or `who` fits two hosts.
    pub fn revoke(&mut self, who: &str) -> Result<Revoked, Error> {
        let named: Option<Fingerprint> = who.parse().ok();
        let is = |one: &&Trusted| one.listed.name == who || Some(one.listed.key.fingerprint()) == named;
        let found: Vec<&Trusted> = self.trusted().filter(is).collect();
        let revoked = match (&found[..], named) {
            ([_, _, ..], _) => {
                return Err(Error::usage(format!(
                    "{who} is the name of one and the fingerprint of another: give the other one's name, or the \
                     fingerprint of the first"
                )));
            }
            ([one], _) => {
                let fingerprint = one.listed.key.fingerprint();
                Revoked { name: Some(one.listed.name.clone()), fingerprint }
            }
            // A name may happen to have twenty letters, and a mistyped name is no fingerprint.
            ([], Some(fingerprint)) if who.eq_ignore_ascii_case(&fingerprint.to_string()) => {
                if let Some(revoked) = self.revoked().find(|one| one.fingerprint == fingerprint) {
                    return Ok(revoked.clone());
                }
                Revoked { name: None, fingerprint }
            }
            ([], _) => {
                return Err(Error::usage(format!(
                    "nobody who is trusted is called {who} or has it as a fingerprint: see `farcast key list`"
                )));
            }
        };
        let fingerprint = revoked.fingerprint;
        self.lines.retain(
            |line| !matches!(&line.item, Item::Trusted(one) if one.listed.key.fingerprint() == fingerprint),
        );
        self.lines.push(Line::new(Item::Revoked(revoked.clone())));
        Ok(revoked)
    }
}

/// Compares `listed` with the trusted host of the same signing key.
fn judge(known: &Trusted, listed: &Listed, role: Option<Role>) -> Result<Added, Error> {
    let (old, name, fingerprint) = (&known.listed, &known.listed.name, listed.key.fingerprint());
    if *name != listed.name {
        return Err(Error::usage(format!(
            "the key {fingerprint} is here as {name}, not as {}: say --name {name}, or change the name in the file",
            listed.name
        )));
    }
    let (before, now) = (old.key.renewals(), listed.key.renewals());
    if now < before {
        return Err(Error::usage(format!(
            "this is an earlier key of {name} ({}) than the one here ({}): get the line that `farcast key show` prints \
             there today",
            renewed(now),
            renewed(before)
        )));
    }
    if now == before && old.key.agreement() != listed.key.agreement() {
        return Err(Error::usage(format!(
            "{name} has two different keys here that say: {}; say `farcast key renew` there, and trust what that prints",
            renewed(now)
        )));
    }
    match () {
        () if now > before => Ok(Added::Renewed),
        () if role.is_some_and(|role| role != known.role) => Ok(Added::Changed),
        () => Ok(Added::Same),
    }
}
