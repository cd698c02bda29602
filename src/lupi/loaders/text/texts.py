"""Texts as data for a task: columns, invalid rows, words as indices."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from lupi.errors import LupiError
from lupi.loaders.files import Row, TextFormat, find_columns, read_rows
from lupi.loaders.findings import Findings, OnBad
from lupi.loaders.split_columns import DivisionSettings, official_parts
from lupi.loaders.text.exports import Tool, read_export
from lupi.loaders.text.markup import Markup
from lupi.loaders.text.rationales import (
    Annotators,
    BadRationaleError,
    Form,
    Occurrences,
    find_form,
    mark_words,
    read_cell,
    strip_tags,
)
from lupi.loaders.text.tokens import Words, locate_words
from lupi.subsets import PARTS, Part

if TYPE_CHECKING:
    import pandas as pd

N_LOOKED_AT = 200
"""Rationales from which the form of all of them is found."""


class TextFileSettings(DivisionSettings, TextFormat):
    """Files, roles of columns, and how files are read."""

    path: Path
    """CSV, TSV, JSON lines, Parquet or Excel; may be gzipped (.csv.gz)."""
    text: str
    """Column with the texts: strings, or lists of words."""
    target: str
    """Column to predict."""
    rationale: tuple[str, ...] = ()
    """Column with the rationales, or one column per annotator. The text column itself: tags."""
    rationale_form: Literal["auto"] | Form = "auto"
    """`spans` of characters, `snippets`, `flags` of words, or `tags` inside the text."""
    tags: tuple[str, ...] = Field(("POS", "NEG", "r", "rationale"), min_length=1)
    """Names of the tags around a rationale, as in <r>…</r>, where rationales are tags."""
    occurrences: Occurrences = "all"
    """Which places of a snippet in its text are marked: `all`, or the `first`."""
    tool: Tool | None = None
    """Annotation tool that exported the files: label-studio, prodigy or doccano. Its rows have the
    columns text, label and spans, beside those that the tool kept."""
    annotators: Annotators = "mean"
    """Several annotators: the fraction that marked a word, or 1 if any did."""
    val: Path | None = None
    """A file with validation rows; by default each seed draws them from `path`."""
    test: Path | None = None
    """A file with test rows; by default each seed draws them from `path`."""
    max_length: int = Field(5000, ge=1)
    """Maximum number of words of a text; truncated texts are counted."""
    on_bad: OnBad = "stop"
    """Invalid rows: stop at the first; or `skip` and count them: a row with an invalid rationale is
    kept without it, other invalid rows are dropped."""

    @field_validator("rationale", "tags", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _columns_differ(self) -> "TextFileSettings":
        if self.target in (self.text, *self.rationale):
            raise ValueError(f"target: {self.target!r} is also the text or the rationale")
        for role, name in self.dividers.items():
            if name in (self.text, self.target, *self.rationale):
                raise ValueError(f"{role}: {name!r} is also the text, the target or the rationale")
        if self.split is not None and (self.val or self.test):
            raise ValueError("use either a split column or files for val and test, not both")
        has_tags = self.text in self.rationale
        if has_tags and (len(self.rationale) > 1 or self.rationale_form not in ("auto", "tags")):
            raise ValueError(
                "rationale: the text column means tags and can't be combined with others"
            )
        if self.rationale_form == "tags" and not has_tags:
            raise ValueError("rationale_form: tags are in the text; name the text column")
        if self.rationale_form != "auto" and not self.rationale:
            raise ValueError("rationale_form has no effect without `rationale`")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that rows are read from."""
        return tuple(path for path in (self.path, self.val, self.test) if path is not None)

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns that say how rows are divided, and by which results are shown."""
        named = (*self.dividers.values(), *(() if self.by is None else (self.by,)))
        return tuple(dict.fromkeys(named))


@dataclass(slots=True)
class Texts:
    """Rows of one file."""

    words: list[NDArray[np.int32]] = field(default_factory=list)
    """Of each text: places in `Lexemes`."""
    regions: list[NDArray[np.float32] | None] = field(default_factory=list)
    """Of each text: how far each word belongs to its rationale; None without one."""
    targets: list[Any] = field(default_factory=list)
    """As they stand in the file."""
    numbers: list[int] = field(default_factory=list)
    """Of each row in the file, from 1."""
    beside: dict[str, list[Any]] = field(default_factory=dict)
    """Other columns, such as those that determine how rows are divided."""

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: Sequence[int]) -> "Texts":
        """Return some of the rows."""
        return Texts(
            [self.words[i] for i in rows],
            [self.regions[i] for i in rows],
            [self.targets[i] for i in rows],
            [self.numbers[i] for i in rows],
            {name: [values[i] for i in rows] for name, values in self.beside.items()},
        )

    def column(self, name: str) -> "pd.Series[Any]":
        """Return one of the other columns, as numbers if all are."""
        import pandas as pd

        values = pd.Series([None if _is_missing(v) else v for v in self.beside[name]], name=name)
        try:
            return pd.to_numeric(values)
        except (ValueError, TypeError):
            return values


class Lexemes(dict[str, int]):
    """All distinct words of the files, numbered in their order."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Loaded(NamedTuple):
    """All rows of a task, and what was found in them."""

    parts: dict[Part, Texts]
    """`train`, and `val` and `test` where files or a column give them."""
    lexemes: Lexemes
    findings: Findings
    form: Form | None

    @property
    def every(self) -> Texts:
        """All rows: those of `train` first, then `val`, then `test`."""
        found = [self.parts[part] for part in PARTS if part in self.parts]
        return Texts(
            [words for texts in found for words in texts.words],
            [region for texts in found for region in texts.regions],
            [target for texts in found for target in texts.targets],
            [number for texts in found for number in texts.numbers],
        )


