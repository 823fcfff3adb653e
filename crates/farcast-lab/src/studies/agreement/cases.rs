//! What is compared: links, what is sent over them, and in which ways.

use std::path::{Path, PathBuf};

use farcast_core::random::RandomStream;
use farcast_files::Outgoing;
use farcast_scenario::{Document, Links};
use farcast_sim::scenario::Scenario;
use farcast_tcp::{Algorithm, Config};

use crate::shipped;
use crate::study::StudyError;

/// A satellite for files to many: 2 Mbit/s, and a thin way back. Nothing is dropped.
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

/// A link for TCP with 100 ms one way; queues of one bandwidth-delay product, 50,000 octets.
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

/// A link for TCP with 260 ms one way, likewise: 130,000 octets.
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

/// Each packet is lost with 1e-3, both ways.
const LOSSY: &[&str] = &["link.forward.per=0.001", "link.return.per=0.001"];

/// Where the link of a case stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Link {
    /// In a text of its own.
    Text(&'static str),
    /// In a link that ships with farcast.
    Shipped(&'static str),
}

/// What is sent over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// A file to three receivers.
    Mftp {
        /// Octets of the file.
        octets: usize,
        /// At this rate.
        rate: &'static str,
        /// With the settings of this preset.
        preset: &'static str,
    },
    /// Octets from the hub to the terminal.
    Tcp {
        /// As the kernel calls it, and the scenario.
        congestion: &'static str,
    },
}

impl Protocol {
    /// The ways in real time.
    pub(super) const fn ways(self) -> &'static [Way] {
        match self {
            Self::Mftp { .. } => &[Way::Sockets],
            Self::Tcp { .. } => &[Way::Tunnel, Way::Kernel],
        }
    }
}

/// How something runs in real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The drivers of `send` and `receive`, with real sockets and files.
    Sockets,
    /// Our TCP behind TUN devices.
    Tunnel,
    /// The kernel's TCP.
    Kernel,
}

impl Way {
    /// For people.
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
    link: Link,
    /// Keys that differ from the link's text.
    settings: &'static [&'static str],
    pub(super) protocol: Protocol,
    /// Whether anything random decides what happens.
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
    Case { name, link: Link::Text(link), settings, protocol, draws: !settings.is_empty() }
}

const fn mftp(
    name: &'static str,
    link: Link,
    settings: &'static [&'static str],
    octets: usize,
    (rate, preset): (&'static str, &'static str),
) -> Case {
    Case { name, link, settings, protocol: Protocol::Mftp { octets, rate, preset }, draws: true }
}

/// MFTP as its draft has it.
const DRAFT: &str = "draft";

pub(super) const CASES: [Case; 10] = [
    mftp(
        "MFTP to 3 receivers: bgan, PER 0.005 of each PDU",
        Link::Shipped("bgan"),
        &["link.forward.per=0.005", "link.forward.queue=unlimited", "link.return.queue=unlimited"],
        60_000,
        ("300 kbit/s", DRAFT),
    ),
    mftp(
        "MFTP to 3 receivers: 2 Mbit/s, 260 ms, PER 0.01, return 64 kbit/s",
        Link::Text(GEO),
        &["link.forward.per=0.01"],
        800_000,
        ("1.9 Mbit/s", DRAFT),
    ),
    mftp(
        "MFTP to 3 receivers: 2 Mbit/s, 260 ms, no loss, return 64 kbit/s",
        Link::Text(GEO),
        &[],
        800_000,
        ("1.9 Mbit/s", DRAFT),
    ),
    mftp(
        "MFTP to 3 receivers at the defaults of send: 2 Mbit/s, 260 ms, PER 0.01, return 64 kbit/s",
        Link::Text(GEO),
        &["link.forward.per=0.01"],
        800_000,
        ("1.9 Mbit/s", "farcast"),
    ),
    tcp("TCP Reno: 2 Mbit/s, 100 ms, no loss", MEDIUM, &[], RENO),
    tcp("TCP CUBIC: 2 Mbit/s, 100 ms, no loss", MEDIUM, &[], CUBIC),
    tcp("TCP Reno: 2 Mbit/s, 100 ms, PER 0.001", MEDIUM, LOSSY, RENO),
    tcp("TCP CUBIC: 2 Mbit/s, 100 ms, PER 0.001", MEDIUM, LOSSY, CUBIC),
    tcp("TCP Reno: 2 Mbit/s, 260 ms, no loss", LONG, &[], RENO),
    tcp("TCP CUBIC: 2 Mbit/s, 260 ms, no loss", LONG, &[], CUBIC),
];

