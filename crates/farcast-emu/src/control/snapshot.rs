//! What a running emulation says of itself. Counts are since the start and saturate; times are in seconds.

use serde::{Deserialize, Serialize};

/// The state of an emulation at one instant.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// When, in seconds since the start.
    pub time_s: f64,
    /// The time over which the rates are taken, in seconds: since this client's last snapshot, or since the start. The
    /// server fills it in.
    pub interval_s: f64,
    /// From the hub to the terminals.
    pub forward: WayState,
    /// From the terminals to the hub.
    #[serde(rename = "return")]
    pub back: WayState,
    /// Each terminal, on the way forward.
    pub terminals: Vec<TerminalState>,
    /// How late packets were released.
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

/// One way of the link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WayState {
    /// What programs have sent into it.
    pub entered: Count,
    /// What has come out at its end, over all terminals.
    pub delivered: Count,
    /// What the link has lost by chance: errors, losses, outages.
    pub lost: Count,
    /// Of that, what a stage gave up after repeating it.
    pub given_up: Count,
    /// What was dropped because of a limit: a full queue, a packet beyond the MTU.
    pub dropped: Count,
    /// What is inside now.
    pub inside: Count,
    /// Octets that wait for the rate now, where that is known.
    pub queue_octets: Option<u64>,
    /// Throughput into it over the interval in bit/s. The server fills it in.
    pub entered_bps: f64,
    /// Throughput out of it over the interval in bit/s. The server fills it in.
    pub delivered_bps: f64,
    /// The rate in bit/s, where there is one.
    pub rate_bps: Option<u64>,
    /// The one-way delay in seconds, where there is one.
    pub delay_s: Option<f64>,
    /// The limit of the queue in octets, where there is one.
    pub queue_limit_octets: Option<u64>,
    /// The probability of loss of a packet, where there is one.
    pub per: Option<f64>,
    /// The seconds for which an outage that was set will last yet, if there is one.
    pub outage_s: Option<f64>,
}

/// What one terminal got of the way forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TerminalState {
    /// Its number, from 0.
    pub terminal: u32,
    /// What has come out there.
    pub delivered: Count,
    /// What was lost on the way to it.
    pub lost: Count,
}

/// How late packets left the emulator, beside when the link would have let them go.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Of how many packets the rest tells.
    pub packets: u64,
    /// The median in seconds.
    pub p50_s: f64,
    /// The 99th percentile in seconds.
    pub p99_s: f64,
    /// The 99.9th percentile in seconds.
    pub p999_s: f64,
    /// The longest in seconds.
    pub max_s: f64,
    /// Whether the run is valid so far: whether the 99th percentile is within the limit.
    pub valid: bool,
    /// The limit in seconds, where there is one.
    pub limit_s: Option<f64>,
    /// The histogram, by ascending lateness.
    pub bins: Vec<Bin>,
}

/// A bin of a histogram. It begins where the one before ends, the first one at 0.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Bin {
    /// Where it ends, in seconds; the last one may have no end.
    pub below_s: Option<f64>,
    /// How many packets fell into it.
    pub packets: u64,
}

/// One of the programs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramState {
    /// Its name.
    pub name: String,
    /// The host on which it runs: `near`, `far`, `hub`, `terminal 2`.
    pub host: String,
    /// Where it stands.
    pub phase: ProgramPhase,
    /// Its exit code, if it has exited by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

/// Where a program stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramPhase {
    /// Its start lies ahead.
    #[default]
    Waiting,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

impl Snapshot {
    /// Takes the rates over the time since `last`, or since the start.
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

    /// What the next snapshot's rates are taken from.
    pub(super) fn marks(&self) -> Marks {
        let octets = |way: &WayState| (way.entered.octets, way.delivered.octets);
        Marks { time_s: self.time_s, forward: octets(&self.forward), back: octets(&self.back) }
    }
}

/// What a client was told last: when, and the octets that had entered and been delivered on each way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    time_s: f64,
    forward: (u64, u64),
    back: (u64, u64),
}
