//! Results of steady-state models.

use core::num::NonZeroU32;

use farcast_core::units::Bytes;

/// Bound of a throughput or a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// Losses.
    Loss,
    /// The receiver's window.
    Window,
}

/// A steady throughput.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Throughput {
    /// Packets per second, above zero.
    pub packets_per_s: f64,
    /// Bound of the throughput: the branch of the formula that was used.
    pub bound: Bound,
}

impl Throughput {
    /// Returns the throughput in bit/s, with `mss` octets in a packet. Headers are not counted.
    pub fn bits_per_s(&self, mss: NonZeroU32) -> f64 {
        self.packets_per_s * f64::from(mss.get()) * 8.0
    }

    /// Returns the time of `packets` packets, in seconds.
    pub fn transfer_time_s(&self, packets: u64) -> f64 {
        packets as f64 / self.packets_per_s
    }

    /// Returns the lesser of a throughput that losses allow and one that the window allows, both in packets per second.
    pub(crate) fn lesser(by_loss: f64, by_window: f64) -> Self {
        if by_loss < by_window {
            Self { packets_per_s: by_loss, bound: Bound::Loss }
        } else {
            Self { packets_per_s: by_window, bound: Bound::Window }
        }
    }
}

/// Returns the number of packets of at most `mss` octets that `size` takes.
pub fn packets(size: Bytes, mss: NonZeroU32) -> u64 {
    size.0.div_ceil(u64::from(mss.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packet_may_be_short() {
        let mss = NonZeroU32::new(1448).expect("positive");
        assert_eq!([0, 1, 1448, 1449].map(|size| packets(Bytes(size), mss)), [0, 1, 1, 2]);
        assert_eq!(packets(Bytes(u64::MAX), NonZeroU32::MIN), u64::MAX);
    }

    #[test]
    fn one_packet_a_second() {
        let one = Throughput::lesser(1.0, 2.0);
        assert_eq!(one.bound, Bound::Loss);
        assert!((one.bits_per_s(NonZeroU32::MIN) - 8.0).abs() < 1e-12);
        assert!((one.transfer_time_s(7) - 7.0).abs() < 1e-12);
        assert_eq!(
            Throughput::lesser(f64::INFINITY, 2.0),
            Throughput { packets_per_s: 2.0, bound: Bound::Window }
        );
    }
}
