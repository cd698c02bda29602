"""The test behind every verdict: sign flips of whole seeds, for all comparisons at once.

Arms that share a seed share training rows, initial weights and batch order, so they are compared
seed by seed. If an arm equals a control, a difference is as likely positive as negative, and all
2**J ways to flip the signs of J seeds are equally likely (Fisher 1935).

*One family.* All comparisons (arm, control, size) are flipped together: a pattern flips every
difference of a seed at once, so dependence between arms, controls and sizes is kept. With the
statistic of a comparison, its mean divided by its root mean square (equivalent to Student's t),

    p of a comparison = share of patterns whose largest statistic, over this comparison and all
                        weaker ones, is at least the one observed

This is the step-down max-T procedure (Westfall and Young 1993), one-sided in each direction: the
chance of any wrong claim is at most alpha / 2 per direction, and comparisons without an effect
hardly cost the others anything. A claim must hold for the comparison alone, too.

*Every control.* The comparisons of one arm at one size with its controls are one question. To be
"better than every control" or "better than the reference" takes a claim about the one control that
is not beaten, whichever it is, so comparisons of the same question do not compete in this direction
(an intersection-union test, Berger 1982). "Worse than a control" may be claimed about any of them,
so there all comparisons compete.

*A planned order.* Questions may be tested one after another, each on its own as long as all before
it were claimed; the rest of the family follows them (a fixed sequence, Maurer et al. 1995).

*Looks.* At look k the patterns that cross at any look so far may be at most the share alpha_k that
was allowed until then: an exact group-sequential test, which loses nothing to looks at which no
outcome could have been a claim.

*Intervals* invert the same test for one comparison: the differences x for which "the difference is
x" is not rejected. Without earlier looks the bounds are k-th smallest and k-th largest of the mean
differences over all sets of seeds (typical values, Hartigan 1969).

*Shared rows.* Seeds whose rows overlap are correlated. A correlation r between any two makes the
mean of J differences vary sqrt(1 + J r / (1 - r)) times as much as their spread tells (Nadeau and
Bengio 2003). The mean is divided by that before the test, and the interval is widened by it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

ALPHA = 0.05
"""Chance of any wrong claim in a family: one half for "better", one half for "worse"."""
SEED = 0
N_PATTERNS = 2**12
"""Largest number of sign patterns. All are used with up to 12 seeds; with more, this many are
drawn at random, which keeps the test valid; a p-value of 0.025 then has a standard error of 0.002.
"""
ROUNDING = 1e-12
"""Relative differences below this are floating-point rounding."""
OUTLIER = 3.0
"""Differences beyond this multiple of their median size are clipped before comparisons are compared
with each other: one diverged run of a control shall not hide that an arm beats it in every seed."""
TIE = 1e-9
"""Statistics closer than this are tied."""
BISECTIONS = 16
ROWS_AT_A_TIME = 64
"""Number of rows processed at once, limited by memory."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Groups = NDArray[np.intp]
Reached = Sequence[tuple[int, float]]
"""Past looks: number of seeds, share of the allowed error that may be spent until then."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """One comparison of a family. P-values are one-sided; at most ALPHA / 2 is a claim."""

    n_seeds: int
    mean: float
    p_better: float
    """Corrected for the whole family and all looks."""
    p_worse: float
    p_better_alone: float
    """Corrected for looks only, as if it were the only comparison."""
    p_worse_alone: float
    interval: tuple[float, float]
    """Each end has a confidence of at least 97.5 % for this comparison alone. An end excludes zero
    if and only if the family supports it. Infinite with too few seeds."""
    smallest_p: float
    """The smallest p-value that any outcome could have had."""
    has_spread: bool
    """Whether the differences vary; identical differences are not replicates."""


def paired_differences(arm: ArrayLike, other: ArrayLike) -> Floats:
    """Return arm minus other for scores in the same order of seeds; rounding errors become 0."""
    a, b = np.asarray(arm, np.float64), np.asarray(other, np.float64)
    if a.shape != b.shape:
        raise ValueError(f"paired arms need the same seeds: got {a.size} and {b.size} scores")
    return np.where(np.isclose(a, b, rtol=ROUNDING, atol=0.0), 0.0, a - b)


def flip_signs(
    differences: Floats,
    looks: Reached,
    correlations: Sequence[float] | None = None,
    questions: Sequence[int] | None = None,
    order: Sequence[int] = (),
) -> list[PairedTest]:
    """Test all comparisons of a family in both directions.

    Args:
        differences: (comparison, seed), seeds in the order of arrival; NaN is a missing run.
        looks: Past looks; a look at j seeds uses the first j.
        correlations: Correlation between two seeds due to shared rows, for each comparison.
        questions: The question that each comparison belongs to; by default each is its own.
        order: The questions to test first, one after another.
    """
    rows = np.asarray(differences, np.float64)[:, : looks[-1][0]]
    correlation = np.zeros(len(rows)) if correlations is None else np.asarray(correlations)
    if not len(rows):
        return []
    found = [
        _Look(rows[:, :n_seeds], correlation, share, rows.shape[1]) for n_seeds, share in looks
    ]
    last = found[-1]
    alone_better, alone_worse = _alone(found), _alone(found, -1.0)
    groups = np.arange(len(rows)) if questions is None else np.asarray(questions)
    stages = _stages(groups, order)
    better = _in_stages(found, stages, groups, alone_better[None])[0]
    worse = _in_stages(found, stages, np.arange(len(rows)), alone_worse[None], -1.0)[0]
    low, high = _bounds(found, rows, correlation)
    # The family decides whether an interval excludes zero.
    low = np.where(better <= ALPHA / 2, np.maximum(low, TIE * last.scale), np.minimum(low, 0.0))
    high = np.where(worse <= ALPHA / 2, np.minimum(high, -TIE * last.scale), np.maximum(high, 0.0))
    smallest = np.min([look.smallest / look.share for look in found], axis=0)
    return [
        PairedTest(
            n_seeds=int(last.counts[i]),
            mean=float(last.means[i]),
            p_better=float(better[i]),
            p_worse=float(worse[i]),
            p_better_alone=float(alone_better[i]),
            p_worse_alone=float(alone_worse[i]),
            interval=(float(low[i]), float(high[i])),
            smallest_p=min(1.0, float(smallest[i])),
            has_spread=bool(last.has_spread[i]),
        )
        for i in range(len(rows))
    ]


class _Look:
    """The statistics of all comparisons under all sign patterns at one look."""

    def __init__(
        self,
        rows: Floats,
        correlation: Floats,
        share: float,
        n_total: int,
        n_patterns: int = N_PATTERNS,
    ) -> None:
        is_there = np.isfinite(rows)
        values = np.where(is_there, rows, 0.0)
        self.share = share
        self.is_there = is_there
        self.counts = is_there.sum(1)
        n = np.maximum(self.counts, 1)
        self.means = values.sum(1) / n
        self.scale = np.abs(values).max(1, initial=0.0)
        spread = np.where(is_there, values, -np.inf).max(1, initial=-np.inf) - np.where(
            is_there, values, np.inf
        ).min(1, initial=np.inf)
        self.has_spread = (self.counts < 2) | (self.scale == 0) | (spread > ROUNDING * self.scale)
        self.inflation = np.sqrt(1 + self.counts * correlation / (1 - correlation))
        centred = values - (self.means * (1 - 1 / self.inflation))[:, None]
        self.values = np.where(is_there & self.has_spread[:, None], centred, 0.0)
        self.patterns = patterns(n_total, n_patterns)[:, : rows.shape[1]]
        self.smallest = 1 / np.minimum(2.0**self.counts, float(len(self.patterns)))
        self.smallest[~self.has_spread] = 1.0
        self.sums = self.values @ self.patterns.T  # (comparison, pattern)
        self.own = self._studentised(self.values, self.sums)
        """Statistics of each comparison alone."""

    @cached_property
    def statistics(self) -> Floats:
        """Statistics that are compared with those of other comparisons."""
        if len(self.values) == 1:
            return self.own
        cap = OUTLIER * self._median_sizes()[:, None]
        clipped = np.where(cap > 0, np.clip(self.values, -cap, cap), self.values)
        found = self._studentised(clipped, clipped @ self.patterns.T)
        if len(set(self.counts.tolist())) > 1:  # the same mean is clearer with more seeds
            freedom = np.maximum(self.counts - 1, 1)[:, None]
            found *= np.sqrt(freedom / np.maximum(1 - found**2, TIE))
        return found

    def _median_sizes(self) -> Floats:
        """Return the median size of the differences that are there (`nanmedian` is slow)."""
        sizes = np.sort(np.where(self.is_there, np.abs(self.values), np.inf), axis=1)
        upper = np.minimum(self.counts // 2, sizes.shape[1] - 1)
        middle = np.stack([np.maximum(self.counts - 1, 0) // 2, upper], axis=1)
        found = np.take_along_axis(sizes, middle, axis=1).mean(1)
        return np.where(self.counts > 0, found, 0.0)

    def _studentised(self, values: Floats, sums: Floats) -> Floats:
        norm = np.sqrt(np.maximum(self.counts, 1) * (values**2).sum(1))
        found: Floats = sums / np.where(norm > 0, norm, 1.0)[:, None]
        return found


def _in_stages(
    looks: Sequence[_Look],
    stages: Sequence[Groups],
    groups: Groups,
    alone: Floats,
    sign: float = 1.0,
) -> Floats:
    """Return p-values corrected within each stage and not below any of the stages before it.

    Args:
        looks: Statistics at each look, of one family or of several.
        stages: Comparisons of a family that are tested together, stage by stage.
        groups: The group of each comparison: see `_step_down`.
        alone: P-values of each comparison alone, (family, comparison).
        sign: 1 for "better", -1 for "worse".
    """
    found, gate = np.ones(alone.shape), np.zeros((len(alone), 1))
    for rows in stages:
        corrected = _step_down(looks, rows, groups[rows], sign, len(alone))
        found[:, rows] = np.maximum(np.maximum(corrected, alone[:, rows]), gate)
        gate = found[:, rows].max(1, keepdims=True)
    return found


def _stages(groups: Groups, order: Sequence[int]) -> list[Groups]:
    """Return the comparisons that are tested together: of each question in order, then the rest."""
    stages = [np.flatnonzero(groups == question) for question in order]
    stages.append(np.flatnonzero(~np.isin(groups, order)))
    return [rows for rows in stages if len(rows)]


def _step_down(
    looks: Sequence[_Look], rows: Groups, groups: Groups, sign: float, n_families: int
) -> Floats:
    """Return p-values of these comparisons, corrected for all of them and for all looks.

    They are divided by the share of the error that was allowed until the look, so that every one is
    compared with the same level. The comparisons of a look are ordered by their statistic, and each
    is held against itself and all weaker ones of other groups that have not been claimed at an
    earlier look.

    Returns:
        (family, comparison).
    """

    def table(look: _Look) -> Floats:
        """Return the statistics, (family, comparison, pattern)."""
        n_patterns = look.statistics.shape[1]
        return sign * look.statistics.reshape(n_families, -1, n_patterns)[:, rows]

    best = np.ones((n_families, len(rows)))
    claimed = np.zeros(best.shape, dtype=np.bool_)
    for k, look in enumerate(looks):
        statistics = table(look)
        order = np.argsort(np.where(claimed, np.inf, statistics[..., 0]), axis=1, kind="stable")
        ranked = np.take_along_axis(statistics, order[..., None], axis=1)
        is_above = _with_rivals(ranked, groups[order]) >= ranked[..., :1] - TIE
        crossed: Bools | None = None
        for earlier in looks[:k]:
            as_ranked = np.take_along_axis(table(earlier), order[..., None], axis=1)
            crossed = _cross(_with_rivals(as_ranked, groups[order]), earlier.share, crossed)
        if crossed is not None:
            is_above |= crossed
        # A comparison is claimed only if all stronger ones are; the last ones were at other looks.
        p_values = np.where(
            np.take_along_axis(claimed, order, axis=1), 0.0, is_above.mean(-1) / look.share
        )
        p_values = np.maximum.accumulate(p_values[:, ::-1], axis=1)[:, ::-1]
        found = np.empty(best.shape)
        np.put_along_axis(found, order, p_values, axis=1)
        found[~look.has_spread.reshape(n_families, -1)[:, rows]] = 1.0
        best = np.where(claimed, best, np.minimum(best, found))
        claimed |= best <= ALPHA / 2
    return np.minimum(best, 1.0)


def _with_rivals(ranked: Floats, groups: Groups) -> Floats:
    """Return, for each comparison, its maximum with all before it that belong to other groups.

    Args:
        ranked: Statistics, (family, comparison, pattern).
        groups: The group of each comparison, (family, comparison).
    """
    found = np.empty_like(ranked)
    if len(np.unique(groups[0])) == groups.shape[1]:  # all compete
        return np.maximum.accumulate(ranked, axis=1, out=found)
    best = np.full((len(ranked), ranked.shape[2]), -np.inf)
    second = best.copy()  # the best of the groups that do not have the best
    owner = np.full(best.shape, -1, dtype=groups.dtype)
    for i in range(ranked.shape[1]):
        row, group = ranked[:, i], groups[:, i, None]
        is_owner, is_best = owner == group, row > best
        np.maximum(row, np.where(is_owner, second, best), out=found[:, i])
        np.copyto(second, np.where(is_best, best, np.maximum(second, row)), where=~is_owner)
        np.copyto(owner, group, where=is_best)
        np.maximum(best, row, out=best)
    return found


def _cross(statistics: Floats, share: float, earlier: Bools | None) -> Bools:
    """Add the patterns with the largest statistics, as many as the share of the error allows."""
    n_patterns = statistics.shape[-1]
    if earlier is None:
        earlier = np.zeros(statistics.shape, dtype=np.bool_)
    fresh = np.where(earlier, -np.inf, statistics)
    allowed = np.maximum(_n_allowed(share, n_patterns) - earlier.sum(-1, keepdims=True), 0)
    place = np.minimum(allowed, n_patterns - 1)
    falling = -np.partition(-fresh, np.unique(place), axis=-1)
    crossing: Bools = earlier | (fresh > np.take_along_axis(falling, place, axis=-1) + TIE)
    return crossing


def _alone(looks: Sequence[_Look], sign: float = 1.0) -> Floats:
    """Return p-values, each as if it were the only comparison."""
    best = np.ones(len(looks[0].counts))
    crossed: Bools | None = None
    for look in looks:
        table = sign * look.own
        is_above = table >= table[:, :1] - TIE
        if crossed is not None:
            is_above |= crossed
        found = np.where(look.has_spread, is_above.mean(1) / look.share, 1.0)
        best = np.minimum(best, found)
        if look is not looks[-1]:
            crossed = _cross(table, look.share, crossed)
    return np.minimum(best, 1.0)


def _bounds(looks: Sequence[_Look], rows: Floats, correlation: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper bound of each difference, as if it were the only one."""
    if len(looks) == 1:
        return _typical_values(looks[0])
    low, high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    if (kept := looks[-1].has_spread & (looks[-1].counts > 0)).any():
        shown = [(look.values.shape[1], look.share) for look in looks]
        low[kept] = _lower_bounds(rows[kept], shown, correlation[kept])
        high[kept] = -_lower_bounds(-rows[kept], shown, correlation[kept])
    return low, high


