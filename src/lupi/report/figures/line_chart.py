"""Lines with bands as an SVG drawing: no script, the same on a page, in a paper and in print.

Colours are those of the other figures; text and axes are a mid grey, so that a drawing can stand on
a light and on a dark page. Lines also differ in their dashes.
"""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lupi.report.figures.curves import GRID
from lupi.report.figures.styles import NEUTRAL

WIDTH, HEIGHT = 680, 400
LEFT, RIGHT, BOTTOM = 64, 14, 52
LEGEND_ROW = 20
LETTER = 7.2
"""Width of a letter in pixels, about: only the legend's layout depends on it."""
DASHES = ("", "7 4", "2 3", "9 3 2 3")


@dataclass(frozen=True, slots=True)
class Line:
    """A named line; `low` and `high` are the ends of its band, if it has one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dash: str = ""
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """What is on an axis. With `log10`, values are base-10 logs and ticks show the numbers."""

    title: str
    log10: bool = False


def line_chart(lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Draw lines over common axes."""
    rows = _legend_rows(lines)
    top = 8 + LEGEND_ROW * len(rows)
    columns = _Scale([v for line in lines for v in line.x], x, LEFT, WIDTH - RIGHT, margin=0.0)
    values = [v for line in lines for v in (*line.y, *line.low, *line.high)]
    heights = _Scale(values, y, HEIGHT - BOTTOM, top, margin=0.04)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{NEUTRAL}" role="img">',
        f"<title>{html.escape(f'{y.title} against {x.title}')}</title>",
        *_grid(columns, heights, top),
        *(_band(line, columns, heights) for line in lines if line.low),
        *(_line(line, columns, heights) for line in lines),
        *_legend(rows),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Scale:
    """Values to pixels, with ticks."""

    def __init__(
        self, values: Sequence[float], axis: Axis, begin: float, end: float, margin: float
    ) -> None:
        finite = [v for v in values if math.isfinite(v)] or [0.0]
        low, high = min(finite), max(finite)
        pad = margin * (high - low) or (0.0 if high > low else 0.5)
        self._low, self._high = low - pad, high + pad
        self._begin, self._end = begin, end
        self.axis = axis

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        part = (value - self._low) / (self._high - self._low)
        return self._begin + part * (self._end - self._begin)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places and their labels, some five to eight."""
        if self.axis.log10 and self._high - self._low < 2:
            for power in range(math.floor(self._low), math.ceil(self._high)):
                for digit in (1, 2, 5):
                    place = power + math.log10(digit)
                    if self._low <= place <= self._high:
                        yield place, f"{digit * 10.0**power:.10g}"
            return
        span = self._high - self._low
        size = 10 ** math.floor(math.log10(span / 5))
        step = next(s * size for s in (1, 2, 5, 10) if span / (s * size) <= 7)
        step = max(1, round(step)) if self.axis.log10 else step
        first = math.ceil(self._low / step - 1e-9)
        for i in range(first, math.floor(self._high / step + 1e-9) + 1):
            yield i * step, _power(round(i * step)) if self.axis.log10 else f"{i * step:.10g}"


def _power(exponent: int) -> str:
    """Write a power of ten, small ones in full."""
    if -2 <= exponent <= 4:
        return f"{10.0**exponent:g}"
    return f'10<tspan dy="-5" font-size="10">{exponent}</tspan>'


def _grid(columns: _Scale, heights: _Scale, top: int) -> Iterator[str]:
    for value, label in columns.ticks():
        at = columns(value)
        yield f'<path d="M{at:.1f} {top}V{HEIGHT - BOTTOM}" stroke="{GRID}"/>'
        yield f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>'
    for value, label in heights.ticks():
        at = heights(value)
        yield f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>'
        yield f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    title = html.escape(columns.axis.title)
    yield f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{title}</text>'
    middle = (top + HEIGHT - BOTTOM) / 2
    title = html.escape(heights.axis.title)
    turned = f'transform="translate(14 {middle}) rotate(-90)"'
    yield f'<text {turned} text-anchor="middle">{title}</text>'


def _points(xs: Sequence[float], ys: Sequence[float], columns: _Scale, heights: _Scale) -> str:
    pairs = zip(xs, ys, strict=True)
    finite = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    return "L".join(f"{columns(x):.1f} {heights(y):.1f}" for x, y in finite)


def _line(line: Line, columns: _Scale, heights: _Scale) -> str:
    points = _points(line.x, line.y, columns, heights)
    title = f"<title>{html.escape(line.name)}</title>"
    return f'<path d="M{points}" fill="none" {_stroke(line)}>{title}</path>'


def _stroke(line: Line) -> str:
    dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
    return f'stroke="{line.colour}" stroke-width="2"{dash}'


def _band(line: Line, columns: _Scale, heights: _Scale) -> str:
    around = _points(
        [*line.x, *reversed(line.x)], [*line.low, *reversed(line.high)], columns, heights
    )
    return f'<path d="M{around}Z" fill="{line.colour}" fill-opacity="0.18"/>'


def _legend_rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Cut the legend into rows that fit side by side."""
    rows: list[list[Line]] = [[]]
    used = float(LEFT)
    for line in lines:
        if rows[-1] and used + _entry_width(line) > WIDTH:
            rows.append([])
            used = LEFT
        rows[-1].append(line)
        used += _entry_width(line)
    return rows


def _entry_width(line: Line) -> float:
    return 54 + LETTER * len(line.name)


def _legend(rows: Sequence[Sequence[Line]]) -> Iterator[str]:
    for i, row in enumerate(rows):
        at, y = float(LEFT), 14 + LEGEND_ROW * i
        for line in row:
            yield f'<path d="M{at:.0f} {y - 4}h28" {_stroke(line)}/>'
            yield f'<text x="{at + 34:.0f}" y="{y}">{html.escape(line.name)}</text>'
            at += _entry_width(line)
