//! The sockets that a receiver listens with, rejoined as interfaces come, go and change address.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use farcast_core::{Span, Time};
use farcast_delivery::Transport;

use crate::error::NetError;
use crate::interface::Interface;
use crate::links::{Changes, LOOK_EVERY, Links};
use crate::listening::{ListenNotice, ListenOptions};
use crate::narrow::{NarrowWatch, passes_everywhere};
use crate::socket::{Endpoint, is_source_specific};

/// Time between two tries to join groups again after one that failed.
const TRY_EVERY: Span = Span::from_secs(1);

/// Socket on which a datagram was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SocketRole {
    /// Listens at the address or group that announcements are sent to.
    Public,
    /// Listens to the group that the data of this transmission is sent to, if that is another one.
    Private,
    /// Our own port, from which answers leave.
    Own,
}

/// Change of the interface that the receiver listens on.
#[derive(Debug)]
pub(crate) enum InterfaceChange {
    /// The interface has gone or cannot be used.
    Waiting(NetError),
    /// The interface is there again, or another has taken its place. `moved` is true if our address has changed.
    Back { moved: bool },
}

/// The sockets of a receiver, and the interface that they listen on.
pub(crate) struct ReceiveSockets<'a> {
    options: &'a ListenOptions,
    transport: Transport,
    /// Senders may be answered.
    answers: bool,
    public: Option<Rc<Endpoint>>,
    private: Option<Rc<Endpoint>>,
    /// The private group that a transmission needs. It stays while its socket cannot be opened again.
    private_group: Option<IpAddr>,
    own: Option<Rc<Endpoint>>,
    /// Watch over the interfaces; absent if the system refuses one. Then no change is followed.
    links: Option<Links>,
    changes: Changes,
    /// The interface that groups were joined on, as it was then.
    joined: Option<Interface>,
    /// The owner has been told that there is no usable interface.
    waiting: bool,
    look: Time,
    /// The owner has been told that this host itself refused to send an answer.
    blocked: bool,
}

impl<'a> ReceiveSockets<'a> {
    /// Opens the sockets; `answers` says whether senders may be answered.
    pub(crate) fn open(
        options: &'a ListenOptions,
        transport: Transport,
        answers: bool,
    ) -> Result<Self, NetError> {
        if options.source.is_none() && is_source_specific(options.from.ip()) {
            return Err(NetError::GroupWithoutSource(options.from.ip()));
        }
        // The watch starts before anything is looked at, so that no change is missed.
        let links = Links::open().ok();
        let joined = Interface::heard_through(&options.socket, options.from)?;
        let own = if options.from.ip().is_multicast() {
            Some(Rc::new(Endpoint::answers(options.from, &options.socket, transport)?))
        } else {
            None
        };
        let mut sockets = Self {
            options,
            transport,
            answers,
            public: None,
            private: None,
            private_group: None,
            own,
            links,
            changes: Changes::default(),
            joined,
            waiting: false,
            look: Time::ZERO,
            blocked: false,
        };
        sockets.public = Some(sockets.listener(options.from)?);
        Ok(sockets)
    }

    /// Opens a socket that listens at `address` and watches for long datagrams that never arrive.
    fn listener(&self, address: SocketAddr) -> Result<Rc<Endpoint>, NetError> {
        let ListenOptions { source, socket, accept, .. } = self.options;
        let watch = NarrowWatch::new(accept, address.ip().is_multicast(), self.answers);
        let endpoint = Endpoint::listener(address, *source, socket, self.transport)?;
        Ok(Rc::new(endpoint.watching(watch)))
    }

