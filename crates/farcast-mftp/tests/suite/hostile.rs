//! Laws 6 and 7: invalid messages leave no trace, and nobody can make an engine grow (rules 32 and 33).

use std::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine, Reject};
use farcast_core::random::RandomStream;
use farcast_core::{Bitmap, Run, Span, Time};
use farcast_mftp::message::{
    Abort, Ack, Announce, AnnounceOptions, Completion, Data, DataKind, DeclineReason, Done, Echo, End, Grant,
    GroupModel, HostState, Nak, Query, Quit, Registration, RegistrationEntry, StatusRequest, StatusType,
};
use farcast_mftp::{
    Body, ClientId, HostSet, Message, Pace, PassWait, Proof, Receiver, ReceiverEvent, ReceiverOutcome,
    Sender, SenderConfig, Token,
};
use farcast_testkit::{Handle, Host, Link, Setup, laws};

use crate::common::{Net, Session, at, group, lose_data, ms, receiver_address, secs, sender, server};

/// Generator of messages that look like a session's: small numbers, known ids and addresses, some of them wrong.
struct Forger(RandomStream);

impl Forger {
    fn new(seed: u64) -> Self {
        Self(RandomStream::derive(seed, &[6]))
    }

    fn small(&mut self) -> u32 {
        // Mostly within the range of a session, sometimes far outside.
        match self.0.below(8) {
            0 => self.0.bits() as u32,
            1 => u32::MAX - self.0.below(3) as u32,
            _ => self.0.below(8) as u32,
        }
    }

    fn flag(&mut self) -> bool {
        self.0.chance(0.5)
    }

    fn run(&mut self) -> Run {
        Run::new(self.small(), self.small().max(1)).unwrap_or(Run::one(0))
    }

    fn address(&mut self) -> SocketAddr {
        [server(), group(), receiver_address(0), receiver_address(77)][self.0.below(4) as usize]
    }

    fn client(&mut self) -> ClientId {
        ClientId::from_address(receiver_address(self.0.below(4) as usize).ip())
    }

    fn clients(&mut self) -> Option<Vec<ClientId>> {
        let count = self.0.below(4);
        self.flag().then(|| (0..count).map(|_| self.client()).collect())
    }

    fn message(&mut self) -> Message {
        let transmission = if self.0.chance(0.8) { 1 } else { self.small() };
        let body = if self.flag() { self.client_body() } else { self.server_body() };
        Message::new(transmission, body)
    }

    fn client_body(&mut self) -> Body {
        let (server, client) = (self.address(), self.client());
        match self.0.below(8) {
            0 => Body::Query(Query { application: "farcast".into(), all: self.flag() }),
            1 => Body::EchoResponse(Echo { sequence: client.0, data: None, hosts: None }),
            2 => Body::Registration(self.registration(server)),
            3 | 4 => {
                let len = [16, 16, 16, 8, 24, self.0.below(300) as u32][self.0.below(6) as usize];
                let mut missing = Bitmap::new(len);
                for _ in 0..self.0.below(6) {
                    missing.insert(self.0.below(u64::from(len.max(1))) as u32);
                }
                let (pass, block, parity_held) = (self.small(), self.small(), self.small());
                Body::Nak(Nak { server, client, pass, block, missing, parity_held, unstored: self.small() })
            }
            5 => Body::Ack(Ack { server, pass: self.small(), blocks: self.run(), client }),
            6 => Body::Done(Done {
                round: None,
                server,
                client,
                naked_dtus: self.small(),
                duration_s: self.small(),
            }),
            _ => Body::Quit(Quit { reason: self.small(), client: self.flag().then_some(client), text: None }),
        }
    }

