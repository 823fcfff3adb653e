"""The table `defaults`: farcast, UFTP and NORM with no option but the rate and the receivers' names."""

from dataclasses import dataclass

from report import failures, good_ones, grid, mega, plural, spread
from rig import Rig
from transfers import LINK_DELAY, PART_OF_LINK, middle, satellite

LAN_RATE = 50e6
# Octets of a full datagram of NORM that its rate does not count, of all: IP and UDP headers.
NORM_PART = 1 - 28 / 1468
# Without a rate, over the satellite link, and the most octets over the size that it is to take.
UNPACED, UNPACED_AIM = "farcast --rate max", 1.2


@dataclass(frozen=True)
class Case:
    count: int  # receivers
    loss: float
    size: int = 10_000_000
    link: float | None = None  # the satellite link's bit/s; None is the LAN
    rate: float = LAN_RATE  # on the LAN, bit/s of IP packets
    aim_s: float | None = None
    aim_octets: float | None = None
    quick: bool = False

    def place(self):
        return f"satellite, {self.link / 1e6:g} Mbit/s" if self.link else f"LAN, {self.rate / 1e6:g} Mbit/s"

    def paced(self):
        """Returns the rate at which the programs are to send, in bit/s of IP packets."""
        return self.link * PART_OF_LINK if self.link else self.rate


CASES = [
    Case(4, 0.00),
    Case(4, 0.05, aim_octets=1.10, quick=True),
    Case(16, 0.00),
    Case(16, 0.05, aim_octets=1.13, quick=True),
    Case(4, 0.00, link=20e6, aim_s=4.8, quick=True),
    Case(4, 0.01, link=20e6, aim_octets=1.08),
    Case(4, 0.05, link=20e6),
    Case(16, 0.00, link=20e6),
    Case(16, 0.01, link=20e6, aim_s=5.2, aim_octets=1.08, quick=True),
    Case(16, 0.05, link=20e6),
    Case(4, 0.01, size=1_000_000, link=2e6, aim_s=4.9, quick=True),
    Case(4, 0.01, size=1_000_000, rate=2e6),
]


def table(bench):
    print("no option but the rate and the receivers' names: seconds from the start of the sender's process until the last\n"
          "receiver has its file under its name; octets of all IP packets on the sender's interface, sent and received,\n"
          f"over the file's size; losses independent at each receiver; the satellite is {LINK_DELAY * 1000:g} ms away")
    if not bench.uftp:
        print("UFTP is not installed (apt-get install uftp): no row of it here.")
    bench.build_norm()
    columns = [("", "<"), ("receivers", ">"), ("loss", ">"), ("size", ">"), ("", "<"), ("s (min..max)", ">"), ("aim", ">"),
               ("octets/size", ">"), ("aim", ">"), ("back/size", ">"), ("Mbit/s", ">"), ("sender's exit after, s", ">")]
    lines, notes = [], []
    for case in CASES:
        if case.quick or not bench.args.quick:
            lines += measure(bench, case, notes)
    print("\n".join([grid(columns, lines), *notes]) + "\n")


def measure(bench, case, notes):
    """Measures one case and returns its lines."""
    name = f"{case.place()}, {plural(case.count)}, {case.loss:.0%} loss, {mega(case.size)}"
    link = satellite(case.link) if case.link else None
    with Rig(bench.scratch, case.count, offloads=False, link=link, loss=case.loss) as rig:
        rows = programs(bench, rig, case)
        results = bench.rounds(f"defaults, {name}", rows, bench.args.runs)
        bench.end_link(rig, name, notes)
    lines = []
    for program, _, _ in rows:
        start = [case.place(), case.count, f"{case.loss:.0%}", mega(case.size), program]
        good = good_ones(results[program])
        notes += failures(f"{name}: {program}", results[program])
        if not good:
            lines.append([*start, *["-"] * 7])
            continue
        aim_s = case.aim_s if program == "farcast" else None
        aim_octets = {"farcast": case.aim_octets, UNPACED: UNPACED_AIM}.get(program)
        lines.append([
            *start, spread([one["wall"] for one in good], 2), f"{aim_s:.1f}" if aim_s else "",
            f"{middle(good, 'wire'):.3f}", f"{aim_octets:.2f}" if aim_octets else "",
            f"{middle(good, 'back'):.4f}", f"{case.size * 8 / middle(good, 'wall') / 1e6:.2f}", f"{middle(good, 'after'):.2f}",
        ])
    return lines


def programs(bench, rig, case):
    """Returns the rows. Each program counts its rate differently, so the settings are converted to the same rate."""
    rate = case.paced()
    rows = [("farcast", None, lambda _: bench.farcast(rig, case.size, rate=f"{rate / 1e6:g} Mbit/s"))]
    if case.link and case.loss == 0.01:
        rows.append((UNPACED, None, lambda _: bench.farcast(rig, case.size)))
    if bench.uftp:
        # Its kilobits are 1024.
        rows.append(("UFTP", None, lambda _: bench.uftp_transfer(rig, case.size, int(rate / 1024), tuned=False)))
    if bench.norm_peer:
        rows.append(("NORM", None, lambda _: bench.norm(rig, case.size, round(rate * NORM_PART))))
    return rows
