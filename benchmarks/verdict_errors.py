"""Check the verdict by simulation: wrong claims, power, coverage, and other rules on the same data.

    python benchmarks/verdict_errors.py --trials 2000

prints the tables of docs/verdict.md and docs/judge.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import lupi
from lupi.design import Design, Looks
from lupi.verdict.results import Answer, Judgement
from lupi.verdict.rule import Question, judge_family
from lupi.verdict.statistics import ALPHA, flip_signs

Floats = NDArray[np.float64]
CLAIMS = ("helps", "hurts", "worse than a control", "better than plain only")


class Shape(NamedTuple):
    """The size of a comparison."""

    n_arms: int
    n_controls: int
    n_sizes: int

    def __str__(self) -> str:
        """Return `3 x 2 x 2`."""
        return " x ".join(map(str, self))


SHAPES = (Shape(1, 1, 1), Shape(1, 3, 2), Shape(3, 2, 2), Shape(10, 1, 1))
NOISE: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 3 df)": lambda rng, shape: rng.standard_t(3, size=shape),
    "skewed scores (gamma)": lambda rng, shape: rng.gamma(2, size=shape) - 2,
    "tied (rounded)": lambda rng, shape: np.round(rng.normal(size=shape)),
    "one arm noisier": lambda rng, shape: (
        rng.normal(size=shape) * np.r_[5.0, np.ones(shape[0] - 1)].reshape(-1, 1, 1)
    ),
}
"""Noise of the scores of equal arms, (arm, size, seed)."""


def judge(
    scores: Floats,
    shape: Shape,
    looks: Sequence[tuple[int, float]],
    correlation: float = 0.0,
    order: Sequence[int] = (),
) -> list[Answer]:
    """Judge scores (arm, size, seed), methods first, with the mean over sizes."""
    methods, controls = scores[: shape.n_arms], scores[shape.n_arms :]
    names = tuple(map(str, range(shape.n_controls)))

    def question(rows: Floats) -> Question:
        found = dict(zip(names, rows, strict=True))
        return Question(names, found, margin=0.0, correlation=correlation)

    gaps = methods[:, None] - controls[None]  # (method, control, size, seed)
    questions = [question(gap[:, n]) for gap in gaps for n in range(shape.n_sizes)]
    if shape.n_sizes > 1:
        questions += [question(gap.mean(1)) for gap in gaps]
    return judge_family(questions, looks, order)


def wrong_claims(kind: str, shape: Shape, n_seeds: int, n_trials: int) -> float:
    """Return how often equal arms get any claim."""
    rng = np.random.default_rng(1)
    looks = Looks((n_seeds,)).reached(n_seeds)
    size = (shape.n_arms + shape.n_controls, shape.n_sizes, n_seeds)
    wrong = sum(
        any(found.verdict in CLAIMS for found in judge(NOISE[kind](rng, size), shape, looks))
        for _ in range(n_trials)
    )
    return wrong / n_trials


def wrong_helps(shape: Shape, n_seeds: int, n_trials: int) -> float:
    """Return how often "helps" is said of methods that equal their last control and beat others."""
    rng = np.random.default_rng(2)
    looks = Looks((n_seeds,)).reached(n_seeds)
    wrong = 0
    for _ in range(n_trials):
        scores = rng.normal(size=(shape.n_arms + shape.n_controls, shape.n_sizes, n_seeds))
        scores[shape.n_arms : -1] -= 5.0
        wrong += any(found.verdict == "helps" for found in judge(scores, shape, looks))
    return wrong / n_trials


def wrong_until_decided(shape: Shape, n_trials: int) -> float:
    """Return how often equal arms get a claim at any look at 7, 9 and 12 seeds."""
    rng = np.random.default_rng(3)
    looks = Looks.until_decided(12)
    size = (shape.n_arms + shape.n_controls, shape.n_sizes, 12)
    wrong = 0
    for _ in range(n_trials):
        scores = rng.normal(size=size)
        wrong += any(
            found.verdict in CLAIMS
            for n in looks.counts
            for found in judge(scores[..., :n], shape, looks.reached(n))
        )
    return wrong / n_trials


# Seeds that share rows: ridge regressions on pools of a known population


class Pool(NamedTuple):
    """How two equal arms differ on a pool, and how seeds draw from it."""

    kind: str
    share: float
    """Training rows of a seed as a share of the pool."""
    test_share: float = 0.0
    """Test rows that each seed draws from the pool; 0: a large test set of its own."""


N_POOL, N_COLUMNS, N_OWN = 200, 6, 4
POOLS = (
    *(Pool("inputs", share) for share in (0.05, 0.2, 0.5)),
    *(Pool("label noise", share) for share in (0.05, 0.2, 0.3, 0.6)),
    *(Pool("row weights", share) for share in (0.2, 0.3, 0.6)),
    *(Pool("strong penalties", share) for share in (0.2, 0.3, 0.6)),
    *(Pool("label noise", share, 0.5) for share in (0.1, 0.3)),
)


def pool_scores(
    pool: Pool, n_seeds: int, rng: np.random.Generator, disjoint: bool = False
) -> Floats:
    """Return the scores of two arms that are equal in the population, (arm, seed)."""
    n, n_test = max(8, int(pool.share * N_POOL)), int(pool.test_share * N_POOL)
    truth = np.ones(N_COLUMNS)  # alike, so that penalties on other columns are as good
    n_rows = N_POOL + 2000
    x = rng.normal(size=(n_rows, N_COLUMNS))
    y = x @ truth + rng.normal(size=n_rows)
    scores = np.empty((2, n_seeds))
    inputs, targets, weights, pulls = [], [], [], []
    for _ in range(2):  # what each arm has for itself, in the same way for all seeds
        own = rng.normal(size=(n_rows, N_OWN if pool.kind == "inputs" else 0))
        inputs.append(np.c_[x, own])
        targets.append(y + (2.0 * rng.normal(size=n_rows) if pool.kind == "label noise" else 0.0))
        is_weighted = pool.kind == "row weights"
        weights.append(rng.exponential(size=n_rows) if is_weighted else np.ones(n_rows))
        pulls.append(rng.permutation(np.r_[np.full(3, 0.5), np.full(3, 4.0)]))
    order = rng.permutation(N_POOL)
    for seed in range(n_seeds):
        order = np.roll(order, -n) if disjoint else rng.permutation(N_POOL)
        train = order[n_test : n_test + n]
        test = order[:n_test] if n_test else np.arange(N_POOL, n_rows)
        for arm in range(2):
            ridge: Floats = np.full(inputs[arm].shape[1], 1.0)
            if pool.kind == "strong penalties":
                ridge = np.asarray(n * pulls[arm] / 4, np.float64)
            found = _fit(inputs[arm][train], targets[arm][train], weights[arm][train], ridge)
            scores[arm, seed] = -np.mean((inputs[arm][test] @ found - y[test]) ** 2)
    return scores


def _fit(x: Floats, y: Floats, weights: Floats, ridge: Floats) -> Floats:
    weighted = x * weights[:, None]
    found = np.linalg.solve(weighted.T @ x + np.diag(ridge), weighted.T @ y)
    return np.asarray(found, np.float64)


def wrong_on_pools(pool: Pool, n_seeds: int, n_trials: int) -> tuple[float, float]:
    """Return how often equal arms get a claim: with the correction for shared rows, and without."""
    rng = np.random.default_rng(4)
    test = "per-seed" if pool.test_share else "fixed"
    design = Design(N_POOL, test, int(pool.test_share * N_POOL) or None)  # type: ignore[arg-type]
    correlation = design.correlation(max(8, int(pool.share * N_POOL)))
    looks = Looks((n_seeds,)).reached(n_seeds)
    wrong = np.zeros(2)
    for _ in range(n_trials):
        ours, plain = pool_scores(pool, n_seeds, rng)
        rows = np.stack([ours - plain])
        for i, used in enumerate((correlation, 0.0)):
            (found,) = flip_signs(rows, looks, [used])
            wrong[i] += min(found.p_better, found.p_worse) <= ALPHA / 2
    with_it, without = wrong / n_trials
    return float(with_it), float(without)


def power_on_pools(pool: Pool, n_seeds: int, n_trials: int) -> tuple[float, float, float]:
    """Return the power at a gain of one standard deviation, and wrong claims of disjoint sets.

    Power with random training sets and the correction for shared rows, with disjoint training sets,
    which need no correction, and how often these claim a difference between equal arms.
    """
    rng = np.random.default_rng(9)
    looks = Looks((n_seeds,)).reached(n_seeds)
    correlation = Design(N_POOL, "fixed").correlation(max(8, int(pool.share * N_POOL)))
    found = np.zeros(3)
    for _ in range(n_trials):
        gaps = [np.subtract(*pool_scores(pool, n_seeds, rng, kind)) for kind in (False, True)]
        gain = float(gaps[1].std(ddof=1))  # of this trial: scores of pools differ in scale
        for i, (gap, used) in enumerate(
            ((gaps[0] + gain, correlation), (gaps[1] + gain, 0.0), (gaps[1], 0.0))
        ):
            (test,) = flip_signs(gap[None], looks, [used])
            is_wrong = i == 2 and test.p_worse <= ALPHA / 2
            found[i] += test.p_better <= ALPHA / 2 or is_wrong
    random, disjoint, wrong = found / n_trials
    return float(random), float(disjoint), float(wrong)


# Rare failures and the winner's curse


def rare_failures(rate: float, n_seeds: int, n_trials: int) -> tuple[float, float]:
    """Return how often a method that fails at this rate "helps", and how often the note is true.

    Its mean equals that of the plain model: it gains in all other seeds what failures lose. The
    note below "helps" states the largest rate of failures that so many clean seeds can't exclude.
    """
    rng = np.random.default_rng(10)
    n_helps, n_true = 0, 0
    for _ in range(n_trials):
        plain, noise = rng.normal(0.7, 0.02, size=(2, n_seeds))
        is_failure = rng.random(n_seeds) < rate
        ours = noise + np.where(is_failure, -0.04 * (1 - rate) / rate, 0.04)
        judged = _judge_pair(ours, plain)
        if judged.verdicts["ours", 0] == "helps":
            n_helps += 1
            stated = [note for note in judged.statement.notes if "without a failure" in note]
            percent = stated[0].split("up to ")[1].split(" %")[0] if stated else 0
            n_true += float(percent) >= 100 * rate
    return n_helps / n_trials, n_true / max(n_helps, 1)


def false_equivalence(rate: float, n_seeds: int, n_trials: int) -> float:
    """Return how often a method that equals the plain one but for rare failures is "the same"."""
    rng = np.random.default_rng(11)
    same = 0
    for _ in range(n_trials):
        plain = rng.normal(0.7, 0.02, size=n_seeds)
        ours = plain - 0.2 * (rng.random(n_seeds) < rate)
        same += _judge_pair(ours, plain).verdicts["ours", 0] == "practically the same"
    return same / n_trials


def _judge_pair(ours: Floats, plain: Floats) -> Judgement:
    table = {"seed": range(len(ours)), "ours": ours.tolist(), "plain": plain.tolist()}
    return lupi.judge(table, method="ours", controls="plain", metric="accuracy")


def winners_gain(n_arms: int, looks: Looks, n_trials: int) -> tuple[float, float]:
    """Return the mean gain printed for the best arm that "helps", and that of fresh seeds.

    The true gain of every arm is 1, in standard deviations of a difference.
    """
    rng = np.random.default_rng(12)
    shape, size = Shape(n_arms, 1, 1), (n_arms + 1, 1, looks.counts[-1])
    printed, confirmed = [], []
    for _ in range(n_trials):
        scores, fresh = rng.normal(0, np.sqrt(0.5), size=(2, *size))
        scores[:n_arms] += 1.0
        fresh[:n_arms] += 1.0
        for n in looks.counts:
            found = judge(scores[..., :n], shape, looks.reached(n))
            gains = {
                i: answer.differences[0].mean
                for i, answer in enumerate(found)
                if answer.verdict == "helps"
            }
            if gains:
                winner = max(gains, key=lambda i: gains[i])
                printed.append(gains[winner])
                confirmed.append(float((fresh[winner] - fresh[-1]).mean()))
                break
    return float(np.mean(printed)), float(np.mean(confirmed))


# Power and coverage


def power(
    shape: Shape, effects: Floats, n_seeds: int, n_trials: int, order: Sequence[int] = ()
) -> Floats:
    """Return how often "helps" is said, (method, size), and for the mean over sizes as a last one.

    Args:
        shape: The size of the comparison.
        effects: Gain over every control in standard deviations of a difference, (method, size).
        n_seeds: Number of seeds.
        n_trials: Number of comparisons.
        order: Questions that are asked first.
    """
    rng = np.random.default_rng(5)
    looks = Looks((n_seeds,)).reached(n_seeds)
    n_helps = np.zeros(shape.n_arms * (shape.n_sizes + (shape.n_sizes > 1)))
    for _ in range(n_trials):
        scores = rng.normal(
            0, np.sqrt(0.5), size=(shape.n_arms + shape.n_controls, shape.n_sizes, n_seeds)
        )
        scores[: shape.n_arms] += effects[:, :, None]
        judged = judge(scores, shape, looks, order=order)
        n_helps += [found.verdict == "helps" for found in judged]
    return n_helps / n_trials


def power_until_decided(effect: float, n_trials: int) -> tuple[float, float]:
    """Return how often one comparison is claimed at 7, 9 or 12 seeds, and the mean number."""
    rng = np.random.default_rng(6)
    looks = Looks.until_decided(12)
    n_found, n_used = 0, 0
    for _ in range(n_trials):
        scores = rng.normal(0, np.sqrt(0.5), size=(2, 1, 12))
        scores[0] += effect
        for n in looks.counts:
            (found,) = judge(scores[..., :n], Shape(1, 1, 1), looks.reached(n))
            if found.verdict == "helps":
                n_found += 1
                break
        n_used += n
    return n_found / n_trials, n_used / n_trials


def coverage(kind: str, n_seeds: int, n_trials: int) -> float:
    """Return how often the interval of a difference holds its true value, 0."""
    rng = np.random.default_rng(7)
    looks = Looks((n_seeds,)).reached(n_seeds)
    covered = 0
    for _ in range(n_trials):
        first, second = NOISE[kind](rng, (2, 1, n_seeds))[:, 0]
        (found,) = flip_signs((first - second)[None], looks)
        covered += found.interval[0] <= 0 <= found.interval[1]
    return covered / n_trials


# Other rules, each for one method and one control: whether it claims a difference, and its interval

Rule = Callable[[Floats, Floats, float, np.random.Generator], tuple[bool, tuple[float, float]]]


def lupi_rule(
    ours: Floats, plain: Floats, correlation: float, rng: np.random.Generator
) -> tuple[bool, tuple[float, float]]:
    """Sign flips with the correction for shared rows."""
    (found,) = flip_signs((ours - plain)[None], [(len(ours), 0.8)], [correlation])
    return min(found.p_better, found.p_worse) <= ALPHA / 2, found.interval


def paired_t(
    ours: Floats, plain: Floats, correlation: float, rng: np.random.Generator
) -> tuple[bool, tuple[float, float]]:
    """Student's paired t-test."""
    return _student(ours - plain, 0.0)


