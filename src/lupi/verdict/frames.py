"""Read tables of scores: columns, data frames, wide tables, exports of experiment trackers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lupi.errors import LupiError
from lupi.verdict.scores import LARGEST, Runs, Scores
from lupi.verdict.units import canonical, in_percent, is_at_most_one, is_share

REQUIRED = ("arm", "seed", "score")
PREFIX = re.compile(r"^(params|metrics|config|summary|tags|user_attrs|system_attrs)[._/]")
"""Prefixes of columns in the exports of MLflow, Weights & Biases and Optuna."""
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "arm": ("method", "model", "variant", "name"),
    "seed": ("random_seed", "random_state", "fold", "repeat"),
    "score": ("value", "test_score"),
    "size": ("n_train", "train_size", "n", "n_labels"),
}

Columns = dict[str, list[Any]]


def read_columns(
    scores: Any, names: Mapping[str, str] | None, metric: str, arms: Sequence[str]
) -> Columns:
    """Return the columns arm, seed, score and, if there is one, size.

    Args:
        scores: A mapping of columns, a pandas or polars frame (lazy, too), or a list of rows.
        names: The name in the table of each of the four columns, where it differs.
        metric: Name of the metric, which may be the name of the column of scores.
        arms: The arms to judge; columns with these names make a wide table.
    """
    table = _table(scores)
    wrong = [name for name in names or {} if name not in (*REQUIRED, "size")]
    if wrong:
        raise LupiError(
            f"columns: {wrong[0]!r} is not one of arm, seed, score, size; expected a mapping from "
            "these to the names in your table, such as {'score': 'test accuracy'}"
        )
    found = {
        role: _find(role, table, (names or {}).get(role), metric) for role in (*REQUIRED, "size")
    }
    if found["arm"] is None and all(arm in table for arm in arms) and found["seed"] is not None:
        table, found = _from_wide(table, arms, found["seed"], found["size"])
    missing = [role for role in REQUIRED if found[role] is None]
    if missing and all(arm in table for arm in arms):
        raise LupiError(
            "scores: no column 'seed', by which runs are paired; add it to the wide table, such as "
            "seed = 0, 1, 2, … if row i of every arm is seed i"
        )
    if missing:
        raise LupiError(
            f"scores: no column {missing[0]!r}; judge takes the columns arm, seed, score and, "
            "optionally, size (rename them with `columns=`), or a wide table with a column for "
            f"each arm; got {', '.join(map(str, table)) or 'none'}"
        )
    columns = {role: table[name] for role, name in found.items() if name is not None}
    lengths = {role: len(values) for role, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise LupiError(f"scores: columns of different lengths: {lengths}")
    columns["arm"] = [str(value) for value in columns["arm"]]
    if "size" in columns:
        columns["size"] = [_size(value) for value in columns["size"]]
    columns["score"] = [_score(value) for value in columns["score"]]
    return columns


def _table(scores: Any) -> Columns:
    """Return any table as lists."""
    if hasattr(scores, "collect"):  # a lazy frame of polars
        scores = scores.collect()
    if hasattr(scores, "reset_index") and any(name is not None for name in scores.index.names):
        scores = scores.reset_index()  # such as the seeds of a pivot table
    if isinstance(scores, Sequence) and all(isinstance(row, Mapping) for row in scores):
        names = list(dict.fromkeys(name for row in scores for name in row))
        return {name: [row.get(name) for row in scores] for name in names}
    try:
        names = list(scores.columns) if hasattr(scores, "columns") else list(scores)
        return {str(name): [_plain(value) for value in scores[name]] for name in names}
    except (TypeError, KeyError, IndexError):
        raise LupiError(
            f"scores: can't read a {type(scores).__name__}; expected a data frame (of a file: "
            "pandas.read_csv), a mapping of columns or a list of rows"
        ) from None


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _find(role: str, table: Columns, given: str | None, metric: str) -> str | None:
    """Return the name of a column in the table."""
    if given is not None:
        if given not in table:
            raise LupiError(
                f"columns: the table has no column {given!r}; got {', '.join(table) or 'none'}"
            )
        return given
    if role in table:
        return role
    simple = {PREFIX.sub("", name).lower(): name for name in reversed(list(table))}
    if role == "score":
        by_metric = {canonical(name): original for name, original in simple.items()}
        if canonical(metric) in by_metric:
            return by_metric[canonical(metric)]
    return next((simple[name] for name in (role, *OTHER_NAMES[role]) if name in simple), None)


def _from_wide(
    table: Columns, arms: Sequence[str], seed: str, size: str | None
) -> tuple[Columns, dict[str, str | None]]:
    """Return a table with one column for each arm as one with a row for each run."""
    keys = [name for name in (seed, size) if name is not None]
    others = [name for name in table if name not in keys]
    used = [name for name in others if name in arms or _is_numeric(table[name])]
    n_rows = len(table[seed])
    long: Columns = {"arm": [], "score": [], **{key: [] for key in keys}}
    for arm in used:
        long["arm"] += [arm] * n_rows
        long["score"] += table[arm]
        for key in keys:
            long[key] += table[key]
    return long, {"arm": "arm", "seed": seed, "score": "score", "size": size}


def _is_numeric(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise LupiError(f"scores: a size is a number of training rows; got {value!r}")
    return int(value)


def _score(value: Any) -> float | None:
    """Return a score, or None if it is missing or not finite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value == "":
            return None
        raise LupiError(f"scores: a score is a number; got {value!r}") from None
    return number if abs(number) < LARGEST else None  # False for NaN too


