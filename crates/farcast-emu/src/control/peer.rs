//! Who is at the other end of a socket.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::process::Uid;

/// The user at the other end, as of connecting.
///
/// The process there may be outside this PID namespace and so have number 0 here, which types that hold no 0 must not
/// be given.
pub(super) fn user_of(socket: impl AsFd) -> io::Result<Uid> {
    let credentials = getsockopt(&socket, PeerCredentials)?;
    Ok(Uid::from_raw(credentials.uid()))
}
