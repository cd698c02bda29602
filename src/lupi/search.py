"""Search spaces of tuning: ranges and lists of values, and random draws from them.

    settings.prior: [0.25, 0.5, 1]
    settings.beta: {low: 0.01, high: 10, log: true}

A key is the path of a setting of a run: `settings.…` of the method, `network.…` or `train.…`.
"""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

from pydantic import model_validator

from lupi.errors import LupiError
from lupi.settings import Settings

SIGNIFICANT = 3
"""Significant digits of a drawn number, so that it is easy to read."""


class Range(Settings):
    """All numbers between two."""

    low: float
    high: float
    log: bool = False
    """Draw uniformly in the logarithm: between 0.01 and 1, half of the draws are below 0.1."""

    @model_validator(mode="after")
    def _check_ends(self) -> "Range":
        if not self.low < self.high:
            raise ValueError("low must be below high")
        if self.log and self.low <= 0:
            raise ValueError("with `log` low must be above 0")
        return self

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (", log" if self.log else "")


Choices = Range | tuple[Any, ...]
"""Values that a setting may take."""

Space = Mapping[str, Choices]
"""Values that each setting may take, by its path."""


def parse_space(raw: Mapping[str, Any], where: str) -> Space:
    """Return a search space from raw settings; `where` is their key, for messages."""
    return {key: _parse(choices, f"{where}.{key}") for key, choices in raw.items()}


def _parse(raw: Any, where: str) -> Choices:
    if isinstance(raw, Mapping):
        return Range.parse(raw, where)
    if isinstance(raw, list | tuple) and raw:
        return tuple(raw)
    raise LupiError(f"{where}: got {raw!r}; expected a list of values, or {{low: …, high: …}}")


def draw(space: Space, rng: Random) -> dict[str, Any]:
    """Draw a value for each key."""
    return {key: _value(choices, rng) for key, choices in space.items()}


def _value(choices: Choices, rng: Random) -> Any:
    if isinstance(choices, tuple):
        return rng.choice(choices)
    low, high = choices.low, choices.high
    if choices.log:
        low, high = math.log(low), math.log(high)
    value = rng.uniform(low, high)
    return float(f"{math.exp(value) if choices.log else value:.{SIGNIFICANT}g}")


def format_choices(choices: Choices) -> str:
    """Return values as text: `0.1 to 4, log`, or `1, 2, 5`."""
    return str(choices) if isinstance(choices, Range) else ", ".join(map(str, choices))
