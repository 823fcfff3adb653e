//! Prediction of a one-way transmission over a link, without sending anything. It tells how many receivers would have
//! everything, when, and how much has to be added for a share of them.

use farcast_core::{Span, Time};
use farcast_lab::shipped;
use farcast_oneway::{Duration, Sender, SenderConfig};
use farcast_scenario::Document;
use farcast_sim::advice::Naming;
use farcast_sim::outcome::{Remedies, Replication, TransferOutcome, reasons};
use farcast_sim::scenario::{LinkAlone, Scenario, Sealed, one_way};
use farcast_stats::quantile;
use farcast_transfer::send::{Scanned, SendOneWay, how_long};
use serde_json::{Value, json};

use super::{remedies, replications, sealed};
use crate::args::SendArgs;
use crate::output::Output;
use crate::progress::size;
use crate::simulate::tell_advice;
use crate::table::{Align, Table};
use crate::text::Text;
use crate::{Exit, Failure};

/// Number of receivers in each replication, if the transfer has no list. The real number is unknown, and no receiver
/// depends on another.
const RECEIVERS: u32 = 50;
/// Shares of the receivers for which the prediction tells how much to add.
const SHARES: [(f64, &str); 4] = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")];
/// Most that can be added, in per cent.
const MOST: u32 = 900;
/// Time that a link may take besides the time of sending.
const SLACK: Span = Span::from_secs(3600);

/// Options that help if not all receivers would have everything.
pub(super) const HELP: Remedies = {
    let more = "Raise --overhead or --repeat.";
    remedies(more, more)
};

/// Prints the predicted transmission of `files` over `link`.
pub(super) fn predict(
    args: &SendArgs,
    protocol: &SendOneWay,
    files: &Scanned,
    link: &str,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let document = shipped::open_link(link).map_err(Failure::wrong)?;
    let config = protocol.configured(&args.job, files)?;
    let seal = sealed(protocol, protocol.keys_in());
    let advice = scenario(&config, &document, Span::MAX, seal)?.0.advice(Naming::Options);
    tell_advice(&advice, output);
    let run = |config: &SenderConfig, limit: Span| {
        let (scenario, _) = scenario(config, &document, limit, seal)?;
        replications(args, &scenario, true, output)
    };
    let sent = run(&config, protocol.settings().time_limit)?;
    // A run with every symbol of the code, sent once, tells how many each receiver needs.
    let whole = SenderConfig {
        duration: Duration::Rounds(1),
        overhead_percent: whole_code(&config),
        head: 0,
        ..config.clone()
    };
    let all = run(&whole, Span::MAX)?;
    let predicted = Predicted::of((&config, receivers(seal)), &sent, &all)?;
    let why = reasons(&sent, &HELP);
    let mut fields = predicted.fields(link, files.octets());
    if !why.is_empty() {
        fields["why_unfinished"] = json!(why);
    }
    if !advice.is_empty() {
        fields["advice"] = json!(advice);
    }
    output.event("prediction", fields);
    output.result(&predicted.text(&config, link, files.octets()).then(Text::lines(why)));
    Ok(if predicted.complete < predicted.receivers { Exit::Incomplete } else { Exit::Done })
}

/// Returns the number of receivers in each replication.
fn receivers(seal: Option<Sealed>) -> u32 {
    // A sealed transfer has a list of receivers.
    seal.map_or(RECEIVERS, |seal| seal.listed)
}

/// Returns the transmission of `config` over the link in `document`, within `limit`, and the number of its receivers.
pub(super) fn scenario(
    config: &SenderConfig,
    document: &Document,
    limit: Span,
    seal: Option<Sealed>,
) -> Result<(Scenario, u32), Failure> {
    let time_limit = limit.min(takes(config)? * 2 + SLACK);
    let link = LinkAlone { document, receivers: receivers(seal), time_limit, sealed: seal };
    let scenario = one_way::over(&link, config).map_err(Failure::wrong)?;
    Ok((scenario, link.receivers))
}

