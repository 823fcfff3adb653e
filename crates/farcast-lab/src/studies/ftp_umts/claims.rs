//! Claims of the paper about its figures, judged for every reading.

use std::cmp::Ordering;

use farcast_stats::{StatsError, Summary, prediction_half_width};

use super::cell::{BearerCell, Metric};
use super::{Curve, Experiments, STUDY};
use crate::study::{Judged, Row, RowPlace, Rule, Verdict, rules};

const CASE: &str = "Claims";
/// Number of runs behind a published mean. This is an assumption: the paper does not say.
const RUNS: u64 = 10;
/// Greatest difference of lines that the paper's plots show as one, in per cent.
const SAME: f64 = 5.0;
const FLAT: f64 = 10.0;

const COUNTED: &str = "a claim differs if a comparison contradicts it, agrees if none does and one confirms it, and is \
                       undetermined otherwise; our number is how many contradict; two settings differ if the mean of \
                       their paired differences is more than three standard errors from 0 (or by a sign test, where \
                       transfers do not end)";
const RATIO: &str = "a ratio of means agrees if it lies in the 95 % prediction interval for means of ten runs; how many \
                     the paper has it does not say";
const MEAN: &str = "a utilisation agrees if it lies in the 95 % prediction interval for a mean of ten runs; how many the \
                    paper has it does not say";
const MEDIANS: &str = "not all our transfers end within 1 h, so there is no mean: ours is of the medians";
const SPREAD: &str =
    "lines that the paper calls the same agree if they are no further apart, in per cent of the greater";
const HURTS: &str = "the paper has no number, only that it hurts: ours is the ratio to a status prohibit of 100 ms, \
                     of means, or of medians where not all end";
const OURS: &str = "the paper does not say how many end";

/// Pairs of cells that a claim compares: the first should be less than the second or the same, by the metric.
type Pairs<'a> = Vec<(&'a BearerCell, &'a BearerCell, Metric)>;
type Counted = fn(&Experiments) -> Pairs<'_>;

/// Numbers of a claim: the name, the decimals and the verdict of each.
type ClaimNumbers = Vec<(String, usize, Judged)>;
type Numbered = fn(&Experiments) -> Result<ClaimNumbers, StatsError>;

const COUNTED_CLAIMS: [(&str, Counted); 11] = [
    ("T1: time falls as maxDAT rises", |study| falling(&study.prohibits, Metric::Time)),
    ("T3: a shorter prohibit is slower below 3", shorter_is_slower),
    ("T4: overhead falls with the prohibit", |study| by_prohibit(study, Metric::Overhead, true)),
    ("T4: overhead falls as maxDAT rises", |study| falling(&study.prohibits, Metric::Overhead)),
    ("T5: SDU delay is least at maxDAT 1", least_delay_at_one),
    ("T6: SDU delay rises with the prohibit", |study| by_prohibit(study, Metric::Delay, false)),
    ("T7: time falls as maxDAT rises", |study| falling(&study.files, Metric::Time)),
    ("T7: overhead falls as maxDAT rises", |study| falling(&study.files, Metric::Overhead)),
    ("T7: SDU delay rises with maxDAT", |study| rising(&study.files, Metric::Delay)),
    ("T8: least files, most overhead, least delay", least_files),
    ("T10: nothing is faster than maxDAT 10", nothing_is_faster),
];

const NUMBERED_CLAIMS: [Numbered; 6] =
    [ratios, shares, curves_coincide, delay_is_flat, utilisation, very_high];

