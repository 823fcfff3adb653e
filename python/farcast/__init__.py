"""Predict, compare and tune reliable file delivery over satellite and radio links.

>>> import farcast
>>> run = farcast.simulate("mftp-bgan", {"receivers": 80}, replications=10)
>>> run.completion_time_s.n
10

Results are tables: ``to_arrow()``, ``to_pandas()`` and ``to_polars()`` hand them over without copying, and anything that
speaks Arrow's PyCapsule interface reads them as they are.
"""

from . import models, stats
from ._native import FarcastError, RunError, ScenarioError, __version__
from ._results import Comparison, Measure, Result, Setting, Sweep, Tuned
from ._run import compare, reproduce, scenarios, simulate, studies, sweep, tune
from ._scenario import Scenario

__all__ = [
    "Comparison",
    "FarcastError",
    "Measure",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Setting",
    "Sweep",
    "Tuned",
    "__version__",
    "compare",
    "models",
    "reproduce",
    "scenarios",
    "simulate",
    "stats",
    "studies",
    "sweep",
    "tune",
]
