//! What the multicast transfer comes to.

use farcast_core::Time;
use farcast_delivery::{Figure, FigureValue, Protocol, RequestCounts, SenderEngine as _};
use farcast_stats::{StatsError, quantile};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Measure, Replication, Shortfall, Stop};
use crate::star::{Group, Star};

/// When receivers had everything, in seconds; quantiles are of Hyndman and Fan's type 7.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ReceiverTimes {
    /// The mean.
    pub mean: f64,
    /// The 5 % quantile.
    pub p05: f64,
    /// The median.
    pub p50: f64,
    /// The 95 % quantile.
    pub p95: f64,
}

impl ReceiverTimes {
    /// Of these times, which ascend; `None` if there are none.
    fn of(sorted: &[f64]) -> Option<Self> {
        let at = |p| quantile(sorted, p).ok();
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Some(Self { mean, p05: at(0.05)?, p50: at(0.5)?, p95: at(0.95)? })
    }
}

/// What the multicast transfer of a replication came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TransferOutcome {
    /// When the sender began to send data.
    pub data_begins_s: Option<f64>,
    /// What the protocol reports, in its order.
    #[serde(flatten, serialize_with = "by_name")]
    pub figures: Vec<Figure>,
    /// Receivers that never had everything.
    pub incomplete: u64,
    /// Of those that had: when. `None` if nobody had.
    pub receiver_time_s: Option<ReceiverTimes>,
    /// Each receiver's time in order of number, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<Vec<Option<f64>>>,
    /// How many symbols of each block each of them needed, where asked for and told; `None` for one that never had
    /// everything.
    #[serde(skip)]
    pub symbols_needed: Option<Vec<Option<u32>>>,
    /// When the last receiver had everything, if all have.
    #[serde(skip)]
    pub completion_time_s: Option<f64>,
    /// What ended it before all had everything, if something did.
    #[serde(skip)]
    pub shortfall: Option<Shortfall>,
}

impl TransferOutcome {
    /// What that of `star`, which has run, came to.
    pub(super) fn of<P: Protocol>(star: &Star<'_, P>, sender: &P::Sender, per_receiver: bool) -> Self {
        let stop = star.stop(requests(star));
        Self::of_groups::<P>(star.groups(), star.began(), (sender, &stop), per_receiver)
    }

    /// What one came to whose receivers these are, and whose sender stood so at the end.
    pub(super) fn of_groups<P: Protocol>(
        groups: &[Group<P>],
        began: Option<Time>,
        (sender, stop): (&P::Sender, &Stop),
        per_receiver: bool,
    ) -> Self {
        let seconds = |at: Time| (at != Time::NEVER).then(|| at.as_secs_f64());
        let each = || groups.iter().flat_map(|group| (0..group.receivers()).map(|n| group.completed(n)));
        let mut done: Vec<f64> = each().filter_map(seconds).collect();
        done.sort_unstable_by(f64::total_cmp);
        let incomplete = (each().count() - done.len()) as u64;
        Self {
            data_begins_s: began.map(Time::as_secs_f64),
            figures: sender.figures(&stop.requests),
            incomplete,
            receiver_time_s: ReceiverTimes::of(&done),
            receivers: per_receiver.then(|| each().map(seconds).collect()),
            symbols_needed: per_receiver.then(|| {
                let needed =
                    |group: &Group<P>| (0..group.receivers()).map(|n| group.symbols_needed(n)).collect();
                groups.iter().flat_map::<Vec<_>, _>(needed).collect()
            }),
            completion_time_s: done.last().copied().filter(|_| incomplete == 0),
            shortfall: Shortfall::of(sender, groups, stop),
        }
    }

    /// The figure of this name, if the protocol reports it.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// The count of this name.
    pub fn count(&self, name: &str) -> Option<u64> {
        if let FigureValue::Count(count) = self.figure(name)?.value { Some(count) } else { None }
    }

    /// The list of counts of this name.
    pub fn counts(&self, name: &str) -> Option<&[u64]> {
        if let FigureValue::Counts(counts) = &self.figure(name)?.value { Some(counts) } else { None }
    }

    /// When the median receiver had everything, if every one had.
    pub fn median_receiver_time_s(&self) -> Option<f64> {
        self.receiver_time_s.filter(|_| self.incomplete == 0).map(|times| times.p50)
    }
}

/// What the world counts of requests for repair.
fn requests<P: Protocol>(star: &Star<'_, P>) -> RequestCounts {
    let tally = star.tally();
    RequestCounts {
        sent: star.groups().iter().map(Group::naks).sum(),
        collided: star.return_totals().map(|totals| totals.collided).sum(),
        late: tally.naks_late,
        used: tally.naks_used,
    }
}

/// Figures as an object; those that share the word before a dot are an object in it.
pub(super) fn by_name<S: Serializer>(figures: &[Figure], serializer: S) -> Result<S::Ok, S::Error> {
    let named: Vec<_> = figures.iter().map(|figure| (figure.name, Value(&figure.value))).collect();
    nested(&named, serializer)
}

/// Values as an object in which those that share the word before a dot are an object of their own: `naks.sent` is
/// `sent` in `naks`.
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

/// Values of one word, by what stands behind its dot.
struct Inner<'a, V>(&'a [(&'a str, V)]);

impl<V: Serialize> Serialize for Inner<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let behind = |name: &'_ str| name.split_once('.').map_or(name, |(_, rest)| rest).to_owned();
        serializer.collect_map(self.0.iter().map(|(name, value)| (behind(name), value)))
    }
}

/// What a figure says, as JSON has it.
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

/// One figure of the transfer over the replications in which it could be told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FigureTogether {
    /// Its name, as each replication has it.
    pub name: &'static str,
    /// What tables call it.
    pub label: &'static str,
    /// Over the replications.
    pub measure: Measure,
}

/// The multicast transfers of all replications together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TransferTogether {
    /// The median receiver's time, in seconds, where every receiver has one.
    pub median_receiver_time_s: Measure,
    /// What the protocol reports and has a label, in its order, but for lists.
    #[serde(flatten, serialize_with = "measures_by_name")]
    pub figures: Vec<FigureTogether>,
}

/// Measures as an object, under the names that a replication has them by.
fn measures_by_name<S: Serializer>(figures: &[FigureTogether], serializer: S) -> Result<S::Ok, S::Error> {
    let named: Vec<_> = figures.iter().map(|figure| (figure.name, figure.measure)).collect();
    nested(&named, serializer)
}

/// The transfers of `replications`, if there are any.
pub(super) fn together(replications: &[Replication]) -> Result<Option<TransferTogether>, StatsError> {
    let transfers: Vec<_> = replications.iter().filter_map(|one| one.transfer.as_ref()).collect();
    let Some(first) = transfers.first() else { return Ok(None) };
    let scalars = first.figures.iter().filter(|figure| !matches!(figure.value, FigureValue::Counts(_)));
    let labelled = scalars.filter_map(|figure| Some((figure.name, figure.label?)));
    let measured = labelled.map(|(name, label)| {
        let values = transfers.iter().filter_map(|one| one.figure(name)?.scalar());
        Ok(FigureTogether { name, label, measure: Measure::of(values.map(Some))? })
    });
    let medians = transfers.iter().map(|one| one.median_receiver_time_s());
    Ok(Some(TransferTogether {
        median_receiver_time_s: Measure::of(medians)?,
        figures: measured.collect::<Result<_, StatsError>>()?,
    }))
}