def correlated_bayesian_t(
    ours: Floats, plain: Floats, correlation: float, rng: np.random.Generator
) -> tuple[bool, tuple[float, float]]:
    """Bayesian t-test for correlated scores (Corani and Benavoli 2015), with the same correlation.

    A claim is a posterior probability above 97.5 % that one arm is better.
    """
    return _student(ours - plain, correlation / (1 - correlation))


def _student(gaps: Floats, extra: float) -> tuple[bool, tuple[float, float]]:
    n = len(gaps)
    half = stats.t.ppf(0.975, n - 1) * gaps.std(ddof=1) * np.sqrt(1 / n + extra)
    low, high = float(gaps.mean() - half), float(gaps.mean() + half)
    return low > 0 or high < 0, (low, high)


def bootstrap(
    ours: Floats, plain: Floats, correlation: float, rng: np.random.Generator
) -> tuple[bool, tuple[float, float]]:
    """Percentile bootstrap of the difference of means, each arm resampled (as rliable does)."""
    picks = rng.integers(len(ours), size=(2, 1000, len(ours)))
    gaps = ours[picks[0]].mean(1) - plain[picks[1]].mean(1)
    low, high = np.quantile(gaps, [0.025, 0.975])
    return bool(low > 0 or high < 0), (float(low), float(high))


