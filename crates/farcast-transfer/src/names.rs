//! Names in comma-separated lists, and names of receivers.

use std::convert::Infallible;
use std::net::Ipv6Addr;

use crate::Error;

pub mod list;

/// Longest name of a receiver on the wire, in octets.
pub(crate) const LONGEST: usize = 64;

/// Returns a name without the space around it. An IPv6 address loses its zone, which means nothing elsewhere.
///
/// # Errors
/// There are none: a parser of options wants a result.
pub fn trimmed(text: &str) -> Result<String, Infallible> {
    let text = text.trim();
    let address = text.split_once('%').map(|(address, _)| address);
    let address = address.filter(|address| address.parse::<Ipv6Addr>().is_ok());
    Ok(address.unwrap_or(text).to_owned())
}

/// Checks that a receiver can have the name `name`, given by `option`.
pub fn check(option: &str, name: &str) -> Result<(), Error> {
    let wrong = |why: &str| Err(Error::usage(format!("{option} {why}")));
    if name.is_empty() {
        return wrong("must have 1 to 64 bytes, and is empty: is it a variable without a value?");
    }
    if name.len() > LONGEST {
        return wrong(&format!("must have 1 to 64 bytes, and {name:?} has {}", name.len()));
    }
    if name.contains(char::is_control) {
        return wrong(&format!("must have no control character, and {name:?} has one"));
    }
    if name.contains(',') {
        return wrong(&format!("has a comma, {name:?}: --receivers parts names at commas"));
    }
    Ok(())
}

/// Checks all names of a list.
pub fn check_all(option: &str, names: &[String]) -> Result<(), Error> {
    none_empty(option, names)?;
    names.iter().try_for_each(|name| check(option, name))?;
    let mut known: Vec<&String> = names.iter().collect();
    known.sort_unstable();
    match known.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::usage(format!("{option} names {:?} twice", pair[0]))),
        None => Ok(()),
    }
}

/// Checks that a list has no empty name.
pub fn none_empty(option: &str, names: &[String]) -> Result<(), Error> {
    if names.iter().any(String::is_empty) {
        let why =
            if names.len() == 1 { "is it a variable without a value?" } else { "is there a comma too many?" };
        return Err(Error::usage(format!("{option} has an empty name: {why}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_zones_are_no_part_of_names() {
        for (text, name) in
            [(" r2 ", "r2"), ("a b", "a b"), ("fe80::1%e0", "fe80::1"), ("50%", "50%"), (" ", "")]
        {
            assert_eq!(trimmed(text), Ok(name.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn what_nobody_can_be_called_is_refused() {
        let list = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            check_all("--receivers", &names).map_err(|failure| failure.sentence)
        };
        let (longest, longer) = ("n".repeat(64), "n".repeat(65));
        assert_eq!(list(&["r1", "Zo\u{eb}", "10.0.0.1", &longest]), Ok(()));
        for (names, part) in [
            (&[""][..], "variable"),
            (&["a", ""], "comma"),
            (&[&longer], "64"),
            (&["a\nb"], "control"),
            (&["a", "b", "a"], "twice"),
        ] {
            let said = list(names).unwrap_err();
            assert!(said.starts_with("--receivers") && said.contains(part), "{said}");
        }
    }
}