    fn registration(&mut self, server: SocketAddr) -> Registration {
        let response = if self.flag() { Ok(()) } else { Err(DeclineReason::Disk) };
        Registration {
            heard: None,
            complete: None,
            round: None,
            server,
            entries: vec![RegistrationEntry { client: self.client(), serial: None, response }],
            name: self.flag().then(|| "aurora".into()),
            segments_held: self.flag().then(|| self.small()),
            receive_buffer_bytes: self.flag().then(|| self.small()),
            nonce: self.flag().then(|| self.proof()),
        }
    }

    fn proof(&mut self) -> Proof {
        Proof(self.0.bits().to_be_bytes())
    }

    fn server_body(&mut self) -> Body {
        match self.0.below(8) {
            7 => Body::Grant(Grant { client: self.client(), token: Token([self.0.below(256) as u8; 16]) }),
            0 => Body::Echo(Echo { sequence: self.small(), data: None, hosts: self.clients() }),
            1 => Body::Announce(self.announce().into()),
            2 | 3 => {
                let kind = if self.flag() { DataKind::Source } else { DataKind::Parity };
                let last_len = if self.flag() { 1000 } else { self.0.below(1001) as u16 };
                let (pass, block, dtus) = (self.small(), self.small(), self.run());
                Body::Data(Data { pass, block, kind, dtus, len: 1000, last_len })
            }
            4 => {
                let status = if self.flag() { StatusType::All } else { StatusType::NakOnly };
                let (pass, blocks, dtus, hosts) = (self.small(), self.run(), self.run(), self.clients());
                Body::StatusRequest(StatusRequest { turn: None, pass, blocks, dtus, status, hosts })
            }
            5 if self.flag() => Body::Completion(Completion { turn: None, hosts: self.clients() }),
            5 => Body::Abort(Abort { reason: self.small(), hosts: self.clients(), text: None }),
            _ => Body::End(End { server: self.address(), response: self.address() }),
        }
    }

    fn host_set(&mut self) -> Option<HostSet> {
        let mut hosts = self.clients()?;
        hosts.sort_unstable();
        HostSet::take(HostState::Accepted, &mut hosts.into_iter().peekable(), usize::MAX)
    }

    fn announce(&mut self) -> Announce {
        let model = [GroupModel::Closed, GroupModel::OpenLimited, GroupModel::OpenUnlimited];
        Announce {
            turn: None,
            server: self.address(),
            response: self.address(),
            private: group().ip(),
            announce_duration_s: self.small(),
            options: AnnounceOptions {
                model: model[self.0.below(3) as usize],
                stay_in_group: self.flag(),
                restart: self.flag(),
                overwrite: self.flag(),
                late_entry: self.flag(),
            },
            application: "farcast".into(),
            block_size: if self.flag() { 16 } else { self.small() },
            data_rate_bps: self.small(),
            product_name: "file".into(),
            transfer_duration_s: self.small(),
            dtu_size: if self.flag() { 1000 } else { self.small() },
            product_size: if self.flag() { 40_000 } else { self.0.bits() >> self.0.below(64) },
            error_threshold: None,
            user_data: None,
            hosts: self.clients().map(|all| all.into_iter().map(|id| (id, HostState::Accepted)).collect()),
            host_set: self.host_set(),
            backoff_window_ms: self.flag().then(|| self.small()),
            product_id: self.flag().then_some([7; 32]),
            parity_symbols: self.flag().then(|| self.small()),
            commitment: self.flag().then(|| self.proof()),
        }
    }
}

/// Returns the engine's state as text, without its counters.
fn trace(engine: &impl core::fmt::Debug) -> String {
    let mut text = format!("{engine:?}");
    for counter in ["rejects: ", "stats: "] {
        let Some(first) = text.find(counter) else { continue };
        let len = text[first..].find('}').expect("counters are in braces");
        text.replace_range(first..=first + len, "");
    }
    // The effect of the last NAK is reported even if it was rejected.
    if let Some(first) = text.find("asked: Some(Asked {") {
        let len = text[first..].find('}').expect("it is in braces");
        text.replace_range(first..=first + len + 1, "asked: None");
    }
    text
}

