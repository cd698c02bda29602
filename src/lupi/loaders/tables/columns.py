"""A table as data for a task: roles of columns, and the split of rows."""

import datetime
import decimal
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.loaders.content import fingerprint_of
from lupi.loaders.division import Division, Rows
from lupi.loaders.files import list_columns, read_frame
from lupi.loaders.split_columns import official_parts
from lupi.loaders.tables.answers import Answers, answers_of
from lupi.loaders.tables.cells import BadCells, read_numbers
from lupi.loaders.tables.encoder import TOO_LARGE, is_number, texts
from lupi.loaders.tables.parts import LabelledRows, design_of, division_of
from lupi.loaders.tables.settings import Kind, TableSettings
from lupi.loaders.tables.weights import check_class_weights, read_weights
from lupi.records import Design
from lupi.settings import format_value, unknown_name
from lupi.subsets import PARTS, Part

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS, MAX_VALUES = 1_000_000, 50_000_000
"""Rows and values of a file that are read if the settings do not say how many."""
MAX_FEATURES = 20_000
LARGEST = 1e100
"""Maximum size of a number: squares of larger ones can't be summed."""
SINGLE = (str, bool, int, float, datetime.date, decimal.Decimal, np.generic)
"""What a cell may be."""
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their targets, and how each seed splits them."""

    given: Mapping[Part, LabelledRows]
    """Rows by the part given by a file or column. Rows of `train` are split further into the
    missing parts."""
    division: Division
    design: Design
    kind: Kind
    classes: tuple[str, ...]
    """Empty for regression."""
    features: tuple[str, ...]
    privileged: tuple[str, ...]
    bad_cells: tuple[BadCells, ...] = ()
    answers: Answers | None = None
    """How held-out items with several rows are scored."""

    n_dropped: int = 0
    """Number of dropped rows without a target."""
    renamed: tuple[str, ...] = ()
    """New names of columns that had the name of another."""
    n_not_drawn: int = 0
    """Number of rows that were left out because the files have more than `max_rows`."""

    def draw(self, seed: int) -> dict[Part, LabelledRows]:
        """Return the rows of a seed: the pool of training rows, validation and test rows."""
        return self.take(self.division.draw(seed))

    def take(self, rows: Mapping[Part, Rows]) -> dict[Part, LabelledRows]:
        """Return some rows of each part; held-out items count once."""
        pool = self.given["train"]
        parts = {
            part: pool.take(some) if part in ("train", *self.division.drawn) else self.given[part]
            for part, some in rows.items()
        }
        if self.answers is None:
            return parts
        return {
            part: rows if part == "train" else self.answers.scored_once(rows)
            for part, rows in parts.items()
        }


def load_table(settings: TableSettings) -> Table:
    """Read a table and determine the split of its rows; raise an error for unusable tables."""
    if settings.content not in (None, fingerprint_of(settings.files)):
        raise LupiError(f"{settings.path} has changed since this run was planned; plan it again")
    features = _features(settings, list_columns(settings.path, settings.dialect))
    shown_by = () if settings.by is None else (settings.by,)
    used = frozenset({*features, *settings.columns_beside, *shown_by})
    max_rows = settings.max_rows or min(MAX_ROWS, MAX_VALUES // len(used))
    frames = {
        part: read_frame(path, settings.dialect, used, max_rows)
        for part, path in zip(PARTS, (settings.path, settings.val, settings.test), strict=True)
        if path is not None
    }
    renamed = tuple(frames["train"].attrs.get("renamed", ()))
    n_not_drawn = sum(frame.attrs.get("n_not_drawn", 0) for frame in frames.values())
    for part, frame in frames.items():
        path = settings.path if part == "train" else getattr(settings, part)
        privileged = settings.privileged if part == "train" else ()
        named = (settings.target, *features, *settings.dividers.values(), *privileged, *shown_by)
        for name in named:
            if name not in frame.columns:
                raise LupiError(f"{path}: {unknown_name('column', name, list(frame.columns))}")
    _refuse_cells(frames["train"], (settings.target, *features, *settings.privileged), settings)
    if frames["train"][list(settings.privileged)].isna().all(axis=None):
        raise LupiError(
            f"{settings.path}: no row has a value in {', '.join(settings.privileged)}: there is no "
            "x*; name other columns as privileged"
        )
    _refuse_decimal_commas(frames["train"], features, settings)
    frames, bad_cells = _read_numbers(frames, features, settings)
    kind = _kind(settings, frames["train"][settings.target])
    n_before = sum(map(len, frames.values()))
    if settings.missing_target == "drop":
        frames = {
            part: frame[~_is_missing(frame[settings.target], kind)]
            for part, frame in frames.items()
        }
    for part, frame in frames.items():
        path = settings.path if part == "train" else getattr(settings, part)
        _check_target(frame[settings.target], kind, path, varies=part == "train")
    classes: tuple[str, ...] = ()
    if kind == "classification":
        classes = tuple(sorted({t for t in texts(frames["train"][settings.target]) if t}))
    if settings.split is not None:
        official = np.array(official_parts(frames["train"][settings.split]))
        frames = {
            part: frames["train"][official == part] for part in PARTS if (official == part).any()
        }
    check_class_weights(settings, classes)
    given = {
        part: LabelledRows(
            frame,
            _targets(frame[settings.target], classes, part),
            read_weights(frame, part, settings),
        )
        for part, frame in frames.items()
    }
    division = division_of(given, classes, settings)
    return Table(
        given,
        division,
        design_of(given, division, settings),
        kind,
        classes,
        features,
        settings.privileged,
        bad_cells,
        answers_of(given, classes, settings),
        n_before - sum(map(len, frames.values())),
        renamed,
        n_not_drawn,
    )


def _refuse_cells(frame: "pd.DataFrame", names: Sequence[str], settings: TableSettings) -> None:
    """Raise an error for cells that are no single value, and for numbers that are too large."""
    for name in dict.fromkeys(names):
        values = frame[name]
        if is_number(values):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            finite = numbers[np.isfinite(numbers)]
            largest = float(np.abs(finite).max(initial=0.0))
            if largest > LARGEST:
                raise LupiError(
                    f"{settings.path}: column {name!r} has numbers up to {largest:.3g}, at most "
                    f"{LARGEST:g} can be computed with: use another unit, or correct the cells"
                )
        elif values.dtype.kind == "O":
            kinds = values.dropna().map(type).unique()
            bad = next((kind for kind in kinds if not issubclass(kind, SINGLE)), None)
            if bad is not None:
                example = next(value for value in values if isinstance(value, bad))
                raise LupiError(
                    f"{settings.path}: column {name!r} has a {bad.__name__}, "
                    f"{format_value(example)}; expected one number, text, date or boolean per "
                    f"cell: split it into columns, or leave it out (--ignore {name})"
                )
        elif values.dtype.kind == "c":
            raise LupiError(
                f"{settings.path}: column {name!r} has complex numbers: split them into two columns"
            )


def _refuse_decimal_commas(
    frame: "pd.DataFrame", features: Sequence[str], settings: TableSettings
) -> None:
    """Raise an error for numbers with a decimal comma, which would count as categories."""
    if settings.decimal != ".":
        return
    for name in (settings.target, *settings.privileged, *features):
        if name in settings.categorical or is_number(frame[name]):
            continue
        values = frame[name].dropna()
        if not len(values):
            continue
        if values.map(lambda v: isinstance(v, str) and bool(DECIMAL_COMMA.fullmatch(v))).all():
            remedy = "convert it to numbers"
            if settings.reads_csv:
                remedy = "use --set task.decimal=',' (in Python, decimal=',')"
            raise LupiError(
                f"{settings.path}: column {name!r} has decimal commas, as in {values.iloc[0]!r}; "
                f"{remedy}, or, if they are not numbers, use --set task.categorical='[{name}]' "
                f"(in Python, categorical=[{name!r}])"
            )


def _read_numbers(
    frames: "dict[Part, pd.DataFrame]", features: Sequence[str], settings: TableSettings
) -> "tuple[dict[Part, pd.DataFrame], tuple[BadCells, ...]]":
    """Convert columns that are numeric except for a few cells, over all files."""
    read: dict[Part, pd.DataFrame] = {}
    found: list[BadCells] = []
    for part, frame in frames.items():
        columns = [
            name
            for name in dict.fromkeys((*features, *settings.privileged))
            if name in frame.columns and name not in settings.categorical
        ]
        read[part], bad = read_numbers(frame, columns, settings.decimal)
        found += bad
    return read, tuple(found)


def _features(settings: TableSettings, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are x, having checked that all named ones exist."""
    named = {
        "target": (settings.target,),
        "privileged": settings.privileged,
        "features": settings.features or (),
        "ignore": settings.ignore,
        "categorical": settings.categorical,
        **{role: (name,) for role, name in settings.dividers.items()},
        "weights": (settings.weights,) if settings.weights else (),
        "by": (settings.by,) if settings.by else (),
    }
    for role, names in named.items():
        for name in names:
            if name not in columns:
                raise LupiError(f"{role}: {unknown_name('column', name, columns)}")
            if name == settings.target and role not in ("target", "by"):
                raise LupiError(f"{role}: {name!r} is the target; name other columns")
    both = set(settings.ignore) & {*settings.privileged, *(settings.features or ())}
    if both:
        raise LupiError(f"ignore: {min(both)!r} is also privileged or a feature")
    if settings.weights in (settings.features or ()):
        raise LupiError(f"weights: {settings.weights!r} is also named as a feature; choose one")
    apart = {*settings.columns_beside, *settings.ignore}
    features = settings.features or tuple(name for name in columns if name not in apart)
    if not features:
        raise LupiError("no feature is left: use fewer privileged or ignored columns")
    if len(features) > MAX_FEATURES:
        raise LupiError(
            f"{settings.path} has {len(features):,} columns as x; at most {MAX_FEATURES:,} can be "
            "compared: name the ones to use (task.features), or reduce them first, for example "
            "to a few hundred principal components"
        )
    return features


