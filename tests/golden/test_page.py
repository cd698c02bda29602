"""The page made from whole folders of records."""

import base64
import gzip
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi.interface.result import Comparison
from lupi.records import Arm, read_comparison
from lupi.verdict.summary import summarise
from made_records import ARMS, drop_results, make_records, run_folder

VOID = {"meta", "link", "img", "br", "line", "hr", "input"}


class Page(HTMLParser):
    """Checks that tags nest, and collects attributes, visible text and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value or "") for key, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data


def write_report(folder: Path, command: str | None = None) -> Path:
    return Comparison(folder).report(command=command)


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    return make_records(tmp_path / "demo")


def test_page_answers_first(demo: Path) -> None:
    path = write_report(demo)
    page = read(path)
    summary = summarise(read_comparison(demo))
    assert path == demo / "report.html"
    assert summary.headline in page.text
    assert page.text.index(summary.headline) < page.text.index("Learning curves")
    assert "▲ x* helps" in page.text
    for warning in summary.warnings:
        assert page.text.index(warning) < page.text.index("Learning curves")
    for arm in ARMS:
        assert arm.name in page.text
    assert path.stat().st_size < 3_000_000


def unpacked(page: Page) -> list[str]:
    """Return the texts that the page unpacks itself."""
    scripts = [script for script in page.scripts if script.startswith("H4sI")]
    return [gzip.decompress(base64.b64decode(script)).decode() for script in scripts]


def test_page_asks_the_network_for_nothing(demo: Path) -> None:
    page = read(write_report(demo))
    loading = [v for _, key, v in page.attributes if key in ("src", "href", "srcset", "action")]
    assert loading
    assert all(value.startswith("data:") for value in loading)
    policy = [value for _, key, value in page.attributes if key == "content"]
    assert any(value.startswith("default-src 'none'") for value in policy)
    styles = re.findall(r"<style>(.*?)</style>", (demo / "report.html").read_text(), re.DOTALL)
    assert not any("url(" in style or "@import" in style for style in styles)
    assert sum("plotly.js v" in text for text in unpacked(page)) == 1


def test_page_shows_images_variance_and_validation(demo: Path) -> None:
    page = read(write_report(demo))
    images = [v for tag, key, v in page.attributes if (tag, key) == ("img", "src")]
    assert len(images) == 5 * 3 + 1  # image, box and variance of each sample; the colour scale
    drawn = [value for _, key, value in page.attributes if key == "data-for"]
    assert drawn == [
        "forest",
        "learning",
        "variance-1",
        "validation-1",
        "validation-2",
        "validation-3",
    ]
    assert "trunk.site2, n = 300" in page.text


def test_published_scores_stand_beside_ours_as_quoted(demo: Path) -> None:
    assert "Published" not in read(write_report(demo)).text
    document = json.loads((demo / "comparison.json").read_text())
    scores = {"no-xstar": {"75": 0.3785}, "het-dropout": {"300": 0.423}}
    document["settings"]["paper"] = {"source": "A table, one crop", "scores": scores}
    (demo / "comparison.json").write_text(json.dumps(document))
    page = read(write_report(demo))
    assert "A table, one crop. These scores were not measured here and are not judged." in page.text
    assert re.findall(
        r'"published" data-value="[\d.]+">([\d.]+)<', (demo / "report.html").read_text()
    ) == [
        "37.9",
        "42.3",
    ]
    document["settings"]["paper"] = {"scores": "torn"}
    (demo / "comparison.json").write_text(json.dumps(document))
    assert "not judged" not in read(write_report(demo)).text


def test_the_table_has_no_row_for_an_arm_that_was_not_planned_at_a_size(demo: Path) -> None:
    document = json.loads((demo / "comparison.json").read_text())
    before = write_report(demo).read_text().count("<tr data-row>")
    document["runs"] = [r for r in document["runs"] if (r["arm"], r["size"]) != ("oracle", 300)]
    (demo / "comparison.json").write_text(json.dumps(document))
    assert (before, write_report(demo).read_text().count("<tr data-row>")) == (18, 17)


def test_every_run_can_be_looked_at(demo: Path) -> None:
    page = read(write_report(demo))
    runs = next(json.loads(text) for text in unpacked(page) if text.startswith('{"first"'))
    assert len(runs["runs"]) == 144
    assert runs["first"] == "het-dropout"
    assert set(runs["runs"][0]["loss"]) == {"loss", "task"}


def test_variance_that_never_moves_is_not_called_learned(demo: Path) -> None:
    assert "fixed before training" not in read(write_report(demo)).text
    for path in demo.glob("*/metrics.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row["sites"] = rows[0]["sites"]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "fixed before training" in read(write_report(demo)).text


def test_page_tells_how_to_repeat_it(demo: Path) -> None:
    page = read(write_report(demo))
    assert "lupi compare settings.yaml" in page.text
    assert "sizes: [75, 150, 300]" in page.text
    assert page.text.index("  no-xstar:") < page.text.index("  gaussian-dropout:")
    assert "two cores" in page.text
    again = read(write_report(demo, command="lupi demo --seeds 8"))
    assert "lupi demo --seeds 8" in again.text
    assert "lupi compare settings.yaml" not in again.text


def test_unfinished_comparison_says_what_is_missing(demo: Path) -> None:
    drop_results(demo, keep=70)
    page = read(write_report(demo))
    assert "Incomplete (70 of 144 runs)" in page.text
    assert "het-dropout at n = 300: 2 of 8 runs" in page.text
    assert "RuntimeError: out of <memory>" in page.text


def test_nothing_finished_yet(demo: Path) -> None:
    drop_results(demo, keep=0)
    page = read(write_report(demo))
    assert "Incomplete (0 of 144 runs)" in page.text
    assert "No run has finished yet." in page.text


def test_task_without_images_and_variance(tmp_path: Path) -> None:
    plain = (ARMS[0], ARMS[1], replace(ARMS[2], name="distillation"))
    folder = make_records(tmp_path / "table", arms=plain, images=False)
    for path in folder.glob("*/metrics.jsonl"):
        path.unlink()
    page = read(write_report(folder))
    assert "Samples with their noise" not in page.text
    assert "Noise inside and outside" not in page.text
    assert "Learning curves" in page.text


def test_names_cannot_break_out(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=http://evil/>&amp;"
    arms = (*ARMS[:2], Arm(evil, "het-dropout", uses_xstar=True))
    folder = make_records(tmp_path / "demo", arms=arms, task=evil)
    text = write_report(folder, command=evil).read_text()
    page = Page(text)
    assert "<script>alert(1)" not in text
    assert not any(script.strip().startswith("alert") for script in page.scripts)
    assert not any("evil" in value for _, key, value in page.attributes if key == "src")
    assert html.escape(evil, quote=False) in text
    assert page.text.count(evil) >= 3


def test_broken_files_become_warnings(demo: Path) -> None:
    (run_folder(demo, "het-dropout", 300, 0) / "samples.npz").write_bytes(b"not a zip")
    (run_folder(demo, "het-dropout", 300, 1) / "environment.json").write_text("{")
    with (run_folder(demo, "no-xstar", 75, 0) / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 7, "va')
    page = read(write_report(demo))
    before = page.text[: page.text.index("Learning curves")]
    assert "samples.npz can't be shown as images" in before
    assert "environment.json can't be read as a record" in before
    assert "line 7 is incomplete" in before


def test_no_comparison(tmp_path: Path) -> None:
    with pytest.raises(LupiError, match="holds no comparison"):
        write_report(tmp_path)


def test_page_says_what_was_read_and_names_classes(tmp_path: Path) -> None:
    folder = make_records(tmp_path / "demo")
    document = json.loads((folder / "comparison.json").read_text())
    document["facts"] = [{"about": "x*", "text": "2 numbers (rain, <traffic>)"}]
    (folder / "comparison.json").write_text(json.dumps(document))
    for run in read_comparison(folder).runs:
        names = [f"digit {i}" for i in range(10)]
        about = {"target": {"kind": "classification", "classes": names}}
        (run.folder / "preprocessing.json").write_text(json.dumps(about))
    page = read(write_report(folder))
    assert "2 numbers (rain, <traffic>)" in page.text
    assert page.text.index("2 numbers (rain") < page.text.index("All numbers")
    assert "label digit 0, predicted digit 0 ✓" in page.text
    assert "label digit 2, predicted digit 7 ✗" in page.text


def test_one_size_is_no_curve(tmp_path: Path) -> None:
    page = read(write_report(make_records(tmp_path / "demo", sizes=(75,))))
    assert "Learning curves" not in page.text
    assert "trained on n = 75 labelled examples" in page.text
