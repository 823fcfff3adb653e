"""One transfer by one of the programs in a rig: farcast, UFTP, and NORM by libnorm. Each gives a dictionary."""

import filecmp
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from report import brief

# A port of our own: farcast lets one sender of a host have a group, whatever its namespace.
GROUP = f"239.255.1.1:{10_000 + os.getpid() % 20_000}"
LIMIT = 120  # seconds for one transfer
STAY = 10  # seconds that receivers get to end after their sender
LINK_RATE = 20e6
LINK_DELAY = 0.25
# Of a link's rate, which is of IP packets as farcast's is: half a percent stays free.
PART_OF_LINK = 0.995
LATE = 5.0  # ms of lateness at the 99th percentile that a measurement over the link bears
NORM_HEADER = Path("/usr/include/normApi.h")


# Additional results of a sender by MFTP: key in a result, and key in the sender's summary.
OF_MFTP = {"passes": "passes", "dtus_per_pass": "dtus_per_pass", "naks": "naks", "round_trip": "round_trip_s"}


class Failed(Exception):
    """Failure of a measurement, with its reason."""


def satellite(rate=LINK_RATE):
    """Returns the arguments of geo_link.py for the satellite link, with a queue of one round trip."""
    return ["--rate", str(rate), "--delay", str(LINK_DELAY * 1000), "--queue", str(LINK_DELAY * 2000)]


