//! What those off the list try, and what one on it does who is not honest: docs/src/seal.md, "Threats".

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use farcast_seal::{Class, History, Identity, Kind, Receiver, ReceiverConfig, Refusal, Sender, SenderConfig};
use proptest::prelude::*;

fn receiver_of(name: &str, senders: &[&str]) -> Receiver {
    let senders = senders.iter().map(|name| listed(name)).collect();
    Receiver::new(ReceiverConfig { identity: identity(name), senders }, History::default(), [9; 32])
}

/// Every kind of datagram of a session, and who hears it: `None` the sender.
fn recorded(ann: &mut Sender, bob: &mut Receiver) -> Vec<(Kind, Vec<u8>)> {
    let mut record = vec![(Kind::Keys, ann.keys(true).remove(0))];
    hear(bob, &record[0].1).unwrap();
    let first = answer(bob, b"registration");
    take(ann, address(2), &first).unwrap();
    let granted = to_one(ann, address(2), b"granted");
    hear(bob, &granted).unwrap();
    let later = answer(bob, b"nak");
    take(ann, address(2), &later).unwrap();
    let other = to_one(ann, address(2), b"other");
    let (data, end) = (content(ann, b"data"), control(ann, b"end"));
    record.extend([
        (Kind::FirstAnswer, first),
        (Kind::ToOneKey, granted),
        (Kind::Answer, later),
        (Kind::ToOne, other),
        (Kind::Content, data),
        (Kind::Control, end),
    ]);
    for (kind, datagram) in &record {
        assert_eq!(Kind::of(datagram), Some(*kind));
    }
    record
}

fn is_for_sender(kind: Kind) -> bool {
    matches!(kind, Kind::Answer | Kind::FirstAnswer)
}

#[test]
fn nothing_of_what_is_said_shows() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    let secret: Vec<u8> = (0..64).map(|n| b'A' + n % 26).collect();
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let first = answer(&mut bob, &secret);
    take(&mut ann, address(2), &first).unwrap();
    for datagram in [
        first,
        to_one(&mut ann, address(2), &secret),
        content(&mut ann, &secret),
        control(&mut ann, &secret),
        answer(&mut bob, &secret),
    ] {
        let shown = datagram.windows(4).any(|four| secret.windows(4).any(|said| said == four));
        assert!(!shown, "{:?}", Kind::of(&datagram));
    }
}

#[test]
fn no_flipped_bit_is_taken() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    let record = recorded(&mut ann, &mut bob);
    for (kind, datagram) in &record {
        for bit in 0..8 * datagram.len() {
            let mut flipped = datagram.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refused = if is_for_sender(*kind) {
                take(&mut ann, address(2), &flipped).is_err()
            } else {
                // Nobody has heard of it before.
                let keys_again = *kind == Kind::Keys;
                let mut other = receiver("bob");
                let listener = if keys_again { &mut other } else { &mut bob };
                hear(listener, &flipped).is_err()
            };
            assert!(refused, "{kind:?}, bit {bit}");
        }
    }
    // None of that has harmed what is genuine.
    for (kind, datagram) in record {
        match kind {
            Kind::ToOne => assert_eq!(hear(&mut bob, &datagram).unwrap().1, b"other"),
            Kind::Content => assert_eq!(hear(&mut bob, &datagram).unwrap().1, b"data"),
            Kind::Control => assert_eq!(hear(&mut bob, &datagram).unwrap().1, b"end"),
            _ => {}
        }
    }
}

#[test]
fn nothing_is_taken_twice() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    let record = recorded(&mut ann, &mut bob);
    for (_, datagram) in &record {
        let _ = hear(&mut bob, datagram);
    }
    for (kind, datagram) in &record[1..] {
        let again = if is_for_sender(*kind) {
            take(&mut ann, address(2), datagram).map(|_| ())
        } else {
            hear(&mut bob, datagram).map(|_| ())
        };
        assert_eq!(again, Err(Refusal::Replayed), "{kind:?}");
    }
}

#[test]
fn a_session_is_not_played_again() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    let record = recorded(&mut ann, &mut bob);
    bob.close(sender_address());
    let history = History::from_text(&bob.history().to_text()).unwrap();
    for mut bob in [bob, receiver_with("bob", history, 5)] {
        for (kind, datagram) in &record {
            let expected = match kind {
                Kind::Keys => Refusal::OldSession,
                Kind::Answer | Kind::FirstAnswer => Refusal::Misdirected,
                _ => Refusal::UnknownSession,
            };
            assert_eq!(hear(&mut bob, datagram), Err(expected), "{kind:?}");
        }
    }
    // To the sender's next session it is no session of its own.
    let mut next = session_of("ann", &["bob"], true, 2);
    for (kind, datagram) in record.iter().filter(|(kind, _)| is_for_sender(*kind)) {
        assert_eq!(take(&mut next, address(2), datagram), Err(Refusal::NotListed), "{kind:?}");
    }
}