def _kind(settings: TableSettings, target: "pd.Series[Any]") -> Kind:
    if settings.kind == "regression" and not is_number(target):
        raise LupiError(
            f"kind: regression needs numbers; target {settings.target!r} has "
            f"{format_value(target.iloc[0])}"
        )
    if settings.kind != "auto":
        return settings.kind
    is_class = not is_number(target) or target.nunique() == 2
    return "classification" if is_class else "regression"


def _is_missing(target: "pd.Series[Any]", kind: Kind) -> NDArray[np.bool_]:
    if kind == "regression" and is_number(target):
        numbers = target.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(~(np.abs(numbers) < TOO_LARGE))
    return target.isna().to_numpy(dtype=np.bool_)


def _check_target(target: "pd.Series[Any]", kind: Kind, path: Path, varies: bool) -> None:
    if not len(target):
        raise LupiError(f"{path}: target {target.name!r} is missing in every row")
    bad = _is_missing(target, kind)
    if bad.any():
        first = int(np.flatnonzero(bad)[0]) + 1
        raise LupiError(
            f"{path}: target {target.name!r} is missing or not finite in {bad.sum()} of "
            f"{len(bad)} rows, the first of them row {first}: drop these rows, or let lupi do "
            "it (task.missing_target=drop)"
        )
    if varies and target.nunique() < 2:
        raise LupiError(
            f"{path}: target {target.name!r} is {format_value(target.iloc[0])} in every row; there "
            "is nothing to learn"
        )


def _targets(target: "pd.Series[Any]", classes: Sequence[str], part: str) -> NDArray[Any]:
    """Return classes as integers, or numbers."""
    if not classes:
        return target.to_numpy(dtype=np.float64)
    place = {name: i for i, name in enumerate(classes)}
    found = [text or "" for text in texts(target)]
    unknown = [text for text in found if text not in place]
    if unknown:
        raise LupiError(f"{part}: class {unknown[0]!r} of {target.name!r} is not in the train rows")
    return np.array([place[text] for text in found], dtype=np.int64)
