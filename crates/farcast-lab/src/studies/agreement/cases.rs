//! Cases of the comparison: links, traffic, and ways of running it.

use std::path::{Path, PathBuf};

use farcast_core::random::RandomStream;
use farcast_files::Outgoing;
use farcast_scenario::{Document, Links};
use farcast_sim::scenario::Scenario;
use farcast_tcp::{Algorithm, Config};

use crate::shipped;
use crate::study::StudyError;

/// A satellite link for files to many receivers: 2 Mbit/s, and a slow return path. Its queues drop nothing.
const GEO: &str = r#"
[link.forward]
rate = "2 Mbit/s"
delay = "260 ms"
queue = "unlimited"
[link.return]
rate = "64 kbit/s"
delay = "260 ms"
queue = "unlimited"
"#;

/// A link for TCP with a one-way delay of 100 ms; queues of one bandwidth-delay product, 50,000 octets.
const MEDIUM: &str = r#"
[link.forward]
rate = "2 Mbit/s"
delay = "100 ms"
queue = "50000 B"
[link.return]
rate = "2 Mbit/s"
delay = "100 ms"
queue = "50000 B"
"#;

/// A link for TCP with a one-way delay of 260 ms; queues of one bandwidth-delay product, 130,000 octets.
const LONG: &str = r#"
[link.forward]
rate = "2 Mbit/s"
delay = "260 ms"
queue = "130000 B"
[link.return]
rate = "2 Mbit/s"
delay = "260 ms"
queue = "130000 B"
"#;

/// Loss of each packet with probability 1e-3, in both directions.
const LOSSY: &[&str] = &["link.forward.per=0.001", "link.return.per=0.001"];

/// Source of the link of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkSource {
    /// A text in this program.
    Text(&'static str),
    /// A link that ships with farcast.
    Shipped(&'static str),
}

/// Traffic of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// A file to three receivers.
    Mftp {
        /// Octets of the file.
        octets: usize,
        /// Rate of the sender.
        rate: &'static str,
        /// Name of the preset with the settings.
        preset: &'static str,
    },
    /// Octets from the hub to the terminal.
    Tcp {
        /// Congestion control, as the kernel and the scenario call it.
        congestion: &'static str,
    },
}

impl Protocol {
    /// Returns the ways of running it in real time.
    pub(super) const fn ways(self) -> &'static [RealMethod] {
        match self {
            Self::Mftp { .. } => &[RealMethod::Sockets],
            Self::Tcp { .. } => &[RealMethod::Tunnel, RealMethod::Kernel],
        }
    }
}

/// Way of running a case in real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RealMethod {
    /// The drivers of `send` and `receive`, with real sockets and files.
    Sockets,
    /// Our TCP behind TUN devices.
    Tunnel,
    /// The kernel's TCP.
    Kernel,
}

impl RealMethod {
    /// Returns its name for people.
    pub(super) const fn column(self) -> &'static str {
        match self {
            Self::Sockets => "real sockets and files",
            Self::Tunnel => "our TCP behind TUN devices",
            Self::Kernel => "the kernel's TCP",
        }
    }
}

/// One comparison.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    link: LinkSource,
    /// Assignments that change the link's text.
    settings: &'static [&'static str],
    pub(super) protocol: Protocol,
    /// True if the outcome depends on random numbers.
    pub(super) draws: bool,
}

const RENO: Protocol = Protocol::Tcp { congestion: "reno" };
const CUBIC: Protocol = Protocol::Tcp { congestion: CUBIC_NAME };

const fn tcp(
    name: &'static str,
    link: &'static str,
    settings: &'static [&'static str],
    protocol: Protocol,
) -> Case {
    Case { name, link: LinkSource::Text(link), settings, protocol, draws: !settings.is_empty() }
}

const fn mftp(
    name: &'static str,
    link: LinkSource,
    settings: &'static [&'static str],
    octets: usize,
    rate: &'static str,
    preset: &'static str,
) -> Case {
    Case { name, link, settings, protocol: Protocol::Mftp { octets, rate, preset }, draws: true }
}

/// Preset of MFTP according to its draft.
const DRAFT: &str = "draft";

pub(super) const CASES: [Case; 10] = [
    mftp(
        "MFTP to 3 receivers: bgan, PER 0.005 of each PDU",
        LinkSource::Shipped("bgan"),
        &["link.forward.per=0.005", "link.forward.queue=unlimited", "link.return.queue=unlimited"],
        60_000,
        "300 kbit/s",
        DRAFT,
    ),
    mftp(
        "MFTP to 3 receivers: 2 Mbit/s, 260 ms, PER 0.01, return 64 kbit/s",
        LinkSource::Text(GEO),
        &["link.forward.per=0.01"],
        800_000,
        "1.9 Mbit/s",
        DRAFT,
    ),
    mftp(
        "MFTP to 3 receivers: 2 Mbit/s, 260 ms, no loss, return 64 kbit/s",
        LinkSource::Text(GEO),
        &[],
        800_000,
        "1.9 Mbit/s",
        DRAFT,
    ),
    mftp(
        "MFTP to 3 receivers at the defaults of send: 2 Mbit/s, 260 ms, PER 0.01, return 64 kbit/s",
        LinkSource::Text(GEO),
        &["link.forward.per=0.01"],
        800_000,
        "1.9 Mbit/s",
        "farcast",
    ),
    tcp("TCP Reno: 2 Mbit/s, 100 ms, no loss", MEDIUM, &[], RENO),
    tcp("TCP CUBIC: 2 Mbit/s, 100 ms, no loss", MEDIUM, &[], CUBIC),
    tcp("TCP Reno: 2 Mbit/s, 100 ms, PER 0.001", MEDIUM, LOSSY, RENO),
    tcp("TCP CUBIC: 2 Mbit/s, 100 ms, PER 0.001", MEDIUM, LOSSY, CUBIC),
    tcp("TCP Reno: 2 Mbit/s, 260 ms, no loss", LONG, &[], RENO),
    tcp("TCP CUBIC: 2 Mbit/s, 260 ms, no loss", LONG, &[], CUBIC),
];

