//! This host's name and identity, from a file or from the environment.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use farcast_seal::{Identity, PublicIdentity, Suite};
use zeroize::Zeroizing;

use super::file::{self, Care};
use super::{lines, name};
use crate::Error;

/// Environment variable that holds the secret itself, as in a file.
pub const KEY: &str = "FARCAST_KEY";
/// Environment variable that names the file of the key.
const KEY_FILE: &str = "FARCAST_KEY_FILE";
/// Name of the key's file in the user's directory.
const FILE: &str = "key";

/// This host's name and keys. The debug output has no secret.
#[derive(Clone, Debug)]
pub struct Own {
    /// Name by which others know this host.
    pub name: String,
    /// Keys of this host.
    pub identity: Identity,
}

/// Returns this host's name and keys by `file`, or else by the environment, or else by the user's directory. Returns
/// `None` if there is no key anywhere.
///
/// # Errors
/// A key that was named is missing, is not valid, or is readable by others.
pub fn own(file: Option<&Path>) -> Result<Option<Own>, Error> {
    match Place::find(file)? {
        Some(place) => place.own(),
        None => Ok(None),
    }
}

/// Place of our key.
pub enum Place {
    /// Content of the environment variable.
    Environment(Zeroizing<Vec<u8>>),
    /// File that somebody named.
    Named(PathBuf),
    /// File in the user's directory.
    Usual(PathBuf),
}

impl Place {
    /// Finds the place. Returns `None` if nothing tells where the user's files are.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, Error> {
        if let Some(file) = file {
            return Ok(Some(Self::Named(file.to_owned())));
        }
        match (file::variable(KEY)?, file::variable(KEY_FILE)?) {
            (Some(secret), other) => {
                let secret = Zeroizing::new(secret.into_vec());
                if other.is_some() {
                    return Err(Error::usage(format!(
                        "{KEY} and {KEY_FILE} are both set: unset one of them"
                    )));
                }
                Ok(Some(Self::Environment(secret)))
            }
            (None, Some(path)) => Ok(Some(Self::Named(path.into()))),
            (None, None) => Ok(file::directory().map(|directory| Self::Usual(directory.join(FILE)))),
        }
    }

    /// Reads the key from this place.
    pub fn own(&self) -> Result<Option<Own>, Error> {
        let path = match self {
            Self::Environment(text) => return parse(text, KEY).map(Some),
            Self::Named(path) | Self::Usual(path) => path,
        };
        match file::read(path, Care::Secret)? {
            Some(text) => parse(&text, &path.display().to_string()).map(Some),
            None if matches!(self, Self::Usual(_)) => Ok(None),
            None => Err(Error::usage(format!("there is no key in {}: no such file", path.display()))),
        }
    }
}

/// Returns the one key that `text` holds.
fn parse(text: &[u8], origin: &str) -> Result<Own, Error> {
    let mut found = None;
    for (number, line) in lines::of(text, origin)? {
        let words = lines::words(line);
        let own = match words[..] {
            [] => continue,
            _ if found.is_some() => {
                return Err(lines::wrong(origin, number, "a second key, and there can be one only"));
            }
            [name, secret] => of_words(name, secret),
            // The message does not repeat the words: they may be a secret.
            _ => Err("a line has a name and a secret key, and nothing else".to_owned()),
        };
        found = Some(own.map_err(|what| lines::wrong(origin, number, what))?);
    }
    found.ok_or_else(|| Error::usage(format!("there is no key in {origin}: it is empty")))
}

fn of_words(name: &str, secret: &str) -> Result<Own, String> {
    if secret.starts_with("farcast-key-") {
        return Err("this is a public key, and here belongs the secret one".into());
    }
    name::check(name)?;
    let identity = Identity::from_secret_text(secret).map_err(|error| error.to_string())?;
    Ok(Own { name: name.to_owned(), identity })
}