class Transfers:
    """Files, transfers and rounds of measurements, for all tables."""

    def __init__(self, args, binary, scratch):
        self.args, self.binary, self.scratch = args, binary, scratch
        self.json = args.json.open("a") if args.json else None
        self.uftp = bool(shutil.which("uftp") and shutil.which("uftpd"))
        self.norm_peer = None

    def emit(self, **fields):
        if self.json:
            print(json.dumps(fields), file=self.json, flush=True)

    def file(self, size):
        """Returns a file of `size` octets that neither compression nor zero detection makes smaller."""
        path = self.scratch / f"file{size}"
        if not path.exists():
            with path.open("wb") as out:
                for at in range(0, size, 1 << 24):
                    out.write(os.urandom(min(1 << 24, size - at)))
        return path

    def into(self, n):
        """Returns the receiving directory of receiver n."""
        return self.scratch / f"into{n}"

    def empty(self, n):
        shutil.rmtree(self.into(n), ignore_errors=True)
        return self.into(n)

    # One measurement each: a dictionary with at least "goodput", Mbit/s to each receiver. The wall's time goes from the
    # start of the sender's process until the last receiver's file has its name.

    def farcast(self, rig, size, *, rate="max", send=(), receive=(), discard=False, seed=None, source=None, keep=False,
                keys=None):
        """Sends `source`, or a random file, of `size` octets. With `keep`, receivers keep the files that they have. `keys` is
        the directory with everybody's configuration for a sealed transfer; None sends in the open."""
        source = source or self.file(size)
        names, receivers = [], []
        for n, space in enumerate(rig.receivers):
            target = self.into(n) if keep else self.empty(n)
            names.append(f"r{n}")
            command = [*at(keys, f"r{n}"), self.binary, "receive", "--from", GROUP, "--into", target, "--name", f"r{n}", "--once", "--json"]
            command += ["--seed", seed * 1000 + n] if seed is not None else []
            command += [*receive, *(["--discard"] if discard else [])]
            receivers.append(rig.start(space, command, f"receive{n}"))
        for process in receivers:
            process.wait_for('"listening"')
        command = [*at(keys, "sender"), self.binary, "send", source, "--to", GROUP, "--rate", rate, "--json"]
        before = rig.octets()
        sender = rig.start(rig.sender, [*command, "--receivers", ",".join(names), *send], "send")
        try:
            # Receivers that discard leave in the end, and the sender says so with exit code 3.
            if sender.finish(LIMIT) not in ((3,) if discard else (0,)):
                raise Failed(f"sender: {sender.text().strip()[-300:]}")
            # One that did not hear the sender's last word stays; its file is compared like the others'.
            codes = [process.finish(STAY) for process in receivers]
            for process, code in zip(receivers, codes):
                if code not in ((1,) if discard else (0, None)):
                    raise Failed(f"receiver: {process.text().strip()[-300:]}")
        finally:
            rig.stop_all()
        summary = sender.lines()[-1]
        result = {
            "goodput": size * 8 / summary["time_s"] / 1e6,
            "time": summary["time_s"],
            "data_time": summary["data_time_s"],
            "overhead": summary["wire_bytes_over_size"],
            # MFTP's alone.
            **{name: summary[key] for name, key in OF_MFTP.items() if key in summary},
            "stayed": codes.count(None),
            "sender_events": sender.lines(),
            "receiver_events": [process.lines() for process in receivers],
        }
        if discard:
            return result | self.cpu(sender, receivers)
        return result | self.delivered(rig, source, size, sender, receivers, before)

    def uftp_transfer(self, rig, size, rate, tuned=True):
        """Sends a file by UFTP 4 at `rate` kbit/s, with the settings found best for it or, not `tuned`, its defaults."""
        source = self.file(size)
        tuning = (["-B", 4_194_304], ["-b", 1400], ["-t", "-c", 1_048_576]) if tuned else ([], [], [])
        buffer, block, cache = tuning
        receivers = []
        for n, space in enumerate(rig.receivers):
            target = self.empty(n)
            target.mkdir()
            command = ["uftpd", "-d", *buffer, *cache, "-I", "eth0", "-D", target]
            receivers.append(rig.start(space, [*command, "-U", f"0x0A4D00{n + 2:02X}"], f"uftpd{n}"))
        time.sleep(0.3)
        clients = ",".join(f"0x0A4D00{n + 2:02X}" for n in range(len(receivers)))
        command = ["uftp", *buffer, *block, "-R", rate, "-I", "eth0", "-H", clients, source]
        return self.until_stopped(rig, source, size, receivers, command, "uftp")

    def norm(self, rig, size, rate):
        """Sends a file by NORM at `rate` bit/s of its messages, without IP and UDP headers."""
        source, (group, port) = self.file(size), GROUP.split(":")
        receivers = []
        for n, space in enumerate(rig.receivers):
            target = self.empty(n)
            target.mkdir()
            command = [self.norm_peer, "receive", group, port, "eth0", n + 2, target, source.name]
            receivers.append(rig.start(space, command, f"norm{n}"))
        for process in receivers:
            process.wait_for("listening")
        command = [self.norm_peer, "send", group, port, "eth0", rate, source, len(receivers)]
        return self.until_stopped(rig, source, size, receivers, command, "norm")

    def until_stopped(self, rig, source, size, receivers, command, name):
        """Runs a sender beside receivers that stay until they are stopped."""
        before = rig.octets()
        sender = rig.start(rig.sender, command, name)
        try:
            code = sender.finish(LIMIT)
        finally:
            rig.stop_all()
        if code != 0:
            why = f"not done after {LIMIT} s" if code is None else sender.text().strip()[-300:]
            raise Failed(f"{name}: {why}")
        result = self.delivered(rig, source, size, sender, receivers, before)
        return result | {"goodput": size * 8 / result["wall"] / 1e6}

    def delivered(self, rig, source, size, sender, receivers, before):
        """Checks the received files. Returns the time, octets and CPU that the transfer took."""
        self.check(source, len(receivers))
        last = self.last_name(source.name, len(receivers))
        wire, back = (after - then for after, then in zip(rig.octets(), before))
        result = {"wall": last - sender.began, "wire": wire / size, "back": back / size, "after": sender.ended - last}
        return result | self.cpu(sender, receivers)

    def cpu(self, sender, receivers):
        return {"sender_cpu": sender.cpu, "receiver_cpu": statistics.mean(process.cpu for process in receivers)}

    def check(self, source, count):
        for n in range(count):
            if not same(source, self.into(n) / source.name):
                raise Failed(f"receiver {n} has other bytes")

    def last_name(self, name, count):
        """Returns the time at which the last receiver's file got its name, or was last changed: both set the change time."""
        return max((self.into(n) / name).stat().st_ctime for n in range(count))

    def build_norm(self):
        """Compiles NORM's sender and receiver. Prints a note if libnorm is not installed."""
        if not NORM_HEADER.exists():
            print("libnorm is not installed (apt-get install libnorm-dev): no row of it here.\n")
            return
        self.norm_peer = self.scratch / "norm_peer"
        source = Path(__file__).resolve().parent / "norm_peer.c"
        # Its header is C++ here and there.
        command = ["cc", "-O2", "-Wall", "-x", "c++", source, "-lnorm", "-o", self.norm_peer]
        subprocess.run(command, check=True)

    def end_link(self, rig, name, notes):
        """Ends the satellite link, if there is one. Appends a note if it ran too late for its times to be trusted."""
        if not rig.link:
            return
        counts = rig.end_link()
        self.emit(table=name, link=counts)
        if counts["late_p99_ms"] > LATE:
            notes.append(f"{name}: the link ran late ({counts['late_p99_ms']:.1f} ms at the 99th percentile), so these times "
                         "are not to be trusted; is the machine busy?")

    def rounds(self, table, rows, runs):
        """Measures every row in every round; rows are (name, reference's name or None, function)."""
        results = {name: [] for name, _, _ in rows}
        for number in range(runs):
            for name, _, measure in rows:
                try:
                    result = measure(number)
                except Failed as failure:
                    result = {"failed": str(failure)}
                results[name].append(result)
                print(f"  {table}, round {number + 1}: {name}: {brief(result)}", file=sys.stderr)
                events = ("sender_events", "receiver_events")
                fields = {key: value for key, value in result.items() if key not in events}
                self.emit(table=table, row=name, round=number + 1, **fields)
        return results


def at(keys, name):
    """Returns the start of a command line that gives `name` its configuration below `keys`; without keys, an empty one."""
    return ["env", f"XDG_CONFIG_HOME={keys}/{name}" if keys else "XDG_CONFIG_HOME=/nonexistent"]


def same(source, target):
    """Returns True if two files, or two directories with everything in them, have the same content."""
    if not source.is_dir():
        return target.is_file() and filecmp.cmp(source, target, shallow=False)
    names = sorted(path.relative_to(source) for path in source.rglob("*"))
    if names != sorted(path.relative_to(target) for path in target.rglob("*")):
        return False
    return all(same(source / name, target / name) for name in names if (source / name).is_file())


def middle(results, key):
    """Returns the median of the rounds that have a value for `key`, or None."""
    good = [result[key] for result in results if key in result]
    return statistics.median(good) if good else None
