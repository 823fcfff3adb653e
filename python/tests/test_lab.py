"""The laboratory from Python: the same numbers as the command line, in tables that others read."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import farcast
from farcast import _native

SMALL = {"receivers": 10, "protocol.file": "60 kB"}


def test_a_simulation_is_a_table_and_a_summary():
    run = farcast.simulate("mftp-bgan", SMALL, replications=12, seed=3)
    assert run.replications == 12 and run.unfinished == 0
    table = run.to_arrow()
    times = table["completion_time_s"].to_pylist()
    time_ = run.completion_time_s
    assert time_.n == 12 and math.isclose(time_.mean, sum(times) / 12, rel_tol=1e-12)
    sd = math.sqrt(sum((one - time_.mean) ** 2 for one in times) / 11)
    # Student's t of 11 degrees of freedom at 97.5 %.
    assert math.isclose(time_.ci95_half_width, 2.200985160 * sd / math.sqrt(12), rel_tol=1e-8)
    assert farcast.simulate("mftp-bgan", SMALL, replications=12, seed=3, threads=1).to_arrow() == table
    assert farcast.simulate("mftp-bgan", SMALL, replications=12, seed=4).to_arrow() != table
    assert "completion_time_s" in run._repr_html_()


def test_three_readers_see_the_same_without_a_copy():
    run = farcast.sweep("mftp-bgan", {"protocol.srt.n": [2, 4]}, SMALL, replications=5)
    arrow, frame, polar = run.to_arrow(), run.to_pandas(), run.to_polars()
    assert isinstance(frame, pandas.DataFrame) and isinstance(polar, polars.DataFrame)
    assert arrow.column_names == list(frame.columns) == polar.columns
    for name in arrow.column_names:
        assert arrow[name].to_pylist() == polar[name].to_list()
    assert pyarrow.table(run) == arrow
    # The buffers are those that farcast filled: two readers, one address.
    table = run._swept.table()
    address = [pyarrow.table(table)["completion_time_s"].chunk(0).buffers()[1].address for _ in range(2)]
    assert address[0] == address[1]


def test_a_scenario_is_a_name_a_file_a_text_or_a_dictionary(tmp_path: pathlib.Path):
    link = {"rate": "1 Mbit/s", "delay": "250 ms"}
    described = {
        "receivers": 5,
        "protocol": {"name": "mftp", "file": "100 kB", "rate": "1 Mbit/s"},
        "link": {"forward": {**link, "per": 0.01}, "return": link},
    }
    once = farcast.simulate(described, replications=3).to_arrow()
    text = farcast.Scenario(described).toml
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert farcast.simulate(text, replications=3).to_arrow() == once
    assert farcast.simulate(path, replications=3).to_arrow() == once
    keys = farcast.Scenario(described, {"link.forward.per": 0.02}).keys()
    assert keys["link.forward.per"] == ("0.02", "set") and keys["receivers"] == ("5", "file")
    flows = farcast.simulate("geo", traffic="tcp, size = 100 kB", replications=2)
    assert any(name.startswith("flows.tcp-1.") for name in flows.figures)


def test_errors_are_the_same_sentences():
    with pytest.raises(farcast.ScenarioError, match="--set receivers=-1: receivers: -1 is out of range"):
        farcast.simulate("mftp-bgan", {"receivers": -1})
    with pytest.raises(farcast.ScenarioError, match="is no file, nor one of the shipped scenarios"):
        farcast.simulate("no-such")
    with pytest.raises(farcast.ScenarioError, match="n=9..2.*is no range|is no range"):
        farcast.sweep("mftp-bgan", {"protocol.srt.n": "9..2"})
    with pytest.raises(farcast.ScenarioError, match="there is no figure speed, but completion_time_s"):
        farcast.simulate("mftp-bgan", SMALL, replications=2)["speed"]
    with pytest.raises(farcast.ScenarioError):
        farcast.stats.t_interval([1.0])
    assert issubclass(farcast.ScenarioError, farcast.FarcastError)


def test_numbers_of_numpy_and_numbers_that_cannot_be():
    import numpy

    described = {
        "receivers": numpy.int64(5),
        "engines": numpy.bool_(False),
        "protocol": {"name": "mftp", "file": "100 kB", "rate": "1 Mbit/s"},
        "link": {"forward": {"rate": "1 Mbit/s", "delay": "250 ms", "per": numpy.float64(0.01)}},
    }
    once = farcast.simulate(described, replications=numpy.int64(3), seed=numpy.uint8(1))
    assert once.replications == 3
    set_ = farcast.simulate("mftp-bgan", {**SMALL, "engines": numpy.bool_(True)}, replications=2)
    assert set_.to_arrow() == farcast.simulate("mftp-bgan", {**SMALL, "engines": True}, replications=2).to_arrow()
    for wrong in ({"seed": -1}, {"seed": 2**64}, {"replications": -3}, {"replications": 1.5}, {"threads": -1}, {"most": -1}):
        (name,) = wrong
        with pytest.raises(farcast.ScenarioError, match=f"{name} = .*it must be a whole number"):
            farcast.simulate("mftp-bgan", SMALL, **{"replications": 2, **wrong})
    for wrong in ({"seed": -1}, {"first": -1}, {"replications": -1}, {"threads": -1}):
        with pytest.raises(farcast.ScenarioError, match="it must be a whole number"):
            farcast.tune("mftp-bgan", {"protocol.srt.n": [2, 4]}, SMALL, **wrong)
    with pytest.raises(farcast.ScenarioError, match="seed = -1"):
        farcast.reproduce("tcp-mlppp", seed=-1)
    with pytest.raises(farcast.ScenarioError, match="is varied, and set as well"):
        farcast.sweep("mftp-bgan", {"receivers": [2, 3]}, {"receivers": 5})


def test_results_are_pickled_and_copied():
    run = farcast.simulate("mftp-bgan", SMALL, replications=4)
    swept = farcast.sweep("mftp-bgan", {"protocol.srt.n": [2, 4], "link.forward.per": [0.001, 0.01]}, SMALL, replications=3)
    for one in (run, swept):
        for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
            assert type(again) is type(one) and again.name == one.name
            assert again.to_arrow() == one.to_arrow() and again.figures == one.figures
    assert pickle.loads(pickle.dumps(swept)).settings == swept.settings
    assert pickle.loads(pickle.dumps(swept)).effort == swept.effort
    tuned = farcast.tune("mftp-bgan", {"protocol.srt.n": [2, 4]}, SMALL, replications=4, first=2)
    assert copy.deepcopy(tuned) == tuned and pickle.loads(pickle.dumps(tuned)) == tuned
    late = farcast.simulate("mftp-bgan", {**SMALL, "time_limit": "1 s"}, replications=2)
    assert pickle.loads(pickle.dumps(late)).unfinished == 2


def test_a_figure_answers_to_the_names_that_it_had():
    run = farcast.simulate("mftp-bgan", SMALL, replications=3)
    assert run["octets_forward"] == run["forward_octets"] == run["forward.octets"]


def test_what_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    run = farcast.simulate("mftp-bgan", SMALL, replications=2)
    swept = farcast.sweep("mftp-bgan", {"protocol.srt.n": [2, 4]}, SMALL, replications=2)
    calls = {"pandas": run.to_pandas, "polars": run.to_polars, "pyarrow": run.to_arrow, "matplotlib": swept.plot}
    extras = {"pandas": "pandas", "polars": "polars", "pyarrow": "arrow", "matplotlib": "plot"}
    for module, call in calls.items():
        with monkeypatch.context() as without:
            for name in [name for name in sys.modules if name.split(".")[0] == module]:
                without.delitem(sys.modules, name)
            without.setattr(sys, "meta_path", [Missing(module), *sys.meta_path])
            with pytest.raises(ModuleNotFoundError, match=f"farcast\\[{extras[module]}\\]"):
                call()


class Missing:
    """Finds that a module is not installed."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] == self.module:
            raise ModuleNotFoundError(f"No module named {self.module!r}", name=self.module)