    /// Returns the notice of a sender whose long datagrams do not arrive, once for each. Answers leave in pieces from
    /// then on.
    pub(crate) fn found_narrow(&self) -> Option<ListenNotice<'static>> {
        let mut listeners = [&self.public, &self.private].into_iter().flatten();
        let (sender, datagram) = listeners.find_map(|listener| listener.found_narrow())?;
        if let Some(mouth) = self.mouth() {
            mouth.cut();
        }
        let passes = passes_everywhere(sender.is_ipv4(), self.transport);
        Some(ListenNotice::Narrow { source: sender.ip(), datagram, passes, told: self.answers })
    }

    pub(crate) fn endpoint(&self, role: SocketRole) -> Option<Rc<Endpoint>> {
        match role {
            SocketRole::Public => self.public.clone(),
            SocketRole::Private => self.private.clone(),
            SocketRole::Own => self.own.clone(),
        }
    }

    /// Returns the size of the kernel's receive buffer of the public group, in bytes.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.public.as_ref().map_or(0, |endpoint| endpoint.receive_buffer())
    }

    /// Returns the socket that answers leave from.
    pub(crate) fn mouth(&self) -> Option<Rc<Endpoint>> {
        self.own.clone().or_else(|| self.public.clone())
    }

    /// Returns the first error with which this host itself refused to send an answer. Later ones are not returned.
    pub(crate) fn newly_blocked(&mut self) -> Option<NetError> {
        let why = self.mouth().filter(|_| !self.blocked)?.newly_refused()?;
        self.blocked = true;
        Some(why)
    }

    /// Returns the sockets on which data arrives.
    pub(crate) fn data_sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.public, &self.private].into_iter().flatten().map(|endpoint| endpoint.as_fd())
    }

    /// Returns the descriptors that bring no data: our own port, and news of the interfaces.
    pub(crate) fn other_sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = self.own.iter().map(|endpoint| endpoint.as_fd());
        own.chain(self.links.as_ref().map(AsFd::as_fd))
    }

    /// Returns the instant at which [`Self::follow`] is to be called next, even if nothing arrives.
    pub(crate) fn due(&self) -> Time {
        if self.changes.any { self.look } else { Time::NEVER }
    }

    /// Returns the private group that is joined, or will be once its interface can be used again.
    pub(crate) fn private_group(&self) -> Option<IpAddr> {
        self.private_group
    }

    /// Joins the private group of a transmission. The objects of one sender share it; a second group at a time is an
    /// error.
    pub(crate) fn join(&mut self, group: IpAddr) -> Result<(), NetError> {
        match self.private_group {
            None => {}
            Some(joined) if joined == group => return Ok(()),
            Some(joined) => return Err(NetError::OtherGroup { group, joined }),
        }
        self.private = Some(self.listener(SocketAddr::new(group, self.options.from.port()))?);
        self.private_group = Some(group);
        Ok(())
    }

    /// Leaves the private group.
    pub(crate) fn leave(&mut self) {
        (self.private, self.private_group) = (None, None);
    }

    /// Looks at changes of the interfaces, and joins groups again if needed. The caller must hold no endpoint
    /// meanwhile.
    pub(crate) fn follow(&mut self, now: Time) -> Option<InterfaceChange> {
        let links = self.links.as_mut()?;
        self.changes.add(links.changes());
        if !self.changes.any || now < self.look {
            return None;
        }
        self.look = now + LOOK_EVERY;
        self.changes.any = false;
        match self.rejoin() {
            Ok(Joined::Moved) => Some(InterfaceChange::Back { moved: true }),
            Ok(Joined::Anew) => Some(InterfaceChange::Back { moved: false }),
            Ok(Joined::Still) => None,
            Err(error) => {
                // The kernel tells of an interface that is back, but not of memory or a limit that lets groups be joined.
                self.changes.any = true;
                self.look = now + TRY_EVERY;
                (!std::mem::replace(&mut self.waiting, true)).then_some(InterfaceChange::Waiting(error))
            }
        }
    }

    fn rejoin(&mut self) -> Result<Joined, NetError> {
        let (from, socket) = (self.options.from, &self.options.socket);
        let found = Interface::heard_through(socket, from)?;
        let shaken = found.as_ref().is_some_and(|one| self.changes.shake(one.index, from.is_ipv6()));
        let is_whole = self.public.is_some() && self.private.is_some() == self.private_group.is_some();
        if found == self.joined && !shaken && is_whole {
            self.changes = Changes::default();
            let back = std::mem::take(&mut self.waiting);
            return Ok(if back { Joined::Anew } else { Joined::Still });
        }
        if found.as_ref().is_some_and(|interface| !interface.running) {
            // Without a carrier no router hears the join; the kernel tells of the carrier when it comes.
            return Ok(Joined::Still);
        }
        // Groups are left first: a socket that stays a member tells nothing to a switch that has forgotten the
        // membership.
        (self.public, self.private) = (None, None);
        self.public = Some(self.listener(from)?);
        if let Some(group) = self.private_group {
            self.private = Some(self.listener(SocketAddr::new(group, from.port()))?);
        }
        if let Some(own) = self.own.as_mut().and_then(Rc::get_mut) {
            own.aim(from.ip(), socket)?;
        }
        let address = |interface: &Option<Interface>| interface.as_ref().map(|one| one.address);
        let moved = address(&self.joined) != address(&found);
        (self.joined, self.changes, self.waiting) = (found, Changes::default(), false);
        Ok(if moved { Joined::Moved } else { Joined::Anew })
    }
}

/// Result of a look at the interfaces.
enum Joined {
    /// Nothing that matters has changed.
    Still,
    /// The groups were joined again.
    Anew,
    /// The groups were joined again, and our address has changed.
    Moved,
}
