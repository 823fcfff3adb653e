//! Forged messages of every type, with fields seen on the group, off by one, extreme, or random.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use farcast_core::{Bitmap, Run};
use farcast_mftp::message::{
    Abort, Ack, Announce, AnnounceOptions, Completion, Data, DataKind, DeclineReason, Done, Echo, End, Grant,
    GroupModel, HostState, Join, Leave, Nak, Query, Quit, Registration, RegistrationEntry, StatusRequest,
    StatusType,
};
use farcast_mftp::{Body, ClientId, HostSet, Message, Proof, Token};

use crate::kinds::Forgery;
use crate::plan::Draw;
use crate::settings::{group, response_group, server};

/// Host whose name and address an attacker knows.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: ClientId,
    pub(crate) name: Option<String>,
    /// Addresses that it answers from, one for each of its lives.
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Messages that an attacker has seen on the group, and its prior knowledge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) known: Vec<Known>,
    pub(crate) server: Option<SocketAddr>,
    pub(crate) transmission: u32,
    pub(crate) announce: Option<Announce>,
    pub(crate) request: Option<StatusRequest>,
    pub(crate) data: Option<Data>,
    /// Proofs, keys and commitments that were seen last.
    pub(crate) proofs: VecDeque<Proof>,
}

/// Number of proofs that an attacker keeps.
const PROOFS: usize = 16;

impl Seen {
    /// Records a multicast.
    pub(crate) fn note(&mut self, source: SocketAddr, message: &Message) {
        let commitment = if let Body::Announce(m) = &message.body { m.commitment } else { None };
        for proof in [message.proof, commitment].into_iter().flatten() {
            if !self.proofs.contains(&proof) {
                self.proofs.push_front(proof);
                self.proofs.truncate(PROOFS);
            }
        }
        match &message.body {
            Body::Announce(announce) => {
                (self.server, self.transmission) = (Some(source), message.transmission);
                self.announce = Some((**announce).clone());
            }
            Body::StatusRequest(request) => self.request = Some(request.clone()),
            Body::Data(data) => self.data = Some(data.clone()),
            _ => {}
        }
    }

    fn server(&self) -> SocketAddr {
        self.server.unwrap_or(server(0))
    }

    fn block_size(&self) -> u32 {
        self.announce.as_ref().map_or(16, |announce| announce.block_size)
    }

    fn segments(&self) -> u32 {
        self.announce.as_ref().map_or(16, |announce| {
            announce.product_size.div_ceil(u64::from(announce.dtu_size.max(1))).min(1 << 20) as u32
        })
    }

    fn blocks(&self) -> u32 {
        self.segments().div_ceil(self.block_size().max(1)).max(1)
    }
}

/// Forged message: claimed source, destination, and content.
pub(crate) type Letter = (SocketAddr, SocketAddr, Message);

/// Writer of one forged message.
pub(crate) struct Pen<'a> {
    pub(crate) draw: Draw,
    pub(crate) seen: &'a Seen,
    pub(crate) fidelity: f64,
    pub(crate) knows_ports: bool,
    /// Attacker's own address.
    pub(crate) own: SocketAddr,
    /// Seed of the draws that all its messages share.
    pub(crate) scheme: u64,
}