/// Returns the rows of all claims by their number, each for all readings.
pub(super) fn rows(studies: &[Experiments]) -> Result<Vec<Row>, StatsError> {
    let mut rows = Vec::new();
    for (item, pairs) in COUNTED_CLAIMS {
        for study in studies {
            let pairs = pairs(study);
            let column = format!("{}: of {}", study.reading.name, pairs.len());
            rows.push(row(item, &column, 0, count(&pairs)?));
        }
    }
    for claim in NUMBERED_CLAIMS {
        let mut some = Vec::new();
        for study in studies {
            let numbers = claim(study)?.into_iter();
            some.extend(
                numbers.map(|(item, decimals, judged)| row(&item, study.reading.name, decimals, judged)),
            );
        }
        // The rows of an item stand together for all readings, in the order in which items first appear.
        let items: Vec<String> = some.iter().map(|row| row.item.clone()).collect();
        some.sort_by_key(|row| items.iter().position(|item| *item == row.item));
        rows.extend(some);
    }
    let number = |row: &Row| row.item[1..].split(':').next().and_then(|number| number.parse::<u32>().ok());
    rows.sort_by_key(number);
    Ok(rows)
}

fn row(item: &str, column: &str, decimals: usize, judged: Judged) -> Row {
    Row::new(STUDY.name, RowPlace { item, row: CASE, column }, decimals, judged)
}

/// Returns the verdict on pairs, with the number of those that contradict.
fn count(pairs: &Pairs<'_>) -> Result<Judged, StatsError> {
    let (mut confirm, mut contradict) = (0_u32, 0_u32);
    for (less, more, metric) in pairs {
        match less.compare(more, *metric)? {
            Ordering::Less => confirm += 1,
            Ordering::Greater => contradict += 1,
            Ordering::Equal => {}
        }
    }
    let verdict = match (contradict, confirm) {
        (0, 0) => Verdict::Undetermined,
        (0, _) => Verdict::Agrees,
        _ => Verdict::Differs,
    };
    Ok(judged(0.0, Ours { value: f64::from(contradict), half: None }, verdict, COUNTED, None))
}

/// Our number, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy)]
struct Ours {
    value: f64,
    half: Option<f64>,
}

fn judged(
    published: f64,
    ours: Ours,
    verdict: Verdict,
    sentence: &'static str,
    agrees_within: Option<(f64, f64)>,
) -> Judged {
    let Ours { value: farcast, half: ci95_half_width } = ours;
    let rule = Rule { sentence, agrees_within };
    Judged { published: Some(published), farcast, ci95_half_width, verdict, rule }
}

/// Returns the verdict on whether `published` lies `within`.
fn inside(published: f64, ours: Ours, within: [f64; 2], sentence: &'static str) -> Judged {
    let agrees = within[0] <= published && published <= within[1];
    let verdict = if agrees { Verdict::Agrees } else { Verdict::Differs };
    judged(published, ours, verdict, sentence, Some(within.into()))
}

/// Returns a pair for each step of maxDAT: the metric should not rise.
fn falling(curves: &[Curve], metric: Metric) -> Pairs<'_> {
    let steps = curves.iter().flat_map(|curve| curve.cells.windows(2));
    steps.map(|step| (&step[1], &step[0], metric)).collect()
}

/// Returns a pair for each step of maxDAT: the metric should not fall.
fn rising(curves: &[Curve], metric: Metric) -> Pairs<'_> {
    falling(curves, metric).into_iter().map(|(after, before, metric)| (before, after, metric)).collect()
}

/// Returns a pair for each maxDAT, and for each status prohibit and the next.
fn by_prohibit(study: &Experiments, metric: Metric, falls: bool) -> Pairs<'_> {
    let neighbours = study.prohibits.windows(2);
    let pairs = neighbours.flat_map(|two| two[0].cells.iter().zip(&two[1].cells));
    pairs.map(|(short, long)| if falls { (long, short, metric) } else { (short, long, metric) }).collect()
}

fn shorter_is_slower(study: &Experiments) -> Pairs<'_> {
    let all = by_prohibit(study, Metric::Time, true);
    all.into_iter().filter(|(cell, ..)| cell.max_dat < 3).collect()
}

fn least_delay_at_one(study: &Experiments) -> Pairs<'_> {
    let curves = study.prohibits.iter().filter_map(|curve| curve.cells.split_first());
    let pairs = curves.flat_map(|(first, others)| others.iter().map(move |other| (first, other)));
    pairs.map(|(first, other)| (first, other, Metric::Delay)).collect()
}

