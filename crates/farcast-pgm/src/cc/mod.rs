//! PGMCC: a window like TCP's, governed by the receiver whose throughput is lowest (draft-ietf-rmt-bb-pgmcc-03, cited
//! by section).
//!
//! One receiver, the *acker*, acknowledges every data packet. All receivers report their loss in the messages that they
//! send.
//!
//! | file | content |
//! |---|---|
//! | `window.rs` | window and tokens, by acknowledgements |
//! | `election.rs` | election of the acker |
//! | `rtt.rs` | round trips, and the timeout of acknowledgements |
//! | `loss.rs` | loss rate at a receiver |
//! | `controller.rs` | all of this together, at a source |

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
