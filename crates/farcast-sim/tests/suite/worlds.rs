//! Scenarios for tests: read from text, varied by settings, replicated.

use farcast_mftp::figures;
use farcast_scenario::document::{Document, DocumentError};
use farcast_sim::outcome::{Replication, TransferOutcome};
use farcast_sim::replicate::{HowMany, Plan, run};
use farcast_sim::scenario::Scenario;

/// The shipped scenario of MFTP over BGAN.
pub(crate) const BGAN: &str = include_str!("../../../../scenarios/mftp-bgan.toml");

/// A pipe that delays by a quarter of a second each way, and a transfer with the fixed timer to receivers that have
/// joined before and are told of it once. Only data is lost.
pub(crate) const PIPE: &str = r#"
receivers = 10
time_limit = "1 h"
[protocol]
preset = "draft"
file = "30 kB"
dtu_size = "500 B"
block_size = 20
rate = "1 Mbit/s"
group = "open_unlimited"
setup = "done"
announce_interval = "1 h"
pass_wait = "fixed"
nak_timing = "end_of_first_pass"
[protocol.srt]
time = "2 s"
[link.forward]
delay = "250 ms"
loses = "data"
[link.return]
delay = "250 ms"
"#;

/// `text` with these settings laid over it.
pub(crate) fn document(text: &str, settings: &[&str]) -> Result<Document, DocumentError> {
    let mut document = Document::parse("test.toml", text)?;
    for setting in settings {
        document.set(setting)?;
    }
    Ok(document)
}

/// What is wrong with it.
pub(crate) fn error(text: &str, settings: &[&str]) -> String {
    match document(text, settings).and_then(|document| Scenario::read(&document)) {
        Ok(_) => panic!("{settings:?} are allowed"),
        Err(error) => error.to_string(),
    }
}

/// The scenario, which must be sound.
pub(crate) fn scenario(text: &str, settings: &[&str]) -> Scenario {
    let read = document(text, settings).and_then(|document| Scenario::read(&document));
    read.unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

/// Replications on two threads, with the time of each receiver.
pub(crate) fn replications(scenario: &Scenario, seed: u64, count: u64) -> Vec<Replication> {
    let plan = Plan { seed, how_many: HowMany::Count(count), threads: 2, per_receiver: true };
    let all = run(scenario, &plan, &mut |_| true).unwrap();
    assert_eq!(all.len() as u64, count);
    all
}

/// One replication of `text` with `settings`.
pub(crate) fn once(text: &str, settings: &[&str]) -> Replication {
    replications(&scenario(text, settings), 1, 1).remove(0)
}

/// What the transfer of a replication, which has one, came to.
pub(crate) fn transfer(one: &Replication) -> &TransferOutcome {
    one.transfer.as_ref().unwrap_or_else(|| panic!("no transfer: {one:?}"))
}

/// The passes of a transfer with MFTP.
pub(crate) fn passes(one: &Replication) -> u64 {
    count(one, figures::PASSES)
}

/// The DTUs that each of them sent.
pub(crate) fn dtus_per_pass(one: &Replication) -> &[u64] {
    transfer(one).counts(figures::DTUS_PER_PASS).unwrap_or_else(|| panic!("no passes: {one:?}"))
}

/// The NAKs of its receivers.
pub(crate) fn naks_sent(one: &Replication) -> u64 {
    count(one, figures::NAKS_SENT)
}

/// A count that its protocol reports.
pub(crate) fn count(one: &Replication, name: &str) -> u64 {
    transfer(one).count(name).unwrap_or_else(|| panic!("no {name}: {one:?}"))
}

/// The completion time in nanoseconds; it is told in seconds, of which a double keeps them for more than a month.
pub(crate) fn completion_ns(replication: &Replication) -> u64 {
    let seconds = replication.completion_time_s.unwrap_or_else(|| panic!("unfinished: {replication:?}"));
    (seconds * 1e9).round() as u64
}
