//! Attacks by hosts that are not on the list, and by a dishonest member: docs/src/seal.md, "Threats".

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::member::Member;
use common::*;
use farcast_core::{Span, Time};
use farcast_seal::{
    Class, Contents, HEADER, History, Kind, Listed, Receiver, ReceiverConfig, Refusal, Scope, Sender,
    SenderConfig,
};
use proptest::prelude::*;

fn receiver_of(name: &str, senders: &[&str]) -> Receiver {
    let senders = senders.iter().map(|name| listed(name)).collect();
    let config = ReceiverConfig { identity: identity(name), senders, scopes: vec![scope()] };
    Receiver::new(config, History::default(), [9; 32])
}

/// Returns a datagram of each kind from one session.
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
                // A new receiver has not heard the keys before.
                let keys_again = *kind == Kind::Keys;
                let mut other = receiver("bob");
                let listener = if keys_again { &mut other } else { &mut bob };
                hear(listener, &flipped).is_err()
            };
            assert!(refused, "{kind:?}, bit {bit}");
        }
    }
    // The attempts have not harmed the genuine datagrams.
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
    bob.close(ann.session());
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
    // The sender's next session does not accept the answers.
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
        // Once with the header of the other datagram, once with the own header and the other session's identifier.
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
    // Entries of one session's keys after the head of the other's.
    let (a, b) = (one.keys(true).remove(0), two.keys(true).remove(0));
    let pasted = [&a[..86], &b[86..]].concat();
    assert!(hear(&mut receiver("bob"), &pasted).is_err());
}

#[test]
fn nobody_else_begins_a_session() {
    // Eve is not on bob's list, or claims to be ann.
    let mut eve = session_of("eve", &["bob"], false, 1);
    let mut bob = receiver("bob");
    assert_eq!(hear(&mut bob, &eve.keys(true)[0]), Err(Refusal::UntrustedSender));
    let mut claimed = eve.keys(true).remove(0);
    claimed[12..44].copy_from_slice(identity("ann").public().signing());
    let tag_of_bob = member::tag(&claimed, identity("bob").public());
    claimed[86..90].copy_from_slice(&tag_of_bob);
    assert_eq!(hear(&mut bob, &claimed), Err(Refusal::BadSignature));
    assert_eq!(hear(&mut bob, &control(&mut eve, b"abort")), Err(Refusal::UnknownSession));
    // Keys for another receiver do not open for bob, even with bob's tag.
    let ann = session_of("ann", &["eve"], false, 1);
    assert_eq!(hear(&mut bob, &ann.keys(true)[0]), Err(Refusal::NotListed));
    let mut other = ann.keys(true).remove(0);
    let tag_of_bob = member::tag(&other, identity("bob").public());
    other[86..90].copy_from_slice(&tag_of_bob);
    assert_eq!(hear(&mut bob, &other), Err(Refusal::BadSignature));
    member::sign_keys(&mut other, &identity("ann"));
    assert_eq!(hear(&mut bob, &other), Err(Refusal::NotListed));
}

#[test]
fn a_member_forges_nothing_but_content() {
    let mut ann = session_of("ann", &["bob", "eve"], false, 1);
    let mut bob = receiver("bob");
    let keys = ann.keys(true).remove(0);
    let eve = Member::new(identity("eve"), &keys, 1);
    hear(&mut bob, &keys).unwrap();
    let abort = eve.seal(Kind::Control, 1, b"abort");
    assert_eq!(hear(&mut bob, &abort), Err(Refusal::BadSignature));
    // A member can forge content, which the manifest detects. But no counter that it uses shuts out later content.
    let poison = eve.seal(Kind::Content, 1 << 40, b"poison");
    assert_eq!(hear(&mut bob, &poison).unwrap().0.class, Class::Content);
    let end = control(&mut ann, b"end");
    assert_eq!(hear(&mut bob, &end).unwrap().1, b"end");
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
    // A signed message sealed anew by a member is refused, because the signature covers the counter.
    assert_eq!(hear(&mut bob, &eve.seal(Kind::Control, 9, &end[12..])), Err(Refusal::BadSignature));
}

