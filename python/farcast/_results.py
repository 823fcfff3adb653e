"""What runs come to."""

from __future__ import annotations

import html
import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


@dataclass(frozen=True)
class Measure:
    """A figure over replications. ``None`` is what there is not: a mean where a replication was not finished, an
    interval of one replication."""

    n: int
    mean: float | None = None
    sd: float | None = None
    ci95_half_width: float | None = None
    p05: float | None = None
    p50: float | None = None
    p95: float | None = None


def _needed(module: str, extra: str) -> Any:
    """The module, which comes with an extra of farcast; an error that names the extra where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"this needs {error.name}, which is not installed: pip install 'farcast[{extra}]' "
            f"(from the source: pip install '.[{extra}]')",
            name=error.name,
        ) from None


class _Table:
    """A table of all replications."""

    _swept: _native.Swept

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._swept.table().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """Every replication as a pyarrow table."""
        pyarrow = _needed("pyarrow", "arrow")
        return pyarrow.table(self._swept.table())

    def to_pandas(self) -> pandas.DataFrame:
        """Every replication as a pandas data frame."""
        _needed("pandas", "pandas")
        _needed("pyarrow", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Every replication as a polars data frame."""
        polars = _needed("polars", "polars")
        return polars.DataFrame(self._swept.table())

    @property
    def figures(self) -> list[str]:
        """The names of the figures, the completion time first."""
        return self._swept.columns()

    def _measures(self, figure: str) -> list[Measure]:
        meant = self._swept.find(figure)
        if meant is None:
            raise _native.ScenarioError(f"there is no figure {figure}, but {', '.join(self.figures)}")
        return [Measure(**one) for one in json.loads(self._swept.summary(meant))]

    @property
    def default_figure(self) -> str:
        """The figure that is asked for most: the completion time, or the goodput of what has no end."""
        if self._swept.has_end():
            return "completion_time_s"
        goodput = [name for name in self.figures if name.endswith(".goodput_bit_per_s")]
        return goodput[0] if goodput else "completion_time_s"


class Result(_Table):
    """What a simulation came to: ``result["forward.octets"]`` is the summary of a figure."""

    def __init__(self, swept: _native.Swept, name: str) -> None:
        self._swept, self.name = swept, name

    def __getitem__(self, figure: str) -> Measure:
        return self._measures(figure)[0]

    @property
    def completion_time_s(self) -> Measure:
        """When the last receiver had everything and the last flow of a size was complete, in seconds."""
        return self["completion_time_s"]

    @property
    def replications(self) -> int:
        """How many there are."""
        return self._swept.effort()[0]

    @property
    def unfinished(self) -> int:
        """Of these, how many reached the time limit."""
        return self._swept.unfinished()[0]

    def __repr__(self) -> str:
        return f"<farcast.Result of {self.name}: {self.replications} replications, {_shown(self[self.default_figure])}>"

    def _repr_html_(self) -> str:
        rows = [[figure, *_cells(self[figure])] for figure in self.figures]
        return _html(f"{self.name}: {self.replications} replications", ["figure", *_HEADING], rows)


