"""No sentence contradicts a number: checked on random tables of scores."""

import re

import numpy as np
import pytest

import lupi
from lupi.verdict.results import Cell, Judgement
from lupi.verdict.units import difference, interval

N_FRAMES = 300
"""`make test-slow` runs 2,000."""


def random_judgement(rng: np.random.Generator) -> Judgement:
    n_seeds, n_methods, n_controls = (int(rng.integers(low, 5)) for low in (1, 1, 1))
    n_seeds += int(rng.integers(0, 8))
    sizes = [100 * 2**k for k in range(int(rng.integers(1, 4)))]
    kind = rng.choice(["normal", "tied", "failures", "equal"])
    metric = str(rng.choice(["accuracy", "rmse", "auc", "score"]))
    table: dict[str, list[object]] = {"arm": [], "seed": [], "size": [], "score": []}
    names = [f"m{i}" for i in range(n_methods)] + [f"c{i}" for i in range(n_controls)]
    for name in names:
        effect = rng.choice([-0.1, -0.01, 0.0, 0.0004, 0.03, 0.1])
        for size in sizes:
            for seed in range(n_seeds):
                score = 0.5 + effect + rng.normal(0, 0.0 if kind == "equal" else 0.02)
                score -= 0.3 * (kind == "failures" and rng.random() < 0.1)
                score = round(score, 2) if kind == "tied" else score
                if rng.random() < 0.95:
                    for column, value in zip(table, (name, seed, size, score), strict=True):
                        table[column].append(value)
    for name in names:  # every arm has a row
        if name not in table["arm"]:
            for column, value in zip(table, (name, 0, sizes[0], 0.5), strict=True):
                table[column].append(value)
    methods, controls = names[:n_methods], names[n_methods:]
    looks = [n_seeds // 2 + 1, n_seeds + 1] if rng.random() < 0.3 else None
    questions = [f"{name}@{sizes[0]}" for name in methods[::-1]] if rng.random() < 0.3 else []
    return lupi.judge(
        table, method=methods, controls=controls, metric=metric, looks=looks, questions=questions
    )


def check(judgement: Judgement) -> None:
    arms = {arm.name: arm for arm in judgement.arms}
    for name in judgement.methods:
        for cell in (*arms[name].cells, *([arms[name].overall] if arms[name].overall else [])):
            assert cell is not None
            _check_cell(cell)
    text = judgement.statement.exact
    told = [
        cell
        for name in judgement.methods
        for cell in (*arms[name].cells, arms[name].overall)
        if cell is not None and cell.deciding is not None and name in text
    ]
    _check_notes(judgement, told)
    shown = re.search(r"95 % interval (.*?)(, within|, p [=<])", text)
    if shown is not None:
        intervals = {interval(c.deciding.interval, judgement.metric) for c in told if c.deciding}
        assert shown[1] in intervals
        means = {difference(c.deciding.mean, judgement.metric) for c in told if c.deciding}
        number = re.search(r": ([+-][0-9.e-]+) ", text)
        assert number is not None
        assert number[1] in means
    if "raises" in judgement.headline or "lowers" in judgement.headline:
        assert re.search(r"from [0-9.]+.* to [0-9.]+|by ", judgement.headline)
    if found := re.search(
        r"raises \w+ from ([0-9]+(?:\.[0-9]+)?)[ %]*to ([0-9]+(?:\.[0-9]+)?)", judgement.headline
    ):
        assert float(found[2]) > float(found[1])
    if found := re.search(
        r"lowers \w+ from ([0-9]+(?:\.[0-9]+)?)[ %]*to ([0-9]+(?:\.[0-9]+)?)", judgement.headline
    ):
        assert float(found[2]) < float(found[1])


def _check_notes(judgement: Judgement, told: list[Cell]) -> None:
    notes = " ".join(judgement.statement.notes)
    is_claim = re.search(r"is (better|worse) than every control", judgement.statement.exact)
    is_chosen = is_claim is not None and is_claim[1] == "better" and len(judgement.methods) > 1
    assert ("overstated" in notes) == (is_chosen or (bool(is_claim) and len(judgement.looks) > 1))
    if found := re.search(r"(\d+) seeds? without a failure .* up to (\d+) %", notes):
        n_seeds, rate = int(found[1]), int(found[2])
        assert n_seeds in {min(d.n_pairs for d in cell.differences) for cell in told}
        assert abs((1 - rate / 100) ** n_seeds - 0.05) < 0.02


def _check_cell(cell: Cell) -> None:
    lows = [d.interval[0] for d in cell.differences]
    highs = [d.interval[1] for d in cell.differences]
    for found, low, high in zip(cell.differences, lows, highs, strict=True):
        excludes_zero = (low is not None and low > 0) or (high is not None and high < 0)
        assert excludes_zero == (found.p_value <= 0.05)
    is_better = [low is not None and low > 0 for low in lows]
    is_worse = [high is not None and high < 0 for high in highs]
    is_whole = not cell.absent and bool(lows)
    assert (cell.verdict == "helps") == (is_whole and all(is_better))
    assert (cell.verdict == "hurts") == (is_whole and all(is_worse))
    if cell.verdict == "worse than a control":
        assert cell.deciding is not None
        assert cell.deciding.interval[1] is not None
        assert cell.deciding.interval[1] < 0
    if cell.verdict == "helps":
        assert cell.deciding is not None
        assert cell.deciding.mean == min(d.mean for d in cell.differences)
    if cell.verdict in ("underpowered", "not compared"):
        assert cell.reason


def test_no_sentence_contradicts_a_number() -> None:
    rng = np.random.default_rng(0)
    for _ in range(N_FRAMES):
        check(random_judgement(rng))


@pytest.mark.slow
def test_no_sentence_contradicts_a_number_in_2000_frames() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        check(random_judgement(rng))
