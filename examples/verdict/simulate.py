"""Check the verdict by simulation: wrong verdicts, coverage of intervals, power.

    python examples/verdict/simulate.py --table bank-additional-full.csv --trials 1000

prints the tables of docs/verdict.md. Without a table, scikit-learn's digits are the population.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from population import ARMS, CONTROLS, METHODS, Population, Setup, run_comparison
from rules import QUIET, differences_of, is_wrong, judge, judge_until_decided, old_rule

from lupi.design import Design, Looks
from lupi.verdict.statistics.sequential import SequentialTest
from lupi.verdict.verdict import Question, judge_family

Floats = NDArray[np.float64]
N_SEEDS, MAX_SEEDS = 8, 12
HIDDEN = (0, 1)
"""Columns of the table that the plain arm lacks, where it shall be worse."""
SETUPS = (
    Setup(400, (10, 20, 40), "fixed", 1000),
    Setup(400, (30, 60, 120), "fixed", 1000),
    Setup(400, (50, 100, 200), "fixed", 1000),
    Setup(400, (90, 180, 360), "fixed", 1000),
    Setup(500, (12, 25, 50), "per-seed", 100),
    Setup(500, (75, 150, 300), "per-seed", 100),
)
COVERAGE_SETUPS = (
    Setup(400, (10, 20, 40), "fixed", 4000),
    Setup(400, (30, 60, 120), "fixed", 4000),
    Setup(400, (50, 100, 200), "fixed", 4000),
    Setup(500, (12, 25, 50), "per-seed", 100),
)
"""Fixed test sets are large here: what is covered is the difference in the population."""
SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails (t, 3 df)": lambda rng, n: rng.standard_t(3, size=n),
    "skewed (gamma, skewness 1)": lambda rng, n: rng.gamma(4, size=n) - 4,
    "very skewed (exponential, skewness 2)": lambda rng, n: rng.exponential(size=n) - 1,
    "two clusters": lambda rng, n: rng.choice([-1.0, 1.0], size=n) + rng.normal(0, 0.1, n),
}
"""Differences with mean 0."""


def wrong_verdicts(
    population: Population, setup: Setup, n_trials: int, hidden: tuple[int, ...] = ()
) -> tuple[float, ...]:
    """Return how often two methods get a wrong verdict at any of three sizes.

    They are equal to both controls, or, with `hidden` columns, to one of them and better than the
    plain one: then only "better than plain only" is right. By the rule before with 8 seeds, the
    present one with 8 seeds, and until decided with up to 12.
    """
    right = QUIET | {"better than plain only"} if hidden else QUIET
    rng = np.random.default_rng(1)
    design = Design(setup.n_pool, setup.test, setup.n_test)
    counts = np.zeros(3)
    for _ in range(n_trials):
        columns = run_comparison(population, setup, MAX_SEEDS, rng, hidden)
        first = [seed < N_SEEDS for seed in columns["seed"]]
        fixed = {
            name: [v for v, is_first in zip(values, first, strict=True) if is_first]
            for name, values in columns.items()
        }
        old = [
            word
            for method in METHODS
            for word in old_rule(differences_of(fixed, method, CONTROLS, N_SEEDS))
        ]
        counts += (
            any(word in ("helps", "hurts") for word in old),
            is_wrong(judge(fixed, METHODS, CONTROLS, design), right),
            is_wrong(judge_until_decided(columns, METHODS, CONTROLS, design, MAX_SEEDS)[0], right),
        )
    return tuple(counts / n_trials)


def coverage(shape: str, n_seeds: int, n_trials: int) -> float:
    """Return how often the interval of a difference holds its true mean."""
    rng = np.random.default_rng(2)
    looks = Looks((n_seeds,)).reached(n_seeds)
    covered = 0
    for _ in range(n_trials):
        low, high = SequentialTest(SHAPES[shape](rng, n_seeds), looks).bounds(0.025)
        covered += low <= 0 <= high
    return covered / n_trials


def coverage_on_table(population: Population, setup: Setup, n_trials: int) -> float:
    """Return how often the intervals of the table hold the difference between unequal arms."""
    rng = np.random.default_rng(3)
    design = Design(setup.n_pool, setup.test, setup.n_test)
    means, intervals = [], []
    for _ in range(n_trials):
        columns = run_comparison(population, setup, N_SEEDS, rng, hidden=HIDDEN)
        judgement = judge(columns, METHODS[:1], CONTROLS, design)
        ours = judgement.arms[ARMS.index(METHODS[0])]
        means.append([cell.differences[0].mean for cell in ours.cells])
        intervals.append([cell.differences[0].interval for cell in ours.cells])
    truth = np.mean(means, axis=0)
    ends = np.array(intervals, dtype=np.float64)  # (trial, size, end)
    return float(((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean())


def power(effect: float, n_seeds: int, n_trials: int) -> tuple[float, float]:
    """Return the share of sizes at which a method is found better: rule before, present rule.

    One method, three controls, three sizes; the effect is in standard deviations of a difference.
    """
    rng = np.random.default_rng(4)
    found = np.zeros(2)
    looks = Looks((n_seeds,)).reached(n_seeds)
    for _ in range(n_trials):
        table = _normal(rng, effect, n_seeds)
        found += (
            np.mean([word == "helps" for word in old_rule(table)]),
            np.mean([j.verdict == "helps" for j in judge_family(_questions(table, looks))]),
        )
    return float(found[0] / n_trials), float(found[1] / n_trials)


def until_decided(effect: float, n_trials: int) -> tuple[float, float]:
    """Return the share of sizes found better with up to 12 seeds, and the mean number of seeds."""
    rng = np.random.default_rng(5)
    n_found, n_seeds = 0.0, 0
    looks = Looks.until_decided(MAX_SEEDS)
    for _ in range(n_trials):
        table = _normal(rng, effect, MAX_SEEDS)
        for count in looks.counts:
            judged = judge_family(_questions(table[..., :count], looks.reached(count)))
            if all(j.verdict == "helps" for j in judged):
                break
        n_found += float(np.mean([j.verdict == "helps" for j in judged]))
        n_seeds += count
    return n_found / n_trials, n_seeds / n_trials


def _normal(rng: np.random.Generator, effect: float, n_seeds: int) -> Floats:
    own = rng.normal(0, np.sqrt(0.5), size=(3, 4, n_seeds))
    differences: Floats = effect + own[:, :1] - own[:, 1:]
    return differences  # (size, control, seed)


def _questions(table: Floats, looks: list[tuple[int, float]]) -> list[Question]:
    return [
        Question({str(k): SequentialTest(row, looks) for k, row in enumerate(rows)}, len(rows), 0.0)
        for rows in table
    ]


def lines(population: Population, n_trials: int) -> Iterator[str]:
    """Yield the tables in Markdown."""
    yield "| rows | rule before | 8 seeds | until decided, up to 12 |\n|---|---:|---:|---:|"
    for setup in SETUPS:
        shares = wrong_verdicts(population, setup, n_trials)
        yield f"| {setup.name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |"
    for setup in (SETUPS[0], SETUPS[4]):
        shares = wrong_verdicts(population, setup, n_trials, hidden=HIDDEN)
        shown = " | ".join(f"{100 * share:.1f} %" for share in shares)
        yield f"| {setup.name}; better than plain, equal to noise | {shown} |"
    seeds = (6, 8, 10, 12)
    yield f"\n| differences | {' | '.join(f'{n} seeds' for n in seeds)} |\n|---|{'---:|' * 4}"
    for shape in SHAPES:
        covered = (f"{100 * coverage(shape, n, 4 * n_trials):.1f} %" for n in seeds)
        yield f"| {shape} | {' | '.join(covered)} |"
    for setup in COVERAGE_SETUPS:
        share = coverage_on_table(population, setup, n_trials)
        yield f"| on the table, {setup.name} | | {100 * share:.1f} % | | |"
    yield (
        "\n| effect | 6 seeds | 8 seeds | 10 seeds | 12 seeds | until decided, up to 12 |\n"
        f"|---:|{'---:|' * 5}"
    )
    for effect in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        fixed = (power(effect, n, n_trials) for n in seeds)
        shown = " | ".join(f"{100 * old:.0f} → {100 * new:.0f} %" for old, new in fixed)
        share, mean = until_decided(effect, n_trials)
        yield f"| {effect:g} | {shown} | {100 * share:.0f} %, {mean:.1f} seeds |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="numbers, separated by commas; label last")
    parser.add_argument("--trials", type=int, default=200)
    options = parser.parse_args()
    for line in lines(Population.read(options.table), options.trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