/// Creates a session of three receivers, stopped in the middle, with the engines in any state.
fn midway(seed: u64, stop: Span) -> Session {
    let mut config = SenderConfig { parity_symbols: 4, ..sender(40, 16, 3) };
    if seed % 2 == 1 {
        config.pace = Pace::Window { segments: 32, paced: seed % 4 == 1 };
    }
    if seed % 3 == 1 {
        config.pass_wait = PassWait::FixedTimer;
    }
    let mut session = Session::new("midway", Setup::plain(seed), config, 3, Link::lossy(ms(100), 0.2));
    session.net.run_until(at(stop));
    session
}

const STOPS: [Span; 5] = [ms(1), ms(150), ms(350), ms(900), ms(1500)];

/// Returns messages from strangers at `now`.
fn forged(
    seed: u64,
    now: Time,
    to: SocketAddr,
    count: u64,
) -> impl Iterator<Item = (Time, Arrival, Message)> {
    let mut forger = Forger::new(seed);
    (0..count).map(move |n| {
        let from = SocketAddr::from(([203, 0, 113, (n % 5) as u8], 666));
        (now, Arrival::new(from, to), forger.message())
    })
}

#[test]
fn a_sender_keeps_no_trace_of_what_it_turns_down() {
    let mut rejected = 0;
    for seed in 0..30 {
        for stop in STOPS {
            let session = midway(seed, stop);
            let mut engine = session.engine().clone();
            // The sender answers registrations that it refuses, asks members for proofs, confirms a repeated Done anew,
            // and yields the group.
            let excused = |message: &Message, reason: Reject| {
                matches!(
                    (&message.body, reason),
                    (Body::Registration(_), _)
                        | (_, Reject::Unproven)
                        | (Body::Done(_), Reject::Duplicate)
                        | (Body::Announce(_) | Body::Data(_) | Body::StatusRequest(_), Reject::OtherSession)
                )
            };
            let context = format!("[sender, seed {seed}, stopped at {stop}]");
            let messages = forged(seed, at(stop), server(), 200);
            rejected += laws::rejects_without_trace(&context, &mut engine, messages, trace, excused);
        }
    }
    assert!(rejected > 5000, "{rejected}");
}

#[test]
fn a_receiver_keeps_no_trace_of_what_it_turns_down() {
    let mut rejected = 0;
    for seed in 0..30 {
        for stop in STOPS {
            let session = midway(seed, stop);
            let mut engine = session.net.engine(session.clients[0].handle).clone();
            // The receiver reports a second transmission to its owner.
            let excused = |message: &Message, _: Reject| matches!(message.body, Body::Announce(_));
            let context = format!("[receiver, seed {seed}, stopped at {stop}]");
            let messages = forged(seed, at(stop), group(), 200);
            rejected += laws::rejects_without_trace(&context, &mut engine, messages, trace, excused);
        }
    }
    assert!(rejected > 10_000, "{rejected}");
}

#[test]
fn a_forged_source_makes_nothing_panic() {
    for seed in 0..100 {
        for stop in STOPS {
            let session = midway(seed, stop);
            let mut tx = session.engine().clone();
            let mut rx = session.net.engine(session.clients[0].handle).clone();
            let mut forger = Forger::new(seed);
            for step in 0..200 {
                let now = at(stop) + ms(step * 7);
                let from = Arrival::new(receiver_address(forger.0.below(4) as usize), server());
                drive(&mut tx, now, &from, &forger.message(), |_, _| ());
                drive(&mut rx, now, &Arrival::new(server(), group()), &forger.message(), |rx, event| {
                    match event {
                        ReceiverEvent::Offered(offer) => {
                            rx.accept(now, Bitmap::new(offer.geometry.segments().min(1000)));
                        }
                        ReceiverEvent::Decode { block } => rx.decoded(block, step % 2 == 0),
                        ReceiverEvent::Complete => rx.verified(now),
                        _ => {}
                    }
                });
            }
        }
    }
}

