#!/usr/bin/env python3
"""A satellite link between two Ethernet interfaces, in user space: rate, delay and a drop-tail queue, each way.

Frames are taken from one interface by an AF_PACKET socket and put on the other. The link has a time of its own: a
frame's departure follows from the kernel's time stamp of its arrival and from the frames before it, never from when
this process woke up, so being late shifts one frame and nothing behind it. How late it was is reported.

Both ends must have their offloads off, or frames come joined and with unfinished checksums. The rate and the queue
count IP bytes: a satellite modem carries no Ethernet header.

Stops at SIGTERM or SIGINT and prints one JSON line of counts.
"""

import argparse
import collections
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import time

ETH_P_ALL = 0x0003
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PR_SET_TIMERSLACK = 29
ETHERNET_HEADER = 14
MAX_FRAME = 65535


class Direction:
    """One direction of the link: frames from `source` leave on `sink`."""

    def __init__(self, source, sink, args):
        self.source, self.sink = source, sink
        self.ns_per_byte = 8e9 / args.rate
        self.delay = round(args.delay * 1e6)
        self.limit = round(args.queue * 1e6)
        self.frames = collections.deque()
        self.free = 0  # when the transmitter is free again, ns
        self.counts = collections.Counter()
        self.longest_queue = 0

    def take(self):
        """Takes the frames that have arrived, and drops those for which the queue is full."""
        while True:
            try:
                frame, ancillary, _, _ = self.source.recvmsg(MAX_FRAME, 64)
            except BlockingIOError:
                return
            arrived = time.time_ns()
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                    seconds, nanoseconds = struct.unpack("=qq", data[:16])
                    arrived = seconds * 1_000_000_000 + nanoseconds
            start = max(self.free, arrived)
            self.longest_queue = max(self.longest_queue, start - arrived)
            if start - arrived > self.limit:
                self.counts["dropped"] += 1
                continue
            size = len(frame) - ETHERNET_HEADER
            self.counts["oversize"] += size > 1500
            self.free = start + size * self.ns_per_byte
            self.frames.append((self.free + self.delay, frame))

    def release(self, lateness):
        """Sends the frames that are due, and appends their lateness in ns to `lateness`."""
        while self.frames and (late := time.time_ns() - self.frames[0][0]) >= 0:
            _, frame = self.frames.popleft()
            try:
                self.sink.send(frame)
            except OSError:
                self.counts["unsent"] += 1
                continue
            lateness.append(late)
            self.counts["frames"] += 1
            self.counts["bytes"] += len(frame) - ETHERNET_HEADER

    def report(self):
        return dict(self.counts) | {"longest_queue_ms": self.longest_queue / 1e6}


def packet_socket(interface):
    """Opens a raw socket that receives the frames arriving on `interface`."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
    raw.bind((interface, ETH_P_ALL))
    raw.setblocking(False)
    return raw


def sharpen():
    """Asks to be woken on time: no timer slack, and real-time priority where that is allowed."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))


def quantile(ordered, part):
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ends", nargs=2, metavar="INTERFACE")
    parser.add_argument("--rate", type=float, default=20e6, help="bit/s of IP packets [20e6]")
    parser.add_argument("--delay", type=float, default=250, help="one way, ms [250]")
    parser.add_argument("--queue", type=float, default=500, help="longest wait in the queue, ms [500]")
    args = parser.parse_args()

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    a, b = (packet_socket(end) for end in args.ends)
    ways = [Direction(a, b, args), Direction(b, a, args)]
    sharpen()
    lateness = []
    print("ready", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            due = min((way.frames[0][0] for way in ways if way.frames), default=None)
            wait = None if due is None else max(0, due - time.time_ns()) / 1e9
            select.select([a, b], [], [], wait)
            for way in ways:
                way.take()
                way.release(lateness)
    lateness.sort()
    late = {f"late_{name}_ms": quantile(lateness, part) / 1e6 for name, part in
            (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}
    print(json.dumps({"forward": ways[0].report(), "back": ways[1].report()} | late), flush=True)


if __name__ == "__main__":
    main()
