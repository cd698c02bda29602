"""Rationales: the words that justify the label of a text, in several formats.

| form       | a cell                                                                     |
|------------|----------------------------------------------------------------------------|
| `spans`    | `[[0, 12], [40, 51]]`: characters, the end excluded; or `{"start", "end"}` |
| `snippets` | `["a silly film", "wooden acting"]`, or one snippet as plain text          |
| `flags`    | `[0, 1, 1, 0]` or `0 1 1 0`: one number in [0, 1] per word                 |
| `offsets`  | `[4, 5, 6, 7]`: the place of every marked character                        |
| `tags`     | the text itself: `a <r>silly film</r> that …`                              |

Several annotators are a list with one entry each, or several columns. An empty cell or list, and
flags that are all 0, mean that the row has no rationale. Snippets match whatever their case,
spaces, quotes, dashes and other punctuation; an ellipsis stands for words that were left out. A
snippet that is not in the text is left out alone.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.text.tokens import Words

Form = Literal["spans", "snippets", "flags", "offsets", "tags"]
Occurrences = Literal["all", "first"]
"""Which places of a snippet are marked."""
Annotators = Literal["mean", "any"]
"""How annotators are combined: the fraction that marked a word, or 1 if any did."""
Span = tuple[int, int]
ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…)\]?")
WORDS = re.compile(r"[^\W_]+")
MAX_SEARCH = 200_000_000
"""Characters of a text times those of its snippets; a search for them takes seconds."""


class BadRationaleError(ValueError):
    """A rationale that does not fit its text; the message says why."""


def strip_tags(text: str, tags: Sequence[str]) -> tuple[str, list[Span]]:
    """Return the text without tags, and the spans that they enclosed."""
    mark = re.compile("<(/?)(" + "|".join(map(re.escape, tags)) + ")>")
    parts: list[str] = []
    spans: list[Span] = []
    opened: tuple[str, int] | None = None
    length = position = 0
    for match in mark.finditer(text):
        parts.append(text[position : match.start()])
        length += len(parts[-1])
        position = match.end()
        closes, name = match.groups()
        if not closes and opened is None:
            opened = name, length
        elif closes and opened is not None and opened[0] == name:
            spans.append((opened[1], length))
            opened = None
        else:
            inside = f"inside <{opened[0]}>" if opened else "without an opening tag"
            raise BadRationaleError(f"tag {match[0]} {inside}, at character {match.start()}")
    if opened is not None:
        raise BadRationaleError(f"tag <{opened[0]}> is never closed")
    return "".join([*parts, text[position:]]), spans


def read_cell(cell: Any) -> Any:
    """Return a cell as lists, numbers and strings; None if it is empty."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, str):
        cell = cell.strip()
        if cell.startswith("["):
            try:
                cell = json.loads(cell)
            except (ValueError, RecursionError) as error:
                raise BadRationaleError(f"it starts like a list but is not JSON: {error}") from None
    if isinstance(cell, float) and np.isnan(cell):
        return None
    cell = _plain(cell)
    return None if cell == "" or _is_empty(cell) else cell


def find_form(cells: Iterable[Any]) -> Form | None:
    """Return the form of a column's cells (from `read_cell`); None if all are empty.

    Lists of pairs of numbers are spans, unless another row shows that they are the flags of
    several annotators.
    """
    found: set[Form] = set()
    for cell in cells:
        if cell is None:
            continue
        leaf, lengths = cell, []
        while isinstance(leaf, list) and leaf:
            lengths.append({len(entry) if isinstance(entry, list) else -1 for entry in leaf})
            leaf = next((entry for entry in leaf if entry != []), None)
        if isinstance(leaf, str):
            return "flags" if not lengths and _is_flags(leaf) else "snippets"
        if len(lengths) == 1 and any(type(n) is int and n > 1 for n in cell):
            return "offsets"
        pairs = len(lengths) == 3 or (len(lengths) == 2 and lengths[0] <= {0, 2})
        found.add("spans" if pairs else "flags")
        if found == {"flags"}:
            break
    return "flags" if "flags" in found else next(iter(found), None)


def mark_words(
    cell: Any,
    form: Form,
    text: str,
    words: Words,
    how: Annotators,
    occurrences: Occurrences = "all",
    on_missing: Callable[[str], None] = lambda snippet: None,
) -> NDArray[np.float32] | None:
    """Return the rationale weight of each word, (T,) in [0, 1]; None if no word is marked.

    Args:
        cell: as `read_cell` returned it, not None.
        form: of the cell.
        text: the characters that spans refer to.
        words: of the text.
        how: several annotators become one.
        occurrences: of snippets, mark every place or the first.
        on_missing: called with each snippet that is not in the text.
    """

    def mark(entry: Any) -> NDArray[np.float64]:
        if form == "flags":
            return _mark_flags(entry, text, words)
        if form == "snippets":
            spans = _find_snippets(entry, text, occurrences, on_missing)
        else:
            spans = _check_spans(_runs(entry) if form == "offsets" else entry, text)
        return _mark_spans(spans, words)

    marks = [mark(entry) for entry in _annotators(cell, form)]
    combined = np.max(marks, axis=0) if how == "any" else np.mean(marks, axis=0)
    if not combined.any():
        return None
    result: NDArray[np.float32] = combined.astype(np.float32)
    return result


