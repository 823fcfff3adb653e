//! Any bytes as a scenario with settings: reading never panics, and what is read and small can be simulated.
#![no_main]

use farcast_core::{Span, Time};
use farcast_mftp::Pace;
use farcast_scenario::document::Document;
use farcast_sim::replicate::replicate;
use farcast_sim::scenario::Scenario;
use libfuzzer_sys::fuzz_target;

/// Returns `true` if the scenario runs fast enough for a fuzzer.
fn is_small(scenario: &Scenario) -> bool {
    // Only the settings of a flow limit the data that it sends.
    let Some(sender) = scenario.sender().filter(|_| scenario.flows() == 0) else { return false };
    let Pace::Rate { rate, .. } = sender.pace else { return false };
    // The pace and the repetitions bound how much may leave within the time limit.
    let patient = [sender.announce_interval, sender.late_announce_interval, sender.completion_interval];
    scenario.receivers() <= 50
        && sender.product.size <= 20_000
        && sender.dtu_size >= 20
        && scenario.time_limit() <= Time::ZERO + Span::from_secs(60)
        && rate.as_bps() <= 10_000_000
        && patient.iter().all(|&span| span >= Span::from_millis(10))
        && sender.status_retry_count <= 100
        && sender.repeats <= 100
}

fuzz_target!(|text: &str| {
    // Lines behind a form feed are settings.
    let mut parts = text.split('\u{c}');
    let Ok(mut document) = Document::parse("fuzz.toml", parts.next().unwrap_or_default()) else { return };
    for setting in parts.take(20) {
        let _ = document.set(setting);
    }
    let scenario = match Scenario::read(&document) {
        Ok(scenario) => scenario,
        Err(error) => {
            let sentence = error.to_string();
            assert!(!sentence.contains('\n') && sentence.len() < 4000, "one sentence: {sentence}");
            return;
        }
    };
    if is_small(&scenario) {
        let _ = replicate(&scenario, 1, 0, false);
    }
});