#[test]
fn where_content_is_signed_a_member_makes_up_none() {
    let mut ann = session_with("ann", &["bob", "eve"], Contents::Signed, 1);
    let mut bob = receiver("bob");
    let keys = ann.keys(true).remove(0);
    let eve = Member::new(identity("eve"), &keys, 1);
    hear(&mut bob, &keys).unwrap();
    let first = content(&mut ann, b"first");
    assert_eq!(hear(&mut bob, &first).unwrap().1, b"first");
    for (kind, said) in
        [(Kind::Content, &b"poison"[..]), (Kind::Control, b"poison"), (Kind::Content, &first[12..])]
    {
        assert_eq!(hear(&mut bob, &eve.seal(kind, 7, said)), Err(Refusal::BadSignature), "{kind:?}");
    }
    // A changed kind of contents gives another session, for which there are no keys.
    let mut changed = keys;
    changed[3] = 0;
    assert_eq!(hear(&mut receiver("bob"), &changed), Err(Refusal::NotListed));
    assert_eq!(hear(&mut bob, &content(&mut ann, b"second")).unwrap().1, b"second");
}

/// Eve, which knows bob's agreement key, has its list entry made with it, and is first on the list.
#[test]
fn who_claims_the_agreement_key_of_another_is_not_taken_for_it() {
    let eve = Listed {
        name: "eve".into(),
        key: member::claiming(&identity("eve"), &identity("bob")).public().clone(),
    };
    let config = SenderConfig {
        identity: identity("ann"),
        receivers: vec![eve, listed("bob")],
        began_ms: 1,
        scope: scope(),
        contents: Contents::Apart,
        datagram: 1472,
    };
    let mut ann = Sender::new(config, [1; 32]);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let done = answer(&mut bob, b"done");
    let (of, _) = take(&mut ann, address(2), &done).unwrap();
    assert_eq!(ann.name(of.receiver), "bob");
}

/// Mal, whom bob trusts as well, begins a session from all that it can know or draw of ann's.
#[test]
fn no_sender_takes_the_session_of_another() {
    let mut bob = receiver_of("bob", &["ann", "mal"]);
    let (mut ann, mut mal) = (session_of("ann", &["bob"], false, 1), session_of("mal", &["bob"], false, 1));
    hear(&mut bob, &mal.keys(true)[0]).unwrap();
    assert_eq!(hear(&mut bob, &ann.keys(true)[0]).unwrap().0.class, Class::Keys { new: true });
    let (of_ann, _) = hear(&mut bob, &content(&mut ann, b"data")).unwrap();
    let (of_mal, _) = hear(&mut bob, &control(&mut mal, b"abort")).unwrap();
    assert_eq!(bob.sender_of(of_ann.session).map(|(name, _)| name), Some("ann"));
    assert_eq!(bob.sender_of(of_mal.session).map(|(name, _)| name), Some("mal"));
}

/// Two sessions whose identifiers begin alike, found by trying: mal chose the start of its own session.
#[test]
fn no_sender_hides_the_session_of_another() {
    let mut bob = receiver_of("bob", &["mal", "ann"]);
    let session = |from: &str, contents, began_ms| {
        let receivers = vec![listed("bob")];
        let config = SenderConfig {
            identity: identity(from),
            receivers,
            began_ms,
            scope: scope(),
            contents,
            datagram: 1472,
        };
        Sender::new(config, [1; 32])
    };
    let (mut ann, mut mal) =
        (session("ann", Contents::Apart, 120_754), session("mal", Contents::Together, 10_869));
    assert_eq!(ann.session().0[..4], mal.session().0[..4]);
    hear(&mut bob, &mal.keys(true)[0]).unwrap();
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let data = content(&mut ann, b"data");
    assert_eq!(hear(&mut bob, &data), Err(Refusal::UnknownEpoch));
    assert_eq!(bob.wants_key(NOW, &data), Some(sender_address()), "for ann's session");
    assert_eq!(hear(&mut bob, &content(&mut mal, b"other")).unwrap().1, b"other");
}

/// Mal, whom bob trusts as well, sends from ann's address.
#[test]
fn no_sender_diverts_the_answers_to_another() {
    let mut bob = receiver_of("bob", &["ann", "mal"]);
    let mut ann = session_of("ann", &["bob"], true, 1);
    register(&mut ann, &mut bob, address(2));
    let mut mal = session_of("mal", &["bob"], true, 2);
    for claim in [mal.keys(true).remove(0), control(&mut mal, b"here")] {
        assert!(bob.open(NOW + Span::from_secs(1), sender_address(), &mut claim.clone()).is_ok());
        let nak = answer(&mut bob, b"nak");
        assert_eq!(take(&mut ann, address(2), &nak).unwrap().1, b"nak");
    }
}

