"""Sweeps on a local Dask cluster: the same results, also when a worker is killed half-way."""

from __future__ import annotations

import os
import pathlib
import signal

import farcast
import pytest

distributed = pytest.importorskip("distributed")

SMALL = {"receivers": 40, "protocol.file": "200 kB"}
VARY = {"link.forward.per": "0.001..0.02/20", "protocol.srt.n": [2, 4]}


@pytest.fixture
def client():
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_a_worker_that_is_killed_changes_nothing(client, tmp_path: pathlib.Path):
    expected = farcast.sweep("mftp-bgan", VARY, SMALL, replications=60, out=tmp_path / "one")
    workers = client.run(os.getpid)
    assert len(workers) == 2
    came = []

    def on_point(number: int, settings: dict[str, str]) -> None:
        came.append(number)
        assert set(settings) == set(VARY)
        if len(came) == len(expected) // 2:
            os.kill(next(iter(workers.values())), signal.SIGKILL)

    found = farcast.sweep(
        "mftp-bgan", VARY, SMALL, replications=60, out=tmp_path / "two", client=client, on_point=on_point
    )
    assert sorted(came) == list(range(len(expected)))
    assert found.to_arrow() == expected.to_arrow()
    assert set(client.run(os.getpid).values()) != set(workers.values()), "no worker was killed"
    for name in ("sweep.parquet", "summary.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_what_is_there_is_not_run_again(client, tmp_path: pathlib.Path):
    vary = {"protocol.srt.n": [1, 2, 3]}
    farcast.sweep("mftp-bgan", vary, SMALL, replications=5, out=tmp_path)
    came = []
    more = {"protocol.srt.n": [1, 2, 3, 4]}
    found = farcast.sweep(
        "mftp-bgan", more, SMALL, replications=5, out=tmp_path, client=client, on_point=lambda n, _: came.append(n)
    )
    assert came == [3] and found.effort["kept"] == 3
    assert found.to_arrow() == farcast.sweep("mftp-bgan", more, SMALL, replications=5).to_arrow()


def test_a_wrong_setting_is_said_before_anything_is_sent(client):
    with pytest.raises(farcast.ScenarioError, match="link.forward.per"):
        farcast.sweep("mftp-bgan", {"link.forward.per": [0.1, 2]}, client=client)
