"""The arms of a comparison by their names, and the settings of their runs."""

from collections.abc import Iterator
from typing import Any

from lupi.comparison.settings import ArmSettings, ComparisonSettings
from lupi.core import Control
from lupi.errors import LupiError
from lupi.evidence.roles import REFERENCE_METHOD
from lupi.settings import merge
from lupi.train.learners import find_learner
from lupi.train.settings import RunSettings


def named_arms(settings: ComparisonSettings) -> Iterator[tuple[str, str, ArmSettings]]:
    """Yield each arm with its key in the settings and its name, which fractions tell apart."""
    for key, arm in settings.arms.items():
        for setting in ("controls", "xstar_fracs"):
            if getattr(arm, setting) and not find_learner(arm.method).uses_xstar:
                raise LupiError(
                    f"arms.{key}.{setting}: {arm.method} does not use x*: drop `{setting}`"
                )
        if arm.xstar_fracs and arm.xstar_frac != 1:
            raise LupiError(f"arms.{key}: give either `xstar_frac` or `xstar_fracs`, not both")
        if "lexicon" in arm.controls and not settings.task.get("lexicon"):
            raise LupiError(
                f"arms.{key}.controls: lexicon needs task.lexicon, a file with a word list (of "
                "texts only)"
            )
        for name, one in arm.fractions(key):
            yield key, name, one


def uses_xstar(arm: ArmSettings) -> bool:
    """Tell whether any training row of an arm shows its x*."""
    return find_learner(arm.method).uses_xstar and arm.xstar_frac > 0


def controls_of(arm: ArmSettings) -> tuple[Control, ...]:
    """Return what x* is in the arm and in its controls; without x* there is nothing to replace."""
    return ("real", *arm.controls) if uses_xstar(arm) else ("real",)


def sizes_of(settings: ComparisonSettings, arm: ArmSettings) -> list[int]:
    """Return the training-set sizes of an arm."""
    return sorted({*settings.sizes, *arm.extra_sizes})


def with_control(name: str, control: Control) -> str:
    """Return the name of an arm under a control."""
    return name if control == "real" else f"{name}/{control}"


def run_settings(
    settings: ComparisonSettings, name: str, arm: ArmSettings, size: int, seed: int
) -> RunSettings:
    """Return the resolved settings of a run with real x*."""
    raw = {
        "task": settings.task,
        "network": merge(settings.network, arm.network),
        "train": merge(merge(settings.train, settings.train_by_size.get(size, {})), arm.train),
        "method": arm.method,
        "settings": arm.settings,
        "xstar_frac": arm.xstar_frac,
        "size": size,
        "seed": seed,
    }
    try:
        return RunSettings.parse(raw, "").resolve()
    except LupiError as error:
        _check_shared(settings, raw, size)
        raise LupiError(f"arm {name}: {error}") from None


def _check_shared(settings: ComparisonSettings, raw: dict[str, Any], size: int) -> None:
    """Raise what is wrong with the settings that all arms share: no arm is to blame for that."""
    shared = {
        **raw,
        "network": settings.network,
        "train": merge(settings.train, settings.train_by_size.get(size, {})),
        "method": REFERENCE_METHOD,
        "settings": {},
    }
    RunSettings.parse(shared, "").resolve()