/// Bob is sent the recorded keys of more sessions than it takes part in at once, all of which it had missed.
#[test]
fn sessions_played_back_end_none_that_goes_on() {
    let mut bob = receiver("bob");
    let missed: Vec<_> =
        (0..20).rev().map(|n| session_of("ann", &["bob"], true, n).keys(true).remove(0)).collect();
    let mut ann = session_of("ann", &["bob"], true, 99);
    register(&mut ann, &mut bob, address(2));
    for (n, keys) in missed.iter().enumerate() {
        let now = NOW + Span::from_millis(1 + n as u64);
        let result = bob.open(now, sender_address(), &mut keys.clone());
        assert_eq!(result.is_ok(), n < 15, "{n}: {result:?}");
    }
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
    assert_eq!(take(&mut ann, address(2), &answer(&mut bob, b"nak")).unwrap().1, b"nak", "to ann as it is");
    // There is room for a session that begins later.
    let later = session_of("ann", &["bob"], true, 100);
    assert_eq!(hear(&mut bob, &later.keys(true)[0]).unwrap().0.class, Class::Keys { new: true });
    assert_eq!(hear(&mut bob, &content(&mut ann, b"more")).unwrap().1, b"more");
}

/// Without keys apart for content, anybody with a recording of a session that bob has missed could replay all of it.
#[test]
fn what_was_slept_through_is_not_heard_beside_what_is_later() {
    for contents in [Contents::Together, Contents::Signed] {
        let (mut before, mut ann) =
            (session_with("ann", &["bob"], contents, 1), session_with("ann", &["bob"], contents, 2));
        let (missed, keys) = (before.keys(true).remove(0), ann.keys(true).remove(0));
        let mut bob = receiver("bob");
        hear(&mut bob, &keys).unwrap();
        assert_eq!(hear(&mut bob, &missed), Err(Refusal::EarlierSession));
        assert_eq!(hear(&mut bob, &control(&mut before, b"end")), Err(Refusal::UnknownSession));
        let mut again = receiver_with("bob", bob.history().clone(), 5);
        assert_eq!(hear(&mut again, &missed), Err(Refusal::EarlierSession), "after it was started again");
        // A session that bob has joined ends when a later one begins, even if somebody continues to replay it.
        let mut bob = receiver("bob");
        hear(&mut bob, &missed).unwrap();
        assert_eq!(hear(&mut bob, &content(&mut before, b"data")).unwrap().1, b"data");
        hear(&mut bob, &keys).unwrap();
        for late in [content(&mut before, b"more"), control(&mut before, b"end")] {
            assert_eq!(hear(&mut bob, &late), Err(Refusal::UnknownSession));
        }
        assert_eq!(hear(&mut bob, &missed), Err(Refusal::OldSession));
        assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
        // Sessions of another sender are not affected.
        let mut bob = receiver_of("bob", &["ann", "mal"]);
        hear(&mut bob, &session_with("mal", &["bob"], contents, 9).keys(true)[0]).unwrap();
        hear(&mut bob, &keys).unwrap();
    }
}

/// Bob accepts sessions for a group and sessions for one host. A missed session for either counts as earlier than a
/// later one for the other, and than one whose content is apart.
#[test]
fn what_was_slept_through_is_not_heard_by_another_way() {
    let host = Scope::of("any", "10.0.0.1:5402".parse().unwrap());
    let session = |scope, contents, began_ms| {
        let config = SenderConfig { scope, contents, ..sending("ann", &["bob"], began_ms) };
        Sender::new(config, [began_ms as u8; 32])
    };
    for (first, second) in [(host, scope()), (scope(), host), (scope(), scope())] {
        for later in [Contents::Together, Contents::Apart, Contents::Signed] {
            let (before, after) = (session(first, Contents::Together, 1), session(second, later, 2));
            let (missed, keys) = (before.keys(true).remove(0), after.keys(true).remove(0));
            let config = ReceiverConfig {
                identity: identity("bob"),
                senders: vec![listed("ann")],
                scopes: vec![scope(), host],
            };
            let mut bob = Receiver::new(config.clone(), History::default(), [9; 32]);
            hear(&mut bob, &keys).unwrap();
            assert_eq!(hear(&mut bob, &missed), Err(Refusal::EarlierSession), "{later:?}");
            let mut bob = Receiver::new(config, History::default(), [9; 32]);
            hear(&mut bob, &missed).unwrap();
            hear(&mut bob, &keys).unwrap();
            assert!(bob.sender_of(before.session()).is_none() && bob.sender_of(after.session()).is_some());
            let again = hear(&mut bob, &missed);
            assert!(matches!(again, Err(Refusal::EarlierSession | Refusal::OldSession)), "{again:?}");
        }
    }
}

