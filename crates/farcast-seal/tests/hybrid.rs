//! Receivers with and without hybrid keys in one session, and attacks on hybrid keys.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::member::{sign_keys, tag};
use common::*;
use farcast_seal::{
    Class, Contents, HYBRID_KEYS_LEN, History, Identity, KEYS_LEN, Listed, Receiver, ReceiverConfig, Refusal,
    Sender, SenderConfig, Suite,
};
use proptest::prelude::*;

const ENTRIES: usize = 86;
const HYBRID_ENTRY: usize = 1172;

fn hybrid(name: &str) -> Identity {
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    Identity::hybrid_from_seed(seed)
}

/// Creates a session of ann's for these receivers, whose names are their numbers.
fn session(receivers: &[&Identity], datagram: usize) -> Sender {
    let listed = |(n, one): (usize, &&Identity)| Listed { name: n.to_string(), key: one.public().clone() };
    let config = SenderConfig {
        identity: identity("ann"),
        receivers: receivers.iter().enumerate().map(listed).collect(),
        began_ms: 1,
        scope: scope(),
        contents: Contents::Apart,
        datagram,
    };
    Sender::new(config, [1; 32])
}

fn receiver_of(identity: &Identity, seed: u8) -> Receiver {
    let config =
        ReceiverConfig { identity: identity.clone(), senders: vec![listed("ann")], scopes: vec![scope()] };
    Receiver::new(config, History::default(), [seed; 32])
}

fn lengths(keys: &[Vec<u8>]) -> Vec<usize> {
    keys.iter().map(Vec::len).collect()
}

#[test]
fn some_have_hybrid_keys() {
    let (bob, eve, zoe) = (hybrid("bob"), identity("eve"), hybrid("zoe"));
    let mut ann = session(&[&bob, &eve, &zoe], 1472);
    let keys = ann.keys(true);
    assert_eq!(lengths(&keys), [KEYS_LEN - 14 * 84, HYBRID_KEYS_LEN, HYBRID_KEYS_LEN]);
    assert_eq!([keys[0][2], keys[1][2], keys[2][2]], [1, 2, 2]);
    let mut all = [receiver_of(&bob, 2), receiver_of(&eve, 3), receiver_of(&zoe, 4)];
    for (n, one) in all.iter_mut().enumerate() {
        register(&mut ann, one, address(n));
        assert!(ann.seal_to(address(n), &mut b"to it".to_vec()).is_ok());
    }
    let (data, end) = (content(&mut ann, b"data"), control(&mut ann, b"end"));
    for (n, one) in all.iter_mut().enumerate() {
        assert_eq!(hear(one, &data).unwrap().1, b"data");
        assert_eq!(hear(one, &end).unwrap().1, b"end");
        let nak = answer(one, b"nak");
        let (of, said) = take(&mut ann, address(n), &nak).unwrap();
        assert_eq!((of.receiver, &said[..]), (n, &b"nak"[..]));
    }
    assert!(ann.keys(false).is_empty());
    // Without eve, all have hybrid keys, and none are wrapped by a weaker suite.
    ann.remove(&[1]).unwrap();
    let keys = ann.keys(true);
    assert_eq!(lengths(&keys), [HYBRID_KEYS_LEN; 2]);
    let [bob, eve, zoe] = &mut all;
    for one in [&mut *bob, zoe] {
        assert!(keys.iter().filter(|keys| hear(one, keys).is_ok()).count() > 0);
    }
    assert!(keys.iter().all(|keys| hear(eve, keys) == Err(Refusal::NotListed)));
    take(&mut ann, address(0), &answer(bob, b"still here")).unwrap();
    hear(bob, &to_one(&mut ann, address(0), b"")).unwrap();
    let data = content(&mut ann, b"more");
    assert_eq!(hear(bob, &data).unwrap().1, b"more");
    assert_eq!(hear(eve, &data), Err(Refusal::UnknownEpoch));
}

#[test]
fn what_does_not_fit_leaves_all_the_same() {
    let (bob, eve) = (hybrid("bob"), identity("eve"));
    let ann = session(&[&bob, &eve, &identity("a"), &identity("b")], 320);
    assert_eq!(lengths(&ann.keys(true)), [318, 234, HYBRID_KEYS_LEN]);
    // Larger datagrams hold no more entries, because packets have 1500 octets.
    let ann = session(&[&bob, &hybrid("zoe")], 9000);
    assert_eq!(lengths(&ann.keys(true)), [HYBRID_KEYS_LEN; 2]);
}

