"""The table `resend`: what sending again costs when receivers have all of it, or most, beside rsync to one receiver."""

import os
import re
import shutil
import time
from pathlib import Path

from report import failures, good_ones, grid, mega, spread
from rig import NETWORK, Rig
from transfers import Failed, middle, same

MANY = 16
RATE = 200e6  # bit/s; to many receivers less, so that none loses
MANY_RATE = 40e6
FILES, FILE = 1000, 20_000
LARGE, QUICK_LARGE = 1_000_000_000, 64_000_000
INSERTED = 1_000_000
LIMIT = 120
PORT = 8730


def table(bench):
    rsync = bool(shutil.which("rsync"))
    print("sending again: octets of IP packets on the sender's interface, both ways, and seconds until the sender ends; "
          "beside\nrsync to one receiver, whose daemon runs there: what it counts as sent and received, octets on the wire, seconds")
    if not rsync:
        print("rsync is not installed (apt-get install rsync): no columns of it here.")
    columns = [("", "<"), ("receivers", ">"), ("size", ">"), ("sent", ">"), ("received", ">"), ("both/size", ">"),
               ("s (min..max)", ">"), ("rsync: counted", ">"), ("on the wire", ">"), ("s (min..max)", ">")]
    large = QUICK_LARGE if bench.args.quick else LARGE
    cases = [
        ("nothing changed", 1, tree, lambda _: None, None),
        (f"one file of {FILES:,} changed", 1, tree, change_one, None),
        (f"{mega(INSERTED)} inserted at the front", 1, lambda path: write(path, large), insert, None),
        (f"one of {MANY} receivers empty", MANY, tree, lambda _: None, 0),
    ]
    lines, notes = [], []
    for name, count, make, change, emptied in cases:
        source = bench.scratch / "again"

        def measure(program, make=make, change=change, emptied=emptied):
            wipe(source)
            make(source)
            return program(bench, rig, source, change, emptied)

        with Rig(bench.scratch, count, offloads=False) as rig:
            rows = [("farcast", None, lambda _: measure(farcast))]
            if rsync:
                rows.append(("rsync", None, lambda _: measure(rsyncing)))
            results = bench.rounds(f"resend, {name}", rows, bench.args.runs)
        size = total(source)
        wipe(source)
        for n in range(count):
            bench.empty(n)
        for program, runs in results.items():
            notes += failures(f"{name}: {program}", runs)
        lines.append(line(name, count, size, results))
    print("\n".join([grid(columns, lines), *notes]) + "\n")


def line(name, count, size, results):
    ours, theirs = (good_ones(results.get(program, [])) for program in ("farcast", "rsync"))
    cells = [name, count, f"{size:,}"]
    if ours:
        sent, back = middle(ours, "sent"), middle(ours, "returned")
        cells += [f"{sent:,.0f}", f"{back:,.0f}", f"{(sent + back) / size:.4f}", spread([one["wall"] for one in ours], 2)]
    else:
        cells += ["-"] * 4
    if theirs:
        cells += [f"{middle(theirs, 'counted'):,.0f}", f"{middle(theirs, 'sent') + middle(theirs, 'returned'):,.0f}",
                  spread([one["wall"] for one in theirs], 2)]
    else:
        cells += ["-"] * 3
    return cells


def farcast(bench, rig, source, change, emptied):
    """Delivers `source`, changes it, and measures its second delivery."""
    count = len(rig.receivers)
    rate = f"{(RATE if count == 1 else MANY_RATE) / 1e6:g} Mbit/s"
    size = total(source)
    bench.farcast(rig, size, rate=rate, source=source)
    change(source)
    size = total(source)
    if emptied is not None:
        bench.empty(emptied)
    result = bench.farcast(rig, size, rate=rate, source=source, keep=True)
    # A file that was not written again keeps its old time, so the end of the sender is measured.
    wall = result["wall"] + result["after"]
    return {"wall": wall, "goodput": size * 8 / wall / 1e6, "sent": result["wire"] * size, "returned": result["back"] * size}


def rsyncing(bench, rig, source, change, emptied):
    """Measures the second delivery by rsync, to the first receiver only."""
    into = bench.empty(0)
    into.mkdir()
    settings = bench.scratch / "rsyncd.conf"
    settings.write_text(f"use chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n[again]\npath = {into}\nread only = no\n")
    daemon = ["rsync", "--daemon", "--no-detach", f"--config={settings}", f"--port={PORT}", f"--address={NETWORK}.2"]
    rig.start(rig.receivers[0], daemon, "rsyncd")
    time.sleep(0.3)
    command = ["rsync", "-a", "--stats", "--no-human-readable", source, f"rsync://{NETWORK}.2:{PORT}/again/"]
    try:
        sent(rig, command)
        change(source)
        if emptied is not None:
            shutil.rmtree(into / source.name)
        before = rig.octets()
        sender = sent(rig, command)
        wire, back = (after - then for after, then in zip(rig.octets(), before))
    finally:
        rig.stop_all()
    if not same(source, into / source.name):
        raise Failed("the receiver has other bytes")
    wall = sender.ended - sender.began
    counted = sum(map(int, re.findall(r"^Total bytes (?:sent|received): (\d+)", sender.text(), re.MULTILINE)))
    return {"wall": wall, "goodput": total(source) * 8 / wall / 1e6, "sent": wire, "returned": back, "counted": counted}


def sent(rig, command):
    sender = rig.start(rig.sender, command, "rsync")
    if sender.finish(LIMIT) != 0:
        raise Failed(f"rsync: {sender.text().strip()[-300:]}")
    return sender


def write(path, size):
    with path.open("wb") as out:
        for at in range(0, size, 1 << 24):
            out.write(os.urandom(min(1 << 24, size - at)))


def tree(path):
    for n in range(FILES):
        part = path / f"{n // 100}" / f"{n}"
        part.parent.mkdir(parents=True, exist_ok=True)
        write(part, FILE)


def change_one(path):
    """Replaces one file by another of the same length and with a time in another second."""
    chosen = path / "5" / "500"
    write(chosen, FILE)
    os.utime(chosen, (time.time() + 5,) * 2)


def insert(path):
    """Inserts new bytes at the beginning of a file."""
    longer = Path(f"{path}.longer")
    write(longer, INSERTED)
    with path.open("rb") as old, longer.open("ab") as new:
        shutil.copyfileobj(old, new, 1 << 24)
    longer.replace(path)


def total(path):
    return sum(part.stat().st_size for part in ([path] if path.is_file() else path.rglob("*")) if part.is_file())


def wipe(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
