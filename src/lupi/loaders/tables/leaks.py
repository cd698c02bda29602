"""Find leaks in a table before training."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.near_copies import near_copy_warnings, near_rows
from lupi.loaders.tables.columns import Table
from lupi.loaders.tables.encoder import TableEncoder, is_number, texts
from lupi.loaders.tables.screening import Bins, bins_of, explained
from lupi.loaders.tables.settings import Kind
from lupi.subsets import PARTS

if TYPE_CHECKING:
    import pandas as pd

GIVEN_AWAY = 0.95
"""Cross-validated R2 or balanced accuracy above which a column restates the target."""
PLAUSIBLE = 0.5
"""Share of the target's variance below which a column need not be looked at more closely."""
BY_GAPS = {"classification": 0.8, "regression": 0.4}
"""Balanced accuracy or R2 above which it matters that missing values predict the target."""
TOO_GOOD = 0.98
"""Cross-validated score of all of x above which the task is suspiciously easy."""
MIN_SHARE = 0.1
"""Share of a privileged column that a feature of the same content explains, even in few bins."""
NEARLY = 0.95
"""Share of a privileged column's variance that x explains before it counts as known."""
N_ROWS = 2000
"""Maximum number of rows used to compare columns."""
MAX_COLUMNS = 300
"""Maximum number of columns for what takes long: those that relate most to the target."""
MIN_GAPS = 10
"""Minimum number of rows with and without a value for a relation of gaps."""
MIN_ROWS = 50
"""With fewer rows with x*, near copies of a privileged column may be due to chance."""
N_TOGETHER = 30
"""Features that may predict the target, or a privileged column, together: the most related ones."""
N_FOLDS = 5
MANY = 0.01
"""Share of rows that repeat others from which on it matters."""
CHANCE = 0.1
"""Share of equal rows that may be due to chance before they count as copies."""


