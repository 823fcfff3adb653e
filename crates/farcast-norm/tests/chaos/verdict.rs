//! Rules that must hold at the end of a session.

use farcast_norm::SenderOutcome;

use crate::plan::{Plan, REPAIRS};
use crate::stations::size;
use crate::truth::Rule;
use crate::world::{World, geometry};

/// Octets that a receiver may send at once, whatever it has heard, with the message that exceeds them.
const CREDIT: u64 = (64 << 10) + 1500;

/// Records every rule that the session has broken.
pub(crate) fn judge(plan: &Plan, world: &World) {
    success(plan, world);
    delivery(plan, world);
    octets(plan, world);
    memory(plan, world);
    if world.truth.borrow().outcome.is_none() {
        breaks(world, Rule::Rest, "the sender has not ended".into());
    }
}

fn breaks(world: &World, rule: Rule, what: String) {
    world.truth.borrow_mut().breaks(world.net.now(), rule, what);
}

/// Checks that a sender that says that all named receivers have the product is right.
fn success(plan: &Plan, world: &World) {
    if world.truth.borrow().outcome != Some(SenderOutcome::Acknowledged) {
        return;
    }
    for (n, site) in plan.sites.iter().enumerate().filter(|(_, site)| site.named) {
        let truth = world.truth.borrow();
        let lacks = !truth.sites[n].disk.verified && !truth.sites[n].forged;
        drop(truth);
        if lacks {
            breaks(world, Rule::Success, format!("the sender succeeds, and {:?} has not got it", site.node));
        }
    }
}

/// Checks that a named receiver that nothing kept away has the product, and is reported so; without any fault, that every
/// receiver has it.
fn delivery(plan: &Plan, world: &World) {
    // An attacker can end a session in the sender's name, and use up the repairs.
    let shaken =
        plan.attack.is_some() || plan.crash.is_some() || plan.outage.is_some() || plan.corruption > 0.0;
    let quiet = plan.duplication == 0.0 && plan.jitter.is_zero() && plan.thin.is_none();
    for (n, site) in plan.sites.iter().enumerate() {
        let reachable = site.begins.as_nanos() == 0 && site.off.is_none() && !shaken;
        let must = reachable && (site.named || quiet && site.loss == (0.0, 0.0));
        let truth = world.truth.borrow();
        let (verified, reported) = (truth.sites[n].disk.verified, truth.sites[n].acknowledged);
        let (held, outcome) = (truth.sites[n].disk.held.count(), truth.outcome);
        drop(truth);
        if must && !verified {
            breaks(
                world,
                Rule::Delivery,
                format!("{:?} has {held} segments; the sender: {outcome:?}", site.node),
            );
        } else if must && site.named && !reported {
            breaks(world, Rule::Delivery, format!("{:?} has it; the sender: {outcome:?}", site.node));
        }
    }
}

fn octets(plan: &Plan, world: &World) {
    for (n, hosts) in world.receivers.iter().enumerate() {
        for &host in hosts {
            let station = world.net.engine(host);
            let (said, heard) = (station.said, station.heard);
            if said > 3 * heard + CREDIT {
                breaks(world, Rule::Octets, format!("receiver {n} sent {said} octets for {heard}"));
            }
        }
    }
    let cut = geometry(&plan.config);
    let (segments, blocks) = (u64::from(cut.segments()), u64::from(cut.blocks()));
    let first = segments + blocks * u64::from(plan.config.auto_parity);
    // What was requested before the bound was reached is still sent.
    let requested = segments + blocks * u64::from(plan.config.parity);
    let most = first + REPAIRS.0 * segments + REPAIRS.1 + requested;
    for &host in &world.senders {
        let symbols = world.net.engine(host).symbols;
        if symbols > most {
            breaks(world, Rule::Octets, format!("the sender sent {symbols} symbols, {most} at most"));
        }
    }
}

fn memory(plan: &Plan, world: &World) {
    let cut = geometry(&plan.config);
    let (segments, blocks) = (cut.segments() as usize, cut.blocks() as usize);
    // A receiver keeps 32 senders at most.
    let places = if plan.is_deceived() { 32 } else { 2 };
    let receiver = places * (20_000 + segments * 24 + blocks * 1000);
    for (n, hosts) in world.receivers.iter().enumerate() {
        for &host in hosts {
            let held = size(&world.net.engine(host).engine);
            if held > receiver {
                breaks(world, Rule::Memory, format!("receiver {n} holds {held} octets of text"));
            }
        }
    }
    // The sender remembers what has left lately.
    let sender = 100_000 + segments * 100 + blocks * 2000 + plan.sites.len() * 2000;
    for &host in &world.senders {
        let held = size(&world.net.engine(host).engine);
        if held > sender {
            breaks(world, Rule::Memory, format!("the sender holds {held} octets of text"));
        }
    }
}
