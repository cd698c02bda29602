"""What tuning tries for each arm: the arm as it was given, and random draws from its ranges.

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
"""Trial seeds count from here: apart from the comparison's, and the same when it gets more."""
N_DRAWS = 50
"""Draws for each candidate wanted, before a space counts as exhausted."""
SEARCHED = ("settings", "network", "train")
"""The parts of a run that may be searched."""


class TuningSettings(Settings):
    """How each arm's settings are chosen before the comparison, by validation scores alone."""

    n_trials: int = Field(6, ge=2, le=1000)
    """Candidates for each arm; the first is the arm as it is given."""
    seeds: int = Field(2, ge=1, le=1000)
    """Trials of each candidate, with seeds that the comparison does not have."""
    size: int | None = Field(None, ge=1)
    """Training rows of the trials. By default the comparison's middle size."""
    controls: Literal["own", "shared"] = "own"
    """Each control is tuned on its `own`, or shares what is chosen for the arm with real x*,
    which saves its trials and favours x*."""

    def trial_seeds(self, taken: Sequence[int]) -> list[int]:
        """Return the seeds of the trials, none of which is taken by the comparison."""
        free = (seed for seed in range(FIRST_SEED, 2**31) if seed not in taken)
        return [next(free) for _ in range(self.seeds)]

    def trial_size(self, sizes: Sequence[int]) -> int:
        """Return the training rows of the trials; of an even number of sizes the lower middle."""
        return sorted(sizes)[(len(sizes) - 1) // 2] if self.size is None else self.size


def try_for(
    name: str, given: RunSettings, search: Mapping[str, Any] | None, n_trials: int
) -> Iterator[tuple[dict[str, Any], RunSettings]]:
    """Yield the changes that an arm is tried with and the settings they make: first no changes.

    The draws depend on the arm's name only, so more trials go on from fewer. A space with fewer
    settings than trials is tried as a whole.
    """
    space = _declared(given) if search is None else _own(name, given, search)
    yield {}, given
    chance = Random(derive_seed(0, "tuning", name))
    seen = {given.run_id}
    for _ in range(N_DRAWS * n_trials):
        if len(seen) == n_trials or not space:
            return
        changes = draw(space, chance)
        run = changed(name, given, changes)
        if run.run_id not in seen:
            seen.add(run.run_id)
            yield changes, run


def _declared(given: RunSettings) -> Space:
    """Return the method's own ranges, without keys that this network does not have.

    Where the arm has keys and values, such as a prior inside and outside, a number from a range
    would be another method: it stays as it is.
    """
    resolved = given.resolved()
    space = find_method(given.method).searched(given.settings)
    return {key: space[key] for key in space if _is_plain(resolved, key)}


def _is_plain(resolved: Mapping[str, Any], key: str) -> bool:
    part, _, rest = key.partition(".")
    return rest in resolved[part] and not isinstance(resolved[part][rest], Mapping)


def _own(name: str, given: RunSettings, search: Mapping[str, Any]) -> Space:
    """Return an arm's own ranges; every value of a list and both ends of a range are tried."""
    space = parse_space(search, f"arms.{name}.search")
    for key, choices in space.items():
        if key.partition(".")[0] not in SEARCHED or "." not in key:
            raise LupiError(
                f"arms.{name}.search: got the key {key!r}; it must be the path of a setting, such "
                f"as settings.prior, network.dropout or train.lr"
            )
        values = (choices.low, choices.high) if isinstance(choices, Range) else choices
        for value in values:
            changed(name, given, {key: value})
    return space


def changed(name: str, given: RunSettings, changes: Mapping[str, Any]) -> RunSettings:
    """Return a run of an arm with other values at some paths."""
    raw = given.resolved()
    for key, value in changes.items():
        change = value
        for part in reversed(key.split(".")):
            change = {part: change}
        raw = merge(raw, change)
    try:
        return RunSettings.parse(raw, "").resolve()
    except LupiError as error:
        raise LupiError(f"arms.{name}.search: {error}") from None
