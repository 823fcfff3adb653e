use std::string::ToString as _;
use std::vec;

use super::*;

#[test]
fn survives_storage_and_text() {
    let identity = Identity::from_seed([7; 32]);
    let again = Identity::from_bytes(Suite::X25519, &identity.to_bytes()).expect("what was stored");
    assert_eq!(again.public(), identity.public());
    let text = identity.public().to_string();
    assert_eq!(text.len(), PREFIX.len() + 212);
    assert_eq!(text.parse::<PublicIdentity>().as_ref(), Ok(identity.public()));
    assert_eq!(format!("{text}\n").to_lowercase().parse::<PublicIdentity>().as_ref(), Ok(identity.public()));
    assert_eq!(Identity::from_bytes(Suite::X25519, &[0; 67]).unwrap_err(), KeyError::Length);
}

#[test]
fn a_hybrid_key_survives_storage_and_text() {
    let identity = Identity::hybrid_from_seed([7; 32]);
    assert_eq!(identity.to_bytes().len(), Identity::LEN);
    let again = Identity::from_bytes(Suite::Hybrid, &identity.to_bytes()).expect("what was stored");
    assert_eq!(again.public(), identity.public());
    assert_eq!(again.public().agreement().len(), 1216);
    let text = identity.public().to_string();
    assert_eq!(text.len(), HYBRID_PREFIX.len() + 2106);
    assert_eq!(text.parse::<PublicIdentity>().as_ref(), Ok(identity.public()));
    assert_eq!(text.to_lowercase().parse::<PublicIdentity>().as_ref(), Ok(identity.public()));
    // The fingerprint does not depend on the agreement key.
    let plain = Identity::from_seed([7; 32]);
    assert_eq!(identity.public().fingerprint(), plain.public().fingerprint());
    // The text of one suite is invalid with the prefix of the other.
    let (plain, hybrid) = (plain.public().to_string(), text);
    let as_plain = hybrid.replace(HYBRID_PREFIX, PREFIX).parse::<PublicIdentity>();
    let as_hybrid = plain.replace(PREFIX, HYBRID_PREFIX).parse::<PublicIdentity>();
    assert_eq!((as_plain, as_hybrid), (Err(KeyError::Length), Err(KeyError::Length)));
}

/// Nobody can derive an X25519 line from that of a host with a hybrid key, because a part of the signed octets has no
/// signature.
#[test]
fn no_line_is_cut_down_to_another_suite() {
    let public = Identity::hybrid_from_seed([7; 32]).public().clone();
    for part in public.agreement.chunks_exact(32) {
        let cut = PublicIdentity { suite: Suite::X25519, agreement: part.into(), ..public.clone() };
        assert_eq!(cut.to_string().parse::<PublicIdentity>(), Err(KeyError::Signature));
    }
    let swapped = PublicIdentity { agreement: vec![0; 1216].into(), ..public };
    assert_eq!(swapped.to_string().parse::<PublicIdentity>(), Err(KeyError::Signature));
}

#[test]
fn a_wrong_letter_is_found() {
    finds_wrong_letters(&Identity::from_seed([7; 32]).public().to_string(), 1);
    // Only some of the many letters are checked.
    finds_wrong_letters(&Identity::hybrid_from_seed([7; 32]).public().to_string(), 7);
    assert_eq!("ssh-ed25519 AAAA".parse::<PublicIdentity>(), Err(KeyError::Prefix));
    assert_eq!("farcast-key-3:".parse::<PublicIdentity>(), Err(KeyError::Prefix));
}

fn finds_wrong_letters(text: &str, step: usize) {
    for at in (PREFIX.len()..text.len()).step_by(step).chain([text.len() - 1]) {
        let mut wrong = text.as_bytes().to_vec();
        wrong[at] = if wrong[at] == b'Z' { b'Y' } else { b'Z' };
        let wrong = String::from_utf8(wrong).expect("text");
        assert!(wrong.parse::<PublicIdentity>().is_err(), "letter {at}");
        assert_eq!(text[..at].parse::<PublicIdentity>(), Err(KeyError::Length), "cut at {at}");
    }
    let longer = std::format!("{text}0");
    assert_eq!(longer.parse::<PublicIdentity>(), Err(KeyError::Length));
}

#[test]
fn renewing_keeps_the_name() {
    let mut identity = Identity::from_seed([7; 32]);
    let before = identity.public().clone();
    identity.renew([8; 32]);
    let after = identity.public();
    assert_eq!(after.signing(), before.signing());
    assert_eq!(after.fingerprint(), before.fingerprint());
    assert_ne!(after.agreement(), before.agreement());
    assert_eq!((before.renewals(), after.renewals()), (0, 1));
    assert_eq!(after.to_string().parse::<PublicIdentity>().as_ref(), Ok(after));
    identity.renew_hybrid([9; 32]);
    let hybrid = identity.public().clone();
    assert_eq!((hybrid.suite(), hybrid.renewals(), hybrid.signing()), (Suite::Hybrid, 2, before.signing()));
    identity.renew([10; 32]);
    assert_eq!((identity.public().suite(), identity.public().renewals()), (Suite::Hybrid, 3));
    assert_ne!(identity.public().agreement(), hybrid.agreement());
}

#[test]
fn an_agreement_key_of_somebody_else_is_refused() {
    let (a, b) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let mixed = PublicIdentity { agreement: b.public.agreement.clone(), ..a.public.clone() };
    assert_eq!(mixed.to_string().parse::<PublicIdentity>(), Err(KeyError::Signature));
    let earlier = PublicIdentity { renewals: 1, ..a.public };
    assert_eq!(earlier.to_string().parse::<PublicIdentity>(), Err(KeyError::Signature));
}

#[test]
fn fingerprints_are_read_as_they_are_written() {
    let fingerprint = Identity::from_seed([3; 32]).public().fingerprint();
    let text = fingerprint.to_string();
    assert_eq!(text.len(), 24);
    assert_eq!(text.parse(), Ok(fingerprint));
    assert_eq!(text.to_lowercase().replace('-', " ").parse(), Ok(fingerprint));
    assert_eq!(text[..23].parse::<Fingerprint>(), Err(KeyError::Length));
    assert_eq!(text.replace('-', "_").parse::<Fingerprint>(), Err(KeyError::Letters));
    // SHA-256 of 32 zeros: 66687AADF862BD776C8FC18B8E9F8E20089714856EE233B3902A591D0D5F2925.
    assert_eq!(Fingerprint::of(&[0; 32]).to_string(), "CSM7-NBFR-CAYQ-EV4F-R65R");
}

#[test]
fn what_is_printed_holds_no_secret() {
    let identity = Identity::from_seed([9; 32]);
    assert_eq!(format!("{identity:?}"), format!("Identity({})", identity.public().fingerprint()));
}
