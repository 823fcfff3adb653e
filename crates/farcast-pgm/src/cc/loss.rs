//! Loss rate at a receiver (section 2.6).

/// A single-pole low-pass filter over 1 for each lost packet and 0 for each received one.
///
/// DEVIATION: the draft's formula weighs the old value with 500/65536; that is the weight of the new one, as its time
/// constant of 131 packets says, and as OpenPGM has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossFilter {
    /// Loss rate in parts of 2^32.
    loss: u64,
}

/// Weight of a packet, in parts of 2^16.
const WEIGHT: u64 = 500;

impl LossFilter {
    /// Takes the fate of a packet.
    pub const fn note(&mut self, is_lost: bool) {
        self.loss -= (self.loss * WEIGHT) >> 16;
        if is_lost {
            self.loss += WEIGHT << 16;
        }
    }

    /// Returns the loss rate in parts of 65,536.
    pub const fn loss(&self) -> u16 {
        let parts = self.loss >> 16;
        if parts > u16::MAX as u64 { u16::MAX } else { parts as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_forgets_with_a_time_constant_of_131_packets() {
        let mut filter = LossFilter::default();
        filter.note(true);
        assert_eq!(filter.loss(), 500);
        (0..131).for_each(|_| filter.note(false));
        let left = f64::from(filter.loss()) / 500.0;
        assert!((left - (-1f64).exp()).abs() < 0.01, "{left}");
    }

    #[test]
    fn it_settles_at_what_is_lost() {
        let mut filter = LossFilter::default();
        let mut sum = 0.0;
        for n in 0..20_000u32 {
            filter.note(n % 20 == 0);
            sum += if n >= 10_000 { f64::from(filter.loss()) / 65_536.0 } else { 0.0 };
        }
        assert!((sum / 10_000.0 - 0.05).abs() < 0.0005);
        (0..10_000).for_each(|_| filter.note(true));
        assert!(filter.loss() > 65_400);
    }
}
