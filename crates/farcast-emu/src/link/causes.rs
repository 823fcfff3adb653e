//! Why a packet did not arrive.

use farcast_capture::packets::{PacketRecord, Verdict, Way};
use farcast_capture::recorder::{CauseId, Recorder};
use farcast_core::Time;
use farcast_core::stage::Totals;
use farcast_link::End;

use crate::pool::Label;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause(u16);

impl Cause {
    /// It arrived.
    pub const NONE: Self = Self(0);
    /// A loss process of its terminal took it that is no outage.
    pub const LOSSES: Self = Self(1);
    /// An outage, of its terminal's losses or set while the link ran.
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

    const fn of_stage(stage: u32, kind: Kind) -> Self {
        Self(Self::NAMES.len() as u16 + KINDS.len() as u16 * stage as u16 + kind as u16)
    }

    /// Of a stage's causes, which one.
    const fn kind(self) -> Option<Kind> {
        match (self.0 as usize).checked_sub(Self::NAMES.len()) {
            Some(number) => Some(KINDS[number % KINDS.len()].0),
            None => None,
        }
    }

    /// Whether a limit dropped it, and no error.
    pub const fn is_limit(self) -> bool {
        match (self, self.kind()) {
            (_, Some(kind)) => matches!(kind, Kind::Full | Kind::TooLong | Kind::Down),
            (cause, None) => matches!(cause, Self::MEMORY | Self::MTU),
        }
    }

    /// Whether a stage gave it up after repeating.
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

/// Why a stage did not let a packet through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// What it sends over damaged or cut it off.
    Errors,
    /// Its queue had no room.
    Full,
    /// It was longer than the stage takes.
    TooLong,
    /// An end of the stage had found the link dead, or had given up for good.
    Down,
    /// It was repeated as often, or for as long, as it may be.
    GivenUp,
}

/// All of them in their order, with what stands behind a stage's name.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Errors, "errors"),
    (Kind::Full, "queue full"),
    (Kind::TooLong, "too long"),
    (Kind::Down, "link down"),
    (Kind::GivenUp, "given up"),
];

/// The causes of a link, and what each stage had counted when it was last asked, each way.
#[derive(Debug)]
pub(super) struct Causes {
    ids: Vec<CauseId>,
    counted: Vec<[Totals; 2]>,
}

/// Why packets have gone that were in one stage on one way, without order among those of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reasons {
    given_up: u64,
    errors: u64,
    too_long: u64,
    down: u64,
}

impl Reasons {
    /// The reason for the next that has gone. Limits act on what enters, which a stage does after all else that is due
    /// at an instant: so they come last.
    pub(super) fn next(&mut self, stage: u32) -> Cause {
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
                return Cause::of_stage(stage, kind);
            }
        }
        Cause::of_stage(stage, Kind::Full)
    }
}

impl Causes {
    /// Those of a link with these stages.
    pub(super) fn new<'a>(
        stages: impl Iterator<Item = &'a str>,
        mut recorder: Option<&mut Recorder>,
    ) -> Self {
        let mut id = |name: &str| recorder.as_mut().map_or(CauseId::NONE, |recorder| recorder.cause(name));
        let mut ids: Vec<CauseId> = Cause::NAMES.iter().map(|name| id(name)).collect();
        let mut counted = Vec::new();
        for stage in stages {
            ids.extend(KINDS.map(|(_, words)| id(&format!("{stage}: {words}"))));
            counted.push([Totals::default(); 2]);
        }
        Self { ids, counted }
    }

    /// Why `gone` packets have gone that were in a stage on a way, where it has counted `totals` by now.
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
