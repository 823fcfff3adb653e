//! Scenarios for tests: read from text, changed by settings, replicated.

use farcast_mftp::figures;
use farcast_scenario::document::{Document, DocumentError};
use farcast_sim::outcome::{Replication, TransferOutcome};
use farcast_sim::replicate::{HowMany, Plan, run};
use farcast_sim::scenario::Scenario;

/// Shipped scenario of MFTP over BGAN.
pub(crate) const BGAN: &str = include_str!("../../../../scenarios/mftp-bgan.toml");

/// Scenario of a pipe with a delay of a quarter of a second each way, and a transfer with the fixed timer to receivers
/// that have joined before. Only data is lost.
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

/// A return of 64 kbit/s for all receivers, and a loss of a hundredth.
pub(crate) const THIN: &str = r#"
receivers = 1000
time_limit = "20 min"
[protocol]
file = "3 MB"
rate = "1.9 Mbit/s"
[link.forward]
rate = "2 Mbit/s"
delay = "270 ms"
per = 0.01
[link.return]
rate = "64 kbit/s"
delay = "270 ms"
"#;

/// Returns `text` with these settings.
pub(crate) fn document(text: &str, settings: &[&str]) -> Result<Document, DocumentError> {
    let mut document = Document::parse("test.toml", text)?;
    for setting in settings {
        document.set(setting)?;
    }
    Ok(document)
}

/// Returns the error message for these settings.
pub(crate) fn error(text: &str, settings: &[&str]) -> String {
    match document(text, settings).and_then(|document| Scenario::read(&document)) {
        Ok(_) => panic!("{settings:?} are allowed"),
        Err(error) => error.to_string(),
    }
}

/// Returns the scenario, which must be valid.
pub(crate) fn scenario(text: &str, settings: &[&str]) -> Scenario {
    let read = document(text, settings).and_then(|document| Scenario::read(&document));
    read.unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

/// Runs replications on two threads, with the time of each receiver.
pub(crate) fn replications(scenario: &Scenario, seed: u64, count: u64) -> Vec<Replication> {
    let plan = Plan { seed, how_many: HowMany::Count(count), threads: 2, per_receiver: true };
    let all = run(scenario, &plan, &mut |_| true).unwrap();
    assert_eq!(all.len() as u64, count);
    all
}

/// Runs one replication of `text` with `settings`.
pub(crate) fn once(text: &str, settings: &[&str]) -> Replication {
    replications(&scenario(text, settings), 1, 1).remove(0)
}

/// Returns the outcome of the transfer of a replication, which has one.
pub(crate) fn transfer(one: &Replication) -> &TransferOutcome {
    one.transfer.as_ref().unwrap_or_else(|| panic!("no transfer: {one:?}"))
}

/// Returns the passes of a transfer with MFTP.
pub(crate) fn passes(one: &Replication) -> u64 {
    count(one, figures::PASSES)
}

/// Returns the DTUs that each pass sent.
pub(crate) fn dtus_per_pass(one: &Replication) -> &[u64] {
    transfer(one).counts(figures::DTUS_PER_PASS).unwrap_or_else(|| panic!("no passes: {one:?}"))
}

/// Returns the NAKs of the receivers.
pub(crate) fn naks_sent(one: &Replication) -> u64 {
    count(one, figures::NAKS_SENT)
}

/// Returns a count that the protocol reports.
pub(crate) fn count(one: &Replication, name: &str) -> u64 {
    transfer(one).count(name).unwrap_or_else(|| panic!("no {name}: {one:?}"))
}

/// Returns the completion time in nanoseconds. It is reported in seconds, which a double holds exactly enough for more
/// than a month.
pub(crate) fn completion_ns(replication: &Replication) -> u64 {
    let seconds = replication.completion_time_s.unwrap_or_else(|| panic!("unfinished: {replication:?}"));
    (seconds * 1e9).round() as u64
}
