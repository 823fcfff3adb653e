//! Any sequence of messages and timers, hostile ones too: a population never panics, always drains, says no more than
//! its receivers could, and is complete only where every segment came.
#![no_main]

use std::net::SocketAddr;

use arbitrary::{Arbitrary, Unstructured};
use farcast_core::engine::{Arrival, Message as _};
use farcast_core::random::RandomStream;
use farcast_core::{Among, Losses, Probability, Run, Span, Time};
use farcast_fuzz::repair;
use farcast_link::losses::{Bernoulli, NoLoss};
use farcast_mftp::message::{
    Abort, Announce, AnnounceOptions, Completion, Data, DataKind, GroupModel, HostState, StatusRequest, StatusType,
};
use farcast_delivery::{Channel, Geometry};
use farcast_mftp::{Body, ClientId, Message, Population, ReceiverConfig, wire};
use libfuzzer_sys::fuzz_target;

const FIRST: ClientId = ClientId(0x0A40_0000);

#[derive(Arbitrary, Debug)]
enum Step {
    Announce { size: u16, dtu: u8, block: u8, model: u8, backoff_ms: u16, standing: u8, hosts: Vec<u8> },
    /// DATA with arbitrary numbers if `wild`, otherwise with plausible ones.
    Data { wild: bool, pass: u8, block: u32, first: u32, count: u32, parity: bool, spacing_us: u16 },
    Request { wild: bool, pass: u8, blocks: (u32, u32), dtus: (u32, u32), all: bool },
    Completion { hosts: Option<Vec<u8>> },
    Abort,
    /// Octets of any other message.
    Bytes(Vec<u8>),
    Wait(u32),
    Timeout,
}

#[derive(Arbitrary, Debug)]
struct World {
    receivers: u8,
    loss: u8,
    data_only: bool,
    merged: bool,
    keep_early: bool,
    seed: u64,
}

/// Losses that count how often a loss is drawn.
#[derive(Debug)]
struct Counted {
    inner: Box<dyn Losses>,
    drawn: u64,
}

impl Losses for Counted {
    fn draw(&mut self, now: Time, octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        self.drawn += 1;
        self.inner.draw(now, octets, among, lost);
    }

    fn is_memoryless(&self) -> bool {
        true
    }
}

fn run(first: u32, count: u32, wild: bool, bound: u32) -> Run {
    let (first, count) = if wild { (first, count) } else { (first % bound, 1 + count % bound) };
    // A run in flight is at most a message's worth; its numbers may be any.
    Run::new(first, count.min(2000)).unwrap_or(Run::one(first))
}

