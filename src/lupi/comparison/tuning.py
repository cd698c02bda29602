"""Candidates of tuning for each arm: its given settings, and random draws from its ranges.

Every arm gets the same number of candidates, the same trial seeds and the same training rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Literal

from pydantic import Field

from lupi.core import derive_seed
from lupi.errors import LupiError
from lupi.methods.registry import find_method
from lupi.search import Range, Space, draw, parse_space
from lupi.settings import Settings, merge
from lupi.train.settings import RunSettings

FIRST_SEED = 10_000
"""First seed of trials: none of the comparison's, even if it gets more."""
N_DRAWS = 50
"""Draws per candidate before a space counts as exhausted."""
SEARCHED = ("settings", "network", "train")
"""The parts of a run that may be searched."""


class TuningSettings(Settings):
    """How each arm's settings are chosen before the comparison, by validation scores alone."""

    n_trials: int = Field(6, ge=2, le=1000)
    """Number of candidates for each arm; the first is the arm as given."""
    seeds: int = Field(2, ge=1, le=1000)
    """Number of trials per candidate, with seeds that the comparison does not use."""
    size: int | None = Field(None, ge=1)
    """Number of training rows of the trials. By default the middle size of the comparison."""
    controls: Literal["own", "shared"] = "own"
    """`own`: each control is tuned itself. `shared`: it gets the settings of the arm with real x*,
    which saves trials and favours x*."""

    def trial_seeds(self, taken: Sequence[int]) -> list[int]:
        """Return the seeds of the trials, none of which is in `taken`."""
        free = (seed for seed in range(FIRST_SEED, 2**31) if seed not in taken)
        return [next(free) for _ in range(self.seeds)]

    def trial_size(self, sizes: Sequence[int]) -> int:
        """Return the number of training rows of the trials: by default the (lower) middle size."""
        return sorted(sizes)[(len(sizes) - 1) // 2] if self.size is None else self.size


def list_candidates(
    name: str, given: RunSettings, search: Mapping[str, Any] | None, n_trials: int
) -> Iterator[tuple[dict[str, Any], RunSettings]]:
    """Yield candidates: changes to an arm, and the settings of a run with them; first no changes.

    The draws depend on the arm's name only, so more trials extend fewer. If a space has fewer
    settings than trials, all of them are tried.
    """
    space = _default_space(given) if search is None else _given_space(name, given, search)
    yield {}, given
    chance = Random(derive_seed(0, "tuning", name))
    seen = {given.run_id}
    for _ in range(N_DRAWS * n_trials):
        if len(seen) == n_trials or not space:
            return
        changes = draw(space, chance)
        run = with_changes(name, given, changes)
        if run.run_id not in seen:
            seen.add(run.run_id)
            yield changes, run


def _default_space(given: RunSettings) -> Space:
    """Return the ranges of the method, without keys that this network does not have.

    A setting whose value in the arm has keys, such as a prior inside and outside, is not searched:
    a number from a range would be another method.
    """
    resolved = given.resolved()
    space = find_method(given.method).searched(resolved["settings"])
    return {key: space[key] for key in space if _is_plain(resolved, key)}


def _is_plain(resolved: Mapping[str, Any], key: str) -> bool:
    part, _, rest = key.partition(".")
    return rest in resolved[part] and not isinstance(resolved[part][rest], Mapping)


def _given_space(name: str, given: RunSettings, search: Mapping[str, Any]) -> Space:
    """Return the ranges that an arm gives; all listed values and ends of ranges are checked."""
    space = parse_space(search, f"arms.{name}.search")
    for key, choices in space.items():
        if key.partition(".")[0] not in SEARCHED or "." not in key:
            raise LupiError(
                f"arms.{name}.search: got the key {key!r}; it must be the path of a setting, such "
                f"as settings.prior, network.dropout or train.lr"
            )
        values = (choices.low, choices.high) if isinstance(choices, Range) else choices
        for value in values:
            with_changes(name, given, {key: value})
    return space


def with_changes(name: str, given: RunSettings, changes: Mapping[str, Any]) -> RunSettings:
    """Return the settings of a run with other values at some paths."""
    raw = given.resolved()
    for key, value in changes.items():
        change = value
        for part in reversed(key.split(".")):
            change = {part: change}
        raw = merge(raw, change)
    try:
        return RunSettings.parse(raw, "")
    except LupiError as error:
        raise LupiError(f"arms.{name}.search: {error}") from None