def find_leaks(table: Table) -> Iterator[str]:
    """Yield a warning for each possible leak.

    These are columns that alone, or by their gaps, predict the target, an x that predicts it almost
    without error, privileged columns that are features or that x determines, duplicate rows, and
    features that look like row numbers.
    """
    pool, y, _ = table.given["train"]
    rows = np.random.default_rng(0).permutation(len(pool))[:N_ROWS]
    some, y = pool.iloc[rows], y[rows]
    target = _indicators(y) if table.kind == "classification" else y[:, None].astype(np.float64)
    found, bins = False, bins_of(some[list(table.features)])
    related = _related(bins, table.features, target)
    for name in _related(bins_of(some[list(table.privileged)]), table.privileged, target):
        if score := _given_away(some[name], y, table.kind):
            yield (
                f"privileged column {name!r} alone predicts the target ({score}): an x* that "
                "restates the target can't teach more than the target"
            )
    for name in related:
        if score := _given_away(some[name], y, table.kind):
            found = True
            yield (
                f"feature {name!r} alone predicts the target ({score}): if it is not known before "
                "the target, ignore it"
            )
    for name, score in _gaps(some, (*table.features, *table.privileged), target, table.kind):
        found |= name in table.features
        yield (
            f"whether column {name!r} is filled predicts the target ({score}): it may be filled in "
            "only after the target is known; if so, ignore it"
        )
    names = _related(bins, table.features, target, least=0.0)[:N_TOGETHER]
    few = slice(N_ROWS // 2)
    if (
        not found
        and names
        and (score := _predicts(some[names][few], y[few], table.kind, TOO_GOOD, forest=True))
    ):
        yield (
            f"x alone predicts the target almost without error ({score}): is a feature known only "
            "after the target? If not, x* has nothing to add"
        )
    for name in table.privileged:
        yield from _copied(name, some, table.features, bins)
    yield from _copies(table)
    yield from _near_copies(table)
    for name in table.features:
        if _numbers_the_rows(pool[name]):
            yield (
                f"feature {name!r} looks like a row number; if it is not a measurement, ignore it"
            )


def _indicators(y: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(y[:, None] == np.unique(y), dtype=np.float64)


def _related(
    bins: Bins, names: Sequence[str], target: NDArray[np.float64], least: float = PLAUSIBLE
) -> list[str]:
    """Return the columns that may predict the target, the most related ones first."""
    share = explained(bins, target)
    order = np.argsort(-share, kind="stable")[:MAX_COLUMNS]
    return [names[i] for i in order if share[i] >= least]


def _gaps(
    frame: "pd.DataFrame", names: Sequence[str], target: NDArray[np.float64], kind: Kind
) -> Iterator[tuple[str, str]]:
    """Yield columns whose missing values predict the target, and how well."""
    missing = frame[list(dict.fromkeys(names))].isna().to_numpy(dtype=np.float64)  # (N, C)
    n_gone = missing.sum(0)
    enough = np.flatnonzero((n_gone >= MIN_GAPS) & (n_gone <= len(missing) - MIN_GAPS))
    for i in enough:
        gone = missing[:, i]
        if kind == "classification":  # the best two-way guess: recall, averaged over classes
            share = (gone[:, None] * target).sum(0) / target.sum(0)
            chance = 1 / target.shape[1]
            score = chance * (1 + share.max() - share.min()) if len(share) > 1 else chance
            said = f"balanced accuracy {score:.2f}"
            high = score >= chance + (BY_GAPS[kind] - 0.5) * 2 * chance
        else:
            score = float(np.corrcoef(gone, target[:, 0])[0, 1] ** 2)
            said, high = f"R2 {score:.2f}", score >= BY_GAPS[kind]
        if high:
            yield list(dict.fromkeys(names))[i], said


def _given_away(column: "pd.Series[Any]", y: NDArray[Any], kind: Kind) -> str:
    """Return how well a column alone predicts the target, in words; nothing if not that well."""
    there = column.notna().to_numpy()
    return _predicts(column[there].to_frame(), y[there], kind, GIVEN_AWAY)


def _predicts(
    frame: "pd.DataFrame", y: NDArray[Any], kind: Kind, least: float, forest: bool = False
) -> str:
    """Return a cross-validated score of quick models, in words; nothing if it is below `least`."""
    from sklearn import config_context
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    is_class = kind == "classification"
    fewest = np.unique(y, return_counts=True)[1].min(initial=len(y)) if is_class else len(y) // 2
    n_folds = min(N_FOLDS, int(fewest))
    if n_folds < 2:
        return ""
    x = TableEncoder.lay_out(frame).fit(frame).transform(frame)
    # A tree follows any curve but needs rows for it; a line follows one kind with few rows.
    models: list[Any] = [DecisionTreeRegressor(random_state=0), LinearRegression()]
    if is_class:
        models = [DecisionTreeClassifier(random_state=0)]
    if forest:
        models.append(
            (ExtraTreesClassifier if is_class else ExtraTreesRegressor)(20, random_state=0)
        )
    scoring = "balanced_accuracy" if is_class else "r2"
    with config_context(assume_finite=True, skip_parameter_validation=True):
        score = max(
            float(np.mean(cross_val_score(model, x, y, cv=n_folds, scoring=scoring)))
            for model in models
        )
    return f"cross-validated {scoring} {score:.3f}" if score >= least else ""


def _copied(
    name: str, pool: "pd.DataFrame", features: tuple[str, ...], bins: Bins
) -> Iterator[str]:
    """Yield a warning if a privileged column is a feature, its copy, or determined by x."""
    if name in features:
        yield f"column {name!r} is both privileged and a feature: the student sees it at test time"
        return
    known = pool[name].notna().to_numpy()
    there = pool[known]
    values = there[name]
    if values.nunique() < 2:
        return
    numbers = is_number(values) and values.nunique() > 2
    target = _indicators(np.array(texts(values), dtype=object).astype(str))
    if numbers:  # ranks, so that a unit or a curve does not matter
        target = np.asarray(values.rank(), dtype=np.float64)[:, None]
    elif target.shape[1] > MAX_COLUMNS:
        return
    share = explained(bins[known], target, pooled=True)
    order = np.argsort(-share, kind="stable")
    for i in order[:MAX_COLUMNS]:
        if share[i] >= MIN_SHARE and _same(pool[name], pool[features[i]]):
            yield (
                f"privileged column {name!r} is equivalent to feature {features[i]!r}: "
                "the student sees it at test time"
            )
            return
    if len(there) < MIN_ROWS:
        return
    if share[order[0]] >= NEARLY:
        yield (
            f"privileged column {name!r} is nearly a copy of feature {features[order[0]]!r}, which "
            f"explains {share[order[0]]:.0%} of it: x* adds little that the student does not see"
        )
        return
    y = target[:, 0] if numbers else target.argmax(1)
    kind: Kind = "regression" if numbers else "classification"
    names = [features[i] for i in order[:N_TOGETHER] if share[i] > 0]
    if names and (score := _predicts(there[names], y, kind, TOO_GOOD)):
        yield (
            f"privileged column {name!r} follows from the features together ({score}): x* adds "
            "little that the student does not see"
        )


def _same(one: "pd.Series[Any]", other: "pd.Series[Any]") -> bool:
    """Whether each value of one column always stands beside the same value of the other.

    Where nearly every value is another one this would be so by chance: then the order counts.
    """
    both = (one.notna() & other.notna()).to_numpy()
    a, b = one[both], other[both]
    if len(a) < 2 or a.nunique() < 2 or a.nunique() != b.nunique():
        return False
    if is_number(a) and is_number(b) and a.nunique() > len(a) // 2:
        ranks = a.rank().to_numpy(), b.rank().to_numpy()
        return bool(np.array_equal(*ranks) or np.array_equal(ranks[0], len(a) + 1 - ranks[1]))
    if a.nunique() > len(a) // 2:
        return bool((a.astype(str).to_numpy() == b.astype(str).to_numpy()).all())
    pairs = a.astype(str) + "\0" + b.astype(str)
    return bool(pairs.nunique() == a.nunique())


def _copies(table: Table) -> Iterator[str]:
    """Look for rows that are equal in every column, and more often so than chance would have it.

    Chance that makes rows equal makes more of them equal in all columns but one; copies have no
    such near relations.
    """
    train = table.given["train"].frame
    names = [str(name) for name in train.columns][:MAX_COLUMNS]
    for part, rows in table.given.items():
        columns = [name for name in names if name in rows.frame.columns]
        own, others = _Keys(rows.frame[columns]), _Keys(train[columns])
        count = _n_repeated if part == "train" else _n_shared
        found = count(own.all, others.all)
        if found < MANY * len(rows.y):
            continue
        by_chance = count(_Keys(_shuffled(rows.frame[columns])).all, others.all)
        near = [count(own.without(i), others.without(i)) - found for i in range(len(columns))]
        if by_chance <= CHANCE * found and sum(near) <= found:
            what = "rows are exact copies of other rows"
            if part != "train":
                what = f"{part} rows are also training rows"
            yield f"{found:,} of {len(rows.y):,} {what}: scores may be too high; remove the copies"


def _near_copies(table: Table) -> Iterator[str]:
    import pandas as pd

    names = list(table.features)
    names = [names[i] for i in np.random.default_rng(0).permutation(len(names))[:MAX_COLUMNS]]
    parts = [table.given[part].frame[names] for part in PARTS if part in table.given]
    frame = pd.concat(parts, ignore_index=True)
    x = TableEncoder.lay_out(frame).fit(frame).transform(frame)
    yield from near_copy_warnings(near_rows(x), table.division, "rows")


class _Keys:
    """A number for each row that is the same for rows of equal values."""

    def __init__(self, frame: "pd.DataFrame") -> None:
        import pandas as pd

        self._terms = [
            np.asarray(pd.util.hash_pandas_object(frame[name].astype(str), index=False)).astype(
                np.uint64
            )
            * np.uint64(2 * i + 1)  # so that a value is another in another column
            for i, name in enumerate(frame.columns)
        ]
        self.all = np.asarray(np.sum(self._terms, axis=0, dtype=np.uint64))

    def without(self, i: int) -> NDArray[np.uint64]:
        """Return the numbers of rows whose column `i` does not count."""
        return np.asarray(self.all - self._terms[i])


def _n_repeated(keys: NDArray[np.uint64], _: NDArray[np.uint64]) -> int:
    return len(keys) - len(np.unique(keys))


def _n_shared(keys: NDArray[np.uint64], others: NDArray[np.uint64]) -> int:
    return int(np.isin(keys, others).sum())


def _shuffled(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Shuffle each column on its own: rows are then equal by chance only."""
    import pandas as pd

    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {name: values.to_numpy()[rng.permutation(len(values))] for name, values in frame.items()}
    )


def _numbers_the_rows(values: "pd.Series[Any]") -> bool:
    """Whether whole numbers differ from row to row and only grow or only shrink."""
    if values.dtype.kind not in "iu" or values.nunique() < len(values):
        return False
    steps = np.diff(values.to_numpy())
    return bool((steps > 0).all() or (steps < 0).all())
