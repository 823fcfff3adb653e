//! Processes to which the kernel refuses a system call, as a file system might.

use std::process::Command;

/// System call that can be refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Fsync,
    Flock,
}

impl Call {
    #[cfg(target_arch = "x86_64")]
    const PRCTL: u32 = 157;
    #[cfg(not(target_arch = "x86_64"))]
    const PRCTL: u32 = 167;

    /// Returns the kernel's number of the call. x86-64 has its own numbers, and later architectures share a list.
    fn number(self) -> u32 {
        let (x86_64, other) = match self {
            Self::Fsync => (74, 82),
            Self::Flock => (73, 32),
        };
        if cfg!(target_arch = "x86_64") { x86_64 } else { other }
    }
}

/// Sets a filter of seccomp(2) that loads the number of a call and answers the given one by an error, then runs the rest of
/// the arguments.
const FILTER: &str = r#"
my ($prctl, $call, $errno) = splice @ARGV, 0, 3;
my $filter = pack "SCCL" x 4, 0x20,0,0,0, 0x15,0,1,$call, 0x06,0,0,0x50000|$errno, 0x06,0,0,0x7fff0000;
my $program = pack "S x![P] P", 4, $filter;
syscall($prctl+0, 38, 1, 0, 0, 0) == 0 or die "no new privileges: $!";
syscall($prctl+0, 22, 2, $program) == 0 or die "filter: $!";
exec @ARGV or die "exec: $!";
"#;

/// Returns `command` with each `call` answered by `errno`.
pub(crate) fn refusing(command: &Command, call: Call, errno: rustix::io::Errno) -> Command {
    let mut refused = Command::new("perl");
    refused.args(["-e", FILTER]);
    refused.args([Call::PRCTL, call.number(), errno.raw_os_error().cast_unsigned()].map(|n| n.to_string()));
    refused.arg(command.get_program()).args(command.get_args());
    refused.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for (name, _) in command.get_envs().filter(|(_, value)| value.is_none()) {
        refused.env_remove(name);
    }
    refused
}
