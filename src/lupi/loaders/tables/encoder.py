"""From the columns of a table to vectors: fitted on training rows, kept as plain JSON.

Every column becomes some raw values (a number: itself; a category: one-hot with "other"; a date:
days, and the time of year, week and day as sine and cosine), each then (raw - shift) * factor. A
missing value is 0 after that, which is the mean of numbers; an indicator tells that it is missing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lupi.errors import LupiError
from lupi.settings import format_value

if TYPE_CHECKING:
    import pandas as pd

ColumnKind = Literal["number", "category", "date"]

MAX_CATEGORIES = 32
"""Number of categories with their own column; the others share one."""
MAX_PRIVILEGED = 4096
"""As many have one in x*, such as annotators: the first layer of a method is then an embedding."""
MIN_ROWS = 2
"""Categories in fewer rows than this count as other."""
LARGEST = 10.0
"""Numbers are clipped at this many standard deviations."""
TOO_LARGE = 1e150
"""Numbers from here on count as missing, as infinity does: their squares are infinite."""
CYCLES = (365.2425, 7.0, 1.0)
"""Days in a year, a week, a day."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Column:
    """The encoding of one column as `width` numbers."""

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    indicator: bool = False
    """Whether the last number indicates missing values."""
    shift: tuple[float, ...] = ()
    factor: tuple[float, ...] = ()
    """0 for constants and for categories without training rows."""

    @property
    def width(self) -> int:
        """Number of encoded values."""
        raw = {"number": 1, "category": len(self.categories) + 1, "date": 1 + 2 * len(CYCLES)}
        return raw[self.kind] + self.indicator

    def raw(self, values: "pd.Series[Any]") -> Floats:
        """Return (N, width) before shift and factor; NaN where the value is missing."""
        if self.kind == "number":
            raw = _numbers(values, self.name)[:, None]
        elif self.kind == "date":
            raw = _date_parts(days(values))
        else:
            raw = _one_hot(values, self.categories)
        if self.indicator:
            raw = np.column_stack([raw, np.isnan(raw[:, 0])])
        return raw

    def fit(self, values: "pd.Series[Any]") -> "Column":
        """Return the same with the shift and factor of training rows."""
        raw = self.raw(values)
        mean, std = _moments(raw)
        is_flag = np.full(self.width, self.kind == "category")
        is_flag[-1] |= self.indicator
        shift = np.where(is_flag, 0.0, mean)
        tells = np.where(is_flag, mean > 0, _varies(mean, std))
        factor = np.where(tells, 1 / np.where(is_flag | ~tells, 1.0, std), 0.0)
        return replace(self, shift=tuple(shift.tolist()), factor=tuple(factor.tolist()))

    def transform(self, values: "pd.Series[Any]") -> Floats:
        """Return (N, width)."""
        scaled: Floats = (self.raw(values) - np.array(self.shift)) * np.array(self.factor)
        return np.nan_to_num(scaled).clip(-LARGEST, LARGEST)


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """Maps rows of a table to vectors (N, width).

    `lay_out` determines the encoding of each column, and `fit` its means and scales, both from the
    training rows of a run. So the length of the vectors may differ between runs.
    """

    columns: tuple[Column, ...]

    @classmethod
    def lay_out(
        cls,
        frame: "pd.DataFrame",
        categorical: Sequence[str] = (),
        indicators: bool = True,
        kinds: Mapping[str, ColumnKind] | None = None,
        max_categories: int = MAX_CATEGORIES,
    ) -> "TableEncoder":
        """Decide the categories and the indicator of each column, and its kind.

        Args:
            frame: training rows.
            categorical: columns that are categories although they hold numbers.
            indicators: whether to tell which values are missing.
            kinds: of the columns; by default found out from these rows.
            max_categories: of a column; the rarer ones share a place.
        """
        known = column_kinds(frame, categorical) if kinds is None else kinds
        return cls(
            tuple(
                _lay_out(str(name), frame[name], known[str(name)], indicators, max_categories)
                for name in frame.columns
            )
        )

    @property
    def width(self) -> int:
        """The length of the vectors."""
        return sum(column.width for column in self.columns)

    def fit(self, frame: "pd.DataFrame") -> "TableEncoder":
        """Return an encoder with the means and scales of these rows."""
        numbers = self._numbers(frame)
        mean, std = _moments(_matrix(frame, numbers))
        factor = np.where(_varies(mean, std), 1 / np.where(std > 0, std, 1.0), 0.0)
        scales = dict(zip(numbers, zip(mean.tolist(), factor.tolist(), strict=True), strict=True))

        def fitted(column: Column) -> Column:
            if column.name not in scales:
                return column.fit(frame[column.name])
            shift, factor = scales[column.name]
            return replace(column, shift=(shift,), factor=(factor,))

        return TableEncoder(tuple(map(fitted, self.columns)))

    def _numbers(self, frame: "pd.DataFrame") -> list[str]:
        """Return columns that become one number each, which are fast to encode together."""
        types = dict(zip(frame.columns, frame.dtypes, strict=True))
        return [
            column.name
            for column in self.columns
            if column.kind == "number" and not column.indicator
            if getattr(types.get(column.name), "kind", "O") in "iuf"
        ]

    def transform(self, frame: "pd.DataFrame") -> NDArray[np.float32]:
        """Return the vectors of rows (N, width), of these or of another table."""
        for column in self.columns:
            if column.name not in frame.columns:
                known = ", ".join(str(name) for name in frame.columns)
                raise LupiError(f"the table has no column {column.name!r}; it has {known}")
        numbers = self._numbers(frame)
        own = {column.name: column for column in self.columns}
        shift, factor = (
            [getattr(own[n], what)[0] for n in numbers] for what in ("shift", "factor")
        )
        scaled = (_matrix(frame, numbers) - np.array(shift)) * np.array(factor)
        together = np.nan_to_num(scaled).clip(-LARGEST, LARGEST)
        place = {name: i for i, name in enumerate(numbers)}
        parts = [
            together[:, [place[column.name]]]
            if column.name in place
            else column.transform(frame[column.name])
            for column in self.columns
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        """Return plain values from which `from_json` makes the same encoder."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "TableEncoder":
        """Make an encoder of what `to_json` returned."""
        return cls(
            tuple(
                Column(
                    column["name"],
                    column["kind"],
                    tuple(column["categories"]),
                    column["indicator"],
                    tuple(column["shift"]),
                    tuple(column["factor"]),
                )
                for column in document["columns"]
            )
        )


def is_number(values: "pd.Series[Any]") -> bool:
    """Whether a column is numeric; booleans are categories."""
    return values.dtype.kind in "iuf"


def texts(values: "pd.Series[Any]") -> list[str | None]:
    """Return categories as text, None where missing; 1 and 1.0 are the same."""
    missing = values.isna().to_numpy()
    return [None if gone else _text(v) for v, gone in zip(values.tolist(), missing, strict=True)]


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def column_kinds(frame: "pd.DataFrame", categorical: Sequence[str] = ()) -> dict[str, ColumnKind]:
    """Return the kind of each column, determined from all rows of a file."""
    return {str(name): _kind(frame[name], name in categorical) for name in frame.columns}


def _kind(values: "pd.Series[Any]", as_category: bool) -> ColumnKind:
    if as_category:
        return "category"
    if is_number(values):
        return "number"
    return "date" if is_date(values) else "category"


def _lay_out(
    name: str, values: "pd.Series[Any]", kind: ColumnKind, indicators: bool, max_categories: int
) -> Column:
    if kind == "number":
        finite = np.isfinite(_numbers(values, name))
        return Column(name, kind, indicator=indicators and not finite.all())
    indicator = indicators and bool(values.isna().any())
    if kind == "date":
        return Column(name, kind, indicator=indicator)
    given = [text for text in texts(values) if text is not None]
    found, counts = np.unique(np.array(given, dtype=object).astype(str), return_counts=True)
    frequent = sorted(zip(-counts, found, strict=True))[:max_categories]
    kept = sorted(str(text) for count, text in frequent if -count >= MIN_ROWS)
    return Column(name, kind, tuple(kept), indicator)


def _matrix(frame: "pd.DataFrame", names: list[str]) -> Floats:
    """Return columns of numbers (N, C), each of them in one piece; NaN where not finite."""
    numbers = frame[names].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asfortranarray(np.where(np.isfinite(numbers), numbers, np.nan))


def _moments(raw: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column (N, C), without NaN."""
    raw = np.ascontiguousarray(raw.T)  # sums of a column do not depend on other columns
    known = ~np.isnan(raw)
    n_known = np.maximum(known.sum(1), 1)
    mean = np.where(known, raw, 0.0).sum(1) / n_known
    std = np.sqrt(np.where(known, (raw - mean[:, None]) ** 2, 0.0).sum(1) / n_known)
    return mean, std


def _varies(mean: Floats, std: Floats) -> NDArray[np.bool_]:
    return np.asarray(std > 1e-9 * np.maximum(np.abs(mean), 1e-9))


def _numbers(values: "pd.Series[Any]", name: str) -> Floats:
    """Return numbers, NaN where there is no finite one."""
    import pandas as pd

    if is_number(values):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.isnan(numbers) & values.notna().to_numpy()
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise LupiError(
            f"column {name!r} is numeric, but has {format_value(values.iloc[row])} in row {row + 1}"
            "; correct it, or leave the cell empty"
        )
    return np.where(np.abs(numbers) < TOO_LARGE, numbers, np.nan)


def is_date(values: "pd.Series[Any]") -> bool:
    """Whether it holds dates, or text that begins with a year and a month and is all ISO dates."""
    if values.dtype.kind == "M":
        return True
    given = values.dropna()
    if not len(given) or not re.match(r"\d{4}-\d{2}", str(given.iloc[0])):
        return False
    return not np.isnan(days(given)).any()


def days(values: "pd.Series[Any]") -> Floats:
    """Return days since 1970, NaN where there is no date."""
    import pandas as pd

    dates = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601")
    stamps = dates.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
    days = stamps.astype(np.int64) / 86_400e6
    return np.where(np.isnat(stamps), np.nan, days)


def _date_parts(days: Floats) -> Floats:
    """Return (N, 7): days, and sine and cosine of each cycle."""
    angles = [2 * np.pi * days / cycle for cycle in CYCLES]
    parts = [part(a) for a in angles for part in (np.sin, np.cos)]
    # Of whole days the time of day is a rounding error, which must not be scaled up to a feature.
    return np.column_stack([days, *(np.round(part, 9) for part in parts)])


def _one_hot(values: "pd.Series[Any]", categories: Sequence[str]) -> Floats:
    """Return (N, K + 1), the last place for other categories; NaN where missing."""
    place = {category: i for i, category in enumerate(categories)}
    found = texts(values)
    raw = np.zeros((len(found), len(categories) + 1))
    raw[np.arange(len(found)), [place.get(text or "", len(categories)) for text in found]] = 1
    raw[[text is None for text in found]] = np.nan
    return raw
