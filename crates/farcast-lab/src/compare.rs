//! Comparison of two sets of replications: the figures that differ, and by how much.

use std::fmt::Write as _;

use farcast_stats::{
    KsTest, MeanDifference, StatsError, Summary, holm, ks_two_sample, paired, quantile, welch,
};
use serde::Serialize;

use crate::table::{Column, Table};

/// Options of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Columns to compare. If empty: the completion time, or all columns that both tables have if there is none.
    pub columns: Vec<String>,
    /// True if row i of one table belongs to row i of the other, as replications on common random numbers do.
    pub paired: bool,
    /// Level of the intervals, 0.5 to 0.9999. Means differ if their adjusted p-value is below 1 - level.
    pub level: f64,
}

/// Error of a comparison.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A column that is not one of numbers in both tables.
    #[error("{column} is not a column of numbers in both: both have {}", common.join(", "))]
    Column {
        /// Name of the column.
        column: String,
        /// Columns of numbers that both tables have.
        common: Vec<String>,
    },
    /// The tables have no column in common, or no group of rows.
    #[error("the two have no column of numbers and no settings in common")]
    Nothing,
    /// All columns and groups were left out.
    #[error("nothing can be compared: {}", in_lines(.0))]
    AllLeftOut(Vec<LeftOut>),
}

/// Returns the first item that was left out, and the number of further ones.
fn in_lines(left_out: &[LeftOut]) -> String {
    let first = left_out.first().map(LeftOut::words).unwrap_or_default();
    match left_out.len() {
        0 | 1 => first,
        n => format!("{first} (and {} more like it)", n - 1),
    }
}

/// A column that was not compared, for rows with the same settings.
#[derive(Clone, PartialEq, Debug)]
pub struct LeftOut {
    /// Settings of the rows, if the tables are of sweeps.
    pub settings: SettingValues,
    /// Name of the column; empty for all columns.
    pub column: String,
    /// Reason for leaving it out.
    pub why: LeftOutReason,
}

/// Reason for which something was not compared.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// Paired samples of different sizes.
    #[error("{a} and {b} values cannot be paired; leave --paired away to compare them as they are")]
    Unpaired {
        /// Number of values of the first.
        a: usize,
        /// Number of values of the second.
        b: usize,
    },
    /// Replications that did not finish and so have no completion time.
    #[error(
        "{} of {} replications of A and {} of {} of B were not finished, so there is no mean; give them more time \
         (time_limit){}",
        a.0, a.1, b.0, b.1, if *counted { ", or compare how many receivers were left with --column incomplete" } else { "" }
    )]
    Unfinished {
        /// Number of unfinished replications of the first, and of all.
        a: (usize, usize),
        /// The same numbers of the second.
        b: (usize, usize),
        /// True if both have a column that counts incomplete receivers.
        counted: bool,
    },
    /// Settings that only this one of the two has.
    #[error("only {0} has these settings")]
    OnlyIn(&'static str),
    /// The statistics cannot be computed.
    #[error("{0}")]
    Stats(#[from] StatsError),
}

impl LeftOut {
    /// Returns one sentence with the settings, the column and the reason.
    pub fn words(&self) -> String {
        let column = if self.column.is_empty() { String::new() } else { format!("{}: ", self.column) };
        let settings =
            if self.settings.is_empty() { String::new() } else { format!("{}: ", words(&self.settings)) };
        format!("{settings}{column}{}", self.why)
    }
}

/// Result of a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Compared {
    /// Comparisons by column and, for sweeps, by setting; not empty.
    pub all: Vec<Comparison>,
    /// Items that were left out.
    pub left_out: Vec<LeftOut>,
}

/// Keys and values.
pub type SettingValues = Vec<(String, String)>;

/// Summary of one sample.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Number of values.
    pub n: u64,
    /// Mean of the values.
    pub mean: f64,
    /// Standard deviation of the values.
    pub sd: Option<f64>,
    /// Median of the values.
    pub p50: f64,
    /// 95 % quantile of the values.
    pub p95: f64,
}

/// Comparison of a column of both tables, for rows with the same settings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Settings of the rows, if the tables are of sweeps.
    pub settings: SettingValues,
    /// Name of the column.
    pub column: String,
    /// Summary of the first.
    pub a: Sample,
    /// Summary of the second.
    pub b: Sample,
    /// Mean of the second less mean of the first.
    pub difference: f64,
    /// Half the width of the interval of the difference.
    pub half_width: f64,
    /// Probability of a difference at least as great by chance.
    pub p: f64,
    /// `p` after Holm's adjustment for all comparisons.
    pub p_adjusted: f64,
    /// The greatest distance between the two empirical distribution functions (Kolmogorov and Smirnov).
    pub ks: f64,
    /// Probability of a distance at least as great if both samples come from one distribution.
    pub ks_p: f64,
    /// True if the means differ at the requested level, with all comparisons taken together.
    pub differs: bool,
}