#[test]
fn one_with_a_hybrid_key_begins_again() {
    let bob = hybrid("bob");
    let mut ann = session(&[&bob], 1472);
    for seed in 0..3 {
        let mut bob = receiver_of(&bob, seed);
        register(&mut ann, &mut bob, address(2));
        assert_eq!(hear(&mut bob, &content(&mut ann, b"data")).unwrap().1, b"data");
    }
}

#[test]
fn no_flipped_bit_of_hybrid_keys_is_taken() {
    let bob = hybrid("bob");
    let keys = session(&[&bob], 1472).keys(true).remove(0);
    for bit in (0..8 * keys.len()).step_by(3) {
        let mut flipped = keys.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(hear(&mut receiver_of(&bob, 2), &flipped).is_err(), "bit {bit}");
    }
    // Nor if the sender signs the change: every part of an entry has an effect, ML-KEM's and X25519's.
    for bit in (0..8 * HYBRID_ENTRY).step_by(37) {
        let mut flipped = keys.clone();
        flipped[ENTRIES + bit / 8] ^= 1 << (bit % 8);
        sign_keys(&mut flipped, &identity("ann"));
        let heard = hear(&mut receiver_of(&bob, 2), &flipped);
        assert_eq!(heard, Err(Refusal::NotListed), "bit {bit}");
    }
}

#[test]
fn keys_of_no_suite_or_of_another_length_are_refused() {
    let (bob, eve) = (hybrid("bob"), identity("eve"));
    let ann = session(&[&bob, &eve], 1472);
    for keys in ann.keys(true) {
        for one in [&bob, &eve] {
            for suite in (0..=255).filter(|&suite| suite != keys[2]) {
                let mut changed = keys.clone();
                changed[2] = suite;
                sign_keys(&mut changed, &identity("ann"));
                assert_eq!(
                    hear(&mut receiver_of(one, 2), &changed),
                    Err(Refusal::Malformed),
                    "suite {suite}"
                );
            }
        }
    }
    let keys = ann.keys(true).remove(1);
    let (signed, signature) = keys.split_at(keys.len() - 64);
    let entry = &signed[ENTRIES..];
    let of = |count: u8, entries: &[u8]| {
        let mut made = [&signed[..ENTRIES], entries, signature].concat();
        made[85] = count;
        sign_keys(&mut made, &identity("ann"));
        made
    };
    for len in 0..entry.len() {
        let heard = hear(&mut receiver_of(&bob, 2), &of(1, &entry[..len]));
        assert_eq!(heard, Err(Refusal::Malformed), "{len} octets of an entry");
    }
    let long = of(1, &[entry, &[0]].concat());
    let two = [entry, entry].concat();
    for wrong in [of(0, entry), of(2, entry), of(0, &[]), of(1, &two), of(2, &two), long] {
        assert_eq!(hear(&mut receiver_of(&bob, 2), &wrong), Err(Refusal::Malformed));
    }
    assert_eq!(
        hear(&mut receiver_of(&bob, 2), &of(1, entry)).unwrap().0.class,
        Class::Keys { new: true },
        "as it was"
    );
}

#[test]
fn an_entry_for_another_does_not_open() {
    let (bob, zoe) = (hybrid("bob"), hybrid("zoe"));
    let mut keys = session(&[&zoe], 1472).keys(true).remove(0);
    assert_eq!(hear(&mut receiver_of(&bob, 2), &keys), Err(Refusal::NotListed));
    let tag_of_bob = tag(&keys, bob.public());
    keys[ENTRIES..ENTRIES + 4].copy_from_slice(&tag_of_bob);
    assert_eq!(hear(&mut receiver_of(&bob, 2), &keys), Err(Refusal::BadSignature));
    sign_keys(&mut keys, &identity("ann"));
    assert_eq!(hear(&mut receiver_of(&bob, 2), &keys), Err(Refusal::NotListed));
    // Nor does an entry for bob itself from another session of the same sender.
    let mut other = session(&[&bob], 1472).keys(true).remove(0);
    other[4..12].copy_from_slice(&7u64.to_be_bytes());
    let tag_of_bob = tag(&other, bob.public());
    other[ENTRIES..ENTRIES + 4].copy_from_slice(&tag_of_bob);
    sign_keys(&mut other, &identity("ann"));
    assert_eq!(hear(&mut receiver_of(&bob, 2), &other), Err(Refusal::NotListed));
}

