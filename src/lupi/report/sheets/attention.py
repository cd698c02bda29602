"""The page of `lupi analyse` for a student with attention: where it looks in held-out rows."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lupi.files import read_json, write_json, write_text
from lupi.records import read_result
from lupi.report.samples import make_album, shade_texts
from lupi.report.sheets.sheet import Image, Section, render_sheet
from lupi.text_samples import read_text_samples
from lupi.unpack import read_arrays


@dataclass(frozen=True, slots=True)
class AttentionFindings:
    """Where the student of a run looked in test rows with x*."""

    method: str
    control: str
    pointing: float
    """Share of rows whose attention has its maximum inside x*."""
    chance: float | None
    """The same for a place drawn evenly; None in older records."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def lead(self) -> list[str]:
        """Return the summary at the top of the page."""
        chance = "" if self.chance is None else f"; a place drawn evenly, in {self.chance:.0%}"
        return [
            f"The student's attention has its maximum inside x* in {self.pointing:.0%} of the test "
            f"rows{chance}.",
            f"{self.method}, x* {self.control}. The x* of test rows was read after training, for "
            "this score only.",
        ]


def find_attention(run: Path) -> AttentionFindings | None:
    """Return what a finished run recorded about its attention; None if it has none."""
    result, settings = read_result(run), read_json(run / "settings.json")
    pointing = result.get("metrics", {}).get("test", {}).get("pointing")
    if pointing is None:
        return None
    method, control = settings["method"], settings.get("control", "real")
    return AttentionFindings(method, control, pointing, result.get("pointing_chance"))


def write_attention(folder: Path, run: Path, found: AttentionFindings) -> Path:
    """Write analysis.html and analysis.json; return the page's path."""
    write_json(folder / "analysis.json", found.to_json())
    page, section = folder / "analysis.html", attention_section(run)
    sections = [] if section is None else [section]
    write_text(page, render_sheet(f"Where does it look? {run.name}", found.lead(), sections))
    return page


def attention_section(run: Path) -> Section | None:
    """Return the recorded test rows with their attention; None if none were recorded."""
    title, words = "Attention in test rows", ("Evenly spaced test rows; they were not selected.",)
    if (run / "attention.json").exists():
        return Section(title, words, texts=shade_texts(read_text_samples(run / "attention.json")))
    if not (run / "attention.npz").exists():
        return None
    arrays = read_arrays(run / "attention.npz")
    arrays["variance/attention"] = arrays.pop("attention")
    target = read_json(run / "preprocessing.json").get("target", {})
    album = make_album(arrays, target.get("classes", ()))
    strips = [
        (
            Image(s.image, f"Image labelled {s.label}", f"label {s.label}"),
            Image(s.outlined, "The same image with its x*", "x*, which the student does not see"),
            Image(s.maps[0], "Attention of the student", f"attention; predicted {s.prediction}"),
        )
        for s in album.samples
    ]
    return Section(title, words, strips=strips)
