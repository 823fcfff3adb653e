//! A population and single receivers that hear the same arbitrary messages: law 11 without a real sender.

use core::net::SocketAddr;

use farcast_core::engine::{Arrival, Engine as _};
use farcast_core::random::RandomStream;
use farcast_core::{Among, Bitmap, Losses, Run, Time};
use farcast_delivery::{Channel, Feedback};
use farcast_mftp::message::{
    Abort, Announce, AnnounceOptions, Completion, Data, DataKind, End, Grant, GroupModel, HostState, Nak,
    StatusRequest, StatusType,
};
use farcast_mftp::{
    Body, ClientId, HostSet, Message, Population, Proof, Receiver, ReceiverConfig, ReceiverEvent, Secret,
    Token, Turn, Waits,
};

const RECEIVERS: u32 = 6;
const DTU: u16 = 100;
/// Segments of the first block, and of both; the second block is shorter, with a short DTU at its end.
const BLOCK: u32 = 8;
const SEGMENTS: u32 = 13;
const LAST: u16 = 37;
const SYMBOLS: u32 = 6;

/// Receivers that lose the current message.
#[derive(Clone, Debug, Default)]
struct Given(Vec<u32>);

impl Losses for Given {
    fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        let within = |n: &u32| {
            matches!(among, Among::All) || matches!(among, Among::These(these) if these.contains(n))
        };
        lost.extend(self.0.iter().copied().filter(within));
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

fn server() -> SocketAddr {
    "10.0.0.1:5402".parse().expect("an address")
}

/// Returns a call to random places in one of a few rounds.
fn turn(random: &mut RandomStream) -> Turn {
    let ends = [random.below(1 << 32) as u32, random.below(1 << 32) as u32];
    let (first, last) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    Turn { round: random.below(3) as u16, spread_ms: [0, 3][random.below(2) as usize], first, last }
}

/// Session of one kind: receivers may take turns, and may have proofs.
#[derive(Clone, Copy)]
struct Kind {
    turns: bool,
    proofs: bool,
}

fn announce(window: Option<u32>, kind: Kind, turn: Option<Turn>) -> Message {
    let model = if kind.turns { GroupModel::OpenLimited } else { GroupModel::OpenUnlimited };
    let options =
        AnnounceOptions { model, stay_in_group: false, restart: false, overwrite: false, late_entry: true };
    let announce = Announce {
        turn,
        server: server(),
        response: if window.is_some() { "239.255.54.9:5402".parse().expect("an address") } else { server() },
        private: "239.255.54.2".parse().expect("an address"),
        announce_duration_s: 0,
        options,
        application: "farcast".into(),
        block_size: BLOCK,
        data_rate_bps: 1_000_000,
        product_name: "file".into(),
        transfer_duration_s: 100_000,
        dtu_size: DTU.into(),
        product_size: u64::from(SEGMENTS - 1) * u64::from(DTU) + u64::from(LAST),
        error_threshold: None,
        user_data: None,
        hosts: None,
        host_set: None,
        backoff_window_ms: window,
        product_id: None,
        parity_symbols: Some(SYMBOLS),
        commitment: kind.proofs.then_some(Proof([7; 8])),
    };
    Message::new(1, Body::Announce(Box::new(announce)))
}

/// Returns a message that an announcement with proofs does not believe: an end without its key, or a false token.
fn forged(random: &mut RandomStream) -> Message {
    let body = match random.below(4) {
        0 => Body::End(End { server: server(), response: server() }),
        1 => Body::Abort(Abort { reason: 1, hosts: None, text: None }),
        2 => Body::Completion(Completion { hosts: None, turn: None }),
        _ => {
            let client = ClientId(1 + random.below(RECEIVERS.into()) as u32);
            Body::Grant(Grant { client, token: Token([3; 16]) })
        }
    };
    Message { transmission: 1, body, proof: random.chance(0.5).then_some(Proof([7; 8])) }
}

/// Returns a random message: a DTU or symbol, at any time and repeatedly, a request, or a NAK of another group. With
/// proofs it may be forged.
fn any(random: &mut RandomStream, kind: Kind) -> Message {
    if kind.proofs && random.chance(0.1) {
        return forged(random);
    }
    let turns = kind.turns;
    let block = random.below(2) as u32;
    let len = if block == 0 { BLOCK } else { SEGMENTS - BLOCK };
    let pass = 1 + random.below(2) as u32;
    let data = |kind, dtu, last_len| Data { pass, block, kind, dtus: Run::one(dtu), len: DTU, last_len };
    Message::new(
        1,
        match random.below(if turns { 13 } else { 10 }) {
            10.. => Body::Completion(Completion {
                hosts: Some((1..=RECEIVERS).filter(|_| random.chance(0.1)).map(ClientId).collect()),
                turn: random.chance(0.8).then(|| turn(random)),
            }),
            0..4 => {
                let dtu = random.below(len.into()) as u32;
                let short = block * BLOCK + dtu + 1 == SEGMENTS;
                Body::Data(data(DataKind::Source, dtu, if short { LAST } else { DTU }))
            }
            // One symbol beyond the maximum, which is rejected.
            4..7 => Body::Data(data(DataKind::Parity, random.below(u64::from(SYMBOLS) + 1) as u32, DTU)),
            7 => {
                let mut missing = Bitmap::new(8);
                missing.insert(random.below(len.into()) as u32);
                let client = ClientId(99);
                Body::Nak(Nak { server: server(), client, pass, block, missing, parity_held: 0, unstored: 0 })
            }
            _ => Body::StatusRequest(StatusRequest {
                turn: (turns && random.chance(0.7)).then(|| turn(random)),
                pass,
                blocks: if random.chance(0.5) { Run::new(0, 2).expect("a run") } else { Run::one(block) },
                dtus: Run::new(0, BLOCK).expect("a run"),
                status: if random.chance(0.5) { StatusType::NakOnly } else { StatusType::All },
                hosts: None,
            }),
        },
    )
}

/// Messages sent: time, receiver, and text.
type Said = Vec<(Time, u32, String)>;

/// Receiver and its owner, who stores, rebuilds and verifies at once.
struct Alone {
    number: u32,
    engine: Receiver,
    completed: Time,
    /// `true` if a transmission is over for it; a population takes part in one only.
    over: bool,
}

impl Alone {
    fn drain(&mut self, now: Time, said: &mut Said) {
        loop {
            if let Some(event) = self.engine.poll_event() {
                match event {
                    ReceiverEvent::Offered(_) if self.over => {}
                    ReceiverEvent::Offered(_) => self.engine.accept(now, Bitmap::new(SEGMENTS)),
                    ReceiverEvent::Ended(_) => self.over = true,
                    ReceiverEvent::Decode { block } => self.engine.decoded(block, true),
                    ReceiverEvent::Complete => {
                        self.completed = now;
                        self.engine.verified(now);
                    }
                    _ => {}
                }
            } else if let Some(transmit) = self.engine.poll_transmit(now, Time::NEVER) {
                said.push((now, self.number, format!("{:?} to {}", transmit.message, transmit.destination)));
            } else {
                return;
            }
        }
    }

