"""Seeds are added look by look, with an engine that makes up scores instead of training."""

from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lupi.comparison.jobs import Engine, Event, Job
from lupi.comparison.plan import Plan, make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.core import derive_seed
from lupi.files import write_json
from lupi.records import Looks, read_comparison
from lupi.verdict.summary import summarise
from small_comparison import RAW, run_plan

Gain = Callable[[dict[str, Any]], float]


def made_up(gain: Gain, limit: int | None = None) -> Engine:
    """Return an engine whose runs score 0.5, some noise, and what `gain` says. After `limit`
    runs it is interrupted."""

    def execute(jobs: list[Job]) -> Generator[Event]:
        for job in jobs[:limit]:
            settings = job.settings
            run = f"{settings['method']} {settings['control']} {settings['size']}"
            noise = derive_seed(settings["seed"], run) % 1000 / 50_000
            score = 0.5 + gain(settings) + noise
            result = {
                "format": 1,
                "status": "finished",
                "metrics": {"val": {"accuracy": score}, "test": {"accuracy": score}},
            }
            write_json(job.folder / "settings.json", settings)
            write_json(job.folder / "result.json", result)
            yield Event(job.run_id, "finished", result)
        if limit is not None and len(jobs) > limit:
            raise KeyboardInterrupt

    return Engine(execute, "made up")


def plan(max_seeds: int | None = 30, **changes: Any) -> Plan:
    return make_plan(ComparisonSettings.parse({**RAW, "sizes": [20, 40], **changes}, ""), max_seeds)


def large(settings: dict[str, Any]) -> float:
    is_real = settings["method"] == "het-dropout" and settings["control"] == "real"
    return 0.1 if is_real else 0.0


def large_at_20(settings: dict[str, Any]) -> float:
    return large(settings) if settings["size"] == 20 else 0.0


def n_seeds(folder: Path) -> dict[tuple[str, int], int]:
    counts: dict[tuple[str, int], int] = {}
    for run in read_comparison(folder).finished:
        key = run.plan.arm, run.plan.size
        counts[key] = counts.get(key, 0) + 1
    return counts


def test_a_clear_answer_takes_one_look(tmp_path: Path) -> None:
    run_plan(plan(), tmp_path, made_up(large))
    assert set(n_seeds(tmp_path).values()) == {7}
    record = read_comparison(tmp_path)
    assert record.looks == Looks.until_decided(30)
    assert summarise(record).statement.exact.startswith("x* helps het-dropout at 2 of 2 sizes")


def test_seeds_are_added_only_where_they_are_needed(tmp_path: Path) -> None:
    run_plan(plan(max_seeds=12, margin=0.0001), tmp_path, made_up(large_at_20))
    counts = n_seeds(tmp_path)
    # The size without an effect does not delay the clear answer of the other one.
    assert {counts[arm, 20] for arm in ("no-xstar", "het-dropout")} == {7}
    assert {counts[arm, 40] for arm in ("no-xstar", "het-dropout/shuffled")} == {12}


def test_arms_that_no_question_needs_stay_as_they_are(tmp_path: Path) -> None:
    arms = {**RAW["arms"], "oracle": {"method": "oracle"}}
    run_plan(plan(max_seeds=9, arms=arms), tmp_path, made_up(lambda settings: 0.0))
    counts = n_seeds(tmp_path)
    assert (counts["oracle", 20], counts["no-xstar", 20]) == (7, 9)


def test_it_can_be_killed_at_any_run(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_plan(plan(max_seeds=12), whole, made_up(large_at_20))
    n_starts, is_done = 0, False
    while not is_done:  # each start does five runs, then is killed
        n_starts += 1
        with suppress(KeyboardInterrupt):
            run_plan(plan(max_seeds=12), killed, made_up(large_at_20, limit=5))
            is_done = True
    assert n_starts > 5
    assert (killed / "comparison.json").read_bytes() == (whole / "comparison.json").read_bytes()
    assert n_seeds(killed) == n_seeds(whole)


def test_a_fixed_plan_that_gets_more_seeds_counts_both_looks(tmp_path: Path) -> None:
    """Adding seeds after a look was judged as if the first look had never been."""
    run_plan(plan(None, seeds=8), tmp_path, made_up(large))
    assert read_comparison(tmp_path).looks == Looks((8,))
    run_plan(plan(None, seeds=10), tmp_path, made_up(large))
    assert read_comparison(tmp_path).looks == Looks((8, 10))
    run_plan(plan(12), tmp_path, made_up(large))
    assert read_comparison(tmp_path).looks == Looks((8, 10, 12))


def test_a_plan_that_was_not_finished_was_not_looked_at(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(None, seeds=8), tmp_path, made_up(large, limit=6))
    run_plan(plan(None, seeds=10), tmp_path, made_up(large))
    assert read_comparison(tmp_path).looks == Looks((10,))


def test_larger_sizes_of_the_plain_arm_bring_the_factor_into_range(tmp_path: Path) -> None:
    """The factor was "beyond range" exactly where the method won."""

    def curve(settings: dict[str, Any]) -> float:
        return large(settings) + 0.001 * int(settings["size"])

    arms = {**RAW["arms"], "no-xstar": {"method": "no-xstar", "extra_sizes": [100, 200]}}
    for arms_used, reach in ((RAW["arms"], "beyond range"), (arms, "measured")):
        folder = tmp_path / reach
        run_plan(plan(None, seeds=8, arms=arms_used), folder, made_up(curve))
        summary = summarise(read_comparison(folder))
        het = next(arm for arm in summary.arms if arm.name == "het-dropout")
        cell = next(cell for cell in het.cells if cell.size == 40)
        assert cell.label_saving is not None
        assert cell.label_saving.reach == reach
        factor = cell.label_saving.factor
    assert factor == pytest.approx(3.5, rel=0.1)  # 0.1 is worth 100 rows
    assert [cell.verdict for cell in het.cells] == ["helps", "helps", "not run", "not run"]
    assert "at 2 of 2 sizes" in summary.statement.exact
