//! Waiting for devices, the next instant and orders at once.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use farcast_core::Time;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::tun::Tun;
use crate::{Clock, EmuError};

/// Source that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    /// The device with this number.
    Device(usize),
    /// The channel of orders.
    Orders,
}

/// Tokens of the other sources; a device's token is its number.
const TIMER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// Most sources that one wait returns; others wait for the next.
const MOST_READY: usize = 64;

pub(super) struct Poller {
    set: OwnedFd,
    timer: OwnedFd,
    bell: Arc<OwnedFd>,
    /// Time to which the timer is set.
    armed: Time,
}

impl Poller {
    pub(super) fn new(devices: &[Tun]) -> Result<Self, EmuError> {
        let action = "wait for devices";
        let set = epoll::create(CreateFlags::CLOEXEC).map_err(EmuError::when(action))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(EmuError::when(action))?;
        let bell =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(EmuError::when(action))?;
        let add = |source: &dyn std::os::fd::AsFd, place| {
            epoll::add(&set, source.as_fd(), EventData::new_u64(place), EventFlags::IN)
                .map_err(EmuError::when(action))
        };
        for (place, device) in (0..).zip(devices) {
            add(device, place)?;
        }
        add(&timer, TIMER)?;
        add(&bell, BELL)?;
        Ok(Self { set, timer, bell: Arc::new(bell), armed: Time::NEVER })
    }

    /// Returns the event that wakes the poller when there are orders.
    pub(super) fn bell(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.bell)
    }

    /// Waits until `due`, or until a source can be read, and puts the readable sources into `ready`. With `only_look`
    /// it returns at once.
    pub(super) fn wait(
        &mut self,
        clock: Clock,
        due: Time,
        only_look: bool,
        ready: &mut Vec<Ready>,
    ) -> Result<(), EmuError> {
        ready.clear();
        // An instant that is due already needs no timer.
        let only_look = only_look || due <= clock.now();
        if !only_look {
            self.arm(clock, due)?;
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = only_look.then_some(&at_once);
        let mut events = [MaybeUninit::<Event>::uninit(); MOST_READY];
        let events = match epoll::wait(&self.set, &mut events, timeout) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(EmuError::when("wait for devices")(errno)),
        };
        for event in events {
            match event.data.u64() {
                TIMER => {
                    // The timer has expired: reading makes it quiet.
                    let _ = rustix::io::read(&self.timer, &mut [0_u8; 8]);
                    self.armed = Time::NEVER;
                }
                BELL => {
                    let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
                    ready.push(Ready::Orders);
                }
                place => ready.push(Ready::Device(place as usize)),
            }
        }
        Ok(())
    }

    fn arm(&mut self, clock: Clock, due: Time) -> Result<(), EmuError> {
        if due == self.armed {
            return Ok(());
        }
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = if due == Time::NEVER { none } else { clock.on_the_system(due) };
        let setting = Itimerspec { it_interval: none, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)
            .map_err(EmuError::when("set a timer"))?;
        self.armed = due;
        Ok(())
    }
}
