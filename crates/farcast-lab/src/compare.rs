//! What differs between two sets of replications, and by how much.

use std::fmt::Write as _;

use farcast_stats::{
    KsTest, MeanDifference, StatsError, Summary, holm, ks_two_sample, paired, quantile, welch,
};
use serde::Serialize;

use crate::table::{Column, Table};

/// How tables are compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The columns; none for the completion time, or all that both tables have where there is none.
    pub columns: Vec<String>,
    /// Whether row i of one belongs to row i of the other: replications on common random numbers.
    pub paired: bool,
    /// Of intervals, 0.5 to 0.9999; what is less probable than 1 - level by chance is said to differ.
    pub level: f64,
}

/// Why tables cannot be compared.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// They do not both have a column of numbers of this name.
    #[error("{column} is not a column of numbers in both: both have {}", common.join(", "))]
    Column {
        /// Which.
        column: String,
        /// What both have.
        common: Vec<String>,
    },
    /// They have no column in common, or no group of rows.
    #[error("the two have no column of numbers and no settings in common")]
    Nothing,
    /// Nothing that both have can be compared.
    #[error("nothing can be compared: {}", in_lines(.0))]
    AllLeftOut(Vec<LeftOut>),
}

/// The first of what was left out, and how many there are besides.
fn in_lines(left_out: &[LeftOut]) -> String {
    let first = left_out.first().map(LeftOut::words).unwrap_or_default();
    match left_out.len() {
        0 | 1 => first,
        n => format!("{first} (and {} more like it)", n - 1),
    }
}

/// A column, of rows with the same settings, that was not compared.
#[derive(Clone, PartialEq, Debug)]
pub struct LeftOut {
    /// The settings of these rows, where tables are of sweeps.
    pub settings: Settings,
    /// The column; empty for all of them.
    pub column: String,
    /// Why.
    pub why: Why,
}

/// Why something was not compared.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// Rows that should belong to each other are not as many.
    #[error("{a} and {b} values cannot be paired; leave --paired away to compare them as they are")]
    Unpaired {
        /// Values of the first.
        a: usize,
        /// Values of the second.
        b: usize,
    },
    /// A replication that was not finished has no time.
    #[error(
        "{} of {} replications of A and {} of {} of B were not finished, so there is no mean; give them more time \
         (time_limit){}",
        a.0, a.1, b.0, b.1, if *counted { ", or compare how many receivers were left with --column incomplete" } else { "" }
    )]
    Unfinished {
        /// Of the first: those that were not, and all.
        a: (usize, usize),
        /// Of the second.
        b: (usize, usize),
        /// Whether both have a column that counts who was left.
        counted: bool,
    },
    /// One of the two has no such settings.
    #[error("only {0} has these settings")]
    OnlyIn(&'static str),
    /// The statistics cannot be computed.
    #[error("{0}")]
    Stats(#[from] StatsError),
}

impl LeftOut {
    /// Which it is and why, in one sentence.
    pub fn words(&self) -> String {
        let column = if self.column.is_empty() { String::new() } else { format!("{}: ", self.column) };
        let settings =
            if self.settings.is_empty() { String::new() } else { format!("{}: ", words(&self.settings)) };
        format!("{settings}{column}{}", self.why)
    }
}

/// What was compared, and what could not be.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Compared {
    /// Column by column and, of sweeps, setting by setting; not empty.
    pub all: Vec<Comparison>,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
}

/// Keys and values.
pub type Settings = Vec<(String, String)>;

/// One sample.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub sd: Option<f64>,
    /// Their median.
    pub p50: f64,
    /// Their 95 % quantile.
    pub p95: f64,
}

/// A column of both tables, of rows with the same settings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The settings of these rows, where tables are of sweeps.
    pub settings: Settings,
    /// The column.
    pub column: String,
    /// The first.
    pub a: Sample,
    /// The second.
    pub b: Sample,
    /// By how much the second's mean is more than the first's.
    pub difference: f64,
    /// Half the width of the interval of that.
    pub half_width: f64,
    /// How probable a difference at least as great is by chance.
    pub p: f64,
    /// The same after Holm, for all that was compared.
    pub p_adjusted: f64,
    /// The greatest distance between the two empirical distribution functions (Kolmogorov and Smirnov).
    pub ks: f64,
    /// How probable that is if both are of one distribution.
    pub ks_p: f64,
    /// Whether the means differ at the level that was asked for, with all comparisons taken together.
    pub differs: bool,
}

