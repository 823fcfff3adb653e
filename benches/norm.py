"""The table `norm`: farcast by NORM and by MFTP beside NRL's libnorm, over veth and over the satellite link."""

from dataclasses import dataclass

from report import failures, good_ones, grid, mega, plural, spread
from rig import Rig
from transfers import LINK_DELAY, PART_OF_LINK, middle, satellite

# Octets of a full datagram that NRL's library does not count in its rate: IP and UDP headers.
LIBNORM_PART = 1 - 28 / 1468
BY_NORM = ["--protocol", "norm"]


@dataclass(frozen=True)
class Case:
    count: int  # receivers
    loss: float
    rate: float  # bit/s of IP packets, all headers included
    size: int = 100_000_000
    link: float | None = None  # the satellite link's bit/s; None is a bridge
    aim_s: float | None = None
    aim_octets: float | None = None
    quick: bool = False

    def place(self):
        return f"satellite, {self.link / 1e6:g} Mbit/s" if self.link else "veth"


# Over veth at the highest rates that two cores with all these receivers bear.
CASES = [
    Case(1, 0.00, 1000e6),
    Case(1, 0.05, 1000e6, quick=True),
    Case(4, 0.00, 400e6),
    Case(4, 0.05, 400e6),
    Case(16, 0.00, 100e6, size=50_000_000),
    Case(16, 0.05, 100e6, size=50_000_000),
    Case(16, 0.05, 50e6, size=10_000_000, aim_octets=1.12, quick=True),
    Case(4, 0.00, PART_OF_LINK * 20e6, size=10_000_000, link=20e6, aim_s=4.65, aim_octets=1.08, quick=True),
    Case(16, 0.01, PART_OF_LINK * 20e6, size=10_000_000, link=20e6, aim_s=4.9, aim_octets=1.08, quick=True),
]


def table(bench):
    print("NORM beside MFTP at one rate of IP packets: seconds from the start of the sender's process until the last receiver\n"
          "has its file under its name; octets of all IP packets of the sender, exact where offloads are off (they are,\n"
          f"but for veth); losses independent at each receiver; the satellite is {LINK_DELAY * 1000:g} ms away")
    bench.build_norm()
    columns = [("", "<"), ("receivers", ">"), ("loss", ">"), ("size", ">"), ("", "<"), ("s (min..max)", ">"), ("aim", ">"),
               ("Mbit/s", ">"), ("octets/size", ">"), ("aim", ">"), ("back/size", ">"), ("CPU s: sender, receiver", ">")]
    lines, notes = [], []
    for case in CASES:
        if case.quick or not bench.args.quick:
            lines += measure(bench, case, notes)
    print("\n".join([grid(columns, lines), *notes]) + "\n")


def measure(bench, case, notes):
    """Measures one case and returns its lines."""
    name = f"{case.place()}, {plural(case.count)}, {case.loss:.0%} loss, {mega(case.size)}"
    # With offloads the interface counts one header for all joined datagrams, and they are lost together.
    offloads = not case.loss and not case.link
    with Rig(bench.scratch, case.count, offloads=offloads, link=satellite(case.link) if case.link else None,
             loss=case.loss) as rig:
        rows = programs(bench, rig, case)
        results = bench.rounds(f"norm, {name}", rows, bench.args.runs)
        bench.end_link(rig, name, notes)
    lines = []
    for program, _, _ in rows:
        start = [case.place(), case.count, f"{case.loss:.0%}", mega(case.size), program]
        good = good_ones(results[program])
        notes += failures(f"{name}: {program}", results[program])
        if not good:
            lines.append([*start, *["-"] * 7])
            continue
        aims = (case.aim_s, case.aim_octets) if program == "farcast norm" else (None, None)
        lines.append([
            *start, spread([one["wall"] for one in good], 2), f"{aims[0]:.2f}" if aims[0] else "",
            f"{case.size * 8 / middle(good, 'wall') / 1e6:.0f}", f"{middle(good, 'wire'):.3f}",
            f"{aims[1]:.2f}" if aims[1] else "", f"{middle(good, 'back'):.4f}",
            f"{middle(good, 'sender_cpu'):.2f}, {middle(good, 'receiver_cpu'):.2f}",
        ])
    return lines


def programs(bench, rig, case):
    rate = f"{case.rate / 1e6:g} Mbit/s"
    rows = [
        ("farcast norm", None, lambda n: bench.farcast(rig, case.size, rate=rate, send=BY_NORM, receive=BY_NORM, seed=n)),
        ("farcast mftp", None, lambda n: bench.farcast(rig, case.size, rate=rate, seed=n)),
    ]
    if bench.norm_peer:
        rows.append(("libnorm", None, lambda _: bench.norm(rig, case.size, round(case.rate * LIBNORM_PART))))
    return rows
