//! Studies as a library runs them: rows, progress, refusals, files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use farcast_lab::Progress;
use farcast_lab::studies;
use farcast_lab::study::{Effort, Options, Results, Row, Study, StudyError, Verdict, files};

fn few(stop: &AtomicBool, threads: usize) -> Options<'_> {
    let threads = NonZeroUsize::new(threads).unwrap();
    Options { effort: Effort::Replications(2), threads, ..Options::new(stop) }
}

#[test]
fn each_is_found_by_its_name() {
    let names: Vec<_> = studies::all().iter().map(Study::name).collect();
    let simulated = [
        "mftp-bgan",
        "mdp-ftp",
        "ftp-umts",
        "tcp-mlppp",
        "pgm-satellite",
        "tcp-reference",
        "pgm-reference",
        "efficiency",
    ];
    assert_eq!(names[..8], simulated);
    let in_real_time: &[&str] =
        if cfg!(feature = "emulator") { &["agreement", "ftp-emulated"] } else { &["ftp-emulated"] };
    assert_eq!(&names[8..], in_real_time);
    for name in names {
        let study = studies::named(name).unwrap();
        assert_eq!(study.name(), name);
        assert!(!study.citation().is_empty() && study.settings() > 0);
        assert!(study.replications(Effort::Full) > study.replications(Effort::Quick));
    }
    let unknown = studies::named("nothing").unwrap_err();
    assert!(matches!(&unknown, StudyError::Unknown { name, .. } if name == "nothing"));
    assert!(unknown.to_string().contains("mftp-bgan, mdp-ftp, "), "{unknown}");
}

#[test]
fn rows_do_not_depend_on_threads_and_progress_counts_them_all() {
    let (study, stop) = (studies::named("mftp-bgan").unwrap(), AtomicBool::new(false));
    let mut last = (0, 0);
    let mut tell = |progress| match progress {
        Progress::Replications { done, total, .. } => {
            assert!(done >= last.0, "{done} after {last:?}");
            last = (done, total);
        }
        other => panic!("{other:?}"),
    };
    let rows = study.run(&few(&stop, 1), &mut tell).unwrap();
    assert_eq!(last, (30, 30), "15 settings with 2 replications each");
    assert_eq!(rows, study.run(&few(&stop, 2), &mut |_| {}).unwrap());
    let other = Options { seed: 2, ..few(&stop, 2) };
    assert_ne!(rows, study.run(&other, &mut |_| {}).unwrap());
    // Arithmetic of the paper: 488 DTUs of 526 octets at 300 kbit/s, and a second.
    let timer = rows.iter().find(|row| row.item == "Status Retry Timer, s" && row.column == "n = 1");
    let timer: &Row = timer.unwrap();
    assert!((timer.farcast - (488.0 * 526.0 * 8.0 / 300_000.0 + 1.0)).abs() < 1e-8, "{timer:?}");
    assert_eq!((timer.published, timer.verdict), (Some(7.845), Verdict::Agrees));
}

/// The octets sent are above those of an ideal code; a code over the whole file adds little more than headers.
#[test]
fn efficiency_is_seen_beside_what_an_ideal_code_takes() {
    let (study, stop) = (studies::named("efficiency").unwrap(), AtomicBool::new(false));
    let mut settings = 0;
    let mut tell = |progress| {
        if let Progress::Replications { total, .. } = progress {
            settings = total / 2;
        }
    };
    let rows = study.run(&few(&stop, 2), &mut tell).unwrap();
    assert_eq!(settings, study.settings());
    let of = |way: &str| {
        let ratio = |row: &&Row| row.item.starts_with("octets on the wire") && row.row.starts_with(way);
        rows.iter()
            .filter(ratio)
            .map(|row| (row.item.clone(), row.column.clone(), row.clone()))
            .collect::<Vec<_>>()
    };
    let ideal = of("an ideal code");
    assert_eq!(ideal.len(), 3 * 6);
    let least = |row: &Row| {
        let loss = row.row.split(", ").last().unwrap();
        let same = |(item, column, ideal): &&(String, String, Row)| {
            (item, column) == (&row.item, &row.column) && ideal.row.ends_with(loss)
        };
        ideal.iter().find(same).unwrap().2.farcast
    };
    for (way, count, headers, slack) in [
        ("MFTP, repetition", 18, 68.0, f64::INFINITY),
        ("MFTP, automatic parity", 15, 68.0, 1.5),
        ("MDP", 15, 53.0, 1.14),
        ("NORM, reactive", 18, 60.0, 1.15),
        ("NORM, automatic", 18, 60.0, 1.08),
        ("one way", 18, 40.0, 1.01),
    ] {
        let rows = of(way);
        assert_eq!(rows.len(), count, "{way}");
        for (.., row) in rows {
            // Two replications are few: what they lose differs by chance.
            let least = least(&row) * (1.0 + headers / 1400.0);
            assert!(row.farcast > 0.985 * least && row.farcast < slack * least, "{least}: {row:?}");
            let is_judged = row.verdict != Verdict::NotPublished;
            assert_eq!(is_judged, row.column == "1000 receivers" && way != "MFTP, repetition", "{row:?}");
        }
    }
}

#[test]
fn a_flag_ends_a_study_without_a_result() {
    let (study, stop) = (studies::named("mftp-bgan").unwrap(), AtomicBool::new(false));
    let ended = study.run(&few(&stop, 1), &mut |_| stop.store(true, Ordering::Relaxed));
    assert!(matches!(ended, Err(StudyError::Interrupted { study: "mftp-bgan" })), "{ended:?}");
}

#[test]
fn what_a_study_needs_is_refused_before_it_runs() {
    let stop = AtomicBool::new(false);
    let one = Options { effort: Effort::Replications(1), ..Options::new(&stop) };
    let mut never = |progress| panic!("{progress:?}");
    for study in studies::all() {
        assert!(matches!(study.run(&one, &mut never), Err(StudyError::TooFew(1))), "{study:?}");
    }
    // The path of the emulating program was not given.
    let emulated = studies::named("ftp-emulated").unwrap();
    assert!(matches!(emulated.needs(&Options::new(&stop)), Err(StudyError::Missing(_))));
    studies::named("ftp-umts").unwrap().needs(&Options::new(&stop)).unwrap();
}

#[test]
fn files_hold_every_row_and_leave_nothing_half_written() {
    let (study, stop) = (studies::named("mftp-bgan").unwrap(), AtomicBool::new(false));
    let options = few(&stop, 2);
    let rows = study.run(&options, &mut |_| {}).unwrap();
    let count = rows.len();
    let json = serde_json::to_string_pretty(&rows).unwrap();
    let results = [Results::new(study, &options, rows)];
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("deep/results");
    files::make(&dir).unwrap();
    files::write(&dir, &results).unwrap();
    // Results are written again, over existing files.
    files::write(&dir, &results).unwrap();
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, files::NAMES);
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("reproduce.json"), json + "\n");
    let csv = read("reproduce.csv");
    let lines: Vec<_> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + count);
    assert!(
        lines[1].starts_with("mftp-bgan,\"Status Retry Timer, s\",all cases,n = 1,7.845,"),
        "{}",
        lines[1]
    );
    assert!(read("reproduce.md").contains("2 replications of each setting, seed 1"));
    let nowhere = files::write(Path::new("/proc/nothing"), &results).unwrap_err();
    assert!(nowhere.to_string().starts_with("cannot write /proc/nothing/reproduce.csv: "), "{nowhere}");
}