def almost_stochastic_order(
    ours: Floats, plain: Floats, correlation: float, rng: np.random.Generator
) -> tuple[bool, tuple[float, float]]:
    """Almost stochastic order (Dror et al. 2019; deepsig): claimed if epsilon is below 0.2."""
    claim = _epsilon(ours, plain, rng) < 0.2 or _epsilon(plain, ours, rng) < 0.2
    return claim, (np.nan, np.nan)


def _epsilon(ours: Floats, plain: Floats, rng: np.random.Generator) -> float:
    """Return the upper bound of the violation of stochastic order, from a bootstrap."""
    n = len(ours)
    observed = float(_violation(ours, plain))
    picks = rng.integers(n, size=(2, 200, n))
    resampled = _violation(ours[picks[0]], plain[picks[1]])
    scale = np.sqrt(n / 2)
    spread = float(np.std(scale * (resampled - observed)))
    return float(np.clip(observed - spread * stats.norm.ppf(0.05) / scale, 0.0, 1.0))


def _violation(ours: Floats, plain: Floats) -> Floats:
    gaps = np.sort(ours, axis=-1) - np.sort(plain, axis=-1)
    total = np.maximum((gaps**2).sum(-1), 1e-12)
    found: Floats = (np.where(gaps < 0, gaps, 0.0) ** 2).sum(-1) / total
    return found