/// Simulations of all cases: four of MFTP, and six of TCP with all sizes.
pub(super) const SETTINGS: u64 = 4 + 6 * SIZES.len() as u64;

/// Receivers of a file.
pub(super) const RECEIVERS: u32 = 3;

/// Octets that TCP carries in the runs of a case, one after the other and then again. One size would say more of where
/// its end falls than of the TCPs: whether one of the last segments is dropped at the queue decides about a round trip.
const SIZES: [usize; 10] =
    [450_000, 500_000, 550_000, 600_000, 650_000, 700_000, 750_000, 800_000, 850_000, 900_000];

/// A case, ready to run.
pub(super) struct Setting {
    pub(super) case: &'static Case,
    /// What is emulated.
    pub(super) links: Links,
    /// What is sent, in the order of runs.
    pub(super) sizes: Vec<Size>,
}

/// What is sent in a run.
pub(super) struct Size {
    /// What is simulated, with the settings of the engines; of the same document as the links.
    pub(super) scenario: Scenario,
    pub(super) payload: Vec<u8>,
    /// The file that holds the payload, where a file is sent.
    pub(super) file: PathBuf,
}

impl Setting {
    /// Makes what is sent, with its file in the directory `place`, and what is simulated.
    pub(super) fn new(case: &'static Case, place: &Path) -> Result<Self, StudyError> {
        let mut document = match case.link {
            Link::Text(text) => Document::parse("link", text)?,
            Link::Shipped(name) => shipped::document(name)?,
        };
        for setting in case.settings {
            document.set(setting)?;
        }
        let links = Links::read(&mut document.root())?;
        let sizes = match case.protocol {
            Protocol::Mftp { octets, rate, preset } => vec![file(document, octets, (rate, preset), place)?],
            Protocol::Tcp { congestion } => {
                let size = |octets| flow(document.clone(), octets, congestion);
                SIZES.into_iter().map(size).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { case, links, sizes })
    }

    /// What is sent in this run.
    pub(super) fn size(&self, run: u64) -> &Size {
        &self.sizes[run as usize % self.sizes.len()]
    }
}

/// Octets that do not compress.
fn noise(octets: usize) -> Vec<u8> {
    let mut stream = RandomStream::derive(1, &[]);
    let mut noise: Vec<u8> =
        std::iter::repeat_with(|| stream.bits().to_le_bytes()).take(octets.div_ceil(8)).flatten().collect();
    noise.truncate(octets);
    noise
}

/// A transfer of a file in the directory `place`, which begins when all have registered.
fn file(
    mut document: Document,
    octets: usize,
    (rate, preset): (&str, &str),
    place: &Path,
) -> Result<Size, StudyError> {
    let (payload, file) = (noise(octets), place.join("file"));
    std::fs::create_dir_all(place)?;
    std::fs::write(&file, &payload)?;
    // The product is the file with the manifest before it.
    let size = Outgoing::scan(&[&file], |_| {})?.size();
    for setting in [
        format!("receivers={RECEIVERS}"),
        "time_limit=\"10 min\"".to_owned(),
        format!("protocol.file=\"{size} B\""),
        format!("protocol.rate=\"{rate}\""),
        format!("protocol.preset=\"{preset}\""),
        format!("protocol.start_receivers={RECEIVERS}"),
        "protocol.start_after=\"60 s\"".to_owned(),
        // What is confirmed when all is delivered is not waited for.
        "protocol.completion_interval=\"200 ms\"".to_owned(),
    ] {
        document.set(&setting)?;
    }
    Ok(Size { scenario: Scenario::read(&document)?, payload, file })
}

/// A bulk transfer with the settings of [`config`].
fn flow(mut document: Document, octets: usize, congestion: &str) -> Result<Size, StudyError> {
    let hystart = congestion == CUBIC_NAME;
    document.set(&format!(
        "traffic=[{{name=\"bulk\", protocol=\"tcp\", preset=\"modern\", congestion=\"{congestion}\", \
         hystart={hystart}, size=\"{octets} B\"}}]"
    ))?;
    Ok(Size { scenario: Scenario::read(&document)?, payload: noise(octets), file: PathBuf::new() })
}

const CUBIC_NAME: &str = "cubic";

/// Our TCP as the kernel has it with this congestion control.
pub(super) fn config(congestion: &str) -> Config {
    let cubic = congestion == CUBIC_NAME;
    let congestion = if cubic { Algorithm::Cubic } else { Algorithm::Reno };
    Config { congestion, hystart: cubic, ..Config::modern() }
}