/// Content that leaves before any answer is sealed with the key in KEYS, and may be a whole small file.
#[test]
fn early_content_that_was_slept_through_is_not_heard_beside_what_is_later() {
    let (mut before, mut ann) = (session_of("ann", &["bob"], true, 1), session_of("ann", &["bob"], true, 2));
    let mut early = [&[0; HEADER][..], b"old", &[0; 16]].concat();
    before.seal_early(&mut early).unwrap();
    let mut bob = receiver("bob");
    hear(&mut bob, &before.keys(true)[0]).unwrap();
    assert_eq!(hear(&mut bob, &early).unwrap().1, b"old", "it is the last");
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    bob.close(ann.session());
    for mut bob in [receiver_with("bob", bob.history().clone(), 5), bob] {
        hear(&mut bob, &before.keys(true)[0]).unwrap();
        assert_eq!(hear(&mut bob, &early), Err(Refusal::EarlierSession));
        // The session continues if its sender is present after all.
        register(&mut before, &mut bob, address(2));
        assert_eq!(hear(&mut bob, &content(&mut before, b"data")).unwrap().1, b"data");
    }
    // The missed session was heard first, and then another begins.
    let mut bob = receiver("bob");
    hear(&mut bob, &before.keys(true)[0]).unwrap();
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    assert_eq!(hear(&mut bob, &early), Err(Refusal::EarlierSession));
}

/// The keys of many missed sessions make a receiver forget the last session that it heard, but not that this was later.
#[test]
fn no_number_of_sessions_makes_an_earlier_one_the_last() {
    let mut ann = session_of("ann", &["bob"], true, 200);
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    bob.close(ann.session());
    let mut last = None;
    for n in 1..=64 {
        let mut missed = session_of("ann", &["bob"], true, n);
        let mut early = [&[0; HEADER][..], b"old", &[0; 16]].concat();
        missed.seal_early(&mut early).unwrap();
        let keys = missed.keys(true).remove(0);
        hear(&mut bob, &keys).unwrap();
        last = Some((keys, early));
    }
    let (keys, early) = last.unwrap();
    let history = History::from_text(&bob.history().to_text()).unwrap();
    for mut bob in [bob, receiver_with("bob", history, 5)] {
        hear(&mut bob, &keys).unwrap();
        assert_eq!(hear(&mut bob, &early), Err(Refusal::EarlierSession));
        assert_eq!(hear(&mut bob, &ann.keys(true)[0]), Err(Refusal::OldSession));
    }
}

/// Bob has registered in a session. Sixteen later sessions of ann's that it has missed are replayed to it, from the
/// address of the one that continues.
#[test]
fn sessions_played_back_keep_no_answer_from_who_is_heard() {
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    for n in 2..=20 {
        let missed = session_of("ann", &["bob"], true, n);
        let later = bob.open(at(1), sender_address(), &mut missed.keys(true).remove(0)).unwrap();
        assert_eq!(later.class, Class::Keys { new: true });
        assert!(bob.sender_of(ann.session()).is_some(), "{n}");
    }
    let heard = bob.open(at(2), sender_address(), &mut control(&mut ann, b"status?"));
    assert_eq!(heard.unwrap().session, ann.session());
    let nak = answer(&mut bob, b"nak");
    assert_eq!(take(&mut ann, address(2), &nak).unwrap().1, b"nak");
    // A session that begins at the address and is heard gets the answers.
    let mut again = session_of("ann", &["bob"], true, 21);
    for datagram in [again.keys(true).remove(0), control(&mut again, b"announcement")] {
        bob.open(at(3), sender_address(), &mut datagram.clone()).unwrap();
    }
    let first = answer(&mut bob, b"registration");
    assert_eq!(take(&mut again, address(2), &first).unwrap().1, b"registration");
}