RULES: dict[str, Rule] = {
    "`lupi.judge`": lupi_rule,
    "paired t-test": paired_t,
    "correlated Bayesian t-test": correlated_bayesian_t,
    "bootstrap of means (as rliable)": bootstrap,
    "almost stochastic order (as deepsig)": almost_stochastic_order,
}


def rival(name: str, n_trials: int, n_seeds: int = 8) -> list[str]:
    """Return a row: wrong claims in four cases, power with and without a seed effect, coverage."""
    rule, rng = RULES[name], np.random.default_rng(8)
    one, ten, shared, covered = 0, 0, 0, 0
    alone, paired = 0, 0
    pool = Pool("label noise", 0.3)
    correlation = Design(N_POOL, "fixed").correlation(int(pool.share * N_POOL))
    looks = Looks((n_seeds,)).reached(n_seeds)
    for _ in range(n_trials):
        noise = rng.normal(0, np.sqrt(0.5), size=(11, n_seeds))
        claim, (low, high) = rule(noise[0], noise[1], 0.0, rng)
        one += claim
        covered += low <= 0 <= high
        if rule is lupi_rule:
            found = flip_signs(noise[1:] - noise[0], looks)
            ten += any(min(test.p_better, test.p_worse) <= ALPHA / 2 for test in found)
        else:
            ten += any(rule(arm, noise[0], 0.0, rng)[0] for arm in noise[1:])
        ours, plain = pool_scores(pool, n_seeds, rng)
        shared += rule(ours, plain, correlation, rng)[0]
        alone += rule(noise[0] + 1.0, noise[1], 0.0, rng)[0]
        of_seeds = rng.normal(0, 2.0, size=n_seeds)
        paired += rule(noise[0] + 1.0 + of_seeds, noise[1] + of_seeds, 0.0, rng)[0]
    shown = [f"{100 * n / n_trials:.1f} %" for n in (one, ten, shared)]
    found_ = [f"{100 * n / n_trials:.0f} %" for n in (alone, paired)]
    has_interval = rule is not almost_stochastic_order
    return [*shown, *found_, f"{100 * covered / n_trials:.1f} %" if has_interval else "none"]