fn least_files(study: &Experiments) -> Pairs<'_> {
    let Some((least, others)) = study.files.split_first() else { return Vec::new() };
    let pairs = others.iter().flat_map(|other| least.cells.iter().zip(&other.cells));
    pairs
        .flat_map(|(least, other)| [(other, least, Metric::Overhead), (least, other, Metric::Delay)])
        .collect()
}

fn nothing_is_faster(study: &Experiments) -> Pairs<'_> {
    let curves = study.prohibits.iter().chain(&study.files).filter_map(|curve| curve.cells.split_last());
    let pairs = curves.flat_map(|(last, others)| others.iter().map(move |other| (last, other)));
    pairs.map(|(last, other)| (last, other, Metric::Time)).collect()
}

/// Returns the numbers of T2: time at maxDAT 1 over time at 10. The increase that the paper prints is this ratio less
/// one.
fn ratios(study: &Experiments) -> Result<ClaimNumbers, StatsError> {
    let mut numbers = Vec::new();
    for (curve, published) in study.prohibits.iter().zip([9.0, 7.47, 6.89]) {
        let Some((one, ten)) = curve.ends() else { continue };
        let item = format!("T2: time, maxDAT 1 by 10, prohibit {} ms", curve.line.prohibit);
        if let (Some(one), Some(ten)) = (one.summary(Metric::Time)?, ten.summary(Metric::Time)?) {
            let ratio = one.mean / ten.mean;
            let [known, likely] = [relative(&one, &ten, u64::MAX)?, relative(&one, &ten, RUNS)?];
            let within = [ratio * (-likely).exp(), ratio * likely.exp()];
            let ours = Ours { value: ratio, half: Some(ratio * known) };
            numbers.push((item, 2, inside(published, ours, within, RATIO)));
        } else if let (Some(one), Some(ten)) = (one.median_time()?, ten.median_time()?) {
            let ours = Ours { value: one / ten, half: None };
            numbers.push((item, 2, judged(published, ours, Verdict::Undetermined, MEDIANS, None)));
        }
    }
    Ok(numbers)
}

/// Returns half the width of the 95 % prediction interval of the logarithm of a ratio of two means of `runs` runs
/// each. It takes the means as independent; on common random numbers ours vary a little less.
fn relative(one: &Summary, ten: &Summary, runs: u64) -> Result<f64, StatsError> {
    let share = |of: &Summary| {
        let sd = of.sd.ok_or(StatsError::TooFew { given: of.n, needed: 2 })?;
        Ok::<_, StatsError>(prediction_half_width(sd, runs, of.n)? / of.mean)
    };
    Ok(share(one)?.hypot(share(ten)?))
}

/// Returns the numbers of T2: the share of transfers that end, without repetition.
fn shares(study: &Experiments) -> Result<ClaimNumbers, StatsError> {
    let mut numbers = Vec::new();
    for max_dat in [1, 2] {
        let cells = study.prohibits.iter().flat_map(|curve| &curve.cells);
        let ended = cells.filter(|cell| cell.max_dat == max_dat).map(BearerCell::ended);
        let (ended, all) = ended.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let (share, half) = rules::our_share(ended, all)?;
        let item = format!("T2: transfers that end within 1 h, maxDAT {max_dat}, %");
        numbers.push((item, 1, rules::unpublished(share, Some(half), OURS)));
    }
    Ok(numbers)
}

/// Returns the difference between the greatest and the least of some means, in per cent of the greatest.
fn spread(means: &[f64]) -> f64 {
    let greatest = means.iter().copied().fold(0.0, f64::max);
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    100.0 * (greatest - least) / greatest
}

fn apart(item: &str, means: Option<Vec<f64>>, most: f64) -> ClaimNumbers {
    let number = |means: Vec<f64>| {
        let spread = spread(&means);
        let verdict = if spread <= most { Verdict::Agrees } else { Verdict::Differs };
        (
            item.to_owned(),
            1,
            judged(0.0, Ours { value: spread, half: None }, verdict, SPREAD, Some((0.0, most))),
        )
    };
    means.map(number).into_iter().collect()
}

