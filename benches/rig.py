"""Network namespaces on a bridge, processes in them, and their removal whatever happens."""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

OFFLOADS = ["tso", "gso", "gro", "tx", "rx"]
NETWORK = "10.77.0"
ETHERNET_HEADER = 14


def run(*command, check=True):
    """Runs a command to its end and returns what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Process:
    """Child process whose output goes to a file."""

    def __init__(self, command, output):
        self.output = Path(output)
        self.began = time.time()
        with self.output.open("wb") as out:
            self.popen = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.cpu = self.ended = None

    def finish(self, timeout):
        """Waits for its end. Returns its exit code, or None if it did not end in time."""
        until = time.monotonic() + timeout
        while self.popen.returncode is None:
            pid, status, usage = os.wait4(self.popen.pid, os.WNOHANG)
            if pid:
                self.popen.returncode = os.waitstatus_to_exitcode(status)
                self.cpu = usage.ru_utime + usage.ru_stime
                self.ended = time.time()
            elif time.monotonic() > until:
                return None
            else:
                time.sleep(0.005)
        return self.popen.returncode

    def stop(self):
        if self.popen.returncode is None:
            self.popen.terminate()
            if self.finish(5) is None:
                self.popen.kill()
                self.finish(5)

    def text(self):
        return self.output.read_text(errors="replace")

    def lines(self):
        """Returns the JSON objects that it has printed, one a line."""
        found = []
        for line in self.text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if isinstance(line, dict)]

    def wait_for(self, text, timeout=10):
        until = time.monotonic() + timeout
        while text not in self.text():
            if self.popen.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"no {text!r} from {' '.join(self.popen.args)}: {self.text()[-500:]}")
            time.sleep(0.01)


class Rig:
    """A sender and some receivers, each in a network namespace, on one bridge.

    With `link` (arguments for geo_link.py) a satellite link lies between the sender and the bridge. `loss` is the part
    of the datagrams that each receiver loses, each independently.
    """

    def __init__(self, scratch, receivers, offloads=True, link=None, loss=0.0):
        self.scratch = Path(scratch)
        self.tag = f"fcb{os.getpid()}"
        self.spaces = []
        self.processes = []
        self.link = None
        atexit.register(self.close)
        self.sender = self.space("s")
        self.switch = self.space("w")
        self.receivers = [self.space(f"r{n}") for n in range(receivers)]
        self.inside(self.switch, "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        self.inside(self.switch, "ip", "link", "set", "br0", "up")
        ends = [(self.switch, "uplink")]
        self.connect(self.sender, "eth0", self.switch, "uplink")
        if link is None:
            self.inside(self.switch, "ip", "link", "set", "uplink", "master", "br0")
        else:
            self.connect(self.switch, "near", self.switch, "far")
            self.inside(self.switch, "ip", "link", "set", "far", "master", "br0")
            ends += [(self.switch, "near"), (self.switch, "far")]
        for n, space in enumerate(self.receivers):
            self.connect(space, "eth0", self.switch, f"p{n}")
            self.inside(self.switch, "ip", "link", "set", f"p{n}", "master", "br0")
            ends.append((self.switch, f"p{n}"))
        for n, space in enumerate([self.sender, *self.receivers], 1):
            self.inside(space, "ip", "address", "add", f"{NETWORK}.{n}/24", "dev", "eth0")
            self.inside(space, "ip", "route", "add", "224.0.0.0/4", "dev", "eth0")
            ends.append((space, "eth0"))
        if link is not None or not offloads:
            switches = [word for offload in OFFLOADS for word in (offload, "off")]
            for space, end in ends:
                self.inside(space, "ethtool", "-K", end, *switches)
        self.resolve()
        if loss:
            for space in self.receivers:
                self.impair(space, drop(loss))
        if link is not None:
            here = Path(__file__).resolve().parent
            command = [sys.executable, str(here / "geo_link.py"), "uplink", "near", *link]
            self.link = self.start(self.switch, command, "link")
            self.link.wait_for("ready")

    def space(self, name):
        full = f"{self.tag}{name}"
        run("ip", "netns", "add", full)
        self.spaces.append(full)
        self.inside(full, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        self.inside(full, "ip", "link", "set", "lo", "up")
        return full

    def inside(self, space, *command):
        return run("ip", "netns", "exec", space, *command)

    def connect(self, a, end_a, b, end_b):
        run("ip", "link", "add", end_a, "netns", a, "type", "veth", "peer", "name", end_b, "netns", b)
        for space, end in ((a, end_a), (b, end_b)):
            self.inside(space, "ip", "link", "set", end, "up")

    def resolve(self):
        """Makes everybody's Ethernet address known in advance. A routed satellite link carries no address resolution, and
        without a link the first program of a table should start like the others."""
        spaces = [self.sender, *self.receivers]
        shown = [self.inside(space, "cat", "/sys/class/net/eth0/address").strip() for space in spaces]
        for space in spaces:
            for n, address in enumerate(shown, 1):
                if spaces[n - 1] != space:
                    neighbour = ["replace", f"{NETWORK}.{n}", "lladdr", address, "dev", "eth0"]
                    self.inside(space, "ip", "neighbour", *neighbour)

    def impair(self, space, rules, more=""):
        """Sets the rules of nftables for arriving UDP datagrams; `more` holds sets and chains that they use. Earlier rules
        are replaced."""
        hook = 'type filter hook ingress device "eth0" priority 0; ip protocol != udp accept;'
        table = "table netdev bench"
        self.inside(space, "nft", f"add {table}; delete {table}; {table} {{ {more} chain loss {{ {hook} {rules}; }}; }}")

    def octets(self):
        """Returns the octets of IP packets that the sender's interface has sent and received. With offloads they are too
        few: of joined datagrams one header counts."""
        shown = json.loads(self.inside(self.sender, "ip", "-s", "-j", "link", "show", "dev", "eth0"))[0]["stats64"]
        return [shown[way]["bytes"] - ETHERNET_HEADER * shown[way]["packets"] for way in ("tx", "rx")]

    def end_link(self):
        """Ends the satellite link and returns its counts."""
        self.link.stop()
        return self.link.lines()[-1]

    def start(self, space, command, name):
        output = self.scratch / f"{name}.out"
        process = Process(["ip", "netns", "exec", space, *map(str, command)], output)
        self.processes.append(process)
        return process

    def stop_all(self):
        """Stops everything but the link."""
        for process in [p for p in self.processes if p is not self.link]:
            process.stop()
            self.processes.remove(process)

    def close(self):
        atexit.unregister(self.close)
        # A second signal must not stop the removal half-way.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for process in self.processes:
            process.stop()
        for space in self.spaces:
            run("ip", "netns", "del", space, check=False)
        self.spaces.clear()
        trap()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def drop(part):
    """Returns a rule that drops this part of the datagrams, each independently."""
    return f"numgen random mod 100000 < {round(part * 100_000)} drop"


def trap():
    """Makes signals end the program in order, so that namespaces are removed."""

    def leave(number, _):
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
