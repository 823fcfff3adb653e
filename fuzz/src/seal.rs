//! Sealed session with genuine and forged datagrams.

use std::net::SocketAddr;

use arbitrary::Arbitrary;
use farcast_core::Time;
use farcast_seal::{
    Contents, HEADER, History, Identity, Listed, Receiver, ReceiverConfig, Scope, Sender, SenderConfig,
};

/// Datagram of an attacker: arbitrary octets, or a recorded datagram changed or repeated.
#[derive(Arbitrary, Debug)]
pub enum Forged {
    Octets(Vec<u8>),
    Changed { of: u8, at: u16, to: u8, cut: u16 },
    Repeated { of: u8 },
}

impl Forged {
    /// Returns its octets, and `true` if these are one of the `recorded` datagrams.
    pub fn octets(self, recorded: &[Vec<u8>]) -> (Vec<u8>, bool) {
        let one = |of: u8| recorded.get(usize::from(of) % recorded.len().max(1)).cloned().unwrap_or_default();
        let octets = match self {
            Self::Octets(octets) => octets,
            Self::Repeated { of } => one(of),
            Self::Changed { of, at, to, cut } => {
                let mut octets = one(of);
                let len = octets.len().max(1);
                octets.truncate(len - usize::from(cut) % len);
                let len = octets.len().max(1);
                if let Some(octet) = octets.get_mut(usize::from(at) % len) {
                    *octet = to;
                }
                octets
            }
        };
        let genuine = recorded.contains(&octets);
        (octets, genuine)
    }
}

/// Options of Ann's seal for Bob and Eve.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Way {
    apart: bool,
    signed: bool,
    /// `true` if Bob has a hybrid key. Eve has none.
    hybrid: bool,
}

/// Session of the sender Ann and the receiver Bob; Eve is listed as another receiver.
pub struct Pair {
    pub ann: Sender,
    pub bob: Receiver,
    /// Datagrams sent to Bob, and to Ann.
    pub down: Vec<Vec<u8>>,
    pub up: Vec<Vec<u8>>,
    began: u8,
    hybrid: bool,
    /// `true` if Bob may lack keys, so that Ann may not recognise the key of his answer.
    missed: bool,
}

/// Step of Ann or Bob.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Said {
    Keys,
    Content,
    Control,
    Answer,
    ToOne,
    Again,
    Removed,
}

pub fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, n], 5402))
}

fn scope() -> Scope {
    Scope::of("any", address(9))
}

fn identity(n: u8) -> Identity {
    Identity::from_seed([n; 32])
}

fn listed(identity: &Identity) -> Listed {
    Listed { name: identity.public().fingerprint().to_string(), key: identity.public().clone() }
}

fn identity_of_bob(hybrid: bool) -> Identity {
    if hybrid { Identity::hybrid_from_seed([2; 32]) } else { identity(2) }
}

fn bob(hybrid: bool, seed: u8, history: History) -> Receiver {
    let config = ReceiverConfig { identity: identity_of_bob(hybrid), senders: vec![listed(&identity(1))], scopes: vec![scope()] };
    Receiver::new(config, history, [seed; 32])
}

impl Pair {
    pub fn new(way: Way) -> Self {
        let Way { apart, signed, hybrid } = way;
        let contents = match (apart, signed) {
            (true, _) => Contents::Apart,
            (false, true) => Contents::Signed,
            (false, false) => Contents::Together,
        };
        let config = SenderConfig {
            identity: identity(1),
            receivers: vec![listed(&identity_of_bob(hybrid)), listed(&identity(3))],
            began_ms: 1,
            scope: scope(),
            contents,
            datagram: 1472,
        };
        let ann = Sender::new(config, [10; 32]);
        Self {
            ann,
            bob: bob(hybrid, 20, History::default()),
            down: Vec::new(),
            up: Vec::new(),
            began: 20,
            hybrid,
            missed: false,
        }
    }

    /// Performs a step. A genuine answer must be accepted.
    pub fn say(&mut self, now: Time, said: Said) {
        let mut datagram = vec![7; 9];
        match said {
            Said::Keys => {
                for keys in self.ann.keys(true) {
                    let _ = self.bob.open(now, address(1), &mut keys.clone());
                    self.down.push(keys);
                }
                self.missed = false;
                return;
            }
            Said::Again => {
                self.began = self.began.wrapping_add(1);
                let history = History::from_text(&self.bob.history().to_text()).expect("what was written");
                self.bob = bob(self.hybrid, self.began, history);
                return;
            }
            Said::Removed => {
                let _ = self.ann.remove(&[1]);
                self.missed = true;
                return;
            }
            Said::Content => {
                datagram.resize(HEADER + 9 + self.ann.behind_content(), 0);
                self.ann.seal_content(&mut datagram).expect("room");
            }
            Said::Control => self.ann.seal_control(&mut datagram).expect("counters are left"),
            Said::ToOne => {
                if self.ann.seal_to(address(2), &mut datagram).is_err() {
                    return;
                }
            }
            Said::Answer => {
                if self.bob.seal_answer(address(1), &mut datagram).is_ok() {
                    let opened = self.ann.open(address(2), &mut datagram.clone());
                    assert!(self.missed || opened.is_ok_and(|answer| answer.receiver == 0));
                    self.up.push(datagram);
                }
                return;
            }
        }
        let _ = self.bob.open(now, address(1), &mut datagram.clone());
        self.down.push(datagram);
    }
}
