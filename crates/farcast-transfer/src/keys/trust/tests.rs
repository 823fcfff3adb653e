use farcast_seal::{Identity, PublicIdentity};
use proptest::prelude::*;

use super::*;

fn key(seed: u8) -> PublicIdentity {
    Identity::from_seed([seed; 32]).public().clone()
}

fn renewed(seed: u8, times: u8) -> PublicIdentity {
    let mut identity = Identity::from_seed([seed; 32]);
    for time in 0..times {
        identity.renew([100 + time; 32]);
    }
    identity.public().clone()
}

fn named(name: &str, key: PublicIdentity) -> Listed {
    Listed { name: name.into(), key }
}

fn parse(text: &str) -> Trust {
    Trust::parse(text.as_bytes(), "f").unwrap()
}

fn refused(text: &str) -> String {
    Trust::parse(text.as_bytes(), "f").unwrap_err().sentence
}

fn names<'a>(all: impl Iterator<Item = &'a Listed>) -> Vec<&'a str> {
    all.map(|one| one.name.as_str()).collect()
}

#[test]
fn roles_say_who_is_what() {
    let (a, b, c) = (key(1), key(2), key(3));
    let text = format!("# us\nsender head {a}\r\n\n  receiver\tant {b}\nboth bee {c}\n# them\n");
    let trust = parse(&text);
    assert_eq!(names(trust.senders()), ["head", "bee"]);
    assert_eq!(names(trust.receivers()), ["ant", "bee"]);
    assert_eq!(trust.to_text(), text.replace('\r', ""), "what people wrote stays");
    assert_eq!(trust.receivers().next(), Some(&named("ant", b)));
}

#[test]
fn a_bad_line_is_told_by_its_number() {
    let (a, b) = (key(1), key(2));
    let fingerprint = a.fingerprint();
    let secret = Identity::from_seed([1; 32]).to_secret_text();
    let text = a.to_string();
    let damaged =
        format!("{}{}{}", &text[..100], if &text[100..101] == "A" { "B" } else { "A" }, &text[101..]);
    for (text, says) in [
        (format!("ant {a}"), "f:1: a line has a role, a name and a key"),
        (format!("\nboth ant {a} x"), "f:2: a line has a role"),
        (format!("Both ant {a}"), "f:1: a line begins with sender, receiver, both or revoked"),
        (format!("both a,b {a}"), "f:1: a name has no comma"),
        (format!("both {} {a}", "n".repeat(65)), "f:1: a name has 1 to 64 bytes"),
        (format!("both ant {damaged}"), "f:1: the key of ant: its signature does not hold"),
        ("both ant farcast-key-1:".into(), "f:1: the key of ant: it is too short"),
        ("both ant ssh-ed25519".into(), "f:1: the key of ant: a key begins with farcast-key-1:"),
        (format!("both ant {}", *secret), "f:1: this is a secret key"),
        (format!("both ant {a}\nsender ant {b}"), "f:2: ant is in line 1 already"),
        (format!("both ant {a}\nsender bee {a}"), "f:2: this key is in line 1 already"),
        (
            format!("both ant {a}\nrevoked ant {fingerprint}"),
            "f:2: this key is revoked, and trusted as well, see line 1",
        ),
        (
            format!("revoked - {fingerprint}\nboth ant {a}"),
            "f:2: this key is revoked, and trusted as well, see line 1",
        ),
        ("revoked ant 1234".into(), "f:1: behind the name belongs a fingerprint"),
    ] {
        let said = refused(&text);
        assert!(said.starts_with(says), "{said}");
        assert!(!said.contains(&secret[20..40]), "{said}");
    }
    let said = Trust::parse(b"#\n#\nboth \xff", "f").unwrap_err().sentence;
    assert_eq!(said, "f:3: this is no UTF-8 text");
}

#[test]
fn a_later_renewal_takes_the_place_of_an_earlier_one() {
    let mut trust = parse(&format!("# a\nreceiver ant {}\n# b\n", renewed(1, 1)));
    let mut add = |key, role| trust.add(named("ant", key), role, false).map_err(|failure| failure.sentence);
    assert_eq!(add(renewed(1, 1), None), Ok((Added::Same, Role::Receiver)));
    assert_eq!(add(renewed(1, 2), None), Ok((Added::Renewed, Role::Receiver)));
    let earlier = add(renewed(1, 1), None).unwrap_err();
    assert!(
        earlier.contains("earlier key of ant (renewed once) than the one here (renewed 2 times)"),
        "{earlier}"
    );
    let mut other = Identity::from_seed([1; 32]);
    other.renew([100; 32]);
    other.renew([50; 32]);
    let other = add(other.public().clone(), None).unwrap_err();
    assert!(other.contains("ant has two different keys here that say: renewed 2 times"), "{other}");
    assert_eq!(add(renewed(1, 2), Some(Role::Sender)), Ok((Added::Changed, Role::Sender)));
    assert_eq!(trust.to_text(), format!("# a\nsender ant {}\n# b\n", renewed(1, 2)));
}

