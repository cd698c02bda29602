"""What x* is worth, in sentences and as lines of equal score."""

from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from lupi.report.figures.curves import new_figure
from lupi.verdict.units import difference, is_share, score
from lupi.worth import Estimate, Mix, Surface

EVEN = 0.95
"""From this share on, all x* are worth about the same."""
STEADY = 0.1
"""Up to this fade, x* is worth about the same at all sizes."""


def worth_sentences(surface: Surface, n: int | None = None) -> Iterator[str]:
    """Yield what one x* is worth, at n labels; by default at the largest measured size."""
    n = n or surface.largest_n
    if not surface.fits:
        yield (
            f"The surface does not fit the scores (p = {surface.p_fit:.3f}), so lupi does not say "
            "what x* is worth. Compare the scores by fraction of rows with x* instead."
        )
        return
    worth = surface.worth(n)
    if not surface.helps:
        yield (
            f"x* is not shown to be worth anything here: one x* is worth {_labels(worth)}. "
            "Buy labels."
        )
        return
    share, fade = surface.parameters[4:]
    if share >= EVEN and fade <= STEADY:
        yield f"One x* is worth {_labels(worth)}."
    else:
        yield f"With x* for all of {n:,} rows, one x* is worth {_labels(worth)}."
    if share < EVEN:
        part = max(1, n // 4)
        first, rest = surface.worth(n, 0, part), surface.worth(n, part, n)
        yield (
            f"The first {part:,} are worth {first.value:.1f} labels each, "
            f"the other {n - part:,} {rest.value:.1f}."
        )
    if fade > STEADY and n > surface.smallest_n:
        fewest = surface.smallest_n
        yield f"With {fewest:,} rows, one x* is worth {_labels(surface.worth(fewest))}."
    yield (
        f"Measured with {surface.arm} against {surface.plain}, {surface.n_seeds} seeds, "
        f"{surface.smallest_n:,} to {surface.largest_n:,} rows."
    )


def mix_sentences(surface: Surface, mix: Mix, budget: float) -> Iterator[str]:
    """Yield what to buy for a budget, and what it gains over labels alone."""
    if not surface.fits:
        yield from worth_sentences(surface)
        return
    unit = "points" if is_share(surface.metric) else surface.metric
    if mix.m == 0:
        yield (
            f"For {budget:g}: buy {mix.n:,} labels and no x*; expected "
            f"{_score(mix.score, surface.metric)}."
        )
        return
    yield (
        f"For {budget:g}: buy {mix.n:,} labels, {mix.m:,} of them with x*; expected "
        f"{_score(mix.score, surface.metric)}."
    )
    low, high = (difference(end, surface.metric) for end in mix.gain[1:])
    yield (
        f"Labels alone ({mix.labels_only_n:,}) are expected to reach "
        f"{_score(mix.labels_only, surface.metric)}: the mix gains "
        f"{difference(mix.gain.value, surface.metric)} {unit} ({low} to {high})."
    )
    if mix.n > surface.largest_n or mix.labels_only_n > surface.largest_n:
        yield f"This extrapolates: the largest measured size is {surface.largest_n:,}."


def point_rows(surface: Surface) -> list[tuple[str, str, str, str]]:
    """Return labels, x*, measured and fitted score of each point, for a table."""
    return [
        (
            f"{point.n:,}",
            f"{point.m:,}",
            score(sum(point.scores.values()) / len(point.scores), surface.metric),
            score(surface.score(point.n, point.m).value, surface.metric),
        )
        for point in sorted(surface.points)
    ]


def _labels(worth: Estimate) -> str:
    return f"{worth.value:.1f} labels (95 % interval {worth.low:.1f} to {worth.high:.1f})"


def _score(found: Estimate, metric: str) -> str:
    percent = " %" if is_share(metric) else ""
    value, low, high = (score(number, metric) for number in found)
    return f"{metric} {value}{percent} ({low} to {high})"


GREY = "rgba(128, 128, 128, 0.8)"
N_STEPS = 80


def worth_plot(surface: Surface) -> go.Figure:
    """Draw lines of equal score, and what was measured."""
    figure = new_figure("rows with x*", "labelled rows")
    scale = 100.0 if is_share(surface.metric) else 1.0
    labels = np.linspace(surface.smallest_n, surface.largest_n, N_STEPS)
    annotated = np.linspace(0, surface.largest_n, N_STEPS)
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
    return figure
