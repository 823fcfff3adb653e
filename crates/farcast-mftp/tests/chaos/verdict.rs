//! Rules that must hold at the end of a session.

use core::ops::Range;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use farcast_core::{Span, Time};
use farcast_mftp::{ClientId, SenderOutcome};

use crate::kinds::Forgery;
use crate::plan::{Outage, Plan};
use crate::settings::Crowd;
use crate::truth::{Life, Rule, Verdict};
use crate::world::{World, announce_end, label};

/// Longest time without any answer that a sender's defaults must survive.
const SURVIVED: Span = Span::from_secs(60);
/// Time between two faults below which a receiver need not get an answer through.
const BREATH: Span = Span::from_secs(12);

/// Records every rule that the session has broken.
pub(crate) fn judge(plan: &Plan, world: &World) {
    let last = world.truth.borrow().lives.last().cloned().unwrap_or_default();
    success(world, &last);
    delivery(plan, world, &last);
    octets(plan, world);
    rest(plan, world);
}

fn breaks(world: &World, rule: Rule, what: String) {
    world.truth.borrow_mut().breaks(world.net.now(), rule, what);
}

/// Checks that receivers reported Done by a finished last life are complete. A receiver that was emptied since had the
/// product then, which was checked when the Done came.
fn success(world: &World, last: &Life) {
    if last.outcome != Some(SenderOutcome::Finished) {
        return;
    }
    let station = world.net.engine(world.senders[world.senders.len() - 1]);
    for (client, member) in station.engine.members() {
        let truth = world.truth.borrow();
        let site = truth.site(client);
        let lacks = site.is_some_and(|site| !site.disk.verified);
        let done = member.state == farcast_mftp::MemberState::Done && station.believes(client);
        let name = truth.name(client);
        drop(truth);
        if done && lacks {
            breaks(world, Rule::Success, format!("{name} is Done at the end and has not got it"));
        }
    }
}

/// Checks that every receiver that could be served was, and is reported so.
fn delivery(plan: &Plan, world: &World, last: &Life) {
    // An attacker that constantly sends to the group looks like another transmission.
    let others = is_attacked_by(plan, &[Forgery::Session]);
    let limit = others && matches!(last.outcome, Some(SenderOutcome::GroupInUse { .. }))
        || matches!(last.outcome, Some(SenderOutcome::Aborted { reason })
        if reason == farcast_mftp::message::cancel::ABORT_TRANSFER_TIMEOUT);
    for site in 0..plan.sites.len() {
        let must = must_have(plan, world, last, site) && !limit;
        let truth = world.truth.borrow();
        let (id, disk) = (truth.sites[site].id, truth.sites[site].disk.clone());
        drop(truth);
        let end = last.outcome.as_ref().map_or("has not ended".into(), |outcome| format!("{outcome:?}"));
        if must && !disk.verified {
            let got = format!("{} of {} segments", disk.held.count(), disk.held.len());
            let what = format!("{} has {got}; the sender: {end}", label(plan, site));
            breaks(world, Rule::Delivery, what);
        } else if must && plan.crowd != Crowd::Unlimited && disk.verified {
            let engine = &world.net.engine(world.senders[world.senders.len() - 1]).engine;
            let state = engine.member(id).map(|member| member.state.clone());
            if state != Some(farcast_mftp::MemberState::Done) || last.outcome != Some(SenderOutcome::Finished)
            {
                let what = format!("{} has it; the sender: {end}, {state:?}", label(plan, site));
                breaks(world, Rule::Verdict, what);
            }
        }
    }
}

