//! Names of processes that stay unique after their end, unlike process ids, which are assigned again.

/// Returns the name of this process: the boot id of the host, the process id, and the start time of the process.
pub fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), began(pid).unwrap_or_default())
}

/// Returns `true` if the process named `named` runs on this host.
pub fn is_running(named: &str) -> bool {
    let mut words = named.split(' ');
    let (then, pid, start) = (words.next(), words.next().and_then(|pid| pid.parse().ok()), words.next());
    let Some(pid) = pid.filter(|_| then == Some(boot().as_str())) else { return false };
    began(pid).is_some_and(|began| Some(began.as_str()) == start)
}

/// Returns the id of the host's boot.
pub(crate) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the start time of the process `pid` in clock ticks since boot; `None` if there is no such process.
fn began(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The 20th field after the name of the program, which may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19).map(str::to_owned)
}
