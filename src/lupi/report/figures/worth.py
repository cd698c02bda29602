"""The worth of x* as a picture: lines of equal score over labels and x*, and a budget line."""

import numpy as np
import plotly.graph_objects as go

from lupi.report.figures.curves import new_figure
from lupi.report.figures.styles import colour
from lupi.report.numbers import score
from lupi.verdict.units import is_share
from lupi.verdict.worth import Mix, Surface

GREY = "rgba(128, 128, 128, 0.8)"
N_STEPS = 80


def worth_plot(
    surface: Surface, mix: Mix | None = None, label_cost: float = 1.0, xstar_cost: float = 1.0
) -> go.Figure:
    """Draw lines of equal score; with a mix, the budget line and what to buy."""
    figure = new_figure("rows with x*", "labelled rows")
    scale = 100.0 if is_share(surface.metric) else 1.0
    most = max(surface.largest_n, mix.labels_only_n if mix else 0)
    labels = np.linspace(surface.smallest_n, most, N_STEPS)
    annotated = np.linspace(0, most, N_STEPS)
    grid = [
        [scale * surface.score(n, m).value if m <= n else None for n in labels] for m in annotated
    ]
    figure.add_contour(
        x=labels,
        y=annotated,
        z=grid,
        contours={"coloring": "lines", "showlabels": True, "labelfont": {"size": 11}},
        ncontours=20,
        line={"width": 1.5},
        colorscale="Viridis",
        showscale=False,
        hovertemplate="%{x:.0f} labels, %{y:.0f} with x*: %{z:.1f}<extra></extra>",
        name="equal score",
    )
    figure.add_scatter(
        x=[p.n for p in surface.points],
        y=[p.m for p in surface.points],
        mode="markers",
        marker={"color": GREY, "size": 6},
        customdata=[
            score(sum(p.scores.values()) / len(p.scores), surface.metric) for p in surface.points
        ],
        hovertemplate="measured: %{customdata}<extra></extra>",
        name="measured",
    )
    if mix is not None:
        _add_budget(figure, mix, label_cost, xstar_cost)
    return figure


def _add_budget(figure: go.Figure, mix: Mix, label_cost: float, xstar_cost: float) -> None:
    """Add the budget line, from labels alone to x* for every row, and the best mix."""
    budget = mix.labels_only_n * label_cost
    every = budget / (label_cost + xstar_cost)
    figure.add_scatter(
        x=[mix.labels_only_n, every],
        y=[0, every],
        mode="lines",
        line={"color": colour(0), "width": 2, "dash": "dash"},
        hoverinfo="skip",
        name="budget",
    )
    figure.add_scatter(
        x=[mix.n],
        y=[mix.m],
        mode="markers",
        marker={"color": colour(0), "size": 13, "symbol": "star"},
        hovertemplate=f"{mix.n} labels, {mix.m} with x*<extra></extra>",
        name="best mix",
    )
