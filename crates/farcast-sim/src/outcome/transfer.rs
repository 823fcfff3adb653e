//! Outcomes of the multicast transfer.

use farcast_core::Time;
use farcast_delivery::{Figure, FigureValue, Protocol, SenderEngine as _};
use farcast_stats::{StatsError, quantile};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Measure, Replication, Shortfall};
use crate::world::{Group, Layout, World};

/// Summary of the times at which receivers had everything, in seconds. Quantiles are of Hyndman and Fan's type 7.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ReceiverTimes {
    /// Mean.
    pub mean: f64,
    /// 5 % quantile.
    pub p05: f64,
    /// Median.
    pub p50: f64,
    /// 95 % quantile.
    pub p95: f64,
}

impl ReceiverTimes {
    /// Returns the summary of times that ascend; `None` if there are none.
    fn of(sorted: &[f64]) -> Option<Self> {
        let at = |p| quantile(sorted, p).ok();
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Some(Self { mean, p05: at(0.05)?, p50: at(0.5)?, p95: at(0.95)? })
    }
}

/// Outcome of the multicast transfer of a replication.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TransferOutcome {
    /// Time in seconds at which the sender began to send data.
    pub data_begins_s: Option<f64>,
    /// Figures that the protocol reports, in its order.
    #[serde(flatten, serialize_with = "by_name")]
    pub figures: Vec<Figure>,
    /// Receivers that never had everything.
    pub incomplete: u64,
    /// Receivers that the sender knows to have everything.
    pub confirmed: u64,
    /// Time in seconds at which the sender knew that all receivers have everything. `None` if it never did.
    pub confirmed_time_s: Option<f64>,
    /// Times at which the complete receivers had everything. `None` if no receiver had.
    pub receiver_time_s: Option<ReceiverTimes>,
    /// Time of each receiver in order of number, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<Vec<Option<f64>>>,
    /// Number of symbols of each block that each receiver needed, where asked for and reported; `None` for a receiver
    /// that never had everything.
    #[serde(skip)]
    pub symbols_needed: Option<Vec<Option<u32>>>,
    /// Time in seconds at which the last receiver had everything, if all have.
    #[serde(skip)]
    pub completion_time_s: Option<f64>,
    /// Shortfall, if the transfer ended before all receivers had everything.
    #[serde(skip)]
    pub shortfall: Option<Shortfall>,
}

impl TransferOutcome {
    /// Returns the outcome of the transfer of `world`, which has run.
    pub(super) fn of<P: Protocol, L: Layout<P>>(
        world: &World<'_, P, L>,
        sender: &P::Sender,
        per_receiver: bool,
    ) -> Self {
        let (groups, stop) = (world.groups(), world.final_state());
        let seconds = |at: Time| (at != Time::NEVER).then(|| at.as_secs_f64());
        let each = || groups.iter().flat_map(|group| (0..group.receivers()).map(|n| group.completed(n)));
        let mut done: Vec<f64> = each().filter_map(seconds).collect();
        done.sort_unstable_by(f64::total_cmp);
        let incomplete = (each().count() - done.len()) as u64;
        Self {
            data_begins_s: world.began().map(Time::as_secs_f64),
            figures: sender.figures(&stop.requests),
            incomplete,
            confirmed: world.confirmed(),
            confirmed_time_s: world.all_confirmed().map(Time::as_secs_f64),
            receiver_time_s: ReceiverTimes::of(&done),
            receivers: per_receiver.then(|| each().map(seconds).collect()),
            symbols_needed: per_receiver.then(|| {
                let needed =
                    |group: &Group<P>| (0..group.receivers()).map(|n| group.symbols_needed(n)).collect();
                groups.iter().flat_map::<Vec<_>, _>(needed).collect()
            }),
            completion_time_s: done.last().copied().filter(|_| incomplete == 0),
            shortfall: Shortfall::of(sender, groups, &stop),
        }
    }

    /// Returns the figure of this name, if the protocol reports it.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// Returns the count of this name.
    pub fn count(&self, name: &str) -> Option<u64> {
        if let FigureValue::Count(count) = self.figure(name)?.value { Some(count) } else { None }
    }

    /// Returns the list of counts of this name.
    pub fn counts(&self, name: &str) -> Option<&[u64]> {
        if let FigureValue::Counts(counts) = &self.figure(name)?.value { Some(counts) } else { None }
    }