def _typical_values(look: _Look) -> tuple[Floats, Floats]:
    """Return bounds from the mean differences over all sets of seeds: those that are flipped."""
    flipped = (1 - look.patterns) / 2  # (pattern, seed)
    n_members = look.is_there @ flipped.T  # (comparison, pattern)
    totals = (look.values.sum(1)[:, None] - look.sums) / 2
    is_set = n_members > 0
    means = np.where(is_set, totals / np.maximum(n_members, 1), np.nan)
    means += (look.means * (1 - 1 / look.inflation))[:, None]
    n_patterns = len(look.patterns)
    places = _n_allowed(look.share, n_patterns) - (~is_set).sum(1)
    low, high = np.full(len(means), -np.inf), np.full(len(means), np.inf)
    for place in set(places[(places >= 0) & look.has_spread].tolist()):
        rows = (places == place) & look.has_spread
        ends = [place, int(is_set[rows][0].sum()) - 1 - place]  # NaN is sorted to the end
        found = np.partition(means[rows], ends, axis=1)[:, ends]
        found = look.means[rows, None] + look.inflation[rows, None] * (
            found - look.means[rows, None]
        )
        low[rows], high[rows] = found.T
    return low, high


def _lower_bounds(rows: Floats, looks: Reached, correlation: Floats) -> Floats:
    """Return the largest difference that the group-sequential test rejects as too small."""

    def is_rejected(value: Floats) -> Bools:
        """Whether "the difference is no larger than `value`" is rejected, for each row."""
        shifted = rows - value[:, None]
        found = [_Look(shifted[:, :n], correlation, share, rows.shape[1]) for n, share in looks]
        return np.asarray(_alone(found) <= ALPHA / 2)

    n_seeds = np.isfinite(rows).sum(1)
    spread = np.nanmax(rows, axis=1) - np.nanmin(rows, axis=1)
    reach = 2 * spread * np.sqrt(1 + n_seeds * correlation / (1 - correlation))
    high = np.nanmean(rows, axis=1)
    low = high - np.maximum(reach, TIE)
    is_open = ~is_rejected(low)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rejected = is_rejected(middle)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return np.where(is_open, -np.inf, low)


