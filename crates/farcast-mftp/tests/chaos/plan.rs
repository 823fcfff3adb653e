//! Events in the session of a seed. All are drawn from the seed, each kind from a stream of its own, so that switching
//! one off changes no other.

use core::ops::Range;

use farcast_core::{Span, Time};
use farcast_mftp::{ClientId, SenderConfig};
use farcast_testkit::Transmitter;
pub(crate) use farcast_testkit::drawn::Draw;

use crate::crowds;
use crate::kinds::{Forgery, Kind, Kinds};
use crate::settings::{self, Crowd};

/// Honest receiver.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) name: Option<String>,
    pub(crate) id: ClientId,
    /// One-way delay, in either direction.
    pub(crate) delay: Span,
    /// Probability of loss to it and from it.
    pub(crate) loss: (f64, f64),
    /// Time of its first start.
    pub(crate) begins: Time,
    /// Times at which it is killed and started again.
    pub(crate) restarts: Vec<Restart>,
    /// Times at which it stands still.
    pub(crate) pauses: Vec<Range<Time>>,
    /// Time that its disk takes to open and to verify.
    pub(crate) slow: Span,
    /// Interval between its checkpoints.
    pub(crate) checkpoints: Span,
    /// Seed of its ports.
    pub(crate) ports: u64,
    /// Older version of the product, if it has one.
    pub(crate) earlier: Option<Earlier>,
}

/// Result of a comparison with an older version.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    /// Part of the product that the older version has.
    pub(crate) has: Range<f64>,
    /// `true` if that part differs from the product after all.
    pub(crate) lies: bool,
    /// Time that the comparison takes.
    pub(crate) takes: Span,
}

/// Kill and restart of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Restart {
    pub(crate) down: Range<Time>,
    /// `true` if its directory is emptied meanwhile.
    pub(crate) emptied: bool,
}

/// Life of the sender, from its start to its crash or end.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) begins: Time,
    pub(crate) dies: Option<Time>,
    /// `true` if it knows from the life before which receivers were Done.
    pub(crate) remembers: bool,
    pub(crate) pauses: Vec<Range<Time>>,
}

/// Time in which nothing gets through.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) during: Range<Time>,
    /// Affected site; `None` for all.
    pub(crate) site: Option<usize>,
    /// Affected directions: from the sender, to the sender.
    pub(crate) ways: (bool, bool),
}

/// Host off the path that sends forged messages.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) forgeries: Vec<Forgery>,
    pub(crate) during: Range<Time>,
    /// Mean time between messages.
    pub(crate) gap: Span,
    /// Maximum number of messages.
    pub(crate) most: u32,
    /// Probability that a field has the value seen on the group.
    pub(crate) fidelity: f64,
    /// `true` if it guesses the ports of receivers.
    pub(crate) knows_ports: bool,
    pub(crate) delay: Span,
}

/// All events of one session.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) crowd: Crowd,
    /// `true` if both ends prove their messages; without proofs there are no attacks.
    pub(crate) proofs: bool,
    pub(crate) config: SenderConfig,
    pub(crate) sites: Vec<Site>,
    pub(crate) lives: Vec<Life>,
    pub(crate) outages: Vec<Outage>,
    pub(crate) attacks: Vec<Attack>,
    /// Return that all receivers share; if absent, it carries everything.
    pub(crate) thin: Option<Transmitter>,
    pub(crate) duplication: f64,
    pub(crate) jitter: Span,
    pub(crate) corruption: f64,
    /// Time after which nothing goes wrong any more. A thin return stays thin.
    pub(crate) calm: Time,
    /// Kinds of events that are switched on.
    pub(crate) kinds: Kinds,
}

/// Purposes of the draws.
mod purpose {
    pub(super) const SETTINGS: u64 = 1;
    pub(super) const SITE: u64 = 2;
    pub(super) const LOSS: u64 = 3;
    pub(super) const LINK: u64 = 4;
    pub(super) const OUTAGE: u64 = 5;
    pub(super) const PAUSE: u64 = 6;
    pub(super) const RESTART: u64 = 7;
    pub(super) const SENDER: u64 = 8;
    pub(super) const LATE: u64 = 9;
    pub(super) const ATTACK: u64 = 10;
    pub(super) const MOOD: u64 = 11;
    pub(super) const EARLIER: u64 = 12;
}

