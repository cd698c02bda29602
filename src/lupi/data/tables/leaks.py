"""What in a table may make a comparison say too much, found before anything is trained."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lupi.data.tables.columns import Kind, Table
from lupi.data.tables.encoder import TableEncoder, is_number

if TYPE_CHECKING:
    import pandas as pd

GIVEN_AWAY = 0.95
"""Cross-validated R2 or balanced accuracy from which on a column is the target in other words."""
N_ROWS = 2000
"""Rows in which columns are compared with one another and the target, at most."""
N_FOLDS = 5


def find_leaks(table: Table) -> Iterator[str]:
    """Yield a sentence for each thing that a reader of the verdict must know.

    A privileged column that alone tells the target, one that is a feature too or a copy of one,
    test or validation rows that are among the rows to train on, a feature that numbers the rows.
    """
    pool = table.frames[0]
    some = np.random.default_rng(0).permutation(len(pool))[:N_ROWS]
    for name in table.privileged:
        yield from _given_away(pool[name].iloc[some], table.targets[0][some], table.kind)
    for name in table.privileged:
        yield from _copied(name, pool.iloc[some], table.features)
    keys = [
        _row_keys(frame, y, table.features)
        for frame, y in zip(table.frames, table.targets, strict=True)
    ]
    for part, found in zip(("validation", "test"), keys[1:], strict=True):
        yield from _overlap(part, found, keys[0])
    for name in table.features:
        if _numbers_the_rows(pool[name]):
            yield (
                f"feature {name!r} numbers the rows; if it is no measurement, leave it out (ignore)"
            )


def _given_away(column: "pd.Series[Any]", y: NDArray[Any], kind: Kind) -> Iterator[str]:
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    there = column.notna().to_numpy()
    frame, y = column[there].to_frame(), y[there]
    is_class = kind == "classification"
    fewest = np.unique(y, return_counts=True)[1].min(initial=len(y)) if is_class else len(y) // 2
    n_folds = min(N_FOLDS, int(fewest))
    if n_folds < 2:
        return
    x = TableEncoder.lay_out(frame).fit(frame).transform(frame)
    # A tree follows any curve but needs rows for it; a line follows one kind with few rows.
    models: list[Any] = [DecisionTreeRegressor(random_state=0), LinearRegression()]
    if is_class:
        models = [DecisionTreeClassifier(random_state=0)]
    scoring = "balanced_accuracy" if is_class else "r2"
    score = max(
        float(np.mean(cross_val_score(model, x, y, cv=n_folds, scoring=scoring)))
        for model in models
    )
    if score >= GIVEN_AWAY:
        yield (
            f"privileged column {column.name!r} alone gives the target away "
            f"({scoring} {score:.3f} on training rows): x* that is the target in other words "
            "can't teach more than the target"
        )


def _copied(name: str, pool: "pd.DataFrame", features: tuple[str, ...]) -> Iterator[str]:
    if name in features:
        yield f"column {name!r} is privileged and a feature too: the student sees it at test"
        return
    for feature in features:
        if _same(pool[name], pool[feature]):
            yield (
                f"privileged column {name!r} is feature {feature!r} in other words: "
                "the student sees it at test"
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


def _overlap(part: str, keys: NDArray[np.uint64], train: NDArray[np.uint64]) -> Iterator[str]:
    found = np.isin(keys, train).sum()
    if found:
        yield (
            f"{found} of {len(keys)} {part} rows are among the rows to train on too, with the same "
            "features and target: scores may be too good; leave duplicates out"
        )


def _row_keys(
    frame: "pd.DataFrame", y: NDArray[Any], features: tuple[str, ...]
) -> NDArray[np.uint64]:
    """Return a number for each row that is the same for equal features and target."""
    import pandas as pd

    rows = frame[list(features)].astype(str).assign(**{"\0target": y})
    return np.asarray(pd.util.hash_pandas_object(rows, index=False), dtype=np.uint64)


def _numbers_the_rows(values: "pd.Series[Any]") -> bool:
    """Whether whole numbers differ from row to row and leave no gaps but for rows held out."""
    if values.dtype.kind not in "iu" or values.nunique() < len(values):
        return False
    steps = np.diff(values.to_numpy())
    return bool((steps > 0).all() or (steps < 0).all())
