"""Find leaks in a table before training."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.loaders.tables.columns import Table
from lupi.loaders.tables.encoder import TableEncoder, is_number
from lupi.loaders.tables.settings import Kind

if TYPE_CHECKING:
    import pandas as pd

GIVEN_AWAY = 0.95
"""Cross-validated R2 or balanced accuracy above which a column restates the target."""
N_ROWS = 2000
"""Maximum number of rows used to compare columns."""
MAX_FEATURES = 300
"""Maximum number of features compared with the target."""
N_FOLDS = 5
MANY = 0.01
"""Share of rows that repeat others from which on it matters."""
CHANCE = 0.1
"""Share of equal rows that may be due to chance before they count as copies."""


def find_leaks(table: Table) -> Iterator[str]:
    """Yield a warning for each possible leak.

    These are columns that alone predict the target, privileged columns that are also features or
    copies of features, duplicate rows, and features that look like row numbers.
    """
    pool, y, _ = table.given["train"]
    some = np.random.default_rng(0).permutation(len(pool))[:N_ROWS]
    for name in table.privileged:
        if score := _given_away(pool[name].iloc[some], y[some], table.kind):
            yield (
                f"privileged column {name!r} alone predicts the target ({score}): an x* that "
                "restates the target can't teach more than the target"
            )
    for name in table.features[:MAX_FEATURES]:
        if score := _given_away(pool[name].iloc[some], y[some], table.kind):
            yield (
                f"feature {name!r} alone predicts the target ({score}): if it is not known before "
                "the target, ignore it"
            )
    for name in table.privileged:
        yield from _copied(name, pool.iloc[some], table.features)
    yield from _copies(table)
    for name in table.features:
        if _numbers_the_rows(pool[name]):
            yield (
                f"feature {name!r} looks like a row number; if it is not a measurement, ignore it"
            )


def _given_away(column: "pd.Series[Any]", y: NDArray[Any], kind: Kind) -> str:
    """Return how well a column alone predicts the target, in words; nothing if not that well."""
    from sklearn import config_context
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    there = column.notna().to_numpy()
    frame, y = column[there].to_frame(), y[there]
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
    scoring = "balanced_accuracy" if is_class else "r2"
    with config_context(assume_finite=True, skip_parameter_validation=True):
        score = max(
            float(np.mean(cross_val_score(model, x, y, cv=n_folds, scoring=scoring)))
            for model in models
        )
    return f"cross-validated {scoring} {score:.3f}" if score >= GIVEN_AWAY else ""


def _copied(name: str, pool: "pd.DataFrame", features: tuple[str, ...]) -> Iterator[str]:
    if name in features:
        yield f"column {name!r} is both privileged and a feature: the student sees it at test time"
        return
    for feature in features:
        if _same(pool[name], pool[feature]):
            yield (
                f"privileged column {name!r} is equivalent to feature {feature!r}: "
                "the student sees it at test time"
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
    names = [str(name) for name in train.columns]
    for part, rows in table.given.items():
        columns = [name for name in names if name in rows.frame.columns]
        own, shuffled = _Keys(rows.frame[columns]), _Keys(_shuffled(rows.frame[columns]))
        if part == "train":
            found, by_chance = _n_repeated(own.all), _n_repeated(shuffled.all)
            near = sum(_n_repeated(own.without(i)) - found for i in range(len(columns)))
            what = f"{found:,} of {len(train):,} rows are exact copies of other rows"
        else:
            others = _Keys(train[columns])
            found, by_chance = _n_shared(own.all, others.all), _n_shared(shuffled.all, others.all)
            near = sum(
                _n_shared(own.without(i), others.without(i)) - found for i in range(len(columns))
            )
            what = f"{found:,} of {len(rows.y):,} {part} rows are also training rows"
        if found >= MANY * len(rows.y) and by_chance <= CHANCE * found and near <= found:
            yield f"{what}: scores may be too high; remove the copies"


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


def _n_repeated(keys: NDArray[np.uint64]) -> int:
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
