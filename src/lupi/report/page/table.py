"""The rows of the page's table, as text ready to show."""

from dataclasses import dataclass

from lupi.records import ComparisonRecord
from lupi.verdict.results import LOOKS, ArmSummary, Cell, Difference, LabelSaving, Summary, Verdict
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import (
    difference,
    interval,
    p_value,
    saving,
    saving_interval,
    score,
    unit,
)


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """Scores of a publication. They are shown but never judged."""

    source: str
    scores: dict[tuple[str, int], float]
    """By arm and size."""


def read_published(record: ComparisonRecord) -> PublishedScores | None:
    """Return the scores under `paper` in the settings; None if missing or invalid."""
    paper = record.settings.get("paper")
    try:
        scores = {
            (arm, int(size)): float(score)
            for arm, by_size in paper["scores"].items()  # type: ignore[index]
            for size, score in by_size.items()
        }
        return PublishedScores(str(paper["source"]), scores)  # type: ignore[index]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """One arm at one size."""

    arm: str
    verdict: Verdict
    mean: str
    interval: str
    against_reference: str
    reference_interval: str
    against_control: str
    control_interval: str
    control: str
    p_value: str
    saving: str
    saving_interval: str
    runs: str
    n_diverged: int
    n_collapsed: int | None
    """None for an arm without x*, which can't collapse."""
    published: str
    order: dict[str, float | None]
    """Sort key of each column, in descending order; None comes last."""


def rows(summary: Summary, published: PublishedScores | None = None) -> dict[int, list[Row]]:
    """Return the rows of each size, arms in the order of the comparison."""
    return {
        size: [
            _row(summary, arm, cell, published)
            for arm in summary.arms
            for cell in _at(arm, size)
            if cell.verdict != "not run"
        ]
        for size in summary.sizes
    }


@dataclass(frozen=True, slots=True)
class AllScores:
    """All recorded scores at one size: means over seeds, by arm."""

    names: tuple[str, ...]
    arms: dict[str, tuple[str, ...]]


def all_scores(summary: Summary) -> dict[int, AllScores]:
    """Return all scores by size, the metric of the verdict first; empty if there are no others."""
    found: dict[int, AllScores] = {}
    for size in summary.sizes:
        cells = {arm.name: cell for arm in summary.arms for cell in _at(arm, size)}
        named = {name for cell in cells.values() for name in cell.recorded} - {summary.metric}
        names = (summary.metric, *sorted(named))
        heads = tuple(unit(name) for name in names)
        if named:
            arms = {
                arm: tuple(score(cell.recorded.get(name), name) for name in names)
                for arm, cell in cells.items()
                if cell.recorded
            }
            found[size] = AllScores(heads, arms)
    return found


def _at(arm: ArmSummary, size: int) -> list[Cell]:
    return [cell for cell in arm.cells if cell.size == size]


def _row(summary: Summary, arm: ArmSummary, cell: Cell, published: PublishedScores | None) -> Row:
    metric = summary.metric
    by_other = {found.other: found for found in cell.differences}
    reference = by_other.get(summary.reference)
    # Only candidates are compared with other controls than the reference.
    control = by_other.get(cell.deciding_control or "") if is_candidate(arm) else None
    ends = cell.interval
    interval = f"{score(ends[0], metric)} to {score(ends[1], metric)}" if ends else ""
    published_score = published.scores.get((arm.name, cell.size)) if published else None
    n_collapsed = cell.n_collapsed if arm.uses_xstar else None
    return Row(
        arm=arm.name,
        verdict=cell.verdict,
        mean=score(cell.mean, metric),
        interval=interval,
        against_reference=difference(reference.mean if reference else None, metric),
        reference_interval=_ends(reference, metric),
        against_control=difference(control.mean if control else None, metric),
        control_interval=_ends(control, metric),
        control=control.other if control else "",
        p_value=p_value(cell.p_value),
        saving=saving(cell.label_saving),
        saving_interval=saving_interval(cell.label_saving),
        runs=f"{cell.n_seeds} of {cell.n_seeds + cell.n_missing}",
        n_diverged=cell.n_diverged,
        n_collapsed=n_collapsed,
        published=score(published_score, metric),
        order={
            "mean": cell.mean,
            "reference": reference.mean if reference else None,
            "control": control.mean if control else None,
            "p": cell.p_value,
            "verdict": -list(LOOKS).index(cell.verdict),
            "saving": _saving_order(cell.label_saving),
            "runs": cell.n_seeds,
            "diverged": cell.n_diverged,
            "collapsed": n_collapsed,
            "published": published_score,
        },
    )


def _saving_order(found: LabelSaving | None) -> float | None:
    """Return a sort key: factors beyond the measured sizes come first, those below last."""
    if found is None or found.reach == "unknown":
        return None
    return {"beyond range": 1e9, "below range": 0.0}.get(found.reach, found.factor)


def _ends(found: Difference | None, metric: str) -> str:
    return "" if found is None else interval(found.interval, metric)
