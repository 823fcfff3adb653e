//! Losses of the first pass and their causes: a path too narrow for the rate, chance, or slow receivers.
//!
//! A narrow path drops the datagrams that its queue does not hold. At a fixed rate these losses are about the same for
//! each block, and the same for all receivers behind the path. Losses by chance vary from block to block, and from
//! receiver to receiver if they happen behind the last shared hop. So the sum of losses and the sum of their squares,
//! for each receiver, are enough to tell the causes apart.
//!
//! A receiver answers if it has lost DTUs and has heard the request. A narrow path drops requests as it drops DTUs. So
//! silence about a block may mean that the request was lost. Only if silence is more frequent than lost requests
//! explain, it shows that nothing was lost.

use alloc::vec::Vec;

use farcast_core::Time;

use super::{MemberState, Phase, Sender};
use crate::message::{ClientId, Nak};

/// Divisor of a block's DTUs: the part is also the least loss that is reported. The survey begins after the first block
/// of which a receiver lost this part, because until then a queue on the path may have been filling.
const WORTH: u64 = 20;
/// Minimum numbers of DTUs and blocks for a judgement.
const LEAST_DTUS: u64 = 200;
const LEAST_BLOCKS: u32 = 3;
/// Maximum ratio, in hundredths, of the union of all losses to the losses of the receiver that lost least. Up to this
/// ratio all receivers are taken to lose the same DTUs.
const SAME: u64 = 115;
/// Minimum ratio of a slow receiver's loss to the median of all.
const FAR_MORE: f64 = 4.0;
/// Maximum variation of losses on a narrow path, relative to losses by chance.
const STEADY: f64 = 0.5;

/// Losses of several blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Number of blocks with a reported loss.
    blocks: u32,
    /// Number of lost DTUs, in all.
    lost: u64,
    /// Sum of the squares of each block's losses.
    squares: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.lost += other.lost;
        self.squares += other.squares;
    }
}

/// Losses by the age of their blocks. All answers about the first group have arrived. Those about the second group, and
/// then those about the third, may still be on their way. Without the groups, receivers that answer late would seem to
/// have lost nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tallies([Tally; 3]);

impl Tallies {
    fn note(&mut self, stage: usize, lost: u32) {
        let lost = u64::from(lost);
        self.0[stage].add(Tally { blocks: 1, lost, squares: lost * lost });
    }

    fn advance(&mut self) {
        let [settled, due, fresh] = &mut self.0;
        settled.add(*due);
        (*due, *fresh) = (*fresh, Tally::default());
    }

    fn settled(&self, all: bool) -> Tally {
        let [mut settled, due, fresh] = self.0;
        if all {
            settled.add(due);
            settled.add(fresh);
        }
        settled
    }
}

/// State of the survey beside each member's tallies.
#[derive(Clone, Debug, Default)]
pub(super) struct Surveying {
    /// First block that counts.
    start: Option<u32>,
    /// Ends of three ranges of blocks: those whose answers have arrived, those whose answers are awaited, and those
    /// with any report.
    settled: u32,
    due: u32,
    end: u32,
    /// Time at which the awaited answers have arrived.
    due_at: Time,
    /// DTUs that any receiver lost.
    union: Tallies,
}

impl Surveying {
    fn stage(&self, block: u32) -> usize {
        usize::from(block >= self.settled) + usize::from(block >= self.due)
    }
}

/// Losses of receivers in the first pass, as far as all of them have answered. The survey covers the whole blocks after
/// the first of which a receiver lost a twentieth, up to the last with a reported loss.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Survey {
    /// Number of blocks surveyed.
    pub blocks: u32,
    /// Number of DTUs in them.
    pub dtus: u64,
    /// Number of DTUs that any receiver lost: at least the number that each one lost.
    pub union: u64,
    /// Receivers that took part from before the first of these blocks, complete or not, and held nothing, in the order
    /// of their ids.
    pub members: Vec<Surveyed>,
}

/// Losses of one receiver in the surveyed blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Surveyed {
    /// Identifier of the receiver.
    pub client: ClientId,
    /// Number of DTUs that it reported as lost.
    pub lost: u64,
    /// Number of blocks on which its loss rate is based: those that it reported on, or all, if it was silent about more
    /// of them than lost requests explain.
    pub blocks: u32,
    /// Part of their DTUs that it lost, from 0 to 1.
    pub part: f64,
    /// Index of dispersion of its losses in these blocks: their variance divided by their mean. It is about `1 - part`
    /// for losses by chance, less for regular losses, and more for bursts.
    pub dispersion: f64,
}

