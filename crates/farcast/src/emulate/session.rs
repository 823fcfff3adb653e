//! Programs of an emulation: starts them at their times, waits for them, stops them.

use farcast_core::{Span, Time};
use farcast_emu::emulation::{Emulation, Plan};
use farcast_emu::host::{DEVICE, Host, HostPosition};
use farcast_emu::supervise::{
    Exit, Guard, Program, ProgramCommand, ProgramId, Programs, listening, wait_until_listening,
};
use farcast_emu::{Clock, EmuError};

use super::live::Live;
use super::plan::{Command, Job, Wish};
use super::show;
use crate::Failure;

/// Time that programs have to end after they are told to.
const GRACE: Span = Span::from_secs(2);
/// Longest time that the near program waits for the far ones to listen. A far program that never listens costs this
/// much.
const SETTLE: Span = Span::from_secs(10);
/// Interval at which the relay is checked for a failure.
const LOOK: Span = Span::from_secs(1);

/// Returns every place of a plan, the hub first.
pub(crate) fn places(plan: &Plan) -> impl Iterator<Item = HostPosition> + use<> {
    std::iter::once(HostPosition::Hub).chain((0..plan.link.terminals()).map(HostPosition::Terminal))
}

/// State of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Waiting,
    Running(ProgramId),
    Ended(Exit),
}

/// Reason for which everything ends.
enum Over {
    /// All programs that are waited for have ended.
    Done,
    /// A signal or a client asked for the end, or the emulation failed.
    Stopped,
    /// The time limit of the scenario is over.
    Limit,
}

/// Programs of a running emulation.
pub(crate) struct Session<'a> {
    wish: &'a Wish,
    emulation: &'a Emulation,
    programs: Programs,
    live: &'a Live,
    states: Vec<State>,
    clock: Clock,
}

impl<'a> Session<'a> {
    pub(crate) fn new(wish: &'a Wish, emulation: &'a Emulation, programs: Programs, live: &'a Live) -> Self {
        let states = vec![State::Waiting; wish.jobs.len()];
        Self { wish, emulation, programs, live, states, clock: Clock::start() }
    }

    /// Runs the programs to their ends. Returns the exit code.
    pub(crate) fn run(&mut self, guard: &Guard) -> Result<u8, Failure> {
        let over = self.wait(guard)?;
        if let (Over::Limit, Some(limit)) = (&over, self.wish.limit) {
            show::line(&format!("the scenario's time_limit of {limit} is over"));
        }
        if let (Over::Stopped, Some(signal)) = (&over, guard.interrupted()) {
            self.stop_near(signal)?;
        }
        self.programs.stop_all(GRACE)?;
        while let Some(ended) = self.programs.wait(Span::ZERO, &[])? {
            self.note(ended.id, ended.exit);
        }
        Ok(self.code(&over, guard))
    }

    fn wait(&mut self, guard: &Guard) -> Result<Over, Failure> {
        use std::os::fd::AsFd;
        loop {
            if guard.interrupted().is_some() || self.live.is_stopped() {
                return Ok(Over::Stopped);
            }
            let now = self.clock.now();
            if self.wish.limit.is_some_and(|limit| now >= Time::ZERO + limit) {
                return Ok(Over::Limit);
            }
            self.start_due(now, guard)?;
            if self.emulation.has_failed() {
                // The emulation's end reports the failure itself.
                return Ok(Over::Stopped);
            }
            if self.all_done() {
                return Ok(Over::Done);
            }
            let next = self.next_start().min(self.wish.limit.map_or(Time::NEVER, |limit| Time::ZERO + limit));
            let limit = next.since(now).min(LOOK);
            let wakers = [guard.as_fd(), self.live.as_fd()];
            if let Some(ended) = self.programs.wait(limit, &wakers)? {
                self.note(ended.id, ended.exit);
            }
        }
    }

    /// Starts the jobs that are due. The near program waits until the far ones listen.
    fn start_due(&mut self, now: Time, guard: &Guard) -> Result<(), Failure> {
        for number in 0..self.states.len() {
            let job = &self.wish.jobs[number];
            if self.states[number] != State::Waiting || Time::ZERO + job.start > now {
                continue;
            }
            if matches!(job.command, Command::Near(_)) && !self.settle(guard)? {
                return Ok(());
            }
            let host = self.host(job.place);
            let id = self.programs.start(host.namespace(), &self.program(job))?;
            self.states[number] = State::Running(id);
            self.live.tell(number, self.states[number]);
        }
        Ok(())
    }

