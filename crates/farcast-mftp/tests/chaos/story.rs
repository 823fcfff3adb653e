//! Story of one seed's session: the events drawn, the course, the failures and the faults that they need.

use core::fmt::Write;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::Drawn;
use crate::crowds;
use crate::kinds::{Kind, Kinds};
use crate::parcel::Forged;
use crate::plan::Plan;
use crate::truth::{Broken, Rule};
use crate::world::{self, Look, label};

/// Describes the settings and faults of a plan.
pub(crate) fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    let config = &plan.config;
    let mut line = |words: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {words}");
    };
    line(format!(
        "{} receivers, {:?}; {} octets in DTUs of {} and blocks of {}; {:?}",
        plan.sites.len(),
        plan.crowd,
        config.product.size,
        config.dtu_size,
        config.block_size,
        config.pace
    ));
    line(format!(
        "{:?}, {:?}, {:?}, parity {} ahead {}, spread {}, turns {}, group {}",
        config.pass_wait,
        config.nak_timing,
        config.status_retry,
        config.parity_symbols,
        config.parity_ahead,
        config.backoff_window,
        config.turns,
        short(&format!("{:?}", config.group))
    ));
    if let Some(thin) = &plan.thin {
        let known = config.return_rate;
        line(format!("return of {} with a queue of {}; the sender is told {known:?}", thin.rate, thin.queue));
    }
    let many = plan.sites.len() > 2 * crowds::TOLD;
    for (n, site) in plan.sites.iter().enumerate().take(if many { crowds::TOLD } else { usize::MAX }) {
        line(format!(
            "{}: {} away, loss {:.3} there and {:.3} back, disk {}, checkpoints each {}, begins {:?}",
            label(plan, n),
            site.delay,
            site.loss.0,
            site.loss.1,
            site.slow,
            site.checkpoints,
            site.begins
        ));
    }
    line(format!(
        "duplication {:.4}, jitter {}, corruption {:.5}; calm from {:?} on",
        plan.duplication, plan.jitter, plan.corruption, plan.calm
    ));
    for (n, attack) in plan.attacks.iter().enumerate().filter(|(_, attack)| !attack.forgeries.is_empty()) {
        line(format!(
            "attacker {n}: {:?} in {:?}, one each {}, {} at most, fidelity {}, {} ports, {} away",
            attack.forgeries,
            attack.during,
            attack.gap,
            attack.most,
            attack.fidelity,
            if attack.knows_ports { "knows" } else { "guesses" },
            attack.delay
        ));
    }
    text
}

fn fails(plan: &Plan, look: &Look, rule: Rule) -> bool {
    world::run(plan, look).broken.iter().any(|broken| broken.rule == rule)
}

/// Finds a minimal set of fault kinds that still breaks `rule`, by switching off one at a time.
pub(crate) fn needed(drawn: Drawn, rule: Rule) -> (Kinds, Vec<Kind>) {
    let mut kinds = Kinds::ALL;
    for kind in Kind::all() {
        let without = kinds.without(kind);
        if fails(&drawn.plan(without), &Look::default(), rule) {
            kinds = without;
        }
    }
    (kinds, Kind::all().filter(|&kind| kinds.has(kind)).collect())
}

/// Finds a minimal set of forged messages that still breaks `rule`, by repeated halving.
pub(crate) fn needed_letters(plan: &Plan, rule: Rule) -> BTreeSet<Forged> {
    let all = plan.attacks.iter().enumerate().flat_map(|(attacker, attack)| {
        let most = if attack.forgeries.is_empty() { 0 } else { attack.most };
        (0..most).map(move |number| Forged { attacker: attacker as u32, number })
    });
    let mut letters: Vec<Forged> = all.collect();
    let mut piece = letters.len().div_ceil(2);
    while piece > 0 && !letters.is_empty() {
        let mut at = 0;
        while at < letters.len() {
            let mut fewer = letters.clone();
            fewer.drain(at..(at + piece).min(letters.len()));
            let only = Some(Rc::new(fewer.iter().copied().collect()));
            if fails(plan, &Look { only, ..Look::default() }, rule) {
                letters = fewer;
            } else {
                at += piece;
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    letters.into_iter().collect()
}

/// Returns the whole story of a seed, and `true` if no rule is broken.
pub(crate) fn tell(drawn: Drawn) -> (String, bool) {
    let (seed, plan) = (drawn.seed, drawn.plan(Kinds::ALL));
    let of =
        world::run(&plan, &Look::default()).broken.iter().flat_map(|broken| words(&broken.what)).collect();
    let shown = world::run(&plan, &Look { story: true, of, only: None });
    let mut text = format!("seed {seed}\n{}", describe(&plan));
    if shown.broken.is_empty() {
        text += &lines(&shown.story);
        let _ = writeln!(text, "every rule holds; the sender: {}", shown.end);
        return (text, true);
    }
    let mut rules: Vec<Rule> = shown.broken.iter().map(|broken| broken.rule).collect();
    rules.dedup();
    for rule in rules.iter().copied().collect::<BTreeSet<_>>() {
        let (kinds, needs) = needed(drawn, rule);
        let least = drawn.plan(kinds);
        let only = Rc::new(needed_letters(&least, rule));
        let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "\n{rule} needs {} and {} forged messages; the least session that breaks it:",
            if needs.is_empty() { "no fault".into() } else { needs.join(", ") },
            only.len()
        );
        text += &describe(&least);
        let of = shown.broken.iter().flat_map(|broken| words(&broken.what)).collect();
        let told = world::run(&least, &Look { story: true, of, only: Some(only) });
        text += &lines(&told.story);
    }
    text += "\nbroken in the whole session:\n";
    text += &list(&shown.broken);
    let _ = writeln!(text, "the sender: {}", shown.end);
    (text, false)
}

/// Returns the words of a sentence, among which the labels of receivers are found.
fn words(what: &str) -> impl Iterator<Item = String> + '_ {
    what.split([' ', ';', ':', ',']).map(Into::into)
}

/// Returns a text without what is beyond a line or two.
fn short(text: &str) -> String {
    let end = text.char_indices().nth(240).map_or(text.len(), |(at, _)| at);
    format!("{}{}", &text[..end], if end < text.len() { " ..." } else { "" })
}

fn lines(story: &[(farcast_core::Time, String)]) -> String {
    let mut text = String::new();
    for (at, line) in story {
        let _ = writeln!(text, "{at:?}  {line}");
    }
    text
}

/// Lists the broken rules, one per line.
pub(crate) fn list(broken: &[Broken]) -> String {
    let mut text = String::new();
    for Broken { rule, what } in broken {
        let _ = writeln!(text, "  {rule}: {what}");
    }
    text
}
