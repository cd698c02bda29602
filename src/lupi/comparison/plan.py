"""The runs that a comparison's settings stand for, checked before the first of them starts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lupi.comparison.arms import (
    controls_of,
    named_arms,
    run_settings,
    sizes_of,
    uses_xstar,
    with_control,
)
from lupi.comparison.settings import ComparisonSettings
from lupi.comparison.tuning import TuningSettings, try_for
from lupi.core import Task
from lupi.errors import LupiError
from lupi.facts import Fact
from lupi.preflight.look import look_at
from lupi.records import Arm, Candidate, Design, Looks, Metric, PlannedRun, planned_trials
from lupi.settings import unknown_name
from lupi.tasks.registry import TaskLoader, resolve_task, unread_task
from lupi.train.learners import find_learner, try_learner
from lupi.train.settings import RunSettings


@dataclass(frozen=True, slots=True)
class Plan:
    """What a comparison consists of."""

    settings: ComparisonSettings
    arms: list[Arm]
    metric: Metric
    runs: list[tuple[PlannedRun, RunSettings]]
    warnings: tuple[str, ...] = ()
    """What the task found in its data that a reader of the verdict must know."""
    candidates: list[Candidate] = field(default_factory=list)
    trials: list[tuple[PlannedRun, RunSettings]] = field(default_factory=list)
    """The runs by which tuning chooses among the candidates."""
    design: Design | None = None
    """How the task draws the rows of each seed; None: it does not say."""
    looks: Looks | None = None
    """At how many seeds it is judged; None: at all of them."""
    until_decided: bool = False
    """Whether seeds are added look by look, until every question has an answer."""
    facts: tuple[Fact, ...] = ()
    """What was found out about the data."""

    @property
    def is_tuned(self) -> bool:
        """Whether `runs` have the settings they shall have."""
        return not self.candidates or any(candidate.chosen for candidate in self.candidates)


def check(settings: ComparisonSettings) -> None:
    """Find the mistakes that show without data: decoding may take minutes."""
    settings = settings.model_copy(update={"task": unread_task(settings.task)})
    _first_runs(settings)
    _list_trials(settings)


def make_plan(settings: ComparisonSettings, max_seeds: int | None = None) -> Plan:
    """Check every setting, build every arm once, and list the runs, one seed after another.

    With `max_seeds` the comparison goes on until it is decided, or has so many seeds: first those
    of the settings, then the numbers that follow.
    """
    seeds = settings.seeds if max_seeds is None else _more_seeds(settings.seeds, max_seeds)
    task = None
    arms: list[Arm] = []
    runs: list[tuple[PlannedRun, RunSettings]] = []
    first_runs = _first_runs(settings)
    candidates, trials = _list_trials(settings)
    loader = TaskLoader()
    largest = max([size for _, size in first_runs] + [planned.size for planned, _ in trials])
    for family, name, arm in named_arms(settings):
        method = find_learner(arm.method)
        task = _try_out(first_runs[name, settings.sizes[0]], largest, name, loader)
        for control in controls_of(arm):
            full_name = with_control(name, control)
            arms.append(
                Arm(
                    name=full_name,
                    method=arm.method,
                    control=control,
                    uses_xstar=uses_xstar(arm),
                    sees_xstar_at_test=method.sees_xstar_at_test,
                    xstar_frac=arm.xstar_frac,
                    family=with_control(family, control) if arm.xstar_fracs else "",
                    classical=method.classical,
                )
            )
            for size in sizes_of(settings, arm):
                for seed in seeds:
                    place = {"control": control, "seed": seed}
                    run = first_runs[name, size].model_copy(update=place)
                    runs.append((PlannedRun(run.run_id, full_name, size, seed), run))
        if arm.search is not None:  # a method's own ranges are tested with it
            for candidate in (c for c in candidates if c.arm == name):
                trial = next(run for planned, run in trials if planned.arm == candidate.name)
                _try_out(trial, largest, candidate.name, loader)
    assert task is not None
    _check_paper(settings, [arm.name for arm in arms])
    runs.sort(key=lambda pair: (pair[0].seed, -pair[0].size))
    is_open = max_seeds is not None
    looks = Looks.until_decided(len(seeds)) if is_open else Looks((len(seeds),))
    look = look_at(task, largest, seeds[0])
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


def _with_content(settings: ComparisonSettings) -> ComparisonSettings:
    """Fill in the fingerprint of the data once: to list a million images takes seconds."""
    task, _ = resolve_task(settings.task, {})
    return settings.model_copy(update={"task": task})


def _first_runs(settings: ComparisonSettings) -> dict[tuple[str, int], RunSettings]:
    """Return the first run of each arm at each size, every name and value checked."""
    settings = _with_content(settings)
    return {
        (name, size): run_settings(settings, name, arm, size, settings.seeds[0])
        for _, name, arm in named_arms(settings)
        for size in sizes_of(settings, arm)
    }


def _list_trials(
    settings: ComparisonSettings,
) -> tuple[list[Candidate], list[tuple[PlannedRun, RunSettings]]]:
    """Return what tuning tries, and the trials, one seed after another."""
    tuning = settings.tuning
    if not isinstance(tuning, TuningSettings):
        return [], []
    settings = _with_content(settings)
    candidates: list[Candidate] = []
    trials: list[tuple[PlannedRun, RunSettings]] = []
    seeds, size = tuning.trial_seeds(settings.seeds), tuning.trial_size(settings.sizes)
    for family, name, arm in named_arms(settings):
        if find_learner(arm.method).classical:
            if arm.search is not None:
                raise LupiError(
                    f"arms.{name}.search: {arm.method} chooses by validation rows itself, among "
                    "the values of its settings: drop `search`"
                )
            continue
        given = run_settings(settings, name, arm, size, seeds[0])
        tried = list(try_for(family, given, arm.search, tuning.n_trials))
        for control in controls_of(arm) if tuning.controls == "own" else controls_of(arm)[:1]:
            for number, (changes, run) in enumerate(tried):
                trial = run.model_copy(update={"control": control, "trial": True})
                runs = [trial.model_copy(update={"seed": seed}) for seed in seeds]
                ids = [run.run_id for run in runs]
                full_name = with_control(name, control)
                candidate = Candidate(full_name, number, changes, size, seeds, ids)
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


def _try_out(run: RunSettings, largest: int, name: str, loader: TaskLoader) -> Task:
    """Build the arm once, so that mistakes show before hours have passed."""
    task = loader.load(run.task, run.network).for_run(largest, run.seed)
    try:
        reveal = find_learner(run.method).sees_xstar_at_test
        task.splits(largest, run.seed, run.control, run.xstar_frac, reveal)
        try_learner(run.method, run.settings, task)
    except LupiError as error:
        raise LupiError(f"arm {name}: {error}") from None
    return task
