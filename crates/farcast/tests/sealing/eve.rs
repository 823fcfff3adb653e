//! Listed receiver that the test drives by hand: it opens datagrams with its keys, and seals its own.

use std::net::{SocketAddr, UdpSocket};

use farcast_core::Time;
use farcast_seal::{Class, History, Listed, Receiver, ReceiverConfig, Scope};

use crate::insider;
use crate::party::{Enemy, Parties};

pub(crate) struct Eve {
    pub(crate) seal: Receiver,
    /// Signing key and agreement secret.
    pub(crate) own: ([u8; 32], [u8; 32]),
    socket: UdpSocket,
    server: Option<SocketAddr>,
    read: usize,
}

impl Eve {
    /// Makes the receiver for sessions of this protocol.
    pub(crate) fn new(parties: &Parties, protocol: &str) -> Self {
        let identity = parties.identity("eve");
        let shown = parties.at("ann", &["key", "show"]).output().unwrap().stdout;
        let shown = String::from_utf8(shown).unwrap();
        let key = shown.split_whitespace().find(|word| word.starts_with("farcast-key-1:")).unwrap();
        let ann = Listed { name: "ann".into(), key: key.parse().unwrap() };
        let own = insider::own(&identity);
        let scope = Scope::of(protocol, parties.place.group.parse().unwrap());
        let config = ReceiverConfig { identity, senders: vec![ann], scopes: vec![scope] };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let seal = Receiver::new(config, History::default(), [1; 32]);
        Self { seal, own, socket, server: None, read: 0 }
    }

    /// Opens the datagrams that the enemy has recorded since the last call. Returns their classes and contents.
    pub(crate) fn hear(&mut self, enemy: &Enemy) -> Vec<(Class, Vec<u8>)> {
        let record = enemy.record();
        let mut heard = Vec::new();
        for (from, datagram) in &record[self.read..] {
            let mut datagram = datagram.clone();
            let Ok(opened) = self.seal.open(Time::ZERO, *from, &mut datagram) else { continue };
            self.server = Some(*from);
            heard.push((opened.class, datagram[opened.payload].to_vec()));
        }
        self.read = record.len();
        heard
    }

    /// Returns the address of the sender.
    pub(crate) fn server(&self) -> SocketAddr {
        self.server.unwrap()
    }

    /// Sends `datagram`, sealed, to the sender at `to`.
    pub(crate) fn say(&mut self, mut datagram: Vec<u8>, to: SocketAddr) {
        self.seal.seal_answer(self.server(), &mut datagram).unwrap();
        self.socket.send_to(&datagram, to).unwrap();
    }
}