impl Own {
    /// Returns the content of the key's file.
    pub fn to_text(&self) -> Zeroizing<String> {
        let secret = self.identity.to_secret_text();
        // The text has room from the start: a buffer that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(1024));
        let _ = write!(
            text,
            "# Whoever has this is {}, {}: show it to nobody, and give to others what `farcast key show` prints.\n{} ",
            self.name,
            self.identity.public().fingerprint(),
            self.name
        );
        text.push_str(&secret);
        text.push('\n');
        text
    }

    /// Returns the line for others, below a comment for people.
    pub fn shown(&self) -> [String; 2] {
        let (name, public) = (&self.name, self.identity.public());
        let hybrid = if public.suite() == Suite::Hybrid { ", hybrid" } else { "" };
        let (fingerprint, renewed) = (public.fingerprint(), renewed(public.renewals()));
        [format!("# {name}, fingerprint {fingerprint}, {renewed}{hybrid}"), format!("{name} {public}")]
    }
}

/// Returns the word for the key agreement by which secrets are wrapped for the owner of `key`.
pub fn agreement(key: &PublicIdentity) -> &'static str {
    match key.suite() {
        Suite::X25519 => "x25519",
        Suite::Hybrid => "hybrid",
    }
}

/// Returns the number of renewals in words.
pub fn renewed(times: u32) -> String {
    match times {
        0 => "never renewed".into(),
        1 => "renewed once".into(),
        times => format!("renewed {times} times"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ant() -> Own {
        Own { name: "ant".into(), identity: Identity::from_seed([7; 32]) }
    }

    fn refused(text: &str) -> String {
        parse(text.as_bytes(), "f").map(|_| ()).unwrap_err().sentence
    }

    #[test]
    fn what_is_written_is_read() {
        let text = ant().to_text();
        assert!(text.len() < 1024, "no copies");
        let again = parse(text.as_bytes(), "f").unwrap();
        assert_eq!((again.name.as_str(), again.identity.public()), ("ant", ant().identity.public()));
        assert!(!format!("{again:?}").contains("farcast-secret"));
        assert!(!ant().shown().concat().contains("farcast-secret"));
    }

    #[test]
    fn what_is_no_key_is_told_by_its_line() {
        let secret = ant().identity.to_secret_text();
        let (secret, public) = (secret.as_str(), ant().identity.public().to_string());
        for (text, says) in [
            (String::new(), "there is no key in f"),
            ("# only a comment\n".into(), "there is no key in f"),
            (secret.into(), "f:1: a line has a name and a secret key"),
            (format!("#\n\nant bee {secret}"), "f:3: a line has a name"),
            (format!("ant {secret}\nant {secret}"), "f:2: a second key"),
            (format!("ant {public}"), "f:1: this is a public key"),
            (format!("{secret} ant"), "f:1: a name has 1 to 64 bytes"),
            (format!("a,b {secret}"), "f:1: a name has no comma"),
            (format!("ant {}", &secret[..90]), "f:1: the secret key"),
            (format!("ant {}", &secret[2..]), "f:1: a secret key begins with farcast-secret-1:"),
        ] {
            let said = refused(&text);
            assert!(said.starts_with(says), "{said}");
            assert!(!said.contains(&secret[20..40]), "{said}");
        }
        assert!(parse(b"# a\n\xff\n", "f").unwrap_err().sentence.starts_with("f:2: this is no UTF-8"));
    }

    proptest! {
        #[test]
        fn any_octets_are_refused_in_one_sentence(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(!parse(&octets, "f").unwrap_err().sentence.contains('\n'));
        }

        #[test]
        fn any_damage_is_refused(at in 20usize..150, with in "[0-9A-Z]") {
            let text = format!("ant {}", *ant().identity.to_secret_text());
            let at = at.min(text.len() - 1);
            let damaged = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            let same = Identity::from_seed([7; 32]).to_bytes();
            match parse(damaged.as_bytes(), "f") {
                // I and L are read as 1, O as 0.
                Ok(own) => prop_assert_eq!(&*own.identity.to_bytes(), &*same),
                Err(failure) => prop_assert!(failure.sentence.starts_with("f:1: ")),
            }
        }
    }
}
