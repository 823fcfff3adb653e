"""Scenarios: a shipped one's name, a file, a dictionary, or TOML."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _native

ScenarioLike = Union["Scenario", str, os.PathLike, Mapping[str, Any]]
Settings = Mapping[str, Any]


def literal(value: Any) -> str:
    """A value as ``--set KEY=VALUE`` has it."""
    if hasattr(value, "item"):  # a number or a truth of numpy's
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(quoted(one) for one in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {quoted(one)}" for key, one in value.items()) + "}"
    return str(value)


def _plain(value: Any) -> Any:
    """What JSON has for a value of numpy's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise _native.ScenarioError(f"{value!r} is no value that a scenario may have")


def quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else literal(value)


def assignments(settings: Settings | None) -> list[str]:
    return [f"{key}={literal(value)}" for key, value in (settings or {}).items()]


class Scenario:
    """A scenario, or a link with the flows that are sent over it.

    ``source`` is the name of one that ships with farcast, the path of a TOML file, TOML itself (a text with a line
    break), or a dictionary with the same keys. ``settings`` are laid over it, by their dotted keys; ``traffic`` is what
    is sent over a link alone, as in ``"tcp, size = 10 MB"``.
    """

    def __init__(
        self, source: ScenarioLike, settings: Settings | None = None, traffic: Iterable[str] | str = ()
    ) -> None:
        if isinstance(source, Scenario):
            native, self.name = source._native, source.name
        elif isinstance(source, Mapping):
            native, self.name = _native.Scenario.of_json(json.dumps(source, default=_plain)), str(source.get("name", "scenario"))
        else:
            text = os.fspath(source)
            if "\n" in text:
                native, self.name = _native.Scenario.parse("scenario", text), "scenario"
            else:
                native, self.name = _native.Scenario.open(text), text
        flows: Sequence[str] = [traffic] if isinstance(traffic, str) else list(traffic)
        is_changed = bool(settings) or bool(flows) or not isinstance(source, Scenario)
        self._native = native.with_settings(assignments(settings), list(flows)) if is_changed else native

    @property
    def toml(self) -> str:
        """The scenario as TOML, with what was laid over it."""
        return self._native.text()

    def keys(self) -> dict[str, tuple[str, str]]:
        """Every key in effect: its value as TOML, and whether that is the file's, was set, or is the default."""
        return {key: (value, origin) for key, value, origin in self._native.keys()}

    def __repr__(self) -> str:
        return f"Scenario({self.name!r})"