impl Plan {
    /// Draws the session of `seed`, with only `kinds` of faults.
    pub(crate) fn draw(seed: u64, kinds: Kinds) -> Self {
        let mut draw = Draw::new(seed, &[purpose::SETTINGS]);
        let mut sites = sites(seed);
        let (mut config, crowd) = settings::draw(&mut draw, &sites);
        let mut thin = crowds::thin_return(seed, sites.len(), &mut config, crowd);
        if !kinds.has(Kind::ThinReturn) {
            thin = None;
        }
        // Approximate duration without faults.
        let longest = sites.iter().map(|site| site.delay).max().unwrap_or(Span::ZERO);
        let back = crowds::time_back(sites.len(), thin.as_ref());
        let scale = settings::duration(&config) + longest * 8 + Span::from_secs(3) + back;
        let mut plan = Self { thin, ..Self::quiet(seed, config, crowd, kinds) };
        let mut mood = Draw::new(seed, &[purpose::MOOD]);
        // One session in twenty has no faults; half are attacked.
        let (peace, attacked) = (mood.chance(0.05), mood.chance(0.5));
        if !peace {
            loss(seed, &mut sites, scale, &mut plan);
            links(seed, &mut plan);
            outages(seed, &sites, scale, &mut plan);
            pauses(seed, &mut sites, scale);
            restarts(seed, &mut sites, scale, &mut plan);
            late(seed, &mut sites, scale);
        }
        plan.proofs = attacked || mood.chance(0.85);
        if attacked {
            attacks(seed, scale, &mut plan);
        }
        earlier(seed, &mut sites, &mut plan);
        plan.sites = sites;
        plan.settle();
        plan
    }

    /// Creates a plan without receivers and faults.
    pub(crate) fn quiet(seed: u64, config: SenderConfig, crowd: Crowd, kinds: Kinds) -> Self {
        Self {
            seed,
            crowd,
            proofs: true,
            config,
            sites: Vec::new(),
            lives: vec![Life { begins: Time::ZERO, dies: None, remembers: false, pauses: Vec::new() }],
            outages: Vec::new(),
            attacks: Vec::new(),
            thin: None,
            duplication: 0.0,
            jitter: Span::ZERO,
            corruption: 0.0,
            calm: Time::ZERO,
            kinds,
        }
    }

    /// Removes the events that are switched off, and finds the end of all faults.
    pub(crate) fn settle(&mut self) {
        self.drop_what_is_off();
        self.calm = self.calm.max(self.last_fault());
    }

    /// Removes the events that are switched off.
    fn drop_what_is_off(&mut self) {
        let kinds = self.kinds;
        for site in &mut self.sites {
            if !kinds.has(Kind::Loss) {
                site.loss = (0.0, 0.0);
            }
            if !kinds.has(Kind::Pause) {
                site.pauses.clear();
            }
            if !kinds.has(Kind::Restart) {
                site.restarts.retain(|restart| restart.emptied);
            }
            // A receiver that is emptied after the last sender has gone was complete before.
            if !kinds.has(Kind::Emptied) || !kinds.has(Kind::SenderRestart) {
                site.restarts.retain(|restart| !restart.emptied);
            }
            if !kinds.has(Kind::Late) {
                site.begins = Time::ZERO;
            }
            if !kinds.has(Kind::SlowDisk) {
                site.slow = Span::ZERO;
            }
        }
        for site in &mut self.sites {
            // Lives must not overlap.
            site.restarts.sort_by_key(|restart| restart.down.start);
            let mut up = site.begins;
            site.restarts.retain(|restart| {
                let follows = restart.down.start > up;
                up = if follows { restart.down.end } else { up };
                follows
            });
        }
        if !kinds.has(Kind::SenderRestart) {
            self.lives.truncate(1);
            self.lives[0].dies = None;
        }
        for life in &mut self.lives {
            life.remembers &= kinds.has(Kind::Remembered);
            if !kinds.has(Kind::SenderPause) {
                life.pauses.clear();
            }
        }
        if !kinds.has(Kind::Outage) {
            self.outages.clear();
        }
        for (kind, value) in
            [(Kind::Duplication, &mut self.duplication), (Kind::Corruption, &mut self.corruption)]
        {
            if !kinds.has(kind) {
                *value = 0.0;
            }
        }
        if !kinds.has(Kind::Jitter) {
            self.jitter = Span::ZERO;
        }
        for attack in &mut self.attacks {
            attack.forgeries.retain(|&forgery| kinds.has(Kind::Forged(forgery)));
        }
    }

