mod errors;
mod hostile;
mod reading;
mod settings;

use farcast_core::Span;
use farcast_core::units::{BitRate, Bytes, Probability};

use super::{Document, DocumentError, Reader};

/// A small schema that has something of everything.
#[derive(Clone, PartialEq, Debug)]
struct Scenario {
    title: String,
    seed: u64,
    verbose: bool,
    forward: Direction,
    back: Option<Direction>,
    stages: Vec<Stage>,
    sizes: Vec<u32>,
}

#[derive(Clone, PartialEq, Debug)]
struct Direction {
    rate: BitRate,
    delay: Span,
    per: Probability,
    queue: Option<Bytes>,
    order: Order,
    weight: f64,
}

#[derive(Clone, PartialEq, Debug)]
enum Stage {
    Pipe { name: String, rate: BitRate },
    Loss { name: String, per: Probability },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Fifo,
    Random,
}

impl Scenario {
    fn read(document: &Document) -> Result<Self, DocumentError> {
        let mut top = document.root();
        let title = top.text("title")?;
        let seed = top.integer_or("seed", 0..=i64::MAX as u64, 1)?;
        let verbose = top.flag_or("verbose", false)?;
        let sizes = top.list_of_integers_or("sizes", 1..=65_535, vec![1_472])?;
        let mut link = top.table("link")?;
        let forward = Direction::read(link.table("forward")?)?;
        let back = link.optional_table("return")?.map(Direction::read).transpose()?;
        let stages = link.optional_tables("stages")?.unwrap_or_default();
        let stages = stages.into_iter().map(Stage::read).collect::<Result<_, _>>()?;
        link.finish()?;
        top.finish()?;
        Ok(Self { title, seed, verbose, forward, back, stages, sizes })
    }
}

impl Direction {
    fn read(mut table: Reader<'_>) -> Result<Self, DocumentError> {
        let direction = Self {
            rate: table.rate("rate")?,
            delay: table.span_or("delay", Span::from_millis(250))?,
            per: table.probability_or("per", Probability::ZERO)?,
            queue: table.optional_bytes("queue")?,
            order: table.choice_or(
                "order",
                &[("fifo", Order::Fifo), ("random", Order::Random)],
                Order::Fifo,
            )?,
            weight: table.number_or("weight", 0.5..=2.0, 1.0)?,
        };
        table.finish()?;
        Ok(direction)
    }
}

impl Stage {
    fn read(mut table: Reader<'_>) -> Result<Self, DocumentError> {
        let name = table.text("name")?;
        let stage = if table.choice("kind", &[("pipe", true), ("loss", false)])? {
            Self::Pipe { name, rate: table.rate("rate")? }
        } else {
            Self::Loss { name, per: table.probability("per")? }
        };
        table.finish()?;
        Ok(stage)
    }
}

/// A document that uses all of the schema.
const FULL: &str = r#"title = "A satellite link"
seed = 7
verbose = true
sizes = [500, 1_000]

[link.forward]
rate = "20 Mbit/s"
delay = "250 ms"
per = 0.005
queue = "64 KiB"
order = "random"
weight = 2

[link.return]
rate = "64 kbit/s"

[[link.stages]]
name = "uplink"
kind = "pipe"
rate = "1 Gbit/s"

[[link.stages]]
name = "air"
kind = "loss"
per = "2 %"
"#;

/// The least that the schema takes.
const LEAST: &str = "title = \"t\"\n[link.forward]\nrate = \"1 Mbit/s\"\n";

fn document(text: &str) -> Document {
    Document::parse("scenarios/x.toml", text).expect("TOML")
}

fn read(text: &str) -> Result<Scenario, DocumentError> {
    Scenario::read(&Document::parse("scenarios/x.toml", text)?)
}

/// Returns the error of a document that the schema refuses.
fn error(text: &str) -> String {
    read(text).expect_err("refused").to_string()
}

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps).expect("positive")
}
