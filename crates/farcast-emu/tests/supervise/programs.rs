//! Programs: their ends, their output and environment, and the stopping of one of them.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use farcast_core::Span;
use farcast_emu::EmuError;
use farcast_emu::namespace::Namespace;
use farcast_emu::supervise::{Exit, ProgramCommand as Runs, ProgramEnd, listening, wait_until_listening};

use crate::Case;
use crate::inner::{LONG, World};
use crate::run::{ProgramCommand, outer};

pub(crate) const CASES: &[Case] = &[
    ("exit_codes_come_through", exit_codes_come_through),
    ("input_and_output_are_the_near_programs", input_and_output_are_the_near_programs),
    ("lines_of_far_programs_have_their_name", lines_of_far_programs_have_their_name),
    ("output_without_end", output_without_end),
    ("output_that_nobody_reads", output_that_nobody_reads),
    ("orphans_are_reaped", orphans_are_reaped),
    ("proc_shows_what_is_inside", proc_shows_what_is_inside),
    ("programs_inherit_no_descriptor", programs_inherit_no_descriptor),
    ("one_program_is_stopped_with_its_group", one_program_is_stopped_with_its_group),
    ("waiting_ends_with_the_limit_and_a_waker", waiting_ends_with_the_limit_and_a_waker),
    ("a_program_that_is_not_there", a_program_that_is_not_there),
    ("a_lifeline_is_not_for_users", a_lifeline_is_not_for_users),
    ("servers_are_waited_for", servers_are_waited_for),
];

fn exit_codes_come_through() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255)] {
        ProgramCommand::start("1000", &[script]).over().assert_code(code);
    }
    // As a shell tells it: 128 and the number that kill(1) shows.
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        ProgramCommand::start("1000", &[&format!("kill -{signal} $$")]).over().assert_code(code);
    }
}

fn input_and_output_are_the_near_programs() {
    let mut run =
        ProgramCommand::start("1000", &["cat; echo $FARCAST_PEER; echo error >&2", "cat; echo over"]);
    run.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let over = run.over();
    over.assert_code(0);
    assert_eq!(over.stdout, ["one", "two", "10.0.0.1"]);
    let errors: Vec<_> = over.stderr.lines().collect();
    // The far program has nothing to read, and no part in our standard output.
    assert!(errors.contains(&"error"), "{errors:?}");
    assert!(errors.iter().all(|line| ["error", "far0: over"].contains(line)), "{errors:?}");
}

