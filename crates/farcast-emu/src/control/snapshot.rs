//! Snapshot of a running emulation. Counts are since the start and saturate; times are in seconds.

use serde::{Deserialize, Serialize};

/// The state of an emulation at one instant.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Time of the snapshot, in seconds since the start.
    pub time_s: f64,
    /// Interval of the rates, in seconds: since this client's last snapshot, or since the start. The server fills it
    /// in.
    pub interval_s: f64,
    /// Direction from the hub to the terminals.
    pub forward: DirectionState,
    /// Direction from the terminals to the hub.
    #[serde(rename = "return")]
    pub back: DirectionState,
    /// State of each terminal, in the forward direction.
    pub terminals: Vec<TerminalState>,
    /// Lateness of the packets released.
    pub lateness: Lateness,
    /// The programs.
    pub programs: Vec<ProgramState>,
}

/// Packets and their octets, IP headers included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
}

/// State of one direction of the link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DirectionState {
    /// Packets that programs have sent into it.
    pub entered: Count,
    /// Packets that have come out at its end, over all terminals.
    pub delivered: Count,
    /// Packets lost by chance: errors, losses, outages.
    pub lost: Count,
    /// Lost packets that a stage gave up after retransmissions.
    pub given_up: Count,
    /// Packets dropped because of a limit: a full queue, a packet beyond the MTU.
    pub dropped: Count,
    /// Packets inside now.
    pub inside: Count,
    /// Octets that wait for the rate now, if known.
    pub queue_octets: Option<u64>,
    /// Throughput into it over the interval in bit/s. The server fills it in.
    pub entered_bps: f64,
    /// Throughput out of it over the interval in bit/s. The server fills it in.
    pub delivered_bps: f64,
    /// Rate in bit/s, if there is one.
    pub rate_bps: Option<u64>,
    /// One-way delay in seconds, if there is one.
    pub delay_s: Option<f64>,
    /// Limit of the queue in octets, if there is one.
    pub queue_limit_octets: Option<u64>,
    /// Probability of loss of a packet, if there is one.
    pub per: Option<f64>,
    /// Remaining seconds of an outage that was set, if there is one.
    pub outage_s: Option<f64>,
}

/// Counts of one terminal in the forward direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TerminalState {
    /// Number of the terminal, from 0.
    pub terminal: u32,
    /// Packets delivered to the terminal.
    pub delivered: Count,
    /// Packets to the terminal that were lost.
    pub lost: Count,
}

/// Lateness of packets: the delay between the release by the link and the departure from the emulator.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Number of packets measured.
    pub packets: u64,
    /// The median in seconds.
    pub p50_s: f64,
    /// The 99th percentile in seconds.
    pub p99_s: f64,
    /// The 99.9th percentile in seconds.
    pub p999_s: f64,
    /// The longest in seconds.
    pub max_s: f64,
    /// The run is valid so far: the 99th percentile is within the limit.
    pub valid: bool,
    /// Limit in seconds, if there is one.
    pub limit_s: Option<f64>,
    /// The histogram, by ascending lateness.
    pub bins: Vec<Bin>,
}

/// A bin of a histogram. It begins at the end of the bin before, the first one at 0.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Bin {
    /// End of the bin in seconds; the last one may have no end.
    pub below_s: Option<f64>,
    /// Number of packets in the bin.
    pub packets: u64,
}

/// State of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramState {
    /// Name of the program.
    pub name: String,
    /// Host on which the program runs: `near`, `far`, `hub`, `terminal 2`.
    pub host: String,
    /// Phase of the program.
    pub phase: ProgramPhase,
    /// Exit code, if the program has exited by itself.
    pub exit_code: Option<i32>,
    /// Signal that ended the program, if one did.
    pub signal: Option<i32>,
}

/// Phase of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramPhase {
    /// Not started yet.
    #[default]
    Waiting,
    /// Running.
    Running,
    /// Ended.
    Ended,
}

impl Snapshot {
    /// Computes the rates over the time since `last`, or since the start.
    pub(super) fn take_rates(&mut self, last: Option<&Marks>) {
        let start = Marks::default();
        let last = last.unwrap_or(&start);
        self.interval_s = (self.time_s - last.time_s).max(0.0);
        let interval = self.interval_s;
        for (way, before) in [(&mut self.forward, last.forward), (&mut self.back, last.back)] {
            let rate = |octets: u64, before: u64| {
                let bits = octets.saturating_sub(before) as f64 * 8.0;
                if interval > 0.0 { bits / interval } else { 0.0 }
            };
            way.entered_bps = rate(way.entered.octets, before.0);
            way.delivered_bps = rate(way.delivered.octets, before.1);
        }
    }

    /// Returns the counts from which the next snapshot's rates are computed.
    pub(super) fn marks(&self) -> Marks {
        let octets = |way: &DirectionState| (way.entered.octets, way.delivered.octets);
        Marks { time_s: self.time_s, forward: octets(&self.forward), back: octets(&self.back) }
    }
}

/// Time of a client's last snapshot, and the octets entered and delivered in each direction by then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    time_s: f64,
    forward: (u64, u64),
    back: (u64, u64),
}
