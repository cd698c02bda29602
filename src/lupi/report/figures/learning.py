"""Scores by size of the training set; with one size, one dot per arm."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import plotly.graph_objects as go

from lupi.report.figures.curves import named, new_figure
from lupi.report.figures.styles import NEUTRAL, Style
from lupi.report.numbers import score, unit
from lupi.verdict.results import ArmSummary, Cell, Summary
from lupi.verdict.units import is_share


@dataclass(slots=True)
class _Points:
    """The scores of one arm, in the unit of the figure."""

    sizes: list[int] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    above: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def ends(self) -> Iterator[float]:
        """Yield the ends of all bars."""
        for mean, above, below in zip(self.means, self.above, self.below, strict=True):
            yield from (mean - below, mean + above)

    @property
    def bars(self) -> dict[str, object]:
        """The bars in plotly's format."""
        return {"array": self.above, "arrayminus": self.below, "thickness": 1.5, "width": 3}


def learning_curves(summary: Summary, styles: Mapping[str, Style]) -> go.Figure:
    """Draw the mean score by size of the training set, with 95 % intervals."""
    figure = new_figure(unit(summary.metric), "labelled training examples")
    points = _all_points(summary)
    for arm, dodge in zip(summary.arms, dodges(len(summary.arms), summary.sizes), strict=True):
        if arm.name not in points:
            continue
        own, style = points[arm.name], styles[arm.name]
        figure.add_scatter(
            x=[size * dodge for size in own.sizes],
            y=own.means,
            error_y=own.bars,
            mode="lines+markers",
            line={"color": style.colour, "dash": style.dash, "width": 2},
            marker={"symbol": style.symbol, "size": 8},
            customdata=own.hints,
            hovertemplate="%{customdata}",
            **named(arm.name),
        )
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
        figure.add_scatter(
            x=own.means,
            y=[place],
            error_x=own.bars,
            mode="markers",
            marker={"symbol": style.symbol, "size": 10, "color": style.colour},
            customdata=own.hints,
            hovertemplate="%{customdata}",
            **named(arm.name),
        )
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
    points, scale = _Points(), _scale(summary)
    for cell in arm.cells:
        if cell.mean is None:
            continue
        low, high = cell.interval or (cell.mean, cell.mean)
        points.sizes.append(cell.size)
        points.means.append(scale * cell.mean)
        points.above.append(scale * (high - cell.mean))
        points.below.append(scale * (cell.mean - low))
        points.hints.append(_hint(cell, cell.mean, summary.metric))
    return points


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
    ends = [end for name, own in points.items() if name in competes for end in own.ends()]
    ends = ends or [end for own in points.values() for end in own.ends()] or [0.0]
    trivial = _trivial(summary)
    if trivial is not None and _near([trivial], ends):
        ends.append(trivial)
    outside = []
    for name, own in points.items():
        if name in competes:
            continue
        if _near(list(own.ends()), ends):
            ends += own.ends()
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