    /// Returns the time at which the last fault is over.
    fn last_fault(&self) -> Time {
        let sites = self.sites.iter().flat_map(|site| {
            let restarts = site.restarts.iter().map(|restart| restart.down.end);
            restarts.chain(site.pauses.iter().map(|pause| pause.end)).chain([site.begins])
        });
        let lives =
            self.lives.iter().flat_map(|life| life.pauses.iter().map(|pause| pause.end).chain([life.begins]));
        let outages = self.outages.iter().map(|outage| outage.during.end);
        let attacks = self.attacks.iter().filter(|a| !a.forgeries.is_empty()).map(|attack| attack.during.end);
        sites.chain(lives).chain(outages).chain(attacks).max().unwrap_or(Time::ZERO)
    }
}

fn sites(seed: u64) -> Vec<Site> {
    let mut draw = Draw::new(seed, &[purpose::SITE]);
    let few = if draw.chance(0.25) { 1 } else { 1 + draw.below(8) as usize };
    let count = crowds::larger(seed).unwrap_or(few);
    // Half of the sessions have all receivers behind one satellite, the others have a delay for each.
    let shared = draw.chance(0.5).then(|| draw.span(0.001, 0.6));
    let sites = (0..count).map(|n| {
        let mut draw = Draw::new(seed, &[purpose::SITE, n as u64]);
        let delay = draw.span(0.001, 0.6);
        let name = draw.chance(0.75).then(|| format!("site-{n}"));
        let id = name.as_ref().map_or_else(
            || ClientId::from_address(crate::stations::site_ip(n).into()),
            |name| ClientId::from_name(name),
        );
        let slow = if draw.chance(0.25) { draw.span(0.01, 5.0) } else { Span::ZERO };
        Site {
            name,
            id,
            delay: shared.unwrap_or(delay),
            loss: (0.0, 0.0),
            begins: Time::ZERO,
            restarts: Vec::new(),
            pauses: Vec::new(),
            slow,
            checkpoints: draw.span(0.05, 3.0),
            ports: draw.below(20_000),
            earlier: None,
        }
    });
    sites.collect()
}

fn earlier(seed: u64, sites: &mut [Site], plan: &mut Plan) {
    let mut draw = Draw::new(seed, &[purpose::EARLIER]);
    if draw.chance(0.2) {
        plan.config.early_data = draw.span(0.1, 5.0);
    }
    if !draw.chance(0.3) {
        return;
    }
    let most = if draw.chance(0.7) { 1.0 } else { 0.6 };
    plan.config.list_segments = 1 + draw.below(4) as u32;
    for site in sites.iter_mut() {
        let (from, to) = (draw.0.unit(), draw.0.unit());
        let has = if draw.chance(0.3) { 0.0..1.0 } else { from.min(to)..from.max(to) };
        let takes = if draw.chance(0.3) { draw.span(0.01, 20.0) } else { Span::ZERO };
        let found = Earlier { has, lies: draw.chance(0.1), takes };
        site.earlier = draw.chance(most).then_some(found);
    }
}

fn loss(seed: u64, sites: &mut [Site], scale: Span, plan: &mut Plan) {
    let mut draw = Draw::new(seed, &[purpose::LOSS]);
    if !draw.chance(0.6) {
        return;
    }
    let all = draw.log(0.001, 0.3);
    for (n, site) in sites.iter_mut().enumerate() {
        let mut draw = Draw::new(seed, &[purpose::LOSS, n as u64]);
        let mut one = || if draw.chance(0.3) { draw.log(0.001, 0.3) } else { all };
        site.loss = (one(), one());
    }
    plan.calm = plan.calm.max(draw.time(scale * 2) + scale);
}

fn links(seed: u64, plan: &mut Plan) {
    let mut draw = Draw::new(seed, &[purpose::LINK]);
    if draw.chance(0.2) {
        plan.duplication = draw.log(0.001, 0.2);
    }
    if draw.chance(0.15) {
        plan.jitter = draw.span(0.001, 0.5);
    }
    if draw.chance(0.12) {
        plan.corruption = draw.log(0.000_1, 0.02);
    }
    if plan.duplication > 0.0 || plan.corruption > 0.0 || !plan.jitter.is_zero() {
        plan.calm = plan.calm.max(draw.time(Span::from_secs(40)) + Span::from_secs(5));
    }
}

