//! Closed-form models. Times are in seconds, windows in packets, and each result has its unit in its name.

use farcast_core::Span;
use farcast_core::units::Probability;
use farcast_model::{Bound as Bounded, Path, Throughput, cardwell, mathis, mlppp, pftk, pgmcc};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::wrong;

type Dict<'py> = Bound<'py, PyDict>;

/// Default of the least retransmission timeout (RFC 6298 §2.4).
const LEAST_TIMEOUT_S: f64 = 1.0;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(model_pftk, module)?)?;
    module.add_function(wrap_pyfunction!(model_mathis, module)?)?;
    module.add_function(wrap_pyfunction!(model_cardwell, module)?)?;
    module.add_function(wrap_pyfunction!(model_mlppp, module)?)?;
    module.add_function(wrap_pyfunction!(model_pgmcc, module)?)
}

fn probability(name: &str, value: f64) -> PyResult<Probability> {
    Probability::new(value).ok_or_else(|| wrong(format!("{name} = {value}: a probability is 0 to 1")))
}

/// A time in seconds, or as text with its unit.
#[derive(FromPyObject)]
enum Seconds {
    Number(f64),
    Text(String),
}

impl Seconds {
    fn value(&self, name: &str) -> PyResult<f64> {
        match self {
            Self::Number(seconds) => Ok(*seconds),
            Self::Text(text) => match text.parse::<Span>() {
                Ok(span) => Ok(span.as_secs_f64()),
                Err(error) => Err(wrong(format!("{name} = {text:?}: {error}"))),
            },
        }
    }
}

fn span(name: &str, seconds: f64) -> PyResult<Span> {
    if (0.0..=1e9).contains(&seconds) {
        return Ok(Span::from_secs_f64(seconds));
    }
    Err(wrong(format!("{name} = {seconds}: a time is 0 to 1e9 s")))
}

fn path(
    loss: f64,
    rtt_s: Seconds,
    window_packets: Option<f64>,
    packets_per_ack: u32,
    timeout_s: Option<Seconds>,
) -> PyResult<Path> {
    let rtt_s = rtt_s.value("rtt_s")?;
    let timeout_s = timeout_s.map(|timeout| timeout.value("timeout_s")).transpose()?;
    Ok(Path {
        loss: probability("loss", loss)?,
        rtt: span("rtt_s", rtt_s)?,
        timeout: span("timeout_s", timeout_s.unwrap_or_else(|| (3.0 * rtt_s).max(LEAST_TIMEOUT_S)))?,
        packets_per_ack,
        window: window_packets,
    })
}

fn bound(bound: Bounded) -> &'static str {
    match bound {
        Bounded::Loss => "losses",
        Bounded::Window => "window",
    }
}

fn of<'py>(py: Python<'py>, throughput: &Throughput) -> PyResult<Dict<'py>> {
    let found = PyDict::new(py);
    found.set_item("throughput_packets_per_s", throughput.packets_per_s)?;
    found.set_item("bound", bound(throughput.bound))?;
    Ok(found)
}

/// Returns the throughput of a long TCP transfer, with timeouts (Padhye, Firoiu, Towsley and Kurose 2000).
#[pyfunction]
#[pyo3(signature = (loss, rtt_s, window_packets=None, packets_per_ack=2, timeout_s=None))]
fn model_pftk(
    py: Python<'_>,
    loss: f64,
    rtt_s: Seconds,
    window_packets: Option<f64>,
    packets_per_ack: u32,
    timeout_s: Option<Seconds>,
) -> PyResult<Dict<'_>> {
    let path = path(loss, rtt_s, window_packets, packets_per_ack, timeout_s)?;
    let full = pftk::full(&path).map_err(wrong)?;
    let found = of(py, &full.sent)?;
    found.set_item("received_packets_per_s", full.received_packets_per_s)?;
    found.set_item("timeout_probability", full.timeout_probability)?;
    found.set_item("approximate_packets_per_s", pftk::approximate(&path).map_err(wrong)?.packets_per_s)?;
    Ok(found)
}

