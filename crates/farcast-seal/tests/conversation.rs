//! Conversations between a sender and the receivers on its list.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use farcast_core::{Span, Time};
use farcast_seal::{
    ANSWER_OVERHEAD, CONTENT_OVERHEAD, CONTROL_OVERHEAD, Class, FIRST_ANSWER_OVERHEAD, History, KEYS_ENTRIES,
    KEYS_LEN, Kind, Refusal, TO_ONE_KEY_OVERHEAD, TO_ONE_OVERHEAD,
};

#[test]
fn a_transfer() {
    let mut ann = session_of("ann", &["bob", "eve"], true, 1);
    let mut bob = receiver("bob");
    let keys = ann.keys(true);
    assert_eq!((keys.len(), keys[0].len()), (1, KEYS_LEN - (KEYS_ENTRIES - 2) * 84));
    assert_eq!(hear(&mut bob, &keys[0]).unwrap().0.class, Class::Keys { new: true });
    assert_eq!(hear(&mut bob, &keys[0]).unwrap().0.class, Class::Keys { new: false });

    let announcement = control(&mut ann, b"announcement");
    assert_eq!(announcement.len(), 12 + CONTROL_OVERHEAD);
    let (opened, said) = hear(&mut bob, &announcement).unwrap();
    assert_eq!((opened.class, &said[..]), (Class::Control, &b"announcement"[..]));
    assert_eq!(bob.sender_of(opened.session).map(|(name, _)| name), Some("ann"));

    // Content has another key, which comes with the first message for bob alone.
    let early = content(&mut ann, b"early");
    assert_eq!(hear(&mut bob, &early), Err(Refusal::UnknownEpoch));
    let registration = answer(&mut bob, b"registration");
    assert_eq!(registration.len(), 12 + FIRST_ANSWER_OVERHEAD);
    let (of, said) = take(&mut ann, address(2), &registration).unwrap();
    assert_eq!((ann.name(of.receiver), &said[..]), ("bob", &b"registration"[..]));
    assert!(ann.lacks_key(of.receiver));
    let granted = to_one(&mut ann, address(2), b"granted");
    assert_eq!(granted.len(), 7 + TO_ONE_KEY_OVERHEAD);
    let (opened, said) = hear(&mut bob, &granted).unwrap();
    assert_eq!((opened.class, &said[..]), (Class::ToOne, &b"granted"[..]));
    assert_eq!(hear(&mut bob, &early).unwrap().1, b"early");

    let later = answer(&mut bob, b"nak");
    assert_eq!((Kind::of(&later), later.len()), (Some(Kind::Answer), 3 + ANSWER_OVERHEAD));
    assert_eq!(take(&mut ann, address(2), &later).unwrap().1, b"nak");
    assert!(!ann.lacks_key(of.receiver));
    assert_eq!(to_one(&mut ann, address(2), b"granted").len(), 7 + TO_ONE_OVERHEAD);

    let data = content(&mut ann, b"data");
    assert_eq!(data.len(), 4 + CONTENT_OVERHEAD);
    let (opened, said) = hear(&mut bob, &data).unwrap();
    assert_eq!((opened.class, &said[..]), (Class::Content, &b"data"[..]));
    assert!(ann.refusals().iter().next().is_none());
    assert_eq!(bob.refusals().iter().collect::<Vec<_>>(), [(Refusal::UnknownEpoch, 1)]);
}

#[test]
fn content_needs_no_answer_where_nobody_answers() {
    let mut ann = session_of("ann", &["bob"], false, 1);
    let mut bob = receiver("bob");
    let early = content(&mut ann, b"early");
    assert_eq!(hear(&mut bob, &early), Err(Refusal::UnknownSession));
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    assert_eq!(hear(&mut bob, &early).unwrap().1, b"early");
    assert_eq!(hear(&mut bob, &control(&mut ann, b"end")).unwrap().1, b"end");
}

#[test]
fn many_receivers() {
    let names: Vec<String> = (0..40).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut ann = session_of("ann", &names, true, 1);
    let keys = ann.keys(true);
    assert_eq!(keys.iter().map(Vec::len).collect::<Vec<_>>(), [KEYS_LEN, KEYS_LEN, KEYS_LEN - 5 * 84]);
    let mut all: Vec<_> = names.iter().map(|name| receiver(name)).collect();
    for (n, one) in all.iter_mut().enumerate() {
        register(&mut ann, one, address(n));
        assert_eq!(one.refusals().of(Refusal::NotListed), (n / KEYS_ENTRIES) as u64, "the keys of others");
    }
    let data = content(&mut ann, b"data");
    for one in &mut all {
        assert_eq!(hear(one, &data).unwrap().1, b"data");
    }
    // Receivers that have answered need no keys.
    assert!(ann.keys(false).is_empty());
    assert_eq!(ann.keys(true).len(), 3);
}

