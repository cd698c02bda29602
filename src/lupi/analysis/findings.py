"""From arrays of noise to findings: groups of rows, relations, and a diagnosis in words."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.analysis.observed import Floats, Observed, SiteNoise, Unit
from lupi.analysis.relations import NORMAL, Estimate, mean_difference, rank_correlation

NO_NOISE = 1e-3
"""A mean variance below this is practically none."""
LOUD = 50.0
"""A mean variance above this is at the bound of what lupi lets noise be."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The variance of each unit over a group of rows, in the site's order of units."""

    group: str
    n_rows: int
    means: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """The band: 95 % interval of the mean."""


@dataclass(frozen=True, slots=True)
class Relation:
    """How something of a row's noise goes with something of the row, by ranks."""

    noise: str
    to: str
    correlation: Estimate | None
    """None where one of the two does not vary."""


@dataclass(frozen=True, slots=True)
class SiteFindings:
    """What the noise at one site is like."""

    name: str
    unit: Unit
    order: tuple[int, ...]
    """The units sorted by energy: their mean variance over all rows, the largest first."""
    mean_variance: float
    between: float
    collapsed: bool
    profiles: tuple[Profile, ...]
    difference: Estimate | None
    """Mean variance of the first group's rows minus that of the second's."""
    inside: float | None
    outside: float | None
    relations: tuple[Relation, ...]
    diagnosis: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the noise of a run is like."""

    method: str
    control: str
    n_rows: int
    n_held: int
    groups: tuple[str, str]
    collapsed: bool
    """Whether x* enters at no site."""
    sites: tuple[SiteFindings, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def groups_of(seen: Observed) -> dict[str, NDArray[np.bool_]]:
    """Cut the rows in two: answered right and wrong, or, without classes, low and high loss."""
    if seen.right is not None:
        return {"right": seen.right, "wrong": ~seen.right}
    high = seen.losses > np.median(seen.losses)
    return {"low loss": ~high, "high loss": high}


def find(seen: Observed) -> Findings:
    """Describe what was seen."""
    groups = groups_of(seen)
    sites = tuple(_site(site, seen, groups) for site in seen.sites)
    first, second = groups
    return Findings(
        method=seen.method,
        control=seen.control,
        n_rows=len(seen.losses),
        n_held=seen.n_held,
        groups=(first, second),
        collapsed=all(site.collapsed for site in sites),
        sites=sites,
    )


def _site(site: SiteNoise, seen: Observed, groups: dict[str, NDArray[np.bool_]]) -> SiteFindings:
    order = np.argsort(-site.variances.mean(axis=0), kind="stable")
    of_row = site.variances.mean(axis=1)
    first, second = groups.values()
    difference = mean_difference(of_row[first], of_row[second])
    inside, outside = _mean(site.inside), _mean(site.outside)
    return SiteFindings(
        name=site.name,
        unit=site.unit,
        order=tuple(order.tolist()),
        mean_variance=float(of_row.mean()),
        between=site.between,
        collapsed=site.collapsed,
        profiles=tuple(
            _profile(group, site.variances[rows][:, order])
            for group, rows in groups.items()
            if rows.any()
        ),
        difference=difference,
        inside=inside,
        outside=outside,
        relations=tuple(_relations(site, seen)),
        diagnosis=tuple(_diagnosis(site, seen, list(groups), difference, inside, outside)),
    )


def _mean(values: Floats | None) -> float | None:
    """Return the mean over the rows that have a value."""
    known = np.empty(0) if values is None else values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def _profile(group: str, variances: Floats) -> Profile:
    n = len(variances)
    means = variances.mean(axis=0)
    half = NORMAL * variances.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.zeros_like(means)
    return Profile(
        group,
        n,
        tuple(means.tolist()),
        tuple((means - half).tolist()),
        tuple((means + half).tolist()),
    )


def _relations(site: SiteNoise, seen: Observed) -> Iterator[Relation]:
    noise = {
        "mean variance": site.variances.mean(axis=1),
        "spread over units": np.log(site.variances).std(axis=1),
    }
    if site.inside is not None and site.outside is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            noise["outside / inside"] = site.outside / site.inside
    facts: dict[str, Floats] = {"loss": seen.losses}
    if seen.right is not None:
        facts["error"] = (~seen.right).astype(np.float64)
    if seen.region_frac is not None:
        facts["region size"] = seen.region_frac
    for name, values in noise.items():
        for to, fact in facts.items():
            yield Relation(name, to, rank_correlation(values, fact))


def _diagnosis(
    site: SiteNoise,
    seen: Observed,
    groups: list[str],
    difference: Estimate | None,
    inside: float | None,
    outside: float | None,
) -> Iterator[str]:
    """Say what the noise is like, the most important first."""
    mean = float(site.variances.mean())
    if site.collapsed:
        yield (
            f"Collapsed: from row to row the variance of a {site.unit} changes by "
            f"{100 * math.expm1(site.between):.2g} % only. Whatever the run scored, x* does not "
            "enter here."
        )
        spread = float(np.log(site.variances).std())
        if spread < site.between + 0.01:
            yield f"All {site.unit}s have the same: plain Gaussian noise of variance {mean:.3g}."
    else:
        yield (
            f"x* has an effect: between rows, the variance of a {site.unit} changes by a factor of "
            f"{math.exp(site.between):.3g} (one standard deviation)."
        )
    if mean < NO_NOISE:
        yield f"There is hardly any noise: its mean variance is {mean:.2g}."
    if mean > LOUD:
        yield f"The noise is at its upper limit: its mean variance is {mean:.3g}."
    if inside is not None and outside is not None and not site.collapsed:
        yield f"Inside the region the variance is {inside:.3g} in the mean, outside {outside:.3g}."
    if seen.control != "real":
        yield (
            f"x* is {seen.control} here, a control: the noise does not follow this row's own x*."
        )
    if not site.collapsed:
        yield _of_groups(groups, difference)


def _of_groups(groups: list[str], difference: Estimate | None) -> str:
    if difference is None:
        return (
            f"The {groups[0]} and the {groups[1]} rows can't be told apart by their mean variance: "
            "it does not vary, or there are too few of them."
        )
    low, high = difference.interval
    numbers = f"{difference.value:+.3g}, 95 % interval {low:+.3g} to {high:+.3g}"
    if not difference.is_clear:
        return (
            f"No clear difference in mean variance between the {groups[0]} and the {groups[1]} "
            f"rows ({numbers})."
        )
    more = "more" if difference.value > 0 else "less"
    paper = ""
    if groups[0] == "right":
        paper = f"; the paper found {'the same' if difference.value > 0 else 'the opposite'}"
    return f"The {groups[0]} rows have {more} noise than the {groups[1]} ones ({numbers}){paper}."