fn announce(step: &Step) -> Option<Announce> {
    let Step::Announce { size, dtu, block, model, backoff_ms, standing, hosts } = step else { return None };
    let standing = if standing % 2 == 0 { HostState::Accepted } else { HostState::Pending };
    let source: SocketAddr = "192.0.2.1:40000".parse().expect("address");
    Some(Announce {
        server: source,
        response: source,
        private: [239, 255, 1, 1].into(),
        announce_duration_s: 3,
        options: AnnounceOptions {
            model: [GroupModel::OpenUnlimited, GroupModel::OpenLimited, GroupModel::Closed][usize::from(model % 3)],
            stay_in_group: true,
            restart: false,
            overwrite: true,
            late_entry: true,
        },
        application: "farcast".into(),
        block_size: (*block).into(),
        data_rate_bps: 1_000_000,
        product_name: "p".into(),
        transfer_duration_s: 1000,
        dtu_size: (*dtu).into(),
        product_size: (*size).into(),
        error_threshold: None,
        user_data: None,
        hosts: (!hosts.is_empty())
            .then(|| hosts.iter().map(|&n| (ClientId(FIRST.0.wrapping_add(n.into())), standing)).collect()),
        host_set: None,
        backoff_window_ms: (*backoff_ms > 0).then_some((*backoff_ms).into()),
        product_id: None,
        parity_symbols: None,
        commitment: None,
    })
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(world) = World::arbitrary(&mut input) else { return };
    let receivers = 1 + u32::from(world.receivers % 200);
    let mut config = ReceiverConfig::new(FIRST, 5402);
    (config.keep_early_data, config.max_segments, config.seed) = (world.keep_early, 4096, world.seed);
    let mut population = Population::new(config, receivers).expect("valid");
    let p = Probability::new(f64::from(world.loss) / 255.0).expect("within 0 to 1");
    let bernoulli = |label| Bernoulli::new(p, receivers, RandomStream::derive(world.seed, &[label]));
    let mut losses = Counted { inner: Box::new(bernoulli(1)), drawn: 0 };
    let mut back: Box<dyn Losses> = if world.loss == 0 { Box::new(NoLoss) } else { Box::new(bernoulli(2)) };
    let source = "192.0.2.1:40000".parse().expect("address");
    let group = "239.255.1.1:5402".parse().expect("address");
    // The geometry of the announcement that counted: the first that can be borne.
    let mut geometry: Option<Geometry> = None;
    let mut sent: Vec<bool> = Vec::new();
    let mut now = Time::ZERO;
    let mut steps = 0;
    while !input.is_empty() && steps < 300 {
        steps += 1;
        let Ok(step) = Step::arbitrary(&mut input) else { return };
        let blocks = geometry.as_ref().map_or(1, Geometry::blocks);
        let size = geometry.as_ref().map_or(1, Geometry::block_size);
        let mut spacing = Span::ZERO;
        let body = match &step {
            Step::Announce { .. } => announce(&step).map(|announce| Body::Announce(Box::new(announce))),
            Step::Data { wild, pass, block, first, count, parity, spacing_us } => {
                spacing = Span::from_micros((*spacing_us).into());
                let kind = if *parity { DataKind::Parity } else { DataKind::Source };
                let block = if *wild { *block } else { block % blocks };
                let dtus = run(*first, *count, *wild, size);
                Some(Body::Data(Data { pass: (*pass).into(), block, kind, dtus, len: 100, last_len: 100 }))
            }
            Step::Request { wild, pass, blocks: asked, dtus, all } => Some(Body::StatusRequest(StatusRequest {
                pass: (*pass).into(),
                blocks: run(asked.0, asked.1, *wild, blocks),
                dtus: run(dtus.0, dtus.1, *wild, size),
                status: if *all { StatusType::All } else { StatusType::NakOnly },
                hosts: None,
            })),
            Step::Completion { hosts } => {
                let id = |&n: &u8| ClientId(FIRST.0.wrapping_add(n.into()));
                Some(Body::Completion(Completion { hosts: hosts.as_ref().map(|all| all.iter().map(id).collect()) }))
            }
            Step::Abort => Some(Body::Abort(Abort { reason: 3001, hosts: None, text: None })),
            Step::Bytes(bytes) => {
                let mut bytes = bytes.clone();
                repair(&mut bytes, true);
                wire::decode(&bytes).ok().map(|packet| packet.message.body)
            }
            Step::Wait(micros) => {
                now += Span::from_micros((*micros).into());
                None
            }
            Step::Timeout => {
                let due = population.poll_timeout();
                if due != Time::NEVER {
                    now = now.max(due);
                }
                population.handle_timeout(now);
                assert!(population.poll_timeout() > now, "every timer that is due has been served");
                None
            }
        };
        if let Some(body) = body {
            if population.poll_timeout() <= now {
                population.handle_timeout(now);
            }
            let mut message = Some(Message::new(1, body));
            while let Some(whole) = message.take() {
                let merged = world.merged.then_some(back.as_mut());
                let mut channel =
                    Channel { losses: &mut losses, overhead: 28, data_only: world.data_only, merged };
                let from = Arrival { spacing, ..Arrival::new(source, group) };
                let before = losses_before(&geometry, &whole);
                let taken = population.handle(now, &from, &whole, &mut channel);
                assert!((1..=whole.segments().get()).contains(&taken), "{taken} of {whole:?}");
                if let Some(run) = before {
                    run.segments().take(taken as usize).for_each(|segment| sent[segment as usize] = true);
                }
                // The last segment that was taken is the time now.
                now += spacing * u64::from(taken - 1);
                if geometry.is_none()
                    && let (Body::Announce(announce), Some(_)) = (&whole.body, population.response())
                {
                    let known = Geometry::new(announce.product_size, announce.dtu_size, announce.block_size);
                    let known = known.expect("the population has taken it");
                    sent = vec![false; known.segments() as usize];
                    geometry = Some(known);
                }
                let count = std::num::NonZeroU32::new(taken).expect("at least one");
                if taken < whole.segments().get() {
                    now += spacing;
                    message = whole.split(count).1;
                    if population.poll_timeout() <= now {
                        population.handle_timeout(now);
                    }
                }
            }
        }
        let mut voices = 0u64;
        while population.poll_feedback().is_some() {
            voices += 1;
        }
        // One message makes a receiver say so many NAKs and an ACK; it ends, and may have had a timer of each kind.
        assert!(voices <= u64::from(receivers) * 400, "{voices} voices");
        let all = !sent.is_empty() && sent.iter().all(|&sent| sent);
        let complete = population.completed().iter().filter(|&&at| at != Time::NEVER).count();
        assert!(complete == 0 || all, "{complete} complete without every segment");
        assert!(population.completed().iter().all(|&at| at <= now || at == Time::NEVER));
        assert_eq!(population.len(), receivers);
    }
    assert!(losses.drawn <= 300 * 2001);
});

/// Returns the segments in a message if it is DATA of the product.
fn losses_before(geometry: &Option<Geometry>, message: &Message) -> Option<Run> {
    let Body::Data(data) = &message.body else { return None };
    let geometry = geometry.as_ref()?;
    geometry.segments_of(data.block, data.dtus).filter(|_| data.kind == DataKind::Source)
}