/// Judgement of the losses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Judgement {
    /// There are few losses, or too little is known.
    #[default]
    Nothing,
    /// There are many losses, neither regular nor limited to a few receivers: by chance, in bursts, or on a path whose
    /// capacity changes.
    Random,
    /// A few receivers lose far more than the others.
    OneSlow {
        /// Receiver that loses most.
        client: ClientId,
        /// Part that it loses, from 0 to 1.
        part: f64,
        /// Number of other receivers that lose far more, too.
        others: u32,
    },
    /// The path to all receivers carries less than is sent.
    Narrow {
        /// Part of the rate that arrives at the receiver that gets least, from 0 to 1.
        received: f64,
    },
}

impl Surveyed {
    /// Evaluates the `tally` of a receiver over `blocks` blocks of `size` DTUs.
    fn of(client: ClientId, tally: &Tally, blocks: u32, size: u32) -> Self {
        let (lost, all) = (tally.lost as f64, f64::from(blocks));
        let part_of = |blocks: u32| lost / (f64::from(blocks) * f64::from(size)).max(1.0);
        // Number of requests lost at the same rate as DTUs: the mean, and hardly more than three deviations beyond.
        let part = part_of(tally.blocks);
        let beyond = all - f64::from(tally.blocks) - all * part;
        let explained = beyond <= 0.0 || beyond * beyond <= 9.0 * all * part * (1.0 - part);
        let blocks = if explained { tally.blocks } else { blocks };
        let (count, mean) = (f64::from(blocks), lost / f64::from(blocks.max(1)));
        let variance = (tally.squares as f64 - count * mean * mean) / (count - 1.0).max(1.0);
        let dispersion = if tally.lost == 0 { 0.0 } else { variance.max(0.0) / mean };
        Self { client, lost: tally.lost, blocks, part: part_of(blocks), dispersion }
    }

    /// Returns `true` if losses so regular cannot be by chance, given the number of blocks.
    fn is_regular(&self) -> bool {
        self.dispersion < steadiest(self.blocks) * (1.0 - self.part)
    }
}

/// Returns the dispersion that losses by chance fall below in `blocks` blocks at most once in 4,000 times, relative to
/// their true dispersion; at most one half.
fn steadiest(blocks: u32) -> f64 {
    // The variance of n draws follows approximately a chi-square distribution with n - 1 degrees of freedom. This is
    // the cube of Wilson and Hilferty at three and a half deviations.
    let Some(degrees) = blocks.checked_sub(1).filter(|degrees| *degrees > 0) else { return 0.0 };
    let variance = 2.0 / (9.0 * f64::from(degrees));
    let deviation = ((variance * 1e12) as u64).isqrt() as f64 * 1e-6;
    let root = (1.0 - variance - 3.5 * deviation).max(0.0);
    (root * root * root).min(STEADY)
}

impl Survey {
    /// Judges the losses at a fixed rate. If receivers set the pace, losses are part of how they do it.
    pub fn judge(&self) -> Judgement {
        if self.dtus < LEAST_DTUS || self.blocks < LEAST_BLOCKS {
            return Judgement::Nothing;
        }
        let mut members = self.members.clone();
        members.sort_unstable_by(|a, b| b.part.total_cmp(&a.part));
        let (Some(most), Some(least)) = (members.first(), members.last()) else { return Judgement::Nothing };
        let worth = |member: &Surveyed| member.part * WORTH as f64 >= 1.0;
        if !worth(most) {
            return Judgement::Nothing;
        }
        let lost_least = members.iter().map(|member| member.lost).min().unwrap_or(0);
        let same = self.union * 100 <= lost_least * SAME;
        if worth(least) && same && members.iter().all(Surveyed::is_regular) {
            return Judgement::Narrow { received: 1.0 - most.part };
        }
        let median = members[members.len() / 2].part;
        let slow = members.iter().filter(|member| worth(member) && member.part >= FAR_MORE * median).count();
        if slow > 0 && slow * 2 < members.len() {
            return Judgement::OneSlow { client: most.client, part: most.part, others: slow as u32 - 1 };
        }
        Judgement::Random
    }
}

