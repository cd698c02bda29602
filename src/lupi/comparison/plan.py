"""Plan the runs of a comparison, and check them before the first one starts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lupi.comparison.settings import ComparisonSettings, run_settings
from lupi.comparison.tuning import TuningSettings, list_candidates
from lupi.core import Task
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.preflight.data import check_data
from lupi.records import Arm, Candidate, Design, Looks, Metric, PlannedRun, planned_trials
from lupi.settings import TaskSettings, unknown_name
from lupi.tasks.registry import TaskLoader
from lupi.train.learners import find_learner, try_learner
from lupi.train.settings import RunSettings


@dataclass(frozen=True, slots=True)
class Plan:
    """Arms and runs of a comparison."""

    settings: ComparisonSettings
    arms: list[Arm]
    metric: Metric
    runs: list[tuple[PlannedRun, RunSettings]]
    warnings: tuple[str, ...] = ()
    """Problems of the data that a reader of the verdict must know."""
    candidates: list[Candidate] = field(default_factory=list)
    trials: list[tuple[PlannedRun, RunSettings]] = field(default_factory=list)
    """Runs by which tuning chooses among the candidates."""
    design: Design | None = None
    """How the task draws the rows of each seed."""
    looks: Looks | None = None
    """Numbers of seeds at which it is judged; None: at all seeds."""
    until_decided: bool = False
    """Whether seeds are added until every question has an answer."""
    facts: tuple[Fact, ...] = ()
    """Facts about the data."""

    @property
    def is_tuned(self) -> bool:
        """Whether `runs` have their final settings."""
        return not self.candidates or any(candidate.chosen for candidate in self.candidates)


def check_settings(settings: ComparisonSettings) -> None:
    """Raise an error for mistakes that can be found without data, as decoding may take minutes."""
    _first_runs(settings, settings.task)
    _list_trials(settings, settings.task)


def make_plan(settings: ComparisonSettings, max_seeds: int | None = None) -> Plan:
    """Check every setting, build every arm once, and list the runs, seed by seed.

    With `max_seeds`, the comparison runs until it is decided or has that many seeds: first those of
    the settings, then the numbers that follow.
    """
    seeds = settings.seeds if max_seeds is None else _more_seeds(settings.seeds, max_seeds)
    data = settings.task.with_content()  # once: to list a million images takes seconds
    task = None
    arms: list[Arm] = []
    runs: list[tuple[PlannedRun, RunSettings]] = []
    first_runs = _first_runs(settings, data)
    candidates, trials = _list_trials(settings, data)
    loader = TaskLoader()
    largest = max([size for _, size in first_runs] + [planned.size for planned, _ in trials])
    for arm in settings.named_arms():
        method, own = find_learner(arm.settings.method), arm.settings
        family = arm.key if arm.control == "real" else f"{arm.key}/{arm.control}"
        arms.append(
            Arm(
                name=arm.name,
                method=own.method,
                control=arm.control,
                uses_xstar=own.uses_xstar,
                sees_xstar_at_test=method.sees_xstar_at_test,
                xstar_frac=own.xstar_frac,
                family=family if own.xstar_fracs else "",
                classical=method.classical,
            )
        )
        for size in settings.sizes_of(own):
            for seed in seeds:
                run = first_runs[arm.name, size].model_copy(update={"seed": seed})
                runs.append((PlannedRun(run.run_id, arm.name, size, seed), run))
        if arm.control != "real" and not isinstance(own.controls, dict):
            continue
        task = _check_arm(first_runs[arm.name, settings.sizes[0]], largest, arm.name, loader)
        if own.search is not None:  # a method's own ranges are tested with it
            for candidate in (c for c in candidates if c.arm == arm.name):
                trial = next(run for planned, run in trials if planned.arm == candidate.name)
                _check_arm(trial, largest, candidate.name, loader)
    assert task is not None
    _check_paper(settings, [arm.name for arm in arms])
    places = {seed: place for place, seed in enumerate(seeds)}
    runs.sort(key=lambda pair: (places[pair[0].seed], -pair[0].size))
    is_open = max_seeds is not None
    looks = Looks.until_decided(len(seeds)) if is_open else Looks((len(seeds),))
    look = check_data(task, largest, seeds[0])
    return Plan(
        settings,
        arms,
        task.metric,
        runs,
        (*task.warnings, *look.warnings),
        candidates,
        trials,
        task.design,
        looks,
        until_decided=is_open,
        facts=look.facts,
    )


def _more_seeds(given: Sequence[int], n: int) -> tuple[int, ...]:
    """Return n seeds: the given ones, then the numbers that follow them."""
    return (*given, *range(max(given) + 1, max(given) + 1 + n))[:n]


def _first_runs(
    settings: ComparisonSettings, task: TaskSettings
) -> dict[tuple[str, int], RunSettings]:
    """Return the first run of each arm at each size, every name and value checked."""
    return {
        (arm.name, size): run_settings(settings, task, arm, size, settings.seeds[0])
        for arm in settings.named_arms()
        for size in settings.sizes_of(arm.settings)
    }


def _list_trials(
    settings: ComparisonSettings, task: TaskSettings
) -> tuple[list[Candidate], list[tuple[PlannedRun, RunSettings]]]:
    """Return the candidates of tuning, and their trials, seed by seed."""
    tuning = settings.tuning
    if not isinstance(tuning, TuningSettings):
        return [], []
    candidates: list[Candidate] = []
    trials: list[tuple[PlannedRun, RunSettings]] = []
    seeds, size = tuning.trial_seeds(settings.seeds), tuning.trial_size(settings.sizes)
    for arm in settings.named_arms():
        own = arm.settings
        if find_learner(own.method).classical:
            if own.search is not None:
                raise LupiError(
                    f"arms.{arm.name}.search: {own.method} chooses by validation rows itself, "
                    "among the values of its settings: drop `search`"
                )
            continue
        if arm.control != "real" and tuning.controls == "shared":
            continue
        given = run_settings(settings, task, arm, size, seeds[0])
        tried = list_candidates(arm.key, given, own.search, tuning.n_trials)
        for number, (changes, run) in enumerate(tried):
            trial = run.model_copy(update={"trial": True})
            runs = [trial.model_copy(update={"seed": seed}) for seed in seeds]
            ids = [run.run_id for run in runs]
            candidate = Candidate(arm.name, number, changes, size, seeds, ids)
            candidates.append(candidate)
            trials += zip(planned_trials([candidate]), runs, strict=True)
    trials.sort(key=lambda pair: pair[0].seed)
    return candidates, trials


def _check_paper(settings: ComparisonSettings, arms: list[str]) -> None:
    for arm, scores in settings.paper.scores.items() if settings.paper else ():
        if arm not in arms:
            raise LupiError(f"paper.scores: {unknown_name('arm', arm, arms)}")
        for size in scores.keys() - settings.sizes:
            raise LupiError(f"paper.scores.{arm}: {size} is not in `sizes`, {settings.sizes}")


def _check_arm(run: RunSettings, largest: int, name: str, loader: TaskLoader) -> Task:
    """Build an arm once, so that mistakes are found before hours of training."""
    task = loader.load(run.task, run.network).for_run(largest, run.seed)
    try:
        reveal = find_learner(run.method).sees_xstar_at_test
        task.splits(largest, run.seed, run.control, run.xstar_frac, reveal)
        try_learner(run.method, run.settings, task)
    except LupiError as error:
        raise LupiError(f"arm {name}: {error}") from None
    return task


# One run without the others, for `lupi train`


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
