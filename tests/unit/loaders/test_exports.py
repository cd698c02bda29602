"""Exports of texts as annotation tools write them, made small."""

import json
from pathlib import Path
from typing import Any

import pytest

from lupi.errors import LupiError
from lupi.interface.sources import settings_from
from lupi.loaders.text.exports import find_tool
from lupi.loaders.text.texts import Loaded, TextFileSettings, load_texts

TEXT = "a silly film"


def load(path: Path, **changes: Any) -> Loaded:
    given = {"text": "text", "target": "label", "rationale": ["spans"], "tool": find_tool(path)}
    return load_texts(TextFileSettings(path=path, **{**given, **changes}))


def marked(loaded: Loaded) -> list[list[float] | None]:
    return [
        None if r is None else [round(float(v), 2) for v in r]
        for r in loaded.parts["train"].regions
    ]


def studio(*results: dict[str, Any], text: str = TEXT) -> dict[str, Any]:
    return {"id": 1, "data": {"review": text, "n": 3}, "annotations": [{"result": list(results)}]}


CHOICE = {"from_name": "mood", "type": "choices", "value": {"choices": ["bad"]}}
SPAN = {"type": "labels", "value": {"start": 2, "end": 7, "text": "silly", "labels": ["why"]}}


def test_label_studio_json(tmp_path: Path) -> None:
    good = {**CHOICE, "value": {"choices": ["good"]}}
    second = studio(CHOICE, SPAN)
    second["annotations"].append({"result": [good]})
    second["annotations"].append({"result": [CHOICE]})
    todo = {"data": {"review": "not yet"}, "annotations": []}
    path = tmp_path / "export.json"
    path.write_text(json.dumps([studio(CHOICE, SPAN), studio(good), todo, second]))
    assert find_tool(path) == "label-studio"
    loaded = load(path)
    assert loaded.parts["train"].targets == ["bad", "good", "bad"]
    assert marked(loaded) == [[0, 1, 0], None, [0, 0.33, 0]]  # one of three annotators
    assert load(path, target="n").parts["train"].targets == [3, 3, 3]


def test_label_studio_json_min_and_csv(tmp_path: Path) -> None:
    spans = [{"start": 2, "end": 7, "text": "silly", "labels": ["why"]}]
    rows = [
        {"text": TEXT, "id": 1, "why": spans, "sentiment": "bad", "annotator": 1},
        {"text": "fine", "id": 2, "sentiment": "good", "annotator": 1},
    ]
    path = tmp_path / "min.json"
    path.write_text(json.dumps(rows))
    assert marked(load(path)) == [[0, 1, 0], None]
    assert load(path).parts["train"].targets == ["bad", "good"]
    path = tmp_path / "export.csv"
    cell = json.dumps(spans).replace('"', '""')
    path.write_text(
        "annotation_id,annotator,id,lead_time,sentiment,text,why\n"
        f'1,1,1,9.5,bad,{TEXT},"{cell}"\n2,1,2,3.5,good,fine,\n'
    )
    assert find_tool(path) == "label-studio"
    assert marked(load(path)) == [[0, 1, 0], None]
    assert load(path).parts["train"].targets == ["bad", "good"]


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_prodigy(tmp_path: Path) -> None:
    span = {"start": 2, "end": 7, "token_start": 1, "label": "why"}
    path = lines(
        tmp_path / "p.jsonl",
        {"text": TEXT, "spans": [span], "label": "bad", "answer": "accept"},
        {"text": "fine", "spans": [], "label": "bad", "answer": "reject"},
        {"text": "good", "spans": [], "label": "good", "answer": "accept"},
        {"text": "what", "spans": [], "label": "bad", "answer": "ignore"},
    )
    assert find_tool(path) == "prodigy"
    loaded = load(path)
    assert loaded.parts["train"].targets == ["bad", "good", "good"]
    assert marked(loaded) == [[0, 1, 0], None, None]


@pytest.mark.parametrize(
    "row",
    [
        {"text": TEXT, "label": [[2, 7, "bad"]]},
        {"text": TEXT, "cats": ["bad"], "entities": [[2, 7, "why"]]},
        {"text": TEXT, "cats": ["bad"], "entities": [{"start_offset": 2, "end_offset": 7}]},
    ],
)
def test_doccano(tmp_path: Path, row: dict[str, Any]) -> None:
    path = lines(tmp_path / "d.jsonl", row, {"text": "fine", "cats": ["good"], "label": []})
    assert find_tool(path) == "doccano"
    loaded = load(path)
    assert marked(loaded) == [[0, 1, 0], None]
    assert loaded.parts["train"].targets == ["bad", "good"]


