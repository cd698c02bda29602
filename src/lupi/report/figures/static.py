"""Figures without a browser: those of the page for papers, as SVG, PDF and PNG files.

What is drawn is decided in one place: plotly figures of the page are drawn again by matplotlib,
which writes text as text and needs no browser.
"""

import html
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import plotly.graph_objects as go

from lupi.files import write_whole
from lupi.report.figures.curves import fraction_curves
from lupi.report.figures.forest import forest_height, forest_plot
from lupi.report.figures.learning import dots_height, learning_curves, score_dots
from lupi.report.figures.styles import DRAWN_DASHES, DRAWN_STYLE, NEUTRAL, arm_styles
from lupi.report.sentences import families
from lupi.verdict.results import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = ("svg", "pdf", "png")
WIDTH, HEIGHT = 4.8, 3.2
"""Inches: a column of a paper, with room for the legend."""
PIXELS = 130
"""Of the page, in an inch."""
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "cross": "P",
    "x": "X",
    "triangle-down": "v",
    "star": "*",
}
"""The markers of the page, in matplotlib's letters."""
DATED_BY = {"svg": "Date", "pdf": "CreationDate", "png": "Creation Time"}


def write_figures(summary: Summary, folder: Path) -> list[Path]:
    """Write every figure of a comparison into `folder`; return the files."""
    import matplotlib as mpl

    written = []
    with mpl.rc_context(DRAWN_STYLE):
        for each in _figures(summary):
            drawn = _draw(each)
            for suffix in SUFFIXES:
                written.append(folder / f"{each.name}.{suffix}")
                write_whole(written[-1], partial(_save, drawn, suffix))
    return written


class _PaperFigure(NamedTuple):
    """A figure of the page, and how high it is on paper."""

    name: str
    figure: go.Figure
    height: float = HEIGHT
    """Inches."""
    has_legend: bool = True


def _figures(summary: Summary) -> Iterator[_PaperFigure]:
    styles = arm_styles(summary.arms, summary.reference)
    forest = forest_plot(summary, styles)
    if forest.data:
        height = forest_height(summary) / PIXELS
        yield _PaperFigure("differences", forest, height, has_legend=False)
    if len(summary.sizes) > 1:
        yield _PaperFigure("learning-curves", learning_curves(summary, styles))
    elif not families(summary):
        height = dots_height(summary) / PIXELS
        yield _PaperFigure("scores", score_dots(summary, styles), height, has_legend=False)
    for size in summary.sizes if families(summary) else ():
        yield _PaperFigure(f"partial-xstar-{size}", fraction_curves(summary, size))


def _save(figure: "Figure", suffix: str, path: Path) -> None:
    no_date = {DATED_BY[suffix]: None}
    figure.savefig(path, format=suffix, dpi=300, bbox_inches="tight", metadata=no_date)


def _draw(paper: _PaperFigure) -> "Figure":
    from matplotlib.figure import Figure  # without pyplot there is no global state and no window

    drawn = Figure(figsize=(WIDTH, paper.height))
    axes = drawn.add_subplot()
    layout = paper.figure.layout
    for trace in paper.figure.data:
        _draw_trace(axes, trace)
    for shape in layout.shapes:
        _draw_shape(axes, shape)
    for note in layout.annotations:
        _draw_note(axes, note)
    axes.set_xlabel(_text(layout.xaxis.title.text))
    axes.set_ylabel(_text(layout.yaxis.title.text))
    if layout.xaxis.type == "log":
        axes.set_xscale("log")
    for axis, place, limit in (
        (layout.xaxis, axes.set_xticks, axes.set_xlim),
        (layout.yaxis, axes.set_yticks, axes.set_ylim),
    ):
        if axis.tickvals is not None:
            labels = place(list(axis.tickvals), [_text(text) for text in axis.ticktext])
            for label, marked in zip(labels, axis.ticktext, strict=True):
                label.label1.set_fontweight("bold" if marked.startswith("<b>") else "normal")
        if axis.range is not None and axis.type != "log":
            limit(*axis.range)
    axes.minorticks_off()
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if paper.has_legend and axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=7, frameon=False)
    return drawn


def _draw_trace(axes: "Axes", trace: Any) -> None:
    """Draw points with their bars, and the line through them if there is one."""
    tone = trace.line.color or trace.marker.color
    symbols = trace.marker.symbol
    by_point = [symbols] * len(trace.x) if isinstance(symbols, str) else list(symbols)
    if "lines" in trace.mode:
        axes.plot(
            trace.x, trace.y, color=tone, linestyle=DRAWN_DASHES[trace.line.dash], linewidth=1.2
        )
    for i, symbol in enumerate(by_point):
        name = symbol.removesuffix("-open")
        axes.errorbar(
            [trace.x[i]],
            [trace.y[i]],
            xerr=_bar(trace.error_x, i),
            yerr=_bar(trace.error_y, i),
            color=tone,
            marker=MARKERS[name],
            markerfacecolor="white" if symbol != name else tone,
            linestyle=DRAWN_DASHES[trace.line.dash or "solid"] if "lines" in trace.mode else "none",
            linewidth=1.2,
            markersize=4,
            capsize=2,
            label=_text(trace.name) if i == 0 else None,
        )


def _bar(error: Any, i: int) -> Sequence[Sequence[float]] | None:
    return None if error.array is None else [[error.arrayminus[i]], [error.array[i]]]


def _draw_shape(axes: "Axes", shape: Any) -> None:
    """Draw a line across the figure, or a band from top to bottom."""
    if shape.type == "rect":
        axes.axvspan(shape.x0, shape.x1, color="#eeeeee", zorder=0)
    elif shape.x0 == shape.x1:
        axes.axvline(shape.x0, color=NEUTRAL, linewidth=1)
    else:
        axes.axhline(shape.y0, color=NEUTRAL, linestyle=":", linewidth=1)


def _draw_note(axes: "Axes", note: Any) -> None:
    if note.yref == "paper":
        at = {"transform": axes.transAxes, "ha": note.xanchor, "va": "top"}
        axes.text(note.x, note.y, _text(note.text), fontsize=7, **at)
    elif note.yref == "y domain":  # at a line from top to bottom
        at = {"transform": axes.get_xaxis_transform(), "va": "top"}
        axes.text(note.x, 1, f" {_text(note.text)}", fontsize=7, **at)
    else:
        place = axes.get_yaxis_transform()
        axes.text(1, note.y, _text(note.text), fontsize=7, transform=place, ha="right", va="bottom")


def _text(marked: str | None) -> str:
    """Return the text of a plotly label, which may have tags."""
    return html.unescape(re.sub(r"</?b>", "", marked or ""))