def lines(n_trials: int) -> Iterator[str]:
    """Yield the tables in Markdown."""
    yield f"| equal arms, 8 seeds | {' | '.join(map(str, SHAPES))} |\n|---|{'---:|' * 4}"
    for kind in NOISE:
        found = [wrong_claims(kind, shape, 8, n_trials) for shape in SHAPES]
        yield _row(kind, found)
    yield _row("normal, 6 seeds", [wrong_claims("normal", s, 6, n_trials) for s in SHAPES])
    yield _row("normal, 12 seeds", [wrong_claims("normal", s, 12, n_trials // 2) for s in SHAPES])
    yield _row("looks at 7, 9, 12", [wrong_until_decided(s, n_trials // 2) for s in SHAPES])
    found = [wrong_helps(shape, 8, n_trials) for shape in SHAPES]
    yield _row('equal to one control, better than the others: "helps"', found)
    yield "\n| arms differ in | rows of a seed | corrected | not corrected |\n|---|---:|---:|---:|"
    for pool in POOLS:
        with_it, without = wrong_on_pools(pool, 8, n_trials)
        about = f"{pool.kind}, tests from half of the pool" if pool.test_share else pool.kind
        shown = f"{100 * with_it:.1f} % | {100 * without:.1f} %"
        yield f"| {about} | {pool.share:.0%} of {N_POOL} | {shown} |"
    yield "\n| coverage | 6 seeds | 8 seeds | 12 seeds |\n|---|---:|---:|---:|"
    for kind in NOISE:
        yield _row(kind, [coverage(kind, n, n_trials) for n in (6, 8, 12)])
    yield "\n| power | |\n|---|---:|"
    good = np.zeros((10, 1))
    good[0] = 2.0
    yield f"| one of ten arms, 8 seeds, 2 sd | {power(SHAPES[3], good, 8, n_trials)[0]:.0%} |"
    first = power(SHAPES[3], good, 8, n_trials, order=[0])[0]
    yield f"| the same, asked first (`questions`) | {first:.0%} |"
    one_size = power(Shape(1, 1, 2), np.array([[3.0, 0.0]]), 6, n_trials)
    yield f"| one of two sizes, 6 seeds, 3 sd | {one_size[0]:.0%} |"
    both = power(SHAPES[1], np.full((1, 2), 1.5), 8, n_trials)
    yield f"| each size of 1 x 3 x 2, 8 seeds, 1.5 sd | {both[:2].mean():.0%} |"
    yield f"| the same, mean over sizes | {both[2]:.0%} |"
    mean = power(Shape(1, 1, 3), np.full((1, 3), 1.5), 6, n_trials)
    yield f"| mean over three sizes, 6 seeds, 1.5 sd | {mean[3]:.0%} |"
    found_, used = power_until_decided(1.0, max(n_trials // 4, 1))
    yield f"| looks at 7, 9, 12, 1 sd | {found_:.0%}, {used:.1f} seeds |"
    yield "\n| training sets of 8 seeds | random: power | disjoint: power | disjoint: wrong |"
    yield f"|---|{'---:|' * 3}"
    for pool in (Pool("label noise", 0.05), Pool("label noise", 0.1)):
        yield _row(f"{pool.share:.0%} of {N_POOL}", power_on_pools(pool, 8, n_trials))
    yield '\n| rare failures, 8 seeds | "helps" | note is true | failures alone: "the same" |'
    yield f"|---|{'---:|' * 3}"
    for rate in (0.05, 0.1, 0.2):
        shares = (*rare_failures(rate, 8, n_trials), false_equivalence(rate, 8, n_trials))
        yield _row(f"in {rate:.0%} of runs", shares)
    yield "\n| a true gain of 1 sd | printed | on fresh seeds |\n|---|---:|---:|"
    for about, n_arms, looks in (
        ("one arm, 8 seeds", 1, Looks((8,))),
        ("best of ten arms, 8 seeds", 10, Looks((8,))),
        ("one arm, looks at 7, 9, 12", 1, Looks.until_decided(12)),
    ):
        printed, fresh = winners_gain(n_arms, looks, n_trials)
        yield f"| {about} | {printed:.2f} | {fresh:.2f} |"
    heads = (
        "one pair | best of ten | shared rows | power, 1 sd | power, 1 sd, seeds differ | coverage"
    )
    yield f"\n| rule | {heads} |\n|---|{'---:|' * 6}"
    for name in RULES:
        yield f"| {name} | {' | '.join(rival(name, n_trials))} |"


def _row(name: str, shares: Sequence[float]) -> str:
    return f"| {name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    for line in lines(parser.parse_args().trials):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
