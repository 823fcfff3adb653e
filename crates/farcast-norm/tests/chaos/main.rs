//! Sessions with faults and attackers, drawn from one seed each.
//!
//! `scripts/chaos norm SEED` tells the story of one; `scripts/chaos norm --seeds N [--from K]` runs many.
//!
//! | file | contents |
//! |---|---|
//! | `plan.rs` | events drawn from a seed |
//! | `world.rs`, `stations.rs`, `attacker.rs`, `parcel.rs` | hosts, and their messages |
//! | `truth.rs` | true state of the world |
//! | `verdict.rs` | rules that must hold |

mod attacker;
mod parcel;
mod plan;
mod stations;
mod truth;
mod verdict;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use farcast_testkit::drawn::{asked, note_panic, on_all_cores, say};
use plan::Plan;
use truth::Rule;

/// Default number of seeds.
const SEEDS: u64 = 8_000;

/// Failures by seed.
type Failed = BTreeMap<u64, Vec<(Rule, String)>>;

#[test]
fn sessions_with_faults_keep_their_promises() {
    std::panic::set_hook(Box::new(note_panic));
    if let Some(seed) = asked("FARCAST_CHAOS_SEED") {
        let (text, holds) = tell(seed);
        let _ = std::panic::take_hook();
        say(&text);
        assert!(holds, "seed {seed} breaks a rule");
        return;
    }
    let from = asked("FARCAST_CHAOS_FROM").unwrap_or(0);
    let seeds = asked("FARCAST_CHAOS_SEEDS").unwrap_or(SEEDS);
    let failed = Mutex::new(Failed::new());
    on_all_cores(seeds, |n| {
        let shown = world::run(&Plan::draw(from + n), false);
        if !shown.broken.is_empty() {
            failed.lock().expect("no thread panics").insert(from + n, shown.broken);
        }
    });
    let failed = failed.into_inner().expect("no thread panics");
    let _ = std::panic::take_hook();
    say(&summary(seeds, &failed));
    assert!(failed.is_empty(), "{} of {seeds} sessions break a rule", failed.len());
}

#[test]
fn a_seed_is_one_session() {
    for seed in 0..40 {
        let tell = || world::run(&Plan::draw(seed), true).story;
        let first = tell();
        assert!(first.len() > 2, "seed {seed}: {first:?}");
        assert_eq!(first, tell(), "seed {seed}");
    }
}

#[test]
fn every_kind_of_fault_happens() {
    let plans: Vec<Plan> = (0..1000).map(Plan::draw).collect();
    let count = |has: fn(&Plan) -> bool| plans.iter().filter(|plan| has(plan)).count();
    let kinds: [fn(&Plan) -> bool; 12] = [
        |plan| plan.sites.iter().any(|site| site.loss != (0.0, 0.0)),
        |plan| plan.sites.iter().any(|site| site.begins.as_nanos() > 0),
        |plan| plan.sites.iter().any(|site| site.off.is_some()),
        |plan| plan.sites.len() > 8,
        |plan| plan.crash.is_some(),
        |plan| plan.outage.is_some(),
        |plan| plan.thin.is_some(),
        |plan| plan.duplication > 0.0,
        |plan| !plan.jitter.is_zero(),
        |plan| plan.corruption > 0.0,
        |plan| plan.config.ackers.is_empty(),
        |plan| plan.attack.is_some(),
    ];
    for (n, &kind) in kinds.iter().enumerate() {
        assert!(count(kind) >= 10, "kind {n}: {}", count(kind));
    }
    for forgery in attacker::Forgery::ALL {
        assert!(plans.iter().any(|plan| forges(plan, forgery)), "{forgery:?}");
    }
}

fn forges(plan: &Plan, forgery: attacker::Forgery) -> bool {
    plan.attack.iter().any(|attack| attack.forgeries.contains(&forgery))
}

/// Returns the story of a seed, and `true` if no rule is broken.
fn tell(seed: u64) -> (String, bool) {
    let plan = Plan::draw(seed);
    let shown = world::run(&plan, true);
    let sites: Vec<_> = plan.sites.iter().take(8).collect();
    let mut text = format!("seed {seed}, {} receivers\n", plan.sites.len());
    let described = Plan { sites: Vec::new(), ..plan.clone() };
    let _ = writeln!(text, "  {described:?}");
    for site in sites {
        let _ = writeln!(text, "  {site:?}");
    }
    for (at, line) in &shown.story {
        let _ = writeln!(text, "{at:?}  {line}");
    }
    text += &list(&shown.broken);
    (text, shown.broken.is_empty())
}

/// Lists the broken rules, one per line.
fn list(broken: &[(Rule, String)]) -> String {
    let mut text = String::new();
    for (rule, what) in broken {
        let _ = writeln!(text, "  {rule}: {what}");
    }
    text
}

fn summary(seeds: u64, failed: &Failed) -> String {
    let mut rules: BTreeMap<Rule, Vec<u64>> = BTreeMap::new();
    for (&seed, broken) in failed {
        for (rule, _) in broken {
            let seeds = rules.entry(*rule).or_default();
            if seeds.last() != Some(&seed) {
                seeds.push(seed);
            }
        }
    }
    let mut text = format!("{seeds} sessions, {} break a rule\n", failed.len());
    for (rule, seeds) in &rules {
        let first: Vec<String> = seeds.iter().take(8).map(u64::to_string).collect();
        let _ = writeln!(text, "{rule}: {} sessions, such as {}", seeds.len(), first.join(", "));
        text += &list(seeds.first().and_then(|seed| failed.get(seed)).map_or(&[], Vec::as_slice));
    }
    if let Some(seed) = failed.keys().next() {
        let _ = writeln!(text, "the story of one: scripts/chaos norm {seed}");
    }
    text
}
