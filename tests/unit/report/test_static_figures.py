from pathlib import Path
from xml.etree import ElementTree

from summaries import arm, cell, summary

from lupi.report.figures.static import write_figures
from lupi.verdict.results import Summary


def judged() -> Summary:
    family = [
        arm(f"het@{100 * frac:g}%", cell(100), cell(200, None), xstar_frac=frac, family="het")
        for frac in (0.0, 0.04, 1.0)
    ]
    return summary(*family, sizes=(100, 200))


def test_each_figure_as_svg_pdf_and_png(tmp_path: Path) -> None:
    written = write_figures(judged(), tmp_path / "paper")
    names = {path.name for path in written}
    assert {"learning-curves.svg", "partial-xstar-100.pdf", "partial-xstar-200.png"} <= names
    assert "differences.svg" in names
    assert all(path.stat().st_size > 1000 for path in written)
    starts = {path.suffix: path.read_bytes()[:4] for path in written}
    assert (starts[".pdf"], starts[".png"]) == (b"%PDF", b"\x89PNG")


def test_text_stays_text(tmp_path: Path) -> None:
    write_figures(judged(), tmp_path)
    root = ElementTree.parse(tmp_path / "partial-xstar-100.svg").getroot()
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"0 %", "4 %", "100 %", "het", "accuracy, %"} <= texts


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    first, second = (write_figures(judged(), tmp_path / name) for name in ("a", "b"))
    assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]


def test_differences_are_drawn_with_their_zero_and_names(tmp_path: Path) -> None:
    write_figures(summary(arm("<het>", cell(100))), tmp_path)
    root = ElementTree.parse(tmp_path / "differences.svg").getroot()
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"<het>", "n = 100, against no-xstar", "n = 100, against gaussian-dropout"} <= texts
    assert {path.name for path in tmp_path.glob("*.svg")} == {"differences.svg", "scores.svg"}


def test_dollars_in_a_name_are_no_formula(tmp_path: Path) -> None:
    write_figures(summary(arm("$het$", cell(100))), tmp_path)
    root = ElementTree.parse(tmp_path / "differences.svg").getroot()
    assert "$het$" in {element.text for element in root.iter() if element.tag.endswith("text")}
