//! Points of settings: one is a simulation, a grid of them is a sweep.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use farcast_lab::compare::{LeftOut, Options, compare as compare_tables};
use farcast_lab::points::{PointRequest, PointResult, Resources, run};
use farcast_lab::replications::Memory;
use farcast_lab::sweep::{self, Directory, EarlierResults, Point, Store, SweepError};
use farcast_lab::table::Table as Columns;
use farcast_lab::vary::{Axis, Grid};
use farcast_scenario::document::Document;
use farcast_sim::replicate::HowMany;
use farcast_stats::Precision;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{failed, of_point, of_sweep, wrong};
use crate::scenario::Scenario;
use crate::table::Table;

/// Version of farcast, which results carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the number of replications: `replications`, or with a `precision` until it is reached, but at most `most`.
pub(crate) fn how_many(replications: u64, precision: Option<f64>, most: u64) -> PyResult<HowMany> {
    match precision {
        None if replications == 0 => Err(wrong("there must be a replication")),
        None => Ok(HowMany::Count(replications)),
        Some(relative) if relative > 0.0 && relative < 1.0 => {
            Ok(HowMany::Until(Precision { relative }, most.max(1)))
        }
        Some(relative) => {
            Err(wrong(format!("a precision of {relative}: say a share above 0 and below 1, as 0.02")))
        }
    }
}

/// Reads a whole number from 0 to 2^64 - 1 from any integer type of Python or numpy.
pub(crate) fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract::<u64>().map_err(|_| {
        let shown = value.repr().map_or_else(|_| "that".to_owned(), |shown| shown.to_string());
        wrong(format!("{name} = {shown}: it must be a whole number from 0 to 18446744073709551615"))
    })
}

/// Returns the number of threads; by default the number of cores.
pub(crate) fn workers(threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let said = threads.map(|threads| count("threads", threads)).transpose()?;
    Ok(said.map_or_else(cores, |said| usize::try_from(said).unwrap_or(usize::MAX)).clamp(1, 1024))
}

/// Watcher for Ctrl-C, which also reports progress to a Python callable.
pub(crate) struct InterruptWatch {
    progress: Option<Py<PyAny>>,
    pub(crate) stop: AtomicBool,
    error: Mutex<Option<PyErr>>,
    /// Set by SIGINT. Python checks signals in its main thread only, and a run may be in another.
    interrupted: Arc<AtomicBool>,
    registered: Option<signal_hook::SigId>,
}

impl Drop for InterruptWatch {
    fn drop(&mut self) {
        if let Some(id) = self.registered.take() {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// Returns `KeyboardInterrupt` if Python would raise it for a signal in its main thread.
fn check_interrupt(py: Python<'_>) -> PyResult<()> {
    let signals = py.import("signal")?;
    let handler = signals.call_method1("getsignal", (signal_hook::consts::SIGINT,))?;
    if handler.is(&signals.getattr("default_int_handler")?) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Ok(())
}

impl InterruptWatch {
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let registered =
            signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted)).ok();
        Self { progress, stop: AtomicBool::new(false), error: Mutex::new(None), interrupted, registered }
    }

