"""The table `cpu`: CPU seconds of one transfer to many receivers on one machine, farcast beside UFTP."""

import statistics

from report import failures, good_ones, grid
from rig import Rig
from transfers import middle

RECEIVERS = 16
SIZE = 30_000_000
RATE = 40e6  # bit/s of IP packets; neither loses at it
AIM = 1.2


def table(bench):
    print(f"CPU seconds (user and system) of {SIZE // 1_000_000} MB to {RECEIVERS} receivers at {RATE / 1e6:g} Mbit/s, one "
          "datagram a system call, all device offloads off")
    off = ["--no-offload"]
    with Rig(bench.scratch, RECEIVERS, offloads=False) as rig:
        rows = [("farcast --no-offload", "UFTP" if bench.uftp else None,
                 lambda _: totals(bench.farcast(rig, SIZE, rate=f"{RATE / 1e6:g} Mbit/s", send=off, receive=off)))]
        if bench.uftp:
            rows.insert(0, ("UFTP", None, lambda _: totals(bench.uftp_transfer(rig, SIZE, int(RATE / 1024)))))
        else:
            print("UFTP is not installed (apt-get install uftp): no row of it here.")
        results = bench.rounds(f"cpu, {RECEIVERS} receivers", rows, bench.args.runs)
    columns = [("", "<"), ("sender", ">"), ("all receivers", ">"), ("together", ">"), ("of UFTP", ">"), ("aim", ">"),
               ("octets/size", ">"), ("s", ">")]
    lines, notes = [], []
    for name, reference, _ in rows:
        good = good_ones(results[name])
        notes += failures(name, results[name])
        if not good:
            lines.append([name, *["-"] * 7])
            continue
        pairs = zip(results[name], results[reference]) if reference else []
        ratios = [mine["cpu"] / other["cpu"] for mine, other in pairs if "cpu" in mine and "cpu" in other]
        seconds = [f"{middle(good, key):.2f}" for key in ("sender_cpu", "receivers_cpu", "cpu")]
        ratio = f"{statistics.median(ratios):.2f}" if ratios else ""
        aim = f"{AIM:.1f}" if reference else ""
        lines.append([name, *seconds, ratio, aim, f"{middle(good, 'wire'):.3f}", f"{middle(good, 'wall'):.2f}"])
    print("\n".join([grid(columns, lines), *notes]) + "\n")


def totals(result):
    receivers = result["receiver_cpu"] * RECEIVERS
    return result | {"receivers_cpu": receivers, "cpu": result["sender_cpu"] + receivers}
