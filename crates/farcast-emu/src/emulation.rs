//! A link with hosts at its ends, in real time.
//!
//! ```no_run
//! use farcast_emu::emulation::{Emulation, Plan};
//! use farcast_scenario::{Document, Links};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let document = Document::parse("geo.toml", "[link.forward]\ndelay = \"260 ms\"\n")?;
//! let plan = Plan::between_two(Links::read(&mut document.root())?, 1);
//! let emulation = Emulation::start(plan, None)?;
//! let mut ping = std::process::Command::new("ping");
//! let near = &emulation.terminals()[0];
//! near.namespace().spawn(ping.args(["-c", "3", &emulation.hub().address().to_string()]))?.wait()?;
//! let report = emulation.finish()?;
//! assert!(report.valid);
//! # Ok(())
//! # }
//! ```

mod report;

use farcast_capture::recorder::Recorder;
use farcast_core::{Probability, Span};
use farcast_scenario::Links;
use farcast_scenario::receivers::Group;

pub use report::{LatenessReport, LatenessRow, Report, StageReport, WayReport};

use crate::host::{Host, HostPosition};
use crate::link::{Link, LinkConfig};
use crate::relay::{Relay, RelayHandle, RelayView, Running};
use crate::route::MOST_TERMINALS;
use crate::{Clock, EmuError};

/// Settings of an emulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The link.
    pub link: LinkConfig,
    /// Allowed lateness, as a share of the round-trip time without load. The run is invalid if more than one in a
    /// hundred packets leaves later than this, or than [`LEAST_LATENESS`] if that is longer.
    pub late_share: Probability,
}

/// Lateness that is always allowed, even if the round-trip time is short: that of a timer on a machine with other work.
pub const LEAST_LATENESS: Span = Span::from_millis(1);

/// Default share of the round-trip time by which packets may be late.
pub const LATE_SHARE: f64 = 0.01;

impl Plan {
    /// Creates the plan of one hub and one terminal.
    pub fn between_two(links: Links, seed: u64) -> Self {
        Self::new(links, vec![Group { receivers: 1, delay: Span::ZERO, losses: None }], seed)
    }

    /// Creates the plan of one hub and these terminals.
    pub fn new(links: Links, groups: Vec<Group>, seed: u64) -> Self {
        let late_share = Probability::new(LATE_SHARE).unwrap_or(Probability::ZERO);
        Self { link: LinkConfig { links, groups, flows: 0, seed }, late_share }
    }

    /// Returns the limit of the 99th percentile of lateness.
    pub fn latest(&self) -> Span {
        let delays = self.link.groups.iter().map(|group| group.delay).min();
        let round_trip = self.link.links.round_trip() + delays.unwrap_or_default();
        let share = round_trip.as_secs_f64() * self.late_share.get();
        Span::from_secs_f64(share).max(LEAST_LATENESS)
    }
}

/// A running emulation. If dropped without [`finish`](Self::finish), it ends at once.
pub struct Emulation {
    plan: Plan,
    hub: Host,
    terminals: Vec<Host>,
    running: Running,
}

impl Emulation {
    /// Creates the hosts and starts the link between them.
    ///
    /// # Errors
    /// [`EmuError::Terminals`], or the system's refusal.
    pub fn start(plan: Plan, recorder: Option<Recorder>) -> Result<Self, EmuError> {
        let count = plan.link.terminals();
        if count == 0 || count > MOST_TERMINALS {
            return Err(EmuError::Terminals { count, most: MOST_TERMINALS });
        }
        let mtu = plan.link.links.mtu;
        let (hub, device) = Host::create(HostPosition::Hub, mtu)?;
        let mut devices = vec![device];
        let mut terminals = Vec::new();
        for number in 0..count {
            let (host, device) = Host::create(HostPosition::Terminal(number), mtu)?;
            terminals.push(host);
            devices.push(device);
        }
        let link = Link::new(plan.link.clone(), recorder);
        let running = Relay::start(link, devices, Clock::start(), plan.latest())?;
        Ok(Self { plan, hub, terminals, running })
    }

    /// Returns the settings of the emulation.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the host at the hub.
    pub fn hub(&self) -> &Host {
        &self.hub
    }

    /// Returns the hosts at the terminals, by number.
    pub fn terminals(&self) -> &[Host] {
        &self.terminals
    }

    /// Returns a handle of the running link.
    pub fn handle(&self) -> RelayHandle {
        self.running.handle.clone()
    }

    /// Returns `true` if the relay has ended early because of an error, which [`finish`](Self::finish) returns.
    pub fn has_failed(&self) -> bool {
        self.running.has_ended()
    }

    /// Ends the emulation, and completes the log and the capture. Packets inside the link are lost.
    ///
    /// # Errors
    /// The error that ended the relay, or that of writing a file.
    pub fn finish(self) -> Result<Report, EmuError> {
        let dropped = self.dropped_by_devices()?;
        let ended = self.running.end()?;
        let recorded = ended.recorder.map(Recorder::finish).transpose();
        let recorded = recorded.map_err(EmuError::when("write what was recorded"))?;
        let view = RelayView::of(&ended.link, ended.state);
        Ok(Report::new(&self.plan, &view, &ended.figures, recorded, dropped))
    }

    /// Returns the number of packets that the kernel dropped because the relay did not read them in time.
    fn dropped_by_devices(&self) -> Result<u64, EmuError> {
        let hosts = std::iter::once(&self.hub).chain(&self.terminals);
        hosts.map(Host::dropped_by_device).try_fold(0, |sum, dropped| Ok(sum + dropped?))
    }
}
