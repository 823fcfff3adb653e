//! Prediction of a transfer over a link, without sending anything.

use farcast_lab::replications::Memory;
use farcast_sim::outcome::{Measure, Remedies, Replication, reasons};
use farcast_sim::replicate::{HowMany, Plan};
use farcast_sim::scenario::Scenario;
use farcast_stats::quantile;
use serde_json::{Value, json};

use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::size;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure, simulate};

/// Random seed of all predictions: the same command predicts the same.
const SEED: u64 = 1;

/// Transfer to predict.
pub(super) struct Predicted<'a> {
    /// Scenario of the transfer over the link.
    pub(super) scenario: Scenario,
    /// Name of the link, as the user gave it.
    pub(super) link: &'a str,
    /// Number of receivers.
    pub(super) receivers: u32,
    /// Octets of the files.
    pub(super) octets: u64,
    /// Name of the figure that counts the protocol's rounds.
    pub(super) rounds: &'static str,
    /// Options that help if the transfer is not complete.
    pub(super) help: Remedies,
}

/// Returns the remedies, with the options that help against `silence` and against the end of repair `requests`.
pub(super) const fn remedies(silence: &'static str, requests: &'static str) -> Remedies {
    let time = "Raise --time-limit.";
    Remedies { time, transfer_time: time, silence, requests, nobody: "Raise --announce-time." }
}

/// Prints the predicted transfer.
pub(super) fn predict(args: &SendArgs, what: &Predicted<'_>, output: &mut Output) -> Result<Exit, Failure> {
    let Predicted { scenario, link, receivers, octets, rounds, help } = what;
    let replications = replications(args, scenario, false, output)?;
    let took = Took::of(&replications, rounds)?;
    let why = reasons(&replications, help);
    let mut fields = took.fields(link, *receivers, *octets);
    if !why.is_empty() {
        fields["why_unfinished"] = json!(why);
    }
    output.event("prediction", fields);
    output.result(&took.table(link, *receivers, *octets).then(Text::lines(why)));
    Ok(if took.unfinished > 0 { Exit::Incomplete } else { Exit::Done })
}

/// Simulates the transfer as often as `args` ask for, with the time of each receiver if `per_receiver` is set.
pub(super) fn replications(
    args: &SendArgs,
    scenario: &Scenario,
    per_receiver: bool,
    output: &Output,
) -> Result<Vec<Replication>, Failure> {
    let total = u64::from(args.protocol.replications);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let plan = Plan { seed: SEED, how_many: HowMany::Count(total), threads, per_receiver };
    let interrupted = crate::interrupt::interrupted()?;
    simulate::replications(scenario, &plan, &Memory::of_machine(), &interrupted, output)
}

/// Figure over all replications.
struct Figure {
    what: &'static str,
    key: &'static str,
    unit: &'static str,
    measure: Measure,
    /// Range in which 95 % of all transfers lie.
    range: Option<(f64, f64)>,
}

/// Result of a prediction.
struct Took {
    figures: Vec<Figure>,
    unfinished: usize,
    replications: usize,
}

impl Took {
    fn of(replications: &[Replication], rounds: &'static str) -> Result<Self, Failure> {
        type Of<'a> = &'a dyn Fn(&Replication) -> Option<f64>;
        let figures: [(&str, &str, &str, Of<'_>); 8] = [
            ("slowest receiver has it after", "completion_time_s", "s", &|one| one.completion_time_s),
            ("the median receiver after", "median_receiver_time_s", "s", &|one| {
                one.transfer.as_ref()?.median_receiver_time_s()
            }),
            ("data begins after", "data_begins_s", "s", &|one| one.transfer.as_ref()?.data_begins_s),
            ("rounds", rounds, "", &|one| Some(one.transfer.as_ref()?.count(rounds)? as f64)),
            ("octets sent", "forward.octets", "B", &|one| Some(one.forward.octets as f64)),
            ("octets of answers", "return.octets", "B", &|one| Some(one.back.octets as f64)),
            ("octets of keys", "seal.keys_octets", "B", &|one| Some(one.seal?.keys_octets as f64)),
            ("of the seal in all", "seal.octets", "B", &|one| {
                one.seal.map(|seal| (seal.forward_octets + seal.return_octets) as f64)
            }),
        ];
        let is_sealed = replications.iter().any(|one| one.seal.is_some());
        let of_seals = ["seal.keys_octets", "seal.octets"];
        let shown = figures.into_iter().filter(|(_, key, ..)| is_sealed || !of_seals.contains(key));
        let figures = shown.map(|(what, key, unit, of)| {
            let mut values: Vec<f64> = replications.iter().filter_map(of).collect();
            let whole = values.len() == replications.len();
            values.sort_unstable_by(f64::total_cmp);
            let at = |share| quantile(&values, share).ok().filter(|_| whole);
            let measure = Measure::of(replications.iter().map(of))?;
            Ok(Figure { what, key, unit, measure, range: at(0.025).zip(at(0.975)) })
        });
        let figures = figures.collect::<Result<_, farcast_stats::StatsError>>()?;
        let incomplete = |one: &Replication| one.transfer.as_ref().is_some_and(|one| one.incomplete > 0);
        let unfinished = replications.iter().filter(|one| incomplete(one)).count();
        Ok(Self { figures, unfinished, replications: replications.len() })
    }

    fn fields(&self, link: &str, receivers: u32, octets: u64) -> Value {
        let mut fields = json!({
            "link": link, "receivers": receivers, "size_bytes": octets,
            "replications": self.replications, "unfinished": self.unfinished,
        });
        for Figure { key, measure, range, .. } in &self.figures {
            let place = match key.split_once('.') {
                Some((group, name)) => &mut fields[group][name],
                None => &mut fields[*key],
            };
            *place = json!({
                "mean": measure.mean, "ci95_half_width": measure.ci95_half_width,
                "p02_5": range.map(|range| range.0), "p50": measure.p50, "p97_5": range.map(|range| range.1),
            });
        }
        fields
    }

    fn table(&self, link: &str, receivers: u32, octets: u64) -> Text {
        let right = |text| (text, Align::Right);
        let mut table = Table::new(&[
            ("", Align::Left),
            right("mean"),
            right("95 % interval"),
            right("95 % of transfers"),
        ]);
        for Figure { what, unit, measure, range, .. } in &self.figures {
            let shown = |value: f64| format!("{value:.places$}", places = if *unit == "B" { 0 } else { 2 });
            let number = |value: Option<f64>| value.map_or("-".into(), shown);
            let range = range.map_or("-".into(), |(low, high)| format!("{} to {}", shown(low), shown(high)));
            let half = measure.ci95_half_width.map_or("-".into(), |half| format!("\u{b1} {}", shown(half)));
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            table.row([(*what).to_owned(), number(measure.mean) + &unit, half, range]);
        }
        let receivers = if receivers == 1 { "1 receiver".into() } else { format!("{receivers} receivers") };
        let (all, unfinished) = (self.replications, self.unfinished);
        let heading = format!(
            "predicted: {} to {receivers} over {link}, {all} replications; nothing was sent",
            size(octets)
        );
        let none = (unfinished > 0)
            .then(|| format!("in {unfinished} of {all} not every receiver got it: there is no mean"));
        Text::paragraphs([Text::line(&heading), table.render(), Text::lines(none)])
    }
}