    fn wake(&mut self, until: Time, said: &mut Said) {
        while let Some(deadline) = self.engine.poll_timeout().filter(|deadline| deadline.at <= until) {
            self.engine.handle_timeout(deadline.at);
            self.drain(deadline.at, said);
        }
    }
}

fn said_of(population: &mut Population, said: &mut Said) {
    while let Some((at, feedback)) = population.poll_feedback() {
        let Feedback::Each { receiver, transmit } = feedback else { panic!("nothing may be merged") };
        said.push((at, receiver, format!("{:?} to {}", transmit.message, transmit.destination)));
    }
}

/// Returns the completion times and all messages, of single receivers and of the population.
fn play(seed: u64, kind: Kind) -> [(Vec<Time>, Said); 2] {
    let mut random = RandomStream::derive(seed, &[]);
    let config = ReceiverConfig {
        // Some have no room for parity of both blocks.
        parity_memory_bytes: [1 << 20, 1500, 700][random.below(3) as usize],
        waits: Waits::ByReceiver,
        secret: kind.proofs.then_some(Secret([2; 32])),
        ..ReceiverConfig::new(ClientId(1), 5402)
    };
    let alone = |number| {
        let config = ReceiverConfig { id: ClientId(1 + number), ..config.clone() };
        Alone {
            number,
            engine: Receiver::new(config).expect("settings"),
            completed: Time::NEVER,
            over: false,
        }
    };
    let mut engines: Vec<Alone> = (0..RECEIVERS).map(alone).collect();
    let mut population = Population::new(config.clone(), RECEIVERS).expect("settings");
    let (mut apart, mut together) = (Said::new(), Said::new());
    let from = Arrival::new(server(), "239.255.54.2:5402".parse().expect("an address"));
    let window = random.chance(0.5).then_some(20);
    let probability = [0.0, 0.1, 0.4][random.below(3) as usize];
    for step in 0..150 {
        let now = Time::from_nanos(1_000_000 * step);
        let message = if step % if kind.turns { 10 } else { 50 } == 0 {
            let turn = (kind.turns && random.chance(0.8)).then(|| turn(&mut random));
            let mut message = announce(window, kind, turn);
            if let (Body::Announce(announce), true) = (&mut message.body, kind.proofs) {
                // No receiver has a token, so none believes that it is accepted.
                let listed = (1..=RECEIVERS).filter(|_| random.chance(0.5));
                let listed: Vec<ClientId> = listed.map(ClientId).collect();
                let accepted = HostState::Accepted;
                if random.chance(0.5) {
                    let mut hosts = listed.into_iter().peekable();
                    announce.host_set = HostSet::take(accepted, &mut hosts, usize::MAX);
                } else {
                    announce.hosts = Some(listed.into_iter().map(|id| (id, accepted)).collect());
                }
            }
            message
        } else {
            any(&mut random, kind)
        };
        let lost: Vec<u32> = (0..RECEIVERS).filter(|_| random.chance(probability)).collect();
        for engine in &mut engines {
            engine.wake(now, &mut apart);
            if !lost.contains(&engine.number) {
                let _ = engine.engine.handle(now, &from, &message);
                engine.drain(now, &mut apart);
            }
        }
        while population.poll_timeout() <= now {
            population.handle_timeout(population.poll_timeout());
            said_of(&mut population, &mut together);
        }
        let mut losses = Given(lost);
        let mut channel = Channel { losses: &mut losses, overhead: 28, data_only: false, merged: None };
        assert_eq!(population.handle(now, &from, &message, &mut channel), 1);
        said_of(&mut population, &mut together);
    }
    apart.sort();
    together.sort();
    let completed = engines.iter().map(|engine| engine.completed).collect();
    [(completed, apart), (population.completed().to_vec(), together)]
}

#[test]
fn whatever_is_sent_a_population_does_what_single_receivers_do() {
    let (mut complete, mut said) = (0, 0);
    for seed in 0..4000 {
        let [apart, together] = play(seed, Kind { turns: seed % 2 == 0, proofs: seed % 4 > 1 });
        assert_eq!(apart.0, together.0, "seed {seed}");
        for (one, other) in apart.1.iter().zip(&together.1) {
            assert_eq!(one, other, "seed {seed}");
        }
        assert_eq!(apart.1.len(), together.1.len(), "seed {seed}");
        complete += apart.0.iter().filter(|&&at| at != Time::NEVER).count();
        said += apart.1.len();
    }
    assert!(complete > 8000 && said > 20_000, "{complete} {said}");
}