/// Returns the time that sending takes.
fn takes(config: &SenderConfig) -> Result<Span, Failure> {
    let mut sender = Sender::new(config.clone()).map_err(Failure::wrong)?;
    sender.open(Time::ZERO);
    Ok(sender.left())
}

/// Returns the part that is added if all symbols of the code are sent once, in whole per cent.
fn whole_code(config: &SenderConfig) -> u32 {
    (config.shape.parity() * 100 / config.shape.geometry().block_size()).min(MOST)
}

/// Returns the least part, in whole per cent, that has to be added so that a round sends `symbols` symbols of each
/// block of `block` segments.
fn added(block: u32, symbols: u32) -> u32 {
    match u64::from(symbols.saturating_sub(block)) {
        0 => 0,
        more => ((more - 1) * 100 / u64::from(block)) as u32 + 1,
    }
}

/// Figure over all receivers.
#[derive(Debug)]
struct Figure {
    /// Mean, or `None` if some receivers have no value.
    mean: Option<f64>,
    /// Quantiles of 2.5 %, 50 % and 97.5 %, each `None` if too few receivers have a value.
    at: [Option<f64>; 3],
}

impl Figure {
    /// Returns the figure of `values`. A receiver without a value ranks behind all others.
    fn of(values: &[Option<f64>]) -> Self {
        let mut sorted: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::MAX)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |p| quantile(&sorted, p).ok().filter(|&value| value < f64::MAX / 1e9);
        let sum: Option<f64> = values.iter().copied().sum();
        Self {
            mean: sum.filter(|_| !values.is_empty()).map(|sum| sum / values.len() as f64),
            at: [at(0.025), at(0.5), at(0.975)],
        }
    }

    fn fields(&self) -> Value {
        json!({ "mean": self.mean, "p02_5": self.at[0], "p50": self.at[1], "p97_5": self.at[2] })
    }

    fn cells(&self, places: usize, unit: &str) -> [String; 2] {
        let shown = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.places$}"));
        let [low, _, high] = self.at;
        [shown(self.mean) + unit, format!("{} to {}{unit}", shown(low), shown(high))]
    }
}

/// Result of a prediction.
#[derive(Debug)]
struct Predicted {
    replications: usize,
    /// Number of receivers in each replication.
    each: u32,
    receivers: usize,
    complete: usize,
    /// Seconds until a receiver has everything.
    time: Figure,
    /// Octets sent until then divided by the size, if each symbol is sent once.
    needed: Figure,
    /// Octets sent, with all headers.
    octets: f64,
    /// Parts to add for these shares, in per cent. `None` if even the whole code is too little.
    added: Vec<(f64, &'static str, Option<u32>)>,
}

impl Predicted {
    fn of(
        (config, each_has): (&SenderConfig, u32),
        sent: &[Replication],
        all: &[Replication],
    ) -> Result<Self, Failure> {
        let times = each(sent, |transfer| transfer.receivers.as_deref());
        let symbols = each(all, |transfer| transfer.symbols_needed.as_deref());
        if times.is_empty() || symbols.is_empty() {
            return Err(Failure { sentence: "there is nothing to sum up".into(), exit: Exit::Failed });
        }
        let block = config.shape.geometry().block_size();
        let share = |symbols: u32| f64::from(symbols) / f64::from(block);
        let needed: Vec<_> = symbols.iter().map(|symbols| symbols.map(share)).collect();
        let mut sorted: Vec<u32> = symbols.iter().map(|symbols| symbols.unwrap_or(u32::MAX)).collect();
        sorted.sort_unstable();
        let of_share = |(share, text): (f64, &'static str)| {
            // A rounding error must not ask for one receiver more.
            let at = (share * sorted.len() as f64 - 1e-9).ceil() as usize;
            let symbols = sorted.get(at.saturating_sub(1)).copied().filter(|&symbols| symbols < u32::MAX);
            (share, text, symbols.map(|symbols| added(block, symbols)))
        };
        Ok(Self {
            replications: sent.len(),
            each: each_has,
            receivers: times.len(),
            complete: times.iter().flatten().count(),
            time: Figure::of(&times),
            needed: Figure::of(&needed),
            octets: sent.iter().map(|one| one.forward.octets as f64).sum::<f64>() / sent.len() as f64,
            added: SHARES.into_iter().map(of_share).collect(),
        })
    }

