//! Transfers of the report by MDP: its 64 files in one session, in two readings of what it leaves open; its
//! comparison with FTP; and further settings of the link's simulator.

use farcast_stats::{Summary, TukeyHsd, tukey_hsd};

use super::session::{MdpReading, Session};
use super::{FURTHER, FileCell, RUNS as FTP_RUNS, STUDY, published_runs};
use crate::study::{Judged, Row, RowPlace, Rule, Runner, StudyError, Verdict, rules};

/// The published runs.
const RUNS: &str = include_str!("../../../vectors/mdp-ftp/mdp_runs.csv");

/// Number of settings that are simulated here.
pub(super) const SETTINGS: u64 = (2 * CHANNELS.len() + FURTHER.len()) as u64;

/// Bit error rates as the tables of runs write them, each with the errors in a vector of ten million bits (Table 2).
const CHANNELS: [(&str, u32); 4] = [("0", 0), ("1e-6", 10), ("1e-5", 100), ("1e-4", 1000)];

/// Frame of the published runs, in octets.
const FRAME: u32 = 1500;

/// Names of the files' sizes, each with its title here.
const FILES: [(&str, &str); 4] = [
    ("10K", "a file of 10 KB"),
    ("100K", "a file of 100 KB"),
    ("1M", "a file of 1 MB"),
    ("10M", "a file of 10 MB"),
];

/// Order of the files in Table 1, by sizes.
const ORDER: [&str; 64] = [
    "100K", "1M", "100K", "10M", "100K", "10M", "100K", "10M", "10M", "100K", "1M", "10K", "10M", "1M", "1M",
    "10K", "10K", "1M", "10M", "1M", "10K", "100K", "100K", "100K", "1M", "100K", "100K", "1M", "10K", "10K",
    "10M", "10M", "10K", "10M", "10K", "10K", "10K", "100K", "10K", "10K", "10M", "1M", "1M", "10M", "100K",
    "100K", "10K", "100K", "10M", "1M", "1M", "10K", "1M", "100K", "10M", "1M", "1M", "10K", "1M", "10K",
    "100K", "10M", "10M", "10M",
];

const WHOLE_SECONDS: &str = "without errors nothing is drawn but escapes: a mean agrees within 1 %, or within what 16 \
                             clocks of whole seconds leave open, 0.27 s";
const ONE_VECTOR: &str = "all files of a session meet one vector of errors, so that the mean of its 16 runs counts as \
                          one run: it agrees if it lies in the 95 % prediction interval for one more session";
const NOT_ALL: &str = "not all our files arrive, so there is no mean";
const NO_RUNS: &str = "the report has no such runs";
const SHARE: &str = "without errors nothing is drawn but escapes: a share agrees within 1 %";
const PAIRED: &str = "a difference agrees if both it and the published one, of runs in pairs, are significant with the \
                      same sign, or neither is (95 %)";
const ARITHMETIC: &str = "the report's numbers by its equations (4) to (7), computed from its own runs: one agrees if \
                          it rounds to the printed one";

/// Greatest deviation of a mean of 16 whole seconds from the mean of the times. One standard deviation is at most
/// 0.125, if half of the clocks show a second more; Student's t of 15 degrees of freedom multiplies it.
const CLOCK: f64 = 0.27;

/// Rate of the channel in (10), in bit/s.
const CHANNEL_BPS: f64 = 88_000.0;

/// Sessions in a reading and on a channel: the seconds of each file, in the order of [`ORDER`].
type Sessions = Vec<Vec<Option<f64>>>;

