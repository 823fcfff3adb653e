"""The table `oneway`: delivery to receivers that cannot answer, over losses, late and killed; and its speed."""

import json
import signal
import time

from report import grid, mega, spread
from rig import Rig, drop
from transfers import GROUP, Failed, same

SIZE, QUICK_SIZE = 1_000_000_000, 50_000_000
# Without offloads each datagram is lost by itself; the machine must carry it to all receivers.
RATE, MANY_RATE = 300e6, 100e6
DATAGRAM = 1500 * 8
OVERHEAD = 10
BURST = 0.05
FAST = [1.0e9, 1.5e9, 2.0e9, 2.5e9]
MANY = 4


def bursts(part):
    """Returns a function that makes rules for loss bursts of 50 ms. `part` is the share of time in bursts."""
    def rules(rate):
        # In the mean one burst each so many datagrams, counted from the end of the last.
        every = rate / DATAGRAM * (BURST / part - BURST)
        bad = "set bad { type inet_proto; flags dynamic, timeout; size 16; };"
        begin = f"numgen random mod 1000000 < {max(1, round(1e6 / every))}"
        return f"ip protocol @bad drop; {begin} add @bad {{ ip protocol timeout {BURST * 1000:.0f}ms }} drop", bad
    return rules


def independent(part):
    return lambda _: (drop(part) if part else "accept", "")


LOSSES = [("none", independent(0)), ("2 %", independent(0.02)), ("8 %", independent(0.08)),
          ("2 % in bursts of 50 ms", bursts(0.02)), ("8 % in bursts of 50 ms", bursts(0.08))]


def table(bench):
    size = QUICK_SIZE if bench.args.quick else SIZE
    print(f"one way: {mega(size)} with {OVERHEAD} % added each round, nothing passes back; octets of symbols that a receiver "
          f"heard until it had everything,\nover the size; the last of {MANY} receivers comes at half-time of the first round, "
          "and is killed and started again later")
    columns = [("losses", "<"), ("receivers", ">"), ("Mbit/s", ">"), ("rounds", ">"), ("complete", ">"),
               ("heard/size (min..max)", ">"), ("late and killed", ">"), ("decoded", ">"), ("", "<")]
    lines = []
    for name, losses in LOSSES:
        for count, rate in ((1, RATE), (MANY, MANY_RATE)):
            with Rig(bench.scratch, count, offloads=False) as rig:
                for _ in range(bench.args.runs):
                    try:
                        result = one_way(bench, rig, size, rate, losses, 3)
                    except (Failed, RuntimeError) as error:
                        lines.append([name, count, f"{rate / 1e6:g}", "", "", "", "", "", f"failed: {str(error)[:80]}"])
                        continue
                    bench.emit(table="oneway", losses=name, count=count, **result)
                    heard = [one["heard"] for one in result["receivers"] if not one["late"]]
                    late = [one["heard"] for one in result["receivers"] if one["late"]]
                    lines.append([name, count, f"{rate / 1e6:g}", result["rounds"],
                                  f"{result['complete']} of {count}", spread(heard, 4),
                                  spread(late, 4) if late else "", result["parity"], ""])
    print(grid(columns, lines) + "\n")
    speed(bench, size)


def speed(bench, size):
    """Measures and prints transfers to one receiver, without losses and with the device's offloads on."""
    print(f"one way without losses to one receiver, {mega(size)} once with {OVERHEAD} % added; beside plain sending (--rate max)")
    lines = []
    with Rig(bench.scratch, 1) as rig:
        def plain(_):
            return bench.farcast(rig, size)["goodput"]
        rows = [(f"--rate {rate / 1e6:g} Mbit/s", rate) for rate in FAST]
        for name, rate in rows:
            results = []
            for _ in range(bench.args.runs):
                try:
                    results.append(one_way(bench, rig, size, rate, None, 1))
                except (Failed, RuntimeError) as error:
                    lines.append([name, "", "", "", f"failed: {str(error)[:80]}"])
            if results:
                lines.append([name, spread([one["sent_mbit"] for one in results], 0),
                              spread([one["goodput"] for one in results], 0),
                              f"{sum(one['complete'] for one in results)} of {len(results)}",
                              f"parity taken: {max(one['parity'] for one in results)}"])
        rig.inside(rig.switch, "nft", "delete table bridge mute")
        rig.inside(rig.receivers[0], "nft", "delete table netdev bench")
        lines.append(["plain, --rate max", "", spread([plain(n) for n in range(bench.args.runs)], 0), "", ""])
    print(grid([("", "<"), ("symbols sent, Mbit/s", ">"), ("file until its name, Mbit/s", ">"), ("complete", ">"), ("", "<")],
               lines) + "\n")


