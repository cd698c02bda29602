"""Rows of a table: columns are x, x* or the target, a class or a number.

Each seed draws its own training, validation and test rows unless the table says which are which.
Everything is fitted on a run's training rows: categories, means and scales of columns, and the
unit of a target that is a number.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lupi.core import Batch, Bools, Outcome, RowNumbers, Rows, RunRows, Shown, Task, TaskKind
from lupi.core.outcomes import TWO_CLASS_SCORE
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts, list_names
from lupi.loaders.files import resolve
from lupi.loaders.tables.cells import odd_columns
from lupi.loaders.tables.columns import load_table
from lupi.loaders.tables.encoder import MAX_PRIVILEGED, TableEncoder, column_kinds
from lupi.loaders.tables.leaks import find_leaks
from lupi.loaders.tables.parts import LabelledRows
from lupi.loaders.tables.settings import TableSettings
from lupi.loaders.tables.vectors import VectorSplit
from lupi.loaders.tables.weights import describe_weights, loss_weights, metric_weights
from lupi.loaders.xstar.controls import control_vectors
from lupi.subsets import Part
from lupi.tasks.table_network import TableNetworkSettings, build_network

if TYPE_CHECKING:
    import pandas as pd


PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}


def load_table_task(settings: TableSettings, network: TableNetworkSettings) -> Task:
    """Return the task of a table: classification or regression; x* is a vector."""
    rows = TableRows(settings)
    table = rows.table
    found = {
        "row without x*": int((~rows.has_xstar(table.given["train"].frame)).sum()),
        "cell that is no number": sum(cells.n for cells in table.bad_cells),
        "row without a target, left out": table.n_dropped,
    }
    return Task(
        rows,
        table.division,
        table.design,
        outcome := Outcome(table.classes),
        outcome.metric(settings.metric, settings.weighs("metrics")),
        network,
        xstar_kind="vector",
        finding_counts={what: n for what, n in found.items() if n},
    )


TableTask = TaskKind(TableSettings, TableNetworkSettings, load_table_task)


class TableRows(Rows):
    """The rows of a table; x* is a vector made of the privileged columns."""

    def __init__(self, settings: TableSettings) -> None:
        self.settings = settings
        self.table = table = load_table(settings)
        self.dialect = resolve(settings.path, settings.dialect)
        rows = table.given["train"].frame
        self.kinds = column_kinds(
            rows[list({*table.features, *table.privileged})], settings.categorical
        )

    def fit(
        self, parts: Mapping[Part, RowNumbers], seed: int, network: TableNetworkSettings
    ) -> "TableRun":
        """Return the rows of a run, with encoders fitted on its training rows."""
        return TableRun(self, self.table.take(parts), seed, network)

    def has_xstar(self, frame: "pd.DataFrame") -> Bools:
        """Return which rows have any privileged value; held-out rows may lack these columns."""
        there = [name for name in self.table.privileged if name in frame.columns]
        if len(there) < len(self.table.privileged):
            return np.zeros(len(frame), dtype=np.bool_)
        return frame[there].notna().any(axis=1).to_numpy(dtype=np.bool_).copy()

    def facts(self) -> tuple[Fact, ...]:
        """Return facts about the data, for the user to check before training."""
        table, rows = self.table, self.table.given["train"]
        if table.classes:
            counts = dict(zip(table.classes, np.bincount(rows.y).tolist(), strict=False))
            about = f"one of {len(counts)} classes: {list_counts(counts)}"
        else:
            about = f"a number, mean {rows.y.mean():.4g}, deviation {rows.y.std():.4g}"
        weights = describe_weights(rows, self.settings)
        n_rows = sum(len(given.y) for given in table.given.values()) + table.n_dropped
        drawn = f"{n_rows:,} of {n_rows + table.n_not_drawn:,}, drawn at random (task.max_rows)"
        again = (
            f"columns with the name of another are called {list_names(table.renamed)}; if the "
            "first line has no names, set task.header=false"
        )
        dropped = f"{table.n_dropped:,} rows without a target were left out"
        return (
            Fact("x", self._columns(table.features)),
            Fact("x*", self._columns(table.privileged)),
            Fact("y", f"{self.settings.target}, {about}"),
            *table.division.facts(),
            *([Fact("items", table.answers.describe(rows))] if table.answers else ()),
            *([Fact("weights", weights)] if weights else ()),
            *([Fact("rows", drawn)] if table.n_not_drawn else ()),
            *([Fact("rows", dropped)] if table.n_dropped else ()),
            *(Fact("cells", cells.sentence) for cells in table.bad_cells),
            *([Fact("columns", again)] if table.renamed else ()),
            *(Fact("columns", text) for text in odd_columns(rows.frame, self.kinds)),
        )

    def _columns(self, names: Sequence[str]) -> str:
        """Return the number and the names of columns of each kind, in words."""
        kinds: dict[str, list[str]] = {}
        for name in names:
            kinds.setdefault(self.kinds[name], []).append(name)
        return "; ".join(
            f"{len(some)} {PLURALS[kind] if len(some) > 1 else kind} ({list_names(some)})"
            for kind, some in kinds.items()
        )

    @cached_property
    def _warnings(self) -> tuple[str, ...]:
        return tuple(find_leaks(self.table))

    def warnings(self) -> tuple[str, ...]:
        """Return what in the table may make a verdict misleading."""
        return self._warnings


class TableRun(RunRows):
    """Rows of a run, encoded as its training rows taught."""

    def __init__(
        self,
        rows: TableRows,
        parts: Mapping[Part, LabelledRows],
        seed: int,
        network: TableNetworkSettings,
    ) -> None:
        self._rows, self.parts, self._seed, self._network = rows, parts, seed, network
        table, train = rows.table, parts["train"]
        features, privileged = train.frame[list(table.features)], list(table.privileged)
        self.encoder = TableEncoder.lay_out(features, kinds=rows.kinds).fit(features)
        self.xstar_layout = TableEncoder.lay_out(
            train.frame[privileged],
            indicators=False,
            kinds=rows.kinds,
            max_categories=MAX_PRIVILEGED,
        )
        self.xstar_dim = self.xstar_layout.width
        self.outcome = Outcome(table.classes)
        if not table.classes:
            std = float(train.y.std())
            self.outcome = Outcome((), float(train.y.mean()), std if std > 0 else 1.0)
        self._x: dict[Part, Tensor] = {}

    def has_xstar(self, part: Part) -> Bools:
        """Return which rows of a part have any privileged value."""
        return self._rows.has_xstar(self.parts[part].frame)

    def split(self, part: Part, shown: Shown | None = None) -> VectorSplit:
        """Return the rows of a part; x is encoded once for all arms."""
        rows, settings = self.parts[part], self._rows.settings
        if part not in self._x:
            self._x[part] = torch.from_numpy(self.encoder.transform(rows.frame))
        if part == "train":
            weights = loss_weights(rows, settings, self.outcome.classes)
        else:
            self._check_classes(part, rows)
            weights = metric_weights(rows, part, settings)
        weighed = None if weights is None else torch.from_numpy(weights.astype(np.float32))
        batch = Batch(self._x[part], self._targets(rows.y), weights=weighed)
        if shown is not None:
            batch = batch._replace(
                xstar=torch.from_numpy(self._vectors(rows.frame, shown)),
                has_xstar=torch.from_numpy(shown.has),
            )
        return VectorSplit(batch)

    def _vectors(self, frame: "pd.DataFrame", shown: Shown) -> NDArray[np.float32]:
        """Return x* under a control, (N, D); zeros for rows that do not show it."""
        vectors = np.zeros((len(frame), self.xstar_dim), dtype=np.float32)
        if shown.has.any():
            encoder = self.xstar_layout.fit(self.parts["train"].frame[shown.trained])
            given = encoder.transform(frame[shown.has])
            vectors[shown.has] = control_vectors(given, shown.control, shown.seed)
        return vectors

    def _check_classes(self, part: Part, rows: LabelledRows) -> None:
        metric = self._rows.settings.metric or ""
        if metric.endswith(TWO_CLASS_SCORE) and len(np.unique(rows.y)) < 2:
            raise LupiError(
                f"metric: auc needs rows of both classes; the {part} rows of seed {self._seed} "
                f"have one: raise task.{part}_frac, or judge by another metric"
            )

    def _targets(self, y: NDArray[Any]) -> Tensor:
        if self.outcome.classes:
            return torch.from_numpy(y)
        return torch.from_numpy(((y - self.outcome.mean) / self.outcome.std).astype(np.float32))

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        return build_network(self._network, self.encoder.width, self.outcome.n_outputs)

    def example(self) -> Tensor:
        """Return two rows."""
        return torch.zeros(2, self.encoder.width)

    def preprocessing(self) -> dict[str, Any]:
        """Return what a student needs to predict new rows, as plain values without x*.

        `csv` is how a file is read, `features` makes a `TableEncoder`; `target` says what the
        outputs mean: the class of each logit, or the mean and deviation that standardised it.
        """
        return {
            "csv": self._rows.dialect.model_dump(),
            "features": self.encoder.to_json(),
            "target": self.outcome.describe(self._rows.settings.target),
        }
