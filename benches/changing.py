"""The table `changing`: losses that change, come in bursts, or are one receiver's; the defaults beside fixed parity."""

from report import failures, grid, spread
from rig import Rig, drop
from transfers import LINK_RATE, PART_OF_LINK, middle, satellite

RECEIVERS = 16
SIZE = 10_000_000
LAN_RATE = 50e6
PARITIES = [8, 16, 32, 64, 128, 192]
QUICK_PARITIES = [16, 64]
# A bad state (Gilbert's) begins before one datagram in 1,000 and ends before one in 10; all are lost meanwhile.
BEGIN, END = 0.001, 0.1


def steps(_):
    """Returns rules that lose nothing in the first third of a file, 10 % in the second, and 1 % in the last."""
    third = SIZE // 3
    rules = f"quota until {third} bytes jump first; quota until {third} bytes jump second; {drop(0.01)}"
    return rules, f"chain first {{ accept; }}; chain second {{ {drop(0.1)}; accept; }};"


def bursts(_):
    chance = "numgen random mod 100000 <"
    bad = "set bad { type inet_proto; flags dynamic; size 1000000; };"
    rules = f"ip protocol @bad {chance} {round(END * 100_000)} delete @bad {{ ip protocol }} accept; ip protocol @bad drop;"
    return f"{rules} {chance} {round(BEGIN * 100_000)} add @bad {{ ip protocol }} drop", bad


def one_bad(n):
    """Returns rules that lose 20 % at receiver 0, and 0.1 % at the others."""
    return drop(0.001 if n else 0.2), ""


PATTERNS = [
    ("0, then 10 %, then 1 %", steps),
    (f"bursts of {1 / END:.0f}, {BEGIN / (BEGIN + END):.0%} lost", bursts),
    ("one at 20 %, others 0.1 %", one_bad),
]


def table(bench):
    print(f"losses that change: {SIZE // 1_000_000} MB to {RECEIVERS} receivers; octets of IP packets that the sender sent over "
          "the file's size, seconds\nuntil the last receiver has its file; above the least of the fixed settings, which are "
          "off and each number")
    columns = [("", "<"), ("losses", "<"), ("--parity", ">"), ("octets/size (min..max)", ">"), ("above best", ">"),
               ("s (min..max)", ">"), ("above best", ">")]
    lines, notes, verdicts = [], [], []
    for place, link, rate in (("LAN", None, LAN_RATE), ("satellite", satellite(), LINK_RATE * PART_OF_LINK)):
        for losses, rules in PATTERNS:
            results = measure(bench, place, link, rate, losses, rules, notes)
            lines += compare(place, losses, results, verdicts)
    print("\n".join([grid(columns, lines), *verdicts, *notes]) + "\n")


def measure(bench, place, link, rate, losses, rules, notes):
    with Rig(bench.scratch, RECEIVERS, offloads=False, link=link) as rig:
        def transfer(parity):
            # Anew each time: the datagrams that came before count.
            for n, space in enumerate(rig.receivers):
                rig.impair(space, *rules(n))
            send = [] if parity == "default" else ["--parity", parity]
            return bench.farcast(rig, SIZE, rate=f"{rate / 1e6:g} Mbit/s", send=send)

        settings = ["default", "off", *map(str, QUICK_PARITIES if bench.args.quick else PARITIES)]
        rows = [(parity, None, lambda _, p=parity: transfer(p)) for parity in settings]
        results = bench.rounds(f"changing, {place}, {losses}", rows, bench.args.runs)
        bench.end_link(rig, f"{place}, {losses}", notes)
    for parity, runs in results.items():
        notes += failures(f"{place}, {losses}, {parity}", runs)
    return results


def compare(place, losses, results, verdicts):
    """Returns the lines of one loss pattern, each compared with the best fixed setting."""
    found = {parity: (middle(runs, "wire"), middle(runs, "wall")) for parity, runs in results.items()}
    fixed = {parity: both for parity, both in found.items() if parity != "default" and None not in both}
    if not fixed:
        return [[place, losses, parity, "-", "", "-", ""] for parity in results]
    best = [min(fixed, key=lambda parity, k=key: fixed[parity][k]) for key in (0, 1)]
    least = [fixed[parity][key] for key, parity in enumerate(best)]
    lines = []
    for parity, runs in results.items():
        if None in found[parity]:
            lines.append([place, losses, parity, "-", "", "-", ""])
            continue
        octets, seconds = ([one[key] for one in runs if key in one] for key in ("wire", "wall"))
        above = [f"{found[parity][key] / least[key] - 1:+.1%}" for key in (0, 1)]
        lines.append([place, losses, parity, spread(octets, 3), above[0], spread(seconds, 2), above[1]])
    if None not in found["default"]:
        above = [found["default"][key] / least[key] - 1 for key in (0, 1)]
        verdicts.append(f"{place}, {losses}: the defaults' octets are {above[0]:+.1%} against the best fixed ({best[0]}), "
                        f"their seconds {above[1]:+.1%} ({best[1]})")
    return lines
