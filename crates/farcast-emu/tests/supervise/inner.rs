//! A stand-in for farcast: a far end and a near end, each in a namespace, and programs there.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use farcast_core::Span;
use farcast_emu::EmuError;
use farcast_emu::namespace::Namespace;
use farcast_emu::network::Network;
use farcast_emu::supervise::{Exit, Guard, Program, ProgramCommand, ProgramId, Programs, contain};
use farcast_emu::tun::{Tun, TunConfig};

/// farcast's own failure.
const FAILED: u8 = 125;

/// Longer than anything here waits.
pub(crate) const LONG: Span = Span::from_secs(1000);

pub(crate) fn outer(arguments: &[&str]) -> ExitCode {
    let exit = contain(|lifeline| {
        let lifeline = lifeline.to_string();
        ["inner", &lifeline].iter().chain(arguments).map(OsString::from).collect()
    });
    finish(exit.map(Exit::code))
}

/// Runs the near program (the first) and the far ones, as `mode` says.
pub(crate) fn inner(lifeline: &str, mode: &str, programs: &[&str]) -> ExitCode {
    let guard = lifeline.parse().map_err(|_| EmuError::NotContained).and_then(Guard::adopt);
    finish(guard.and_then(|guard| {
        let mut world = World::new(guard)?;
        match mode {
            "panic" => world.panic(programs),
            "stop" => crate::programs::stops(&mut world),
            "wait" => crate::programs::waits(&mut world),
            "missing" => world.near("", ProgramCommand::Direct("/no/such/program".into(), vec![])).map(|_| 0),
            grace => {
                let grace = grace.parse().expect("a mode, or a grace in milliseconds");
                world.emulate(programs, Span::from_millis(grace))
            }
        }
    }))
}

fn finish<E: Display>(result: Result<u8, E>) -> ExitCode {
    result.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::from(FAILED)
        },
        ExitCode::from,
    )
}

/// Two namespaces, and the programs.
pub(crate) struct World {
    pub(crate) guard: Guard,
    pub(crate) programs: Programs,
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
    /// A device, where the system allows one, for as long as this is there.
    #[expect(dead_code, reason = "it is there to be left behind")]
    tun: Option<Tun>,
}

impl World {
    fn new(guard: Guard) -> Result<Self, EmuError> {
        if let Some(error) = guard.refused_proc() {
            eprintln!("no /proc: {error}");
        }
        let (near, far) = (Namespace::create()?, Namespace::create()?);
        let tun = far.run(|| Tun::open(&TunConfig::new("farcast0")).ok())?;
        far.run(|| Network::open()?.set_up("lo"))??;
        Ok(Self { programs: Programs::new(&guard)?, guard, near, far, tun })
    }

    pub(crate) fn near(&mut self, name: &str, run: ProgramCommand) -> Result<ProgramId, EmuError> {
        let mut program = Program::foreground(name, run);
        program.environment = vec![("FARCAST_PEER".into(), "10.0.0.1".into())];
        self.programs.start(&self.near, &program)
    }

    pub(crate) fn far(&mut self, name: &str, script: &str) -> ProgramId {
        let program = Program::background(name, ProgramCommand::Shell(script.into()));
        self.programs.start(&self.far, &program).unwrap()
    }

    fn start(&mut self, programs: &[&str]) -> Result<ProgramId, EmuError> {
        let (near, far) = programs.split_first().expect("a program for the near end");
        for (number, script) in far.iter().enumerate() {
            self.far(&format!("far{number}"), script);
        }
        self.near("near", ProgramCommand::Shell((*near).into()))
    }

    /// Emulates like `farcast emulate`. Returns the near program's exit code.
    fn emulate(&mut self, programs: &[&str], grace: Span) -> Result<u8, EmuError> {
        use std::os::fd::AsFd;

        let near = self.start(programs)?;
        let exit = loop {
            if let Some(signal) = self.guard.interrupted() {
                break self.programs.stop_interrupted(near, signal, grace)?;
            }
            match self.programs.wait(LONG, &[self.guard.as_fd()])? {
                Some(ended) if ended.id == near => break Some(ended.exit),
                _ => {}
            }
        };
        self.programs.stop_all(grace)?;
        Ok(exit.map_or(FAILED, Exit::code))
    }

    fn panic(&mut self, programs: &[&str]) -> Result<u8, EmuError> {
        self.start(programs)?;
        self.programs.wait(LONG, &[])?;
        panic!("the near program has ended, and so does this");
    }
}
