//! Sessions of thousands of receivers, without attackers.

use core::ops::Range;

use farcast_core::{BitRate, Span, Time};
use farcast_mftp::{ClientId, Group, Invited, Pace, Product, SenderConfig, Start};
use farcast_testkit::Transmitter;

use crate::crowds;
use crate::kinds::{Kind, Kinds};
use crate::plan::{Draw, Life, Outage, Plan, Restart, Site};
use crate::settings::{self, Crowd, OVERHEAD, group, server};
use crate::stations::{PRODUCT, site_ip};

/// Most members of an open group.
const LIMIT: u32 = 16_384;
/// Rate of a thin return in bit/s for each receiver.
const EACH: Range<f64> = 12.8..100.0;
/// Octets that fit the queue before it.
const QUEUE: Range<f64> = 16_000.0..256_000.0;

/// Purposes of the draws.
mod purpose {
    pub(super) const SETTINGS: u64 = 50;
    pub(super) const FAULTS: u64 = 51;
    pub(super) const SITE: u64 = 52;
}

/// Parts of a group that suffer each kind of fault.
struct Shares {
    late: f64,
    restarted: f64,
    paused: f64,
    slow: f64,
    /// Part with a probability of loss of its own.
    apart: f64,
}

/// Draws the session of `seed` with that many receivers, with only `kinds` of faults.
pub(crate) fn draw(seed: u64, receivers: usize, kinds: Kinds) -> Plan {
    let mut draw = Draw::new(seed, &[purpose::SETTINGS]);
    let (delay, named) = (draw.span(0.005, 0.6), draw.chance(0.7));
    let mut sites: Vec<Site> = (0..receivers).map(|n| site(seed, n, named, delay)).collect();
    let crowd = draw.pick(&[Crowd::Awaited, Crowd::Listed, Crowd::Open, Crowd::Open]);
    let mut config = config(&mut draw, crowd, &sites);
    let thin = draw.chance(0.8).then(|| {
        let bps = receivers as f64 * draw.log(EACH.start, EACH.end);
        let rate = BitRate::from_bps(bps as u64).expect("positive");
        let queue = rate.time_of_bytes(draw.log(QUEUE.start, QUEUE.end) as u64).min(crowds::LONGEST_WAIT);
        Transmitter { rate, overhead: OVERHEAD, queue, shared: true }
    });
    let thin = thin.filter(|_| kinds.has(Kind::ThinReturn));
    if draw.chance(0.5) {
        config.return_rate = thin.map(|thin| thin.rate);
    }
    let back = crowds::time_back(receivers, thin.as_ref());
    let scale = settings::duration(&config) + delay * 8 + Span::from_secs(3) + back;
    let mut plan = Plan::quiet(seed, config, crowd, kinds);
    (plan.thin, plan.proofs) = (thin, draw.chance(0.7));
    let mut draw = Draw::new(seed, &[purpose::FAULTS]);
    if !draw.chance(0.05) {
        faults(&mut draw, seed, scale, &mut sites, &mut plan);
    }
    plan.sites = sites;
    plan.settle();
    plan
}

fn site(seed: u64, n: usize, named: bool, delay: Span) -> Site {
    let mut draw = Draw::new(seed, &[purpose::SITE, n as u64]);
    let name = named.then(|| format!("site-{n}"));
    let from_address = || ClientId::from_address(site_ip(n).into());
    Site {
        id: name.as_ref().map_or_else(from_address, |name| ClientId::from_name(name)),
        name,
        delay: delay + delay * draw.below(100) / 1000,
        loss: (0.0, 0.0),
        begins: Time::ZERO,
        restarts: Vec::new(),
        pauses: Vec::new(),
        slow: Span::ZERO,
        checkpoints: draw.span(0.05, 3.0),
        ports: draw.below(20_000),
        earlier: None,
    }
}

