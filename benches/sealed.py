"""The table `sealed`: one file in the open and sealed, with offloads and without, beside UFTP 5 where its programs are."""

import os
import shutil
import statistics
import subprocess

from report import failures, good_ones, grid
from rig import Rig
from transfers import LINK_DELAY, LINK_RATE, PART_OF_LINK, middle, satellite

SIZE = 500_000_000
QUICK = 100_000_000
AIM = 0.85  # of the open, and
OF_UFTP = 2.0  # times UFTP 5 with AES-256-GCM
UFTP_RATE = 10_000_000  # kbit/s: as fast as it can


def table(bench):
    size = QUICK if bench.args.quick else SIZE
    print(f"{size // 1_000_000} MB at --rate max in the open and sealed (AES-256-GCM): Mbit/s to each receiver, in turn")
    keys = make_keys(bench)
    uftp = uftp5()
    if not uftp:
        print("UFTP 5 is not here (name the directory of its programs in UFTP5): no row of it.")
    lines, notes = [], []
    for offloads in (True, False):
        for receivers in (1, 4):
            flags = [] if offloads else ["--no-offload"]
            with Rig(bench.scratch, receivers, offloads=offloads) as rig:
                case = f"{receivers}, offloads {'on' if offloads else 'off'}"
                rows = [
                    ("open", None, lambda _: bench.farcast(rig, size, send=flags, receive=flags)),
                    ("sealed", "open", lambda _: bench.farcast(rig, size, send=flags, receive=flags, keys=keys)),
                ]
                if uftp:
                    rows.append(("UFTP 5, AES-256-GCM", None, lambda _: uftp(bench, rig, size)))
                results = bench.rounds(f"sealed, {case}", rows, bench.args.runs)
            for name, _, _ in rows:
                lines.append(line(case, name, results))
                notes += failures(f"{case}: {name}", results[name])
    columns = [("receivers", "<"), ("", "<"), ("Mbit/s", ">"), ("of open", ">"), ("aim", ">"), ("of UFTP 5", ">"), ("aim", ">"),
               ("sender's CPU s", ">"), ("receiver's", ">"), ("octets/size", ">")]
    print("\n".join([grid(columns, lines), *notes]) + "\n")
    over_satellite(bench, keys)


def over_satellite(bench, keys):
    """Measures open and sealed transfers over the satellite link, in one-way trips."""
    rate = f"{LINK_RATE * PART_OF_LINK / 1e6:g} Mbit/s"
    print(f"To 4 receivers over a satellite link of {LINK_RATE / 1e6:g} Mbit/s and {LINK_DELAY:g} s each way, until the last is done")
    lines, notes = [], []
    for size in (20_000, 10_000_000):
        with Rig(bench.scratch, 4, link=satellite()) as rig:
            rows = [("open", None, lambda _: bench.farcast(rig, size, rate=rate)),
                    ("sealed", "open", lambda _: bench.farcast(rig, size, rate=rate, keys=keys))]
            results = bench.rounds(f"sealed, satellite, {size} octets", rows, bench.args.runs)
            bench.end_link(rig, f"sealed, satellite, {size} octets", notes)
        for name, _, _ in rows:
            notes += failures(f"{size} octets: {name}", results[name])
            times = sorted(one["time"] for one in good_ones(results[name]))
            if not times:
                lines.append([f"{size:,}", name, *["-"] * 4])
                continue
            trips = (statistics.median(times) - size * 8 / LINK_RATE) / LINK_DELAY
            lines.append([f"{size:,}", name, f"{statistics.median(times):.2f}", f"{times[0]:.2f}..{times[-1]:.2f}", f"{trips:.2f}",
                          f"{middle(good_ones(results[name]), 'wire'):.3f}"])
    columns = [("octets", ">"), ("", "<"), ("s", ">"), ("min..max", ">"), ("one-way trips", ">"), ("octets/size", ">")]
    print("\n".join([grid(columns, lines), *notes]) + "\n")


def line(case, name, results):
    good = good_ones(results[name])
    if not good:
        return [case, name, *["-"] * 8]
    aims = (f"{AIM:g}", f"{OF_UFTP:g}" if "UFTP 5, AES-256-GCM" in results else "") if name == "sealed" else ("", "")
    of_open, of_uftp = (ratio(results, name, other) for other in ("open", "UFTP 5, AES-256-GCM"))
    return [case, name, f"{middle(good, 'goodput'):,.0f}", of_open, aims[0], of_uftp, aims[1],
            f"{middle(good, 'sender_cpu'):.2f}", f"{middle(good, 'receiver_cpu'):.2f}", f"{middle(good, 'wire'):.3f}"]


def ratio(results, name, other):
    """Returns the median of the rounds' goodput ratios as text; empty except in the sealed row."""
    if name != "sealed" or other not in results:
        return ""
    pairs = zip(results[name], results[other])
    ratios = [one["goodput"] / two["goodput"] for one, two in pairs if "goodput" in one and "goodput" in two]
    return f"{statistics.median(ratios):.2f}" if ratios else "-"


def make_keys(bench):
    """Makes keys of a sender and four receivers that trust each other. Returns the directory of their configurations."""
    keys = bench.scratch / "keys"
    shutil.rmtree(keys, ignore_errors=True)
    lines = {}
    names = ["sender", *(f"r{n}" for n in range(4))]
    for name in names:
        farcast(bench, keys, name, "new", name)
        shown = farcast(bench, keys, name, "show")
        lines[name] = next(line for line in shown.splitlines() if not line.startswith("#"))
    for name in names[1:]:
        farcast(bench, keys, "sender", "trust", lines[name], "--as", "receiver")
        farcast(bench, keys, name, "trust", lines["sender"], "--as", "sender")
    return keys


def farcast(bench, keys, name, *args):
    environment = os.environ | {"XDG_CONFIG_HOME": str(keys / name)}
    command = [str(bench.binary), "key", *args]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def uftp5():
    """Returns a function that transfers by UFTP 5 with AES-256-GCM, or None if its programs are missing."""
    place = os.environ.get("UFTP5")
    if not place or not os.access(f"{place}/uftp", os.X_OK):
        return None

    def transfer(bench, rig, size):
        # Its default is to encrypt: AES-256-GCM, RSA or EC keys made at the start.
        source, receivers = bench.file(size), []
        for n, space in enumerate(rig.receivers):
            target = bench.empty(n)
            target.mkdir()
            command = [f"{place}/uftpd", "-d", "-B", 4_194_304, "-t", "-c", 1_048_576, "-I", "eth0", "-D", target]
            receivers.append(rig.start(space, [*command, "-U", f"0x0A4D00{n + 2:02X}"], f"uftpd{n}"))
        clients = ",".join(f"0x0A4D00{n + 2:02X}" for n in range(len(receivers)))
        command = [f"{place}/uftp", "-Y", "aes256-gcm", "-h", "sha256", "-B", 4_194_304, "-b", 1400, "-R", UFTP_RATE, "-I", "eth0",
                   "-H", clients, source]
        return bench.until_stopped(rig, source, size, receivers, command, "uftp5")

    return transfer