/// Returns the throughput of a long TCP transfer, without timeouts: the square root law (Mathis, Semke, Mahdavi and Ott
/// 1997).
#[pyfunction]
#[pyo3(signature = (loss, rtt_s, window_packets=None, packets_per_ack=2))]
fn model_mathis(
    py: Python<'_>,
    loss: f64,
    rtt_s: Seconds,
    window_packets: Option<f64>,
    packets_per_ack: u32,
) -> PyResult<Dict<'_>> {
    let (loss, rtt) = (probability("loss", loss)?, span("rtt_s", rtt_s.value("rtt_s")?)?);
    let input = mathis::Input { loss, rtt, packets_per_ack, window: window_packets };
    of(py, &mathis::throughput(&input).map_err(wrong)?)
}

/// Returns the time of a TCP transfer of `segments` segments, with its parts (Cardwell, Savage and Anderson 2000).
#[pyfunction]
#[pyo3(signature = (segments, loss, rtt_s, window_packets=None, packets_per_ack=2, timeout_s=None, initial_window=10, delayed_ack_s=Seconds::Number(0.0)))]
#[expect(clippy::too_many_arguments, reason = "each has a name and a default in Python")]
fn model_cardwell(
    py: Python<'_>,
    segments: u64,
    loss: f64,
    rtt_s: Seconds,
    window_packets: Option<f64>,
    packets_per_ack: u32,
    timeout_s: Option<Seconds>,
    initial_window: u32,
    delayed_ack_s: Seconds,
) -> PyResult<Dict<'_>> {
    let path = path(loss, rtt_s, window_packets, packets_per_ack, timeout_s)?;
    let delayed_ack = span("delayed_ack_s", delayed_ack_s.value("delayed_ack_s")?)?;
    let transfer = cardwell::Transfer { segments, initial_window, path, delayed_ack, handshake: None };
    let latency = transfer.latency().map_err(wrong)?;
    let found = PyDict::new(py);
    found.set_item("transfer_time_s", latency.total_s())?;
    found.set_item("slow_start_s", latency.slow_start_s)?;
    found.set_item("loss_s", latency.loss_s)?;
    found.set_item("congestion_avoidance_s", latency.congestion_avoidance_s)?;
    found.set_item("delayed_ack_s", latency.delayed_ack_s)?;
    Ok(found)
}

/// Returns the throughput of a long TCP transfer over a multilink bundle whose calls drop (Zaghloul, Frost and Mohammad
/// 2005).
#[pyfunction]
#[pyo3(signature = (links, time_between_drops_s, loss, rtt_s, window_packets=None, packets_per_ack=2, timeout_s=None))]
#[expect(clippy::too_many_arguments, reason = "each has a name and a default in Python")]
fn model_mlppp(
    py: Python<'_>,
    links: u32,
    time_between_drops_s: Seconds,
    loss: f64,
    rtt_s: Seconds,
    window_packets: Option<f64>,
    packets_per_ack: u32,
    timeout_s: Option<Seconds>,
) -> PyResult<Dict<'_>> {
    let path = path(loss, rtt_s, window_packets, packets_per_ack, timeout_s)?;
    let time_between_drops =
        span("time_between_drops_s", time_between_drops_s.value("time_between_drops_s")?)?;
    let model = mlppp::Model::new(mlppp::Bundle { links, time_between_drops, path }).map_err(wrong)?;
    let found = of(py, &model.throughput())?;
    found.set_item("without_drops_packets_per_s", model.without_drops().packets_per_s)?;
    found.set_item("drops_per_s", model.drops_per_s())?;
    found.set_item("share_sending", model.share_sending())?;
    Ok(found)
}

/// Returns the throughput of a long PGM session under PGMCC, as its acker sees it (draft-ietf-rmt-bb-pgmcc-03).
#[pyfunction]
#[pyo3(signature = (loss, rtt_s, window_packets=None))]
fn model_pgmcc(py: Python<'_>, loss: f64, rtt_s: Seconds, window_packets: Option<f64>) -> PyResult<Dict<'_>> {
    let (loss, rtt) = (probability("loss", loss)?, span("rtt_s", rtt_s.value("rtt_s")?)?);
    let input = pgmcc::Input { loss, rtt, window: window_packets };
    let found = of(py, &pgmcc::throughput(&input).map_err(wrong)?)?;
    found.set_item("slowness_s", pgmcc::slowness_s(&input).map_err(wrong)?)?;
    Ok(found)
}
