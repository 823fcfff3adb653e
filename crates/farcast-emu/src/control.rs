//! Live control of a running emulation over a Unix socket: line JSON, for `farcast emulate --control` and for scripts.
//!
//! The socket is abstract (unix(7)): it has no file, so nothing is left behind however the emulation ends. It lives in
//! the network namespace of the thread that starts the [`ControlServer`], under the name [`socket_name`] of its
//! process. File permissions do not protect such a name. The server therefore asks the kernel for the user of each
//! client, and serves only its own user and root.
//!
//! A client sends [`Request`]s, one JSON object a line, and gets one [`AnswerLine`] for each, in order:
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
//! A client can neither grow the emulation's memory nor delay it. At most [`MOST_CONNECTIONS`] clients are connected at
//! once, and a line has at most [`LONGEST_LINE`] octets. No request is read before the last answer has gone. A client
//! that does not read its lines is dropped after [`PATIENCE`].
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

pub use answer::{Answer, AnswerLine, Description, HostDescription, StageDescription};
pub use client::{Control, SnapshotStream};
pub use error::{ControlError, RequestError};
pub use names::{running, socket_name};
pub use request::{Change, FASTEST_WATCH, LinkDirection, Request, SLOWEST_WATCH};
pub use server::{ControlCounters, ControlServer, LONGEST_LINE, MOST_CONNECTIONS, PATIENCE};
pub use snapshot::{
    Bin, Count, DirectionState, Lateness, ProgramPhase, ProgramState, Snapshot, TerminalState,
};

/// Actions of a running emulation for its clients. The [`ControlServer`] calls them on a thread of its own, one request
/// after the other, and serves no other client meanwhile: none of them should wait for long.
pub trait Handler {
    /// Changes the link, or returns the reason for a refusal in one sentence.
    ///
    /// # Errors
    /// The sentence, for example if the stage does not exist or lacks the setting.
    fn set(&mut self, change: Change) -> Result<(), String>;

    /// Returns the state and the counts so far. The server fills in `interval_s` and the rates of both directions,
    /// separately for each client.
    fn snapshot(&mut self) -> Snapshot;

    /// Returns a description of the emulation.
    fn describe(&mut self) -> Description;

    /// Begins to end the emulation in good order, and returns before the end.
    fn stop(&mut self);
}

#[cfg(test)]
mod tests;
