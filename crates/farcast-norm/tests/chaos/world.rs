//! Hosts of a plan, the links between them, and their run.

use core::panic::AssertUnwindSafe;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::panic::catch_unwind;

use farcast_core::{Span, Time};
use farcast_delivery::Geometry;
use farcast_norm::{Receiver, ReceiverConfig, Sender, SenderConfig};
use farcast_testkit::drawn::last_panic;
use farcast_testkit::{Handle, Host, Link, Network, Setup};

use crate::attacker::Attacker;
use crate::parcel::{self, Parcel};
use crate::plan::{Plan, address, group, server};
use crate::stations::{ReceiverStation, SenderStation};
use crate::truth::{Disk, Rule, Shared, Site, Truth};
use crate::verdict;

/// Limit of steps that no session with progress exceeds.
const MOST_STEPS: u64 = 4_000_000;
/// Octets of the largest object that a receiver takes. It makes the bound on its memory testable.
const LARGEST: u64 = 1 << 20;
/// Address of the attacker.
const ATTACKER: ([u8; 4], u16) = ([198, 51, 100, 1], 4000);

/// Result of a session.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) broken: Vec<(Rule, String)>,
    pub(crate) story: Vec<(Time, String)>,
}

/// Hosts of a session.
pub(crate) struct World {
    pub(crate) net: Network<Parcel>,
    pub(crate) truth: Shared,
    pub(crate) senders: Vec<Handle<SenderStation>>,
    /// Hosts of each site, one for each life.
    pub(crate) receivers: Vec<Vec<Handle<ReceiverStation>>>,
}

/// Runs the session of a plan and judges it.
pub(crate) fn run(plan: &Plan, story: bool) -> Shown {
    let truth = Shared::new(RefCell::new(truth_of(plan, story)));
    let seen = truth.clone();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::build(plan, truth);
        world.net.run_until(plan.calm + plan.grace());
        verdict::judge(plan, &world);
    }));
    let mut truth = seen.borrow_mut();
    if ran.is_err() {
        truth.breaks(Time::NEVER, Rule::Panic, last_panic());
    }
    let mut story = truth.story.take().unwrap_or_default();
    story.sort_by_key(|&(at, _)| at);
    Shown { broken: core::mem::take(&mut truth.broken), story }
}

/// Returns the division of the product.
pub(crate) fn geometry(config: &SenderConfig) -> Geometry {
    let (segment, block) = (config.segment_size.into(), config.block_len.into());
    Geometry::partitioned(config.objects[0].size, segment, block).expect("valid")
}

fn truth_of(plan: &Plan, story: bool) -> Truth {
    let disk = Disk::new(geometry(&plan.config));
    let site = |_| Site { disk: disk.clone(), forged: false, acknowledged: false };
    Truth {
        sites: (0..plan.sites.len()).map(site).collect(),
        story: story.then(Vec::new),
        ..Truth::default()
    }
}

impl World {
    fn build(plan: &Plan, truth: Shared) -> Self {
        let mut net = Network::new("chaos", Setup::plain(plan.seed));
        net.forget();
        net.bound(MOST_STEPS * (1 + plan.sites.len() as u64 / 16));
        net.calm(plan.calm);
        net.corrupt_with(parcel::damage);
        net.links(Link::clean(Span::from_millis(5)));
        let mut world = Self { net, truth, senders: Vec::new(), receivers: Vec::new() };
        world.add_senders(plan);
        world.add_receivers(plan);
        if let Some(attack) = &plan.attack {
            let engine = Attacker::new(plan, attack.clone());
            world.net.add(SocketAddr::from(ATTACKER), &Self::groups(), Host::alone(engine));
        }
        world.set_links(plan);
        world
    }

    fn groups() -> [IpAddr; 1] {
        [group().ip()]
    }

    fn add_senders(&mut self, plan: &Plan) {
        for life in 0..=usize::from(plan.crash.is_some()) {
            let mut config = plan.config.clone();
            config.source = server(life);
            config.instance += life as u16;
            let station = SenderStation::new(Sender::new(config).expect("valid"), self.truth.clone());
            let host = self.net.add(server(life), &Self::groups(), Host::alone(station));
            let crash = plan.crash.clone().unwrap_or(Time::ZERO..Time::ZERO);
            let begins = if life == 0 { Time::ZERO } else { crash.end };
            if life > 0 {
                self.net.appear(begins, host);
            } else if plan.crash.is_some() {
                self.net.vanish(crash.start, host);
            }
            self.net.at(begins + Span::from_nanos(1), host, |station: &mut SenderStation, now| {
                station.open(now);
            });
            self.senders.push(host);
        }
    }

    fn add_receivers(&mut self, plan: &Plan) {
        for (n, site) in plan.sites.iter().enumerate() {
            let mut hosts = Vec::new();
            for life in 0..=usize::from(site.off.is_some()) {
                let mut config = ReceiverConfig::new(site.node, group());
                config.unicast = plan.config.unicast;
                config.largest = LARGEST;
                config.seed = plan.seed ^ (n as u64) << 8 ^ life as u64;
                let station =
                    ReceiverStation::new(Receiver::new(config).expect("valid"), n, self.truth.clone());
                let host = self.net.add(address(n, life), &Self::groups(), Host::alone(station));
                let begins = match &site.off {
                    Some(off) if life > 0 => off.end,
                    _ => site.begins,
                };
                if begins > Time::ZERO {
                    self.net.appear(begins, host);
                    self.truth.borrow_mut().tell_of(n, begins, || format!("begins its life {life}"));
                }
                if let Some(off) = site.off.as_ref().filter(|_| life == 0) {
                    self.net.vanish(off.start, host);
                    self.truth.borrow_mut().tell_of(n, off.start, || "is switched off".into());
                }
                hosts.push(host);
            }
            self.receivers.push(hosts);
        }
    }

    fn set_links(&mut self, plan: &Plan) {
        let rough = Link {
            duplication: plan.duplication,
            jitter: plan.jitter,
            corruption: plan.corruption,
            ..Link::default()
        };
        for (site, hosts) in plan.sites.iter().zip(&self.receivers) {
            for &receiver in hosts {
                for &sender in &self.senders {
                    self.net.link(sender, receiver, Link { delay: site.delay, loss: site.loss.0, ..rough });
                    let back = Link { delay: site.delay, loss: site.loss.1, narrow: plan.thin, ..rough };
                    self.net.link(receiver, sender, back);
                }
            }
        }
        if let Some(outage) = &plan.outage {
            for sender in &self.senders {
                self.net.outage(outage.clone(), Some(sender.index()), None);
                self.net.outage(outage.clone(), None, Some(sender.index()));
            }
            self.truth.borrow_mut().tell(outage.start, || format!("outage until {:?}", outage.end));
        }
    }
}
