//! Study of FTP with today's programs, by the method of two published studies: the kernel's TCP, vsftpd and curl
//! through an emulated link in real time, beside farcast's own TCP and FTP in simulation.
//!
//! Both read the same text of a link. The time is the one that the studies measure: from RETR to the last octet.

mod cell;
mod curl;
mod place;
mod runs;

use farcast_core::random::RandomStream;
use farcast_stats::Summary;

use crate::study::{Judged, Row, RowPlace, Rule, Runner, Study, StudyError, Verdict};

use cell::{CELLS, LinkCell, Tcp};
use place::{FILE, Ground};
use runs::TransferJob;

pub(super) const STUDY: Study = Study {
    name: "ftp-emulated",
    citation: "one file by FTP through the links of ftp-umts and mdp-ftp: Linux, vsftpd and curl behind an emulated link, \
               10 runs in real time of each (2 with --quick)",
    settings: (CELLS.len() * Tcp::BOTH.len()) as u64,
    replications: (200, 40),
    columns: ["simulated", "real time"],
    needs: place::needs,
    reproduce,
    plots: super::no_plots,
};

/// Replications for each run in real time.
const PER_RUN: u64 = 20;

/// Fewest runs of a cell: a single run has no interval.
const LEAST_RUNS: u64 = 2;

/// Relative deviation of an emulated mean from the simulated mean that always agrees.
const CLOSE: f64 = 0.03;
const AGREES: &str = "a mean in real time agrees if it is within 3 % of the simulated mean, or if the 95 % intervals of \
                      both overlap";
const INFORMATION: &str = "the TCP of the study's time is another than that of the programs, so nothing is concluded from \
                           how far they are apart";

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let simulated = CELLS.iter().map(|cell| Simulated::of(runner, cell)).collect::<Result<Vec<_>, _>>()?;
    let ground = Ground::prepare(runner.seed())?;
    let count = (runner.replications() / PER_RUN).max(LEAST_RUNS);
    let seed = |number, run| RandomStream::derive(runner.seed(), &[number, run]).bits();
    let of_cell = |(number, cell)| (0..count).map(move |run| TransferJob { cell, seed: seed(number, run) });
    // Cells with long transfers come first, so that none of them is left for the end.
    let jobs: Vec<_> = (0..).zip(&CELLS).flat_map(of_cell).collect();
    let times = runs::all(runner, &ground, &jobs)?;
    let mut rows = Vec::new();
    for (cell, simulated) in CELLS.iter().zip(&simulated) {
        let of = |(job, _): &(&TransferJob<'_>, &f64)| std::ptr::eq(job.cell, cell);
        let emulated: Vec<f64> = jobs.iter().zip(&times).filter(of).map(|(_, &time)| time).collect();
        rows.extend(simulated.rows(cell, &Summary::of(&emulated)?));
    }
    // The tables stand by link, each with the rows of an item together.
    rows.sort_by_key(|row| (row.row != CELLS[0].case(), row.item == ITEMS[1]));
    Ok(rows)
}

/// The compared item, and the item for information.
const ITEMS: [&str; 2] = ["from RETR to the last octet, s", "likewise, the study's TCP simulated, s"];

/// Times of a cell in simulation.
struct Simulated {
    /// Times with the TCP of the programs.
    kernel: Summary,
    /// Times with the TCP of the study.
    study: Summary,
}

impl Simulated {
    fn of(runner: &Runner<'_>, cell: &LinkCell) -> Result<Self, StudyError> {
        let times = |tcp| Ok::<_, StudyError>(Summary::of(&cell.simulate(runner, tcp)?)?);
        Ok(Self { kernel: times(Tcp::Kernel)?, study: times(Tcp::Study)? })
    }

    fn rows(&self, cell: &LinkCell, emulated: &Summary) -> [Row; 2] {
        let row = |item, judged| {
            Row::new(STUDY.name, RowPlace { item, row: cell.case(), column: cell.column }, 3, judged)
        };
        [row(ITEMS[0], compare(&self.kernel, emulated)), row(ITEMS[1], beside(&self.study, emulated))]
    }
}

/// Returns the verdict on the mean in real time.
fn compare(simulated: &Summary, emulated: &Summary) -> Judged {
    let both = [simulated, emulated].map(|one| one.ci95_half_width.unwrap_or(0.0));
    let reach = (CLOSE * simulated.mean).max(both[0] + both[1]);
    let within = (simulated.mean - reach, simulated.mean + reach);
    let agrees = within.0 <= emulated.mean && emulated.mean <= within.1;
    Judged {
        published: Some(simulated.mean),
        farcast: emulated.mean,
        ci95_half_width: emulated.ci95_half_width,
        verdict: if agrees { Verdict::Agrees } else { Verdict::Differs },
        rule: Rule { sentence: AGREES, agrees_within: Some(within) },
    }
}

/// Returns the mean in real time beside that of the study's TCP, without a verdict.
fn beside(study: &Summary, emulated: &Summary) -> Judged {
    Judged {
        published: Some(study.mean),
        farcast: emulated.mean,
        ci95_half_width: emulated.ci95_half_width,
        verdict: Verdict::Undetermined,
        rule: Rule { sentence: INFORMATION, agrees_within: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the summary of two values around a mean. By Student's t with one degree of freedom, its interval is
    /// 12.706 times their half distance.
    fn summary(mean: f64, half_distance: f64) -> Summary {
        Summary::of(&[mean - half_distance, mean + half_distance]).unwrap()
    }

    #[test]
    fn means_agree_within_3_percent_or_with_overlapping_intervals() {
        let exact = summary(10.0, 0.0);
        for (mean, expected) in
            [(10.29, Verdict::Agrees), (10.31, Verdict::Differs), (9.69, Verdict::Differs)]
        {
            assert_eq!(compare(&exact, &summary(mean, 0.0)).verdict, expected, "{mean}");
        }
        // Half widths of 1.2706 and 2.5412 reach 3.8118 from one mean to the other.
        let (wide, wider) = (|mean| summary(mean, 0.1), |mean| summary(mean, 0.2));
        assert_eq!(compare(&wide(10.0), &wider(13.81)).verdict, Verdict::Agrees);
        assert_eq!(compare(&wide(10.0), &wider(13.82)).verdict, Verdict::Differs);
        assert_eq!(compare(&wide(10.0), &wider(6.18)).verdict, Verdict::Differs);
    }
}
