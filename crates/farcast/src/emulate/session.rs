//! The programs of an emulation: started in their time, waited for, stopped.

use farcast_core::{Span, Time};
use farcast_emu::emulation::{Emulation, Plan};
use farcast_emu::host::{DEVICE, Host, Place};
use farcast_emu::supervise::{
    Exit, Guard, Program, ProgramId, Programs, Run, listening, wait_until_listening,
};
use farcast_emu::{Clock, EmuError};

use super::live::Live;
use super::plan::{Command, Job, Wish};
use super::show;
use crate::Failure;

/// How long programs may take to end once they are told to.
const GRACE: Span = Span::from_secs(2);
/// How long the near program waits for the far ones to listen, at the most. One that never listens costs this much.
const SETTLE: Span = Span::from_secs(10);
/// How often the relay is looked at.
const LOOK: Span = Span::from_secs(1);

/// Every place of a plan, the hub first.
pub(crate) fn places(plan: &Plan) -> impl Iterator<Item = Place> + use<> {
    std::iter::once(Place::Hub).chain((0..plan.link.terminals()).map(Place::Terminal))
}

/// A job as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Waiting,
    Running(ProgramId),
    Ended(Exit),
}

/// Why everything ends.
enum Over {
    /// All that are waited for have ended.
    Done,
    /// Somebody wants it.
    Stopped,
    /// The scenario's time is over.
    Limit,
}

/// The programs.
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

    /// Runs the programs to their ends; the exit code.
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
                // What it says comes with its end.
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

    /// Starts what is due. The near program waits until the far ones listen.
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

    /// Waits until as many ports are listened on at the far end as there are programs, or those have ended; whether
    /// nobody wants the end meanwhile.
    fn settle(&mut self, guard: &Guard) -> Result<bool, Failure> {
        let far = self.wish.jobs.iter().filter(|job| job.place == Place::Hub).count();
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
            Command::Line(line) => Program::background(&job.name, Run::Shell(line.clone())),
            Command::Near(command) => {
                let (program, arguments) = command.split_first().expect("checked when read");
                let arguments = arguments.iter().map(Into::into).collect();
                Program::foreground(&job.name, Run::Direct(program.into(), arguments))
            }
        };
        program.environment = self.environment(job.place);
        program
    }

    fn environment(&self, place: Place) -> Vec<(String, String)> {
        let hub = Place::Hub.address().to_string();
        let all: Vec<String> =
            self.emulation.terminals().iter().map(|host| host.address().to_string()).collect();
        let peer = if place == Place::Hub { all[0].clone() } else { hub.clone() };
        let mut variables = vec![
            ("FARCAST_PEER", peer),
            ("FARCAST_ADDRESS", place.address().to_string()),
            ("FARCAST_HUB", hub),
            ("FARCAST_TERMINALS", all.join(" ")),
            ("FARCAST_DEVICE", DEVICE.to_owned()),
        ];
        if let Place::Terminal(number) = place {
            variables.push(("FARCAST_TERMINAL", number.to_string()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn host(&self, place: Place) -> &'a Host {
        match place {
            Place::Hub => self.emulation.hub(),
            Place::Terminal(number) => &self.emulation.terminals()[number as usize],
        }
    }

    /// Takes note of an end. That of one that should have gone on is told.
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

    /// The near program hears Ctrl-C itself and may end in its own way.
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

    /// The near program's code; of a scenario, that of the first program that failed.
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
