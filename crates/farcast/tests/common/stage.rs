//! Stage for a stream from one host to others.

use std::path::PathBuf;
use std::process::Command;

use super::{Hosts, Place, Running, wait_until};

/// Hosts of a stream: host 1 sends, the others receive.
pub(crate) struct Stage {
    protocol: &'static str,
    pub(crate) place: Place,
    pub(crate) hosts: Hosts,
    receivers: usize,
    pub(crate) input: PathBuf,
}

impl Stage {
    /// Makes a stage on which `octets` are sent by `protocol` to `receivers` hosts. All hosts, the sender included,
    /// lose `loss` percent of the datagrams that arrive.
    pub(crate) fn new(protocol: &'static str, (receivers, loss): (usize, u32), octets: &[u8]) -> Self {
        let (place, hosts) = (Place::new(), Hosts::new(receivers + 1));
        for n in 1..=receivers + 1 {
            hosts.ip(n, &["route", "add", "224.0.0.0/4", "dev", "eth0"]);
            if loss > 0 {
                hosts.lose(n, loss);
            }
        }
        let input = place.path("input");
        std::fs::write(&input, octets).unwrap();
        Self { protocol, place, hosts, receivers, input }
    }

    pub(crate) fn nodes(&self) -> std::ops::RangeInclusive<usize> {
        2..=self.receivers + 1
    }

    pub(crate) fn names(&self) -> String {
        self.nodes().map(|n| n.to_string()).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn output(&self, n: usize) -> PathBuf {
        self.place.path(&format!("output{n}"))
    }

    /// Starts `command` in a shell with the redirections of `script`, at host `n`.
    pub(crate) fn shell(&self, n: usize, script: &str, command: &Command) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
        let set = command.get_envs().filter_map(|(key, value)| value.map(|value| (key, value)));
        shell.envs(set);
        self.place.start(&format!("host{n}"), self.hosts.at(n, &shell))
    }

    /// Starts a sender, whose input comes from `script`, where it is `"$@"`.
    pub(crate) fn sends(&self, script: &str, args: &[&str]) -> Running {
        let mut command = self.place.farcast(["send", "--stream", "--protocol", self.protocol]);
        command.args(["--to", &self.place.group, "--interface", "eth0"]).args(args);
        if self.protocol == "norm" {
            command.args(["--node", "1"]);
        }
        self.shell(1, script, &command)
    }

    pub(crate) fn sends_input(&self, args: &[&str]) -> Running {
        let script = format!("exec \"$@\" < '{}'", self.input.display());
        self.sends(&script, &[&["--rate", "40 Mbit/s", "--rtt", "20 ms"], args].concat())
    }

    pub(crate) fn receives(&self, n: usize, args: &[&str]) -> Running {
        let mut command = self.place.farcast(["receive", "--stream", "--protocol", self.protocol]);
        command
            .args(["--from", &self.place.group, "--interface", "eth0", "--name", &n.to_string()])
            .args(args);
        let running = self.shell(n, &format!("exec \"$@\" > '{}'", self.output(n).display()), &command);
        wait_until("a receiver", || running.stderr().contains("listening"));
        running
    }

    pub(crate) fn receive_all(&self) -> Vec<Running> {
        self.nodes().map(|n| self.receives(n, &[])).collect()
    }

    pub(crate) fn assert_same(&self) {
        self.nodes().for_each(|n| self.assert_has(n));
    }

    pub(crate) fn assert_has(&self, n: usize) {
        let (sent, got) = (std::fs::read(&self.input).unwrap(), std::fs::read(self.output(n)).unwrap());
        assert!(sent == got, "host {n}: {} octets of {}, or others", got.len(), sent.len());
    }
}
