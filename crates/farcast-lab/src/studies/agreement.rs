//! Study of agreement: the same link and the same engine in simulation, behind an emulated link in real time, and
//! beside the kernel's TCP on that link.
//!
//! A case is one document: the simulation reads it whole, the emulation reads its `[link]`, and the engines that run in
//! real time get the settings that the simulated ones have.

mod cases;
mod judge;
mod kernel;
mod mftp;
mod runs;
mod tunnel;

use farcast_core::random::RandomStream;
use farcast_emu::host::{Host, HostPosition};
use farcast_sim::outcome::{FlowCounts, Replication};

use crate::study::{Options, Row, RowPlace, Runner, Study, StudyError};
use cases::{CASES, Case, Protocol, RealMethod, Setting, Size};
use judge::{compare, compare_sizes};
use runs::{AgreementRun, Outcome};

pub(super) const STUDY: Study = Study {
    name: "agreement",
    citation: "the same link and the same engine in simulation and in real time, and the kernel's TCP; 10 runs in real \
               time of each (2 with --quick)",
    settings: cases::SETTINGS,
    replications: (200, 20),
    columns: ["simulated", "real time"],
    needs,
    reproduce,
    plots: super::no_plots,
};

/// Replications for each run in real time.
const PER_RUN: u64 = 20;
/// Fewest runs of a case in real time: a single run has no interval.
const LEAST_RUNS: u64 = 2;

/// Checks that this process may create hosts.
fn needs(_: &Options<'_>) -> Result<(), StudyError> {
    match Host::create(HostPosition::Hub, 1500) {
        Ok(_) => Ok(()),
        Err(error) => Err(StudyError::Missing(error.to_string())),
    }
}

fn reproduce(runner: &Runner<'_>) -> Result<Vec<Row>, StudyError> {
    let place = tempfile::tempdir()?;
    let numbered = (0_u64..).zip(&CASES);
    let settings = numbered.map(|(number, case)| Setting::new(case, &place.path().join(number.to_string())));
    let settings = settings.collect::<Result<Vec<_>, _>>()?;
    let count = (runner.replications() / PER_RUN).max(LEAST_RUNS);
    let simulated: Vec<_> =
        settings.iter().map(|setting| simulate(runner, setting, count)).collect::<Result<_, _>>()?;
    let mut jobs = Vec::new();
    // Neighbouring jobs are of different cases, so that a temporary disturbance of the machine affects no case alone.
    for run in 0..count {
        for (number, setting) in (0..).zip(&settings) {
            for (label, &way) in (0..).zip(setting.case.protocol.ways()) {
                let seed = RandomStream::derive(runner.seed(), &[number, label, run]).bits();
                jobs.push(AgreementRun { setting, size: setting.size(run), way, seed });
            }
        }
    }
    let outcomes = runs::all(runner, &jobs)?;
    let mut rows = Vec::new();
    for (setting, simulated) in settings.iter().zip(&simulated) {
        for &way in setting.case.protocol.ways() {
            let of = |(job, _): &(&AgreementRun<'_>, &Outcome)| {
                job.way == way && std::ptr::eq(job.setting, setting)
            };
            let real: Vec<_> = jobs.iter().zip(&outcomes).filter(of).map(|(_, outcome)| *outcome).collect();
            add_rows(setting.case, way, simulated, &real, &mut rows)?;
        }
    }
    Ok(rows)
}

/// Adds the rows of one way of running a case. `simulated` has the outcomes of each size.
fn add_rows(
    case: &Case,
    way: RealMethod,
    simulated: &[Vec<Outcome>],
    real: &[Outcome],
    rows: &mut Vec<Row>,
) -> Result<(), StudyError> {
    let mut add = |item: &str, decimals, of: fn(&Outcome) -> Option<f64>| {
        let theirs: Vec<f64> = real.iter().filter_map(of).collect();
        if theirs.is_empty() {
            return Ok::<_, StudyError>(());
        }
        let ours: Vec<Vec<f64>> =
            simulated.iter().map(|outcomes| outcomes.iter().filter_map(of).collect()).collect();
        let judged = match &*ours {
            [ours] => compare(ours, &theirs)?,
            sizes => compare_sizes(sizes, &theirs)?,
        };
        rows.push(Row::new(
            STUDY.name,
            RowPlace { item, row: case.name, column: way.column() },
            decimals,
            judged,
        ));
        Ok(())
    };
    add("completion time, s", 3, |outcome| Some(outcome.seconds))?;
    add("passes", 1, |outcome| outcome.passes)?;
    add("data segments sent", 1, |outcome| outcome.segments)
}

/// Returns the outcomes of the replications, for each of the sizes that `count` runs have.
fn simulate(runner: &Runner<'_>, setting: &Setting, count: u64) -> Result<Vec<Vec<Outcome>>, StudyError> {
    let most = if setting.case.draws { u64::MAX } else { 1 };
    let of_size = |size: &Size| {
        let replications = runner.run_at_most(&size.scenario, most)?;
        let outcomes = replications.iter().map(|one| outcome(setting.case.protocol, one));
        outcomes.collect::<Option<_>>().ok_or_else(|| {
            StudyError::Unfinished(format!(
                "{}: {}: a replication did not end",
                STUDY.name, setting.case.name
            ))
        })
    };
    setting.sizes.iter().take(count as usize).map(of_size).collect()
}

fn outcome(protocol: Protocol, one: &Replication) -> Option<Outcome> {
    match protocol {
        Protocol::Mftp { .. } => {
            let transfer = one.transfer.as_ref()?;
            mftp::simulated(transfer, one.completion_time_s? - transfer.data_begins_s?)
        }
        Protocol::Tcp { .. } => {
            let flow = one.flows.first()?;
            let FlowCounts::Tcp(counts) = &flow.counts else { return None };
            let segments = Some(counts.segments as f64);
            Some(Outcome { seconds: flow.completion_time_s?, passes: None, segments })
        }
    }
}
