"""Deliver files reliably over satellite and radio links; predict, compare and tune that.

>>> import farcast
>>> run = farcast.simulate("mftp-bgan", {"receivers": 80}, replications=10)
>>> run.completion_time_s.n
10

>>> sent = farcast.send("charts", to="239.255.1.1", rate="20 Mbit/s", receivers=["ship-1"])  # doctest: +SKIP

Results are tables: ``to_arrow()``, ``to_pandas()`` and ``to_polars()`` hand them over without copying, and anything that
speaks Arrow's PyCapsule interface reads them as they are.
"""

from . import models, stats
from ._native import FarcastError, RunError, ScenarioError, __version__
from ._results import Comparison, Measure, Result, Setting, Sweep, Tuned
from ._run import compare, reproduce, scenarios, simulate, studies, sweep, tune
from ._scenario import Scenario
from ._transfer import (
    Product,
    ReceiverState,
    Sent,
    Transfer,
    TransferError,
    Update,
    receive,
    send,
    start_receive,
    start_send,
)

__all__ = [
    "Comparison",
    "FarcastError",
    "Measure",
    "Product",
    "ReceiverState",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Setting",
    "Sweep",
    "Transfer",
    "TransferError",
    "Update",
    "Tuned",
    "__version__",
    "compare",
    "models",
    "receive",
    "reproduce",
    "scenarios",
    "send",
    "simulate",
    "start_receive",
    "start_send",
    "stats",
    "studies",
    "sweep",
    "tune",
]
