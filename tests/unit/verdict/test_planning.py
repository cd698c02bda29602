import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lupi.errors import LupiError
from lupi.records import ComparisonRecord, Looks
from lupi.verdict.planning import SizePlan, Spread, plan_seeds, too_few_seeds
from lupi.verdict.roles import MEAN
from lupi.verdict.summary import summarise

from .comparisons import ARMS as ALL_ARMS
from .comparisons import around, cell, comparison

pytestmark = pytest.mark.usefixtures("few_simulations")

ARMS = ("no-xstar", "gaussian-dropout", "het-dropout", "het-dropout/shuffled")
NOISE = 0.012


def pilot(
    n_seeds: int, n_planned: int = 8, gain: float = 0.0, noise: float = NOISE
) -> ComparisonRecord:
    """Four arms at two sizes; what a seed adds to all arms is ten times their own noise."""
    rng = np.random.default_rng(1)
    results: dict[str, dict[int, list[float | None]]] = {arm: {} for arm in ARMS}
    for size in (75, 150):
        seeds = rng.normal(0.5, 10 * noise, n_planned)
        for arm in ARMS:
            scores = seeds + rng.normal(0, noise, n_planned) + gain * (arm == "het-dropout")
            results[arm][size] = [
                float(score) if seed < n_seeds else None for seed, score in enumerate(scores)
            ]
    return comparison(results)


def test_the_spread_is_what_the_arms_do_not_share() -> None:
    plan = plan_seeds(pilot(60, 60), 0.02, 0.8)
    for row in plan.sizes:
        assert row.spread == pytest.approx(np.sqrt(2) * NOISE, rel=0.1)
        assert row.seeds_range[0] <= row.seeds <= row.seeds_range[1]  # type: ignore[operator]
        assert row.seeds_alone <= row.seeds  # type: ignore[operator]
    assert plan.seeds == max(row.seeds for row in plan.sizes if row.seeds)


def test_the_curve_reaches_the_power_where_the_plan_says() -> None:
    for row in plan_seeds(pilot(60, 60), 0.02, 0.8).sizes:
        assert row.seeds is not None
        for point in row.curve:
            noise = 0.1  # of 80 simulations
            is_enough = point.n_seeds >= row.seeds
            assert point.power >= 0.8 - noise if is_enough else point.power < 0.8 + noise
            assert point.low <= point.power <= point.high


def test_who_is_ahead_does_not_matter() -> None:
    behind, ahead = (plan_seeds(pilot(4, gain=gain), 0.02, 0.8) for gain in (-0.3, 0.3))
    assert behind.seeds_range == ahead.seeds_range
    spreads = [[row.spread for row in plan.sizes] for plan in (behind, ahead)]
    assert spreads[0] == pytest.approx(spreads[1])


def test_a_small_pilot_is_unsure() -> None:
    few, many = (plan_seeds(pilot(n, 16), 0.02, 0.8).sizes[0] for n in (2, 16))
    assert (few.n_pilot_seeds, many.n_pilot_seeds) == (2, 16)
    widths = [row.power_range[1] - row.power_range[0] for row in (few, many)]
    assert widths[0] > widths[1]
    low, high = Spread(75, 1.0, 3, 6).range()
    assert (low, high) == pytest.approx((0.751, 1.650), abs=1e-3)  # 6 degrees of freedom


def test_a_larger_gain_takes_fewer_seeds_and_a_tiny_one_too_many() -> None:
    seeds = [plan_seeds(pilot(4), gain, 0.8).seeds for gain in (0.05, 0.02, 0.0001)]
    assert seeds[0] is not None
    assert seeds[1] is not None
    assert seeds[0] < seeds[1]
    assert seeds[2] is None


def asking(*questions: str) -> ComparisonRecord:
    """The pilot with a planned order of questions, and a second arm with x*."""
    record = pilot(6)
    other = [
        replace(run, plan=replace(run.plan, arm="distillation", run_id=f"d{run.plan.run_id}"))
        for run in record.runs
        if run.plan.arm == "het-dropout"
    ]
    arms = [*record.arms, next(arm for arm in ALL_ARMS if arm.name == "distillation")]
    settings = {**record.settings, "questions": list(questions)}
    return replace(record, arms=arms, runs=[*record.runs, *other], settings=settings)


