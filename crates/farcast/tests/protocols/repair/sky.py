"""A satellite: carries frames between two interfaces of this network namespace, each SECONDS late, and counts the PGM
packets of each type that it carried in each direction. Those counts it keeps in FILE.

    sky.py DOWN_FROM DOWN_TO SECONDS FILE
"""

import collections
import json
import os
import select
import socket
import sys
import time

TYPES = {0: "spm", 1: "poll", 2: "polr", 4: "odata", 5: "rdata", 8: "nak", 9: "nnak", 10: "ncf", 12: "spmr", 13: "ack"}


def tap(name):
    tapped = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tapped.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
    tapped.bind((name, 0))
    tapped.setblocking(False)
    return tapped


def kind(frame):
    """What PGM packet it carries, if it does."""
    if frame[12:14] != b"\x08\x00" or frame[23] not in (17, 113):
        return None
    begin = 14 + (frame[14] & 15) * 4 + (8 if frame[23] == 17 else 0)
    return TYPES.get(frame[begin + 4], "other") if len(frame) > begin + 4 else None


def main():
    source, ground, delay, path = tap(sys.argv[1]), tap(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    directions = {source.fileno(): (source, ground, "down"), ground.fileno(): (ground, source, "up")}
    counts = {"down": collections.Counter(), "up": collections.Counter()}
    waiting = collections.deque()
    written, dirty = 0.0, True
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, frame, out = waiting.popleft()
            out.send(frame)
        if dirty and now - written > 0.1:
            with open(path + ".new", "w", encoding="ascii") as new:
                json.dump(counts, new)
            os.replace(path + ".new", path)
            written, dirty = now, False
        timeout = min(waiting[0][0] - now, 0.1) if waiting else 0.1
        for readable in select.select(list(directions), [], [], max(timeout, 0))[0]:
            heard, out, direction = directions[readable]
            for _ in range(64):
                try:
                    frame, address = heard.recvfrom(65536)
                except BlockingIOError:
                    break
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                what = kind(frame)
                if what:
                    counts[direction][what] += 1
                    dirty = True
                waiting.append((time.monotonic() + delay, frame, out))


main()