/// Two processes have bob's key. The record of one counts when a session begins at the other.
#[test]
fn what_another_with_the_same_key_has_heard_is_not_played_here() {
    let mut ann = session_of("ann", &["bob"], false, 1);
    let keys = ann.keys(true).remove(0);
    let (mut there, mut here) = (receiver("bob"), receiver_with("bob", History::default(), 7));
    let session = hear(&mut there, &keys).unwrap().0.session;
    let said: Vec<_> = (0..3).map(|_| control(&mut ann, b"said")).collect();
    hear(&mut there, &said[1]).unwrap();
    hear(&mut here, &keys).unwrap();
    assert!(here.learn(session, there.history()));
    assert_eq!(hear(&mut here, &said[0]), Err(Refusal::Replayed));
    assert_eq!(hear(&mut here, &said[1]), Err(Refusal::Replayed));
    assert_eq!(hear(&mut here, &said[2]).unwrap().1, b"said");
    // A session that is over at the other process, or was followed by another.
    there.close(session);
    for next in [None, Some(session_of("ann", &["bob"], false, 2))] {
        if let Some(next) = next {
            there = receiver("bob");
            hear(&mut there, &next.keys(true)[0]).unwrap();
        }
        let mut here = receiver_with("bob", History::default(), 7);
        hear(&mut here, &keys).unwrap();
        assert!(!here.learn(session, there.history()));
        assert_eq!(hear(&mut here, &said[2]), Err(Refusal::UnknownSession));
        assert!(hear(&mut here, &keys).is_err());
    }
}

/// A member of a session with unsigned content has a key. It must not be valid for content of another protocol or
/// group.
#[test]
fn keys_for_one_thing_are_none_for_another() {
    let group = "239.192.0.1:5402".parse().unwrap();
    let others = [
        Scope::of("another", group),
        Scope::of("any", "239.192.0.1:5403".parse().unwrap()),
        Scope::of("any", "239.192.0.2:5402".parse().unwrap()),
        Scope::of("any", "10.0.0.1:5402".parse().unwrap()),
    ];
    let ann = session_of("ann", &["bob"], false, 1);
    let keys = ann.keys(true).remove(0);
    for other in others {
        let config =
            ReceiverConfig { identity: identity("bob"), senders: vec![listed("ann")], scopes: vec![other] };
        let mut bob = Receiver::new(config, History::default(), [9; 32]);
        assert_eq!(hear(&mut bob, &keys), Err(Refusal::OtherScope));
        // A changed scope gives another session.
        let mut changed = keys.clone();
        let theirs = session_for(other).keys(true).remove(0);
        changed[76..84].copy_from_slice(&theirs[76..84]);
        assert_eq!(hear(&mut bob, &changed), Err(Refusal::NotListed));
        assert!(hear(&mut bob, &theirs).is_ok());
    }
    let to_one = |protocol, to: &str| Scope::of(protocol, to.parse().unwrap());
    assert_eq!(to_one("any", "10.0.0.1:5402"), to_one("any", "[2001:db8::1]:9"), "one host is no group");
    assert_ne!(to_one("any", "10.0.0.1:5402"), to_one("another", "10.0.0.1:5402"));
}

#[test]
fn no_keys_of_an_earlier_epoch_are_taken_again() {
    let mut ann = session_of("ann", &["bob", "eve"], true, 1);
    let mut bob = receiver("bob");
    let before = ann.keys(true).remove(0);
    register(&mut ann, &mut bob, address(2));
    ann.remove(&[1]).unwrap();
    let after = ann.keys(true).remove(0);
    hear(&mut bob, &after).unwrap();
    assert_eq!(hear(&mut bob, &before), Err(Refusal::UnknownEpoch));
    let mut bob = receiver_with("bob", bob.history().clone(), 5);
    assert_eq!(hear(&mut bob, &before), Err(Refusal::UnknownEpoch));
    hear(&mut bob, &after).unwrap();
}

/// The sender makes a key agreement only for an answer whose author has the pair secret.
#[test]
fn a_first_answer_without_its_guard_is_refused() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let first = answer(&mut bob, b"registration");
    for bit in 0..64 {
        let mut flipped = first.clone();
        flipped[12 + 32 + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(take(&mut ann, address(2), &flipped), Err(Refusal::Forged), "bit {bit}");
    }
    take(&mut ann, address(2), &first).unwrap();
}

