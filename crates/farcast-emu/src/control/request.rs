//! Requests of a client.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use farcast_core::units::{Bytes, UnitError};
use farcast_core::{BitRate, Probability, Span};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::error::{RequestError, ValueError};

/// The shortest time between the snapshots of a watch.
pub const FASTEST_WATCH: Span = Span::from_millis(100);
/// The longest time between the snapshots of a watch.
pub const SLOWEST_WATCH: Span = Span::from_secs(3600);

/// Direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkDirection {
    /// Forward: from the hub to the terminals, far to near.
    Forward,
    /// Return: from the terminals to the hub, near to far.
    Return,
}

/// Change of the link while it runs. At least one of the last five fields is set.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "SetValues", into = "SetValues")]
pub struct Change {
    /// Direction to change; both if absent.
    pub way: Option<LinkDirection>,
    /// Name of the stage to change; the link as a whole if absent.
    pub stage: Option<String>,
    /// The rate from now on.
    pub rate: Option<BitRate>,
    /// The one-way delay from now on.
    pub delay: Option<Span>,
    /// The limit of the queue in octets from now on.
    pub queue: Option<NonZeroU64>,
    /// The probability of loss of a packet from now on.
    pub per: Option<Probability>,
    /// Length of an outage from now, in which nothing passes; 0 ends an outage that was set before.
    pub outage: Option<Span>,
}

impl Change {
    /// Adds this later change to `changes`, and joins it with an earlier one of the same direction and stage.
    pub fn join(self, changes: &mut Vec<Self>) {
        let lasting = Self { outage: None, ..self };
        if (lasting.rate, lasting.delay, lasting.queue, lasting.per) == (None, None, None, None) {
            return;
        }
        let same = |before: &Self| (before.way, &before.stage) == (lasting.way, &lasting.stage);
        let before = changes.iter().position(same).map(|at| changes.remove(at)).unwrap_or_default();
        changes.push(Self {
            rate: lasting.rate.or(before.rate),
            delay: lasting.delay.or(before.delay),
            queue: lasting.queue.or(before.queue),
            per: lasting.per.or(before.per),
            ..lasting
        });
    }
}

/// A request to a running emulation.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Change the link.
    Set(Change),
    /// Send a snapshot now and then at this interval, [`FASTEST_WATCH`] to [`SLOWEST_WATCH`]. A later watch replaces
    /// it.
    Watch {
        /// Time between two snapshots.
        every: Span,
    },
    /// Send one snapshot.
    Snapshot,
    /// Describe the emulation.
    Describe,
    /// End the emulation in good order.
    Stop,
}

impl Request {
    /// Reads the request on a line, with or without the line's end.
    ///
    /// # Errors
    /// The reason for which the line is not a request, in one sentence.
    pub fn parse(line: &[u8]) -> Result<Self, RequestError> {
        serde_json::from_slice(line).map_err(|error| {
            let text = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let reason = text.strip_suffix(&place).unwrap_or(&text).to_owned();
            if error.is_data() {
                RequestError::Invalid(reason)
            } else {
                RequestError::Json { reason, octet: error.column() }
            }
        })
    }
}

impl FromStr for Request {
    type Err = RequestError;
    fn from_str(text: &str) -> Result<Self, RequestError> {
        Self::parse(text.as_bytes())
    }
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Set(change) => map.serialize_entry("set", change)?,
            Self::Watch { every } => {
                let every = Literal::span(*every);
                map.serialize_entry("watch", &WatchValues { every })?;
            }
            Self::Snapshot => map.serialize_entry("snapshot", &Nothing {})?,
            Self::Describe => map.serialize_entry("describe", &Nothing {})?,
            Self::Stop => map.serialize_entry("stop", &Nothing {})?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

struct RequestVisitor;

/// Error text for a request with the wrong structure.
const ONE_KEY: &str = "a request is an object with one key: set, watch, snapshot, describe or stop";

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = Request;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one key: set, watch, snapshot, describe or stop")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Request, A::Error> {
        let name: String = map.next_key()?.ok_or_else(|| A::Error::custom(ONE_KEY))?;
        let nothing = |JsonObject(Nothing {}), request| request;
        let request = match &*name {
            "set" => Request::Set(map.next_value::<JsonObject<Change>>()?.0),
            "watch" => Request::Watch { every: map.next_value::<JsonObject<SnapshotInterval>>()?.0.0 },
            "snapshot" => nothing(map.next_value()?, Request::Snapshot),
            "describe" => nothing(map.next_value()?, Request::Describe),
            "stop" => nothing(map.next_value()?, Request::Stop),
            _ => {
                let known = "there are set, watch, snapshot, describe and stop";
                return Err(A::Error::custom(format_args!("unknown request `{name}`: {known}")));
            }
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(request),
            Some(_) => Err(A::Error::custom(ONE_KEY)),
        }
    }
}

