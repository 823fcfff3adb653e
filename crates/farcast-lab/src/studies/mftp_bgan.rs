//! Thilakawardana, Acar, Hale and Tafazolli, "Impact of Status Retry Timer values on MFTP performance over BGAN
//! satellite multicast" (PIMRC 2007).
//!
//! Every share in the paper's text is a multiple of one fourteenth, so its runs per point are 14 and not the 100 that
//! the text says. All 15 settings have the parameters of the shipped scenario; only receivers, loss and n change.

use farcast_sim::scenario::Scenario;
use farcast_sim::scenario::mftp::{self, figures::PASSES};
use farcast_stats::Summary;

use crate::shipped;
use crate::study::{
    Judged, Row, RowPlace, Runner, Study, StudyError,
    rules::{self, Compared, RangeEnd},
};

pub(super) const STUDY: Study = Study {
    name: "mftp-bgan",
    citation: "S. Thilakawardana, G. Acar, B. Hale and R. Tafazolli, Impact of Status Retry Timer values on MFTP \
               performance over BGAN satellite multicast (PIMRC 2007)",
    settings: (CASES.len() * N.len()) as u64,
    replications: (2000, 100),
    columns: super::PUBLISHED,
    needs: super::nothing,
    reproduce,
    plots: super::no_plots,
};

/// Reason for which paired differences have no published counterpart.
const UNPAIRED: &str = "the paper compares means and not paired runs; ours have common random numbers";
/// Number of runs behind each published point.
const RUNS: u64 = 14;
/// Multiples n of the round trip in the Status Retry Timer.
const N: [u32; 5] = [1, 2, 4, 6, 10];
/// Published timer in seconds for each n (Table 1).
const TIMERS: [f64; 5] = [7.845, 8.845, 10.845, 12.845, 16.845];
/// The n that the paper finds best, and above which the delay grows.
const BEST: u32 = 4;

/// Numbers of passes, each with the share of runs in per cent that took it.
type Shares = &'static [(u64, f64)];

/// One of the paper's three cases, with its printed numbers.
struct Case {
    receivers: u32,
    per: &'static str,
    /// The fewest and the most passes of any run.
    passes: (u64, u64),
    /// The mean delay in seconds at the best n.
    delay: f64,
    /// Shares for each n.
    shares: [Shares; 5],
}

const CASES: [Case; 3] = [
    Case {
        receivers: 20,
        per: "0.001",
        passes: (2, 3),
        delay: 54.1221,
        shares: [
            &[(2, 21.0), (3, 79.0)],
            &[(2, 57.0), (3, 43.0)],
            &[(2, 93.0), (3, 7.0)],
            &[(2, 93.0), (3, 7.0)],
            &[(2, 93.0), (3, 7.0)],
        ],
    },
    Case {
        receivers: 40,
        per: "0.005",
        passes: (3, 5),
        delay: 81.065,
        shares: [
            &[(3, 7.0), (4, 79.0), (5, 14.0)],
            &[(3, 36.0), (4, 57.0), (5, 7.0)],
            &[(3, 79.0), (4, 21.0), (5, 0.0)],
            &[(3, 79.0), (4, 21.0), (5, 0.0)],
            &[(3, 79.0), (4, 21.0), (5, 0.0)],
        ],
    },
    Case {
        receivers: 80,
        per: "0.005",
        passes: (3, 5),
        delay: 91.0157,
        shares: [
            &[(3, 0.0), (4, 100.0), (5, 0.0)],
            &[(3, 22.0), (4, 64.0), (5, 14.0)],
            &[(3, 78.0)],
            &[(3, 64.0)],
            &[(3, 57.0)],
        ],
    },
];

/// One point of a figure: a case and an n.
struct FigureCell {
    n: u32,
    shares: Shares,
    /// The Status Retry Timer in seconds.
    timer: f64,
    /// Time at which the last receiver had the file, in seconds, of each replication.
    delays: Vec<f64>,
    /// Number of passes of each replication.
    passes: Vec<u64>,
}

impl FigureCell {
    fn column(&self) -> String {
        format!("n = {}", self.n)
    }

    fn replications(&self) -> u64 {
        self.passes.len() as u64
    }

    /// Returns the number of replications that took `passes` passes.
    fn count(&self, passes: u64) -> u64 {
        self.passes.iter().filter(|&&taken| taken == passes).count() as u64
    }
}

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let mut rows = Vec::new();
    for case in &CASES {
        let cells = N.into_iter().zip(case.shares).map(|(n, shares)| simulate(runner, case, n, shares));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        if rows.is_empty() {
            rows.extend(timers(&cells));
        }
        compare(case, &cells, &mut rows)?;
    }
    Ok(rows)
}

/// Simulates a point, as does
/// `farcast simulate mftp-bgan --set receivers=.. --set link.forward.per=.. --set protocol.srt.n=..`.
fn simulate(runner: &Runner<'_>, case: &Case, n: u32, shares: Shares) -> Result<FigureCell, StudyError> {
    let mut document = shipped::document(STUDY.name)?;
    for setting in [
        format!("receivers={}", case.receivers),
        format!("link.forward.per={}", case.per),
        format!("protocol.srt.n={n}"),
    ] {
        document.set(&setting)?;
    }
    let scenario = Scenario::read(&document)?;
    let config = scenario.sender().expect("the shipped scenario has a transfer").clone();
    let timer = mftp::sender(config)
        .map_err(|error| StudyError::Internal(error.into()))?
        .status_retry()
        .as_secs_f64();
    let replications = runner.run(&scenario)?;
    let delays: Option<Vec<f64>> = replications.iter().map(|one| one.completion_time_s).collect();
    let delays = delays.ok_or_else(|| {
        StudyError::Unfinished(format!(
            "{}: with {} receivers and n = {n} a replication reached the time limit",
            STUDY.name, case.receivers
        ))
    })?;
    let passes = replications.iter().filter_map(|one| one.transfer.as_ref()?.count(PASSES)).collect();
    Ok(FigureCell { n, shares, timer, delays, passes })
}

