//! Tests of both sides of the seals together: reports about keys to users.

use std::net::SocketAddr;

use farcast_core::{Span, Time};
use farcast_delivery::KeyNumber;
use farcast_seal::{Contents, History, Identity, Listed, ReceiverConfig, Scope, SenderConfig};

use super::receiving::UNLISTED_FOR;
use super::*;
use crate::listening::Unlike;

struct Forgetful;

impl Memory for Forgetful {
    fn keep(&mut self, _: &History) -> u64 {
        0
    }

    fn kept(&mut self, _: u64, _: Span) -> HistoryState {
        HistoryState::Safe
    }

    fn recall(&mut self) -> Result<History, String> {
        Ok(History::default())
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn address() -> SocketAddr {
    "192.0.2.1:5402".parse().unwrap()
}

fn scope() -> Scope {
    Scope::of("any", "239.192.0.1:5402".parse().unwrap())
}

fn identity(name: u8) -> Identity {
    Identity::from_seed([name; 32])
}

fn listed(name: u8) -> Listed {
    Listed { name: char::from(name).to_string(), key: identity(name).public().clone() }
}

/// Returns a session of sender `a` for these receivers.
fn session_for(receivers: &[u8]) -> farcast_seal::Sender {
    let config = SenderConfig {
        identity: identity(b'a'),
        receivers: receivers.iter().map(|&name| listed(name)).collect(),
        began_ms: 1_000_000,
        scope: scope(),
        contents: Contents::Apart,
        datagram: 1472,
    };
    farcast_seal::Sender::new(config, [1; 32])
}

fn receiver(name: u8) -> ReceiveSeal {
    let config =
        ReceiverConfig { identity: identity(name), senders: vec![listed(b'a')], scopes: vec![scope()] };
    let seal = farcast_seal::Receiver::new(config, History::default(), [2; 32]);
    ReceiveSeal::new(seal, true, Box::new(Forgetful))
}

fn hear(receiver: &mut ReceiveSeal, now: Time, keys: &[Vec<u8>]) {
    for keys in keys {
        assert_eq!(receiver.open(now, address(), &mut keys.clone()), None);
    }
}

#[test]
fn who_is_revoked_is_told_once_others_have_had_keys_for_a_while() {
    let mut ann = session_for(b"be");
    let mut eve = receiver(b'e');
    hear(&mut eve, at(0), &ann.keys(true));
    assert!(!eve.is_idle());
    ann.remove(&[1]).unwrap();
    let for_others = ann.keys(true);
    for second in 1..11 {
        hear(&mut eve, at(second), &for_others);
        assert_eq!(eve.unlike(at(second)), None, "{second}");
    }
    // After such a long silence, these keys belong to another transfer.
    hear(&mut eve, at(41), &for_others);
    assert_eq!(eve.unlike(at(41)), None);
    hear(&mut eve, at(51), &for_others);
    assert_eq!(eve.unlike(at(51)), Some(Unlike::NotForUs));
    hear(&mut eve, at(61), &for_others);
    assert_eq!(eve.unlike(at(61)), None, "it is told once");
}

/// Keys for many receivers take their time: those for this receiver may still come.
#[test]
fn who_is_listed_late_in_a_round_is_told_nothing() {
    let ann = session_for(b"b");
    let mut bob = receiver(b'b');
    let own = ann.keys(true);
    let others = session_for(b"e");
    hear(&mut bob, at(0), &others.keys(true));
    assert_eq!(bob.unlike(at(0)), None);
    hear(&mut bob, at(0), &own);
    hear(&mut bob, at(0) + UNLISTED_FOR.0, &own);
    assert_eq!(bob.unlike(at(0) + UNLISTED_FOR.0), None);
    // No sender has keys for this receiver.
    let mut zoe = receiver(b'z');
    hear(&mut zoe, at(0), &others.keys(true));
    assert_eq!(zoe.unlike(at(0) + UNLISTED_FOR.0), Some(Unlike::NotForUs));
}

#[test]
fn who_was_revoked_before_it_began_is_dismissed_first_and_once() {
    let numbers = |dismissed: Vec<(String, KeyNumber)>| -> Vec<(String, u64)> {
        dismissed.into_iter().map(|(name, number)| (name, number.0)).collect()
    };
    let number = |name| listed(name).key.fingerprint().number();
    let mut asked = vec![vec![1], vec![]];
    let revoked: Revoked = Box::new(move || asked.pop().unwrap_or_default());
    let mut seal = SendSeal::new(session_for(b"bc"), None, revoked, vec![listed(b'e')]);
    assert_eq!(numbers(seal.revoke(at(0)).unwrap()), [("e".into(), number(b'e'))]);
    assert!(seal.revoke(at(0)).unwrap().is_empty(), "it is asked every second");
    assert_eq!(numbers(seal.revoke(at(1)).unwrap()), [("c".into(), number(b'c'))]);
    assert!(seal.revoke(at(2)).unwrap().is_empty());
}
