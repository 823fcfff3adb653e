//! Hosts of a plan, the links between them, and their run.

use core::panic::AssertUnwindSafe;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::panic::catch_unwind;
use std::rc::Rc;

use farcast_core::{Span, Time};
use farcast_delivery::Geometry;
use farcast_mftp::{Receiver, ReceiverConfig, Secret, Sender};
use farcast_testkit::drawn::last_panic;
use farcast_testkit::{Cut, Handle, Host, Link, Network, Setup};

use crate::attacker::Attacker;
use crate::crowds;
use crate::grammar::{self, Known, Seen};
use crate::parcel::{self, Forged, Parcel};
use crate::plan::{self, Plan};
use crate::settings::{self, group, of_life, response_group, server};
use crate::stations::{ReceiverStation, SenderStation, answers_from, size};
use crate::truth::{Broken, Disk, Rule, Shared, Site, Truth, Verdict};
use crate::verdict;

/// Time after the last fault within which everything must be finished.
const GRACE: Span = Span::from_secs(1200);
/// Limit of steps that no session with progress exceeds.
const MOST_STEPS: u64 = 4_000_000;
/// Limit of segments at a receiver. It makes the bound on the memory for an offer without content testable.
const MOST_SEGMENTS: u32 = 1 << 16;
/// Segments that the socket of a receiver that stands still can hold.
const SOCKET_ROOM: u32 = 150;

/// Result of a session.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) broken: Vec<Broken>,
    /// Story of the session, if requested.
    pub(crate) story: Vec<(Time, String)>,
    /// Outcome of the sender's last life.
    pub(crate) end: String,
}

/// Options of a run.
#[derive(Clone, Default)]
pub(crate) struct Look {
    pub(crate) story: bool,
    /// Labels of receivers that the story must tell of, where it does not tell of all.
    pub(crate) of: BTreeSet<String>,
    /// Forged messages that are sent, if limited.
    pub(crate) only: Option<Rc<BTreeSet<Forged>>>,
}

/// Hosts of a session.
pub(crate) struct World {
    pub(crate) net: Network<Parcel>,
    pub(crate) truth: Shared,
    pub(crate) senders: Vec<Handle<SenderStation>>,
    /// Hosts of each site, one for each life.
    pub(crate) receivers: Vec<Vec<Handle<ReceiverStation>>>,
    pub(crate) attackers: Vec<Handle<Attacker>>,
}

/// Runs the session of a plan and judges it.
pub(crate) fn run(plan: &Plan, look: &Look) -> Shown {
    let truth = Shared::new(RefCell::new(truth_of(plan, look)));
    let seen = truth.clone();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::build(plan, look, truth);
        world.net.run_until(plan.calm + GRACE + crowds::time_back(plan.sites.len(), plan.thin.as_ref()) * 4);
        verdict::judge(plan, &world);
    }));
    let mut truth = seen.borrow_mut();
    if ran.is_err() {
        truth.breaks(Time::NEVER, Rule::Panic, last_panic());
    }
    let mut story = truth.story.take().unwrap_or_default();
    story.sort_by_key(|&(at, _)| at);
    let end = truth.lives.last().map(|life| format!("{:?}, {:?}", life.outcome, life.ended));
    Shown { broken: core::mem::take(&mut truth.broken), story, end: end.unwrap_or_default() }
}

fn truth_of(plan: &Plan, look: &Look) -> Truth {
    let config = &plan.config;
    let geometry = Geometry::new(config.product.size, config.dtu_size, config.block_size).expect("valid");
    let sites = plan.sites.iter().enumerate().map(|(n, site)| Site {
        label: site.name.clone().unwrap_or_else(|| site.id.to_string()),
        id: site.id,
        addresses: (0..=site.restarts.len()).map(|life| answers_from(n, life, site.ports)).collect(),
        disk: Disk::new(geometry, site.checkpoints),
    });
    Truth {
        numbers: plan.sites.iter().enumerate().map(|(n, site)| (site.id, n)).collect(),
        sites: sites.collect(),
        lives: plan.lives.iter().map(|_| crate::truth::Life::default()).collect(),
        broken: Vec::new(),
        story: look.story.then(Vec::new),
        told: told(plan, look),
    }
}

/// Returns the sites of which a story tells: all, or some of a large group.
fn told(plan: &Plan, look: &Look) -> BTreeSet<usize> {
    let all = plan.sites.len() <= 2 * crowds::TOLD;
    let named = |n: &usize| *n < crowds::TOLD || look.of.contains(&label(plan, *n));
    (0..plan.sites.len()).filter(|n| all || named(n)).collect()
}

impl World {
    fn build(plan: &Plan, look: &Look, truth: Shared) -> Self {
        let cut = if plan.seed.is_multiple_of(8) { Cut::Random(plan.seed) } else { Cut::Whole };
        let mut net = Network::new("chaos", Setup { cut, ..Setup::plain(plan.seed) });
        net.forget();
        net.bound(MOST_STEPS * (1 + plan.sites.len() as u64 / 16));
        net.calm(plan.calm);
        net.corrupt_with(parcel::damage);
        net.links(Link::clean(Span::from_millis(5)));
        let (senders, receivers, attackers) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = Self { net, truth, senders, receivers, attackers };
        world.add_senders(plan);
        world.add_receivers(plan);
        world.add_attackers(plan, look);
        world.set_links(plan);
        world.set_outages(plan);
        world.watch_memory(plan);
        world
    }

