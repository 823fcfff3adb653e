//! Live control of a running emulation over a Unix socket: line JSON, for `farcast emulate --control` and for whoever
//! has a few lines of a script.
//!
//! The socket is abstract (unix(7)): it has no file, so nothing is left behind however the emulation ends. It lives in
//! the network namespace of the thread that starts the [`ControlServer`], under the name [`socket_name`] of its
//! process. Permissions do not guard such a name. The server asks the kernel who has connected, and serves only its own
//! user and root.
//!
//! A client sends [`Request`]s, one JSON object a line, and gets one [`Line`] for each, in order:
//!
//! ```text
//! {"set": {"way": "forward", "rate": "2 Mbit/s"}}      {"ok":{}}
//! {"set": {"speed": 3}}                                {"error":"unknown field `speed`, expected one of ..."}
//! {"describe": {}}                                     {"ok":{"description":{...}}}
//! {"snapshot": {}}                                     {"ok":{"snapshot":{...}}}
//! {"stop": {}}                                         {"ok":{}}
//! {"watch": {"every": "500 ms"}}                       {"ok":{}}, and from then on {"snapshot":{...}} at that pace
//! ```
//!
//! Nothing that a client does grows memory or holds up the emulation: [`MOST_CONNECTIONS`] at once, lines of
//! [`LONGEST_LINE`] octets, no request is read before the last one's answer has gone, and a client that does not take
//! its lines is dropped after [`PATIENCE`].
//!
//! ```no_run
//! use farcast_emu::control::{Answer, Control, Request};
//!
//! # fn main() -> Result<(), farcast_emu::control::ControlError> {
//! let mut control = Control::connect(None)?;
//! if let Answer::Snapshot(snapshot) = control.request(&Request::Snapshot)? {
//!     println!("{} packets have come through", snapshot.forward.delivered.packets);
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod client;
mod connection;
mod error;
mod names;
mod peer;
mod request;
mod server;
mod snapshot;

pub use answer::{Answer, Description, HostDescription, Line, StageDescription};
pub use client::{Control, Watch};
pub use error::{ControlError, RequestError};
pub use names::{running, socket_name};
pub use request::{Change, FASTEST_WATCH, Request, SLOWEST_WATCH, Way};
pub use server::{ControlCounters, ControlServer, LONGEST_LINE, MOST_CONNECTIONS, PATIENCE};
pub use snapshot::{Bin, Count, Lateness, ProgramPhase, ProgramState, Snapshot, TerminalState, WayState};

/// What a running emulation does for its clients. The [`ControlServer`] calls it on a thread of its own, one request
/// after the other, and serves nobody meanwhile: none of these should wait for long.
pub trait Handler {
    /// Changes the link, or says in one sentence why not.
    ///
    /// # Errors
    /// The sentence, as when there is no such stage or it has no such setting.
    fn set(&mut self, change: Change) -> Result<(), String>;

    /// What has happened so far. The server fills in `interval_s` and the rates of both ways, for each client by
    /// itself.
    fn snapshot(&mut self) -> Snapshot;

    /// What is emulated.
    fn describe(&mut self) -> Description;

    /// Begins to end the emulation in good order. It returns before that is done.
    fn stop(&mut self);
}

#[cfg(test)]
mod tests;
