"""What `lupi bounds` shows: bounds and the simulation of the oracle, as tables and figures."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from lupi.files import write_text
from lupi.report.figures.line_chart import LINE_DASHES, Axis, Line, line_chart
from lupi.report.figures.styles import NEUTRAL, PALETTE
from lupi.verdict.units import plain
from lupi_paper.theory.bounds import Bound
from lupi_paper.theory.curves import BoundSettings, make_bounds
from lupi_paper.theory.simulation import EstimatorRisk

N_POINTS = 60
WAYS = {
    "without": "least squares, no x*",
    "oracle": "oracle: weights 1/s², s from x*",
    "shuffled": "the same with another row's s",
    "dropout": "dropout noise of variance 1/s²",
}


def draw_bounds(bounds: Mapping[str, Bound], sizes: Sequence[int]) -> str:
    """Draw the bounds by n on logarithmic axes, as SVG."""
    ends = (math.log10(min(sizes)), math.log10(max(sizes)))
    log10_n = [ends[0] + (ends[1] - ends[0]) * i / (N_POINTS - 1) for i in range(N_POINTS)]
    n = [10**value for value in log10_n]
    lines = [
        Line(name, log10_n, (bound.log_at(n) / math.log(10)).tolist(), colour, dash)
        for (name, bound), colour, dash in zip(
            bounds.items(), (NEUTRAL, *PALETTE), LINE_DASHES, strict=False
        )
    ]
    return line_chart(lines, Axis("training rows n", log10=True), Axis("bound", log10=True))


def draw_simulation(sizes: Sequence[int], ways: Sequence[EstimatorRisk]) -> str:
    """Draw the measured risks by n on logarithmic axes, as SVG."""
    lines = [
        Line(
            f"{WAYS[way.name]}: slope {way.slope:.2f}",
            [math.log10(n) for n in sizes],
            [math.log10(risk) for risk in way.risks],
            colour,
            dash,
            low=[math.log10(low) for low, _ in way.intervals],
            high=[math.log10(high) for _, high in way.intervals],
        )
        for way, colour, dash in zip(ways, (NEUTRAL, *PALETTE), LINE_DASHES, strict=False)
    ]
    risk = Axis("mean absolute error", log10=True)
    return line_chart(lines, Axis("training rows n", log10=True), risk)


def power_of_ten(log10: float) -> str:
    """Format a number given by its base-10 logarithm; it may exceed floating point."""
    if log10 == -math.inf:
        return "0"
    return plain(10**log10) if -4 < log10 < 5 else f"10^{log10:.1f}"


def bounds_rows(bounds: Mapping[str, Bound], sizes: Sequence[int]) -> list[list[str]]:
    """Return table rows: n and every bound."""
    columns = [(bound.log_at(sizes) / math.log(10)).tolist() for bound in bounds.values()]
    return [
        [f"{n:,}", *map(power_of_ten, values)]
        for n, values in zip(sizes, zip(*columns, strict=True), strict=True)
    ]


def simulation_table(
    sizes: Sequence[int], ways: Sequence[EstimatorRisk]
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table: each estimator, its slope, its first and last risk."""
    head = ["estimator", "slope", "95 % interval", f"n = {sizes[0]}", f"n = {sizes[-1]}"]
    rows = [
        [
            WAYS[way.name],
            f"{way.slope:.2f}",
            f"{way.slope_interval[0]:.2f} to {way.slope_interval[1]:.2f}",
            plain(way.risks[0]),
            plain(way.risks[-1]),
        ]
        for way in ways
    ]
    return head, rows


def crossover_words(below: Sequence[tuple[float, float | None]]) -> str:
    """Return a sentence: for which n (given in logs) Proposition 2 is the smaller bound."""
    if not below:
        return "Proposition 2 is above Proposition 1 at every n."
    parts = []
    for begin, end in below:
        first, last = (None if log_n is None else _count(log_n) for log_n in (begin, end))
        if begin == 0:
            parts.append("at every n" if last is None else f"up to n = {last}")
        else:
            parts.append(f"from n = {first} on" if last is None else f"from n = {first} to {last}")
    return f"Proposition 2 is below Proposition 1 {' and '.join(parts)}."


def _count(log_n: float) -> str:
    log10 = log_n / math.log(10)
    return f"{math.ceil(10**log10):,}" if log10 < 9 else f"10^{log10:.1f}"


def write_bounds(path: Path, constants: BoundSettings, ways: Sequence[EstimatorRisk]) -> None:
    """Write the figure of the bounds, and that of the simulation to NAME-oracle.svg."""
    write_text(path, draw_bounds(make_bounds(constants), constants.sizes))
    if ways:
        oracle = path.with_name(f"{path.stem}-oracle.svg")
        write_text(oracle, draw_simulation(constants.simulation.sizes, ways))
