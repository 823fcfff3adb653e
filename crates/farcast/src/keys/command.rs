//! Subcommands of `farcast key`.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Path, PathBuf};

use farcast_seal::{Identity, Listed};
use farcast_transfer::keys::{Added, KEY, Lock, Own, Place, Trust, file, lines, listed, name, nowhere, own};
use farcast_transfer::state;
use zeroize::Zeroizing;

use super::args::{KeyArgs, NewArgs, RenewArgs, RevokeArgs, ShowArgs, TrustArgs, What};
use super::list;
use crate::output::Output;
use crate::text::Text;
use crate::{Exit, Failure};

/// Prefixes of keys, secret keys included although they do not belong here. A text with one of them is no file name.
const KEYS: [&str; 2] = ["farcast-key-", "farcast-secret-"];
/// Longest text with keys to trust, in octets.
const LONGEST: usize = 64 << 20;

pub(crate) fn run(args: &KeyArgs) -> Result<Exit, Failure> {
    match &args.what {
        What::New(args) => new(args)?,
        What::Show(args) => show(args)?,
        What::Trust(args) => trust(args)?,
        What::List(args) => list::list(args)?,
        What::Revoke(args) => revoke(args)?,
        What::Renew(args) => renew(args)?,
    }
    Ok(Exit::Done)
}

fn new(args: &NewArgs) -> Result<(), Failure> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => name::of_host().ok_or_else(|| {
            Failure::usage("the host name is no name for a key: give one, as in `farcast key new station-7`")
        })?,
    };
    name::check(&name).map_err(|what| Failure::usage(format!("{name:?} cannot be the name: {what}")))?;
    let path =
        path_of(args.key.file.as_deref(), "it would go before the new one: unset it, or say --key FILE")?;
    file::make_directory(&path)?;
    let _lock = Lock::wait(&path)?;
    let made = if args.hybrid { Identity::hybrid_from_seed } else { Identity::from_seed };
    let own = Own { name, identity: made(*seed()?) };
    let before = if args.force { replace(&path, &own)? } else { None };
    if !args.force && !file::make(&path, own.to_text().as_bytes())? {
        return Err(Failure::usage(format!(
            "there is a key in {} already: `farcast key show` shows it, and --force replaces it, after which nobody \
             knows this host until they trust the new one",
            path.display()
        )));
    }
    let output = Output::for_people();
    output.result(&Text::lines(own.shown()));
    output.line(&format!("The key of {} is in {}: keep it from everybody else.", own.name, path.display()));
    if let Some(before) = before {
        let old = before.identity.public().fingerprint();
        output.line(&format!(
            "It replaces {old}, which is lost: who trusted that says `farcast key revoke {old}`."
        ));
    }
    output.line(&format!(
        "Give the line above to those who are to send to {0} or receive from it; they say `farcast key trust` and the \
         line, and compare the fingerprint with you by telephone. Then trust theirs.",
        own.name
    ));
    Ok(())
}

/// Puts `own` in place of another key. Returns the other key, if it could be read.
fn replace(path: &Path, own: &Own) -> Result<Option<Own>, Failure> {
    let before = Place::Usual(path.to_owned()).own().ok().flatten();
    file::replace(path, own.to_text().as_bytes(), Some(0o600))?;
    Ok(before)
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let own = own(args.key.file.as_deref())?.ok_or_else(no_key)?;
    Output::for_people().result(&Text::lines(own.shown()));
    Ok(())
}

fn renew(args: &RenewArgs) -> Result<(), Failure> {
    let path = path_of(args.key.file.as_deref(), "it is renewed in a file only, as in --key FILE")?;
    if !path.exists() && args.key.file.is_none() {
        return Err(no_key());
    }
    let _lock = Lock::wait(&path)?;
    let mut own = Place::Named(path.clone()).own()?.ok_or_else(no_key)?;
    let renew = if args.hybrid { Identity::renew_hybrid } else { Identity::renew };
    renew(&mut own.identity, *seed()?);
    file::replace(&path, own.to_text().as_bytes(), Some(0o600))?;
    let output = Output::for_people();
    output.result(&Text::lines(own.shown()));
    output.line(
        "Give the line above to all who send to this host; they say `farcast key trust` and the line, and until then what \
         they begin to send cannot be opened here. The fingerprint is the same.",
    );
    Ok(())
}