class Sweep(_Table):
    """What a sweep came to, point by point in the order of the grid: the last key changes fastest."""

    def __init__(self, swept: _native.Swept, name: str) -> None:
        self._swept, self.name = swept, name

    @property
    def keys(self) -> list[str]:
        """The keys that were varied."""
        return self._swept.keys()

    @property
    def settings(self) -> list[dict[str, str]]:
        """The settings of each point, as they were said."""
        return [{key: said for key, (said, _) in zip(self.keys, point)} for point in self._swept.settings()]

    def values(self, key: str) -> list[float | str]:
        """The value of a key at each point: a number in its base unit (s, bit/s, B) where it is one."""
        place = self.keys.index(key)
        pairs = [point[place] for point in self._swept.settings()]
        return [said if number is None else number for said, number in pairs]

    def unit(self, key: str) -> str:
        """The unit of a key's values; empty where they have none."""
        return self._swept.unit(self.keys.index(key)) or ""

    def __getitem__(self, figure: str) -> list[Measure]:
        return self._measures(figure)

    @property
    def unfinished(self) -> list[int]:
        """Replications of each point that reached the time limit."""
        return self._swept.unfinished()

    @property
    def effort(self) -> dict[str, float]:
        """Replications, points that had been run before, time of cores and real time in seconds."""
        replications, kept, cpu_s, elapsed_s = self._swept.effort()
        return {"replications": replications, "kept": kept, "cpu_s": cpu_s, "elapsed_s": elapsed_s}

    def summary(self, figure: str | None = None) -> pyarrow.Table:
        """A row for each point: its settings, and the summary of a figure."""
        pyarrow = _needed("pyarrow", "arrow")
        measures = self[figure or self.default_figure]
        columns: dict[str, list[Any]] = {key: self.values(key) for key in self.keys}
        for name in ("n", "mean", "sd", "ci95_half_width", "p05", "p50", "p95"):
            columns[name] = [getattr(one, name) for one in measures]
        return pyarrow.table(columns)

    def plot(self, figure: str | None = None, x: str | None = None, ax: Any = None) -> Any:
        """Draws the mean of a figure with its 95 % interval over the key ``x``, a curve for each combination of the
        other keys, with matplotlib; the axes, to go on with."""
        pyplot = _needed("matplotlib.pyplot", "plot")
        figure, x = figure or self.default_figure, x or self.keys[0]
        ax = ax or pyplot.subplots(layout="constrained")[1]
        others = [key for key in self.keys if key != x]
        curves: dict[tuple[str, ...], list[tuple[float | str, Measure]]] = {}
        for at, settings, measure in zip(self.values(x), self.settings, self[figure]):
            curves.setdefault(tuple(settings[key] for key in others), []).append((at, measure))
        for named, points in curves.items():
            whole = [(at, one) for at, one in points if one.mean is not None]
            label = ", ".join(f"{key} = {value}" for key, value in zip(others, named)) or None
            ax.errorbar(
                [at for at, _ in whole],
                [one.mean for _, one in whole],
                yerr=[one.ci95_half_width or 0.0 for _, one in whole],
                marker="o",
                markersize=4,
                capsize=3,
                label=label,
            )
        positive = [at for at in self.values(x) if isinstance(at, float) and at > 0]
        if len(positive) == len(self) and max(positive) >= 20 * min(positive):
            ax.set_xscale("log")
        unit = self.unit(x)
        ax.set_xlabel(f"{x}, {unit}" if unit else x)
        ax.set_ylabel(figure)
        ax.set_title(f"{self.name}: mean and 95 % interval")
        ax.grid(alpha=0.3)
        if others:
            ax.legend()
        return ax

    def __len__(self) -> int:
        return len(self._swept)

    def __repr__(self) -> str:
        return f"<farcast.Sweep of {self.name}: {len(self)} points of {', '.join(self.keys)}>"

    def _repr_html_(self) -> str:
        figure = self.default_figure
        rows = [[*point.values(), *_cells(one)] for point, one in zip(self.settings, self[figure])]
        return _html(f"{self.name}: {figure}", [*self.keys, *_HEADING], rows)


@dataclass(frozen=True)
class Setting:
    """A setting of a race: what came of it, and by how much it is above the best on the same replications."""

    set: list[str]
    name: str
    is_default: bool
    fate: str
    replications: int
    value: float | None
    standard_error: float | None
    above_best: float | None
    above_best_error: float | None
    chance_of_best: float
    conditions: list[float | None]
    bounded: list[float | None]


@dataclass(frozen=True)
class Tuned:
    """What a race came to: the best setting first, and the plan that ``farcast send --plan`` takes."""

    scenario: str
    minimise: str
    settings: list[Setting]
    plan: str | None
    none_within_bounds: bool
    rounds: int
    replications: int
    full_grid: int
    cpu_s: float
    full_grid_cpu_s: float

    @property
    def best(self) -> Setting:
        """The best setting."""
        return self.settings[0]

    @property
    def default(self) -> Setting | None:
        """What the scenario itself says."""
        return next((one for one in self.settings if one.is_default), None)

    def _repr_html_(self) -> str:
        rows = [
            [one.name, _number(one.value), _number(one.above_best), str(one.replications), one.fate.replace("_", " ")]
            for one in self.settings
        ]
        return _html(f"{self.scenario}: the least {self.minimise}", ["setting", "value", "above the best", "n", ""], rows)


@dataclass(frozen=True)
class Comparison:
    """What differs in one figure: ``b`` less ``a``, and how sure that is."""

    words: str
    settings: list[list[str]]
    column: str
    a: dict[str, float]
    b: dict[str, float]
    difference: float
    half_width: float
    p: float
    p_adjusted: float
    ks: float
    ks_p: float
    differs: bool

    def __str__(self) -> str:
        return self.words


_HEADING = ["mean", "95 % interval", "5 %", "median", "95 %", "n"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _cells(one: Measure) -> list[str]:
    half = "" if one.ci95_half_width is None else f"\u00b1 {one.ci95_half_width:.3g}"
    return [_number(one.mean), half, _number(one.p05), _number(one.p50), _number(one.p95), str(one.n)]


def _shown(one: Measure) -> str:
    if one.mean is None:
        return "not all finished"
    half = "" if one.ci95_half_width is None else f" \u00b1 {one.ci95_half_width:.3g}"
    return f"mean {one.mean:.5g}{half}"


def _html(caption: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    def lines() -> Iterator[str]:
        yield f"<table><caption>{html.escape(caption)}</caption><thead>{line('th', heading)}</thead><tbody>"
        yield from (line("td", row) for row in rows[:200])
        yield "</tbody></table>"
        if len(rows) > 200:
            yield f"<p>and {len(rows) - 200} rows more</p>"

    return "".join(lines())