def test_other_files_are_no_exports(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", {"text": TEXT, "label": "bad", "spans": [[2, 7]]})
    assert find_tool(path) is None
    (tmp_path / "x.json").write_text("{")
    assert find_tool(tmp_path / "x.json") is None


def test_an_export_needs_no_columns(tmp_path: Path) -> None:
    rows = []
    for i in range(60):
        mood = {**CHOICE, "value": {"choices": [["bad", "good"][i % 2]]}}
        rows.append(studio(mood, SPAN, text=f"a silly film {i}"))
    path = tmp_path / "export.json"
    path.write_text(json.dumps(rows))
    task = settings_from(path, {})["task"]
    assert (task["tool"], task["target"]) == ("label-studio", "label")


def frame(tmp_path: Path, cells: list[Any], texts: list[str] | None = None) -> Path:
    texts = texts or [TEXT] * len(cells)
    rows = [
        {"text": text, "label": "ab"[i % 2], "spans": cell}
        for i, (text, cell) in enumerate(zip(texts, cells, strict=True))
    ]
    return lines(tmp_path / "rows.jsonl", *rows)


def test_places_of_characters(tmp_path: Path) -> None:
    path = frame(tmp_path, [[2, 3, 4, 5, 6], []])
    assert load(path).form == "offsets"
    assert marked(load(path)) == [[0, 1, 0], None]


def test_flags_of_zeros_mean_no_rationale(tmp_path: Path) -> None:
    path = frame(tmp_path, [[0, 1, 0], [0, 0, 0], []])
    assert marked(load(path)) == [[0, 1, 0], None, None]


@pytest.mark.parametrize(
    ("snippet", "text", "expected"),
    [
        ("“Wooden” acting", 'so "wooden" acting', "wooden acting"),
        ("well-made", "a well – made film", "well made"),
        ("a silly … end", "a silly film without end", "a silly end"),
        ("DON'T  see it", "don’t see it", "don’t see it"),
        ("wooden, acting!", "wooden acting", "wooden acting"),
        ("art", "a party, art", "art"),
    ],
)
def test_snippets_match_leniently(tmp_path: Path, snippet: str, text: str, expected: str) -> None:
    loaded = load(frame(tmp_path, [[snippet], ["x"]], [text, "x"]))
    names = list(loaded.lexemes)
    (region, _), (words, _) = loaded.parts["train"].regions, loaded.parts["train"].words
    assert region is not None
    found = [names[w] for w, r in zip(words, region, strict=True) if r]
    assert [word for word in found if word.strip("'’").isalnum() or "’" in word] == (
        ["art", "party", "art"] if snippet == "art" else expected.split()
    ) or (snippet == "art" and found[-1] == "art")


def test_a_snippet_that_is_not_found_drops_only_itself(tmp_path: Path) -> None:
    loaded = load(frame(tmp_path, [["silly", "never there"], ["nor this"], ["film"]]))
    assert marked(loaded) == [[0, 1, 0], None, [0, 0, 1]]
    assert loaded.findings.counts() == {"snippet that is not in its text": 2}
    assert not loaded.findings.bad


def test_every_place_of_a_snippet_or_the_first(tmp_path: Path) -> None:
    path = frame(tmp_path, [["so"], ["so"]], ["so so", "not so"])
    assert marked(load(path)) == [[1, 1], [0, 1]]
    assert marked(load(path, occurrences="first")) == [[1, 0], [0, 1]]


def test_tags_that_would_be_words_are_refused(tmp_path: Path) -> None:
    texts = [f"a <WHY>silly</WHY> film {i}" for i in range(4)]
    path = frame(tmp_path, [["silly"]] * 4, texts)
    with pytest.raises(LupiError, match=r"<WHY> in 4 texts.*task.tags \(\[WHY\]\)"):
        load(path)
    assert marked(load(path, rationale=["text"], tags=["WHY"]))[0] == [0, 1, 0, 0]


def test_markup_is_remarked_on(tmp_path: Path) -> None:
    path = frame(tmp_path, [["silly"], ["silly"]], ["silly<br />film", "silly film"])
    assert "1 of 2 texts contain markup, such as <br>" in load(path).findings.remarks[0]


@pytest.mark.parametrize(
    ("name", "content", "tool"),
    [
        ("a.ann", "T1\tEvidence 0 5\tsuper\n", "brat"),
        ("a.conll", "super B-POS\n", "CoNLL"),
        ("h.json", '{"1": {"post_tokens": ["a"], "rationales": [[1]]}}', "HateXplain"),
    ],
)
def test_a_format_that_is_known_but_not_read_is_named(
    tmp_path: Path, name: str, content: str, tool: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(LupiError, match=f"is a file of {tool}, which lupi does not read: convert"):
        settings_from(path, {})