impl Sender {
    /// Returns `true` if the losses in `nak` are of the first pass, and that pass sends everything.
    pub(super) fn is_of_first_pass(&self, nak: &Nak) -> bool {
        nak.pass == 1 && !self.progress.restart
    }

    /// Records a member's first report on a block of the first pass; no other member had requested `newly` of its DTUs
    /// before.
    pub(super) fn survey_report(&mut self, now: Time, nak: &Nak, newly: u32) {
        let (block, lost, size) = (nak.block, nak.missing.count(), self.geometry.block_size());
        let wait = self.round_trip() + self.config.backoff_window;
        let survey = &mut self.survey;
        let Some(start) = survey.start else {
            if u64::from(lost) * WORTH >= u64::from(size) {
                let next = block + 1;
                survey.start = Some(next);
                (survey.settled, survey.due, survey.end, survey.due_at) = (next, next, next, now + wait);
            }
            return;
        };
        // The last block may be shorter, so its losses cannot be compared.
        if block < start || self.geometry.block_len(block) < size {
            return;
        }
        survey.end = survey.end.max(block + 1);
        let stage = survey.stage(block);
        survey.union.note(stage, newly);
        if let Some(member) = self.members.get_mut(nak.client) {
            member.tallies.note(stage, lost);
        }
        if survey.end > survey.due && now >= survey.due_at {
            survey.union.advance();
            for member in self.members.values_mut() {
                member.tallies.advance();
            }
            (survey.settled, survey.due, survey.due_at) = (survey.due, survey.end, now + wait);
        }
    }

