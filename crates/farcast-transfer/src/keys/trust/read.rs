//! Parser of the list, which checks every line and refuses contradictions.

use std::collections::HashMap;

use farcast_seal::{Fingerprint, Listed};

use super::super::{lines, name};
use super::{Item, Line, Revoked, Role, Trust, Trusted};
use crate::Error;

impl Trust {
    /// Returns the list that `octets` hold. The `origin` names their source in messages.
    pub fn parse(octets: &[u8], origin: &str) -> Result<Self, Error> {
        let mut trust = Self::default();
        let mut seen = Seen::default();
        for (number, line) in lines::of(octets, origin)? {
            let wrong = |what: String| lines::wrong(origin, number, what);
            let item = item(&lines::words(line)).map_err(wrong)?;
            seen.add(&item, number).map_err(wrong)?;
            trust.lines.push(Line { text: line.to_owned(), item });
        }
        Ok(trust)
    }
}

fn item(words: &[&str]) -> Result<Item, String> {
    // The message does not repeat the words: somebody may have put a secret here.
    let [role, name, key] = words else {
        return match words {
            [] => Ok(Item::Comment),
            _ => Err("a line has a role, a name and a key, and nothing else".into()),
        };
    };
    let role = match *role {
        "sender" => Role::Sender,
        "receiver" => Role::Receiver,
        "both" => Role::Both,
        "revoked" => return revoked(name, key).map(Item::Revoked),
        _ => return Err("a line begins with sender, receiver, both or revoked".into()),
    };
    Ok(Item::Trusted(Trusted { role, listed: listed(name, key)? }))
}

/// Returns a host by the two words of the line that `farcast key show` prints.
pub fn listed(name: &str, key: &str) -> Result<Listed, String> {
    if key.starts_with("farcast-secret-") {
        return Err("this is a secret key, which only its owner should have: here belongs the line that \
                    `farcast key show` prints"
            .into());
    }
    name::check(name)?;
    let key = key.parse().map_err(|error| format!("the key of {name}: {error}"))?;
    Ok(Listed { name: name.to_owned(), key })
}

fn revoked(name: &str, fingerprint: &str) -> Result<Revoked, String> {
    let name = if name == "-" { None } else { Some(name) };
    name.map_or(Ok(()), name::check)?;
    let fingerprint: Fingerprint = fingerprint
        .parse()
        .map_err(|_| "behind the name belongs a fingerprint: five groups of four letters or digits")?;
    Ok(Revoked { name: name.map(Into::into), fingerprint })
}

/// Numbers of the lines in which names and keys stand.
#[derive(Default)]
struct Seen {
    names: HashMap<String, usize>,
    trusted: HashMap<Fingerprint, usize>,
    revoked: HashMap<Fingerprint, usize>,
}

impl Seen {
    fn add(&mut self, item: &Item, number: usize) -> Result<(), String> {
        let either = |line: &usize| {
            format!("this key is revoked, and trusted as well, see line {line}: take out one of the two")
        };
        match item {
            Item::Trusted(Trusted { listed, .. }) => {
                let fingerprint = listed.key.fingerprint();
                if let Some(line) = self.names.insert(listed.name.clone(), number) {
                    return Err(format!(
                        "{} is in line {line} already: take out one of the two",
                        listed.name
                    ));
                }
                if let Some(line) = self.trusted.insert(fingerprint, number) {
                    return Err(format!("this key is in line {line} already: take out one of the two"));
                }
                self.revoked.get(&fingerprint).map_or(Ok(()), |line| Err(either(line)))
            }
            Item::Revoked(Revoked { fingerprint, .. }) => {
                self.revoked.insert(*fingerprint, number);
                self.trusted.get(fingerprint).map_or(Ok(()), |line| Err(either(line)))
            }
            Item::Comment => Ok(()),
        }
    }
}
