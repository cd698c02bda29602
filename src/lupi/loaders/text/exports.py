"""Texts as annotation tools export them: Label Studio, Prodigy and doccano.

| tool         | file                                                                            |
|--------------|---------------------------------------------------------------------------------|
| Label Studio | JSON: a list of tasks with `data` and `annotations`; JSON-MIN: a list of rows;   |
|              | CSV: with `annotation_id`, spans as JSON in a cell                               |
| Prodigy      | JSON lines with `text`, `spans` and `answer`; the class is `label` or `accept`   |
| doccano      | JSON lines with `text` and `label` or `entities` (spans) and `cats` (the class)  |

Every export becomes rows with the columns `text`, `label` (the class) and `spans` (of characters,
one list per annotator), beside the fields that the tool kept. Where nobody named the class of a
text, the only label of its spans is taken.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from lupi.errors import LupiError
from lupi.loaders.files import Row, read_lines, read_rows, suffix_of

Tool = Literal["label-studio", "prodigy", "doccano"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
TEXT, LABEL, SPANS = "text", "label", "spans"
MAX_BYTES = 512 * 2**20
N_SNIFFED = 20
N_BYTES_SNIFFED = 2**16
UNREAD = {
    ".ann": "brat",
    ".conll": "CoNLL",
    ".conllu": "CoNLL",
    ".spacy": "spaCy",
    ".xmi": "INCEpTION or WebAnno",
}
UNREAD_JSON = {
    "HateXplain": (b'"post_tokens"', b'"rationales"'),
    "SQuAD": (b'"paragraphs"', b'"qas"'),
    "ERASER": (b'"evidences"', b'"annotation_id"'),
}
"""Keys by which a format is recognised at the start of a JSON file."""
STUDIO_COLUMNS = {"annotation_id", "annotator", "lead_time"}


def find_tool(path: Path) -> Tool | None:
    """Return the tool that wrote a file, by what its first rows have; None for any other file."""
    suffix = suffix_of(path)
    if not path.is_file():
        return None
    try:
        if suffix == ".json":
            content = _document(path)
            return "label-studio" if content is not None and _is_studio(content) else None
        if suffix in (".jsonl", ".ndjson"):
            first = [row for _, row in zip(range(N_SNIFFED), _objects(path), strict=False)]
            if first and all("text" in row and "answer" in row for row in first):
                return "prodigy"
            keys = {key for row in first for key in row}
            is_doccano = bool(first) and ("entities" in keys or "cats" in keys)
            lists = [row["label"] for row in first if isinstance(row.get("label"), list)]
            if is_doccano or (lists and len(lists) == len(first)):
                return "doccano"
        elif suffix in (".csv", ".tsv"):
            row = next(iter(read_rows(path, (), None)), None)
            if row is not None and row.cells.keys() >= STUDIO_COLUMNS:
                return "label-studio"
    except LupiError:
        return None
    return None


def refuse_unread(path: Path) -> None:
    """Raise an error for a file of texts in a format that is known but not read."""
    found = UNREAD.get(suffix_of(path))
    if suffix_of(path) == ".json":
        with path.open("rb") as file:
            start = file.read(N_BYTES_SNIFFED)
        found = next(
            (name for name, keys in UNREAD_JSON.items() if all(k in start for k in keys)), None
        )
    if found is not None:
        raise LupiError(
            f"{path} is a file of {found}, which lupi does not read: convert it to CSV or JSON "
            "lines with a text, a class and a rationale per row (spans of characters, quoted "
            "snippets, or a number per word), and name their columns: text, target, rationale"
        )


def read_export(path: Path, tool: Tool) -> Iterator[Row]:
    """Yield the rows of an export with the columns text, label and spans, beside others."""
    rows = {"label-studio": _studio, "prodigy": _prodigy, "doccano": _doccano}[tool](path)
    for number, (cells, bad) in enumerate(rows, start=1):
        yield Row(number, cells, bad)


Found = Iterator[tuple[dict[str, Any], str | None]]
"""The cells of a row, and why it can't be used."""


def _studio(path: Path) -> Found:
    if suffix_of(path) != ".json":
        for row in read_rows(path, (), None):
            cells = {name: _parsed(cell) for name, cell in row.cells.items()}
            yield _studio_row(cells), row.bad
        return
    content = _document(path)
    if content is None or not _is_studio(content):
        raise LupiError(f"{path} is not an export of texts from Label Studio")
    for task in content:
        if not isinstance(task, dict):
            yield {}, f"expected an object, got {str(task)[:40]}"
        elif isinstance(task.get("data"), dict):
            yield from _studio_task(task)
        else:
            yield _studio_row(task), None


def _studio_task(task: Mapping[str, Any]) -> Found:
    """Yield the row of a task of JSON; its annotators mark spans and name classes."""
    data = task["data"]
    text = _text_of(data)
    every = task.get("annotations", task.get("completions"))
    done = [
        one
        for one in (every if isinstance(every, list) else [])
        if isinstance(one, dict) and not one.get("was_cancelled")
    ]
    if not done:
        return  # not annotated yet
    spans: list[list[list[int]]] = []
    classes: list[str] = []
    labels: list[str] = []
    for one in done:
        found: list[list[int]] = []
        results = one.get("result")
        for result in results if isinstance(results, list) else []:
            value = result.get("value") if isinstance(result, dict) else None
            if isinstance(value, dict):
                classes += _strings(value.get("choices"))
                found += _span(value)
                labels += _strings(value.get("labels")) if _span(value) else []
        spans.append(found)
    yield {**data, TEXT: text, LABEL: _one(classes, labels), SPANS: _several(spans)}, None