/// A sender has bob's line from before its key was hybrid, or pretends to.
#[test]
fn who_has_a_hybrid_key_takes_nothing_that_is_wrapped_by_less() {
    let (before, mut after) = (identity("bob"), identity("bob"));
    after.renew_hybrid([7; 32]);
    assert_eq!(before.public().signing(), after.public().signing());
    let mut keys = session(&[&before], 1472).keys(true).remove(0);
    assert!(hear(&mut receiver_of(&before, 2), &keys).is_ok());
    assert_eq!(hear(&mut receiver_of(&after, 2), &keys), Err(Refusal::NotListed));
    let tag_of_bob = tag(&keys, after.public());
    keys[ENTRIES..ENTRIES + 4].copy_from_slice(&tag_of_bob);
    sign_keys(&mut keys, &identity("ann"));
    assert_eq!(hear(&mut receiver_of(&after, 2), &keys), Err(Refusal::NotListed));
    // The same in the other direction.
    let keys = session(&[&after], 1472).keys(true).remove(0);
    assert!(hear(&mut receiver_of(&after, 2), &keys).is_ok());
    assert_eq!(hear(&mut receiver_of(&before, 2), &keys), Err(Refusal::NotListed));
}

/// Eve, which knows bob's hybrid key, has its list entry made with it, and is first on the list.
#[test]
fn who_claims_the_hybrid_key_of_another_is_not_taken_for_it() {
    let (bob, eve) = (hybrid("bob"), hybrid("eve"));
    let (own, other) = (eve.to_bytes(), bob.to_bytes());
    let claimed = [&own[..32], &other[32..64], &own[64..]].concat();
    let eve = Identity::from_bytes(Suite::Hybrid, &claimed).unwrap();
    let mut ann = session(&[&eve, &bob], 1472);
    let mut receiver = receiver_of(&bob, 2);
    for keys in ann.keys(true) {
        let _ = hear(&mut receiver, &keys);
    }
    let (of, _) = take(&mut ann, address(2), &answer(&mut receiver, b"done")).unwrap();
    assert_eq!(ann.name(of.receiver), "1");
}

/// The owner of a signing key may sign an invalid agreement key, which affects nobody else.
#[test]
fn a_hybrid_key_that_is_none_gets_no_entry() {
    let (bob, eve) = (hybrid("bob"), hybrid("eve"));
    let line = eve.public().to_string();
    let ones = member::hybrid_line(&eve, &[0xFF; 1216]);
    assert_eq!(line.len(), ones.len());
    let broken = Listed { name: "eve".into(), key: ones.parse().unwrap() };
    let config = SenderConfig {
        identity: identity("ann"),
        receivers: vec![broken, Listed { name: "bob".into(), key: bob.public().clone() }],
        began_ms: 1,
        scope: scope(),
        contents: Contents::Together,
        datagram: 1472,
    };
    let mut ann = Sender::new(config, [1; 32]);
    assert_eq!(ann.keys(true).len(), 1, "coefficients beyond ML-KEM's modulus");
    register(&mut ann, &mut receiver_of(&bob, 2), address(2));
}

proptest! {
    /// No input in place of hybrid keys makes the receiver panic, and none is accepted.
    #[test]
    fn noise_as_hybrid_keys(
        noise in prop::collection::vec(any::<u8>(), HYBRID_KEYS_LEN),
        kept in 0..HYBRID_KEYS_LEN,
        cut in 0..HYBRID_KEYS_LEN,
        signs in any::<bool>(),
    ) {
        let bob = hybrid("bob");
        let keys = session(&[&bob], 1472).keys(true).remove(0);
        let mut mixed = [&keys[..kept], &noise[kept..]].concat();
        mixed.truncate(HYBRID_KEYS_LEN - cut / 2 * usize::from(cut % 2 == 0));
        if signs && mixed.len() > 64 {
            sign_keys(&mut mixed, &identity("ann"));
        }
        prop_assume!(mixed != keys);
        prop_assert!(hear(&mut receiver_of(&bob, 2), &mixed).is_err());
    }
}
