//! Claims of the paper about its figures, judged by ratios of our results.

use farcast_stats::Summary;

use super::STUDY;
use super::cell::{Cells, Metric};
use super::figures::WINDOW;
use super::setup::{Dlr, Setup, SourceTraffic};
use crate::study::{Judged, Row, RowPlace, Rule, StudyError, Verdict};

const CASE: &str = "Claims";
const RULE: &str = "the paper has words; of each its reading here is a range that a number of ours, mostly a ratio of two \
                    settings on common random numbers, must lie in: a claim agrees if the whole 95 % interval does, \
                    differs if nothing of it does, and is undetermined otherwise";

/// Setting that makes the acknowledgement's bitmap PGMCC's largest window.
pub(super) const CEILING: &[&str] = &["protocol.window=32"];
/// Settings that make the gateways network elements: repairs then go only to receivers that asked.
const ELEMENTS: &[&str] =
    &["node.G0.kind=\"element\"", "node.G1.kind=\"element\"", "node.G2.kind=\"element\""];
/// Setting with which a repairer tells the source of the reception of the receivers it serves.
const FEEDBACK: &[&str] = &["protocol.repairer.feedback=true"];
/// Settings with ten receivers in place of one, beside R1 and beside R6.
const MORE: &[&str] = &["node.R2.receivers=10", "node.R7.receivers=10"];
/// Setting with a source as fast as the terrestrial line.
const FAST: &[&str] = &["protocol.rate=\"10 Mbit/s\""];

const LOW: f64 = 1e-3;
const HIGH: f64 = 0.1;
const ANY: f64 = f64::MAX;
/// Range of ratios that a plot shows as one line.
const SAME: [f64; 2] = [0.9, 1.1];

/// Judge of the claims, one after the other.
struct Judge<'c, 'r, 'o> {
    cells: &'c Cells<'r, 'o>,
    rows: Vec<Row>,
}

/// Returns the rows of all claims by their number.
pub(super) fn rows(cells: &Cells<'_, '_>) -> Result<Vec<Row>, StudyError> {
    let mut judge = Judge { cells, rows: Vec::new() };
    judge.payloads()?;
    judge.with_tcp()?;
    judge.no_repairer()?;
    judge.beside_tcp()?;
    judge.repairer()?;
    judge.unfair()?;
    judge.delay_and_size()?;
    judge.steady()?;
    Ok(judge.rows)
}

