//! Statistics.

use farcast_stats as stats;
use farcast_stats::{MeanDifference, Statistic, StatsError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::wrong;

type Dict<'py> = Bound<'py, PyDict>;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(t_interval, module)?)?;
    module.add_function(wrap_pyfunction!(welch, module)?)?;
    module.add_function(wrap_pyfunction!(paired, module)?)?;
    module.add_function(wrap_pyfunction!(one_way_anova, module)?)?;
    module.add_function(wrap_pyfunction!(tukey_hsd, module)?)?;
    module.add_function(wrap_pyfunction!(ks_two_sample, module)?)?;
    module.add_function(wrap_pyfunction!(bootstrap, module)?)?;
    module.add_function(wrap_pyfunction!(holm, module)?)?;
    module.add_function(wrap_pyfunction!(benjamini_hochberg, module)?)?;
    module.add_function(wrap_pyfunction!(mser, module)?)?;
    module.add_function(wrap_pyfunction!(batch_means, module)?)
}

fn slices(samples: &[Vec<f64>]) -> Vec<&[f64]> {
    samples.iter().map(Vec::as_slice).collect()
}

fn found<'py>(py: Python<'py>, pairs: &[(&str, f64)]) -> PyResult<Dict<'py>> {
    let found = PyDict::new(py);
    for (name, value) in pairs {
        found.set_item(name, value)?;
    }
    Ok(found)
}

/// Returns the mean and half the width of its confidence interval, by Student's t.
#[pyfunction]
#[pyo3(signature = (values, level=0.95))]
fn t_interval(py: Python<'_>, values: Vec<f64>, level: f64) -> PyResult<Dict<'_>> {
    let one = stats::t_interval(&values, level).map_err(wrong)?;
    found(py, &[("mean", one.mean), ("half_width", one.half_width), ("freedom", one.freedom as f64)])
}

fn difference(py: Python<'_>, one: Result<MeanDifference, StatsError>) -> PyResult<Dict<'_>> {
    let one = one.map_err(wrong)?;
    let pairs = [
        ("difference", one.difference),
        ("half_width", one.half_width),
        ("t", one.t),
        ("freedom", one.freedom),
        ("p", one.p),
    ];
    found(py, &pairs)
}

/// Returns the mean of `a` less that of `b`; the variances of the samples may differ (Welch).
#[pyfunction]
#[pyo3(signature = (a, b, level=0.95))]
fn welch(py: Python<'_>, a: Vec<f64>, b: Vec<f64>, level: f64) -> PyResult<Dict<'_>> {
    difference(py, stats::welch(&a, &b, level))
}

/// Returns the mean of `a - b`, value by value.
#[pyfunction]
#[pyo3(signature = (a, b, level=0.95))]
fn paired(py: Python<'_>, a: Vec<f64>, b: Vec<f64>, level: f64) -> PyResult<Dict<'_>> {
    difference(py, stats::paired(&a, &b, level))
}

/// Tests for a difference between the means of several samples.
#[pyfunction]
fn one_way_anova(py: Python<'_>, samples: Vec<Vec<f64>>) -> PyResult<Dict<'_>> {
    let one = stats::one_way_anova(&slices(&samples)).map_err(wrong)?;
    let pairs = [
        ("f", one.f),
        ("freedom_between", one.freedom_between as f64),
        ("freedom_within", one.freedom_within as f64),
        ("p", one.p),
        ("eta_squared", one.eta_squared),
    ];
    found(py, &pairs)
}

/// Compares the means of several samples in pairs (Tukey and Kramer). Returns for each pair the difference, half the
/// width of its simultaneous interval, and its adjusted p.
#[pyfunction]
#[pyo3(signature = (samples, level=0.95))]
fn tukey_hsd(py: Python<'_>, samples: Vec<Vec<f64>>, level: f64) -> PyResult<Vec<Dict<'_>>> {
    let pairs = stats::tukey_pairs(&slices(&samples), level).map_err(wrong)?;
    let one = |pair: &stats::TukeyPair| {
        let values =
            [("difference", pair.difference), ("half_width", pair.half_width), ("q", pair.q), ("p", pair.p)];
        let one = found(py, &values)?;
        one.set_item("first", pair.first)?;
        one.set_item("second", pair.second)?;
        Ok(one)
    };
    pairs.iter().map(one).collect()
}

/// Tests for a difference between the distributions of two samples (Kolmogorov and Smirnov).
#[pyfunction]
fn ks_two_sample(py: Python<'_>, a: Vec<f64>, b: Vec<f64>) -> PyResult<Dict<'_>> {
    let one = stats::ks_two_sample(&a, &b).map_err(wrong)?;
    found(py, &[("statistic", one.statistic), ("p", one.p_value)])
}

/// Returns the bootstrap interval (`BCa`) of a statistic: "mean", or a quantile as a share, as in 0.95.
#[pyfunction]
#[pyo3(signature = (values, statistic, level=0.95, resamples=2000, seed=1))]
fn bootstrap<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    statistic: &Bound<'py, PyAny>,
    level: f64,
    resamples: u64,
    seed: u64,
) -> PyResult<Dict<'py>> {
    let statistic = match statistic.extract::<f64>() {
        Ok(share) => Statistic::Quantile(share),
        Err(_) if statistic.extract::<String>().is_ok_and(|name| name == "mean") => Statistic::Mean,
        Err(_) => return Err(wrong("a statistic is \"mean\" or a quantile as a share, as in 0.95")),
    };
    let one = stats::bootstrap_interval(&values, statistic, level, resamples, seed).map_err(wrong)?;
    found(py, &[("estimate", one.estimate), ("low", one.interval.low), ("high", one.interval.high)])
}

/// Returns p-values adjusted for their number (Holm).
#[pyfunction]
fn holm(p_values: Vec<f64>) -> PyResult<Vec<f64>> {
    stats::holm(&p_values).map_err(wrong)
}

/// Returns adjusted p-values: of those below a share, at most that share is false (Benjamini and Hochberg).
#[pyfunction]
fn benjamini_hochberg(p_values: Vec<f64>) -> PyResult<Vec<f64>> {
    stats::benjamini_hochberg(&p_values).map_err(wrong)
}

/// Returns the number of values at the beginning of a series that are not of its steady state (MSER, White 1997).
#[pyfunction]
#[pyo3(signature = (values, batch=5))]
fn mser(values: Vec<f64>, batch: usize) -> PyResult<usize> {
    stats::mser(&values, batch).map_err(wrong)
}

/// Returns the mean of a series whose values depend on each other, by the means of batches.
#[pyfunction]
#[pyo3(signature = (values, batches=20, level=0.95))]
fn batch_means(py: Python<'_>, values: Vec<f64>, batches: usize, level: f64) -> PyResult<Dict<'_>> {
    let one = stats::batch_means(&values, batches, level).map_err(wrong)?;
    let all = found(
        py,
        &[("mean", one.mean.mean), ("half_width", one.mean.half_width), ("size", one.size as f64)],
    )?;
    all.set_item("lag_one", one.lag_one)?;
    Ok(all)
}
