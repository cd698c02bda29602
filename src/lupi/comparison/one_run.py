"""One run of a comparison, planned without the others: what `lupi train` does."""

from pathlib import Path

from lupi.comparison.arms import controls_of, named_arms, run_settings, sizes_of, with_control
from lupi.comparison.phases import tune
from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.comparison.tuning import TuningSettings
from lupi.errors import LupiError
from lupi.settings import unknown_name
from lupi.train.settings import RunSettings


def plan_run(
    settings: ComparisonSettings,
    arm: str | None,
    size: int | None,
    seed: int | None,
    records: Path,
) -> tuple[str, RunSettings]:
    """Return the name of an arm, and its run with a size and a seed.

    Args:
        settings: of the comparison.
        arm: such as `het-dropout/shuffled`; by default the first.
        size: training rows; by default the largest. One that the comparison does not have is
            trained like the largest.
        seed: by default the first.
        records: of the comparison, where tuning has left its choice.
    """
    named = {
        with_control(name, control): (name, one, control)
        for _, name, one in named_arms(settings)
        for control in controls_of(one)
    }
    arm = arm or next(iter(named))
    if arm not in named:
        raise LupiError(f"--arm: {unknown_name('arm', arm, list(named))}")
    size = max(settings.sizes) if size is None else size
    seed = settings.seeds[0] if seed is None else seed
    name, one, control = named[arm]
    like = size if size in sizes_of(settings, one) else max(settings.sizes)
    if isinstance(settings.tuning, TuningSettings):
        return arm, _tuned(settings, arm, like, records).placed(size=size, seed=seed)
    run = run_settings(settings, name, one, like, seed)
    return arm, run.placed(size=size, control=control)


def _tuned(settings: ComparisonSettings, arm: str, size: int, records: Path) -> RunSettings:
    plan = tune(make_plan(settings), records)
    if plan is None:
        raise LupiError(
            f"the settings of the arms are still to be tuned in {records}: run `lupi compare` "
            "first, or train with those that are given by `--set tuning=null`"
        )
    return next(run for planned, run in plan.runs if (planned.arm, planned.size) == (arm, size))
