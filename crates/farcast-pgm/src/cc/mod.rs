//! PGMCC: a window like TCP's, that of the receiver whose throughput is lowest (draft-ietf-rmt-bb-pgmcc-03, by
//! section).
//!
//! One receiver, the *acker*, acknowledges every data packet; all receivers say in what they send how much they lose.
//!
//! | file | what |
//! |---|---|
//! | `window.rs` | tokens and window, by acknowledgements |
//! | `election.rs` | who acknowledges |
//! | `rtt.rs` | round trips, and when an acknowledgement is overdue |
//! | `loss.rs` | how much a receiver loses |
//! | `controller.rs` | all of that as a source has it |

mod controller;
mod election;
mod loss;
mod rtt;
mod window;

pub use controller::{CcConfig, Controller};
pub use election::slowness;
pub use loss::LossFilter;
pub use rtt::RoundTrip;
pub use window::Window;