def test_ctrl_c_ends_what_another_thread_runs():
    script = """if True:
        import threading, time, farcast
        def work():
            try:
                farcast.sweep("mftp-bgan", {"receivers": "1000..1100"}, replications=2000)
            except KeyboardInterrupt:
                print("ended", flush=True)
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.5)
        print("runs", flush=True)
        thread.join()
    """
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "runs\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert "ended" in out and time.monotonic() - begin < 20, out


def test_times_of_models_have_units():
    law = farcast.models.mathis(0.001, 0.56)
    assert farcast.models.mathis(0.001, "560 ms") == law
    assert farcast.models.pftk(0.001, "560 ms", timeout_s="2 s") == farcast.models.pftk(0.001, 0.56, timeout_s=2.0)
    assert farcast.models.cardwell(100, 0.001, "560 ms", delayed_ack_s="100 ms") == farcast.models.cardwell(
        100, 0.001, 0.56, delayed_ack_s=0.1
    )
    with pytest.raises(farcast.ScenarioError, match="rtt_s = "):
        farcast.models.mathis(0.001, "560")
    assert "seconds" in farcast.models.__doc__


def test_a_sweep_goes_on_where_it_was(tmp_path: pathlib.Path):
    vary = {"link.forward.per": "0.001..0.02*3", "protocol.srt.n": [2, 4]}
    once = farcast.sweep("mftp-bgan", vary, SMALL, replications=5, out=tmp_path / "a")
    assert once.effort["kept"] == 0
    again = farcast.sweep("mftp-bgan", vary, SMALL, replications=5, out=tmp_path / "a")
    assert again.effort["kept"] == 6 and again.to_arrow() == once.to_arrow()
    written = pyarrow.parquet.read_table(tmp_path / "a" / "sweep.parquet")
    assert written.column_names == once.to_arrow().column_names
    assert written["completion_time_s"].to_pylist() == once.to_arrow()["completion_time_s"].to_pylist()
    about = written.schema.metadata
    assert b"mftp" in about[b"farcast.scenario"] and about[b"farcast.seed"] == b"1" and about[b"farcast.version"]
    # The order of the keys is that of the dictionary, the last changes fastest.
    assert once.settings[1] == {"link.forward.per": "0.001", "protocol.srt.n": "4"}
    summary = once.summary("forward.octets").to_pydict()
    assert summary["n"] == [5] * 6 and summary["link.forward.per"][0] == 0.001


