"""The figures of the page with their titles and labels, as JSON that is safe in HTML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go
from markupsafe import Markup

from lupi.report.figures.curves import epoch_curves, fraction_curves, variance_curves
from lupi.report.figures.forest import forest_height, forest_plot
from lupi.report.figures.learning import dots_height, learning_curves, score_dots
from lupi.report.figures.styles import Style
from lupi.report.sentences import families
from lupi.report.training import Row, mean_curve, sites_with_variance
from lupi.report.worth import worth_plot
from lupi.verdict.results import Summary
from lupi.worth import Surface

RowsOf = Mapping[tuple[str, int], Sequence[Sequence[Row]]]
"""The rows of metrics.jsonl of every seed, by arm and size."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with its label; `title` distinguishes it from similar figures next to it."""

    title: str
    label: str
    arms: frozenset[str]
    json: Markup
    moves: bool = True
    """Whether any curve changes over the epochs."""
    height: int | None = None
    """Height in pixels, or None for the default."""


def _escaped(text: str) -> Markup:
    # "<" occurs in JSON only inside strings, where the escape is equivalent: no </script>.
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(text)


def draw_learning(summary: Summary, styles: Mapping[str, Style]) -> Drawing | None:
    """Draw the learning curves, or the scores if there is one size; None without finished runs."""
    if all(cell.mean is None for arm in summary.arms for cell in arm.cells):
        return None
    if len(summary.sizes) == 1:
        label = f"Test {summary.metric} of each arm"
        drawing = _drawing("", label, score_dots(summary, styles))
        return replace(drawing, height=dots_height(summary))
    label = f"Test {summary.metric} by number of labelled training examples, per arm"
    return _drawing("", label, learning_curves(summary, styles))


def draw_forest(summary: Summary, styles: Mapping[str, Style]) -> Drawing | None:
    """Draw the paired differences of arms with x*, if there are any."""
    figure = forest_plot(summary, styles)
    if not any(len(trace.x) for trace in figure.data):
        return None
    label = f"Difference in test {summary.metric} between arms with x* and each control"
    return replace(_drawing("", label, figure), height=forest_height(summary))


def draw_fractions(summary: Summary) -> Iterator[Drawing]:
    """Draw the scores by fraction of rows with x*, one figure per size."""
    if not families(summary):
        return
    named = [arm for arms in families(summary).values() for arm in arms]
    for size in summary.sizes:
        if all(arm.at(size).mean is None for arm in named):
            continue  # an additional size of other arms
        label = f"Test {summary.metric} by fraction of rows with x*, n = {size}"
        figure = fraction_curves(summary, size)
        yield _drawing(f"n = {size}", label, figure, legend=True)  # its lines are not arms


def draw_worth(surface: Surface) -> Drawing:
    """Draw the lines of equal score over labels and x*."""
    label = f"Lines of equal {surface.metric} by number of labels and of rows with x*"
    return _drawing("", label, worth_plot(surface), legend=True)


def draw_variance(
    rows_of: RowsOf, summary: Summary, styles: Mapping[str, Style]
) -> Iterator[Drawing]:
    """Draw each noise site at the largest size that logged its variance inside the box."""
    for size in reversed(summary.sizes):
        runs = {arm.name: rows_of.get((arm.name, size), []) for arm in summary.arms}
        # Arms may have different sites: dict.fromkeys merges them in order.
        sites = dict.fromkeys(s for logged in runs.values() for s in sites_with_variance(logged))
        for site in sites:
            inside, outside = (
                {
                    arm: curve
                    for arm, logged in runs.items()
                    if (curve := mean_curve(logged, "sites", site, key)) is not None
                }
                for key in ("variance_inside", "variance_outside")
            )
            figure = variance_curves(inside, outside, styles)
            title = f"{site}, n = {size}"
            label = f"Noise variance inside and outside the box at {site}"
            moves = any(curve.moves for curve in [*inside.values(), *outside.values()])
            yield replace(_drawing(title, label, figure), moves=moves)
        if sites:
            return


def draw_validation(
    rows_of: RowsOf, summary: Summary, styles: Mapping[str, Style]
) -> Iterator[Drawing]:
    """Draw the validation score by epoch, one figure per size."""
    for size in summary.sizes:
        curves = {}
        for arm in summary.arms:
            curve = mean_curve(rows_of.get((arm.name, size), []), "val", summary.metric)
            if curve is not None:
                curves[arm.name] = curve
        if curves:
            label = f"Validation {summary.metric} by epoch with {size} training examples"
            yield _drawing(f"n = {size}", label, epoch_curves(curves, styles, summary.metric))


def _drawing(title: str, label: str, figure: go.Figure, *, legend: bool = False) -> Drawing:
    figure.update_layout(showlegend=legend)  # the page has one legend for all figures
    if legend:
        above = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
        figure.update_layout(legend=above, margin={"t": 64})
    arms = frozenset(t.legendgroup for t in figure.data if getattr(t, "legendgroup", None))
    return Drawing(title, label, arms, _escaped(str(figure.to_json())))
