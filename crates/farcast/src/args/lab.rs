//! The flags of the laboratory: what is varied, how often it is simulated, where results go.

use std::path::PathBuf;

use clap::Args;
use farcast_core::Probability;
use farcast_core::units::Bytes;
use farcast_lab::vary::Axis;

/// Options of a scenario and its replications.
#[derive(Args, Debug)]
pub(crate) struct LabArgs {
    /// A scenario: a TOML file, or the name of one that ships with farcast (see simulate --list). A link alone, as for
    /// emulate, needs --traffic.
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: String,
    /// Send this over a link that describes no traffic, as for simulate; may be given again.
    #[arg(help_heading = "Scenario", long, value_name = "PROTOCOL[,KEY=VALUE]...")]
    pub(crate) traffic: Vec<String>,
    /// Set a key of the scenario for all points, as in receivers=100; may be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random numbers. The same seed gives the same results, on any number of threads. All points have the
    /// same random numbers.
    #[arg(help_heading = "Replications", long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each core].
    #[arg(help_heading = "Replications", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Most memory to use [default: nine tenths of the machine's available memory].
    #[arg(help_heading = "Replications", long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only, and with --json the result.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of `farcast sweep`.
#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) lab: LabArgs,
    /// Vary a key over values (KEY=0.001,0.005), whole numbers (KEY=1..10), N values evenly apart (KEY=0 ms..80 ms/5) or
    /// in equal ratios (KEY=0.001..0.1*3); given again, every combination is a point.
    #[arg(long, required = true, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<Axis>,
    /// Replications of each point [default: 100].
    #[arg(help_heading = "Replications", long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "precision")]
    pub(crate) replications: Option<u64>,
    /// At each point, run replications until the 95 % confidence interval of the mean completion time is this narrow,
    /// as in 2 %.
    #[arg(help_heading = "Replications", long, value_name = "SHARE")]
    pub(crate) precision: Option<Probability>,
    /// Most replications of a point with --precision.
    #[arg(help_heading = "Replications", long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) most: u64,
    /// Keep results in this directory: sweep.parquet (every replication), summary.csv, and a page, report.html. A
    /// journal of finished points lets an interrupted sweep continue.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Show this figure; may be given again [default: completion_time_s, or goodput where nothing has an end].
    #[arg(long, value_name = "FIGURE")]
    pub(crate) column: Vec<String>,
}

/// Arguments of `farcast tune`.
#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) lab: LabArgs,
    /// Try these values of a key, written as for sweep; given again, every combination [default: the table tune
    /// of the scenario].
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<Axis>,
    /// Figure to minimise, with its statistic (mean, p05, p50, p90, p95, p99, min or max), as in completion_time_s.p95
    /// [default: the scenario's, or completion_time_s.mean].
    #[arg(long, value_name = "FIGURE[.STATISTIC]")]
    pub(crate) minimise: Option<String>,
    /// Accept only settings that keep this bound, as in 'forward.octets < 1.2 * file' or 'completion_time_s.p95 < 60
    /// s'; may be given again.
    #[arg(long, value_name = "FIGURE < BOUND")]
    pub(crate) subject_to: Vec<String>,
    /// Judge settings by their mean over a range of an unknown key, as in link.forward.per=0.001..0.05 (five values in
    /// equal ratios by default); given again, every combination.
    #[arg(help_heading = "Scenario", long, value_name = "KEY=VALUES")]
    pub(crate) robust: Vec<String>,
    /// Tune separately for this case, as in "receivers=40, link.forward.per=0.005"; may be given again.
    #[arg(help_heading = "Scenario", long, value_name = "KEY=VALUE[, KEY=VALUE]...")]
    pub(crate) case: Vec<String>,
    /// Most replications of a setting. Settings that cannot be told from the best have this many.
    #[arg(help_heading = "Replications", long, short = 'n', default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) replications: u64,
    /// Replications of each setting before the first is dropped.
    #[arg(help_heading = "Replications", long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) first: u64,
    /// Probability that the best setting is not dropped by mistake.
    #[arg(help_heading = "Replications", long, default_value = "95 %", value_name = "SHARE")]
    pub(crate) confidence: Probability,
    /// Write the best settings to a file that send --plan takes.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) plan: Option<PathBuf>,
    /// Draw the results as a page.
    #[arg(help_heading = "Pages", long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

/// Arguments of `farcast compare`.
#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// First set: a sweep's directory, or a file .parquet, .csv, or .json of simulate.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Second set.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Compare this column; may be given again [default: completion_time_s, or all columns of numbers].
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Vec<String>,
    /// Compare row i of A with row i of B, for replications with the same seed. Differences are then known much more
    /// exactly.
    #[arg(long)]
    pub(crate) paired: bool,
    /// Draw the results as a page.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Confidence of all comparisons together.
    #[arg(long, default_value = "95 %", value_name = "SHARE")]
    pub(crate) confidence: Probability,
    /// Print a JSON array: one object for each comparison.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only, and with --json the result.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
