//! Events in the session of a seed.

use core::ops::Range;
use std::net::SocketAddr;

use farcast_core::{BitRate, Span, Time};
use farcast_delivery::Vouched;
use farcast_norm::quantise::GroupSize;
use farcast_norm::{NodeId, Pacing, SenderConfig};
use farcast_testkit::Transmitter;
use farcast_testkit::drawn::Draw;

use crate::attacker::Forgery;

/// Digest of the genuine product.
pub(crate) const PRODUCT: [u8; 32] = [7; 32];
/// Node id of the sender.
pub(crate) const SENDER: NodeId = NodeId(1);
/// Number of repairs that the sender may send for each segment, and besides.
pub(crate) const REPAIRS: (u64, u64) = (64, 1024);
/// Time after the last fault within which an honest session must be finished.
const GRACE: Span = Span::from_secs(1200);
/// Time of a round of repairs.
const ROUND: Span = Span::from_secs(15);
/// Most receivers of a session.
const MOST: f64 = 200.0;
/// Least rate under congestion control in bit/s, below which a session of many receivers takes hours.
const LEAST: u64 = 8_000;
/// Octets that a receiver sends in a session with few losses, with headers.
const OCTETS_BACK: u64 = 400;

/// Honest receiver.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) node: NodeId,
    /// `true` if the sender waits for its acknowledgement.
    pub(crate) named: bool,
    pub(crate) delay: Span,
    /// Probability of loss to it and from it.
    pub(crate) loss: (f64, f64),
    /// Time of its first start.
    pub(crate) begins: Time,
    /// Time in which it is switched off.
    pub(crate) off: Option<Range<Time>>,
}

/// Host off the path that sends forged messages.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) forgeries: Vec<Forgery>,
    pub(crate) during: Range<Time>,
    /// Mean time between messages.
    pub(crate) gap: Span,
    pub(crate) most: u32,
}

/// All events of one session.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) config: SenderConfig,
    pub(crate) sites: Vec<Site>,
    /// Time between the sender's crash and its next start.
    pub(crate) crash: Option<Range<Time>>,
    /// Time in which nothing gets through.
    pub(crate) outage: Option<Range<Time>>,
    pub(crate) attack: Option<Attack>,
    /// Return that all receivers share.
    pub(crate) thin: Option<Transmitter>,
    pub(crate) duplication: f64,
    pub(crate) jitter: Span,
    pub(crate) corruption: f64,
    /// Time after which nothing goes wrong any more. A thin return stays thin.
    pub(crate) calm: Time,
}

pub(crate) fn group() -> SocketAddr {
    SocketAddr::from(([239, 255, 57, 40], 6003))
}

/// Returns the address of the sender in life `life`.
pub(crate) fn server(life: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000 + life as u16))
}

/// Returns the address of a receiver in life `life`.
pub(crate) fn address(site: usize, life: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (site >> 8) as u8, site as u8], 30_000 + life as u16))
}

