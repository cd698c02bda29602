"""Statistics of observed noise: variance by group of rows, correlations, and a diagnosis."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lupi.analysis.observed import Floats, Observed, SiteNoise, Unit
from lupi.analysis.relations import NORMAL, Estimate, mean_difference, rank_correlation

NO_NOISE = 1e-3
"""A mean variance below this counts as no noise."""
LOUD = 50.0
"""A mean variance above this is at lupi's upper limit."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The mean variance of each unit over a group of rows, in the site's order of units."""

    group: str
    n_rows: int
    means: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Upper end of the 95 % interval of the mean."""


@dataclass(frozen=True, slots=True)
class Relation:
    """The rank correlation of a property of a row's noise with a property of the row."""

    noise: str
    to: str
    correlation: Estimate | None
    """None if one of the two does not vary."""


@dataclass(frozen=True, slots=True)
class SiteFindings:
    """Findings about the noise at one site."""

    name: str
    unit: Unit
    order: tuple[int, ...]
    """The units sorted by energy (their mean variance over all rows), largest first."""
    mean_variance: float
    between: float
    collapsed: bool
    profiles: tuple[Profile, ...]
    difference: Estimate | None
    """Mean variance of the first group minus that of the second."""
    inside: float | None
    outside: float | None
    relations: tuple[Relation, ...]
    diagnosis: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings about the noise of a run."""

    method: str
    control: str
    n_rows: int
    n_held: int
    groups: tuple[str, str]
    collapsed: bool
    """Whether the noise depends on x* at no site."""
    sites: tuple[SiteFindings, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def groups_of(observed: Observed) -> dict[str, NDArray[np.bool_]]:
    """Split the rows into correct and wrong predictions or, in regression, low and high loss."""
    if observed.correct is not None:
        return {"correct": observed.correct, "wrong": ~observed.correct}
    high = observed.losses > np.median(observed.losses)
    return {"low loss": ~high, "high loss": high}


def find(observed: Observed) -> Findings:
    """Return the findings about observed noise."""
    groups = groups_of(observed)
    sites = tuple(_site(site, observed, groups) for site in observed.sites)
    first, second = groups
    return Findings(
        method=observed.method,
        control=observed.control,
        n_rows=len(observed.losses),
        n_held=observed.n_held,
        groups=(first, second),
        collapsed=all(site.collapsed for site in sites),
        sites=sites,
    )


def _site(
    site: SiteNoise, observed: Observed, groups: dict[str, NDArray[np.bool_]]
) -> SiteFindings:
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
        relations=tuple(_relations(site, observed)),
        diagnosis=tuple(_diagnosis(site, observed, list(groups), difference, inside, outside)),
    )


def _mean(values: Floats | None) -> float | None:
    """Return the mean over the finite values, or None if there are none."""
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


def _relations(site: SiteNoise, observed: Observed) -> Iterator[Relation]:
    noise = {
        "mean variance": site.variances.mean(axis=1),
        "spread over units": np.log(site.variances).std(axis=1),
    }
    if site.inside is not None and site.outside is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            noise["outside / inside"] = site.outside / site.inside
    facts: dict[str, Floats] = {"loss": observed.losses}
    if observed.correct is not None:
        facts["error"] = (~observed.correct).astype(np.float64)
    if observed.region_frac is not None:
        facts["region size"] = observed.region_frac
    for name, values in noise.items():
        for to, fact in facts.items():
            yield Relation(name, to, rank_correlation(values, fact))


def _diagnosis(
    site: SiteNoise,
    observed: Observed,
    groups: list[str],
    difference: Estimate | None,
    inside: float | None,
    outside: float | None,
) -> Iterator[str]:
    """Yield sentences about the noise, the most important first."""
    mean = float(site.variances.mean())
    if site.collapsed:
        yield (
            f"Collapsed: over rows, the variance of a {site.unit} changes by only "
            f"{100 * math.expm1(site.between):.2g} %. x* has no effect here, whatever the score of "
            "the run."
        )
        spread = float(np.log(site.variances).std())
        if spread < site.between + 0.01:
            yield (
                f"All {site.unit}s have the same variance: plain Gaussian noise of variance "
                f"{mean:.3g}."
            )
    else:
        yield (
            f"x* has an effect: over rows, the variance of a {site.unit} changes by a factor of "
            f"{math.exp(site.between):.3g} (one standard deviation)."
        )
    if mean < NO_NOISE:
        yield f"There is hardly any noise: its mean variance is {mean:.2g}."
    if mean > LOUD:
        yield f"The noise is at its upper limit: its mean variance is {mean:.3g}."
    if inside is not None and outside is not None and not site.collapsed:
        yield f"The mean variance is {inside:.3g} inside the region and {outside:.3g} outside."
    if observed.control != "real":
        yield (
            f"This run is a control with {observed.control} x*: the noise does not depend on the "
            "row's own x*."
        )
    if not site.collapsed:
        yield _of_groups(groups, difference)


def _of_groups(groups: list[str], difference: Estimate | None) -> str:
    if difference is None:
        return (
            f"The mean variance of {groups[0]} and {groups[1]} rows can't be compared: it does not "
            "vary, or there are too few rows."
        )
    low, high = difference.interval
    numbers = f"{difference.value:+.3g}, 95 % interval {low:+.3g} to {high:+.3g}"
    if not difference.is_clear:
        return (
            f"There is no clear difference in mean variance between {groups[0]} and {groups[1]} "
            f"rows ({numbers})."
        )
    more = "more" if difference.value > 0 else "less"
    paper = ""
    if groups[0] == "correct":
        paper = f"; the paper found {'the same' if difference.value > 0 else 'the opposite'}"
    return (
        f"{groups[0].capitalize()} rows have {more} noise than {groups[1]} ones ({numbers}){paper}."
    )
