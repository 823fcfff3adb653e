//! Tests that these sessions have the properties claimed, and that a broken rule is detected.

use farcast_core::{Run, Span, Time};
use farcast_delivery::Geometry;
use farcast_mftp::{ClientId, SenderEvent};

use crate::crowds;
use crate::kinds::{Kind, Kinds};
use crate::large;
use crate::plan::{Outage, Plan};
use crate::truth::{Disk, Life, Rule, Site, Truth};
use crate::verdict::unreachable;
use crate::world::{self, Look};

#[test]
fn a_seed_is_one_session() {
    for seed in 0..60 {
        let tell = || {
            let shown = world::run(&Plan::draw(seed, Kinds::ALL), &Look { story: true, ..Look::default() });
            (shown.story, shown.end)
        };
        let (first, second) = (tell(), tell());
        assert!(first.0.len() > 2, "seed {seed}: {first:?}");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn every_kind_happens_and_can_be_switched_off() {
    let plans: Vec<Plan> = (0..300).map(|seed| Plan::draw(seed, Kinds::ALL)).collect();
    for kind in Kind::all() {
        let count = plans.iter().filter(|plan| has(plan, kind)).count();
        assert!(count >= 5, "{kind}: {count} of {}", plans.len());
        let off = (0..300).map(|seed| Plan::draw(seed, Kinds::ALL.without(kind)));
        assert!(off.into_iter().all(|plan| !has(&plan, kind)), "{kind}");
    }
}

#[test]
fn some_groups_are_large_and_some_returns_thin() {
    let plans: Vec<Plan> = (0..3000).map(|seed| Plan::draw(seed, Kinds::ALL)).collect();
    let larger: Vec<&Plan> = plans.iter().filter(|plan| plan.sites.len() > 8).collect();
    assert!(larger.len() >= 10 && larger.iter().all(|plan| plan.sites.len() <= crowds::MOST));
    for known in [true, false] {
        let thin = |plan: &&&Plan| plan.thin.is_some() && plan.config.return_rate.is_some() == known;
        assert!(larger.iter().filter(thin).count() >= 2, "known: {known}");
        assert!(plans.iter().filter(|plan| thin(&plan)).count() >= 50, "known: {known}");
    }
}

#[test]
fn a_story_of_a_large_group_tells_of_a_few() {
    let plan = large::draw(0, 300, Kinds::ALL);
    let of = ["site-200".to_owned()].into();
    let shown = world::run(&plan, &Look { story: true, of, only: None });
    let of = |label: &str| shown.story.iter().any(|(_, line)| line.starts_with(&format!("{label}: ")));
    let told: Vec<usize> = (0..300).filter(|&n| of(&world::label(&plan, n))).collect();
    let named = plan.sites[0].name.is_some();
    assert_eq!(told, if named { vec![0, 1, 2, 3, 4, 200] } else { vec![0, 1, 2, 3, 4] });
}

fn has(plan: &Plan, kind: Kind) -> bool {
    let site = |has: fn(&crate::plan::Site) -> bool| plan.sites.iter().any(has);
    match kind {
        Kind::Loss => site(|site| site.loss != (0.0, 0.0)),
        Kind::Duplication => plan.duplication > 0.0,
        Kind::Jitter => !plan.jitter.is_zero(),
        Kind::Corruption => plan.corruption > 0.0,
        Kind::Outage => !plan.outages.is_empty(),
        Kind::Pause => site(|site| !site.pauses.is_empty()),
        Kind::Restart => site(|site| site.restarts.iter().any(|restart| !restart.emptied)),
        Kind::Emptied => site(|site| site.restarts.iter().any(|restart| restart.emptied)),
        Kind::SenderRestart => plan.lives.len() > 1,
        Kind::SenderPause => plan.lives.iter().any(|life| !life.pauses.is_empty()),
        Kind::Remembered => plan.lives.iter().any(|life| life.remembers),
        Kind::Late => site(|site| site.begins > Time::ZERO),
        Kind::SlowDisk => site(|site| !site.slow.is_zero()),
        Kind::ThinReturn => plan.thin.is_some(),
        Kind::Forged(forgery) => plan.attacks.iter().any(|attack| attack.forgeries.contains(&forgery)),
    }
}

fn truth() -> Truth {
    let geometry = Geometry::new(4000, 1000, 4).expect("valid");
    let site = Site {
        label: "ant".into(),
        id: ClientId::from_name("ant"),
        addresses: Vec::new(),
        disk: Disk::new(geometry, Span::from_secs(1)),
    };
    let numbers = [(site.id, 0)].into();
    Truth { sites: vec![site], numbers, lives: vec![Life::default()], ..Truth::default() }
}

fn done(name: &str) -> SenderEvent {
    SenderEvent::Done { client: ClientId::from_name(name) }
}

#[test]
fn a_done_that_is_not_true_is_seen() {
    let mut truth = truth();
    truth.sender_told(Time::ZERO, 0, &done("ant"), true);
    truth.sender_told(Time::ZERO, 0, &done("nobody"), true);
    truth.sender_told(Time::ZERO, 0, &done("somebody"), false);
    let rules: Vec<Rule> = truth.broken.iter().map(|broken| broken.rule).collect();
    assert_eq!(rules, [Rule::Success, Rule::Success]);
    truth.broken.clear();
    truth.sites[0].disk.verified = true;
    truth.sender_told(Time::ZERO, 0, &done("ant"), true);
    assert!(truth.broken.is_empty());
}

#[test]
fn a_disk_keeps_what_it_wrote_down_and_no_more() {
    let mut disk = truth().sites.remove(0).disk;
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    disk.store(at(100), Run::one(0), false);
    disk.store(at(1100), Run::one(1), true);
    disk.store(at(1200), Run::one(2), false);
    disk.decode(0);
    assert!(disk.held.is_full());
    assert_eq!(disk.spoiled.iter().collect::<Vec<_>>(), [1, 3], "what is rebuilt from wrong is wrong");
    let mut crashed = disk.clone();
    crashed.crash();
    assert_eq!(crashed.held.iter().collect::<Vec<_>>(), [0]);
    assert_eq!(disk.drop_spoiled().count(), 2);
    assert_eq!(disk.held.iter().collect::<Vec<_>>(), [0, 2]);
    disk.verified = true;
    disk.crash();
    assert!(disk.verified);
    disk.empty();
    assert!(!disk.verified && disk.held.is_empty());
}

#[test]
fn what_is_close_together_is_one_absence() {
    let mut plan = Plan::draw(0, Kinds::ALL);
    plan.outages.clear();
    plan.lives.truncate(1);
    plan.lives[0].pauses.clear();
    let site = &mut plan.sites[0];
    site.restarts.clear();
    site.pauses.clear();
    site.begins = Time::ZERO;
    let at = |s| Time::ZERO + Span::from_secs(s);
    let outage = |from, to| Outage { during: at(from)..at(to), site: Some(0), ways: (true, true) };
    plan.outages = vec![outage(50, 70), outage(10, 20), outage(25, 40)];
    assert_eq!(unreachable(&plan, 0), [at(10)..at(70)]);
    plan.outages = vec![outage(50, 70), outage(10, 20)];
    assert_eq!(unreachable(&plan, 0), [at(10)..at(20), at(50)..at(70)]);
}
