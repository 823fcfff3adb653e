//! Sessions with faults and attackers, drawn from one seed each.
//!
//! `scripts/chaos SEED` tells the story of one; `scripts/chaos --seeds N [--from K]` runs many, and
//! `scripts/chaos --large N [--from K]` runs sessions of ten thousand receivers.
//!
//! | file | contents |
//! |---|---|
//! | `plan.rs`, `settings.rs`, `kinds.rs` | events drawn from a seed, by kind |
//! | `crowds.rs`, `large.rs` | larger groups, returns that carry little, ten thousand receivers |
//! | `world.rs`, `stations.rs`, `attacker.rs` | hosts |
//! | `grammar.rs` | forged messages |
//! | `truth.rs`, `meter.rs` | true state of the world |
//! | `verdict.rs` | rules that must hold |
//! | `story.rs` | the story of one session, and the faults that its failure needs |
//! | `proofs.rs` | tests of the checks themselves |

mod attacker;
mod crowds;
mod grammar;
mod kinds;
mod large;
mod meter;
mod parcel;
mod plan;
mod proofs;
mod settings;
mod stations;
mod story;
mod truth;
mod verdict;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use farcast_testkit::drawn::{asked, note_panic, on_all_cores, say};
use kinds::Kinds;
use plan::Plan;
use truth::{Broken, Rule};
use world::Look;

/// First seed and number of seeds by default. No seed among them is known to break a rule.
const FIRST: u64 = 8_000;
const SEEDS: u64 = 20_000;
/// Default number of seeds of large sessions, and their receivers. Ten thousand take too long for every run of the tests.
const LARGE: u64 = 4;
const LARGE_RECEIVERS: usize = 1_000;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Session that is drawn from a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) seed: u64,
    /// Number of receivers, if it is a large session.
    pub(crate) large: Option<usize>,
}

impl Drawn {
    /// Returns the events of the session, with only `kinds` of faults.
    pub(crate) fn plan(self, kinds: Kinds) -> Plan {
        match self.large {
            Some(receivers) => large::draw(self.seed, receivers, kinds),
            None => Plan::draw(self.seed, kinds),
        }
    }
}

#[test]
fn sessions_with_faults_keep_their_promises() {
    // If large sessions are asked for, the others have no say.
    if asked("FARCAST_CHAOS_LARGE").is_none() {
        sessions(None, SEEDS);
    }
}

#[test]
fn sessions_of_thousands_of_receivers_keep_them_too() {
    let others = ["FARCAST_CHAOS_SEED", "FARCAST_CHAOS_SEEDS"].into_iter().any(|name| asked(name).is_some());
    let receivers = asked("FARCAST_CHAOS_LARGE").map(|receivers| receivers as usize);
    if receivers.is_some() || !others {
        sessions(receivers.or(Some(LARGE_RECEIVERS)), LARGE);
    }
}

/// Runs the sessions that are asked for, or else as many as `seeds` says.
fn sessions(large: Option<usize>, seeds: u64) {
    // The hook for panics belongs to one test at a time, and a test takes all cores.
    let _mine = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    std::panic::set_hook(Box::new(note_panic));
    if let Some(seed) = asked("FARCAST_CHAOS_SEED") {
        let (story, holds) = story::tell(Drawn { seed, large });
        say(&story);
        let _ = std::panic::take_hook();
        assert!(holds, "seed {seed} breaks a rule");
        return;
    }
    let count = asked("FARCAST_CHAOS_SEEDS");
    let first = if large.is_none() && count.is_none() { FIRST } else { 0 };
    let from = asked("FARCAST_CHAOS_FROM").unwrap_or(first);
    let seeds = count.unwrap_or(seeds);
    let failed = run_all(from, seeds, large);
    let causes = if asked("FARCAST_CHAOS_CAUSES").is_some() { causes(&failed, large) } else { String::new() };
    let _ = std::panic::take_hook();
    say(&summary(seeds, &failed, large));
    say(&causes);
    assert!(failed.is_empty(), "{} of {seeds} sessions break a rule", failed.len());
}

/// Runs seeds, and returns those that break rules.
fn run_all(from: u64, count: u64, large: Option<usize>) -> BTreeMap<u64, Vec<Broken>> {
    let failed = Mutex::new(BTreeMap::new());
    on_all_cores(count, |n| {
        let drawn = Drawn { seed: from + n, large };
        let shown = world::run(&drawn.plan(Kinds::ALL), &Look::default());
        if !shown.broken.is_empty() {
            failed.lock().expect("no thread panics").insert(from + n, shown.broken);
        }
    });
    failed.into_inner().expect("no thread panics")
}

/// Returns the faults that the failures need, most frequent first.
fn causes(failed: &BTreeMap<u64, Vec<Broken>>, large: Option<usize>) -> String {
    let failures: BTreeSet<(u64, Rule)> = failed
        .iter()
        .flat_map(|(&seed, broken)| broken.iter().map(move |broken| (seed, broken.rule)))
        .collect();
    let failures: Vec<_> = failures.into_iter().collect();
    let found = Mutex::new(BTreeMap::<(Rule, String), BTreeSet<u64>>::new());
    on_all_cores(failures.len() as u64, |n| {
        let (seed, rule) = failures[n as usize];
        let (_, needs) = story::needed(Drawn { seed, large }, rule);
        let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
        let key = (rule, needs.join(" + "));
        found.lock().expect("no thread panics").entry(key).or_default().insert(seed);
    });
    let mut found: Vec<_> = found.into_inner().expect("no thread panics").into_iter().collect();
    found.sort_by_key(|(_, seeds)| core::cmp::Reverse(seeds.len()));
    let line = |((rule, needs), seeds): ((Rule, String), BTreeSet<u64>)| {
        let first: Vec<String> = seeds.iter().take(5).map(u64::to_string).collect();
        let needs = if needs.is_empty() { "nothing".into() } else { needs };
        format!("{:6}  {rule} needs {needs}: {}\n", seeds.len(), first.join(", "))
    };
    found.into_iter().map(line).collect()
}

fn summary(seeds: u64, failed: &BTreeMap<u64, Vec<Broken>>, large: Option<usize>) -> String {
    let mut rules: BTreeMap<Rule, Vec<u64>> = BTreeMap::new();
    for (&seed, broken) in failed {
        for rule in broken.iter().map(|broken| broken.rule).collect::<BTreeSet<_>>() {
            rules.entry(rule).or_default().push(seed);
        }
    }
    let mut text = format!("{seeds} sessions, {} break a rule\n", failed.len());
    for (rule, seeds) in &rules {
        let first: Vec<String> = seeds.iter().take(8).map(u64::to_string).collect();
        let _ = writeln!(text, "{rule}: {} sessions, such as {}", seeds.len(), first.join(", "));
        if let Some(broken) = seeds.first().and_then(|seed| failed.get(seed)) {
            text += &story::list(broken);
        }
    }
    if let Some(seed) = failed.keys().next() {
        let option = if large.is_some() { "--large-story " } else { "" };
        let _ = writeln!(text, "the story of one: scripts/chaos {option}{seed}");
    }
    text
}
