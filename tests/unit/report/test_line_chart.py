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
    return [float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", path.attrib["d"])]


def curves(svg: ElementTree.Element, colour: str) -> list[list[float]]:
    """Return the pixels from the top of the lines of a colour; the last is in the legend."""
    paths = (p for p in svg.iter(f"{SVG}path") if f"stroke: {colour}" in p.get("style", ""))
    return [heights(path) for path in paths if path.get("clip-path")]


def test_larger_is_higher_and_names_are_text() -> None:
    name = "<b> $x$"
    svg = drawn(Line(name, [1, 2, 3], [1.0, 2.0, 4.0], "#0072b2", low=[0, 1, 2], high=[2, 3, 6]))
    ((low, middle, high),) = curves(svg, "#0072b2")
    assert low > middle > high
    assert low - middle == pytest.approx((middle - high) / 2, abs=0.2)
    assert {name, "n", "risk"} <= set(texts(svg))
    assert "fill-opacity: 0.18" in ElementTree.tostring(svg).decode()


def test_ticks_of_logs_show_the_numbers() -> None:
    wide = drawn(Line("a", [0, 6], [-3, 20], "#0072b2"), x=Axis("n", True), y=Axis("b", True))
    assert {"1", "100", "10000", "10⁶"} <= set(texts(wide))
    narrow = drawn(Line("a", [2.1, 3.9], [0, 1], "#0072b2"), x=Axis("n", True))
    assert {"200", "500", "1000", "2000", "5000"} <= set(texts(narrow))


def test_points_that_are_not_finite_are_left_out() -> None:
    svg = drawn(Line("a", [1, 2, 3], [1.0, -math.inf, 2.0], "#0072b2"))
    assert [len(points) for points in curves(svg, "#0072b2")] == [2]


def test_one_point_is_a_marker() -> None:
    assert list(drawn(Line("a", [1], [2.0], "#0072b2")).iter(f"{SVG}use"))


def test_a_drawing_fits_into_a_page_and_is_the_same_each_time() -> None:
    line = Line("a", [1, 2], [1, 2], "#0072b2")
    first, second = (line_chart([line], Axis("n"), Axis("<risk>")) for _ in range(2))
    assert first == second
    assert first.startswith("<svg ")
    root = ElementTree.fromstring(first)
    assert "width" not in root.attrib  # as wide as its place
    assert root.findtext(f"{SVG}title") == "<risk> against n"


def test_long_names_stand_below_each_other() -> None:
    for name, n_rows in (("short", 1), ("a name of a line that takes half of the width", 2)):
        svg = drawn(*(Line(name, [1, 2], [1, 2], "#0072b2") for _ in range(2)))
        places = [node.get("transform", "") for node in svg.iter(f"{SVG}text") if node.text == name]
        rows = {re.findall(r"[\d.]+", place)[-1] for place in places}
        assert len(places) == 2
        assert len(rows) == n_rows