impl Plan {
    /// Draws the session of `seed`.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed, &[1]);
        let count = if draw.chance(0.03) { draw.log(9.0, MOST + 1.0) } else { draw.log(1.0, 9.0) } as usize;
        let named = draw.pick(&[0.0, 1.0, 1.0, 0.7]);
        let shared = draw.chance(0.5).then(|| draw.span(0.001, 0.6));
        let sites: Vec<Site> = (0..count)
            .map(|n| Site {
                node: NodeId(n as u32 + 2),
                named: draw.chance(named),
                delay: shared.unwrap_or_else(|| draw.span(0.001, 0.6)),
                loss: (0.0, 0.0),
                begins: Time::ZERO,
                off: None,
            })
            .collect();
        let config = config(&mut draw, &sites);
        let mut plan = Self {
            seed,
            config,
            sites,
            crash: None,
            outage: None,
            attack: None,
            thin: None,
            duplication: 0.0,
            jitter: Span::ZERO,
            corruption: 0.0,
            calm: Time::ZERO,
        };
        plan.thin_return(&mut Draw::new(seed, &[2]));
        let data = plan.config.pace.rate.time_of_bytes(plan.size() + plan.size() / 4);
        let back = plan.thin.map_or(Span::ZERO, |thin| thin.rate.time_of_bytes(count as u64 * OCTETS_BACK));
        let scale = data + back + Span::from_secs(8);
        let mut draw = Draw::new(seed, &[3]);
        if draw.chance(0.95) {
            plan.faults(&mut draw, scale);
        }
        if draw.chance(0.4) {
            plan.attack(&mut Draw::new(seed, &[4]), scale);
        }
        plan
    }

    /// Returns the octets of the product.
    pub(crate) fn size(&self) -> u64 {
        self.config.objects[0].size
    }

    fn thin_return(&mut self, draw: &mut Draw) {
        if !draw.chance(0.2) {
            return;
        }
        let bps = (draw.log(2_000.0, 64_000.0) as u64).max(self.sites.len() as u64 * 40);
        let rate = BitRate::from_bps(bps).expect("positive");
        let queue = rate.time_of_bytes(draw.log(1_000.0, 16_000.0) as u64).min(Span::from_secs(8));
        self.thin = Some(Transmitter { rate, overhead: 28, queue, shared: true });
        self.config.return_rate = draw.chance(0.5).then_some(rate);
    }

    fn faults(&mut self, draw: &mut Draw, scale: Span) {
        let lossy = draw.chance(0.6);
        let all = draw.log(0.001, 0.3);
        let (late, off) = (draw.chance(0.2), draw.chance(0.25));
        let part = draw.log(1.0 / MOST, 1.0);
        for site in &mut self.sites {
            let mut loss = || if draw.chance(0.2) { draw.log(0.001, 0.3) } else { all };
            if lossy {
                site.loss = (loss(), loss());
            }
            if late && draw.chance(part) {
                site.begins = draw.time(scale);
            }
            if off && draw.chance(part) {
                let begins = site.begins + draw.time(scale).since(Time::ZERO) + Span::from_millis(1);
                site.off = Some(begins..begins + draw.span(0.05, 55.0));
            }
        }
        if draw.chance(0.25) {
            let begins = draw.time(scale);
            self.outage = Some(begins..begins + draw.span(0.1, 30.0));
        }
        if draw.chance(0.15) {
            let dies = draw.time(scale) + Span::from_millis(1);
            self.crash = Some(dies..dies + draw.span(0.5, 30.0));
        }
        if draw.chance(0.2) {
            self.duplication = draw.log(0.001, 0.2);
        }
        if draw.chance(0.15) {
            self.jitter = draw.span(0.001, 0.5);
        }
        if draw.chance(0.15) {
            self.corruption = draw.log(0.000_1, 0.02);
        }
        let ends =
            self.sites.iter().filter_map(|site| site.off.as_ref()).chain(&self.outage).chain(&self.crash);
        let last = ends.map(|during| during.end).chain(self.sites.iter().map(|site| site.begins)).max();
        self.calm = (draw.time(scale) + scale).max(last.unwrap_or(Time::ZERO));
    }

    fn attack(&mut self, draw: &mut Draw, scale: Span) {
        let forgeries = (0..=draw.below(3)).map(|_| draw.pick(&Forgery::ALL)).collect();
        let begins = draw.time(scale);
        let during = begins..begins + draw.span(0.2, 30.0);
        self.calm = self.calm.max(during.end);
        let (gap, most) = (draw.span(0.005, 1.0), draw.log(1.0, 250.0) as u32);
        self.attack = Some(Attack { forgeries, during, gap, most });
    }

    /// Returns the time after the last fault within which everything must be finished. It has room for all repairs that
    /// attackers can bring about.
    pub(crate) fn grace(&self) -> Span {
        let rate = match self.config.pacing {
            Pacing::Fixed => self.config.pace.rate,
            Pacing::NormCc { least } => least,
        };
        let segments = self.size().div_ceil(self.config.segment_size.into());
        let symbols = REPAIRS.0 * segments + REPAIRS.1;
        let repairs = rate.time_of_bytes(symbols * (u64::from(self.config.segment_size) + 70));
        // A receiver with a forged size asks for a little in each round.
        let rounds = ROUND * (symbols / segments);
        GRACE + if self.is_deceived() { repairs * 2 + rounds } else { Span::ZERO }
    }

    /// Returns `true` if a host may hear what nobody honest has sent.
    pub(crate) fn is_deceived(&self) -> bool {
        self.attack.is_some() || self.corruption > 0.0
    }
}

fn config(draw: &mut Draw, sites: &[Site]) -> SenderConfig {
    let (segment, segments) = (draw.log(64.0, 1400.0) as u16 & !3, draw.log(1.0, 300.0) as u64);
    let size = segments * u64::from(segment) - draw.below(segment.into());
    let bits = segments * (u64::from(segment) + 60) * 8;
    let bps = (bits as f64 / draw.log(0.1, 20.0)) as u64;
    let rate = BitRate::from_bps(bps.clamp(16_000, 50_000_000)).expect("positive");
    let mut config = SenderConfig::new(SENDER, size, server(0), group(), rate);
    config.objects[0].info = b"product".to_vec();
    config.objects[0].vouched = Some(Vouched { digest: PRODUCT, mode: 0o644, mtime_ns: 1 });
    config.segment_size = segment;
    config.block_len = draw.pick(&[8, 16, 64, 150]);
    config.parity = draw.pick(&[0, 4, 16, 32]);
    config.auto_parity = if draw.chance(0.3) { config.parity / 4 } else { 0 };
    config.unicast = draw.chance(0.5);
    config.backoff = if config.unicast { 6 } else { 4 };
    config.receivers = GroupSize::of(sites.len() as u64);
    config.ackers = sites.iter().filter(|site| site.named).map(|site| site.node).collect();
    config.watermarks = draw.chance(0.2);
    if draw.chance(0.15) {
        let least = BitRate::from_bps((rate.as_bps() / 32).max(LEAST)).expect("positive");
        config.pacing = Pacing::NormCc { least };
    }
    config
}