#[test]
fn one_that_begins_again_does_not_hear_what_was_signed_before() {
    let mut ann = session_of("ann", &["bob"], false, 1);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let (early, late) = (control(&mut ann, b"early"), control(&mut ann, b"late"));
    hear(&mut bob, &early).unwrap();
    hear(&mut bob, &late).unwrap();
    let history = bob.history().clone();
    let mut bob = receiver_with("bob", history, 5);
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    assert_eq!(hear(&mut bob, &early), Err(Refusal::Replayed));
    assert_eq!(hear(&mut bob, &late), Err(Refusal::Replayed));
    assert_eq!(hear(&mut bob, &control(&mut ann, b"now")).unwrap().1, b"now");
}

#[test]
fn nothing_is_pasted_into_another_session() {
    let (mut one, mut two) = (session_of("ann", &["bob"], true, 1), session_of("ann", &["bob"], true, 2));
    let mut bob = receiver("bob");
    let record = recorded(&mut one, &mut bob);
    let other = recorded(&mut two, &mut bob);
    for ((kind, datagram), (_, model)) in record.iter().zip(&other).skip(1) {
        // With the header of the other, and with its own but for the name of the session.
        for pasted in [[&model[..12], &datagram[12..]].concat(), {
            let mut pasted = datagram.clone();
            pasted[2..6].copy_from_slice(&model[2..6]);
            pasted[11] += 100;
            pasted
        }] {
            let refused = if is_for_sender(*kind) {
                take(&mut two, address(2), &pasted).is_err()
            } else {
                hear(&mut bob, &pasted).is_err()
            };
            assert!(refused, "{kind:?}");
        }
    }
    // Entries of one session's keys under the head of another's.
    let (a, b) = (one.keys(true).remove(0), two.keys(true).remove(0));
    let pasted = [&a[..94], &b[94..]].concat();
    assert!(hear(&mut receiver("bob"), &pasted).is_err());
}

#[test]
fn nobody_else_begins_a_session() {
    // Eve is on bob's list of nobody, or claims to be ann.
    let mut eve = session_of("eve", &["bob"], false, 1);
    let mut bob = receiver("bob");
    assert_eq!(hear(&mut bob, &eve.keys(true)[0]), Err(Refusal::UntrustedSender));
    let mut claimed = eve.keys(true).remove(0);
    claimed[28..60].copy_from_slice(identity("ann").public().signing());
    let tag_of_bob = claimed[94..98].to_vec();
    assert_eq!(hear(&mut bob, &claimed), Err(Refusal::BadSignature));
    assert_eq!(hear(&mut bob, &control(&mut eve, b"abort")), Err(Refusal::UnknownSession));
    // What is for another is not for bob, whatever tag it shows.
    let ann = session_of("ann", &["eve"], false, 1);
    assert_eq!(hear(&mut bob, &ann.keys(true)[0]), Err(Refusal::NotListed));
    let mut other = ann.keys(true).remove(0);
    other[94..98].copy_from_slice(&tag_of_bob);
    assert!(matches!(hear(&mut bob, &other), Err(Refusal::NotListed | Refusal::BadSignature)));
}

#[test]
fn a_member_forges_nothing_but_content() {
    // Eve is a member: it has the group's keys, which means that it can seal as well as the sender can, but not sign. What it
    // can do is what an engine does that it hands the sender's state without the sender's signing key.
    let config = |who: Identity| SenderConfig {
        identity: who,
        receivers: vec![listed("bob"), listed("eve")],
        began_ms: 1_000_001,
        separate_content: false,
    };
    let mut ann = Sender::new(config(identity("ann")), [1; 32]);
    // From the same seed follow the same keys of the group.
    let mut eve = Sender::new(config(identity("eve")), [1; 32]);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    assert_eq!(hear(&mut bob, &control(&mut eve, b"abort")), Err(Refusal::BadSignature));
    // Content it can forge, which is what a manifest is for; but it is content, and shuts out nothing genuine.
    for _ in 0..10_000 {
        let _ = content(&mut eve, b"");
    }
    let poison = content(&mut eve, b"poison");
    assert_eq!(hear(&mut bob, &poison).unwrap().0.class, Class::Content);
    assert_eq!(hear(&mut bob, &control(&mut ann, b"end")).unwrap().1, b"end");
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
}

