//! Cells of the study: a link with changed settings, and its simulation.

use farcast_scenario::document::Document;
use farcast_sim::outcome::{FlowCounts, Replication};
use farcast_sim::scenario::Scenario;

use super::{FILE, STUDY};
use crate::study::{Runner, StudyError};

/// A link of a study, from a scenario that ships with farcast; the emulation reads only the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StudyLink {
    /// The bearer of `ftp-umts`.
    Umts,
    /// The serial line of `mdp-ftp`.
    Serial,
}

impl StudyLink {
    /// Both links.
    pub(super) const BOTH: [Self; 2] = [Self::Umts, Self::Serial];

    /// Returns the name of the link's file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Umts => "umts.toml",
            Self::Serial => "serial.toml",
        }
    }

    const fn scenario(self) -> &'static str {
        match self {
            Self::Umts => include_str!("../../../scenarios/umts.toml"),
            Self::Serial => include_str!("../../../scenarios/sgls.toml"),
        }
    }

    /// Returns the text of the scenario's link, unchanged. It stands at the end of the scenario.
    pub(super) fn text(self) -> &'static str {
        let text = self.scenario();
        text.find("[[link").map_or("", |at| &text[at..])
    }

    /// Returns the name of the flow in the scenario.
    const fn flow(self) -> &'static str {
        match self {
            Self::Umts => "file",
            Self::Serial => "files",
        }
    }
}

/// TCP to simulate, with the FTP session that belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tcp {
    /// The TCP of today's Linux, with the commands that curl sends.
    Kernel,
    /// The TCP of the study, as in the scenario.
    Study,
}

impl Tcp {
    /// Both TCPs.
    pub(super) const BOTH: [Self; 2] = [Self::Kernel, Self::Study];
}

/// A link with its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkCell {
    pub(super) link: StudyLink,
    pub(super) column: &'static str,
    /// Assignments that change the link's text.
    pub(super) settings: [&'static str; 2],
    /// The longest packet in octets, as in `settings`.
    mtu: u16,
    /// The send buffer of the study's TCP in octets.
    send_buffer: u32,
}

/// Returns a bearer with this `maxDAT`.
const fn umts(column: &'static str, max_dat: &'static str) -> LinkCell {
    let settings = [max_dat, "link.mtu=\"1500 B\""];
    LinkCell { link: StudyLink::Umts, column, settings, mtu: 1500, send_buffer: 128 << 10 }
}

/// Returns a serial line with these errors in its vector; frames of 1500 octets.
const fn serial(column: &'static str, errors: &'static str) -> LinkCell {
    let settings = [errors, "link.mtu=\"1500 B\""];
    LinkCell { link: StudyLink::Serial, column, settings, mtu: 1500, send_buffer: 26_064 }
}

/// Cells, those with the longest transfers first.
pub(super) const CELLS: [LinkCell; 6] = [
    umts("maxDAT 1", "link.stages.bearer.max_transmissions=1"),
    umts("maxDAT 3", "link.stages.bearer.max_transmissions=3"),
    umts("maxDAT 10", "link.stages.bearer.max_transmissions=10"),
    serial("BER 0, frames of 1500", "link.stages.serial.forward.vector_errors=0"),
    serial("BER 1e-6, frames of 1500", "link.stages.serial.forward.vector_errors=10"),
    // This frame is the study's best for these errors. Its buffer holds 34 segments of 598 octets, as in `mdp-ftp`.
    LinkCell {
        column: "BER 1e-5, frames of 650",
        settings: ["link.stages.serial.forward.vector_errors=100", "link.mtu=\"650 B\""],
        mtu: 650,
        send_buffer: 34 * 598,
        ..serial("", "")
    },
];

impl LinkCell {
    /// Returns the name of the case in tables.
    pub(super) const fn case(&self) -> &'static str {
        match self.link {
            StudyLink::Umts => "UMTS bearer of 384 kbit/s, 100 KByte",
            StudyLink::Serial => "serial line of 115,200 bit/s, 100 KByte",
        }
    }

    /// Returns the time of each replication in seconds: from RETR to the last octet (from STOR on the study's serial
    /// line).
    pub(super) fn simulate(&self, runner: &Runner<'_>, tcp: Tcp) -> Result<Vec<f64>, StudyError> {
        let replications = runner.run(&Scenario::read(&self.document(tcp)?)?)?;
        replications.iter().map(time).collect::<Option<_>>().ok_or_else(|| {
            StudyError::Unfinished(format!(
                "{}: {}: a simulated transfer did not end",
                STUDY.name, self.column
            ))
        })
    }

    fn document(&self, tcp: Tcp) -> Result<Document, StudyError> {
        let mut document = Document::parse(self.link.name(), self.link.scenario())?;
        let fixed = self.settings.map(str::to_owned);
        for setting in fixed.into_iter().chain(self.traffic(tcp)) {
            document.set(&setting)?;
        }
        Ok(document)
    }

    /// Returns the settings of the scenario's flow.
    fn traffic(&self, tcp: Tcp) -> Vec<String> {
        let file = match self.link {
            StudyLink::Umts => format!("size=\"{FILE} B\""),
            StudyLink::Serial => format!("files=[\"{FILE} B\"]"),
        };
        let segment = format!("mss=\"{} B\"", self.mtu - IP_AND_TCP);
        let mut settings = vec![file, segment, format!("send_buffer=\"{} B\"", self.send_buffer)];
        if tcp == Tcp::Kernel {
            settings.extend(KERNEL.map(str::to_owned));
        }
        let of_flow = |setting: &String| format!("traffic.{}.{setting}", self.link.flow());
        let limit = "time_limit=\"4 h\"".to_owned();
        settings.iter().map(of_flow).chain([limit]).collect()
    }
}

/// Octets of IP and TCP headers without options; the MTU less these is the MSS that is offered.
const IP_AND_TCP: u16 = 40;

/// Settings of Linux with Reno, as in `tcp-reference`, and the session of curl, whose PWD costs a round trip, as SYST
/// does. The buffer is the greatest to which Linux lets its own grow.
const KERNEL: [&str; 9] = [
    "preset=\"modern\"",
    "recovery=\"rack\"",
    "congestion=\"reno\"",
    "hystart=false",
    "sack=true",
    "window=\"6 MiB\"",
    "send_buffer=\"4 MiB\"",
    "operation=\"get\"",
    "syst=true",
];

fn time(replication: &Replication) -> Option<f64> {
    let FlowCounts::Ftp(report) = &replication.flows.first()?.counts else { return None };
    let file = report.files.first()?;
    Some(file.delivered_s? - file.commanded_s?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farcast_scenario::Links;

    #[test]
    fn the_emulation_reads_the_link_of_the_simulation_with_the_same_settings() {
        for cell in &CELLS {
            let mut alone = Document::parse("link", cell.link.text()).unwrap();
            assert!(Links::are_all_of(&alone), "{}", cell.column);
            for setting in cell.settings {
                alone.set(setting).unwrap();
            }
            let (emulated, queues) = Links::read_alone(&alone).unwrap();
            for tcp in Tcp::BOTH {
                let whole = cell.document(tcp).unwrap();
                Scenario::read(&whole).unwrap();
                assert_eq!(Links::read(&mut whole.root()).unwrap(), emulated, "{}, {tcp:?}", cell.column);
            }
            assert_eq!((queues, emulated.mtu), (Vec::new(), cell.mtu), "{}", cell.column);
        }
    }
}