/// Columns that identify the row instead of holding a figure.
const LABELS: [&str; 2] = ["point", "replication"];
/// Name of the figure that is asked for most.
const TIME: &str = "completion_time_s";

/// Compares `b` with `a`, by column and, for sweeps, by setting. Columns and groups that cannot be compared are
/// listed as left out.
///
/// # Errors
/// The tables have nothing in common, or nothing that can be compared.
pub fn compare(a: &Table, b: &Table, options: &Options) -> Result<Compared, CompareError> {
    let keys = keys(a, b);
    let common = common(a, b, &keys);
    let columns = chosen(options, &common);
    if columns.is_empty() {
        return Err(CompareError::Nothing);
    }
    let (ours, theirs) = (groups(a, &keys), groups(b, &keys));
    let mut compared = Compared::default();
    let strangers = [only_in(&ours, &theirs, "A"), only_in(&theirs, &ours, "B")].concat();
    let counted = common.iter().any(|name| name == "incomplete");
    for (settings, rows) in &ours {
        let Some((_, others)) = theirs.iter().find(|(other, _)| other == settings) else { continue };
        for column in &columns {
            let missing = || CompareError::Column { column: column.clone(), common: common.clone() };
            let values = |table: &Table, rows: &[usize]| match table.column(column) {
                Some(Column::Numbers(values)) => {
                    Ok(rows.iter().map(|&row| values[row]).collect::<Vec<f64>>())
                }
                _ => Err(missing()),
            };
            let (ours, theirs) = (values(a, rows)?, values(b, others)?);
            match one(settings, column, ours, theirs, options) {
                Ok(comparison) => compared.all.push(comparison),
                Err(why) => {
                    let why = match why {
                        LeftOutReason::Unfinished { a, b, .. } => LeftOutReason::Unfinished { a, b, counted },
                        why => why,
                    };
                    let (settings, column) = (settings.clone(), column.clone());
                    compared.left_out.push(LeftOut { settings, column, why });
                }
            }
        }
    }
    let Compared { all, left_out } = &mut compared;
    if all.is_empty() {
        let nothing = left_out.is_empty();
        return Err(if nothing {
            CompareError::Nothing
        } else {
            CompareError::AllLeftOut(std::mem::take(left_out))
        });
    }
    left_out.extend(strangers);
    let p: Vec<f64> = all.iter().map(|one| one.p).collect();
    if let Ok(adjusted) = holm(&p) {
        for (one, p) in all.iter_mut().zip(adjusted) {
            one.p_adjusted = p;
            one.differs = p < 1.0 - options.level;
        }
    }
    Ok(compared)
}

/// Returns the columns to compare: those that were asked for, or else the time, or else all that are common.
fn chosen(options: &Options, common: &[String]) -> Vec<String> {
    if options.columns.is_empty() {
        let time = common.iter().any(|name| name == TIME);
        return if time { vec![TIME.to_owned()] } else { common.to_vec() };
    }
    // Two names may stand for one column.
    let mut columns: Vec<String> = Vec::new();
    for column in options.columns.iter().map(|column| meant(column, common)) {
        if !columns.iter().any(|other| other == column) {
            columns.push(column.to_owned());
        }
    }
    columns
}

/// Returns the settings of `groups` that are missing among `others`, where `whose` names the table that has them.
fn only_in(groups: &[RowGroup], others: &[RowGroup], whose: &'static str) -> Vec<LeftOut> {
    let lacks = |settings: &SettingValues| !others.iter().any(|(other, _)| other == settings);
    let left_out = |settings: &SettingValues| LeftOut {
        settings: settings.clone(),
        column: String::new(),
        why: LeftOutReason::OnlyIn(whose),
    };
    groups.iter().map(|(settings, _)| settings).filter(|settings| lacks(settings)).map(left_out).collect()
}

/// Settings, and the rows of a table that have them.
type RowGroup = (SettingValues, Vec<usize>);

/// Returns the column of both tables for which `name` stands.
fn meant<'a>(name: &'a str, common: &'a [String]) -> &'a str {
    crate::figures::find(name, common.iter().map(String::as_str)).unwrap_or(name)
}

