"""Bounds and the oracle's simulation: drawings, tables and words."""

import math
from collections.abc import Mapping, Sequence

from lupi.report.figures import NEUTRAL, PALETTE
from lupi.report.line_chart import DASHES, Axis, Line, line_chart
from lupi.report.numbers import plain
from lupi.report.sheet import Section
from lupi.theory.bounds import Bound
from lupi.theory.oracle import Measured

N_POINTS = 60
WAYS = {
    "without": "least squares, no x*",
    "oracle": "oracle: weights 1/s², s from x*",
    "shuffled": "the same, s of another row",
    "dropout": "dropout noise of variance 1/s²",
}


def draw_bounds(bounds: Mapping[str, Bound], sizes: Sequence[int]) -> str:
    """Draw the bounds over n, both in logs, as SVG."""
    ends = (math.log10(min(sizes)), math.log10(max(sizes)))
    log10_n = [ends[0] + (ends[1] - ends[0]) * i / (N_POINTS - 1) for i in range(N_POINTS)]
    n = [10**value for value in log10_n]
    lines = [
        Line(name, log10_n, (bound.log_at(n) / math.log(10)).tolist(), colour, dash)
        for (name, bound), colour, dash in zip(
            bounds.items(), (NEUTRAL, *PALETTE), DASHES, strict=False
        )
    ]
    return line_chart(lines, Axis("training rows n", log10=True), Axis("bound", log10=True))


def draw_simulation(sizes: Sequence[int], measured: Sequence[Measured]) -> str:
    """Draw the measured risks over n, both in logs, as SVG."""
    lines = [
        Line(
            f"{WAYS[m.name]}: slope {m.slope:.2f}",
            [math.log10(n) for n in sizes],
            [math.log10(risk) for risk in m.risks],
            colour,
            dash,
            low=[math.log10(low) for low, _ in m.intervals],
            high=[math.log10(high) for _, high in m.intervals],
        )
        for m, colour, dash in zip(measured, (NEUTRAL, *PALETTE), DASHES, strict=False)
    ]
    risk = Axis("mean distance from the target", log10=True)
    return line_chart(lines, Axis("training rows n", log10=True), risk)


def power_of_ten(log10: float) -> str:
    """Write a number given by its base-10 log, beyond floating point too."""
    if log10 == -math.inf:
        return "0"
    return plain(10**log10) if -4 < log10 < 5 else f"10^{log10:.1f}"


def bounds_rows(bounds: Mapping[str, Bound], sizes: Sequence[int]) -> list[list[str]]:
    """Return a table: n and every bound."""
    columns = [(bound.log_at(sizes) / math.log(10)).tolist() for bound in bounds.values()]
    return [
        [f"{n:,}", *map(power_of_ten, values)]
        for n, values in zip(sizes, zip(*columns, strict=True), strict=True)
    ]


def simulation_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """Return a table: each way to learn, its slope with interval, its last risk."""
    return [
        [
            WAYS[m.name],
            f"{m.slope:.2f}",
            f"{m.slope_interval[0]:.2f} to {m.slope_interval[1]:.2f}",
            plain(m.risks[0]),
            plain(m.risks[-1]),
        ]
        for m in measured
    ]


def crossover_words(below: Sequence[tuple[float, float | None]]) -> str:
    """Say for which n (given in logs) Proposition 2 is the smaller bound."""
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


def bounds_section(bounds: Mapping[str, Bound], sizes: Sequence[int]) -> Section:
    """Return the bounds as a part of a page."""
    return Section(
        "Bounds on the generalisation gap",
        words=(
            "Each curve is an upper bound, in units of the loss, on how far the mean loss of n "
            "training rows may be from the expected loss. Propositions 1 and 2 are the paper's, as "
            "printed; Bernstein's inequality holds for one network chosen without these rows.",
        ),
        drawing=draw_bounds(bounds, sizes),
        head=("n", *bounds),
        rows=bounds_rows(bounds, sizes),
    )


def simulation_section(sizes: Sequence[int], measured: Sequence[Measured]) -> Section:
    """Return the simulation as a part of a page."""
    return Section(
        "The oracle, simulated",
        words=(
            "y = w·x + s·noise, where x* tells the noise's standard deviation s of each row. Risk "
            "is the mean distance of a prediction from the noise-free target. Bands and intervals "
            "are 95 %, bootstrap over problems drawn; slopes are of log risk against log n.",
        ),
        drawing=draw_simulation(sizes, measured),
        head=("how it learns", "slope", "95 % interval", f"n = {sizes[0]}", f"n = {sizes[-1]}"),
        rows=simulation_rows(measured),
    )