    /// Returns the time at which the median receiver had everything, if every receiver had.
    pub fn median_receiver_time_s(&self) -> Option<f64> {
        self.receiver_time_s.filter(|_| self.incomplete == 0).map(|times| times.p50)
    }
}

/// Serializes figures as an object. Figures that share the word before a dot become an object in it.
pub(super) fn by_name<S: Serializer>(figures: &[Figure], serializer: S) -> Result<S::Ok, S::Error> {
    let named: Vec<_> = figures.iter().map(|figure| (figure.name, Value(&figure.value))).collect();
    nested(&named, serializer)
}

/// Serializes values as an object. Values that share the word before a dot become an object of their own: `naks.sent`
/// is `sent` in `naks`.
fn nested<V: Serialize, S: Serializer>(named: &[(&str, V)], serializer: S) -> Result<S::Ok, S::Error> {
    let word = |(name, _): &(&str, V)| name.split_once('.').map(|(word, _)| word.to_owned());
    let mut map = serializer.serialize_map(None)?;
    for together in named.chunk_by(|a, b| word(a).is_some() && word(a) == word(b)) {
        match word(&together[0]) {
            Some(word) => map.serialize_entry(&word, &Inner(together))?,
            None => map.serialize_entry(together[0].0, &together[0].1)?,
        }
    }
    map.end()
}

/// Values of one word, serialized under the part of their names behind the dot.
struct Inner<'a, V>(&'a [(&'a str, V)]);

impl<V: Serialize> Serialize for Inner<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let behind = |name: &'_ str| name.split_once('.').map_or(name, |(_, rest)| rest).to_owned();
        serializer.collect_map(self.0.iter().map(|(name, value)| (behind(name), value)))
    }
}

/// Value of a figure, serialized as JSON.
struct Value<'a>(&'a FigureValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            FigureValue::Count(count) => count.serialize(serializer),
            FigureValue::Number(number) => number.serialize(serializer),
            FigureValue::Counts(counts) => counts.serialize(serializer),
        }
    }
}

/// Summary of one figure of the transfer over the replications in which it has a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FigureTogether {
    /// Name of the figure, as in each replication.
    pub name: &'static str,
    /// Label of the figure in tables.
    pub label: &'static str,
    /// Summary over the replications.
    pub measure: Measure,
}

/// Summary of the multicast transfers of all replications.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TransferTogether {
    /// Time of the median receiver, in seconds, where every receiver has a time.
    pub median_receiver_time_s: Measure,
    /// Time in seconds at which the sender knew that all receivers have everything. `None` if it never knew so of any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_time_s: Option<Measure>,
    /// Figures that the protocol reports with a label, in its order, except lists.
    #[serde(flatten, serialize_with = "measures_by_name")]
    pub figures: Vec<FigureTogether>,
}

/// Serializes measures as an object, under the names that figures have in a replication.
fn measures_by_name<S: Serializer>(figures: &[FigureTogether], serializer: S) -> Result<S::Ok, S::Error> {
    let named: Vec<_> = figures.iter().map(|figure| (figure.name, figure.measure)).collect();
    nested(&named, serializer)
}

/// Returns the summary of the transfers of `replications`, if there are any.
pub(super) fn together(replications: &[Replication]) -> Result<Option<TransferTogether>, StatsError> {
    let transfers: Vec<_> = replications.iter().filter_map(|one| one.transfer.as_ref()).collect();
    let Some(first) = transfers.first() else { return Ok(None) };
    let scalars = first.figures.iter().filter(|figure| !matches!(figure.value, FigureValue::Counts(_)));
    let labelled = scalars.filter_map(|figure| Some((figure.name, figure.label?)));
    let measured = labelled.map(|(name, label)| {
        let values = transfers.iter().filter_map(|one| one.figure(name)?.scalar());
        Ok(FigureTogether { name, label, measure: Measure::of(values.map(Some))? })
    });
    let confirms = transfers.iter().any(|one| one.confirmed > 0);
    let confirmed = transfers.iter().map(|one| one.confirmed_time_s);
    let medians = transfers.iter().map(|one| one.median_receiver_time_s());
    Ok(Some(TransferTogether {
        median_receiver_time_s: Measure::of(medians)?,
        confirmed_time_s: confirms.then(|| Measure::of(confirmed)).transpose()?,
        figures: measured.collect::<Result<_, StatsError>>()?,
    }))
}
