"""Forest plot of the paired differences behind the verdicts, with their intervals."""

import html
from collections.abc import Mapping
from typing import Any, NamedTuple

import plotly.graph_objects as go

from lupi.report.figures.curves import GRID, add_points, new_figure
from lupi.report.figures.styles import NEUTRAL, Style
from lupi.verdict.results import Difference, Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import difference, interval, is_share

ROW = 22
"""Pixels of a row."""
AROUND = 90
"""Pixels above and below the rows."""


class _Row(NamedTuple):
    """An arm at one size against one control; without a control, the name of the arm."""

    arm: str
    label: str
    found: Difference | None = None
    decides: bool = False


def forest_height(summary: Summary) -> int:
    """Return the height of the figure in pixels."""
    return AROUND + ROW * len(_rows(summary))


def forest_plot(summary: Summary, styles: Mapping[str, Style]) -> go.Figure:
    """Draw the gains of arms with x* over each control; a filled marker is the deciding one."""
    rows = _rows(summary)
    scale = 100 if is_share(summary.metric) else 1
    what = "points" if is_share(summary.metric) else summary.metric
    figure = new_figure("", f"{what} (right of 0: better with x*)")
    low, high = _range(rows, scale)
    for arm in dict.fromkeys(row.arm for row in rows):
        shown = [(i, row, row.found) for i, row in enumerate(rows) if row.arm == arm and row.found]
        add_points(
            figure,
            arm,
            styles[arm],
            [i for i, _, _ in shown],
            [scale * found.mean for _, _, found in shown],
            [_ends(found, scale, low, high) for _, _, found in shown],
            [_hint(row, found, summary.metric) for _, row, found in shown],
            across=True,
            is_open=[not row.decides for _, row, _ in shown],
        )
    figure.add_vline(x=0, line={"color": NEUTRAL, "width": 2})
    _add_margin(figure, summary, scale)
    figure.update_xaxes(range=[low, high])
    figure.update_yaxes(
        range=[len(rows) - 0.4, -0.6],
        tickvals=list(range(len(rows))),
        ticktext=[
            html.escape(row.label) if row.found else f"<b>{html.escape(row.label)}</b>"
            for row in rows
        ],
        automargin=True,
        gridcolor="rgba(0, 0, 0, 0)",
    )
    return figure


def _rows(summary: Summary) -> list[_Row]:
    rows: list[_Row] = []
    for arm in summary.arms:
        measured = [cell for cell in arm.cells if cell.differences] if is_candidate(arm) else []
        if measured:
            rows.append(_Row(arm.name, arm.name))
        rows += [
            _Row(
                arm.name,
                f"n = {cell.size}, against {found.other}",
                found,
                found.other == cell.deciding_control,
            )
            for cell in measured
            for found in cell.differences
        ]
    return rows


def _range(rows: list[_Row], scale: float) -> tuple[float, float]:
    values = [0.0]
    for row in rows:
        if row.found is not None:
            values += [scale * v for v in (row.found.mean, *row.found.interval) if v is not None]
    margin = 0.06 * (max(values) - min(values)) or 1.0
    return min(values) - margin, max(values) + margin


def _ends(found: Difference, scale: float, low: float, high: float) -> tuple[float, float]:
    """Return the ends of an interval; an open end extends to the edge of the figure."""
    start, end = found.interval
    return low if start is None else scale * start, high if end is None else scale * end


def _hint(row: _Row, found: Difference, metric: str) -> str:
    gain, ends = difference(found.mean, metric), interval(found.interval, metric)
    return html.escape(f"{row.arm}, {row.label}: {gain}, 95 % interval {ends}")


def _add_margin(figure: go.Figure, summary: Summary, scale: float) -> None:
    """Shade the margin, if it is the same for all rows."""
    margins = {cell.margin for arm in summary.arms for cell in arm.cells if is_candidate(arm)}
    if len(margins) == 1 and (margin := margins.pop()) is not None:
        edges: dict[str, Any] = {"x0": -scale * margin, "x1": scale * margin}
        figure.add_vrect(**edges, fillcolor=GRID, line_width=0, layer="below")