#[test]
fn a_name_and_a_key_belong_together() {
    let mut trust = parse("");
    let mut add =
        |name, seed| trust.add(named(name, key(seed)), None, false).map_err(|failure| failure.sentence);
    assert_eq!(add("ant", 1), Ok((Added::New, Role::Both)));
    let said = add("ant", 2).unwrap_err();
    assert!(said.contains("ant has another key here") && said.contains("farcast key revoke ant"), "{said}");
    let said = add("bee", 1).unwrap_err();
    assert!(said.contains("is here as ant, not as bee") && said.contains("--name ant"), "{said}");
    assert_eq!(add("bee", 2), Ok((Added::New, Role::Both)));
}

#[test]
fn who_was_revoked_stays_so_until_somebody_says_again() {
    let mut trust = parse(&format!("both ant {}\n# c\nboth bee {}\n", key(1), key(2)));
    let fingerprint = key(1).fingerprint();
    assert_eq!(trust.revoke("ant").unwrap().fingerprint, fingerprint);
    assert_eq!(trust.to_text(), format!("# c\nboth bee {}\nrevoked ant {fingerprint}\n", key(2)));
    let said = trust.revoke("ant").unwrap_err().sentence;
    assert!(said.contains("nobody who is trusted is called ant"), "{said}");
    assert_eq!(
        trust.revoke(&fingerprint.to_string()).unwrap().name.as_deref(),
        Some("ant"),
        "it was already"
    );
    for name in ["ant", "cat"] {
        let said = trust.add(named(name, key(1)), None, false).unwrap_err().sentence;
        assert!(said.contains(&format!("{fingerprint} was revoked as ant: say --again")), "{said}");
    }
    // Another key may have the name, and the key may have another name. Neither gets a role that nobody gave.
    for (again, name, seed) in [(false, "ant", 3), (true, "ant", 1), (true, "cat", 1)] {
        let before = trust.clone();
        let said = trust.add(named(name, key(seed)), None, again).unwrap_err().sentence;
        assert!(
            said.contains(&format!("{name} was revoked here")) && said.contains("--as receiver"),
            "{said}"
        );
        assert_eq!(trust, before);
    }
    let receiver = Some(Role::Receiver);
    assert_eq!(trust.add(named("ant", key(3)), receiver, false).unwrap(), (Added::New, Role::Receiver));
    assert_eq!(trust.add(named("cat", key(1)), Some(Role::Sender), true).unwrap().0, Added::New);
    assert_eq!(trust.revoked().count(), 0);
    assert_eq!(names(trust.senders()), ["bee", "cat"]);
    // A known key keeps its role, whatever other keys were revoked.
    assert_eq!(trust.add(named("ant", key(3)), None, false).unwrap(), (Added::Same, Role::Receiver));
}

#[test]
fn somebody_unknown_is_revoked_by_a_whole_fingerprint_only() {
    let mut trust = parse("");
    let text = key(1).fingerprint().to_string();
    assert!(trust.revoke(&text.replace('-', "")).is_err(), "it could be a name that is mistyped");
    assert!(trust.revoke("receiversatstation77").is_err());
    assert_eq!(trust.revoke(&text.to_lowercase()).unwrap().name, None);
    assert_eq!(trust.to_text(), format!("revoked - {text}\n"));
    assert_eq!(parse(&trust.to_text()), trust);
    // For a known key, any spelling of the fingerprint will do.
    trust.add(named("bee", key(2)), None, false).unwrap();
    let bee = key(2).fingerprint().to_string().replace('-', "");
    assert_eq!(trust.revoke(&bee).unwrap().name.as_deref(), Some("bee"));
    // The name of one key is the fingerprint of another.
    trust.add(named(&key(3).fingerprint().to_string(), key(4)), None, false).unwrap();
    trust.add(named("cat", key(3)), None, false).unwrap();
    let said = trust.revoke(&key(3).fingerprint().to_string()).unwrap_err().sentence;
    assert!(said.contains("is the name of one and the fingerprint of another"), "{said}");
    assert_eq!(trust.revoke(&key(4).fingerprint().to_string()).unwrap().fingerprint, key(4).fingerprint());
}

proptest! {
    #[test]
    fn any_octets_are_read_or_refused_in_one_sentence(
        octets in proptest::collection::vec(any::<u8>(), 0..300),
        text in "((sender|receiver|both|revoked|#)? ?[a-z-]{0,4} ?(farcast-key-1:)?[0-9A-Z-]{0,30}\n){0,4}",
    ) {
        for octets in [&octets[..], text.as_bytes()] {
            match Trust::parse(octets, "f") {
                Ok(trust) => prop_assert_eq!(parse(&trust.to_text()), trust),
                Err(failure) => prop_assert!(failure.sentence.starts_with("f:")),
            }
        }
    }

    #[test]
    fn whatever_is_done_leaves_a_list_that_can_be_read(
        steps in proptest::collection::vec((0u8..4, 0u8..4, 0u8..3, any::<bool>(), any::<bool>()), 0..30),
    ) {
        let mut trust = Trust::default();
        for (name, seed, times, again, revokes) in steps {
            let before = trust.clone();
            let name = ["ant", "bee", "cat", "dog"][usize::from(name)];
            let done = if revokes {
                trust.revoke(name).map(|_| ())
            } else {
                trust.add(named(name, renewed(seed, times)), None, again).map(|_| ())
            };
            if done.is_err() {
                prop_assert_eq!(&trust, &before);
            }
            prop_assert_eq!(parse(&trust.to_text()), trust.clone());
        }
    }
}
