"""A table as data for a task: what each column is for, and which rows are for what."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from lupi.core import derive_seed
from lupi.data.content import fingerprint_of
from lupi.data.tables.encoder import is_number, texts
from lupi.data.tables.reading import read_table
from lupi.errors import LupiError
from lupi.settings import Settings, unknown_name

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["classification", "regression"]
Metrics = Literal["accuracy", "balanced_accuracy", "auc", "loss", "r2", "rmse", "nll"]
PARTS = ("train", "val", "test")


class TableSettings(Settings):
    """Which table, what its columns are for, and how its rows are divided."""

    path: Path
    """CSV, or Parquet (.parquet)."""
    target: str
    """The column to predict."""
    privileged: tuple[str, ...] = Field(min_length=1)
    """The columns that are x*: known in training only."""
    features: tuple[str, ...] | None = Field(None, min_length=1)
    """The columns that are x; by default all others."""
    ignore: tuple[str, ...] = ()
    """Columns that are nothing: names, numbers of rows."""
    categorical: tuple[str, ...] = ()
    """Columns that are categories although they hold numbers."""
    kind: Literal["auto"] | Kind = "auto"
    """auto: classification of text, truth values or two values, regression of other numbers."""
    metric: Metrics | None = None
    """What the comparison is judged by; by default accuracy or r2. All are recorded."""
    val: Path | None = None
    """A table with validation rows; by default they are held out of `path`."""
    test: Path | None = None
    """A table with test rows; by default they are held out of `path`."""
    val_frac: float = Field(0.2, gt=0, lt=1)
    """The fraction of rows held out for validation."""
    test_frac: float = Field(0.3, gt=0, lt=1)
    """The fraction of rows held out for test."""
    data_seed: int = Field(0, ge=0)
    """Which rows are held out; the seed of a run chooses among the others."""
    separator: str | None = Field(None, min_length=1, max_length=1)
    """Of a CSV's columns; by default found out from its first lines."""
    header: bool = True
    """Whether a CSV's first line names the columns; otherwise they are named 0, 1, …."""
    decimal: str = Field(".", min_length=1, max_length=1)
    """The decimal sign of a CSV."""
    content: str | None = None
    """Fingerprint of the files, filled in by lupi: a changed table is another run."""

    @field_validator("target", "privileged", "features", "ignore", "categorical", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """Take numbers as names, and one name for a list of one."""
        if isinstance(value, list | tuple):
            return tuple(str(name) for name in value)
        return str(value) if isinstance(value, int) else value

    @field_validator("test_frac")
    @classmethod
    def _leaves_rows(cls, value: float, info: Any) -> float:
        if value + info.data.get("val_frac", 0) >= 1:
            raise ValueError("val_frac and test_frac together must leave rows for training")
        return value

    @property
    def files(self) -> tuple[Path, ...]:
        """All files the table is read from."""
        return tuple(path for path in (self.path, self.val, self.test) if path is not None)

    def resolved(self) -> dict[str, Any]:
        """Return every setting, with the fingerprint of the files as they are now."""
        return {**super().resolved(), "content": fingerprint_of(self.files)}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their targets, in three parts."""

    frames: "tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]"
    """Rows to choose training rows from, validation and test rows; all columns."""
    targets: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    """Classes (N,) as integers, or numbers (N,)."""
    kind: Kind
    classes: tuple[str, ...]
    """Empty for regression."""
    features: tuple[str, ...]
    privileged: tuple[str, ...]


def load_table(settings: TableSettings) -> Table:
    """Read a table and divide its rows; refuse what can't be learned from."""
    if settings.content not in (None, fingerprint_of(settings.files)):
        raise LupiError(f"{settings.path} has changed since this run was planned; plan it anew")
    frames = {
        part: read_table(path, settings.separator, settings.header, settings.decimal)
        for part, path in zip(PARTS, (settings.path, settings.val, settings.test), strict=True)
        if path is not None
    }
    features = _features(settings, [str(name) for name in frames["train"].columns])
    kind = _kind(settings, frames["train"][settings.target])
    for part, frame in frames.items():
        path = settings.path if part == "train" else getattr(settings, part)
        for name in (settings.target, *features):
            if name not in frame.columns:
                raise LupiError(f"{path}: {unknown_name('column', name, list(frame.columns))}")
        _check_target(frame[settings.target], kind, path, varies=part == "train")
    classes: tuple[str, ...] = ()
    if kind == "classification":
        classes = tuple(sorted({t for t in texts(frames["train"][settings.target]) if t}))
    targets = {
        part: _targets(frame[settings.target], classes, part) for part, frame in frames.items()
    }
    if len(frames) < len(PARTS):
        _hold_out(frames, targets, classes, settings)
    train, val, test = PARTS
    return Table(
        (frames[train], frames[val], frames[test]),
        (targets[train], targets[val], targets[test]),
        kind,
        classes,
        features,
        settings.privileged,
    )


def _features(settings: TableSettings, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are x, having checked that all named ones exist."""
    named = {
        "target": (settings.target,),
        "privileged": settings.privileged,
        "features": settings.features or (),
        "ignore": settings.ignore,
        "categorical": settings.categorical,
    }
    for role, names in named.items():
        for name in names:
            if name not in columns:
                raise LupiError(f"{role}: {unknown_name('column', name, columns)}")
            if name == settings.target and role != "target":
                raise LupiError(f"{role}: {name!r} is the target; name other columns")
    both = set(settings.ignore) & {*settings.privileged, *(settings.features or ())}
    if both:
        raise LupiError(f"ignore: {min(both)!r} is also named as privileged or as a feature")
    apart = {settings.target, *settings.privileged, *settings.ignore}
    features = settings.features or tuple(name for name in columns if name not in apart)
    if not features:
        raise LupiError("no column is left to predict from: name fewer privileged or ignored ones")
    return features


def _kind(settings: TableSettings, target: "pd.Series[Any]") -> Kind:
    if settings.kind == "regression" and not is_number(target):
        raise LupiError(
            f"kind: regression needs numbers; target {settings.target!r} has {target.iloc[0]!r}"
        )
    if settings.kind != "auto":
        return settings.kind
    is_class = not is_number(target) or target.nunique() == 2
    return "classification" if is_class else "regression"


def _check_target(target: "pd.Series[Any]", kind: Kind, path: Path, varies: bool) -> None:
    bad = target.isna().to_numpy()
    if kind == "regression" and is_number(target):
        bad = ~np.isfinite(target.to_numpy(dtype=np.float64, na_value=np.nan))
    if bad.any():
        first = int(np.flatnonzero(bad)[0]) + 1
        raise LupiError(
            f"{path}: target {target.name!r} is missing or not finite in {bad.sum()} of "
            f"{len(bad)} rows, the first of them row {first}: leave these rows out"
        )
    if varies and target.nunique() < 2:
        raise LupiError(
            f"{path}: target {target.name!r} is {target.iloc[0]!r} in every row; there is nothing "
            "to learn"
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


def _hold_out(
    frames: "dict[str, pd.DataFrame]",
    targets: dict[str, NDArray[Any]],
    classes: Sequence[str],
    settings: TableSettings,
) -> None:
    """Take validation and test rows that no file gives out of train, class by class."""
    frame, y = frames["train"], targets["train"]
    fracs = {"val": settings.val_frac, "test": settings.test_frac}
    missing = [part for part in ("val", "test") if part not in frames]
    rng = np.random.default_rng(derive_seed(settings.data_seed, "hold out"))
    groups = [np.flatnonzero(y == i) for i in range(len(classes))] or [np.arange(len(y))]
    rows: dict[str, list[NDArray[np.int64]]] = {part: [] for part in PARTS}
    for i, group in enumerate(groups):
        if len(group) <= len(missing):
            of = f"class {classes[i]!r} of {settings.target!r}" if classes else "the table"
            raise LupiError(
                f"{of} has {len(group)} row(s); {len(missing) + 1} are needed for training, "
                f"{' and '.join(missing)}: join it with another class, or leave its rows out"
            )
        order = rng.permutation(group)
        for part in missing:
            n = max(1, round(fracs[part] * len(group)))
            n = min(n, len(order) - 1)
            rows[part].append(order[:n])
            order = order[n:]
        rows["train"].append(order)
    for part in (*missing, "train"):
        chosen = np.sort(np.concatenate(rows[part]))
        frames[part], targets[part] = frame.iloc[chosen], y[chosen]
