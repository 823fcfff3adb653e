//! Figures 2 to 5 as numbers. The paper has only plots of them.

use super::STUDY;
use super::cell::{Cells, Metric};
use super::setup::{Dlr, Setup, SourceTraffic};
use crate::study::{Row, RowPlace, StudyError, rules};

const FIGURE: &str = "the paper has it in a figure only";

/// Octets of a packet's content in figure 2, and below those for quick effort.
const PAYLOADS: [u32; 7] = [100, 250, 500, 1000, 2000, 5000, 10_000];
const SOME_PAYLOADS: [u32; 3] = [500, 1000, 5000];
/// Packet error rates of figures 3 and 4, and below those for quick effort.
const PERS: [f64; 8] = [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2, 1e-1, 2e-1];
const SOME_PERS: [f64; 3] = [0.0, 1e-3, 1e-1];
/// One-way delays of figure 5 in ms: LEO, between, MEO, between, GEO.
const DELAYS: [u32; 5] = [7, 30, 75, 150, 260];
const SOME_DELAYS: [u32; 2] = [7, 260];
/// Receiver's window of TCP in packets, if the paper does not give it: the larger of figure 2.
pub(super) const WINDOW: u32 = 100;

/// A curve: its figure, its metric and its name.
struct Curve<'a> {
    figure: &'a str,
    metric: Metric,
    name: &'a str,
}

impl Curve<'_> {
    fn point(&self, cells: &Cells<'_, '_>, setup: Setup, column: &str) -> Result<Row, StudyError> {
        let summary = cells.of(setup)?.summary(self.metric)?;
        let judged = rules::unpublished(summary.mean, summary.ci95_half_width, FIGURE);
        Ok(Row::new(STUDY.name, RowPlace { item: self.name, row: self.figure, column }, 1, judged))
    }
}

pub(super) fn rows(cells: &Cells<'_, '_>) -> Result<Vec<Row>, StudyError> {
    let mut rows = payloads(cells)?;
    for (figure, dlr) in [("3", Dlr::Nowhere), ("4", Dlr::Before)] {
        rows.extend(losses(cells, figure, dlr)?);
    }
    rows.extend(delays(cells)?);
    Ok(rows)
}

/// Returns the rows of figures 2a and 2b.
fn payloads(cells: &Cells<'_, '_>) -> Result<Vec<Row>, StudyError> {
    let payloads = if cells.is_quick() { &SOME_PAYLOADS[..] } else { &PAYLOADS };
    let mut rows = Vec::new();
    let mut curve = |figure, name: &str, setup: Setup| -> Result<(), StudyError> {
        let curve = Curve { figure, metric: Metric::UsefulAtR6, name };
        for &payload in payloads {
            rows.push(curve.point(cells, setup.payload(payload), &format!("payload {payload} B"))?);
        }
        Ok(())
    };
    let figure = "Figure 2a: goodput at R6 over the payload, no TCP, kbit/s";
    for source in SourceTraffic::ALL {
        curve(figure, source.name(), Setup::new(source))?;
    }
    let ceiling = Setup::new(SourceTraffic::FtpPgmcc).without_a().with(super::claims::CEILING);
    curve(figure, "ftp/PGMCC, window 32, no network A", ceiling)?;
    let figure = "Figure 2b: goodput of ftp/PGMCC at R6 over the payload, kbit/s";
    let ftp = Setup::new(SourceTraffic::FtpPgmcc);
    for (name, tcp) in [("rwnd 100", Some(100)), ("rwnd 20", Some(20)), ("no TCP", None)] {
        curve(figure, name, ftp.tcp(tcp))?;
    }
    Ok(rows)
}

/// Returns the rows of figure 3 or 4; the first three parts are without TCP.
fn losses(cells: &Cells<'_, '_>, figure: &str, dlr: Dlr) -> Result<Vec<Row>, StudyError> {
    let pers = if cells.is_quick() { &SOME_PERS[..] } else { &PERS };
    let mut rows = Vec::new();
    let parts = [
        ("a: useful data at R1", Metric::UsefulAtR1, None),
        ("b: useful data at R6", Metric::UsefulAtR6, None),
        ("c: useless data at R1", Metric::UselessAtR1, None),
        ("d: TCP at R11", Metric::Tcp, Some(WINDOW)),
    ];
    for (part, metric, tcp) in parts {
        let figure = format!("Figure {figure}{part} over PER, kbit/s");
        for source in SourceTraffic::ALL {
            let curve = Curve { figure: &figure, metric, name: source.name() };
            let setup = Setup::new(source).dlr(dlr).tcp(tcp);
            for &per in pers {
                rows.push(curve.point(cells, setup.per(per), &format!("PER {per}"))?);
            }
        }
    }
    Ok(rows)
}

/// Returns the rows of figure 5, and in addition those of ftp with losses on the satellite.
fn delays(cells: &Cells<'_, '_>) -> Result<Vec<Row>, StudyError> {
    let delays = if cells.is_quick() { &SOME_DELAYS[..] } else { &DELAYS };
    let figure = "Figure 5: useful data at R6 over the satellite's delay, kbit/s";
    let mut rows = Vec::new();
    let mut curve = |name: &str, setup: Setup| -> Result<(), StudyError> {
        let curve = Curve { figure, metric: Metric::UsefulAtR6, name };
        for &delay in delays {
            rows.push(curve.point(cells, setup.delay(delay), &format!("delay {delay} ms"))?);
        }
        Ok(())
    };
    for source in SourceTraffic::ALL {
        curve(source.name(), Setup::new(source))?;
    }
    curve("ftp/PGMCC, PER 0.001", Setup::new(SourceTraffic::FtpPgmcc).per(1e-3))?;
    curve("ftp/PGMCC, PER 0.001, DLR at 1", Setup::new(SourceTraffic::FtpPgmcc).per(1e-3).dlr(Dlr::Before))?;
    Ok(rows)
}
