"""Sends numbered datagrams to a multicast group, or writes down which of them are missing.

datagrams.py send DIRECTORY COUNT
datagrams.py receive DIRECTORY COUNT
"""
import os
import pathlib
import socket
import struct
import sys
import time

GROUP, PORT = "239.1.2.3", 5000
END = 0xFFFFFFFF


def send(directory, count):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    receivers = len(os.environ["FARCAST_TERMINALS"].split())
    while len(list(directory.glob("ready-*"))) < receivers:
        time.sleep(0.01)
    for number in range(count):
        sock.sendto(struct.pack("!I", number) + bytes(96), (GROUP, PORT))
        # Ten at a time, so that nothing waits long in a queue.
        if number % 10 == 9:
            time.sleep(0.005)
    for _ in range(100):
        sock.sendto(struct.pack("!I", END), (GROUP, PORT))
        time.sleep(0.005)


def receive(directory, count):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", PORT))
    membership = socket.inet_aton(GROUP) + socket.inet_aton("0.0.0.0")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    terminal = os.environ["FARCAST_TERMINAL"]
    (directory / f"ready-{terminal}").touch()
    missing = set(range(count))
    while (number := struct.unpack_from("!I", sock.recv(2048))[0]) != END:
        if number not in missing:
            sys.exit(f"datagram {number} came twice")
        missing.remove(number)
    (directory / f"missing-{terminal}").write_text("".join(f"{number}\n" for number in sorted(missing)))


if __name__ == "__main__":
    work, where, count = sys.argv[1:]
    {"send": send, "receive": receive}[work](pathlib.Path(where), int(count))
