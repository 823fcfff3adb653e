//! Sender and receivers that know each other.
#![allow(dead_code, reason = "each test uses what it needs")]

pub(crate) mod member;

use std::net::SocketAddr;

use farcast_core::Time;
use farcast_seal::{
    Answer, Contents, HEADER, History, Identity, Listed, Opened, Receiver, ReceiverConfig, Refusal, Scope,
    Sender, SenderConfig,
};

pub(crate) const NOW: Time = Time::ZERO;

pub(crate) fn sender_address() -> SocketAddr {
    "192.0.2.1:5402".parse().unwrap()
}

pub(crate) fn address(n: usize) -> SocketAddr {
    format!("198.51.100.{n}:40000").parse().unwrap()
}

/// Returns the scope of all these sessions.
pub(crate) fn scope() -> Scope {
    Scope::of("any", "239.192.0.1:5402".parse().unwrap())
}

pub(crate) fn identity(name: &str) -> Identity {
    let mut seed = [0; 32];
    seed[..name.len()].copy_from_slice(name.as_bytes());
    Identity::from_seed(seed)
}

pub(crate) fn listed(name: &str) -> Listed {
    Listed { name: name.into(), key: identity(name).public().clone() }
}

/// Creates the `n`th session of `from` for these receivers.
pub(crate) fn session_of(from: &str, receivers: &[&str], separate_content: bool, n: u8) -> Sender {
    let contents = if separate_content { Contents::Apart } else { Contents::Together };
    session_with(from, receivers, contents, n)
}

/// Creates such a session with this sealing of content.
pub(crate) fn session_with(from: &str, receivers: &[&str], contents: Contents, n: u8) -> Sender {
    let config = SenderConfig { contents, ..sending(from, receivers, 1_000_000 + u64::from(n)) };
    Sender::new(config, [n; 32])
}

/// Creates a session of ann's for bob with another scope.
pub(crate) fn session_for(scope: Scope) -> Sender {
    Sender::new(SenderConfig { scope, ..sending("ann", &["bob"], 1_000_000) }, [1; 32])
}

/// Returns the configuration of a sender to these receivers.
pub(crate) fn sending(from: &str, receivers: &[&str], began_ms: u64) -> SenderConfig {
    SenderConfig {
        identity: identity(from),
        receivers: receivers.iter().map(|name| listed(name)).collect(),
        began_ms,
        scope: scope(),
        contents: Contents::Together,
        datagram: 1472,
    }
}

pub(crate) fn receiver_with(name: &str, history: History, seed: u8) -> Receiver {
    let config =
        ReceiverConfig { identity: identity(name), senders: vec![listed("ann")], scopes: vec![scope()] };
    Receiver::new(config, history, [seed; 32])
}

pub(crate) fn receiver(name: &str) -> Receiver {
    receiver_with(name, History::default(), 100 + name.as_bytes()[0])
}

pub(crate) fn hear(receiver: &mut Receiver, datagram: &[u8]) -> Result<(Opened, Vec<u8>), Refusal> {
    let mut datagram = datagram.to_vec();
    let opened = receiver.open(NOW, sender_address(), &mut datagram)?;
    let said = datagram[opened.payload.clone()].to_vec();
    Ok((opened, said))
}

pub(crate) fn answer(receiver: &mut Receiver, said: &[u8]) -> Vec<u8> {
    let mut datagram = said.to_vec();
    receiver.seal_answer(sender_address(), &mut datagram).unwrap();
    datagram
}

pub(crate) fn take(
    sender: &mut Sender,
    from: SocketAddr,
    datagram: &[u8],
) -> Result<(Answer, Vec<u8>), Refusal> {
    let mut datagram = datagram.to_vec();
    let answer = sender.open(from, &mut datagram)?;
    let said = datagram[answer.payload.clone()].to_vec();
    Ok((answer, said))
}

pub(crate) fn content(sender: &mut Sender, said: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; HEADER];
    datagram.extend_from_slice(said);
    datagram.resize(datagram.len() + sender.behind_content(), 0);
    sender.seal_content(&mut datagram).unwrap();
    datagram
}

pub(crate) fn control(sender: &mut Sender, said: &[u8]) -> Vec<u8> {
    let mut datagram = said.to_vec();
    sender.seal_control(&mut datagram).unwrap();
    datagram
}

pub(crate) fn to_one(sender: &mut Sender, to: SocketAddr, said: &[u8]) -> Vec<u8> {
    let mut datagram = said.to_vec();
    sender.seal_to(to, &mut datagram).unwrap();
    datagram
}

/// Lets `receiver` hear the keys and register from `from`, and grants it the content key.
pub(crate) fn register(sender: &mut Sender, receiver: &mut Receiver, from: SocketAddr) {
    for keys in sender.keys(true) {
        let _ = hear(receiver, &keys);
    }
    let registration = answer(receiver, b"register");
    take(sender, from, &registration).unwrap();
    let granted = to_one(sender, from, b"granted");
    assert_eq!(hear(receiver, &granted).unwrap().1, b"granted");
}
