//! Names of hosts with keys: one word that can be read aloud, as long as an MFTP receiver's name.

use std::fmt::Write as _;

use crate::names::LONGEST;

/// Checks that `name` may be a name. The error is the reason, as the end of a sentence.
pub fn check(name: &str) -> Result<(), &'static str> {
    let prints = |name: &str| {
        // `escape_debug` escapes characters that cannot be printed, and also quotes and backslashes, which can.
        let mut escaped = String::with_capacity(name.len());
        let _ = write!(escaped, "{}", name.escape_debug());
        escaped == name.replace('\\', "\\\\").replace('\'', "\\'").replace('"', "\\\"")
    };
    if name.is_empty() || name.len() > LONGEST {
        return Err("a name has 1 to 64 bytes");
    }
    if name.contains(char::is_whitespace) || !prints(name) {
        return Err("a name has no spaces, and nothing that cannot be printed");
    }
    if name.contains(',') || name.starts_with(['#', '-']) {
        return Err("a name has no comma, and begins with neither # nor -");
    }
    Ok(())
}

/// Returns this host's name, if it may be a name.
pub fn of_host() -> Option<String> {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_str().ok()?;
    check(name).is_ok().then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_words() {
        let long = "n".repeat(64);
        for good in
            ["a", "station-7", "10.0.0.1", "fe80::1", "Zoë", "O'Neill", "a\\b", "हिन्दी", long.as_str()]
        {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        let longer = "n".repeat(65);
        for bad in [
            "",
            "a b",
            "a\u{a0}b",
            "a\tb",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "a\u{200b}b",
            "\u{feff}a",
            "a,b",
            "#a",
            "-",
            longer.as_str(),
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_one_word_of_a_line(name in "\\PC{1,30}|[\\s\\S]{1,30}") {
            if check(&name).is_ok() {
                let line = format!("both {name} key");
                let words: Vec<&str> = line.split_whitespace().collect();
                prop_assert_eq!(words, ["both", name.as_str(), "key"]);
            }
        }
    }
}
