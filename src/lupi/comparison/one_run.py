"""Plan one run of a comparison without the others, for `lupi train`."""

from pathlib import Path

from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings, run_settings
from lupi.comparison.tuning import TuningSettings
from lupi.errors import LupiError
from lupi.settings import unknown_name
from lupi.train.settings import RunSettings


def plan_run(
    settings: ComparisonSettings,
    name: str | None,
    size: int | None,
    seed: int | None,
    records: Path,
) -> tuple[str, RunSettings]:
    """Return the name of an arm, and the settings of one of its runs.

    Args:
        settings: Settings of the comparison.
        name: Name of the arm, such as `het-dropout/shuffled`. By default the first.
        size: Number of training rows. By default the largest. One that the comparison does not
            have is trained like the largest.
        seed: Seed of the run. By default the first.
        records: Folder of the comparison, where tuning left its choice.
    """
    arms = {arm.name: arm for arm in settings.named_arms()}
    name = next(iter(arms)) if name is None else name
    if name not in arms:
        raise LupiError(f"--arm: {unknown_name('arm', name, list(arms))}")
    size = max(settings.sizes) if size is None else size
    seed = settings.seeds[0] if seed is None else seed
    like = size if size in settings.sizes_of(arms[name].settings) else max(settings.sizes)
    if isinstance(settings.tuning, TuningSettings):
        run = _tuned(settings, name, like, records)
    else:
        run = run_settings(settings, settings.task.with_content(), arms[name], like, seed)
    return name, run.changed(size=size, seed=seed)


def _tuned(settings: ComparisonSettings, arm: str, size: int, records: Path) -> RunSettings:
    from lupi.comparison.phases import tune  # waits for scipy

    plan = tune(make_plan(settings), records)
    if plan is None:
        raise LupiError(
            f"the settings of the arms are still to be tuned in {records}: run `lupi compare` "
            "first, or train with those that are given by `--set tuning=null`"
        )
    return next(run for planned, run in plan.runs if (planned.arm, planned.size) == (arm, size))