def _studio_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of JSON-MIN or CSV: results stand under the names of their controls."""
    spans: list[list[int]] = []
    labels: list[str] = []
    classes: list[str] = []
    for key, value in row.items():
        marked = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
        if any(_span(one) for one in marked):
            for one in marked:
                spans += _span(one)
                labels += _strings(one.get("labels"))
        elif isinstance(value, dict) and "choices" in value:
            classes += _strings(value["choices"])
        elif key in ("choice", "sentiment", "class", "category") and isinstance(value, str):
            classes.append(value)
    plain = {key: value for key, value in row.items() if key not in (TEXT, LABEL, SPANS)}
    given = row.get(LABEL)
    if not classes and isinstance(given, str) and given:
        classes = [given]
    return {**plain, TEXT: _text_of(row), LABEL: _one(classes, labels), SPANS: spans}


def _prodigy(path: Path) -> Found:
    labels = {str(row["label"]) for row in _objects(path) if isinstance(row.get("label"), str)}
    for row in _objects(path):
        marked = [one for one in _list(row.get("spans")) if isinstance(one, dict)]
        spans = [span for one in marked for span in _span(one)]
        answer = row.get("answer", "accept")
        if answer == "ignore":
            continue
        classes = _strings(row.get("accept")) or _strings(row.get("label"))
        if answer == "reject":  # of two classes, it is the other one
            others = sorted(labels - set(classes))
            classes = others if len(labels) == 2 and len(others) == 1 else []
        named = [str(one["label"]) for one in marked if "label" in one]
        plain = {key: row[key] for key in row if key not in (TEXT, LABEL, SPANS)}
        plain |= row["meta"] if isinstance(row.get("meta"), dict) else {}
        yield {**plain, TEXT: row.get(TEXT), LABEL: _one(classes, named), SPANS: spans}, None


def _doccano(path: Path) -> Found:
    for row in _objects(path):
        spans: list[list[int]] = []
        labels: list[str] = []
        classes = _strings(row.get("cats"))
        for one in [*_list(row.get("entities")), *_list(row.get("label"))]:
            if isinstance(one, list) and len(one) >= 2 and all(type(n) is int for n in one[:2]):
                spans.append(one[:2])
                labels += [str(one[2])] if len(one) > 2 else []
            elif isinstance(one, dict) and "start_offset" in one:
                spans += _span({"start": one["start_offset"], "end": one.get("end_offset")})
                labels += [str(one["label"])] if "label" in one else []
            elif isinstance(one, str):
                classes.append(one)
        text = row.get(TEXT, row.get("data"))
        plain = {key: row[key] for key in row if key not in (TEXT, LABEL, SPANS)}
        yield {**plain, TEXT: text, LABEL: _one(classes, labels), SPANS: spans}, None


def _one(classes: list[str], labels: list[str]) -> str | None:
    """Return the class that most annotators named, or the only label of spans."""
    if classes:
        return Counter(classes).most_common(1)[0][0]
    return labels[0] if len(set(labels)) == 1 else None


def _several(spans: list[list[list[int]]]) -> Any:
    """Return the spans of one annotator, or of several as a list for each."""
    return spans[0] if len(spans) == 1 else spans


def _span(value: Mapping[str, Any]) -> list[list[int]]:
    """Return [[start, end]] of a marked span; nothing for other results."""
    whole = value.get("globalOffsets")
    place = whole if isinstance(whole, dict) else value
    start, end = place.get("start"), place.get("end")
    return [[start, end]] if type(start) is int and type(end) is int else []


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return [str(one) for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text_of(fields: Mapping[str, Any]) -> str | None:
    """Return the text of a task: the field `text`, or else the longest string."""
    if isinstance(fields.get(TEXT), str):
        return str(fields[TEXT])
    return max((v for v in fields.values() if isinstance(v, str)), key=len, default=None)


def _is_studio(content: Any) -> bool:
    """Return whether a document is an export of texts, as JSON or JSON-MIN."""
    rows = [row for row in content[:N_SNIFFED] if isinstance(row, dict)]
    if not rows:
        return False
    if all(isinstance(row.get("data"), dict) for row in rows):
        return any("annotations" in row or "completions" in row for row in rows)
    return any("annotator" in row or "annotation_id" in row for row in rows)


def _document(path: Path) -> list[Any] | None:
    """Return a JSON file that holds a list; None for any other."""
    if path.stat().st_size > MAX_BYTES:
        raise LupiError(f"{path} has more than {MAX_BYTES:,} bytes; export it as JSON lines")
    try:
        content = json.loads("".join(read_lines(path, "utf-8")))
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, list) else None


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    for line in read_lines(path, "utf-8"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LupiError(f"{path} is not JSON lines: {error}") from None
        if isinstance(row, dict):
            yield row


def _parsed(cell: Any) -> Any:
    """Return a cell of CSV that holds JSON as its value."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    return cell