def _n_allowed(share: float, n_patterns: int) -> int:
    """Return how many patterns may cross."""
    return math.floor(share * ALPHA / 2 * n_patterns * (1 + ROUNDING))


def p_above_zero(rows: Floats, correlation: float = 0.0, n_patterns: int = N_PATTERNS) -> Floats:
    """Return the p-value of "the difference is above zero" of each row alone, (row, seed)."""
    p_values = np.ones(len(rows))
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        chunk = rows[start : start + ROWS_AT_A_TIME]
        look = _Look(chunk, np.full(len(chunk), correlation), 1.0, rows.shape[1], n_patterns)
        p_values[start : start + ROWS_AT_A_TIME] = _alone([look])
    return p_values


def simulated_claims(
    tables: Floats,
    correlations: Floats,
    share: float,
    n_patterns: int,
    questions: Sequence[int] | None = None,
    order: Sequence[int] = (),
) -> Bools:
    """Return which comparisons are claimed to be better, for many simulated families at once.

    The same test as `flip_signs` at one look, without missing runs.

    Args:
        tables: Differences, (family, comparison, seed).
        correlations: Correlation between two seeds, for each comparison.
        share: Share of the allowed error that may be spent.
        n_patterns: Largest number of sign patterns.
        questions: The question that each comparison belongs to; by default each is its own.
        order: The questions to test first, one after another.
    """
    n_families, n_rows, n_seeds = tables.shape
    rows = tables.reshape(-1, n_seeds)
    look = _Look(rows, np.tile(correlations, n_families), share, n_seeds, n_patterns)
    alone = _alone([look]).reshape(n_families, n_rows)
    groups = np.arange(n_rows) if questions is None else np.asarray(questions)
    claims: Bools = _in_stages([look], _stages(groups, order), groups, alone) <= ALPHA / 2
    return claims


