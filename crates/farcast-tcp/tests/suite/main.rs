//! TCP connections against each other, against scripts and against another implementation; one file for each kind of
//! behaviour.

mod closing;
mod common;
mod device;
mod hostile;
mod laws;
mod linux;
mod opening;
mod proportional;
mod recovery;
mod resets;
mod slow_start;
mod smoltcp;
mod soak;
mod spurious;
mod timeouts;
mod timestamps;
mod windows;