    fn groups() -> [IpAddr; 2] {
        [group().ip(), response_group().ip()]
    }

    fn add_senders(&mut self, plan: &Plan) {
        for (n, life) in plan.lives.iter().enumerate() {
            let engine = Sender::new(of_life(plan, n)).expect("valid");
            let station = SenderStation::new(engine, n, self.truth.clone());
            let host = self.net.add(server(n), &Self::groups(), Host::alone(station));
            if n > 0 {
                self.net.appear(life.begins, host);
            }
            let (truth, remembers) = (self.truth.clone(), life.remembers);
            self.net.at(life.begins + Span::from_nanos(1), host, move |station: &mut SenderStation, now| {
                if remembers {
                    for (&client, verdict) in &truth.borrow().lives[n - 1].verdicts {
                        if *verdict == Verdict::Done {
                            station.engine.remember(client);
                        }
                    }
                }
                truth.borrow_mut().tell(now, || format!("sender begins its life {n}"));
                station.open(now);
            });
            for pause in &life.pauses {
                self.net.freeze(pause.start, host, pause.end.since(pause.start), SOCKET_ROOM);
                self.note(pause.start, format!("sender stands still until {:?}", pause.end));
            }
            if let Some(dies) = life.dies {
                self.net.vanish(dies, host);
                self.note(dies, format!("sender's life {n} ends"));
            }
            self.senders.push(host);
        }
    }

    fn note(&self, at: Time, text: String) {
        self.truth.borrow_mut().tell(at, || text);
    }

    fn note_of(&self, site: usize, at: Time, text: String) {
        self.truth.borrow_mut().tell_of(site, at, || text);
    }

    fn add_receivers(&mut self, plan: &Plan) {
        for (n, site) in plan.sites.iter().enumerate() {
            let mut hosts: Vec<Handle<ReceiverStation>> = Vec::new();
            for life in 0..=site.restarts.len() {
                let mut config = ReceiverConfig::new(site.id, group().port());
                if let Some(name) = &site.name {
                    config = config.named(name);
                }
                config.max_segments = MOST_SEGMENTS;
                config.secret = plan.proofs.then(|| identity(plan, n, life));
                config.seed = plan.seed ^ (n as u64) << 8 ^ life as u64;
                let engine = Receiver::new(config).expect("valid");
                let earlier = site.earlier.clone().map(|earlier| (earlier, plan.config.list_segments));
                let station = ReceiverStation::new(engine, n, site.slow, earlier, self.truth.clone());
                let address = answers_from(n, life, site.ports);
                let host = self.net.add(address, &Self::groups(), Host::alone(station));
                let begins = match life.checked_sub(1) {
                    Some(before) => {
                        self.restart(plan, n, before, hosts[before]);
                        site.restarts[before].down.end
                    }
                    None => site.begins,
                };
                if begins > Time::ZERO {
                    self.net.appear(begins, host);
                    self.note_of(n, begins, format!("begins its life {life} at {address}"));
                }
                hosts.push(host);
            }
            for pause in &site.pauses {
                let life = site.restarts.iter().take_while(|r| r.down.end <= pause.start).count();
                self.net.freeze(pause.start, hosts[life], pause.end.since(pause.start), SOCKET_ROOM);
                self.note_of(n, pause.start, format!("stands still until {:?}", pause.end));
            }
            self.receivers.push(hosts);
        }
    }

    /// Kills the host of a life that is followed by another.
    fn restart(&mut self, plan: &Plan, site: usize, life: usize, host: Handle<ReceiverStation>) {
        let restart = &plan.sites[site].restarts[life];
        let (truth, emptied) = (self.truth.clone(), restart.emptied);
        self.net.at(restart.down.start, host, move |_: &mut ReceiverStation, _| {
            let disk = &mut truth.borrow_mut().sites[site].disk;
            if emptied {
                disk.empty();
            } else {
                disk.crash();
            }
        });
        self.net.vanish(restart.down.start, host);
        let how = if emptied { "is killed, and its directory emptied" } else { "is killed" };
        self.note_of(site, restart.down.start, how.into());
    }

    fn add_attackers(&mut self, plan: &Plan, look: &Look) {
        let known = self.truth.borrow().sites.iter().enumerate().map(known).collect();
        let seen = Seen { known, transmission: 1, ..Seen::default() };
        for (n, attack) in plan.attacks.iter().enumerate() {
            let engine = Attacker::new(plan.seed, n as u32, attack.clone(), seen.clone(), look.only.clone());
            let address = grammar::attacker(n);
            self.attackers.push(self.net.add(address, &Self::groups(), Host::alone(engine)));
        }
    }

