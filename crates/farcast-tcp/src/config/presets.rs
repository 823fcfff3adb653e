//! Settings of whole systems.

use farcast_core::Span;

use super::{
    AfterTimeout, Algorithm, Config, DelayedAck, Increase, InitialWindow, ReceiveWindow, Recovery, Reduction,
    Window,
};
use crate::rto::RtoConfig;

impl Config {
    /// Returns the settings of today's Linux: CUBIC with `HyStart++`, RACK-TLP, PRR, F-RTO, an initial window of ten,
    /// timers from 200 ms.
    pub fn modern() -> Self {
        Self {
            recovery: Recovery::Rack,
            reduction: Reduction::ProportionalSafe,
            congestion: Algorithm::Cubic,
            increase: Increase::Delivered,
            hystart: true,
            halve_window: true,
            after_timeout: AfterTimeout::Linux,
            frto: true,
            undo: true,
            tail_loss_probe: true,
            rto: RtoConfig::linux(),
            delayed_ack: linux_delayed_ack(),
            receive_window: ReceiveWindow { size: Window::Octets(6 << 20), first: None },
            time_wait: Span::from_secs(60),
            ..Self::default()
        }
    }

    /// Returns the settings of Linux 2.4, as used in the papers of 2002 to 2005. It has FACK, rate halving, an initial
    /// window of two where the round trip exceeds 20 ms, and a timer of 3 s at first and 200 ms at least in ticks of 10
    /// ms. The advertised window has a slow start of its own.
    pub fn linux_2_4() -> Self {
        Self {
            recovery: Recovery::Fack,
            reduction: Reduction::RateHalving,
            initial_window: InitialWindow::Segments(2),
            halve_window: true,
            most_burst: Some(3),
            undo: true,
            rto: RtoConfig::linux_2_4(),
            delayed_ack: linux_delayed_ack(),
            receive_window: ReceiveWindow {
                size: Window::Octets(65_535),
                first: Some(Window::Octets(5_840)),
            },
            send_buffer: 128 << 10,
            timestamps: Some(Span::from_millis(10)),
            time_wait: Span::from_secs(60),
            ..Self::default()
        }
    }

    /// Returns the settings of the simulator ns-2, with `recovery` Reno, `NewReno` or SACK. It has no options, an
    /// acknowledgment for every segment, an initial window of two, and a timer of 3 s at first and 200 ms at least in
    /// ticks of 10 ms. The slow start threshold is the receive window.
    pub fn ns2(recovery: Recovery, window: Window) -> Self {
        let threshold = match window {
            Window::Segments(count) => Window::Segments(count.max(2)),
            octets @ Window::Octets(_) => octets,
        };
        Self {
            mss: 1000,
            recovery,
            sack: recovery.needs_sack(),
            initial_window: InitialWindow::Segments(2),
            initial_ssthresh: Some(threshold),
            rto: RtoConfig::linux_2_4(),
            delayed_ack: DelayedAck::Off,
            receive_window: ReceiveWindow { size: window, first: None },
            timestamps: None,
            ..Self::default()
        }
    }
}

/// Returns Linux's delay of acknowledgments: 16 at once, then after 40 to 200 ms.
const fn linux_delayed_ack() -> DelayedAck {
    DelayedAck::Quick { segments: 16, least: Span::from_millis(40), most: Span::from_millis(200) }
}
