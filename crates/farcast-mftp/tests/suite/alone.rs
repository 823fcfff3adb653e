//! Sender without a network: its messages, packet by packet, and messages handed to it.

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::{Bitmap, Time};
use farcast_mftp::message::{Data, Nak, Naks};
use farcast_mftp::{Body, ClientId, Group, Message, PassWait, Sender, SenderConfig, SenderEvent};

use crate::common::{ms, receiver_address, sender, server};

/// Returns a sender of `dtus` DTUs in blocks of `block` to an open-unlimited group, with the fixed timer of 800 ms;
/// data begins at once.
pub(crate) fn to_all(dtus: u32, block: u32) -> SenderConfig {
    let mut config = SenderConfig { pass_wait: PassWait::FixedTimer, ..sender(dtus, block, 1) };
    (config.group, config.start.receivers, config.start.after) = (Group::OpenUnlimited, None, Some(ms(0)));
    (config.late_entry, config.ask_twice) = (false, false);
    config
}

/// Sender, with its messages and events so far.
pub(crate) struct Alone {
    pub(crate) engine: Sender,
    pub(crate) now: Time,
    pub(crate) sent: Vec<(Time, Message)>,
    pub(crate) told: Vec<(Time, SenderEvent)>,
}

impl Alone {
    pub(crate) fn new(config: SenderConfig) -> Self {
        let engine = Sender::new(config).expect("valid");
        let mut alone = Self { engine, now: Time::ZERO, sent: Vec::new(), told: Vec::new() };
        alone.engine.open(Time::ZERO);
        alone.drain();
        alone
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.engine.poll_transmit(self.now, self.now) {
            self.sent.push((self.now, transmit.message));
        }
        self.told.extend(std::iter::from_fn(|| self.engine.poll_event()).map(|event| (self.now, event)));
    }

    /// Lets time pass until `end`, inclusive.
    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(deadline) = self.engine.poll_timeout().filter(|deadline| deadline.at <= end) {
            self.now = self.now.max(deadline.at);
            self.engine.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// Lets time pass until the data of `pass` begins, and returns that time.
    pub(crate) fn run_to_pass(&mut self, pass: u32) -> Time {
        while self.engine.pass().round < pass {
            let next = self.engine.poll_timeout().expect("something is to come").at;
            self.run_until(next);
        }
        self.now
    }

    /// Hands the sender a NAK of receiver `n` for these DTUs of a block after `pass`.
    pub(crate) fn nak(&mut self, n: usize, pass: u32, block: u32, missing: &[u32]) -> Result<(), Reject> {
        let address = receiver_address(n);
        let nak = Nak {
            server: server(),
            client: ClientId::from_address(address.ip()),
            pass,
            block,
            missing: self.map(block, missing),
            parity_held: 0,
            unstored: 0,
        };
        self.hear(address, Body::Nak(nak))
    }

    /// Hands the sender `body` from `source`.
    pub(crate) fn hear(&mut self, source: SocketAddr, body: Body) -> Result<(), Reject> {
        let message = Message::new(1, body);
        let result = self.engine.handle(self.now, &Arrival::new(source, server()), &message);
        self.drain();
        result
    }

    /// Hands the sender merged NAKs of `count` receivers for these DTUs.
    pub(crate) fn naks(&mut self, count: u64, pass: u32, block: u32, missing: &[u32]) -> Result<(), Reject> {
        let naks = Naks { server: server(), pass, block, missing: self.map(block, missing), count };
        let result = self.engine.handle_naks(self.now, &naks);
        self.drain();
        result
    }

    /// Returns the bitmap of a NAK, as long as the block's DTUs rounded up to whole octets.
    fn map(&self, block: u32, missing: &[u32]) -> Bitmap {
        let mut map = Bitmap::new(self.engine.geometry().block_len(block).next_multiple_of(8));
        for &dtu in missing {
            map.insert(dtu);
        }
        map
    }

    /// Returns the DATA sent so far.
    pub(crate) fn data(&self) -> Vec<(Time, Data)> {
        let data = |(at, message): &(Time, Message)| match &message.body {
            Body::Data(data) => Some((*at, data.clone())),
            _ => None,
        };
        self.sent.iter().filter_map(data).collect()
    }

    /// Returns the DTUs sent in `pass`, counted through the product.
    pub(crate) fn pass(&self, pass: u32) -> Vec<u32> {
        let block = self.engine.geometry().block_size();
        let data = self.data().into_iter().filter(|(_, data)| data.pass == pass);
        data.map(|(_, data)| data.block * block + data.dtus.first()).collect()
    }

    /// Returns the times at which the status requests of `pass` left.
    pub(crate) fn asked(&self, pass: u32) -> Vec<Time> {
        let asked = |(at, message): &(Time, Message)| match &message.body {
            Body::StatusRequest(request) if request.pass == pass => Some(*at),
            _ => None,
        };
        self.sent.iter().filter_map(asked).collect()
    }
}
