"""The figure of a plan: power by number of seeds."""

from lupi.report.figures.line_chart import LINE_DASHES, Axis, Line, line_chart
from lupi.report.figures.styles import NEUTRAL, PALETTE
from lupi.report.numbers import difference
from lupi.verdict.planning import SeedPlan


def draw_plan(plan: SeedPlan) -> str:
    """Draw the power of each arm and size with its range as a band, and the requested power."""
    requested = 100 * plan.power
    seeds = [point.n_seeds for point in plan.sizes[0].curve]
    lines = [Line(f"{requested:.0f} %", seeds, [requested] * len(seeds), NEUTRAL)]
    for i, row in enumerate(plan.sizes):
        _, power, low, high = zip(*row.curve, strict=True)
        name = f"{row.arm}, n = {row.size}"
        percent = [[100 * value for value in values] for values in (power, low, high)]
        colour, dash = PALETTE[i % len(PALETTE)], LINE_DASHES[i % len(LINE_DASHES)]
        lines.append(Line(name, seeds, percent[0], colour, dash, percent[1], percent[2]))
    gain = difference(plan.gain, plan.metric)
    return line_chart(lines, Axis("seeds"), Axis(f"power to detect {gain}, %"))
