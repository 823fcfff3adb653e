//! The keys of PPP over serial lines.

use farcast_core::Span;
use farcast_core::engine::Message;
use farcast_core::random::RandomStream;
use farcast_core::units::Bytes;
use farcast_link::ppp::{ErrorVector, LineConfig, LineErrors, Ppp, PppConfig, PppError};
use farcast_ppp::{ConfigError, EchoConfig, VjConfig};

use super::framing;
use crate::document::{DocumentError, Reader};
use crate::links::link::schedule;
use crate::links::queues::{Queue, queue};
use farcast_link::BoxedStage;

/// Two serial lines with PPP. Error vectors are drawn for each replication.
#[derive(Clone, PartialEq, Debug)]
pub struct PppSpec {
    pub(super) config: PppConfig,
    /// Error vectors, forward and back.
    vectors: [Option<RandomVector>; 2],
    /// True for each queue, forward and back, whose limit was given.
    limits_said: [bool; 2],
}

/// Error vector with this number of errors at random places among its bits, repeated over and over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RandomVector {
    bits: u64,
    errors: u64,
}

/// Default length of a vector in bits: that of the space-to-ground link simulator.
const VECTOR_BITS: u64 = 10_000_000;
/// Most errors of a vector: the position of each takes eight octets.
const MOST_ERRORS: u64 = 1_000_000;

pub(super) fn read(table: &mut Reader<'_>) -> Result<PppSpec, DocumentError> {
    let framing = framing(table)?;
    let flag_after = table.span_or("flag_after", Span::from_secs(1))?;
    let Bytes(mtu) = table.bytes_or("mtu", Bytes(1500))?;
    let Ok(mtu) = u16::try_from(mtu) else {
        return Err(table.refuse("mtu", "it is longer than any packet", "68 B to 65535 B"));
    };
    let interval = table.optional_span("echo_interval")?;
    let failures = table.integer_or("echo_failures", 1..=1000_u32, 5)?;
    let echo = interval.map(|interval| EchoConfig { interval, failures });
    let vj = vj(table)?;
    let mut one = |key| {
        let mut inner = table.table(key)?;
        let rate = inner.rate("rate")?;
        let read = line(&mut inner, LineConfig { framing, flag_after, ..LineConfig::new(rate) })?;
        inner.finish()?;
        Ok(read)
    };
    let ((forward, forward_vector, forward_said), (back, back_vector, back_said)) =
        (one("forward")?, one("return")?);
    let config = PppConfig { forward, back, mtu, echo, vj };
    config.check().map_err(|error| {
        let key = match error {
            PppError::Mtu(_) => "mtu",
            PppError::Protocol(ConfigError::EchoInterval) | PppError::EchoLoad { .. } => "echo_interval",
            _ => "kind",
        };
        table.refuse(key, error.to_string(), "settings that lines can have")
    })?;
    Ok(PppSpec { config, vectors: [forward_vector, back_vector], limits_said: [forward_said, back_said] })
}

/// Reads `vj` and the keys that go with it: pppd's options `novj`, `vj-max-slots` and `novjccomp`.
fn vj(table: &mut Reader<'_>) -> Result<Option<VjConfig>, DocumentError> {
    if table.flag_or("vj", false)? {
        let slots = table.integer_or("vj_max_slots", 2..=16_u8, 16)?;
        let comp_slot_id = table.flag_or("vj_ccomp", true)?;
        return Ok(Some(VjConfig { max_slot_id: slots - 1, comp_slot_id }));
    }
    match ["vj_max_slots", "vj_ccomp"].into_iter().find(|key| table.holds(key)) {
        Some(key) => Err(table.refuse(key, "no headers are compressed", "vj = true as well")),
        None => Ok(None),
    }
}

/// Reads the keys of one direction, and whether they limit its queue.
fn line(
    table: &mut Reader<'_>,
    mut line: LineConfig,
) -> Result<(LineConfig, Option<RandomVector>, bool), DocumentError> {
    line.octet_bits = table.integer_or("octet_bits", 8..=12, line.octet_bits)?;
    line.delay = table.span_or("delay", line.delay)?;
    let limit = queue(table)?;
    line.queue = limit.unwrap_or_default();
    line.cut_offs = schedule(table)?.unwrap_or_default();
    let ber = table.optional_probability("ber")?;
    let vector = vector(table)?;
    line.errors = match (ber, vector) {
        (Some(_), Some(RandomVector { errors: 1.., .. })) => {
            return Err(table.refuse(
                "ber",
                "an error vector says already which bits are wrong",
                "one of the two",
            ));
        }
        (Some(ber), _) => LineErrors::Ber(ber),
        (None, _) => LineErrors::None,
    };
    Ok((line, vector.filter(|vector| vector.errors > 0), limit.is_some()))
}

/// Reads `vector_errors` and `vector_bits`: an error vector that begins anew at its end.
fn vector(table: &mut Reader<'_>) -> Result<Option<RandomVector>, DocumentError> {
    let bits = table.optional_integer("vector_bits", 1..=i64::MAX as u64)?;
    let Some(errors) = table.optional_integer("vector_errors", 0..=MOST_ERRORS)? else {
        if bits.is_some() {
            return Err(table.refuse("vector_bits", "how many of them are errors?", "vector_errors as well"));
        }
        return Ok(None);
    };
    let bits = bits.unwrap_or(VECTOR_BITS);
    if errors > bits {
        return Err(table.refuse(
            "vector_errors",
            "there are more errors than bits",
            format!("at most {bits}"),
        ));
    }
    Ok(Some(RandomVector { bits, errors }))
}

impl PppSpec {
    /// Returns the sum of the propagation delays of both directions.
    pub(super) fn least_round_trip(&self) -> Span {
        self.config.forward.delay + self.config.back.delay
    }

    /// Returns the queues, forward and back.
    pub(super) fn queues(&mut self) -> [Queue<'_>; 2] {
        fn of<'a>(line: &'a mut LineConfig, said: &'a mut bool) -> Queue<'a> {
            Queue { rate: line.capacity(), limit: &mut line.queue, said }
        }
        let [said, back_said] = &mut self.limits_said;
        [of(&mut self.config.forward, said), of(&mut self.config.back, back_said)]
    }

    pub(super) fn stage<M: Message + Send + 'static>(&self, mut stream: RandomStream) -> BoxedStage<M> {
        let mut config = self.config.clone();
        for (line, vector) in [&mut config.forward, &mut config.back].into_iter().zip(self.vectors) {
            // The vector has a stream of its own, so that it changes no other draw.
            let mut own = RandomStream::derive(stream.bits(), &[]);
            if let Some(RandomVector { bits, errors }) = vector {
                let vector = ErrorVector::random(bits, errors, &mut own).expect("checked when read");
                line.errors = LineErrors::Vector { vector, start: None };
            }
        }
        Box::new(Ppp::new(config, stream).expect("checked when read"))
    }
}