def _annotators(cell: Any, form: Form) -> list[Any]:
    """Return one entry per annotator."""
    depth = 0
    inner = cell
    while isinstance(inner, list):
        depth += 1
        inner = next((entry for entry in inner if entry != []), None)
    alone = {"spans": 2, "tags": 2, "snippets": 1, "flags": 1, "offsets": 1}[form]
    if depth == 0:  # one snippet, or flags as text
        return [[cell] if form == "snippets" else cell]
    return list(cell) if depth > alone else [cell]


def _mark_spans(spans: Sequence[Span], words: Words) -> NDArray[np.float64]:
    marks = np.zeros(len(words.words))
    for start, end in spans:  # words that share a character with the span
        marks[bisect_right(words.ends, start) : bisect_left(words.starts, end)] = 1.0
    return marks


def _runs(places: Any) -> list[list[int]]:
    """Return places of characters as spans of consecutive ones."""
    if not isinstance(places, list) or not all(type(place) is int for place in places):
        raise BadRationaleError(f"expected places of characters, got {str(places)[:60]!r}")
    spans: list[list[int]] = []
    for place in sorted(set(places)):
        if spans and spans[-1][1] == place:
            spans[-1][1] = place + 1
        else:
            spans.append([place, place + 1])
    return spans


def _check_spans(entry: Any, text: str) -> list[Span]:
    spans = []
    for span in entry if isinstance(entry, list) else [entry]:
        whole = isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)
        if not whole:
            raise BadRationaleError(f"expected spans [start, end] of whole numbers, got {span!r}")
        start, end = span
        if not 0 <= start < end <= len(text):
            raise BadRationaleError(
                f"span [{start}, {end}] does not fit a text of {len(text)} characters"
            )
        spans.append((start, end))
    return spans


def _find_snippets(
    entry: Any, text: str, occurrences: Occurrences, on_missing: Callable[[str], None]
) -> list[Span]:
    """Return the places of each snippet: exact ones, or else by its words alone."""
    spans: list[Span] = []
    snippets = [entry] if isinstance(entry, str) else entry
    if all(isinstance(snippet, str) for snippet in snippets):
        snippets = list(dict.fromkeys(snippets))
    if len(text) * sum(len(str(snippet)) for snippet in snippets) > MAX_SEARCH:
        raise BadRationaleError(
            f"{len(snippets):,} snippets are too many or too long for a text of {len(text):,} "
            "characters; use spans"
        )
    for snippet in snippets:
        if not isinstance(snippet, str):
            raise BadRationaleError(f"expected snippets of the text, got {snippet!r}")
        found: list[Span] = []
        for part in ELLIPSIS.split(snippet):
            found += _places(part, text, occurrences)
        if not found and snippet.strip():
            on_missing(snippet)
        spans += found
    return spans


def _places(part: str, text: str, occurrences: Occurrences) -> list[Span]:
    """Return where a part of a snippet is in the text."""
    if not part.split():
        return []
    exact = r"\s+".join(map(re.escape, part.split()))
    words = r"[\W_]+".join(map(re.escape, WORDS.findall(part)))
    for pattern in (exact, rf"\b{words}\b" if words else ""):
        matches = re.finditer(pattern, text, re.IGNORECASE) if pattern else iter(())
        if found := [match.span() for match in matches]:
            return found[:1] if occurrences == "first" else found
    return []


def _mark_flags(entry: Any, text: str, words: Words) -> NDArray[np.float64]:
    """Give each word the flag of the piece between spaces that it lies in."""
    flags = entry.replace(",", " ").split() if isinstance(entry, str) else entry
    try:
        values = np.array(flags, dtype=np.float64)
    except (ValueError, TypeError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise BadRationaleError(f"expected flags, numbers from 0 to 1, got {str(entry)[:60]!r}")
    if len(values) == len(words.words):
        return values
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if len(values) != len(ends):
        raise BadRationaleError(
            f"{len(values)} flags for a text of {len(ends)} words separated by spaces"
        )
    return values[[bisect_left(ends, end) for end in words.ends]]


def _plain(value: Any) -> Any:
    """Return nested arrays as lists, and {"start", "end"} as [start, end]."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict) and {"start", "end"} <= set(value):
        return [value["start"], value["end"]]
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _is_empty(value: Any) -> bool:
    """Tell whether there is nothing in a list, and in the lists that it holds."""
    return value is None or (isinstance(value, list) and all(map(_is_empty, value)))


def _is_flags(text: str) -> bool:
    return re.fullmatch(r"[01](?:\.\d*)?(?:[\s,]+[01](?:\.\d*)?)*", text) is not None