def test_a_race_and_a_comparison():
    tuned = farcast.tune("mftp-bgan", {"protocol.srt.n": "1..6"}, {"receivers": 40}, replications=60)
    assert tuned.default is not None and tuned.default.set == ["protocol.srt.n=4"]
    assert tuned.best.fate == "best" and tuned.plan is not None and "[protocol]" in tuned.plan
    assert tuned.replications < tuned.full_grid
    runs = [farcast.simulate("mftp-bgan", {"protocol.srt.n": n}, replications=30) for n in (4, 6)]
    (one,) = farcast.compare(*runs, paired=True)
    assert one.differs and one.difference > 0 and str(one).startswith("completion_time_s is ")


def test_the_lock_is_free_and_ctrl_c_ends_it():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            farcast.sweep("mftp-bgan", {"receivers": "1000..1100"}, replications=2000)
    finally:
        stop.set()
        thread.join()
        timer.join()
    took = time.monotonic() - begin
    assert took < 20, took
    assert len(ticks) > 5, "no other thread ran meanwhile"


def test_studies_models_and_statistics():
    rows = farcast.reproduce("tcp-mlppp", replications=2)
    assert rows and {"paper", "published", "farcast", "verdict"} <= set(rows[0])
    assert "mftp-bgan" in farcast.studies() and "geo" in farcast.scenarios()
    # sqrt(3 / (2 b p)) / RTT, the law of Mathis et al. with an ACK for each two packets.
    law = farcast.models.mathis(0.001, 0.56)["throughput_packets_per_s"]
    assert math.isclose(law, math.sqrt(3 / (2 * 2 * 0.001)) / 0.56, rel_tol=1e-12)
    # scipy 1.17: ttest_rel of these.
    a, b = [10.1, 11.4, 9.8, 12.0, 10.9, 11.1], [10.6, 12.1, 10.2, 12.4, 11.5, 11.3]
    assert math.isclose(farcast.stats.paired(b, a)["p"], 0.001262161779623473, rel_tol=1e-9)
    assert farcast.stats.holm([0.01, 0.04]) == [0.02, 0.04]


def test_stubs_name_what_is_there():
    stub = (pathlib.Path(farcast.__file__).parent / "_native.pyi").read_text()
    for name in dir(_native):
        if not name.startswith("_") or name == "__version__":
            assert name in stub, name
    for kind in (_native.Scenario, _native.Sweep, _native.Swept, _native.Gathering, _native.Table):
        for name, _ in inspect.getmembers(kind):
            if not name.startswith("_"):
                assert f"def {name}(" in stub, f"{kind.__name__}.{name}"


def test_the_lines_of_the_readme(tmp_path: pathlib.Path):
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    blocks = [block.split("```")[0] for block in readme.split("```python\n")[1:]]
    assert blocks, "the README has no Python"
    ran = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "per.png").stat().st_size > 10_000


def test_the_notebook_runs(tmp_path: pathlib.Path):
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    for path in sorted((pathlib.Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        kinds = json.dumps([list(output.get("data", {})) for output in outputs])
        assert "image/png" in kinds and "text/html" in kinds, f"{path.name} shows nothing"
