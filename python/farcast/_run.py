"""Running: simulations, sweeps, races, studies."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._results import Comparison, Result, Setting, Sweep, Tuned
from ._scenario import Scenario, ScenarioLike, Settings, literal

if TYPE_CHECKING:
    import pyarrow
    from distributed import Client

#: Values of a key: a list, or a text as ``--vary`` has it: ``"1..10"``, ``"0.001..0.1*3"``, ``"a,b"``.
Vary = Mapping[str, Union[str, Iterable[Any]]]
PathLike = Union[str, os.PathLike]


def _axes(vary: Vary) -> list[tuple[str, str | list[str]]]:
    """Keys, each with a list of values or with the text that says them."""
    return [
        (key, values if isinstance(values, str) else [literal(one) for one in values]) for key, values in vary.items()
    ]


class _Progress:
    """Says on standard error how it stands, if that is a terminal and it takes longer than two seconds."""

    def __init__(self, what: str, shown: bool | None) -> None:
        self.what, self.begin, self.last = what, time.monotonic(), 0.0
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.was_shown = False

    def __call__(self, done: int, total: int, replications: int) -> None:
        now = time.monotonic()
        if not self.shown or now - self.begin < 2 or now - self.last < 0.5:
            return
        self.last, self.was_shown = now, True
        left = (now - self.begin) * (total - done) / done if done else 0.0
        text = f"{self.what} {done} of {total}, {replications} replications, {left:.0f} s left"
        print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.was_shown:
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)


def simulate(
    scenario: ScenarioLike,
    settings: Settings | None = None,
    *,
    traffic: Iterable[str] | str = (),
    replications: int = 20,
    precision: float | None = None,
    most: int = 100_000,
    seed: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
) -> Result:
    """Runs replications of a scenario.

    With ``precision``, as 0.02, they are run until the 95 % interval of the mean completion time is so narrow, but at
    most ``most``. The same seed gives the same result on any number of ``threads``.

    Raises :class:`ScenarioError` with file, line and key of what is wrong, :class:`RunError` if it takes too much memory.
    """
    one = Scenario(scenario, settings, traffic)
    native = _native.Sweep(one._native, [], seed, replications, precision, most)
    tell = _Progress("simulating", progress)
    try:
        return Result(native.run(None, threads, None), one.name)
    finally:
        tell.end()


def sweep(
    scenario: ScenarioLike,
    vary: Vary,
    settings: Settings | None = None,
    *,
    traffic: Iterable[str] | str = (),
    replications: int = 100,
    precision: float | None = None,
    most: int = 100_000,
    seed: int = 1,
    out: PathLike | None = None,
    threads: int | None = None,
    client: Client | None = None,
    retries: int = 3,
    on_point: Callable[[int, dict[str, str]], None] | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Runs every combination of the values of some keys.

    With ``out``, a directory, results are kept there (``sweep.parquet``, ``summary.csv``) and an interrupted sweep goes
    on where it was. With ``client``, a :class:`distributed.Client`, points are run by the workers of a Dask cluster,
    which have the same version of farcast; a point whose worker dies is run again, up to ``retries`` times, and
    ``on_point`` is called with each point's number and settings as it comes. Results are the same, wherever they are run.
    """
    one = Scenario(scenario, settings, traffic)
    native = _native.Sweep(one._native, _axes(vary), seed, replications, precision, most)
    directory = None if out is None else os.fspath(out)
    tell = _Progress("point", progress)
    try:
        if client is None:
            return Sweep(native.run(directory, threads, tell), one.name)
        from ._dask import gather

        plan = {"seed": seed, "replications": replications, "precision": precision, "most": most}
        return Sweep(gather(native, plan, client, directory, retries, on_point, tell), one.name)
    finally:
        tell.end()


def tune(
    scenario: ScenarioLike,
    vary: Vary | None = None,
    settings: Settings | None = None,
    *,
    minimise: str | None = None,
    subject_to: Sequence[str] = (),
    robust: Vary | None = None,
    traffic: Iterable[str] | str = (),
    replications: int = 1000,
    first: int = 30,
    confidence: float = 0.95,
    seed: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Finds the setting with the least of a figure, as ``"completion_time_s.p95"``, by a race on common random numbers.

    ``subject_to`` are bounds that it keeps, as ``"forward.octets < 1.2 * file"``; ``robust`` is a range of what nobody
    knows better, over which settings are judged. What is not said is taken from the scenario's table ``tune``.
    """
    one = Scenario(scenario, settings, traffic)
    wish = json.loads(one._native.wish())

    def said(axes: Vary | None, default: list[str]) -> list[str]:
        if axes is None:
            return default
        return [f"{key}={said if isinstance(said, str) else ','.join(said)}" for key, said in _axes(axes)]

    figure = minimise or wish["minimise"] or "completion_time_s.mean"
    tell = _Progress("replication", progress)
    try:
        found = _native.tune(
            one._native,
            said(vary, wish["vary"]),
            figure,
            list(subject_to) or wish["subject_to"],
            said(robust, wish["robust"]),
            first,
            replications,
            confidence,
            seed,
            threads,
            tell,
        )
    finally:
        tell.end()
    object_ = json.loads(found)
    entries = [Setting(**entry) for entry in object_.pop("settings")]
    return Tuned(scenario=one.name, minimise=figure, settings=entries, **object_)


def compare(
    a: Result | Sweep | PathLike,
    b: Result | Sweep | PathLike,
    *,
    columns: Sequence[str] = (),
    paired: bool = False,
    level: float = 0.95,
) -> list[Comparison]:
    """Says what differs between two results, or files of results: of sweeps setting by setting.

    What cannot be compared, as a time where replications were not finished, is left out with a warning. ``paired`` if
    replication i of one belongs to replication i of the other, as with one seed.
    """

    def source(one: Result | Sweep | PathLike) -> object:
        return one._swept if isinstance(one, (Result, Sweep)) else os.fspath(one)

    found = json.loads(_native.compare(source(a), source(b), list(columns), paired, level))
    for one in found["left_out"]:
        warnings.warn(f"not compared: {one}", stacklevel=2)
    return [Comparison(words=one["words"], **one["values"]) for one in found["all"]]


def reproduce(
    study: str,
    *,
    quick: bool = False,
    replications: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Repeats a published study: a row for each of its numbers, with ours, its interval and a verdict."""
    tell = _Progress("replication", progress)
    try:
        return json.loads(_native.reproduce(study, quick, replications, seed, threads, tell))
    finally:
        tell.end()


def studies() -> dict[str, str]:
    """Every study that can be repeated: its name, and what it repeats."""
    return dict(_native.studies())


def scenarios() -> dict[str, str]:
    """Every scenario and link that ships with farcast: its name, and what it is."""
    return {name: title for name, title, _ in _native.shipped()}