impl Pen<'_> {
    pub(crate) fn write(&mut self, forgery: Forgery) -> Letter {
        if forgery == Forgery::Session {
            return self.session();
        }
        let body = self.body(forgery);
        let (source, destination) = if from_client(forgery) {
            let to = if self.draw.chance(0.9) { self.seen.server() } else { response_group() };
            (self.client_source(&body), to)
        } else {
            (self.server_source(), self.audience(forgery))
        };
        let managing = matches!(forgery, Forgery::Echo | Forgery::Groups);
        let transmission = if managing { 0 } else { self.number(self.seen.transmission) };
        (source, destination, Message { transmission, body, proof: self.proof() })
    }

    /// Returns a field, mostly its true value.
    fn number(&mut self, seen: u32) -> u32 {
        if self.draw.chance(self.fidelity) {
            return seen;
        }
        match self.draw.below(6) {
            0 => seen.wrapping_add(1),
            1 => seen.wrapping_sub(1),
            2 => 0,
            3 => u32::MAX - self.draw.below(2) as u32,
            4 => self.draw.0.bits() as u32,
            _ => self.draw.below(20) as u32,
        }
    }

    fn below(&mut self, end: u32) -> u32 {
        let seen = self.draw.below(u64::from(end.max(1))) as u32;
        self.number(seen)
    }

    /// Returns no proof, one that was seen, or a guess.
    fn proof(&mut self) -> Option<Proof> {
        match self.draw.below(4) {
            0 | 1 => None,
            2 if !self.seen.proofs.is_empty() => {
                Some(self.seen.proofs[self.draw.below(self.seen.proofs.len() as u64) as usize])
            }
            _ => Some(Proof(self.draw.0.bits().to_be_bytes())),
        }
    }

    /// Returns a block number that the wire can encode.
    fn block(&mut self) -> u32 {
        self.below(self.seen.blocks()).min(u32::MAX - 1)
    }

    fn run(&mut self, whole: u32) -> Run {
        let all = Run::new(0, whole.max(1)).unwrap_or(Run::one(0));
        if self.draw.chance(0.6) {
            return all;
        }
        let (first, count) = (self.below(whole), self.below(whole).max(1));
        Run::new(first, count).unwrap_or(all)
    }

    fn known(&mut self) -> Known {
        let at = self.draw.below(self.seen.known.len() as u64) as usize;
        self.seen.known[at].clone()
    }

    /// Returns a client's id, mostly of a real host, otherwise of an invented one.
    fn client(&mut self) -> ClientId {
        if self.draw.chance(0.7) {
            self.known().id
        } else {
            ClientId::from_name(&format!("ghost-{}", self.draw.below(40)))
        }
    }

    fn hosts(&mut self) -> Option<Vec<ClientId>> {
        let everyone = || self.seen.known.iter().map(|known| known.id).collect();
        match self.draw.below(4) {
            0 => Some(everyone()),
            1 => Some(vec![self.client()]),
            _ => None,
        }
    }

    fn named_server(&mut self) -> SocketAddr {
        if self.draw.chance(self.fidelity) { self.seen.server() } else { self.stranger() }
    }

    /// Returns an unused address: a victim of reflected messages.
    fn stranger(&mut self) -> SocketAddr {
        SocketAddr::from(([203, 0, 113, self.draw.below(5) as u8], 666))
    }

    fn port(&mut self) -> u16 {
        1024 + self.draw.below(64_000) as u16
    }

    /// Returns the claimed source of a client's message.
    fn client_source(&mut self, body: &Body) -> SocketAddr {
        let client = match body {
            Body::Done(m) => Some(m.client),
            Body::Nak(m) => Some(m.client),
            Body::Ack(m) => Some(m.client),
            Body::Quit(m) => m.client,
            Body::Registration(m) => m.entries.first().map(|entry| entry.client),
            _ => None,
        };
        let known = self.seen.known.iter().find(|known| Some(known.id) == client).cloned();
        let Some(known) = known.filter(|_| self.draw.chance(0.85)) else {
            return if self.draw.chance(0.5) { self.own } else { self.stranger() };
        };
        if self.knows_ports {
            let at = self.draw.below(known.addresses.len() as u64) as usize;
            return known.addresses[at];
        }
        SocketAddr::new(known.addresses[0].ip(), self.port())
    }

    /// Returns the claimed source of a server's message.
    fn server_source(&mut self) -> SocketAddr {
        if self.draw.chance(self.fidelity) {
            return self.seen.server();
        }
        match self.draw.below(3) {
            0 => SocketAddr::new(self.seen.server().ip(), self.port()),
            1 => self.own,
            _ => self.stranger(),
        }
    }

    fn audience(&mut self, forgery: Forgery) -> SocketAddr {
        // An echo may also be sent to the sender.
        if matches!(forgery, Forgery::Echo | Forgery::Groups) && self.draw.chance(0.4) {
            return self.seen.server();
        }
        if self.draw.chance(0.6) {
            return group();
        }
        let known = self.known();
        if self.knows_ports {
            let at = self.draw.below(known.addresses.len() as u64) as usize;
            known.addresses[at]
        } else {
            SocketAddr::new(known.addresses[0].ip(), self.port())
        }
    }

    fn body(&mut self, forgery: Forgery) -> Body {
        let (server, client) = (self.named_server(), self.client());
        let pass = self.seen.data.as_ref().map_or(0, |data| data.pass);
        match forgery {
            Forgery::Done => {
                let (naked_dtus, duration_s) = (self.below(100), self.below(100));
                Body::Done(Done { round: None, server, client, naked_dtus, duration_s })
            }
            Forgery::Quit => {
                let client = self.draw.chance(0.8).then_some(client);
                Body::Quit(Quit { reason: self.number(2001), client, text: None })
            }
            Forgery::Decline => Body::Registration(self.registration(server, Err(DeclineReason::Disk))),
            Forgery::Register => Body::Registration(self.registration(server, Ok(()))),
            Forgery::Nak => self.nak(server, client, pass),
            Forgery::Ack => {
                let blocks = self.run(self.seen.blocks());
                Body::Ack(Ack { server, pass: self.number(pass), blocks, client })
            }
            Forgery::StatusRequest => self.status_request(pass),
            Forgery::Abort => {
                Body::Abort(Abort { reason: self.number(3001), hosts: self.hosts(), text: None })
            }
            Forgery::End => Body::End(End { server, response: server }),
            Forgery::Completion => Body::Completion(Completion { turn: None, hosts: self.hosts() }),
            Forgery::Announce => Body::Announce(self.announce().into()),
            Forgery::Echo => {
                let data = self.draw.chance(0.3).then(|| vec![0; 1 + self.draw.below(1000) as usize]);
                let echo = Echo { sequence: client.0, data, hosts: None };
                if self.draw.chance(0.5) {
                    Body::EchoResponse(echo)
                } else {
                    Body::Echo(Echo { hosts: self.hosts(), ..echo })
                }
            }
            Forgery::Data | Forgery::Session => self.data(pass),
            Forgery::Groups => self.groups(),
            Forgery::Grant => Body::Grant(Grant { client, token: Token([self.draw.below(256) as u8; 16]) }),
        }
    }

    fn registration(&mut self, server: SocketAddr, response: Result<(), DeclineReason>) -> Registration {
        let count = if self.draw.chance(0.8) { 1 } else { 1 + self.draw.below(40) };
        let known = self.known();
        let own_name = self.draw.chance(0.6);
        let mut entries = Vec::new();
        for n in 0..count {
            let client = if own_name && n == 0 { known.id } else { self.client() };
            entries.push(RegistrationEntry { client, serial: None, response });
        }
        Registration {
            heard: None,
            complete: None,
            round: None,
            server,
            entries,
            name: known.name.filter(|_| own_name),
            segments_held: self.draw.chance(0.3).then(|| self.below(self.seen.segments())),
            receive_buffer_bytes: self.draw.chance(0.3).then(|| self.number(200_000)),
            nonce: self.proof(),
        }
    }

    fn nak(&mut self, server: SocketAddr, client: ClientId, pass: u32) -> Body {
        let block = self.block();
        let first = block.saturating_mul(self.seen.block_size());
        let len = self.seen.block_size().min(self.seen.segments().saturating_sub(first)).max(1);
        let len = self.number(len).clamp(1, 4096).next_multiple_of(8);
        let mut missing = Bitmap::new(len);
        for _ in 0..=self.draw.below(u64::from(len)) {
            missing.insert(self.draw.below(u64::from(len)) as u32);
        }
        Body::Nak(Nak {
            server,
            client,
            pass: self.number(pass),
            block,
            missing,
            parity_held: self.number(0),
            unstored: self.number(0),
        })
    }

    fn status_request(&mut self, pass: u32) -> Body {
        let status = self.draw.pick(&[StatusType::NakOnly, StatusType::All]);
        let pass = self.seen.request.as_ref().map_or(pass, |request| request.pass);
        let (blocks, dtus) = (self.run(self.seen.blocks()), self.run(self.seen.block_size()));
        Body::StatusRequest(StatusRequest {
            turn: None,
            pass: self.number(pass),
            blocks,
            dtus,
            status,
            hosts: self.hosts(),
        })
    }

    fn data(&mut self, pass: u32) -> Body {
        let block = self.block();
        let kind = if self.draw.chance(0.8) { DataKind::Source } else { DataKind::Parity };
        let dtu = self.below(self.seen.block_size()).min(1 << 20);
        let len = self.seen.announce.as_ref().map_or(1000, |announce| announce.dtu_size);
        let len = self.number(len).min(1440) as u16;
        let (pass, dtus) = (self.number(pass), Run::one(dtu));
        Body::Data(Data { pass, block, kind, dtus, len, last_len: len })
    }

    /// Returns a message of a session that does not exist, in another host's name; all such messages fit together.
    fn session(&mut self) -> Letter {
        let mut same = Draw::new(self.scheme, &[]);
        let victim = same.pick(&[
            SocketAddr::from(([203, 0, 113, 9], 666)),
            self.own,
            SocketAddr::new(self.seen.server().ip(), 50_000),
            self.seen.known[0].addresses[0],
        ]);
        let transmission = same.0.bits() as u32 | 1;
        let (dtus, block_size) = (same.log(1.0, 60_000.0) as u32, same.log(8.0, 8000.0) as u32);
        let mut announce = self.invented();
        (announce.server, announce.response) = (victim, victim);
        (announce.dtu_size, announce.block_size) = (1000, block_size);
        (announce.product_size, announce.product_id) = (u64::from(dtus) * 1000, Some([5; 32]));
        announce.hosts = same
            .chance(0.5)
            .then(|| self.seen.known.iter().map(|known| (known.id, HostState::Accepted)).collect());
        let blocks = Run::new(0, dtus.div_ceil(block_size)).unwrap_or(Run::one(0));
        let body = match self.draw.below(4) {
            0 => Body::Announce(announce.into()),
            1 => {
                let dtus = Run::one(self.draw.below(u64::from(dtus.min(block_size))) as u32);
                Body::Data(Data {
                    pass: 1,
                    block: 0,
                    kind: DataKind::Source,
                    dtus,
                    len: 1000,
                    last_len: 1000,
                })
            }
            _ => {
                let dtus = Run::new(0, block_size).unwrap_or(Run::one(0));
                Body::StatusRequest(StatusRequest {
                    turn: None,
                    pass: 1,
                    blocks,
                    dtus,
                    status: StatusType::All,
                    hosts: None,
                })
            }
        };
        (victim, self.audience(Forgery::Announce), Message::new(transmission, body))
    }

    fn groups(&mut self) -> Body {
        let (application, hosts) = ("farcast".into(), self.hosts());
        let public = IpAddr::from([239, 255, 54, self.draw.below(5) as u8]);
        match self.draw.below(3) {
            0 => Body::Query(Query { application, all: self.draw.chance(0.5) }),
            1 => Body::Join(Join { application, public, all: self.draw.chance(0.5), hosts }),
            _ => Body::Leave(Leave { public, hosts }),
        }
    }

    /// Returns the announcement that was seen with some changes, or an invented one.
    fn announce(&mut self) -> Announce {
        let mut m = self.seen.announce.clone().unwrap_or_else(|| self.invented());
        for _ in 0..self.draw.below(3) {
            match self.draw.below(13) {
                0 => m.server = self.stranger(),
                1 => m.response = self.draw.pick(&[self.own, response_group(), server(0)]),
                2 => m.product_id = self.draw.chance(0.5).then_some([9; 32]),
                3 => m.product_size = u64::from(self.number(m.product_size as u32)),
                4 => m.dtu_size = self.number(m.dtu_size),
                5 => m.block_size = self.number(m.block_size),
                6 => (m.hosts, m.host_set) = self.standings(),
                7 => m.transfer_duration_s = self.number(m.transfer_duration_s),
                8 => m.announce_duration_s = self.number(m.announce_duration_s),
                9 => m.backoff_window_ms = self.draw.chance(0.8).then(|| self.number(100)),
                11 => m.commitment = self.proof(),
                10 => m.parity_symbols = self.draw.chance(0.8).then(|| self.number(4)),
                _ => m.options.model = self.draw.pick(&[GroupModel::Closed, GroupModel::OpenLimited]),
            }
        }
        m
    }

    /// Returns the known receivers in one state: as a list, or the invited as a set.
    fn standings(&mut self) -> (Option<Vec<(ClientId, HostState)>>, Option<HostSet>) {
        let standing = self.draw.pick(&[
            HostState::Accepted,
            HostState::Pending,
            HostState::Declined(DeclineReason::Memory),
        ]);
        let mut known: Vec<ClientId> = self.seen.known.iter().map(|known| known.id).collect();
        known.sort_unstable();
        if !self.draw.chance(0.7) {
            return (None, None);
        }
        if standing == HostState::Pending {
            return (None, HostSet::take(standing, &mut known.into_iter().peekable(), usize::MAX));
        }
        (Some(known.into_iter().map(|id| (id, standing)).collect()), None)
    }

    fn invented(&mut self) -> Announce {
        Announce {
            turn: None,
            server: self.own,
            response: self.own,
            private: group().ip(),
            announce_duration_s: 10,
            options: AnnounceOptions {
                model: GroupModel::OpenLimited,
                stay_in_group: true,
                restart: false,
                overwrite: true,
                late_entry: true,
            },
            application: "farcast".into(),
            block_size: 16,
            data_rate_bps: 1_000_000,
            product_name: "product".into(),
            transfer_duration_s: 3600,
            dtu_size: 1000,
            product_size: 1 + self.draw.below(1 << 32),
            error_threshold: None,
            user_data: None,
            hosts: None,
            host_set: None,
            backoff_window_ms: None,
            product_id: Some([9; 32]),
            parity_symbols: None,
            commitment: self.proof(),
        }
    }
}

fn from_client(forgery: Forgery) -> bool {
    matches!(
        forgery,
        Forgery::Done | Forgery::Quit | Forgery::Decline | Forgery::Register | Forgery::Nak | Forgery::Ack
    )
}

/// Returns the address of attacker `n`.
pub(crate) fn attacker(n: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(198, 51, 100, n as u8 + 1), 4000))
}