/// Returns the rows of Table 1.
fn timers(cells: &[FigureCell]) -> Vec<Row> {
    let row = |(cell, published): (&FigureCell, f64)| {
        let place = RowPlace { item: "Status Retry Timer, s", row: "all cases", column: &cell.column() };
        Row::new(STUDY.name, place, 3, rules::printed(published, cell.timer, 3))
    };
    cells.iter().zip(TIMERS).map(row).collect()
}

/// Adds all rows of a case.
fn compare(case: &Case, cells: &[FigureCell], rows: &mut Vec<Row>) -> Result<(), StudyError> {
    let name = format!("{} receivers, PER {}", case.receivers, case.per);
    let mut add = |item: &str, column: &str, decimals, judged| {
        rows.push(Row::new(STUDY.name, RowPlace { item, row: &name, column }, decimals, judged));
    };
    for cell in cells {
        add("delay, s", &cell.column(), 2, delay(case, cell)?);
    }
    for passes in case.passes.0..=case.passes.1 {
        for cell in cells {
            add(&format!("runs with {passes} passes, %"), &cell.column(), 1, share(cell, passes)?);
        }
    }
    for cell in cells {
        add("runs with fewer or more passes, %", &cell.column(), 1, other_shares(case, cell)?);
    }
    for cell in cells {
        add("p-value of the passes", &cell.column(), 3, distribution(cell)?);
    }
    let settings: Vec<_> = cells.iter().map(|cell| cell.passes.clone()).collect();
    add("fewest passes", "", 0, rules::extreme(case.passes.0, RUNS, &settings, RangeEnd::Least));
    add("most passes", "", 0, rules::extreme(case.passes.1, RUNS, &settings, RangeEnd::Greatest));
    for other in differences(cells)? {
        let (mean, half) = other.difference;
        add(
            "delay above that at n = 4, s",
            &format!("n = {}", other.setting),
            2,
            rules::unpublished(mean, Some(half), UNPAIRED),
        );
    }
    add("n of the least delay", "", 0, rules::least_at(BEST.into(), &differences(cells)?));
    add("n from which the delay grows", "", 0, rules::grows_from(BEST.into(), &steps(cells)?));
    Ok(())
}

fn delay(case: &Case, cell: &FigureCell) -> Result<Judged, StudyError> {
    let ours = Summary::of(&cell.delays)?;
    if cell.n == BEST {
        return Ok(rules::mean(case.delay, RUNS, &ours)?);
    }
    Ok(rules::unpublished(ours.mean, ours.ci95_half_width, "the paper has it in a figure only"))
}

fn share(cell: &FigureCell, passes: u64) -> Result<Judged, StudyError> {
    let (ours, all) = (cell.count(passes), cell.replications());
    match cell.shares.iter().find(|(printed, _)| *printed == passes) {
        Some(&(_, share)) => Ok(rules::share(share, RUNS, ours, all)?),
        None => unpublished_share(ours, all),
    }
}

fn other_shares(case: &Case, cell: &FigureCell) -> Result<Judged, StudyError> {
    let inside: u64 = (case.passes.0..=case.passes.1).map(|passes| cell.count(passes)).sum();
    unpublished_share(cell.replications() - inside, cell.replications())
}

fn unpublished_share(ours: u64, all: u64) -> Result<Judged, StudyError> {
    let (share, half) = rules::our_share(ours, all)?;
    Ok(rules::unpublished(share, Some(half), "the paper does not print this share"))
}

/// Returns the probability, by our shares, of a table of 14 runs that is no more probable than the paper's.
fn distribution(cell: &FigureCell) -> Result<Judged, StudyError> {
    const WHY: &str = "the exact multinomial test of the paper's 14 runs against our shares, one half added to each of \
                       our counts; below 0.05 they hardly go together; the verdicts stand at the shares";
    let runs = |share: f64| (share * RUNS as f64 / 100.0).round() as u64;
    let mut theirs: Vec<u64> = cell.shares.iter().map(|&(_, share)| runs(share)).collect();
    let mut ours: Vec<u64> = cell.shares.iter().map(|&(passes, _)| cell.count(passes)).collect();
    // If the paper prints one share, all other passes are one category.
    theirs.push(RUNS - theirs.iter().sum::<u64>());
    ours.push(cell.replications() - ours.iter().sum::<u64>());
    Ok(rules::unpublished(rules::distribution(&theirs, &ours)?, None, WHY))
}

/// Returns the delay of every other n less the delay of the best.
fn differences(cells: &[FigureCell]) -> Result<Vec<Compared>, StudyError> {
    let best = cells.iter().find(|cell| cell.n == BEST);
    let others = cells.iter().filter(|cell| cell.n != BEST);
    let compared = others
        .zip(std::iter::repeat(best))
        .filter_map(|(cell, best)| best.map(|best| Compared::of(cell.n.into(), &cell.delays, &best.delays)));
    Ok(compared.collect::<Result<_, _>>()?)
}

/// Returns, for each n, the delay of the next n less its own.
fn steps(cells: &[FigureCell]) -> Result<Vec<Compared>, StudyError> {
    let step = |pair: &[FigureCell]| Compared::of(pair[0].n.into(), &pair[1].delays, &pair[0].delays);
    Ok(cells.windows(2).map(step).collect::<Result<_, _>>()?)
}
