use std::string::String;

use proptest::prelude::*;

use super::*;

#[test]
fn a_secret_survives_text() {
    let mut identity = Identity::from_seed([7; 32]);
    identity.renew([8; 32]);
    let text = identity.to_secret_text();
    assert_eq!(text.len(), PREFIX.len() + 116);
    let again = Identity::from_secret_text(&text).expect("what was written");
    assert_eq!(*again.to_bytes(), *identity.to_bytes());
    assert_eq!(again.public(), identity.public());
}

#[test]
fn a_hybrid_secret_survives_text() {
    let mut identity = Identity::hybrid_from_seed([7; 32]);
    identity.renew([8; 32]);
    let text = identity.to_secret_text();
    assert!(text.starts_with(HYBRID_PREFIX));
    assert_eq!(text.len(), HYBRID_PREFIX.len() + 116);
    let again = Identity::from_secret_text(&text).expect("what was written");
    assert_eq!(again.public(), identity.public());
    assert_eq!(again.public().suite(), Suite::Hybrid);
    // The text of one suite is invalid with the other prefix, although the lengths are equal.
    let other = text.replace(HYBRID_PREFIX, PREFIX);
    assert_eq!(Identity::from_secret_text(&other).map(|_| ()), Err(SecretError::Check));
}

#[test]
fn a_wrong_letter_of_a_secret_is_found() {
    for identity in [Identity::from_seed([7; 32]), Identity::hybrid_from_seed([7; 32])] {
        finds_wrong_letters(&identity.to_secret_text());
    }
}

fn finds_wrong_letters(text: &str) {
    for at in PREFIX.len()..text.len() {
        let mut wrong = text.as_bytes().to_vec();
        wrong[at] = if wrong[at] == b'Z' { b'Y' } else { b'Z' };
        let wrong = String::from_utf8(wrong).expect("text");
        assert!(Identity::from_secret_text(&wrong).is_err(), "letter {at}");
        let cut = Identity::from_secret_text(&text[..at]).map(|_| ());
        assert_eq!(cut, Err(SecretError::Length), "cut at {at}");
    }
    let said = |text: &str| Identity::from_secret_text(text).map(|_| ());
    let public = Identity::from_seed([7; 32]);
    assert_eq!(said(&std::format!("{}", public.public())), Err(SecretError::Prefix));
    assert_eq!(said("farcast-secret-3:"), Err(SecretError::Prefix));
    assert_eq!(said("farcast-secret-2:"), Err(SecretError::Length));
    assert_eq!(said("farcast-secret-1:"), Err(SecretError::Length));
    assert_eq!(said("farcast-secret-1:U"), Err(SecretError::Letters));
    assert_eq!(said(&std::format!("{text}1")), Err(SecretError::Length));
    assert_eq!(said(&std::format!("{text}0")), Err(SecretError::Length));
    assert_eq!(said(&std::format!("{}Z", &text[..text.len() - 1])), Err(SecretError::Letters));
}

proptest! {
    #[test]
    fn any_secrets_survive(
        octets in proptest::collection::vec(any::<u8>(), Identity::LEN),
        suite in proptest::sample::select(&Suite::ALL[..]),
    ) {
        let identity = Identity::from_bytes(suite, &octets).expect("the length");
        let again = Identity::from_secret_text(&identity.to_secret_text()).expect("what was written");
        prop_assert_eq!(&*again.to_bytes(), &octets);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(farcast-secret-[12]:)?\\PC{0,200}") {
        let _ = Identity::from_secret_text(&text);
    }
}