def load_texts(settings: TextFileSettings) -> Loaded:
    """Read all files."""
    findings, lexemes = Findings(settings.on_bad), Lexemes()
    form = _find_form(settings)
    parts: dict[Part, Texts] = {}
    for part, path in zip(PARTS, (settings.path, settings.val, settings.test), strict=True):
        if path is not None:
            parts[part] = _load(path, settings, form, findings, lexemes)
    if settings.split is not None:
        every, named = parts["train"], official_parts(parts["train"].column(settings.split))
        rows = {part: [i for i, name in enumerate(named) if name == part] for part in PARTS}
        parts = {part: every.take(some) for part, some in rows.items() if some}
    if settings.rationale and all(region is None for region in parts["train"].regions):
        tags = f": no text has a tag among {', '.join(settings.tags)}" if form == "tags" else ""
        raise LupiError(
            f"{settings.path}: column {', '.join(settings.rationale)} gives no row a "
            f"rationale{tags}; there is no x*"
        )
    return Loaded(parts, lexemes, findings, form)


def _load(
    path: Path, settings: TextFileSettings, form: Form | None, findings: Findings, lexemes: Lexemes
) -> Texts:
    loaded, markup = Texts(beside={name: [] for name in settings.beside}), Markup()
    for number, cells in _good_rows(path, settings, findings):
        where = f"{path.name} row {number}"
        text, target = as_text(cells[settings.text]), cells[settings.target]
        if text is None:
            findings.add(where, "no text", f"column {settings.text} is empty")
            continue
        if _is_missing(target):
            findings.add(where, "no target", f"column {settings.target} is empty")
            continue
        try:
            missing: list[str] = []
            text, words, region = _marked(text, cells, settings, form, missing.append)
            for snippet in missing:
                kind = "snippet that is not in its text"
                findings.note(where, kind, f"{snippet[:60]!r}; left out")
        except BadRationaleError as error:
            findings.add(where, "rationale that does not fit the text", str(error))
            tags = settings.tags if form == "tags" else ()
            region, words = None, locate_words(remove_tags(text, tags))
        markup.see(text if form != "tags" else remove_tags(text, settings.tags))
        if not words.words:
            findings.add(where, "no text", f"column {settings.text} contains no words")
            continue
        if len(words.words) > settings.max_length:
            findings.note(where, "text cut off", f"after {settings.max_length} words")
        kept = slice(settings.max_length)
        loaded.words.append(np.array([lexemes[word] for word in words.words[kept]], np.int32))
        loaded.regions.append(region[kept] if region is not None and region[kept].any() else None)
        loaded.targets.append(target)
        loaded.numbers.append(number)
        for name, values in loaded.beside.items():
            values.append(cells[name])
    if not len(loaded):
        raise LupiError(f"{path} has no rows with text and target")
    markup.refuse_tags(str(path))
    if (remark := markup.remark(len(loaded))) is not None:
        findings.remarks.append(remark)
    return loaded


