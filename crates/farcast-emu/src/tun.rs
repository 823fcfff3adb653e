//! TUN devices: packets that the kernel routes to a device can be read, and packets written to it reach the kernel.
//!
//! Each read and write is one whole IP packet with its checksums done. No header precedes it (`IFF_NO_PI`), and the
//! kernel leaves neither segmentation nor checksums to us (no `IFF_VNET_HDR`). So losses and rates apply to the packets
//! that a link would carry.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::EmuError;
use crate::network::Network;

/// Settings of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunConfig {
    /// The interface's name, 1 to 15 bytes.
    pub name: String,
    /// Longest packet in octets, with its IP header: 68 to 65535. Below 1280 the kernel does not use IPv6 on the
    /// device.
    pub mtu: u16,
    /// Most packets that may wait to be read. A packet beyond is dropped, and that drop does not count as a loss of a
    /// link.
    pub queue: u32,
}

impl TunConfig {
    /// Returns the settings of a device called `name` for packets of 1500 octets, of which 5000 may wait (the kernel's
    /// default is 500).
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), mtu: 1500, queue: 5000 }
    }

    /// Checks the name and the MTU.
    ///
    /// # Errors
    /// [`EmuError::Name`] or [`EmuError::Mtu`].
    pub fn check(&self) -> Result<(), EmuError> {
        let length = (1..=15).contains(&self.name.len());
        let odd = |c: char| c.is_whitespace() || matches!(c, '/' | ':' | '%' | '\0');
        if !length || self.name.contains(odd) || matches!(&*self.name, "." | "..") {
            return Err(EmuError::Name(self.name.clone()));
        }
        // An IPv4 host accepts at least 68 octets (RFC 791 section 3.2).
        if self.mtu < 68 {
            return Err(EmuError::Mtu(self.mtu));
        }
        Ok(())
    }
}

/// A TUN device, which is down at first and disappears when this value is dropped.
pub struct Tun {
    device: SyncDevice,
    config: TunConfig,
}

impl Tun {
    /// Creates a device in the calling thread's namespace. It works from any other namespace too.
    ///
    /// # Errors
    /// [`EmuError::NoTun`], [`EmuError::TunDenied`] or [`EmuError::Denied`] if the system does not allow the device,
    /// and an error of `config`.
    pub fn open(config: &TunConfig) -> Result<Self, EmuError> {
        config.check()?;
        // The library would create a missing device node, which is the administrator's task.
        if !Path::new("/dev/net/tun").exists() {
            return Err(EmuError::NoTun);
        }
        let builder = DeviceBuilder::new().enable(false).name(&config.name).mtu(config.mtu);
        let device = builder.build_sync().map_err(|error| refused(&config.name, error))?;
        device.set_nonblocking(true).map_err(EmuError::when("make a TUN device non-blocking"))?;
        // The library would use an ioctl that root of a user namespace may not use.
        Network::open()?.set_queue(&config.name, config.queue)?;
        Ok(Self { device, config: config.clone() })
    }

    /// Returns the settings of the device.
    pub fn config(&self) -> &TunConfig {
        &self.config
    }

    /// Reads the next packet into `buffer`, which should have as many octets as the MTU: octets that do not fit are cut
    /// off. Returns the packet's length; `None` if none is waiting.
    ///
    /// # Errors
    /// The system's error, for example if the device was deleted.
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

    /// Writes the packet that `parts` make together. Returns `true` if the kernel took it: it drops packets while the
    /// device is down or memory is short, as a link may.
    ///
    /// # Errors
    /// Other errors of the system, for example if the octets are not an IP packet.
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

/// Returns the error for a device `name` that could not be made.
fn refused(name: &str, error: io::Error) -> EmuError {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        // Opening the node fails with EACCES, making the interface with EPERM.
        Some(rustix::io::Errno::ACCESS) => EmuError::TunDenied,
        Some(rustix::io::Errno::NODEV | rustix::io::Errno::NXIO) => EmuError::NoTun,
        _ => EmuError::when(format!("make the TUN device \"{name}\""))(error),
    }
}
