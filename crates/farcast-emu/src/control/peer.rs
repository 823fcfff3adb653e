//! Identity of the peer of a socket.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::process::Uid;

/// Returns the user of the peer at the time of connecting.
///
/// The peer's process may be outside this PID namespace and so have number 0 here. Types that cannot hold 0 must not be
/// given that number.
pub(super) fn user_of(socket: impl AsFd) -> io::Result<Uid> {
    let credentials = getsockopt(&socket, PeerCredentials)?;
    Ok(Uid::from_raw(credentials.uid()))
}