    fn set_links(&mut self, plan: &Plan) {
        let rough = Link {
            duplication: plan.duplication,
            jitter: plan.jitter,
            corruption: plan.corruption,
            ..Link::default()
        };
        for (n, site) in plan.sites.iter().enumerate() {
            for &receiver in &self.receivers[n] {
                for &sender in &self.senders {
                    self.net.link(sender, receiver, Link { delay: site.delay, loss: site.loss.0, ..rough });
                    let back = Link { delay: site.delay, loss: site.loss.1, narrow: plan.thin, ..rough };
                    self.net.link(receiver, sender, back);
                }
                for (attack, &attacker) in plan.attacks.iter().zip(&self.attackers) {
                    self.net.link(attacker, receiver, Link::clean(attack.delay));
                }
            }
        }
        for (attack, &attacker) in plan.attacks.iter().zip(&self.attackers) {
            for &sender in &self.senders {
                self.net.link(attacker, sender, Link::clean(attack.delay));
            }
        }
    }

    fn set_outages(&mut self, plan: &Plan) {
        for outage in &plan.outages {
            let sites = match outage.site {
                Some(site) => site..site + 1,
                None => 0..plan.sites.len(),
            };
            let everybody = outage.site.is_none() && plan.attacks.is_empty();
            let hosts = sites.flat_map(|site| self.receivers[site].iter()).map(|host| Some(host.index()));
            let hosts: Vec<_> = if everybody { vec![None] } else { hosts.collect() };
            for r in hosts {
                for sender in &self.senders {
                    let s = Some(sender.index());
                    if outage.ways.0 {
                        self.net.outage(outage.during.clone(), s, r);
                    }
                    if outage.ways.1 {
                        self.net.outage(outage.during.clone(), r, s);
                    }
                }
            }
            let who = outage.site.map_or("everybody".into(), |site| label(plan, site));
            let way = match outage.ways {
                (true, true) => "both ways",
                (true, false) => "from the sender",
                _ => "to the sender",
            };
            self.note(outage.during.start, format!("outage of {who}, {way}, until {:?}", outage.during.end));
        }
    }

    /// Checks the memory of the engines at intervals.
    fn watch_memory(&mut self, plan: &Plan) {
        let geometry = self.truth.borrow().sites[0].disk.geometry;
        let (blocks, segments) = (geometry.blocks() as usize, geometry.segments() as usize);
        let receiver = 12_000 + blocks * 900 + segments * 4 + MOST_SEGMENTS as usize / 2;
        let members = match &plan.config.group {
            farcast_mftp::Group::Closed(invited) => invited.len(),
            farcast_mftp::Group::OpenLimited { limit } => *limit as usize,
            farcast_mftp::Group::OpenUnlimited => 0,
        };
        let sender = 20_000 + members * 3000 + blocks * 2000 + segments * 24;
        for part in 1..=3 {
            let at = Time::ZERO + Span::from_nanos(plan.calm.as_nanos() / 3 * part);
            for &host in &self.senders {
                let truth = self.truth.clone();
                self.net.at(at, host, move |station: &mut SenderStation, now| {
                    expect_small(&truth, now, "the sender", size(&station.engine), sender);
                });
            }
            // The memory of a few is that of all.
            for &host in self.receivers.iter().step_by(1 + self.receivers.len() / crowds::MOST).flatten() {
                let truth = self.truth.clone();
                self.net.at(at, host, move |station: &mut ReceiverStation, now| {
                    expect_small(&truth, now, "a receiver", size(&station.engine), receiver);
                });
            }
        }
    }
}

fn expect_small(truth: &Shared, now: Time, who: &str, size: usize, bound: usize) {
    if size > bound {
        let what = format!("{who} holds more than {bound} octets of text");
        truth.borrow_mut().breaks(now, Rule::Memory, what);
    }
}

/// Returns the secret of a receiver's nonces. It is stored beside the product, and may be lost with it.
fn identity(plan: &Plan, site: usize, life: usize) -> Secret {
    let restarts = &plan.sites[site].restarts[..life];
    let forgets = plan.sites[site].ports.is_multiple_of(2);
    let fresh = restarts.iter().filter(|restart| restart.emptied && forgets).count();
    settings::secret(plan.seed, 1 + site as u64, fresh as u64)
}

fn known((_, site): (usize, &Site)) -> Known {
    let name = Some(site.label.clone()).filter(|label| label.starts_with("site"));
    Known { id: site.id, name, addresses: site.addresses.clone() }
}

/// Returns the name of a site.
pub(crate) fn label(plan: &Plan, site: usize) -> String {
    label_of(&plan.sites[site])
}

/// Returns the name of a site.
pub(crate) fn label_of(site: &plan::Site) -> String {
    site.name.clone().unwrap_or_else(|| site.id.to_string())
}

/// Returns the time at which a sender stops waiting for all receivers.
pub(crate) fn announce_end(plan: &Plan) -> Time {
    let last = plan.lives.last().map_or(Time::ZERO, |life| life.begins);
    settings::announce_end(&plan.config, last)
}