def one_way(bench, rig, size, rate, losses, repeat):
    source = bench.file(size)
    for n, space in enumerate(rig.receivers):
        bench.empty(n)
        rules, more = losses(rate) if losses else ("accept", "")
        # The counter stands behind the losses, so lost datagrams do not count.
        rig.impair(space, f"{rules}; counter name heard", f"counter heard {{ }}; {more}")
    # Nothing passes back.
    ports = ", ".join(f'"p{n}"' for n in range(len(rig.receivers)))
    mute = "table bridge mute"
    rules = f"type filter hook forward priority 0; iifname {{ {ports} }} drop;"
    rig.inside(rig.switch, "nft", f"add {mute}; delete {mute}; {mute} {{ chain back {{ {rules} }}; }}")

    def start(n):
        command = [bench.binary, "receive", "--one-way", "--from", GROUP, "--into", bench.into(n), "--once", "--json",
                   "--interface", "eth0"]
        process = rig.start(rig.receivers[n], command, f"receive{n}-{time.monotonic_ns()}")
        process.wait_for('"listening"')
        return process

    late = len(rig.receivers) - 1 if len(rig.receivers) > 1 else None
    receivers = {n: start(n) for n in range(len(rig.receivers)) if n != late}
    command = [bench.binary, "send", "--one-way", source, "--to", GROUP, "--rate", f"{rate / 1e6:g} Mbit/s", "--json",
               "--overhead", OVERHEAD, "--repeat", repeat, "--interface", "eth0"]
    sender = rig.start(rig.sender, command, "send")
    round_s = size * (1 + OVERHEAD / 100) * 8 / rate
    heard_before = 0
    try:
        if late is not None:
            sender.wait_for('"event":"round"', 60)
            time.sleep(round_s / 2)
            before = count(rig, late)
            first = start(late)
            time.sleep(round_s / 4)
            first.popen.send_signal(signal.SIGKILL)
            first.finish(5)
            heard_before = count(rig, late) - before
            time.sleep(round_s / 20)
            receivers[late] = start(late)
        code = sender.finish(60 + 2 * repeat * round_s)
        if code != 4:
            raise Failed(f"sender: {code} {sender.text().strip()[-300:]}")
        results = []
        for n, process in receivers.items():
            process.finish(60)
            summary = next((line for line in reversed(process.lines()) if line["event"] == "summary"), None)
            if summary is None:
                raise Failed(f"receiver: {process.text().strip()[-300:]}")
            complete = summary["complete"] and same(source, bench.into(n) / source.name)
            symbol = summary["size_bytes"] / summary["segments"]
            octets = summary["symbols_heard"] * symbol + (heard_before if n == late else 0)
            results.append({"complete": complete, "late": n == late, "heard": octets / summary["size_bytes"],
                            "parity": summary["parity_received"], "held": summary["segments_held_before"],
                            "at": process.ended, "dropped": summary["dtus_dropped_unstored"]})
    finally:
        rig.stop_all()
    sent = sender.lines()[-1]
    began = next(line["time"] for line in sender.lines() if line["event"] == "round")
    done = max(one["at"] for one in results)
    return {"receivers": results, "complete": sum(one["complete"] for one in results), "rounds": sent["rounds"],
            "parity": sum(one["parity"] for one in results),
            "sent_mbit": sent["symbols"] * sent["symbol_bytes"] * 8 / sent["data_time_s"] / 1e6,
            "goodput": size * 8 / (done - began) / 1e6}


def count(rig, n):
    """Returns the approximate octets of UDP content that have reached receiver n: headers are subtracted."""
    shown = json.loads(rig.inside(rig.receivers[n], "nft", "-j", "list", "counters"))["nftables"]
    counter = next(one["counter"] for one in shown if "counter" in one)
    return counter["bytes"] - counter["packets"] * 54