    /// Reports progress and checks for signals. Runs call this ten times a second, without the interpreter's lock.
    pub(crate) fn look(&self, done: u64, total: u64, replications: u64) {
        let seen = Python::attach(|py| {
            py.check_signals()?;
            if self.interrupted.swap(false, Ordering::Relaxed) {
                check_interrupt(py)?;
            }
            match &self.progress {
                Some(tell) => tell.call1(py, (done, total, replications)).map(drop),
                None => Ok(()),
            }
        });
        if let Err(error) = seen {
            self.stop.store(true, Ordering::Relaxed);
            self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Returns Python's error if there was one, else the result of the run.
    pub(crate) fn result<T>(self, result: PyResult<T>) -> PyResult<T> {
        match self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => result,
        }
    }
}

/// Values over which a key is varied.
#[derive(FromPyObject)]
pub(crate) enum ProgressLine {
    Text(String),
    Values(Vec<String>),
}

/// A grid of settings, each with replications.
#[pyclass(frozen, module = "farcast._native")]
pub(crate) struct Sweep(Mutex<sweep::Sweep>);

impl Sweep {
    fn inner(&self) -> sweep::Sweep {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Sweep {
    /// Creates a sweep. `axes` are keys, each with values as for `--set`, or with the text that follows the key in
    /// `--vary`.
    #[new]
    fn new(
        scenario: &Scenario,
        axes: Vec<(String, ProgressLine)>,
        seed: Bound<'_, PyAny>,
        replications: Bound<'_, PyAny>,
        precision: Option<f64>,
        most: Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let seed = count("seed", &seed)?;
        let (replications, most) = (count("replications", &replications)?, count("most", &most)?);
        let mut all = Vec::new();
        for (key, said) in axes {
            let one = match said {
                ProgressLine::Values(values) => Axis::new(&key, values),
                ProgressLine::Text(text) => format!("{key}={text}").parse(),
            };
            all.push(one.map_err(wrong)?);
        }
        let grid = Grid::new(all).map_err(wrong)?;
        grid.check_beside(&scenario.document()).map_err(wrong)?;
        let how_many = how_many(replications, precision, most)?;
        let sweep =
            sweep::Sweep::new(scenario.document(), grid, seed, how_many, VERSION).map_err(of_sweep)?;
        Ok(Self(Mutex::new(sweep)))
    }

    /// Returns the number of points.
    fn __len__(&self) -> usize {
        self.inner().grid().points()
    }

    /// Returns the settings of a point: keys and values as they were given.
    fn settings(&self, point: usize) -> Vec<(String, String)> {
        let sweep = self.inner();
        let values = sweep.grid().values(point);
        let keys = sweep.grid().axes().iter().map(|axis| axis.key().to_owned());
        keys.zip(values.into_iter().map(str::to_owned)).collect()
    }

    /// Returns the input for another process that runs a point: the document, the files that it names, and the point's
    /// key.
    fn task(&self, point: usize) -> PyResult<(String, BTreeMap<String, String>, Vec<u8>)> {
        let sweep = self.inner();
        let document = sweep.document_at(point).map_err(wrong)?;
        farcast_lab::World::read(&document).map_err(wrong)?;
        let key = sweep.key(point).map_err(wrong)?;
        Ok((document.in_effect(), document.files_read(), key.to_vec()))
    }

    /// Runs the points that `out` does not have yet, in this process and on all cores. `progress` is called with points
    /// done, points in all, and replications.
    fn run(
        &self,
        py: Python<'_>,
        out: Option<PathBuf>,
        threads: Option<Bound<'_, PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Swept> {
        let threads = workers(threads.as_ref())?;
        let watch = InterruptWatch::new(progress);
        // A document records the questions of its reader: only one thread may use it at a time.
        let sweep = Mutex::new(self.inner());
        let result = py.detach(|| -> Result<sweep::Swept, SweepError> {
            let sweep = sweep.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut directory, found) = match &out {
                Some(path) => {
                    let (directory, found, _) = Directory::open(path)?;
                    (Some(directory), found)
                }
                None => (None, EarlierResults::new()),
            };
            let memory = Memory::of_machine();
            let work = Resources { seed: sweep.seed, threads, memory: &memory, stop: &watch.stop };
            let mut nothing = ();
            let store: &mut dyn Store = match &mut directory {
                Some(directory) => &mut directory.journal,
                None => &mut nothing,
            };
            let swept = sweep.run(found, store, &work, &mut |now| {
                watch.look(now.points as u64, now.total as u64, now.replications);
            })?;
            if let Some(directory) = &directory {
                directory.write(&sweep, &swept)?;
            }
            Ok(swept)
        });
        watch.result(result.map(Swept).map_err(of_sweep))
    }

    /// Begins to gather results of other processes, and those that `out` has.
    fn gather(&self, out: Option<PathBuf>) -> PyResult<Gathering> {
        let sweep = self.inner();
        let keys = sweep.keys().map_err(wrong)?;
        let (directory, mut found) = match &out {
            Some(path) => {
                let (directory, found, _) = Directory::open(path).map_err(of_sweep)?;
                (Some(directory), found)
            }
            None => (None, EarlierResults::new()),
        };
        let points: Vec<Option<Point>> = keys.iter().map(|key| found.remove(key)).collect();
        let kept = points.iter().flatten().count();
        Ok(Gathering(Mutex::new(Gathered { sweep, keys, points, directory, kept })))
    }
}

struct Gathered {
    sweep: sweep::Sweep,
    keys: Vec<sweep::PointKey>,
    points: Vec<Option<Point>>,
    directory: Option<Directory>,
    kept: usize,
}

/// Results of a sweep that other processes run.
#[pyclass(frozen, module = "farcast._native")]
pub(crate) struct Gathering(Mutex<Gathered>);

#[pymethods]
impl Gathering {
    /// Returns the points without a result so far.
    fn missing(&self) -> Vec<usize> {
        let gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..gathered.points.len()).filter(|&point| gathered.points[point].is_none()).collect()
    }