impl Judge<'_, '_, '_> {
    fn push(&mut self, item: &str, column: &str, values: &[f64], within: [f64; 2]) -> Result<(), StudyError> {
        let summary = Summary::of(values)?;
        self.rows.push(Row::new(
            STUDY.name,
            RowPlace { item, row: CASE, column },
            3,
            judged(&summary, within),
        ));
        Ok(())
    }

    /// Adds the ratio of a metric of one setting to that of another.
    fn ratio(
        &mut self,
        item: &str,
        column: &str,
        [above, below]: [(Setup, Metric); 2],
        within: [f64; 2],
    ) -> Result<(), StudyError> {
        // A rate of 0 counts as a thousandth of a kbit/s, so that there is a ratio.
        let values = |(setup, metric)| Ok::<_, StudyError>(self.cells.of(setup)?.values(metric));
        let (above, below) = (values(above)?, values(below)?);
        let ratios: Vec<f64> = above.iter().zip(&below).map(|(a, b)| a / b.max(1e-3)).collect();
        self.push(item, column, &ratios, within)
    }

    /// Judges T1 and T2: goodput over the payload.
    fn payloads(&mut self) -> Result<(), StudyError> {
        let ftp = Setup::new(SourceTraffic::FtpPgmcc);
        let ways = [
            ("as everywhere", ftp),
            ("window 32", ftp.with(CEILING)),
            ("window 32, no network A", ftp.without_a().with(CEILING)),
        ];
        for (name, ftp) in ways {
            let of = |payload| (ftp.payload(payload), Metric::UsefulAtR6);
            self.ratio("T1: ftp, payload 1000 B by 5000 B", name, [of(1000), of(5000)], [0.0, 0.8])?;
        }
        for (name, ftp) in ways {
            let values = self.cells.of(ftp.payload(5000))?.values(Metric::UsefulAtR6);
            let shares: Vec<f64> = values.iter().map(|one| one / 2000.0).collect();
            self.push("T1: ftp, payload 5000 B by the link's 2 Mbit/s", name, &shares, [0.9, 1.0])?;
        }
        for source in [SourceTraffic::CbrPgm, SourceTraffic::CbrPgmcc] {
            let of = |payload| (Setup::new(source).payload(payload), Metric::UsefulAtR6);
            self.ratio("T2: goodput, payload 500 B by 5000 B", source.name(), [of(500), of(5000)], SAME)?;
        }
        let small =
            self.cells.of(Setup::new(SourceTraffic::CbrPgm).payload(100))?.values(Metric::OnSatellite);
        self.push(
            "T2: on the wire at 100 B, kbit/s, about 900",
            SourceTraffic::CbrPgm.name(),
            &small,
            [855.0, 945.0],
        )
    }

    /// Judges T3 and T4: ftp beside TCP.
    fn with_tcp(&mut self) -> Result<(), StudyError> {
        let ftp = Setup::new(SourceTraffic::FtpPgmcc);
        let of = |window| (ftp.tcp(window), Metric::UsefulAtR6);
        self.ratio("T3: ftp beside TCP by without", "rwnd 20", [of(Some(20)), of(None)], [0.8, 1.05])?;
        self.ratio("T3: ftp, rwnd 100 by rwnd 20", "", [of(Some(100)), of(Some(20))], [0.0, 0.95])?;
        let ways = [
            ("as everywhere", ftp),
            ("window 32, no network A", ftp.without_a().with(CEILING)),
            ("source up to 10 Mbit/s", ftp.with(FAST)),
        ];
        // A source that overruns the satellite takes long to simulate.
        let ways = if self.cells.is_quick() { &ways[..2] } else { &ways };
        for (payload, item, within) in [
            (1000, "T4: ftp by TCP, payload 1000 B: fair", [0.5, 2.0]),
            (5000, "T4: ftp by TCP, payload 5000 B: unfair", [2.0, ANY]),
        ] {
            for &(name, ftp) in ways {
                let setup = ftp.tcp(Some(WINDOW)).payload(payload);
                self.ratio(item, name, [(setup, Metric::UsefulAtR6), (setup, Metric::Tcp)], within)?;
            }
        }
        Ok(())
    }

    /// Judges T5 to T8: losses without a repairer.
    fn no_repairer(&mut self) -> Result<(), StudyError> {
        let cbr = Setup::new(SourceTraffic::CbrPgm);
        let of = |per| (cbr.per(per), Metric::UsefulAtR1);
        self.ratio("T5: R1, PER 0.1 by 0", SourceTraffic::CbrPgm.name(), [of(HIGH), of(0.0)], SAME)?;
        let ways = [("routers", cbr), ("elements", cbr.with(ELEMENTS))];
        for (name, cbr) in ways {
            let useless = self.cells.of(cbr.per(HIGH))?.values(Metric::UselessAtR1);
            self.push("T6: useless at R1 at PER 0.1, kbit/s", name, &useless, [1.0, ANY])?;
        }
        for (name, cbr) in ways {
            let of = |per| (cbr.per(per), Metric::UselessAtR1);
            // In proportion to losses, the ratio would be two.
            self.ratio("T6: useless at R1, PER 0.2 by 0.1", name, [of(0.2), of(HIGH)], [2.5, ANY])?;
        }
        for source in [SourceTraffic::CbrPgmcc, SourceTraffic::FtpPgmcc] {
            let of = |source| (Setup::new(source).per(HIGH), Metric::UselessAtR1);
            let pair = [of(source), of(SourceTraffic::CbrPgm)];
            self.ratio("T7: useless at R1 at PER 0.1 by CBR/PGM's", source.name(), pair, [0.0, 0.5])?;
        }
        for (item, metric) in [
            ("T8: R1 collapses, PER 0.1 by 0", Metric::UsefulAtR1),
            ("T8: R6 collapses, PER 0.1 by 0", Metric::UsefulAtR6),
        ] {
            for source in [SourceTraffic::CbrPgmcc, SourceTraffic::FtpPgmcc] {
                let of = |per| (Setup::new(source).per(per), metric);
                self.ratio(item, source.name(), [of(HIGH), of(0.0)], [0.0, 0.25])?;
            }
        }
        Ok(())
    }

    /// Judges T9 and T10: the same beside TCP.
    fn beside_tcp(&mut self) -> Result<(), StudyError> {
        let beside = |source| Setup::new(source).tcp(Some(WINDOW));
        for (source, within) in [
            (SourceTraffic::CbrPgm, SAME),
            (SourceTraffic::CbrPgmcc, SAME),
            (SourceTraffic::FtpPgmcc, [0.0, 0.95]),
        ] {
            let of = |setup| (setup, Metric::UsefulAtR6);
            let pair = [of(beside(source)), of(Setup::new(source))];
            self.ratio("T9: R6 beside TCP by without, PER 0", source.name(), pair, within)?;
        }
        for (per, item, most) in
            [(LOW, "T10: TCP, PER 0.001 by 0", 0.7), (HIGH, "T10: TCP, PER 0.1 by 0", 0.1)]
        {
            for source in SourceTraffic::ALL {
                let of = |per| (beside(source).per(per), Metric::Tcp);
                self.ratio(item, source.name(), [of(per), of(0.0)], [0.0, most])?;
            }
        }
        Ok(())
    }

    /// Judges T11 to T14: losses with a repairer.
    fn repairer(&mut self) -> Result<(), StudyError> {
        let at = |source, dlr, per| Setup::new(source).dlr(dlr).per(per);
        for (item, metric) in [
            ("T11: R1, DLR at 2 by none, PER 0.1", Metric::UsefulAtR1),
            ("T11: R6, DLR at 2 by none, PER 0.1", Metric::UsefulAtR6),
        ] {
            for source in SourceTraffic::ALL {
                let pair =
                    [(at(source, Dlr::Behind, HIGH), metric), (at(source, Dlr::Nowhere, HIGH), metric)];
                self.ratio(item, source.name(), pair, [0.8, 1.25])?;
            }
        }
        let ways = SourceTraffic::ALL.map(|source| (source.name(), at(source, Dlr::Before, 0.0)));
        let feedback = at(SourceTraffic::FtpPgmcc, Dlr::Before, 0.0).with(FEEDBACK);
        for (name, setup) in ways.into_iter().chain([("ftp/PGMCC, DLR tells the source", feedback)]) {
            let of = |per| (setup.per(per), Metric::UsefulAtR1);
            self.ratio("T12: R1, DLR at 1, PER 0.1 by 0", name, [of(HIGH), of(0.0)], SAME)?;
        }
        for (name, setup) in ways {
            let repairs = self.cells.of(setup.per(HIGH))?.values(Metric::RepairsToR1);
            self.push("T13: RDATA to R1, DLR at 1, PER 0.1, kbit/s", name, &repairs, [0.0, 0.0])?;
        }
        for (name, setup) in ways {
            let of = |per| (setup.per(per), Metric::UsefulAtR6);
            self.ratio("T14: R6, DLR at 1, PER 0.001 by 0", name, [of(LOW), of(0.0)], [0.9, 1.1])?;
        }
        for source in [SourceTraffic::CbrPgmcc, SourceTraffic::FtpPgmcc] {
            let of = |dlr| (at(source, dlr, HIGH), Metric::UsefulAtR6);
            let pair = [of(Dlr::Before), of(Dlr::Nowhere)];
            self.ratio("T14: R6, DLR at 1 by none, PER 0.1", source.name(), pair, [2.0, ANY])?;
        }
        Ok(())
    }

    /// Judges T15: TCP beside a repairer.
    fn unfair(&mut self) -> Result<(), StudyError> {
        let beside = |source| Setup::new(source).tcp(Some(WINDOW)).per(LOW);
        let ways = SourceTraffic::ALL.map(|source| (source.name(), source, beside(source).dlr(Dlr::Before)));
        let told = beside(SourceTraffic::FtpPgmcc).dlr(Dlr::Before).with(FEEDBACK);
        for (name, source, setup) in
            ways.into_iter().chain([("ftp/PGMCC, DLR tells the source", SourceTraffic::FtpPgmcc, told)])
        {
            let pair = [(setup, Metric::Tcp), (beside(source), Metric::Tcp)];
            self.ratio("T15: TCP, DLR at 1 by none, PER 0.001", name, pair, [0.0, 0.5])?;
        }
        Ok(())
    }

    /// Judges T16 and T17: the delay, and the number of receivers.
    fn delay_and_size(&mut self) -> Result<(), StudyError> {
        let ftp = Setup::new(SourceTraffic::FtpPgmcc);
        let ways = SourceTraffic::ALL.map(|source| (source.name(), Setup::new(source)));
        let lossy = [
            ("ftp/PGMCC, PER 0.001", ftp.per(LOW)),
            ("ftp/PGMCC, PER 0.001, DLR at 1", ftp.per(LOW).dlr(Dlr::Before)),
        ];
        for (name, setup) in ways.into_iter().chain(lossy) {
            let of = |delay| (setup.delay(delay), Metric::UsefulAtR6);
            self.ratio("T16: R6, delay 260 ms by 7 ms", name, [of(260), of(7)], SAME)?;
        }
        for source in SourceTraffic::ALL {
            let setup = Setup::new(source).per(LOW);
            let of = |setup| (setup, Metric::UsefulAtR6);
            let pair = [of(setup.with(MORE)), of(setup)];
            self.ratio("T17: R6, 28 receivers by 10, PER 0.001", source.name(), pair, [0.8, 1.25])?;
        }
        Ok(())
    }

    /// Checks that the warm-up is over when counting begins.
    fn steady(&mut self) -> Result<(), StudyError> {
        let ftp = Setup::new(SourceTraffic::FtpPgmcc);
        for (name, setup) in [("ftp/PGMCC, PER 0", ftp), ("ftp/PGMCC, PER 0.001", ftp.per(LOW))] {
            let halves = self.cells.halves(setup)?;
            let [first, second] = halves.map(|half| half.values(Metric::UsefulAtR6));
            let ratios: Vec<f64> = first.iter().zip(&second).map(|(a, b)| b / a.max(1e-3)).collect();
            self.push("steady state: R6, second half by first", name, &ratios, [0.8, 1.25])?;
        }
        Ok(())
    }
}

/// Returns the verdict by the place of the mean's interval.
fn judged(summary: &Summary, within: [f64; 2]) -> Judged {
    let half = summary.ci95_half_width.unwrap_or(0.0);
    let (low, high) = (summary.mean - half, summary.mean + half);
    let verdict = if within[0] <= low && high <= within[1] {
        Verdict::Agrees
    } else if high < within[0] || within[1] < low {
        Verdict::Differs
    } else {
        Verdict::Undetermined
    };
    let shown = (within[0], if within[1] == ANY { f64::INFINITY } else { within[1] });
    let rule = Rule { sentence: RULE, agrees_within: Some(shown) };
    Judged { published: None, farcast: summary.mean, ci95_half_width: summary.ci95_half_width, verdict, rule }
}
