"""Where to look for good settings: ranges and lists, and random draws from them.

    settings.prior: [0.25, 0.5, 1]
    settings.beta: {low: 0.01, high: 10, log: true}

A key is the path of a setting in a run: `settings.…` of the method, `network.…` or `train.…`.
"""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

from pydantic import model_validator

from lupi.errors import LupiError
from lupi.settings import Settings

SIGNIFICANT = 3
"""Digits of a drawn number: finer differences change no result, and it can be read."""


class Range(Settings):
    """Any number between two."""

    low: float
    high: float
    log: bool = False
    """Draw evenly in the logarithm: between 0.01 and 1 as often below 0.1 as above."""

    @model_validator(mode="after")
    def _has_an_inside(self) -> "Range":
        if not self.low < self.high:
            raise ValueError("low must be below high")
        if self.log and self.low <= 0:
            raise ValueError("with `log` low must be above 0")
        return self

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (", log" if self.log else "")


Choices = Range | tuple[Any, ...]
"""The values that a setting may take."""

Space = Mapping[str, Choices]
"""What may be chosen for each key."""


def parse_space(raw: Mapping[str, Any], where: str) -> Space:
    """Read what stands in settings; `where` is the key under which it stands."""
    return {key: _parse(choices, f"{where}.{key}") for key, choices in raw.items()}


def _parse(raw: Any, where: str) -> Choices:
    if isinstance(raw, Mapping):
        return Range.parse(raw, where)
    if isinstance(raw, list | tuple) and raw:
        return tuple(raw)
    raise LupiError(f"{where}: got {raw!r}; expected a list of values, or {{low: …, high: …}}")


def draw(space: Space, chance: Random) -> dict[str, Any]:
    """Draw a value for each key."""
    return {key: _value(choices, chance) for key, choices in space.items()}


def _value(choices: Choices, chance: Random) -> Any:
    if isinstance(choices, tuple):
        return chance.choice(choices)
    low, high = choices.low, choices.high
    if choices.log:
        low, high = math.log(low), math.log(high)
    value = chance.uniform(low, high)
    return float(f"{math.exp(value) if choices.log else value:.{SIGNIFICANT}g}")


def shown(choices: Choices) -> str:
    """Write the values for people: `0.1 to 4, log`, or `1, 2, 5`."""
    return str(choices) if isinstance(choices, Range) else ", ".join(map(str, choices))
