"""What docs/worth.md says about boards and reviews is what the published scores give."""

import csv
import re
from collections import defaultdict
from pathlib import Path

import pytest

from lupi.worth import Point, Surface, fit_surface

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "worth.md").read_text(encoding="utf-8")


def points(name: str) -> list[Point]:
    scores: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    with (DOCS / "results" / f"worth-{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found = re.search(r"@([\d.]+)%", row["arm"])
            n = int(row["size"])
            m = round(n * float(found[1]) / 100) if found else 0
            scores[n, m][int(row["seed"])] = float(row["score"])
    return [Point(n, m, by_seed) for (n, m), by_seed in sorted(scores.items())]


def surface(name: str) -> Surface:
    return fit_surface(points(name), "accuracy")


@pytest.mark.parametrize("name", ["pcb", "reviews"])
def test_the_table_is_of_the_scores(name: str) -> None:
    rows: dict[int, list[float]] = defaultdict(list)
    for point in points(name):
        rows[point.n].append(sum(point.scores.values()) / len(point.scores))
    for n, means in rows.items():
        line = f"| {n} | " + " | ".join(f"{100 * mean:.1f}" for mean in means)
        assert line in PAGE, line


def test_a_box_is_worth_less_with_more_labels() -> None:
    found = surface("pcb")
    assert found.fits
    assert found.helps
    few, many = found.worth(40), found.worth(320)
    assert f"{few.value:.1f} labels ({few.low:.1f} to {few.high:.1f})" in PAGE
    assert f"of 320 rows, {many.value:.1f} ({many.low:.1f} to {many.high:.1f})" in PAGE
    mix = found.best_mix(200, 1, 0.5)
    assert f"{mix.n} labels and {mix.m} boxes" in PAGE.replace("\n", " ")
    assert f"{100 * mix.score.value:.1f} % expected" in PAGE
    gain = [f"{100 * number:+.1f}" for number in mix.gain]
    assert f"({gain[0]}, {gain[1]} to {gain[2]})" in PAGE


def test_a_rationale_is_worth_the_same_at_all_sizes() -> None:
    found = surface("reviews")
    assert found.fits
    assert found.helps
    worth = found.worth(400)
    assert f"{worth.value:.1f} labels ({worth.low:.1f} to {worth.high:.1f})" in PAGE
    assert found.worth(50).value == pytest.approx(worth.value, rel=0.15)


def bought() -> dict[tuple[int, int], float]:
    scores: dict[tuple[int, int], list[float]] = defaultdict(list)
    with (DOCS / "results/worth-pcb-heldout.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            scores[int(row["n"]), int(row["m"])].append(float(row["score"]))
    return {mix: sum(found) / len(found) for mix, found in scores.items()}


def test_fresh_seeds_lie_in_the_predicted_intervals() -> None:
    found, measured = surface("pcb"), bought()
    predicted = {mix: found.score(*mix) for mix in measured}
    inside = [m for m, p in predicted.items() if p.low <= measured[m] <= p.high]
    assert f"The mean of {len(inside)} of them" in PAGE
    assert f"then {len(measured)} other mixes" in PAGE
    assert len(inside) >= 0.9 * len(measured)
    assert set(measured) - set(inside) == {(99, 0)}


@pytest.mark.parametrize("budget", [120, 200])
@pytest.mark.parametrize("cost", [0.1, 0.5, 1])
def test_recommended_mixes_were_bought(budget: int, cost: float) -> None:
    mix, measured = surface("pcb").best_mix(budget, 1, cost), bought()
    got, labels = measured[mix.n, mix.m], measured[budget, 0]
    cells = [100 * v for v in (mix.score.value, got, mix.labels_only.value, labels)]
    gains = [100 * mix.gain.value, 100 * (got - labels)]
    line = f"| {budget} | {cost:g} | {mix.n}, {mix.m} | "
    line += " | ".join([*(f"{v:.1f}" for v in cells), *(f"{v:+.1f}" for v in gains)])
    assert line in PAGE, line
