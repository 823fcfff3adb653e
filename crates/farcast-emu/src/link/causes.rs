//! Why a packet did not arrive.

use farcast_capture::packets::{PacketRecord, Verdict, Way};
use farcast_capture::recorder::{CauseId, Recorder};
use farcast_core::Time;
use farcast_link::End;

use crate::pool::Label;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause(u16);

impl Cause {
    /// It arrived.
    pub const NONE: Self = Self(0);
    /// The loss process of its terminal took it.
    pub const LOSSES: Self = Self(1);
    /// An outage that was set while the link ran.
    pub const OUTAGE: Self = Self(2);
    /// There was too much inside.
    pub const MEMORY: Self = Self(3);
    /// The device did not take it.
    pub const DEVICE: Self = Self(4);
    /// It was still inside when the link ended.
    pub const HELD: Self = Self(5);

    /// It is longer than the link's MTU.
    pub const MTU: Self = Self(6);

    /// How logs call those above.
    const NAMES: [&'static str; 7] = ["", "losses", "outage", "memory", "device", "", "mtu"];

    /// Of the stages, each has two.
    const fn of_stage(stage: u32, limit: bool) -> Self {
        Self(Self::NAMES.len() as u16 + 2 * stage as u16 + limit as u16)
    }

    /// Whether a limit dropped it, and no error.
    pub const fn is_limit(self) -> bool {
        match self {
            Self::MEMORY | Self::MTU => true,
            Self(n) => n >= Self::NAMES.len() as u16 && !(n as usize - Self::NAMES.len()).is_multiple_of(2),
        }
    }

    const fn verdict(self) -> Verdict {
        match self {
            Self::NONE => Verdict::Delivered,
            Self::HELD => Verdict::Held,
            Self::DEVICE => Verdict::Dropped,
            cause if cause.is_limit() => Verdict::Dropped,
            _ => Verdict::Lost,
        }
    }
}

/// The causes of a link, and how many packets each stage had dropped by a limit when it was last asked.
#[derive(Debug)]
pub(super) struct Causes {
    ids: Vec<CauseId>,
    dropped: Vec<[u64; 2]>,
}

impl Causes {
    /// Those of a link with these stages.
    pub(super) fn new<'a>(
        stages: impl Iterator<Item = &'a str>,
        mut recorder: Option<&mut Recorder>,
    ) -> Self {
        let mut id = |name: &str| recorder.as_mut().map_or(CauseId::NONE, |recorder| recorder.cause(name));
        let mut ids: Vec<CauseId> = Cause::NAMES.iter().map(|name| id(name)).collect();
        let mut dropped = Vec::new();
        for stage in stages {
            ids.extend([id(&format!("{stage}: errors")), id(&format!("{stage}: dropped"))]);
            dropped.push([0; 2]);
        }
        Self { ids, dropped }
    }

    /// Why a stage, which has dropped so many by a limit that way by now, has dropped a packet.
    pub(super) fn of_stage(&mut self, stage: u32, way: usize, dropped: u64) -> Cause {
        let before = &mut self.dropped[stage as usize][way];
        let limit = dropped > *before;
        if limit {
            *before += 1;
        }
        Cause::of_stage(stage, limit)
    }

    /// Records what became of a packet.
    pub(super) fn record(
        &self,
        recorder: &mut Recorder,
        label: &Label,
        planned: Option<Time>,
        left: Option<Time>,
        cause: Cause,
    ) {
        recorder.packet(&PacketRecord {
            number: label.number,
            way: if label.to == End::Terminal { Way::Forward } else { Way::Return },
            terminal: label.terminal,
            entered: label.entered,
            planned,
            left,
            octets: label.octets,
            verdict: cause.verdict(),
            cause: self.ids[usize::from(cause.0)],
        });
    }
}