    fn share(&self) -> f64 {
        self.complete as f64 / self.receivers as f64
    }

    fn fields(&self, link: &str, octets: u64) -> Value {
        let added = self.added.iter();
        let added = added.map(|(share, _, percent)| json!({ "share": share, "overhead_percent": percent }));
        json!({
            "link": link, "size_bytes": octets, "replications": self.replications, "receivers": self.receivers,
            "complete": self.complete, "complete_share": self.share(), "forward": { "octets": self.octets },
            "completion_time_s": self.time.fields(), "sent_over_size": self.needed.fields(),
            "for_shares": added.collect::<Vec<_>>(),
        })
    }

    fn text(&self, config: &SenderConfig, link: &str, octets: u64) -> Text {
        let right = |text| (text, Align::Right);
        let mut table = Table::new(&[("", Align::Left), right("mean"), right("95 % of receivers")]);
        for (what, [mean, range]) in [
            ("a receiver has everything after", self.time.cells(2, " s")),
            ("sent until then, over the size", self.needed.cells(3, "")),
        ] {
            table.row([what.to_owned(), mean, range]);
        }
        let mut shares =
            Table::new(&[("so that so many have everything", Align::Left), right("added in one round")]);
        for (_, share, percent) in &self.added {
            let percent = percent.map_or("more than there is".into(), |percent| format!("{percent} %"));
            shares.row([(*share).to_owned(), percent]);
        }
        let how = how_long(config.duration);
        let (complete, all, replications) = (self.complete, self.receivers, self.replications);
        let heading = format!(
            "predicted: {} one way over {link}, {replications} replications with {} each; nothing was sent",
            size(octets),
            if self.each == 1 { "1 receiver".into() } else { format!("{} receivers", self.each) },
        );
        let sent = format!(
            "sent {how} with {} % added, {} on the link in all, {complete} of {all} receivers have everything \
             ({:.2} %)",
            config.overhead_percent,
            size(self.octets as u64),
            // A share below 100 % is not rounded up to 100 %.
            (self.share() * 1e4).floor() / 100.0,
        );
        Text::paragraphs([Text::line(&heading), table.render(), Text::line(&sent), shares.render()])
    }
}

/// Returns the value that `of` gives for each receiver of each replication.
fn each<T: Copy + Into<f64>>(
    replications: &[Replication],
    of: impl Fn(&TransferOutcome) -> Option<&[Option<T>]>,
) -> Vec<Option<T>> {
    let transfers = replications.iter().filter_map(|one| one.transfer.as_ref());
    transfers.filter_map(of).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_the_least_that_does() {
        for block in [1, 7, 100, 127, 8192] {
            for symbols in 1..=2 * block {
                let percent = added(block, symbols);
                let sends = |percent: u32| block + (block * percent).div_ceil(100);
                assert!(sends(percent) >= symbols, "{symbols} of {block}: {percent} %");
                assert!(percent == 0 || sends(percent - 1) < symbols, "{symbols} of {block}: {percent} %");
            }
        }
    }

    #[test]
    fn who_has_nothing_is_beyond_all_others() {
        let some: Vec<_> = (0..100).map(|n| (n < 97).then_some(f64::from(n))).collect();
        let figure = Figure::of(&some);
        assert_eq!(figure.mean, None);
        assert_eq!((figure.at[1], figure.at[2]), (Some(49.5), None));
        assert_eq!(figure.cells(1, " s"), ["- s".to_owned(), "2.5 to - s".to_owned()]);
        assert_eq!(Figure::of(&[Some(1.0), Some(3.0)]).mean, Some(2.0));
    }
}
