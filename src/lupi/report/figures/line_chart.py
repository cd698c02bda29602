"""Lines with bands as an SVG drawing: no script, the same on a page, in a paper and in print.

Colours are those of the other figures; text and axes are a mid grey, so that a drawing can stand on
a light and on a dark page. Lines also differ in their dashes.
"""

import html
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lupi.report.figures.styles import DRAWN_DASHES, DRAWN_STYLE, NEUTRAL, PALETTE
from lupi.verdict.planning import SeedPlan
from lupi.verdict.roles import MEAN
from lupi.verdict.units import difference

if TYPE_CHECKING:
    from matplotlib.axis import Axis as DrawnAxis

SIZE = (6.8, 4.0)
"""Inches of 100 pixels."""
LONG_NAME = 38
"""Letters of a name, two of which do not fit side by side."""
LINE_DASHES = ("solid", "dash", "dot", "dashdot")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Line:
    """A named line; `low` and `high` are the ends of its band, if it has one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dash: str = "solid"
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """What is on an axis. With `log10`, values are base-10 logs and ticks show the numbers."""

    title: str
    log10: bool = False


def line_chart(lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Draw lines over common axes; points that are not finite are left out."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**DRAWN_STYLE, "font.size": 9.5, "text.color": NEUTRAL}):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        for line in lines:
            keep = np.isfinite(line.x) & np.isfinite(line.y)
            at, values = np.asarray(line.x)[keep], np.asarray(line.y)[keep]
            style = {"color": line.colour, "linestyle": DRAWN_DASHES[line.dash]}
            marker = "o" if len(at) == 1 else ""
            axes.plot(at, values, label=line.name, linewidth=1.6, marker=marker, **style)
            if len(line.low):
                low, high = np.asarray(line.low)[keep], np.asarray(line.high)[keep]
                axes.fill_between(at, low, high, color=line.colour, alpha=0.18, linewidth=0)
        axes.set_xlabel(x.title, color=NEUTRAL)
        axes.set_ylabel(y.title, color=NEUTRAL)
        axes.tick_params(length=0, labelcolor=NEUTRAL)
        axes.grid(color=NEUTRAL, alpha=0.25, linewidth=0.8)
        axes.spines[:].set_visible(False)
        for side, axis in ((axes.xaxis, x), (axes.yaxis, y)):
            if axis.log10:
                _show_numbers(side)
        n_columns = 2 if max(len(line.name) for line in lines) < LONG_NAME else 1
        figure.legend(loc="outside upper left", ncols=n_columns, frameon=False, handlelength=3)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return _for_a_page(stream.getvalue(), f"{y.title} against {x.title}")


def _show_numbers(axis: "DrawnAxis") -> None:
    """Label base-10 logs with their numbers: 1, 2 and 5 of each power, or some of the powers."""
    low, high = axis.get_view_interval()
    powers = range(math.floor(low), math.ceil(high) + 1)
    if high - low < 2:
        ticks = {p + math.log10(d): f"{d * 10.0**p:.10g}" for p in powers for d in (1, 2, 5)}
    else:
        step = max(1, round((high - low) / 6))
        ticks = {p: _power(p) for p in powers if p % step == 0}
    shown = {place: label for place, label in ticks.items() if low <= place <= high}
    axis.set_ticks(list(shown), list(shown.values()))


def _power(exponent: int) -> str:
    """Write a power of ten, small ones in full."""
    if -2 <= exponent <= 4:
        return f"{10.0**exponent:g}"
    return f"10{str(exponent).translate(SUPERSCRIPTS)}"


def _for_a_page(svg: str, title: str) -> str:
    """Return the drawing without what only a file needs, as wide as its page, with a title."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    return f'{head} role="img">\n <title>{html.escape(title)}</title>{rest}'


def draw_plan(plan: SeedPlan) -> str:
    """Draw the power of each arm and size with its range as a band, and the requested power."""
    requested = 100 * plan.power
    seeds = [point.n_seeds for point in plan.sizes[0].curve]
    lines = [Line(f"{requested:.0f} %", seeds, [requested] * len(seeds), NEUTRAL)]
    for i, row in enumerate(plan.sizes):
        _, power, low, high = zip(*row.curve, strict=True)
        name = f"{row.arm}, {'mean over n' if row.size == MEAN else f'n = {row.size}'}"
        percent = [[100 * value for value in values] for values in (power, low, high)]
        colour, dash = PALETTE[i % len(PALETTE)], LINE_DASHES[i % len(LINE_DASHES)]
        lines.append(Line(name, seeds, percent[0], colour, dash, percent[1], percent[2]))
    gain = difference(plan.gain, plan.metric)
    return line_chart(lines, Axis("seeds"), Axis(f"power to detect {gain}, %"))