    /// Waits until the far end listens on as many ports as it has running programs, for [`SETTLE`] at most. Returns
    /// `false` if a signal or a client asked for the end meanwhile.
    fn settle(&mut self, guard: &Guard) -> Result<bool, Failure> {
        let far = self.wish.jobs.iter().filter(|job| job.place == HostPosition::Hub).count();
        let until = self.clock.now() + SETTLE;
        loop {
            if guard.interrupted().is_some() || self.live.is_stopped() {
                return Ok(false);
            }
            let running = self.states.iter().filter(|state| matches!(state, State::Running(_))).count();
            let wanted = far.min(running);
            let hub = self.emulation.hub().namespace();
            if wanted == 0 || listening(hub)? >= wanted || self.clock.now() >= until {
                return Ok(true);
            }
            wait_until_listening(hub, wanted, Span::from_millis(50))?;
            while let Some(ended) = self.programs.wait(Span::ZERO, &[])? {
                self.note(ended.id, ended.exit);
            }
        }
    }

    fn program(&self, job: &Job) -> Program {
        let mut program = match &job.command {
            Command::Line(line) => Program::background(&job.name, ProgramCommand::Shell(line.clone())),
            Command::Near(command) => {
                let (program, arguments) = command.split_first().expect("checked when read");
                let arguments = arguments.iter().map(Into::into).collect();
                Program::foreground(&job.name, ProgramCommand::Direct(program.into(), arguments))
            }
        };
        program.environment = self.environment(job.place);
        program
    }

    fn environment(&self, place: HostPosition) -> Vec<(String, String)> {
        let hub = HostPosition::Hub.address().to_string();
        let all: Vec<String> =
            self.emulation.terminals().iter().map(|host| host.address().to_string()).collect();
        let peer = if place == HostPosition::Hub { all[0].clone() } else { hub.clone() };
        let mut variables = vec![
            ("FARCAST_PEER", peer),
            ("FARCAST_ADDRESS", place.address().to_string()),
            ("FARCAST_HUB", hub),
            ("FARCAST_TERMINALS", all.join(" ")),
            ("FARCAST_DEVICE", DEVICE.to_owned()),
        ];
        if let HostPosition::Terminal(number) = place {
            variables.push(("FARCAST_TERMINAL", number.to_string()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn host(&self, place: HostPosition) -> &'a Host {
        match place {
            HostPosition::Hub => self.emulation.hub(),
            HostPosition::Terminal(number) => &self.emulation.terminals()[number as usize],
        }
    }

    /// Records that a program has ended. Prints a line if a background program failed while others are still waited
    /// for.
    fn note(&mut self, id: ProgramId, exit: Exit) {
        let Some(number) = self.states.iter().position(|state| *state == State::Running(id)) else { return };
        self.states[number] = State::Ended(exit);
        self.live.tell(number, State::Ended(exit));
        let job = &self.wish.jobs[number];
        if job.background && exit != Exit::Code(0) && !self.all_done() {
            show::line(&format!("{} ended with code {}", job.name, exit.code()));
        }
    }

    fn all_done(&self) -> bool {
        let mut jobs = self.wish.jobs.iter().zip(&self.states);
        jobs.all(|(job, state)| job.background || matches!(state, State::Ended(_)))
    }

    fn next_start(&self) -> Time {
        let jobs = self.wish.jobs.iter().zip(&self.states);
        let waiting = jobs.filter(|(_, state)| **state == State::Waiting);
        waiting.map(|(job, _)| Time::ZERO + job.start).min().unwrap_or(Time::NEVER)
    }

    /// Stops the near program, which hears Ctrl-C itself and may end in its own way.
    fn stop_near(&mut self, signal: i32) -> Result<(), EmuError> {
        let near = self.wish.jobs.iter().position(|job| matches!(job.command, Command::Near(_)));
        let Some((number, State::Running(id))) = near.map(|number| (number, self.states[number])) else {
            return Ok(());
        };
        if let Some(exit) = self.programs.stop_interrupted(id, signal, GRACE)? {
            self.states[number] = State::Ended(exit);
        }
        Ok(())
    }

    /// Returns the exit code: that of the near program, or in a scenario that of the first program that failed.
    fn code(&self, over: &Over, guard: &Guard) -> u8 {
        let waited = self.wish.jobs.iter().zip(&self.states).filter(|(job, _)| !job.background);
        let codes = waited.map(|(_, state)| match state {
            State::Ended(exit) => exit.code(),
            State::Waiting | State::Running(_) if guard.interrupted().is_some() => 0,
            State::Waiting | State::Running(_) => 1,
        });
        let code = codes.fold(0, |first, code| if first == 0 { code } else { first });
        match (over, guard.interrupted()) {
            (Over::Stopped, Some(signal)) if code == 0 => 128_u8.saturating_add(signal as u8),
            (Over::Limit, _) if code == 0 => 1,
            _ => code,
        }
    }
}