/// Adds the rows of MDP, and those of its comparison with `ftp`, which has the cells of each file.
pub(super) fn rows(
    runner: &Runner<'_>,
    ftp: &[(&str, Vec<FileCell<'_>>)],
    rows: &mut Vec<Row>,
) -> Result<(), StudyError> {
    let mut compared = Vec::new();
    for (reading, item, share, most) in [
        (MdpReading::A, "MDP, reading A, s", "MDP, reading A, throughput (10), %", u64::MAX),
        // Without errors B differs little from A; with errors it only shows how far off it is.
        (
            MdpReading::B,
            "MDP, reading B, s",
            "MDP, reading B, throughput (10), %",
            (runner.replications() / 8).max(2),
        ),
    ] {
        let mut all = Vec::new();
        for (ber, errors) in CHANNELS {
            let session = Session { reading, files: &ORDER, errors, settings: &[] };
            all.push((ber, session.times(runner, most)?));
        }
        for (name, title) in FILES {
            for (ber, sessions) in &all {
                let judged = judge(name, ber, sessions)?;
                rows.push(Row::new(
                    STUDY.name,
                    RowPlace { item, row: title, column: &format!("BER {ber}") },
                    2,
                    judged,
                ));
            }
        }
        if let Some(judged) = throughput(reading, &all[0].1)? {
            rows.push(Row::new(
                STUDY.name,
                RowPlace { item: share, row: FILES[3].1, column: "BER 0" },
                1,
                judged,
            ));
        }
        if reading == MdpReading::A {
            compared = all;
        }
    }
    further(runner, rows)?;
    compare(&compared, ftp, rows)?;
    arithmetic(rows)
}

/// Returns the times of the files of a size in a session; `None` if one never arrived.
fn times(name: &str, session: &[Option<f64>]) -> Option<Vec<f64>> {
    ORDER.iter().zip(session).filter(|(of, _)| **of == name).map(|(_, time)| *time).collect()
}

/// Returns the mean of the files of a size in each session.
fn means(name: &str, sessions: &Sessions) -> Option<Vec<f64>> {
    let mean = |session: &Vec<Option<f64>>| {
        times(name, session).map(|times| times.iter().sum::<f64>() / times.len() as f64)
    };
    sessions.iter().map(mean).collect()
}

fn judge(name: &str, ber: &str, sessions: &Sessions) -> Result<Judged, StudyError> {
    let Some(means) = means(name, sessions) else {
        let arrived = sessions.iter().flatten().filter(|time| time.is_some()).count();
        return Ok(rules::unpublished(arrived as f64, None, NOT_ALL));
    };
    let ours = Summary::of(&means)?;
    let Some(runs) = published_runs(RUNS, name, ber, FRAME) else {
        return Ok(rules::unpublished(ours.mean, ours.ci95_half_width, NO_RUNS));
    };
    let published = Summary::of(&runs)?.mean;
    if ber == "0" {
        return Ok(within(published, &ours, (0.01 * published).max(CLOCK), WHOLE_SECONDS));
    }
    let mut judged = rules::mean(published, 1, &ours)?;
    judged.rule.sentence = ONE_VECTOR;
    Ok(judged)
}

fn within(published: f64, ours: &Summary, half: f64, sentence: &'static str) -> Judged {
    let agrees = (ours.mean - published).abs() <= half;
    Judged {
        published: Some(published),
        farcast: ours.mean,
        ci95_half_width: ours.ci95_half_width,
        verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
        rule: Rule { sentence, agrees_within: Some((published - half, published + half)) },
    }
}

/// Returns the share of the channel of 10 MB without errors, which the report gives as 97.6 %.
fn throughput(reading: MdpReading, sessions: &Sessions) -> Result<Option<Judged>, StudyError> {
    const PUBLISHED: f64 = 97.6;
    let Some(means) = means("10M", sessions) else { return Ok(None) };
    let bits = 8.0 * reading.octets("10M") as f64;
    let shares: Vec<f64> = means.iter().map(|mean| 100.0 * bits / mean / CHANNEL_BPS).collect();
    Ok(Some(within(PUBLISHED, &Summary::of(&shares)?, 0.01 * PUBLISHED, SHARE)))
}

/// Adds the rows of sessions with one file and further settings.
fn further(runner: &Runner<'_>, rows: &mut Vec<Row>) -> Result<(), StudyError> {
    for (column, settings) in FURTHER {
        let session = Session { reading: MdpReading::A, files: &["1M"], errors: 100, settings };
        let times: Option<Vec<f64>> = session.times(runner, u64::MAX)?.into_iter().flatten().collect();
        let judged = match times {
            Some(times) => {
                let ours = Summary::of(&times)?;
                rules::unpublished(ours.mean, ours.ci95_half_width, NO_RUNS)
            }
            None => rules::unpublished(f64::NAN, None, NOT_ALL),
        };
        if judged.farcast.is_finite() {
            rows.push(Row::new(
                STUDY.name,
                RowPlace { item: "MDP, reading A, s", row: FILES[2].1, column },
                2,
                judged,
            ));
        }
    }
    Ok(())
}

/// Adds the rows of MDP less FTP. Their runs form pairs: the n-th file of a size, and here the n-th replication.
fn compare(
    mdp: &[(&str, Sessions)],
    ftp: &[(&str, Vec<FileCell<'_>>)],
    rows: &mut Vec<Row>,
) -> Result<(), StudyError> {
    for (name, cells) in ftp {
        let Some((_, title)) = FILES.iter().find(|(of, _)| of == name) else { continue };
        for ((ber, sessions), cell) in mdp.iter().zip(cells) {
            let frame = cell.channel.frame;
            let Some(ours) = cell.times(|one| one.client) else { continue };
            let first = |session: &Vec<Option<f64>>| times(name, session)?.first().copied();
            let Some(theirs) = sessions.iter().map(first).collect::<Option<Vec<f64>>>() else { continue };
            let ours = Summary::of(&differences(&theirs, &ours))?;
            let published = published_runs(RUNS, name, ber, FRAME)
                .zip(published_runs(FTP_RUNS, name, ber, frame))
                .map(|(mdp, ftp)| Summary::of(&differences(&mdp, &ftp)));
            let judged = match published.transpose()? {
                Some(published) => Judged {
                    published: Some(published.mean),
                    farcast: ours.mean,
                    ci95_half_width: ours.ci95_half_width,
                    verdict: if sign(&ours) == sign(&published) { Verdict::Agrees } else { Verdict::Differs },
                    rule: Rule { sentence: PAIRED, agrees_within: None },
                },
                None => rules::unpublished(ours.mean, ours.ci95_half_width, NO_RUNS),
            };
            let place = RowPlace {
                item: "MDP less FTP, s",
                row: title,
                column: &format!("BER {ber}, FTP's frames of {frame}"),
            };
            rows.push(Row::new(STUDY.name, place, 2, judged));
        }
    }
    Ok(())
}

fn differences(mdp: &[f64], ftp: &[f64]) -> Vec<f64> {
    mdp.iter().zip(ftp).map(|(mdp, ftp)| mdp - ftp).collect()
}

/// Returns `Some(true)` for a mean significantly above 0, `Some(false)` for one below, and otherwise `None`.
fn sign(difference: &Summary) -> Option<bool> {
    let half = difference.ci95_half_width.unwrap_or(f64::INFINITY);
    (difference.mean.abs() > half).then_some(difference.mean > 0.0)
}

/// Adds the report's example of Tukey's difference, 100 KB without errors (Table 9), from its own runs.
fn arithmetic(rows: &mut Vec<Row>) -> Result<(), StudyError> {
    let runs = published_runs(RUNS, "100K", "0", FRAME).zip(published_runs(FTP_RUNS, "100K", "0", FRAME));
    let Some((mdp, ftp)) = runs else { return Ok(()) };
    let TukeyHsd { mean_square, q, difference } = tukey_hsd(&[&mdp, &ftp], 0.95)?;
    let squares: f64 = mdp.iter().chain(&ftp).map(|time| time * time).sum();
    let of_sums =
        [&mdp, &ftp].map(|runs| runs.iter().sum::<f64>().powi(2)).iter().sum::<f64>() / mdp.len() as f64;
    let means = Summary::of(&differences(&mdp, &ftp))?.mean;
    let numbers = [
        ("T of (6), s^2", 2262.721, squares, 3),
        ("A of (7), s^2", 2339.52, of_sums, 2),
        ("MSe of (5), s^2", 2.55, mean_square, 2),
        ("q of 2 means with 30 degrees of freedom", 2.88, q, 2),
        ("difference of (4), s", 1.14, difference, 2),
        ("difference of the means, s", 2.1625, means, 4),
    ];
    for (item, printed, computed, decimals) in numbers {
        let mut judged = rules::printed(printed, computed, decimals);
        judged.rule.sentence = ARITHMETIC;
        let place =
            RowPlace { item, row: "the report's Table 9, from its own runs", column: "100 KB, BER 0" };
        rows.push(Row::new(STUDY.name, place, decimals as usize, judged));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
