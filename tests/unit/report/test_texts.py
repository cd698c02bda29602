from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi.files import write_json
from lupi.report.samples import Piece, shade_texts
from lupi.report.sheets.sheet import Section, render_sheet
from lupi.text_samples import TextSample, read_text_samples, write_text_samples

SAMPLE = TextSample(
    words=("a", "truly", "great", "film"),
    region=(0.0, 1.0, 1.0, 0.0),
    variances={"trunk.words": (2.0, 0.0, 0.0, 1.0)},
    label="1",
    prediction="0",
)


def test_neighbours_that_look_alike_are_one_piece() -> None:
    (site,) = shade_texts([SAMPLE])
    assert (site.site, site.largest) == ("trunk.words", "2.000")
    expected = (Piece("a", False, 100), Piece("truly great", True, 0), Piece("film", False, 50))
    assert site.texts[0].pieces == expected


def test_no_noise_has_no_shade() -> None:
    (site,) = shade_texts([SAMPLE.model_copy(update={"variances": {"s": (0.0,) * 4}})])
    assert {piece.shade for piece in site.texts[0].pieces} == {0}


def test_words_are_escaped() -> None:
    words = ("<script>alert(1)</script>", "&", '"', "</p>")
    sample = SAMPLE.model_copy(update={"words": words, "label": "<b>"})
    page = render_sheet("t", ["l"], [Section("s", texts=shade_texts([sample]))])
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "label &lt;b&gt;" in page
    assert "<u>&amp; &#34;</u>" in page


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_text_samples(tmp_path / "samples.json", [SAMPLE])
    assert read_text_samples(tmp_path / "samples.json") == (SAMPLE,)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"texts": 3},
        {"texts": ["a"]},
        {"texts": [{**SAMPLE.model_dump(), "region": [0.0]}]},
        {"texts": [{**SAMPLE.model_dump(), "words": ["a"] * 1000}]},
    ],
)
def test_what_is_no_sample_is_named(tmp_path: Path, document: dict[str, object]) -> None:
    write_json(tmp_path / "samples.json", document)
    with pytest.raises(LupiError, match=r"samples\.json can't be shown as texts"):
        read_text_samples(tmp_path / "samples.json")