    /// Returns the losses of the first pass. The survey is empty for a group without registration, and if only
    /// requested DTUs were sent from the beginning.
    pub fn survey(&self) -> Survey {
        let survey = &self.survey;
        let Some(start) = survey.start else { return Survey::default() };
        // At the end all requests have been answered.
        let all = matches!(self.phase, Phase::Completing | Phase::Aborting | Phase::Ended);
        let blocks = (if all { survey.end } else { survey.settled }) - start;
        let size = self.geometry.block_size();
        let counts = |state: &MemberState| matches!(state, MemberState::Active | MemberState::Done);
        // A receiver that held segments did not request them, lost or not.
        let members = self
            .members
            .iter()
            .filter(|(_, member)| counts(&member.state) && member.since_block <= start && member.held == 0);
        let surveyed = |(&client, member): (&ClientId, &super::Member)| {
            Surveyed::of(client, &member.tallies.settled(all), blocks, size)
        };
        Survey {
            blocks,
            dtus: u64::from(blocks) * u64::from(size),
            union: survey.union.settled(all).lost,
            members: members.map(surveyed).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 100;

    /// Creates a survey of members that lost `losses` in blocks of 100, with `union` DTUs in all.
    fn survey(union: u64, losses: &[&[u32]]) -> Survey {
        let blocks = losses.iter().map(|losses| losses.len()).max().unwrap_or(0) as u32;
        let member = |(id, losses): (usize, &&[u32])| {
            let mut tallies = Tallies::default();
            for &lost in losses.iter().filter(|lost| **lost > 0) {
                tallies.note(0, lost);
            }
            Surveyed::of(ClientId(id as u32), &tallies.settled(false), blocks, SIZE)
        };
        let members = losses.iter().enumerate().map(member).collect();
        Survey { blocks, dtus: u64::from(blocks * SIZE), union, members }
    }

    #[test]
    fn regular_losses_of_all_are_a_narrow_way() {
        let half = [50, 51].repeat(8);
        let lost: u32 = half.iter().sum();
        let same = survey(u64::from(lost), &[&half, &half]).judge();
        let Judgement::Narrow { received } = same else { panic!("{same:?}") };
        assert!((received - 0.495).abs() < 1e-9, "{received}");
        // The union exceeds the losses of each by a tenth, or by a fifth.
        let union = |percent: u32| survey(u64::from(lost * percent / 100), &[&half, &half]).judge();
        assert!(matches!(union(110), Judgement::Narrow { .. }));
        assert_eq!(union(120), Judgement::Random);
        // One receiver loses a little less than a twentieth.
        let (little, enough) = ([4, 5].repeat(20), [5, 5].repeat(20));
        let single = |losses: &[u32]| survey(u64::from(losses.iter().sum::<u32>()), &[losses]).judge();
        assert_eq!(single(&little), Judgement::Nothing);
        assert!(matches!(single(&enough), Judgement::Narrow { .. }));
        let both = survey(200, &[&enough, &little]).judge();
        assert_eq!(both, Judgement::Random);
    }

    #[test]
    fn few_blocks_say_nothing() {
        let of = |count: usize| survey(50 * count as u64, &[&[50; 20][..count]]).judge();
        assert_eq!((of(1), of(2)), (Judgement::Nothing, Judgement::Nothing));
        // Three random draws are too often alike.
        assert_eq!(of(3), Judgement::Random);
        assert!(matches!(of(20), Judgement::Narrow { .. }));
        let short = Survey { dtus: 199, ..survey(50 * 20, &[&[50; 20]]) };
        assert_eq!(short.judge(), Judgement::Nothing);
    }

    #[test]
    fn losses_that_vary_as_by_chance_are_no_narrow_way() {
        // Half of 100 DTUs on average, with a deviation of five, and of two.
        let (by_chance, steady) = ([45, 55].repeat(40), [48, 52].repeat(40));
        assert_eq!(survey(4000, &[&by_chance]).judge(), Judgement::Random);
        assert!(matches!(survey(4000, &[&steady]).judge(), Judgement::Narrow { .. }));
        // All of them lose the same DTUs by chance, on a shared hop.
        assert_eq!(survey(4000, &[&by_chance, &by_chance, &by_chance]).judge(), Judgement::Random);
    }

    #[test]
    fn the_more_blocks_the_less_regular_they_must_be() {
        assert!([0, 1, 2, 3].iter().all(|&blocks| steadiest(blocks) <= 0.0));
        assert!(steadiest(8) > 0.005 && steadiest(20) > 0.1 && steadiest(20) < 0.25);
        assert!(steadiest(200) == STEADY);
    }

    #[test]
    fn few_that_lose_far_more_are_named() {
        let of = |losses: &[u32]| {
            let each: Vec<[u32; 10]> = losses.iter().map(|&lost| [lost; 10]).collect();
            let each: Vec<&[u32]> = each.iter().map(|losses| &losses[..]).collect();
            survey(losses.iter().map(|&lost| u64::from(lost) * 10).sum(), &each).judge()
        };
        let slow = |client, part, others| Judgement::OneSlow { client: ClientId(client), part, others };
        assert_eq!(of(&[0, 30, 0]), slow(1, 0.3, 0));
        assert_eq!(of(&[2, 8, 2]), slow(1, 0.08, 0), "four times as much");
        assert_eq!(of(&[2, 7, 2]), Judgement::Random);
        assert_eq!(of(&[0, 4, 0]), Judgement::Nothing);
        assert_eq!(of(&[0, 30, 20, 1, 1]), slow(1, 0.3, 1));
        assert_eq!(of(&[30, 0]), Judgement::Random, "of two, none is the exception");
        assert_eq!(of(&[30, 30, 0, 0]), Judgement::Random, "nor are two of four");
    }

    #[test]
    fn silence_is_no_loss_unless_requests_were_lost() {
        // The receiver lost three quarters of the requests too: about 25 of 100 reached it.
        let of = |blocks: u32, lost: u64| {
            let tally =
                Tally { blocks, lost: u64::from(blocks) * lost, squares: u64::from(blocks) * lost * lost };
            Surveyed::of(ClientId(1), &tally, 100, SIZE)
        };
        let narrow = of(25, 75);
        assert_eq!((narrow.blocks, narrow.part, narrow.dispersion), (25, 0.75, 0.0));
        assert_eq!(of(13, 75).blocks, 13, "by three deviations");
        let burst = of(11, 75);
        assert_eq!((burst.blocks, burst.part), (100, 0.0825));
        assert!(burst.dispersion > 10.0, "{burst:?}");
        let none = of(0, 0);
        assert_eq!((none.blocks, none.part, none.dispersion), (100, 0.0, 0.0));
    }

    #[test]
    fn answers_count_once_all_have_arrived() {
        let mut tallies = Tallies::default();
        for (stage, lost) in [1, 10, 100].into_iter().enumerate() {
            tallies.note(stage, lost);
        }
        assert_eq!((tallies.settled(false).lost, tallies.settled(true).lost), (1, 111));
        tallies.advance();
        assert_eq!((tallies.settled(false).lost, tallies.settled(true).squares), (11, 10_101));
        tallies.advance();
        assert_eq!(tallies.settled(false).blocks, 3);
    }
}
