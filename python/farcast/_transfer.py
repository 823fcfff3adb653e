"""Sending and receiving files: blocking, as an iterator of updates, or in asyncio."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native

Update = dict[str, Any]
"""What happened, with its ``kind``: ``progress``, ``waiting``, ``began``, ``has``, ``file``, ``complete`` and so on."""


@dataclass(frozen=True)
class ReceiverState:
    """A receiver that a sender knows."""

    name: str
    state: str
    complete_s: float | None
    """When it had everything, in seconds from the beginning."""


@dataclass(frozen=True)
class Sent:
    """What came of sending."""

    name: str
    outcome: str
    """``done``, or ``unknown`` where receivers cannot answer."""
    sentence: str | None
    octets: int
    wire_octets: int
    rounds: int
    duration_s: float
    data_duration_s: float
    receivers: list[ReceiverState]


@dataclass(frozen=True)
class Product:
    """A product that was received, and is complete."""

    name: str
    sender: str
    octets: int
    duration_s: float
    verified: bool


class TransferError(_native.TransferError):
    """A transfer could not be done, failed, or left receivers incomplete."""

    kind: str
    """``usage``, ``failed`` or ``incomplete``."""
    receivers: list[ReceiverState]

    def __init__(self, sentence: str, kind: str, receivers: list[ReceiverState]) -> None:
        super().__init__(sentence)
        self.kind, self.receivers = kind, receivers

    def __reduce__(self) -> tuple[Any, ...]:
        return TransferError, (str(self), self.kind, self.receivers)


def _raise(error: _native.TransferError) -> None:
    sentence, kind, receivers = error.args
    raise TransferError(sentence, kind, _receivers(json.loads(receivers))) from None


def _receivers(objects: list[dict[str, Any]]) -> list[ReceiverState]:
    return [ReceiverState(**one) for one in objects]


def _paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    one = isinstance(paths, (str, os.PathLike))
    return [os.fspath(path) for path in ([paths] if one else paths)]  # type: ignore[list-item]


def _text(value: object) -> str:
    """A value as TOML has it on the right of a key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _send_options(
    *,
    to: str,
    rate: str | None = None,
    receivers: Iterable[str] = (),
    protocol: str = "mftp",
    name: str | None = None,
    interface: str | None = None,
    ttl: int = 1,
    key: str | os.PathLike[str] | None = None,
    unsealed: bool = False,
    changing: str = "skip",
    wait: str | None = None,
    plan: str | os.PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    if isinstance(receivers, str):
        receivers = receivers.split(",")
    return {
        "to": to,
        "rate": rate,
        "receivers": list(receivers),
        "protocol": protocol,
        "name": name,
        "interface": interface,
        "ttl": ttl,
        "key": key,
        "unsealed": unsealed,
        "changing": changing,
        "wait": wait,
        "plan": plan,
        "settings": [(key, _text(value)) for key, value in (settings or {}).items()],
    }


def _receive_options(
    group: str,
    into: str | os.PathLike[str],
    *,
    name: str | None = None,
    protocol: str = "mftp",
    once: bool = True,
    interface: str | None = None,
    key: str | os.PathLike[str] | None = None,
    unsealed: bool = False,
    patience: str | None = None,
    simulate_loss: float = 0.0,
) -> dict[str, Any]:
    return {
        "group": group,
        "into": into,
        "name": name,
        "protocol": protocol,
        "once": once,
        "interface": interface,
        "key": key,
        "unsealed": unsealed,
        "patience": patience,
        "simulate_loss": simulate_loss,
    }


def _send(
    paths: list[str], options: dict[str, Any], cancel: _native.CancelHandle, progress: Callable[[Update], None] | None
) -> Sent:
    update = (lambda text: progress(json.loads(text))) if progress else None
    try:
        summary = json.loads(_native.send(paths, options, cancel, update))
    except _native.TransferError as error:
        _raise(error)
        raise
    return Sent(**{**summary, "receivers": _receivers(summary["receivers"])})


def _receive(
    options: dict[str, Any], cancel: _native.CancelHandle, progress: Callable[[Update], None] | None
) -> list[Product]:
    update = (lambda text: progress(json.loads(text))) if progress else None
    try:
        products = json.loads(_native.receive(options, cancel, update))
    except _native.TransferError as error:
        _raise(error)
        raise
    return [Product(**one) for one in products]


def send(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    progress: Callable[[Update], None] | None = None,
    **options: Any,
) -> Sent:
    """Send files and directories to every receiver of a group, and return when all have them.

    ``to`` is the group or host, with a port if it is not 5402. ``rate`` is what the slowest link carries, such as
    ``"20 Mbit/s"``, or ``"max"``. ``receivers`` names who is to confirm. ``protocol`` is ``mftp``, ``norm``, ``mdp``,
    ``pgm`` or ``one-way``; ``settings`` has keys of a scenario's ``[protocol]``. ``name``, ``interface``, ``ttl``,
    ``key``, ``unsealed``, ``changing``, ``wait`` and ``plan`` are as in ``farcast send``. ``progress`` is called with
    each update.

    Raises :class:`TransferError` with the sentence that ``farcast send`` prints.
    """
    return _send(_paths(paths), _send_options(**options), _native.CancelHandle(), progress)


def receive(
    group: str,
    into: str | os.PathLike[str],
    *,
    progress: Callable[[Update], None] | None = None,
    **options: Any,
) -> list[Product]:
    """Receive what is sent to ``group`` into the directory ``into``; by default one transmission, which is returned.

    With ``once=False`` it goes on, ``progress`` tells of each product, and nothing is returned.

    ``name``, ``protocol``, ``once``, ``interface``, ``key``, ``unsealed``, ``patience`` and ``simulate_loss`` are as in
    ``farcast receive``. ``progress`` is called with each update.

    Raises :class:`TransferError` with the sentence that ``farcast receive`` prints.
    """
    return _receive(_receive_options(group, into, **options), _native.CancelHandle(), progress)


class Transfer:
    """A transfer that runs on a thread: iterate over it for updates, and ask for its :meth:`result`.

    In asyncio, ``async for`` has the updates, and ``await`` the result.
    """

    _END = None
    _MOST_WAITING = 10_000
    """Updates that wait for a reader. Progress comes ten times a second, and nobody may read it."""

    def __init__(self, run: Callable[[_native.CancelHandle, Callable[[Update], None]], Any]) -> None:
        self._cancel = _native.CancelHandle()
        self._updates: queue.SimpleQueue[Update | None] = queue.SimpleQueue()
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(run,), daemon=True)
        self._thread.start()

    def _run(self, run: Callable[[_native.CancelHandle, Callable[[Update], None]], Any]) -> None:
        try:
            self._result = run(self._cancel, self._put)
        except BaseException as error:
            self._error = error
        finally:
            self._updates.put(self._END)

    def _put(self, update: Update) -> None:
        if self._updates.qsize() < self._MOST_WAITING:
            self._updates.put(update)

    def __iter__(self) -> Iterator[Update]:
        while (update := self._updates.get()) is not self._END:
            yield update
        self._updates.put(self._END)

    async def __aiter__(self) -> Any:
        while (update := await asyncio.to_thread(self._updates.get)) is not self._END:
            yield update
        self._updates.put(self._END)

    def __await__(self) -> Any:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        try:
            await asyncio.to_thread(self._thread.join)
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def cancel(self) -> None:
        """End the transfer in good order; :meth:`result` then raises."""
        self._cancel.cancel()

    def result(self) -> Any:
        """Wait for the end, and return what :func:`send` or :func:`receive` return."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result


def start_send(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Any) -> Transfer:
    """Begin to :func:`send` on a thread."""
    named, chosen = _paths(paths), _send_options(**options)
    return Transfer(lambda cancel, update: _send(named, chosen, cancel, update))


def start_receive(group: str, into: str | os.PathLike[str], **options: Any) -> Transfer:
    """Begin to :func:`receive` on a thread."""
    chosen = _receive_options(group, into, **options)
    return Transfer(lambda cancel, update: _receive(chosen, cancel, update))