#[test]
fn who_lacks_the_key_asks_for_it() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    hear(&mut bob, &ann.keys(true)[0]).unwrap();
    take(&mut ann, address(2), &answer(&mut bob, b"registration")).unwrap();
    let _lost = to_one(&mut ann, address(2), b"granted");
    let data = content(&mut ann, b"data");
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    assert_eq!(bob.wants_key(at(0), &data), Some(sender_address()));
    assert_eq!(bob.wants_key(at(900), &data), None, "it waits for an answer");
    assert_eq!(bob.wants_key(at(1000), &data), Some(sender_address()));
    assert_eq!(bob.wants_key(at(2999), &data), None, "longer each time");
    let asking = answer(&mut bob, b"");
    let (of, said) = take(&mut ann, address(2), &asking).unwrap();
    assert!(said.is_empty() && ann.lacks_key(of.receiver));
    assert_eq!(hear(&mut bob, &to_one(&mut ann, address(2), b"")).unwrap().1, b"");
    assert_eq!(hear(&mut bob, &data).unwrap().1, b"data");
    assert_eq!(bob.wants_key(at(9000), &data), None);
}

#[test]
fn one_that_begins_again_goes_on() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    let old = answer(&mut bob, b"old");
    let history = History::from_text(&bob.history().to_text()).unwrap();
    let mut bob = receiver_with("bob", history, 7);
    register(&mut ann, &mut bob, address(2));
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
    assert_eq!(take(&mut ann, address(2), &answer(&mut bob, b"new")).unwrap().1, b"new");
    // An answer that was still on its way is valid, and the next answers go to the beginning that was heard last.
    assert_eq!(take(&mut ann, address(2), &old).unwrap().1, b"old");
    take(&mut ann, address(2), &answer(&mut bob, b"newer")).unwrap();
    assert_eq!(hear(&mut bob, &to_one(&mut ann, address(2), b"back")).unwrap().1, b"back");
}

#[test]
fn one_that_moves_is_found() {
    let mut ann = session_of("ann", &["bob", "eve"], true, 1);
    let (mut bob, mut eve) = (receiver("bob"), receiver("eve"));
    register(&mut ann, &mut bob, address(2));
    take(&mut ann, address(3), &answer(&mut bob, b"here")).unwrap();
    assert_eq!(hear(&mut bob, &to_one(&mut ann, address(3), b"there")).unwrap().1, b"there");
    assert!(ann.seal_to(address(2), &mut b"nobody".to_vec()).is_err());
    // Another receiver uses bob's previous address.
    register(&mut ann, &mut eve, address(3));
    assert_eq!(hear(&mut eve, &to_one(&mut ann, address(3), b"eve")).unwrap().1, b"eve");
}

#[test]
fn who_is_removed_hears_nothing_more() {
    for separate in [true, false] {
        let mut ann = session_of("ann", &["bob", "eve"], separate, 1);
        let (mut bob, mut eve) = (receiver("bob"), receiver("eve"));
        register(&mut ann, &mut bob, address(2));
        register(&mut ann, &mut eve, address(3));
        let before = content(&mut ann, b"before");
        ann.remove(&[1]).unwrap();
        // The keys of the new epoch, and content that only the old keys would open.
        for keys in ann.keys(true) {
            assert_eq!(hear(&mut eve, &keys), Err(Refusal::NotListed));
            hear(&mut bob, &keys).unwrap();
        }
        assert_eq!(take(&mut ann, address(3), &answer(&mut eve, b"done")), Err(Refusal::NotListed));
        assert!(ann.seal_to(address(3), &mut b"hello".to_vec()).is_err());
        take(&mut ann, address(2), &answer(&mut bob, b"still here")).unwrap();
        let key = to_one(&mut ann, address(2), b"");
        hear(&mut bob, &key).unwrap();
        let (data, end) = (content(&mut ann, b"data"), control(&mut ann, b"end"));
        assert_eq!(hear(&mut bob, &data).unwrap().1, b"data");
        assert_eq!(hear(&mut bob, &end).unwrap().1, b"end");
        assert_eq!(hear(&mut eve, &data), Err(Refusal::UnknownEpoch));
        assert_eq!(hear(&mut eve, &end), Err(Refusal::UnknownEpoch));
        assert_eq!(
            hear(&mut bob, &before),
            Err(Refusal::UnknownEpoch),
            "who was removed could have sealed it"
        );
    }
}

#[test]
fn a_key_by_itself_opens_the_whole_epoch() {
    let mut ann = session_of("ann", &["bob", "eve"], true, 1);
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    ann.remove(&[1]).unwrap();
    // The new keys for the group were lost; content shows bob that it lacks one.
    let (data, end) = (content(&mut ann, b"data"), control(&mut ann, b"end"));
    let mut minute = (0..64).map(|s| Time::ZERO + Span::from_secs(s));
    assert!(minute.any(|now| bob.wants_key(now, &data) == Some(sender_address())));
    take(&mut ann, address(2), &answer(&mut bob, b"")).unwrap();
    hear(&mut bob, &to_one(&mut ann, address(2), b"")).unwrap();
    assert_eq!(hear(&mut bob, &data).unwrap().1, b"data");
    assert_eq!(hear(&mut bob, &end).unwrap().1, b"end");
}

#[test]
fn no_epochs_are_left_in_the_end() {
    let mut ann = session_of("ann", &["bob"], true, 1);
    for _ in 0..126 {
        ann.remove(&[]).unwrap();
    }
    assert!(ann.remove(&[0]).is_err());
    let mut bob = receiver("bob");
    register(&mut ann, &mut bob, address(2));
    assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
}
