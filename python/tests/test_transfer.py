"""Transfers from Python: against themselves, and with the command line at the other end."""

from __future__ import annotations

import asyncio
import os
import pathlib
import pickle
import random
import subprocess
import threading

import pytest

import farcast

LOOPBACK = "127.0.0.1"


def program() -> str:
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    root = pathlib.Path(__file__).resolve().parents[2]
    return str(root / target / "debug" / "farcast")


@pytest.fixture
def group(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A group of its own, and a home without keys and memory."""
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    for variable in ("FARCAST_KEY", "FARCAST_KEY_FILE", "FARCAST_TRUST_FILE"):
        monkeypatch.delenv(variable, raising=False)
    draw = random.SystemRandom()
    return f"239.255.{draw.randrange(1, 255)}.{draw.randrange(1, 255)}:{draw.randrange(20000, 60000)}"


@pytest.fixture
def charts(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with two files."""
    directory = tmp_path / "charts"
    (directory / "north").mkdir(parents=True)
    (directory / "north" / "sea").write_bytes(os.urandom(300_000))
    (directory / "notes").write_text("calm\n")
    return directory


def same(one: pathlib.Path, other: pathlib.Path) -> bool:
    files = [path.relative_to(one) for path in one.rglob("*") if path.is_file()]
    return bool(files) and all((other / file).read_bytes() == (one / file).read_bytes() for file in files)


def listening(group: str, into: pathlib.Path, name: str, **options: object) -> farcast.Transfer:
    """Begins to receive; returns when the receiver listens."""
    transfer = farcast.start_receive(group, into, name=name, interface=LOOPBACK, patience="30 s", **options)
    for update in transfer:
        if update["kind"] == "listening":
            return transfer
    transfer.result()
    raise AssertionError("it ended before it listened")


@pytest.mark.parametrize("protocol", ["mftp", "norm"])
def test_a_directory_reaches_three_receivers_behind_loss(
    protocol: str, group: str, charts: pathlib.Path, tmp_path: pathlib.Path
):
    names = ["one", "two", "three"] if protocol == "mftp" else ["1", "2", "3"]
    receivers = [
        listening(group, tmp_path / name, name, protocol=protocol, simulate_loss=0.05) for name in names
    ]
    updates: list[farcast.Update] = []
    sent = farcast.send(
        charts,
        to=group,
        rate="20 Mbit/s",
        receivers=names,
        protocol=protocol,
        interface=LOOPBACK,
        progress=updates.append,
    )
    assert sent.outcome == "done" and {one.name for one in sent.receivers} == set(names)
    assert all(one.complete_s is not None for one in sent.receivers)
    assert {"began", "progress", "ended"} <= {update["kind"] for update in updates}
    for name, receiver in zip(names, receivers):
        products = receiver.result()
        assert all(product.verified for product in products)
        assert sum(product.octets for product in products) > 300_000 - 1
        assert same(charts, tmp_path / name / "charts")


def test_the_command_line_receives_what_python_sends_sealed(
    group: str, charts: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
):
    def key(name: str, *words: str) -> str:
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / name), "XDG_STATE_HOME": str(tmp_path / name)}
        done = subprocess.run([program(), "key", *words], env=environment, check=True, capture_output=True, text=True)
        return done.stdout

    lines = {name: key(name, "new", name).splitlines()[-1] for name in ("head", "ship")}
    key("head", "trust", *lines["ship"].split())
    key("ship", "trust", *lines["head"].split())
    receive = [program(), "receive", "--from", group, "--interface", LOOPBACK, "--once", "--json"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "ship"), "XDG_STATE_HOME": str(tmp_path / "ship")}
    with subprocess.Popen(
        [*receive, "--into", str(tmp_path / "in")], env=environment, stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        while '"listening"' not in receiver.stdout.readline():
            pass
        for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.setenv(variable, str(tmp_path / "head"))
        began = []
        sent = farcast.send(
            charts,
            to=group,
            rate="20 Mbit/s",
            receivers=["ship"],
            interface=LOOPBACK,
            progress=lambda update: began.append(update) if update["kind"] == "began" else None,
        )
        receiver.stdout.read()
        assert receiver.wait(30) == 0 and sent.outcome == "done"
    assert "sealed between head" in began[0]["sealed"]
    assert same(charts, tmp_path / "in" / "charts")


def test_an_error_has_the_sentence_of_the_command_line(group: str, charts: pathlib.Path):
    with pytest.raises(farcast.TransferError, match="--rate is missing") as raised:
        farcast.send(charts, to=group)
    assert raised.value.kind == "usage"
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.kind) == (str(raised.value), "usage")
    with pytest.raises(farcast.TransferError, match="239.255.1.1:99999"):
        farcast.send(charts, to="239.255.1.1:99999", rate="1 Mbit/s")
    with pytest.raises(farcast.TransferError, match="dtu_sizes"):
        farcast.send(charts, to=group, rate="1 Mbit/s", settings={"dtu_sizes": 3})


def test_a_receiver_that_is_not_there_makes_it_incomplete(group: str, charts: pathlib.Path, tmp_path: pathlib.Path):
    receiver = listening(group, tmp_path / "one", "one")
    with pytest.raises(farcast.TransferError, match="absent") as raised:
        farcast.send(
            charts,
            to=group,
            rate="20 Mbit/s",
            receivers=["one", "absent"],
            interface=LOOPBACK,
            settings={"start_after": '"1 s"'},
        )
    assert raised.value.kind == "incomplete"
    assert {one.name: one.complete_s is not None for one in raised.value.receivers} == {"one": True, "absent": False}
    assert receiver.result()


def test_a_transfer_can_be_cancelled_and_awaited(group: str, charts: pathlib.Path, tmp_path: pathlib.Path):
    waiting = farcast.start_receive(group, tmp_path / "in", name="one", interface=LOOPBACK)
    threading.Timer(0.5, waiting.cancel).start()
    with pytest.raises(farcast.TransferError, match="stopped|cancelled"):
        waiting.result()

    async def both() -> tuple[farcast.Sent, list[farcast.Product], set[str]]:
        receiver = await asyncio.to_thread(listening, group, tmp_path / "in", "one")
        sender = farcast.start_send(charts, to=group, rate="20 Mbit/s", receivers=["one"], interface=LOOPBACK)
        kinds = {update["kind"] async for update in sender}
        return await sender, await receiver, kinds

    sent, products, kinds = asyncio.run(both())
    assert sent.outcome == "done" and len(products) == 1 and "progress" in kinds
    assert same(charts, tmp_path / "in" / "charts")


def test_a_receiver_that_goes_on_gathers_nothing(group: str, charts: pathlib.Path, tmp_path: pathlib.Path):
    receiver = listening(group, tmp_path / "in", "one", once=False)
    farcast.send(charts, to=group, rate="20 Mbit/s", receivers=["one"], interface=LOOPBACK)
    assert any(update["kind"] == "complete" for update in iter(lambda: next(iter(receiver)), None))
    receiver.cancel()
    assert receiver.result() == []
    assert same(charts, tmp_path / "in" / "charts")
    # Nobody reads these updates.
    flood = farcast.Transfer(lambda _, update: [update({"kind": "progress"}) for _ in range(30_000)])
    flood.result()
    assert sum(1 for _ in flood) == 10_000
