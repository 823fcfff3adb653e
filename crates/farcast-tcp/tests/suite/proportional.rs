//! Proportional rate reduction against the formulas of RFC 6937 and of RFC 9937 themselves, on a scoreboard of the
//! test's own.

use std::collections::BTreeSet;

use farcast_core::{BitRate, Span};
use farcast_tcp::{Config, InitialWindow, Recovery, Reduction, Segment, Window};

use crate::common::{CLIENT, SERVER, Sent, World, drop_data, initial, prompt};

const SMSS: u64 = 1000;

/// State of RFC 6675 and RFC 6937, in segments of one size, in the plain form of the RFCs.
#[derive(Default)]
struct Naive {
    una: u64,
    next: u64,
    sacked: BTreeSet<u64>,
    resent: BTreeSet<u64>,
    duplicates: u32,
    /// New segments sent since the first duplicate.
    early: u64,
    recovery: Option<Reducing>,
    /// RFC 9937 instead of RFC 6937.
    careful: bool,
}

struct Reducing {
    point: u64,
    ssthresh: u64,
    recover_fs: u64,
    delivered: u64,
    out: u64,
    careful: bool,
}

impl Naive {
    /// RFC 6675 section 4: three separate blocks above, or more than two segments' worth.
    fn is_lost(&self, segment: u64) -> bool {
        let above: Vec<u64> = self.sacked.range(segment + 1..).copied().collect();
        let blocks = above.iter().filter(|&&one| !self.sacked.contains(&(one - 1))).count();
        blocks >= 3 || above.len() as u64 * SMSS > 2 * SMSS
    }

    fn lost(&self) -> BTreeSet<u64> {
        (self.una..self.next).filter(|one| !self.sacked.contains(one) && self.is_lost(*one)).collect()
    }

    fn pipe(&self) -> u64 {
        let unknown = (self.una..self.next).filter(|one| !self.sacked.contains(one));
        unknown.map(|one| u64::from(!self.is_lost(one)) + u64::from(self.resent.contains(&one))).sum::<u64>()
            * SMSS
    }

    fn sends(&mut self, sent: &Sent) {
        let segment = sent.range().0 / SMSS;
        if segment >= self.next {
            self.next = segment + 1;
            self.early += u64::from(self.duplicates > 0 && self.recovery.is_none());
        } else {
            self.resent.insert(segment);
        }
        if let Some(reducing) = &mut self.recovery {
            reducing.out += SMSS;
        }
    }

    /// Takes an acknowledgment; the window that RFC 6937 prescribes, where it says anything.
    fn hears(&mut self, segment: &Segment) -> Option<u64> {
        let number =
            |wire: farcast_tcp::SequenceNumber| u64::from(wire.0.wrapping_sub(initial(CLIENT).0 + 1)) / SMSS;
        let before = self.una + self.sacked.len() as u64;
        let lost_before = self.lost();
        let una = number(segment.acknowledgment);
        let advanced = una > self.una;
        self.una = una;
        self.sacked.retain(|&one| one >= una);
        self.resent.retain(|&one| one >= una);
        for block in segment.options.sack.as_slice() {
            self.sacked.extend((number(block.left)..number(block.right)).filter(|&one| one >= una));
        }
        let delivered = (self.una + self.sacked.len() as u64 - before) * SMSS;
        if self.recovery.as_ref().is_some_and(|reducing| una >= reducing.point) {
            (self.duplicates, self.early, self.resent) = (0, 0, BTreeSet::new());
            return self.recovery.take().map(|reducing| reducing.ssthresh);
        }
        self.duplicates = if advanced { 0 } else { self.duplicates + u32::from(delivered > 0) };
        self.early = if self.duplicates == 0 { 0 } else { self.early };
        if self.recovery.is_none() && (self.duplicates >= 3 || (self.duplicates > 0 && self.is_lost(una))) {
            let flight = (self.next - self.una) * SMSS;
            // RFC 9937 section 6.1: less the data that had arrived before this acknowledgment; the data that it reports
            // counts.
            let arrived = self.sacked.len() as u64 * SMSS;
            self.recovery = Some(Reducing {
                point: self.next,
                ssthresh: ((flight - self.early * SMSS) / 2).max(2 * SMSS),
                recover_fs: if self.careful { flight + delivered - arrived } else { flight },
                delivered: 0,
                out: 0,
                careful: self.careful,
            });
        }
        let pipe = self.pipe();
        let safe = advanced && self.lost().is_subset(&lost_before);
        self.recovery.as_mut().map(|reducing| pipe + reducing.allowed(delivered, pipe, safe))
    }
}