fn trust(args: &TrustArgs) -> Result<(), Failure> {
    let all = given(args)?;
    if (args.name.is_some() || args.fingerprint.is_some()) && all.len() != 1 {
        let count = all.len();
        return Err(Failure::usage(format!(
            "--name and --fingerprint go with one key, and here are {count}"
        )));
    }
    if let (Some(wanted), [one]) = (args.fingerprint, &all[..]) {
        let found = one.key.fingerprint();
        if found != wanted {
            return Err(Failure::usage(format!(
                "the fingerprint of {} is {found}, not {wanted}: it is somebody else's key, and was not taken",
                one.name
            )));
        }
    }
    let mut added = Vec::new();
    Trust::change(|trust| {
        for one in &all {
            added.push(trust.add(one.clone(), args.role, args.again)?);
        }
        Ok(())
    })?;
    let output = Output::for_people();
    for (one, (what, role)) in all.iter().zip(&added) {
        let (name, role, fingerprint) = (&one.name, role.shown(), one.key.fingerprint());
        output.result(&Text::line(&match what {
            Added::New => format!("trusted: {name} as {role}, fingerprint {fingerprint}"),
            Added::Renewed => format!("renewed: {name} as {role}, fingerprint {fingerprint} as before"),
            Added::Changed => format!("trusted: {name}, now as {role}, fingerprint {fingerprint}"),
            Added::Same => format!("trusted already: {name} as {role}, fingerprint {fingerprint}"),
        }));
    }
    if args.fingerprint.is_none() && added.iter().any(|(what, _)| *what == Added::New) {
        output.line(
            "Compare the fingerprint with what `farcast key show` shows there, by telephone or face to face. If it is \
             another, say `farcast key revoke` and the name.",
        );
    }
    Ok(())
}

fn revoke(args: &RevokeArgs) -> Result<(), Failure> {
    let revoked = Trust::change(|trust| trust.revoke(&args.who))?;
    let output = Output::for_people();
    let name = revoked.name.map_or(String::new(), |name| format!("{name}, "));
    output.result(&Text::line(&format!("revoked: {name}fingerprint {}", revoked.fingerprint)));
    output.line(
        "Senders under way on this host leave it out from now on; receivers go on with the list that they began with. \
         Others still trust it until they revoke it too.",
    );
    Ok(())
}

/// Returns the path of our key, if it is or will be in a file. Otherwise `else_` is the remedy in the error.
fn path_of(file: Option<&Path>, else_: &str) -> Result<PathBuf, Failure> {
    match Place::find(file)?.ok_or_else(nowhere)? {
        Place::Environment(_) => Err(Failure::usage(format!("the key is in {KEY}: {else_}"))),
        Place::Named(path) | Place::Usual(path) => Ok(path),
    }
}

/// Returns the keys that the command line gives.
fn given(args: &TrustArgs) -> Result<Vec<Listed>, Failure> {
    let is_line = |words: &OsStr| KEYS.iter().any(|key| words.to_string_lossy().contains(key));
    match &args.what[..] {
        [one] if one == "-" => {
            keys_in(&whole(std::io::stdin().lock(), "standard input")?, "standard input", args)
        }
        [one] if !is_line(one) => {
            let path = Path::new(one).display().to_string();
            let file = OpenOptions::new().read(true).open(one);
            let file = file.map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
            keys_in(&whole(file, &path)?, &path, args)
        }
        words => keys_in(words.join(OsStr::new(" ")).as_encoded_bytes(), "LINE", args),
    }
}

/// Returns the keys in lines as `farcast key show` prints them.
fn keys_in(octets: &[u8], origin: &str, args: &TrustArgs) -> Result<Vec<Listed>, Failure> {
    let mut all = Vec::new();
    for (number, line) in lines::of(octets, origin)? {
        let one = match (&lines::words(line)[..], &args.name) {
            ([], _) => continue,
            (&[key] | &[_, key], Some(name)) => listed(name, key),
            (&[name, key], None) => listed(name, key),
            (&[key], None) => {
                listed("NAME", key).and_then(|_| Err("a name is missing: give one with --name".into()))
            }
            _ => Err("a line has a name and a key, as `farcast key show` prints it".into()),
        };
        all.push(one.map_err(|what| lines::wrong(origin, number, what))?);
    }
    if all.is_empty() {
        return Err(Failure::usage(format!("there is no key in {origin}")));
    }
    Ok(all)
}

/// Reads all of `from`, up to a limit of [`LONGEST`] octets.
fn whole(from: impl Read, origin: &str) -> Result<Vec<u8>, Failure> {
    let mut octets = Vec::new();
    let read = from.take(LONGEST as u64 + 1).read_to_end(&mut octets);
    read.map_err(|error| Failure::usage(format!("cannot read {origin}: {error}")))?;
    if octets.len() > LONGEST {
        return Err(Failure::usage(format!("{origin} has more than {LONGEST} bytes: those are no keys")));
    }
    Ok(octets)
}

/// Draws 32 octets, to be used for one key only.
fn seed() -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut seed = Zeroizing::new([0; 32]);
    state::draw(&mut *seed)?;
    Ok(seed)
}

fn no_key() -> Failure {
    Failure::usage("this host has no key: `farcast key new` makes one")
}