def test_a_planned_question_takes_fewer_seeds_and_those_behind_it_wait() -> None:
    def rows(*questions: str) -> dict[tuple[str, int], SizePlan]:
        plan = plan_seeds(asking(*questions), 0.02, 0.8)
        return {(row.arm, row.size): row for row in plan.sizes}

    asked, unplanned = ("het-dropout", 75), rows()
    first = rows("het-dropout@75")
    assert first[asked].power > unplanned[asked].power
    alone = pytest.approx(first[asked].seeds_alone, abs=1)  # other draws of 80 simulations
    assert first[asked].seeds == alone  # nothing competes with it
    last = rows("distillation@75", "distillation@150", "het-dropout@75")
    assert last[asked].power < first[asked].power
    behind = last["het-dropout", 150]  # not planned, so it follows all that is
    assert behind.power <= min(row.power for key, row in last.items() if key[0] == "distillation")


def test_the_plan_is_for_the_planned_questions() -> None:
    plan = plan_seeds(asking("het-dropout@mean"), 0.02, 0.8)
    assert plan.questions == ("het-dropout@mean",)
    (mean,) = [row for row in plan.sizes if row.size == MEAN]
    others = [row for row in plan.sizes if row.arm == "het-dropout" and row.size != MEAN]
    assert plan.seeds == mean.seeds
    assert mean.spread < min(row.spread for row in others)
    assert all(mean.power > row.power for row in others)


def test_a_size_without_a_pilot_is_as_the_nearest() -> None:
    record = pilot(3)
    runs = [replace(r, result=None) if r.plan.size == 150 else r for r in record.runs]
    first, second = plan_seeds(replace(record, runs=runs), 0.02, 0.8).sizes
    assert (first.measured_at, second.measured_at) == (75, 75)
    assert first.spread == second.spread


def test_time_is_that_of_the_runs_on_disk(tmp_path: Path) -> None:
    record = pilot(2, n_planned=4)
    runs = []
    for run in record.runs:
        folder = tmp_path / run.plan.run_id
        folder.mkdir()
        rows = [{"seconds": run.plan.size / 100}] * 2
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        runs.append(replace(run, folder=folder))
    plan = plan_seeds(replace(record, runs=runs), 0.02, 0.8)
    assert plan.seconds_per_seed == pytest.approx(4 * 2 * (0.75 + 1.5))
    assert plan.seconds_left == pytest.approx(2 * plan.seconds_per_seed)
    assert (plan.n_runs, plan.n_finished, plan.n_seeds) == (32, 16, 4)
    unmeasured = [replace(r, result=None) if r.plan.size == 150 else r for r in runs]
    plan = plan_seeds(replace(record, runs=unmeasured), 0.02, 0.8)
    assert plan.seconds_per_seed == pytest.approx(4 * 2 * (0.75 + 1.5))  # taken to grow with n


def test_what_can_not_be_planned() -> None:
    with pytest.raises(LupiError, match="needs two finished seeds of het-dropout"):
        plan_seeds(pilot(1), 0.02, 0.8)
    plain = comparison({"no-xstar": {75: [0.5, 0.5]}})
    with pytest.raises(LupiError, match="no arm trains with the real x"):
        plan_seeds(plain, 0.02, 0.8)


@pytest.mark.parametrize("looks", [None, Looks.until_decided(30)])
def test_warning_and_verdict_name_the_same_number_of_seeds(looks: Looks | None) -> None:
    results = {"no-xstar": {75: around(0.5, 4)}, "het-dropout": {75: around(0.6, 4)}}
    record = replace(comparison(results), looks=looks)
    (warning,) = too_few_seeds(record.arms, 4, looks)
    judged = cell(summarise(record), "het-dropout", 75)
    assert judged.verdict == "underpowered"
    assert str(judged.reason).rpartition(" ")[2] == warning.rpartition(" ")[2]