def seeds_needed(share: float) -> int:
    """Return the smallest number of seeds with which a claim is possible.

    It does not depend on the number of comparisons: differences that are large and steady are
    exceeded by no other sign pattern of any comparison.

    Args:
        share: Share of the allowed error that may be spent.
    """
    return next(n for n in range(1, 64) if 2.0**-n <= share * ALPHA / 2)


def mean_interval(scores: ArrayLike, correlation: float = 0.0) -> tuple[float, float] | None:
    """Return Student's 95 % interval of a mean; None with fewer than two seeds or no spread."""
    values = np.asarray(scores, np.float64)
    if values.size < 2 or np.ptp(values) <= ROUNDING * float(np.abs(values).max()):
        return None
    inflation = math.sqrt(1 + values.size * correlation / (1 - correlation))
    error = float(values.std(ddof=1)) / math.sqrt(values.size) * inflation
    half = float(special.stdtrit(values.size - 1, 0.975)) * error
    mean = float(values.mean())
    return mean - half, mean + half


@lru_cache(maxsize=32)
def patterns(n_seeds: int, n_patterns: int = N_PATTERNS) -> Floats:
    """Return sign patterns, (pattern, seed): all, or a sample; the first flips nothing."""
    if 1 << n_seeds <= n_patterns:
        bits = np.arange(1 << n_seeds)[:, None] >> np.arange(n_seeds) & 1
    else:
        bits = np.random.default_rng(SEED).integers(2, size=(n_patterns, n_seeds))
        bits[0] = 0
    return (1.0 - 2.0 * bits).astype(np.float64)
