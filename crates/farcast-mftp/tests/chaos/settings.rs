//! Settings of the sender that `farcast send` would or may use.

use std::net::SocketAddr;

use farcast_core::{BitRate, Span, Time};
use farcast_mftp::{
    Group, Invited, NakTiming, Pace, PassWait, Product, Secret, SenderConfig, Start, StatusRetry,
};

use crate::plan::{Draw, Plan, Site};
use crate::stations::PRODUCT;

/// Receivers of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crowd {
    /// A list; the sender waits for all of it until the announcement limit.
    Awaited,
    /// A list; data begins after a while with the registered receivers.
    Listed,
    /// Any receivers that register in time.
    Open,
    /// Anybody who listens.
    Unlimited,
}

/// Bytes of the UDP and IPv4 headers.
pub(crate) const OVERHEAD: u16 = 28;

pub(crate) fn group() -> SocketAddr {
    SocketAddr::from(([239, 255, 54, 2], 5402))
}

/// Returns the address for answers that receivers must overhear.
pub(crate) fn response_group() -> SocketAddr {
    SocketAddr::from(([239, 255, 54, 3], 5403))
}

/// Returns the address of the sender in life `life`; the port differs each time.
pub(crate) fn server(life: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000 + life as u16 * 7))
}

/// Draws settings for these receivers.
pub(crate) fn draw(draw: &mut Draw, sites: &[Site]) -> (SenderConfig, Crowd) {
    let dtu_size = draw.log(64.0, 1440.0) as u32 & !3;
    let dtus = draw.log(1.0, 400.0) as u32;
    let size = u64::from(dtus) * u64::from(dtu_size) - draw.below(u64::from(dtu_size));
    let product = Product { id: PRODUCT, size, name: "product".into() };
    let mut config = SenderConfig::new(product, server(0), group());
    config.transmission = 1 + draw.below(1 << 31) as u32;
    config.dtu_size = dtu_size;
    config.block_size = draw.pick(&[8, 16, 16, 32, 64, 200]);
    let crowd = draw.pick(&[
        Crowd::Awaited,
        Crowd::Awaited,
        Crowd::Awaited,
        Crowd::Listed,
        Crowd::Listed,
        Crowd::Open,
        Crowd::Open,
        Crowd::Open,
        Crowd::Open,
        Crowd::Unlimited,
    ]);
    set_group(draw, &mut config, crowd, sites);
    let seconds = draw.log(0.05, 30.0);
    let bits = u64::from(dtus) * (u64::from(dtu_size) + 52) * 8;
    let bps = ((bits as f64 / seconds) as u64).clamp(16_000, 100_000_000);
    let rate = BitRate::from_bps(bps).expect("positive");
    config.pace = Pace::Rate { rate, overhead: OVERHEAD, credit: Span::from_millis(5), granule: 1 };
    if crowd != Crowd::Unlimited && draw.chance(0.15) {
        config.pace = Pace::Window { segments: draw.log(16.0, 256.0) as u32, paced: draw.chance(0.7) };
    } else {
        spare(&mut config, rate, sites.len());
    }
    set_rules(draw, &mut config, sites);
    (config, crowd)
}

/// Does the same as `send` on a thin link: announcements leave room for data.
pub(crate) fn spare(config: &mut SenderConfig, rate: BitRate, listed: usize) {
    let room = rate.time_of_bytes(300 + 8 * listed as u64) * 20;
    config.announce_interval = config.announce_interval.max(room);
    config.late_announce_interval = config.late_announce_interval.max(room);
    config.ask_twice = rate.as_bps() >= 1_000_000;
    config.completion_interval = config.completion_interval.max(rate.time_of_bytes(100) * 4);
}