/// Number of simulated settings: four of MFTP, and six of TCP with all sizes.
pub(super) const SETTINGS: u64 = 4 + 6 * SIZES.len() as u64;

/// Number of receivers of a file.
pub(super) const RECEIVERS: u32 = 3;

/// Octets that TCP carries in the runs of a case, in turn. A single size would depend on the end of its transfer more
/// than on the TCPs: a drop of one of the last segments at the queue costs a whole round trip.
const SIZES: [usize; 10] =
    [450_000, 500_000, 550_000, 600_000, 650_000, 700_000, 750_000, 800_000, 850_000, 900_000];

/// A case that is ready to run.
pub(super) struct Setting {
    pub(super) case: &'static Case,
    /// Links to emulate.
    pub(super) links: Links,
    /// Content of the runs, in their order.
    pub(super) sizes: Vec<Size>,
}

/// Content of a run.
pub(super) struct Size {
    /// Scenario to simulate, with the settings of the engines, from the document of the links.
    pub(super) scenario: Scenario,
    pub(super) payload: Vec<u8>,
    /// File with the payload; empty for TCP.
    pub(super) file: PathBuf,
}

impl Setting {
    /// Creates the content, with its file in the directory `place`, and the scenarios.
    pub(super) fn new(case: &'static Case, place: &Path) -> Result<Self, StudyError> {
        let mut document = match case.link {
            LinkSource::Text(text) => Document::parse("link", text)?,
            LinkSource::Shipped(name) => shipped::document(name)?,
        };
        for setting in case.settings {
            document.set(setting)?;
        }
        let links = Links::read(&mut document.root())?;
        let sizes = match case.protocol {
            Protocol::Mftp { octets, rate, preset } => vec![file(document, octets, rate, preset, place)?],
            Protocol::Tcp { congestion } => {
                let size = |octets| flow(document.clone(), octets, congestion);
                SIZES.into_iter().map(size).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { case, links, sizes })
    }

    /// Returns the content of this run.
    pub(super) fn size(&self, run: u64) -> &Size {
        &self.sizes[run as usize % self.sizes.len()]
    }
}

/// Returns octets that do not compress.
fn noise(octets: usize) -> Vec<u8> {
    let mut stream = RandomStream::derive(1, &[]);
    let mut noise: Vec<u8> =
        std::iter::repeat_with(|| stream.bits().to_le_bytes()).take(octets.div_ceil(8)).flatten().collect();
    noise.truncate(octets);
    noise
}

/// Returns the transfer of a file in the directory `place`, which begins when all receivers have registered.
fn file(
    mut document: Document,
    octets: usize,
    rate: &str,
    preset: &str,
    place: &Path,
) -> Result<Size, StudyError> {
    let (payload, file) = (noise(octets), place.join("file"));
    std::fs::create_dir_all(place)?;
    std::fs::write(&file, &payload)?;
    // The product is the file behind its manifest.
    let size = Outgoing::scan(&[&file], |_| {})?.size();
    for setting in [
        format!("receivers={RECEIVERS}"),
        "time_limit=\"10 min\"".to_owned(),
        format!("protocol.file=\"{size} B\""),
        format!("protocol.rate=\"{rate}\""),
        format!("protocol.preset=\"{preset}\""),
        format!("protocol.start_receivers={RECEIVERS}"),
        "protocol.start_after=\"60 s\"".to_owned(),
        // A short interval, so that the run does not wait for completions after all is delivered.
        "protocol.completion_interval=\"200 ms\"".to_owned(),
    ] {
        document.set(&setting)?;
    }
    Ok(Size { scenario: Scenario::read(&document)?, payload, file })
}

/// Returns a bulk transfer with the settings of [`config`].
fn flow(mut document: Document, octets: usize, congestion: &str) -> Result<Size, StudyError> {
    let hystart = congestion == CUBIC_NAME;
    document.set(&format!(
        "traffic=[{{name=\"bulk\", protocol=\"tcp\", preset=\"modern\", congestion=\"{congestion}\", \
         hystart={hystart}, size=\"{octets} B\"}}]"
    ))?;
    Ok(Size { scenario: Scenario::read(&document)?, payload: noise(octets), file: PathBuf::new() })
}

const CUBIC_NAME: &str = "cubic";

/// Returns the settings of our TCP that match the kernel's with this congestion control.
pub(super) fn config(congestion: &str) -> Config {
    let cubic = congestion == CUBIC_NAME;
    let congestion = if cubic { Algorithm::Cubic } else { Algorithm::Reno };
    Config { congestion, hystart: cubic, ..Config::modern() }
}
