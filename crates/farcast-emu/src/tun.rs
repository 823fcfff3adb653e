//! TUN devices: what the kernel routes to one can be read, and what is written to it the kernel receives.
//!
//! Each read and write is one whole IP packet with its checksums done: there is no header before it (`IFF_NO_PI`), and
//! neither segmentation nor checksums are left to us (no `IFF_VNET_HDR`), so that losses and rates apply to what a
//! link would carry.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::EmuError;
use crate::network::Network;

/// How a device is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunConfig {
    /// The interface's name, 1 to 15 bytes.
    pub name: String,
    /// The longest packet in octets, with its IP header: 68 to 65535. Below 1280 the kernel does no IPv6 there.
    pub mtu: u16,
    /// How many packets may wait to be read. What comes when so many wait is dropped, and that drop is nobody's link.
    pub queue: u32,
}

impl TunConfig {
    /// A device called `name` for packets of 1500 octets, of which 5000 may wait (the kernel's default is 500).
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), mtu: 1500, queue: 5000 }
    }

    /// Whether a device can be made so.
    ///
    /// # Errors
    /// [`EmuError::Name`] or [`EmuError::Mtu`].
    pub fn check(&self) -> Result<(), EmuError> {
        let length = (1..=15).contains(&self.name.len());
        let odd = |c: char| c.is_whitespace() || matches!(c, '/' | ':' | '%' | '\0');
        if !length || self.name.contains(odd) || matches!(&*self.name, "." | "..") {
            return Err(EmuError::Name(self.name.clone()));
        }
        // An IPv4 host takes 68 octets at least (RFC 791 section 3.2).
        if self.mtu < 68 {
            return Err(EmuError::Mtu(self.mtu));
        }
        Ok(())
    }
}

/// A TUN device, which is down at first and disappears when this is dropped.
pub struct Tun {
    device: SyncDevice,
    config: TunConfig,
}

impl Tun {
    /// Makes a device in the calling thread's namespace. It works from any other too.
    ///
    /// # Errors
    /// [`EmuError::NoTun`], [`EmuError::TunDenied`] or [`EmuError::Denied`] where the system does not allow it, and
    /// what is wrong with `config`.
    pub fn open(config: &TunConfig) -> Result<Self, EmuError> {
        config.check()?;
        // The library would make a missing device node, which is the administrator's to do.
        if !Path::new("/dev/net/tun").exists() {
            return Err(EmuError::NoTun);
        }
        let builder = DeviceBuilder::new().enable(false).name(&config.name).mtu(config.mtu);
        let device = builder.build_sync().map_err(|error| refused(&config.name, error))?;
        device.set_nonblocking(true).map_err(EmuError::when("make a TUN device non-blocking"))?;
        // The library would ask by an ioctl that root of a user namespace may not use.
        Network::open()?.set_queue(&config.name, config.queue)?;
        Ok(Self { device, config: config.clone() })
    }

    /// How it was made.
    pub fn config(&self) -> &TunConfig {
        &self.config
    }

    /// Reads the next packet into `buffer`, which should have as many octets as the MTU: what does not fit is cut off.
    /// How many octets it has; `None` if none is waiting.
    ///
    /// # Errors
    /// What the system says, as when somebody has deleted the device.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, EmuError> {
        loop {
            match self.device.recv(buffer) {
                Ok(len) => return Ok(Some(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(EmuError::when("read from a TUN device")(error)),
            }
        }
    }

    /// Writes the packet that `parts` make together. Whether the kernel took it: it drops packets while the device is
    /// down or memory is short, as a link may.
    ///
    /// # Errors
    /// What else the system says, such as that this is no IP packet.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> Result<bool, EmuError> {
        loop {
            let Err(error) = self.device.send_vectored(parts) else { return Ok(true) };
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => return Ok(false),
                _ if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => return Ok(false),
                _ => return Err(EmuError::when("write to a TUN device")(error)),
            }
        }
    }
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").field("config", &self.config).finish_non_exhaustive()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Why the device `name` could not be made.
fn refused(name: &str, error: io::Error) -> EmuError {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        // Opening the node says EACCES, making the interface EPERM.
        Some(rustix::io::Errno::ACCESS) => EmuError::TunDenied,
        Some(rustix::io::Errno::NODEV | rustix::io::Errno::NXIO) => EmuError::NoTun,
        _ => EmuError::when(format!("make the TUN device \"{name}\""))(error),
    }
}