impl Reducing {
    /// RFC 6937 section 3, with the slow start reduction bound; RFC 9937 section 6.2, which has it after safe
    /// acknowledgments only, and lets at least one segment out at the beginning.
    fn allowed(&mut self, delivered: u64, pipe: u64, safe: bool) -> u64 {
        self.delivered += delivered;
        let allowed = if pipe > self.ssthresh {
            let share = (self.delivered * self.ssthresh).div_ceil(self.recover_fs);
            let share = if self.careful { share.div_ceil(SMSS) * SMSS } else { share };
            share.saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered);
            (self.ssthresh - pipe).min(if safe || !self.careful { limit + SMSS } else { limit })
        };
        if self.careful && self.out == 0 { allowed.max(SMSS) } else { allowed }
    }
}

/// Compares the window after every acknowledgment of a transfer; how many were within a recovery.
fn follow(config: &Config, lost: &[usize]) -> usize {
    let segments = 300;
    let mut world =
        World::open(config.clone(), config.clone(), Span::from_millis(100), (segments * SMSS) as usize);
    world.paths[CLIENT].rate = BitRate::from_bps(8_000_000);
    world.paths[CLIENT].script = drop_data(lost);
    world.write(CLIENT, segments * SMSS);
    world.run_to_receipt(SERVER, segments * SMSS);
    let stats = world.ends[CLIENT].connection.stats();
    assert_eq!(stats.timeouts, 0, "{lost:?}");
    let careful = config.reduction == Reduction::ProportionalSafe;
    let (mut naive, mut sent, mut compared) = (Naive { careful, ..Naive::default() }, 0, 0);
    for sample in world.samples.iter().filter(|sample| sample.side == CLIENT) {
        for one in world.sent[sent..sample.sent].iter().filter(|one| one.from == CLIENT) {
            naive.sends(one);
        }
        sent = sample.sent;
        if let Some(window) = naive.hears(&sample.segment) {
            compared += 1;
            assert_eq!(sample.window, window, "{lost:?}, acknowledgment {compared} at {:?}", sample.at);
        }
    }
    compared
}

fn settings(limited_transmit: bool, reduction: Reduction) -> Config {
    Config {
        mss: SMSS as u16,
        recovery: Recovery::Sack,
        reduction,
        initial_window: InitialWindow::Segments(30),
        initial_ssthresh: Some(Window::Segments(30)),
        timestamps: None,
        limited_transmit,
        ..prompt()
    }
}

#[test]
fn the_window_follows_the_formulas() {
    let all = [false, true].map(|one| [(one, Reduction::Proportional), (one, Reduction::ProportionalSafe)]);
    for (limited_transmit, reduction) in all.into_iter().flatten() {
        for lost in [
            &[0][..],
            &[7],
            &[3, 4],
            &[3, 9, 15],
            &[0, 2, 4, 6, 8, 10, 12],
            // Enough losses that the pipe falls below the threshold: the reduction bound decides.
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
            &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 22, 23, 24],
        ] {
            let compared = follow(&settings(limited_transmit, reduction), lost);
            assert!(compared >= 10 - usize::from(lost.len() > 12) * 5, "{lost:?}: only {compared}");
        }
    }
}
