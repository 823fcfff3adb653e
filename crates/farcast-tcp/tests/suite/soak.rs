//! For random settings and paths, both streams arrive whole and both connections end.

use farcast_core::random::RandomStream;
use farcast_core::{BitRate, Span};
use farcast_tcp::{
    AfterTimeout, Algorithm, Config, DelayedAck, Event, Floor, Increase, InitialWindow, ReceiveWindow,
    Recovery, Reduction, RtoConfig, State, Variation, Window,
};

use crate::common::{CLIENT, Fate, Path, SERVER, Side, World, ms};

const REDUCTIONS: [Reduction; 4] =
    [Reduction::Immediate, Reduction::Proportional, Reduction::ProportionalSafe, Reduction::RateHalving];
const INCREASES: [Increase; 4] =
    [Increase::PerAcknowledgment, Increase::Octets(1), Increase::Octets(2), Increase::Delivered];

/// A choice out of `all`.
fn one<T: Copy>(random: &mut RandomStream, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

/// A preset, or every switch by chance.
fn settings(random: &mut RandomStream) -> Config {
    let window = Window::Octets(20_000 + random.below(80_000));
    let recovery = one(random, &[Recovery::Reno, Recovery::NewReno, Recovery::Sack]);
    let config = match random.below(8) {
        0 => Config::modern(),
        1 => Config::linux_2_4(),
        2 => Config { window_scaling: true, ..Config::ns2(recovery, window) },
        _ => switches(random),
    };
    // A path may lose the whole of a handshake and of an end: patience is not tested here.
    Config { most_retries: 200, time_wait: Span::from_secs(1200), ..config }
}

fn switches(random: &mut RandomStream) -> Config {
    let mut config = Config {
        mss: one(random, &[64, 88, 536, 1000, 1460]),
        reduction: one(random, &REDUCTIONS),
        congestion: one(random, &[Algorithm::Reno, Algorithm::Cubic]),
        increase: one(random, &INCREASES),
        initial_window: one(
            random,
            &[InitialWindow::Rfc5681, InitialWindow::Rfc6928, InitialWindow::Segments(1)],
        ),
        initial_ssthresh: one(random, &[None, Some(Window::Octets(8_000)), Some(Window::Segments(2))]),
        most_burst: one(random, &[None, Some(3), Some(1)]),
        timestamps: one(random, &[None, Some(ms(1)), Some(ms(10)), Some(ms(1000))]),
        send_buffer: one(random, &[u64::MAX, 2_000, 20_000]),
        delayed_ack: one(
            random,
            &[
                DelayedAck::Off,
                DelayedAck::Delayed { delay: ms(200) },
                DelayedAck::Delayed { delay: ms(500) },
                DelayedAck::Quick { segments: 16, least: ms(40), most: ms(200) },
            ],
        ),
        ..Config::default()
    };
    config.sack = random.chance(0.7);
    let all = [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack];
    config.recovery = one(random, if config.sack { &all } else { &all[..2] });
    config.window_scaling = random.chance(0.5);
    let size = one(random, &[u64::from(config.mss), 5_000, 65_535, 200_000]).max(config.mss.into());
    let size = if config.window_scaling { size } else { size.min(65_535) };
    let first = random.chance(0.3).then_some(Window::Segments(2));
    config.receive_window = ReceiveWindow { size: Window::Octets(size), first };
    for switch in [
        &mut config.hystart,
        &mut config.halve_window,
        &mut config.limited_transmit,
        &mut config.idle_restart,
        &mut config.frto,
        &mut config.undo,
        &mut config.tail_loss_probe,
        &mut config.dsack,
        &mut config.nagle,
    ] {
        *switch = random.chance(0.5);
    }
    config.after_timeout = one(random, &[AfterTimeout::SlowStart, AfterTimeout::Linux]);
    config.rto = RtoConfig {
        least: one(random, &[ms(200), ms(1000)]),
        granularity: one(random, &[ms(1), ms(10), ms(500)]),
        floor: one(random, &[Floor::Timeout, Floor::Variation]),
        variation: one(random, &[Variation::Rfc6298, Variation::Linux]),
        ..RtoConfig::default()
    };
    config
}

/// Loses, doubles and delays by chance.
fn rough(path: &mut Path, mut random: RandomStream, worst: f64) {
    let loss = random.unit() * worst;
    let (late, twice) = (random.unit() * 0.1, random.unit() * 0.05);
    let spread = 1 + random.below(300);
    if random.chance(0.4) {
        path.rate = BitRate::from_bps(20_000 + random.below(2_000_000));
        path.queue = 2 + random.below(30) as usize;
    }
    path.script = Box::new(move |_| {
        let later = ms(random.below(spread));
        match random.unit() {
            u if u < loss => Fate::Drop,
            u if u < loss + late => Fate::Late(later),
            u if u < loss + late + twice => Fate::Twice(later),
            _ => Fate::Pass,
        }
    });
}

fn exchange(seed: u64) {
    let mut random = RandomStream::derive(seed, &[0]);
    let configs = [settings(&mut random), settings(&mut random)];
    let round_trip = ms(1 + random.below(1500));
    let lengths = [0, 1].map(|_| one(&mut random, &[0, 1, 1_000, 20_000, 300_000]));
    let [client, server] = configs.clone();
    let mut world = World::new(client, server, round_trip, 300_000);
    world.records = false;
    for side in [CLIENT, SERVER] {
        rough(&mut world.paths[side], RandomStream::derive(seed, &[1, side as u64]), 0.2);
    }
    for side in [CLIENT, SERVER] {
        world.write(side, lengths[side]);
        world.close(side);
    }
    let rests = world.try_run();
    let told = format!("seed {seed}, {configs:?}: {}", world.describe());
    assert!(rests, "it does not end: {told}");
    for side in [CLIENT, SERVER] {
        arrived_whole(&world, side, lengths[1 - side], &told);
    }
}

fn arrived_whole(world: &World, side: Side, length: u64, told: &str) {
    let end = &world.ends[side];
    assert_eq!(end.connection.state(), State::Closed, "side {side}: {told}");
    assert!(end.heard(Event::Connected) && end.heard(Event::PeerClosed), "side {side}: {told}");
    assert!(end.heard(Event::Closed), "side {side}: {told}");
    assert_eq!(end.connection.received(), length, "side {side}: {told}");
    assert!(end.arrived[..] == world.ends[1 - side].stream[..length as usize], "side {side}: {told}");
}

#[test]
fn two_hundred_rough_transfers() {
    for seed in 0..200 {
        exchange(seed);
    }
}