def checked_unit(metric: str, columns: Columns, unit: str | None) -> str:
    """Return the name of the metric, marked if its scores are in percent.

    Args:
        metric: Name of the metric.
        columns: The table of scores.
        unit: "share" or "percent", if given.
    """
    if unit not in (None, "share", "percent"):
        raise LupiError(f"unit: got {unit!r}; expected 'share' (0 to 1) or 'percent' (0 to 100)")
    if unit == "percent":
        return in_percent(metric)
    if not (is_share(metric) or is_at_most_one(metric)) or canonical(metric) == "r2":
        return metric
    largest: dict[str, float] = {}
    for arm, score in zip(columns["arm"], columns["score"], strict=True):
        if score is not None:
            largest[arm] = max(largest.get(arm, 0.0), abs(score))
    above = [arm for arm, score in largest.items() if score > 1]
    if not above:
        return metric
    if unit == "share" or max(largest.values()) > 100:
        raise LupiError(
            f"scores: {metric} up to {max(largest.values()):g}; expected shares (0 to 1) or "
            "percent (0 to 100)"
        )
    if len(above) < len(largest):
        shares = [arm for arm in largest if arm not in above]
        raise LupiError(
            f"scores: {metric} of {', '.join(shares)} is at most 1, that of {', '.join(above)} is "
            "larger; give all as shares or all in percent (`unit='percent'` if they are)"
        )
    return in_percent(metric)


def to_scores(columns: Columns, higher_is_better: bool) -> tuple[Scores, list[str]]:
    """Return the scores by arm, size and seed in the order of arrival, and warnings.

    A score that is missing or not finite is a missing run, and so is an absent row of an arm that
    has other rows at that size.
    """
    names = list(dict.fromkeys(columns["arm"]))
    sizes = sorted(set(columns["size"]))
    seeds = list(dict.fromkeys(columns["seed"]))
    runs = {(name, size): Runs() for name in names for size in sizes}
    seen: set[tuple[Any, ...]] = set()
    for arm, size, seed, score in zip(
        *(columns[name] for name in ("arm", "size", "seed", "score")), strict=True
    ):
        where = f"size {size}, " if size else ""
        if (arm, size, seed) in seen:
            raise LupiError(
                f"scores: two rows for arm {arm}, {where}seed {seed}; expected one per run"
            )
        seen.add((arm, size, seed))
        if score is not None:
            runs[arm, size].scores[seed] = score
    missing = []
    for size in sizes:
        expected = {seed for _, n, seed in seen if n == size}
        for name in (name for name in names if any((name, size, seed) in seen for seed in seeds)):
            found = runs[name, size]
            found.n_missing = len(expected) - len(found.scores)
            if found.n_missing:
                missing.append(f"{name} {found.n_missing}{f' at n = {size}' if size else ''}")
    warnings = []
    if missing:
        warnings.append(
            f"missing runs: {', '.join(missing)}; arms are compared on their common seeds"
        )
    sign = 1.0 if higher_is_better else -1.0
    return Scores(tuple(sizes), tuple(seeds), runs, sign, None, ()), warnings
