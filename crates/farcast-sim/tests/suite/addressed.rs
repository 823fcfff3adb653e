//! Addressed messages: from the sender to one receiver, and from a receiver to the group.

use std::net::SocketAddr;

use farcast_core::stage::Frame;
use farcast_core::{Among, BitRate, Losses, Span, Time};
use farcast_link::losses::NoLoss;
use farcast_mftp::{
    Body, ClientId, Message, NakTiming, Pace, Product, Receiver, ReceiverConfig, SenderConfig, StatusRetry,
};
use farcast_sim::scenario::mftp::{self, Mftp, receiver_id};
use farcast_sim::star::{
    Back, BackLosses, Chains, Cut, GroupConfig, Kind, Observer, Receivers, Star, StarConfig, StarError,
    receiver_address,
};

const RECEIVERS: u32 = 8;

/// Loss process in which every `period`-th frame for the group is lost by all receivers, and frames for one receiver
/// never are.
#[derive(Clone, Debug)]
struct Together {
    period: u64,
    frames: u64,
    /// `true` for a population, which asks only for the receivers that a frame for the group could be of use to.
    population: bool,
}

impl Losses for Together {
    fn draw(&mut self, _now: Time, _octets: u64, among: Among<'_>, lost: &mut Vec<u32>) {
        if among != Among::All && !self.population {
            return;
        }
        self.frames += 1;
        match among {
            _ if !self.frames.is_multiple_of(self.period) => {}
            Among::All => lost.extend(0..RECEIVERS / 2),
            Among::These(some) => lost.extend_from_slice(some),
        }
    }

    fn is_memoryless(&self) -> bool {
        false
    }
}

/// Log of sent messages.
#[derive(Clone, PartialEq, Debug, Default)]
struct Log {
    /// Messages of the sender to single receivers.
    alone: Vec<(Time, SocketAddr)>,
    /// Registrations, with their senders.
    registrations: Vec<(Time, u32)>,
    naks_sent: u64,
    naks_reached: u64,
}

impl Observer<Mftp> for Log {
    fn sent(&mut self, at: Time, destination: SocketAddr, _frame: &Frame<Message>) {
        if !destination.ip().is_multicast() {
            self.alone.push((at, destination));
        }
    }

    fn answered(&mut self, at: Time, receiver: u32, frame: &Frame<Message>) {
        match &frame.message.body {
            Body::Registration(_) => self.registrations.push((at, receiver)),
            Body::Nak(_) => self.naks_sent += 1,
            _ => {}
        }
    }

    fn reached(&mut self, _at: Time, _receiver: u32, message: &Message) {
        self.naks_reached += u64::from(matches!(message.body, Body::Nak(_)));
    }
}

fn sender() -> SenderConfig {
    let product = Product { id: [7; 32], size: 100_000, name: "file".into() };
    let server = "10.0.0.1:5402".parse().unwrap();
    let mut config = SenderConfig::new(product, server, "239.255.54.2:5402".parse().unwrap());
    (config.dtu_size, config.block_size) = (500, 50);
    let rate = BitRate::from_bps(300_000).unwrap();
    config.pace = Pace::Rate { rate, overhead: 28, credit: Span::ZERO, granule: 1 };
    config.start.after = Some(Span::from_millis(1500));
    config.status_retry = StatusRetry::Fixed(Span::from_secs(4));
    config.nak_timing = NakTiming::EachBlock;
    config
}

fn world(sender: SenderConfig, engines: bool, cut: Cut, period: u64) -> Result<StarConfig<Mftp>, StarError> {
    let delay = Span::from_millis(20);
    let receiver = ReceiverConfig { seed: 5, ..ReceiverConfig::new(ClientId(1), 5402) };
    // Two groups, so that numbers in a group are not those of receivers.
    let half = RECEIVERS / 2;
    let group = |receiver: ReceiverConfig| GroupConfig {
        receivers: half,
        kind: mftp::receivers(receiver, half, engines),
        losses: Box::new(Together { period, frames: 0, population: !engines }),
        delay,
        data_only: false,
    };
    let groups = vec![group(receiver.clone()), group(receiver)];
    Ok(StarConfig {
        sender: Some(mftp::sender(sender)?),
        groups,
        flows: Vec::new(),
        chains: Chains::new(),
        back: Back::uniform(delay, BackLosses::Shared(Box::new(NoLoss))),
        overhead: 28,
        seal: None,
        given: false,
        lookahead: delay,
        limit: Time::ZERO + Span::from_secs(200),
        cut,
    })
}