    /// Takes the result of [`run_point`] for a point.
    fn put(&self, point: usize, octets: &[u8]) -> PyResult<()> {
        let gathered = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = gathered.keys.get(point).ok_or_else(|| failed("there is no such point"))?;
        let (key, found) = sweep::decode(octets).ok_or_else(|| failed("what a worker sent is no result"))?;
        if key != *expected {
            return Err(failed("what a worker sent is of another point, or of another version of farcast"));
        }
        if let Some(directory) = &mut gathered.directory {
            let done = PointResult { point, figures: found.figures.clone(), cpu_s: found.cpu_s };
            directory.journal.keep(&key, &done).map_err(failed)?;
        }
        gathered.points[point] = Some(found);
        Ok(())
    }

    /// Returns the sweep, once no point is missing.
    fn finish(&self, elapsed_s: f64) -> PyResult<Swept> {
        let gathered = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if gathered.points.iter().any(Option::is_none) {
            return Err(failed("points are missing"));
        }
        let swept = sweep::Swept {
            grid: gathered.sweep.grid().clone(),
            points: std::mem::take(&mut gathered.points).into_iter().flatten().collect(),
            kept: gathered.kept,
            elapsed: farcast_core::Span::from_secs_f64(elapsed_s),
        };
        if let Some(directory) = &gathered.directory {
            directory.write(&gathered.sweep, &swept).map_err(of_sweep)?;
        }
        Ok(Swept(swept))
    }
}

/// Runs one point in a worker process. Returns the octets that [`Gathering::put`] takes. `key` identifies the point.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "it is one call over a network")]
pub(crate) fn run_point<'py>(
    py: Python<'py>,
    text: &str,
    files: BTreeMap<String, String>,
    key: &[u8],
    seed: u64,
    replications: u64,
    precision: Option<f64>,
    most: u64,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut document = Document::parse("scenario", text).map_err(wrong)?;
    for (path, text) in &files {
        document.attach(path, text);
    }
    let key: sweep::PointKey = key.try_into().map_err(|_| wrong("a key has 32 octets"))?;
    let how_many = how_many(replications, precision, most)?;
    let world = farcast_lab::World::read(&document).map_err(wrong)?;
    let (memory, stop) = (Memory::of_machine(), AtomicBool::new(false));
    let done = py.detach(|| {
        let work = Resources { seed, threads: threads.max(1), memory: &memory, stop: &stop };
        let mut result = None;
        let wanted = [PointRequest { point: 0, first: 0, how_many }];
        let mut take = |done: PointResult| -> Result<(), farcast_lab::points::PointError> {
            result = Some(done);
            Ok(())
        };
        run(&wanted, &work, &|_| Ok(world.clone()), &mut take, &mut |_| {}).map(|()| result)
    });
    let done = done.map_err(of_point)?.ok_or_else(|| failed("the point came to nothing"))?;
    Ok(PyBytes::new(py, &sweep::encode(&key, &done).map_err(failed)?))
}

/// Pickled form of a sweep that was run.
type PickledSweep<'py> = (Vec<(String, Vec<String>)>, Vec<Bound<'py, PyBytes>>, usize, u64);

/// A sweep that was run.
#[pyclass(frozen, module = "farcast._native")]
pub(crate) struct Swept(sweep::Swept);

#[pymethods]
impl Swept {
    /// Returns a table with a row for each replication of each point.
    fn table(&self) -> PyResult<Table> {
        Table::of(&Columns::from(&self.0))
    }

    /// Returns the names of the figures of all points, the completion time first.
    fn columns(&self) -> Vec<String> {
        self.0.columns().into_iter().map(str::to_owned).collect()
    }

    /// Returns the figure for `name`, which is its name or a former name.
    fn find(&self, name: &str) -> Option<String> {
        self.0.find(name).map(str::to_owned)
    }

    /// Returns the keys that were varied.
    fn keys(&self) -> Vec<String> {
        self.0.grid.axes().iter().map(|axis| axis.key().to_owned()).collect()
    }