/// Wrapper for a `T` that must be written as an object. Without it, `T` could also be written as an array of its
/// values, on which no client should rely.
struct JsonObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = JsonObject<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JsonObject<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(std::marker::PhantomData))
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Wire form of the values of a watch.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchValues {
    every: Literal,
}

#[derive(serde::Deserialize)]
#[serde(try_from = "WatchValues")]
struct SnapshotInterval(Span);

impl TryFrom<WatchValues> for SnapshotInterval {
    type Error = ValueError;
    fn try_from(values: WatchValues) -> Result<Self, ValueError> {
        let every: Span = values.every.quantity("every")?;
        if (FASTEST_WATCH..=SLOWEST_WATCH).contains(&every) { Ok(Self(every)) } else { Err(ValueError::Pace) }
    }
}

/// Wire form of a quantity: a text, or a number, which suffices only for a probability.
#[derive(Clone)]
struct Literal(String);

impl Literal {
    fn quantity<T: FromStr<Err = UnitError>>(&self, key: &'static str) -> Result<T, ValueError> {
        self.0.parse().map_err(|error| ValueError::Quantity { key, error })
    }

    fn span(span: Span) -> Self {
        Self(format!("{} ns", span.as_nanos()))
    }
}

impl Serialize for Literal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LiteralVisitor;
        impl Visitor<'_> for LiteralVisitor {
            type Value = Literal;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text of a number and its unit")
            }
            fn visit_str<E>(self, text: &str) -> Result<Literal, E> {
                Ok(Literal(text.into()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Literal, E> {
                Ok(Literal(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Literal, E> {
                Ok(Literal(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Literal, E> {
                Ok(Literal(number.to_string()))
            }
        }
        deserializer.deserialize_any(LiteralVisitor)
    }
}

/// Wire form of the values of a set.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SetValues {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<LinkDirection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<Literal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay: Option<Literal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<Literal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    per: Option<Literal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage: Option<Literal>,
}

fn limit(queue: &Literal) -> Result<NonZeroU64, ValueError> {
    let Bytes(octets) = queue.quantity("queue")?;
    NonZeroU64::new(octets).ok_or(ValueError::ZeroQueue)
}

impl TryFrom<SetValues> for Change {
    type Error = ValueError;
    fn try_from(values: SetValues) -> Result<Self, ValueError> {
        let SetValues { way, stage, rate, delay, queue, per, outage } = values;
        if [&rate, &delay, &queue, &per, &outage].into_iter().all(Option::is_none) {
            return Err(ValueError::NothingToSet);
        }
        Ok(Self {
            way,
            stage,
            rate: rate.map(|rate| rate.quantity("rate")).transpose()?,
            delay: delay.map(|delay| delay.quantity("delay")).transpose()?,
            queue: queue.as_ref().map(limit).transpose()?,
            per: per.map(|per| per.quantity("per")).transpose()?,
            outage: outage.map(|outage| outage.quantity("outage")).transpose()?,
        })
    }
}

impl From<Change> for SetValues {
    fn from(change: Change) -> Self {
        let Change { way, stage, rate, delay, queue, per, outage } = change;
        Self {
            way,
            stage,
            rate: rate.map(|rate| Literal(format!("{} bit/s", rate.as_bps()))),
            delay: delay.map(Literal::span),
            queue: queue.map(|octets| Literal(format!("{octets} B"))),
            per: per.map(|per| Literal(per.get().to_string())),
            outage: outage.map(Literal::span),
        }
    }
}

#[cfg(test)]
mod tests;
