use std::sync::atomic::AtomicBool;

use super::*;
use crate::study::{Effort, Options};

#[test]
fn table_1_has_16_files_of_each_size() {
    for (name, _) in FILES {
        assert_eq!(ORDER.iter().filter(|of| **of == name).count(), 16, "{name}");
        for (ber, _) in CHANNELS {
            assert_eq!(
                published_runs(RUNS, name, ber, FRAME).map(|runs| runs.len()),
                Some(16),
                "{name} {ber}"
            );
        }
    }
}

/// Checks the readings by large files: 1 and 10 MB take the printed times within 1 % without errors in both readings,
/// and within 5 % with errors in A.
#[test]
fn large_files_take_as_long_as_they_took() {
    let stop = AtomicBool::new(false);
    let options = Options { effort: Effort::Replications(4), ..Options::new(&stop) };
    let mut progress = |_| {};
    let runner = Runner::new(&STUDY, &options, &mut progress);
    let published = |name, ber: &str| {
        // One run of 1230 s among 15 of 1109 to 1115 s (Appendix 3).
        let runs = published_runs(RUNS, name, ber, FRAME).expect("a row");
        let runs: Vec<f64> = runs.into_iter().filter(|&time| (time - 1230.0).abs() > 0.5).collect();
        Summary::of(&runs).expect("runs").mean
    };
    for (reading, errors, ber, most) in [
        (MdpReading::A, 0, "0", 0.01),
        (MdpReading::B, 0, "0", 0.01),
        (MdpReading::A, 100, "1e-5", 0.05),
        (MdpReading::A, 1000, "1e-4", 0.05),
    ] {
        let session = Session { reading, files: &ORDER, errors, settings: &[] };
        let sessions = session.times(&runner, u64::MAX).expect("sessions");
        for name in ["1M", "10M"] {
            let means = means(name, &sessions).expect("every file arrives");
            let (ours, theirs) = (Summary::of(&means).expect("means").mean, published(name, ber));
            // The one vector of errors, as drawn, makes a few per cent at 1e-4.
            assert!((ours / theirs - 1.0).abs() < most, "{reading:?} {ber} {name}: {ours} and {theirs}");
        }
    }
}
