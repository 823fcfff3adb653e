"""The table `codec`: speed of encoding and decoding by erasure codes, beside other libraries."""

import json

from report import grid
from rig import run

# Reference of the ratios: the other library over GF(2^8) whose kernels are of the same kind.
OTHER = "fec-rs GF(2^8)"


def table(program, args):
    """Runs the example `codec`. The codes take turns, and the fastest round of each counts."""
    results = [json.loads(line) for line in run(program, *(["50"] if args.quick else [])).splitlines()]
    if args.json:
        with args.json.open("a") as out:
            out.writelines(json.dumps({"table": "codec", **result}) + "\n" for result in results)
    parities = list(dict.fromkeys(result["parity"] for result in results))
    ways = ("encode_mb_s", "decode_mb_s")
    speed = {(one["code"], one["parity"], way): one[way] for one in results for way in ways}
    print(f"erasure codes, {results[0]['source']} source symbols of 1,400 octets: source MB/s a core, the fastest round, and in "
          f"brackets\nof {OTHER}; decoding rebuilds as many symbols as there are parity symbols")
    columns = [("", "<"), *((f"{way.split('_')[0]} p={parity}", ">") for way in ways for parity in parities)]
    rows = []
    for code in dict.fromkeys(result["code"] for result in results):
        cells = [(speed[code, parity, way], speed[OTHER, parity, way]) for way in ways for parity in parities]
        rows.append([code, *(f"{mine:,} ({mine / other:.2f})" for mine, other in cells)])
    print(grid(columns, rows) + "\n")
