"""Sweeps on a Dask cluster: a task for each point."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from distributed import Client


def run_point(task: tuple[str, dict[str, str], bytes], plan: dict[str, Any]) -> bytes:
    """Runs a point on one core of a worker. It depends on its arguments alone, so it may be run again anywhere."""
    text, files, key = task
    return _native.run_point(
        text, files, key, plan["seed"], plan["replications"], plan["precision"], plan["most"], 1
    )


def gather(
    native: _native.Sweep,
    plan: dict[str, Any],
    client: Client,
    directory: str | None,
    retries: int,
    on_point: Callable[[int, dict[str, str]], None] | None,
    tell: Callable[[int, int, int], None],
) -> _native.Swept:
    """Has the workers of a cluster run what is missing, and takes it as it comes."""
    from distributed import as_completed

    begin = time.monotonic()
    gathering = native.gather(directory)
    missing = gathering.missing()
    done = len(native) - len(missing)
    futures = {}
    for point in missing:
        task = native.task(point)
        # Its name follows from all that its result follows from: sweeps that have a point in common share it.
        futures[client.submit(run_point, task, plan, key=f"farcast-{task[2].hex()}", retries=retries)] = point
    try:
        for future, octets in as_completed(futures, with_results=True):
            point = futures[future]
            gathering.put(point, octets)
            done += 1
            tell(done, len(native), done * plan["replications"])
            if on_point is not None:
                on_point(point, dict(native.settings(point)))
    except BaseException:
        client.cancel(list(futures))
        raise
    return gathering.finish(time.monotonic() - begin)
