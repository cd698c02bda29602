"""`lupi.list_methods`: all methods and their settings."""

import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from lupi.errors import LupiError
from lupi.settings import unknown_name
from lupi.train.learners import Learner, learners


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """A method, or a classical model, and its documentation."""

    name: str
    summary: str
    """One line."""
    uses_xstar: bool
    sees_xstar_at_test: bool
    """True for an oracle only."""
    kinds: tuple[str, ...]
    """Kinds of x* that it can use: region, vector."""
    classical: bool
    doc: str
    """What it computes, its source, and how it deviates from that."""
    settings: dict[str, tuple[Any, str]]
    """Default and meaning of each setting."""

    def __str__(self) -> str:
        """Return the documentation and the settings as text."""
        lines = [f"{self.name}: {self.summary}", "", self.doc, ""]
        for key, (default, meaning) in self.settings.items():
            lines.append(f"{key} = {json.dumps(default, default=str)}  {meaning}".rstrip())
        return "\n".join(lines)


class MethodList(dict[str, MethodInfo]):
    """Methods by name, shown as a table."""

    def __repr__(self) -> str:
        """Return a line per method."""
        return "\n".join(f"{info.name:20} {info.summary}" for info in self.values())

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        cells = ((i.name, "yes" if i.uses_xstar else "no", i.summary) for i in self.values())
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in cells
        )
        head = "<tr><th>method</th><th>uses x*</th><th>what it does</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def list_methods(name: str | None = None) -> MethodList:
    """Return all methods and classical models by name, with their documentation.

    Args:
        name: Return only the method of this name.

    Example:
        >>> print(lupi.list_methods()["het-dropout"])
    """
    known = learners()
    if name is not None:
        if name not in known:
            raise LupiError(unknown_name("method", name, list(known)))
        known = {name: known[name]}
    return MethodList({key: _describe(learner) for key, learner in known.items()})


def _describe(learner: Learner) -> MethodInfo:
    module = inspect.getmodule(learner)
    return MethodInfo(
        name=learner.name,
        summary=learner.summary,
        uses_xstar=learner.uses_xstar,
        sees_xstar_at_test=learner.sees_xstar_at_test,
        kinds=tuple(learner.kinds),
        classical=learner.classical,
        doc=inspect.cleandoc((module.__doc__ if module else None) or learner.__doc__ or ""),
        settings=dict(_settings(learner)),
    )


def _settings(learner: Learner) -> Iterator[tuple[str, tuple[Any, str]]]:
    for key, field in learner.Settings.fields().items():
        yield key, (field.default, " ".join((field.description or "").split()))