fn one(
    settings: &[(String, String)],
    column: &str,
    mut ours: Vec<f64>,
    mut theirs: Vec<f64>,
    options: &Options,
) -> Result<Comparison, LeftOutReason> {
    let absent = |values: &[f64]| values.iter().filter(|value| value.is_nan()).count();
    if column.ends_with(TIME) && absent(&ours) + absent(&theirs) > 0 {
        let (a, b) = ((absent(&ours), ours.len()), (absent(&theirs), theirs.len()));
        return Err(LeftOutReason::Unfinished { a, b, counted: false });
    }
    if options.paired {
        if ours.len() != theirs.len() {
            let (a, b) = (ours.len(), theirs.len());
            return Err(LeftOutReason::Unpaired { a, b });
        }
        let both: Vec<(f64, f64)> = ours
            .iter()
            .copied()
            .zip(theirs.iter().copied())
            .filter(|(a, b)| !a.is_nan() && !b.is_nan())
            .collect();
        (ours, theirs) = both.into_iter().unzip();
    } else {
        ours.retain(|value| !value.is_nan());
        theirs.retain(|value| !value.is_nan());
    }
    let test = if options.paired { paired } else { welch };
    let compute = || -> Result<(MeanDifference, KsTest, Sample, Sample), StatsError> {
        Ok((
            test(&theirs, &ours, options.level)?,
            ks_two_sample(&ours, &theirs)?,
            sample(&ours)?,
            sample(&theirs)?,
        ))
    };
    let (mean, ks, a, b) = compute()?;
    Ok(Comparison {
        settings: settings.to_vec(),
        column: column.to_owned(),
        a,
        b,
        difference: mean.difference,
        half_width: mean.half_width,
        p: mean.p,
        p_adjusted: mean.p,
        ks: ks.statistic,
        ks_p: ks.p_value,
        differs: mean.p < 1.0 - options.level,
    })
}

fn sample(values: &[f64]) -> Result<Sample, StatsError> {
    let summary = Summary::of(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(Sample {
        n: summary.n,
        mean: summary.mean,
        sd: summary.sd,
        p50: quantile(&sorted, 0.5)?,
        p95: quantile(&sorted, 0.95)?,
    })
}

impl Comparison {
    /// Returns the result in one sentence: which is more, by how much, and how sure that is.
    pub fn words(&self) -> String {
        let mut text = String::new();
        if !self.settings.is_empty() {
            let _ = write!(text, "{}: ", words(&self.settings));
        }
        let Self { column, a, b, difference, half_width, .. } = self;
        let share = if a.mean == 0.0 {
            String::new()
        } else {
            format!(" ({:.1} % of it)", 100.0 * difference.abs() / a.mean.abs())
        };
        if self.differs {
            let way = if *difference > 0.0 { "more" } else { "less" };
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{column} is {} {way} in B than in A{share}, 95 % interval {} to {}; {}",
                plain(difference.abs()),
                plain(difference.abs() - half_width),
                plain(difference.abs() + half_width),
                chance(self.p_adjusted),
            );
        } else if difference.abs() + half_width == 0.0 {
            let where_ = if a.sd == Some(0.0) { "in every replication" } else { "in each pair" };
            let _ = write!(text, "{column} is the same in A and B {where_}: {} in the mean", plain(a.mean));
        } else {
            let _ = write!(
                text,
                "{column} does not differ for sure: {} in A, {} in B, and a difference of {} or more would have been seen; \
                 {}",
                plain(a.mean),
                plain(b.mean),
                plain(difference.abs() + half_width),
                chance(self.p_adjusted),
            );
        }
        text
    }
}

/// Returns settings as text: `a = 1, b = 2`.
fn words(settings: &[(String, String)]) -> String {
    settings.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// Returns a value to four digits.
fn plain(value: f64) -> String {
    let places = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i64).clamp(0, 12) };
    format!("{value:.*}", places as usize)
}

/// Returns the columns of settings: those between a sweep's point and its replication, in both tables.
fn keys(a: &Table, b: &Table) -> Vec<String> {
    let of = |table: &Table| -> Vec<String> {
        let names: Vec<&str> = table.columns().map(|(name, _)| name).collect();
        let place = |label: &str| names.iter().position(|name| *name == label);
        let Some((first, last)) = place(LABELS[0]).zip(place(LABELS[1])).filter(|(first, last)| first < last)
        else {
            return Vec::new();
        };
        names[first + 1..last].iter().map(|name| (*name).to_owned()).collect()
    };
    let theirs = of(b);
    of(a).into_iter().filter(|key| theirs.contains(key)).collect()
}

/// Returns the columns of numbers that both tables have, without settings.
fn common(a: &Table, b: &Table, keys: &[String]) -> Vec<String> {
    let is_number = |table: &Table, name: &str| matches!(table.column(name), Some(Column::Numbers(_)));
    let names = a.columns().map(|(name, _)| name).filter(|name| is_number(a, name) && is_number(b, name));
    let is_label = |name: &&str| LABELS.contains(name) || keys.iter().any(|key| key == name);
    names.filter(|name| !is_label(name)).map(str::to_owned).collect()
}

/// Returns the rows of each combination of settings, in the order of their first appearance.
fn groups(table: &Table, keys: &[String]) -> Vec<RowGroup> {
    let mut groups: Vec<RowGroup> = Vec::new();
    let columns: Vec<(&String, &Column)> =
        keys.iter().filter_map(|key| Some((key, table.column(key)?))).collect();
    for row in 0..table.len() {
        let settings: SettingValues =
            columns.iter().map(|(key, column)| ((*key).clone(), column.text(row))).collect();
        // Rows of one point stand together.
        match groups.iter_mut().rev().find(|(other, _)| *other == settings) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((settings, vec![row])),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