/// Returns `true` if no event excuses a receiver without the product.
fn must_have(plan: &Plan, world: &World, last: &Life, site: usize) -> bool {
    let away = unreachable(plan, site);
    // A queue without room loses what it has no room for.
    let clean =
        away.is_empty() && plan.sites[site].loss == (0.0, 0.0) && is_smooth(plan) && plan.thin.is_none();
    let longest = away.iter().map(|gap| gap.end.since(gap.start)).max().unwrap_or(Span::ZERO);
    let id = world.truth.borrow().sites[site].id;
    let remembered = last.verdicts.get(&id) == Some(&Verdict::Done);
    let accepted = last.accepted.contains(&id);
    let carried_off = is_attacked_by(plan, &[Forgery::Session, Forgery::Announce]);
    match plan.crowd {
        // In an unlimited group, receivers are unknown, and one that misses the repairs has missed the product.
        Crowd::Unlimited => clean && !carried_off && plan.sites.iter().all(|other| other.loss == (0.0, 0.0)),
        _ if accepted || remembered => longest <= SURVIVED,
        // A receiver known as complete has ten seconds to confirm it.
        Crowd::Awaited if was_done_before(plan, world, id) => {
            clean && plan.sites[site].slow < Span::from_secs(5)
        }
        Crowd::Awaited => {
            let end = announce_end(plan);
            longest <= SURVIVED && away.iter().all(|gap| gap.end + Span::from_secs(30) < end)
        }
        // A receiver with a slow disk, or one that is held by a forged offer, may miss the start.
        Crowd::Listed | Crowd::Open => {
            clean && plan.sites[site].slow < Span::from_millis(500) && !carried_off
        }
    }
}

fn was_done_before(plan: &Plan, world: &World, id: ClientId) -> bool {
    let lives = &world.truth.borrow().lives;
    let before = lives.len().checked_sub(2).map(|before| &lives[before]);
    plan.lives.last().is_some_and(|life| life.remembers)
        && before.is_some_and(|life| life.verdicts.get(&id) == Some(&Verdict::Done))
}

fn is_attacked_by(plan: &Plan, by: &[Forgery]) -> bool {
    plan.attacks.iter().any(|attack| attack.forgeries.iter().any(|forgery| by.contains(forgery)))
}

fn is_smooth(plan: &Plan) -> bool {
    plan.duplication == 0.0 && plan.corruption == 0.0 && plan.jitter.is_zero()
}

/// Returns the times at which nothing passed between a receiver and the sender in one direction. Times close together
/// are joined.
pub(crate) fn unreachable(plan: &Plan, site: usize) -> Vec<Range<Time>> {
    let begins = plan.sites[site].begins;
    let mut away: Vec<Range<Time>> = Vec::new();
    if begins > Time::ZERO {
        away.push(Time::ZERO..begins);
    }
    away.extend(plan.sites[site].restarts.iter().map(|restart| restart.down.clone()));
    away.extend(plan.sites[site].pauses.iter().cloned());
    let mine = plan.outages.iter().filter(|outage| outage.site.is_none_or(|other| other == site));
    away.extend(mine.map(|outage| outage.during.clone()));
    away.extend(plan.lives.iter().flat_map(|life| life.pauses.iter().cloned()));
    for pair in plan.lives.windows(2) {
        away.push(pair[0].dies.unwrap_or(pair[1].begins)..pair[1].begins);
    }
    away.sort_by_key(|gap| gap.start);
    let mut merged: Vec<Range<Time>> = Vec::new();
    for gap in away {
        match merged.last_mut() {
            Some(last) if gap.start <= last.end + BREATH => last.end = last.end.max(gap.end),
            _ => merged.push(gap),
        }
    }
    merged
}

/// Octets that a host may send to an address that has not requested any.
const COURTESY: u64 = 600;

/// Octets that a receiver may send to all hosts but its sender, beyond three times their octets: at once, and per
/// second.
const STRANGERS: (u64, u64) = (4096 + COURTESY, 512);