fn outages(seed: u64, sites: &[Site], scale: Span, plan: &mut Plan) {
    let mut draw = Draw::new(seed, &[purpose::OUTAGE]);
    if !draw.chance(0.4) {
        return;
    }
    for _ in 0..=draw.below(3) {
        let begins = draw.time(scale + scale / 2);
        let length = match draw.below(10) {
            0..=3 => draw.span(0.1, 3.0),
            4..=8 => draw.span(1.0, 58.0),
            _ => draw.span(65.0, 120.0),
        };
        let site = draw.chance(0.7).then(|| draw.below(sites.len() as u64) as usize);
        let ways = draw.pick(&[(true, true), (true, true), (true, false), (false, true)]);
        plan.outages.push(Outage { during: begins..begins + length, site, ways });
    }
}

fn pauses(seed: u64, sites: &mut [Site], scale: Span) {
    let mut draw = Draw::new(seed, &[purpose::PAUSE]);
    if !draw.chance(0.2) {
        return;
    }
    for _ in 0..=draw.below(2) {
        let site = draw.below(sites.len() as u64) as usize;
        let begins = draw.time(scale + scale / 4);
        let length = draw.span(0.1, 58.0);
        sites[site].pauses.push(begins..begins + length);
    }
}

fn restarts(seed: u64, sites: &mut [Site], scale: Span, plan: &mut Plan) {
    let mut draw = Draw::new(seed, &[purpose::SENDER]);
    if draw.chance(0.1) {
        let begins = draw.time(scale);
        plan.lives[0].pauses.push(begins..begins + draw.span(0.1, 55.0));
    }
    // The second life begins as the first is killed, or after the first has ended by itself.
    if draw.chance(0.15) {
        let dies = if draw.chance(0.2) { draw.time(scale) + scale * 2 } else { draw.time(scale) };
        let begins = dies + draw.span(0.5, 30.0);
        plan.lives[0].dies = Some(dies);
        let remembers = draw.chance(0.6);
        plan.lives.push(Life { begins, dies: None, remembers, pauses: Vec::new() });
        if draw.chance(0.5) {
            // A directory is emptied between the two lives.
            let site = draw.below(sites.len() as u64) as usize;
            let down = dies..dies + Span::from_secs_f64(begins.since(dies).as_secs_f64() * draw.0.unit());
            sites[site].restarts.push(Restart { down, emptied: true });
        }
    }
    let mut draw = Draw::new(seed, &[purpose::RESTART]);
    if draw.chance(0.2) {
        for _ in 0..=draw.below(2) {
            let site = draw.below(sites.len() as u64) as usize;
            let begins = draw.time(scale);
            sites[site]
                .restarts
                .push(Restart { down: begins..begins + draw.span(0.05, 55.0), emptied: false });
        }
    }
}

fn late(seed: u64, sites: &mut [Site], scale: Span) {
    let mut draw = Draw::new(seed, &[purpose::LATE]);
    if draw.chance(0.2) {
        let site = draw.below(sites.len() as u64) as usize;
        sites[site].begins = draw.time(scale + Span::from_secs(5));
    }
}

fn attacks(seed: u64, scale: Span, plan: &mut Plan) {
    let mut draw = Draw::new(seed, &[purpose::ATTACK]);
    // Attackers may begin before the sender.
    plan.lives[0].begins = draw.time(Span::from_secs(3));
    for n in 0..=draw.below(3) {
        let mut draw = Draw::new(seed, &[purpose::ATTACK, n]);
        let forgeries = (0..=draw.below(3)).map(|_| draw.pick(&Forgery::ALL)).collect();
        let begins = draw.time(scale + scale / 4);
        let length = draw.span(0.2, 60.0);
        plan.attacks.push(Attack {
            forgeries,
            during: begins..begins + length,
            gap: draw.span(0.005, 3.0),
            most: draw.log(1.0, 250.0) as u32,
            fidelity: draw.pick(&[0.95, 0.85, 0.6]),
            knows_ports: draw.chance(0.4),
            delay: draw.span(0.001, 0.3),
        });
    }
}
