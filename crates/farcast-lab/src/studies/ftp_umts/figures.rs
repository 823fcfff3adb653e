//! Figures 3 and 4 under the main reading, as numbers. The paper has only plots of them.

use farcast_stats::StatsError;

use super::cell::{BearerCell, Metric};
use super::{Curve, CurveParameters, Experiments, STUDY};
use crate::study::{Row, RowPlace, rules};

const FIGURE: &str = "the paper has it in a figure only";
const SOME_END: &str = "not all our transfers end within 1 h, so there is no mean";

/// An item of a figure: its name, its metric, the factor of its unit, and its decimals.
type Item = (&'static str, Metric, f64, usize);

const TIME: Item = ("download time, s", Metric::Time, 1.0, 2);
const OVERHEAD: Item = ("status overhead, %", Metric::Overhead, 1.0, 2);
const DELAY: Item = ("mean SDU delay, ms", Metric::Delay, 1000.0, 0);
const REPEATS: Item = ("PDUs repeated for each that is erased", Metric::Repeats, 1.0, 2);
const THROUGHPUT: Item = ("mean throughput, kbit/s", Metric::Throughput, 1.0, 1);

/// Returns all rows of both figures.
pub(super) fn rows(study: &Experiments) -> Result<Vec<Row>, StatsError> {
    let mut rows = Vec::new();
    for curve in &study.prohibits {
        let CurveParameters { prohibit, .. } = curve.line;
        let case = format!("Figure 3: 100 KByte, timer poll 100 ms, status prohibit {prohibit} ms");
        for item in [TIME, OVERHEAD, DELAY, REPEATS] {
            rows.extend(line(curve, &case, item)?);
        }
        rows.extend(unfinished(curve, &case)?);
    }
    for curve in &study.files {
        let CurveParameters { file, .. } = curve.line;
        let case = format!("Figure 4: {file} KByte, timer poll 300 ms, status prohibit 100 ms");
        rows.extend(line(curve, &case, TIME)?);
        rows.extend(normalised(curve, &case)?);
        for item in [OVERHEAD, DELAY, THROUGHPUT] {
            rows.extend(line(curve, &case, item)?);
        }
        rows.extend(unfinished(curve, &case)?);
    }
    Ok(rows)
}

fn column(cell: &BearerCell) -> String {
    format!("maxDAT {}", cell.max_dat)
}

/// Returns the rows of an item over maxDAT, where there is a mean.
fn line(curve: &Curve, case: &str, item: Item) -> Result<Vec<Row>, StatsError> {
    let (name, metric, unit, decimals) = item;
    let mut rows = Vec::new();
    for cell in &curve.cells {
        let Some(summary) = cell.summary(metric)? else { continue };
        let half = summary.ci95_half_width.map(|half| unit * half);
        let judged = rules::unpublished(unit * summary.mean, half, FIGURE);
        rows.push(Row::new(
            STUDY.name,
            RowPlace { item: name, row: case, column: &column(cell) },
            decimals,
            judged,
        ));
    }
    Ok(rows)
}

/// Returns the rows of figure 4 (a): times over the greatest time of the file, if all cells have means.
fn normalised(curve: &Curve, case: &str) -> Result<Vec<Row>, StatsError> {
    let means = curve.cells.iter().map(|cell| Ok(cell.summary(Metric::Time)?.map(|summary| summary.mean)));
    let Some(means) = means.collect::<Result<Option<Vec<f64>>, StatsError>>()? else { return Ok(Vec::new()) };
    let greatest = means.iter().copied().fold(0.0, f64::max);
    let row = |(cell, mean): (&BearerCell, f64)| {
        let judged = rules::unpublished(mean / greatest, None, FIGURE);
        Row::new(
            STUDY.name,
            RowPlace { item: "download time by its greatest", row: case, column: &column(cell) },
            3,
            judged,
        )
    };
    Ok(curve.cells.iter().zip(means).map(row).collect())
}

/// Returns the rows of cells without a mean time: the share of transfers that end, and the median if there is one.
fn unfinished(curve: &Curve, case: &str) -> Result<Vec<Row>, StatsError> {
    let mut rows = Vec::new();
    for cell in &curve.cells {
        let (ended, all) = cell.ended();
        if ended == all {
            continue;
        }
        let mut push = |item: &str, decimals, value, half| {
            let judged = rules::unpublished(value, half, SOME_END);
            rows.push(Row::new(
                STUDY.name,
                RowPlace { item, row: case, column: &column(cell) },
                decimals,
                judged,
            ));
        };
        let (share, half) = rules::our_share(ended, all)?;
        push("transfers that end within 1 h, %", 1, share, Some(half));
        if let Some(median) = cell.median_time()? {
            push("download time, median, s", 2, median, None);
        }
    }
    Ok(rows)
}