/// Columns that say which row it is, or which settings it has.
const LABELS: [&str; 2] = ["point", "replication"];
/// What is asked for most.
const TIME: &str = "completion_time_s";

/// Compares `b` with `a`, column by column and, of sweeps, setting by setting. What cannot be compared is left out, and
/// said.
///
/// # Errors
/// They have nothing in common, or nothing that can be compared.
pub fn compare(a: &Table, b: &Table, options: &Options) -> Result<Compared, CompareError> {
    let keys = keys(a, b);
    let common = common(a, b, &keys);
    let columns = if !options.columns.is_empty() {
        // Two names may mean one column.
        let mut columns: Vec<String> = Vec::new();
        for column in options.columns.iter().map(|column| meant(column, &common)) {
            if !columns.iter().any(|other| other == column) {
                columns.push(column.to_owned());
            }
        }
        columns
    } else if common.iter().any(|name| name == TIME) {
        vec![TIME.to_owned()]
    } else {
        common.clone()
    };
    if columns.is_empty() {
        return Err(CompareError::Nothing);
    }
    let (ours, theirs) = (groups(a, &keys), groups(b, &keys));
    let mut compared = Compared::default();
    let only = |groups: &[(Settings, Vec<usize>)],
                others: &[(Settings, Vec<usize>)],
                whose|
     -> Vec<LeftOut> {
        let lacks = |settings: &Settings| !others.iter().any(|(other, _)| other == settings);
        let left_out = |settings: &Settings| LeftOut {
            settings: settings.clone(),
            column: String::new(),
            why: Why::OnlyIn(whose),
        };
        groups.iter().map(|(settings, _)| settings).filter(|settings| lacks(settings)).map(left_out).collect()
    };
    let strangers = [only(&ours, &theirs, "A"), only(&theirs, &ours, "B")].concat();
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
                        Why::Unfinished { a, b, .. } => Why::Unfinished { a, b, counted },
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

/// The column of both that `name` means.
fn meant<'a>(name: &'a str, common: &'a [String]) -> &'a str {
    crate::figures::find(name, common.iter().map(String::as_str)).unwrap_or(name)
}

fn one(
    settings: &[(String, String)],
    column: &str,
    mut ours: Vec<f64>,
    mut theirs: Vec<f64>,
    options: &Options,
) -> Result<Comparison, Why> {
    let absent = |values: &[f64]| values.iter().filter(|value| value.is_nan()).count();
    if column.ends_with(TIME) && absent(&ours) + absent(&theirs) > 0 {
        let (a, b) = ((absent(&ours), ours.len()), (absent(&theirs), theirs.len()));
        return Err(Why::Unfinished { a, b, counted: false });
    }
    if options.paired {
        if ours.len() != theirs.len() {
            let (a, b) = (ours.len(), theirs.len());
            return Err(Why::Unpaired { a, b });
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
    /// What it says, in one sentence: which is more, by how much, how sure that is.
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
            // A String takes all that is written.
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

/// `a = 1, b = 2`.
fn words(settings: &[(String, String)]) -> String {
    settings.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// Four digits.
fn plain(value: f64) -> String {
    let places = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i64).clamp(0, 12) };
    format!("{value:.*}", places as usize)
}

/// The columns of settings: what stands between a sweep's point and its replication, in both.
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

/// Columns of numbers that both have, without settings.
fn common(a: &Table, b: &Table, keys: &[String]) -> Vec<String> {
    let is_number = |table: &Table, name: &str| matches!(table.column(name), Some(Column::Numbers(_)));
    let names = a.columns().map(|(name, _)| name).filter(|name| is_number(a, name) && is_number(b, name));
    let is_label = |name: &&str| LABELS.contains(name) || keys.iter().any(|key| key == name);
    names.filter(|name| !is_label(name)).map(str::to_owned).collect()
}

/// The rows of each combination of settings, in the order in which they come.
fn groups(table: &Table, keys: &[String]) -> Vec<(Settings, Vec<usize>)> {
    let mut groups: Vec<(Settings, Vec<usize>)> = Vec::new();
    let columns: Vec<(&String, &Column)> =
        keys.iter().filter_map(|key| Some((key, table.column(key)?))).collect();
    for row in 0..table.len() {
        let settings: Settings =
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
