//! Prediction of a transfer over a link, without sending anything.

use farcast_core::BitRate;
use farcast_delivery::{Forecast, Forecasting as _, Protocol};
use farcast_lab::replications::Memory;
use farcast_lab::shipped;
use farcast_mftp::{Secret, SenderConfig};
use farcast_scenario::Document;
use farcast_sim::advice::{Naming, over_return};
use farcast_sim::outcome::{Measure, Remedies, Replication, reasons};
use farcast_sim::replicate::{HowMany, Plan};
use farcast_sim::scenario::{LinkAlone, Scenario, Sealed, mdp, norm, pgm};
use farcast_stats::quantile;
use farcast_transfer::send::settings::ProtocolOptions;
use farcast_transfer::send::{
    Scanned, SendJob, SendMdp, SendMftp, SendNorm, SendOneWay, SendPgm, SendProtocol, datagram_to,
};
use serde_json::{Value, json};

use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::size;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure, simulate};

mod one_way;

/// Random seed of all predictions: the same command predicts the same.
const SEED: u64 = 1;

/// Placeholder for the secret of a sender with proofs, which the simulation replaces.
const NO_SECRET: Secret = Secret([0; 32]);

const HOW_MANY: &str = "--predict has to know how many receive: list them with --receivers, or give their number with --group-size";
const HOW_MANY_REGISTER: &str = "--predict has to know how many receive: list them with --receivers, or give their number with --wait-for";
const NOBODY_KNOWN: &str = "--predict has to know how many receive, and nobody is known where nobody registers: predict it without --unlimited, with their number by --wait-for";

/// Returns the remedies, with the options that help against `silence` and against the end of repair `requests`.
const fn remedies(silence: &'static str, requests: &'static str) -> Remedies {
    let time = "Raise --time-limit.";
    Remedies { time, transfer_time: time, silence, requests, nobody: "Raise --announce-time." }
}

/// Options that help by NORM and MDP.
const ROBUST: Remedies = remedies(
    "Raise --robust.",
    "Name the receivers with --receivers, so that each is waited for, or raise --robust.",
);

/// Protocol whose transfers can be predicted.
pub(super) trait Predict: SendProtocol {
    /// Options that help if the transfer is not complete.
    const HELP: Remedies;

    /// Returns the transfer of `files` over the link in `document`, and the number of its receivers.
    fn scenario(
        &self,
        job: &SendJob,
        files: &Scanned,
        document: &Document,
    ) -> Result<(Scenario, u32), Failure>;

    /// Returns what is known of a transfer of `files` over a return whose rate the user gives; `None` if the user gives
    /// none, or nobody knows how many receive.
    fn over_return(&self, _job: &SendJob, _files: &Scanned) -> Option<OverReturn> {
        None
    }

    /// Prints the predicted transfer of `files` over `link`.
    fn predict(
        &self,
        args: &SendArgs,
        files: &Scanned,
        link: &str,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let document = shipped::open_link(link).map_err(Failure::wrong)?;
        let (scenario, receivers) = self.scenario(&args.job, files, &document)?;
        let advice = scenario.advice(Naming::Options);
        simulate::tell_advice(&advice, output);
        let replications = replications(args, &scenario, false, output)?;
        let took = Took::of(&replications, <Self::Protocol as Protocol>::WORDS.round.many)?;
        let why = reasons(&replications, &Self::HELP);
        let octets = files.octets();
        let mut fields = took.fields(link, receivers, octets);
        if !why.is_empty() {
            fields["why_unfinished"] = json!(why);
        }
        if !advice.is_empty() {
            fields["advice"] = json!(advice);
        }
        output.event("prediction", fields);
        output.result(&took.table(link, receivers, octets).then(Text::lines(why)));
        Ok(if took.unfinished > 0 { Exit::Incomplete } else { Exit::Done })
    }
}

/// Transfer over a return whose rate is known.
pub(super) struct OverReturn {
    /// Messages of the receivers.
    forecast: Forecast,
    /// Number of receivers.
    receivers: u64,
    /// Rate of the return.
    rate: BitRate,
}

/// Gives advice on a transfer of `files` by `protocol` that is about to begin.
pub(super) fn advise<P: Predict>(protocol: &P, args: &SendArgs, files: &Scanned, output: &mut Output) {
    let Some(OverReturn { forecast, receivers, rate }) = protocol.over_return(&args.job, files) else {
        return;
    };
    for sentence in over_return(&forecast, receivers, rate, Naming::Options) {
        output.line(&format!("note: {sentence}"));
        output.event("advice", json!({ "advice": sentence }));
    }
}

/// Returns the seal of a transfer whose keys leave in datagrams of `datagram` octets.
fn sealed<P: SendProtocol>(protocol: &P, datagram: usize) -> Option<Sealed> {
    let sealing = protocol.basis().sealing.as_ref();
    sealing.map(|sealing| Sealed { listed: sealing.peers(), datagram })
}

/// Returns the number of receivers: that of the `named` ones, or the `given` number.
fn how_many(named: usize, given: Option<u32>) -> Result<u32, Failure> {
    match named {
        0 => given.ok_or_else(|| Failure::usage(HOW_MANY)),
        named => Ok(u32::try_from(named).unwrap_or(u32::MAX)),
    }
}