fn octets(plan: &Plan, world: &World) {
    let truth = world.truth.borrow();
    let honest: BTreeSet<IpAddr> =
        truth.sites.iter().flat_map(|site| site.addresses.iter().map(SocketAddr::ip)).collect();
    drop(truth);
    let now = world.net.now();
    let blocks = plan.config.product.size.div_ceil(u64::from(plan.config.dtu_size * plan.config.block_size));
    for (site, hosts) in world.receivers.iter().enumerate() {
        // While nothing gets through to the sender, the receiver asks each second, and the sender answers in vain.
        let seconds: u64 =
            plan.outages.iter().filter(|outage| outage.ways == (false, true)).map(seconds).sum();
        let vain = seconds * blocks * 100;
        for &host in hosts {
            let meter = &world.net.engine(host).meter;
            let (out, most) = (meter.out(), 3 * (meter.honest_in + meter.forged_in) + 20_000 + vain);
            if out > most {
                let heard = (meter.honest_in, meter.forged_in);
                let what = format!("{} sent {out} octets for {heard:?} (honest, forged)", label(plan, site));
                breaks(world, Rule::Octets, what);
            }
            let strangers = meter.peers.iter().filter(|&(&peer, _)| {
                !peer.ip().is_multicast()
                    && (0..world.senders.len()).all(|life| crate::settings::server(life) != peer)
            });
            let unasked: u64 = strangers.map(|(_, &(heard, sent))| sent.saturating_sub(3 * heard)).sum();
            let seconds = now.as_secs_f64() as u64;
            let most = STRANGERS.0 + STRANGERS.1 * seconds;
            if unasked > most {
                let what = format!("{} sent {unasked} octets to strangers unasked", label(plan, site));
                breaks(world, Rule::Octets, what);
            }
        }
    }
    for (life, &host) in world.senders.iter().enumerate() {
        let station = world.net.engine(host);
        for (&peer, &(heard, sent)) in &station.meter.peers {
            // A claim in a receiver's name from another port of its host costs the octets of the check at the old
            // address.
            let courtesy = if honest.contains(&peer.ip()) { 4000 } else { COURTESY };
            if !peer.ip().is_multicast() && sent > heard + courtesy {
                breaks(world, Rule::Octets, format!("the sender sent {sent} octets to {peer} for {heard}"));
            }
        }
        let most = data_bound(plan);
        // In an unlimited group the sender knows no receiver, so it serves every request until the time limit.
        if station.meter.data_out > most && !anyone_asks(plan) {
            let what = format!(
                "life {life} of the sender sent {} octets of DATA, {most} at most",
                station.meter.data_out
            );
            breaks(world, Rule::Octets, what);
        }
    }
}

fn seconds(outage: &Outage) -> u64 {
    outage.during.end.since(outage.during.start).as_millis().div_ceil(1000)
}

/// Multiple of the product that the sender may send at most, however many receivers there are.
const MOST_TIMES: u64 = 64;

/// Returns the maximum octets of DATA that the sender may send in one life, whatever is requested.
fn data_bound(plan: &Plan) -> u64 {
    let size =
        plan.config.product.size + 44 * plan.config.product.size.div_ceil(u64::from(plan.config.dtu_size));
    let lives: u64 = plan.sites.iter().map(|site| 1 + site.restarts.len() as u64).sum();
    // Many receivers ask for much the same.
    size * (6 + 4 * lives).min(MOST_TIMES) + 20_000
}

/// Returns `true` if attackers can make receivers request DTUs, or request them themselves, in a group without members.
fn anyone_asks(plan: &Plan) -> bool {
    let asks = [Forgery::Announce, Forgery::Session, Forgery::Nak];
    plan.crowd == Crowd::Unlimited && is_attacked_by(plan, &asks)
}

/// Checks that no engine waits for ever.
fn rest(plan: &Plan, world: &World) {
    for (site, hosts) in world.receivers.iter().enumerate() {
        let busy = hosts.last().is_some_and(|&host| world.net.engine(host).engine.is_busy());
        if busy && !anyone_asks(plan) {
            let label = world.truth.borrow().sites[site].label.clone();
            breaks(world, Rule::Rest, format!("{label} is still busy"));
        }
    }
    let last = world.truth.borrow().lives.last().cloned().unwrap_or_default();
    if last.outcome.is_none() && !anyone_asks(plan) {
        breaks(world, Rule::Rest, "the sender has not ended".into());
    }
}