/// Runs a world. Returns the completion time of each receiver, and `true` for each receiver that takes part at the end.
fn play(config: StarConfig<Mftp>, log: &mut Log) -> (Vec<Time>, Vec<bool>) {
    let mut star = Star::new(config, Some(log)).unwrap();
    star.run();
    let completed = |group: &farcast_sim::star::Group<Mftp>| {
        (0..group.receivers()).map(|n| group.completed(n)).collect::<Vec<_>>()
    };
    let busy = |group: &farcast_sim::star::Group<Mftp>| match &group.kind {
        Kind::Engines(stations) => stations.iter().map(|station| station.engine.is_busy()).collect(),
        Kind::Population { .. } => Vec::new(),
    };
    let groups = star.groups();
    (groups.iter().flat_map(completed).collect(), groups.iter().flat_map(busy).collect())
}

#[test]
fn what_is_for_one_receiver_reaches_that_one() {
    // A receiver claims the identity of another, whose registration comes first.
    let (first, second) = (1, 6);
    for cut in [Cut::Whole, Cut::One] {
        let mut config = world(sender(), true, cut, 30).unwrap();
        config.groups[1].kind = Receivers::Engines(Box::new(move |n| {
            let id = receiver_id(if n == second { first } else { n });
            let receiver = Receiver::new(ReceiverConfig::new(id, 5402));
            receiver.map_err(|error| StarError::Engine(error.to_string()))
        }));
        let mut log = Log::default();
        let (completed, busy) = play(config, &mut log);
        assert!(busy.iter().all(|&busy| !busy), "{busy:?}");
        let incomplete: Vec<u32> = (0..RECEIVERS).filter(|&n| completed[n as usize] == Time::NEVER).collect();
        assert_eq!(incomplete, [second]);
        // It is told so once, at its own address, and sends nothing from the moment at which it hears this.
        let [(at, to)] = log.alone[..] else { panic!("{:?}", log.alone) };
        assert_eq!(to, receiver_address(second));
        let hears = at + Span::from_millis(20);
        assert!(!log.registrations.iter().any(|&(at, from)| from == second && at > hears));
    }
}

#[test]
fn naks_to_a_group_are_overheard_and_make_others_keep_silent() {
    let naks = |response: Option<&str>, engines, cut| {
        let mut config = sender();
        config.backoff_window = Span::from_secs(1);
        if let Some(response) = response {
            config.response = response.parse().unwrap();
        }
        let mut log = Log::default();
        let (completed, _) = play(world(config, engines, cut, 10).unwrap(), &mut log);
        assert!(completed.iter().all(|&at| at != Time::NEVER), "{completed:?}");
        assert_eq!(log.naks_sent, log.naks_reached);
        (log, completed)
    };
    for engines in [true, false] {
        let (alone, _) = naks(None, engines, Cut::Whole);
        let (together, completed) = naks(Some("239.255.54.9:5402"), engines, Cut::Whole);
        // All receivers lack the same: without a group each of eight asks, with a group those that hear a request in
        // time need not.
        assert!(
            together.naks_sent * 3 < alone.naks_sent * 2,
            "{} of {}",
            together.naks_sent,
            alone.naks_sent
        );
        assert!(together.naks_sent > 0);
        for cut in [Cut::One, Cut::Random(3)] {
            let again = naks(Some("239.255.54.9:5402"), engines, cut);
            assert_eq!(again, (together.clone(), completed.clone()), "{cut:?}");
        }
    }
}
