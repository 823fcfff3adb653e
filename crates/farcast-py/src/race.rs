//! Tuning.

use farcast_lab::points::Resources;
use farcast_lab::replications::Memory;
use farcast_lab::tune::{Bound as Limit, Entry, Measured, Tuning, plan};
use farcast_lab::vary::{Axis, Grid};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{failed, of_tuning, wrong};
use crate::points::{InterruptWatch, count, workers};
use crate::scenario::Scenario;

/// Runs a race of settings. Returns JSON with the settings in the order of their results, and the best one's plan.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "python/farcast names them")]
pub(crate) fn tune(
    py: Python<'_>,
    scenario: &Scenario,
    vary: Vec<String>,
    minimise: &str,
    subject_to: Vec<String>,
    robust: Vec<String>,
    first: Bound<'_, PyAny>,
    replications: Bound<'_, PyAny>,
    confidence: f64,
    seed: Bound<'_, PyAny>,
    threads: Option<Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let replications = (count("first", &first)?, count("replications", &replications)?);
    let (seed, threads) = (count("seed", &seed)?, workers(threads.as_ref())?);
    let document = scenario.document();
    farcast_lab::World::read(&document).map_err(wrong)?;
    let axes = vary.iter().map(|text| text.parse()).collect::<Result<Vec<Axis>, _>>().map_err(wrong)?;
    let unknown =
        robust.iter().map(|text| Axis::unknown(text)).collect::<Result<Vec<Axis>, _>>().map_err(wrong)?;
    let bounds = subject_to.iter().map(|text| Limit::parse(text, &document)).collect::<Result<Vec<_>, _>>();
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(wrong(format!("a confidence of {confidence}: say a share above 0 and below 1, as 0.95")));
    }
    let settings = Grid::new(axes).map_err(wrong)?;
    settings.check_beside(&document).map_err(wrong)?;
    let tuning = Tuning {
        document: document.clone(),
        settings,
        conditions: Grid::new(unknown).map_err(wrong)?,
        minimise: minimise.parse::<Measured>().map_err(wrong)?,
        bounds: bounds.map_err(wrong)?,
        replications,
        level: confidence,
    };
    let watch = InterruptWatch::new(progress);
    let memory = Memory::of_machine();
    // A document records the questions of its reader and stays in one thread; Python's other threads need not wait for
    // it.
    let tuning = std::sync::Mutex::new(tuning);
    let result = py.detach(|| {
        let work = Resources { seed, threads, memory: &memory, stop: &watch.stop };
        let tuning = tuning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tuning.run(&work, &mut |now| watch.look(now.replications, now.total, now.replications))
    });
    let tuned = watch.result(result.map_err(of_tuning))?;
    let entries: Vec<_> = tuned.entries.iter().map(entry_json).collect();
    let best = tuned.entries.first().map(|entry| plan(&document, &entry.assignments, &entry.name));
    let plan = best.transpose().map_err(wrong)?.flatten();
    let object = json!({
        "settings": entries, "plan": plan, "none_within_bounds": tuned.none_within_bounds, "rounds": tuned.rounds,
        "replications": tuned.replications, "full_grid": tuned.full_grid, "cpu_s": tuned.cpu_s,
        "full_grid_cpu_s": tuned.full_grid_cpu_s,
    });
    serde_json::to_string(&object).map_err(failed)
}

/// Returns a setting and its results, with null for numbers that are not finite.
fn entry_json(entry: &Entry) -> Value {
    let number = |value: f64| value.is_finite().then_some(value);
    json!({
        "set": entry.assignments, "name": entry.name, "is_default": entry.is_default, "fate": entry.fate,
        "replications": entry.replications, "value": number(entry.value),
        "standard_error": number(entry.standard_error), "above_best": number(entry.above_best),
        "above_best_error": number(entry.above_best_error), "chance_of_best": entry.chance,
        "conditions": entry.conditions.iter().map(|&value| number(value)).collect::<Vec<_>>(),
        "bounded": entry.bounded.iter().map(|&value| number(value)).collect::<Vec<_>>(),
    })
}