    /// Returns the unit of a key's values in the table.
    fn unit(&self, place: usize) -> Option<&'static str> {
        self.0.grid.axes().get(place)?.numbers().map(|numbers| numbers.unit)
    }

    /// Returns each point's settings as they were given, and as numbers if they are numeric.
    fn settings(&self) -> Vec<Vec<(String, Option<f64>)>> {
        let numbers: Vec<_> = self.0.grid.axes().iter().map(Axis::numbers).collect();
        let point = |point: usize| {
            let indices = self.0.grid.indices(point);
            let values = self.0.grid.values(point).into_iter().zip(indices).zip(&numbers);
            values
                .map(|((said, index), all)| (said.to_owned(), all.as_ref().map(|all| all.values[index])))
                .collect()
        };
        (0..self.0.points.len()).map(point).collect()
    }

    /// Returns the summary of a figure at each point, as JSON.
    fn summary(&self, figure: &str) -> PyResult<String> {
        let all = self.0.points.iter().map(|point| sweep::summary(point, figure));
        let all = all.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        serde_json::to_string(&all).map_err(failed)
    }

    /// Returns for each point the number of replications that reached the time limit.
    fn unfinished(&self) -> Vec<usize> {
        self.0.points.iter().map(Point::unfinished).collect()
    }

    /// Returns `true` if a completion time is defined: for a transfer, or a flow of a given size.
    fn has_end(&self) -> bool {
        self.0.points.iter().any(Point::has_end)
    }

    /// Returns the replications, the points that had been run before, and the CPU time and the real time in seconds.
    fn effort(&self) -> (usize, usize, f64, f64) {
        (self.0.replications(), self.0.kept, self.0.cpu_s(), self.0.elapsed.as_secs_f64())
    }

    /// Returns the pickled form: [`restored`](Self::restored), and its arguments.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledSweep<'py>)> {
        let axes = self.0.grid.axes().iter().map(|axis| (axis.key().to_owned(), axis.values().to_vec()));
        let point = |(number, point): (usize, &Point)| {
            let done = PointResult { point: number, figures: point.figures.clone(), cpu_s: point.cpu_s };
            sweep::encode(&[0; 32], &done).map(|octets| PyBytes::new(py, &octets)).map_err(failed)
        };
        let points = self.0.points.iter().enumerate().map(point).collect::<PyResult<_>>()?;
        let restored = py.get_type::<Self>().getattr("restored")?;
        Ok((restored, (axes.collect(), points, self.0.kept, self.0.elapsed.as_nanos())))
    }

    /// Restores a sweep from its [pickled form](Self::__reduce__): axes, points as octets, the number that had been run
    /// before, and nanoseconds.
    #[staticmethod]
    fn restored(
        axes: Vec<(String, Vec<String>)>,
        points: Vec<Vec<u8>>,
        kept: usize,
        elapsed_ns: u64,
    ) -> PyResult<Self> {
        let axes = axes.into_iter().map(|(key, values)| Axis::new(&key, values));
        let grid = Grid::new(axes.collect::<Result<_, _>>().map_err(wrong)?).map_err(wrong)?;
        let point = |octets: &Vec<u8>| sweep::decode(octets).map(|(_, point)| point);
        let points: Option<Vec<Point>> = points.iter().map(point).collect();
        let points = points.filter(|points| points.len() == grid.points());
        let points = points.ok_or_else(|| wrong("that is no result of this version of farcast"))?;
        let elapsed = farcast_core::Span::from_nanos(elapsed_ns);
        Ok(Self(sweep::Swept { grid, points, kept, elapsed }))
    }

    fn __len__(&self) -> usize {
        self.0.points.len()
    }
}

/// Returns the differences between two results or files of results, as JSON.
#[pyfunction]
pub(crate) fn compare(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    columns: Vec<String>,
    paired: bool,
    level: f64,
) -> PyResult<String> {
    let read = |one: &Bound<'_, PyAny>| -> PyResult<Columns> {
        if let Ok(swept) = one.cast::<Swept>() {
            return Ok(Columns::from(&swept.get().0));
        }
        Columns::read(&one.extract::<PathBuf>()?).map_err(wrong)
    };
    let options = Options { columns, paired, level };
    let compared = compare_tables(&read(a)?, &read(b)?, &options).map_err(wrong)?;
    let all: Vec<_> =
        compared.all.iter().map(|one| serde_json::json!({"words": one.words(), "values": one})).collect();
    let left_out: Vec<_> = compared.left_out.iter().map(LeftOut::words).collect();
    serde_json::to_string(&serde_json::json!({"all": all, "left_out": left_out})).map_err(failed)
}
