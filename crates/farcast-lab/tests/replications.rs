//! Replications within a limit of memory, and their progress reports.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicBool, Ordering};

use farcast_core::units::Bytes;
use farcast_lab::replications::{Limit, Memory, MemoryError, MemoryNeed, RunError, run};
use farcast_lab::{Progress, shipped};
use farcast_sim::replicate::{self, HowMany, Plan};
use farcast_sim::scenario::Scenario;

fn scenario() -> Scenario {
    Scenario::read(&shipped::document("mftp-bgan").unwrap()).unwrap()
}

fn plan(count: u64, threads: usize) -> Plan {
    Plan { seed: 3, how_many: HowMany::Count(count), threads, per_receiver: false }
}

#[test]
fn they_are_the_simulators_and_all_are_told_of() {
    let (scenario, stop) = (scenario(), AtomicBool::new(false));
    let mut last = (0, 0);
    let mut tell = |progress| match progress {
        Progress::Replications { done, total, .. } => {
            assert!(done >= last.0, "{done} after {last:?}");
            last = (done, total);
        }
        other => panic!("{other:?}"),
    };
    let found = run(&scenario, &plan(4, 2), &Memory::of_machine(), &stop, &mut tell).unwrap();
    assert_eq!(found, replicate::run(&scenario, &plan(4, 1), &mut |_| true).unwrap());
    assert_eq!(last, (4, 4));
    assert_eq!(run(&scenario, &plan(0, 1), &Memory::of_machine(), &stop, &mut |_| {}), Ok(Vec::new()));
}

#[test]
fn a_flag_ends_them_with_those_that_are_done() {
    // One replication takes long.
    let mut document = shipped::document("mftp-bgan").unwrap();
    document.set("receivers=100000").unwrap();
    let (long, stop) = (Scenario::read(&document).unwrap(), AtomicBool::new(true));
    let none = run(&long, &plan(5, 2), &Memory::of_machine(), &stop, &mut |_| {});
    assert_eq!(none, Err(RunError::Interrupted));
    stop.store(false, Ordering::Relaxed);
    // There are so many that one thread cannot finish them before it checks the flag.
    let some = run(&scenario(), &plan(100_000, 1), &Memory::of_machine(), &stop, &mut |progress| {
        if matches!(progress, Progress::Replications { done, .. } if done >= 3) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let some = some.unwrap();
    assert!((3..100_000).contains(&some.len()), "{}", some.len());
    assert!(some.iter().zip(0..).all(|(one, index)| one.index == index));
}

#[test]
fn what_takes_too_much_memory_is_refused_and_what_it_would_take_is_told() {
    let (scenario, stop) = (scenario(), AtomicBool::new(false));
    let one = scenario.memory();
    let check = |most, threads| Memory::at_most(Bytes(most)).check(&scenario, &plan(5, threads));
    assert_eq!(check(2 * one, 2), Ok(()));
    let refused = check(2 * one - 1, 2).unwrap_err();
    let MemoryError { need, limit, .. } = refused;
    assert!(matches!(need, MemoryNeed::WouldTake { at_once: 2, .. }), "{need:?}");
    assert_eq!(limit, Limit::Caller);
    assert!(refused.to_string().contains(" for 2 replications at once, more than the "), "{refused}");
    // The number at once is at most the number of replications.
    assert_eq!(check(5 * one, 1000), Ok(()));
    let mut tell = |progress| panic!("{progress:?}");
    let ran = run(&scenario, &plan(5, 2), &Memory::at_most(Bytes(2 * one - 1)), &stop, &mut tell);
    assert_eq!(ran, Err(RunError::Memory(refused)));
}

/// A process takes some megabytes, however small the scenario.
#[test]
fn what_is_taken_already_counts() {
    let taken = Memory::at_most(Bytes(4096)).look().unwrap_err();
    assert!(matches!(taken.need, MemoryNeed::HasTaken(Bytes(octets)) if octets > 100_000), "{taken:?}");
    assert_eq!(taken.most, Bytes(4096));
    assert_eq!(Memory::at_most(Bytes(u64::MAX)).look(), Ok(()));
}
