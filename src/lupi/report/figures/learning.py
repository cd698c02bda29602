"""Scores by size of the training set; with one size, one dot per arm."""

import html
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import plotly.graph_objects as go

from lupi.report.figures.curves import add_points, new_figure
from lupi.report.figures.styles import NEUTRAL, Style
from lupi.verdict.results import ArmSummary, Cell, Summary
from lupi.verdict.units import is_share, score, unit


class _Points(NamedTuple):
    """The scores of one arm, in the unit of the figure."""

    sizes: list[int]
    means: list[float]
    ends: list[tuple[float, float]]
    """Of the interval of each mean."""
    hints: list[str]

    def reach(self) -> list[float]:
        """Return the ends of all intervals."""
        return [end for pair in self.ends for end in pair]


def learning_curves(summary: Summary, styles: Mapping[str, Style]) -> go.Figure:
    """Draw the mean score by size of the training set, with 95 % intervals."""
    figure = new_figure(unit(summary.metric), "labelled training examples")
    points = _all_points(summary)
    for arm, dodge in zip(summary.arms, dodges(len(summary.arms), summary.sizes), strict=True):
        if arm.name not in points:
            continue
        own, style = points[arm.name], styles[arm.name]
        places = [size * dodge for size in own.sizes]
        add_points(figure, arm.name, style, places, own.means, own.ends, own.hints)
    trivial = _trivial(summary)
    low, high, outside = _range(summary, points)
    if trivial is not None and low <= trivial <= high:
        figure.add_hline(
            y=trivial,
            line={"dash": "dot", "color": NEUTRAL, "width": 1.5},
            annotation={"text": "trivial predictor", "yanchor": "bottom"},
        )
    if points:
        figure.update_yaxes(range=[low, high])
    for text in outside:
        figure.add_annotation(
            text=text, xref="paper", yref="paper", x=0, y=1, showarrow=False, xanchor="left"
        )
    sizes = list(summary.sizes)
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{size:,}" for size in sizes])
    return figure


def score_dots(summary: Summary, styles: Mapping[str, Style]) -> go.Figure:
    """Draw the mean score of each arm at the only size, with its 95 % interval."""
    figure = new_figure("", unit(summary.metric))
    points = _all_points(summary)
    arms = [arm for arm in summary.arms if arm.name in points]
    for place, arm in enumerate(arms):
        own, style = points[arm.name], styles[arm.name]
        points_of = (own.means, own.ends, own.hints)
        add_points(figure, arm.name, style, [place], *points_of, across=True)
    low, high, outside = _range(summary, points)
    trivial = _trivial(summary)
    if trivial is not None and low <= trivial <= high:
        line = {"dash": "dot", "color": NEUTRAL, "width": 1.5}
        figure.add_vline(x=trivial, line=line, annotation={"text": "trivial predictor"})
    figure.update_xaxes(range=[low, high])
    figure.update_yaxes(
        range=[len(arms) - 0.4, -0.6],
        tickvals=list(range(len(arms))),
        ticktext=[html.escape(arm.name) for arm in arms],
        automargin=True,
    )
    for text in outside:
        figure.add_annotation(
            text=text, xref="paper", yref="paper", x=1, y=1, showarrow=False, xanchor="right"
        )
    return figure


def dots_height(summary: Summary) -> int:
    """Return the height of the figure for one size, in pixels."""
    return 90 + 26 * len(summary.arms)


def dodges(n_arms: int, sizes: Sequence[int]) -> list[float]:
    """Return a factor per arm that shifts its points sideways, so that bars do not overlap."""
    gaps = [b / a for a, b in pairwise(sizes)] or [2.0]
    spread = min(min(gaps) ** 0.12, math.prod(gaps) ** 0.06)  # of the next size, of the whole axis
    return [spread ** ((i - (n_arms - 1) / 2) / max(n_arms - 1, 1)) for i in range(n_arms)]


def _scale(summary: Summary) -> float:
    return 100 if is_share(summary.metric) else 1


def _trivial(summary: Summary) -> float | None:
    return None if summary.trivial is None else _scale(summary) * summary.trivial


def _all_points(summary: Summary) -> dict[str, _Points]:
    """Return the points of each arm that has any."""
    found = {arm.name: _points(arm, summary) for arm in summary.arms}
    return {name: points for name, points in found.items() if points.means}


def _points(arm: ArmSummary, summary: Summary) -> _Points:
    scale = _scale(summary)
    found = [(cell, cell.mean) for cell in arm.cells if cell.mean is not None]
    ends = [cell.interval or (mean, mean) for cell, mean in found]
    return _Points(
        [cell.size for cell, _ in found],
        [scale * mean for _, mean in found],
        [(scale * low, scale * high) for low, high in ends],
        [_hint(cell, mean, summary.metric) for cell, mean in found],
    )


def _hint(cell: Cell, mean: float, metric: str) -> str:
    text = f"n = {cell.size}: {score(mean, metric)}"
    if cell.interval is None:
        return text
    low, high = (score(end, metric) for end in cell.interval)
    return f"{text}, 95 % interval {low} to {high}"


def _range(summary: Summary, points: Mapping[str, _Points]) -> tuple[float, float, list[str]]:
    """Return the ends of the score axis, and notes about arms outside of it.

    What is far from the arms that compete (an oracle, a trivial predictor) would squash them.
    """
    competes = {arm.name for arm in summary.arms if not arm.sees_xstar_at_test}
    ends = [
        end for name, own in points.items() if name in competes for pair in own.ends for end in pair
    ]
    ends = ends or [end for own in points.values() for end in own.reach()] or [0.0]
    trivial = _trivial(summary)
    if trivial is not None and _near([trivial], ends):
        ends.append(trivial)
    outside = []
    for name, own in points.items():
        if name in competes:
            continue
        if _near(own.reach(), ends):
            ends += own.reach()
        else:
            where = "above" if max(own.means) > max(ends) else "below"
            at_sizes = zip(own.sizes, own.means, strict=True)
            values = ", ".join(f"{mean:.3g} at n = {n}" for n, mean in at_sizes)
            outside.append(f"{where} this range: {html.escape(name)} ({values})")
    margin = 0.06 * (max(ends) - min(ends)) or 0.1
    return min(ends) - margin, max(ends) + margin, outside


def _near(values: Sequence[float], ends: Sequence[float]) -> bool:
    """Whether values can be drawn without shrinking the others to less than half the height."""
    span = max(ends) - min(ends)
    return min(ends) - span <= min(values) and max(values) <= max(ends) + span