def _good_rows(
    path: Path, settings: TextFileSettings, findings: Findings
) -> Iterator[tuple[int, dict[str, Any]]]:
    named = [settings.text, settings.target, *settings.beside]
    rationale = [name for name in settings.rationale if name not in named]
    if path == settings.path:  # files with validation or test rows need no rationales
        named, rationale = [*named, *rationale], []
    for row in _rows(path, named, rationale, settings):
        if row.bad is not None:
            findings.add(f"{path.name} row {row.number}", "row that can't be read", row.bad)
        else:
            yield row.number, row.cells


def _rows(
    path: Path, columns: Sequence[str], optional: Sequence[str], settings: TextFileSettings
) -> Iterator[Row]:
    """Yield the rows of a file, or of an export of an annotation tool."""
    if settings.tool is None:
        yield from read_rows(path, columns, optional, settings.dialect)
        return
    for row in read_export(path, settings.tool):
        if row.bad is None and row.number == 1:
            find_columns(list(row.cells), columns, optional, str(path))
        empty = dict.fromkeys(columns)
        yield row._replace(cells={**empty, **row.cells})


def _find_form(settings: TextFileSettings) -> Form | None:
    """Return the form of the rationales, which the whole column decides."""
    if settings.text in settings.rationale:
        return "tags"
    if settings.rationale_form != "auto" or not settings.rationale:
        return None if settings.rationale_form == "auto" else settings.rationale_form
    rows = _rows(settings.path, settings.rationale, (), settings)
    cells = (_first_cell(row.cells.get(name) for name in settings.rationale) for row in rows)
    return find_form(islice((cell for cell in cells if cell is not None), N_LOOKED_AT))


def _first_cell(cells: Iterable[Any]) -> Any:
    """Return the first cell of a row that is not empty, as plain values."""
    for cell in cells:
        try:
            if (value := read_cell(cell)) is not None:
                return value
        except BadRationaleError:
            continue  # reported with its row number when rows are loaded
    return None


def _marked(
    text: str,
    cells: dict[str, Any],
    settings: TextFileSettings,
    form: Form | None,
    on_missing: Callable[[str], None],
) -> tuple[str, Words, NDArray[np.float32] | None]:
    """Return the text without tags, its words, and how far each belongs to the rationale."""
    if form == "tags":
        text, spans = strip_tags(text, settings.tags)
        words = locate_words(text)
        if not spans:
            return text, words, None
        return text, words, mark_words([list(s) for s in spans], "tags", text, words, "any")
    words = locate_words(text)
    given = [read_cell(cells.get(name)) for name in settings.rationale]
    found = [
        mark_words(cell, form, text, words, settings.annotators, settings.occurrences, on_missing)
        for cell in given
        if cell is not None and form is not None
    ]
    if all(mark is None for mark in found):
        return text, words, None
    nothing = np.zeros(len(words.words), np.float32)
    marks = [nothing if mark is None else mark for mark in found]
    combined = np.max(marks, axis=0) if settings.annotators == "any" else np.mean(marks, axis=0)
    return text, words, combined.astype(np.float32)


def as_text(cell: Any) -> str | None:
    """Return a cell as text, a list of words joined by spaces; None if it is empty."""
    if isinstance(cell, list | tuple):
        cell = " ".join(str(word) for word in cell)
    if cell is None or (isinstance(cell, float) and np.isnan(cell)) or not str(cell).strip():
        return None
    return str(cell)


def remove_tags(text: str, tags: Sequence[str]) -> str:
    """Return a text without tags, whether they fit together or not."""
    for tag in tags:
        text = text.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    return text


def _is_missing(cell: Any) -> bool:
    is_nan = isinstance(cell, float) and np.isnan(cell)
    return cell is None or is_nan or (isinstance(cell, str) and not cell.strip())