fn config(draw: &mut Draw, crowd: Crowd, sites: &[Site]) -> SenderConfig {
    let (dtu_size, dtus) = (draw.log(200.0, 1440.0) as u32 & !3, draw.log(4.0, 40.0) as u32);
    let size = u64::from(dtus) * u64::from(dtu_size) - draw.below(u64::from(dtu_size));
    let mut config =
        SenderConfig::new(Product { id: PRODUCT, size, name: "product".into() }, server(0), group());
    config.transmission = 1 + draw.below(1 << 31) as u32;
    (config.dtu_size, config.block_size) = (dtu_size, draw.pick(&[8, 16, 32, 64]));
    config.group = if crowd == Crowd::Open {
        Group::OpenLimited { limit: LIMIT }
    } else {
        let invited = |site: &Site| Invited { label: crate::world::label_of(site), id: site.id };
        Group::Closed(sites.iter().map(invited).collect())
    };
    let after = (crowd != Crowd::Awaited).then_some(Span::from_secs(3));
    config.start = Start { after, with_first: true, ..Start::default() };
    config.early_data = Span::from_millis(900);
    let bits = u64::from(dtus) * (u64::from(dtu_size) + 52) * 8;
    let bps = (bits as f64 / draw.log(0.5, 10.0)) as u64;
    let rate = BitRate::from_bps(bps.clamp(256_000, 10_000_000)).expect("positive");
    config.pace = Pace::Rate { rate, overhead: OVERHEAD, credit: Span::from_millis(5), granule: 1 };
    (config.head_segments, config.repeat_small_passes) = (1, true);
    let listed = if crowd == Crowd::Open { 0 } else { sites.len() };
    settings::spare(&mut config, rate, listed);
    crowds::by_default(&mut config);
    config
}

fn faults(draw: &mut Draw, seed: u64, scale: Span, sites: &mut [Site], plan: &mut Plan) {
    let mut share = |p: f64, most: f64| if draw.chance(p) { draw.log(0.0005, most) } else { 0.0 };
    let shares = Shares {
        late: share(0.5, 0.1),
        restarted: share(0.5, 0.05),
        paused: share(0.3, 0.02),
        slow: share(0.3, 0.05),
        apart: share(0.5, 0.1),
    };
    let lossy = draw.chance(0.7);
    let all = if lossy { draw.log(0.001, 0.1) } else { 0.0 };
    for (n, site) in sites.iter_mut().enumerate() {
        strike(&mut Draw::new(seed, &[purpose::FAULTS, n as u64]), &shares, all, scale, site);
    }
    if draw.chance(0.5) {
        let begins = draw.time(scale);
        let ways = draw.pick(&[(true, true), (true, false), (false, true)]);
        plan.outages.push(Outage { during: begins..begins + draw.span(0.5, 55.0), site: None, ways });
    }
    if draw.chance(0.15) {
        let dies = draw.time(scale);
        plan.lives[0].dies = Some(dies);
        let begins = dies + draw.span(0.5, 30.0);
        plan.lives.push(Life { begins, dies: None, remembers: draw.chance(0.6), pauses: Vec::new() });
    }
    if draw.chance(0.1) {
        plan.duplication = draw.log(0.001, 0.05);
    }
    if draw.chance(0.1) {
        plan.jitter = draw.span(0.001, 0.2);
    }
    if draw.chance(0.1) {
        plan.corruption = draw.log(0.000_1, 0.01);
    }
    plan.calm = draw.time(scale) + scale;
}

/// Draws the faults of one receiver; `all` is the probability of loss that most have.
fn strike(draw: &mut Draw, shares: &Shares, all: f64, scale: Span, site: &mut Site) {
    let mut loss = || if draw.chance(shares.apart) { draw.log(0.001, 0.3) } else { all };
    site.loss = (loss(), loss());
    if draw.chance(shares.late) {
        site.begins = draw.time(scale);
    }
    if draw.chance(shares.restarted) {
        let begins = draw.time(scale);
        site.restarts.push(Restart { down: begins..begins + draw.span(0.1, 55.0), emptied: false });
    }
    if draw.chance(shares.paused) {
        let begins = draw.time(scale);
        site.pauses.push(begins..begins + draw.span(0.1, 55.0));
    }
    if draw.chance(shares.slow) {
        site.slow = draw.span(0.01, 5.0);
    }
}