/// Handles one input, the timers that are due, and all messages and events that follow.
fn drive<E: Engine<Message = Message>>(
    engine: &mut E,
    now: Time,
    from: &Arrival,
    message: &Message,
    owner: impl Fn(&mut E, E::Event),
) {
    engine.handle_timeout(now);
    let _ = engine.handle(now, from, message);
    for _ in 0..100 {
        while let Some(event) = engine.poll_event() {
            owner(engine, event);
        }
        if engine.poll_transmit(now, now + ms(5)).is_none() {
            break;
        }
    }
}

#[test]
fn nobody_makes_an_engine_grow() {
    for seed in 0..3 {
        for stop in STOPS {
            let session = midway(seed, stop);
            let context = format!("[seed {seed}, stopped at {stop}]");
            // The text of an engine grows with everything that it holds. The bound allows four NAKs, registrations and
            // so on for three members and three blocks.
            let mut engine = session.engine().clone();
            let bound = trace(&engine).len() + 12_000;
            let messages = forged(seed, at(stop), server(), 5_000);
            laws::stays_small(&context, &mut engine, messages, |e: &Sender| trace(e).len(), bound);
            let mut engine = session.net.engine(session.clients[0].handle).clone();
            let bound = trace(&engine).len() + 8_000;
            let messages = forged(seed, at(stop), group(), 5_000);
            laws::stays_small(&context, &mut engine, messages, |e: &Receiver| trace(e).len(), bound);
        }
    }
}

/// Engine that sends forged messages.
struct Loudspeaker {
    forger: Forger,
    next: Time,
    left: u32,
    to: SocketAddr,
}

impl Engine for Loudspeaker {
    type Message = Message;
    type Event = ();

    fn handle(&mut self, _: Time, _: &Arrival, _: &Message) -> Result<(), Reject> {
        Ok(())
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, _: Time) -> Option<farcast_core::Transmit<Message>> {
        if now < self.next || self.left == 0 {
            return None;
        }
        (self.left, self.next) = (self.left - 1, self.next + ms(5));
        let mut message = self.forger.message();
        // Without keys nobody can tell these from the receivers' own.
        while matches!(message.body, Body::Done(_) | Body::Nak(_) | Body::Ack(_) | Body::Registration(_)) {
            message = self.forger.message();
        }
        // On a network a DATA message is a run of one.
        let (message, _) = farcast_core::Message::split(message, core::num::NonZeroU32::MIN);
        Some(farcast_core::Transmit::new(message, self.to))
    }

    fn poll_timeout(&self) -> Option<farcast_core::Deadline> {
        (self.left > 0).then_some(farcast_core::Deadline { at: self.next, timer: "noise" })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn settled_until(&self) -> Time {
        Time::NEVER
    }
}

fn add_loudspeaker(net: &mut Net, seed: u64, to: SocketAddr, last: u8) -> Handle<Loudspeaker> {
    let engine = Loudspeaker { forger: Forger::new(seed), next: at(ms(300)), left: 1000, to };
    let address = SocketAddr::from(([203, 0, 113, last], 666));
    net.add(address, &[], Host::alone(engine))
}

#[test]
fn a_session_survives_a_stranger_who_shouts() {
    for seed in 0..20 {
        let config = sender(200, 16, 3);
        let mut session = Session::new("stranger", Setup::plain(seed), config, 3, Link::clean(ms(100)));
        lose_data(&mut session.net, seed, 0.1);
        // The receivers have registered by now, and the sender no longer checks for a free group.
        add_loudspeaker(&mut session.net, seed, group(), 1);
        add_loudspeaker(&mut session.net, !seed, server(), 2);
        session.net.limit(secs(7200));
        session.net.run();
        let context = session.net.context();
        for client in &session.clients {
            let first = client.owner.outcomes().into_iter().next();
            assert!(matches!(first, Some(ReceiverOutcome::Complete { .. })), "{context} {first:?}");
        }
    }
}
