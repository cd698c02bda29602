"""Figures for papers, as SVG, PDF and PNG files. Needs matplotlib: the extra `figures`."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lupi.errors import LupiError
from lupi.evidence.summary import Cell, Summary
from lupi.evidence.units import is_share
from lupi.files import write_whole
from lupi.report.figures import fraction_places
from lupi.report.fractions import cell_at, families, percent
from lupi.report.learning import dodges
from lupi.report.numbers import unit
from lupi.report.styles import NEUTRAL, arm_styles, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = ("svg", "pdf", "png")
WIDTH, HEIGHT = 4.8, 3.2
"""Inches: a column of a paper, with room for the legend."""
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
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "svg.hashsalt": "lupi",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
"""Text stays text, and the same numbers give the same file."""
DATED_BY = {"svg": "Date", "pdf": "CreationDate", "png": "Creation Time"}


def write_figures(summary: Summary, folder: Path) -> list[Path]:
    """Write every figure of a comparison into `folder`; return the files."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise LupiError(
            "figures for papers need matplotlib, which is not here: pip install 'lupi[figures]'"
        ) from None
    written = []
    with mpl.rc_context(STYLE):
        for name, figure in _figures(summary):
            for suffix in SUFFIXES:
                written.append(folder / f"{name}.{suffix}")
                write_whole(written[-1], partial(_save, figure, suffix))
    return written


def _save(figure: "Figure", suffix: str, path: Path) -> None:
    no_date = {DATED_BY[suffix]: None}
    figure.savefig(path, format=suffix, dpi=300, bbox_inches="tight", metadata=no_date)


def _figures(summary: Summary) -> Iterator[tuple[str, "Figure"]]:
    if len(summary.sizes) > 1 or not families(summary):
        yield "learning-curves", _learning_curves(summary)
    for size in summary.sizes if families(summary) else ():
        yield f"partial-xstar-{size}", _fraction_curves(summary, size)


def _learning_curves(summary: Summary) -> "Figure":
    figure, axes = _empty("labelled training examples", summary)
    styles = arm_styles(summary.arms, summary.reference)
    moved = dodges(len(summary.arms), summary.sizes)
    for arm, dodge in zip(summary.arms, moved, strict=True):
        measured = [cell for cell in arm.cells if cell.mean is not None]
        style = styles[arm.name]
        _curve(
            axes,
            [cell.size * dodge for cell in measured],
            measured,
            summary.metric,
            label=arm.name,
            color=style.colour,
            marker=MARKERS[style.symbol],
            linestyle="-" if style.dash == "solid" else "--",
        )
    axes.set_xscale("log")
    axes.set_xticks(summary.sizes, [str(size) for size in summary.sizes])
    axes.minorticks_off()
    axes.legend(fontsize=7, frameon=False)
    return figure


def _fraction_curves(summary: Summary, size: int) -> "Figure":
    figure, axes = _empty("training rows with x*", summary)
    by_family = families(summary)
    place = fraction_places(arm.xstar_frac for arms in by_family.values() for arm in arms)
    for i, (family, arms) in enumerate(by_family.items()):
        measured = [(arm, c) for arm in arms if (c := cell_at(arm, size)).mean is not None]
        _curve(
            axes,
            [place[arm.xstar_frac] for arm, _ in measured],
            [cell for _, cell in measured],
            summary.metric,
            label=family,
            color=colour(i),
            marker=list(MARKERS.values())[i % len(MARKERS)],
        )
    reference = next(arm for arm in summary.arms if arm.name == summary.reference)
    plain = cell_at(reference, size).mean
    if plain is not None:
        scale = 100 if is_share(summary.metric) else 1
        axes.axhline(scale * plain, color=NEUTRAL, linestyle=":", label=summary.reference)
    axes.set_xticks(list(place.values()), [percent(frac) for frac in place])
    axes.legend(fontsize=7, frameon=False)
    return figure


def _curve(
    axes: "Axes", places: Sequence[float], cells: Sequence[Cell], metric: str, **look: Any
) -> None:
    scale = 100 if is_share(metric) else 1
    means = [cell.mean or 0.0 for cell in cells]
    ends = [cell.interval or (mean, mean) for cell, mean in zip(cells, means, strict=True)]
    below = [scale * (mean - low) for mean, (low, _) in zip(means, ends, strict=True)]
    above = [scale * (high - mean) for mean, (_, high) in zip(means, ends, strict=True)]
    heights = [scale * mean for mean in means]
    axes.errorbar(
        places, heights, yerr=[below, above], linewidth=1.2, markersize=4, capsize=2, **look
    )


def _empty(x: str, summary: Summary) -> tuple["Figure", "Axes"]:
    from matplotlib.figure import Figure  # without pyplot there is no global state and no window

    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(unit(summary.metric))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