fn set_group(draw: &mut Draw, config: &mut SenderConfig, crowd: Crowd, sites: &[Site]) {
    let with_first = draw.chance(0.5);
    let soon = Start { after: Some(Span::from_secs(3)), with_first, ..Start::default() };
    if with_first && draw.chance(0.7) {
        config.early_data = Span::from_millis(900);
    }
    let mut invited: Vec<Invited> = sites
        .iter()
        .map(|site| Invited { label: site.name.clone().unwrap_or_else(|| site.id.to_string()), id: site.id })
        .collect();
    if draw.chance(0.05) {
        invited.push(Invited::new("nobody"));
    }
    let (group, start) = match crowd {
        Crowd::Awaited => (Group::Closed(invited), Start { with_first, ..Start::default() }),
        Crowd::Listed => (Group::Closed(invited), soon),
        Crowd::Open => {
            let spare = draw.pick(&[0, 0, 2, 1016]);
            (Group::OpenLimited { limit: sites.len() as u32 + spare }, soon)
        }
        Crowd::Unlimited => (Group::OpenUnlimited, soon),
    };
    (config.group, config.start) = (group, start);
    if crowd != Crowd::Unlimited && draw.chance(0.3) {
        config.turns = true;
        config.return_rate = draw.pick(&[
            None,
            BitRate::from_bps(12_000),
            BitRate::from_bps(3_000),
            BitRate::from_bps(64_000),
        ]);
    }
}

fn set_rules(draw: &mut Draw, config: &mut SenderConfig, sites: &[Site]) {
    let longest = sites.iter().map(|site| site.delay).max().unwrap_or(Span::ZERO);
    (config.head_segments, config.repeat_small_passes) = (1, true);
    if draw.chance(0.25) {
        config.pass_wait = PassWait::FixedTimer;
    }
    if draw.chance(0.4) {
        config.nak_timing = NakTiming::EndOfFirstPass;
    }
    config.status_retry = match draw.below(8) {
        0 => StatusRetry::BlockTime { round_trips: 2 },
        1 => StatusRetry::Fixed((longest * 3).max(Span::from_millis(800))),
        _ => StatusRetry::Measured,
    };
    if draw.chance(0.35) {
        config.parity_symbols = 1 + draw.below(12) as u32;
        config.parity_ahead = config.parity_symbols.is_multiple_of(2);
    }
    if draw.chance(0.25) {
        config.backoff_window = draw.span(0.01, 1.0);
        if draw.chance(0.3) {
            config.response = response_group();
        }
    }
}

/// Returns the time to send the data once, plus the time before it.
pub(crate) fn duration(config: &SenderConfig) -> Span {
    let data = match config.pace {
        Pace::Rate { rate, .. } => rate.time_of_bytes(config.product.size + config.product.size / 10),
        Pace::Window { .. } => Span::from_millis(200),
    };
    data + config.start.after.unwrap_or(Span::from_secs(1))
}

/// Returns the settings of life `life`, which has another address and identifier.
pub(crate) fn of_life(plan: &Plan, life: usize) -> SenderConfig {
    let mut config = plan.config.clone();
    if config.response == config.server {
        config.response = server(life);
    }
    config.server = server(life);
    config.transmission = config.transmission.wrapping_add(life as u32 * 0x3779_B97F).max(1);
    config.secret = plan.proofs.then(|| secret(plan.seed, 0, life as u64));
    config
}

/// Returns the secret that only `who` knows in its `time`th life.
pub(crate) fn secret(seed: u64, who: u64, time: u64) -> Secret {
    let mut stream = farcast_core::random::RandomStream::derive(seed, &[SECRETS, who, time]);
    let mut octets = [0; 32];
    for piece in octets.chunks_mut(8) {
        piece.copy_from_slice(&stream.bits().to_le_bytes());
    }
    Secret(octets)
}

/// Purpose of the draws of secrets.
const SECRETS: u64 = 30;

/// Returns the time at which a sender stops waiting for all receivers.
pub(crate) fn announce_end(config: &SenderConfig, begins: Time) -> Time {
    begins + config.announce_limit
}