/// An answer from before a restart is held back until the receiver has registered anew.
#[test]
fn an_answer_held_back_keeps_no_key_from_who_began_again() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    let held = answer(&mut bob, b"nak");
    let mut bob = receiver_with("bob", History::default(), 7);
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    take(&mut ann, address(2), &answer(&mut bob, b"register")).unwrap();
    take(&mut ann, address(2), &held).unwrap();
    let (of, _) = take(&mut ann, address(2), &answer(&mut bob, b"")).unwrap();
    assert!(ann.lacks_key(of.receiver));
    hear(&mut bob, &to_one(&mut ann, address(2), b"")).unwrap();
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
}

/// A host that has seen the session's identifier claims content of an epoch that does not exist.
#[test]
fn nobody_makes_a_whole_group_ask() {
    let names: Vec<String> = (0..64).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut ann = session_of("ann", &names, true, 1);
    let mut all: Vec<_> = names.iter().map(|name| receiver(name)).collect();
    for (n, one) in all.iter_mut().enumerate() {
        register(&mut ann, one, address(n));
    }
    let claim = |epoch| [&[0xE2, epoch], &ann.session().0[..4], &[0, 0, 0, 0, 0, 1], &[0; 16]].concat();
    let mut asked = 0;
    for second in 0..60 {
        let now = NOW + Span::from_secs(second);
        let many = all.iter_mut().filter_map(|one| one.wants_key(now, &claim(2))).count();
        assert!(many < 16, "{many} at once");
        asked += many;
    }
    assert!(asked <= 64, "{asked} in a minute");
    // Without content apart there is no such key to request.
    let ann = session_of("ann", &["bob"], false, 1);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let claim = [&[0xE2, 1], &ann.session().0[..4], &[0, 0, 0, 0, 0, 1], &[0; 16]].concat();
    assert_eq!(bob.wants_key(NOW, &claim), None);
}

/// Such claims do not delay the request for a key that exists.
#[test]
fn nobody_keeps_a_receiver_from_asking() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    let claim = [&[0xE2, 200], &ann.session().0[..4], &[0, 0, 0, 0, 0, 1], &[0; 16]].concat();
    for second in 0..600 {
        let _ = bob.wants_key(NOW + Span::from_secs(second), &claim);
    }
    let data = content(&mut ann, b"data");
    assert_eq!(bob.wants_key(NOW + Span::from_secs(600), &data), Some(sender_address()));
}

#[test]
fn nobody_answers_for_another() {
    let mut ann = session_of("ann", &["bob", "eve"], true, 1);
    let (mut bob, mut eve) = (receiver("bob"), receiver("eve"));
    register(&mut ann, &mut bob, address(2));
    register(&mut ann, &mut eve, address(3));
    // An answer of eve's with bob's tag, from bob's address.
    let genuine = answer(&mut bob, b"nak");
    let mut forged = answer(&mut eve, b"done");
    let (of, _) = take(&mut ann, address(2), &forged).unwrap();
    assert_eq!(ann.name(of.receiver), "eve", "by the key, not the address");
    forged[2..6].copy_from_slice(&genuine[2..6]);
    assert_eq!(take(&mut ann, address(2), &forged), Err(Refusal::Forged));
    // A first answer of eve's, drawn with its own pair secret, with bob's tag.
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
        let mal = session_of("mal", &["bob"], true, 100 + n);
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
    /// No input makes the engines panic, none is accepted, and the session continues.
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
            // Some of it starts with part of a genuine datagram.
            let (_, genuine) = known.get(&record);
            let kept = cut.index(genuine.len()).min(noise.len());
            let mixed = [&genuine[..kept], &noise[kept..]].concat();
            for datagram in [&noise, &mixed, &genuine[..kept].to_vec()] {
                // Keys of a known epoch contain nothing new and are not checked.
                let heard = hear(&mut bob, datagram).map(|(opened, _)| opened.class);
                let taken = heard.is_ok_and(|class| class != (Class::Keys { new: false }));
                prop_assert!(!taken);
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
        // A receiver that was started again has other keys, which `enc` identifies.
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
