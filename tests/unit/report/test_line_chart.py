import math
import re
from xml.etree import ElementTree

import pytest

from lupi.report.figures.line_chart import Axis, Line, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line, x: Axis | None = None, y: Axis | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(line_chart(lines, x or Axis("n"), y or Axis("risk")))


def texts(svg: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in svg.iter(f"{SVG}text")]


def heights(path: ElementTree.Element) -> list[float]:
    return [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", path.attrib["d"])]


def curve(svg: ElementTree.Element, colour: str) -> ElementTree.Element:
    return next(p for p in svg.iter(f"{SVG}path") if p.get("stroke") == colour and len(p))


def test_larger_is_higher_and_names_are_text() -> None:
    svg = drawn(Line("<b>", [1, 2, 3], [1.0, 2.0, 4.0], "#111", low=[0, 1, 2], high=[2, 3, 6]))
    low, middle, high = heights(curve(svg, "#111"))
    assert low > middle > high
    assert low - middle == pytest.approx((middle - high) / 2, abs=0.2)
    assert "<b>" in texts(svg)
    band = next(p for p in svg.iter(f"{SVG}path") if p.get("fill") == "#111")
    assert len(heights(band)) == 6


def test_ticks_of_logs_show_the_numbers() -> None:
    wide = drawn(Line("a", [0, 6], [-3, 20], "#111"), x=Axis("n", True), y=Axis("b", True))
    assert {"1", "100", "10000", "106"} <= set(texts(wide))  # the last is 10 to the 6
    narrow = drawn(Line("a", [2.1, 3.9], [0, 1], "#111"), x=Axis("n", True))
    assert {"200", "500", "1000", "2000", "5000"} <= set(texts(narrow))


def test_one_point_and_holes_can_be_drawn() -> None:
    one = drawn(Line("a", [1], [2.0], "#111"))
    assert len(heights(curve(one, "#111"))) == 1
    svg = drawn(Line("a", [1, 2, 3], [1.0, -math.inf, 2.0], "#111"))
    assert len(heights(curve(svg, "#111"))) == 2


def test_a_long_legend_wraps() -> None:
    svg = drawn(*(Line("a rather long name of a line", [1, 2], [1, 2], "#111") for _ in range(3)))
    places = {node.get("y") for node in svg.iter(f"{SVG}text") if node.text and "long" in node.text}
    assert len(places) == 2