fn means<'a>(
    cells: impl Iterator<Item = &'a BearerCell>,
    metric: Metric,
) -> Result<Option<Vec<f64>>, StatsError> {
    cells.map(|cell| Ok(cell.summary(metric)?.map(|summary| summary.mean))).collect()
}

fn curves_coincide(study: &Experiments) -> Result<ClaimNumbers, StatsError> {
    let last = study.prohibits.iter().filter_map(|curve| curve.cells.last());
    Ok(apart("T3: times at maxDAT 10 are the same, % apart", means(last, Metric::Time)?, SAME))
}

/// Returns the numbers of T5, for each status prohibit.
fn delay_is_flat(study: &Experiments) -> Result<ClaimNumbers, StatsError> {
    let mut numbers = Vec::new();
    for curve in &study.prohibits {
        let flat = curve.cells.iter().filter(|cell| cell.max_dat >= 3);
        let item =
            format!("T5: delays from maxDAT 3 on are the same, prohibit {} ms, % apart", curve.line.prohibit);
        numbers.extend(apart(&item, means(flat, Metric::Delay)?, FLAT));
    }
    Ok(numbers)
}

/// Returns the numbers of T9: mean throughput at maxDAT 10 of the least and the greatest file, in per cent of 384
/// kbit/s.
fn utilisation(study: &Experiments) -> Result<ClaimNumbers, StatsError> {
    let mut numbers = Vec::new();
    let ends = study.files.first().into_iter().chain(study.files.last());
    for (curve, published) in ends.zip([15.0, 81.0]) {
        let Some((_, ten)) = curve.ends() else { continue };
        let Some(ours) = ten.summary(Metric::Throughput)? else { continue };
        let sd = ours.sd.ok_or(StatsError::TooFew { given: ours.n, needed: 2 })?;
        let percent = |kbps: f64| 100.0 * kbps / 384.0;
        // The printed numbers have no decimals.
        let half = percent(prediction_half_width(sd, RUNS, ours.n)?) + 0.5;
        let mean = percent(ours.mean);
        let ours = Ours { value: mean, half: ours.ci95_half_width.map(percent) };
        let judged = inside(published, ours, [mean - half, mean + half], MEAN);
        numbers.push((format!("T9: utilisation at maxDAT 10, {} KByte, %", curve.line.file), 1, judged));
    }
    Ok(numbers)
}

/// Returns the number of T11, of medians if not all transfers end; those count as later than all others.
fn very_high(study: &Experiments) -> Result<ClaimNumbers, StatsError> {
    let same = study.prohibits.iter().find(|curve| curve.line.prohibit == 100);
    let cells = same.and_then(|curve| curve.cells.last()).zip(study.slow.cells.last());
    let Some((usual, slow)) = cells else { return Ok(Vec::new()) };
    let verdict = match slow.compare(usual, Metric::Time)? {
        Ordering::Greater => Verdict::Agrees,
        Ordering::Equal => Verdict::Undetermined,
        Ordering::Less => Verdict::Differs,
    };
    let ours = match (usual.summary(Metric::Time)?, slow.summary(Metric::Time)?) {
        (Some(usual), Some(slow)) => {
            let ratio = slow.mean / usual.mean;
            Ours { value: ratio, half: Some(ratio * relative(&slow, &usual, u64::MAX)?) }
        }
        _ => match (usual.median_time()?, slow.median_time()?) {
            (Some(usual), Some(slow)) => Ours { value: slow / usual, half: None },
            _ => return Ok(Vec::new()),
        },
    };
    let item = "T11: time at maxDAT 10, prohibit 1 s by 100 ms".to_owned();
    // The claim is that the timer hurts: a ratio above 1.
    Ok(vec![(item, 2, judged(1.0, ours, verdict, HURTS, None))])
}