#[test]
fn nobody_answers_for_another() {
    let mut ann = session_of("ann", &["bob", "eve"], true, 1);
    let (mut bob, mut eve) = (receiver("bob"), receiver("eve"));
    register(&mut ann, &mut bob, address(2));
    register(&mut ann, &mut eve, address(3));
    // Eve's answer under bob's tag, from bob's address.
    let genuine = answer(&mut bob, b"nak");
    let mut forged = answer(&mut eve, b"done");
    let (of, _) = take(&mut ann, address(2), &forged).unwrap();
    assert_eq!(ann.name(of.receiver), "eve", "by the key, not the address");
    forged[2..6].copy_from_slice(&genuine[2..6]);
    assert_eq!(take(&mut ann, address(2), &forged), Err(Refusal::Forged));
    // A first answer of eve's, drawn with its own pair secret, under bob's tag.
    let mut again = receiver_with("eve", History::default(), 77);
    hear(&mut again, &ann.keys(true)[0]).unwrap();
    let mut first = answer(&mut again, b"registration");
    first[2..6].copy_from_slice(&genuine[2..6]);
    assert_eq!(take(&mut ann, address(2), &first), Err(Refusal::Forged));
    assert_eq!(take(&mut ann, address(2), &genuine).unwrap().1, b"nak");
}

#[test]
fn a_sender_that_is_trusted_shuts_out_no_other() {
    let mut bob = receiver_of("bob", &["ann", "mal"]);
    let mut ann = session_of("ann", &["bob"], false, 1);
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    for n in 0..100 {
        let mal = session_of("mal", &["bob"], false, 100 + n);
        hear(&mut bob, &mal.keys(true)[0]).unwrap();
    }
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
}

#[test]
fn who_begins_without_end_is_not_heard() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let keys = ann.keys(true).remove(0);
    let mut firsts = Vec::new();
    for n in 0..20 {
        let mut bob = receiver_with("bob", History::default(), n);
        hear(&mut bob, &keys).unwrap();
        firsts.push(answer(&mut bob, b"registration"));
        take(&mut ann, address(2), &firsts[usize::from(n)]).unwrap();
    }
    for first in firsts {
        assert_eq!(take(&mut ann, address(2), &first), Err(Refusal::Replayed));
    }
}

#[test]
fn what_is_not_sealed_is_refused() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    for plain in [&b""[..], b"\x01\x02", &[0; 1500]] {
        assert_eq!(hear(&mut bob, plain), Err(Refusal::Unsealed));
        assert_eq!(take(&mut ann, address(2), plain), Err(Refusal::Unsealed));
    }
}

proptest! {
    /// Whatever comes, nothing panics, nothing is taken, and the session goes on.
    #[test]
    fn noise(
        datagrams in prop::collection::vec((0xE0..0xE9u8, prop::collection::vec(any::<u8>(), 0..1500)), 1..20),
        known in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut ann = session_of("ann", &["bob"], true, 1);
        let mut bob = receiver("bob");
        let record = recorded(&mut ann, &mut bob);
        for (kind, mut noise) in datagrams {
            if let Some(first) = noise.first_mut() {
                *first = kind;
            }
            // Some with the beginning of something genuine.
            let (_, genuine) = known.get(&record);
            let kept = cut.index(genuine.len()).min(noise.len());
            let mixed = [&genuine[..kept], &noise[kept..]].concat();
            for datagram in [&noise, &mixed, &genuine[..kept].to_vec()] {
                prop_assert!(hear(&mut bob, datagram).is_err());
                prop_assert!(take(&mut ann, address(2), datagram).is_err());
            }
        }
        let data = content(&mut ann, b"more");
        prop_assert_eq!(hear(&mut bob, &data).unwrap().1, b"more");
        let nak = answer(&mut bob, b"nak again");
        prop_assert_eq!(take(&mut ann, address(2), &nak).unwrap().1, b"nak again");
    }
}

/// No key seals two datagrams with one nonce, through removals, beginnings again and sessions.
#[test]
fn no_nonce_comes_twice() {
    let mut seen = std::collections::HashSet::new();
    let mut note = |session: u8, datagram: &[u8]| {
        // Who begins again has other keys, which `enc` names.
        let key = match Kind::of(datagram).unwrap() {
            Kind::FirstAnswer => datagram[12..44].to_vec(),
            _ => vec![session],
        };
        assert!(seen.insert((key, datagram[..12].to_vec())), "{:02x?}", &datagram[..12]);
    };
    for session in 0..3 {
        let mut ann = session_of("ann", &["bob", "eve", "zoe"], session % 2 == 0, session);
        let mut bob = receiver_with("bob", History::default(), session);
        register(&mut ann, &mut bob, address(2));
        for removed in [1, 2] {
            for _ in 0..100 {
                note(session, &content(&mut ann, b"data"));
                note(session, &control(&mut ann, b"control"));
                note(session, &to_one(&mut ann, address(2), b"one"));
                note(session, &answer(&mut bob, b"answer"));
            }
            ann.remove(&[removed]).unwrap();
            register(&mut ann, &mut bob, address(2));
        }
        for again in 0..5 {
            let mut bob = receiver_with("bob", History::default(), 10 + again + 10 * session);
            hear(&mut bob, &ann.keys(true)[0]).unwrap();
            for _ in 0..10 {
                note(session, &answer(&mut bob, b"answer"));
            }
        }
    }
}
