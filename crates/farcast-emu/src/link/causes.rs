//! Reasons for which a packet did not arrive.

use farcast_capture::packets::{PacketDirection, PacketRecord, Verdict};
use farcast_capture::recorder::{CauseId, Recorder};
use farcast_core::Time;
use farcast_core::stage::Totals;
use farcast_link::End;

use crate::pool::Label;

/// Fate of a packet: arrival, or the reason against it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketFate(u16);

impl PacketFate {
    /// The packet arrived.
    pub const NONE: Self = Self(0);
    /// A loss process of its terminal, other than an outage, took the packet.
    pub const LOSSES: Self = Self(1);
    /// An outage took the packet: one of its terminal's losses, or one set while the link ran.
    pub const OUTAGE: Self = Self(2);
    /// The link held too many octets.
    pub const MEMORY: Self = Self(3);
    /// The device refused the packet.
    pub const DEVICE: Self = Self(4);
    /// The packet was still inside when the link ended.
    pub const HELD: Self = Self(5);

    /// The packet is longer than the link's MTU.
    pub const MTU: Self = Self(6);

    /// Names of the causes above in logs.
    const NAMES: [&'static str; 7] = ["", "losses", "outage", "memory", "device", "", "mtu"];

    const fn of_stage(stage: u32, kind: Kind) -> Self {
        Self(Self::NAMES.len() as u16 + KINDS.len() as u16 * stage as u16 + kind as u16)
    }

    /// Returns the kind of a stage's cause.
    const fn kind(self) -> Option<Kind> {
        match (self.0 as usize).checked_sub(Self::NAMES.len()) {
            Some(number) => Some(KINDS[number % KINDS.len()].0),
            None => None,
        }
    }

    /// Returns `true` if a limit dropped the packet, and not an error.
    pub const fn is_limit(self) -> bool {
        match (self, self.kind()) {
            (_, Some(kind)) => matches!(kind, Kind::Full | Kind::TooLong | Kind::Down),
            (cause, None) => matches!(cause, Self::MEMORY | Self::MTU),
        }
    }

    /// Returns `true` if a stage gave the packet up after retransmissions.
    pub const fn is_given_up(self) -> bool {
        matches!(self.kind(), Some(Kind::GivenUp))
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

/// Reason for which a stage did not let a packet through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The stage's medium damaged the packet or cut it off.
    Errors,
    /// The stage's queue had no room.
    Full,
    /// The packet was longer than the stage accepts.
    TooLong,
    /// An end of the stage had found the link dead, or had given up for good.
    Down,
    /// The packet was retransmitted as often, or for as long, as the stage allows.
    GivenUp,
}

/// All kinds in order, with the words that follow a stage's name in logs.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Errors, "errors"),
    (Kind::Full, "queue full"),
    (Kind::TooLong, "too long"),
    (Kind::Down, "link down"),
    (Kind::GivenUp, "given up"),
];

/// Causes of a link, and the totals of each stage at the last query, in each direction.
#[derive(Debug)]
pub(super) struct Causes {
    ids: Vec<CauseId>,
    counted: Vec<[Totals; 2]>,
}

/// Numbers of packets that one stage dropped in one direction, by reason. Packets of one kind have no order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reasons {
    given_up: u64,
    errors: u64,
    too_long: u64,
    down: u64,
}

impl Reasons {
    /// Returns the reason for the next packet that was dropped. Limits act on packets that enter, after all other work
    /// that a stage has at an instant: so limits come last.
    pub(super) fn next(&mut self, stage: u32) -> PacketFate {
        let Self { given_up, errors, too_long, down } = self;
        let order = [
            (given_up, Kind::GivenUp),
            (errors, Kind::Errors),
            (too_long, Kind::TooLong),
            (down, Kind::Down),
        ];
        for (left, kind) in order {
            if *left > 0 {
                *left -= 1;
                return PacketFate::of_stage(stage, kind);
            }
        }
        PacketFate::of_stage(stage, Kind::Full)
    }
}

impl Causes {
    /// Creates the causes of a link with these stages.
    pub(super) fn new<'a>(
        stages: impl Iterator<Item = &'a str>,
        mut recorder: Option<&mut Recorder>,
    ) -> Self {
        let mut id = |name: &str| recorder.as_mut().map_or(CauseId::NONE, |recorder| recorder.cause(name));
        let mut ids: Vec<CauseId> = PacketFate::NAMES.iter().map(|name| id(name)).collect();
        let mut counted = Vec::new();
        for stage in stages {
            ids.extend(KINDS.map(|(_, words)| id(&format!("{stage}: {words}"))));
            counted.push([Totals::default(); 2]);
        }
        Self { ids, counted }
    }

    /// Returns the reasons for which `gone` packets were dropped by a stage in one direction; `totals` are the stage's
    /// totals by now.
    pub(super) fn of_stage(&mut self, stage: u32, way: usize, totals: Totals, gone: u64) -> Reasons {
        let before = std::mem::replace(&mut self.counted[stage as usize][way], totals);
        let dropped = (totals.dropped - before.dropped).min(gone);
        let given_up = (totals.given_up - before.given_up).min(gone - dropped);
        Reasons {
            given_up,
            errors: gone - dropped - given_up,
            too_long: totals.too_long - before.too_long,
            down: totals.down - before.down,
        }
    }

    /// Records the fate of a packet.
    pub(super) fn record(
        &self,
        recorder: &mut Recorder,
        label: &Label,
        planned: Option<Time>,
        left: Option<Time>,
        cause: PacketFate,
    ) {
        recorder.packet(&PacketRecord {
            number: label.number,
            way: if label.to == End::Terminal { PacketDirection::Forward } else { PacketDirection::Return },
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
