"""How arms look in every figure: no two alike, a control in the hue of its arm.

The first colours are those of Okabe and Ito (2008), which most colour-blind readers can
distinguish. Every arm also has a marker, and every control a dash.
"""

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lupi.verdict.results import ArmSummary
from lupi.verdict.roles import is_candidate

PALETTE = (
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7B4EA3",
    "#8C6D31",
)
NEUTRAL = "#808080"
"""Replaces Okabe and Ito's black, which is invisible in dark mode."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = {"real": "solid", "shuffled": "dash", "constant": "dot", "random": "dashdot"}
OTHER_DASH = "longdash"
DRAWN_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "svg.hashsalt": "lupi",
    "svg.fonttype": "none",
    "text.parse_math": False,  # an arm may be called $x$
    "pdf.fonttype": 42,
}
"""Settings of matplotlib: text stays text, and the same numbers give the same file."""
DRAWN_DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 3)),
}
"""The dashes in matplotlib's terms."""
LIGHTEST = 0.5
"""How far towards white the last arm of a hue goes."""
GOLDEN = 0.618034
"""Steps of this part of the circle keep hues apart, however many there are."""


@dataclass(frozen=True, slots=True)
class Style:
    """How an arm looks."""

    colour: str
    dash: str
    symbol: str


def arm_styles(arms: Sequence[ArmSummary], reference: str) -> dict[str, Style]:
    """Give each arm its look; candidates get the strongest colours, the reference is grey."""
    others = [arm for arm in arms if arm.name != reference]
    others.sort(key=lambda arm: not is_candidate(arm))
    of_hue: dict[str, list[ArmSummary]] = {}
    for arm in others:
        of_hue.setdefault(hue_of(arm), []).append(arm)
    styles = {reference: Style(NEUTRAL, "solid", SYMBOLS[0])}
    for number, group in enumerate(of_hue.values()):
        for place, arm in enumerate(group):
            towards_white = LIGHTEST * place / max(len(group) - 1, 2)
            symbol = SYMBOLS[len(styles) % len(SYMBOLS)]
            dash = DASHES.get(arm.control, OTHER_DASH)
            styles[arm.name] = Style(_lighter(colour(number), towards_white), dash, symbol)
    return {arm.name: styles[arm.name] for arm in arms}


def hue_of(arm: ArmSummary) -> str:
    """Return what arms of one hue have in common: all but the control and the share of x*."""
    name = arm.family or arm.name
    return name.removesuffix(f"/{arm.control}")


def colour(number: int) -> str:
    """Return the colour of a number: no two numbers have the same."""
    if number < len(PALETTE):
        return PALETTE[number]
    hue = (number * GOLDEN) % 1
    rgb = colorsys.hls_to_rgb(hue, 0.42, 0.55)
    return _hex(*(255 * part for part in rgb))


def _lighter(colour: str, part: float) -> str:
    rgb = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return _hex(*(value + part * (255 - value) for value in rgb))


def _hex(red: float, green: float, blue: float) -> str:
    return f"#{round(red):02X}{round(green):02X}{round(blue):02X}"