fn lines_of_far_programs_have_their_name() {
    // Both outputs in their order, and a last line that has no end.
    let far = "echo out; printf 'the last' >&2; exec sleep 1000";
    let mut run = ProgramCommand::start("10000", &["read line", far, "echo error >&2; echo out"]);
    run.until_error("far0: out");
    run.until_error("far1: out");
    drop(run.stdin.take());
    let over = run.over();
    let of = |name| over.stderr.lines().filter(move |line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(of("far0"), ["far0: out", "far0: the last"]);
    assert_eq!(of("far1"), ["far1: error", "far1: out"]);
}

fn output_without_end() {
    let near = "echo ready; read line; exit 4";
    let mut run = ProgramCommand::start("100", &[near, "yes", "cat /dev/zero"]);
    run.until("ready");
    let traces = run.traces();
    thread::sleep(Duration::from_millis(200));
    drop(run.stdin.take());
    let over = run.over();
    over.assert_code(4);
    let bodies: Vec<_> = over.stderr.lines().map(|line| line.split_once(": ").unwrap()).collect();
    assert!(bodies.contains(&("far0", "y")));
    assert!(bodies.iter().any(|(name, body)| *name == "far1" && body.len() == 8192));
    // Every octet is one of theirs.
    let theirs = |(name, body): &(&str, &str)| match *name {
        "far0" => *body == "y" || body.is_empty(),
        "far1" => body.bytes().all(|octet| octet == 0),
        _ => false,
    };
    assert!(bodies.iter().all(theirs));
    traces.assert_gone();
}

fn output_that_nobody_reads() {
    // Its standard error is a pipe that is full for good.
    let (read, write) = std::io::pipe().unwrap();
    let mut command = Command::new("sh");
    let exe = std::fs::read_link("/proc/self/exe").unwrap();
    let line = format!("exec 2>&3; exec {} outer 100 'sleep 0.2; exit 6' yes", exe.display());
    command.args(["-c", &format!("exec 3>&1 1>&2; {line}")]).stdout(write);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut status = None;
    crate::run::within("it waits for its output", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(6));
    drop(read);
}

fn orphans_are_reaped() {
    // A process whose parent has ended is init's child, and a zombie until init has waited for it.
    let orphans = "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.05 &); done; sleep 0.1";
    let counts =
        "until [ $(cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z') = 0 ]; do sleep 0.02; done";
    ProgramCommand::start("100", &[&format!("{orphans}; {counts}; exit 8")]).over().assert_code(8);
}

fn proc_shows_what_is_inside() {
    let run = ProgramCommand::start("100", &["cat /proc/1/comm; ps -e -o comm="]);
    let over = run.over();
    over.assert_code(0);
    assert_eq!(over.stdout, ["farcast", "farcast", "sh", "ps"]);
}

fn programs_inherit_no_descriptor() {
    let list = "ls /proc/self/fd";
    let plain = Command::new("sh").args(["-c", list]).stdin(std::process::Stdio::null()).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    let over = ProgramCommand::start("100", &[list]).over();
    assert_eq!(over.stdout, plain.lines().collect::<Vec<_>>());
}

fn one_program_is_stopped_with_its_group() {
    ProgramCommand::of(&mut outer("stop")).over().assert_code(0);
}

/// Inside: programs that end by SIGTERM, by SIGKILL, and before they are stopped.
pub(crate) fn stops(world: &mut World) -> Result<u8, EmuError> {
    let gentle = world.far("gentle", "sleep 1000 & sleep 1000 & wait");
    let deaf = world.far("deaf", "trap '' TERM; sleep 1000 & while :; do sleep 0.1; done");
    let early = world.far("early", "exit 3");
    let other = world.far("other", "exec sleep 1000");
    assert_eq!(world.programs.wait(LONG, &[])?, Some(ProgramEnd { id: early, exit: Exit::Code(3) }));
    assert_eq!(world.programs.stop(early, LONG)?, None, "its end has been told");
    // The shell waits for two sleepers of its group, who get the signal too. It must have come so far.
    assert_eq!(world.programs.wait(Span::from_millis(300), &[])?, None);
    assert_eq!(world.programs.stop(gentle, LONG)?, Some(Exit::Signal(15)));
    assert_eq!(world.programs.stop(deaf, Span::from_millis(100))?, Some(Exit::Signal(9)));
    assert_eq!(world.programs.stop(deaf, LONG)?, None);
    assert!(world.programs.is_running(other));
    assert_eq!(sleepers(), 1, "those of the groups that were stopped are gone");
    let near = world.near("near", Runs::Direct("sleep".into(), vec!["1000".into()]))?;
    assert_eq!(world.programs.stop(near, LONG)?, Some(Exit::Signal(15)));
    world.programs.stop_all(LONG)?;
    assert_eq!(world.programs.wait(LONG, &[])?, Some(ProgramEnd { id: other, exit: Exit::Signal(15) }));
    assert_eq!(sleepers(), 0);
    Ok(0)
}

/// Returns the number of `sleep 1000` processes, as in `ps`.
fn sleepers() -> usize {
    // Only `Programs` may wait for a child here: another wait takes the status away.
    let entries = std::fs::read_dir("/proc").unwrap();
    let commands = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    commands.filter(|command| command.starts_with(b"sleep\x001000\0")).count()
}

fn waiting_ends_with_the_limit_and_a_waker() {
    ProgramCommand::of(&mut outer("wait")).over().assert_code(0);
}

pub(crate) fn waits(world: &mut World) -> Result<u8, EmuError> {
    use std::os::fd::AsFd;

    assert_eq!(world.programs.wait(Span::ZERO, &[])?, None);
    let (read, write) = std::io::pipe().unwrap();
    assert_eq!(world.programs.wait(Span::from_millis(1), &[read.as_fd()])?, None);
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        drop(write);
    });
    assert_eq!(world.programs.wait(LONG, &[read.as_fd()])?, None);
    waker.join().unwrap();
    // An end that is there comes before a waker that is ready.
    let id = world.far("brief", "exit 2");
    let mut ended = None;
    crate::run::within("it does not end", || {
        ended = world.programs.wait(Span::ZERO, &[read.as_fd()]).unwrap();
        ended.is_some()
    });
    assert_eq!(ended, Some(ProgramEnd { id, exit: Exit::Code(2) }));
    assert_eq!(world.guard.interrupted(), None);
    Ok(0)
}

fn a_program_that_is_not_there() {
    let over = ProgramCommand::of(&mut outer("missing")).over();
    over.assert_code(125);
    assert_eq!(
        over.stderr.trim_end(),
        "cannot start /no/such/program: No such file or directory (os error 2)"
    );
}

fn a_lifeline_is_not_for_users() {
    // Who is not init of a namespace, and who is but has something else there.
    let direct =
        ProgramCommand::of(Command::new("/proc/self/exe").args(["inner", "0", "1000", "true"])).over();
    let exe = std::fs::read_link("/proc/self/exe").unwrap();
    let unshared = |lifeline| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork"]).arg(&exe).args(["inner", lifeline, "1000", "true"]);
        ProgramCommand::of(&mut command).over()
    };
    for over in [direct, unshared("99"), unshared("-1"), unshared("x"), unshared("/../../../dev/null")] {
        over.assert_code(125);
        let said = "only farcast starts itself with a lifeline: leave that option out";
        assert_eq!(over.stderr.trim_end(), said);
    }
}

fn servers_are_waited_for() {
    let namespace = Namespace::create().unwrap();
    assert_eq!(wait_until_listening(&namespace, 1, Span::from_millis(10)).unwrap(), 0);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_until_listening(&namespace, 3, LONG).unwrap());
        let open = || {
            let tcp = TcpListener::bind("0.0.0.0:21").unwrap();
            let udp = [1044, 1045].map(|port| UdpSocket::bind(("0.0.0.0", port)).unwrap());
            (tcp, udp)
        };
        let sockets = namespace.run(open).unwrap();
        assert_eq!(waiting.join().unwrap(), 3);
        drop(sockets);
    });
    assert_eq!(listening(&namespace).unwrap(), 0);
}