impl Predict for SendMftp {
    const HELP: Remedies = remedies(
        "Raise --silence or --status-retries.",
        "Have receivers registered (without --unlimited), so that each is waited for, or raise --status-retries.",
    );

    fn scenario(
        &self,
        job: &SendJob,
        files: &Scanned,
        document: &Document,
    ) -> Result<(Scenario, u32), Failure> {
        let receivers = match (job.group.receivers.len(), self.settings().wait_for) {
            (0, Some(receivers)) => receivers,
            (0, None) if job.group.unlimited => return Err(Failure::usage(NOBODY_KNOWN)),
            (0, None) => return Err(Failure::usage(HOW_MANY_REGISTER)),
            (listed, _) => u32::try_from(listed).unwrap_or(u32::MAX),
        };
        let secret = self.has_proofs(job).then_some(NO_SECRET);
        let config = SenderConfig { secret, ..self.configured(job, files, self.basis().to)? };
        let seal = sealed(self, self.keys_in(job));
        let scenario = Scenario::over(document, config, seal, receivers);
        Ok((scenario.map_err(Failure::wrong)?, receivers))
    }

    fn over_return(&self, job: &SendJob, files: &Scanned) -> Option<OverReturn> {
        let settings = self.settings();
        let rate = settings.return_rate?;
        let listed = job.group.receivers.len() as u64;
        let receivers = if listed > 0 { listed } else { settings.wait_for?.into() };
        let config = self.configured(job, files, self.basis().to).ok()?;
        Some(OverReturn { forecast: config.forecast(), receivers, rate })
    }
}

impl Predict for SendNorm {
    const HELP: Remedies = ROBUST;

    fn scenario(
        &self,
        job: &SendJob,
        files: &Scanned,
        document: &Document,
    ) -> Result<(Scenario, u32), Failure> {
        let (settings, to) = (self.settings(), self.basis().to);
        let receivers = how_many(self.named(), settings.receivers)?;
        let config = self.configured(job, files, to);
        let sealed = sealed(self, datagram_to(job, to));
        let link = LinkAlone { document, receivers, time_limit: settings.time_limit, sealed };
        let scenario = norm::over(&link, &config);
        Ok((scenario.map_err(Failure::wrong)?, receivers))
    }

    fn over_return(&self, job: &SendJob, files: &Scanned) -> Option<OverReturn> {
        let (rate, receivers) = (self.settings().return_rate?, self.named() as u64);
        let config = self.configured(job, files, self.basis().to);
        Some(OverReturn { forecast: config.forecast(), receivers, rate })
    }
}

impl Predict for SendMdp {
    const HELP: Remedies = ROBUST;

    fn scenario(
        &self,
        job: &SendJob,
        files: &Scanned,
        document: &Document,
    ) -> Result<(Scenario, u32), Failure> {
        let (settings, to) = (self.settings(), self.basis().to);
        let ProtocolOptions { plan, keys, .. } = &job.protocol;
        let chosen = plan.is_some() || !keys.is_empty() || job.protocol.option("group-size").is_some();
        let receivers = how_many(self.named(), chosen.then_some(settings.receivers))?;
        // A configuration that cannot be sent is not predicted either.
        self.check_configuration(job, files)?;
        let config = self.configured(job, files, to);
        let sealed = sealed(self, datagram_to(job, to));
        let link = LinkAlone { document, receivers, time_limit: settings.time_limit, sealed };
        let scenario = mdp::over(&link, settings, &config);
        Ok((scenario.map_err(Failure::wrong)?, receivers))
    }
}

impl Predict for SendPgm {
    const HELP: Remedies = remedies(
        "Raise --linger.",
        "Name the receivers with --receivers, so that each is waited for, or raise --linger.",
    );

    fn scenario(
        &self,
        job: &SendJob,
        files: &Scanned,
        document: &Document,
    ) -> Result<(Scenario, u32), Failure> {
        let (settings, to) = (self.settings(), self.basis().to);
        let receivers = how_many(self.named(), settings.receivers)?;
        // A configuration that cannot be sent is not predicted either.
        self.check_configuration(job, files)?;
        let config = self.configured(job, files, to);
        let sealed = sealed(self, datagram_to(job, to));
        let link = LinkAlone { document, receivers, time_limit: settings.time_limit, sealed };
        let scenario = pgm::over(&link, &config, settings.round_trip);
        Ok((scenario.map_err(Failure::wrong)?, receivers))
    }
}

impl Predict for SendOneWay {
    const HELP: Remedies = one_way::HELP;

    fn scenario(
        &self,
        job: &SendJob,
        files: &Scanned,
        document: &Document,
    ) -> Result<(Scenario, u32), Failure> {
        let config = self.configured(job, files)?;
        one_way::scenario(&config, document, self.settings().time_limit, sealed(self, self.keys_in()))
    }

    fn predict(
        &self,
        args: &SendArgs,
        files: &Scanned,
        link: &str,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        one_way::predict(args, self, files, link, output)
    }
}

/// Simulates the transfer as often as `args` ask for, with the time of each receiver if `per_receiver` is set.
fn replications(
    args: &SendArgs,
    scenario: &Scenario,
    per_receiver: bool,
    output: &Output,
) -> Result<Vec<Replication>, Failure> {
    let total = u64::from(args.replications);
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
