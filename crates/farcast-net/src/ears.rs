//! What a receiver hears with: its sockets, which follow the interfaces.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use farcast_core::Time;
use farcast_delivery::Transport;

use crate::error::NetError;
use crate::interface::Interface;
use crate::links::{Changes, LOOK_EVERY, Links};
use crate::narrow::Watch;
use crate::receiving::ReceiveOptions;
use crate::socket::Endpoint;

/// Where something was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ear {
    /// The address or group that announcements come to.
    Public,
    /// The group that the data of this transmission comes to, where it is another.
    Private,
    /// Our own port, from which answers leave.
    Own,
}

/// What became of the interface.
#[derive(Debug)]
pub(crate) enum Followed {
    /// It is not there any more, or of no use.
    Waiting(NetError),
    /// It is there again, or another has taken its place; whether our address is another one.
    Back { moved: bool },
}

pub(crate) struct Ears<'a> {
    options: &'a ReceiveOptions,
    transport: Transport,
    /// Whether senders may be answered.
    answers: bool,
    public: Option<Rc<Endpoint>>,
    private: Option<Rc<Endpoint>>,
    own: Option<Rc<Endpoint>>,
    /// Absent where the system lets nobody watch; then nothing is followed.
    links: Option<Links>,
    changes: Changes,
    /// The interface that is joined on, as it was then.
    joined: Option<Interface>,
    /// It has been said that there is none.
    waiting: bool,
    look: Time,
}

impl<'a> Ears<'a> {
    /// Opens them; `answers` says whether senders may be answered.
    pub(crate) fn open(
        options: &'a ReceiveOptions,
        transport: Transport,
        answers: bool,
    ) -> Result<Self, NetError> {
        // Before anything is looked at, so that no change is missed.
        let links = Links::open().ok();
        let joined = Interface::heard_through(&options.socket, options.from)?;
        let own = if options.from.ip().is_multicast() {
            Some(Rc::new(Endpoint::answers(options.from, &options.socket, transport)?))
        } else {
            None
        };
        let mut ears = Self {
            options,
            transport,
            answers,
            public: None,
            private: None,
            own,
            links,
            changes: Changes::default(),
            joined,
            waiting: false,
            look: Time::ZERO,
        };
        ears.public = Some(ears.listener(options.from)?);
        Ok(ears)
    }

    /// Hears `address`, and watches over what comes.
    fn listener(&self, address: SocketAddr) -> Result<Rc<Endpoint>, NetError> {
        let ReceiveOptions { source, socket, accept, .. } = self.options;
        let watch = Watch::new(accept, address.ip().is_multicast(), self.answers);
        let endpoint = Endpoint::listener(address, *source, socket, self.transport)?;
        Ok(Rc::new(endpoint.watching(watch)))
    }

    /// A sender whose long datagrams do not come, and their octets, told once. Answers leave in pieces from then on.
    pub(crate) fn found_narrow(&self) -> Option<(SocketAddr, usize)> {
        let found = [&self.public, &self.private].into_iter().flatten().find_map(|ear| ear.found_narrow())?;
        if let Some(mouth) = self.mouth() {
            mouth.cut();
        }
        Some(found)
    }

    /// Whether senders are answered.
    pub(crate) fn answers(&self) -> bool {
        self.answers
    }

    pub(crate) fn endpoint(&self, ear: Ear) -> Option<Rc<Endpoint>> {
        match ear {
            Ear::Public => self.public.clone(),
            Ear::Private => self.private.clone(),
            Ear::Own => self.own.clone(),
        }
    }

    /// The kernel's buffer for what comes to the public group, bytes.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.public.as_ref().map_or(0, |endpoint| endpoint.receive_buffer())
    }

    /// Where answers leave from.
    pub(crate) fn mouth(&self) -> Option<Rc<Endpoint>> {
        self.own.clone().or_else(|| self.public.clone())
    }

    /// What brings data.
    pub(crate) fn data_sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.public, &self.private].into_iter().flatten().map(|endpoint| endpoint.as_fd())
    }

    /// What brings none: our own port, and news of the interfaces.
    pub(crate) fn other_sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let own = self.own.iter().map(|endpoint| endpoint.as_fd());
        own.chain(self.links.as_ref().map(AsFd::as_fd))
    }

    /// When it wants to be asked again, whatever is heard.
    pub(crate) fn due(&self) -> Time {
        if self.changes.any { self.look } else { Time::NEVER }
    }

    /// The private group that is joined.
    pub(crate) fn private_group(&self) -> Option<IpAddr> {
        self.private.as_ref().and_then(|endpoint| endpoint.group())
    }

    /// Joins the private group of a transmission: one at a time, which objects of one sender share.
    pub(crate) fn join(&mut self, group: IpAddr) -> Result<(), NetError> {
        match self.private_group() {
            None => {}
            Some(joined) if joined == group => return Ok(()),
            Some(joined) => return Err(NetError::OtherGroup { group, joined }),
        }
        let address = SocketAddr::new(group, self.options.from.port());
        self.private = Some(self.listener(address)?);
        Ok(())
    }

    /// Leaves it again.
    pub(crate) fn leave(&mut self) {
        self.private = None;
    }

    /// Looks at what has become of the interfaces, and joins anew where that is needed. Nobody may hold an endpoint
    /// meanwhile.
    pub(crate) fn follow(&mut self, now: Time) -> Option<Followed> {
        let links = self.links.as_mut()?;
        self.changes.add(links.changes());
        if !self.changes.any || now < self.look {
            return None;
        }
        self.look = now + LOOK_EVERY;
        self.changes.any = false;
        match self.rejoin() {
            Ok(Joined::Moved) => Some(Followed::Back { moved: true }),
            Ok(Joined::Anew) => Some(Followed::Back { moved: false }),
            Ok(Joined::Still) => None,
            Err(error) => (!std::mem::replace(&mut self.waiting, true)).then_some(Followed::Waiting(error)),
        }
    }

    fn rejoin(&mut self) -> Result<Joined, NetError> {
        let (from, socket) = (self.options.from, &self.options.socket);
        let found = Interface::heard_through(socket, from)?;
        let shaken = found.as_ref().is_some_and(|one| self.changes.shake(one.index, from.is_ipv6()));
        if found == self.joined && !shaken && self.public.is_some() {
            self.changes = Changes::default();
            let back = std::mem::take(&mut self.waiting);
            return Ok(if back { Joined::Anew } else { Joined::Still });
        }
        if found.as_ref().is_some_and(|interface| !interface.running) {
            // Without a carrier nobody hears that we join; it is told when it comes.
            return Ok(Joined::Still);
        }
        // Left first: who has been a member all along does not tell a switch that has forgotten it.
        let private = self.private.take().and_then(|endpoint| endpoint.group());
        self.public = None;
        self.public = Some(self.listener(from)?);
        if let Some(group) = private {
            self.join(group)?;
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

/// What came of looking at the interfaces.
enum Joined {
    /// Nothing that matters has changed.
    Still,
    /// What was joined was joined again.
    Anew,
    /// The same, and our address is another one.
    Moved,
}
