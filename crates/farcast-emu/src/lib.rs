//! The emulator's devices: TUN interfaces in network namespaces, which connect the kernel's TCP and farcast's own.
//!
//! | module | purpose |
//! |---|---|
//! | [`namespace`] | creates a network namespace, enters it, starts commands in it; nothing is left behind |
//! | [`tun`] | opens a TUN device there, reads and writes whole packets |
//! | [`network`] | addresses, routes and links, as `ip` sets them |
//! | [`packet`] | IP headers before TCP segments |
//! | [`driver`] | farcast's own TCP behind a device, in wall time |
//!
//! All of this needs Linux and the right to administer networks; [`EmuError`] says in one sentence how to get the
//! right.
//!
//! # A device in a namespace
//!
//! ```no_run
//! use farcast_emu::namespace::Namespace;
//! use farcast_emu::network::Network;
//! use farcast_emu::tun::{Tun, TunConfig};
//!
//! # fn main() -> Result<(), farcast_emu::EmuError> {
//! let namespace = Namespace::create()?;
//! let tun = namespace.run(|| {
//!     let tun = Tun::open(&TunConfig::new("tun0"))?;
//!     let mut network = Network::open()?;
//!     network.add_address("tun0", "10.0.0.1".parse().unwrap(), 24)?;
//!     network.set_up("tun0")?;
//!     Ok(tun)
//! })??;
//! // A packet that a program in the namespace sends to 10.0.0.2 can be read here, whichever namespace this is.
//! let mut packet = [0; 2048];
//! let received = tun.read(&mut packet)?;
//! # let _ = received;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod clock;
pub mod control;
pub mod driver;
pub mod emulation;
mod error;
pub mod host;
pub mod link;
pub mod namespace;
pub mod network;
pub mod packet;
pub mod pool;
pub mod relay;
pub mod route;
pub mod supervise;
pub mod tun;

pub use clock::Clock;
pub use error::EmuError;
